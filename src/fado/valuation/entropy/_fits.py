"""Every estimator learns every variable in every bag: plan the fits, select their pace, run and add them up.

The default models learn as slowly as lets their trees use all that helps with unseen rows. The first fits
learn fast. If their loss on unseen rows still falls at the last tree, there is much to learn: all fits keep
this pace, or grow more trees if it falls steeply. If the loss has risen again, a slower rate spreads the same
learning over more trees, whose random errors cancel. The ranking of rows improves most if there is least to
learn.
"""

from __future__ import annotations

import threading
import time
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

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
    detach,
)
from fado.execution import Executor, JoblibExecutor, LostTask, ThreadExecutor, cluster_executor
from fado.tabular import TARGET, Problem, Variable
from fado.valuation._probabilities import (
    KeptModel,
    Moments,
    log_losses,
    own_label_probability,
    row_statistics,
    what_is_wrong,
)

WATCHED_EVERY = 5  # trees; reading predictions costs an eighth of growing one
_ENOUGH = 400  # unseen rows that do not just hold the most common class: fewer are too few
_MOST_BAGS = 2  # that are asked, in tables too small to hold as many
_FEWEST = 10  # with fewer trees, the columns that they happened to draw decide the ranking
_PATIENCE = 15  # trees to grow in the hope that the loss falls again
_AT_LEAST = 20  # trees that a slowed model spreads its learning over, and more the more it learns
_NEARLY_ALL = 0.8  # of the trees: a model that needs more is not worth slowing down
_STEEP = 0.03  # the part of what is learnt that the last few trees add where they are far too few


@dataclass(frozen=True)
class Bag:
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
    """One estimator learns one variable in one bag."""

    estimator: Any
    variable: Variable
    bag: Bag
    seed: int
    watched: bool = False  # whether losses on unseen rows are noted, by which its pace is chosen
    paced: bool = False  # whether its pace was chosen so

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


@dataclass(frozen=True)
class Outcome:
    """The results of a fit for the rows it scored."""

    values: Floats
    agreement: Floats
    gains: Floats | None = None
    kept: KeptModel | None = None  # if it is wanted
    probabilities: Floats | None = None  # if wanted: (n, K) of the target, (n, K or 1, G) of others
    losses: Sequence[float] = ()  # if it was watched


class Learnt:
    """The results of fits for every row and column, per variable, added up fit by fit."""

    def __init__(self, variables: Sequence[Variable], n_rows: int, n_columns: int) -> None:
        self.moments = {variable.name: Moments(n_rows) for variable in variables}
        self.gains = {variable.name: np.zeros(n_columns + 1) for variable in variables}  # the target's last
        self.paced: dict[str, Any] = {}  # what the default models came to
        self.kept: dict[str, list[KeptModel]] = {variable.name: [] for variable in variables}
        self._sums: dict[str, Floats] = {}  # of probabilities, if they are kept

    def add(self, fit: Fit, outcome: Outcome) -> None:
        """Add the results of one fit; the order decides the last bits."""
        name, rows = fit.variable.name, fit.bag.scored
        self.moments[name].add(rows, outcome.values, outcome.agreement)
        if outcome.gains is not None:
            self.gains[name] += outcome.gains
        if fit.paced:
            self.paced[name] = fit.estimator
        if outcome.kept is not None:
            self.kept[name].append(outcome.kept)
        if outcome.probabilities is not None:
            if name not in self._sums:
                shape = len(self.moments[name].count), *outcome.probabilities.shape[1:]
                self._sums[name] = np.zeros(shape)
            self._sums[name][rows] += outcome.probabilities

    def mean_probabilities(self) -> dict[str, Floats] | None:
        """Return the mean probabilities of classes over the fits, as `Valuation` has them, or None."""
        if not self._sums:
            return None
        means, n_labels = {}, self._sums[TARGET].shape[1]
        for name in [name for name in self.moments if name in self._sums]:  # not as the fits were done
            total = self._sums[name]
            count = self.moments[name].count.reshape(-1, *[1] * (total.ndim - 1))
            mean = np.divide(total, count, out=np.full_like(total, np.nan), where=count > 0)
            means[name] = mean if mean.shape[1] == n_labels else np.repeat(mean, n_labels, axis=1)
        return means

    def of_defaults(self, parameter: str) -> dict[str, Any] | None:
        """Return a parameter of the default models, per variable; None for other models."""
        if not self.paced:
            return None
        return {name: getattr(self.paced[name], parameter) for name in self.moments}


