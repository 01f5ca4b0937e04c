"""Explore a table in files by a sample of its rows, within a memory limit."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fado._checks import check_count
from fado._typing import Integers
from fado.exploration._consequences import check_retraining
from fado.exploration._explore import Exploration, summarise
from fado.exploration._explored import check_variables, read_explored
from fado.tabular import (
    BLOCK_ROWS,
    MIN_GROUP_SIZE,
    Combinations,
    GroupNames,
    Paths,
    Roles,
    SmallestRows,
    Source,
    TablePass,
    Variable,
    check_group_names,
    check_min_group_size,
    open_source,
    positive_code,
    read_problem,
    read_roles,
)
from fado.valuation import Valuation, read_lazily
from fado.valuation.large import memory_bound, reading_costs, with_group_names

_MOST_SEARCHED = 50_000  # rows that slices are searched for in, as `explore` has it
_MOST = 2**63 - 1

# Bytes of a sampled row while a page is made, measured on tables with 5 and 40 columns and on one with five
# columns of unique texts: a multiple of the size of its columns in Arrow, and a constant.
_TIMES_ITS_COLUMNS = 1.5
_OF_A_TEXT = 100
_OF_A_VARIABLE = 150
_OF_A_ROW = 100
_OF_A_SEARCHED_CELL = 40


def explore_files(
    paths: Paths,
    *,
    values: str | os.PathLike[str] | Valuation,
    target: str,
    protected: str | Sequence[str],
    unknown: Any = None,
    sample_rows: int = 200_000,
    memory: str | int | None = None,
    drop: str | Sequence[str] | None = None,
    weight: str | None = None,
    pos_label: Any = None,
    min_group_size: int = MIN_GROUP_SIZE,
    show_rows: bool = False,
    retrain: int = 120,
    estimator: Any = None,
    random_state: int = 0,
    n_jobs: int | None = None,
    progress: bool = False,
    group_names: GroupNames | None = None,
) -> Exploration:
    """Explore a table in files of any size, by a random sample of its rows.

    The table is read once, block by block. The sample consists of the rows with the smallest hashes, so it
    does not depend on how the table is split into files. Only the values of these rows are read. The same
    pass counts all rows, the sizes of groups and their positive rates. The page states the size of the sample
    and its sampling error; ``to_dict()["about"]["sampled"]`` has the same as data. A table with at most
    `sample_rows` rows is explored whole.

    Parameters
    ----------
    paths : path-like or sequence of path-like
        A Parquet or CSV file, several files, a directory, or a pattern such as ``"loans-*.parquet"``. Rows
        are in the order of the sorted paths. Files whose names begin with ``_`` or ``.`` are ignored.
    values : path-like or Valuation
        The values of all rows: a `Valuation`, or the directory or Parquet file that contains it.
    target : str
        The column to be predicted, or a comparison such as ``"amount>=1000"``. Columns of the comparison are
        not features.
    protected : str or sequence of str
        The protected attributes: columns, or comparisons such as ``"age>=50"``, as in
        `fado.datasets.protected_from`.
    unknown : value or list of values, optional
        Entries of the columns of `protected` that mean the same as a missing one, such as ``"?"`` or ``-1``.
    sample_rows : int, default=200_000
        The largest number of rows that are explored.
    memory : str or int, optional
        The memory that may be used: a size such as ``"4GB"``, or a number of bytes; by default three quarters
        of the free memory.
    drop : str or sequence of str, optional
        Columns, or patterns such as ``"id_*"``, that are not features.
    weight : str, optional
        The column of sample weights. Effects are multiplied by them.
    pos_label : label, optional
        The positive label. None means the larger of two labels; a target with more classes then has none.
    min_group_size : int, default=30
        As in `explore`, counted in sampled rows.
    show_rows : bool, default=False
        Whether to show the entries of the most suspicious and the most harmful rows, not only their
        positions in the whole table.
    retrain, estimator, n_jobs
        As in `explore`; models are trained on at most 50,000 of the sampled rows.
    random_state : int, default=0
        Seed of the sample, and of all random numbers of `explore`.
    progress : bool, default=False
        Whether to show a progress bar.
    group_names : mapping, optional
        Names of groups, as in `sample_files`.

    Returns
    -------
    Exploration
        Its `write_html` writes the page; a notebook shows it.

    Raises
    ------
    ValueError
        If a file or a setting is invalid, the values belong to other rows, or `memory` is too small.

    See Also
    --------
    fado.explore : Explore a table in memory.
    fado.value_files : Value the rows of such a table.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np, pandas as pd
    >>> import fado
    >>> rng = np.random.default_rng(0)
    >>> columns = {"target": "default", "protected": "age >= 50", "memory": "1GB"}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for part in range(2):
    ...         frame = pd.DataFrame({"income": rng.normal(size=500), "age": rng.integers(18, 80, size=500)})
    ...         frame["default"] = frame["income"] + rng.normal(size=500) < 0
    ...         frame.to_parquet(f"{folder}/loans-{part}.parquet")
    ...     loans = f"{folder}/loans-*.parquet"
    ...     values = fado.value_files(loans, out=f"{folder}/values", **columns)
    ...     seen = fado.explore_files(loans, values=values, sample_rows=400, retrain=0, **columns)
    >>> seen
    Exploration of 400 sampled of 1,000 rows by age>=50
    >>> round(seen.to_dict()["about"]["sampled"]["error"], 3)
    0.038
    """
    wanted = check_count("sample_rows", sample_rows, 1, _MOST)
    seed = check_count("random_state", random_state, 0, _MOST)
    check_min_group_size(min_group_size)
    check_retraining(retrain, estimator)
    bound = memory_bound(memory)
    valuation = values if isinstance(values, Valuation) else read_lazily(values)
    source = open_source(paths)
    roles = read_roles(
        source.schema, target, protected, drop=drop, weight=weight, group_names=group_names, unknown=unknown
    )
    if not roles.attributes:
        raise ValueError("There is no protected attribute to explore: pass one as `protected`.")
    _check_values(valuation, roles, source.n_rows)
    _check_memory(source, roles, bound, wanted)
    check_group_names(source, roles)
    sampled, table, positive, pattern = read_sample(source, roles, wanted, seed, pos_label, progress=progress)
    _check_values(valuation, roles, sampled.n_rows)
    known = valuation.provenance.target_pattern
    if known is not None and known != pattern:  # numbers have no pattern to compare
        raise ValueError(
            f"`values` were computed with other labels than those of {roles.target.name!r}, or with the rows "
            "in another order: pass the values of these rows."
        )
    labels = roles.target.read(table, named=False)
    if positive is not None and positive not in labels.unique().to_pylist():
        raise ValueError(
            f"None of the {table.num_rows:,} sampled rows has the positive label {positive!r}: explore more "
            "with `sample_rows`."
        )
    problem = read_problem(
        table.select(list(roles.features)),
        labels,
        {attribute.name: attribute.read(table) for attribute in roles.attributes},
        sample_weight=roles.weights(table),
        pos_label=positive,
        warn_of_columns=True,
    ).with_mean_weight_one()
    explored = read_explored(
        problem,
        roles.target.name,
        with_group_names(valuation.take(sampled.places), roles.attributes),
        max_rows=_MOST_SEARCHED,
        min_group_size=min_group_size,
        seed=seed,
        sampled=None if len(sampled.places) == sampled.n_rows else sampled,
    )
    return Exploration(summarise(explored, show_rows, int(retrain), estimator, n_jobs, progress))


class Sampled(NamedTuple):
    """The sampled rows of a larger table, and counts over all its rows."""

    places: Integers  # of the sampled rows in the whole table
    n_rows: int  # of the whole table
    seed: int
    has_positive: bool  # whether the whole table's target has a positive label
    # per attribute and label, None for a missing one: the rows, and those of the positive label; no numbers
    counts: Mapping[str, Mapping[Any, tuple[int, int]]]

    @property
    def times(self) -> float:
        """How many rows of the table each sampled row represents."""
        return self.n_rows / len(self.places)

    def groups_of(self, variable: Variable) -> Integers | None:
        """Give the rows and positives of a variable's groups; None for a number."""
        if variable.kind == "continuous" or variable.name not in self.counts:
            return None
        labels: list[Any] = list(variable.classes)
        if variable.has_missing:
            labels[-1] = None
        counts = self.counts[variable.name]
        return np.array([counts[labels[code]] for code in np.unique(variable.labels)], dtype=np.int64)

    def together(
        self, groups: Integers, members: Sequence[int] | npt.NDArray[np.intp]
    ) -> tuple[int, float | None]:
        """Give the rows of some groups together, and their share of positive labels, if there is one."""
        rows, positive = groups[list(members)].sum(axis=0).tolist()
        return rows, positive / rows if self.has_positive else None


