"""Folds of the training rows, and what models predict for rows that they have not seen."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from fado._messages import list_names
from fado._progress import tracked
from fado._typing import Floats, Integers
from fado.aim._curve import Rows
from fado.aim._groups import (
    Attribute,
    check_both_labels,
    find_attributes,
    read_rows_apart,
    weights_of,
)
from fado.aim._lines import ALLOWANCE, Lines
from fado.engine import (
    Engine,
    Model,
    Task,
    default_estimators,
    engine_class,
    groups_given_labels,
    weights_refused,
)
from fado.execution import ThreadExecutor, n_workers
from fado.metrics import Budget
from fado.tabular import Problem, Table, Variable, deal_rows, match_positive, mean_one, read_folds

Fold = tuple[Integers, Integers]  # the rows to fit on, and those to validate on

INNER_FOLDS = 5
_FAR = 0.05  # the weight of a row far from the threshold, relative to one at it
_TINY = 1e-12


class Folds:
    """The rows, their folds, the lines to reach, and the models that are fitted on folds or on all rows.

    Parameters
    ----------
    settings : AimedEstimator
        Whose parameters say what is fitted, and how.
    problem : Problem
        The training rows.
    validation : tuple or None
        Rows that were set apart; None validates on folds.
    lines : dict of str to float
        The line of each ratio.
    seed : int
        The seed of folds and models.
    """

    def __init__(
        self, settings: Any, problem: Problem, validation: Any, lines: dict[str, float], seed: int
    ) -> None:
        unknown = problem.unknown
        apart = None if validation is None else read_rows_apart(validation, "validation", unknown)
        attributes, groups = find_attributes(problem, apart, settings.attributes, settings.min_group_size)
        refitted = apart is None and settings.by == "scores"
        allowance, budget = ALLOWANCE if refitted else 1.0, Budget.read(settings.budget, settings.max_fpr)
        self.problem, self.seed = problem, seed
        self.lines = Lines.between(attributes, lines, settings.confidence, budget, seed, allowance)
        self.validation: tuple[Table, Rows] | None = None
        if apart is not None:
            codes = tuple(part.codes for part in groups)
            rows = Rows(match_positive(apart.labels, problem.labels.pair), codes, weights_of(apart))
            self.validation = apart.table, rows
        self.progress, self.n_fits = bool(settings.progress), 0
        self._estimator, self._workers = settings.estimator, n_workers(settings.n_jobs)
        self._group_estimator = settings.group_estimator
        if self._group_estimator is None:
            self._group_estimator = default_estimators(problem.table.n_columns + 1)[0]
        positive = problem.labels.is_positive.astype(np.int32)
        self._target = Variable("y", "classes", positive, (False, True))
        self._groups = [
            Variable(
                f"group {number}",
                "classes",
                attribute.training_classes.astype(np.int32),
                tuple(range(attribute.n_classes)),
                sees_target=True,
            )
            for number, attribute in enumerate(attributes)
        ]
        self._engines: dict[Any, Engine] = {}
        self.folds = [] if apart is not None and settings.by == "scores" else self._read_folds(settings.cv)
        # The rows that will be validated, before anything is fitted.
        self.validated = (
            self.rows(np.concatenate([rows for _, rows in self.folds[0 if refitted else -1 :]]))
            if self.validation is None
            else self.validation[1]
        )

    def _read_folds(self, cv: Any) -> list[Fold]:
        """Read or make the folds, and refuse one that lacks a label or a group."""
        problem = self.problem
        if isinstance(cv, int | np.integer):
            folds = self.deal(np.arange(problem.n_rows, dtype=np.int32), int(cv), 1)
        else:
            given = read_folds(cv, problem.n_rows, problem.labels.codes, problem.blocks)
            folds = [(train.astype(np.int32), rows.astype(np.int32)) for train, rows in given]
        for number, (train, _) in enumerate(folds):
            check_both_labels(problem.labels.is_positive[train], f"training rows of fold {number}")
            for attribute in self.lines.attributes:
                groups = attribute.groups
                sizes = np.bincount(groups.codes[train], minlength=len(groups))
                lacking = np.flatnonzero(attribute.compared & (sizes == 0))
                if len(lacking):
                    names = list_names([groups.names[group] for group in lacking])
                    raise ValueError(
                        f"The training rows of fold {number} have no row of group {names}: use folds that "
                        "have rows of every group. Folds given as a number do, unless `groups` keeps a group "
                        "together."
                    )
        return folds

    def deal(self, rows: Integers, count: int = INNER_FOLDS, purpose: int = 2) -> list[Fold]:
        """Divide rows into folds with about the same labels and groups."""
        problem = self.problem
        cells = 2 * problem.groups.codes[rows] + problem.labels.is_positive[rows]
        blocks = None if problem.blocks is None else np.unique(problem.blocks[rows], return_inverse=True)[1]
        dealt = deal_rows(cells, [1 / count] * count, np.random.default_rng([self.seed, purpose]), blocks)
        if len(np.unique(dealt)) < 2:
            raise ValueError(
                f"The {len(rows)} rows (n_samples = {problem.n_rows} in all) make one fold only, as `groups` "
                'keeps them together: give `validation` rows, and aim by="scores".'
            )
        return [(rows[dealt != fold], rows[dealt == fold]) for fold in np.unique(dealt)]

    def rows(self, positions: Integers) -> Rows:
        """Give the labels, groups and weights of some training rows."""
        groups = tuple(attribute.groups.codes[positions] for attribute in self.lines.attributes)
        return Rows(self.problem.labels.is_positive[positions], groups, self.weights(positions))

    def weights(self, positions: Integers) -> Floats:
        """Give how much some training rows count."""
        weights = self.problem.sample_weight
        return np.ones(len(positions)) if weights is None else weights[positions]

    def spread(self, positions: Integers, numbers: Floats, others: float = np.nan) -> Floats:
        """Give numbers of some training rows as an array of all."""
        every = np.full(self.problem.n_rows, others)
        every[positions] = numbers
        return every

    def last_fold(self) -> tuple[Integers, Table, Rows]:
        """Give the rows to train on and those to validate on: set apart, or those of the last fold."""
        if self.validation is not None:
            return np.arange(self.problem.n_rows, dtype=np.int32), *self.validation
        train, left_out = self.folds[-1]
        check_both_labels(self.validated.positive, "validation rows of the last fold")
        return train, self.problem.table.take(left_out), self.validated

    def out_of_fold(
        self, folds: Sequence[Fold], *, label: bool = True, seen: bool = False
    ) -> tuple[Integers, Rows, Rows | None]:
        """Predict the validation rows of folds by models that have not seen them.

        Returns
        -------
        tuple of ndarray, Rows, Rows or None
            The positions of these rows, ascending; the rows with predictions; and, with `seen`, rows with
            predictions of models that have seen them, those that the next fold validates, if there are any.
        """
        parts = [rows for _, rows in folds]
        tasks = [self._task(self._target, train, rows) for train, rows in folds] if label else []
        n_labels = len(tasks)
        tasks += [self._task(group, train) for group in self._groups for train, _ in folds]
        models = self._fit(tasks)
        labels, groups = models[:n_labels], models[n_labels:]
        positions = np.concatenate(parts)
        scores = self._target.labels[positions].astype(np.float64)
        if label:
            scores = np.concatenate([_of_positive(model.scores) for model in labels])
        order = np.argsort(positions, kind="stable")
        rows = replace(
            self.rows(positions), scores=scores, group_probabilities=self._group_probabilities(groups, parts)
        )
        after = [*parts[1:], parts[0]]
        learnt = None
        if seen and all(np.isin(part, train).all() for part, (train, _) in zip(after, folds, strict=True)):
            table = self.problem.table
            pairs = zip(labels, after, strict=True)
            learnt = replace(
                self.rows(np.concatenate(after)),
                scores=np.concatenate([_of_positive(model.score(table.take(part))) for model, part in pairs]),
                group_probabilities=self._group_probabilities(groups, after),
            )
        return positions[order], rows.take(order), learnt

    def _group_probabilities(
        self, models: Sequence[Model], parts: Sequence[Integers]
    ) -> tuple[tuple[Floats, Floats], ...]:
        """Give the probabilities of groups by the models of each attribute, one per part of the rows."""
        tables = [self.problem.table.take(positions) for positions in parts]
        pairs = []
        for start in range(0, len(models), len(parts)):
            of_attribute = zip(models[start : start + len(parts)], tables, strict=True)
            given = [groups_given_labels(model, table) for model, table in of_attribute]
            negatives, positives = zip(*given, strict=True)
            pairs.append((np.concatenate(negatives), np.concatenate(positives)))
        return tuple(pairs)

    def fit(self, rows: Integers | None = None, *, groups: bool = True) -> list[Model]:
        """Fit the model of the label on some rows or all, and with `groups` those of the groups too."""
        rows = np.arange(self.problem.n_rows, dtype=np.int32) if rows is None else rows
        variables = [self._target, *(self._groups if groups else ())]
        return self._fit([self._task(variable, rows) for variable in variables])

    def fit_weighted(self, weights: Floats, rows: Integers) -> Model:
        """Fit the estimator on some rows with these weights."""
        given = self.problem.sample_weight
        product = weights if given is None else given[rows] * weights
        return self._fit([Task(self._estimator, self._target, rows, self.seed, rows[:1], product)])[0]

    def fit_student(self, student: Any, rows: Integers, scores: Floats, threshold: float) -> Model:
        """Fit a regressor on the log odds of scores; rows near the threshold count most."""
        log_odds = _log_odds(scores)
        target = Variable("score", "continuous", self.spread(rows, log_odds, 0.0))
        weights = None
        if weights_refused(student) is None:
            weights = nearness(log_odds, threshold) * mean_one(self.weights(rows))
        return self._fit([Task(student, target, rows, self.seed, rows[:1], weights)])[0]

    def _task(self, variable: Variable, rows: Integers, scored: Integers | None = None) -> Task:
        """Make the task of fitting the label, or groups, whose models get weights of a mean of 1."""
        estimator, weights = self._estimator, self.problem.sample_weight
        weights = None if weights is None else weights[rows]
        if variable is not self._target:
            estimator, weights = self._group_estimator, None if weights is None else mean_one(weights)
        return Task(estimator, variable, rows, self.seed, rows[:1] if scored is None else scored, weights)

    def _fit(self, tasks: Sequence[Task]) -> list[Model]:
        """Fit all tasks, in parallel if the engine allows it, and give the models in their order."""
        self.n_fits += len(tasks)
        engines = []
        for task in tasks:
            kind: Any = engine_class(task.estimator, self.problem.table)
            if kind not in self._engines:
                self._engines[kind] = kind(self.problem.table, self._target)
            engines.append(self._engines[kind])
        jobs = list(zip(tasks, engines, strict=True))
        for engine in dict.fromkeys(engines):
            engine.prepare([task for task, used in jobs if used is engine])
        workers = self._workers if all(engine.in_threads for engine in engines) else 1

        def fit(job: tuple[Task, Engine], shared: None, stop: threading.Event) -> Model:
            return job[1].fit(job[0], stop)

        models = ThreadExecutor(workers).run(fit, jobs)
        return list(tracked(models, len(jobs), what="fits", show=self.progress and len(jobs) > 1))


def predicted(rows: Rows, models: Sequence[Model], table: Table) -> Rows:
    """Give rows that were set apart with the predictions of the models of label and groups."""
    label, *groups = models
    known = tuple(groups_given_labels(group, table) for group in groups)
    return replace(rows, scores=_of_positive(label.score(table)), group_probabilities=known)


def group_predictability(rows: Rows, attributes: Sequence[Attribute]) -> float:
    """Measure how much uncertainty about groups the features remove, 0 to 1: that of the worst attribute."""
    p, weights, shares_removed = rows.scores[:, np.newaxis], rows.weights, []
    for (negative, positive), codes, attribute in zip(
        rows.group_probabilities, rows.groups, attributes, strict=True
    ):
        classes = attribute.classes[codes]
        if classes.max() >= negative.shape[1]:
            continue
        known = (1 - p) * negative + p * positive
        of_group = np.maximum(known[np.arange(len(classes)), classes], np.finfo(np.float64).eps)
        shares = np.bincount(classes, weights, minlength=known.shape[1]) / weights.sum()
        shares = shares[shares > 0]
        doubt = -float(shares @ np.log(shares))
        left = -float(np.average(np.log(of_group), weights=weights))
        shares_removed.append(max(0.0, 1 - left / doubt) if doubt > 0 else 1.0)
    return min(shares_removed, default=0.0)


def nearness(log_odds: Floats, threshold: float) -> Floats:
    """Weight rows for a student: those near the threshold, where an error changes a decision, count most."""
    return np.exp(-np.abs(log_odds - _log_odds(np.array(threshold)))) + _FAR


def _log_odds(scores: Floats) -> Floats:
    """Give log odds that are finite."""
    clipped = np.clip(scores, _TINY, 1 - _TINY)
    return np.log(clipped) - np.log1p(-clipped)


def _of_positive(scores: Floats) -> Floats:
    """Give the probabilities of the positive label, and refuse values that are not finite."""
    positive = scores[:, 1]
    wrong = np.flatnonzero(~np.isfinite(positive))
    if len(wrong):
        raise ValueError(
            f"The estimator gave {positive[wrong[0]]} as the probability of {len(wrong):,} of "
            f"{len(positive):,} validation rows: use one whose probabilities are numbers."
        )
    return positive
