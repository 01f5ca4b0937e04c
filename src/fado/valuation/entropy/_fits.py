"""Every estimator learns every variable in every bag: plan the fits, run them, reduce what they say."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from fado._checks import check_probabilities
from fado._compat import is_classifier, is_regressor
from fado.engine import (
    Engine,
    LightGBMEngine,
    MissingValuesError,
    Model,
    Scorer,
    SklearnEngine,
    Task,
    Watch,
    detach,
)
from fado.execution import (
    Executor,
    JoblibExecutor,
    LostTask,
    ThreadExecutor,
    cluster_executor,
)
from fado.tabular import Table, Variable
from fado.valuation._probabilities import of_all_classes
from fado.valuation.entropy._order import Durations, longest_first
from fado.valuation.entropy._pace import LossCurve, bags_that_tell, choose_pace, sum_losses, trees_grown
from fado.valuation.entropy._statistics import row_statistics, what_is_wrong

__all__ = ["Bag", "KeptModel", "Outcome", "plan_fits", "run_fits"]

FloatArray = npt.NDArray[np.float64]
Rows = npt.NDArray[np.int32]
Result = TypeVar("Result")


@dataclass(frozen=True)
class Bag:
    """The rows that a fit learns from and the rows it scores; None scores those it learnt from."""

    number: int
    in_bag: Rows
    out_of_bag: Rows | None

    @property
    def scored(self) -> Rows:
        """The rows that the fit scores."""
        return self.in_bag if self.out_of_bag is None else self.out_of_bag


@dataclass(frozen=True)
class Fit:
    """One estimator learns one variable in one bag."""

    estimator: Any
    variable: Variable
    bag: Bag
    seed: int
    paced: Any = None  # the same estimator, if it is a default model whose pace was chosen

    def learnable(self) -> Rows:
        """Give the in-bag rows whose label is known."""
        rows = self.bag.in_bag
        return rows if self.variable.kind == "classes" else rows[self.variable.known[rows]]

    def scored_beyond(self, learnt: Rows) -> Rows | None:
        """Give the rows to score; None if they are those that were learnt from."""
        scored = self.bag.scored
        return None if self.bag.out_of_bag is None and len(learnt) == len(scored) else scored

    def task(self, sample_weight: FloatArray | None) -> Task:
        """Say it as engines take it."""
        rows = self.learnable()
        weights = None if sample_weight is None else sample_weight[rows]
        return Task(self.estimator, self.variable, rows, self.seed, self.scored_beyond(rows), weights)

    def __str__(self) -> str:
        return f"{type(self.estimator).__name__} on variable {self.variable.name!r} in bag {self.bag.number}"


@dataclass(frozen=True)
class KeptModel:
    """A fitted model without its rows, and what its values rest on.

    Parameters
    ----------
    bag : int
        The number of the bag that it learnt from.
    scorer : Scorer
        The model.
    training_mean : float
        Of a continuous variable, over the rows learnt from; else NaN.
    """

    bag: int
    scorer: Scorer
    training_mean: float


@dataclass(frozen=True)
class Outcome:
    """What a fit says of the rows it scored."""

    variable: str
    rows: Rows
    values: FloatArray
    agreement: FloatArray
    gains: FloatArray | None = None
    estimator: Any = None  # what a default model came to
    kept: KeptModel | None = None  # if it is wanted
    probabilities: FloatArray | None = None  # if wanted: (n, K) of the target, (n, K or 1, G) of others


def _serving(estimators: Sequence[Any], variable: Variable) -> list[Any]:
    """Choose the estimators that can learn a variable: classifiers for classes, regressors for numbers."""
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


def plan_fits(
    estimators: Sequence[Any], variables: Sequence[Variable], bags: Sequence[Bag], seed: int
) -> list[Fit]:
    """List every fit, each with a seed of its own that depends on nothing but its place in the list."""
    serving = [
        (variable, estimator) for variable in variables for estimator in _serving(estimators, variable)
    ]
    wanted = [(estimator, variable, bag) for variable, estimator in serving for bag in bags]
    seeds = np.random.SeedSequence([seed, 1]).generate_state(len(wanted))
    return [Fit(*which, int(own) % 2**31) for which, own in zip(wanted, seeds, strict=True)]


def run_fits(
    fits: Sequence[Fit],
    table: Table,
    target: Variable,
    sample_weight: FloatArray | None,
    workers: int,
    *,
    defaults: bool,
    keep_models: bool = False,
    keep_probabilities: bool = False,
) -> Iterator[Outcome]:
    """Run every fit by the engine that honours its estimator, and give the outcomes in a fixed order.

    The default models are paced first: a stage of its own, whose result the fits are handed. Models that are
    to be kept leave their rows behind where they were fitted.
    """
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
        place = _Workplace(engine, sample_weight, keep_models, labels, cluster or ThreadExecutor(workers))
        if defaults and native[0].bag.out_of_bag is not None:
            native, done = _pace(native, place)
            yield from done
        order = longest_first([fit.variable.name for fit in native], place.durations)
        yield from place.run(_run_fit, native, order)
    if generic:
        own = SklearnEngine(table, target)
        own.prepare([fit.task(None) for fit in generic])
        place = _Workplace(own, sample_weight, keep_models, labels, cluster or JoblibExecutor(workers))
        yield from place.run(_run_fit, generic, range(len(generic)))


class _Workplace:
    """What every fit needs, and who runs them.

    Parameters
    ----------
    engine : Engine
        Fits and scores.
    sample_weight : ndarray or None
        What each row counts.
    keep_models : bool
        Whether the models are wanted without their rows.
    labels : Variable or None
        The target, for each of whose classes probabilities are wanted; None if they are not.
    executor : Executor
        Of this machine, or of a cluster.
    """

    def __init__(
        self,
        engine: Engine,
        sample_weight: FloatArray | None,
        keep_models: bool,
        labels: Variable | None,
        executor: Executor,
    ) -> None:
        self.engine = engine
        self.sample_weight = sample_weight
        self.keep_models = keep_models
        self.labels = labels
        self.durations = Durations()
        self._executor = executor

    def run(
        self, function: Callable[..., Result], fits: Sequence[Fit], order: Iterable[int]
    ) -> Iterator[Result]:
        """Call a function for fits in an order, and give the results in that order.

        A cluster's workers are sent all fits at once, which share labels and bags, and then only numbers.
        """
        results: Iterator[Result | LostTask[Any]]
        if isinstance(self._executor, ThreadExecutor | JoblibExecutor):
            results = self._executor.run(function, (fits[number] for number in order), self)
        else:
            results = self._executor.run(_run_listed, order, (function, fits, self))
        for result in results:
            if isinstance(result, LostTask):
                raise RuntimeError(
                    f"{fits[result.task]} was lost with its workers ({result.reason}): see that they have "
                    "memory enough, and run again."
                )
            yield result

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_executor"}


def _run_listed(number: int, shared: tuple[Any, Sequence[Fit], _Workplace], stop: threading.Event) -> Any:
    function, fits, place = shared
    return function(fits[number], place, stop)


def _run_fit(fit: Fit, place: _Workplace, stop: threading.Event | None) -> Outcome:
    return _learn(fit, place, stop, None)


def _run_watched(fit: Fit, place: _Workplace, stop: threading.Event | None) -> tuple[Outcome, list[float]]:
    curve = LossCurve(fit.variable, fit.bag.scored)
    return _learn(fit, place, stop, curve), curve.losses


def _learn(fit: Fit, place: _Workplace, stop: threading.Event | None, watch: Watch | None) -> Outcome:
    """Run a fit and reduce what its model says to what is averaged; an error names the fit."""
    start = time.perf_counter()
    with _naming(fit):
        model = place.engine.fit(fit.task(place.sample_weight), stop, watch)
    variable, scored = fit.variable, fit.bag.scored
    _check(fit, len(scored), model.scores)
    probabilities = None
    if place.labels is not None and variable.kind == "classes":
        probabilities = _probabilities(fit, model, place.labels)
    place.durations.note(variable.name, time.perf_counter() - start)
    training_mean = float("nan")
    if variable.kind == "continuous":
        rows = fit.learnable()
        weights = None if place.sample_weight is None else place.sample_weight[rows]
        training_mean = float(np.average(variable.labels[rows], weights=weights))
    values, agreement = row_statistics(variable, scored, model.scores, training_mean)
    kept = KeptModel(fit.bag.number, detach(model), training_mean) if place.keep_models else None
    return Outcome(variable.name, scored, values, agreement, model.gains, fit.paced, kept, probabilities)


def _probabilities(fit: Fit, model: Model, target: Variable) -> FloatArray:
    """Give the probabilities of all classes; if the model sees the target, as they are at each of its labels.

    At its own label a row has been scored already.
    """
    own = of_all_classes(model.scores)
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
            at_label[others, code] = of_all_classes(scores)
    return at_label


@contextmanager
def _naming(fit: Fit) -> Iterator[None]:
    """Let an estimator's own error name the fit; what is missing in a table is told as it is."""
    try:
        yield
    except MissingValuesError:
        raise
    except Exception as error:
        raise RuntimeError(f"{fit} failed: {error}") from error


