"""What one more unit of weight on a training row does to the scores of validation rows, through the leaves.

A leaf's value is ``-rate * G / (H + penalty)``, with the sums of its rows' weighted gradients and Hessians.
One more unit of weight on a row in it moves it by ``-rate * (g + theta * h) / (H + penalty)``, where theta is
the value over the rate, and every validation row in that leaf moves with it. So per tree a sum over
validation rows and a sum over training rows are all that is needed: no validation row is ever held against a
training row.

The direct effects hold the scores before each tree fixed. The backward ones take in that a leaf's move
changes the gradients of all later trees, with the trees' structure alone held fixed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

__all__ = [
    "GrownTree",
    "LeafResponse",
    "RowEffects",
    "TrainingRows",
    "backward_effects",
    "direct_effects",
    "initial_score",
    "leaf_values",
]

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
    read_training, read_validation_rows : callable
        Give the leaves of the training rows and of the validation rows.
    """

    values: FloatArray
    penalties: FloatArray
    read_training: Callable[[], Leaves]
    read_validation_rows: Callable[[], Leaves]


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


@dataclass(frozen=True, eq=False)
class LeafResponse:
    """How metrics respond to one more unit of weight on a row in each leaf of a tree.

    Parameters
    ----------
    pulls : ndarray of shape (n_leaves, n_metrics)
        By how much metrics fall per unit of what the row adds to the leaf's gradient.
    thetas : ndarray of shape (n_leaves,)
        The leaf's value over the rate.
    active : ndarray of bool or None
        Where the L1 penalty lets a gradient count; None is everywhere.
    """

    pulls: FloatArray
    thetas: FloatArray
    active: npt.NDArray[np.bool_] | None

    def moves(self, first: FloatArray, second: FloatArray, leaves: Leaves) -> FloatArray:
        """Give what rows add to their leaves' gradients, at the leaves' values."""
        second = second * self.thetas[leaves]
        return second + (first if self.active is None else first * self.active[leaves])

    def add(self, sums: FloatArray, moves: FloatArray, leaves: Leaves) -> None:
        """Add to the rows' effects what comes of their moves."""
        for k in range(sums.shape[1]):
            sums[:, k] -= moves * self.pulls[:, k][leaves]


@dataclass(frozen=True, eq=False)
class RowEffects:
    """What one model tells of its training rows, and all that tells the same of other rows.

    Parameters
    ----------
    of_rows : ndarray of shape (n_training, n_metrics)
        Each training row's effect, per unit of its weight.
    responses : tuple of LeafResponse or None
        One per tree, in the order in which they were grown; None for a tree that splits nothing.
    of_initial : ndarray of shape (2, n_metrics)
        What one more row of each label, the negative first, does through the initial score.
    """

    of_rows: FloatArray
    responses: tuple[LeafResponse | None, ...]
    of_initial: FloatArray


def initial_score(positive: npt.NDArray[np.bool_], weights: FloatArray | None) -> float:
    """Give the log-odds of the labels' mean."""
    mean = _mean_label(positive, weights)
    return float(np.log(mean / (1.0 - mean)))


def _mean_label(positive: npt.NDArray[np.bool_], weights: FloatArray | None) -> float:
    """Give the labels' mean, as far from 0 and 1 as LightGBM keeps it: one label may weigh nothing."""
    return float(np.clip(np.average(positive, weights=weights), _LEAST_MEAN, 1.0 - _LEAST_MEAN))


def direct_effects(trees: Sequence[GrownTree], rows: TrainingRows, slopes: FloatArray) -> RowEffects:
    """Give each training row's effect on metrics, with the scores before each tree held fixed.

    Parameters
    ----------
    trees : sequence of GrownTree
        In the order in which they were grown.
    rows : TrainingRows
        The training rows.
    slopes : ndarray of shape (n_validated, n_metrics)
        How each metric changes with each validation row's score.

    Returns
    -------
    RowEffects
    """
    effects = np.zeros((len(rows.positive), slopes.shape[1]))
    scores = np.full(len(rows.positive), rows.initial)
    responses: list[LeafResponse | None] = []
    for tree in trees:
        if len(tree.values) == 1:
            scores += tree.values[0]
            responses.append(None)
            continue
        leaves = tree.read_training()
        step = _Step(tree, rows, scores, leaves)
        response = step.respond(_sum_by_leaf(slopes, tree.read_validation_rows(), len(tree.values)))
        step.add_moves(effects, response)
        responses.append(response)
        scores += tree.values[leaves]
    return RowEffects(effects, tuple(responses), np.zeros((2, slopes.shape[1])))


def backward_effects(trees: Sequence[GrownTree], rows: TrainingRows, slopes: FloatArray) -> RowEffects:
    """Give each training row's effect on metrics, with the trees' structure alone held fixed.

    Parameters and result are those of `direct_effects`.
    """
    n_rows, n_metrics = len(rows.positive), slopes.shape[1]
    effects, later = np.zeros((n_rows, n_metrics)), np.zeros((n_rows, n_metrics))
    scores = np.full(n_rows, rows.initial)
    responses: list[LeafResponse | None] = []
    for tree in trees:
        scores += tree.values[tree.read_training()]
    for tree in reversed(trees):
        leaves = tree.read_training()
        scores -= tree.values[leaves]
        if len(tree.values) == 1:
            responses.append(None)
            continue
        step = _Step(tree, rows, scores, leaves)
        n_leaves = len(tree.values)
        pull = _sum_by_leaf(slopes, tree.read_validation_rows(), n_leaves) + _sum_by_leaf(
            later, leaves, n_leaves
        )
        response = step.respond(pull)
        step.add_moves(effects, response)
        step.add_later(later, response)
        responses.append(response)
    of_initial = np.zeros((2, n_metrics))
    if rows.from_average:
        of_initial = np.multiply.outer(_moves_of_average(rows), slopes.sum(axis=0) + later.sum(axis=0))
        effects += of_initial[rows.positive.astype(np.intp)]
    return RowEffects(effects, tuple(reversed(responses)), of_initial)


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

    def respond(self, pull: FloatArray) -> LeafResponse:
        """Say how metrics respond to rows in each leaf, by how they change with the leaf's value."""
        return LeafResponse(pull * self._scale[:, np.newaxis], self._theta, self._active)

    def add_moves(self, effects: FloatArray, response: LeafResponse) -> None:
        """Add how far one more unit of each row's weight moves its leaf, times what the leaf moves."""
        response.add(effects, response.moves(self._gradient, self._hessian, self._leaves), self._leaves)

    def add_later(self, later: FloatArray, response: LeafResponse) -> None:
        """Add how far each row's own score moves its leaf, times what the leaf moves."""
        curvature = self._hessian * (1.0 - 2.0 * self._p)
        moves = self._weighted(response.moves(self._hessian, curvature, self._leaves))
        response.add(later, moves, self._leaves)

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
    """Give how far one more row of each label, the negative first, moves the initial score."""
    mean = _mean_label(rows.positive, rows.weights)
    total = len(rows.positive) if rows.weights is None else rows.weights.sum()
    return (np.array([0.0, 1.0]) - mean) / (total * mean * (1.0 - mean))


def _check_values(values: FloatArray, expected: FloatArray) -> None:
    """Refuse leaves that the rows do not explain: their effects would be silently wrong."""
    worst = float(np.abs(values - expected).max())
    if worst > max(_CLOSE * float(np.abs(values).max()), _NOTHING):
        raise ValueError(
            "The values of the model's leaves do not follow from the rows that it learnt from "
            f"(they differ by up to {worst:.2g}), so no effect can be told: use plain gradient boosting."
        )
