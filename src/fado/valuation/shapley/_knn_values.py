"""Exact Shapley values of rows whose worth is that of the nearest few.

A set of rows is worth, to a validation row, the sum of the payoffs of those K of the set that are nearest to
it, over K. With the payoffs in order of distance, the shares of all rows follow from one pass from the
farthest to the nearest (Jia et al., 2019, "Efficient task-specific data valuation for nearest neighbor
algorithms").
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import numpy as np
import numpy.typing as npt

from fado.valuation._validation_rows import ValidationRows, ratio_coefficients
from fado.valuation.shapley._distances import Points, squared_distances

__all__ = [
    "Game",
    "Round",
    "Sums",
    "Vote",
    "class_payoffs",
    "hold_vote",
    "n_tasks",
    "nearest_first",
    "number_payoffs",
    "plan_tasks",
    "positive_payoffs",
    "rank_weights",
    "shares",
]

FloatArray = npt.NDArray[np.float64]
Rows = npt.NDArray[np.integer[Any]]

_ROWS_PER_TASK = 128  # validation rows
_ENTRIES = 1 << 20  # distances that one worker holds at a time


def positive_payoffs(labels: FloatArray, validated: float) -> FloatArray:
    """Give 1 for every positive label, whichever row is measured."""
    return labels


def class_payoffs(labels: FloatArray, validated: float) -> FloatArray:
    """Give 1 for every label that is the validation row's own."""
    return (labels == validated).astype(np.float64)


def number_payoffs(labels: FloatArray, validated: float) -> FloatArray:
    """Give 1 for a validation row's own number, less the farther off; numbers are in units of their range.

    Examples
    --------
    >>> import numpy as np
    >>> number_payoffs(np.array([0.0, 0.5, 1.0]), 0.75)
    array([0.25, 0.75, 0.75])
    """
    return 1.0 - np.abs(labels - validated)


def nearest_first(distances: FloatArray) -> npt.NDArray[np.int64]:
    """Order positions by distance, each row of an array by itself; equally far ones come by position.

    The array is used up. Distances count as equal if they are so to about ten digits: each shares 64 bits
    with its position, which sort far faster than pairs of the two.

    Parameters
    ----------
    distances : ndarray of shape (n_validated, n_rows)
        Not negative.

    Examples
    --------
    >>> import numpy as np
    >>> nearest_first(np.array([[0.5, 0.0, 0.5, 0.1]]))
    array([[1, 3, 0, 2]])
    """
    n_rows = distances.shape[1]
    low = np.uint64((1 << max(1, (n_rows - 1).bit_length())) - 1)
    keys = distances.view(np.uint64)
    keys <<= np.uint64(1)  # the sign, which is always the same
    keys &= ~low
    keys |= np.arange(n_rows, dtype=np.uint64)
    keys.sort(axis=1)
    keys &= low
    return keys.view(np.int64)


def rank_weights(n_rows: int, n_neighbors: int) -> tuple[FloatArray, FloatArray]:
    """Give what a payoff counts, by its rank: for the row itself, and against it and all that are nearer.

    Jia et al. have ``s[N] = a[N] / max(K, N)`` and ``s[i] = s[i + 1] + (a[i] - a[i + 1]) / max(K, i)``. Added
    up, ``s[i] = a[i] * own[i] - sum(a[l] * against[l] for l >= i)``.
    """
    rank = np.arange(1, n_rows + 1, dtype=np.float64)
    before = np.maximum(n_neighbors, rank - 1.0)
    own = 1.0 / before
    against = own - 1.0 / np.maximum(n_neighbors, rank)
    return own, against


def shares(payoffs: FloatArray, weights: tuple[FloatArray, FloatArray]) -> FloatArray:
    """Give every row's Shapley value for one validation row.

    Parameters
    ----------
    payoffs : ndarray
        By distance, the nearest first.
    weights : tuple
        From `rank_weights`.

    Examples
    --------
    >>> import numpy as np
    >>> shares(np.array([1.0, 0.0, 1.0]), rank_weights(3, 1)).round(3)
    array([ 0.833, -0.167,  0.333])
    """
    own, against = weights
    lost = np.cumsum((payoffs * against)[::-1])[::-1]
    return payoffs * own - lost


@dataclass(frozen=True, eq=False)
class Game:
    """What votes pay.

    A row's shares are added up over the validation rows of a cell: a label and a group. A metric's
    coefficients are the same for all rows of a cell, but for their weights, and are known once all have
    voted.

    Parameters
    ----------
    payoffs : callable
        Takes the labels of valued rows and that of a validated one.
    valued, validated : ndarray
        The labels, as numbers.
    weights : ndarray
        What each validation row counts.
    cells : ndarray of shape (n_validated, n_attributes or 1)
        The cells of each validation row. Odd ones hold the positive label, if the target has two.
    sizes : tuple of int
        How many cells each column of `cells` speaks of.
    rows : ValidationRows or None
        The validation rows of a target of two classes, whose votes pay for positive labels, right or wrong.
    """

    payoffs: Callable[[FloatArray, float], FloatArray]
    valued: FloatArray
    validated: FloatArray
    weights: FloatArray
    cells: npt.NDArray[np.int64]
    sizes: tuple[int, ...]
    rows: ValidationRows | None = None


