"""What one more unit of weight on a training row does to the scores of judged rows, through the leaves.

A leaf's value is ``-rate * G / (H + penalty)``, with the sums of its rows' weighted gradients and Hessians.
One more unit of weight on a row in it moves it by ``-rate * (g + theta * h) / (H + penalty)``, where theta is
the value over the rate, and every judged row in that leaf moves with it. So per tree a sum over judged rows
and a sum over training rows are all that is needed: no judged row is ever held against a training row.

The direct effects hold the scores before each tree fixed. The backward ones take in that a leaf's move
changes the gradients of all later trees, with the trees' structure alone held fixed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

__all__ = ["GrownTree", "TrainingRows", "backward_effects", "direct_effects", "initial_score", "leaf_values"]

FloatArray = npt.NDArray[np.float64]
Leaves = npt.NDArray[np.int32]

_CLOSE = 1e-3  # LightGBM sums in single precision
_NOTHING = 1e-6  # of a score
_LEAST_MEAN = 1e-15


@dataclass(frozen=True, eq=False)
class GrownTree:
    """One tree, and who falls into which leaf of it.

    Parameters
    ----------
    values : ndarray
        What each leaf adds to a score, without the initial score.
    penalties : ndarray
        The L2 penalty behind each.
    read_training, read_judged : callable
        Give the leaves of the training rows and of the judged rows.
    """

    values: FloatArray
    penalties: FloatArray
    read_training: Callable[[], Leaves]
    read_judged: Callable[[], Leaves]


@dataclass(frozen=True, eq=False)
class TrainingRows:
    """What the model learnt from, and how.

    Parameters
    ----------
    positive : ndarray of bool
        The labels.
    weights : ndarray or None
        What each row weighed; None is 1.
    initial : float
        The score before the first tree.
    from_average : bool
        Whether that was the log-odds of the labels' mean.
    rate : float
        The learning rate.
    l1 : float
        The L1 penalty of leaves.
    """

    positive: npt.NDArray[np.bool_]
    weights: FloatArray | None
    initial: float
    from_average: bool
    rate: float
    l1: float = 0.0


def initial_score(positive: npt.NDArray[np.bool_], weights: FloatArray | None) -> float:
    """Give the log-odds of the labels' mean."""
    mean = _mean_label(positive, weights)
    return float(np.log(mean / (1.0 - mean)))


def _mean_label(positive: npt.NDArray[np.bool_], weights: FloatArray | None) -> float:
    """Give the labels' mean, as far from 0 and 1 as LightGBM keeps it: one label may weigh nothing."""
    return float(np.clip(np.average(positive, weights=weights), _LEAST_MEAN, 1.0 - _LEAST_MEAN))


def direct_effects(trees: Sequence[GrownTree], rows: TrainingRows, slopes: FloatArray) -> FloatArray:
    """Give each training row's effect on metrics, with the scores before each tree held fixed.

    Parameters
    ----------
    trees : sequence of GrownTree
        In the order in which they were grown.
    rows : TrainingRows
        The training rows.
    slopes : ndarray of shape (n_judged, n_metrics)
        How each metric changes with each judged row's score.

    Returns
    -------
    ndarray of shape (n_training, n_metrics)
        Per unit of a row's weight.
    """
    effects = np.zeros((len(rows.positive), slopes.shape[1]))
    scores = np.full(len(rows.positive), rows.initial)
    for tree in trees:
        if len(tree.values) == 1:
            scores += tree.values[0]
            continue
        leaves = tree.read_training()
        step = _Step(tree, rows, scores, leaves)
        pull = _sum_by_leaf(slopes, tree.read_judged(), len(tree.values))
        step.add_moves(effects, pull)
        scores += tree.values[leaves]
    return effects


def backward_effects(trees: Sequence[GrownTree], rows: TrainingRows, slopes: FloatArray) -> FloatArray:
    """Give each training row's effect on metrics, with the trees' structure alone held fixed.

    Parameters and result are those of `direct_effects`.
    """
    n_rows, n_metrics = len(rows.positive), slopes.shape[1]
    effects, later = np.zeros((n_rows, n_metrics)), np.zeros((n_rows, n_metrics))
    scores = np.full(n_rows, rows.initial)
    for tree in trees:
        scores += tree.values[tree.read_training()]
    for tree in reversed(trees):
        leaves = tree.read_training()
        scores -= tree.values[leaves]
        if len(tree.values) == 1:
            continue
        step = _Step(tree, rows, scores, leaves)
        n_leaves = len(tree.values)
        pull = _sum_by_leaf(slopes, tree.read_judged(), n_leaves) + _sum_by_leaf(later, leaves, n_leaves)
        step.add_moves(effects, pull)
        step.add_later(later, pull)
    if rows.from_average:
        effects += _moves_of_average(rows)[:, np.newaxis] * (slopes.sum(axis=0) + later.sum(axis=0))
    return effects


