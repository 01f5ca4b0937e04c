"""Intervals of all metrics of one model, and the reason where none can be given.

At a given threshold the limits of shares and ratios do. A threshold that the same rows set by a budget is an
estimate itself: the limits then take in how rates and ratios change over the thresholds that the population's
may be (see `_draws`). If ties leave only a few such thresholds, each may be the one, and the limits are the
outermost at any of them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from fado._messages import list_names
from fado.metrics._budget import Budget
from fado.metrics._draws import count_at, draw_thresholds
from fado.metrics._inputs import Bools, Floats
from fado.metrics._limits import Floats64, ratio_limits, share_limits
from fado.metrics._rates import RATIOS, GroupCounts, Rate, compared_counts
from fado.metrics._sample import Sample, share_of_all_in, shares_in
from fado.metrics._weights import Weights

Bounds = tuple[float, float]

_NONE = (math.nan, math.nan)
_ENOUGH_EXPECTED = 5.0  # events of a group, at the rate of all compared groups together
_ENOUGH_SEEN = 15.0  # events of a group, however few are expected
_TELLS_NOTHING = 0.99  # the width of an interval of a ratio
_FEW_THRESHOLDS = 5
_RATES = {name: RATIOS[f"{name}_ratio"] for name in ("fpr", "tpr", "selection_rate")}  # over all groups


class Whereabouts(NamedTuple):
    """What is known of the threshold at which metrics are to be told."""

    bounds: Bounds
    possible: GroupCounts  # the rows' counts at each of a few thresholds
    drawn: GroupCounts | None  # or at many, each as often as it may be the one


class Counted(NamedTuple):
    """The rows that a budget is a share of."""

    rate: str  # the metric that is this share
    rows: Bools
    share: float
    weights: Weights | None
    size: float  # as how many rows of equal weight they count


def find_intervals(
    sample: Sample,
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
    """Return the limits of every metric, and why some have none although they have a value.

    Parameters
    ----------
    sample : Sample
        The rows, at the threshold.
    metrics : dict of str to float
        The metrics' values, NaN where undefined.
    names : sequence of str
        What messages call the groups.
    compared : ndarray of bool
        Which groups count in ratios.
    budget : Budget
        What set the threshold, if it was not given.
    threshold_given : bool
        Whether the threshold came from elsewhere, and so is no estimate.
    error : float
        How often each limit may be on the wrong side.
    n_draws : int
        How many thresholds to draw where it is an estimate.
    rng : numpy.random.Generator
        The source of randomness.
    """
    known = Whereabouts((sample.threshold,) * 2, _one(sample.counts), None)
    bounds = {name: _NONE for name in metrics if name != "selected"} | {"threshold": known.bounds}
    if math.isnan(metrics["tpr"]):  # all scores are equal
        return bounds, []
    if threshold_given:
        where, pinned = known, ""
    else:
        counted = _counted_rows(sample, budget)
        pinned = counted.rate
        if counted.size * math.log(max(counted.share, 1 - counted.share)) > math.log(error):
            # Likely all on one side of it.
            bounds |= {"threshold": _NONE, pinned: _rate_bounds(sample, _RATES[pinned], known, error)}
            return bounds, [
                f"Only `{pinned}` has an interval: {_told(counted.size)} {_RATES[pinned].members}"
                f"{_effective(counted.weights)} are too few to tell where the threshold of "
                f"{_told_budget(budget)} lies."
            ]
        where = _estimate_whereabouts(sample, counted, error, n_draws, rng)
    bounds["threshold"] = where.bounds
    for name in [name for name in _RATES if name in metrics]:
        # How the rate of a budget varies with the threshold is how the threshold varies with the rate: to be
        # counted once.
        at = where._replace(drawn=None) if name == pinned else where
        bounds[name] = _rate_bounds(sample, _RATES[name], at, error)
    reasons = []
    for name, rate in RATIOS.items():
        if math.isnan(metrics[name]):
            continue
        bounds[name], lacking = _ratio_bounds(sample, rate, compared, where, error)
        if len(lacking):
            seen = _tell_events(sample, rate, np.flatnonzero(compared)[lacking].tolist(), names)
            reasons.append(f"`{name}` has no interval: too few {rate.events} in group {seen}.")
        elif bounds[name] is _NONE:
            reasons.append(
                f"`{name}` has no interval: it is open where the threshold of {_told_budget(budget)} lies, "
                "and the ratio hangs on that."
            )
    return bounds, reasons


def _one(counts: GroupCounts) -> GroupCounts:
    return GroupCounts(*(np.asarray(part)[np.newaxis] for part in counts))


def _counted_rows(sample: Sample, budget: Budget) -> Counted:
    """Return the rows that a budget is a share of: the negatives, or all rows, of which k are a share too."""
    rate = "fpr" if budget.kind == "fpr" else "selection_rate"
    rows, share = budget.counted(sample.positive), budget.share(len(sample.scores))
    if budget.kind == "top_k":  # counts rows as they are, whatever they weigh
        return Counted(rate, rows, share, None, len(rows))
    return Counted(rate, rows, share, sample.weights, sample.share_of_all(_RATES[rate])[1])


def _estimate_whereabouts(
    sample: Sample, counted: Counted, error: float, n_draws: int, rng: np.random.Generator
) -> Whereabouts:
    """Draw where the population's threshold for a budget may lie."""
    thresholds = draw_thresholds(
        counted.rows,
        sample.scores,
        share=counted.share,
        n_draws=n_draws,
        rng=rng,
        weights=counted.weights,
        n_effective=counted.size,
    )
    low, high = _quantiles(thresholds, error, sample.threshold)
    drawn = count_at(
        thresholds, sample.positive, sample.scores, sample.codes, sample.n_groups, sample.weights
    )
    levels, first = np.unique(thresholds, return_index=True)
    first = first[(low <= levels) & (levels <= high)]
    own = _one(sample.counts)
    if len(first) > _FEW_THRESHOLDS:
        return Whereabouts((low, high), own, drawn)
    events = (np.vstack([part, others[first]]) for part, others in zip(own[2:], drawn[2:], strict=True))
    return Whereabouts((low, high), GroupCounts(own.negatives, own.positives, *events), None)


