"""Intervals of metrics, and the reason where none can be given.

A share has the limits of Clopper and Pearson, whose coverage is at least nominal for every share, also
without events and without members that have none. Weighted rows count as the number of equally weighted rows
that would give the same variance (Korn and Graubard).

The limits of a ratio of two shares come from those of the two shares (method of variance recovery, Donner and
Zou), which is also defined without events. The ratio of the lowest to the highest of several shares is
bounded over all pairs, because the pair with the extreme true shares is among them. The least of the pairs'
lower limits is valid as it is; the least of the upper limits is valid if each is corrected for the number of
pairs.

These limits are for a given threshold. A threshold that a budget sets on the same rows is itself an estimate.
A budget is a share of some rows: of the negatives, or of all. Of n such rows, the number that scores above
the population's threshold is binomial with that share as its probability, for any distribution of scores, and
for tied scores if ties are broken at random. So each draw of that number gives one of the rows' scores as a
possible population threshold. Unlike bootstrap samples, these draws are not cut off at the highest score. The
limits include how rates and ratios change over these thresholds. If ties leave only a few such thresholds,
the limits are the widest over all of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from fado._messages import list_names
from fado._typing import Bools, Floats, Integers
from fado.metrics._rates import RATES, RATIOS, GroupCounts, Rate, compared_counts, count_by_group
from fado.metrics._threshold import Budget, predicted_positive

Bounds = tuple[float, float]

_PAIRS_AT_ONCE = 1_000_000  # pairs of groups held in memory, times draws
_NONE = (math.nan, math.nan)
ENOUGH_EXPECTED = 5.0  # events of a group, at the rate of all compared groups together
ENOUGH_SEEN = 15.0  # events of a group, however few are expected
TELLS_NOTHING = 0.99  # the width of an interval of a ratio
_FEW_THRESHOLDS = 5
ROUNDING = 1e-12
_OVER_ALL = ("fpr", "tpr", "selection_rate")  # rates of all groups together


def share_limits(shares: Floats, sizes: Floats, error: float | Floats) -> tuple[Floats, Floats]:
    """Return Clopper and Pearson's lower and upper limits of shares.

    Parameters
    ----------
    shares : ndarray
        Events over members; NaN without members.
    sizes : ndarray of the same shape
        The members; for weighted rows their effective number.
    error : float or ndarray
        The error probability of each of the two limits.

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


