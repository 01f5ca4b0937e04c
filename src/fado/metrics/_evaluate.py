"""All metrics of one model's scores, with bootstrap intervals."""

from collections.abc import Sequence
from functools import partial
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fado._messages import list_names
from fado.metrics._bootstrap import resample
from fado.metrics._groups import encode_groups
from fado.metrics._inputs import (
    Bools,
    Floats,
    Integers,
    as_scores,
    check_max_fpr,
    encode_target,
    warn_undefined,
)
from fado.metrics._rates import RATIOS, GroupCounts, count_by_group, min_max_ratio, why_undefined
from fado.metrics._row_bootstrap import resample_rows
from fado.metrics._threshold import lowest_threshold
from fado.metrics._weights import Weights, read_weights, rows_of_weight

_INTERVAL = (0.025, 0.975)


def evaluate(
    y_true: Any,
    scores: Any,
    *,
    sensitive_features: Any,
    max_fpr: float = 0.05,
    n_boot: int = 0,
    random_state: int | np.random.Generator | np.random.RandomState | None = None,
    pos_label: Any = None,
    threshold: float | None = None,
    sample_weight: Any = None,
) -> dict[str, float]:
    """Return a model's rates at a false-positive budget and their ratios between groups.

    What is undefined is NaN, with an ``UndefinedMetricWarning`` that names the groups: a ratio for the
    reasons that :func:`fpr_ratio` and the others give; all four ratios if every row gets the same
    prediction, as a model that decides nothing is not fair for it; the rates too if all scores are equal. So
    a NaN keeps such a model off a :func:`pareto_frontier`. Whether a given ``threshold`` keeps the budget is
    for the caller to read from ``fpr``.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        True labels, of exactly two classes.
    scores : array-like of shape (n,)
        Finite scores; higher means more likely positive.
    sensitive_features : Series, array, list, DataFrame or dict
        One protected attribute, or several whose combinations are the groups. Missing values are a group of
        their own. Numbers are groups up to 20 different ones.
    max_fpr : float, default=0.05
        The budget: the share of negatives that may be predicted positive, in (0, 1).
    n_boot : int, default=0
        The number of bootstrap resamples for 95 % intervals; 0 for none.
    random_state : int, Generator, RandomState or None, default=None
        The seed of the resamples.
    pos_label : label, default=None
        The positive class; None is the larger of the two labels.
    threshold : float, default=None
        Predict ``scores >= threshold``, for example with a threshold from validation data. None sets it on
        these rows by the budget, as :func:`threshold_at_fpr` does.
    sample_weight : array-like of shape (n,), default=None
        How many rows each row stands for, such as a survey's weights; None is one for each. Rates are then
        shares of weight, and a group that weighs nothing has none.

    Returns
    -------
    dict of str to float
        ``threshold``, ``fpr``, ``tpr``, ``fpr_ratio``, ``fnr_ratio``, ``tpr_ratio`` and
        ``selection_rate_ratio``; with ``n_boot`` also each with ``_low`` and ``_high`` appended.

    Notes
    -----
    Resamples are stratified by group and label, so that a rare group never vanishes from one. Without a
    given ``threshold`` each resample sets its own by the budget. Only the counts that the metrics need are
    drawn, by their exact law under row-wise resampling (binomial, and for the threshold a bisection of
    binomials over the scores), at O(groups * log(rows)) per resample. With a ``sample_weight`` the counts
    have no such law: rows are drawn, each with its weight, at O(rows) per resample. Rows that weigh nothing
    are never drawn.

    Intervals are the 2.5 and 97.5 percentiles over the resamples in which the metric is defined, widened to
    hold the metric itself where they do not. A ratio is resampled between the groups that have the lowest and
    the highest rate in the data, and capped at 1: the minimum over the maximum of each resample would never
    reach 1, not even for groups with equal true rates. With many groups of nearly equal rates the two are
    extremes partly by chance, and the ratio and its interval lie low.

    Examples
    --------
    >>> from fado.metrics import evaluate
    >>> y_true = [0, 0, 0, 0, 1, 1, 1, 0, 0, 0, 0, 1, 1, 1]
    >>> scores = [0.1, 0.2, 0.3, 0.8, 0.2, 0.5, 0.9, 0.1, 0.2, 0.7, 0.8, 0.1, 0.3, 0.9]
    >>> group = list("aaaaaaabbbbbbb")
    >>> for name, value in evaluate(y_true, scores, sensitive_features=group, max_fpr=0.4).items():
    ...     print(f"{name:21}{value:.3f}")
    threshold            0.500
    fpr                  0.375
    tpr                  0.500
    fpr_ratio            0.500
    fnr_ratio            0.500
    tpr_ratio            0.500
    selection_rate_ratio 1.000
    """
    check_max_fpr(max_fpr)
    if not isinstance(n_boot, Integral) or n_boot < 0:
        raise ValueError(f"`n_boot` must be a whole number of at least 0, got {n_boot!r}.")
    if threshold is not None and np.isnan(threshold):
        raise ValueError("`threshold` must be a number, got nan; pass None to set it by `max_fpr`.")
    positive = encode_target(y_true, pos_label).positive
    scores = as_scores(scores, len(positive))
    weights = read_weights(sample_weight, len(positive))
    codes, names = encode_groups(sensitive_features, len(positive))
    result, reasons = measure(
        positive,
        scores,
        codes,
        names,
        max_fpr=max_fpr,
        n_boot=int(n_boot),
        random_state=random_state,
        threshold=threshold,
        sample_weight=weights,
    )
    for reason in reasons:
        warn_undefined(reason)
    return result