def _rate_bounds(sample: Sample, rate: Rate, where: Whereabouts, error: float) -> Bounds:
    """Return limits of a rate over all groups."""
    share, size = sample.share_of_all(rate)
    lows, highs = share_limits(share_of_all_in(rate, where.possible), np.asarray(size), error)
    low, high = float(lows.min()), float(highs.max())
    if where.drawn is None:
        return low, high
    lowest, highest = _quantiles(share_of_all_in(rate, where.drawn), error, share)
    # Errors of rows and of the threshold are independent: their squares add up.
    down, up = math.hypot(share - low, share - lowest), math.hypot(high - share, highest - share)
    return max(share - down, 0.0), min(share + up, 1.0)


def _ratio_bounds(
    sample: Sample, rate: Rate, compared: Bools, where: Whereabouts, error: float
) -> tuple[Bounds, Sequence[int]]:
    """Return limits of a ratio between groups, or none and the groups that have too few events for any.

    None and no groups: where the threshold may lie leaves the ratio open.
    """
    shares, sizes = (part[compared] for part in sample.shares(rate))
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
    if high - low <= _TELLS_NOTHING:
        return (low, high), []
    low, high = ratio_limits(shares, sizes, error)  # with the threshold known
    return _NONE, [int(np.argmin(shares * sizes))] if high - low > _TELLS_NOTHING else []


def _too_few(seen: Floats64, sizes: Floats64) -> Sequence[int]:
    """Return the groups whose events cannot tell an interval.

    What is expected decides, and hardly what is seen: intervals that only those groups get which have events
    by chance would miss the truth more often than they say.
    """
    expected = sizes * seen.sum() / sizes.sum()
    enough = (expected > _ENOUGH_EXPECTED * (1 - 1e-9)) | (seen > _ENOUGH_SEEN * (1 - 1e-9))  # of sums
    return np.flatnonzero(~enough).tolist()


def _quantiles(draws: Floats, error: float, estimate: float) -> Bounds:
    """Return the quantiles of draws, rounded outwards and widened to hold the estimate."""
    low = np.quantile(draws, error, method="lower")
    high = np.quantile(draws, 1 - error, method="higher")
    return min(float(low), estimate), max(float(high), estimate)


def _tell_events(sample: Sample, rate: Rate, groups: Sequence[int], names: Sequence[str]) -> str:
    shares, sizes = sample.shares(rate)
    return list_names(
        [
            f"{names[group]} ({_told(shares[group] * sizes[group])} of {_told(sizes[group])} "
            f"{rate.members}{_effective(sample.weights)})"
            for group in groups
        ]
    )


def _told(count: float) -> str:
    return f"{round(float(count), 1):g}"


def _told_budget(budget: Budget) -> str:
    return f"`max_fpr` {budget.limit:g}" if budget.kind == "fpr" else str(budget)


def _effective(weights: Weights | None) -> str:
    return "" if weights is None else " by effective number"
