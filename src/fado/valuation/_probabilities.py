"""The value of a row, from predictions. Arrays in, arrays out."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

__all__ = [
    "entropies_of",
    "log_losses",
    "normalised_entropy",
    "of_all_classes",
    "own_label_probability",
    "read_probabilities",
]

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


def of_all_classes(probabilities: FloatArray) -> FloatArray:
    """Give a column per class, also where the probability of class 1 of two stands for both.

    Examples
    --------
    >>> of_all_classes(np.array([0.25]))
    array([[0.75, 0.25]])
    """
    if probabilities.ndim > 1:
        return probabilities
    return np.column_stack([1.0 - probabilities, probabilities])


def read_probabilities(name: str, given: npt.ArrayLike, n_labels: int | None = None) -> FloatArray:
    """Read the probabilities of a variable's classes, refusing what are none.

    Parameters
    ----------
    name : str
        The variable.
    given : array-like of shape (n,), (n, G) or (n, K, G)
        The last only for an attribute, given each class of the target.
    n_labels : int, optional
        How many classes the target has; None for the target itself.

    Returns
    -------
    ndarray of shape (n, G) or (n, K, G)
    """
    p = np.ma.filled(np.ma.array(given, dtype=np.float64, copy=True), np.nan)  # it is kept
    if p.ndim not in (1, 2, 3 if n_labels else 1) or (p.ndim > 1 and p.shape[-1] < 2):
        also = f" or (n, {n_labels}, G)" if n_labels else ""
        raise ValueError(
            f"The probabilities of {name!r} must have shape (n,) or (n, K >= 2){also}, got {p.shape}."
        )
    if p.ndim == 3 and p.shape[1] != n_labels:
        raise ValueError(
            f"The probabilities of {name!r} must be given for each of the {n_labels} classes of the target, "
            f"got shape {p.shape}."
        )
    if not np.isfinite(p).all() or (p < 0).any() or (p > 1).any():
        raise ValueError(f"The probabilities of {name!r} must lie in [0, 1], without NaN.")
    if p.ndim > 1 and len(p) and not np.allclose(p.sum(axis=-1), 1.0, atol=1e-6):
        raise ValueError(f"The probabilities of {name!r} must sum to 1 in every row.")
    return of_all_classes(p)


def entropies_of(
    p_y: npt.ArrayLike, p_z: Mapping[str, npt.ArrayLike]
) -> tuple[dict[str, FloatArray], dict[str, FloatArray]]:
    """Give values and probabilities by variable, in the form of `Valuation`, of what models predict.

    Parameters
    ----------
    p_y : array-like
        The probabilities of the target's classes.
    p_z : mapping of str to array-like
        The same for every attribute, or for every class of the target.
    """
    likely = read_probabilities("y", p_y)
    n_rows, n_labels = likely.shape
    values, probabilities = {"y": normalised_entropy(likely)}, {"y": likely}
    for name, given in p_z.items():
        p = read_probabilities(name, given, n_labels)
        if len(p) != n_rows:
            raise ValueError(f"`p_y` has {n_rows} rows and the probabilities of {name!r} have {len(p)}.")
        values[name] = normalised_entropy(p if p.ndim == 2 else np.einsum("nk,nkg->ng", likely, p))
        at_every_label = p if p.ndim == 3 else p[:, np.newaxis]
        probabilities[name] = np.broadcast_to(at_every_label, (n_rows, n_labels, p.shape[-1]))
    return values, probabilities


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
