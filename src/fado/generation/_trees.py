"""A tree for every column: which rows of the table have entries that another row could have as well.

The trees stand in sequence: that of a column sees the columns before it and the group. All is done on codes,
the places of entries among the sorted entries of their column, so that it makes no difference how numbers are
scaled, and an entry that is missing is one more code.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fado._progress import tracked
from fado.execution import ThreadExecutor
from fado.tabular import Table

__all__ = ["ColumnTree", "Entries", "grow_trees"]

Codes = npt.NDArray[np.int32]
Floats = npt.NDArray[np.float32]
FloatArray = npt.NDArray[np.float64]
Rows = npt.NDArray[np.intp]

LEAF = 10  # rows in a leaf, at least: fewer made rows that are nearer to real ones, and no better
LEAVES = 20  # that even a few rows should have, at least, if that leaves them two rows each
MOST_ROWS = 20_000  # that a tree is grown on; its leaves hold all
MOST_COLUMNS = 64  # that a split is looked for in; drawn anew for each split where there are more
CLASSES = 32  # that a tree tells apart; rarer levels count as one


@dataclass(frozen=True, eq=False)
class Entries:
    """The table as trees see it.

    Parameters
    ----------
    codes : ndarray of int32, shape (n_rows, n_columns)
        Places of entries among those of their column, -1 where they are missing.
    levelled : tuple of bool
        Whether a column holds levels, which have no order.
    groups : ndarray of int
        The rows' groups.
    bound : frozenset of int
        Columns that tell the group: a made row takes their entries from its own group alone.
    weights : ndarray of float
        The rows' weights.
    """

    codes: Codes
    levelled: tuple[bool, ...]
    groups: npt.NDArray[np.int64]
    bound: frozenset[int]
    weights: FloatArray

    @classmethod
    def read(
        cls, table: Table, groups: npt.NDArray[np.int64], bound: frozenset[int], weights: FloatArray | None
    ) -> Entries:
        """Encode the columns of a table."""
        codes = np.column_stack([column.encode()[0] for column in table.columns])
        levelled = tuple(column.levels is not None for column in table.columns)
        weights = np.ones(table.n_rows) if weights is None else weights
        return cls(codes, levelled, groups, bound, weights)


@dataclass(frozen=True, eq=False)
class ColumnTree:
    """The leaves of one column.

    Parameters
    ----------
    column : int
        Which.
    tree : scikit-learn's decision tree
        Sees the group and the columns before.
    numbers : tuple of ndarray or None
        Per column that it sees, what stands for each code; None if the codes do.
    leaves : ndarray of int
        The leaf of every row learnt from, -1 for other rows.
    rows : ndarray of int
        Those learnt from, by leaf and group.
    keys : ndarray of int
        Their leaves and groups, as one number.
    weights : ndarray of float
        Their weights, summed up before each of them, and all.
    n_groups : int
        How many groups there are.
    bound : bool
        Whether entries are taken from rows of the same group alone.
    """

    column: int
    tree: Any
    numbers: tuple[FloatArray | None, ...]
    leaves: npt.NDArray[np.int64]
    rows: Rows
    keys: npt.NDArray[np.int64]
    weights: FloatArray
    n_groups: int
    bound: bool

    def draw(
        self,
        codes: Codes,
        groups: npt.NDArray[np.int64],
        parents: Rows,
        kept: npt.NDArray[np.bool_],
        places: FloatArray,
    ) -> Rows:
        """Find donors of this column's entries for rows that have entries in the columns before.

        Parameters
        ----------
        codes : ndarray of int32
            The rows' entries in the columns before.
        groups : ndarray of int
            The rows' groups.
        parents : ndarray of int
            The rows that they are made from.
        kept : ndarray of bool
            Which of them keep the parent's entry if they are in the parent's leaf.
        places : ndarray of float
            Random numbers in [0, 1): where in the leaf each donor stands.
        """
        leaves = self.tree.apply(_seen(codes, groups, self.numbers))
        low = leaves * self.n_groups + (groups if self.bound else 0)
        first = np.searchsorted(self.keys, low)
        last = np.searchsorted(self.keys, low + (1 if self.bound else self.n_groups))
        wanted = self.weights[first] + places * (self.weights[last] - self.weights[first])
        found = np.clip(np.searchsorted(self.weights, wanted, side="right") - 1, first, last - 1)
        kept = (kept & (self.leaves[parents] == leaves)) | (first == last)  # of its group, only the parent
        return np.where(kept, parents, self.rows[found])


def grow_trees(
    entries: Entries, rows: Rows, seed: int, workers: int, *, progress: bool = False
) -> list[ColumnTree]:
    """Grow the trees of all columns on some rows, side by side."""
    seeds = np.random.SeedSequence([seed, 2]).generate_state(entries.codes.shape[1])
    tasks = [(j, int(own) % 2**31) for j, own in enumerate(seeds)]

    def grow(task: tuple[int, int], shared: Any, stop: threading.Event) -> ColumnTree:
        return _grow(entries, rows, *task)

    grown = ThreadExecutor(workers).run(grow, tasks)
    return list(tracked(grown, len(tasks), what="columns", show=progress))


def _grow(entries: Entries, rows: Rows, column: int, seed: int) -> ColumnTree:
    """Grow one column's tree."""
    from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

    own, groups, weights = entries.codes[rows, column], entries.groups[rows], entries.weights[rows]
    before = entries.codes[rows, :column]
    levelled = entries.levelled[column]
    target: npt.NDArray[Any] = _classes(own) if levelled else _ranks(own)
    first: FloatArray = (target == 0).astype(np.float64) if levelled else target.reshape(len(rows), -1)[:, 0]
    numbers = (
        _ordered(groups, first),
        *(_ordered(before[:, j], first) if entries.levelled[j] else None for j in range(before.shape[1])),
    )
    kind = DecisionTreeClassifier if levelled else DecisionTreeRegressor
    leaf = int(np.clip(len(rows) // LEAVES, min(2, len(rows)), LEAF))
    seen = _seen(before, groups, numbers)
    some = _some(len(rows), seed)
    most = min(MOST_COLUMNS, seen.shape[1])
    tree = kind(min_samples_leaf=leaf, max_features=most, random_state=seed)
    tree.fit(seen[some], target[some], sample_weight=weights[some])
    leaves = tree.apply(seen)
    n_groups = int(entries.groups.max()) + 1
    keys = leaves * n_groups + groups
    order = np.argsort(keys, kind="stable")
    everywhere = np.full(len(entries.groups), -1, dtype=np.int64)
    everywhere[rows] = leaves
    return ColumnTree(
        column=column,
        tree=tree,
        numbers=numbers,
        leaves=everywhere,
        rows=rows[order],
        keys=keys[order],
        weights=np.concatenate([[0.0], np.cumsum(weights[order])]),
        n_groups=n_groups,
        bound=column in entries.bound,
    )


def _seen(codes: Codes, groups: npt.NDArray[np.int64], numbers: Sequence[FloatArray | None]) -> Floats:
    """Lay out what a tree sees: the group, then the columns."""
    columns = [groups, *codes.T]
    laid = [own if known is None else known[own] for own, known in zip(columns, numbers, strict=True)]
    return np.column_stack(laid).astype(np.float32)


def _some(n_rows: int, seed: int) -> Rows:
    """Draw the rows that a tree is grown on."""
    if n_rows <= MOST_ROWS:
        return np.arange(n_rows)
    return np.sort(np.random.default_rng(seed).choice(n_rows, MOST_ROWS, replace=False))


def _ordered(codes: npt.NDArray[Any], target: FloatArray) -> FloatArray:
    """Give every level the mean of the target there, so that a split parts levels that differ in it.

    Levels that no row has, and the last entry, for missing ones that no row has, get the mean of all.
    """
    n_codes = int(codes.max(initial=-1)) + 1
    place = np.where(codes < 0, n_codes, codes)
    counts, sums = np.bincount(place, minlength=n_codes + 1), np.bincount(place, target, n_codes + 1)
    means = np.full(n_codes + 1, target.mean())
    np.divide(sums, counts, out=means, where=counts > 0)
    return means


def _classes(codes: Codes) -> npt.NDArray[np.int64]:
    """Give the levels that occur numbers by how common they are; the rarest share a number."""
    _, place, counts = np.unique(codes, return_inverse=True, return_counts=True)
    rank = np.empty(len(counts), dtype=np.int64)
    rank[np.argsort(-counts, kind="stable")] = np.arange(len(counts))
    return np.minimum(rank[place], CLASSES - 1)


def _ranks(codes: Codes) -> FloatArray:
    """Give the entries' shares of lower ones, equal ones halfway; and beside them which are missing."""
    missing = codes < 0
    _, place, counts = np.unique(codes[~missing], return_inverse=True, return_counts=True)
    ranks = np.full(len(codes), 0.5)
    ranks[~missing] = (np.cumsum(counts) - counts / 2)[place] / max(counts.sum(), 1)
    return np.column_stack([ranks, missing]) if missing.any() else ranks
