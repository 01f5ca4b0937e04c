"""The worth of a set of rows, which is what the model trained on it achieves; and the draws of such sets."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from fado._checks import check_count
from fado._typing import Floats, Integers
from fado.engine import Engine, LightGBMEngine, Task, engine_class
from fado.execution import JoblibExecutor, ThreadExecutor
from fado.tabular import Problem, Table, Variable
from fado.valuation._bags import out_of_bag_sets, strata_of, units_of
from fado.valuation._validation_rows import ValidationRows, read_validation_rows
from fado.valuation.shapley._semivalues import (
    LeaveOneOut,
    RunningMeans,
    Sampler,
    Subsets,
    Walks,
    generator_of,
    precision_of,
)

_MOST_FOLDS, _LEAST_FOLDS = 5, 2
_TRIES = 10  # with each number of folds
_FOLDS_STREAM = 0
_NAMES = ("shapley", "banzhaf", "loo")
_ROW_BY_ROW = 100  # rows; beyond, a walk has `_STEPS` growing steps
_STEPS = 50
_TRUNCATION = 0.01
_MOST_ROWS = 10**9


class Goals(NamedTuple):
    """The two metrics that models are measured by, and the budget of false positives."""

    performance: str
    fairness: str
    max_fpr: float


@dataclass(frozen=True, eq=False)
class TrainingGame:
    """Rows are the players; a set's worth is measured on validation data for the model trained on the set.

    The first worth is the performance. One follows for every protected attribute: its ratio, linear in the
    decisions on the validation rows. The worth of no rows, and of rows of one label, is that of a model that
    predicts the share of positives for every validation row, and so their most common label.

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
        The weight of each row of the table in a fit.
    full : ndarray or None
        The worths of all rows, once they are known.
    """

    engine: Engine
    estimator: Any
    variable: Variable
    positive: int
    rows: Integers
    scored: Integers | Table
    validated: ValidationRows
    coefficients: Floats
    goals: Goals
    seed: int
    sample_weight: Floats | None = None
    full: Floats | None = None

    @property
    def n_players(self) -> int:
        """How many rows there are to value."""
        return len(self.rows)

    def __call__(self, members: npt.NDArray[np.int64]) -> Floats:
        """Return the worths of some players, by their positions among `rows`, in any order."""
        if self.full is not None and len(members) == self.n_players:
            return self.full
        return self.worths_of(self.scores(np.sort(self.rows[members])))

    def scores(self, rows: Integers) -> Floats:
        """Train on sorted rows, and return the validation rows' probabilities of the positive label."""
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
            scores = self.engine.fit(task).scores[:, self.positive]
        except Exception as error:
            if len(rows) == self.n_players:  # the fault is not that there are few
                raise
            raise RuntimeError(
                f"{name} failed on a set of {len(rows)} rows: {error} Data Shapley needs an estimator that "
                "learns from few rows."
            ) from error
        if not ((scores >= 0) & (scores <= 1)).all():
            raise RuntimeError(f"{name} gave scores that are not probabilities on a set of {len(rows)} rows.")
        return scores

    def worths_of(self, scores: Floats) -> Floats:
        """Measure scores of the validation rows."""
        performance = self.validated.measure(scores, *self.goals)["y"]
        if not self.coefficients.shape[1]:
            return np.array([performance])
        predicted = self.validated.decide(scores, self.goals.max_fpr)
        return np.concatenate([[performance], predicted @ self.coefficients])


