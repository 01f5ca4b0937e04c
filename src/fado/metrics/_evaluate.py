"""All metrics of one model's scores, with intervals: over all groups, by group, and for other libraries."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from fado._checks import check_count
from fado._compat import generator_from
from fado._messages import insert_parameters, list_names
from fado._typing import Bools, Floats, Integers
from fado.metrics._inputs import (
    MIN_GROUP_SIZE,
    check_between,
    compared_groups,
    read_groups,
    read_scored,
    read_variables,
    rows_of_weight,
    warn_undefined,
)
from fado.metrics._intervals import MeasuredRows, find_intervals, share_limits
from fado.metrics._rates import (
    RATES,
    RATIOS,
    GroupCounts,
    compared_counts,
    fpr_ratio,
    min_max_ratio,
    rates_from,
    why_undefined,
)
from fado.metrics._threshold import Budget, predicted_positive, threshold_at_fpr

if TYPE_CHECKING:
    import pandas as pd

_MOST_DRAWS = 1_000_000


@insert_parameters(threshold_at_fpr, fpr_ratio)
def evaluate(
    y_true: Any,
    scores: Any,
    *,
    sensitive_features: Any,
    unknown: Any = None,
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
    """Return a model's rates, and their ratios between groups, at the threshold that a budget sets.

    Undefined metrics are NaN, with an ``UndefinedMetricWarning`` that names the groups. A ratio is undefined
    for the reasons listed at :func:`fpr_ratio` and the other ratios. All four ratios are undefined if every
    row gets the same prediction: such a model is not fair just because it decides nothing. Rates are
    undefined if all scores are equal. A model with a NaN is never on a :func:`pareto_frontier`. Small groups
    and rows whose group is unknown are left out of the ratios, with a warning; their rows count in all other
    metrics.

    Parameters
    ----------
    {y_true}
    scores : array-like of shape (n,)
        Finite scores; higher means more likely positive. Decisions of 0 and 1 are used as they are.
    {sensitive_features, unknown, max_fpr}
    n_boot : int, default=0
        0 gives no intervals. Any other number gives intervals. It is the number of random draws of the
        threshold that the budget sets in the population; 200 are enough. At a given ``threshold`` nothing is
        drawn, and any number above 0 gives the same intervals.
    random_state : int, Generator, RandomState or None, default=None
        The seed of the draws.
    {pos_label}
    threshold : float, default=None
        Predict positive where ``scores >= threshold``, for example with a threshold from validation data. It
        is rounded to the precision of the scores: 0.7 means ``float32(0.7)`` for ``float32`` scores.
        ``max_fpr`` then has no effect; compare it with the returned ``fpr``. None sets the threshold on these
        rows by the budget, as :func:`threshold_at_fpr` does.
    {sample_weight, min_group_size}
    confidence : float, default=0.95
        The confidence level of intervals, in (0, 1).
    budget : Budget or pair of kind and limit, default=None
        What sets the threshold instead of ``max_fpr``: ``("selection_rate", 0.02)``, ``("top_k", 500)`` or
        ``("threshold", 0.5)``; see :class:`Budget`. None is ``("fpr", max_fpr)``.

    Returns
    -------
    dict of str to float
        ``threshold``, ``fpr``, ``tpr``, ``fpr_ratio``, ``fnr_ratio``, ``tpr_ratio`` and
        ``selection_rate_ratio``. With a budget of kind ``"selection_rate"`` or ``"top_k"`` also
        ``selection_rate``, the share of all rows that are predicted positive; with ``"top_k"`` also
        ``selected``, their number. With ``n_boot`` also the ends of the interval of each, except
        ``selected``, with ``_low`` and ``_high`` appended; both are NaN where no interval can be given.

    Raises
    ------
    ValueError
        If an argument is not valid, or both ``threshold`` and a ``budget`` of a kind other than ``"fpr"`` are
        given.

    Notes
    -----
    Intervals show how metrics vary with the rows that they are measured on, not with the training rows of the
    model. An interval estimates the value in the population: at the given ``threshold``, or at the threshold
    that the budget sets in the population.

    Rates have the limits of Clopper and Pearson (1934). For a ratio, limits are computed for every pair of
    groups by the method of Donner and Zou (2012). The lower limit is the lowest of the pairs' lower limits;
    the upper limit is the lowest of their upper limits, each corrected for the number of pairs. So the
    interval reaches 1 if the data do not distinguish the groups, however many groups there are. With several
    groups, intervals are wide: they contain the true ratio more often than ``confidence`` states.

    A threshold that is set on these rows is an estimate. The number of negatives that score above the
    population's threshold has a binomial distribution, for scores of any distribution. Draws from it give
    possible thresholds, and the metrics at each. For a selection rate the same is done with all rows, and the
    ``"top_k"`` of n rows are a selection rate of k / n. Weighted rows count with their effective number.

    A ratio has no interval, with a warning, in two cases. A group has too few events: fewer than 5 are
    expected at the rate of all compared groups together, and fewer than 15 are observed. Or the interval
    would be nearly all of [0, 1]. If there are too few negatives (for a selection rate, too few rows) to
    estimate the threshold, only the budget's own rate has an interval. At a budget of 5 % and a confidence of
    0.95, fewer than 72 are too few.

    See Also
    --------
    fado.metrics.by_group : The rates of every group.
    fado.metrics.audit : Rates, ratios and calibration of several attributes and their combinations.
    fado.metrics.threshold_at_fpr : The threshold that a false-positive budget sets.

    References
    ----------
    C. J. Clopper and E. S. Pearson, "The use of confidence or fiducial limits illustrated in the case of the
    binomial", Biometrika 26 (1934).

    A. Donner and G. Y. Zou, "Closed-form confidence intervals for functions of the normal mean and standard
    deviation", Statistical Methods in Medical Research 21 (2012).

    Examples
    --------
    >>> from fado.metrics import evaluate
    >>> y_true = [0, 0, 0, 0, 1, 1, 1, 0, 0, 0, 0, 1, 1, 1]
    >>> scores = [0.1, 0.2, 0.3, 0.8, 0.2, 0.5, 0.9, 0.1, 0.2, 0.7, 0.8, 0.1, 0.3, 0.9]
    >>> group = list("aaaaaaabbbbbbb")
    >>> metrics = evaluate(y_true, scores, sensitive_features=group, max_fpr=0.4)
    >>> for name, value in metrics.items():
    ...     print(f"{name:21}{value:.3f}")
    threshold            0.500
    fpr                  0.375
    tpr                  0.500
    fpr_ratio            0.500
    fnr_ratio            0.500
    tpr_ratio            0.500
    selection_rate_ratio 1.000
    """
    limit = Budget.read(budget, max_fpr, threshold=threshold)
    check_count("n_boot", n_boot, 0, _MOST_DRAWS)
    check_between("confidence", confidence)
    positive, scores, weights, threshold = read_scored(
        y_true, scores, pos_label, sample_weight, threshold, budget
    )
    groups = read_groups(sensitive_features, len(positive), unknown)
    result, reasons = measure(
        positive,
        scores,
        groups.codes,
        groups.names,
        budget=limit,
        n_boot=int(n_boot),
        random_state=random_state,
        threshold=threshold,
        sample_weight=weights,
        left_out=~compared_groups(groups, min_group_size),
        confidence=confidence,
    )
    for reason in reasons:
        warn_undefined(reason)
    return result


@insert_parameters(evaluate)
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
    sample_weight: Floats | None = None,
    left_out: Bools | None = None,
    confidence: float = 0.95,
    budget: Budget | None = None,
) -> tuple[dict[str, float], list[str]]:
    """Do the work of :func:`evaluate` on NumPy arrays, without checks and warnings.

    Use it to measure many models on the same rows, which you read and check once. The only check is that the
    weights of each label are not all 0.

    Parameters
    ----------
    positive : ndarray of bool, of shape (n,)
        Which rows have the positive label; there must be rows with it and rows without it.
    scores : ndarray of float16, float32 or float64, of shape (n,)
        Finite scores; higher means more likely positive.
    codes : ndarray of int, of shape (n,)
        Each row's group, as a position in ``names``.
    names : sequence of str
        What messages call the groups. A group without rows makes the ratios undefined.
    {max_fpr, n_boot, random_state, threshold}
    sample_weight : ndarray of float64, of shape (n,), default=None
        How many rows each row represents, not negative; None means one for each.
    left_out : ndarray of bool, of the length of ``names``, default=None
        Which groups do not count in ratios, such as small ones; None leaves out none.
    {confidence}
    budget : Budget, default=None
        What sets the threshold; None means ``Budget("fpr", max_fpr)``. With a given ``threshold`` the budget
        only adds the metrics that :meth:`Budget.kept` needs.

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
    >>> names = ["'f'", "'m'"]
    >>> metrics, reasons = measure(positive, scores, codes, names, max_fpr=0.5)
    >>> metrics["threshold"], metrics["fpr"], metrics["fpr_ratio"]
    (0.4, 0.5, nan)
    >>> reasons
    ["`fpr_ratio` is undefined and set to NaN: no negatives in group 'm'."]
    """
    weights, positive, scores, codes = rows_of_weight(sample_weight, positive, scores, codes)
    budget = Budget("fpr", max_fpr) if budget is None else budget
    given = threshold is not None or budget.kind == "threshold"
    chosen = budget.threshold(positive, scores, weights) if threshold is None else float(threshold)
    rows = MeasuredRows(positive, scores, codes, len(names), weights, chosen)
    compared = np.ones(len(names), dtype=np.bool_) if left_out is None else ~left_out
    ratios, reasons = _ratios(rows.counts, names, compared, weighted=sample_weight is not None)
    of_rows = budget.kind in ("selection_rate", "top_k")
    rates = {
        name: float(rates_from(RATES[name], rows.counts, of_all=True))
        for name in ("fpr", "tpr", "selection_rate")[: 3 if of_rows else 2]
    }
    if budget.kind == "top_k":
        rates["selected"] = float(rows.n_predicted)
    metrics = {"threshold": chosen, **rates, **ratios}
    if scores.min() == scores.max():
        metrics = {"threshold": chosen, **dict.fromkeys(list(metrics)[1:], float("nan"))}
        reasons = [
            "All metrics are undefined and set to NaN: "
            f"all scores are {scores[0]}, in group {list_names(names)}."
        ]
    if n_boot == 0:
        return metrics, reasons
    bounds, without = find_intervals(
        rows,
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


@insert_parameters(evaluate)
def by_group(
    y_true: Any,
    scores: Any,
    *,
    sensitive_features: Any,
    unknown: Any = None,
    max_fpr: float = 0.05,
    pos_label: Any = None,
    threshold: float | None = None,
    sample_weight: Any = None,
    min_group_size: int = MIN_GROUP_SIZE,
    confidence: float = 0.95,
    budget: Budget | Sequence[Any] | None = None,
) -> pd.DataFrame:
    """Return the rates of every group, with intervals, at the threshold that a budget sets.

    These are the rates that :func:`evaluate` compares: a ratio is the lowest rate in a column over the
    highest, among the groups that are ``compared``. If all scores are equal every rate is NaN, with an
    ``UndefinedMetricWarning``.

    Parameters
    ----------
    {y_true, scores, sensitive_features, unknown, max_fpr, pos_label, threshold, sample_weight}
    {min_group_size, confidence, budget}

    Returns
    -------
    DataFrame
        One row per group, indexed by ``group``. ``rows``, ``positives`` and ``negatives`` are numbers of
        rows, whatever their weights. ``selection_rate``, ``tpr``, ``fpr`` and ``fnr`` are each followed by
        the ends of their interval, with ``_low`` and ``_high`` appended; all three are NaN if a group has no
        rows that the rate is a share of. ``compared`` says which groups count in ratios, and ``reason``
        why one does not: "small" or "unknown".

    {Raises}

    Notes
    -----
    Intervals are those of Clopper and Pearson (1934), for the rate at the threshold in use. Weighted rows
    count with their effective number. Rates of 0 and 1 have intervals too: a group without false positives
    among 11 negatives may have a true rate of a quarter.

    See Also
    --------
    fado.metrics.evaluate : The ratios between groups.
    fado.metrics.audit : Several attributes and their combinations.

    Examples
    --------
    >>> from fado.metrics import by_group
    >>> y_true = [0, 0, 0, 0, 1, 1, 1, 0, 0, 0, 0, 1, 1, 1]
    >>> scores = [0.1, 0.2, 0.3, 0.4, 0.2, 0.5, 0.9, 0.1, 0.2, 0.7, 0.8, 0.1, 0.3, 0.9]
    >>> group = list("aaaaaaabbbbbbb")
    >>> table = by_group(y_true, scores, sensitive_features=group, max_fpr=0.3)
    >>> columns = ["rows", "negatives", "fpr", "fpr_low", "fpr_high", "compared"]
    >>> table[columns].round(2)
           rows  negatives  fpr  fpr_low  fpr_high  compared
    group
    a         7          4  0.0     0.00      0.60      True
    b         7          4  0.5     0.07      0.93      True
    """
    import pandas as pd

    limit = Budget.read(budget, max_fpr, threshold=threshold)
    check_between("confidence", confidence)
    positive, scores, weights, threshold = read_scored(
        y_true, scores, pos_label, sample_weight, threshold, budget
    )
    groups = read_groups(sensitive_features, len(positive), unknown)
    columns: dict[str, Any] = {
        "rows": groups.sizes,
        "positives": np.bincount(groups.codes[positive], minlength=len(groups)),
        "negatives": np.bincount(groups.codes[~positive], minlength=len(groups)),
    }
    compared = compared_groups(groups, min_group_size, warn=False)
    weights, positive, scores, codes = rows_of_weight(weights, positive, scores, groups.codes)
    if threshold is None:
        threshold = limit.threshold(positive, scores, weights)
    rows = MeasuredRows(positive, scores, codes, len(groups), weights, threshold)
    alike = scores.min() == scores.max()
    if alike:
        warn_undefined(f"All rates are undefined and set to NaN: all scores are {scores[0]}.")
    for name in ("selection_rate", "tpr", "fpr", "fnr"):
        shares, sizes = rows.rates(RATES[name])
        low, high = share_limits(shares, sizes, (1 - confidence) / 2)
        for column, values in ((name, shares), (f"{name}_low", low), (f"{name}_high", high)):
            columns[column] = np.full(len(groups), np.nan) if alike else values
    columns["compared"] = compared
    columns["reason"] = groups.reasons(min_group_size)
    return pd.DataFrame(columns, index=pd.Index(groups.titles, name="group"))


@insert_parameters(evaluate)
def predictions_frame(
    y_true: Any,
    scores: Any,
    *,
    sensitive_features: Any,
    unknown: Any = None,
    max_fpr: float = 0.05,
    pos_label: Any = None,
    threshold: float | None = None,
    sample_weight: Any = None,
    budget: Budget | Sequence[Any] | None = None,
) -> pd.DataFrame:
    """Return decisions, labels and groups in the form that Aequitas and fairlearn accept.

    Missing values of an attribute are the group ``unknown``. This package compares it with no other group,
    but other libraries do: leave its rows out, if they must not.

    Parameters
    ----------
    {y_true, scores}
    sensitive_features : Series, array, list, DataFrame or dict
        One protected attribute or several. None may be called ``score`` or ``label_value``.
    {unknown, max_fpr, pos_label, threshold}
    sample_weight : array-like of shape (n,), default=None
        How many rows each row represents when these rows set the threshold. It is not in the frame: pass it
        to the other library yourself.
    {budget}

    Returns
    -------
    DataFrame
        One row per row of the input: ``score`` is the decision and ``label_value`` the label, both 1 if
        positive and else 0; then every attribute as text. The column names are those of Aequitas, which
        accepts the frame as it is. For fairlearn see the example.

    {Raises}

    See Also
    --------
    fado.metrics.audit : Measure the same decisions here.

    Examples
    --------
    >>> from fado.metrics import predictions_frame
    >>> y_true, scores = [0, 0, 0, 1, 1], [0.1, 0.6, 0.2, 0.7, 0.3]
    >>> sex = {"sex": ["f", "f", "m", "m", "m"]}
    >>> frame = predictions_frame(y_true, scores, sensitive_features=sex, threshold=0.5)
    >>> frame
       score  label_value sex
    0      0            0   f
    1      1            0   f
    2      0            0   m
    3      1            1   m
    4      0            1   m
    >>> from fairlearn.metrics import MetricFrame, false_positive_rate
    >>> rates = MetricFrame(
    ...     metrics={"fpr": false_positive_rate},
    ...     y_true=frame["label_value"],
    ...     y_pred=frame["score"],
    ...     sensitive_features=frame[["sex"]],
    ... )
    >>> rates.by_group
         fpr
    sex
    f    0.5
    m    0.0
    """
    import pandas as pd

    from fado.tabular import group_rows

    limit = Budget.read(budget, max_fpr, threshold=threshold)
    positive, scores, weights, threshold = read_scored(
        y_true, scores, pos_label, sample_weight, threshold, budget
    )
    variables = read_variables(sensitive_features, len(positive), unknown)
    attributes = {
        variable.name: pd.Series(group_rows([variable]).by_row, dtype="str") for variable in variables
    }
    if threshold is None:
        threshold = limit.threshold(positive, scores, weights)
    decided = {  # Aequitas's names
        "score": predicted_positive(scores, threshold).astype(np.int64),
        "label_value": positive.astype(np.int64),
    }
    taken = [name for name in decided if name in attributes]
    if taken:
        raise ValueError(f"A protected attribute is called {taken[0]!r}, as a column here is: rename it.")
    return pd.DataFrame({**decided, **attributes})


def _ratios(
    counts: GroupCounts, names: Sequence[str], compared: Bools, *, weighted: bool
) -> tuple[dict[str, float], list[str]]:
    """Return the ratios between the compared groups, and why some have no value.

    If all compared rows get the same prediction, none has.
    """
    kept = compared_counts(counts, compared)
    none = (kept.false_positives == 0) & (kept.true_positives == 0)
    # Cell by cell: sums of the same weights in another order need not be equal.
    every = (kept.false_positives == kept.negatives) & (kept.true_positives == kept.positives)
    if kept.negatives.size > 0 and (none.all() or every.all()):
        side = "positive" if kept.true_positives.any() else "negative"
        alike = [name for name, counted in zip(names, compared, strict=True) if counted]
        return dict.fromkeys(RATIOS, float("nan")), [
            "All ratios are undefined and set to NaN: "
            f"every row of group {list_names(alike)} is predicted {side}."
        ]
    ratios, reasons = {}, []
    for name, rate in RATIOS.items():
        ratios[name] = float(min_max_ratio(*rate.counts(kept)))
        reason = why_undefined(name, counts, names, compared, weighted=weighted)
        if reason is not None:
            reasons.append(f"`{name}` is undefined and set to NaN: {reason}.")
    return ratios, reasons
