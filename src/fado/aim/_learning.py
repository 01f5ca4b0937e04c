"""Models of the label and of the groups, fitted on the same folds: what they know of unseen rows."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fado._checks import check_instance
from fado._messages import list_names
from fado.aim._comparing import Attribute
from fado.aim._decisions import Knowledge
from fado.engine import Engine, Model, Task, engine_class, groups_given_labels
from fado.execution import ThreadExecutor
from fado.tabular import Problem, Table, Variable, deal_rows, mean_one, read_folds

__all__ = [
    "Fold",
    "Learner",
    "Models",
    "check_both_labels",
    "check_regressor",
    "deal_folds",
    "find_folds",
    "group_predictability",
    "nearness",
    "takes_weights",
]

FloatArray = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
Rows = npt.NDArray[np.int32]
Fold = tuple[Rows, Rows]

_FAR = 0.05  # what a row far from the threshold counts for, beside one at it
_TINY = 1e-12


@dataclass(frozen=True, eq=False)
class Models:
    """A fitted model of the label, and one of the groups of each attribute.

    Parameters
    ----------
    label : Model
        Of the label.
    groups : tuple of Model
        Of each attribute's groups, given features and label.
    """

    label: Model
    groups: tuple[Model, ...]

    def knowledge(self, table: Table, weights: FloatArray) -> Knowledge:
        """Give what they know of other rows."""
        known = tuple(groups_given_labels(own, table) for own in self.groups)
        return Knowledge(_of_positive(self.label.score(table)), known, weights)


class Learner:
    """Fits one estimator of the label, and one of the groups, on rows of a table.

    Parameters
    ----------
    estimator, group_estimator : classifier
        Of the label, which sees the features; of the groups, which sees the label too.
    table : Table
        The features.
    positive : ndarray of bool
        The rows of the positive label.
    attributes : sequence of Attribute
        Whose groups are learnt.
    sample_weight : ndarray or None
        How much each row counts.
    seed : int
        Of estimators that have none.
    workers : int
        Fits side by side. It changes no result.
    """

    def __init__(
        self,
        estimator: Any,
        group_estimator: Any,
        table: Table,
        positive: Bools,
        attributes: Sequence[Attribute],
        *,
        sample_weight: FloatArray | None,
        seed: int,
        workers: int,
    ) -> None:
        self._estimator, self._group_estimator = estimator, group_estimator
        self._table, self._positive, self._seed, self._workers = table, positive, seed, workers
        self._weights = sample_weight
        self._target = Variable("y", "classes", positive.astype(np.int32), (False, True))
        self._groups = [
            Variable(
                f"group {number}",
                "classes",
                own.classes[own.codes].astype(np.int32),
                tuple(range(own.n_classes)),
                sees_target=True,
            )
            for number, own in enumerate(attributes)
        ]
        self._engines: dict[Any, Engine] = {}
        self.n_fits = 0
        self.seen: tuple[Rows, Knowledge] | None = None

    def out_of_fold(self, folds: Sequence[Fold], *, label: bool = True) -> tuple[Rows, Knowledge]:
        """Give the validated rows, ascending, and what models know of each that were not fitted on it.

        Parameters
        ----------
        folds : sequence of pairs of ndarray
            The rows to fit on and those to validate, each row at most once.
        label : bool, default=True
            Whether to fit models of the label; where not, rows' labels are taken as known.

        Notes
        -----
        `seen` is then what the models know of rows that they were fitted on: each model, of the rows that the
        next one validates; None if those were not among its own.
        """
        labels = [self._label_task(train, validation) for train, validation in folds] if label else []
        groups = [self._group_task(own, train) for own in self._groups for train, _ in folds]
        models = self._fit([*labels, *groups])
        order = np.concatenate([validation for _, validation in folds])
        by_row = np.argsort(order, kind="stable")
        rows = order[by_row]
        positive = self._positive[order].astype(np.float64)
        if label:
            positive = np.concatenate([_of_positive(model.scores) for model in models[: len(labels)]])
        known = [
            groups_given_labels(model, self._table.take(folds[number % len(folds)][1]))
            for number, model in enumerate(models[len(labels) :])
        ]
        pairs = []
        for start in range(0, len(known), len(folds)):
            negatives, positives = zip(*known[start : start + len(folds)], strict=True)
            pairs.append((np.concatenate(negatives)[by_row], np.concatenate(positives)[by_row]))
        self.seen = self._seen(folds, models[: len(folds)], models[len(folds) :]) if label else None
        return rows, Knowledge(positive[by_row], tuple(pairs), self.weights_of(rows))

    def _seen(
        self, folds: Sequence[Fold], labels: Sequence[Model], groups: Sequence[Model]
    ) -> tuple[Rows, Knowledge] | None:
        """Let every model of a fold score rows that it has seen: those that the next one validates."""
        others = [folds[(number + 1) % len(folds)][1] for number in range(len(folds))]
        if not all(np.isin(own, train).all() for own, (train, _) in zip(others, folds, strict=True)):
            return None
        found = [
            Models(label, tuple(groups[number :: len(folds)])).knowledge(
                self._table.take(own), self.weights_of(own)
            )
            for number, (label, own) in enumerate(zip(labels, others, strict=True))
        ]
        pairs = tuple(
            (
                np.concatenate([own.groups[place][0] for own in found]),
                np.concatenate([own.groups[place][1] for own in found]),
            )
            for place in range(len(self._groups))
        )
        every = np.concatenate(others)
        return every, Knowledge(
            np.concatenate([own.positive for own in found]), pairs, self.weights_of(every)
        )

    def fit(self, rows: Rows | None = None, *, groups: bool = True) -> Models:
        """Fit models on some rows, or on all; `groups` says whether to fit those of the groups too."""
        rows = np.arange(self._table.n_rows, dtype=np.int32) if rows is None else rows
        tasks = [self._label_task(rows, rows[:1])]
        tasks += [self._group_task(own, rows) for own in self._groups] if groups else []
        label, *others = self._fit(tasks)
        return Models(label, tuple(others))

    def teach(self, student: Any, rows: Rows, scores: FloatArray, threshold: float) -> Model:
        """Fit a regressor on the log odds of some rows' scores; those near the threshold count most."""
        labels = np.zeros(self._table.n_rows)
        labels[rows] = _log_odds(scores)
        weights = None
        if takes_weights(student):
            weights = nearness(labels[rows], threshold) * mean_one(self.weights_of(rows))
        taught = Variable("score", "continuous", labels)
        return self._fit([Task(student, taught, rows, self._seed, rows[:1], weights)])[0]

    def label_model(self, weights: FloatArray, rows: Rows) -> Model:
        """Fit the estimator with weights of its own, one for each of the rows."""
        own = self._own_weights(rows)
        product = weights if own is None else own * weights
        return self._fit([Task(self._estimator, self._target, rows, self._seed, rows[:1], product)])[0]

    def weights_of(self, rows: Rows) -> FloatArray:
        """Give how much rows count."""
        return np.ones(len(rows)) if self._weights is None else self._weights[rows]

    def _label_task(self, rows: Rows, scored: Rows) -> Task:
        return Task(self._estimator, self._target, rows, self._seed, scored, self._own_weights(rows))

    def _group_task(self, group: Variable, rows: Rows) -> Task:
        weights = None if self._weights is None else mean_one(self._weights[rows])
        return Task(self._group_estimator, group, rows, self._seed, rows[:1], weights)

    def _own_weights(self, rows: Rows) -> FloatArray | None:
        return None if self._weights is None else self._weights[rows]

    def _fit(self, tasks: Sequence[Task]) -> list[Model]:
        """Fit all tasks, side by side where the engine lets them, and give the models in their order."""
        self.n_fits += len(tasks)
        engines = [self._engine(task) for task in tasks]
        for engine in dict.fromkeys(engines):
            engine.prepare([task for task, own in zip(tasks, engines, strict=True) if own is engine])
        workers = self._workers if all(engine.in_threads for engine in engines) else 1
        return list(ThreadExecutor(workers).run(_fitted, list(zip(tasks, engines, strict=True))))

    def _engine(self, task: Task) -> Engine:
        kind: Any = engine_class(task.estimator, self._table)
        if kind not in self._engines:
            self._engines[kind] = kind(self._table, self._target)
        return self._engines[kind]


