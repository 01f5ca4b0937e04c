"""Sample and reweigh tables in files, however many rows they have, within a bound on memory."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from fado.interventions._base import BaseIntervention
from fado.interventions._prevalence import UtilityAwarePrevalenceSampler
from fado.interventions._reweighing import UtilityAwareReweigher
from fado.interventions._utilities import checked_utility
from fado.interventions.bulk._blocks import BLOCK_ROWS, Lockstep
from fado.interventions.bulk._cells import Cells, Counter, Rows
from fado.interventions.bulk._change import ChangeSums, FilesChange
from fado.interventions.bulk._room import check_room
from fado.interventions.bulk._streams import Factors, stream_of
from fado.interventions.bulk._writing import row_group_rows, write_rows
from fado.tabular import open_source
from fado.valuation import PatternDigest
from fado.valuation.bulk import Paths, StoredValues, bound_of, check_out, name_roles

__all__ = ["reweigh_files", "sample_files"]

_WEIGHTS = pa.schema([pa.field("weight", pa.float64())])


def sample_files(
    paths: Paths,
    *,
    target: str,
    protected: str | Sequence[str],
    out: str | os.PathLike[str],
    values: str | os.PathLike[str] | None = None,
    intervention: BaseIntervention | None = None,
    weight: str | None = None,
    memory: str | int | None = None,
    progress: bool = False,
) -> FilesChange:
    """Drop rows of a table in files, and write those that stay.

    The same numbers of rows go as in memory. Rows of different utility go in the same order; those of equal
    utility, and all of `RandomPrevalenceSampler`, go by a hash of the seed and of a row's place in the table,
    where a shuffle decides in memory. The table is read four times as a rule, and once or twice more where
    very many utilities are equal; all but the last time, only the columns named here are.

    Parameters
    ----------
    paths : path-like or sequence of path-like
        A Parquet or CSV file, several, a directory, or a pattern as a shell has it. Rows stand in the order
        of the sorted paths.
    target : str
        The column of labels.
    protected : str or sequence of str
        The protected attributes: columns, or comparisons such as ``"age>=50"``. Several are crossed.
    out : path-like
        A directory that is not there yet or empty, for parts; or a file that ends in ``.parquet``. It appears
        when all rows are written.
    values : path-like, optional
        The values of these rows as `fado.value_files` wrote them: a directory, or a Parquet file. For
        interventions that use values.
    intervention : RandomPrevalenceSampler or UtilityAwarePrevalenceSampler, optional
        What chooses the rows, with its settings; ``UtilityAwarePrevalenceSampler()`` if there is none.
    weight : str, optional
        The column of what each row counts in the rates.
    memory : str or int, optional
        A bound such as ``"4GB"``, or bytes; three quarters of what is free if not given. It changes no row.
    progress : bool, default=False
        Whether to show a progress bar for every time that the table is read.

    Returns
    -------
    FilesChange
        Rows, positive rates and effective sizes of every group, before and after.

    Raises
    ------
    ValueError
        If a file or a setting is not what it must be, the values are of another table, `memory` is too small,
        or the intervention needs all rows in memory.

    Examples
    --------
    >>> import tempfile
    >>> import pandas as pd
    >>> import fado
    >>> sampler = fado.RandomPrevalenceSampler(random_state=0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for part in range(2):
    ...         frame = pd.DataFrame({"sex": list("fffmmmmmm"), "hired": [1, 0, 0, 1, 1, 1, 0, 0, 0]})
    ...         frame.to_parquet(f"{folder}/{part}.parquet")
    ...     asked = {"target": "hired", "protected": "sex", "intervention": sampler}
    ...     change = fado.sample_files(f"{folder}/*.parquet", out=f"{folder}/sample", **asked)
    >>> [(own.title, own.rows, own.rows_after, own.positive_rate_after) for own in change.groups]
    [('m', 12, 12, 0.5), ('f', 6, 4, 0.5)]
    """
    sampler = UtilityAwarePrevalenceSampler() if intervention is None else intervention
    work = _Work(paths, sampler, "rows", target, protected, out, values, weight, memory, progress=progress)
    written = row_group_rows(len(work.lockstep.source.schema.names))
    work.check(written)
    return work.run(getattr(sampler, "pos_label", None), min(written, BLOCK_ROWS))


def reweigh_files(
    paths: Paths,
    *,
    target: str,
    protected: str | Sequence[str],
    out: str | os.PathLike[str],
    values: str | os.PathLike[str] | None = None,
    intervention: BaseIntervention | None = None,
    weight: str | None = None,
    positive: Any = None,
    memory: str | int | None = None,
    progress: bool = False,
) -> FilesChange:
    """Weigh the rows of a table in files, and write the weights.

    The weights are those that the intervention gives in memory, but for the last digits. The table is read
    twice for `Reweigher`, three times for `UtilityAwareReweigher`; only the columns named here are.

    Parameters
    ----------
    paths, target, protected, values, weight, memory, progress
        As `sample_files` takes them.
    out : path-like
        A directory that is not there yet or empty, for parts; or a file that ends in ``.parquet``. It has one
        column, ``weight``, and its rows stand in the order of the table.
    intervention : Reweigher or UtilityAwareReweigher, optional
        What weighs the rows, with its settings; ``UtilityAwareReweigher()`` if there is none.
    positive : label, optional
        The label whose rates are told; None is the larger of two.

    Returns
    -------
    FilesChange
        Rows, positive rates and effective sizes of every group, before and after. An attribute of numbers,
        which `UtilityAwareReweigher` takes without a correction, makes no groups here.

    Raises
    ------
    ValueError
        As `sample_files` does.

    Examples
    --------
    >>> import tempfile
    >>> import pandas as pd
    >>> import fado
    >>> frame = pd.DataFrame({"sex": list("ffffmmmm"), "hired": [1, 0, 0, 0, 1, 1, 1, 0]})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     frame.to_csv(f"{folder}/people.csv", index=False)
    ...     asked = {"target": "hired", "protected": "sex", "intervention": fado.Reweigher()}
    ...     change = fado.reweigh_files(f"{folder}/people.csv", out=f"{folder}/w.parquet", **asked)
    ...     pd.read_parquet(f"{folder}/w.parquet")["weight"].round(3).tolist()
    [2.0, 0.667, 0.667, 0.667, 0.667, 0.667, 0.667, 2.0]
    >>> [(own.title, own.positive_rate, round(own.positive_rate_after, 3)) for own in change.groups]
    [('f', 0.25, 0.5), ('m', 0.75, 0.5)]
    """
    reweigher = UtilityAwareReweigher() if intervention is None else intervention
    work = _Work(
        paths, reweigher, "weights", target, protected, out, values, weight, memory, progress=progress
    )
    work.check(None)
    return work.run(positive, None)


class _Work:
    """What is asked for, read and checked before any row is."""

    def __init__(
        self,
        paths: Paths,
        intervention: Any,
        changes: str,
        target: str,
        protected: str | Sequence[str],
        out: str | os.PathLike[str],
        values: str | os.PathLike[str] | None,
        weight: str | None,
        memory: str | int | None,
        *,
        progress: bool,
    ) -> None:
        if not isinstance(intervention, BaseIntervention):
            raise TypeError(f"`intervention` must be an intervention, got {intervention!r}.")
        if intervention.changes != changes:
            raise ValueError(
                f"`intervention` must change {changes}, and {type(intervention).__name__} changes "
                f"{intervention.changes}: use the other function."
            )
        self._stream = stream_of(intervention)
        intervention._check_settings()
        self._utility = (
            checked_utility(getattr(intervention, "utility", None)) if intervention.uses_values else None
        )
        if self._utility is not None and values is None:
            raise ValueError(
                f"`values` must be given, as {type(intervention).__name__} uses them: make them with "
                "`fado.value_files`."
            )
        self._intervention = intervention
        self._bound = bound_of(memory)
        source = open_source(paths)
        self._roles = name_roles(source.schema, target, protected, weight=weight)
        used = None if self._utility is None or values is None else StoredValues(values)
        self._out = Path(out)
        check_out(self._out, source, paths, [] if used is None else [used.path])
        if self._out.is_dir() and any(self._out.iterdir()):
            raise ValueError(f"The directory {str(self._out)!r} is not empty: name another `out`.")
        if used is not None:
            used.check(target, self._roles.names[1:])
            if source.n_rows is not None:
                used.check_rows(source.n_rows)
        self._where = str(paths) if isinstance(paths, str | os.PathLike) else str(source.files[0].path)
        self.lockstep = Lockstep(source, used, progress)

    def check(self, written_rows: int | None) -> None:
        """Refuse a bound on memory that is too small."""
        check_room(self.lockstep.source, self._roles.needed, written_rows, self._bound)

    def run(self, pos_label: Any, sampled_rows: int | None) -> FilesChange:
        """Count, decide and write; rows that stay, so many at once, or weights."""
        counter = Counter(
            self._roles,
            self._utility,
            counts_cells=self._intervention._counts_cells,
            where=self._where,
        )
        cells = self._count(counter, pos_label)

        def passes(what: str) -> Iterator[Rows]:
            return (counter.rows(block) for block in self.lockstep.blocks(self._roles.needed, what))

        factors = self._stream(self._intervention, cells, passes)
        sums = ChangeSums(cells)
        if sampled_rows is None:
            write_rows(self._out, self._weights(counter, factors, sums), _WEIGHTS)
        else:
            kept = self._kept(counter, factors, sums, sampled_rows)
            write_rows(self._out, kept, self.lockstep.source.schema)
        return sums.finish(self._roles.names[1:], self._intervention.min_group_size)

    def _count(self, counter: Counter, pos_label: Any) -> Cells:
        digest, n_rows = PatternDigest(), 0
        for block in self.lockstep.blocks(self._roles.needed, "blocks counted"):
            digest.add(counter.count(block))
            n_rows += block.table.num_rows
        if self.lockstep.values is not None:
            self.lockstep.values.check_rows(n_rows)
            self.lockstep.values.check_pattern(digest.finish(), counter.n_labels)
        return counter.cells(pos_label)

    def _kept(
        self, counter: Counter, factors: Factors, sums: ChangeSums, block_rows: int
    ) -> Iterator[pa.Table]:
        for block in self.lockstep.blocks(None, "blocks written", block_rows):
            rows = counter.rows(block)
            own = factors(rows)
            sums.add(rows, own)
            yield block.table.filter(pa.array(own > 0))

    def _weights(self, counter: Counter, factors: Factors, sums: ChangeSums) -> Iterator[pa.Table]:
        for block in self.lockstep.blocks(self._roles.needed, "blocks written"):
            rows = counter.rows(block)
            own = factors(rows)
            sums.add(rows, own)
            yield pa.table([pa.array(own)], schema=_WEIGHTS)
