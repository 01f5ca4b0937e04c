"""Weights of the cells of group and label: what moves a group's rates."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

__all__ = ["cell_weights"]

FloatArray = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]


def cell_weights(
    log_factors: FloatArray,
    memberships: FloatArray,
    positive: Bools,
    *,
    sample_weight: FloatArray | None = None,
    untouched: Bools | None = None,
) -> FloatArray:
    """Weigh rows so that the scores of some groups fall and those of others rise.

    A group's negatives get the factor ``exp(t / 2)`` and its positives ``exp(-t / 2)``: half of its log
    factor `t` each. A row's weight is the mean of these factors under the probabilities that it belongs to
    each group, and the weights of each label are scaled to a mean of 1.

    Parameters
    ----------
    log_factors : ndarray of shape (n_groups,)
        One per group; above 0, the group's scores fall. Only their differences count.
    memberships : ndarray of shape (n_rows, n_groups)
        Each row's probabilities of the groups.
    positive : ndarray of bool of shape (n_rows,)
        The rows of the positive label.
    sample_weight : ndarray of shape (n_rows,), optional
        What rows count in the means.
    untouched : ndarray of bool of shape (n_rows,), optional
        Rows whose weight stays 1.

    Examples
    --------
    Two groups, each row's known for sure.

    >>> sure = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 1.0]])
    >>> positive = np.array([False, True, False, True])
    >>> cell_weights(np.array([0.0, 2 * np.log(3)]), sure, positive)
    array([0.5, 1.5, 1.5, 0.5])
    """
    half = (log_factors - log_factors.mean()) / 2
    weights = np.empty(len(positive))
    for label, factors in ((False, np.exp(half)), (True, np.exp(-half))):
        rows = positive == label
        moved = rows if untouched is None else rows & ~untouched
        weights[rows] = 1.0
        own = memberships[moved] @ factors
        counted = None if sample_weight is None else sample_weight[moved]
        if len(own) and (counted is None or counted.any()):
            weights[moved] = own / np.average(own, weights=counted)
    return weights
