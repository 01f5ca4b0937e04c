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

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fado.metrics._inputs import Integers

Floats64 = NDArray[np.float64]

_PAIRS_AT_ONCE = 1_000_000  # pairs of groups held in memory, times draws


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


def lower_ratio_limit(shares: Floats64, sizes: Floats64, error: float) -> float:
    """Return a lower limit of the lowest true share over the highest, at a threshold that is known.

    It is the least over all ordered pairs of groups, each from Jeffreys' limits of its two shares. All pairs
    must be above a line for their least to be, so the number of pairs needs no correction.

    Parameters
    ----------
    shares, sizes : ndarray of shape (n_groups,)
        As for :func:`share_limits`; of two groups or more, none of them empty.
    error : float
        How often the limit may be above the truth.

    Examples
    --------
    >>> equal = np.array([0.05, 0.05])
    >>> round(lower_ratio_limit(equal, np.array([10_000.0, 10_000.0]), 0.1), 3)
    0.924
    """
    from scipy.special import betaincinv

    events = shares * sizes
    others = np.maximum(sizes - events, 0.0)
    low, high = (betaincinv(events + 0.5, others + 0.5, at) for at in (error, 1 - error))
    low, high = np.where(events > 0, low, 0.0), np.where(others > 0, high, 1.0)
    pairs = _lower_of_pairs(shares, low, high, np.arange(len(shares)))
    return float(pairs[~np.eye(len(shares), dtype=np.bool_)].min())


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
    ends = share_limits(shares, sizes, error)
    corrected_ends = share_limits(shares, sizes, error / n_pairs)
    moving = None if elsewhere is None else _Moving(shares, sizes, elsewhere, error, n_pairs)
    least, most = np.inf, 1.0
    at_once = max(1, _PAIRS_AT_ONCE // n_groups)
    for start in range(0, n_groups, at_once):
        lowest = np.arange(start, min(start + at_once, n_groups))
        others = np.flatnonzero(lowest[:, np.newaxis] != np.arange(n_groups))
        low = _lower_of_pairs(shares, *ends, lowest).ravel()[others]
        high = _upper_of_pairs(shares, *corrected_ends, lowest).ravel()[others]
        if moving is None:
            least, most = min(least, float(low.min())), min(most, float(high.min()))
        else:
            pairs = lowest[others // n_groups], others % n_groups
            least, most = moving.least(low, *pairs, least), moving.most(high, *pairs, most)
    return least, most


def _lower_of_pairs(shares: Floats64, low: Floats64, high: Floats64, lowest: Integers) -> Floats64:
    """Return the lower limit of each chosen group's share over every group's."""
    product = np.outer(shares[lowest], shares)
    above, below = (low * (2 * shares - low))[lowest, np.newaxis], high * (2 * shares - high)
    root = np.sqrt(np.maximum(product**2 - above * below, 0.0))
    with np.errstate(invalid="ignore"):
        return np.where(above > 0, above / (product + root), 0.0)


def _upper_of_pairs(shares: Floats64, low: Floats64, high: Floats64, lowest: Integers) -> Floats64:
    """Return the upper limit of each chosen group's share over every group's, infinite over no events."""
    product = np.outer(shares[lowest], shares)
    above, below = (high * (2 * shares - high))[lowest, np.newaxis], low * (2 * shares - low)
    root = np.sqrt(np.maximum(product**2 - above * below, 0.0))
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(below > 0, (product + root) / below, np.inf)


class _Moving:
    """How the ratios of pairs vary with the threshold, which their limits take in: squares add up.

    Only pairs that may have the least limit are looked at draw by draw. An upper limit only rises; a lower
    one falls by no more than the furthest that its two rates move apart.
    """

    def __init__(
        self, shares: Floats64, sizes: Floats64, elsewhere: Floats64, error: float, n_pairs: int
    ) -> None:
        from scipy.special import ndtri

        self._here, self._drawn = (
            np.log((rates * sizes + 0.5) / (sizes + 0.5)) for rates in (shares, elsewhere)
        )
        self._fall = np.maximum(self._here - self._drawn.min(axis=0), 0.0)
        self._rise = np.maximum(self._drawn.max(axis=0) - self._here, 0.0)
        self._error = error
        self._correction = float(ndtri(error / n_pairs) / ndtri(error))
        self._at_once = max(1, _PAIRS_AT_ONCE // len(elsewhere))

    def least(self, low: Floats64, above: Integers, below: Integers, known: float) -> float:
        """Return the least of the lower limits of pairs and of one that is known."""
        floor = low * np.exp(-(self._fall[above] + self._rise[below]))
        return self._least_of(self._lower, floor, (low, above, below), known)

    def most(self, high: Floats64, above: Integers, below: Integers, known: float) -> float:
        """Return the least of the upper limits of pairs and of one that is known."""
        return self._least_of(self._upper, high, (high, above, below), known)

    def _least_of(
        self, widened: Callable[..., Floats64], floor: Floats64, pairs: tuple[Any, ...], known: float
    ) -> float:
        """Return the least widened limit, of which none is below its floor; the lowest floor goes first."""
        first = int(np.argmin(floor))
        chosen = np.array([first])
        if floor[first] < known:
            known = min(known, float(widened(*(part[chosen] for part in pairs)).min()))
        chosen = np.flatnonzero(floor < known)
        for start in range(0, len(chosen), self._at_once):
            batch = chosen[start : start + self._at_once]
            known = min(known, float(widened(*(part[batch] for part in pairs)).min()))
        return known

    def _lower(self, low: Floats64, above: Integers, below: Integers) -> Floats64:
        here, drawn = self._ratios(above, below)
        down = np.maximum(here - np.quantile(drawn, self._error, axis=0, method="lower"), 0.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            own = np.maximum(here - np.log(low), 0.0)
            return np.where(low > 0, low * np.exp(own - np.hypot(own, down)), 0.0)

    def _upper(self, high: Floats64, above: Integers, below: Integers) -> Floats64:
        here, drawn = self._ratios(above, below)
        up = np.maximum(np.quantile(drawn, 1 - self._error, axis=0, method="higher") - here, 0.0)
        up *= self._correction
        own = np.maximum(np.log(high) - here, 0.0)
        return high * np.exp(np.hypot(own, up) - own)

    def _ratios(self, above: Integers, below: Integers) -> tuple[Floats64, Floats64]:
        """Return the logarithms of the pairs' ratios, here and at each threshold that was drawn."""
        return self._here[above] - self._here[below], self._drawn[:, above] - self._drawn[:, below]
