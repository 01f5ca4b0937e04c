"""How far rows of a mixed table are from one of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fado.tabular import Column, Table

__all__ = ["Points", "Ruler"]

_MISSING = 2.0  # numbers lie in [0, 1]: as far from all as can be, and not from another missing one
_TAILS = (0.01, 0.99)  # what lies beyond these quantiles counts as if it lay on them
_FINE = 100  # numbers that differ by less than a hundredth of their range are nearly the same


@dataclass(frozen=True, eq=False)
class Points:
    """Rows as their distances need them.

    Parameters
    ----------
    numbers : ndarray of shape (n_rows, n_numbers)
        The columns of numbers, in parts of their range.
    codes : ndarray of shape (n_rows, n_categories)
        The columns of categories.
    """

    numbers: npt.NDArray[np.float32]
    codes: npt.NDArray[np.int32]

    def distances_from(self, row: int) -> npt.NDArray[np.float64]:
        """Give every row's distance from one: the mean over columns of how far they differ, in [0, 1]."""
        differing = np.minimum(np.abs(self.numbers - self.numbers[row]), 1.0).sum(axis=1, dtype=np.float64)
        differing += (self.codes != self.codes[row]).sum(axis=1)
        return np.asarray(differing / (self.numbers.shape[1] + self.codes.shape[1]))

    def first_of_copies(self) -> npt.NDArray[np.int64]:
        """Find the rows that are no near-copies of one before them."""
        rounded = np.rint(self.numbers * _FINE).astype(np.int32)
        _, first = np.unique(np.hstack([rounded, self.codes]), axis=0, return_index=True)
        return np.sort(first).astype(np.int64)


class Ruler:
    """Measures rows of a table: numbers in parts of their range, categories as equal or not.

    A missing entry is as far from any other as two can be, and equal to another missing one.

    Parameters
    ----------
    table : Table
        The pool, whose numbers say what their ranges are.

    Examples
    --------
    >>> import pandas as pd
    >>> table = Table.from_input(pd.DataFrame({"size": [0.0, 1.0, None], "colour": ["red", "red", "blue"]}))
    >>> Ruler(table).points(np.arange(3)).distances_from(0)
    array([0. , 0.5, 1. ])
    """

    def __init__(self, table: Table) -> None:
        if table.is_sparse:
            raise ValueError(
                "`diversity` compares rows column by column, which a sparse matrix has too many of: set "
                "`diversity=0`, or pass a dense table."
            )
        self._numbers = [(column, *_range(column)) for column in table.columns if column.levels is None]
        self._categories = [column for column in table.columns if column.levels is not None]

    def points(self, rows: npt.NDArray[np.integer]) -> Points:
        """Give some rows."""
        numbers = np.empty((len(rows), len(self._numbers)), dtype=np.float32)
        for j, (column, low, width) in enumerate(self._numbers):
            with np.errstate(over="ignore"):
                scaled = np.clip((column.take(rows).numbers() - low) / width, 0.0, 1.0)
            numbers[:, j] = np.where(np.isnan(scaled), _MISSING, scaled)
        codes = np.empty((len(rows), len(self._categories)), dtype=np.int32)
        for j, column in enumerate(self._categories):
            codes[:, j] = column.take(rows).codes()
        return Points(numbers, codes)


def _range(column: Column) -> tuple[float, float]:
    """Give where the bulk of a column of numbers begins, and how wide it is; 1 if all are equal."""
    numbers = column.numbers()
    known = numbers[np.isfinite(numbers)]
    if not len(known):
        return 0.0, 1.0
    low, high = np.quantile(known, _TAILS)
    if low == high:
        low, high = known.min(), known.max()
    return float(low), float(high - low) or 1.0