def measure(
    positive: Bools,
    scores: Floats,
    codes: Integers,
    names: Sequence[str],
    *,
    max_fpr: float = 0.05,
    n_boot: int = 0,
    random_state: int | np.random.Generator | np.random.RandomState | None = None,
    threshold: float | None = None,
    sample_weight: Weights | None = None,
) -> tuple[dict[str, float], list[str]]:
    """Do the work of :func:`evaluate` on rows that have been read, in silence.

    For those who judge many models on the same rows, and read and check these once: nothing is checked here
    but that both labels weigh something.

    Parameters
    ----------
    positive : ndarray of bool, of shape (n,)
        Which rows hold the positive label; some do, and some do not.
    scores : ndarray of float16, float32 or float64, of shape (n,)
        Finite scores; higher means more likely positive.
    codes : ndarray of int, of shape (n,)
        Each row's group, as a position in ``names``.
    names : sequence of str
        What messages call the groups. One without rows leaves the ratios undefined.
    max_fpr : float, default=0.05
        The budget: the share of negatives that may be predicted positive, in (0, 1).
    n_boot : int, default=0
        The number of bootstrap resamples for 95 % intervals; 0 for none.
    random_state : int, Generator, RandomState or None, default=None
        The seed of the resamples.
    threshold : float, default=None
        Predict ``scores >= threshold``; None sets it on these rows by the budget.
    sample_weight : ndarray of float64, of shape (n,), default=None
        How many rows each row stands for, none of them negative; None is one for each.

    Returns
    -------
    metrics : dict of str to float
        As :func:`evaluate` returns them.
    reasons : list of str
        Why metrics are undefined: the sentences that :func:`evaluate` warns with.

    Examples
    --------
    The second group has no negatives, and so no false-positive rate.

    >>> import numpy as np
    >>> from fado.metrics import measure
    >>> positive = np.array([False, False, True, True, True])
    >>> scores = np.array([0.1, 0.6, 0.7, 0.05, 0.4])
    >>> codes = np.array([0, 0, 0, 0, 1])
    >>> metrics, reasons = measure(positive, scores, codes, ["'f'", "'m'"], max_fpr=0.5)
    >>> metrics["threshold"], metrics["fpr"], metrics["tpr_ratio"], metrics["fpr_ratio"]
    (0.4, 0.5, 0.5, nan)
    >>> reasons
    ["`fpr_ratio` is undefined and set to NaN: no negatives in group 'm'."]
    """
    weights, positive, scores, codes = rows_of_weight(sample_weight, positive, scores, codes)
    chosen = lowest_threshold(positive, scores, max_fpr, weights) if threshold is None else float(threshold)
    counts = count_by_group(positive, scores.astype(np.float64) >= chosen, codes, len(names), weights)
    metrics = {name: float(value) for name, value in (_rates(counts) | _ratios(counts)).items()}
    if scores.min() == scores.max():
        metrics = dict.fromkeys(metrics, float("nan"))
        reasons = [
            "All metrics are undefined and set to NaN: "
            f"all scores are {scores[0]}, in group {list_names(names)}."
        ]
    else:
        reasons = _undefined_ratios(counts, names, weighted=sample_weight is not None)
    result = {"threshold": chosen, **metrics}
    if n_boot == 0:
        return result, reasons
    draw = partial(resample) if weights is None else partial(resample_rows, weights=weights)
    thresholds, resampled = draw(
        positive,
        scores,
        codes,
        len(names),
        max_fpr=max_fpr,
        threshold=threshold,
        n_boot=n_boot,
        rng=np.random.default_rng(random_state),
    )
    resampled_metrics = {"threshold": thresholds, **_rates(resampled), **_resampled_ratios(resampled, counts)}
    for name, draws in resampled_metrics.items():
        result[f"{name}_low"], result[f"{name}_high"] = _interval(result[name], draws)
        n_undefined = int(np.isnan(draws).sum())
        if 0 < n_undefined < len(draws) and not np.isnan(result[name]):
            reasons.append(
                f"`{name}` is undefined in {n_undefined} of {len(draws)} resamples; "
                "its interval is over the others."
            )
    return result, reasons