class _Step:
    """What the training rows say at one tree."""

    def __init__(self, tree: GrownTree, rows: TrainingRows, scores: FloatArray, leaves: Leaves) -> None:
        n_leaves = len(tree.values)
        p = 1.0 / (1.0 + np.exp(-scores))
        self._weights = rows.weights
        self._gradient = p - rows.positive
        self._hessian = p * (1.0 - p)
        self._p = p
        self._leaves = leaves
        gradients = _sums(leaves, self._weighted(self._gradient), n_leaves)
        hessians = _sums(leaves, self._weighted(self._hessian), n_leaves)
        _check_values(tree.values, _values(rows, gradients, hessians, tree.penalties))
        self._scale = rows.rate / (hessians + tree.penalties)
        self._theta = tree.values / rows.rate
        self._active = None if rows.l1 == 0 else np.abs(gradients) > rows.l1

    def add_moves(self, effects: FloatArray, pull: FloatArray) -> None:
        """Add how far one more unit of each row's weight moves its leaf, times what the leaf moves."""
        moved = self._of_rows(self._gradient, self._hessian)
        self._add(effects, moved, pull)

    def add_later(self, later: FloatArray, pull: FloatArray) -> None:
        """Add how far each row's own score moves its leaf, times what the leaf moves."""
        curvature = self._hessian * (1.0 - 2.0 * self._p)
        self._add(later, self._weighted(self._of_rows(self._hessian, curvature)), pull)

    def _of_rows(self, first: FloatArray, second: FloatArray) -> FloatArray:
        second = second * self._theta[self._leaves]
        return second + (first if self._active is None else first * self._active[self._leaves])

    def _add(self, sums: FloatArray, moved: FloatArray, pull: FloatArray) -> None:
        scaled = pull * self._scale[:, np.newaxis]
        for k in range(sums.shape[1]):
            sums[:, k] -= moved * scaled[:, k][self._leaves]

    def _weighted(self, numbers: FloatArray) -> FloatArray:
        return numbers if self._weights is None else numbers * self._weights


def leaf_values(
    rows: TrainingRows,
    weights: FloatArray,
    scores: FloatArray,
    leaves: Leaves,
    penalties: FloatArray,
) -> FloatArray:
    """Give the values of a tree's leaves under other weights, from the scores before it.

    A leaf whose rows weigh nothing any more adds nothing.
    """
    p = 1.0 / (1.0 + np.exp(-scores))
    gradients = _sums(leaves, weights * (p - rows.positive), len(penalties))
    hessians = _sums(leaves, weights * p * (1.0 - p), len(penalties))
    return _values(rows, gradients, hessians, penalties)


def _values(
    rows: TrainingRows, gradients: FloatArray, hessians: FloatArray, penalties: FloatArray
) -> FloatArray:
    shrunk = np.sign(gradients) * np.maximum(np.abs(gradients) - rows.l1, 0.0)
    return -rows.rate * shrunk / np.maximum(hessians + penalties, np.finfo(np.float64).tiny)


def _sum_by_leaf(numbers: FloatArray, leaves: Leaves, n_leaves: int) -> FloatArray:
    return np.column_stack([_sums(leaves, numbers[:, k], n_leaves) for k in range(numbers.shape[1])])


def _sums(leaves: Leaves, numbers: FloatArray, n_leaves: int) -> FloatArray:
    return np.asarray(np.bincount(leaves, numbers, n_leaves), dtype=np.float64)


def _moves_of_average(rows: TrainingRows) -> FloatArray:
    """Give how far one more unit of each row's weight moves the initial score."""
    mean = _mean_label(rows.positive, rows.weights)
    total = len(rows.positive) if rows.weights is None else rows.weights.sum()
    return (rows.positive - mean) / (total * mean * (1.0 - mean))


def _check_values(values: FloatArray, expected: FloatArray) -> None:
    """Refuse leaves that the rows do not explain: their effects would be silently wrong."""
    worst = float(np.abs(values - expected).max())
    if worst > max(_CLOSE * float(np.abs(values).max()), _NOTHING):
        raise ValueError(
            "The values of the model's leaves do not follow from the rows that it learnt from "
            f"(they differ by up to {worst:.2g}), so no effect can be told: use plain gradient boosting."
        )