def lower_ratio_limit(shares: Floats, sizes: Floats, error: float) -> float:
    """Return a lower limit of the lowest true share over the highest, at a threshold that is known.

    It is the least over all ordered pairs of groups, each from Jeffreys' limits of its two shares. All pairs
    must be above a line for their least to be, so the number of pairs needs no correction.

    Parameters
    ----------
    shares, sizes : ndarray of shape (n_groups,)
        As for :func:`share_limits`; of two groups or more, none of them empty.
    error : float
        The probability that the limit is above the true ratio.

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
    pairs = lower_limits(shares, low, high, np.arange(len(shares)))
    return float(pairs[~np.eye(len(shares), dtype=np.bool_)].min())


def effective_sizes(
    events: Floats, members: Floats, squared_events: Floats, squared_members: Floats
) -> Floats:
    """Return the effective number of weighted rows for the variance of their share.

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
    shares: Floats, sizes: Floats, error: float, elsewhere: Floats | None = None
) -> tuple[float, float]:
    """Return limits of the lowest true share over the highest.

    Parameters
    ----------
    shares, sizes : ndarray of shape (n_groups,)
        As for :func:`share_limits`; of two groups or more, none of them empty.
    error : float
        The error probability of each of the two limits.
    elsewhere : ndarray of shape (n_draws, n_groups), default=None
        The shares at possible population thresholds, drawn by their probability. None if the threshold is
        known.

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
        low = lower_limits(shares, *ends, lowest).ravel()[others]
        high = upper_limits(shares, *corrected_ends, lowest).ravel()[others]
        if moving is None:
            least, most = min(least, float(low.min())), min(most, float(high.min()))
        else:
            pairs = lowest[others // n_groups], others % n_groups
            least, most = moving.least(low, *pairs, least), moving.most(high, *pairs, most)
    return least, most


def ratio_interval(events: Floats, sizes: Floats, error: float) -> Bounds:
    """Return limits of the lowest true share over the highest, if groups have enough events.

    Parameters
    ----------
    events, sizes : ndarray of shape (n_groups,)
        Events and members of each group, at a threshold that is known.
    error : float
        The error probability of each of the two limits.

    Returns
    -------
    low, high : float
        NaN where they cannot be estimated. If some groups have too few events, the others still limit the
        ratio from above.

    Examples
    --------
    >>> few = ratio_interval(np.array([50.0, 100.0, 1.0]), np.array([1000.0, 1000.0, 20.0]), 0.025)
    >>> few[0], round(few[1], 2)
    (nan, 0.7)
    """
    lacking = _too_few(events, sizes)
    enough = np.setdiff1d(np.arange(len(sizes)), lacking)
    if len(enough) < 2:
        return _NONE
    low, high = ratio_limits(events[enough] / sizes[enough], sizes[enough], error)
    if high - low > TELLS_NOTHING:
        return _NONE
    return (math.nan, high) if len(lacking) else (low, high)


def is_above(number: float, line: float) -> bool:
    """Compare a quotient of rates with a minimum: 0.08 / 0.1 is less than 0.8 by rounding alone.

    Parameters
    ----------
    number, line : float
        The quotient, and the minimum.
    """
    return bool(number >= line - ROUNDING)


def lower_limits(shares: Floats, low: Floats, high: Floats, lowest: Integers) -> Floats:
    """Return the lower limit of each chosen group's share over every group's."""
    above, _, sum_of_both = _recovered(shares, low, high, lowest)
    with np.errstate(invalid="ignore"):
        return np.where(above > 0, above / sum_of_both, 0.0)


def upper_limits(shares: Floats, low: Floats, high: Floats, lowest: Integers) -> Floats:
    """Return the upper limit of each chosen group's share over every group's, infinite over no events."""
    _, below, sum_of_both = _recovered(shares, high, low, lowest)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(below > 0, sum_of_both / below, np.inf)


def _recovered(shares: Floats, own: Floats, other: Floats, lowest: Integers) -> tuple[Floats, Floats, Floats]:
    """Return what limits of pairs are made of, from one end of each chosen share and one of every share."""
    product = shares[..., lowest, np.newaxis] * shares[..., np.newaxis, :]
    above = (own * (2 * shares - own))[..., lowest, np.newaxis]
    below = (other * (2 * shares - other))[..., np.newaxis, :]
    return above, below, product + np.sqrt(np.maximum(product**2 - above * below, 0.0))


class _Moving:
    """How the ratios of pairs vary with the threshold; limits add this to the error of the rows, in squares.

    Only pairs that may have the least limit are computed draw by draw. An upper limit only rises; a lower
    one falls at most by the largest change between its two rates.
    """

    def __init__(self, shares: Floats, sizes: Floats, elsewhere: Floats, error: float, n_pairs: int) -> None:
        from scipy.special import ndtri

        self._here, self._drawn = (
            np.log((rates * sizes + 0.5) / (sizes + 0.5)) for rates in (shares, elsewhere)
        )
        self._fall = np.maximum(self._here - self._drawn.min(axis=0), 0.0)
        self._rise = np.maximum(self._drawn.max(axis=0) - self._here, 0.0)
        self._error = error
        self._correction = float(ndtri(error / n_pairs) / ndtri(error))
        self._at_once = max(1, _PAIRS_AT_ONCE // len(elsewhere))

    def least(self, low: Floats, above: Integers, below: Integers, known: float) -> float:
        """Return the least of the lower limits of pairs and of one that is known."""
        floor = low * np.exp(-(self._fall[above] + self._rise[below]))
        return self._least_of(self._lower, floor, (low, above, below), known)

    def most(self, high: Floats, above: Integers, below: Integers, known: float) -> float:
        """Return the least of the upper limits of pairs and of one that is known."""
        return self._least_of(self._upper, high, (high, above, below), known)

    def _least_of(
        self, widened: Callable[..., Floats], floor: Floats, pairs: tuple[Any, ...], known: float
    ) -> float:
        """Return the least widened limit, none of which is below its floor; the lowest floor comes first."""
        first = int(np.argmin(floor))
        chosen = np.array([first])
        if floor[first] < known:
            known = min(known, float(widened(*(part[chosen] for part in pairs)).min()))
        chosen = np.flatnonzero(floor < known)
        for start in range(0, len(chosen), self._at_once):
            batch = chosen[start : start + self._at_once]
            known = min(known, float(widened(*(part[batch] for part in pairs)).min()))
        return known

    def _lower(self, low: Floats, above: Integers, below: Integers) -> Floats:
        here, drawn = self._ratios(above, below)
        down = np.maximum(here - np.quantile(drawn, self._error, axis=0, method="lower"), 0.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            own = np.maximum(here - np.log(low), 0.0)
            return np.where(low > 0, low * np.exp(own - np.hypot(own, down)), 0.0)

    def _upper(self, high: Floats, above: Integers, below: Integers) -> Floats:
        here, drawn = self._ratios(above, below)
        up = np.maximum(np.quantile(drawn, 1 - self._error, axis=0, method="higher") - here, 0.0)
        up *= self._correction
        own = np.maximum(np.log(high) - here, 0.0)
        return high * np.exp(np.hypot(own, up) - own)

    def _ratios(self, above: Integers, below: Integers) -> tuple[Floats, Floats]:
        """Return the logarithms of the pairs' ratios, here and at each threshold that was drawn."""
        return self._here[above] - self._here[below], self._drawn[:, above] - self._drawn[:, below]


