"""Numbers with 95 % intervals. Arrays in, small tuples out."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.stats import rankdata

__all__ = [
    "Estimate",
    "Z",
    "auc",
    "count_ratio",
    "difference",
    "mean",
    "rank_correlation",
    "share",
    "share_gap",
    "skill",
]

FloatArray = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

Z = 1.959963984540054  # the normal distribution's 97.5 % quantile


class Estimate(NamedTuple):
    """A number and the ends of its 95 % interval."""

    number: float
    low: float
    high: float

    @property
    def spread(self) -> float:
        """The standard error that the interval stands for."""
        return (self.high - self.low) / (2 * Z)


def share(events: int, members: int) -> Estimate:
    """Estimate a share, with Wilson's interval.

    Examples
    --------
    >>> tuple(round(part, 4) for part in share(1, 10))
    (0.1, 0.0179, 0.4042)
    """
    if not members:
        return Estimate(math.nan, math.nan, math.nan)
    p, weight = events / members, Z * Z / members
    centre, half = p + weight / 2, Z * math.sqrt(p * (1 - p) / members + weight / members / 4)
    return Estimate(p, max(0.0, (centre - half) / (1 + weight)), min(1.0, (centre + half) / (1 + weight)))


def share_gap(first: Estimate, second: Estimate) -> Estimate:
    """Estimate the difference of two shares, with Newcombe's interval."""
    gap = first.number - second.number
    low = math.hypot(first.number - first.low, second.high - second.number)
    high = math.hypot(first.high - first.number, second.number - second.low)
    return Estimate(gap, gap - low, gap + high)


def count_ratio(first: int, second: int) -> Estimate:
    """Estimate how many times larger one count of independent rows is than another."""
    ratio, factor = first / second, math.exp(Z * math.sqrt(1 / first + 1 / second))
    return Estimate(ratio, ratio / factor, ratio * factor)


def mean(numbers: FloatArray) -> Estimate:
    """Estimate a mean, with the normal interval."""
    centre = float(numbers.mean()) if len(numbers) else math.nan
    if len(numbers) < 2:
        return Estimate(centre, math.nan, math.nan)
    return _normal(centre, float(numbers.std(ddof=1)) / math.sqrt(len(numbers)))


def difference(first: Estimate, second: Estimate) -> Estimate:
    """Estimate the difference of two independent estimates."""
    return _normal(first.number - second.number, math.hypot(first.spread, second.spread))


def auc(scores: FloatArray, positive: Bools) -> Estimate:
    """Estimate how often a positive row scores above a negative one, with DeLong's interval.

    Examples
    --------
    >>> import numpy as np
    >>> auc(np.array([0.1, 0.4, 0.35, 0.8]), np.array([False, False, True, True])).number
    0.75
    """
    m, n = int(positive.sum()), int((~positive).sum())
    if m < 2 or n < 2:
        return Estimate(math.nan, math.nan, math.nan)
    overall = rankdata(scores)
    above = (overall[positive] - rankdata(scores[positive])) / n  # negatives below each positive
    below = 1.0 - (overall[~positive] - rankdata(scores[~positive])) / m  # positives above each negative
    area = _normal(float(above.mean()), math.sqrt(above.var(ddof=1) / m + below.var(ddof=1) / n))
    return Estimate(area.number, max(0.0, area.low), min(1.0, area.high))


def skill(errors: FloatArray, baseline: FloatArray) -> Estimate:
    """Estimate which share of a baseline's mean error is gone."""
    left = float(errors.mean() / baseline.mean())
    spread = float((errors - left * baseline).std(ddof=1)) / math.sqrt(len(errors)) / float(baseline.mean())
    return _normal(1 - left, spread)


def rank_correlation(first: npt.NDArray[np.generic], second: npt.NDArray[np.generic]) -> Estimate:
    """Estimate Spearman's correlation, with Bonett and Wright's interval."""
    a, b = rankdata(first), rankdata(second)
    a, b = a - a.mean(), b - b.mean()
    scale = math.sqrt(float(a @ a) * float(b @ b))
    if not scale or len(a) < 4:
        return Estimate(math.nan, math.nan, math.nan)
    rho = float(a @ b) / scale
    reach = Z * math.sqrt((1 + rho * rho / 2) / (len(a) - 3))
    centre = math.atanh(min(max(rho, -1 + 1e-15), 1 - 1e-15))
    return Estimate(rho, math.tanh(centre - reach), math.tanh(centre + reach))


def _normal(centre: float, spread: float) -> Estimate:
    return Estimate(centre, centre - Z * spread, centre + Z * spread)
