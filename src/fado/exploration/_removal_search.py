"""Search for slices to remove: conditions on one or two columns whose rows add up to the largest gain.

A gain is what a metric would win by the removal of a row. Where `SliceSearch` looks for a mean that stands
out, this looks for a sum: what removing the whole slice is foretold to bring. Slices of more rows than the
curve of removals reaches are not asked for, as a first-order effect says nothing of them. A slice must stand
out beyond chance, as in `SliceSearch`; a second condition must do so inside either part, and must not cost
gain that one part alone would bring.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence

import numpy as np
import numpy.typing as npt
from scipy.special import comb, ndtr

from fado.exploration._conditions import BinnedColumn
from fado.exploration._groups import FEWEST_MEMBERS
from fado.exploration._search import (
    LEAST_SHARE,
    MOST_OVERLAP,
    SIGNIFICANCE,
    ConditionTable,
    Slice,
    corrected,
    overlap,
    permutation_z,
)

__all__ = ["MOST_REMOVED", "RemovalSearch"]

FloatArray = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

MOST_REMOVED = 0.2  # of the rows
PARENTS = 20  # conditions that others are joined to, beside those that are always tried
LENGTHS = 2


class RemovalSearch(ConditionTable):
    """One search, for high sums of gains.

    Parameters
    ----------
    columns : sequence of BinnedColumn
        What conditions are about.
    sample : ndarray
        The rows to search.
    gains : ndarray
        What the removal of each row of the sample would bring.
    """

    def __init__(
        self, columns: Sequence[BinnedColumn], sample: npt.NDArray[np.intp], gains: FloatArray
    ) -> None:
        codes = {column.number: column.codes[sample].astype(np.intp) for column in columns}
        super().__init__(columns, codes, gains)
        self._n_rows, self._mean, self._variance = len(gains), float(gains.mean()), float(gains.var())
        self._least = max(FEWEST_MEMBERS, math.ceil(LEAST_SHARE * len(gains)))
        self._most = math.floor(MOST_REMOVED * len(gains))
        self._counts, self._sums = self._totals(None)
        squares = ConditionTable(columns, codes, gains**2)._totals(None)[1]
        with np.errstate(divide="ignore", invalid="ignore"):
            self._means = self._sums / self._counts
            self._variances = squares / self._counts - self._means**2
        self._asked = (self._counts >= self._least) & (self._counts <= len(gains) - FEWEST_MEMBERS)
        n_asked = int(self._asked.sum())
        self._tested = [LENGTHS * float(comb(n_asked, length)) for length in range(1, LENGTHS + 1)]

    def find(
        self, most: int, always: Collection[int] = (), keeps: Callable[[Bools], bool] = lambda rows: True
    ) -> list[Slice]:
        """Find the slices of the largest gain, the largest first; none overlaps another by half.

        Parameters
        ----------
        most : int
            How many at most.
        always : collection of int
            Numbers of columns to whose conditions all others are joined, however little they bring alone.
        keeps : callable
            Tells whether the slice whose rows are marked may go.
        """
        if self._n_rows < 2 * FEWEST_MEMBERS or not self._variance > 0:
            return []
        sums: dict[tuple[int, ...], float] = {
            (int(j),): float(self._sums[j]) for j in np.flatnonzero(self._small(self._asked))
        }
        for parent in self._parents(always):
            sums |= self._joined(parent)
        slices: list[Slice] = []
        chosen: list[Bools] = []
        for key in sorted(sums, key=lambda one: (-sums[one], one)):
            if len(slices) == most or sums[key] <= 0:
                break
            rows = self._rows(key)
            count = np.array([rows.sum()])
            own = np.array([sums[key]]) - count * self._mean
            z = float(permutation_z(count, own, self._n_rows, self._variance)[0])
            factor = self._tested[len(key) - 1]
            if corrected(z, factor) > SIGNIFICANCE or not keeps(rows):
                continue
            if any(overlap(rows, one) > MOST_OVERLAP for one in chosen):
                continue
            chosen.append(rows)
            conditions = tuple(self._conditions[j] for j in key)
            slices.append(Slice(conditions, z, corrected(z, factor), factor))
        return slices

    def _small(self, asked: Bools) -> Bools:
        """Mark the conditions of few enough rows to be removed."""
        return asked & (self._counts <= self._most)

    def _parents(self, always: Collection[int]) -> list[int]:
        best = [int(j) for j in np.argsort(-self._sums, kind="stable") if self._asked[j]][:PARENTS]
        told = np.flatnonzero(self._asked & np.isin(self._ends[:, 0], list(always)))
        return sorted({*best, *map(int, told)})

    def _joined(self, parent: int) -> dict[tuple[int, ...], float]:
        """Join every other condition to one, where both earn their place."""
        counts, sums = self._totals(np.flatnonzero(self._rows((parent,))))
        within = self._z_within(counts, sums, parent)
        beside = self._z_within(counts, sums, slice(None))
        small = self._small(self._asked)
        earns = (
            self._asked
            & ~self._nested((parent,))
            & (counts >= self._least)
            & (counts <= self._most)
            & (counts < np.minimum(self._counts, self._counts[parent]))
            & (sums > np.where(small, self._sums, 0.0))
            & (sums > (self._sums[parent] if small[parent] else 0.0))
            & (ndtr(-np.minimum(within, beside)) * self._tested[1] <= SIGNIFICANCE)
        )
        return {tuple(sorted((parent, int(j)))): float(sums[j]) for j in np.flatnonzero(earns)}

    def _z_within(self, counts: FloatArray, sums: FloatArray, whole: int | slice) -> FloatArray:
        """Give how far slices stand out from what they were cut from."""
        sizes, means, variances = self._counts[whole], self._means[whole], self._variances[whole]
        with np.errstate(divide="ignore", invalid="ignore"):
            spread = np.sqrt(
                np.maximum(variances, 0.0) * counts * (sizes - counts) / np.maximum(sizes - 1, 1)
            )
            return np.where(spread > 0, (sums - counts * means) / spread, 0.0)
