"""The worth of a set of rows: what the model trained on them achieves on the validation rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from fado.engine import Engine, LightGBMEngine, Task, engine_class
from fado.execution import Executor, JoblibExecutor, ThreadExecutor
from fado.tabular import Problem, Table, Variable
from fado.valuation._bags import out_of_bag_sets, strata_of
from fado.valuation._validation_rows import (
    ValidationRows,
    binary_labels,
    decide,
    measure_validation_rows,
    ratio_coefficients,
    read_validation_rows,
)

__all__ = ["Goals", "TrainingGame", "executor_for", "training_games", "with_newcomers"]

FloatArray = npt.NDArray[np.float64]
Rows = npt.NDArray[np.int32]

_MOST_FOLDS, _LEAST_FOLDS = 5, 2
_TRIES = 10  # with each number of folds
_FOLDS_STREAM = 0


@dataclass(frozen=True)
class Goals:
    """What models are measured by: names of `_validation_rows`, and the budget of false positives."""

    performance: str
    fairness: str
    max_fpr: float


@dataclass(frozen=True, eq=False)
class TrainingGame:
    """Rows are the players, and a set's worth is measured on validation rows by the model trained on the set.

    The first worth is the performance. One follows for every protected attribute: its ratio, linear in the
    decisions on the validation rows. No rows, and rows of one label, are worth what a model is that gives
    every validation row the share of positives among them, and so predicts their most common label.

    Parameters
    ----------
    engine : Engine
        Prepared; of the valued rows' table.
    estimator : estimator
        Unfitted.
    variable : Variable
        The target.
    positive : int
        The code of its positive label.
    rows : ndarray of int32
        Positions in the table of the rows that are players.
    scored : ndarray or Table
        The validation rows.
    validated : ValidationRows
        Their labels and weights.
    coefficients : ndarray of shape (n_validated, n_attributes)
        What each decision adds to each attribute's ratio.
    goals : Goals
        What is measured.
    seed : int
        Of every fit, so that a set has one worth.
    sample_weight : ndarray or None
        What each row of the table weighs in a fit.
    full : ndarray or None
        The worths of all rows, once they are known.
    """

    engine: Engine
    estimator: Any
    variable: Variable
    positive: int
    rows: Rows
    scored: Rows | Table
    validated: ValidationRows
    coefficients: FloatArray
    goals: Goals
    seed: int
    sample_weight: FloatArray | None = None
    full: FloatArray | None = None

    @property
    def n_players(self) -> int:
        """How many rows there are to value."""
        return len(self.rows)

    def __call__(self, members: npt.NDArray[np.int64]) -> FloatArray:
        """Give the worths of some players, by their positions among `rows`, in any order."""
        if self.full is not None and len(members) == self.n_players:
            return self.full
        return self.worths_of(self.scores(np.sort(self.rows[members])))

    def scores(self, rows: Rows) -> FloatArray:
        """Train on sorted rows, and give the validation rows' probabilities of the positive label."""
        weights = None
        if self.sample_weight is not None:
            rows = rows[self.sample_weight[rows] > 0]
            weights = self.sample_weight[rows]
        labels = self.variable.labels[rows]
        if len(labels) == 0 or (labels == labels[0]).all():
            return np.full(
                self.validated.n_rows, np.average(self.validated.positive, weights=self.validated.weights)
            )
        task = Task(self.estimator, self.variable, rows, self.seed, self.scored, weights)
        name = type(self.estimator).__name__
        try:
            scores = self.engine.fit(task).scores
        except Exception as error:
            if len(rows) == self.n_players:  # the fault is not that there are few
                raise
            raise RuntimeError(
                f"{name} failed on a set of {len(rows)} rows: {error} Data Shapley needs an estimator that "
                "learns from few rows."
            ) from error
        if scores.ndim == 2:
            scores = scores[:, self.positive]
        elif self.positive == 0:
            scores = 1.0 - scores
        if not ((scores >= 0) & (scores <= 1)).all():
            raise RuntimeError(f"{name} gave scores that are no probabilities on a set of {len(rows)} rows.")
        return scores

    def worths_of(self, scores: FloatArray) -> FloatArray:
        """Measure scores of the validation rows."""
        goals = self.goals
        measured = measure_validation_rows(
            self.validated, scores, goals.performance, goals.fairness, goals.max_fpr
        )
        if not self.coefficients.shape[1]:
            return np.array([measured["y"]])
        predicted = decide(self.validated, scores, goals.max_fpr)
        return np.concatenate([[measured["y"]], predicted @ self.coefficients])


