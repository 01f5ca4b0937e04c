"""Decisions as other libraries of fairness take them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from fado.metrics._budget import Budget, budget_of
from fado.metrics._groups import read_variables
from fado.metrics._inputs import as_scores, check_threshold, encode_target
from fado.metrics._weights import read_weights, rows_of_weight

if TYPE_CHECKING:
    import pandas as pd

SCORE, LABEL = "score", "label_value"  # Aequitas's names


def predictions_frame(
    y_true: Any,
    scores: Any,
    *,
    sensitive_features: Any,
    max_fpr: float = 0.05,
    pos_label: Any = None,
    threshold: float | None = None,
    sample_weight: Any = None,
    budget: Budget | Sequence[Any] | None = None,
) -> pd.DataFrame:
    """Return decisions, labels and groups as Aequitas and fairlearn take them.

    Missing values of an attribute are the group ``(missing)``, as in all ratios of this package.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        True labels, of exactly two classes.
    scores : array-like of shape (n,)
        Finite scores; higher means more likely positive.
    sensitive_features : Series, array, list, DataFrame or dict
        One protected attribute or several. None may be called ``score`` or ``label_value``.
    max_fpr : float, default=0.05
        The budget: the share of negatives that may be predicted positive, in (0, 1).
    pos_label : label, default=None
        The positive class; None is the larger of the two labels.
    threshold : float, default=None
        Predict positive where ``scores >= threshold``; the budget then has no effect. None sets the
        threshold on these rows by the budget, as :func:`threshold_at_fpr` does.
    sample_weight : array-like of shape (n,), default=None
        How many rows each row stands for when these rows set the threshold. It is not in the frame: pass it
        to the other library yourself.
    budget : Budget or pair of kind and limit, default=None
        What sets the threshold instead of ``max_fpr``; see :class:`Budget`. None is ``("fpr", max_fpr)``.

    Returns
    -------
    DataFrame
        One row per row of the input: ``score`` is the decision and ``label_value`` the label, both 1 if
        positive and else 0; then every attribute as text. The column names are those of Aequitas, which takes
        the frame as it is. For fairlearn see the example.

    Raises
    ------
    ValueError
        If an argument is not valid, or both ``threshold`` and a ``budget`` of a kind other than ``"fpr"`` are
        given.

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

    check_threshold(threshold)
    budget = budget_of(budget, max_fpr, threshold)
    positive = encode_target(y_true, pos_label).positive
    scores = as_scores(scores, len(positive))
    variables = read_variables(sensitive_features, len(positive))
    attributes = {own.name: pd.Series(group_rows([own]).by_row, dtype="str") for own in variables}
    taken = [name for name in (SCORE, LABEL) if name in attributes]
    if taken:
        raise ValueError(f"A protected attribute is called {taken[0]!r}, as a column here is: rename it.")
    if threshold is None:
        weights, labels, counted = rows_of_weight(
            read_weights(sample_weight, len(positive)), positive, scores
        )
        threshold = budget.threshold(labels, counted, weights)
    decided = {SCORE: (scores >= threshold).astype(np.int64), LABEL: positive.astype(np.int64)}
    return pd.DataFrame({**decided, **attributes})
