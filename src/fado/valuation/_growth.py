"""How many trees the default models grow: as many as still help with rows that they have not seen."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from fado._variables import Variable
from fado.engine._lightgbm import WATCHED_EVERY, Prediction
from fado.valuation._entropy import own_label_probability

__all__ = ["LossCurve", "bags_that_tell", "best_number_of_trees"]

FloatArray = npt.NDArray[np.float64]
Rows = npt.NDArray[np.int32]

_ENOUGH = 1600  # unseen rows that do not just hold the most common class: fewer tell too little
_FEWEST = 10  # with fewer trees, the columns that they happened to draw decide the ranking
_PATIENCE = 15  # trees to grow in the hope that the loss falls again
_TOLERANCE = 0.01  # the part of the fall that may be lost again: rankings gain from trees beyond the lowest


class LossCurve:
    """How far off one fit's predictions for the rows left out are, every few trees.

    Parameters
    ----------
    variable : Variable
        What is learnt.
    rows : ndarray
        The rows left out.

    Attributes
    ----------
    losses : list of float
        Summed over the rows: log-loss of classes, squared error of numbers. The first is that of the best
        constant, before any tree.
    kept : dict of int to Prediction
        What the fit said after so many trees, from shortly before the lowest loss on.

    Examples
    --------
    >>> import numpy as np
    >>> from fado._variables import Variable
    >>> from fado.engine._lightgbm import Prediction
    >>> coin = Variable("coin", "classes", np.array([0, 1]), (0, 1))
    >>> curve = LossCurve(coin, np.array([0, 1]))
    >>> curve(Prediction(np.array([0.25, 0.75]), gains=np.zeros(1)))
    False
    >>> np.exp(-np.array(curve.losses)).round(4)
    array([0.25  , 0.5625])
    """

    def __init__(self, variable: Variable, rows: Rows) -> None:
        self._variable = variable
        self._known = variable.known[rows]
        self._labels = variable.labels[rows][self._known]
        self.losses = [self._loss(self._best_constant())]
        self.kept: dict[int, Prediction] = {}

    def __call__(self, so_far: Prediction) -> bool:
        """Note the loss after a few more trees; say whether to stop growing."""
        self.losses.append(self._loss(so_far.predicted[self._known]))
        lowest = WATCHED_EVERY * _lowest(self.losses)
        self.kept[self.n_trees] = so_far
        self.kept = {n: said for n, said in self.kept.items() if n >= lowest - _PATIENCE}
        return self.n_trees - lowest >= _PATIENCE

    @property
    def n_trees(self) -> int:
        """How many trees were grown."""
        return WATCHED_EVERY * (len(self.losses) - 1)

    def _best_constant(self) -> FloatArray:
        if self._variable.kind == "continuous":
            return np.full(len(self._labels), self._labels.mean() if len(self._labels) else 0.0)
        shares = np.bincount(self._labels, minlength=len(self._variable.classes)) / len(self._labels)
        return np.broadcast_to(shares, (len(self._labels), len(shares)))

    def _loss(self, predicted: FloatArray) -> float:
        if self._variable.kind == "continuous":
            return float(np.square(predicted - self._labels).sum())
        own = own_label_probability(predicted, self._labels)
        return float(-np.log(np.maximum(own, 1e-15)).sum())  # a class that the bag lacks has no probability


def bags_that_tell(variable: Variable, bags: Sequence[Rows]) -> int:
    """Say how many bags' unseen rows are enough to choose a number of trees by."""
    n_rows = len(variable.labels)
    telling = n_rows
    if variable.kind == "classes":
        telling -= int(np.bincount(variable.labels).max())
    unseen = np.cumsum([len(rows) for rows in bags]) * (telling / n_rows)
    return min(int(np.searchsorted(unseen, _ENOUGH)) + 1, len(bags))


def best_number_of_trees(curves: Sequence[Sequence[float]], *, most: int) -> int:
    """Choose the number of trees up to which the loss, summed over fits, falls and stays nearly the lowest.

    Parameters
    ----------
    curves : sequence of sequences of float
        The `losses` of a variable's fits. Where one ends early, it is taken to rise on as it rose since its
        lowest.
    most : int
        The largest answer, and the answer if no fit grew any tree.

    Examples
    --------
    >>> best_number_of_trees([[2.0, 1.5, 1.2, 1.0, 1.1]], most=40)  # after 0, 5, 10, ... trees
    15
    """
    grown = [losses for losses in curves if len(losses) > 1]
    if not grown:
        return most
    longest = max(map(len, grown))
    total = np.sum([_prolonged(losses, longest) for losses in grown], axis=0)
    lowest = _lowest(total)
    allowed = total[lowest] + _TOLERANCE * max(total[0] - total[lowest], 0.0)
    too_high = np.flatnonzero(total[lowest:] > allowed)
    best = lowest + int(too_high[0]) - 1 if len(too_high) else longest - 1
    return max(WATCHED_EVERY * best, min(_FEWEST, most))


def _lowest(losses: Sequence[float] | FloatArray) -> int:
    """Find the lowest loss with any trees."""
    return 1 + int(np.argmin(losses[1:]))


def _prolonged(losses: Sequence[float], length: int) -> FloatArray:
    beyond = np.arange(1, length - len(losses) + 1)
    lowest = _lowest(losses)
    slope = (losses[-1] - losses[lowest]) / max(len(losses) - 1 - lowest, 1)
    return np.concatenate([losses, losses[-1] + slope * beyond])
