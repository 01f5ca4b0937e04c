"""Limits of shares and of their ratios that hold the truth also where events are few. Arrays in, arrays out.

A share has Clopper and Pearson's limits, which hold it at least as often as they say whatever it is, also at
no events and at all. Rows of unequal weight count for as many rows of equal weight as would make the share
as unsure (Korn and Graubard).

The ratio of two shares gets its limits from those of the two (Donner and Zou's method of variance recovery),
which is defined at no events as well. A ratio of the lowest to the highest of several shares is bounded by
all pairs: the pair that truly is the extreme one is among them. So the least of the pairs' lower limits holds
as it is; of the upper limits the least holds if each is corrected for the number of pairs.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats64 = NDArray[np.float64]

_PAIRS_AT_ONCE = 1_000_000  # draws times pairs of groups held in memory


def share_limits(shares: Floats64, sizes: Floats64, error: float) -> tuple[Floats64, Floats64]:
    """Return Clopper and Pearson's lower and upper limits of shares.

    Parameters
    ----------
    shares : ndarray
        Events over members; NaN without members.
    sizes : ndarray of the same shape
        The members; for weighted rows their effective number.
    error : float
        How often each of the two limits may be on the wrong side.

    Examples
    --------
    No event among 11 is compatible with a share of 28 %.

    >>> low, high = share_limits(np.array([0.0, 0.5]), np.array([11, 100]), 0.025)
    >>> low.round(3), high.round(3)
    (array([0.   , 0.398]), array([0.285, 0.602]))
    """
    from scipy.special import betainccinv, betaincinv

    events = shares * sizes
    others = np.maximum(sizes - events, 0.0)
    with np.errstate(invalid="ignore"):
        low = np.where(events > 0, betaincinv(events, others + 1, error), 0.0)
        high = np.where(others > 0, betainccinv(events + 1, others, error), 1.0)
    undefined = np.isnan(shares)
    return np.where(undefined, np.nan, low), np.where(undefined, np.nan, high)


def effective_sizes(
    events: Floats64, members: Floats64, squared_events: Floats64, squared_members: Floats64
) -> Floats64:
    """Return as how many rows of equal weight weighted ones tell about their share.

    Parameters
    ----------
    events, members : ndarray
        Sums of weights.
    squared_events, squared_members : ndarray
        Sums of squared weights.

    Examples
    --------
    >>> effective_sizes(np.array(2.0), np.array(4.0), np.array(2.0), np.array(4.0))  # four rows of weight 1
    array(4.)
    >>> effective_sizes(np.array(3.0), np.array(6.0), np.array(9.0), np.array(12.0))  # 3 of 3, 1, 1, 1
    array(3.)
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        by_weights = members**2 / squared_members
        shares = events / members
        spread = squared_events * (1 - shares) ** 2 + (squared_members - squared_events) * shares**2
        by_events = shares * (1 - shares) * members**2 / spread
    sizes = np.where(spread > 0, np.fmin(by_events, by_weights), by_weights)
    return np.where(members > 0, sizes, 0.0)


def ratio_limits(
    shares: Floats64, sizes: Floats64, error: float, elsewhere: Floats64 | None = None
) -> tuple[float, float]:
    """Return limits of the lowest true share over the highest.

    Parameters
    ----------
    shares, sizes : ndarray of shape (n_groups,)
        As for :func:`share_limits`; of two groups or more, none of them empty.
    error : float
        How often each of the two limits may be on the wrong side.
    elsewhere : ndarray of shape (n_draws, n_groups), default=None
        The shares at other thresholds that the true one may be, drawn as likely as they are. None if the
        threshold is known.

    Examples
    --------
    >>> low, high = ratio_limits(np.array([0.05, 0.10]), np.array([1000.0, 1000.0]), 0.025)
    >>> round(low, 2), round(high, 2)
    (0.35, 0.7)
    """
    n_groups = len(shares)
    n_pairs = n_groups * (n_groups - 1) // 2
    least, most = np.inf, 1.0
    at_once = max(1, _PAIRS_AT_ONCE // (n_groups * (1 if elsewhere is None else len(elsewhere))))
    ends = share_limits(shares, sizes, error)
    corrected_ends = share_limits(shares, sizes, error / n_pairs)
    for start in range(0, n_groups, at_once):
        lowest = slice(start, start + at_once)
        low = _lower_of_pairs(shares, *ends, lowest)
        high = _upper_of_pairs(shares, *corrected_ends, lowest)
        if elsewhere is not None:
            low, high = _widen(low, high, shares, sizes, elsewhere, lowest, error, n_pairs)
        others = np.arange(n_groups) != np.arange(n_groups)[lowest, np.newaxis]
        least = min(least, float(low[others].min()))
        most = min(most, float(high[others].min()))
    return least, most


def _lower_of_pairs(shares: Floats64, low: Floats64, high: Floats64, lowest: slice) -> Floats64:
    """Return the lower limit of each chosen group's share over every group's."""
    product = np.outer(shares[lowest], shares)
    above, below = (low * (2 * shares - low))[lowest, np.newaxis], high * (2 * shares - high)
    root = np.sqrt(np.maximum(product**2 - above * below, 0.0))
    with np.errstate(invalid="ignore"):
        return np.where(above > 0, above / (product + root), 0.0)


def _upper_of_pairs(shares: Floats64, low: Floats64, high: Floats64, lowest: slice) -> Floats64:
    """Return the upper limit of each chosen group's share over every group's, infinite over no events."""
    product = np.outer(shares[lowest], shares)
    above, below = (high * (2 * shares - high))[lowest, np.newaxis], low * (2 * shares - low)
    root = np.sqrt(np.maximum(product**2 - above * below, 0.0))
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(below > 0, (product + root) / below, np.inf)


def _widen(
    low: Floats64,
    high: Floats64,
    shares: Floats64,
    sizes: Floats64,
    elsewhere: Floats64,
    lowest: slice,
    error: float,
    n_pairs: int,
) -> tuple[Floats64, Floats64]:
    """Add to the pairs' limits what the ratios vary with the threshold: independent, so squares add up."""
    from scipy.special import ndtri

    def ratios(rates: Floats64) -> Floats64:
        logs = np.log((rates * sizes + 0.5) / (sizes + 0.5))
        return logs[..., lowest, np.newaxis] - logs[..., np.newaxis, :]

    here, drawn = ratios(shares), ratios(elsewhere)
    down = here - np.quantile(drawn, error, axis=0, method="lower")
    up = np.quantile(drawn, 1 - error, axis=0, method="higher") - here
    up *= ndtri(error / n_pairs) / ndtri(error)
    with np.errstate(divide="ignore", invalid="ignore"):
        log_low, log_high = np.log(low), np.log(high)
        own_down, own_up = np.maximum(here - log_low, 0.0), np.maximum(log_high - here, 0.0)
        low = np.where(low > 0, low * np.exp(own_down - np.hypot(own_down, np.maximum(down, 0.0))), 0.0)
        high = np.where(
            np.isfinite(high), high * np.exp(np.hypot(own_up, np.maximum(up, 0.0)) - own_up), np.inf
        )
    return low, high
