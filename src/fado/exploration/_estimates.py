"""Numbers with the ends of their 95 % intervals, and the widest gap between those of groups."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri
from scipy.stats import rankdata

from fado._typing import Bools, Floats
from fado.metrics import share_limits

Z = 1.959963984540054  # the normal distribution's 97.5 % quantile


class Estimate(NamedTuple):
    """A number and the ends of its 95 % interval."""

    number: float
    low: float
    high: float

    @property
    def spread(self) -> float:
        """The standard error that the interval implies."""
        return (self.high - self.low) / (2 * Z)

    def holds(self, number: float) -> bool:
        """Say whether a number is in the interval, or whether that is unknown."""
        return not (self.low > number or self.high < number)

    def widened(self, times: int) -> Estimate:
        """Widen the interval so that this number of intervals hold together at 95 % (Bonferroni).

        Examples
        --------
        >>> tuple(round(part, 3) for part in Estimate(0.0, -1.96, 1.96).widened(3))
        (0.0, -2.394, 2.394)
        """
        wider = float(ndtri(1 - 0.025 / max(times, 1))) / Z
        below, above = self.number - self.low, self.high - self.number
        return Estimate(self.number, self.number - wider * below, self.number + wider * above)


UNKNOWN = Estimate(math.nan, math.nan, math.nan)
Gap = Callable[[Estimate, Estimate], Estimate]


def share(events: int, members: int) -> Estimate:
    """Estimate a share, with the interval of Clopper and Pearson.

    Examples
    --------
    >>> tuple(round(part, 4) for part in share(1, 10))
    (0.1, 0.0025, 0.445)
    """
    if not members:
        return UNKNOWN
    low, high = share_limits(np.array([events / members]), np.array([members]), 0.025)
    return Estimate(events / members, float(low[0]), float(high[0]))


def share_gap(first: Estimate, second: Estimate) -> Estimate:
    """Estimate the difference of two shares, with the interval that theirs imply (Newcombe's)."""
    gap = first.number - second.number
    low = math.hypot(first.number - first.low, second.high - second.number)
    high = math.hypot(first.high - first.number, second.number - second.low)
    return Estimate(gap, gap - low, gap + high)


def count_ratio(first: int, second: int) -> Estimate:
    """Estimate how many times larger one count of independent rows is than another."""
    ratio, factor = first / second, math.exp(Z * math.sqrt(1 / first + 1 / second))
    return Estimate(ratio, ratio / factor, ratio * factor)


def mean(numbers: Floats) -> Estimate:
    """Estimate a mean, with the normal interval."""
    centre = float(numbers.mean()) if len(numbers) else math.nan
    if len(numbers) < 2:
        return Estimate(centre, math.nan, math.nan)
    return _normal(centre, float(numbers.std(ddof=1)) / math.sqrt(len(numbers)))


def difference(first: Estimate, second: Estimate) -> Estimate:
    """Estimate the difference of two independent estimates."""
    return _normal(first.number - second.number, math.hypot(first.spread, second.spread))


def auc(scores: Floats, positive: Bools) -> Estimate:
    """Estimate how often a positive row scores above a negative one, with DeLong's interval.

    Examples
    --------
    >>> import numpy as np
    >>> auc(np.array([0.1, 0.4, 0.35, 0.8]), np.array([False, False, True, True])).number
    0.75
    """
    m, n = int(positive.sum()), int((~positive).sum())
    if m < 2 or n < 2:
        return UNKNOWN
    overall = rankdata(scores)
    above = (overall[positive] - rankdata(scores[positive])) / n  # negatives below each positive
    below = 1.0 - (overall[~positive] - rankdata(scores[~positive])) / m  # positives above each negative
    area = _normal(float(above.mean()), math.sqrt(above.var(ddof=1) / m + below.var(ddof=1) / n))
    return Estimate(area.number, max(0.0, area.low), min(1.0, area.high))


def skill(errors: Floats, baseline: Floats) -> Estimate:
    """Estimate which share of a baseline's mean error is removed."""
    left = float(errors.mean() / baseline.mean())
    spread = float((errors - left * baseline).std(ddof=1)) / math.sqrt(len(errors)) / float(baseline.mean())
    return _normal(1 - left, spread)


def rank_correlation(first: npt.NDArray[np.generic], second: npt.NDArray[np.generic]) -> Estimate:
    """Estimate Spearman's correlation, with Bonett and Wright's interval."""
    a, b = rankdata(first), rankdata(second)
    a, b = a - a.mean(), b - b.mean()
    scale = math.sqrt(float(a @ a) * float(b @ b))
    if not scale or len(a) < 4:
        return UNKNOWN
    rho = float(a @ b) / scale
    reach = Z * math.sqrt((1 + rho * rho / 2) / (len(a) - 3))
    centre = math.atanh(min(max(rho, -1 + 1e-15), 1 - 1e-15))
    return Estimate(rho, math.tanh(centre - reach), math.tanh(centre + reach))


def _normal(centre: float, spread: float) -> Estimate:
    return Estimate(centre, centre - Z * spread, centre + Z * spread)


class WidestGap(NamedTuple):
    """The gap between the highest and the lowest of several estimates, and which groups these are."""

    gap: Estimate
    high: int = -1
    low: int = -1

    @property
    def known(self) -> bool:
        """Whether there were two to compare."""
        return self.high >= 0

    @property
    def is_clear(self) -> bool:
        """Whether the interval excludes 0, so that one of the two is clearly higher."""
        return self.known and not self.gap.holds(0.0)

    def ends(self, estimates: Sequence[Estimate], names: Sequence[str], write: Callable[[float], str]) -> str:
        """Write the highest and the lowest, with the names of their groups."""
        ends = (f"{write(estimates[group].number)} in {names[group]}" for group in (self.high, self.low))
        return " and ".join(ends)


def widest_gap(estimates: Sequence[Estimate], compared: Sequence[int], gap: Gap, among: int = 1) -> WidestGap:
    """Find the widest gap between groups; its interval holds for all pairs together.

    Examples
    --------
    >>> widest = widest_gap([share(10, 100), share(40, 100), share(20, 100)], [0, 1, 2], share_gap)
    >>> widest.high, widest.low, widest.is_clear, [round(part, 3) for part in widest.gap]
    (1, 0, True, [0.3, 0.15, 0.44])
    """
    known = [j for j in compared if np.isfinite(estimates[j].number)]
    if len(known) < 2:
        return WidestGap(UNKNOWN)
    high = max(known, key=lambda j: estimates[j].number)
    low = min(known, key=lambda j: estimates[j].number)
    pairs = among * len(known) * (len(known) - 1) // 2
    return WidestGap(gap(estimates[high], estimates[low]).widened(pairs), high, low)
