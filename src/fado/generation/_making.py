"""A tree for every column finds the rows of the table whose entries another row could have as well.

The trees are in sequence: that of a column sees the columns before it and the group. They use codes, the
ranks of entries among the sorted entries of their column, so that the scale of numbers makes no difference
and a missing entry is one more code.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fado._progress import tracked
from fado._typing import Bools, Floats, Integers
from fado.execution import ThreadExecutor, n_workers
from fado.interventions import minmax
from fado.tabular import Groups, Labels, Problem, Table, columns_that_determine, take_rows

Codes = npt.NDArray[np.int32]
Rows = npt.NDArray[np.intp]

LEAF = 10  # rows in a leaf, at least: fewer give rows that are nearer to real ones, and not better
LEAVES = 20  # at least, even for few rows, if every leaf has two rows
MOST_ROWS = 20_000  # to grow a tree on; its leaves contain all rows
MOST_COLUMNS = 64  # to search for a split; drawn again for each split if there are more
CLASSES = 32  # that a tree distinguishes; rarer levels count as one


class Entries(NamedTuple):
    """The table as trees see it."""

    codes: Codes
    levelled: list[bool]
    groups: Integers
    bound: frozenset[int]
    weights: Floats


def _grow(entries: Entries, rows: Rows, column: int, seed: int) -> Callable[..., Rows]:
    """Grow one column's tree on some rows, and give the function that finds donors in its leaves."""
    from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

    groups, weights, before = entries.groups[rows], entries.weights[rows], entries.codes[rows, :column]
    codes, levelled = entries.codes[rows, column], entries.levelled[column]
    target: npt.NDArray[Any] = _classes(codes) if levelled else _ranks(codes)
    first: Floats = (target == 0).astype(np.float64) if levelled else target.reshape(len(rows), -1)[:, 0]
    numbers = (
        _ordered(groups, first),
        *(_ordered(before[:, j], first) if entries.levelled[j] else None for j in range(before.shape[1])),
    )
    kind = DecisionTreeClassifier if levelled else DecisionTreeRegressor
    leaf = int(np.clip(len(rows) // LEAVES, min(2, len(rows)), LEAF))
    seen = _seen(before, groups, numbers)
    some = np.arange(len(rows))
    if len(rows) > MOST_ROWS:
        some = np.sort(np.random.default_rng(seed).choice(len(rows), MOST_ROWS, replace=False))
    most = min(MOST_COLUMNS, seen.shape[1])
    tree = kind(min_samples_leaf=leaf, max_features=most, random_state=seed)
    tree.fit(seen[some], target[some], sample_weight=weights[some])
    n_groups = int(entries.groups.max()) + 1
    keys = tree.apply(seen) * n_groups + groups
    leaf_of = np.full(len(entries.groups), -1, dtype=np.int64)
    leaf_of[rows] = keys // n_groups
    order = np.argsort(keys, kind="stable")
    keys, donors, sums = keys[order], rows[order], np.concatenate([[0.0], np.cumsum(weights[order])])
    bound = column in entries.bound

    def draw(
        codes: Codes,
        groups: Integers,
        parents: Rows,
        kept: Bools,
        places: Floats,
    ) -> Rows:
        """Find donors of this column's entries for rows that have entries in the columns before."""
        leaves = tree.apply(_seen(codes, groups, numbers))
        low = leaves * n_groups + (groups if bound else 0)
        first, last = np.searchsorted(keys, [low, low + (1 if bound else n_groups)])
        wanted = sums[first] + places * (sums[last] - sums[first])
        drawn = np.clip(np.searchsorted(sums, wanted, side="right") - 1, first, last - 1)
        kept = (kept & (leaf_of[parents] == leaves)) | (first == last)  # of its group, only the parent
        return np.where(kept, parents, donors[drawn])

    return draw


def _seen(codes: Codes, groups: Integers, numbers: Sequence[Floats | None]) -> npt.NDArray[np.float32]:
    """Give the inputs of a tree: the group, then the columns."""
    columns = zip([groups, *codes.T], numbers, strict=True)
    return np.column_stack(
        [entries if known is None else known[entries] for entries, known in columns]
    ).astype(np.float32)


def _ordered(codes: npt.NDArray[Any], target: Floats) -> Floats:
    """Give every level the mean of the target there, so that a split separates levels that differ in it."""
    n_codes = int(codes.max(initial=-1)) + 1
    place = np.where(codes < 0, n_codes, codes)
    counts, sums = np.bincount(place, minlength=n_codes + 1), np.bincount(place, target, n_codes + 1)
    means = np.full(n_codes + 1, target.mean())
    np.divide(sums, counts, out=means, where=counts > 0)
    return means


def _classes(codes: Codes) -> Integers:
    """Give numbers to the levels that occur, the most common first; the rarest share a number."""
    _, place, counts = np.unique(codes, return_inverse=True, return_counts=True)
    rank = np.empty(len(counts), dtype=np.int64)
    rank[np.argsort(-counts, kind="stable")] = np.arange(len(counts))
    return np.minimum(rank[place], CLASSES - 1)


def _ranks(codes: Codes) -> Floats:
    """Give each entry's share of lower entries, equal ones counted half, and which are missing."""
    missing = codes < 0
    _, place, counts = np.unique(codes[~missing], return_inverse=True, return_counts=True)
    ranks = np.full(len(codes), 0.5)
    ranks[~missing] = (np.cumsum(counts) - counts / 2)[place] / max(counts.sum(), 1)
    return np.column_stack([ranks, missing]) if missing.any() else ranks


KEPT = 0.5  # the probability of the parent's entry if the parent is in the leaf
TRIES = 5  # to make a row that is not a copy


def draw_donors(
    problem: Problem, parents: Rows, *, seed: int, n_jobs: int | None = None, progress: bool = False
) -> Rows:
    """Choose from which row each entry of a made row is taken.

    A made row has the label and the group of its parent. Its entries are chosen column by column, in the
    order of the table. For each column there is a tree, grown on the rows of the parent's label, that
    predicts the column from the columns before it and the group. By its entries so far, the made row falls
    into a leaf of this tree, and takes the entry of a row in that leaf. If the parent is in the leaf too, it
    is the parent's entry with a probability of one half. Otherwise it is that of a row of the leaf, drawn by
    weight. So every entry occurs together with the label and with similar entries before it, and made rows
    are similar to their parents. For a column that alone determines a protected attribute, only rows of the
    same group give entries.

    A made row that equals exactly one row of the table in every column could identify a person. It is made
    again, without entries kept from its parent, up to five times.

    Parameters
    ----------
    problem : Problem
        The table, as `fado.tabular.read_problem` gives it.
    parents : ndarray of int
        For each row to be made, the position of its parent.
    seed : int
        Seed of the trees and the draws.
    n_jobs : int, optional
        How many trees are grown in parallel; None uses every core. It does not change the rows.
    progress : bool, default=False
        Whether to show a progress bar.

    Returns
    -------
    ndarray of int, shape (n_made, n_columns)
        For each made row and column, the position of the row that the entry is taken from.

    Raises
    ------
    ValueError
        If the table is a sparse matrix.

    Examples
    --------
    >>> import numpy as np
    >>> from fado.tabular import read_problem
    >>> problem = read_problem(np.arange(80).reshape(40, 2), [0, 1] * 20)
    >>> donors = draw_donors(problem, np.array([1, 3, 4]), seed=0)
    >>> donors % 2  # the labels of donors, equal to those of the parents
    array([[1, 1],
           [1, 1],
           [0, 0]])
    """
    check_dense(problem.table)
    columns = problem.table.columns
    bound = {position for position in problem.positions if position is not None}
    for variable in problem.protected:  # columns that are or determine a protected attribute
        bound.update(columns_that_determine(variable, problem.table, frozenset(bound)))
    entries = Entries(
        np.column_stack([column.encode()[0] for column in columns]),
        [column.levels is not None for column in columns],
        problem.groups.codes,
        frozenset(bound),
        np.ones(problem.n_rows) if problem.sample_weight is None else problem.sample_weight,
    )
    labels, parents = problem.labels.codes, np.asarray(parents, dtype=np.intp)
    donors = np.empty((len(parents), len(columns)), dtype=np.intp)
    keys, counts = np.unique(row_keys(entries.codes), return_counts=True)
    seeds = np.random.SeedSequence([seed, 2]).generate_state(len(columns))
    tasks = [(j, int(drawn) % 2**31) for j, drawn in enumerate(seeds)]

    def grow(task: tuple[int, int], rows: Rows, stop: threading.Event) -> Callable[..., Rows]:
        return _grow(entries, rows, *task)

    for label in np.unique(labels[parents]).tolist():
        of_label = np.flatnonzero(labels[parents] == label)
        rows = np.flatnonzero((labels == label) & (entries.weights > 0))
        grown = ThreadExecutor(n_workers(n_jobs)).run(grow, tasks, rows)
        trees = list(tracked(grown, len(tasks), what="columns", show=progress))
        generator = np.random.default_rng([seed, 3, label])
        donors[of_label] = _walk(entries, trees, parents[of_label], KEPT, generator)
        for _ in range(TRIES):
            made = row_keys(entries.codes[donors[of_label], np.arange(len(columns))])
            again = of_label[np.isin(made, keys[counts == 1])]
            if not len(again):
                break
            donors[again] = _walk(entries, trees, parents[again], 0.0, generator)
    return donors


def check_dense(table: Table) -> None:
    """Refuse a sparse matrix."""
    if table.is_sparse:
        raise ValueError(
            '`X` is a sparse matrix, and `method="trees"` needs a dense table: pass one, or set '
            '`method="repeat"`.'
        )


def row_keys(codes: npt.NDArray[np.integer]) -> npt.NDArray[np.uint64]:
    """Give every row of codes a number that, except by a tiny chance, only equal rows share."""
    generator = np.random.default_rng(0)
    keys = np.zeros(len(codes), dtype=np.uint64)
    for j in range(codes.shape[1]):
        factor = np.uint64(int(generator.integers(2**63)) | 1)
        keys += (codes[:, j].astype(np.int64) + 2).astype(np.uint64) * factor
    return keys


def _walk(
    entries: Entries, trees: Sequence[Any], parents: Rows, kept: float, generator: np.random.Generator
) -> Rows:
    """Make rows from parents, column by column."""
    donors = np.empty((len(parents), len(trees)), dtype=np.intp)
    codes = np.empty((len(parents), len(trees)), dtype=np.int32)
    groups = entries.groups[parents]
    for j, draw in enumerate(trees):
        keeps, places = generator.random((2, len(parents)))
        donors[:, j] = draw(codes[:, :j], groups, parents, keeps < kept, places)
        codes[:, j] = entries.codes[donors[:, j], j]
    return donors


Positions = npt.NDArray[np.integer[Any]]


def take_entries(X: Any, donors: Positions) -> Any:
    """Make rows whose entry of column j is taken from row ``donors[:, j]`` of `X`.

    The result has the type of `X`, and every column keeps its type. The row labels of a pandas table are
    those of the donors of the first column.

    Parameters
    ----------
    X : array, list, pandas, polars or pyarrow table
        The rows to take entries from.
    donors : ndarray of int, shape (n_made, n_columns)
        Positions of rows of `X`, as `draw_donors` gives them.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[1, 10], [2, 20], [3, 30]])
    >>> take_entries(X, np.array([[0, 0], [2, 1]]))
    array([[ 1, 10],
           [ 3, 20]])
    """
    if hasattr(X, "iloc"):
        import pandas as pd

        columns = {j: X.iloc[:, j].array.take(rows) for j, rows in enumerate(donors.T)}
        return pd.DataFrame(columns, index=X.index.take(donors[:, 0])).set_axis(X.columns, axis=1)
    if isinstance(X, pa.Table):
        place = {name: j for j, name in enumerate(Table.from_input(X).names)}  # without an unnamed index
        made = [
            column.take(pa.array(donors[:, place.get(name, 0)]))
            for name, column in zip(X.column_names, X.columns, strict=True)
        ]
        return pa.Table.from_arrays(made, schema=X.schema)
    if isinstance(X, np.ndarray):
        return np.asanyarray(X)[donors, np.arange(donors.shape[1])]
    if isinstance(X, list | tuple):
        as_row = type(X[0]) if isinstance(X[0], list | tuple) else np.array
        return type(X)(as_row([X[row][j] for j, row in enumerate(rows)]) for rows in donors.tolist())
    import narwhals as nw

    frame = nw.from_native(X.collect() if hasattr(X, "collect") else X, pass_through=False)
    series = [frame[:, j][rows] for j, rows in enumerate(donors.T)]
    joined = nw.concat([column.to_frame() for column in series], how="horizontal")
    return joined if isinstance(X, nw.DataFrame) else joined.to_native()


def take_more_rows(values: Any, rows: Positions, donors: Positions | None = None) -> Any:
    """Give all rows, then repeated rows or rows made from `donors`, in the type that was passed."""
    if donors is None:
        taken = take_rows(values, rows)
    else:
        given = np.repeat(rows[: len(rows) - len(donors), None], donors.shape[1], axis=1)
        taken = take_entries(values, np.concatenate([given, donors]))
    if not hasattr(values, "iloc"):
        return taken
    import pandas as pd

    index = values.index
    counted = isinstance(index, pd.RangeIndex) and (index.start, index.step) == (0, 1)
    return taken.set_axis(pd.RangeIndex(len(rows), name=index.name) if counted else index.take(rows), axis=0)


def attributes_of(sensitive_features: Any, X: Any, rows: Positions, *, named: bool) -> Any:
    """Give the protected attributes of given and made rows, in the type that was passed."""
    if named and isinstance(sensitive_features, list | tuple):
        names = list(sensitive_features)
        return X.select(names) if isinstance(X, pa.Table) else X[names]
    if named:
        return X[sensitive_features]
    if isinstance(sensitive_features, Mapping):
        return {name: take_more_rows(values, rows) for name, values in sensitive_features.items()}
    return None if sensitive_features is None else take_more_rows(sensitive_features, rows)


FLOOR = 0.3  # the chance of the row of least utility, relative to that of the highest


def draw_parents(
    made: Integers,
    labels: Labels,
    groups: Groups,
    utilities: Floats | None,
    sample_weight: Floats | None,
    generator: np.random.Generator,
) -> Rows:
    """Draw one parent for each row to be made in a cell; a row may be drawn many times."""
    drawn = [np.zeros(0, dtype=np.intp)]
    for label, group in np.argwhere(made).tolist():
        rows = np.flatnonzero((labels.codes == label) & (groups.codes == group))
        chances = np.ones(len(rows))
        if utilities is not None:
            chances = FLOOR + (1 - FLOOR) * minmax(utilities[rows])
        if sample_weight is not None:
            chances = chances * sample_weight[rows]
        drawn.append(generator.choice(rows, made[label, group], p=chances / chances.sum()))
    return np.concatenate(drawn)