def plan_fits(
    estimators: Sequence[Any], variables: Sequence[Variable], bags: Sequence[Bag], seed: int
) -> list[Fit]:
    """List every fit, each with a separate seed that depends only on its place in the list."""
    serving = [
        (variable, estimator) for variable in variables for estimator in _serving(estimators, variable)
    ]
    wanted = [(estimator, variable, bag) for variable, estimator in serving for bag in bags]
    seeds = np.random.SeedSequence([seed, 1]).generate_state(len(wanted))
    return [Fit(*which, int(own) % 2**31) for which, own in zip(wanted, seeds, strict=True)]


def _serving(estimators: Sequence[Any], variable: Variable) -> list[Any]:
    """Select the estimators that can learn a variable: classifiers for classes, regressors for numbers."""
    fitting = is_classifier if variable.kind == "classes" else is_regressor
    serving = [estimator for estimator in estimators if fitting(estimator)]
    if not serving:
        needed = "classifier" if variable.kind == "classes" else "regressor"
        kind = "class" if variable.kind == "classes" else "continuous"
        raise ValueError(
            f"`estimators` holds no {needed} for the {kind} variable {variable.name!r}: add one."
        )
    for estimator in serving:
        if variable.kind == "classes":
            check_probabilities("estimators", estimator)
    return serving


def run_fits(
    fits: Sequence[Fit],
    problem: Problem,
    workers: int,
    *,
    defaults: bool,
    keep_models: bool,
    keep_probabilities: bool,
) -> Iterator[tuple[Fit, Outcome]]:
    """Run every fit with the engine that honours its estimator, and yield fits and outcomes in a fixed order.

    The pace of the default models is selected first. Models that are kept leave their rows behind where they
    were fitted.
    """
    table, target, weights = problem.table, problem.target, problem.sample_weight
    estimators = {id(fit.estimator): fit.estimator for fit in fits}
    honoured = {key for key, own in estimators.items() if LightGBMEngine.supports(own, table)}
    native = [fit for fit in fits if id(fit.estimator) in honoured]
    generic = [fit for fit in fits if id(fit.estimator) not in honoured]
    cluster = cluster_executor()
    labels = target if keep_probabilities else None
    if native:
        native.sort(key=lambda fit: fit.bag.number)
        seen = target if any(fit.variable.sees_target for fit in native) else None
        engine = LightGBMEngine(table, seen, workers, by_content=defaults)
        if cluster is None:  # workers elsewhere bin where the table arrives
            engine.prepare([fit.task(None) for fit in native])
        place = _Workplace(engine, weights, keep_models, labels, cluster or ThreadExecutor(workers))
        if defaults and native[0].bag.out_of_bag is not None:
            native, done = _pace(native, place)
            yield from done
        yield from place.run(native, longest_first([fit.variable.name for fit in native], place.durations))
    if generic:
        own = SklearnEngine(table, target)
        own.prepare([fit.task(None) for fit in generic])
        place = _Workplace(own, weights, keep_models, labels, cluster or JoblibExecutor(workers))
        yield from place.run(generic, range(len(generic)))


