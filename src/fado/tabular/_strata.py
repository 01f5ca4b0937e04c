"""Strata of a table that is read block by block: how many rows each has, and which rows the small ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["SMALL_STRATUM", "StrataCounter"]

SMALL_STRATUM = 1_000  # rows; hashes deal as many evenly enough
_PENDING = 1 << 16  # rows that are held before those of strata that have grown are let go


class StrataCounter:
    """Count the rows of strata, and remember which rows those of few have.

    Parameters
    ----------
    small : int
        Strata of fewer rows are small.

    Examples
    --------
    >>> counter = StrataCounter(small=3)
    >>> counter.add(np.array([0, 1, 0]), np.array([0, 1, 2]))
    >>> counter.add(np.array([0, 2, 1]), np.array([3, 4, 5]))
    >>> counter.counts
    array([3, 2, 1])
    >>> counter.small_rows()
    (array([1, 4, 5]), array([1, 2, 1]))
    """

    def __init__(self, small: int = SMALL_STRATUM) -> None:
        self.small = small
        self.counts: npt.NDArray[np.int64] = np.zeros(0, dtype=np.int64)
        self._held: list[tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]] = []
        self._pending = 0

    def add(self, strata: npt.NDArray[np.integer[Any]], rows: npt.NDArray[np.integer[Any]]) -> None:
        """See a block.

        Parameters
        ----------
        strata : ndarray of int
            Each row's stratum: 0, 1, 2, ...
        rows : ndarray of int
            Their places in the whole table.
        """
        seen = np.bincount(strata, minlength=len(self.counts))
        seen[: len(self.counts)] += self.counts
        self.counts = seen
        few = np.flatnonzero(seen[strata] < self.small)
        if len(few):
            self._held.append((rows[few].astype(np.int64), strata[few].astype(np.int64)))
            self._pending += len(few)
        if self._pending > _PENDING:
            self._held = [self.small_rows()]
            self._pending = 0

    def small_rows(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Give the rows of small strata, in the order of the table, and the stratum of each."""
        if not self._held:
            return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
        rows, strata = (np.concatenate(each) for each in zip(*self._held, strict=True))
        few = np.flatnonzero(self.counts[strata] < self.small)
        few = few[np.argsort(rows[few])]
        return rows[few], strata[few]
