"""The model of rows that hold only one class: it is certain, and nothing needs to be fitted.

Estimators refuse such labels, and LightGBM's own wrapper turns their probabilities round.
"""

from __future__ import annotations

import numpy as np

from fado.engine._base import FloatArray, LabelArray, Rows, Task, count_rows
from fado.tabular import Table

__all__ = ["ConstantModel", "fit_constant"]


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
