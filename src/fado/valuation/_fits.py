"""Every estimator learns every variable in every bag: plan the fits, run them, reduce what they say."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import is_classifier, is_regressor

from fado._frames import Table
from fado._variables import Variable
from fado.engine import _lightgbm, _sklearn
from fado.engine._lightgbm import Prediction
from fado.engine._parallel import in_threads, with_joblib
from fado.valuation._pace import LossCurve, bags_that_tell, paced, summed
from fado.valuation._statistics import row_statistics

__all__ = ["Bag", "Outcome", "plan", "run"]

FloatArray = npt.NDArray[np.float64]
Rows = npt.NDArray[np.int32]


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

    def learnable(self) -> Rows:
        """Give the in-bag rows whose label is known."""
        rows = self.bag.in_bag
        return rows if self.variable.kind == "classes" else rows[self.variable.known[rows]]

    def scored_beyond(self, learnt: Rows) -> Rows | None:
        """Give the rows to score; None if they are those that were learnt from."""
        scored = self.bag.scored
        return None if self.bag.out_of_bag is None and len(learnt) == len(scored) else scored

    def __str__(self) -> str:
        return f"{type(self.estimator).__name__} on variable {self.variable.name!r} in bag {self.bag.number}"


@dataclass(frozen=True)
class Outcome:
    """What a fit says of the rows it scored."""

    variable: str
    rows: Rows
    values: FloatArray
    agreement: FloatArray
    gains: FloatArray | None = None
    model: Any = None  # how a default model was paced


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
        if variable.kind == "classes" and not hasattr(estimator, "predict_proba"):
            raise ValueError(
                f"{type(estimator).__name__} has no `predict_proba`, from which values come: use another "
                "classifier, or wrap it in `sklearn.calibration.CalibratedClassifierCV`."
            )
    return serving


def plan(
    estimators: Sequence[Any], variables: Sequence[Variable], bags: Sequence[Bag], seed: int
) -> list[Fit]:
    """List every fit, each with a seed of its own that depends on nothing but its place in the list."""
    serving = [
        (variable, estimator) for variable in variables for estimator in _serving(estimators, variable)
    ]
    wanted = [(estimator, variable, bag) for variable, estimator in serving for bag in bags]
    seeds = np.random.SeedSequence([seed, 1]).generate_state(len(wanted))
    return [Fit(*which, int(own) % 2**31) for which, own in zip(wanted, seeds, strict=True)]


def run(
    fits: Sequence[Fit], table: Table, target: Variable, workers: int, *, defaults: bool
) -> Iterator[Outcome]:
    """Run every fit by the engine that honours its estimator, and give the outcomes in a fixed order."""
    estimators = {id(fit.estimator): fit.estimator for fit in fits}
    honoured = {
        key for key, estimator in estimators.items() if not table.is_sparse and _lightgbm.supports(estimator)
    }
    native = [fit for fit in fits if id(fit.estimator) in honoured]
    generic = [fit for fit in fits if id(fit.estimator) not in honoured]
    if native:
        in_order = sorted(native, key=lambda fit: fit.bag.number)
        yield from _run_lightgbm(in_order, table, target, workers, defaults=defaults)
    if generic:
        yield from with_joblib(_run_generic, _laid_out(generic, table, target), workers)


def _run_lightgbm(
    fits: Sequence[Fit], table: Table, target: Variable, workers: int, *, defaults: bool
) -> Iterator[Outcome]:
    sees_target = any(fit.variable.sees_target for fit in fits)
    engine = _lightgbm.LightGBMEngine(table, target if sees_target else None, workers, by_content=defaults)
    for fit in {(id(fit.estimator), fit.variable.name): fit for fit in fits}.values():
        engine.prepare(fit.estimator, fit.variable)

    def predict(fit: Fit, stop: threading.Event, watch: LossCurve | None = None) -> Prediction:
        def learn(rows: Rows, scored: Rows | None) -> Prediction:
            return engine.predict(fit.estimator, fit.variable, rows, scored, fit.seed, stop, watch)

        return _said(fit, learn)

    if defaults and fits[0].bag.out_of_bag is not None:
        return _paced(predict, fits, workers)
    return in_threads(lambda fit, stop: _outcome(fit, predict(fit, stop)), fits, workers)


def _paced(predict: Callable[..., Prediction], fits: Sequence[Fit], workers: int) -> Iterator[Outcome]:
    """Let the first bags' unseen rows say how fast a variable's models should learn, then run the others."""
    unseen = list({fit.bag.number: fit.bag.scored for fit in fits}.values())
    variables = {fit.variable.name: fit.variable for fit in fits}
    telling = {name: bags_that_tell(variable, unseen) for name, variable in variables.items()}
    first = [fit for fit in fits if fit.bag.number < telling[fit.variable.name]]
    curves = [LossCurve(fit.variable, fit.bag.scored) for fit in first]

    def watched(task: tuple[Fit, LossCurve], stop: threading.Event) -> Prediction:
        fit, curve = task
        return predict(fit, stop, curve)

    said = list(in_threads(watched, list(zip(first, curves, strict=True)), workers))
    models = {}
    for name, model in {fit.variable.name: fit.estimator for fit in fits}.items():
        own = [curve.losses for fit, curve in zip(first, curves, strict=True) if fit.variable.name == name]
        models[name] = paced(model, summed(own))

    def outcome(fit: Fit, said: Prediction) -> Outcome:
        return replace(_outcome(fit, said), model=models[fit.variable.name])

    done = set()
    for fit, curve, prediction in zip(first, curves, said, strict=True):
        if models[fit.variable.name] is fit.estimator and curve.n_trees == fit.estimator.n_estimators:
            done.add((fit.variable.name, fit.bag.number))  # the very fit that would be run
            yield outcome(fit, prediction)
    rest = [
        replace(fit, estimator=models[fit.variable.name])
        for fit in fits
        if (fit.variable.name, fit.bag.number) not in done
    ]
    yield from in_threads(lambda fit, stop: outcome(fit, predict(fit, stop)), rest, workers)


def _laid_out(fits: Sequence[Fit], table: Table, target: Variable) -> Iterator[tuple[Fit, Any]]:
    """Lay the features out once per estimator and variable; the fits stand in that order."""
    last, features = None, None
    for fit in fits:
        key = (id(fit.estimator), fit.variable.name)
        if key != last:
            last, features = key, _sklearn.features_for(fit.estimator, table, fit.variable, target)
        yield fit, features


def _run_generic(fit: Fit, features: Any) -> Outcome:
    def learn(rows: Rows, scored: Rows | None) -> Prediction:
        predicted = _sklearn.fit_and_predict(fit.estimator, features, fit.variable, rows, scored, fit.seed)
        return Prediction(predicted, gains=None)

    return _outcome(fit, _said(fit, learn))


def _said(fit: Fit, learn: Callable[[Rows, Rows | None], Prediction]) -> Prediction:
    """Give what a fit says of the rows that it scores; an error names the fit.

    `learn` takes the rows to learn from and those to score, None if they are the same.
    """
    variable, rows = fit.variable, fit.learnable()
    labels = variable.labels[rows]
    if variable.kind == "classes" and len(labels) and (labels == labels[0]).all():
        # Nothing to learn: the one class that the bag holds is certain. Estimators refuse such labels,
        # and LightGBM's own wrapper turns their probabilities round.
        predicted = np.zeros((len(fit.bag.scored), len(variable.classes)))
        predicted[:, labels[0]] = 1.0
        return Prediction(predicted, gains=None)
    try:
        return learn(rows, fit.scored_beyond(rows))
    except Exception as error:
        raise RuntimeError(f"{fit} failed: {error}") from error


def _outcome(fit: Fit, said: Prediction) -> Outcome:
    """Reduce what a fit says to what is averaged."""
    variable, scored = fit.variable, fit.bag.scored
    if len(said.predicted) != len(scored):
        raise RuntimeError(f"{fit} gave {len(said.predicted)} predictions for {len(scored)} rows.")
    training_mean = float("nan")
    if variable.kind == "continuous":
        training_mean = float(variable.labels[fit.learnable()].mean())
    values, agreement = row_statistics(variable, scored, said.predicted, training_mean)
    return Outcome(variable.name, scored, values, agreement, said.gains)
