"""Which groups are compared, at which lines, and the models that are fitted on folds."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from numbers import Real
from typing import Any

import numpy as np
import numpy.typing as npt

from fado._checks import check_choice, check_instance
from fado._messages import COMPARE_TARGET, list_names, warn_user
from fado._progress import tracked
from fado._typing import Bools, Floats, Integers
from fado.aim._curve import Knowledge
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
from fado.metrics import RATIO_NAMES
from fado.tabular import (
    Groups,
    Labels,
    Problem,
    Table,
    Variable,
    deal_rows,
    group_rows,
    match_positive,
    match_validation,
    mean_one,
    read_folds,
    read_problem,
)

Fold = tuple[Integers, Integers]

BOTH = "equalized_odds_ratio"  # the lower of two ratios
_PARTS_OF_BOTH = ("fpr_ratio", "tpr_ratio")


@dataclass(frozen=True, eq=False)
class Attribute:
    """The groups of an attribute, or of several crossed."""

    name: str
    names: tuple[str, ...]
    titles: tuple[str, ...]
    codes: Integers
    validation: Integers
    compared: Bools
    unknown: int | None = None

    @cached_property
    def classes(self) -> npt.NDArray[np.intp]:
        """The number of each group for models: compared groups have one each, all others share one."""
        return np.where(self.compared, np.cumsum(self.compared) - 1, int(self.compared.sum()))

    @property
    def n_classes(self) -> int:
        """How many numbers occur among the training rows."""
        return int(self.classes[self.codes].max()) + 1

    @property
    def compared_titles(self) -> tuple[str, ...]:
        """The titles of the compared groups."""
        return tuple(title for title, own in zip(self.titles, self.compared, strict=True) if own)


def find_attributes(
    problem: Problem, validation: Problem | None, how: str, min_group_size: int
) -> tuple[Attribute, ...]:
    """Find the groups that are compared: of all attributes crossed, or of each."""
    training = theirs = groups_of(problem.protected, how, problem.n_rows)
    if validation is not None:
        theirs = groups_of(
            [validation.protected[place] for place in match_validation(problem, validation)],
            how,
            validation.n_rows,
        )
    found = []
    for number, (name, own) in enumerate(training.items()):
        every = numbered_as(own, theirs.get(name, list(theirs.values())[number]))
        compared = _compare(replace(every, codes=own.codes), every, min_group_size)
        found.append(
            Attribute(name, every.names, every.titles, own.codes, every.codes, compared, every.unknown)
        )
    return tuple(found)


def groups_of(variables: Sequence[Variable], how: str, n_rows: int) -> dict[str, Groups]:
    """Give the groups of all attributes crossed, or of each, by name."""
    if not variables:
        return {"": Groups(np.zeros(n_rows, dtype=np.int64), ("all rows",), ("all rows",))}
    if how == "crossed" or len(variables) < 2:
        return {" and ".join(own.name for own in variables): group_rows(variables)}
    return {own.name: group_rows([own]) for own in variables}


def numbered_as(known: Groups | Attribute, theirs: Groups) -> Groups:
    """Give other rows' groups the numbers of the known ones; new groups come after them."""
    names = list(theirs.names)
    if theirs.unknown is not None and known.unknown is not None:  # whatever it is called
        names[theirs.unknown] = known.names[known.unknown]
    new = [place for place, name in enumerate(names) if name not in known.names]
    every = (*known.names, *(names[place] for place in new))
    place = np.array([every.index(name) for name in names], dtype=np.int64)
    unknown = known.unknown if theirs.unknown is None else int(place[theirs.unknown])
    titles = (*known.titles, *(theirs.titles[place] for place in new))
    return Groups(place[theirs.codes], every, titles, unknown)


def _compare(training: Groups, validation: Groups, min_group_size: int) -> Bools:
    """Mark the groups that are large enough in both training and validation data."""
    compared = training.compared(min_group_size) & validation.compared(min_group_size)
    sizes, there = training.sizes, validation.sizes
    new = (sizes == 0) & (there > 0) & (np.arange(len(training)) != training.unknown)
    lacking = np.flatnonzero(compared & (there == 0))
    if len(lacking):
        told = list_names([training.names[group] for group in lacking])
        raise ValueError(
            f"The validation rows have no row of group {told}: give rows of every group, or remove that "
            "group from the training rows."
        )
    if new.any():
        told = list_names([training.names[group] for group in np.flatnonzero(new)])
        warn_user(f"Group {told} of the validation rows is not among the training rows, and not compared.")
    for told in dict.fromkeys(
        own.tell_small("not compared and not moved", min_group_size) for own in (training, validation)
    ):
        if told:
            warn_user(f"{told}.")
    return compared & ~new


