"""Thresholds and true-positive rates at a false-positive budget."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fado.metrics._inputs import (
    Bools,
    Floats,
    Integers,
    as_scores,
    check_max_fpr,
    encode_target,
    warn_undefined,
)
from fado.metrics._weights import Weights, read_weights, rows_of_weight


def threshold_at_fpr(
    y_true: Any, scores: Any, max_fpr: float = 0.05, *, pos_label: Any = None, sample_weight: Any = None
) -> float:
    """Return the lowest threshold whose false-positive rate does not exceed a budget.

    A row is predicted positive if ``scores >= threshold``. The threshold is one of the scores, so that
    ``float32`` and ``float64`` scores give the same decisions. Rows of equal scores get the same decision. If
    even the highest score alone would exceed the budget, the threshold is the next float above it, and no row
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
    sample_weight : array-like of shape (n,), default=None
        How many rows each row stands for, such as a survey's weights; None is one for each. Rates are then
        shares of the total weight.

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

    The negative at 0.7 stands for three: it alone is half of them, and over the budget.

    >>> threshold_at_fpr(y_true, scores, max_fpr=0.25, sample_weight=[1, 1, 1, 3, 1, 1])
    0.9
    """
    weights, positive, scores = _read(y_true, scores, max_fpr, pos_label, sample_weight)
    return lowest_threshold(positive, scores, max_fpr, weights)


def tpr_at_fpr(
    y_true: Any, scores: Any, max_fpr: float = 0.05, *, pos_label: Any = None, sample_weight: Any = None
) -> float:
    """Return the true-positive rate at the threshold of a false-positive budget.

    If all scores are equal, the rate is NaN, with an ``UndefinedMetricWarning``.

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
    sample_weight : array-like of shape (n,), default=None
        How many rows each row stands for, such as a survey's weights; None is one for each. Rates are then
        shares of the total weight.

    Returns
    -------
    float

    Examples
    --------
    >>> from fado.metrics import tpr_at_fpr
    >>> tpr_at_fpr([0, 0, 0, 0, 1, 1], [0.1, 0.4, 0.4, 0.7, 0.3, 0.9], max_fpr=0.25)
    0.5
    """
    weights, positive, scores = _read(y_true, scores, max_fpr, pos_label, sample_weight)
    if scores.min() == scores.max():
        warn_undefined(f"`tpr_at_fpr` is undefined and set to NaN: all scores are {scores[0]}.")
        return float("nan")
    found = scores[positive] >= lowest_threshold(positive, scores, max_fpr, weights)
    return float(np.mean(found) if weights is None else np.average(found, weights=weights[positive]))


def lowest_threshold(
    positive: Bools, scores: Floats, max_fpr: float, weights: Weights | None = None
) -> float:
    """Do the work of :func:`threshold_at_fpr` on NumPy arrays, without checks.

    Parameters
    ----------
    positive : ndarray of bool, of shape (n,)
        Which rows have the positive label. At least one row must not have it.
    scores : ndarray of shape (n,)
        Finite scores.
    max_fpr : float
        The budget: the share of negatives that may be predicted positive, in (0, 1).
    weights : ndarray of shape (n,), default=None
        The weight of each row, above zero; None is one for each.

    Returns
    -------
    float
        The lowest score that keeps the budget, or the next float above all scores.

    Examples
    --------
    >>> import numpy as np
    >>> from fado.metrics import lowest_threshold
    >>> lowest_threshold(np.array([False, False, True]), np.array([0.1, 0.4, 0.7]), max_fpr=0.5)
    0.4
    """
    negatives = scores[~positive]
    if weights is None:
        first_over = len(negatives) - 1 - allowed_false_positives(len(negatives), max_fpr)
        highest_refused = np.partition(negatives, first_over)[first_over]
    else:
        order = np.argsort(negatives, kind="stable")[::-1]
        ends = ends_of_ties(negatives[order])
        refused = first_over_budget(weights[~positive][order], ends, max_fpr)
        highest_refused = negatives[order][ends[refused]]
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


def ends_of_ties(scores: NDArray[Any]) -> Integers:
    """Return the position of the last of each run of equal scores."""
    return np.append(np.flatnonzero(scores[1:] != scores[:-1]), len(scores) - 1)


def first_over_budget(weights: Weights, ends: Integers, max_fpr: float) -> Integers:
    """Return the first run of ties at which negatives, from the highest score on, exceed the budget.

    Parameters
    ----------
    weights : ndarray of shape (..., n_negatives)
        Their weights, sorted by score from high to low; a leading axis may hold resamples.
    ends : ndarray of shape (n_runs,)
        Where each run of equal scores ends.
    max_fpr : float
        The budget, as a share of all their weight.

    Returns
    -------
    ndarray of shape (...)
        A position in `ends`. There always is one, as all negatives together exceed any budget.
    """
    reached = np.cumsum(weights, axis=-1)[..., ends]
    return np.argmax(reached / reached[..., -1:] > max_fpr, axis=-1)


def _read(
    y_true: Any, scores: Any, max_fpr: float, pos_label: Any, sample_weight: Any
) -> tuple[Weights | None, Bools, Floats]:
    check_max_fpr(max_fpr)
    positive = encode_target(y_true, pos_label).positive
    scores = as_scores(scores, len(positive))
    return rows_of_weight(read_weights(sample_weight, len(positive)), positive, scores)
