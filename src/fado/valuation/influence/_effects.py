"""From a training row's weight to the scores of validation rows, and from these to metrics.

A leaf's value is ``-rate * G / (H + penalty)``, with the sums of its rows' weighted gradients and Hessians.
One more unit of weight on a row in it moves it by ``-rate * (g + theta * h) / (H + penalty)``, where theta is
the value over the rate, and every validation row in that leaf moves with it. So each tree needs only a sum
over validation rows and a sum over training rows: no validation row is compared with a training row. Direct
effects hold the scores before each tree fixed. Backward effects include that a leaf's move changes the
gradients of all later trees, with only the structure of the trees held fixed.

The slope of a metric is its change with a score. A rate jumps when a score crosses the threshold, so the jump
is replaced by a kernel around the threshold. The threshold itself moves with the negative validation rows, so
that their false-positive rate stays within the budget.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fado._typing import Bools, Floats, Integers
from fado.valuation._validation_rows import ValidationRows

BANDWIDTH = 0.1  # of the standard deviation of validation rows' scores; chosen by benchmarks/faithfulness.py
_ROWS_NEAR = 20  # of each label within the bandwidth, at least

_CLOSE = 1e-3  # LightGBM sums in single precision
_NOTHING = 1e-6  # of a score
_LEAST_MEAN = 1e-15


@dataclass(frozen=True, eq=False)
class GrownTree:
    """One tree, and the leaf of each row.

    Parameters
    ----------
    values : ndarray
        What each leaf adds to a score, without the initial score.
    penalties : ndarray
        The L2 penalty of each.
    training, validation : ndarray of int
        The leaves of the training rows and of the validation rows.
    """

    values: Floats
    penalties: Floats
    training: Integers
    validation: Integers


@dataclass(frozen=True, eq=False)
class TrainingRows:
    """What the model learnt from, and how.

    Parameters
    ----------
    positive : ndarray of bool
        The labels.
    weights : ndarray or None
        The weight of each row; None is 1.
    initial : float
        The score before the first tree.
    from_average : bool
        Whether that is the log-odds of the labels' mean.
    rate : float
        The learning rate.
    l1 : float
        The L1 penalty of leaves.
    """

    positive: npt.NDArray[np.bool_]
    weights: Floats | None
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

    pulls: Floats
    thetas: Floats
    active: npt.NDArray[np.bool_] | None

    def moves(self, first: Floats, second: Floats, leaves: Integers) -> Floats:
        """Return what rows add to their leaves' gradients, at the leaves' values."""
        second = second * self.thetas[leaves]
        return second + (first if self.active is None else first * self.active[leaves])

    def add(self, sums: Floats, moves: Floats, leaves: Integers) -> None:
        """Add to the rows' effects the result of their moves."""
        for k in range(sums.shape[1]):
            sums[:, k] -= moves * self.pulls[:, k][leaves]


@dataclass(frozen=True, eq=False)
class RowEffects:
    """The effects of a model's training rows, and what is needed for the effects of other rows.

    Parameters
    ----------
    of_rows : ndarray of shape (n_training, n_metrics)
        Each training row's effect, per unit of its weight.
    responses : tuple of LeafResponse or None
        One per tree, in the order in which they were grown; None for a tree that splits nothing.
    of_initial : ndarray of shape (2, n_metrics)
        The effect of one more row of each label, the negative first, through the initial score.
    """

    of_rows: Floats
    responses: tuple[LeafResponse | None, ...]
    of_initial: Floats


def initial_score(positive: npt.NDArray[np.bool_], weights: Floats | None) -> float:
    """Return the log-odds of the labels' mean."""
    mean = _mean_label(positive, weights)
    return float(np.log(mean / (1.0 - mean)))


def _mean_label(positive: npt.NDArray[np.bool_], weights: Floats | None) -> float:
    """Return the labels' mean, kept away from 0 and 1 as LightGBM does: one label may weigh nothing."""
    return float(np.clip(np.average(positive, weights=weights), _LEAST_MEAN, 1.0 - _LEAST_MEAN))