def training_games(
    problem: Problem,
    validation: Problem | None,
    estimator: Any,
    goals: Goals,
    seed: int,
    workers: int,
    *,
    by_content: bool,
) -> list[TrainingGame]:
    """Make the game of all rows, with validation data; or, without any, one game per fold.

    A fold's rows are measured with the models of all others. The ratios' coefficients are taken around the
    models of all rows of each game, on all validation rows together; those of a fold count as often as there
    are folds, so that the mean over the games is linear in the decisions on all rows. With `by_content`, the
    order of columns does not matter, which only LightGBM supports.
    """
    validated = read_validation_rows(problem, validation, "DataShapley")
    parts: list[tuple[Any, Integers | Table, Any]]
    if validation is None:
        folds = _folds(problem, validated, seed)
        parts = [(np.setdiff1d(np.arange(problem.n_rows), fold), fold, fold) for fold in folds]
    else:
        parts = [(np.arange(problem.n_rows), validation.table, slice(None))]
    kind = engine_class(estimator, problem.table)
    engine: Engine = kind(problem.table)
    if kind is LightGBMEngine:
        engine = LightGBMEngine(problem.table, None, workers, by_content=by_content)
    games = [
        TrainingGame(
            engine=engine,
            estimator=estimator,
            variable=problem.target,
            positive=problem.labels.positive or 0,
            rows=rows.astype(np.int32),
            scored=scored,
            validated=validated.take(places),
            coefficients=np.zeros((len(validated.positive[places]), 0)),
            goals=goals,
            seed=seed % 2**31,
            sample_weight=problem.sample_weight,
        )
        for rows, scored, places in parts
    ]
    engine.prepare([Task(estimator, game.variable, game.rows, 0, game.scored) for game in games])
    scores, predicted = [game.scores(game.rows) for game in games], np.zeros(validated.n_rows)
    for game, game_scores, (*_, places) in zip(games, scores, parts, strict=True):
        predicted[places] = game.validated.decide(game_scores, goals.max_fpr)
    ratios = [
        validated.ratio_coefficients(attribute, goals.fairness, predicted)
        for attribute in validated.attributes
    ]
    coefficients = np.column_stack([np.zeros((validated.n_rows, 0)), *ratios])
    complete = []
    for game, game_scores, (*_, places) in zip(games, scores, parts, strict=True):
        game = replace(game, coefficients=len(games) * coefficients[places])
        complete.append(replace(game, full=game.worths_of(game_scores)))
    return complete


def _folds(problem: Problem, validated: ValidationRows, seed: int) -> list[Integers]:
    """Draw folds that each hold both labels, inside and outside: five, or as many as possible."""
    counted = validated.weights > 0
    strata = strata_of([problem.target, *problem.protected], 1 / _MOST_FOLDS)
    strata = np.unique(2 * strata + counted, return_inverse=True)[1]
    n_units, _ = units_of(problem)
    generator = np.random.default_rng([seed, _FOLDS_STREAM])
    for n_folds in range(min(_MOST_FOLDS, n_units), _LEAST_FOLDS - 1, -1):
        for _ in range(_TRIES):
            folds = out_of_bag_sets(problem.n_rows, n_folds, 1 / n_folds, strata, generator, problem.blocks)
            labels = [validated.positive[fold][counted[fold]] for fold in folds]
            if all(each.any() and not each.all() for each in labels):
                return folds
    raise ValueError(
        "DataShapley holds out parts of the rows for validation, and each must have both labels: pass "
        "`validation`, or more rows of the rarer label."
    )


