"""What one fit says of the rows it scored, and the values that many fits add up to."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from fado.tabular import Variable
from fado.valuation._probabilities import normalised_entropy, own_label_probability
from fado.valuation.entropy._moments import Moments

__all__ = ["FinishedValues", "finish", "largest_known", "row_statistics", "what_is_wrong"]

FloatArray = npt.NDArray[np.float64]
FinishedValues = tuple[FloatArray, FloatArray, FloatArray]

_SLACK = 1e-4  # of the sum of probabilities in single precision


def what_is_wrong(variable: Variable, n_rows: int, predicted: FloatArray) -> str:
    """Say what keeps one fit's predictions from being any; empty if nothing does.

    Examples
    --------
    >>> import numpy as np
    >>> coin = Variable("coin", "classes", np.array([0, 1, 1]), (0, 1))
    >>> what_is_wrong(coin, 3, np.array([0.5, np.nan, 0.5]))
    'NaN or infinite probabilities for 1 of 3 rows'
    """
    many = len(variable.classes)
    classes = variable.kind == "classes"
    allowed: list[tuple[int, ...]] = [(n_rows, many)] if classes else []
    if not classes or many == 2:
        allowed.append((n_rows,))
    if predicted.shape not in allowed:
        of = f" and {many} classes" if classes else ""
        return f"predictions of shape {predicted.shape} for {n_rows} rows{of}"
    by_row = predicted.reshape(n_rows, -1)
    faults = {"NaN or infinite " + ("probabilities" if classes else "predictions"): ~np.isfinite(by_row)}
    if classes:
        faults["probabilities outside [0, 1]"] = (by_row < 0) | (by_row > 1)
    if classes and predicted.ndim == 2:
        faults["probabilities that do not sum to 1"] = np.abs(by_row.sum(axis=1, keepdims=True) - 1) > _SLACK
    for fault, entries in faults.items():
        rows = int(entries.any(axis=1).sum())
        if rows:
            return f"{fault} for {rows} of {n_rows} rows"
    return ""


def row_statistics(
    variable: Variable, rows: npt.NDArray[np.integer], predicted: FloatArray, training_mean: float
) -> tuple[FloatArray, FloatArray]:
    """Turn one fit's predictions into what is averaged over fits.

    Returns
    -------
    tuple of ndarray
        For classes: the entropy, and the probability of the row's own class. For numbers: the prediction's
        distance from the training mean, and from the row's own number.
    """
    labels = variable.labels[rows]
    if variable.kind == "classes":
        return normalised_entropy(predicted), own_label_probability(predicted, labels)
    return np.abs(predicted - training_mean), np.abs(predicted - labels)


def finish(variable: Variable, moments: Moments) -> FinishedValues:
    """Turn averages over fits into values, standard errors and agreement, all in [0, 1]."""
    mean, error, agreement = moments.mean, moments.standard_error, moments.agreement
    if variable.kind == "classes":
        return mean, error, agreement
    furthest = largest_known(mean)
    return 1.0 - mean / furthest, error / furthest, 1.0 - agreement / largest_known(agreement)


def largest_known(distances: FloatArray) -> float:
    """Give the largest distance; 1 where all are 0, so that dividing by it leaves them 0."""
    known = distances[~np.isnan(distances)]
    largest = float(known.max()) if len(known) else 0.0
    return largest if largest > 0 else 1.0