def _check_values(valuation: Valuation, roles: Roles, n_rows: int | None) -> None:
    """Refuse values of other attributes, another number of rows, or another target."""
    check_variables("values", valuation, roles.names[1:], "protected")
    if n_rows is not None and len(valuation) != n_rows:
        raise ValueError(
            f"`values` has {len(valuation):,} rows and the table has {n_rows:,}: pass the values of the same "
            "rows."
        )
    note = valuation.provenance.made_for
    if note is not None and note.target != roles.target.name:
        raise ValueError(
            f"`values` are for the target {note.target!r}, not for {roles.target.name!r}: pass others, or "
            "value this target."
        )


def _check_memory(source: Source, roles: Roles, memory: int, sample_rows: int) -> None:
    """Refuse a memory limit that a row group and the sample do not fit into."""
    costs, n_features = reading_costs(source, roles.needed()), len(roles.features)
    all_rows = source.about_rows if source.n_rows is not None else 2 * source.about_rows
    n_texts = sum(pa.types.is_large_string(source.schema.field(name).type) for name in roles.features)
    one = (
        _TIMES_ITS_COLUMNS * costs.row + _OF_A_TEXT * n_texts + _OF_A_VARIABLE * len(roles.names) + _OF_A_ROW
    )
    rows = min(sample_rows, all_rows)
    searched = _OF_A_SEARCHED_CELL * n_features * min(rows, _MOST_SEARCHED)
    least = round(costs.unit + searched + rows * one)
    if least > memory:
        fitting = int((memory - costs.unit - searched) / one)
        fewer = f", or `sample_rows={fitting}`" if fitting > 0 else ""
        raise costs.too_small(memory, least, f" for `sample_rows={sample_rows:,}`", fewer)