class Draws:
    """Draws, dealt over some games in turn."""

    def __init__(
        self, games: Sequence[TrainingGame], samplers: Sequence[Sampler], means: RunningMeans
    ) -> None:
        self.games, self.samplers, self.means, self.n_draws = games, samplers, means, 0
        self.n_fits = len(games)  # the models of all rows
        self._exact = isinstance(samplers[0], LeaveOneOut)
        self._batch = len(games) * max(game.n_players for game in games) if self._exact else samplers[0].batch

    @property
    def least_fits(self) -> int:
        """How many fits one batch may take."""
        if self._exact:
            return sum(game.n_players + 1 for game in self.games)
        return len(self.games) + self._batch * max(sampler.most_fits for sampler in self.samplers)

    def draws_for(self, most_fits: int) -> int:
        """Count the draws that a number of fits allows, if no walk ends early."""
        n_games, least = len(self.games), self.least_fits
        return self._batch * (1 if self._exact else (most_fits - n_games) // (least - n_games))

    def play(self, seed: int, workers: int, most_fits: int, tolerance: float) -> Iterator[None]:
        """Draw batch after batch until values are precise or no fits are left, yielding after every draw."""
        threads = self.games[0].engine.in_threads
        executor = ThreadExecutor(workers) if threads else JoblibExecutor(workers)
        first = True
        while first or (
            not self._exact
            and precision_of(self.means) > tolerance
            and self.n_fits + self.least_fits - len(self.games) <= most_fits
        ):
            first = False
            tasks = []  # per draw its game and what was drawn
            for number in range(self.n_draws, self.n_draws + self._batch):
                turn, which = divmod(number, len(self.games))
                if not self._exact or turn < self.games[which].n_players:  # games may differ by a few rows
                    tasks.append((which, self.samplers[which].draw(turn, generator_of(seed, number))))
            results = []
            for result in executor.run(_play, tasks, (self.games, self.samplers)):
                results.append(result)
                yield
            for which, (game, sampler) in enumerate(zip(self.games, self.samplers, strict=True)):
                places = [place for place, (played, _) in enumerate(tasks) if played == which]
                drawn, worths = [tasks[place][1] for place in places], [results[place][0] for place in places]
                for players, contributions in sampler.contributions(drawn, worths) if places else ():
                    self.means.add(game.rows[players].astype(np.int64), contributions)
            self.n_fits += sum(n_fits for _, n_fits in results)
            self.n_draws += self._batch


def _play(
    task: tuple[int, Integers],
    shared: tuple[Sequence[TrainingGame], Sequence[Sampler]],
    stop: threading.Event,
) -> tuple[Floats, int]:
    """Evaluate a draw; end early once `stop` is set."""
    which, drawn = task
    games, samplers = shared

    def game(members: Integers) -> Floats:
        if stop.is_set():
            raise RuntimeError("The run has ended.")
        return games[which](members)

    return samplers[which].evaluate(game, drawn)


def read_semivalue(semivalue: Any) -> Any:
    """Return a semivalue as plain data: its name, or a list of "beta" or "distributional" and its numbers."""
    if isinstance(semivalue, str) and semivalue in _NAMES:
        return semivalue
    if isinstance(semivalue, tuple | list) and len(semivalue) == 3 and semivalue[0] == "beta":
        numbers = semivalue[1:]
        if all(isinstance(number, int | float | np.number) and 0 < number < np.inf for number in numbers):
            return ["beta", *map(float, numbers)]
    if isinstance(semivalue, tuple | list) and len(semivalue) == 2 and semivalue[0] == "distributional":
        return ["distributional", check_count("semivalue[1]", semivalue[1], 1, _MOST_ROWS)]
    raise ValueError(
        "`semivalue` must be 'shapley', 'banzhaf', 'loo', a tuple ('beta', a, b) of numbers above 0 or a "
        f"tuple ('distributional', m) of a whole number of rows, got {semivalue!r}."
    )


def sampler_for(semivalue: Any, n_players: int) -> Sampler:
    """Return what draws sets of rows for a semivalue, or walks through them."""
    if semivalue == "banzhaf":
        return Subsets(n_players)
    if semivalue == "loo":
        return LeaveOneOut(n_players)
    beta = (semivalue[1], semivalue[2]) if semivalue[0] == "beta" else (1.0, 1.0)
    length = semivalue[1] if semivalue[0] == "distributional" else n_players
    if length > n_players:
        raise ValueError(
            f"`semivalue[1]` must be at most {n_players}, the number of rows that models are trained on "
            f"(without `validation`, those outside a fold), got {length}."
        )
    return Walks(n_players, None if length <= _ROW_BY_ROW else _STEPS, beta, _TRUNCATION, length)
