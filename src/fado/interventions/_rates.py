"""How many negatives go: the rate that groups are to match, read off counts alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["MatchedRates", "ThinLead"]

Bools = npt.NDArray[np.bool_]
FloatArray = npt.NDArray[np.float64]

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


class MatchedRates:
    """The rate that groups are to match, and what each gives up for it; no row is looked at.

    Parameters
    ----------
    positives, negatives : ndarray
        How many rows of each label every group has, or what they weigh.
    compared : ndarray of bool
        The groups that set rates and lose negatives.
    strength : float
        How far a group's rate moves from its own (0) to the target rate (1).
    weighted : bool
        Whether weights were added up, not rows counted.
    capped : bool
        Whether a group with less than 5 % of the compared rows sets the rate only as far as half of the table
        goes.

    Examples
    --------
    >>> import numpy as np
    >>> positives, negatives = np.array([10, 10]), np.array([10, 40])
    >>> rates = MatchedRates(positives, negatives, np.array([True, True]))
    >>> rates.target_rate, rates.kept
    (0.5, array([10., 10.]))
    """

    def __init__(
        self,
        positives: npt.NDArray[Any],
        negatives: npt.NDArray[Any],
        compared: Bools,
        strength: float = 1.0,
        *,
        weighted: bool = False,
        capped: bool = True,
    ) -> None:
        self.positives, self.negatives, self.compared = positives, negatives, compared
        self._strength = strength
        self._weighted = weighted
        self._rates = self._positive_rates()
        self._target = self._target_rate(capped=capped)
        self.kept = self._kept_at(self._target)  # negatives of each group that stay, or what they may weigh

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
        return self.kept < self.negatives

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

    def _positive_rates(self) -> dict[int, Any]:
        """Give the rates of the compared groups that weigh anything; in fractions if rows are counted."""
        sizes = self.positives + self.negatives
        found = {int(group): sizes[group] for group in np.flatnonzero(self.compared & (sizes > 0))}
        if not self._weighted:
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
        if not self._weighted:
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
        own = Fraction(p, p + n) if p else rate  # without positives no rate is matched, and all stay
        target = own + Fraction(strength) * (rate - own)
        kept.append(round(p * (1 - target) / target) if own < rate else n)
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