def direct_effects(trees: Sequence[GrownTree], rows: TrainingRows, slopes: Floats) -> RowEffects:
    """Return each training row's effect on metrics, with the scores before each tree held fixed.

    `slopes`, of shape (n_validated, n_metrics), are the change of each metric with each validation row's
    score.
    """
    effects = np.zeros((len(rows.positive), slopes.shape[1]))
    scores = np.full(len(rows.positive), rows.initial)
    responses: list[LeafResponse | None] = []
    for tree in trees:
        if len(tree.values) == 1:
            scores += tree.values[0]
            responses.append(None)
            continue
        step = _Step(tree, rows, scores)
        response = step.respond(_sum_by_leaf(slopes, tree.validation, len(tree.values)))
        step.add_moves(effects, response)
        responses.append(response)
        scores += tree.values[tree.training]
    return RowEffects(effects, tuple(responses), np.zeros((2, slopes.shape[1])))


def backward_effects(trees: Sequence[GrownTree], rows: TrainingRows, slopes: Floats) -> RowEffects:
    """Return each training row's effect on metrics, with only the trees' structure held fixed."""
    n_rows, n_metrics = len(rows.positive), slopes.shape[1]
    effects, later = np.zeros((n_rows, n_metrics)), np.zeros((n_rows, n_metrics))
    scores = np.full(n_rows, rows.initial)
    responses: list[LeafResponse | None] = []
    for tree in trees:
        scores += tree.values[tree.training]
    for tree in reversed(trees):
        scores -= tree.values[tree.training]
        if len(tree.values) == 1:
            responses.append(None)
            continue
        step, n_leaves = _Step(tree, rows, scores), len(tree.values)
        pull = _sum_by_leaf(slopes, tree.validation, n_leaves)
        response = step.respond(pull + _sum_by_leaf(later, tree.training, n_leaves))
        step.add_moves(effects, response)
        step.add_later(later, response)
        responses.append(response)
    of_initial = np.zeros((2, n_metrics))
    if rows.from_average:
        mean = _mean_label(rows.positive, rows.weights)
        total = n_rows if rows.weights is None else rows.weights.sum()
        moves = (np.array([0.0, 1.0]) - mean) / (total * mean * (1.0 - mean))  # by one more row of each label
        of_initial = np.multiply.outer(moves, slopes.sum(axis=0) + later.sum(axis=0))
        effects += of_initial[rows.positive.astype(np.intp)]
    return RowEffects(effects, tuple(reversed(responses)), of_initial)


class _Step:
    """Gradients and Hessians of the training rows at one tree."""

    def __init__(self, tree: GrownTree, rows: TrainingRows, scores: Floats) -> None:
        n_leaves, leaves = len(tree.values), tree.training
        p = 1.0 / (1.0 + np.exp(-scores))
        self._weights = 1.0 if rows.weights is None else rows.weights
        self._gradient = p - rows.positive
        self._hessian = p * (1.0 - p)
        self._p = p
        self._leaves = leaves
        gradients = _sums(leaves, self._weights * self._gradient, n_leaves)
        hessians = _sums(leaves, self._weights * self._hessian, n_leaves)
        shrunk = np.sign(gradients) * np.maximum(np.abs(gradients) - rows.l1, 0.0)
        expected = -rows.rate * shrunk / np.maximum(hessians + tree.penalties, np.finfo(np.float64).tiny)
        worst = float(np.abs(tree.values - expected).max())
        if worst > max(_CLOSE * float(np.abs(tree.values).max()), _NOTHING):  # else effects would be wrong
            raise ValueError(
                "The values of the model's leaves do not follow from the rows that it learnt from "
                f"(they differ by up to {worst:.2g}), so no effect is known: use plain gradient boosting."
            )
        self._scale = rows.rate / (hessians + tree.penalties)
        self._theta = tree.values / rows.rate
        self._active = None if rows.l1 == 0 else np.abs(gradients) > rows.l1

    def respond(self, pull: Floats) -> LeafResponse:
        """Return how metrics respond to rows in each leaf, given how they change with the leaf's value."""
        return LeafResponse(pull * self._scale[:, np.newaxis], self._theta, self._active)

    def add_moves(self, effects: Floats, response: LeafResponse) -> None:
        """Add how far one more unit of each row's weight moves its leaf, times the leaf's response."""
        response.add(effects, response.moves(self._gradient, self._hessian, self._leaves), self._leaves)

    def add_later(self, later: Floats, response: LeafResponse) -> None:
        """Add how far each row's score moves its leaf, times the leaf's response."""
        curvature = self._hessian * (1.0 - 2.0 * self._p)
        moves = self._weights * response.moves(self._hessian, curvature, self._leaves)
        response.add(later, moves, self._leaves)


def _sum_by_leaf(numbers: Floats, leaves: Integers, n_leaves: int) -> Floats:
    return np.column_stack([_sums(leaves, numbers[:, k], n_leaves) for k in range(numbers.shape[1])])


