"""Make rows: every entry from a row of the leaf that the row so far falls into."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from fado.execution import n_workers
from fado.generation._trees import ColumnTree, Entries, grow_trees
from fado.tabular import Problem, Table, columns_that_determine

__all__ = ["check_dense", "draw_donors", "row_keys"]

Rows = npt.NDArray[np.intp]

KEPT = 0.5  # of the entries in the parent's leaf are the parent's
TRIES = 5  # to make a row that is not a copy


def draw_donors(
    problem: Problem,
    parents: Rows,
    *,
    seed: int,
    n_jobs: int | None = None,
    progress: bool = False,
) -> Rows:
    """Choose from which row each entry of a made row is taken.

    A made row has the label and the group of its parent. Its entries are chosen column by column, in the
    order of the table. For each column there is a tree, grown on the rows of the parent's label, that
    predicts the column from the columns before it and the group. By its entries so far, the made row falls
    into a leaf of this tree, and takes the entry of a row in that leaf. If the parent is in the leaf too, it
    is the parent's entry with a probability of one half. Otherwise it is that of a row of the leaf, drawn by
    weight. So every entry occurs together with the label and with similar entries before it, and made rows
    are like their parents. For a column that alone determines a protected attribute, only rows of the same
    group give entries.

    A made row that equals exactly one row of the table in every column might give a person away. It is made
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
        How many trees are grown side by side; None uses every core. It changes no row.
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
    >>> donors.shape, (donors % 2 == [[1], [1], [0]]).all()  # of the parent's label
    ((3, 2), np.True_)
    """
    check_dense(problem.table)
    workers = n_workers(n_jobs)
    entries = Entries.read(
        problem.table, problem.groups.codes, _bound_columns(problem), problem.sample_weight
    )
    labels, parents = problem.labels.codes, np.asarray(parents, dtype=np.intp)
    donors = np.empty((len(parents), problem.table.n_columns), dtype=np.intp)
    keys, counts = np.unique(row_keys(entries.codes), return_counts=True)
    lonely = keys[counts == 1]
    for label in np.unique(labels[parents]).tolist():
        mine = labels[parents] == label
        rows = np.flatnonzero((labels == label) & (entries.weights > 0))
        trees = grow_trees(entries, rows, seed, workers, progress=progress)
        donors[mine] = _made(entries, trees, parents[mine], lonely, np.random.default_rng([seed, 3, label]))
    return donors


def check_dense(table: Table) -> None:
    """Refuse a table of which no rows are made."""
    if table.is_sparse:
        raise ValueError(
            '`X` is a sparse matrix, of which `method="trees"` makes no rows: pass a dense table, or set '
            '`method="repeat"`.'
        )


def row_keys(codes: npt.NDArray[np.integer]) -> npt.NDArray[np.uint64]:
    """Give a number to every row of codes that others share only with equal rows, but for a tiny chance."""
    generator = np.random.default_rng(0)
    keys = np.zeros(len(codes), dtype=np.uint64)
    for j in range(codes.shape[1]):
        factor = np.uint64(int(generator.integers(2**63)) | 1)
        keys += (codes[:, j].astype(np.int64) + 2).astype(np.uint64) * factor
    return keys


def _made(
    entries: Entries,
    trees: list[ColumnTree],
    parents: Rows,
    lonely: npt.NDArray[np.uint64],
    generator: np.random.Generator,
) -> Rows:
    """Make rows of parents, and make those anew that equal a row which no other does."""
    columns = np.arange(len(trees))
    donors = _walk(entries, trees, parents, KEPT, generator)
    for _ in range(TRIES):
        again = np.isin(row_keys(entries.codes[donors, columns]), lonely)
        if not again.any():
            break
        donors[again] = _walk(entries, trees, parents[again], 0.0, generator)
    return donors


def _walk(
    entries: Entries,
    trees: list[ColumnTree],
    parents: Rows,
    kept: float,
    generator: np.random.Generator,
) -> Rows:
    """Make rows of parents, column by column."""
    donors = np.empty((len(parents), len(trees)), dtype=np.intp)
    codes = np.empty((len(parents), len(trees)), dtype=np.int32)
    groups = entries.groups[parents]
    for j, tree in enumerate(trees):
        keeps, places = generator.random((2, len(parents)))
        donors[:, j] = tree.draw(codes[:, :j], groups, parents, keeps < kept, places)
        codes[:, j] = entries.codes[donors[:, j], j]
    return donors


def _bound_columns(problem: Problem) -> frozenset[int]:
    """Find the columns that are a protected attribute or tell it."""
    found = {position for position in problem.positions if position is not None}
    for variable in problem.protected:
        found.update(columns_that_determine(variable, problem.table, frozenset(found)))
    return frozenset(found)