@dataclass(eq=False)
class MeasuredRows:
    """Rows, the threshold at which they are predicted positive, and their counts there."""

    positive: Bools
    scores: Floats
    codes: Integers
    n_groups: int
    weights: Floats | None
    threshold: float

    def __post_init__(self) -> None:
        predicted = predicted_positive(self.scores, self.threshold)
        counted = (self.positive, predicted, self.codes, self.n_groups)
        self.n_predicted = int(predicted.sum())  # as rows are, whatever they weigh
        self.counts = count_by_group(*counted, self.weights)
        self._squares = self.counts if self.weights is None else count_by_group(*counted, self.weights**2)

    def shares(self, rate: Rate) -> tuple[Floats, Floats]:
        """Return a rate of every group, NaN without members, and its effective number of members."""
        counts = rate.counts(self.counts)
        return shares_in(rate, self.counts), effective_sizes(*counts, *rate.counts(self._squares))

    def share_of_all(self, rate: Rate) -> tuple[float, float]:
        """Return a rate over all groups, and its effective number of members."""
        sums = [part.sum() for counts in (self.counts, self._squares) for part in rate.counts(counts)]
        return float(sums[0] / sums[1]), float(effective_sizes(*map(np.asarray, sums)))


def shares_in(rate: Rate, counts: GroupCounts) -> Floats:
    """Return a rate of every group, NaN without members; a leading axis may hold several counts."""
    events, members = rate.counts(counts)
    with np.errstate(invalid="ignore"):
        return np.asarray(events / members, dtype=np.float64)


def share_of_all_in(rate: Rate, counts: GroupCounts) -> Floats:
    """Return a rate over all groups; a leading axis may hold several counts."""
    events, members = rate.counts(counts)
    return np.asarray(events.sum(axis=-1) / members.sum(axis=-1), dtype=np.float64)


class Whereabouts(NamedTuple):
    """What is known about the population threshold at which metrics are estimated."""

    bounds: Bounds
    possible: GroupCounts  # the rows' counts at each of a few thresholds
    drawn: GroupCounts | None  # or at many, each as often as it may be the one


