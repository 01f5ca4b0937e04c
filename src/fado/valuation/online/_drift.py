"""Whether a batch still is what models have learnt: their doubts about it against those out of bag.

A doubt is 1 minus the agreement: the probability that models give to other labels than the row's own, or the
error of a predicted number over the largest. It is linear in what the models say. So, while rows stay what
they were, its mean over new rows, which all models score, is that over rows out of bag, which a few score;
and the mean of enough of them is normal about it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

__all__ = ["FALSE_ALARMS", "Check", "Pool", "Reference", "check_drift"]

FloatArray = npt.NDArray[np.float64]

FALSE_ALARMS = 0.001  # the share of checks that cry drift though nothing has changed, over all variables
_FEWEST_ROWS = 100  # whose mean is tested
_TOGETHER = 2.0  # to be safe: a mean out of bag varies more than one of as many independent rows
_PER_SKEWNESS = 25  # rows, times the squared skewness: Cochran's rule for a mean that is near enough normal


@dataclass(frozen=True)
class Reference:
    """Doubts about rows out of bag, in short.

    Parameters
    ----------
    n_rows : int
        How many rows.
    mean, deviation, skewness : float
        Of their doubts.
    """

    n_rows: int
    mean: float
    deviation: float
    skewness: float

    @classmethod
    def of(cls, doubts: FloatArray) -> Reference:
        """Sum doubts up; those that are not known are left out."""
        known = doubts[~np.isnan(doubts)]
        if not len(known):
            return cls(0, math.nan, math.nan, math.nan)
        mean, deviation = float(known.mean()), float(known.std())
        skewness = float(np.mean((known - mean) ** 3)) / deviation**3 if deviation > 0 else 0.0
        return cls(len(known), mean, deviation, skewness)

    @property
    def rows_needed(self) -> int:
        """How many new rows a check needs: the more, the rarer large doubts are."""
        return max(_FEWEST_ROWS, math.ceil(_PER_SKEWNESS * self.skewness**2))


@dataclass(frozen=True)
class Pool:
    """New rows' doubts, added up over batches until they are enough, and what was expected of them."""

    n_rows: int = 0
    doubt: float = 0.0
    expected: float = 0.0

    def add(self, doubts: FloatArray, reference: Reference) -> Pool:
        """Add a batch."""
        known = doubts[~np.isnan(doubts)]
        n_rows = len(known)
        return Pool(
            self.n_rows + n_rows,
            self.doubt + float(known.sum()),
            self.expected + n_rows * reference.mean,
        )


@dataclass(frozen=True)
class Check:
    """One look at a variable: the mean doubt about some rows, what was expected, and how far they are apart.

    Parameters
    ----------
    batch : int
        The last batch of these rows; the first is 1.
    variable : str
        Whose labels the models doubt.
    rows : int
        How many rows.
    loss, expected : float
        The mean doubt, and that out of bag.
    statistic : float
        Their difference in standard errors.
    drift : bool
        Whether that is more than chance would show.
    """

    batch: int
    variable: str
    rows: int
    loss: float
    expected: float
    statistic: float
    drift: bool


def check_drift(
    doubts: Mapping[str, FloatArray],
    references: Mapping[str, Reference],
    pools: Mapping[str, Pool],
    batch: int,
) -> tuple[dict[str, Pool], list[Check]]:
    """Add a batch's doubts, and check those variables that have enough.

    Parameters
    ----------
    doubts : mapping of str to ndarray
        Per variable, those about the batch's rows, of models that have not learnt them.
    references : mapping of str to Reference
        Of the same models.
    pools : mapping of str to Pool
        What is left of the batches before.
    batch : int
        The batch's number.

    Returns
    -------
    pools : dict of str to Pool
        What waits for more rows.
    checks : list of Check
        Of the variables that had enough.

    Examples
    --------
    >>> coin = Reference(10_000, mean=0.5, deviation=0.1, skewness=0.0)
    >>> left, (check,) = check_drift({"y": np.full(400, 0.53)}, {"y": coin}, {}, batch=7)
    >>> check.rows, round(check.statistic, 1), check.drift
    (400, 5.8, True)
    """
    left, checks = dict(pools), []
    for name, own in doubts.items():
        reference = references[name]
        pool = left.pop(name, Pool()).add(own, reference)
        if not reference.n_rows or pool.n_rows < reference.rows_needed:
            left[name] = pool
            continue
        loss, expected = pool.doubt / pool.n_rows, pool.expected / pool.n_rows
        statistic = _statistic(loss - expected, pool.n_rows, reference)
        alarm = statistic > _critical(FALSE_ALARMS / len(references), pool.n_rows, reference)
        checks.append(Check(batch, name, pool.n_rows, loss, expected, statistic, alarm))
    return left, checks


def _statistic(difference: float, n_rows: int, reference: Reference) -> float:
    error = reference.deviation * math.sqrt(1 / n_rows + _TOGETHER / reference.n_rows)
    if error > 0:
        return difference / error
    return math.inf if difference > 0 else 0.0


def _critical(rate: float, n_rows: int, reference: Reference) -> float:
    """Give the quantile of a mean of so many doubts, corrected for what is left of their skewness."""
    normal = NormalDist().inv_cdf(1 - rate)
    return normal + (normal**2 - 1) / 6 * reference.skewness / math.sqrt(n_rows)