@dataclass
class _Workplace:
    """What every fit needs, and who runs them; `labels` is the target if probabilities are kept."""

    engine: Engine
    sample_weight: Floats | None
    keep_models: bool
    labels: Variable | None
    executor: Executor
    durations: dict[str, list[float]] = field(
        default_factory=lambda: defaultdict(list)
    )  # by variable, so far

    def run(self, fits: Sequence[Fit], order: Iterable[int]) -> Iterator[tuple[Fit, Outcome]]:
        """Run fits in an order, and yield them with their outcomes in that order.

        The workers of a cluster get all fits at once, which share labels and bags, and then only numbers.
        """
        begun: deque[Fit] = deque()

        def numbers() -> Iterator[int]:
            for number in order:
                begun.append(fits[number])
                yield number

        results: Iterator[Outcome | LostTask[Any]]
        if isinstance(self.executor, ThreadExecutor | JoblibExecutor):
            results = self.executor.run(_learn, (fits[number] for number in numbers()), self)
        else:
            results = self.executor.run(_learn_listed, numbers(), (fits, self))
        for result in results:
            fit = begun.popleft()
            if isinstance(result, LostTask):
                raise RuntimeError(
                    f"{fit} was lost with its workers ({result.reason}): check that they have enough "
                    "memory, and run again."
                )
            yield fit, result

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "executor"}


def _learn_listed(number: int, shared: tuple[Sequence[Fit], _Workplace], stop: threading.Event) -> Outcome:
    fits, place = shared
    return _learn(fits[number], place, stop)


def longest_first(variables: Sequence[str], durations: Mapping[str, Sequence[float]]) -> Iterator[int]:
    """Yield the positions of fits: those of the slowest variable first, once it is known, and in turn before.

    Within a variable they keep their order, in which results are averaged; the order of variables does not
    change values. Durations are read whenever a fit is asked for.

    Examples
    --------
    >>> durations = {"y": [], "z": []}
    >>> order = longest_first(["y", "y", "y", "z", "z", "z"], durations)
    >>> next(order), next(order)
    (0, 3)
    >>> durations["y"].append(1.0), durations["z"].append(2.0)
    (None, None)
    >>> list(order)
    [4, 5, 1, 2]
    """
    waiting: dict[str, deque[int]] = {}
    for place, variable in enumerate(variables):
        waiting.setdefault(variable, deque()).append(place)
    while waiting:
        known = {name: sum(own) / len(own) for name in waiting if (own := durations.get(name))}
        if len(known) == len(waiting):
            chosen = max(known, key=known.__getitem__)
        else:
            chosen = max(waiting, key=lambda variable: len(waiting[variable]))
        yield waiting[chosen].popleft()
        if not waiting[chosen]:
            del waiting[chosen]


def _learn(fit: Fit, place: _Workplace, stop: threading.Event | None) -> Outcome:
    """Run a fit and reduce its predictions to what is averaged; an error names the fit."""
    start = time.perf_counter()
    task, variable, scored = fit.task(place.sample_weight), fit.variable, fit.bag.scored
    curve = LossCurve(variable, scored) if fit.watched else None
    with _naming(fit):
        model = place.engine.fit(task, stop, curve)
    _check(fit, len(scored), model.scores)
    probabilities = None
    if place.labels is not None and variable.kind == "classes":
        probabilities = _probabilities(fit, model, place.labels)
    place.durations[variable.name].append(time.perf_counter() - start)
    training_mean = float("nan")
    if variable.kind == "continuous":
        training_mean = float(np.average(variable.labels[task.rows], weights=task.weights))
    values, agreement = row_statistics(variable, model.scores, variable.labels[scored], training_mean)
    kept = KeptModel(fit.bag.number, detach(model), training_mean) if place.keep_models else None
    losses = () if curve is None else curve.losses
    return Outcome(values, agreement, model.gains, kept, probabilities, losses)


def _probabilities(fit: Fit, model: Model, target: Variable) -> Floats:
    """Return the probabilities of all classes; if the model sees the target, given each of its labels.

    The scores for the row's own label are known already.
    """
    own = model.scores
    if fit.variable.name == target.name:
        return own
    if not fit.variable.sees_target:
        return own[:, np.newaxis]
    at_label = np.repeat(own[:, np.newaxis], len(target.classes), axis=1)
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


