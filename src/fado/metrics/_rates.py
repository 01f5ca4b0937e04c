"""Error rates per group, and their ratio between groups."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fado._messages import insert_parameters, list_names
from fado._typing import Bools, Floats, Integers
from fado.metrics._inputs import (
    MIN_GROUP_SIZE,
    compared_groups,
    encode_predictions,
    encode_target,
    read_groups,
    rows_of_weight,
    warn_undefined,
)

Counts = NDArray[Any]  # whole numbers of rows, or sums of their weights


class GroupCounts(NamedTuple):
    """The counts behind rates, per group in the last axis; a leading axis may hold several thresholds."""

    negatives: Counts
    positives: Counts
    false_positives: Counts
    true_positives: Counts


class Rate(NamedTuple):
    """A rate of a group: its events among its members, and the titles of the rate and of its ratio."""

    title: str
    short_title: str
    ratio_title: str
    events: str
    members: str
    label: int | None  # of the rows that are members: 0 negative, 1 positive, None all
    of_selected: bool  # whether the members that are predicted positive are the events, or the others
    counts: Callable[[GroupCounts], tuple[Counts, Counts]]


RATES = {
    "fpr": Rate(
        "false-positive rate",
        "FPR",
        "Predictive equality (ratio of false-positive rates)",
        "false positives",
        "negatives",
        0,
        True,
        lambda c: (c.false_positives, c.negatives),
    ),
    "fnr": Rate(
        "false-negative rate",
        "FNR",
        "Equality of opportunity (ratio of false-negative rates)",
        "false negatives",
        "positives",
        1,
        False,
        lambda c: (c.positives - c.true_positives, c.positives),
    ),
    "tpr": Rate(
        "true-positive rate",
        "TPR",
        "Ratio of true-positive rates",
        "true positives",
        "positives",
        1,
        True,
        lambda c: (c.true_positives, c.positives),
    ),
    "selection_rate": Rate(
        "selection rate",
        "selection-rate",
        "Demographic parity (ratio of selection rates)",
        "predicted positives",
        "rows",
        None,
        True,
        lambda c: (c.false_positives + c.true_positives, c.negatives + c.positives),
    ),
}
RATIOS = {f"{name}_ratio": rate for name, rate in RATES.items()}  # the rates behind ratios
RATIO_NAMES = tuple(RATIOS)
RATIO_TITLES = {name: rate.ratio_title for name, rate in RATIOS.items()}


@insert_parameters()
def fpr_ratio(
    y_true: Any,
    y_pred: Any,
    *,
    sensitive_features: Any,
    unknown: Any = None,
    pos_label: Any = None,
    sample_weight: Any = None,
    min_group_size: int = MIN_GROUP_SIZE,
) -> float:
    """Return the lowest false-positive rate of a group over the highest (predictive equality).

    The ratio is NaN, with an ``UndefinedMetricWarning`` that names the groups, if a group has no negatives,
    if no group has false positives, or if there is only one group. Small groups are left out, with a warning
    that names them.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        True labels, of exactly two classes.
    y_pred : array-like of shape (n,)
        Predictions: labels of ``y_true``, or booleans or 0 and 1 that say which rows are predicted positive.
    sensitive_features : Series, array, list, DataFrame or dict
        One protected attribute, or several; the groups are the combinations of several. Rows with a missing
        value are not compared, with a warning. An attribute of numbers may have at most 20 different ones;
        for others, pass a comparison such as ``age >= 50``.
    {unknown}
    pos_label : label, default=None
        The positive class; None means the larger of the two labels.
    sample_weight : array-like of shape (n,), default=None
        How many rows each row represents, such as survey weights; None means one for each. Rates are then
        shares of the total weight. A group whose weights are all 0 has no rate.
    min_group_size : int, default=30
        Groups with fewer rows than this that are also less than 1 % of the table are left out of ratios; 0
        compares all groups. Rows are counted, whatever their weights.

    Returns
    -------
    float
        In [0, 1]; 1 means equal rates.

    See Also
    --------
    fado.metrics.evaluate : All rates and ratios of scores, with intervals.
    fado.metrics.audit : Rates of every group and every combination of groups.

    Examples
    --------
    One of two negatives of ``a`` is predicted positive, and two of two of ``b``.

    >>> from fado.metrics import fpr_ratio
    >>> y_true, y_pred = [0, 0, 1, 0, 0, 1], [0, 1, 1, 1, 1, 0]
    >>> fpr_ratio(y_true, y_pred, sensitive_features=list("aaabbb"))
    0.5
    """
    return _ratio("fpr_ratio", **locals())


@insert_parameters(fpr_ratio)
def fnr_ratio(
    y_true: Any,
    y_pred: Any,
    *,
    sensitive_features: Any,
    unknown: Any = None,
    pos_label: Any = None,
    sample_weight: Any = None,
    min_group_size: int = MIN_GROUP_SIZE,
) -> float:
    """Return the lowest false-negative rate of a group over the highest.

    The paper calls it equality of opportunity. The ratio is NaN, with an ``UndefinedMetricWarning`` that
    names the groups, if a group has no positives, if no group has false negatives, or if there is only one
    group.

    {Parameters, Returns, See Also}

    Examples
    --------
    One of two positives of ``a`` is missed, and one of four of ``b``.

    >>> from fado.metrics import fnr_ratio
    >>> y_true, y_pred = [1, 1, 0, 1, 1, 1, 1], [0, 1, 0, 1, 1, 1, 0]
    >>> fnr_ratio(y_true, y_pred, sensitive_features=list("aaabbbb"))
    0.5
    """
    return _ratio("fnr_ratio", **locals())


@insert_parameters(fpr_ratio)
def tpr_ratio(
    y_true: Any,
    y_pred: Any,
    *,
    sensitive_features: Any,
    unknown: Any = None,
    pos_label: Any = None,
    sample_weight: Any = None,
    min_group_size: int = MIN_GROUP_SIZE,
) -> float:
    """Return the lowest true-positive rate of a group over the highest.

    Outside the paper, this is often called equality of opportunity. The ratio is NaN, with an
    ``UndefinedMetricWarning`` that names the groups, if a group has no positives, if no group has true
    positives, or if there is only one group.

    {Parameters, Returns, See Also}

    Examples
    --------
    One of two positives of ``a`` is found, and four of four of ``b``.

    >>> from fado.metrics import tpr_ratio
    >>> y_true, y_pred = [1, 1, 0, 1, 1, 1, 1], [0, 1, 0, 1, 1, 1, 1]
    >>> tpr_ratio(y_true, y_pred, sensitive_features=list("aaabbbb"))
    0.5
    """
    return _ratio("tpr_ratio", **locals())


@insert_parameters(fpr_ratio)
def selection_rate_ratio(
    y_true: Any,
    y_pred: Any,
    *,
    sensitive_features: Any,
    unknown: Any = None,
    pos_label: Any = None,
    sample_weight: Any = None,
    min_group_size: int = MIN_GROUP_SIZE,
) -> float:
    """Return the lowest share of predicted positives of a group over the highest (demographic parity).

    The ratio is NaN, with an ``UndefinedMetricWarning`` that names the groups, if the weights of a group are
    all 0, if no group has predicted positives, or if there is only one group. Of ``y_true`` only the two
    labels are used.

    {Parameters, Returns, See Also}

    Examples
    --------
    One of four rows of ``a`` is predicted positive, and one of two of ``b``.

    >>> from fado.metrics import selection_rate_ratio
    >>> y_true, y_pred = [0, 0, 1, 1, 0, 1], [0, 0, 0, 1, 1, 0]
    >>> selection_rate_ratio(y_true, y_pred, sensitive_features=list("aaaabb"))
    0.5
    """
    return _ratio("selection_rate_ratio", **locals())


@insert_parameters(fpr_ratio)
def equalized_odds_ratio(
    y_true: Any,
    y_pred: Any,
    *,
    sensitive_features: Any,
    unknown: Any = None,
    pos_label: Any = None,
    sample_weight: Any = None,
    min_group_size: int = MIN_GROUP_SIZE,
) -> float:
    """Return the lower of the ratios of false-positive and of true-positive rates (equalised odds).

    The ratio is NaN, with an ``UndefinedMetricWarning`` that names the groups, if :func:`fpr_ratio` or
    :func:`tpr_ratio` is NaN.

    {Parameters, Returns, See Also}

    Examples
    --------
    False-positive rates are a half in both groups; true-positive rates are a half and 1.

    >>> from fado.metrics import equalized_odds_ratio
    >>> y_true, y_pred = [0, 0, 1, 1, 0, 0, 1, 1], [0, 1, 0, 1, 1, 0, 1, 1]
    >>> equalized_odds_ratio(y_true, y_pred, sensitive_features=list("aaaabbbb"))
    0.5
    """
    return _ratio("equalized_odds_ratio", **locals())


def count_by_group(
    positive: Bools, predicted: Bools, codes: Integers, n_groups: int, weights: Floats | None = None
) -> GroupCounts:
    """Return the confusion counts of every group; with weights, their sums."""
    cells = ~positive, positive, ~positive & predicted, positive & predicted
    return GroupCounts(
        *(
            np.bincount(codes[rows], None if weights is None else weights[rows], minlength=n_groups)
            for rows in cells
        )
    )


def compared_counts(counts: GroupCounts, compared: Bools) -> GroupCounts:
    """Return the counts of the groups that ratios compare."""
    return GroupCounts(*(part[..., compared] for part in counts))


def rates_from(rate: Rate, counts: GroupCounts, *, of_all: bool = False) -> Floats:
    """Return a rate of every group, or over all of them; NaN without members."""
    events, members = rate.counts(counts)
    if of_all:
        events, members = events.sum(axis=-1), members.sum(axis=-1)
    with np.errstate(invalid="ignore"):
        return np.asarray(events / members, dtype=np.float64)


def min_max_ratio(events: Counts, members: Counts) -> NDArray[np.float64]:
    """Return the lowest rate over the highest along the last axis, NaN where that is undefined."""
    if events.shape[-1] < 2:
        return np.full(events.shape[:-1], np.nan)
    with np.errstate(invalid="ignore"):
        rates = events / members
        return np.asarray(rates.min(axis=-1) / rates.max(axis=-1))


def why_undefined(
    metric: str, counts: GroupCounts, names: Sequence[str], compared: Bools, *, weighted: bool = False
) -> str | None:
    """Return the reason why a ratio has no value, with the groups that cause it, or None if it has one."""
    rate = RATIOS[metric]
    events, members = rate.counts(compared_counts(counts, compared))
    left = [name for name, counted in zip(names, compared, strict=True) if counted]
    empty = [name for name, count in zip(left, members, strict=True) if count == 0]
    if empty:
        return f"no {rate.members}{' of any weight' if weighted else ''} in group {list_names(empty)}"
    if len(names) == 1:
        return f"{names[0]} is the only group, and a ratio compares two"
    if not left:
        return "every group is left out"
    if len(left) == 1:
        return f"{left[0]} is the only group that is not left out, and a ratio compares two"
    if not events.any():
        return f"no {rate.events} in any group ({list_names(left)})"
    return None


def _ratio(
    metric: str,
    y_true: Any,
    y_pred: Any,
    sensitive_features: Any,
    unknown: Any,
    pos_label: Any,
    sample_weight: Any,
    min_group_size: int,
) -> float:
    from fado.tabular import weights_of

    target = encode_target(y_true, pos_label)
    predicted = encode_predictions(y_pred, target)
    groups = read_groups(sensitive_features, len(predicted), unknown)
    compared = compared_groups(groups, min_group_size)
    weights, positive, predicted, codes = rows_of_weight(
        weights_of(sample_weight, len(predicted)),
        target.is_positive,
        predicted,
        groups.codes,
        by_label=metric != "selection_rate_ratio",
    )
    counts = count_by_group(positive, predicted, codes, len(groups), weights)
    parts = ("fpr_ratio", "tpr_ratio") if metric == "equalized_odds_ratio" else (metric,)
    for part in parts:
        reason = why_undefined(part, counts, groups.names, compared, weighted=sample_weight is not None)
        if reason is not None:
            warn_undefined(f"`{metric}` is undefined and set to NaN: {reason}.")
            break
    ratios = [min_max_ratio(*RATIOS[part].counts(compared_counts(counts, compared))) for part in parts]
    return float(np.min(ratios))  # NaN if one is
