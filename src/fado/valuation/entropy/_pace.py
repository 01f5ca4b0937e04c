"""How fast the default models learn: as slowly as lets their trees take in all that helps with unseen rows.

The first fits learn fast. Where their loss on unseen rows is still falling at the last tree, there is much to
learn: all fits do as they did, or grow on where it falls steeply. Where it has risen again, a slower rate
spreads as much learning over more trees, whose chance errors cancel; the ranking of rows gains most where
there is least to learn.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import clone

from fado.tabular import Variable
from fado.valuation._probabilities import log_losses, own_label_probability

__all__ = ["LossCurve", "bags_that_tell", "choose_pace", "sum_losses", "trees_grown"]

FloatArray = npt.NDArray[np.float64]
Rows = npt.NDArray[np.int32]

WATCHED_EVERY = 5  # trees; reading predictions costs an eighth of growing one
_ENOUGH = 400  # unseen rows that do not just hold the most common class: fewer tell too little
_MOST_BAGS = 2  # that are asked, in tables too small to hold as many
_FEWEST = 10  # with fewer trees, the columns that they happened to draw decide the ranking
_PATIENCE = 15  # trees to grow in the hope that the loss falls again
_AT_LEAST = 20  # trees that a slowed model spreads its learning over, and more the more it learns
_NEARLY_ALL = 0.8  # of the trees: a model that needs so many is not worth slowing down
_STEEP = 0.03  # the part of what is learnt that the last few trees add where they are far too few


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

    Examples
    --------
    >>> import numpy as np
    >>> from fado.tabular import Variable
    >>> coin = Variable("coin", "classes", np.array([0, 1]), (0, 1))
    >>> curve = LossCurve(coin, np.array([0, 1]))
    >>> curve(np.array([0.25, 0.75]))
    False
    >>> np.exp(-np.array(curve.losses)).round(4)
    array([0.25  , 0.5625])
    """

    every = WATCHED_EVERY

    def __init__(self, variable: Variable, rows: Rows) -> None:
        self._variable = variable
        self._known = variable.known[rows]
        self._labels = variable.labels[rows][self._known]
        self.losses = [self._loss(self._best_constant())]

    def __call__(self, scores: FloatArray) -> bool:
        """Note the loss after a few more trees; say whether to stop growing."""
        self.losses.append(self._loss(scores[self._known]))
        return trees_grown(self.losses) - WATCHED_EVERY * _lowest(self.losses) >= _PATIENCE

    def _best_constant(self) -> FloatArray:
        if self._variable.kind == "continuous":
            return np.full(len(self._labels), self._labels.mean() if len(self._labels) else 0.0)
        shares = np.bincount(self._labels, minlength=len(self._variable.classes)) / len(self._labels)
        return np.broadcast_to(shares, (len(self._labels), len(shares)))

    def _loss(self, predicted: FloatArray) -> float:
        if self._variable.kind == "continuous":
            return float(np.square(predicted - self._labels).sum())
        own = own_label_probability(predicted, self._labels)
        return float(log_losses(own).sum())  # a class that the bag lacks has no probability


def bags_that_tell(variable: Variable, bags: Sequence[Rows]) -> int:
    """Say how many bags' unseen rows are enough to choose a learning rate by."""
    n_rows = len(variable.labels)
    telling = n_rows
    if variable.kind == "classes":
        telling -= int(np.bincount(variable.labels).max())
    unseen = np.cumsum([len(rows) for rows in bags]) * (telling / n_rows)
    return min(int(np.searchsorted(unseen, _ENOUGH)) + 1, len(bags), _MOST_BAGS)


def trees_grown(losses: Sequence[float] | FloatArray) -> int:
    """Say how many trees there were when the last of the `losses` was noted."""
    return WATCHED_EVERY * (len(losses) - 1)


def sum_losses(curves: Sequence[Sequence[float]]) -> FloatArray:
    """Add the `losses` of a variable's fits; one that ended early is taken to rise on as since its lowest.

    Fits that grew no tree have nothing to say; if none grew any, the sum is empty.
    """
    grown = [losses for losses in curves if len(losses) > 1]
    longest = max(map(len, grown), default=0)
    return np.sum([_prolonged(losses, longest) for losses in grown], axis=0) if grown else np.zeros(0)


def choose_pace(model: Any, losses: FloatArray) -> Any:
    """Fit a model's pace to what there is to learn.

    A model that has learnt all that helps before its last tree is slowed down: rate times trees stays what it
    was at the lowest loss. It gets some more trees than it needed, not all that it may have, which would cost
    the more the less there is to learn.

    Parameters
    ----------
    model : LGBMClassifier or LGBMRegressor
        The fast one.
    losses : ndarray
        Of the fast one for unseen rows, before the first tree and after every `WATCHED_EVERY`; `sum_losses`
        gives them.

    Returns
    -------
    LGBMClassifier or LGBMRegressor
        The very same model, if its pace is right.

    Examples
    --------
    >>> import numpy as np
    >>> from lightgbm import LGBMClassifier
    >>> model = LGBMClassifier(n_estimators=40, learning_rate=0.3)
    >>> slowed = choose_pace(model, np.array([9.0, 6.0, 5.0, 4.5, 4.4, 4.6]))  # lowest after 20 trees
    >>> slowed.n_estimators, slowed.learning_rate
    (30, 0.2)
    """
    most, n_trees = model.n_estimators, trees_grown(losses)
    if len(losses) < 2:
        return model
    best = max(WATCHED_EVERY * _lowest(losses), min(_FEWEST, most))
    if best == most == n_trees and losses[-2] - losses[-1] >= _STEEP * (losses[0] - losses[-1]):
        return clone(model).set_params(n_estimators=2 * most)
    if best > _NEARLY_ALL * most:
        return model
    trees = _AT_LEAST + round(best * (1 - _AT_LEAST / most))
    rate = round(model.learning_rate * best / trees, 4)
    return clone(model).set_params(n_estimators=trees, learning_rate=rate)


def _lowest(losses: Sequence[float] | FloatArray) -> int:
    """Find the lowest loss with any trees."""
    return 1 + int(np.argmin(losses[1:]))


def _prolonged(losses: Sequence[float], length: int) -> FloatArray:
    beyond = np.arange(1, length - len(losses) + 1)
    lowest = _lowest(losses)
    slope = (losses[-1] - losses[lowest]) / max(len(losses) - 1 - lowest, 1)
    return np.concatenate([losses, losses[-1] + slope * beyond])