def _rates(counts: GroupCounts) -> dict[str, NDArray[np.float64]]:
    """Return the rates over all groups, for one set of counts or one per resample."""
    return {
        "fpr": counts.false_positives.sum(axis=-1) / counts.negatives.sum(axis=-1),
        "tpr": counts.true_positives.sum(axis=-1) / counts.positives.sum(axis=-1),
    }


def _ratios(counts: GroupCounts) -> dict[str, NDArray[np.float64]]:
    """Return the ratios between groups, NaN if every row gets the same prediction."""
    alike = _predicted_alike(counts)
    return {
        name: np.where(alike, np.nan, min_max_ratio(*rate.counts(counts))) for name, rate in RATIOS.items()
    }


def _resampled_ratios(resampled: GroupCounts, counts: GroupCounts) -> dict[str, NDArray[np.float64]]:
    """Return each resample's ratios between the groups that are the extremes in the data."""
    alike = _predicted_alike(resampled)
    ratios = {}
    for name, rate in RATIOS.items():
        with np.errstate(divide="ignore", invalid="ignore"):
            observed, drawn = (np.divide(*rate.counts(source)) for source in (counts, resampled))
            lowest = np.argmin(observed)
            highest = len(observed) - 1 - np.argmax(observed[::-1])  # another group if all are equal
            between = drawn[:, lowest] / drawn[:, highest]
        ratios[name] = np.where(alike, np.nan, np.minimum(between, 1.0))
    return ratios


def _predicted_alike(counts: GroupCounts) -> Bools:
    none = (counts.false_positives == 0) & (counts.true_positives == 0)
    # Cell by cell: sums of the same weights in another order need not be equal.
    every = (counts.false_positives == counts.negatives) & (counts.true_positives == counts.positives)
    return none.all(axis=-1) | every.all(axis=-1)


def _undefined_ratios(counts: GroupCounts, names: Sequence[str], *, weighted: bool) -> list[str]:
    """Say which ratios have no value, and why."""
    if _predicted_alike(counts):
        side = "positive" if counts.true_positives.any() else "negative"
        return [
            "All ratios are undefined and set to NaN: "
            f"every row of group {list_names(names)} is predicted {side}."
        ]
    reasons = {metric: why_undefined(metric, counts, names, weighted=weighted) for metric in RATIOS}
    return [
        f"`{metric}` is undefined and set to NaN: {reason}."
        for metric, reason in reasons.items()
        if reason is not None
    ]


def _interval(estimate: float, draws: NDArray[np.floating[Any]]) -> tuple[float, float]:
    """Return the percentile interval of a metric, NaN if the metric itself is."""
    defined = draws[~np.isnan(draws)]
    if np.isnan(estimate) or len(defined) == 0:
        return float("nan"), float("nan")
    low, high = np.quantile(defined, _INTERVAL)
    return min(float(low), estimate), max(float(high), estimate)