def find_intervals(
    rows: MeasuredRows,
    metrics: dict[str, float],
    names: Sequence[str],
    compared: Bools,
    *,
    budget: Budget,
    threshold_given: bool,
    error: float,
    n_draws: int,
    rng: np.random.Generator,
) -> tuple[dict[str, Bounds], list[str]]:
    """Return the limits of every metric, and why some metrics with a value have none.

    `metrics` are the values, NaN where undefined; `compared` marks the groups that count in ratios; `error`
    is the error probability of each limit. Unless the threshold was given, `n_draws` of it are drawn.
    """
    here = GroupCounts(*(np.asarray(part)[np.newaxis] for part in rows.counts))
    where, pinned = Whereabouts((rows.threshold,) * 2, here, None), ""
    bounds = {name: _NONE for name in metrics if name != "selected"} | {"threshold": where.bounds}
    if math.isnan(metrics["tpr"]):  # all scores are equal
        return bounds, []
    if not threshold_given:
        pinned = "fpr" if budget.kind == "fpr" else "selection_rate"
        counted, share = budget.counted(rows.positive), budget.share(len(rows.scores))
        weights, size = rows.weights, rows.share_of_all(RATES[pinned])[1]
        if budget.kind == "top_k":  # counts rows as they are, whatever they weigh
            weights, size = None, len(counted)
        if size * math.log(max(share, 1 - share)) > math.log(error):
            # Likely all on one side of it.
            bounds |= {"threshold": _NONE, pinned: _rate_bounds(rows, RATES[pinned], where, error)}
            return bounds, [
                f"Only `{pinned}` has an interval: {_told(size)} {RATES[pinned].members}"
                f"{_effective(weights)} are too few to estimate the threshold of "
                f"{_told_budget(budget)}."
            ]
        thresholds = draw_thresholds(
            counted, rows.scores, share=share, n_draws=n_draws, rng=rng, weights=weights, n_effective=size
        )
        where = _whereabouts(rows, thresholds, here, error)
    bounds["threshold"] = where.bounds
    for name in [name for name in _OVER_ALL if name in metrics]:
        # How the rate of a budget varies with the threshold is how the threshold varies with the rate: to be
        # counted once.
        at = where._replace(drawn=None) if name == pinned else where
        bounds[name] = _rate_bounds(rows, RATES[name], at, error)
    reasons = []
    for name, rate in RATIOS.items():
        if math.isnan(metrics[name]):
            continue
        bounds[name], lacking = _ratio_bounds(rows, rate, compared, where, error)
        if len(lacking):
            seen = _tell_events(rows, rate, np.flatnonzero(compared)[lacking].tolist(), names)
            reasons.append(f"`{name}` has no interval: too few {rate.events} in group {seen}.")
        elif bounds[name] is _NONE:
            reasons.append(
                f"`{name}` has no interval: the threshold of {_told_budget(budget)} is too uncertain for it."
            )
    return bounds, reasons


def _whereabouts(rows: MeasuredRows, thresholds: Floats, here: GroupCounts, error: float) -> Whereabouts:
    """Return the possible population thresholds, given draws."""
    low, high = _quantiles(thresholds, error, rows.threshold)
    drawn = count_at(thresholds, rows.positive, rows.scores, rows.codes, rows.n_groups, rows.weights)
    levels, first = np.unique(thresholds, return_index=True)
    first = first[(low <= levels) & (levels <= high)]
    if len(first) > _FEW_THRESHOLDS:
        return Whereabouts((low, high), here, drawn)
    events = (np.vstack([part, others[first]]) for part, others in zip(here[2:], drawn[2:], strict=True))
    return Whereabouts((low, high), GroupCounts(here.negatives, here.positives, *events), None)


def _rate_bounds(rows: MeasuredRows, rate: Rate, where: Whereabouts, error: float) -> Bounds:
    """Return limits of a rate over all groups."""
    share, size = rows.share_of_all(rate)
    lows, highs = share_limits(share_of_all_in(rate, where.possible), np.asarray(size), error)
    low, high = float(lows.min()), float(highs.max())
    if where.drawn is None:
        return low, high
    lowest, highest = _quantiles(share_of_all_in(rate, where.drawn), error, share)
    # Errors of rows and of the threshold are independent: their squares add up.
    down, up = math.hypot(share - low, share - lowest), math.hypot(high - share, highest - share)
    return max(share - down, 0.0), min(share + up, 1.0)


def _ratio_bounds(
    rows: MeasuredRows, rate: Rate, compared: Bools, where: Whereabouts, error: float
) -> tuple[Bounds, Sequence[int]]:
    """Return limits of a ratio between groups, or none and the groups that have too few events for any.

    None and no groups: the threshold is too uncertain for the ratio.
    """
    shares, sizes = (part[compared] for part in rows.shares(rate))
    lacking = _too_few(shares * sizes, sizes)
    if len(lacking):
        return _NONE, lacking
    if where.drawn is not None:
        low, high = ratio_limits(
            shares, sizes, error, shares_in(rate, compared_counts(where.drawn, compared))
        )
    else:
        at_each = shares_in(rate, compared_counts(where.possible, compared))
        lows, highs = zip(*(ratio_limits(shares, sizes, error) for shares in at_each), strict=True)
        low, high = min(lows), max(highs)
    if high - low <= TELLS_NOTHING:
        return (low, high), []
    low, high = ratio_limits(shares, sizes, error)  # with the threshold known
    return _NONE, [int(np.argmin(shares * sizes))] if high - low > TELLS_NOTHING else []


