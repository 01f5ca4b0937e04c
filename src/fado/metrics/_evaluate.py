"""All metrics of one model's scores, with intervals."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from fado._compat import generator_from
from fado._messages import list_names
from fado._validation import check_count
from fado.metrics._budget import Budget, budget_of
from fado.metrics._groups import MIN_GROUP_SIZE, encode_groups, leave_out_small
from fado.metrics._inputs import (
    Bools,
    Floats,
    Integers,
    as_scores,
    check_confidence,
    check_threshold,
    encode_target,
    warn_undefined,
)
from fado.metrics._intervals import find_intervals
from fado.metrics._rates import RATIOS, GroupCounts, compared_counts, min_max_ratio, why_undefined
from fado.metrics._sample import Sample
from fado.metrics._weights import Weights, read_weights, rows_of_weight

_MOST_DRAWS = 1_000_000


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
    min_group_size: int = MIN_GROUP_SIZE,
    confidence: float = 0.95,
    budget: Budget | Sequence[Any] | None = None,
) -> dict[str, float]:
    """Return a model's rates at a budget, such as of false positives, and their ratios between groups.

    What is undefined is NaN, with an ``UndefinedMetricWarning`` that names the groups: a ratio for the
    reasons that :func:`fpr_ratio` and the others give; all four ratios if every row gets the same
    prediction, as a model that decides nothing is not fair for it; the rates too if all scores are equal. So
    a NaN keeps such a model off a :func:`pareto_frontier`. Whether a given ``threshold`` keeps the budget is
    for the caller to read from ``fpr``. Small groups are left out of the ratios, with a warning that names
    them; their rows count in all else.

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
        0 for no intervals, else for how many draws of where the threshold truly lies; 200 do. At a given
        ``threshold`` nothing is drawn, and any number gives the same intervals.
    random_state : int, Generator, RandomState or None, default=None
        The seed of the draws.
    pos_label : label, default=None
        The positive class; None is the larger of the two labels.
    threshold : float, default=None
        Predict ``scores >= threshold``, for example with a threshold from validation data. None sets it on
        these rows by the budget, as :func:`threshold_at_fpr` does.
    sample_weight : array-like of shape (n,), default=None
        How many rows each row stands for, such as a survey's weights; None is one for each. Rates are then
        shares of weight, and a group that weighs nothing has none.
    min_group_size : int, default=30
        Groups of fewer rows that are also less than 1 % of the table are left out of ratios; 0 leaves out
        none. Rows count as they are, whatever they weigh.
    confidence : float, default=0.95
        How often an interval holds the truth, at least; in (0, 1).
    budget : Budget or pair of kind and limit, default=None
        What sets the threshold instead of ``max_fpr``: ``("selection_rate", 0.02)``, ``("top_k", 500)`` or
        ``("threshold", 0.5)``; see :class:`Budget`. None is ``("fpr", max_fpr)``.

    Returns
    -------
    dict of str to float
        ``threshold``, ``fpr``, ``tpr``, ``fpr_ratio``, ``fnr_ratio``, ``tpr_ratio`` and
        ``selection_rate_ratio``; with ``n_boot`` also each with ``_low`` and ``_high`` appended, both NaN
        where no interval can be given. With a budget of kind ``"selection_rate"`` or ``"top_k"`` also
        ``selection_rate``, the share of all rows that are predicted positive; with ``"top_k"`` also
        ``selected``, their number as they are, which needs no interval and has none.

    Notes
    -----
    Intervals tell how metrics vary with the rows that they are measured on, not with those that a model was
    trained on. They are to hold the population's value: at the given ``threshold``, or at the population's
    own for the budget. Rates have Clopper and Pearson's limits. A ratio's lower limit is the least over all
    pairs of groups of the limits of their ratio, its upper limit the least of those limits corrected for the
    number of pairs; so it reaches 1 where groups cannot be told apart, however many there are. The price is
    width: with several groups intervals hold the truth more often than they say.

    A threshold that is set on these rows is an estimate. How many negatives truly score above the
    population's has a binomial law, whatever the scores; draws from it say where that threshold may lie, and
    what the metrics are there. For a selection rate the same holds of all rows, and the k rows of highest
    score of n are a selection rate of k / n. Weighted rows count with their effective number.

    A ratio has no interval, and a warning says so, if a group has too few events: fewer than 5 are expected
    at the rate of all compared groups together, and fewer than 15 are seen; or if the interval would be
    nearly all of [0, 1]. A threshold and what hangs on it have none if all negatives, or for a
    selection rate all rows, are too few for the budget: below 72 at 5 %.

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
    check_threshold(threshold)
    budget = budget_of(budget, max_fpr, threshold)
    check_count("n_boot", n_boot, 0, _MOST_DRAWS)
    check_confidence(confidence)
    positive = encode_target(y_true, pos_label).positive
    scores = as_scores(scores, len(positive))
    weights = read_weights(sample_weight, len(positive))
    codes, names = encode_groups(sensitive_features, len(positive))
    result, reasons = measure(
        positive,
        scores,
        codes,
        names,
        budget=budget,
        n_boot=int(n_boot),
        random_state=random_state,
        threshold=threshold,
        sample_weight=weights,
        left_out=leave_out_small(codes, names, min_group_size),
        confidence=confidence,
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
    left_out: Bools | None = None,
    confidence: float = 0.95,
    budget: Budget | None = None,
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
        0 for no intervals, else for how many draws of where the threshold truly lies.
    random_state : int, Generator, RandomState or None, default=None
        The seed of the draws.
    threshold : float, default=None
        Predict ``scores >= threshold``; None sets it on these rows by the budget.
    sample_weight : ndarray of float64, of shape (n,), default=None
        How many rows each row stands for, none of them negative; None is one for each.
    left_out : ndarray of bool, of the length of ``names``, default=None
        Which groups do not count in ratios, such as small ones; None leaves out none.
    confidence : float, default=0.95
        How often an interval holds the truth, at least; in (0, 1).
    budget : Budget, default=None
        What sets the threshold; None is ``Budget("fpr", max_fpr)``. Beside a given ``threshold`` it only says
        which metrics are wanted, so that :meth:`Budget.kept` can tell whether that threshold keeps it.

    Returns
    -------
    metrics : dict of str to float
        As :func:`evaluate` returns them.
    reasons : list of str
        Why metrics are undefined or have no interval: the sentences that :func:`evaluate` warns with.

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
    budget = Budget("fpr", max_fpr) if budget is None else budget
    given = threshold is not None or budget.kind == "threshold"
    chosen = budget.threshold(positive, scores, weights) if threshold is None else float(threshold)
    sample = Sample(positive, scores, codes, len(names), weights, chosen)
    compared = np.ones(len(names), dtype=np.bool_) if left_out is None else ~left_out
    metrics = {"threshold": chosen, **_rates(sample, budget), **_ratios(sample.counts, compared)}
    if scores.min() == scores.max():
        metrics = {"threshold": chosen, **dict.fromkeys(list(metrics)[1:], float("nan"))}
        reasons = [
            "All metrics are undefined and set to NaN: "
            f"all scores are {scores[0]}, in group {list_names(names)}."
        ]
    else:
        reasons = _undefined_ratios(sample.counts, names, compared, weighted=sample_weight is not None)
    if n_boot == 0:
        return metrics, reasons
    bounds, without = find_intervals(
        sample,
        metrics,
        names,
        compared,
        budget=budget,
        threshold_given=given,
        error=(1 - confidence) / 2,
        n_draws=n_boot,
        rng=generator_from(random_state),
    )
    for name, (low, high) in bounds.items():
        metrics |= {f"{name}_low": low, f"{name}_high": high}
    return metrics, reasons + without


def _rates(sample: Sample, budget: Budget) -> dict[str, float]:
    """Return the rates over all groups that a budget asks for."""
    counts = sample.counts
    rates = {
        "fpr": float(counts.false_positives.sum() / counts.negatives.sum()),
        "tpr": float(counts.true_positives.sum() / counts.positives.sum()),
    }
    if budget.kind in ("selection_rate", "top_k"):
        rates["selection_rate"] = sample.share_of_all(RATIOS["selection_rate_ratio"])[0]
    if budget.kind == "top_k":
        rates["selected"] = float(sample.n_predicted)
    return rates


def _ratios(counts: GroupCounts, compared: Bools) -> dict[str, float]:
    """Return the ratios between the compared groups, NaN if all their rows get the same prediction."""
    of_compared = compared_counts(counts, compared)
    if _predicted_alike(of_compared):
        return dict.fromkeys(RATIOS, float("nan"))
    return {name: float(min_max_ratio(*rate.counts(of_compared))) for name, rate in RATIOS.items()}


def _predicted_alike(counts: GroupCounts) -> bool:
    none = (counts.false_positives == 0) & (counts.true_positives == 0)
    # Cell by cell: sums of the same weights in another order need not be equal.
    every = (counts.false_positives == counts.negatives) & (counts.true_positives == counts.positives)
    return counts.negatives.size > 0 and bool(none.all() or every.all())


def _undefined_ratios(
    counts: GroupCounts, names: Sequence[str], compared: Bools, *, weighted: bool
) -> list[str]:
    """Say which ratios have no value, and why."""
    of_compared = compared_counts(counts, compared)
    if _predicted_alike(of_compared):
        side = "positive" if of_compared.true_positives.any() else "negative"
        alike = [name for name, counted in zip(names, compared, strict=True) if counted]
        return [
            "All ratios are undefined and set to NaN: "
            f"every row of group {list_names(alike)} is predicted {side}."
        ]
    reasons = {metric: why_undefined(metric, counts, names, compared, weighted=weighted) for metric in RATIOS}
    return [
        f"`{metric}` is undefined and set to NaN: {reason}."
        for metric, reason in reasons.items()
        if reason is not None
    ]
