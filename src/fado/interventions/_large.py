"""Sample and reweigh tables in files.

Labels, groups and utilities of all rows are read block by block into arrays. The intervention decides on
these as it does in memory. Then the rows that are kept are read again and written, or the weights are
written.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet
from sklearn.utils import check_random_state

from fado._checks import sklearn_seed
from fado._memory import format_memory
from fado._messages import COMPARE_TARGET, insert_parameters
from fado._progress import tracked
from fado._storage import remove_abandoned, replacing, replacing_directory
from fado._typing import Floats
from fado.interventions._base import (
    BaseIntervention,
    TrainingSet,
    checked_utility,
    no_cells,
    no_utilities,
    utilities_of,
)
from fado.interventions._changes import FilesChange, change_of
from fado.interventions._reweighing import UtilityAwareReweigher
from fado.interventions._sampling import UtilityAwarePrevalenceSampler
from fado.tabular import (
    TARGET,
    GroupNames,
    Groups,
    LabelPattern,
    Labels,
    Variable,
    check_known,
    column_from,
    group_rows,
    in_blocks,
    labels_of,
    open_source,
    warn_of_unknown_rows,
)
from fado.utility import CobbDouglasUtility, DifferenceUtility, LinearUtility
from fado.valuation import Valuation
from fado.valuation.large import (
    Classes,
    Combinations,
    Paths,
    StoredValues,
    check_comparisons,
    check_group_names,
    check_out,
    check_rows,
    memory_bound,
    name_roles,
    part_name,
    reading_costs,
)

BLOCK_ROWS = 1 << 16  # that are read at once
_COPIES = 3  # of a block: as it was read, cut to size, and what is made of it
_BYTES_OF_A_CODED_ROW = 200  # of a block, while it is coded
_BYTES_OF_A_ROW = 80  # of every row of the table, while an intervention decides on all
_COLUMNS_OF_A_UTILITY = 4  # that it makes of all rows: ranks, orders, and what it gives
_ENCODING = 60 * 10**6  # bytes of pages that are encoded and compressed

_ROWS_OF_A_PART = 1 << 20
_MOST_ROWS, _LEAST_ROWS = 1 << 17, 1 << 10  # of a row group
_CELLS = 1 << 21  # of a row group, about

_ROW_BY_ROW = (LinearUtility, DifferenceUtility, CobbDouglasUtility)  # no row's utility depends on others
_WEIGHTS = pa.schema([pa.field("weight", pa.float64())])
_ALL = "all rows"


def sample_files(
    paths: Paths,
    *,
    target: str,
    protected: str | Sequence[str],
    unknown: Any = None,
    out: str | os.PathLike[str],
    values: str | os.PathLike[str] | None = None,
    intervention: BaseIntervention | None = None,
    weight: str | None = None,
    memory: str | int | None = None,
    progress: bool = False,
    group_names: GroupNames | None = None,
) -> FilesChange:
    """Drop rows of a table in files, and write the others.

    The result is the same as in memory with the same rows, values and seed.

    The table is read twice: first the columns that are named here, then all columns of the rows that are
    written. While the intervention decides, about 80 bytes per row are in memory; if `memory` is too small
    for that, an error states how much is needed. A custom `utility` gets the values of all rows at once, and
    is refused if `memory` is too small for them.

    Parameters
    ----------
    paths : path-like or sequence of path-like
        A Parquet or CSV file, several, a directory, or a pattern such as ``"data/*.parquet"``. The table is
        made of the rows of all files, in the order of their sorted paths.
    target : str
        The column of labels, or a comparison such as ``"amount>=1000"``, whose labels are True and False.
    protected : str or sequence of str
        The protected attributes: columns, or comparisons such as ``"age>=50"``, as
        `fado.datasets.protected_from` accepts them. The groups are the combinations of several. Rows with a
        missing value are counted as unknown; they stay as they are and count in no rate.
    unknown : value or list of values, optional
        Entries of the columns of `protected` that mean the same as a missing one, such as ``"?"`` or ``-1``.
    out : path-like
        Where to write: a file that ends in ``.parquet``, or a directory for several files, which must be new
        or empty. It appears only when all rows are written.
    values : path-like, optional
        The values of these rows, written by `fado.value_files`: a directory, or a Parquet file. Needed by
        interventions that use values.
    intervention : intervention, optional
        What chooses the rows: a sampler, or a custom intervention that changes rows. None means
        ``UtilityAwarePrevalenceSampler()``.
    weight : str, optional
        The column of row weights, which count in the rates.
    memory : str or int, optional
        The most memory to use, such as ``"4GB"``, or a number of bytes. None means three quarters of the free
        memory. The result does not depend on it.
    progress : bool, default=False
        Whether to show a progress bar each time the table is read.
    group_names : mapping, optional
        Names of groups: per attribute, as in `protected`, names by label, ``{"sex": {1: "men"}}``. For a
        comparison, two names are enough, first for the rows where it holds: ``{"age>=50": ["older",
        "younger"]}``. Without names, its groups are ``age >= 50`` and ``age < 50``.

    Returns
    -------
    FilesChange
        Rows, positive rates and effective sizes of every group, before and after.

    Raises
    ------
    ValueError
        If a file or a setting is not valid, the values belong to another table, `memory` is too small, or the
        intervention makes new rows, which is only possible in memory.

    See Also
    --------
    fado.reweigh_files : Writes weights instead.
    fado.value_files : Values the rows of a table in files.

    Examples
    --------
    >>> import tempfile
    >>> import pandas as pd
    >>> import fado
    >>> sampler = fado.RandomPrevalenceSampler(random_state=0)
    >>> hired = [1, 0, 0, 1, 1, 1, 0, 0, 0]
    >>> frame = pd.DataFrame({"sex": list("fffmmmmmm"), "hired": hired})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for part in range(2):
    ...         frame.to_parquet(f"{folder}/{part}.parquet")
    ...     change = fado.sample_files(
    ...         f"{folder}/*.parquet",
    ...         target="hired",
    ...         protected="sex",
    ...         intervention=sampler,
    ...         out=f"{folder}/sample",
    ...     )
    >>> for own in change.groups:
    ...     print(own.title, own.rows, own.rows_after, own.positive_rate_after)
    m 12 12 0.5
    f 6 4 0.5
    """
    sampler = UtilityAwarePrevalenceSampler() if intervention is None else intervention
    files = _Files(
        paths, sampler, "rows", target, protected, unknown, out, values, weight, memory, progress, group_names
    )
    group_size = _row_group_rows(len(files.source.schema.names))
    rows, chosen = files.decide(getattr(sampler, "pos_label", None), group_size)
    kept = np.zeros(len(rows), dtype=np.bool_)
    kept[chosen.rows] = True
    change = files.change(rows, kept.astype(np.float64))
    del rows, chosen  # while rows are written, only the mask is in memory

    def written() -> Iterator[pa.Table]:
        first = 0
        for table in files.blocks(None, "blocks written", min(group_size, BLOCK_ROWS)):
            yield table.filter(pa.array(kept[first : first + table.num_rows]))
            first += table.num_rows

    _write_rows(files.out, written(), files.source.schema)
    return change


@insert_parameters(sample_files)
def reweigh_files(
    paths: Paths,
    *,
    target: str,
    protected: str | Sequence[str],
    unknown: Any = None,
    out: str | os.PathLike[str],
    values: str | os.PathLike[str] | None = None,
    intervention: BaseIntervention | None = None,
    weight: str | None = None,
    positive: Any = None,
    memory: str | int | None = None,
    progress: bool = False,
    group_names: GroupNames | None = None,
) -> FilesChange:
    """Reweigh the rows of a table in files, and write the weights.

    The weights are the same as in memory. The table is read once, and only the columns that are named here.
    About 80 bytes per row are in memory, as for `sample_files`.

    Parameters
    ----------
    {paths, target, protected, unknown}
    out : path-like
        Where to write: a file that ends in ``.parquet``, or a directory for several files, which must be new
        or empty. There is one column, ``weight``, and its rows are in the order of the table.
    {values}
    intervention : intervention, optional
        What computes the weights: a reweigher, or a custom intervention that changes weights. None means
        ``UtilityAwareReweigher()``.
    {weight}
    positive : label, optional
        The label whose rates are returned; None means the larger of two. It changes no weight.
    {memory, progress, group_names}

    Returns
    -------
    FilesChange
        Rows, positive rates and effective sizes of every group, before and after. A numeric attribute, which
        `UtilityAwareReweigher` takes without a correction, makes no groups here.

    Raises
    ------
    ValueError
        In the same cases as `sample_files`, and if the intervention changes labels, as `FairlearnGrid` does.

    See Also
    --------
    fado.sample_files : Drops rows instead.

    Examples
    --------
    >>> import tempfile
    >>> import pandas as pd
    >>> import fado
    >>> hired = [1, 0, 0, 0, 1, 1, 1, 0]
    >>> frame = pd.DataFrame({"sex": list("ffffmmmm"), "hired": hired})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     frame.to_csv(f"{folder}/people.csv", index=False)
    ...     change = fado.reweigh_files(
    ...         f"{folder}/people.csv",
    ...         target="hired",
    ...         protected="sex",
    ...         intervention=fado.Reweigher(),
    ...         out=f"{folder}/w.parquet",
    ...     )
    ...     pd.read_parquet(f"{folder}/w.parquet")["weight"].round(3).tolist()
    [2.0, 0.667, 0.667, 0.667, 0.667, 0.667, 0.667, 2.0]
    >>> for own in change.groups:
    ...     print(own.title, own.positive_rate, round(own.positive_rate_after, 3))
    f 0.25 0.5
    m 0.75 0.5
    """
    reweigher = UtilityAwareReweigher() if intervention is None else intervention
    files = _Files(
        *(paths, reweigher, "weights", target, protected, unknown, out, values, weight),
        *(memory, progress, group_names),
    )
    rows, chosen = files.decide(positive)
    if chosen.weights is not None and len(chosen.rows) == len(rows):
        factors = np.asarray(chosen.weights, dtype=np.float64)
    else:
        factors = np.zeros(len(rows))
        factors[chosen.rows] = 1.0 if chosen.weights is None else chosen.weights
    change = files.change(rows, factors)
    del rows, chosen  # while weights are written, only they are in memory
    parts = (factors[first : first + BLOCK_ROWS] for first in range(0, len(factors), BLOCK_ROWS))
    _write_rows(files.out, (pa.table([pa.array(own)], schema=_WEIGHTS) for own in parts), _WEIGHTS)
    return change


@dataclass(frozen=True)
class CodedRows:
    """The arrays on which an intervention decides, for all rows of a table in files."""

    labels: Labels
    groups: Groups
    utilities: Floats | None
    weights: Floats | None

    def __len__(self) -> int:
        return len(self.labels.codes)


class _Files:
    """A table in files that an intervention changes; settings are checked before a row is read."""

    def __init__(
        self,
        paths: Paths,
        intervention: Any,
        changes: str,
        target: str,
        protected: str | Sequence[str],
        unknown: Any,
        out: str | os.PathLike[str],
        values: str | os.PathLike[str] | None,
        weight: str | None,
        memory: str | int | None,
        progress: bool,
        group_names: GroupNames | None,
    ) -> None:
        name = type(intervention).__name__
        if not isinstance(intervention, BaseIntervention):
            raise TypeError(f"`intervention` must be an intervention, got {intervention!r}.")
        if intervention.changes != changes:
            raise ValueError(
                f"`intervention` must change {changes}, and {name} changes {intervention.changes}: use the "
                "other function."
            )
        intervention._check_settings()
        self._utility = checked_utility(intervention.utility) if intervention.uses_values else None
        self._intervention, self._progress = intervention, progress
        self._memory = memory_bound(memory)
        self.source, self.out = open_source(paths), Path(out)
        self._roles = name_roles(
            self.source.schema,
            target,
            protected,
            weight=weight,
            group_names=group_names,
            unknown=unknown,
        )
        if intervention.uses_values and values is None:
            raise ValueError(
                f"`values` must be given, as {name} uses them: make them with `fado.value_files`."
            )
        self._values = StoredValues(values) if intervention.uses_values and values is not None else None
        check_out(self.out, self.source, paths, [] if self._values is None else [self._values.path])
        if self.out.is_dir() and any(self.out.iterdir()):
            remove_abandoned(self.out)
            raise ValueError(f"The directory {str(self.out)!r} is not empty: name another `out`.")
        if self._values is not None:
            self._values.check(self._roles.target.name, self._roles.names[1:])
            if self.source.n_rows is not None:
                self._values.check_rows(self.source.n_rows)
        self._where = str(paths if isinstance(paths, str | os.PathLike) else self.source.files[0].path)

    def decide(self, pos_label: Any, written_rows: int | None = None) -> tuple[CodedRows, TrainingSet]:
        """Read all rows, and let the intervention decide; `written_rows` are then written at once."""
        self._check_room(written_rows)
        check_group_names(self.source, self._roles)
        rows = self._read(pos_label)
        pa.default_memory_pool().release_unused()  # that Arrow keeps of blocks
        cells = (rows.labels, rows.groups) if self._intervention._counts_cells else no_cells(len(rows))
        generator = check_random_state(sklearn_seed(getattr(self._intervention, "random_state", None)))
        chosen = self._intervention._choose(*cells, rows.utilities, rows.weights, generator)
        weighs_too = self._intervention.changes == "rows" and chosen.weights is not None
        if chosen.parents is not None or chosen.labels is not None or weighs_too:
            what = "makes new rows" if chosen.parents is not None else "changes labels"
            raise ValueError(
                f"{type(self._intervention).__name__} needs all rows in memory, as it "
                f"{'also weighs them' if weighs_too else what}: fit it to a table in memory, or choose "
                "another intervention."
            )
        return rows, chosen

    def blocks(self, columns: Sequence[str] | None, what: str, block_rows: int) -> Iterator[pa.Table]:
        """Read some columns of all rows, block by block, with a progress bar."""
        n_blocks = -(-self.source.about_rows // block_rows)
        return tracked(self.source.rows(columns, block_rows), n_blocks, what=what, show=self._progress)

    def change(self, rows: CodedRows, factors: Floats) -> FilesChange:
        """Return the changes of the groups, given the factors of the rows' weights."""
        least = getattr(self._intervention, "min_group_size", 0)
        return change_of(self._roles.names[1:], rows.labels, rows.groups, rows.weights, factors, least)

    def _read(self, pos_label: Any) -> CodedRows:
        """Encode all rows in one pass: combinations of classes, from which labels and groups are made."""
        roles, counts_cells = self._roles, self._intervention._counts_cells
        seen, joint, pattern = [Classes(name) for name in roles.names], Combinations(), LabelPattern()
        places: list[npt.NDArray[Any]] = []
        weights: list[Floats] = []
        for block in self.blocks(roles.needed, "blocks read", BLOCK_ROWS):
            columns, own_weights = roles.variables(block), roles.weights(block)
            check_rows(columns[0], own_weights, self._where)
            codes = [own.add(column) for own, column in zip(seen, columns, strict=True)]
            if counts_cells:
                _check_classes(own.variable() for own in seen if own.are_numbers)
            pattern.add(codes[0])
            places.append(joint.add(codes).astype(np.min_scalar_type(len(joint))))
            if own_weights is not None:
                weights.append(own_weights)
        combination = np.concatenate(places)
        variables = [own.numbered() for own in seen]
        if self._values is not None:
            self._values.check_rows(len(combination))
            self._values.check_pattern(pattern.hexdigest(), len(variables[0].classes))
        if roles.weight is not None and not any(own.any() for own in weights):
            raise ValueError("`weight` is zero in every row: give some row a weight.")
        check_comparisons(variables, roles)
        if counts_cells:
            _check_classes(variables)
        classes = [
            own.labels.astype(np.int64)[codes] if own.kind == "classes" else np.zeros_like(codes)
            for own, codes in zip(variables, np.array(joint.seen, dtype=np.int64).T, strict=True)
        ]  # of every combination
        if counts_cells:
            check_known(variables[1:])
            sizes = np.bincount(combination, minlength=len(joint))
            for own, codes in zip(variables[1:], classes[1:], strict=True):
                if own.has_missing:
                    missing = int(sizes[codes == len(own.classes) - 1].sum())
                    warn_of_unknown_rows(own, missing, len(combination))
        crossed = [
            replace(own, labels=codes)
            for own, codes in zip(variables[1:], classes[1:], strict=True)
            if own.kind == "classes"
        ]
        groups = group_rows(crossed) if crossed else Groups(np.zeros_like(classes[0]), (_ALL,), (_ALL,))
        labels = _labels_of(variables[0], pos_label, counts_cells=counts_cells)
        return CodedRows(
            replace(labels, codes=classes[0].astype(np.int32)[combination]),
            replace(groups, codes=groups.codes[combination]),
            self._utilities(),
            np.concatenate(weights) if weights else None,
        )

    def _utilities(self) -> Floats | None:
        """Return all rows' utilities; a custom utility gets the values of all rows at once."""
        utility, values = self._utility, self._values
        if utility is None or values is None:
            return None
        if type(utility) in _ROW_BY_ROW:
            utilities = np.empty(values.n_rows)
            first = 0
            for block in values.blocks(BLOCK_ROWS):
                utilities[first : first + len(block)] = utilities_of(utility, block, len(block))
                first += len(block)
        else:
            self._check_room_for_values(values)
            utilities = utilities_of(utility, Valuation.load(values.path), values.n_rows)
        unknown = np.flatnonzero(~np.isfinite(utilities))
        if len(unknown):
            raise no_utilities(len(unknown), len(utilities), int(unknown[0]))
        return utilities

    def _check_room(self, written_rows: int | None) -> None:
        """Refuse a memory bound that is too small, and state the least that works."""
        source, n_rows = self.source, self.source.about_rows
        costs = reading_costs(source, self._roles.needed)
        reading = costs.unit + BLOCK_ROWS * (_COPIES * costs.row + _BYTES_OF_A_CODED_ROW) + _ENCODING
        if written_rows is not None:
            costs = reading_costs(source, source.schema.names)
            writing = costs.unit + 2 * _COPIES * written_rows * costs.row + _ENCODING
            reading = max(reading, writing)
        least = round(reading) + n_rows * _BYTES_OF_A_ROW
        if reading > self._memory:
            raise costs.too_small(self._memory, least)
        if least > self._memory:
            raise ValueError(
                f"`memory` of {format_memory(self._memory)} is too small to decide on {n_rows:,} rows at "
                f"once, which takes about {_BYTES_OF_A_ROW} bytes of each: the least that works is "
                f"{-(-least // 10**6):,} MB."
            )

    def _check_room_for_values(self, values: StoredValues) -> None:
        """Refuse a memory bound that is too small for the values of all rows."""
        least = values.n_bytes + 8 * values.n_rows * _COLUMNS_OF_A_UTILITY
        if least > self._memory:
            name = getattr(self._utility, "__name__", type(self._utility).__name__)
            raise ValueError(
                f"`memory` of {format_memory(self._memory)} is too small for the utility {name!r}, which may "
                f"compare rows and so needs the values of all {values.n_rows:,} at once: the least that "
                f"works is {-(-least // 10**6):,} MB; LinearUtility, DifferenceUtility and CobbDouglas"
                "Utility need less."
            )