@dataclass(frozen=True, eq=False)
class Round:
    """The positions of rows to value, and of those that are measured by them."""

    valued: Rows
    validated: Rows


@dataclass(frozen=True, eq=False)
class _Task:
    """Some validation rows of a round."""

    valued: Rows
    validated: Rows
    points: Points
    labels: FloatArray
    weights: tuple[FloatArray, FloatArray]


@dataclass(frozen=True, eq=False)
class Vote:
    """What all tasks share."""

    game: Game
    validated: Points
    n_neighbors: int


@dataclass(frozen=True, eq=False)
class _Result:
    """Shares of the valued rows, summed over the validation rows of some cells, and what votes paid."""

    task: _Task
    cells: npt.NDArray[np.int64]
    sums: FloatArray
    degrees: FloatArray


def n_tasks(rounds: Sequence[Round]) -> int:
    """Say how many tasks `plan_tasks` gives."""
    return sum(-(-len(own.validated) // _ROWS_PER_TASK) for own in rounds)


def plan_tasks(rounds: Sequence[Round], points: Points, game: Game, n_neighbors: int) -> Iterator[_Task]:
    """Cut rounds into tasks, the same ones for any number of workers."""
    for own in rounds:
        whole = len(own.valued) == points.n_rows
        valued = points if whole else points.take(own.valued)
        labels, weights = game.valued[own.valued], rank_weights(len(own.valued), n_neighbors)
        for start in range(0, len(own.validated), _ROWS_PER_TASK):
            validated = own.validated[start : start + _ROWS_PER_TASK]
            yield _Task(own.valued, validated, valued, labels, weights)


def hold_vote(task: _Task, vote: Vote, stop: threading.Event) -> _Result:
    """Have the nearest rows vote on some validation rows, one after the other."""
    game, n_valued = vote.game, len(task.valued)
    cells, places = np.unique(game.cells[task.validated], return_inverse=True)
    places = places.reshape(len(task.validated), -1)
    sums = np.zeros((len(cells), n_valued))
    degrees = np.empty(len(task.validated))
    by_row = np.empty(n_valued)
    step = max(1, _ENTRIES // max(n_valued, task.points.width))
    for start in range(0, len(task.validated), step):
        if stop.is_set():
            break
        rows = task.validated[start : start + step]
        orders = nearest_first(squared_distances(vote.validated.take(rows), task.points))
        for number, (row, order) in enumerate(zip(rows, orders, strict=True), start):
            payoffs = game.payoffs(task.labels, game.validated[row])[order]
            degrees[number] = payoffs[: vote.n_neighbors].sum() / vote.n_neighbors
            by_row[order] = shares(payoffs, task.weights)
            if game.weights[row] != 1.0:
                np.multiply(by_row, game.weights[row], out=by_row)
            for place in places[number]:
                sums[place] += by_row
    return _Result(task, cells, sums, degrees)


class Sums:
    """Adds up what tasks found, in their order."""

    def __init__(self, game: Game, n_rows: int, n_neighbors: int) -> None:
        self._game = game
        self._n_neighbors = n_neighbors
        self._sums = np.zeros((sum(game.sizes), n_rows))
        self._degrees = np.zeros(len(game.validated))

    def add(self, result: _Result) -> None:
        """Take in the shares and votes of one task."""
        self._degrees[result.task.validated] = result.degrees
        for cell, sums in zip(result.cells, result.sums, strict=True):
            self._sums[cell, result.task.valued] += sums

    def values(self, rounds: Sequence[Round], fairness: str) -> dict[str, FloatArray]:
        """Give the values of every variable."""
        game, first = self._game, self._game.sizes[0]
        total = game.weights.sum()
        if game.rows is None:
            return {"y": self._sums[:first].sum(axis=0) / total}
        # Negatives are paid for votes for the other label: 1 less what votes for the positive one pay, and a
        # vote that always pays 1 gives all rows the same share.
        right = self._sums[1:first:2].sum(axis=0) - self._sums[0:first:2].sum(axis=0)
        for own in rounds:
            negative = ~game.rows.positive[own.validated]
            share = 1.0 / max(self._n_neighbors, len(own.valued))
            right[own.valued] += share * game.weights[own.validated][negative].sum()
        values = {"y": right / total}
        starts = accumulate(game.sizes, initial=0)
        for number, (attribute, start) in enumerate(zip(game.rows.attributes, starts, strict=False)):
            coefficients = ratio_coefficients(game.rows, attribute, fairness, self._degrees)
            cells, n_cells = game.cells[:, number] - start, game.sizes[number]
            weights = np.bincount(cells, game.weights, n_cells)
            factors = np.bincount(cells, coefficients, n_cells) / np.where(weights > 0, weights, 1.0)
            values[attribute.name] = factors @ self._sums[start : start + n_cells]
        return values