def _check(fit: Fit, n_rows: int, scores: FloatArray) -> None:
    wrong = what_is_wrong(fit.variable, n_rows, scores)
    if wrong:
        raise RuntimeError(f"{fit} gave {wrong}: no value can come of that; mend the estimator.")


def _pace(fits: Sequence[Fit], place: _Workplace) -> tuple[list[Fit], list[Outcome]]:
    """Let the first bags' unseen rows say how fast a variable's models should learn.

    Returns
    -------
    fits : list of Fit
        Those to be run, each with the estimator that was chosen.
    outcomes : list of Outcome
        Of the first fits that need no other run, since their pace was right.
    """
    unseen = list({fit.bag.number: fit.bag.scored for fit in fits}.values())
    variables = {fit.variable.name: fit.variable for fit in fits}
    telling = {name: bags_that_tell(variable, unseen) for name, variable in variables.items()}
    first = [number for number, fit in enumerate(fits) if fit.bag.number < telling[fit.variable.name]]
    told = dict(zip(first, place.run(_run_watched, fits, first), strict=True))
    chosen = {}
    for name, estimator in {fit.variable.name: fit.estimator for fit in fits}.items():
        own = [losses for number, (_, losses) in told.items() if fits[number].variable.name == name]
        chosen[name] = choose_pace(estimator, sum_losses(own))
    done, rest = [], []
    for number, fit in enumerate(fits):
        estimator = chosen[fit.variable.name]
        if number in told and estimator is fit.estimator:
            outcome, losses = told[number]
            if trees_grown(losses) == estimator.n_estimators:
                done.append(replace(outcome, estimator=estimator))
                continue
        rest.append(replace(fit, estimator=estimator, paced=estimator))
    return rest, done