def find_folds(cv: Any, problem: Problem, attributes: Sequence[Attribute], seed: int) -> list[Fold]:
    """Read or deal the folds, and refuse one that lacks what is to be learnt or measured."""
    if isinstance(cv, int | np.integer):
        folds = deal_folds(problem, [seed, 1], int(cv), np.arange(problem.n_rows, dtype=np.int32))
    else:
        found = read_folds(cv, problem.n_rows, problem.labels.codes, problem.blocks)
        folds = [(train.astype(np.int32), own.astype(np.int32)) for train, own in found]
    for number, (train, _) in enumerate(folds):
        check_both_labels(problem.labels.is_positive[train], f"training rows of fold {number}")
        for attribute in attributes:
            there = np.bincount(attribute.codes[train], minlength=len(attribute.names))
            lacking = np.flatnonzero(attribute.compared & (there == 0))
            if len(lacking):
                name = list_names([attribute.names[group] for group in lacking])
                raise ValueError(
                    f"The training rows of fold {number} hold no row of group {name}: use folds that have "
                    "rows of every group. A number of folds does, unless `groups` keeps all of them together."
                )
    return folds


def check_both_labels(positive: Bools, what: str) -> None:
    """Refuse rows of one label only."""
    if positive.all() or not positive.any():
        raise ValueError(
            f"Too few rows: the {len(positive)} {what} hold one class only. Give more rows of each label, or "
            "`validation` rows."
        )