def _too_few(seen: Floats, sizes: Floats) -> Sequence[int]:
    """Return the groups with too few events for an interval.

    Mainly the expected events decide: intervals only for groups that have events by chance would have less
    than nominal coverage.
    """
    expected = sizes * seen.sum() / sizes.sum()
    enough = (expected > ENOUGH_EXPECTED * (1 - 1e-9)) | (seen > ENOUGH_SEEN * (1 - 1e-9))  # of sums
    return np.flatnonzero(~enough).tolist()


def _quantiles(draws: Floats, error: float, estimate: float) -> Bounds:
    """Return the quantiles of draws, rounded outwards and widened to hold the estimate."""
    low = np.quantile(draws, error, method="lower")
    high = np.quantile(draws, 1 - error, method="higher")
    return min(float(low), estimate), max(float(high), estimate)


def _tell_events(rows: MeasuredRows, rate: Rate, groups: Sequence[int], names: Sequence[str]) -> str:
    shares, sizes = rows.shares(rate)
    return list_names(
        [
            f"{names[group]} ({_told(shares[group] * sizes[group])} of {_told(sizes[group])} "
            f"{rate.members}{_effective(rows.weights)})"
            for group in groups
        ]
    )


def _told(count: float) -> str:
    return f"{round(float(count), 1):g}"


def _told_budget(budget: Budget) -> str:
    return f"`max_fpr` {budget.limit:g}" if budget.kind == "fpr" else str(budget)


def _effective(weights: Floats | None) -> str:
    return "" if weights is None else " by effective number"


def draw_thresholds(
    counted: Bools,
    scores: Floats,
    *,
    share: float,
    n_draws: int,
    rng: np.random.Generator,
    weights: Floats | None = None,
    n_effective: float | None = None,
) -> Floats:
    """Return possible population thresholds: each is one of the scores, or the next float above all."""
    ranked = scores[counted]
    if weights is None:
        n_above = np.minimum(rng.binomial(len(ranked), share, n_draws), len(ranked) - 1)
        deepest = len(ranked) - 1 - n_above.max()
        highest = np.sort(np.partition(ranked, deepest)[deepest:])[::-1]
        highest_refused = highest[n_above]
    else:
        order = np.argsort(ranked, kind="stable")[::-1]
        reached = np.cumsum(weights[counted][order])
        n = max(1, round(len(ranked) if n_effective is None else n_effective))
        drawn = rng.binomial(n, share, n_draws) / n
        n_above = np.searchsorted(reached / reached[-1], drawn, side="right")
        highest_refused = ranked[order][np.minimum(n_above, len(ranked) - 1)]
    levels = np.unique(scores[scores > highest_refused.min()])
    levels = np.append(levels, np.nextafter(scores.max(), np.inf, dtype=scores.dtype))
    return levels[np.searchsorted(levels, highest_refused, side="right")]


def count_at(
    thresholds: Floats,
    positive: Bools,
    scores: Floats,
    codes: Integers,
    n_groups: int,
    weights: Floats | None = None,
) -> GroupCounts:
    """Return the confusion counts of every group at each of many thresholds, from one pass over the rows."""
    levels, place = np.unique(thresholds, return_inverse=True)
    passing = np.flatnonzero(scores >= levels[0])  # few rows score as high as that
    passed = np.searchsorted(levels, scores[passing], side="right") - 1  # the highest level of each row
    cells = 2 * codes + positive
    members = np.bincount(cells, weights, minlength=2 * n_groups).reshape(n_groups, 2)
    at_level = np.bincount(
        cells[passing] * len(levels) + passed,
        None if weights is None else weights[passing],
        minlength=2 * n_groups * len(levels),
    ).reshape(n_groups, 2, len(levels))
    reached = np.cumsum(at_level[..., ::-1], axis=-1)[..., ::-1][..., place]
    return GroupCounts(members[:, 0], members[:, 1], reached[:, 0].T, reached[:, 1].T)
