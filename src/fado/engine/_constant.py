"""The model of rows that hold only one class: it is certain, and nothing needs to be fitted.

Estimators refuse such labels, and LightGBM's own wrapper turns their probabilities round.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from fado.engine._base import FloatArray, LabelArray, Rows, Task, count_rows
from fado.tabular import Table

__all__ = ["ConstantModel", "ConstantScorer", "fit_constant"]


class ConstantModel:
    """Says the same of every row.

    Parameters
    ----------
    said : ndarray of shape (1,) or (1, K)
        The probability of class 1, or of all classes.
    n_scored : int
        How many rows the task asked for.
    """

    gains = None
    n_trees = None

    def __init__(self, said: FloatArray, n_scored: int) -> None:
        self._said = said
        self.scores = np.repeat(said, n_scored, axis=0)

    def score(self, rows: Rows | Table, target: LabelArray | None = None) -> FloatArray:
        """Say of every row what was said of all."""
        return np.repeat(self._said, count_rows(rows), axis=0)

    def detach(self) -> ConstantScorer:
        """Give the class that it is certain of."""
        if self._said.ndim == 1:
            return ConstantScorer(int(self._said[0]), 2)
        return ConstantScorer(int(np.argmax(self._said[0])), self._said.shape[1])


@dataclass(frozen=True)
class ConstantScorer:
    """Is certain of every row's class; see `fado.engine.Scorer`.

    Parameters
    ----------
    code : int
        The class.
    n_classes : int
        How many there are.
    """

    code: int
    n_classes: int

    kind: ClassVar[str] = "constant"
    schema: ClassVar[None] = None
    sees_target: ClassVar[bool] = False

    def score(self, table: Table, target: LabelArray | None = None) -> FloatArray:
        """Give every row the same probabilities."""
        if self.n_classes == 2:
            return np.full(table.n_rows, float(self.code))
        said = np.zeros((table.n_rows, self.n_classes))
        said[:, self.code] = 1.0
        return said

    def parts(self) -> tuple[dict[str, Any], bytes]:
        """Give the probability of class 1 of two, or the class of more; there is nothing else."""
        if self.n_classes == 2:
            return {"kind": self.kind, "probability": float(self.code)}, b""
        return {"kind": self.kind, "code": self.code, "n_classes": self.n_classes}, b""

    @classmethod
    def from_parts(cls, plain: Mapping[str, Any], content: bytes) -> ConstantScorer:
        """Read what `parts` gave."""
        code, n_classes = plain.get("code", plain.get("probability")), plain.get("n_classes", 2)
        if type(n_classes) is not int or type(code) not in (int, float) or code not in range(n_classes):
            raise ValueError("A model that says the same of every row must be certain of it.")
        return cls(int(code), n_classes)


def fit_constant(task: Task, *, first_class_left_out: bool) -> ConstantModel | None:
    """Make the model of a task whose rows hold only one class; None if they hold more.

    Parameters
    ----------
    task : Task
        What to learn, from which rows.
    first_class_left_out : bool
        Whether the probabilities of two classes are given as that of class 1.
    """
    variable, labels = task.variable, task.variable.labels[task.rows]
    if variable.kind != "classes" or not len(labels) or (labels != labels[0]).any():
        return None
    said = np.zeros((1, len(variable.classes)))
    said[:, labels[0]] = 1.0
    if first_class_left_out and len(variable.classes) == 2:
        said = said[:, 1]
    return ConstantModel(said, count_rows(task.rows if task.scored is None else task.scored))
