"""Out-of-fold scores and group probabilities of rows, for interventions on scores."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from fado._typing import Bools, Floats, Integers
from fado.aim import default_student
from fado.engine import (
    LightGBMEngine,
    Model,
    Scorer,
    Task,
    default_estimators,
    groups_given_labels,
)
from fado.experiment._data import DataPart
from fado.interventions import EvaluatedRows, KnownRows
from fado.metrics import Budget
from fado.tabular import Variable, deal_rows, mean_one

Probabilities = tuple[Floats, Floats]

FOLDS = 5


class ScoreInputs:
    """The training rows and the evaluated rows, with models of the groups, each fitted once.

    Compared groups have their own numbers; all others share the next number.

    Parameters
    ----------
    training, evaluation : DataPart
        The rows to train on; the validation rows, then the test rows.
    n_validation : int
        The number of validation rows.
    compared : ndarray of bool
        The groups that are compared.
    budget : Budget
        The budget of decisions.
    seed : int
        The seed of folds and models.
    """

    def __init__(
        self,
        training: DataPart,
        evaluation: DataPart,
        n_validation: int,
        compared: Bools,
        budget: Budget,
        seed: int,
    ) -> None:
        self._training, self._evaluation, self._n_validation = training, evaluation, n_validation
        self._n_compared, self._budget, self._seed = int(compared.sum()), budget, seed
        number = np.where(compared, np.cumsum(compared) - 1, self._n_compared)
        self._codes, self._evaluated_codes = number[training.groups.codes], number[evaluation.groups.codes]
        cells = 2 * self._codes + training.positive
        generator = np.random.default_rng([seed, 2])
        self._folds = deal_rows(cells, [1 / FOLDS] * FOLDS, generator, training.blocks)
        self._start()

    def _start(self) -> None:
        self._lock = threading.RLock()
        self._made: dict[str, Any] = {}

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name not in ("_lock", "_made")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._start()

    def rows(
        self,
        scores: Floats,
        estimator: Any,
        fit: Callable[[Task], Model],
        scorer: Callable[[], Scorer],
        *,
        needs_group: bool,
    ) -> EvaluatedRows:
        """Return the evaluated rows as the input of an intervention on scores.

        Parameters
        ----------
        scores : ndarray
            The scores of these rows by the model.
        estimator : estimator
            The estimator of the model.
        fit : callable
            Fits a task on the training rows.
        scorer : callable
            Returns the model.
        needs_group : bool
            Whether the intervention uses the groups of all rows.
        """
        validation, weights = slice(self._n_validation), self._evaluation.weights
        return EvaluatedRows(
            scores,
            self._evaluation.positive[validation],
            self._evaluated_codes[validation],
            n_compared=self._n_compared,
            budget=self._budget,
            weights=None if weights is None else weights[validation],
            seed=self._seed,
            group_probabilities=self.group_probabilities,
            known_groups=self._evaluated_codes.copy() if needs_group else None,
            training=lambda: self._training_rows(estimator, fit),
            teach=lambda numbers, weights: self._student(numbers, weights, estimator, fit),
            scorers=lambda: (scorer(), self.group_scorer()),
        )

    def group_scorer(self) -> Scorer:
        """Return the model of the groups, given features and label, fitted on all training rows."""
        return self._once("scorer", lambda: self._group_scorers([self._all_rows])[0])

    def group_probabilities(self) -> Probabilities:
        """Return the group probabilities of the evaluated rows, given each label."""
        return self._once(
            "evaluated", lambda: groups_given_labels(self.group_scorer(), self._evaluation.table)
        )

    def training_groups(self) -> Probabilities:
        """Return the out-of-fold group probabilities of the training rows."""
        return self._once("training", self._out_of_fold)

    def _once(self, name: str, make: Callable[[], Any]) -> Any:
        with self._lock:
            if name not in self._made:
                self._made[name] = make()
            return self._made[name]

    @property
    def _all_rows(self) -> Integers:
        return np.arange(len(self._codes), dtype=np.int32)

    def _splits(self) -> list[tuple[Integers, Integers]]:
        """Return the rows to fit on and those to score, for each fold."""
        numbers = np.unique(self._folds)
        if len(numbers) == 1:  # all rows belong together
            return [(self._all_rows, self._all_rows)]
        masks = [self._folds == number for number in numbers]
        return [(self._all_rows[~mask], self._all_rows[mask]) for mask in masks]

    def _group_scorers(self, parts: list[Integers]) -> list[Scorer]:
        """Fit a model of the groups on each of some sets of training rows."""
        table, n_groups = self._training.table, int(self._codes.max()) + 1
        group = Variable(
            "group", "classes", self._codes.astype(np.int32), tuple(range(n_groups)), sees_target=True
        )
        estimator = default_estimators(table.n_columns + 1)[0]
        tasks = [Task(estimator, group, rows, self._seed, rows[:1], self._weights_of(rows)) for rows in parts]
        engine = LightGBMEngine(table, self._target)
        engine.prepare(tasks)
        return [engine.fit(task).detach() for task in tasks]

    @property
    def _target(self) -> Variable:
        return Variable("y", "classes", self._training.positive.astype(np.int32), (False, True))

    def _out_of_fold(self) -> Probabilities:
        splits, table = self._splits(), self._training.table
        scorers = self._group_scorers([fitted for fitted, _ in splits])
        pairs = [
            groups_given_labels(scorer, table.take(rows))
            for scorer, (_, rows) in zip(scorers, splits, strict=True)
        ]
        order = np.argsort(np.concatenate([rows for _, rows in splits]))
        if_negative, if_positive = (np.concatenate(fold)[order] for fold in zip(*pairs, strict=True))
        return if_negative, if_positive

    def _training_rows(self, estimator: Any, fit: Callable[[Task], Model]) -> KnownRows:
        """Return the training rows with out-of-fold scores."""
        training, scores = self._training, np.empty(len(self._codes))
        for fitted, rows in self._splits():
            task = Task(estimator, self._target, fitted, self._seed, rows, self._weights_of(fitted))
            scores[rows] = fit(task).scores[:, 1]
        weights = np.ones(len(scores)) if training.weights is None else training.weights
        return KnownRows(scores, self.training_groups(), training.positive, self._codes, weights)

    def _student(
        self, numbers: Floats, weights: Floats | None, estimator: Any, fit: Callable[[Task], Model]
    ) -> tuple[Scorer, Floats]:
        """Train a student on scores of the training rows; return it and its scores of evaluated rows."""
        rows, sample_weight = self._all_rows, self._weights_of(self._all_rows)
        target = Variable("score", "continuous", np.asarray(numbers, dtype=np.float64))
        if weights is not None:
            product = weights if sample_weight is None else weights * sample_weight
            sample_weight = product.astype(np.float32)
        task = Task(
            default_student(estimator), target, rows, self._seed, self._evaluation.table, sample_weight
        )
        model = fit(task)
        return model.detach(), model.scores

    def _weights_of(self, rows: Integers) -> npt.NDArray[np.float32] | None:
        weights = self._training.weights
        return None if weights is None else mean_one(weights)[rows].astype(np.float32)
