"""What models tell of the rows' groups, for interventions that move groups by it."""

from __future__ import annotations

import threading
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from fado.aim import find_memberships
from fado.engine import LightGBMEngine, Task, default_estimators
from fado.experiment.run._data import Part
from fado.tabular import Variable, mean_one

__all__ = ["GroupsTold"]

FloatArray = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]


class GroupsTold:
    """Each row's group as far as somebody knows it: the row itself, or models of it.

    Groups are numbered as the compared ones are, and all others are one more.

    Parameters
    ----------
    training, evaluation : Part
        The rows to train on, and those that judge.
    compared : ndarray of bool
        Which groups are moved.
    seed : int
        Of the models.
    workers : int
        Fits side by side; they change nothing.
    """

    def __init__(self, training: Part, evaluation: Part, compared: Bools, *, seed: int, workers: int) -> None:
        place = np.where(compared, np.cumsum(compared) - 1, compared.sum())
        self._codes, self._theirs = place[training.groups.codes], place[evaluation.groups.codes]
        self.n_groups = int(compared.sum()) + bool((~compared[training.groups.codes]).any())
        self.compared = compared
        self._training, self._evaluation = training, evaluation
        self._seed, self._workers = seed, workers
        self._lock = threading.RLock()

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state | {"_lock": threading.RLock(), "_workers": 1})

    @property
    def of_training(self) -> FloatArray:
        """The training rows' probabilities of groups given features and label, out of bag."""
        with self._lock:
            return self._of_training

    @cached_property
    def _of_training(self) -> FloatArray:
        rows = self._training
        return find_memberships(
            rows.table,
            rows.positive,
            self._codes,
            self.n_groups,
            seed=self._seed,
            workers=self._workers,
            sample_weight=rows.weights,
            blocks=rows.blocks,
        ).probabilities

    @property
    def inferred(self) -> FloatArray:
        """The evaluated rows' probabilities of groups given their features."""
        with self._lock:
            return self._inferred

    @cached_property
    def _inferred(self) -> FloatArray:
        rows = np.arange(len(self._codes), dtype=np.int32)
        group = Variable("group", "classes", self._codes.astype(np.int32), tuple(range(self.n_groups)))
        estimator = default_estimators(self._training.table.n_columns)[0]
        weights = None if self._training.weights is None else mean_one(self._training.weights)
        task = Task(estimator, group, rows, self._seed, self._evaluation.table, weights)
        scores = LightGBMEngine(self._training.table).fit(task).scores
        return np.column_stack([1 - scores, scores]) if scores.ndim == 1 else scores

    @property
    def known(self) -> FloatArray:
        """The evaluated rows' own groups."""
        return np.eye(int(self.compared.sum()) + 1)[self._theirs]
