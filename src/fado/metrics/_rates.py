"""Error rates per group, and their ratio between groups."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fado.metrics._groups import encode_groups, list_names
from fado.metrics._inputs import Bools, Integers, encode_predictions, encode_target, warn_undefined


class GroupCounts(NamedTuple):
    """What rates are made of, per group in the last axis; a leading axis may hold resamples."""

    negatives: Integers
    positives: Integers
    false_positives: Integers
    true_positives: Integers


class Rate(NamedTuple):
    """A rate as its events among its members."""

    events: str
    members: str
    counts: Callable[[GroupCounts], tuple[Integers, Integers]]


RATIOS = {
    "fpr_ratio": Rate("false positives", "negatives", lambda c: (c.false_positives, c.negatives)),
    "fnr_ratio": Rate(
        "false negatives", "positives", lambda c: (c.positives - c.true_positives, c.positives)
    ),
    "tpr_ratio": Rate("true positives", "positives", lambda c: (c.true_positives, c.positives)),
    "selection_rate_ratio": Rate(
        "predicted positives",
        "rows",
        lambda c: (c.false_positives + c.true_positives, c.negatives + c.positives),
    ),
}


def fpr_ratio(y_true: Any, y_pred: Any, *, sensitive_features: Any, pos_label: Any = None) -> float:
    """Return the lowest false-positive rate of a group over the highest (predictive equality).

    The ratio is NaN, with an ``UndefinedMetricWarning`` that names the groups, if a group has no negatives,
    if no group has false positives, and if there is only one group.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        True labels, of exactly two classes.
    y_pred : array-like of shape (n,)
        Predictions: labels of ``y_true``, or booleans or 0 and 1 that say which rows are predicted positive.
    sensitive_features : Series, array, list, DataFrame or dict
        One protected attribute, or several whose combinations are the groups. Missing values are a group of
        their own; so is, without rows, a level that a categorical column declares and no row holds.
    pos_label : label, default=None
        The positive class; None is the larger of the two labels.

    Returns
    -------
    float
        In [0, 1]; 1 means equal rates.

    Examples
    --------
    One of two negatives of ``a`` is predicted positive, and two of two of ``b``.

    >>> from fado.metrics import fpr_ratio
    >>> fpr_ratio([0, 0, 1, 0, 0, 1], [0, 1, 1, 1, 1, 0], sensitive_features=list("aaabbb"))
    0.5
    """
    return _ratio("fpr_ratio", y_true, y_pred, sensitive_features, pos_label)


def fnr_ratio(y_true: Any, y_pred: Any, *, sensitive_features: Any, pos_label: Any = None) -> float:
    """Return the lowest false-negative rate of a group over the highest (paper: equality of opportunity).

    The ratio is NaN, with an ``UndefinedMetricWarning`` that names the groups, if a group has no positives,
    if no group has false negatives, and if there is only one group. Parameters are those of
    :func:`fpr_ratio`.

    Examples
    --------
    One of two positives of ``a`` is missed, and one of four of ``b``.

    >>> from fado.metrics import fnr_ratio
    >>> fnr_ratio([1, 1, 0, 1, 1, 1, 1], [0, 1, 0, 1, 1, 1, 0], sensitive_features=list("aaabbbb"))
    0.5
    """
    return _ratio("fnr_ratio", y_true, y_pred, sensitive_features, pos_label)


def tpr_ratio(y_true: Any, y_pred: Any, *, sensitive_features: Any, pos_label: Any = None) -> float:
    """Return the lowest true-positive rate of a group over the highest (others' equality of opportunity).

    The ratio is NaN, with an ``UndefinedMetricWarning`` that names the groups, if a group has no positives,
    if no group has true positives, and if there is only one group. Parameters are those of
    :func:`fpr_ratio`.

    Examples
    --------
    One of two positives of ``a`` is found, and four of four of ``b``.

    >>> from fado.metrics import tpr_ratio
    >>> tpr_ratio([1, 1, 0, 1, 1, 1, 1], [0, 1, 0, 1, 1, 1, 1], sensitive_features=list("aaabbbb"))
    0.5
    """
    return _ratio("tpr_ratio", y_true, y_pred, sensitive_features, pos_label)


def selection_rate_ratio(
    y_true: Any, y_pred: Any, *, sensitive_features: Any, pos_label: Any = None
) -> float:
    """Return the lowest share of predicted positives of a group over the highest (demographic parity).

    The ratio is NaN, with an ``UndefinedMetricWarning`` that names the groups, if a group has no rows, if no
    group has predicted positives, and if there is only one group. Parameters are those of :func:`fpr_ratio`;
    ``y_true`` only says what the labels are.

    Examples
    --------
    One of four rows of ``a`` is predicted positive, and one of two of ``b``.

    >>> from fado.metrics import selection_rate_ratio
    >>> selection_rate_ratio([0, 0, 1, 1, 0, 1], [0, 0, 0, 1, 1, 0], sensitive_features=list("aaaabb"))
    0.5
    """
    return _ratio("selection_rate_ratio", y_true, y_pred, sensitive_features, pos_label)


def count_by_group(positive: Bools, predicted: Bools, codes: Integers, n_groups: int) -> GroupCounts:
    """Return the confusion counts of every group."""

    def count(rows: Bools) -> Integers:
        return np.bincount(codes[rows], minlength=n_groups)

    return GroupCounts(
        count(~positive), count(positive), count(~positive & predicted), count(positive & predicted)
    )


def min_max_ratio(events: Integers, members: Integers) -> NDArray[np.float64]:
    """Return the lowest rate over the highest along the last axis, NaN where that is undefined."""
    with np.errstate(invalid="ignore"):
        rates = events / members
        ratio = rates.min(axis=-1) / rates.max(axis=-1)
    return ratio if events.shape[-1] > 1 else np.full_like(ratio, np.nan)


def why_undefined(metric: str, counts: GroupCounts, names: list[str]) -> str | None:
    """Return the reason why a ratio has no value, with the groups that cause it, or None if it has one."""
    rate = RATIOS[metric]
    events, members = rate.counts(counts)
    empty = [name for name, count in zip(names, members, strict=True) if count == 0]
    if empty:
        return f"no {rate.members} in group {list_names(empty)}"
    if len(names) == 1:
        return f"{names[0]} is the only group, and a ratio compares two"
    if not events.any():
        return f"no {rate.events} in any group ({list_names(names)})"
    return None


def _ratio(metric: str, y_true: Any, y_pred: Any, sensitive_features: Any, pos_label: Any) -> float:
    target = encode_target(y_true, pos_label)
    predicted = encode_predictions(y_pred, target)
    codes, names = encode_groups(sensitive_features, len(predicted))
    counts = count_by_group(target.positive, predicted, codes, len(names))
    reason = why_undefined(metric, counts, names)
    if reason is not None:
        warn_undefined(f"`{metric}` is undefined and set to NaN: {reason}.")
    return float(min_max_ratio(*RATIOS[metric].counts(counts)))