def _pace(fits: Sequence[Fit], place: _Workplace) -> tuple[list[Fit], list[tuple[Fit, Outcome]]]:
    """Select how fast the models of a variable learn, on the unseen rows of the first bags.

    Returns the fits to run, each with the selected estimator, and the outcomes of first fits whose pace was
    right.
    """
    unseen = list({fit.bag.number: fit.bag.scored for fit in fits}.values())
    variables = {fit.variable.name: fit.variable for fit in fits}
    telling = {name: bags_that_tell(variable, unseen) for name, variable in variables.items()}
    first = [number for number, fit in enumerate(fits) if fit.bag.number < telling[fit.variable.name]]
    watched = [replace(fit, watched=True) for fit in fits]
    told = dict(zip(first, (outcome for _, outcome in place.run(watched, first)), strict=True))
    chosen = {}
    for name, estimator in {fit.variable.name: fit.estimator for fit in fits}.items():
        own = [outcome.losses for number, outcome in told.items() if fits[number].variable.name == name]
        chosen[name] = choose_pace(estimator, sum_losses(own))
    done, rest = [], []
    for number, fit in enumerate(fits):
        paced = replace(fit, estimator=chosen[fit.variable.name], paced=True)
        same = number in told and paced.estimator is fit.estimator
        if same and trees_grown(told[number].losses) == fit.estimator.n_estimators:
            done.append((paced, told[number]))
        else:
            rest.append(paced)
    return rest, done


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
        self._labels = variable.labels[rows][self._known]
        self.losses = [self._loss(self._best_constant())]

    def __call__(self, scores: Floats) -> bool:
        """Record the loss after a few more trees; return whether to stop growing."""
        self.losses.append(self._loss(scores[self._known]))
        return trees_grown(self.losses) - WATCHED_EVERY * _lowest(self.losses) >= _PATIENCE

    def _best_constant(self) -> Floats:
        if self._variable.kind == "continuous":
            return np.full(len(self._labels), self._labels.mean() if len(self._labels) else 0.0)
        shares = np.bincount(self._labels, minlength=len(self._variable.classes)) / len(self._labels)
        return np.broadcast_to(shares, (len(self._labels), len(shares)))

    def _loss(self, predicted: Floats) -> float:
        if self._variable.kind == "continuous":
            return float(np.square(predicted - self._labels).sum())
        own = own_label_probability(predicted, self._labels)
        return float(log_losses(own).sum())  # a class that the bag lacks has no probability


def bags_that_tell(variable: Variable, bags: Sequence[Integers]) -> int:
    """Return how many bags have enough unseen rows to select a learning rate."""
    n_rows = len(variable.labels)
    telling = n_rows
    if variable.kind == "classes":
        telling -= int(np.bincount(variable.labels).max())
    unseen = np.cumsum([len(rows) for rows in bags]) * (telling / n_rows)
    return min(int(np.searchsorted(unseen, _ENOUGH)) + 1, len(bags), _MOST_BAGS)


def trees_grown(losses: Sequence[float] | Floats) -> int:
    """Return how many trees there were when the last of the `losses` was recorded."""
    return WATCHED_EVERY * (len(losses) - 1)


def sum_losses(curves: Sequence[Sequence[float]]) -> Floats:
    """Add the `losses` of a variable's fits; one that ended early continues with its slope since the lowest.

    Fits that grew no tree are left out; if none grew any, the sum is empty.
    """
    grown = [losses for losses in curves if len(losses) > 1]
    longest = max(map(len, grown), default=0)
    return np.sum([_prolonged(losses, longest) for losses in grown], axis=0) if grown else np.zeros(0)


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
    most, n_trees = model.n_estimators, trees_grown(losses)
    if len(losses) < 2:
        return model
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


def _prolonged(losses: Sequence[float], length: int) -> Floats:
    beyond = np.arange(1, length - len(losses) + 1)
    lowest = _lowest(losses)
    slope = (losses[-1] - losses[lowest]) / max(len(losses) - 1 - lowest, 1)
    return np.concatenate([losses, losses[-1] + slope * beyond])
