"""How many rows decide whether ratios reach their minimums, by simulation."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np

from fado._typing import Floats
from fado.metrics._intervals import ROUNDING, TELLS_NOTHING, has_enough, pair_limits, share_limits
from fado.metrics._rates import RATIOS, GroupCounts

_FOUR_OF_FIVE = 0.8  # of simulated tries are decided
_TRIES, _SEED = 4_000, 1
_MANY = 300  # events
_NEAR = 0.1  # half of all models are expected so near to a minimum, in logarithms
_MOST_TIMES = 100.0  # as many rows
_PRECISE = 1.05  # how close the number of rows is


def least_times(share_decided: Callable[[float], float], most: float) -> float:
    """Return how many times as many rows decide in four of five tries; infinity if `most` times do not.

    Parameters
    ----------
    share_decided : callable
        The share of simulated tries that that many times as many rows decide. It should draw with the same
        seed for every number.
    most : float
        The largest number that is tried.

    Examples
    --------
    >>> round(least_times(lambda times: times / 10, 100), 1)
    8.0
    """
    low, high = 1.0, 1.0
    while share_decided(high) < _FOUR_OF_FIVE:
        if high >= most:
            return math.inf
        low, high = high, min(2 * high, most)
    while high > low * _PRECISE:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if share_decided(middle) >= _FOUR_OF_FIVE else (middle, high)
    return high


def rows_needed(counts: GroupCounts, lines: Mapping[str, float], error: float) -> float:
    """Return how many times as many rows decide whether ratios reach their minimums, in four of five tries.

    The rates behind the counts are themselves uncertain, so each try draws rates and sizes of groups from
    their posterior distribution, counts of that many rows, and the intervals of all ratios. The prior of
    rates is Jeffreys'. Models are made to reach a minimum and have ratios near it, so that of a ratio has a
    Cauchy distribution around its minimum: without it, half of the numbers were too small for models that
    were aimed (``benchmarks/rows_needed.py``).

    Parameters
    ----------
    counts : GroupCounts
        The counts of the groups that are compared.
    lines : mapping of str to float
        Each ratio's minimum.
    error : float
        The error of each end of the intervals.

    Returns
    -------
    float
        At least 1; infinity if it is more than 100, of which too few rows can say nothing.

    Examples
    --------
    >>> counts = GroupCounts(*(np.array(part) for part in ([1000, 1000], [9, 9], [50, 90], [5, 5])))
    >>> 5 < rows_needed(counts, {"fpr_ratio": 0.8}, 0.025) < 100
    True
    """
    generator = np.random.default_rng(_SEED)
    cells = np.stack(
        [
            counts.negatives - counts.false_positives,
            counts.false_positives,
            counts.positives - counts.true_positives,
            counts.true_positives,
        ]
    )
    n_groups = cells.shape[1]
    n_draws = max(_TRIES // n_groups, 20)
    expected = generator.gamma(cells + 0.5, size=(n_draws, *cells.shape))
    weights = np.ones(n_draws)
    for ratio, line in lines.items():
        events, members = RATIOS[ratio].counts(_counts_of(expected))
        rates = events / members
        with np.errstate(divide="ignore"):
            far = np.log(rates.min(axis=1) / rates.max(axis=1) / line)
        weights /= 1 + (far / _NEAR) ** 2
    weights /= weights.sum()

    def share_decided(times: float) -> float:
        drawn = np.random.default_rng(_SEED).poisson(times * expected).astype(np.float64)
        many = _counts_of(drawn)
        held, missed = np.ones(n_draws, dtype=np.bool_), np.zeros(n_draws, dtype=np.bool_)
        for ratio, line in lines.items():
            low, high = _many_ratio_intervals(*RATIOS[ratio].counts(many), error)
            held &= low >= line - ROUNDING
            missed |= high < line - ROUNDING
        return float(weights @ (held | missed))

    return least_times(share_decided, _MOST_TIMES)


def _counts_of(cells: Floats) -> GroupCounts:
    """Return the counts of cells: rows of each label that are refused or selected, for many draws."""
    true_negatives, false_positives, false_negatives, true_positives = np.moveaxis(cells, 1, 0)
    return GroupCounts(
        true_negatives + false_positives, false_negatives + true_positives, false_positives, true_positives
    )


def _many_ratio_intervals(events: Floats, sizes: Floats, error: float) -> tuple[Floats, Floats]:
    """Return what `ratio_interval` gives for each row of counts, of shape (n_draws, n_groups)."""
    everyone = np.arange(events.shape[1])
    with np.errstate(invalid="ignore", divide="ignore"):
        enough, shares = has_enough(events, sizes), events / sizes
        count = enough.sum(axis=1)
        n_pairs = np.maximum(count * (count - 1) // 2, 1)[:, np.newaxis]
        pairs = enough[:, :, np.newaxis] & enough[:, np.newaxis] & ~np.eye(len(everyone), dtype=np.bool_)
        ends = _quick_limits(shares, sizes, np.full_like(n_pairs, error, float))
        low = pair_limits(shares, *ends, everyone)
        corrected_ends = _quick_limits(shares, sizes, error / n_pairs)
        high = pair_limits(shares, *corrected_ends, everyone, upper=True)
    least = np.where(pairs, low, np.inf).min(axis=(1, 2))
    most = np.minimum(np.where(pairs, high, np.inf).min(axis=(1, 2)), 1.0)
    known = (count > 1) & ~(most - least > TELLS_NOTHING)
    return np.where(known & enough.all(axis=1), least, np.nan), np.where(known, most, np.nan)


def _quick_limits(shares: Floats, sizes: Floats, error: Floats) -> tuple[Floats, Floats]:
    """Return limits of shares, from the normal distribution for so many events that it does not matter."""
    from scipy.special import ndtri

    far = -ndtri(error) * np.sqrt(shares * (1 - shares) / sizes)
    low, high = shares - far, shares + far
    few = ~(np.minimum(shares, 1 - shares) * sizes > _MANY)
    low[few], high[few] = share_limits(shares[few], sizes[few], np.broadcast_to(error, few.shape)[few])
    return low, high
