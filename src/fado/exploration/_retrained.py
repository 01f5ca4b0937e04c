"""Models that are trained with some rows changed, and how their decisions differ on validation rows.

Decisions about the same rows are compared, so that what both models get wrong cancels out. An error has two
parts: other validation rows would give other rates, and another deal of the folds other models.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from fado._progress import tracked
from fado.engine import Engine, Task, engine_class
from fado.execution import JoblibExecutor, ThreadExecutor
from fado.metrics import lowest_threshold
from fado.tabular import Problem, deal_rows

__all__ = ["FOLDS", "REPEATS", "Change", "Compared", "Outcome", "Trial", "some_blocks"]

FloatArray = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
Rows = npt.NDArray[np.int32]
Change = tuple[str, Bools]  # "none", "remove", "halve" or "relabel", and the rows
Outcome = tuple[FloatArray, FloatArray]  # decisions and performance, of shape (repeats, validation rows)

FOLDS, REPEATS = 3, 2
DRAWS = 2_000


class Trial:
    """Models of all rows but a fold of the validation rows, trained with the rows as they are or changed.

    Parameters
    ----------
    problem : Problem
        All rows; the larger label is the positive one.
    estimator : classifier or None
        What is trained; None is LightGBM's own settings.
    goal : tuple of str and float
        The performance, and the budget of false positives.
    cells : ndarray of int
        Combinations of groups and label, of which every fold has its share.
    held : ndarray of int32
        The validation rows.
    seed : int
        Of folds and fits.
    """

    def __init__(
        self,
        problem: Problem,
        estimator: Any,
        goal: tuple[str, float],
        cells: npt.NDArray[np.int64],
        held: Rows,
        seed: int,
    ) -> None:
        from lightgbm import LGBMClassifier

        self._problem, self._held, self._seed = problem, held, seed
        self._performance, self._max_fpr = goal
        self._estimator = LGBMClassifier() if estimator is None else estimator
        self._engine_class: Any = engine_class(self._estimator, problem.table)
        blocks = some_blocks(problem, held)
        self._folds = [
            deal_rows(cells[held], [1 / FOLDS] * FOLDS, np.random.default_rng([seed, 12, repeat]), blocks)
            for repeat in range(REPEATS)
        ]

    def run(self, changes: Sequence[Change], workers: int, *, show: bool) -> list[Outcome]:
        """Give decisions and performance, each of shape (repeats, validation rows), of every change."""
        engine: Engine = self._engine_class(self._problem.table)
        places = [(repeat, fold) for repeat in range(REPEATS) for fold in np.unique(self._folds[repeat])]
        tasks = [self._task(change, *place) for change in changes for place in places]
        engine.prepare(tasks[:1])
        threads = self._engine_class.in_threads
        executor = ThreadExecutor(workers) if threads else JoblibExecutor(workers)
        scored = tracked(
            executor.run(_score, tasks, engine),
            len(tasks),
            what="retrained models",
            show=show,
        )
        shape = REPEATS, len(self._held)
        found = [(np.zeros(shape), np.zeros(shape)) for _ in changes]
        for number, scores in enumerate(scored):
            decisions, performance = found[number // len(places)]
            repeat, fold = places[number % len(places)]
            own = self._folds[repeat] == fold
            decisions[repeat, own], performance[repeat, own] = self._measured(scores, self._held[own])
        return found

    def _task(self, change: Change, repeat: int, fold: int) -> Task:
        (action, marked), problem = change, self._problem
        scored = self._held[self._folds[repeat] == fold]
        inside = np.ones(problem.n_rows, dtype=np.bool_)
        inside[scored] = False
        if action == "remove":
            inside &= ~marked
        rows = np.flatnonzero(inside).astype(np.int32)
        weights, target = problem.sample_weight, problem.target
        if action == "halve":
            weights = (np.ones(problem.n_rows) if weights is None else weights) * np.where(marked, 0.5, 1.0)
        if action == "relabel":
            target = replace(
                target, labels=np.where(marked, 1 - target.labels, target.labels).astype(target.labels.dtype)
            )
        return Task(
            self._estimator,
            target,
            rows,
            self._seed + repeat,
            scored,
            None if weights is None else weights[rows],
        )

    def _measured(self, scores: FloatArray, rows: Rows) -> tuple[Bools, FloatArray]:
        """Decide about a fold's rows at the budget, and give each row's part in the performance."""
        positive = self._problem.labels.is_positive[rows]
        weights = None if self._problem.sample_weight is None else self._problem.sample_weight[rows]
        decided = scores >= lowest_threshold(positive, scores, self._max_fpr, weights)
        if self._performance == "tpr_at_fpr":
            return decided, np.where(positive, decided, np.nan)
        if self._performance == "accuracy":
            return decided, ((scores >= 0.5) == positive).astype(np.float64)
        of_label = np.where(positive, scores, 1.0 - scores)
        return decided, np.log(np.maximum(of_label, np.finfo(np.float64).eps))


class Compared:
    """The validation rows of one attribute's groups, on which decisions are compared.

    Parameters
    ----------
    problem, held
        As for `Trial`.
    members : sequence of ndarray of int
        Of each compared group, the places among the validation rows that its rate counts.
    missed : bool
        Whether rates are those of rows that are not selected.
    seed : int
        Of the draws that errors come from.
    """

    def __init__(
        self,
        problem: Problem,
        held: Rows,
        members: Sequence[npt.NDArray[np.intp]],
        *,
        missed: bool,
        seed: int,
    ) -> None:
        self._weights = np.ones(len(held)) if problem.sample_weight is None else problem.sample_weight[held]
        self._blocks = some_blocks(problem, held)
        self._members, self._missed = members, missed
        generator = np.random.default_rng([seed, 13])
        self._normal = generator.standard_normal((DRAWS, len(members), 2))

    def level(self, outcome: Outcome) -> dict[str, float]:
        """Give ratio and performance with their errors."""
        return {
            "ratio": float(_ratio(self._rates(outcome[0].mean(axis=0)))),
            "ratio_error": float(np.nanstd(_ratio(self._drawn(outcome[0], outcome[0])[..., 0]))),
            "performance": self._mean(outcome[1].mean(axis=0)),
            "performance_error": self._error(outcome[1].mean(axis=0)),
        }

    def change(self, before: Outcome, after: Outcome) -> dict[str, float]:
        """Give how ratio and performance change, with the errors that the choice of validation rows makes."""
        ratios = [float(_ratio(self._rates(own[0].mean(axis=0)))) for own in (before, after)]
        drawn = self._drawn(before[0], after[0])
        moved = after[1].mean(axis=0) - before[1].mean(axis=0)
        return {
            "ratio_change": ratios[1] - ratios[0],
            "ratio_error": float(np.nanstd(_ratio(drawn[..., 1]) - _ratio(drawn[..., 0]))),
            "performance_change": self._mean(moved),
            "performance_error": self._error(moved),
        }

    def noise(self, before: Outcome, after: Sequence[Outcome]) -> dict[str, float]:
        """Give the error that training makes: the spread over repeats, the same for all changes."""
        ratios = [[float(_ratio(self._rates(row))) for row in own[0]] for own in (before, *after)]
        means = [[self._mean(row) for row in own[1]] for own in (before, *after)]
        spread = {}
        for name, own in (("ratio", np.array(ratios)), ("performance", np.array(means))):
            variances = np.var(own[1:] - own[0], axis=1, ddof=1)
            known = variances[~np.isnan(variances)]
            spread[name] = float(np.sqrt(known.mean() / REPEATS)) if len(known) else np.nan
        return spread

    def _rates(self, decisions: FloatArray) -> FloatArray:
        events = 1.0 - decisions if self._missed else decisions
        return np.array([np.average(events[own], weights=self._weights[own]) for own in self._members])

    def _drawn(self, before: FloatArray, after: FloatArray) -> FloatArray:
        """Draw rates of each group before and after, as other validation rows would give them."""
        both = np.stack([before.mean(axis=0), after.mean(axis=0)])
        both = 1.0 - both if self._missed else both
        drawn = np.empty_like(self._normal)
        for place, rows in enumerate(self._members):
            own, weights = both[:, rows], self._weights[rows]
            means = np.average(own, axis=1, weights=weights)
            off = self._summed((own - means[:, np.newaxis]) * weights / weights.sum(), rows)
            spread = off @ off.T + np.eye(2) * (0.5 / len(rows)) ** 2 * (own[0] != own[1]).any()
            drawn[:, place] = means + self._normal[:, place] @ _root(spread).T
        return np.maximum(drawn, 0.0)

    def _mean(self, numbers: FloatArray) -> float:
        known = ~np.isnan(numbers)
        return float(np.average(numbers[known], weights=self._weights[known]))

    def _error(self, numbers: FloatArray) -> float:
        rows = np.flatnonzero(~np.isnan(numbers))
        weights = self._weights[rows]
        off = (numbers[rows] - self._mean(numbers)) * weights / weights.sum()
        return float(np.sqrt((self._summed(off[np.newaxis], rows) ** 2).sum()))

    def _summed(self, off: FloatArray, rows: npt.NDArray[np.intp]) -> FloatArray:
        """Add up what rows of one block do together, as they were drawn together."""
        if self._blocks is None:
            return off
        return np.stack([np.bincount(self._blocks[rows], own) for own in off])


def _ratio(rates: FloatArray) -> FloatArray:
    """Give the lowest over the highest rate, in the last axis; NaN where all are 0."""
    highest = rates.max(axis=-1)
    with np.errstate(invalid="ignore"):
        return np.where(highest > 0, rates.min(axis=-1) / np.where(highest > 0, highest, 1.0), np.nan)


def _root(spread: FloatArray) -> FloatArray:
    """Give a square root of a covariance, which may be singular."""
    values, vectors = np.linalg.eigh(spread)
    return vectors * np.sqrt(np.maximum(values, 0.0))


def some_blocks(problem: Problem, rows: Rows) -> npt.NDArray[np.int64] | None:
    """Give the blocks of some rows, numbered anew."""
    return None if problem.blocks is None else np.unique(problem.blocks[rows], return_inverse=True)[1]


def _score(task: Task, engine: Engine, stop: threading.Event | None) -> FloatArray:
    scores = engine.fit(task, stop).scores
    return scores if scores.ndim == 1 else scores[:, 1]
