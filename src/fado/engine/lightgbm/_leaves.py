"""Which leaf of a tree every row falls into, read tree by tree.

A tree asks only on which side of a few thresholds a number lies. So every column that is split on becomes one
small code per row, made once for all trees: between which of all trees' thresholds its entry lies. That takes
one or two bytes per entry, and a split is a look into a short list.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fado.engine.lightgbm._trees import Tree

__all__ = ["ColumnCode", "LeafReader", "codes_for"]

FloatArray = npt.NDArray[np.float64]
Codes = npt.NDArray[np.uint8 | np.uint16 | np.uint32]
Rows = npt.NDArray[np.int32]

_BLOCK = 2**16  # rows that are sent down a tree together: what they need stays in a cache


@dataclass(frozen=True, eq=False)
class ColumnCode:
    """How the entries of one column become codes: the same for all trees and tables.

    Parameters
    ----------
    thresholds : ndarray or None
        Sorted: all that trees compare with. None for a column of categories, which has codes already.
    n_codes : int
        How many codes there are without the last, for missing entries.
    """

    thresholds: FloatArray | None
    n_codes: int

    def encode(self, entries: FloatArray, *, nan_is_zero: bool = False) -> Codes:
        """Give the codes of a column's entries; categories that no tree knows are missing."""
        missing = np.isnan(entries)
        if self.thresholds is None:
            strange = missing | (entries < 0) | (entries >= self.n_codes)
            codes = np.where(strange, self.n_codes, entries)
        else:
            if nan_is_zero and missing.any():
                entries, missing = np.where(missing, 0.0, entries), np.zeros(len(entries), dtype=np.bool_)
            codes = np.searchsorted(self.thresholds, entries, side="left")
            codes[missing] = self.n_codes
        kind = np.uint8 if self.n_codes < 2**8 else np.uint16 if self.n_codes < 2**16 else np.uint32
        return codes.astype(kind)


def codes_for(trees: Iterable[Tree]) -> dict[int, tuple[ColumnCode, bool]]:
    """Find the columns that trees split on, how to code each, and whether NaN counts as 0 there."""
    thresholds: dict[int, list[float]] = {}
    n_categories: dict[int, int] = {}
    nan_is_zero: dict[int, bool] = {}
    for tree in trees:
        for node, j in enumerate(tree.feature.tolist()):
            if tree.is_categorical(node):
                chosen = tree.categories[int(tree.threshold[node])]
                n_categories[j] = max(n_categories.get(j, 0), int(chosen.max(initial=-1)) + 1)
                continue
            if tree.misses_zero(node):
                raise ValueError(
                    "Trees that take 0 for missing (`zero_as_missing`) are not read: leave it out."
                )
            thresholds.setdefault(j, []).append(float(tree.threshold[node]))
            nan_is_zero[j] = not tree.misses_nan(node)
    found = {j: (ColumnCode(None, count), False) for j, count in n_categories.items()}
    for j, own in thresholds.items():
        ordered = np.unique(own)
        found[j] = ColumnCode(ordered, len(ordered) + 1), nan_is_zero[j]
    return found


class LeafReader:
    """Finds the leaves of the rows of one table.

    Parameters
    ----------
    codes : mapping of int to ndarray
        Per column that trees split on, every row's code.
    columns : mapping of int to ColumnCode
        How they were made.
    n_rows : int
        How many rows there are.
    """

    def __init__(self, codes: Mapping[int, Codes], columns: Mapping[int, ColumnCode], n_rows: int) -> None:
        self._codes = codes
        self._columns = columns
        self.n_rows = n_rows

    def read(self, tree: Tree, rows: Rows | None = None) -> npt.NDArray[np.int32]:
        """Give the leaf of every row, or of those at some positions."""
        n_rows = self.n_rows if rows is None else len(rows)
        leaves = np.zeros(n_rows, dtype=np.int32)
        if tree.n_leaves == 1:
            return leaves
        sides = [self._sides(tree, node) for node in range(len(tree.feature))]
        for start in range(0, n_rows, _BLOCK):
            block = slice(start, min(start + _BLOCK, n_rows))
            self._read_block(tree, sides, block if rows is None else rows[block], leaves[block])
        return leaves

    def _read_block(
        self,
        tree: Tree,
        sides: list[npt.NDArray[np.bool_]],
        rows: slice | Rows,
        leaves: npt.NDArray[np.int32],
    ) -> None:
        """Send some rows down a tree, and note where they end."""
        taken: dict[int, Codes] = {}
        waiting = [(0, np.arange(len(leaves), dtype=np.int32))]
        while waiting:
            node, here = waiting.pop()
            j = int(tree.feature[node])
            if j not in taken:
                taken[j] = self._codes[j][rows]
            left = sides[node].take(taken[j].take(here))
            for child, there in ((tree.left[node], here[left]), (tree.right[node], here[~left])):
                if child < 0:
                    leaves[there] = ~child
                elif len(there):
                    waiting.append((int(child), there))

    def _sides(self, tree: Tree, node: int) -> npt.NDArray[np.bool_]:
        """Tell for every code whether it goes left, the missing one last."""
        column = self._columns[int(tree.feature[node])]
        goes_left = np.zeros(column.n_codes + 1, dtype=np.bool_)
        if column.thresholds is None:
            goes_left[tree.categories[int(tree.threshold[node])]] = True
        else:
            place = int(np.searchsorted(column.thresholds, tree.threshold[node]))
            goes_left[: place + 1] = True
            goes_left[-1] = tree.missing_goes_left(node)
        return goes_left