def read_rows_apart(given: Any, name: str, unknown: Any = None) -> Problem:
    """Read rows that were set apart: (X, y, sensitive_features) and, if given, their weights."""
    if not isinstance(given, tuple | list) or len(given) not in (3, 4):
        raise ValueError(
            f"`{name}` must be a tuple of (X, y, sensitive_features), with sample_weight as a fourth entry "
            "if rows have weights."
        )
    X, y, sensitive_features, *weights = given
    weight = weights[0] if weights else None
    return read_problem(X, y, sensitive_features, unknown=unknown, sample_weight=weight)


def labels_apart(classes: tuple[Any, Any], rows: Problem, name: str) -> Bools:
    """Mark the rows that have the positive label, the second of two."""
    return match_positive(
        rows.labels,
        classes,
        unseen=lambda label: (
            f"`{name}` has the label {label!r}, and the training rows have {classes[0]!r} and "
            f"{classes[1]!r}: give both the same labels."
        ),
        single=lambda label: f"`{name}` has only one label ({label!r}): give rows of both labels.",
    )


def read_lines(ratio: Any, at_least: Any, argument: str = "ratio") -> dict[str, float]:
    """Give the line of each ratio.

    Parameters
    ----------
    ratio : str or mapping of str to float
        A ratio's name, or the line of each of several.
    at_least : float
        The line, if there is one name.
    argument : str
        What messages call the ratios.

    Examples
    --------
    >>> read_lines("equalized_odds_ratio", 0.8)
    {'fpr_ratio': 0.8, 'tpr_ratio': 0.8}
    >>> read_lines({"fpr_ratio": 0.8, "equalized_odds_ratio": 0.9}, None)
    Traceback (most recent call last):
        ...
    ValueError: `ratio` gives 'fpr_ratio' two lines, 0.8 and 0.9: give it one.
    """
    if not isinstance(ratio, str | Mapping):
        raise TypeError(f"`{argument}` must be a name or a mapping of names to lines, got {ratio!r}.")
    given = ratio if isinstance(ratio, Mapping) else {ratio: at_least}
    if not given:
        raise ValueError(f"`{argument}` is empty: name at least one ratio and its line.")
    lines: dict[str, float] = {}
    for name, line in given.items():
        check_choice(argument, name, (*RATIO_NAMES, BOTH))
        own = check_line(line, f"{argument}[{name!r}]" if isinstance(ratio, Mapping) else "at_least")
        for part in _PARTS_OF_BOTH if name == BOTH else (name,):
            if lines.get(part, own) != own:
                raise ValueError(
                    f"`{argument}` gives {part!r} two lines, {lines[part]:g} and {own:g}: give it one."
                )
            lines[part] = own
    return lines


def check_line(at_least: Any, name: str = "at_least") -> float:
    """Check a line, and give it as a float.

    Parameters
    ----------
    at_least : float
        The line.
    name : str, default="at_least"
        Its name in error messages.

    Raises
    ------
    TypeError
        If it is not a number.
    ValueError
        If it is not in (0, 1].
    """
    _check_number(name, at_least, "(0, 1]")
    if not 0 < float(at_least) <= 1:
        raise ValueError(f"`{name}` must be in (0, 1], as a ratio is, got {at_least}.")
    return float(at_least)


def check_confidence(confidence: Any) -> float | None:
    """Check the confidence of a lower bound, and give it as a float.

    Parameters
    ----------
    confidence : float or None
        None means that no bound is needed, and is returned unchanged.

    Raises
    ------
    TypeError
        If it is neither a number nor None.
    ValueError
        If it is not in (0.5, 1).
    """
    if confidence is None:
        return None
    _check_number("confidence", confidence, "(0.5, 1)")
    if not 0.5 < float(confidence) < 1:
        raise ValueError(f"`confidence` must be in (0.5, 1), got {confidence}.")
    return float(confidence)


def _check_number(name: str, value: Any, interval: str) -> None:
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(f"`{name}` must be a number in {interval}, got {value!r}.")


def two_classes(problem: Problem) -> Labels:
    """Give a target of two classes, or refuse another."""
    if problem.target.kind == "continuous":
        raise ValueError(
            f"`y` must have two classes and is continuous (Unknown label type): {COMPARE_TARGET}."
        )
    classes = problem.labels.classes
    if len(classes) == 1:
        raise ValueError(f"`y` must have two classes and has only one class, {classes[0]!r}.")
    if len(classes) > 2:
        raise ValueError(
            f"`y` must have two classes and has {len(classes)}: {COMPARE_TARGET}. Only binary "
            "classification is supported."
        )
    return problem.labels


_FAR = 0.05  # the weight of a row far from the threshold, relative to one at it
_TINY = 1e-12


