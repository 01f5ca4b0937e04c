"""How metrics change when the scores of validation rows change.

A rate jumps when a score crosses the threshold, so a kernel around the threshold stands for the jump. The
threshold itself moves with the negative validation rows, so that their false-positive rate stays within the
budget.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from fado.valuation._validation_rows import (
    ValidationRows,
    decide,
    find_extremes,
    performance_coefficients,
    ratio_coefficients,
    warn_of_equal_rates,
)

__all__ = [
    "bandwidth_for",
    "kernel_at",
    "log_odds",
    "metric_slopes",
    "slopes_at_budget",
    "slopes_at_threshold",
    "slopes_of_log_loss",
]

Bools = npt.NDArray[np.bool_]
FloatArray = npt.NDArray[np.float64]

_ROWS_NEAR = 20  # of each label within the bandwidth, at least
BANDWIDTH = (
    0.1  # of the standard deviation of the validation rows' scores; chosen by benchmarks/faithfulness.py
)


def log_odds(probabilities: FloatArray) -> FloatArray:
    """Give the scores behind probabilities."""
    inside = np.clip(probabilities, 1e-15, 1 - 1e-15)
    return np.log(inside) - np.log1p(-inside)


def bandwidth_for(scores: FloatArray, threshold: float, positive: Bools) -> float:
    """Choose how wide the kernel is: a share of the scores' spread, more where few rows of a label are near.

    Examples
    --------
    >>> import numpy as np
    >>> scores = np.linspace(-3, 3, 601)
    >>> round(bandwidth_for(scores, 0.0, scores > 2), 2)  # the 20th of the positives is 2.2 away
    2.2
    """
    distance = np.abs(scores - threshold)
    far = [
        np.partition(own, min(_ROWS_NEAR, len(own)) - 1)[min(_ROWS_NEAR, len(own)) - 1]
        for own in (distance[positive], distance[~positive])
        if len(own)
    ]
    return float(max(BANDWIDTH * np.std(scores), *far)) or 1.0


def kernel_at(scores: FloatArray, threshold: float, bandwidth: float) -> FloatArray:
    """Give how much of each row crosses a threshold per unit of its score: a normal density."""
    distance = (scores - threshold) / bandwidth
    return np.exp(-0.5 * distance**2) / (bandwidth * np.sqrt(2 * np.pi))


def slopes_at_threshold(coefficients: FloatArray, kernel: FloatArray) -> FloatArray:
    """Give how a sum of decisions changes with each score, at a threshold that stays where it is.

    Parameters
    ----------
    coefficients : ndarray of shape (m,) or (m, k)
        What each row adds to a metric if it is predicted positive.
    kernel : ndarray of shape (m,)
        From `kernel_at`.
    """
    return coefficients * (kernel if coefficients.ndim == 1 else kernel[:, np.newaxis])


def slopes_at_budget(
    coefficients: FloatArray, kernel: FloatArray, negative_weights: FloatArray
) -> FloatArray:
    """Give how a sum of decisions changes with each score, at a threshold that keeps the budget.

    Parameters
    ----------
    coefficients : ndarray of shape (m,) or (m, k)
        What each row adds to a metric if it is predicted positive.
    kernel : ndarray of shape (m,)
        From `kernel_at`.
    negative_weights : ndarray of shape (m,)
        What each row weighs if it is a negative, and 0 for the others.

    Examples
    --------
    If all scores rise alike, so does the threshold, and nothing changes.

    >>> import numpy as np
    >>> kernel = kernel_at(np.array([0.1, 0.2, 0.3]), 0.2, bandwidth=0.1)
    >>> slopes = slopes_at_budget(np.array([0.0, 1.0, 0.0]), kernel, np.array([1.0, 0.0, 1.0]))
    >>> bool(abs(slopes.sum()) < 1e-12)
    True
    """
    plain = slopes_at_threshold(coefficients, kernel)
    moves = negative_weights * kernel
    total = moves.sum()
    if total == 0:
        return plain
    return plain - np.multiply.outer(moves / total, plain.sum(axis=0))


def slopes_of_log_loss(probabilities: FloatArray, positive: Bools, weights: FloatArray) -> FloatArray:
    """Give how minus the mean log-loss changes with each score.

    Parameters
    ----------
    probabilities : ndarray of shape (m,)
        Of the positive label.
    positive : ndarray of bool, of shape (m,)
        Which rows hold it.
    weights : ndarray of shape (m,)
        What each row counts, as a share of all.
    """
    return (positive - probabilities) * weights


def metric_slopes(
    validated: ValidationRows,
    folds: Sequence[npt.NDArray[np.integer[Any]]],
    probabilities: FloatArray,
    performance: str,
    fairness: str,
    max_fpr: float,
) -> FloatArray:
    """Give how performance and each attribute's ratio change with the scores of validation rows.

    Parameters
    ----------
    validated : ValidationRows
        The rows.
    folds : sequence of ndarray
        Their positions, by the model that scored them. Each model has a threshold of its own; rates are those
        of all rows.
    probabilities : ndarray of shape (m,)
        Of the positive label.
    performance, fairness : str
        The metrics.
    max_fpr : float
        The budget.

    Returns
    -------
    ndarray of shape (m, 1 + n_attributes)
    """
    predicted = decide(validated, probabilities, max_fpr)
    negatives = np.where(validated.positive, 0.0, validated.weights)
    for rows in folds:
        if negatives[rows].any():  # else the threshold of all rows must do
            predicted[rows] = decide(validated.take(rows), probabilities[rows], max_fpr)
    first = np.zeros(validated.n_rows)
    if performance != "log_loss":
        first = performance_coefficients(validated, performance)
    for own in validated.attributes:
        warn_of_equal_rates(own, fairness, find_extremes(validated, own, fairness, predicted))
    ratios = [ratio_coefficients(validated, own, fairness, predicted) for own in validated.attributes]
    coefficients = np.column_stack([first, *ratios])
    scores, slopes = log_odds(probabilities), np.zeros_like(coefficients)
    for rows in folds:
        own = scores[rows]
        chosen = own[predicted[rows]]
        threshold = float(chosen.min()) if len(chosen) else float(own.max())
        kernel = kernel_at(own, threshold, bandwidth_for(own, threshold, validated.positive[rows]))
        slopes[rows] = slopes_at_budget(coefficients[rows], kernel, negatives[rows])
        if performance == "accuracy":
            kernel = kernel_at(own, 0.0, bandwidth_for(own, 0.0, validated.positive[rows]))
            slopes[rows, 0] = slopes_at_threshold(first[rows], kernel)
    if performance == "log_loss":
        shares = validated.weights / validated.weights.sum()
        slopes[:, 0] = slopes_of_log_loss(probabilities, validated.positive, shares)
    return slopes
