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
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fado._messages import list_names
from fado._typing import Bools, Floats, Integers
from fado.metrics._rates import RATES, RATIOS, GroupCounts, Rate, compared_counts, count_by_group, rates_from
from fado.metrics._threshold import Budget, predicted_positive

Bounds = tuple[float, float]

_PAIRS_AT_ONCE = 1_000_000  # pairs of groups held in memory, times draws
_NONE = (math.nan, math.nan)
_ENOUGH_EXPECTED = 5.0  # events of a group, at the rate of all compared groups together
_ENOUGH_SEEN = 15.0  # events of a group, however few are expected
TELLS_NOTHING = 0.99  # the width of an interval of a ratio
_FEW_THRESHOLDS = 5
ROUNDING = 1e-12


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
    pairs = pair_limits(shares, low, high, np.arange(len(shares)))
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
    least, most = np.inf, 1.0
    at_once = max(1, _PAIRS_AT_ONCE // n_groups)
    for start in range(0, n_groups, at_once):
        lowest = np.arange(start, min(start + at_once, n_groups))
        others = np.flatnonzero(lowest[:, np.newaxis] != np.arange(n_groups))
        low = pair_limits(shares, *ends, lowest).ravel()[others]
        high = pair_limits(shares, *corrected_ends, lowest, upper=True).ravel()[others]
        if elsewhere is None:
            least, most = min(least, float(low.min())), min(most, float(high.min()))
        else:
            pairs = lowest[others // n_groups], others % n_groups
            here, drawn = (np.log((rates * sizes + 0.5) / (sizes + 0.5)) for rates in (shares, elsewhere))
            least = _least_moved(low, *pairs, least, here, drawn, error)
            most = _least_moved(high, *pairs, most, here, drawn, error, upper=True, n_pairs=n_pairs)
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
    enough = has_enough(events, sizes)
    if enough.sum() < 2:
        return _NONE
    low, high = ratio_limits(events[enough] / sizes[enough], sizes[enough], error)
    if high - low > TELLS_NOTHING:
        return _NONE
    return (low, high) if enough.all() else (math.nan, high)


def is_above(number: float, line: float) -> bool:
    """Compare a quotient of rates with a minimum: 0.08 / 0.1 is less than 0.8 by rounding alone.

    Parameters
    ----------
    number, line : float
        The quotient, and the minimum.
    """
    return bool(number >= line - ROUNDING)


def pair_limits(
    shares: Floats, low: Floats, high: Floats, lowest: Integers, *, upper: bool = False
) -> Floats:
    """Return a limit of each chosen group's share over every group's, from limits of the shares.

    A lower limit of a ratio comes from the lower end of its share and the upper end of the other; an upper
    limit from the other two, and it is infinite over no events.
    """
    near, far = (high, low) if upper else (low, high)
    product = shares[..., lowest, np.newaxis] * shares[..., np.newaxis, :]
    above = (near * (2 * shares - near))[..., lowest, np.newaxis]
    below = (far * (2 * shares - far))[..., np.newaxis, :]
    total = product + np.sqrt(np.maximum(product**2 - above * below, 0.0))
    with np.errstate(divide="ignore", invalid="ignore"):
        if upper:
            return np.where(below > 0, total / below, np.inf)
        return np.where(above > 0, above / total, 0.0)


def _least_moved(
    limits: Floats,
    above: Integers,
    below: Integers,
    known: float,
    here: Floats,
    drawn: Floats,
    error: float,
    *,
    upper: bool = False,
    n_pairs: int = 1,
) -> float:
    """Return the least of the limits of pairs, widened by how their ratios vary with the threshold.

    `here` and `drawn` are logarithms of rates; the threshold adds to the rows' error, in squares. Only pairs
    that may be below the `known` least are computed draw by draw. An upper limit only rises; a lower one
    falls at most by the largest change between its two rates. The lowest floor comes first: it rules out
    most.
    """
    from scipy.special import ndtri

    sign = 1 if upper else -1
    correction = float(ndtri(error / n_pairs) / ndtri(error))
    floors = limits
    if not upper:
        fall = np.maximum(here - drawn.min(axis=0), 0.0)
        rise = np.maximum(drawn.max(axis=0) - here, 0.0)
        floors = limits * np.exp(-(fall[above] + rise[below]))

    def widened(chosen: Integers) -> float:
        ratio = here[above[chosen]] - here[below[chosen]]
        ratios = drawn[:, above[chosen]] - drawn[:, below[chosen]]
        if upper:
            moved = np.quantile(ratios, 1 - error, axis=0, method="higher")
        else:
            moved = np.quantile(ratios, error, axis=0, method="lower")
        by_threshold = np.maximum(sign * (moved - ratio), 0.0) * correction
        with np.errstate(divide="ignore", invalid="ignore"):
            by_rows = np.maximum(sign * (np.log(limits[chosen]) - ratio), 0.0)
            factors = np.exp(sign * (np.hypot(by_rows, by_threshold) - by_rows))
            return float(np.where(limits[chosen] > 0, limits[chosen] * factors, 0.0).min())

    first = np.array([np.argmin(floors)])
    if floors[first] < known:
        known = min(known, widened(first))
    left = np.flatnonzero(floors < known)
    at_once = max(1, _PAIRS_AT_ONCE // len(drawn))
    for start in range(0, len(left), at_once):
        known = min(known, widened(left[start : start + at_once]))
    return known


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

    def rates(self, rate: Rate, *, of_all: bool = False) -> tuple[Floats, Floats]:
        """Return a rate of every group, or over all of them, and its effective number of members."""
        sums = [*rate.counts(self.counts), *rate.counts(self._squares)]
        if of_all:
            sums = [np.asarray(part.sum()) for part in sums]
        return rates_from(rate, self.counts, of_all=of_all), effective_sizes(*sums)


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
    bounds = {name: _NONE for name in metrics if name != "selected"}
    bounds["threshold"] = rows.threshold, rows.threshold
    if math.isnan(metrics["tpr"]):  # all scores are equal
        return bounds, []
    budget_title = f"`max_fpr` {budget.limit:g}" if budget.kind == "fpr" else str(budget)
    of_weight = "" if rows.weights is None else " by effective number"
    # The rows' counts at each of a few possible thresholds; or at many, each as often as it may be the one.
    possible, drawn = GroupCounts(*(np.asarray(part)[np.newaxis] for part in rows.counts)), None
    spent = None
    if not threshold_given:
        spent = "fpr" if budget.kind == "fpr" else "selection_rate"  # all other budgets are of all rows
        counted, share = budget.counted(rows.positive), budget.share(len(rows.scores))
        weights, size = rows.weights, float(rows.rates(RATES[spent], of_all=True)[1])
        if budget.kind == "top_k":  # counts rows as they are, whatever they weigh
            weights, size = None, len(counted)
        if size * math.log(max(share, 1 - share)) > math.log(error):
            # Likely all on one side of it.
            bounds["threshold"] = _NONE
            bounds[spent] = _rate_bounds(rows, RATES[spent], possible, None, error)
            return bounds, [
                f"Only `{spent}` has an interval: {_rounded(size)} {RATES[spent].members}"
                f"{'' if weights is None else of_weight} are too few to estimate the threshold of "
                f"{budget_title}."
            ]
        thresholds = draw_thresholds(
            counted, rows.scores, share=share, n_draws=n_draws, rng=rng, weights=weights, n_effective=size
        )
        low, high = bounds["threshold"] = _quantiles(thresholds, error, rows.threshold)
        drawn = count_at(thresholds, rows.positive, rows.scores, rows.codes, rows.n_groups, rows.weights)
        levels, first = np.unique(thresholds, return_index=True)
        first = first[(low <= levels) & (levels <= high)]
        if len(first) <= _FEW_THRESHOLDS:
            events = (
                np.vstack([now, then[first]]) for now, then in zip(possible[2:], drawn[2:], strict=True)
            )
            possible, drawn = GroupCounts(*possible[:2], *events), None
    for name in RATES:
        if name not in metrics:
            continue
        # How the rate of a budget varies with the threshold is how the threshold varies with the rate: to be
        # counted once.
        bounds[name] = _rate_bounds(rows, RATES[name], possible, None if name == spent else drawn, error)
    reasons = []
    for name, rate in RATIOS.items():
        if math.isnan(metrics[name]):
            continue
        bounds[name], lacking = _ratio_bounds(rows, rate, compared, possible, drawn, error)
        if len(lacking):
            shares, sizes = rows.rates(rate)
            groups = np.flatnonzero(compared)[lacking].tolist()
            seen = list_names(
                [
                    f"{names[group]} ({_rounded(shares[group] * sizes[group])} of {_rounded(sizes[group])} "
                    f"{rate.members}{of_weight})"
                    for group in groups
                ]
            )
            reasons.append(f"`{name}` has no interval: too few {rate.events} in group {seen}.")
        elif bounds[name] is _NONE:
            reasons.append(
                f"`{name}` has no interval: the threshold of {budget_title} is too uncertain for it."
            )
    return bounds, reasons


def _rate_bounds(
    rows: MeasuredRows, rate: Rate, possible: GroupCounts, drawn: GroupCounts | None, error: float
) -> Bounds:
    """Return limits of a rate over all groups."""
    share, size = rows.rates(rate, of_all=True)
    lows, highs = share_limits(rates_from(rate, possible, of_all=True), size, error)
    low, high = float(lows.min()), float(highs.max())
    if drawn is None:
        return low, high
    lowest, highest = _quantiles(rates_from(rate, drawn, of_all=True), error, float(share))
    # Errors of rows and of the threshold are independent: their squares add up.
    down, up = math.hypot(share - low, share - lowest), math.hypot(high - share, highest - share)
    return max(float(share) - down, 0.0), min(float(share) + up, 1.0)


def _ratio_bounds(
    rows: MeasuredRows,
    rate: Rate,
    compared: Bools,
    possible: GroupCounts,
    drawn: GroupCounts | None,
    error: float,
) -> tuple[Bounds, Sequence[int]]:
    """Return limits of a ratio between groups, or none and the groups that have too few events for any.

    None and no groups: the threshold is too uncertain for the ratio.
    """
    shares, sizes = (part[compared] for part in rows.rates(rate))
    enough = has_enough(shares * sizes, sizes)
    if not enough.all():
        return _NONE, np.flatnonzero(~enough).tolist()
    if drawn is not None:
        elsewhere = rates_from(rate, compared_counts(drawn, compared))
        low, high = ratio_limits(shares, sizes, error, elsewhere)
    else:
        at_each = rates_from(rate, compared_counts(possible, compared))
        lows, highs = zip(*(ratio_limits(there, sizes, error) for there in at_each), strict=True)
        low, high = min(lows), max(highs)
    if high - low <= TELLS_NOTHING:
        return (low, high), []
    low, high = ratio_limits(shares, sizes, error)  # with the threshold known
    return _NONE, [int(np.argmin(shares * sizes))] if high - low > TELLS_NOTHING else []


def has_enough(events: Floats, sizes: Floats) -> Bools:
    """Return which groups, in the last axis, have enough events for an interval.

    Mainly the expected events decide: intervals only for groups that have events by chance would have less
    than nominal coverage.
    """
    with np.errstate(invalid="ignore"):
        expected = sizes * events.sum(axis=-1, keepdims=True) / sizes.sum(axis=-1, keepdims=True)
    less = 1 - 1e-9  # of sums
    return np.asarray((expected > _ENOUGH_EXPECTED * less) | (events > _ENOUGH_SEEN * less))


def _quantiles(draws: Floats, error: float, estimate: float) -> Bounds:
    """Return the quantiles of draws, rounded outwards and widened to hold the estimate."""
    low = np.quantile(draws, error, method="lower")
    high = np.quantile(draws, 1 - error, method="higher")
    return min(float(low), estimate), max(float(high), estimate)


def _rounded(count: float) -> str:
    return f"{round(float(count), 1):g}"


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
