"""From the first pass to models: a sample, a learning curve, and fits on bags that folds decide."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from fado.execution import on_cluster
from fado.tabular import Problem, on_shelf, row_hash
from fado.valuation.bulk._curve import FIRST_SIZE, HELD_OUT, LearningCurve, follow_curve
from fado.valuation.bulk._folds import Folds
from fado.valuation.bulk._roles import Roles
from fado.valuation.bulk._sample import problem_of, smallest_of
from fado.valuation.bulk._scan import Scan
from fado.valuation.bulk._training import FoldedEntropy, bags_of, sample_size, train
from fado.valuation.entropy import ValuationModels
from fado.valuation.entropy._exclusions import variables_to_learn
from fado.valuation.entropy._fits import Bag

__all__ = ["Learner", "learn"]

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Learner:
    """How models learn.

    Parameters
    ----------
    roles : Roles
        What the columns are for.
    folds : Folds
        Which bag leaves out which row.
    unseen_fraction : float
        Which share of the rows each bag leaves out.
    seed : int
        Of the sample and of the fits.
    n_jobs : int or None
        How many fits run side by side.
    progress : bool
        Whether to show a progress bar.
    client : dask.distributed.Client or None
        Of a cluster whose workers fit the models.
    shelf : Path
        Where the sample stands while such workers need it.
    """

    roles: Roles
    folds: Folds
    unseen_fraction: float
    seed: int
    n_jobs: int | None
    progress: bool
    client: Any
    shelf: Path

    def valuator(self, bags: list[Bag], settings: dict[str, Any]) -> FoldedEntropy:
        """Make the valuator whose models are kept."""
        return FoldedEntropy(
            bags,
            settings,
            n_bags=self.folds.n_bags,
            unseen_fraction=self.unseen_fraction,
            z_exclude={name: list(own) for name, own in self.roles.excluded.items()},
            random_state=self.seed,
            n_jobs=self.n_jobs,
            progress=self.progress,
        )

    @contextmanager
    def lesson(self, scan: Scan) -> Iterator[Problem]:
        """Give the sampled rows to learn from; fits on them go to the cluster, if there is one."""
        problem = problem_of(scan, self.roles)
        if self.client is None:
            yield problem
            return
        with on_shelf(problem.table, self.shelf) as table, on_cluster(self.client):
            yield replace(problem, table=table)


def learn(scan: Scan, learner: Learner, most_train_rows: int, *, is_asked: bool) -> ValuationModels:
    """Train the models of all bags.

    Parameters
    ----------
    scan : Scan
        What the first pass told; its sample is learnt from.
    learner : Learner
        How.
    most_train_rows : int
        How many rows a bag learns from.
    is_asked : bool
        Whether the user asked for so many; otherwise, a learning curve may find that fewer are enough.
    """
    hashes = row_hash(learner.seed, scan.rows)
    train_rows, told = most_train_rows, {}
    if not is_asked:
        curve = _curve(scan, learner, hashes, most_train_rows)
        told = {"learning_curve": curve.to_plain()}
        train_rows = curve.train_rows
    chosen = smallest_of(hashes, sample_size(train_rows, learner.folds.n_folds))
    cut = _cut(scan, chosen)
    bags = bags_of(learner.folds, cut.rows, hashes[chosen], train_rows)
    longest = max(len(bag.in_bag) for bag in bags)
    settings = {"train_rows": longest, "n_rows": scan.n_rows, **told}
    with learner.lesson(cut) as problem:
        return train(learner.valuator(bags, settings), problem)


def _curve(
    scan: Scan, learner: Learner, hashes: npt.NDArray[np.uint64], most_train_rows: int
) -> LearningCurve:
    """Find out on the first bag how many rows are enough."""
    bag = bags_of(replace(learner.folds, tiles=1), scan.rows, hashes, most_train_rows)[0]
    most, are_all = len(bag.in_bag), len(scan.rows) == scan.n_rows
    if most <= FIRST_SIZE:
        return LearningCurve(most_train_rows, None, {}, is_enough=are_all)
    held_out = np.sort(bag.scored[np.argsort(hashes[bag.scored])[:HELD_OUT]])
    by_hash = bag.in_bag[np.argsort(hashes[bag.in_bag])]
    valuator = learner.valuator([], {})
    with learner.lesson(scan) as problem:
        variables = variables_to_learn(problem, valuator.z_exclude, sees_target=True)

        def values_of(size: int) -> dict[str, FloatArray]:
            # No other row may have a say in the bins.
            rows = np.sort(np.concatenate([by_hash[:size], held_out]))
            scored = np.isin(rows, held_out)
            here = Bag(0, np.flatnonzero(~scored).astype(np.int32), np.flatnonzero(scored).astype(np.int32))
            learnt = valuator._learn(
                _some_rows(problem, rows),
                [own.take(rows) for own in variables],
                [here],
                learner.seed,
                show=False,
            )
            return {name: own.mean[scored] for name, own in learnt.moments.items()}

        found = follow_curve(values_of, most, are_all=are_all)
    return replace(found, train_rows=most_train_rows) if found.train_rows == most else found


def _some_rows(problem: Problem, rows: npt.NDArray[np.integer[Any]]) -> Problem:
    """Keep some rows alone, with the levels and classes of all."""
    weights = problem.sample_weight
    return replace(
        problem,
        table=problem.table.take(rows),
        target=problem.target.take(rows),
        protected=tuple(own.take(rows) for own in problem.protected),
        sample_weight=None if weights is None else weights[rows],
    )


def _cut(scan: Scan, chosen: npt.NDArray[np.int64]) -> Scan:
    """Keep some rows of the sample alone."""
    if len(chosen) == len(scan.rows):
        return scan
    return replace(scan, rows=scan.rows[chosen], sample=scan.sample.take(chosen))
