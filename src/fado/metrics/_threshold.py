"""Thresholds and true-positive rates at a false-positive budget."""

from typing import Any

import numpy as np

from fado.metrics._inputs import Bools, Floats, as_scores, check_max_fpr, encode_target, warn_undefined


def threshold_at_fpr(y_true: Any, scores: Any, max_fpr: float = 0.05, *, pos_label: Any = None) -> float:
    """Return the lowest threshold whose false-positive rate does not exceed a budget.

    A row is predicted positive if ``scores >= threshold``. The threshold is one of the scores, so that it
    means the same for ``float32`` scores as for ``float64``. Rows with tied scores are on the same side of
    it. If even the highest score would exceed the budget, the threshold is the next float above it: nothing
    is predicted positive.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        True labels, of exactly two classes.
    scores : array-like of shape (n,)
        Finite scores; higher means more likely positive.
    max_fpr : float, default=0.05
        The budget: the share of negatives that may be predicted positive, in (0, 1).
    pos_label : label, default=None
        The positive class; None is the larger of the two labels.

    Returns
    -------
    float

    Examples
    --------
    One of the four negatives may be predicted positive. The two at 0.4 are tied, so neither is.

    >>> from fado.metrics import threshold_at_fpr
    >>> y_true = [0, 0, 0, 0, 1, 1]
    >>> scores = [0.1, 0.4, 0.4, 0.7, 0.6, 0.9]
    >>> threshold_at_fpr(y_true, scores, max_fpr=0.25)
    0.6
    """
    check_max_fpr(max_fpr)
    positive = encode_target(y_true, pos_label).positive
    return lowest_threshold(positive, as_scores(scores, len(positive)), max_fpr)


def tpr_at_fpr(y_true: Any, scores: Any, max_fpr: float = 0.05, *, pos_label: Any = None) -> float:
    """Return the true-positive rate at the threshold of a false-positive budget.

    Scores that are all equal rank nothing; the rate is NaN then, with an ``UndefinedMetricWarning``.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        True labels, of exactly two classes.
    scores : array-like of shape (n,)
        Finite scores; higher means more likely positive.
    max_fpr : float, default=0.05
        The budget: the share of negatives that may be predicted positive, in (0, 1).
    pos_label : label, default=None
        The positive class; None is the larger of the two labels.

    Returns
    -------
    float

    Examples
    --------
    >>> from fado.metrics import tpr_at_fpr
    >>> tpr_at_fpr([0, 0, 0, 0, 1, 1], [0.1, 0.4, 0.4, 0.7, 0.3, 0.9], max_fpr=0.25)
    0.5
    """
    check_max_fpr(max_fpr)
    positive = encode_target(y_true, pos_label).positive
    scores = as_scores(scores, len(positive))
    if scores.min() == scores.max():
        warn_undefined(f"`tpr_at_fpr` is undefined and set to NaN: all scores are {scores[0]}.")
        return float("nan")
    return float(np.mean(scores[positive] >= lowest_threshold(positive, scores, max_fpr)))


def lowest_threshold(positive: Bools, scores: Floats, max_fpr: float) -> float:
    """Return the lowest score that keeps the budget, or the next float above all scores."""
    negatives = scores[~positive]
    first_over = len(negatives) - 1 - allowed_false_positives(len(negatives), max_fpr)
    highest_refused = np.partition(negatives, first_over)[first_over]
    above = scores[scores > highest_refused]
    if len(above) == 0:
        return float(np.nextafter(highest_refused, np.inf, dtype=scores.dtype))
    return float(above.min())


def allowed_false_positives(n_negatives: int, max_fpr: float) -> int:
    """Return the largest count whose rate is within the budget as floats compare.

    ``int(0.29 * 100)`` is 28, although 29 / 100 does not exceed 0.29.
    """
    count = int(max_fpr * n_negatives) + 1
    while count / n_negatives > max_fpr:
        count -= 1
    return count
