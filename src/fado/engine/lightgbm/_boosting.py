"""Grow trees, and read the scores that the booster keeps of its own accord."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from fado.engine._base import FloatArray
from fado.tabular import Variable

if TYPE_CHECKING:
    import lightgbm

__all__ = ["Classes", "grow_trees", "read_scores", "spread"]


def grow_trees(
    parameters: dict[str, Any],
    training: lightgbm.Dataset,
    evaluation: lightgbm.Dataset | None,
    stop: threading.Event | None = None,
    enough: Callable[[lightgbm.Booster], bool] | None = None,
) -> lightgbm.Booster:
    """Grow the trees that `parameters` ask for; fewer if `stop` is set meanwhile or `enough` says so."""
    import lightgbm

    booster = lightgbm.Booster(
        {name: value for name, value in parameters.items() if name != "n_estimators"}, training
    )
    if evaluation is not None:
        booster.add_valid(evaluation, "evaluation")
    for _ in range(parameters["n_estimators"]):
        if stop is not None and stop.is_set():
            break
        booster.update()
        if enough is not None and enough(booster):
            break
    return booster


def read_scores(booster: lightgbm.Booster, *, training: bool) -> FloatArray:
    """Read the booster's own predictions for the rows it was trained or measured on."""
    seen: list[FloatArray] = []

    def keep(predicted: FloatArray, _: Any) -> tuple[str, float, bool]:
        seen.append(predicted.copy())
        return "kept", 0.0, True

    (booster.eval_train if training else booster.eval_valid)(keep)
    return seen[0]


class Classes:
    """The classes that some rows hold, among all of a variable; nothing at all for numbers.

    Parameters
    ----------
    variable : Variable
        What is learnt.
    labels : ndarray
        Those of the rows learnt from.

    Attributes
    ----------
    labels : ndarray
        Codes into the classes that occur, or the numbers.
    present : tuple of int
        The classes that occur.

    Examples
    --------
    >>> import numpy as np
    >>> from fado.tabular import Variable
    >>> colour = Variable("colour", "classes", np.array([0, 2, 2, 1]), ("blue", "green", "red"))
    >>> classes = Classes(colour, colour.labels[:3])
    >>> classes.labels
    array([0, 1, 1])
    >>> classes.spread(np.array([0.25]))  # of the second class that occurs
    array([[0.75, 0.  , 0.25]])
    """

    def __init__(self, variable: Variable, labels: npt.NDArray[Any]) -> None:
        self._n_all = len(variable.classes)
        self.present: tuple[int, ...] = ()
        self.labels = labels
        if variable.kind == "classes":
            occurs = np.bincount(labels, minlength=self._n_all) > 0
            self.present = tuple(np.flatnonzero(occurs).tolist())
            self.labels = (np.cumsum(occurs) - 1)[labels]

    def objective(self) -> dict[str, Any]:
        """Give the parameters that as many classes as occur ask for."""
        if not self.present:
            return {}
        if len(self.present) == 2:
            return {"objective": "binary"}
        return {"objective": "multiclass", "num_class": len(self.present)}

    def spread(self, predicted: FloatArray) -> FloatArray:
        """Place the probabilities of the classes that occur among those of all classes."""
        return spread(predicted, self.present, self._n_all)


def spread(predicted: FloatArray, present: Sequence[int], n_classes: int) -> FloatArray:
    """Place the probabilities of some classes among those of all; numbers, of no class, stay as they are."""
    if n_classes == 0 or (predicted.ndim == 1 and n_classes == 2):
        return predicted
    if predicted.ndim == 1:
        predicted = np.column_stack([1.0 - predicted, predicted])
    placed = np.zeros((len(predicted), n_classes))
    placed[:, list(present)] = predicted
    return placed