def _labels_of(target: Variable, pos_label: Any, *, counts_cells: bool) -> Labels:
    """Return the target's labels and the positive one; a numeric target has one label."""
    if target.kind == "continuous":
        return Labels(np.zeros(0, dtype=np.int32), (_ALL,))
    if not counts_cells and len(target.classes) > 2 and pos_label is None:
        return Labels(np.zeros(0, dtype=np.int32), target.classes)
    return labels_of(column_from(TARGET, list(target.classes)), pos_label)


def _check_classes(variables: Iterable[Variable]) -> None:
    """Refuse continuous variables where labels and groups are needed."""
    for own in variables:
        if own.kind == "continuous" and own.name == TARGET:
            raise ValueError(
                f"`y` has more than 20 different numbers, and this needs classes: {COMPARE_TARGET}."
            )
        if own.kind == "continuous":
            raise ValueError(
                f"Protected attribute {own.name!r} has more than 20 different numbers, too many for groups: "
                "cut it into a few, for example by `age >= 50`."
            )


def _row_group_rows(n_columns: int) -> int:
    """Return the rows of a row group: fewer for a wide table, and independent of memory."""
    rows = _MOST_ROWS
    while rows > _LEAST_ROWS and rows * n_columns > _CELLS:
        rows //= 2
    return rows


