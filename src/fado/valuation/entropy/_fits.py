"""Every estimator learns every variable in every bag: plan the fits, select their pace, run and add them up.

The default models learn as slowly as lets their trees use all that helps with unseen rows. The first fits
learn fast. If their loss on unseen rows still falls at the last tree, there is much to learn: all fits keep
this pace, or grow more trees if it falls steeply. If the loss has risen again, a slower rate spreads the same
learning over more trees, whose random errors cancel. The ranking of rows improves most if there is least to
learn.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

from fado._checks import check_probabilities
from fado._compat import is_classifier, is_regressor
from fado._typing import Floats, Integers
from fado.engine import (
    Engine,
    LightGBMEngine,
    MissingValuesError,
    Model,
    SklearnEngine,
    Task,
)
from fado.execution import Executor, JoblibExecutor, LostTask, ThreadExecutor, cluster_executor
from fado.tabular import Problem, Variable
from fado.valuation._probabilities import (
    KeptModel,
    Moments,
    log_losses,
    row_statistics,
    what_is_wrong,
)

WATCHED_EVERY = 5  # trees; reading predictions costs an eighth of growing one
_ENOUGH = 400  # unseen rows that do not just hold the most common class: fewer are too few
_MOST_BAGS = 2  # whose losses are watched, in tables too small to hold as many
_FEWEST = 10  # with fewer trees, the columns that they happened to draw decide the ranking
_PATIENCE = 15  # trees to grow in the hope that the loss falls again
_AT_LEAST = 20  # trees that a slowed model spreads its learning over, and more the more it learns
_NEARLY_ALL = 0.8  # of the trees: a model that needs more is not worth slowing down
_STEEP = 0.03  # the part of what is learnt that the last few trees add where they are far too few


class Bag(NamedTuple):
    """The rows that a fit learns from and the rows it scores; None scores those it learnt from."""

    number: int
    in_bag: Integers
    out_of_bag: Integers | None

    @property
    def scored(self) -> Integers:
        """The rows that the fit scores."""
        return self.in_bag if self.out_of_bag is None else self.out_of_bag


@dataclass(frozen=True)
class Fit:
    """A request: one estimator learns one variable in one bag.

    `watched` says whether losses on unseen rows are noted, by which the pace of a variable's models is
    chosen; `paced`, whether the estimator has a pace that was chosen so.
    """

    estimator: Any
    variable: Variable
    bag: Bag
    seed: int
    watched: bool = False
    paced: bool = False

    def task(self, sample_weight: Floats | None) -> Task:
        """Return the fit as a task for an engine: a model learns from the in-bag rows with a known label."""
        rows, scored = self.bag.in_bag, self.bag.out_of_bag
        if self.variable.kind == "continuous":
            rows = rows[self.variable.known[rows]]
            if scored is None and len(rows) < len(self.bag.in_bag):
                scored = self.bag.in_bag
        weights = None if sample_weight is None else sample_weight[rows]
        return Task(self.estimator, self.variable, rows, self.seed, scored, weights)

    def __str__(self) -> str:
        return f"{type(self.estimator).__name__} on variable {self.variable.name!r} in bag {self.bag.number}"


class FitResult(NamedTuple):
    """What a fit says of the rows that it scored.

    `model` and `probabilities` are there if they are wanted: the latter of shape (n, K) for the target, and
    (n, K or 1, G) for other variables. `losses` are those of a watched fit.
    """

    values: Floats
    label_probability: Floats
    gains: Floats | None = None
    model: KeptModel | None = None
    probabilities: Floats | None = None
    losses: Sequence[float] = ()


class VariableResult:
    """The results of all fits of a variable for every row and column, added up fit by fit."""

    def __init__(self, variable: Variable, n_rows: int, n_columns: int) -> None:
        self.variable = variable
        self.moments = Moments(n_rows)
        self.gains = np.zeros(n_columns + 1)  # the target's last
        self.models: list[KeptModel] = []
        self.paced: Any = None  # the default model with the pace that was chosen
        self._probabilities: Floats | None = None  # summed over fits

    def add(self, fit: Fit, result: FitResult) -> None:
        """Add the result of one fit; the order decides the last bits."""
        rows = fit.bag.scored
        self.moments.add(rows, result.values, result.label_probability)
        if result.gains is not None:
            self.gains += result.gains
        if fit.paced:
            self.paced = fit.estimator
        if result.model is not None:
            self.models.append(result.model)
        if result.probabilities is not None:
            if self._probabilities is None:
                self._probabilities = np.zeros((len(self.moments.count), *result.probabilities.shape[1:]))
            self._probabilities[rows] += result.probabilities

    def mean_probabilities(self, n_labels: int) -> Floats | None:
        """Return the mean probabilities of classes over the fits, as `Valuation` has them, or None."""
        total = self._probabilities
        if total is None:
            return None
        count = self.moments.count.reshape(-1, *[1] * (total.ndim - 1))
        mean = np.divide(total, count, out=np.full_like(total, np.nan), where=count > 0)
        return mean if mean.shape[1] == n_labels else np.repeat(mean, n_labels, axis=1)


def plan_fits(
    estimators: Sequence[Any], variables: Sequence[Variable], bags: Sequence[Bag], seed: int
) -> list[Fit]:
    """List every fit, each with a separate seed that depends only on its place in the list.

    Classifiers learn variables of classes, regressors numbers.
    """
    planned = []
    for variable in variables:
        is_able = is_classifier if variable.kind == "classes" else is_regressor
        able = [estimator for estimator in estimators if is_able(estimator)]
        if not able:
            needed, kind = (
                ("classifier", "class") if variable.kind == "classes" else ("regressor", "continuous")
            )
            raise ValueError(
                f"`estimators` holds no {needed} for the {kind} variable {variable.name!r}: add one."
            )
        for estimator in able:
            if variable.kind == "classes":
                check_probabilities("estimators", estimator)
            planned += [(estimator, variable, bag) for bag in bags]
    seeds = np.random.SeedSequence([seed, 1]).generate_state(len(planned))
    return [Fit(*fit, int(state) % 2**31) for fit, state in zip(planned, seeds, strict=True)]


def run_fits(
    fits: Sequence[Fit],
    problem: Problem,
    workers: int,
    *,
    defaults: bool,
    keep_models: bool,
    keep_probabilities: bool,
) -> Iterator[tuple[Fit, FitResult]]:
    """Run every fit with the engine that honours its estimator, and yield fits and results in a fixed order.

    The pace of the default models is selected first, and the variable whose fits take longest begins. Models
    that are kept leave their rows behind where they were fitted.
    """
    table, target, cluster = problem.table, problem.target, cluster_executor()
    settings = problem.sample_weight, keep_models, target if keep_probabilities else None
    estimators = {id(fit.estimator): fit.estimator for fit in fits}
    honoured = {key for key, estimator in estimators.items() if LightGBMEngine.supports(estimator, table)}
    native = [fit for fit in fits if id(fit.estimator) in honoured]
    generic = [fit for fit in fits if id(fit.estimator) not in honoured]
    if native:
        native.sort(key=lambda fit: fit.bag.number)
        seen = target if any(fit.variable.sees_target for fit in native) else None
        engine = LightGBMEngine(table, seen, workers, by_content=defaults)
        if cluster is None:  # workers elsewhere bin where the table arrives
            engine.prepare([fit.task(None) for fit in native])
        shared, executor = _Shared(engine, *settings), cluster or ThreadExecutor(workers)
        if defaults and native[0].bag.out_of_bag is not None:
            native, done = _pace(native, shared, executor)
            yield from done
        costs: Counter[str] = Counter()
        for fit in native:
            costs[fit.variable.name] += fit.estimator.n_estimators * max(1, len(fit.variable.classes) - 1)
        native.sort(key=lambda fit: costs[fit.variable.name], reverse=True)
        yield from _run(native, shared, executor)
    if generic:
        general = SklearnEngine(table, target)
        general.prepare([fit.task(None) for fit in generic])
        yield from _run(generic, _Shared(general, *settings), cluster or JoblibExecutor(workers))


class _Shared(NamedTuple):
    """What all fits of an engine share; `labels` is the target if probabilities are kept."""

    engine: Engine
    sample_weight: Floats | None
    keep_models: bool
    labels: Variable | None


def _run(fits: Sequence[Fit], shared: _Shared, executor: Executor) -> Iterator[tuple[Fit, FitResult]]:
    """Run fits, and yield them with their results in their order.

    The workers of a cluster get all fits at once, which share labels and bags, and then only numbers.
    """
    results: Iterator[FitResult | LostTask[Any]]
    if isinstance(executor, ThreadExecutor | JoblibExecutor):
        results = executor.run(_learn, fits, shared)
    else:
        results = executor.run(_learn_listed, range(len(fits)), (fits, shared))
    for fit, result in zip(fits, results, strict=True):
        if isinstance(result, LostTask):
            raise RuntimeError(
                f"{fit} was lost with its workers ({result.reason}): check that they have enough memory, "
                "and run again."
            )
        yield fit, result


def _learn_listed(number: int, listed: tuple[Sequence[Fit], _Shared], stop: threading.Event) -> FitResult:
    fits, shared = listed
    return _learn(fits[number], shared, stop)


def _learn(fit: Fit, shared: _Shared, stop: threading.Event | None) -> FitResult:
    """Run a fit and reduce its predictions to what is averaged; an error names the fit."""
    task, variable, scored = fit.task(shared.sample_weight), fit.variable, fit.bag.scored
    curve = LossCurve(variable, scored) if fit.watched else None
    with _naming(fit):
        model = shared.engine.fit(task, stop, curve)
    _check(fit, len(scored), model.scores)
    probabilities = None
    if shared.labels is not None and variable.kind == "classes":
        probabilities = _probabilities(fit, model, shared.labels)
    training_mean = float("nan")
    if variable.kind == "continuous":
        training_mean = float(np.average(variable.labels[task.rows], weights=task.weights))
    return FitResult(
        *row_statistics(variable, model.scores, variable.labels[scored], training_mean),
        model.gains,
        KeptModel(fit.bag.number, model.detach(), training_mean) if shared.keep_models else None,
        probabilities,
        () if curve is None else curve.losses,
    )


def _probabilities(fit: Fit, model: Model, target: Variable) -> Floats:
    """Return the probabilities of all classes; if the model sees the target, given each of its labels.

    The scores for the row's own label are known already.
    """
    scores = model.scores
    if fit.variable.name == target.name:
        return scores
    if not fit.variable.sees_target:
        return scores[:, np.newaxis]
    at_label = np.repeat(scores[:, np.newaxis], len(target.classes), axis=1)
    rows = fit.bag.scored
    for code in range(len(target.classes)):
        others = np.flatnonzero(target.labels[rows] != code)
        if len(others):
            with _naming(fit):
                scores = model.score(rows[others], np.full(len(others), code, dtype=target.labels.dtype))
            _check(fit, len(others), scores)
            at_label[others, code] = scores
    return at_label


@contextmanager
def _naming(fit: Fit) -> Iterator[None]:
    """Let the error of an estimator name the fit; errors about missing values stay as they are."""
    try:
        yield
    except MissingValuesError:
        raise
    except Exception as error:
        raise RuntimeError(f"{fit} failed: {error}") from error


def _check(fit: Fit, n_rows: int, scores: Floats) -> None:
    wrong = what_is_wrong(fit.variable, n_rows, scores)
    if wrong:
        raise RuntimeError(f"{fit} gave {wrong}, so its rows have no value: correct the estimator.")


def _pace(
    fits: Sequence[Fit], shared: _Shared, executor: Executor
) -> tuple[list[Fit], list[tuple[Fit, FitResult]]]:
    """Select how fast the models of a variable learn, on the unseen rows of the first bags.

    Returns the fits to run, each with the selected estimator, and the results of first fits whose pace was
    right.
    """
    unseen = list({fit.bag.number: fit.bag.scored for fit in fits}.values())
    variables = {fit.variable.name: fit.variable for fit in fits}
    n_bags = {name: n_pacing_bags(variable, unseen) for name, variable in variables.items()}
    first = [number for number, fit in enumerate(fits) if fit.bag.number < n_bags[fit.variable.name]]
    watched = [replace(fits[number], watched=True) for number in first]
    done = dict(zip(first, _run(watched, shared, executor), strict=True))
    chosen = {}
    for name, estimator in {fit.variable.name: fit.estimator for fit in fits}.items():
        curves = [result.losses for fit, result in done.values() if fit.variable.name == name]
        chosen[name] = choose_pace(estimator, sum_losses(curves))
    results, rest = [], []
    for number, fit in enumerate(fits):
        paced = replace(fit, estimator=chosen[fit.variable.name], paced=True)
        result = done[number][1] if number in done else None
        whole = WATCHED_EVERY * (len(result.losses) - 1) == fit.estimator.n_estimators if result else False
        if result is not None and whole and paced.estimator is fit.estimator:
            results.append((paced, result))
        else:
            rest.append(paced)
    return rest, results


class LossCurve:
    """The loss of one fit on the rows left out, every few trees.

    `losses` are summed over the rows: log-loss of classes, squared error of numbers. The first is that of the
    best constant, before any tree.

    Examples
    --------
    >>> coin = Variable("coin", "classes", np.array([0, 1]), (0, 1))
    >>> curve = LossCurve(coin, np.array([0, 1]))
    >>> curve(np.array([[0.75, 0.25], [0.25, 0.75]]))
    False
    >>> np.exp(-np.array(curve.losses)).round(4)
    array([0.25  , 0.5625])
    """

    every = WATCHED_EVERY

    def __init__(self, variable: Variable, rows: Integers) -> None:
        self._variable = variable
        self._known = variable.known[rows]
        self._labels = labels = variable.labels[rows][self._known]
        if variable.kind == "continuous":
            constant = np.full(len(labels), labels.mean() if len(labels) else 0.0)
        else:
            shares = np.bincount(labels, minlength=len(variable.classes)) / len(labels)
            constant = np.broadcast_to(shares, (len(labels), len(shares)))
        self.losses = [self._loss(constant)]

    def __call__(self, scores: Floats) -> bool:
        """Record the loss after a few more trees; return whether to stop growing."""
        self.losses.append(self._loss(scores[self._known]))
        return WATCHED_EVERY * (len(self.losses) - 1 - _lowest(self.losses)) >= _PATIENCE

    def _loss(self, predicted: Floats) -> float:
        if self._variable.kind == "continuous":
            return float(np.square(predicted - self._labels).sum())
        # a class that the bag lacks has no probability
        of_label = predicted[np.arange(len(self._labels)), self._labels]
        return float(log_losses(of_label).sum())


def n_pacing_bags(variable: Variable, bags: Sequence[Integers]) -> int:
    """Return how many bags have enough unseen rows to select a learning rate."""
    n_rows = len(variable.labels)
    informative = n_rows
    if variable.kind == "classes":
        informative -= int(np.bincount(variable.labels).max())
    unseen = np.cumsum([len(rows) for rows in bags]) * (informative / n_rows)
    return min(int(np.searchsorted(unseen, _ENOUGH)) + 1, len(bags), _MOST_BAGS)


def sum_losses(curves: Sequence[Sequence[float]]) -> Floats:
    """Add the `losses` of a variable's fits; one that ended early continues with its slope since the lowest.

    Fits that grew no tree are left out; if none grew any, the sum is empty.
    """
    grown = [losses for losses in curves if len(losses) > 1]
    total = np.zeros(max(map(len, grown), default=0))
    for losses in grown:
        lowest = _lowest(losses)
        slope = (losses[-1] - losses[lowest]) / max(len(losses) - 1 - lowest, 1)
        beyond = np.arange(1, len(total) - len(losses) + 1)
        total += np.concatenate([losses, losses[-1] + slope * beyond])
    return total


def choose_pace(model: Any, losses: Floats) -> Any:
    """Fit a model's pace to what there is to learn; return the same model if its pace is right.

    A model that has learnt all that helps before its last tree is slowed down: rate times trees stays what it
    was at the lowest loss. It gets some more trees than it needed, but not all that it may have, which would
    cost more the less there is to learn.

    Examples
    --------
    >>> from lightgbm import LGBMClassifier
    >>> model = LGBMClassifier(n_estimators=40, learning_rate=0.3)
    >>> losses = np.array([9.0, 6.0, 5.0, 4.5, 4.4, 4.6])  # lowest after 20 trees
    >>> slowed = choose_pace(model, losses)
    >>> slowed.n_estimators, slowed.learning_rate
    (30, 0.2)
    """
    if len(losses) < 2:
        return model
    most, n_trees = model.n_estimators, WATCHED_EVERY * (len(losses) - 1)
    best = max(WATCHED_EVERY * _lowest(losses), min(_FEWEST, most))
    if best == most == n_trees and losses[-2] - losses[-1] >= _STEEP * (losses[0] - losses[-1]):
        return clone(model).set_params(n_estimators=2 * most)
    if best > _NEARLY_ALL * most:
        return model
    trees = _AT_LEAST + round(best * (1 - _AT_LEAST / most))
    rate = round(model.learning_rate * best / trees, 4)
    return clone(model).set_params(n_estimators=trees, learning_rate=rate)


def _lowest(losses: Sequence[float] | Floats) -> int:
    """Find the lowest loss with any trees."""
    return 1 + int(np.argmin(losses[1:]))