def read_sample(
    source: Source, roles: Roles, n_rows: int, seed: int, pos_label: Any, *, progress: bool
) -> tuple[Sampled, pa.Table, Any, str | None]:
    """Read all rows once, block by block: keep those with the smallest hashes, and count all.

    Also give the target's positive label, and a digest of which rows share a label.
    """
    reading = TablePass(source, roles)
    smallest = SmallestRows(n_rows, seed, reading.schema)
    joint = [Combinations() for _ in roles.attributes]  # of a label of the target and a group
    for rows, block, (label_codes, *codes) in reading.blocks(BLOCK_ROWS, progress=progress):
        smallest.add(rows, block)
        for counted, group_codes in zip(joint, codes, strict=True):
            counted.add([label_codes, group_codes])
    places, table = smallest.finish()
    pa.default_memory_pool().release_unused()
    target, positive = reading.variables()[0], None
    if target.kind == "classes":
        code = positive_code(target.classes, pos_label)
        positive = None if code is None else target.classes[code]
    elif pos_label is not None:
        raise ValueError(
            "`pos_label` is for a target with classes, and this one is continuous: leave it out."
        )
    labels, *groups = reading.classes
    place = None if positive is None else labels.labels.index(positive)
    counts: dict[str, dict[Any, tuple[int, int]]] = {}
    for attribute, classes, pairs in zip(roles.attributes, groups, joint, strict=True):
        if classes.are_numbers:
            continue
        of_groups = counts[attribute.name] = dict.fromkeys(classes.labels, (0, 0))
        for (label, group), size in zip(pairs.seen, pairs.sizes.tolist(), strict=True):
            before, positives = of_groups[classes.labels[group]]
            of_groups[classes.labels[group]] = before + size, positives + (size if label == place else 0)
    sampled = Sampled(places, reading.n_rows, seed, positive is not None, counts)
    return sampled, table, positive, reading.target_pattern()
