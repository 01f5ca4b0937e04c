"""Drift: whether models are less certain about the labels of new rows than they were out of bag.

Uncertainty is 1 minus the probability that models give to the row's own label or, of a number, the error over
the largest. It is linear in the predictions. So, while rows do not change, its mean over new rows, which all
models score, equals that over rows out of bag, which a few score; and the mean of enough of them is normal
about it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from fado._typing import Floats

FALSE_ALARMS = 0.001  # the share of checks that detect drift though nothing changed, over all variables
_FEWEST_CHECKED = 100  # rows whose mean is tested
_TOGETHER = 2.0  # to be safe: a mean out of bag varies more than one of as many independent rows
_PER_SKEWNESS = 25  # rows, times the squared skewness: Cochran's rule for a mean that is near enough normal


@dataclass(frozen=True)
class Reference:
    """Summary of the uncertainty about rows out of bag."""

    n_rows: int
    mean: float
    deviation: float
    skewness: float

    @classmethod
    def of(cls, doubts: Floats) -> Reference:
        """Summarise uncertainties; unknown ones are left out."""
        known = doubts[~np.isnan(doubts)]
        if not len(known):
            return cls(0, math.nan, math.nan, math.nan)
        mean, deviation = float(known.mean()), float(known.std())
        skewness = float(np.mean((known - mean) ** 3)) / deviation**3 if deviation > 0 else 0.0
        return cls(len(known), mean, deviation, skewness)

    @property
    def rows_needed(self) -> int:
        """How many new rows a check needs: more if large uncertainties are rare."""
        return max(_FEWEST_CHECKED, math.ceil(_PER_SKEWNESS * self.skewness**2))


@dataclass(frozen=True)
class Pool:
    """The uncertainty about new rows, added up over batches until there are enough, and what was expected."""

    n_rows: int = 0
    doubt: float = 0.0
    expected: float = 0.0

    def add(self, doubts: Floats, reference: Reference) -> Pool:
        """Add a batch."""
        known = doubts[~np.isnan(doubts)]
        expected = self.expected + len(known) * reference.mean
        return Pool(self.n_rows + len(known), self.doubt + float(known.sum()), expected)


@dataclass(frozen=True)
class DriftCheck:
    """One check of a variable; the fields are the columns of `OnlineEntropy.drift_`."""

    batch: int
    variable: str
    rows: int
    loss: float
    expected: float
    statistic: float
    drift: bool


def check_drift(
    doubts: Mapping[str, Floats],
    references: Mapping[str, Reference],
    pools: Mapping[str, Pool],
    batch: int,
) -> tuple[dict[str, Pool], list[DriftCheck]]:
    """Add a batch's uncertainties, and check those variables that have enough.

    Returns what waits for more rows, and the checks.

    Examples
    --------
    >>> coin = Reference(10_000, mean=0.5, deviation=0.1, skewness=0.0)
    >>> batch = {"y": np.full(400, 0.53)}
    >>> left, (check,) = check_drift(batch, {"y": coin}, {}, batch=7)
    >>> check.rows, round(check.statistic, 1), check.drift
    (400, 5.8, True)
    """
    left, checks = dict(pools), []
    normal = NormalDist().inv_cdf(1 - FALSE_ALARMS / len(references))
    for name, uncertainties in doubts.items():
        reference = references[name]
        pool = left.pop(name, Pool()).add(uncertainties, reference)
        if not reference.n_rows or pool.n_rows < reference.rows_needed:
            left[name] = pool
            continue
        loss, expected = pool.doubt / pool.n_rows, pool.expected / pool.n_rows
        error = reference.deviation * math.sqrt(1 / pool.n_rows + _TOGETHER / reference.n_rows)
        certain = math.inf if loss > expected else 0.0
        statistic = (loss - expected) / error if error > 0 else certain
        # the quantile of a mean of so many uncertainties, corrected for their skewness
        critical = normal + (normal**2 - 1) / 6 * reference.skewness / math.sqrt(pool.n_rows)
        checks.append(DriftCheck(batch, name, pool.n_rows, loss, expected, statistic, statistic > critical))
    return left, checks
