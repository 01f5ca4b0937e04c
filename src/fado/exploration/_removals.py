"""Candidates for a removal: slices whose rows add up to a gain, and the rows of the lowest effects.

No candidate takes more than half of the rows of a group and label, so none empties a label or a group.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr

from fado._typing import Bools, Floats, Integers
from fado.exploration._explored import ExploredRows
from fado.exploration._groups import FEWEST_MEMBERS
from fado.exploration._slices import (
    SIGNIFICANCE,
    BinnedColumn,
    ConditionTable,
    Key,
    Slice,
    permutation_z,
)

MOST_SLICES = 8
MOST_REMOVED = 0.2  # of the rows, by a slice
MOST_OF_A_CELL = 0.5  # of the rows of one group and label, that any removal may take
PARENTS = 20  # conditions that others are joined to, beside those that are always tried


def most_harmful(effects: Floats, share: float, cells: Integers) -> Bools:
    """Mark the rows of the lowest effects below 0, at most half of those of any cell.

    `cells` are those of `label_cells`, one row of codes per attribute.

    Examples
    --------
    >>> import numpy as np
    >>> effects = np.array([-0.4, -0.3, -0.2, -0.1, 0.0, 0.2])
    >>> most_harmful(effects, 0.5, np.array([[0, 0, 1, 1, 1, 1]])).tolist()
    [True, False, True, True, False, False]
    """
    order = np.argsort(effects, kind="stable")
    order = order[effects[order] < 0]
    allowed = np.ones(len(order), dtype=np.bool_)
    for codes in cells:
        ordered, sizes = codes[order], np.bincount(codes[codes >= 0])
        for cell in np.unique(ordered[ordered >= 0]):
            places = np.flatnonzero(ordered == cell)
            allowed[places[math.floor(MOST_OF_A_CELL * sizes[cell]) :]] = False
    order = order[allowed]
    marked = np.zeros(len(effects), dtype=np.bool_)
    marked[order[: round(share * len(effects))]] = True
    return marked


def find_slices(
    explored: ExploredRows, columns: Sequence[BinnedColumn], gains: Floats, cells: Integers
) -> list[Slice]:
    """Find slices with the largest gains that leave half of every cell; conditions may name the label."""
    protected = {one.name for one in explored.attributes}
    always = [one.number for one in columns if one.name in protected or one is columns[-1]]
    search = RemovalSearch(columns, explored.sample, gains)
    return search.find(MOST_SLICES, always, lambda rows: keeps_cells(rows, cells))


def label_cells(explored: ExploredRows) -> Integers:
    """Give each searched row's combination of group and label, per attribute; -1 in those of few rows."""
    labels, of_attributes = explored.labels.codes[explored.sample], []
    for one in explored.attributes:
        codes = one.every_group.codes[explored.sample] * (labels.max() + 1) + labels
        cells, sizes = np.unique(codes, return_inverse=True, return_counts=True)[1:]
        of_attributes.append(np.where((sizes >= FEWEST_MEMBERS)[cells] & (labels >= 0), cells, -1))
    return np.array(of_attributes)


def keeps_cells(rows: Bools, cells: Integers) -> bool:
    """Say whether every combination of group and label keeps half of its rows without these.

    Examples
    --------
    >>> import numpy as np
    >>> cells = np.array([[0, 0, 0, 1, 1, -1]])
    >>> keeps_cells(np.array([True, False, False, True, False, True]), cells)
    True
    >>> keeps_cells(np.array([True, True, False, False, False, False]), cells)
    False
    """
    for codes in cells:
        known = codes >= 0
        sizes, gone = (np.bincount(codes[one], minlength=codes.max() + 1) for one in (known, known & rows))
        if (gone > MOST_OF_A_CELL * sizes).any():
            return False
    return True


class RemovalSearch(ConditionTable):
    """Search for slices to remove: conditions on one or two columns whose rows add up to the largest gain.

    A gain is the increase of a metric when a row is removed. `SliceFinder` looks for a mean that differs;
    this looks for a sum, the predicted gain of removing the whole slice. Very large slices are not searched,
    since a first-order effect does not describe them. A slice must differ beyond chance, as in `SliceFinder`;
    a second condition must do so inside either part, and must not reduce the gain of one part alone.
    """

    def __init__(self, columns: Sequence[BinnedColumn], sample: npt.NDArray[np.intp], gains: Floats) -> None:
        codes = {column.number: column.codes[sample].astype(np.intp) for column in columns}
        super().__init__(columns, codes, gains, most_conditions=2)
        squares = self._totals(gains**2)[1]
        with np.errstate(divide="ignore", invalid="ignore"):
            self._means = self._sums / self._counts
            self._variances = squares / self._counts - self._means**2
        self._most = math.floor(MOST_REMOVED * len(gains))
        self._small = self._large_enough & (self._counts <= self._most)

    def find(
        self, most: int, always: Collection[int] = (), keeps: Callable[[Bools], bool] = lambda rows: True
    ) -> list[Slice]:
        """Find the slices of the largest gain, the largest first; none overlaps another by half.

        All others are joined to the conditions of the columns that are `always` tried, however small their
        gain alone. `keeps` says whether the marked rows may be removed.
        """
        if self._n_rows < 2 * FEWEST_MEMBERS or not self._variance > 0:
            return []
        best = [j for j in np.argsort(-self._sums, kind="stable").tolist() if self._large_enough[j]][:PARENTS]
        tried = np.flatnonzero(self._large_enough & np.isin(self._ends[:, 0], list(always))).tolist()
        gains: dict[Key, tuple[float, float]] = {
            (j,): (self._sums[j], self._counts[j]) for j in np.flatnonzero(self._small).tolist()
        }
        for parent in sorted({*best, *tried}):
            gains |= self._joined(parent)
        mean, candidates = float(self._amounts.mean()), []
        for key in sorted(gains, key=lambda one: (-gains[one][0], one)):
            gain, count = gains[key]
            if gain <= 0:
                break
            off = np.array([gain]) - count * mean
            z = float(permutation_z(np.array([count]), off, self._n_rows, self._variance)[0])
            if self._p_value(key, z) <= SIGNIFICANCE:
                candidates.append((key, z))
        return self._chosen(candidates, most, keeps)

    def _joined(self, parent: int) -> dict[Key, tuple[float, float]]:
        """Join every other condition to one, where both improve the slice."""
        counts, sums = self._totals(self._amounts, np.flatnonzero(self._rows((parent,))))
        within, beside = (
            permutation_z(counts, sums - counts * self._means[one], self._counts[one], self._variances[one])
            for one in (parent, slice(None))
        )
        earns = (
            self._may_join((parent,))
            & (counts >= self._least)
            & (counts <= self._most)
            & (counts < np.minimum(self._counts, self._counts[parent]))
            & (sums > np.where(self._small, self._sums, 0.0))
            & (sums > (self._sums[parent] if self._small[parent] else 0.0))
            & (ndtr(-np.minimum(within, beside)) * self._tested[1] <= SIGNIFICANCE)
        )
        return {tuple(sorted((parent, j))): (sums[j], counts[j]) for j in np.flatnonzero(earns).tolist()}