def knowledge_of(label: Model, groups: Sequence[Model], table: Table, weights: Floats) -> Knowledge:
    """Give the predictions of fitted models for other rows."""
    known = tuple(groups_given_labels(own, table) for own in groups)
    return Knowledge(_of_positive(label.score(table)), known, weights)


class Learner:
    """Fits an estimator of the label and one of the groups on rows of a table."""

    def __init__(self, model: Any, problem: Problem, attributes: Sequence[Attribute], seed: int) -> None:
        self._estimator, self._seed, self._workers = model.estimator, seed, n_workers(model.n_jobs)
        self.progress = bool(model.progress)
        self._group_estimator = model.group_estimator
        if self._group_estimator is None:
            self._group_estimator = default_estimators(problem.table.n_columns + 1)[0]
        self._table, self._weights = problem.table, problem.sample_weight
        positive = problem.labels.is_positive.astype(np.int32)
        self._target = Variable("y", "classes", positive, (False, True))
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
        self.seen: tuple[Integers, Knowledge] | None = None

    def out_of_fold(self, folds: Sequence[Fold], *, label: bool = True) -> tuple[Integers, Knowledge]:
        """Give the validation rows, ascending, and predictions for each by models not fitted on it."""
        tasks = [self._label_task(train, validation) for train, validation in folds] if label else []
        n_labels = len(tasks)
        tasks += [self._group_task(own, train) for own in self._groups for train, _ in folds]
        models = self._fit(tasks)
        labels, groups = models[:n_labels], models[n_labels:]
        parts = [validation for _, validation in folds]
        rows = np.concatenate(parts)
        positive = self._target.labels[rows].astype(np.float64)
        if label:
            positive = np.concatenate([_of_positive(model.scores) for model in labels])
        by_row = np.argsort(rows, kind="stable")
        known = Knowledge(positive, self._known(groups, parts), self.weights_of(rows)).take(by_row)
        # Every model of a fold also scores rows that it has seen: those that the next one validates.
        others = [*parts[1:], parts[0]]
        self.seen = None
        if label and all(np.isin(own, train).all() for own, (train, _) in zip(others, folds, strict=True)):
            pairs = zip(labels, others, strict=True)
            scores = [_of_positive(model.score(self._table.take(own))) for model, own in pairs]
            every = np.concatenate(others)
            pairs_of_groups = self._known(groups, others)
            self.seen = every, Knowledge(np.concatenate(scores), pairs_of_groups, self.weights_of(every))
        return rows[by_row], known

    def _known(self, models: Sequence[Model], parts: Sequence[Integers]) -> tuple[tuple[Floats, Floats], ...]:
        """Give the probabilities of groups by the models of each attribute, one per part of the rows."""
        tables = [self._table.take(rows) for rows in parts]
        known = [groups_given_labels(model, tables[j % len(parts)]) for j, model in enumerate(models)]
        pairs = []
        for start in range(0, len(known), len(parts)):
            negatives, positives = zip(*known[start : start + len(parts)], strict=True)
            pairs.append((np.concatenate(negatives), np.concatenate(positives)))
        return tuple(pairs)

    def fit(self, rows: Integers | None = None, *, groups: bool = True) -> list[Model]:
        """Fit the model of the label on some rows or all, and with `groups` those of the groups too."""
        rows = np.arange(self._table.n_rows, dtype=np.int32) if rows is None else rows
        tasks = [self._group_task(own, rows) for own in self._groups] if groups else []
        return self._fit([self._label_task(rows, rows[:1]), *tasks])

    def teach(self, student: Any, rows: Integers, scores: Floats, threshold: float) -> Model:
        """Fit a regressor on the log odds of scores; rows near the threshold count most."""
        labels = np.zeros(self._table.n_rows)
        labels[rows] = _log_odds(scores)
        weights = None
        if weights_refused(student) is None:
            weights = nearness(labels[rows], threshold) * mean_one(self.weights_of(rows))
        taught = Variable("score", "continuous", labels)
        return self._fit([Task(student, taught, rows, self._seed, rows[:1], weights)])[0]

    def label_model(self, weights: Floats, rows: Integers) -> Model:
        """Fit the estimator on some rows with these weights."""
        product = weights if self._weights is None else self._weights[rows] * weights
        return self._fit([Task(self._estimator, self._target, rows, self._seed, rows[:1], product)])[0]

    def weights_of(self, rows: Integers) -> Floats:
        """Give how much rows count."""
        return np.ones(len(rows)) if self._weights is None else self._weights[rows]

    def _label_task(self, rows: Integers, scored: Integers) -> Task:
        weights = None if self._weights is None else self._weights[rows]
        return Task(self._estimator, self._target, rows, self._seed, scored, weights)

    def _group_task(self, group: Variable, rows: Integers) -> Task:
        weights = None if self._weights is None else mean_one(self._weights[rows])
        return Task(self._group_estimator, group, rows, self._seed, rows[:1], weights)

    def _fit(self, tasks: Sequence[Task]) -> list[Model]:
        """Fit all tasks, in parallel if the engine allows it, and give the models in their order."""
        self.n_fits += len(tasks)
        engines = []
        for task in tasks:
            kind: Any = engine_class(task.estimator, self._table)
            if kind not in self._engines:
                self._engines[kind] = kind(self._table, self._target)
            engines.append(self._engines[kind])
        jobs = list(zip(tasks, engines, strict=True))
        for engine in dict.fromkeys(engines):
            engine.prepare([task for task, own in jobs if own is engine])
        workers = self._workers if all(engine.in_threads for engine in engines) else 1

        def fit(job: tuple[Task, Engine], shared: None, stop: threading.Event) -> Model:
            return job[1].fit(job[0], stop)

        fitted = ThreadExecutor(workers).run(fit, jobs)
        return list(tracked(fitted, len(jobs), what="fits", show=self.progress and len(jobs) > 1))


