"""How metrics change when the scores of judged rows change.

A rate jumps when a score crosses the threshold, so a kernel around the threshold stands for the jump. The
threshold itself moves with the judged negatives, so that their false-positive rate stays within the budget.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

__all__ = ["kernel_at", "log_odds", "slopes_at_budget", "slopes_at_threshold", "slopes_of_log_loss"]

Bools = npt.NDArray[np.bool_]
FloatArray = npt.NDArray[np.float64]


def log_odds(probabilities: FloatArray) -> FloatArray:
    """Give the scores behind probabilities."""
    inside = np.clip(probabilities, 1e-15, 1 - 1e-15)
    return np.log(inside) - np.log1p(-inside)


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
    >>> slopes_at_budget(np.array([0.0, 1.0, 0.0]), kernel, np.array([1.0, 0.0, 1.0])).sum().round(9).item() + 0.0
    0.0
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
