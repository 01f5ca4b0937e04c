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

    In a group of log factor ``t``, negatives get the factor ``exp(t / 2)`` and positives ``exp(-t / 2)``. A
    row's weight is the mean of the factors of all groups, by its probabilities of belonging to them. Then
    the weights of each label are scaled to a mean of 1.

    Parameters
    ----------
    log_factors : ndarray of shape (n_groups,)
        One per group; above 0, the group's scores fall. Only their differences count.
    memberships : ndarray of shape (n_rows, n_groups)
        Each row's probability of belonging to each group.
    positive : ndarray of bool of shape (n_rows,)
        Which rows have the positive label.
    sample_weight : ndarray of shape (n_rows,), optional
        How much each row counts in the means of 1; None counts all rows alike.
    untouched : ndarray of bool of shape (n_rows,), optional
        Rows whose weight stays 1; None leaves out none.

    Returns
    -------
    ndarray of shape (n_rows,)
        The weights. They do not contain `sample_weight`.

    Examples
    --------
    Two groups; each row's group is known for sure.

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
