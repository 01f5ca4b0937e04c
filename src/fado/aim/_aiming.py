"""Aim one estimator: who learns, who judges, which weights; and the model that is kept."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fado.aim._cells import cell_weights
from fado.aim._judged import INTERVAL, JudgedRows, compare_groups, groups_of_judge, positives_of_judge
from fado.aim._memberships import Memberships, find_memberships
from fado.aim._path import Path, walk
from fado.aim._search import Search
from fado.aim._training import Split, Trainer
from fado.engine import Model
from fado.metrics import Budget
from fado.tabular import Labels, Problem, deal_rows, read_folds

__all__ = ["Aim", "Aimed"]

FloatArray = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
Codes = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Aimed:
    """What came of it.

    Parameters
    ----------
    path : Path
        The steps, and what was measured after each.
    model : Model
        The final one.
    weights : ndarray of shape (n_rows,)
        Of its rows.
    judged : JudgedRows
        What the path was judged on.
    told : float or None
        How much the features alone tell of the groups, from 0 to 1; None if the line was reached.
    """

    path: Path
    model: Model
    weights: FloatArray
    judged: JudgedRows
    told: float | None


@dataclass(frozen=True)
class Aim:
    """What is aimed at, and how it is judged.

    Parameters
    ----------
    ratio : str
        The ratio between groups.
    at_least : float
        The line.
    budget : Budget
        What decides.
    confidence : float or None
        With which the ratio's lower bound must reach the line; None if the estimate must.
    max_fits : int
        Most steps.
    validation_fraction : float
        Of the rows, to judge by.
    cv : int, splitter, iterable of pairs of rows, or None
        Into how many folds all rows are dealt to judge by instead, or the folds.
    min_group_size : int
        Which groups are small.
    seed : int
        Of all that is drawn.
    workers : int
        Fits side by side.
    """

    ratio: str
    at_least: float
    budget: Budget
    confidence: float | None
    max_fits: int
    validation_fraction: float
    cv: Any
    min_group_size: int
    seed: int
    workers: int

    def run(
        self, estimator: Any, problem: Problem, judge: Problem | None, factor: FloatArray | None
    ) -> Aimed:
        """Walk towards the line, and train the model that is kept.

        Parameters
        ----------
        estimator : classifier
            What is trained.
        problem : Problem
            The rows to learn from, of two labels.
        judge : Problem or None
            Rows to judge by.
        factor : ndarray or None
            What multiplies every row's weight.
        """
        labels, groups = problem.labels, problem.groups
        positive = labels.is_positive
        splits, order = self._splits(problem, judge)
        judged = self._judged(problem, judge, order, positive)
        trainer = Trainer(
            estimator,
            problem.table,
            positive,
            sample_weight=problem.sample_weight,
            seed=self.seed,
            workers=self.workers,
        )
        weigher = _Weigher(problem, judged.compared[: len(groups)], factor, self.seed, self.workers)
        learnt = None if self.cv is not None or judge is not None else splits[0].learnt

        def train(log_factors: FloatArray) -> tuple[FloatArray, Model]:
            return trainer.judged_scores(splits, weigher.weights(log_factors, learnt))

        search = Search(self.at_least, by_bound=self.confidence is not None, max_fits=self.max_fits)
        path = walk(search, judged, train)
        weights = weigher.weights(np.asarray(path.steps[path.best].log_factors))
        model = path.model if judge is not None else trainer.fit(weights)
        shown = np.ones(problem.n_rows) if weights is None else weights
        told = None if path.reached or judged.compared.sum() < 2 else weigher.told_by_features()
        return Aimed(path, model, shown, judged, told)

    def _splits(self, problem: Problem, judge: Problem | None) -> tuple[list[Split], Codes]:
        """Say which rows models learn from and are judged on, and which judged row comes when."""
        everyone = np.arange(problem.n_rows, dtype=np.int32)
        if judge is not None:
            return [Split(everyone, judge.table)], np.arange(judge.n_rows)
        if self.cv is None or isinstance(self.cv, int):
            pairs = [(np.setdiff1d(everyone, part), part) for part in self._held_out(problem)]
        else:
            folds = read_folds(self.cv, problem.n_rows, problem.labels.codes, problem.blocks)
            pairs = [(train.astype(np.int32), validation.astype(np.int32)) for train, validation in folds]
        for learnt, judged in pairs:
            _check_labels(learnt, judged, problem.labels)
        splits = [Split(learnt, judged) for learnt, judged in pairs]
        return splits, np.concatenate([judged for _, judged in pairs])

    def _held_out(self, problem: Problem) -> list[npt.NDArray[np.int32]]:
        """Draw the rows to judge by, one part after the other."""
        if isinstance(self.cv, int):
            shares = [1 / self.cv] * self.cv
        else:
            shares = [1 - self.validation_fraction, self.validation_fraction]
        cells = 2 * problem.groups.codes + problem.labels.is_positive
        dealt = deal_rows(cells, shares, np.random.default_rng([self.seed, 1]), problem.blocks)
        parts = [np.flatnonzero(dealt == part).astype(np.int32) for part in range(len(shares))]
        return parts[1:] if self.cv is None else [part for part in parts if len(part)]

    def _judged(self, problem: Problem, judge: Problem | None, order: Codes, positive: Bools) -> JudgedRows:
        groups, weights = problem.groups, problem.sample_weight
        if judge is None:
            codes, names, theirs = groups.codes[order], groups.names, positive[order]
            weights = None if weights is None else weights[order]
        else:
            labels = problem.labels
            found = groups_of_judge(problem, judge)
            classes = labels.classes[1 - (labels.positive or 0)], labels.classes[labels.positive or 0]
            codes, names, theirs = found.codes, found.names, positives_of_judge(classes, judge)
            weights = judge.sample_weight
        return JudgedRows(
            theirs,
            codes,
            names,
            compare_groups(groups.codes, codes, names, self.min_group_size),
            weights,
            self.ratio,
            self.budget,
            INTERVAL if self.confidence is None else self.confidence,
            self.seed,
        )


class _Weigher:
    """Gives rows their weights by log factors of the compared groups.

    Parameters
    ----------
    problem : Problem
        The rows.
    compared : ndarray of bool
        Which of its groups are moved; the rows of others keep their weight.
    factor : ndarray or None
        What multiplies every row's weight.
    seed : int
        Of the models of the groups.
    workers : int
        Fits side by side.
    """

    def __init__(
        self, problem: Problem, compared: Bools, factor: FloatArray | None, seed: int, workers: int
    ) -> None:
        self._problem = problem
        self._factor = factor
        self._seed, self._workers = seed, workers
        self._known: dict[int, Memberships] = {}
        place = np.cumsum(compared) - 1
        place[~compared] = compared.sum()  # all others are one group that is not moved
        self._codes = place[problem.groups.codes]
        self._untouched = ~compared[problem.groups.codes]
        self._n_groups = int(compared.sum()) + bool(self._untouched.any())

    def weights(
        self, log_factors: FloatArray, rows: npt.NDArray[np.int32] | None = None
    ) -> FloatArray | None:
        """Weigh all rows, or some of them, by models that know no others; None stands for equal weights.

        Parameters
        ----------
        log_factors : ndarray
            Of the compared groups.
        rows : ndarray of int, optional
            The rows that may be learnt from; the others weigh nothing.
        """
        if not log_factors.any():
            return self._factor
        problem = self._problem
        chosen = np.arange(problem.n_rows) if rows is None else rows
        own = None if problem.sample_weight is None else problem.sample_weight[chosen]
        positive = problem.labels.is_positive[chosen]
        untouched = self._untouched[chosen]
        padded = np.append(log_factors, np.zeros(self._n_groups - len(log_factors)))
        found = cell_weights(
            padded,
            self._memberships(chosen).probabilities,
            positive,
            sample_weight=own,
            untouched=untouched if untouched.any() else None,
        )
        weights = np.zeros(problem.n_rows)
        weights[chosen] = found if self._factor is None else found * self._factor[chosen]
        return weights

    def told_by_features(self) -> float:
        """Say how much of the doubt about groups the features take away, to those who do not know labels."""
        every = np.arange(self._problem.n_rows)
        return self._learnt(every, given_label=False).told

    def _memberships(self, rows: npt.NDArray[Any]) -> Memberships:
        """Learn the groups of some rows, once."""
        if len(rows) not in self._known:
            self._known[len(rows)] = self._learnt(rows, given_label=True)
        return self._known[len(rows)]

    def _learnt(self, rows: npt.NDArray[Any], *, given_label: bool) -> Memberships:
        problem = self._problem
        weights, blocks = problem.sample_weight, problem.blocks
        return find_memberships(
            problem.table if len(rows) == problem.n_rows else problem.table.take(rows),
            problem.labels.is_positive[rows],
            self._codes[rows],
            self._n_groups,
            seed=self._seed,
            workers=self._workers,
            sample_weight=None if weights is None else weights[rows],
            blocks=None if blocks is None else np.unique(blocks[rows], return_inverse=True)[1],
            given_label=given_label,
        )


def _check_labels(learnt: npt.NDArray[np.int32], judged: npt.NDArray[np.int32], labels: Labels) -> None:
    """Refuse a split that leaves one label only to learn from or to judge by."""
    for rows, what in ((learnt, "to learn from"), (judged, "to judge by")):
        positives = int(labels.is_positive[rows].sum())
        if positives in (0, len(rows)):
            raise ValueError(
                f"Too few rows: those {what} ({len(rows)}, n_samples = {len(labels.codes)} in all) hold one "
                "label only. Give more rows of each label, or `judge` rows."
            )
