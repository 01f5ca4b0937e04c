"""Grow one model per fold of the rows, and read the effects of the rows that it learnt from."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from fado.engine import Forest, LeafReader, LightGBMEngine, LightGBMModel, Task
from fado.execution import ThreadExecutor
from fado.tabular import Problem, Table
from fado.valuation._bags import check_bags, out_of_bag_sets, strata_of
from fado.valuation.influence._effects import (
    GrownTree,
    TrainingRows,
    backward_effects,
    direct_effects,
    initial_score,
)
from fado.valuation.influence._new_rows import KeptModel

__all__ = ["FORMS", "Fold", "Forests", "deal_folds", "validated_fold"]

FloatArray = npt.NDArray[np.float64]
Rows = npt.NDArray[np.int32]
Trees = list[GrownTree]

FORMS = {"direct": direct_effects, "backward": backward_effects}


@dataclass(frozen=True, eq=False)
class Fold:
    """The rows that one model learns from, and the validation rows that tell its effects.

    Parameters
    ----------
    rows : ndarray of int32
        Positions of the rows to learn from.
    validated : ndarray of int32
        Positions among the validation rows.
    table : Table or None
        The validation rows' table; None if they are rows of the one table.
    """

    rows: Rows
    validated: Rows
    table: Table | None = None


def deal_folds(problem: Problem, n_folds: int, seed: int) -> list[Fold]:
    """Deal the rows into folds, each validated by a model that learns from the others."""
    n_rows, blocks = problem.n_rows, problem.blocks
    n_units = n_rows if blocks is None else int(blocks.max()) + 1
    unseen = 1.0 / n_folds
    check_bags(n_units, n_folds, unseen, "rows" if blocks is None else "groups of rows")
    strata = strata_of(problem.variables, unseen)
    if problem.sample_weight is not None:  # every fold gets rows that count
        strata = 2 * strata + (problem.sample_weight > 0)
    bags = out_of_bag_sets(n_rows, n_folds, unseen, strata, np.random.default_rng([seed, 0]), blocks)
    folds = []
    for left_out in bags:
        inside = np.ones(n_rows, dtype=np.bool_)
        inside[left_out] = False
        folds.append(Fold(np.flatnonzero(inside).astype(np.int32), left_out))
    return folds


def validated_fold(problem: Problem, validation: Problem) -> Fold:
    """Let one model learn from all rows, and measure it on others."""
    every, theirs = (np.arange(own.n_rows, dtype=np.int32) for own in (problem, validation))
    return Fold(every, theirs, validation.table)


class Forests:
    """The models of all folds.

    Parameters
    ----------
    problem : Problem
        The rows to value, with a target of two classes.
    weights : ndarray or None
        What each row weighs.
    folds : sequence of Fold
        One per model.
    workers : int
        How many models are grown or read side by side.
    """

    def __init__(
        self, problem: Problem, weights: FloatArray | None, folds: Sequence[Fold], workers: int
    ) -> None:
        self._problem = problem
        self._weights = weights
        self._folds = folds
        self._engine = LightGBMEngine(problem.table, None, workers)
        self._executor = ThreadExecutor(workers)
        self._forests: list[Forest] = []

    def grow(self, estimator: Any, seed: int) -> Iterable[FloatArray]:
        """Grow the models; give the validation rows' probabilities, one fold after the other."""
        seeds = np.random.SeedSequence([seed, 1]).generate_state(len(self._folds))
        tasks = [
            Task(
                estimator,
                self._problem.target,
                fold.rows,
                int(own) % 2**31,
                fold.validated if fold.table is None else fold.table,
                None if self._weights is None else self._weights[fold.rows],
            )
            for fold, own in zip(self._folds, seeds, strict=True)
        ]
        self._engine.prepare(tasks)
        for forest, scores in self._executor.run(_grow_forest, tasks, self._engine):
            self._forests.append(forest)
            yield scores

    @property
    def are_bare(self) -> bool:
        """Whether no tree of any model splits anything."""
        return all(tree.n_leaves == 1 for forest in self._forests for tree in forest.trees)

    def read_effects(self, slopes: FloatArray, form: str) -> Iterable[tuple[FloatArray, KeptModel]]:
        """Give the effects of each fold's rows on metrics with such slopes, one fold after the other.

        With them comes what is left of the fold's model without its rows.
        """

        def read(
            task: tuple[Fold, Forest, tuple[Trees, TrainingRows]], shared: Any, stop: Any
        ) -> tuple[FloatArray, KeptModel]:
            fold, forest, (trees, rows) = task
            told = FORMS[form](trees, rows, slopes[fold.validated])
            return told.of_rows, KeptModel.of(forest, rows.initial, told)

        yield from self._executor.run(
            read, list(zip(self._folds, self._forests, self.read_trees(), strict=True))
        )

    def read_trees(self) -> list[tuple[Trees, TrainingRows]]:
        """Give each fold's trees, ready to tell who falls into which leaf, and the rows that they learnt."""
        training = self._engine.read_leaves(self._forests)
        readers: dict[Table | None, LeafReader] = {None: training}
        for table in {fold.table for fold in self._folds if fold.table is not None}:
            readers[table] = self._engine.read_leaves(self._forests, table)
        positive = self._problem.labels.is_positive
        found = []
        for fold, forest in zip(self._folds, self._forests, strict=True):
            rows = _training_rows(forest, positive[fold.rows], self._weights, fold.rows)
            positions = fold.validated if fold.table is None else None
            trees = [
                GrownTree(
                    tree.values - (rows.initial if number == 0 else 0.0),
                    forest.leaf_penalties(tree),
                    partial(training.read, tree, fold.rows),
                    partial(readers[fold.table].read, tree, positions),
                )
                for number, tree in enumerate(forest.trees)
            ]
            found.append((trees, rows))
        return found


def _grow_forest(task: Task, engine: LightGBMEngine, stop: threading.Event) -> tuple[Forest, FloatArray]:
    model = engine.fit(task, stop)
    if not isinstance(model, LightGBMModel):
        raise ValueError(
            "The rows that a model learns from hold one label only: give more rows of each label, or set "
            "rows apart with `validation`."
        )
    return model.forest, model.scores


def _training_rows(
    forest: Forest, positive: npt.NDArray[np.bool_], weights: FloatArray | None, rows: Rows
) -> TrainingRows:
    """Say what a model learnt from, and how, in LightGBM's own precision."""
    own = None if weights is None else weights[rows].astype(np.float32).astype(np.float64)
    parameters = forest.parameters
    from_average = bool(parameters.get("boost_from_average", True))
    return TrainingRows(
        positive,
        own,
        initial_score(positive, own) if from_average else 0.0,
        from_average,
        rate=float(parameters["learning_rate"]),
        l1=float(parameters.get("lambda_l1", parameters.get("reg_alpha", 0.0))),
    )
