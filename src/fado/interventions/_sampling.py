"""Which negatives go: the rate that groups are to match, and what each gives up for it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from fado.tabular import MIN_GROUP_SIZE, Groups, small_groups

__all__ = ["PrevalenceSampling", "ThinLead"]

Bools = npt.NDArray[np.bool_]
FloatArray = npt.NDArray[np.float64]
Rows = npt.NDArray[np.intp]

_THICK = 20  # a group with less than one in so many of the compared rows is thin
_HALVINGS = 40  # of the span in which a rate is searched: finer than one row in 10^12


@dataclass(frozen=True)
class ThinLead:
    """Thin groups with the highest rate, and what it costs to match them.

    Parameters
    ----------
    groups : tuple of int
        The thin groups.
    rate : float
        Their positive rate.
    going : float
        How many rows go, or what they weigh.
    wanted : float
        The same, to match `rate` in full.
    thick_rate : float or None
        The highest rate of a group that is not thin; None if all are.
    without : float
        What would go to match `thick_rate`.
    """

    groups: tuple[int, ...]
    rate: float
    going: float
    wanted: float
    thick_rate: float | None
    without: float

    @property
    def is_capped(self) -> bool:
        """Whether less goes than it takes to match the rate."""
        return self.going < self.wanted


class PrevalenceSampling:
    """Which negatives go, for one order of the rows after another.

    How many negatives each group loses does not depend on their utilities, unless rows have weights.

    Parameters
    ----------
    positive : ndarray of bool
        The rows of the positive label.
    groups : Groups
        The rows' groups.
    strength : float
        How far a group's rate moves from its own (0) to the target rate (1).
    sample_weight : ndarray, optional
        What each row counts in the rates.
    min_group_size : int, default=30
        Groups of fewer rows that are also less than 1 % of the table lose nothing and set no rate. A group
        with less than 5 % of the other rows sets the rate only as far as half of the table goes. 0 compares
        all groups and matches the highest rate whatever goes.

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
        self._groups = groups
        self._strength = strength
        self._weights = sample_weight
        self._positive = positive
        self.positives, self.negatives = (
            np.bincount(
                groups.codes[rows],
                None if sample_weight is None else sample_weight[rows],
                minlength=len(groups),
            )
            for rows in (positive, ~positive)
        )
        self.compared = ~small_groups(groups.sizes, min_group_size)
        self._rates = self._positive_rates()
        self._target = self._target_rate(capped=min_group_size > 0)
        self._kept = self._kept_at(self._target)

    @property
    def target_rate(self) -> float:
        """The rate that groups are to match; NaN if fewer than two groups have one."""
        return float("nan") if self._target is None else float(self._target)

    @property
    def total(self) -> float:
        """How many rows there are, or what they weigh."""
        return float(self.positives.sum() + self.negatives.sum())

    @property
    def shrinking(self) -> Bools:
        """Mark the groups that lose negatives."""
        return self._kept < self.negatives

    @property
    def droppable(self) -> Bools:
        """Mark the rows of which some go."""
        marked: Bools = np.zeros(len(self._groups.codes), dtype=bool)
        for rows in self._negatives.values():
            marked[rows] = True
        return marked

    def dropped(self, utilities: FloatArray | None, shuffled: Rows) -> Bools:
        """Mark the rows that go: per group the negatives of least utility.

        Ties fall by the rows' places in `shuffled`; without utilities it alone is the order.
        """
        gone: Bools = np.zeros(len(self._groups.codes), dtype=bool)
        for group, rows in self._negatives.items():
            order = shuffled[rows] if utilities is None else utilities[rows]
            if self._weights is None:
                n_dropped = int(self.negatives[group] - self._kept[group])
                gone[rows[_least(order, n_dropped, shuffled[rows])]] = True
            else:
                ordered = rows[np.lexsort([shuffled[rows], order])]
                left = self.negatives[group] - np.cumsum(self._weights[ordered])  # after each row has gone
                gone[ordered[: _closest(np.r_[self.negatives[group], left], self._kept[group])]] = True
        return gone

    def thin_lead(self) -> ThinLead | None:
        """Tell of thin groups whose rate is above that of all others, and what they cost; None if none is."""
        if self._target is None or self._highest == self._thick_rate:
            return None
        thick = self._thick_rate
        return ThinLead(
            groups=tuple(group for group, rate in self._rates.items() if rate == self._highest),
            rate=float(self._highest),
            going=self._going_at(self._target),
            wanted=self._going_at(self._highest),
            thick_rate=None if thick is None else float(thick),
            without=0.0 if thick is None else self._going_at(thick),
        )

    @cached_property
    def _negatives(self) -> dict[int, Rows]:
        """The negatives of the groups that lose some."""
        return {
            int(group): np.flatnonzero(~self._positive & (self._groups.codes == group))
            for group in np.flatnonzero(self.shrinking)
        }

    def _positive_rates(self) -> dict[int, Any]:
        """Give the rates of the compared groups that weigh anything; in fractions if rows are counted."""
        sizes = self.positives + self.negatives
        found = {int(group): sizes[group] for group in np.flatnonzero(self.compared & (sizes > 0))}
        if self._weights is None:
            return {group: Fraction(int(self.positives[group]), int(size)) for group, size in found.items()}
        return {group: self.positives[group] / size for group, size in found.items()}

    @cached_property
    def _highest(self) -> Any:
        return max(self._rates.values())

    @cached_property
    def _thick_rate(self) -> Any:
        """The highest rate of groups with a fair part of the compared rows; None if there are no such."""
        sizes = np.where(self.compared, self.positives + self.negatives, 0)
        thick = sizes * _THICK >= sizes.sum()
        return max((rate for group, rate in self._rates.items() if thick[group]), default=None)

    def _target_rate(self, *, capped: bool) -> Any:
        """Choose the rate to match; None if there are no two to compare."""
        if len(self._rates) < 2:
            return None
        highest, thick, half = self._highest, self._thick_rate, self.total / 2
        if not capped or highest == thick or self._going_at(highest) <= half:
            return highest
        low = min(self._rates.values()) if thick is None else thick
        return _highest_where(low, highest, lambda rate: self._going_at(rate) <= half)

    def _going_at(self, rate: Any) -> float:
        """Give how many negatives go for a rate, or what they weigh; it never falls as the rate rises."""
        return float((self.negatives - self._kept_at(rate)).sum())

    def _kept_at(self, rate: Any) -> FloatArray:
        """Give per group how many negatives stay for a rate, or what they may weigh."""
        positives, negatives = self.positives, self.negatives
        if rate is None:
            return negatives.astype(np.float64)
        if self._weights is None:
            counted = _negatives_to_keep(positives.tolist(), negatives.tolist(), self._strength, rate)
            kept = np.array(counted, dtype=np.float64)
        else:
            kept = _weight_to_keep(positives, negatives, self._strength, rate)
        return np.where(self.compared, kept, negatives)


