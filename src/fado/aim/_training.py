"""Train an estimator with weights, and score the rows that it is judged on."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fado._validation import check_classifier
from fado.engine import Model, Task, engine_class
from fado.execution import ThreadExecutor
from fado.tabular import Table, Variable

__all__ = ["Split", "Trainer", "check_estimator_fits"]

FloatArray = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
Rows = npt.NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class Split:
    """The rows that one model learns from, and those that it is judged on.

    Parameters
    ----------
    learnt : ndarray of int32
        Positions in the table, ascending.
    judged : ndarray of int32 or Table
        Positions in the table, or the rows of another one.
    """

    learnt: Rows
    judged: Rows | Table


class Trainer:
    """Fits one estimator on rows of a table, by the engine that serves it.

    Parameters
    ----------
    estimator : estimator
        A classifier.
    table : Table
        The features.
    positive : ndarray of bool
        The rows of the positive label.
    sample_weight : ndarray or None
        What rows weigh of their own.
    seed : int
        Of an estimator without one.
    workers : int
        Fits side by side.
    """

    def __init__(
        self,
        estimator: Any,
        table: Table,
        positive: Bools,
        *,
        sample_weight: FloatArray | None,
        seed: int,
        workers: int,
    ) -> None:
        self._estimator = estimator
        self._target = Variable("y", "classes", positive.astype(np.int32), (False, True))
        self._own = sample_weight
        self._seed = seed
        self._workers = workers
        self._engine = engine_class(estimator, table)(table)

    def judged_scores(self, splits: Sequence[Split], weights: FloatArray | None) -> tuple[FloatArray, Model]:
        """Fit one model per split; give the scores of all judged rows, one split after the other.

        The model is that of the last split.

        Parameters
        ----------
        splits : sequence of Split
            The rows.
        weights : ndarray or None
            Of all rows of the table, which multiply those that they have of their own.
        """
        tasks = [self._task(split.learnt, split.judged, weights) for split in splits]
        self._engine.prepare(tasks)
        workers = self._workers if self._engine.in_threads else 1
        models = list(ThreadExecutor(workers).run(_fitted, tasks, self._engine))
        return np.concatenate([_of_positive(model.scores) for model in models]), models[-1]

    def fit(self, weights: FloatArray | None) -> Model:
        """Fit a model on all rows."""
        rows = np.arange(len(self._target.labels), dtype=np.int32)
        task = self._task(rows, rows[:1], weights)
        self._engine.prepare([task])
        return self._engine.fit(task)

    def _task(self, learnt: Rows, judged: Rows | Table, weights: FloatArray | None) -> Task:
        own, chosen = (None if given is None else given[learnt] for given in (self._own, weights))
        product = own if chosen is None else chosen if own is None else own * chosen
        return Task(self._estimator, self._target, learnt, self._seed, judged, product)


def _fitted(task: Task, engine: Any, stop: threading.Event) -> Model:
    return engine.fit(task, stop)


def _of_positive(scores: FloatArray) -> FloatArray:
    """Give the probabilities of the positive label, refusing what is no number."""
    found = scores if scores.ndim == 1 else scores[:, 1]
    wrong = np.flatnonzero(~np.isfinite(found))
    if len(wrong):
        raise ValueError(
            f"The estimator gave {found[wrong[0]]} as the probability of {len(wrong):,} of {len(found):,} "
            "judged rows: use one whose probabilities are numbers."
        )
    return found


def check_estimator_fits(estimator: Any) -> None:
    """Refuse an estimator that gives no probabilities or takes no weights."""
    from sklearn.pipeline import Pipeline
    from sklearn.utils.validation import has_fit_parameter

    check_classifier("estimator", estimator)
    last = estimator
    while isinstance(last, Pipeline):
        last = last.steps[-1][1]
    if not has_fit_parameter(last, "sample_weight"):
        raise ValueError(
            f"{type(last).__name__}.fit takes no `sample_weight`, by which a model is aimed: use another "
            "estimator."
        )