def find_folds(cv: Any, problem: Problem, attributes: Sequence[Attribute], seed: int) -> list[Fold]:
    """Read or make the folds, and refuse one that lacks a label or a group."""
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
                    f"The training rows of fold {number} have no row of group {name}: use folds that have "
                    "rows of every group. Folds given as a number do, unless `groups` keeps a group together."
                )
    return folds


def check_both_labels(positive: Bools, what: str) -> None:
    """Refuse rows of one label only."""
    if positive.all() or not positive.any():
        raise ValueError(
            f"Too few rows: the {len(positive)} {what} have one class only. Give more rows of each label, or "
            "`validation` rows."
        )


def deal_folds(problem: Problem, seed: list[int], count: int, rows: Integers) -> list[Fold]:
    """Divide rows into folds with about the same labels and groups."""
    cells = 2 * problem.groups.codes[rows] + problem.labels.is_positive[rows]
    blocks = None if problem.blocks is None else np.unique(problem.blocks[rows], return_inverse=True)[1]
    dealt = deal_rows(cells, [1 / count] * count, np.random.default_rng(seed), blocks)
    if len(np.unique(dealt)) < 2:
        raise ValueError(
            f"The {len(rows)} rows (n_samples = {problem.n_rows} in all) make one fold only, as `groups` "
            'keeps them together: give `validation` rows, and aim by="scores".'
        )
    return [(rows[dealt != fold], rows[dealt == fold]) for fold in np.unique(dealt)]


def group_predictability(knowledge: Knowledge, codes: Sequence[Integers]) -> float:
    """Measure how much uncertainty about groups the features remove, 0 to 1: that of the worst attribute."""
    p, weights, found = knowledge.positive[:, np.newaxis], knowledge.weights, []
    for (negative, positive), classes in zip(knowledge.groups, codes, strict=True):
        if classes.max() >= negative.shape[1]:
            continue
        known = (1 - p) * negative + p * positive
        own = np.maximum(known[np.arange(len(classes)), classes], np.finfo(np.float64).eps)
        shares = np.bincount(classes, weights, minlength=known.shape[1]) / weights.sum()
        shares = shares[shares > 0]
        doubt = -float(shares @ np.log(shares))
        left = -float(np.average(np.log(own), weights=weights))
        found.append(max(0.0, 1 - left / doubt) if doubt > 0 else 1.0)
    return min(found, default=0.0)


def check_regressor(student: Any) -> None:
    """Refuse an object that is not a regressor."""
    from fado._compat import is_regressor

    check_instance("student", student)
    if not (hasattr(student, "fit") and hasattr(student, "get_params") and is_regressor(student)):
        raise TypeError(f"`student` must be a regressor, which predicts scores, got {student!r}.")


def nearness(log_odds: Floats, threshold: float) -> Floats:
    """Weight rows for a student: those near the threshold, where an error changes a decision, count most."""
    return np.exp(-np.abs(log_odds - _log_odds(np.array(threshold)))) + _FAR


def _log_odds(scores: Floats) -> Floats:
    """Give log odds that are finite."""
    clipped = np.clip(scores, _TINY, 1 - _TINY)
    return np.log(clipped) - np.log1p(-clipped)


def _of_positive(scores: Floats) -> Floats:
    """Give the probabilities of the positive label, and refuse values that are not finite."""
    found = scores[:, 1]
    wrong = np.flatnonzero(~np.isfinite(found))
    if len(wrong):
        raise ValueError(
            f"The estimator gave {found[wrong[0]]} as the probability of {len(wrong):,} of {len(found):,} "
            "validation rows: use one whose probabilities are numbers."
        )
    return found