def _negatives_to_keep(
    positives: list[int], negatives: list[int], strength: float, rate: Fraction
) -> list[int]:
    """Give per group how many negatives stay; in fractions, so that halves are halves."""
    kept = []
    for p, n in zip(positives, negatives, strict=True):
        own = Fraction(p, p + n)
        target = own + Fraction(strength) * (rate - own)
        kept.append(round(p * (1 - target) / target) if p and own < rate else n)
    return kept


def _weight_to_keep(
    positives: npt.NDArray[Any], negatives: npt.NDArray[Any], strength: float, rate: float
) -> FloatArray:
    """Give per group what its negatives may weigh; a group that weighs nothing stays as it is."""
    with np.errstate(invalid="ignore", divide="ignore"):
        own = positives / (positives + negatives)
        target = own + strength * (rate - own)
        kept = positives * (1 - target) / target
    return np.where(positives > 0, np.minimum(kept, negatives), negatives)


def _highest_where(low: Any, high: Any, holds: Callable[[Any], bool]) -> Any:
    """Find the highest rate at which something holds that no longer does at `high`; at least `low`."""
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


def _least(keys: npt.NDArray[Any], count: int, shuffled: Rows) -> Rows:
    """Find so many entries with the least keys; ties fall by `shuffled`."""
    limit = np.partition(keys, count - 1)[count - 1]
    below, tied = np.flatnonzero(keys < limit), np.flatnonzero(keys == limit)
    return np.r_[below, tied[np.argsort(shuffled[tied], kind="stable")[: count - len(below)]]]


def _closest(left: FloatArray, wanted: float) -> int:
    """Find after how many rows that which is left comes closest to what is wanted."""
    return int(np.argmin(np.abs(left - wanted)))
