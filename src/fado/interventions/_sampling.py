"""Which negatives go: of as many as the matched rates say, those of least utility."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from fado.interventions._rates import MatchedRates
from fado.tabular import MIN_GROUP_SIZE, Groups, small_groups

__all__ = ["PrevalenceSampling"]

Bools = npt.NDArray[np.bool_]
FloatArray = npt.NDArray[np.float64]
Rows = npt.NDArray[np.intp]


class PrevalenceSampling(MatchedRates):
    """Which negatives prevalence sampling drops, for any utilities of the rows.

    How many negatives each group loses is computed once. Without weights it does not depend on utilities.

    Parameters
    ----------
    positive : ndarray of bool
        Which rows have the positive label.
    groups : Groups
        The rows' groups.
    strength : float, default=1.0
        How far a group's rate moves from its own (0) to the target rate (1).
    sample_weight : ndarray, optional
        How much each row counts in the rates; None counts all rows alike.
    min_group_size : int, default=30
        Groups of fewer rows that are also less than 1 % of the table lose no rows, and their rate is not
        matched. If the highest rate is that of a group with less than 5 % of the compared rows, at most half
        of the table is dropped to match it. 0 compares all groups and always matches the highest rate.

    Examples
    --------
    >>> import numpy as np
    >>> from fado.tabular import Groups
    >>> positive = np.array([1, 0, 1, 0, 0, 0, 0], dtype=bool)
    >>> groups = Groups(np.array([0, 0, 1, 1, 1, 1, 1]), ("'f'", "'m'"), ("f", "m"))
    >>> sampling = PrevalenceSampling(positive, groups)
    >>> sampling.target_rate
    0.5
    >>> sampling.dropped(np.array([0, 0, 0, 0.3, 0.9, 0.1, 0.2]), np.arange(7))
    array([False, False, False,  True, False,  True,  True])
    """

    def __init__(
        self,
        positive: Bools,
        groups: Groups,
        strength: float = 1.0,
        sample_weight: FloatArray | None = None,
        min_group_size: int = MIN_GROUP_SIZE,
    ) -> None:
        positives, negatives = (
            np.bincount(
                groups.codes[rows],
                None if sample_weight is None else sample_weight[rows],
                minlength=len(groups),
            )
            for rows in (positive, ~positive)
        )
        super().__init__(
            positives,
            negatives,
            ~small_groups(groups.sizes, min_group_size),
            strength,
            weighted=sample_weight is not None,
            capped=min_group_size > 0,
        )
        self._groups = groups
        self._weights = sample_weight
        self._positive = positive

    @property
    def droppable(self) -> Bools:
        """Mark the rows that may be dropped: the negatives of the groups that lose some."""
        marked: Bools = np.zeros(len(self._groups.codes), dtype=bool)
        for rows in self._negatives.values():
            marked[rows] = True
        return marked

    def dropped(self, utilities: FloatArray | None, shuffled: Rows) -> Bools:
        """Mark the rows that are dropped: in each group the negatives of least utility.

        Parameters
        ----------
        utilities : ndarray of shape (n_rows,) or None
            The rows' utilities. None drops rows in the order of `shuffled`.
        shuffled : ndarray of int of shape (n_rows,)
            A permutation. Of rows of equal utility, that with the lower number goes first.

        Returns
        -------
        ndarray of bool of shape (n_rows,)
        """
        gone: Bools = np.zeros(len(self._groups.codes), dtype=bool)
        for group, rows in self._negatives.items():
            order = shuffled[rows] if utilities is None else utilities[rows]
            if self._weights is None:
                n_dropped = int(self.negatives[group] - self.kept[group])
                gone[rows[_least(order, n_dropped, shuffled[rows])]] = True
            else:
                ordered = rows[np.lexsort([shuffled[rows], order])]
                left = self.negatives[group] - np.cumsum(self._weights[ordered])  # after each row has gone
                gone[ordered[: _closest(np.r_[self.negatives[group], left], self.kept[group])]] = True
        return gone

    @cached_property
    def _negatives(self) -> dict[int, Rows]:
        """The negatives of the groups that lose some."""
        return {
            int(group): np.flatnonzero(~self._positive & (self._groups.codes == group))
            for group in np.flatnonzero(self.shrinking)
        }


def _least(keys: npt.NDArray[Any], count: int, shuffled: Rows) -> Rows:
    """Find so many entries with the least keys; ties fall by `shuffled`."""
    limit = np.partition(keys, count - 1)[count - 1]
    below, tied = np.flatnonzero(keys < limit), np.flatnonzero(keys == limit)
    return np.r_[below, tied[np.argsort(shuffled[tied], kind="stable")[: count - len(below)]]]


def _closest(left: FloatArray, wanted: float) -> int:
    """Find after how many rows that which is left comes closest to what is wanted."""
    return int(np.argmin(np.abs(left - wanted)))