def _write_rows(out: Path, tables: Iterable[pa.Table], schema: pa.Schema) -> None:
    """Write rows as they come, into a file or a directory of parts: whole or not at all."""
    rows = _row_group_rows(len(schema.names))
    groups = in_blocks(tables, rows)
    if out.suffix.lower() == ".parquet":
        with replacing(out, "The rows") as temporary:
            _write(temporary, groups, schema)
        return
    with replacing_directory(out, "The rows") as folder:
        for number, part in enumerate(_parts(groups, _ROWS_OF_A_PART // rows, schema)):
            with replacing(folder / part_name(number), "The rows", tidy=False) as temporary:
                _write(temporary, part, schema)


def _parts(
    groups: Iterator[pa.Table], groups_of_a_part: int, schema: pa.Schema
) -> Iterator[Iterator[pa.Table]]:
    """Split row groups into parts; without rows there is one part."""
    first = next(groups, schema.empty_table())
    while first is not None:
        yield chain([first], islice(groups, groups_of_a_part - 1))
        first = next(groups, None)


def _write(path: Path, groups: Iterable[pa.Table], schema: pa.Schema) -> None:
    with pa.parquet.ParquetWriter(path, schema, compression="zstd", write_page_checksum=True) as writer:
        for group in groups:
            writer.write_table(group, row_group_size=max(1, group.num_rows))
