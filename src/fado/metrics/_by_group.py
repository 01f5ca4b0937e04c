"""The rates behind the ratios: one row per group, with intervals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from fado.metrics._budget import Budget, budget_of
from fado.metrics._groups import MIN_GROUP_SIZE, read_groups, small_among
from fado.metrics._inputs import (
    as_scores,
    check_confidence,
    check_threshold,
    encode_target,
    warn_undefined,
)
from fado.metrics._limits import share_limits
from fado.metrics._rates import RATIOS
from fado.metrics._sample import Sample
from fado.metrics._weights import read_weights, rows_of_weight

if TYPE_CHECKING:
    import pandas as pd

_RATES = {
    name: RATIOS[f"{name}_ratio"] for name in ("selection_rate", "tpr", "fpr", "fnr")
}  # as columns stand


def by_group(
    y_true: Any,
    scores: Any,
    *,
    sensitive_features: Any,
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
    y_true : array-like of shape (n,)
        True labels, of exactly two classes.
    scores : array-like of shape (n,)
        Finite scores; higher means more likely positive.
    sensitive_features : Series, array, list, DataFrame or dict
        One protected attribute, or several whose combinations are the groups. Missing values are a group of
        their own. An attribute of numbers may have at most 20 different ones; pass ``age >= 50`` for others.
    max_fpr : float, default=0.05
        The budget: the share of negatives that may be predicted positive, in (0, 1).
    pos_label : label, default=None
        The positive class; None is the larger of the two labels.
    threshold : float, default=None
        Predict positive where ``scores >= threshold``; the budget then has no effect. None sets the
        threshold on these rows by the budget, as :func:`threshold_at_fpr` does.
    sample_weight : array-like of shape (n,), default=None
        How many rows each row stands for, such as a survey's weights; None is one for each. Rates are then
        shares of the total weight.
    min_group_size : int, default=30
        Groups of fewer rows that are also less than 1 % of the table are not ``compared``; 0 compares all.
    confidence : float, default=0.95
        The confidence level of intervals, in (0, 1).
    budget : Budget or pair of kind and limit, default=None
        What sets the threshold instead of ``max_fpr``, such as ``("top_k", 500)``; see :class:`Budget`. None
        is ``("fpr", max_fpr)``.

    Returns
    -------
    DataFrame
        One row per group, indexed by ``group``. ``rows``, ``positives`` and ``negatives`` are numbers of
        rows, whatever these weigh. ``selection_rate``, ``tpr``, ``fpr`` and ``fnr`` are each followed by the
        ends of their interval, with ``_low`` and ``_high`` appended; all three are NaN if a group has no rows
        that the rate is a share of. ``compared`` says which groups count in ratios.

    Raises
    ------
    ValueError
        If an argument is not valid, or both ``threshold`` and a ``budget`` of a kind other than ``"fpr"`` are
        given.

    Notes
    -----
    Intervals are those of Clopper and Pearson, for the rate at the threshold in use. Weighted rows count with
    their effective number. There are intervals for rates of 0 and of 1 too: a group without false positives
    among 11 negatives may well have a true rate of a quarter.

    Examples
    --------
    >>> from fado.metrics import by_group
    >>> y_true = [0, 0, 0, 0, 1, 1, 1, 0, 0, 0, 0, 1, 1, 1]
    >>> scores = [0.1, 0.2, 0.3, 0.4, 0.2, 0.5, 0.9, 0.1, 0.2, 0.7, 0.8, 0.1, 0.3, 0.9]
    >>> table = by_group(y_true, scores, sensitive_features=list("aaaaaaabbbbbbb"), max_fpr=0.3)
    >>> table[["rows", "negatives", "fpr", "fpr_low", "fpr_high", "compared"]].round(2)
           rows  negatives  fpr  fpr_low  fpr_high  compared
    group
    a         7          4  0.0     0.00      0.60      True
    b         7          4  0.5     0.07      0.93      True
    """
    import pandas as pd

    check_threshold(threshold)
    budget = budget_of(budget, max_fpr, threshold)
    check_confidence(confidence)
    positive = encode_target(y_true, pos_label).positive
    scores = as_scores(scores, len(positive))
    groups = read_groups(sensitive_features, len(positive))
    small = small_among(groups.codes, len(groups), min_group_size)
    columns: dict[str, Any] = {
        "rows": groups.sizes,
        "positives": np.bincount(groups.codes[positive], minlength=len(groups)),
        "negatives": np.bincount(groups.codes[~positive], minlength=len(groups)),
    }
    weights, positive, scores, codes = rows_of_weight(
        read_weights(sample_weight, len(positive)), positive, scores, groups.codes
    )
    if threshold is None:
        threshold = budget.threshold(positive, scores, weights)
    sample = Sample(positive, scores, codes, len(groups), weights, threshold)
    alike = scores.min() == scores.max()
    if alike:
        warn_undefined(f"All rates are undefined and set to NaN: all scores are {scores[0]}.")
    for name, rate in _RATES.items():
        shares, sizes = sample.shares(rate)
        low, high = share_limits(shares, sizes, (1 - confidence) / 2)
        for column, values in ((name, shares), (f"{name}_low", low), (f"{name}_high", high)):
            columns[column] = np.full(len(groups), np.nan) if alike else values
    columns["compared"] = ~small
    return pd.DataFrame(columns, index=pd.Index(groups.titles, name="group"))