def training_games(
    problem: Problem,
    validation: Problem | None,
    estimator: Any,
    goals: Goals,
    seed: int,
    workers: int,
    *,
    by_content: bool,
    who: str,
) -> list[TrainingGame]:
    """Make the game of all rows, validated by others; or, without any, one game per fold.

    A fold's rows are measured by the models of all others. The ratios' coefficients are taken around the
    models of all rows of each game, on all validation rows together; those of a fold count as often as there
    are folds, so that the mean over the games is linear in the decisions on all rows.

    Parameters
    ----------
    problem, validation : Problem
        The rows to value, and the validation rows.
    estimator : estimator
        Unfitted.
    goals : Goals
        What is measured.
    seed : int
        Of the folds and the fits.
    workers : int
        Threads for the binning.
    by_content : bool
        Whether the order of columns must not matter; for LightGBM alone.
    who : str
        The valuator, for messages.
    """
    labels = binary_labels(problem, who)
    validated = read_validation_rows(problem, validation, who)
    parts: list[tuple[Any, Rows | Table, Any]]
    if validation is None:
        folds = _folds(problem, validated, seed, who)
        parts = [(np.setdiff1d(np.arange(problem.n_rows), fold), fold, fold) for fold in folds]
    else:
        _check_weighed(validated, who)
        parts = [(np.arange(problem.n_rows), validation.table, slice(None))]
    engine = _engine_for(estimator, problem.table, workers, by_content=by_content)
    games = [
        TrainingGame(
            engine=engine,
            estimator=estimator,
            variable=problem.target,
            positive=labels.positive or 0,
            rows=rows.astype(np.int32),
            scored=scored,
            validated=replace(
                validated, positive=validated.positive[own], weights=validated.weights[own], attributes=()
            ),
            coefficients=np.zeros((len(validated.positive[own]), 0)),
            goals=goals,
            seed=seed % 2**31,
            sample_weight=problem.sample_weight,
        )
        for rows, scored, own in parts
    ]
    engine.prepare([Task(estimator, game.variable, game.rows, 0, game.scored) for game in games])
    scores = [game.scores(game.rows) for game in games]
    coefficients = _coefficients(validated, games, scores, [own for *_, own in parts])
    games = [
        replace(game, coefficients=len(games) * coefficients[own])
        for game, (*_, own) in zip(games, parts, strict=True)
    ]
    return [
        replace(game, full=game.worths_of(own_scores)) for game, own_scores in zip(games, scores, strict=True)
    ]


def with_newcomers(
    games: Sequence[TrainingGame], table: Table, labels: npt.NDArray[np.int32]
) -> list[TrainingGame]:
    """Add rows of another table to each game, as its last players, each of the mean weight of all rows.

    Parameters
    ----------
    games : sequence of TrainingGame
        From `training_games`.
    table : Table
        The rows; columns are found by name.
    labels : ndarray of int32
        Their labels, coded as the target's own.
    """
    first = games[0]
    n_rows, weights = len(first.variable.labels), first.sample_weight
    newcomers = n_rows + np.arange(table.n_rows, dtype=np.int32)
    engine = first.engine.with_rows(table)
    variable = replace(first.variable, labels=np.concatenate([first.variable.labels, labels]))
    joined = [
        replace(
            game,
            engine=engine,
            variable=variable,
            rows=np.concatenate([game.rows, newcomers]),
            sample_weight=None if weights is None else np.concatenate([weights, np.ones(table.n_rows)]),
            full=None,
        )
        for game in games
    ]
    engine.prepare([Task(game.estimator, variable, game.rows, 0, game.scored) for game in joined])
    return joined


def _coefficients(
    validated: ValidationRows,
    games: Sequence[TrainingGame],
    scores: Sequence[FloatArray],
    parts: Sequence[Any],
) -> FloatArray:
    """Give what each decision adds to each ratio, around the decisions of the models of all rows."""
    predicted = np.zeros(validated.n_rows)
    for game, own_scores, own in zip(games, scores, parts, strict=True):
        predicted[own] = decide(game.validated, own_scores, game.goals.max_fpr)
    columns = [
        ratio_coefficients(validated, attribute, games[0].goals.fairness, predicted)
        for attribute in validated.attributes
    ]
    return np.column_stack([np.zeros((validated.n_rows, 0)), *columns])


def _folds(problem: Problem, validated: ValidationRows, seed: int, who: str) -> list[Rows]:
    """Draw folds of which each holds both labels, as do the rows beside it: five, or as many as can be."""
    counted = validated.weights > 0
    strata = strata_of([problem.target, *problem.protected], 1 / _MOST_FOLDS)
    strata = np.unique(2 * strata + counted, return_inverse=True)[1]
    n_units = problem.n_rows if problem.blocks is None else int(problem.blocks.max()) + 1
    generator = np.random.default_rng([seed, _FOLDS_STREAM])
    for n_folds in range(min(_MOST_FOLDS, n_units), _LEAST_FOLDS - 1, -1):
        for _ in range(_TRIES):
            folds = out_of_bag_sets(problem.n_rows, n_folds, 1 / n_folds, strata, generator, problem.blocks)
            labels = [validated.positive[fold][counted[fold]] for fold in folds]
            if all(own.any() and not own.all() for own in labels):
                return folds
    raise ValueError(
        f"{who} holds out parts of the validation rows, and each must have rows of both labels: pass "
        "`validation`, or more rows of the rarer label."
    )


def _check_weighed(validated: ValidationRows, who: str) -> None:
    weighed = validated.positive[validated.weights > 0]
    if weighed.all() or not weighed.any():
        raise ValueError(f"{who} needs validation rows of both labels whose weight is not 0.")


def _engine_for(estimator: Any, table: Table, workers: int, *, by_content: bool) -> Engine:
    kind = engine_class(estimator, table)
    return kind(table, None, workers, by_content=by_content) if kind is LightGBMEngine else kind(table)


def executor_for(engine: Engine, workers: int) -> Executor:
    """Choose threads or processes, as the engine asks for."""
    return ThreadExecutor(workers) if engine.in_threads else JoblibExecutor(workers)
