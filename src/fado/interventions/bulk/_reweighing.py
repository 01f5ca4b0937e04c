"""Reweighing of rows that are read block by block."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fado.interventions._cell_checks import compared_groups, warn_of_equal_weights, warn_of_weightless_cells
from fado.interventions._reweighing import BEYOND_FLOATS, Reweigher, UtilityAwareReweigher
from fado.interventions._weights import cell_factors, cell_log_factors
from fado.interventions.bulk._cells import Cells, Passes, Rows
from fado.interventions.bulk._streams import Factors, streams

__all__ = ["weigh_by_cells", "weigh_by_utility"]

FloatArray = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]


@streams(Reweigher)
def weigh_by_cells(reweigher: Reweigher, cells: Cells, passes: Passes) -> Factors:
    """Give every row the factor of its cell; the first pass has told all."""
    compared = compared_groups(cells.names, cells.classes, cells.rows, reweigher.min_group_size)
    amounts = cells.rows.astype(np.float64) if cells.weights is None else cells.weights
    factors = np.ones(amounts.shape)
    factors[compared] = cell_factors(*_margins(amounts[compared]))
    if compared.sum() > 1:
        warn_of_equal_weights(factors[cells.rows > 0])
    return lambda rows: factors[rows.groups, rows.labels]


@streams(UtilityAwareReweigher)
def weigh_by_utility(reweigher: UtilityAwareReweigher, cells: Cells, passes: Passes) -> Factors:
    """Weigh rows by their utilities; one pass adds up what they weigh, if that matters."""
    base = _BaseWeights(reweigher, cells)
    if reweigher.prevalence_correction > 0:
        return _corrected(reweigher, cells, base, passes)
    if not reweigher.normalize:
        return base
    mean = sum(float(base.scaled(rows).sum()) for rows in passes("blocks added up")) / cells.n_rows
    return lambda rows: base.scaled(rows) / mean


class _BaseWeights:
    """Weights by utility, before the correction."""

    def __init__(self, reweigher: UtilityAwareReweigher, cells: Cells) -> None:
        if cells.span is None:
            raise ValueError("Rows cannot be weighed by their utility without utilities.")
        self._reweigher = reweigher
        self._span = cells.span
        self.largest = float(self._of(np.array([cells.span.high]))[0])

    def __call__(self, rows: Rows) -> FloatArray:
        return self._of(np.zeros(0) if rows.utilities is None else rows.utilities)

    def scaled(self, rows: Rows) -> FloatArray:
        """Give the weights as parts of the largest, so that no sum can overflow."""
        return self(rows) / self.largest

    def _of(self, utilities: FloatArray) -> FloatArray:
        return self._reweigher._base_weights(utilities, self._span)


@dataclass(frozen=True)
class _Sums:
    """What base weights, as parts of the largest, come to per cell.

    Parameters
    ----------
    weights, counted : ndarray of shape (n_groups, n_labels)
        Their sums; the second times what rows count.
    largest : ndarray of shape (n_groups, n_labels)
        The largest of each cell.
    """

    weights: FloatArray
    counted: FloatArray
    largest: FloatArray


def _corrected(reweigher: UtilityAwareReweigher, cells: Cells, base: _BaseWeights, passes: Passes) -> Factors:
    """Multiply base weights by their cells' factors, computed under them, to a power."""
    compared = compared_groups(cells.names, cells.classes, cells.rows, reweigher.min_group_size)
    sums = _add_up(cells, base, passes)
    heavy = (sums.largest > 0).astype(np.int64)
    names = [name for name, own in zip(cells.names, compared.tolist(), strict=True) if own]
    warn_of_weightless_cells(names, cells.classes, cells.rows[compared], heavy[compared])
    added = np.zeros(sums.weights.shape)  # to the logarithm of a row's part of the largest weight
    if sums.largest[compared].any():
        power = float(reweigher.prevalence_correction)
        added[compared] = power * cell_log_factors(*_margins(sums.counted[compared]))
    with np.errstate(divide="ignore"):
        highest = float((np.log(sums.largest) + added).max())
    if reweigher.normalize:
        added -= highest
        with np.errstate(divide="ignore"):
            added -= np.log(np.exp(np.log(sums.weights) + added).sum() / cells.n_rows)
    else:
        added += np.log(base.largest)
        with np.errstate(over="ignore"):
            largest = np.exp(highest + np.log(base.largest))
        if not np.isfinite(largest) or largest == 0:
            raise ValueError(BEYOND_FLOATS)

    def factors(rows: Rows) -> FloatArray:
        with np.errstate(divide="ignore"):
            return np.exp(np.log(base.scaled(rows)) + added[rows.groups, rows.labels])

    return factors


def _add_up(cells: Cells, base: _BaseWeights, passes: Passes) -> _Sums:
    shape = cells.rows.shape
    weights, counted, largest = (np.zeros(cells.rows.size) for _ in range(3))
    for rows in passes("blocks added up"):
        own, places = base.scaled(rows), rows.groups * shape[1] + rows.labels
        weights += np.bincount(places, own, len(weights))
        counted += np.bincount(places, own if rows.weights is None else own * rows.weights, len(weights))
        np.maximum.at(largest, places, own)
    return _Sums(*(each.reshape(shape) for each in (weights, counted, largest)))


def _margins(amounts: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray, float]:
    """Give what group, label, cell and all rows amount to, for every cell."""
    z, y = np.broadcast_arrays(amounts.sum(axis=1, keepdims=True), amounts.sum(axis=0, keepdims=True))
    return z, y, amounts, amounts.sum()
