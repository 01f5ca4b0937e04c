"""The maths of weights: from utilities, and from the cells of group and label."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = [
    "cell_factors",
    "cell_log_factors",
    "corrected_logs",
    "kamiran_calders",
    "minmax",
    "minmax_within",
]

FloatArray = npt.NDArray[np.float64]
Codes = npt.NDArray[np.integer]


def minmax(utilities: FloatArray) -> FloatArray:
    """Scale utilities to [0, 1]; if all are equal, to 1."""
    return minmax_within(utilities, utilities.min(), utilities.max())


def minmax_within(utilities: FloatArray, low: float, high: float) -> FloatArray:
    """Scale utilities, some or all of those from `low` to `high`, to [0, 1]; if these are equal, to 1."""
    largest = max(abs(low), abs(high))
    if largest > 0:  # so that a difference can neither overflow nor vanish
        utilities, low, high = utilities / largest, low / largest, high / largest
    return (utilities - low) / (high - low) if high > low else np.ones(len(utilities))


def kamiran_calders(groups: Codes, labels: Codes, sample_weight: FloatArray | None = None) -> FloatArray:
    """Give every row the weight P(z) P(y) / P(z, y) of its cell; 1 where the cell weighs nothing.

    Examples
    --------
    >>> import numpy as np
    >>> kamiran_calders(np.array([0, 0, 0, 0, 1, 1]), np.array([0, 0, 0, 1, 0, 1]))
    array([0.88888889, 0.88888889, 0.88888889, 1.33333333, 1.33333333,
           0.66666667])
    """
    counted = np.ones(len(labels)) if sample_weight is None else sample_weight
    return cell_factors(*_totals(counted, groups, labels))


def cell_factors(z: Any, y: Any, cell: FloatArray, total: float) -> FloatArray:
    """Give Kamiran and Calders' factors of cells, from the weights of group, label, cell and all rows."""
    return np.divide(z * y, total * cell, out=np.ones(cell.shape), where=cell > 0)


def cell_log_factors(z: Any, y: Any, cell: FloatArray, total: float) -> FloatArray:
    """Give the logarithms of `cell_factors`: a factor may lie beyond all floats."""
    with np.errstate(divide="ignore", invalid="ignore"):
        log_z, log_y, log_cell, log_total = (np.log(part) for part in (z, y, cell, total))
        return np.subtract(
            log_z + log_y - log_total, log_cell, out=np.zeros(cell.shape), where=np.isfinite(log_cell)
        )


def corrected_logs(
    weights: FloatArray,
    groups: Codes,
    labels: Codes,
    power: float,
    sample_weight: FloatArray | None = None,
) -> FloatArray:
    """Multiply weights by their cells' Kamiran-Calders factors, computed under these weights, to a power.

    Power 1 makes the weighted rates of every label equal over groups. Weights of 0 stay 0. With
    `sample_weight` the factors are those of the products of both. The result is given
    as logarithms, as a factor may lie beyond all floats where its product with a weight does not.
    """
    scale = weights.max()
    with np.errstate(divide="ignore"):
        log_weights = np.log(weights / scale)
        counted = weights / scale if sample_weight is None else weights / scale * sample_weight
    log_factors = cell_log_factors(*_totals(counted, groups, labels))
    return log_weights + power * log_factors + np.log(scale)


def _totals(weights: FloatArray, groups: Codes, labels: Codes) -> tuple[Any, Any, Any, Any]:
    """Give per row the weight of its group, of its label and of its cell, and the weight of all rows."""
    cells = groups.astype(np.int64) * (int(labels.max()) + 1) + labels
    z, y, cell = (np.bincount(codes, weights)[codes] for codes in (groups, labels, cells))
    return z, y, cell, weights.sum()