def deal_folds(problem: Problem, seed: list[int], count: int, rows: Rows) -> list[Fold]:
    """Deal some rows into folds of about the same labels and groups."""
    cells = 2 * problem.groups.codes[rows] + problem.labels.is_positive[rows]
    blocks = None if problem.blocks is None else np.unique(problem.blocks[rows], return_inverse=True)[1]
    dealt = deal_rows(cells, [1 / count] * count, np.random.default_rng(seed), blocks)
    if len(np.unique(dealt)) < 2:
        raise ValueError(
            f"The {len(rows)} rows (n_samples = {problem.n_rows} in all) make one fold only, as `groups` "
            "keeps them together: give `validation` rows."
        )
    return [(rows[dealt != fold], rows[dealt == fold]) for fold in np.unique(dealt)]


def group_predictability(
    knowledge: Knowledge, attribute: int, classes: npt.NDArray[np.integer[Any]]
) -> float:
    """Say how much of the doubt about groups the features take away: 0 none, 1 all of it.

    Parameters
    ----------
    knowledge : Knowledge
        Of rows that models have not seen.
    attribute : int
        The attribute's position.
    classes : ndarray of int
        Each row's group, as the models number them.
    """
    p = knowledge.positive[:, np.newaxis]
    negative, positive = knowledge.groups[attribute]
    known = (1 - p) * negative + p * positive
    weights = knowledge.weights
    own = np.maximum(known[np.arange(len(classes)), classes], np.finfo(np.float64).eps)
    shares = np.bincount(classes, weights, minlength=known.shape[1]) / weights.sum()
    shares = shares[shares > 0]
    doubt = -float(shares @ np.log(shares))
    left = -float(np.average(np.log(own), weights=weights))
    return max(0.0, 1 - left / doubt) if doubt > 0 else 1.0


def takes_weights(estimator: Any) -> bool:
    """Tell whether an estimator, or the last step of a pipeline, takes weights."""
    from sklearn.pipeline import Pipeline
    from sklearn.utils.validation import has_fit_parameter

    while isinstance(estimator, Pipeline):
        estimator = estimator.steps[-1][1]
    return has_fit_parameter(estimator, "sample_weight")


def check_regressor(student: Any) -> None:
    """Refuse what does not learn numbers."""
    from fado._compat import is_regressor

    check_instance("student", student)
    if not (hasattr(student, "fit") and hasattr(student, "get_params") and is_regressor(student)):
        raise TypeError(f"`student` must be a regressor, which learns scores, got {student!r}.")


def nearness(log_odds: FloatArray, threshold: float) -> FloatArray:
    """Weigh rows for a student: those near the threshold, where a mistake changes a decision, count most."""
    return np.exp(-np.abs(log_odds - _log_odds(np.array(threshold)))) + _FAR


def _log_odds(scores: FloatArray) -> FloatArray:
    """Give log odds that are finite."""
    clipped = np.clip(scores, _TINY, 1 - _TINY)
    return np.log(clipped) - np.log1p(-clipped)


def _fitted(job: tuple[Task, Engine], shared: None, stop: threading.Event) -> Model:
    task, engine = job
    return engine.fit(task, stop)


def _of_positive(scores: FloatArray) -> FloatArray:
    """Give the probabilities of the positive label, refusing what is no number."""
    found = scores if scores.ndim == 1 else scores[:, 1]
    wrong = np.flatnonzero(~np.isfinite(found))
    if len(wrong):
        raise ValueError(
            f"The estimator gave {found[wrong[0]]} as the probability of {len(wrong):,} of {len(found):,} "
            "validation rows: use one whose probabilities are numbers."
        )
    return found
