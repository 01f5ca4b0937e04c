"""The value of a row, from predictions. Arrays in, arrays out."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

__all__ = ["log_losses", "normalised_entropy", "own_label_probability"]

FloatArray = npt.NDArray[np.float64]


def normalised_entropy(probabilities: npt.ArrayLike) -> FloatArray:
    """Shannon entropy of predicted distributions, divided by its maximum.

    Parameters
    ----------
    probabilities : array-like of shape (n,) or (n, K)
        The probability of the positive class, or of all K classes.

    Returns
    -------
    ndarray of shape (n,)
        In [0, 1]: 0 for a sure prediction, 1 for equal probabilities, NaN where a probability is NaN.

    Examples
    --------
    >>> normalised_entropy([0.0, 0.5, 1.0])
    array([0., 1., 0.])
    """
    p = np.asarray(probabilities, dtype=np.float64)
    if p.ndim == 1:
        q = 1.0 - p
        total = _p_log2_p(p) + _p_log2_p(q)
        n_classes = 2
    else:
        total = _p_log2_p(p).sum(axis=1)
        n_classes = p.shape[1]
    return np.clip(-total / np.log2(n_classes), 0.0, 1.0) + 0.0  # + 0.0: no negative zero


def _p_log2_p(p: FloatArray) -> FloatArray:
    """Compute p log2(p), which is 0 at p = 0."""
    logarithm = np.zeros_like(p)
    np.log2(p, out=logarithm, where=p != 0)
    return p * logarithm


def own_label_probability(probabilities: FloatArray, codes: npt.NDArray[np.integer]) -> FloatArray:
    """Pick from every row the probability of its own class.

    Parameters
    ----------
    probabilities : ndarray of shape (n,) or (n, K)
        The probability of class 1, or of all classes.
    codes : ndarray of shape (n,)
        The rows' classes.
    """
    if probabilities.ndim == 1:
        return np.where(codes == 1, probabilities, 1.0 - probabilities)
    return probabilities[np.arange(len(codes)), codes]


def log_losses(own_label: npt.NDArray[np.floating]) -> FloatArray:
    """Give the log-loss of every row, from the probability of its own label, clipped as scikit-learn does.

    Examples
    --------
    >>> log_losses(np.array([0.0, 0.5, 1.0])).round(3)
    array([36.044,  0.693,  0.   ])
    """
    margin = np.finfo(own_label.dtype).eps
    losses: FloatArray = -np.log(np.clip(own_label, margin, 1 - margin))
    return losses