def _sums(leaves: Integers, numbers: Floats, n_leaves: int) -> Floats:
    return np.asarray(np.bincount(leaves, numbers, n_leaves), dtype=np.float64)


def bandwidth_for(scores: Floats, threshold: float, positive: Bools) -> float:
    """Return the width of the kernel: a share of the scores' spread, or more if few rows of a label are near.

    Examples
    --------
    >>> import numpy as np
    >>> scores = np.linspace(-3, 3, 601)
    >>> round(bandwidth_for(scores, 0.0, scores > 2), 2)  # the 20th of the positives is 2.2 away
    2.2
    """
    distance = np.abs(scores - threshold)
    far = []
    for of_label in (distance[positive], distance[~positive]):
        if len(of_label):
            nth = min(_ROWS_NEAR, len(of_label)) - 1
            far.append(np.partition(of_label, nth)[nth])
    return float(max(BANDWIDTH * np.std(scores), *far)) or 1.0


def kernel_at(scores: Floats, threshold: float, bandwidth: float) -> Floats:
    """Return how much of each row crosses a threshold per unit of its score: a normal density."""
    distance = (scores - threshold) / bandwidth
    return np.exp(-0.5 * distance**2) / (bandwidth * np.sqrt(2 * np.pi))


def slopes_at_budget(coefficients: Floats, kernel: Floats, negative_weights: Floats) -> Floats:
    """Return how a sum of decisions changes with each score, at a threshold that keeps the budget.

    `coefficients` are what each row adds to metrics if it is predicted positive, `negative_weights` the
    weights of negatives.

    Examples
    --------
    If all scores rise alike, so does the threshold, and nothing changes.

    >>> import numpy as np
    >>> kernel = kernel_at(np.array([0.1, 0.2, 0.3]), 0.2, bandwidth=0.1)
    >>> slopes = slopes_at_budget(np.array([0.0, 1.0, 0.0]), kernel, np.array([1.0, 0.0, 1.0]))
    >>> float(abs(slopes.sum()).round(6))
    0.0
    """
    plain = coefficients * (kernel if coefficients.ndim == 1 else kernel[:, np.newaxis])
    moves = negative_weights * kernel
    total = moves.sum()
    if total == 0:
        return plain
    return plain - np.multiply.outer(moves / total, plain.sum(axis=0))


def metric_slopes(
    validated: ValidationRows,
    folds: Sequence[npt.NDArray[np.integer[Any]]],
    probabilities: Floats,
    performance: str,
    fairness: str,
    max_fpr: float,
) -> Floats:
    """Return how performance and each attribute's ratio change with the scores of validation rows.

    `folds` are their positions, by the model that scored them: each model has a separate threshold, and rates
    are those of all rows. The first column is for the performance; one follows per attribute.
    """
    predicted = validated.decide(probabilities, max_fpr)
    negatives = np.where(validated.positive, 0.0, validated.weights)
    for rows in folds:
        if negatives[rows].any():  # else the threshold of all rows must do
            predicted[rows] = validated.take(rows).decide(probabilities[rows], max_fpr)
    first = np.zeros(validated.n_rows)
    if performance != "log_loss":
        first = validated.performance_coefficients(performance)
    for groups in validated.attributes:
        validated.extremes(groups, fairness, predicted).warn_if_close(groups, fairness)
    ratios = [validated.ratio_coefficients(groups, fairness, predicted) for groups in validated.attributes]
    coefficients = np.column_stack([first, *ratios])
    inside, slopes = np.clip(probabilities, 1e-15, 1 - 1e-15), np.zeros_like(coefficients)
    log_odds = np.log(inside) - np.log1p(-inside)
    for rows in folds:
        scores, positive = log_odds[rows], validated.positive[rows]
        chosen = scores[predicted[rows]]
        threshold = float(chosen.min()) if len(chosen) else float(scores.max())
        kernel = kernel_at(scores, threshold, bandwidth_for(scores, threshold, positive))
        slopes[rows] = slopes_at_budget(coefficients[rows], kernel, negatives[rows])
        if performance == "accuracy":
            slopes[rows, 0] = first[rows] * kernel_at(scores, 0.0, bandwidth_for(scores, 0.0, positive))
    if performance == "log_loss":
        shares = validated.weights / validated.weights.sum()
        slopes[:, 0] = (validated.positive - probabilities) * shares
    return slopes
