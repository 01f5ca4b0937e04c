"""Train a model on a training set and measure it: the same on one machine and on a cluster's workers."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from fado.engine import Engine, LightGBMEngine, Model, Scorer, Task, detach, engine_class
from fado.experiment.config import LIGHTGBM, Config, Given, make_estimator
from fado.experiment.run._conditions import ONE_THREAD, FitEnd
from fado.experiment.run._data import Data, Part
from fado.experiment.run._known import KnownParts
from fado.experiment.run._measuring import Measuring
from fado.experiment.search import UNTOUCHED, Recipe, key_of
from fado.interventions import EvaluatedRows, TrainingSet, intervention_named
from fado.tabular import Labels, Variable, mean_one
from fado.utility import utility_class
from fado.valuation import Valuation

__all__ = ["Bench", "Job", "Measured", "run_job"]

FloatArray = npt.NDArray[np.float64]
_SETS_KEPT, _ROWS_KEPT = 4, 8


@dataclass(frozen=True)
class Job:
    """One fit: a model after an intervention. `key` names its result in the store.

    For an intervention on scores, `scores` are those of the model, fitted before.
    """

    key: str
    recipe: Recipe
    parameters: Mapping[str, Any]
    scores: FloatArray | None = None


@dataclass(frozen=True)
class Measured:
    """What became of a job: its metrics, with the scores if they are to be kept, or why there are none."""

    key: str
    seconds: float
    metrics: dict[str, float] | None = None
    error: str | None = None
    out_of_memory: bool = False
    scores: FloatArray | None = None


class Bench:
    """The training part, the parts that models are measured on, and the fits on them.

    For LightGBM the training part is binned once, the others in its bins; other estimators fit as they do by
    themselves. Fits may run side by side in threads, each in one. A bench that is sent to a cluster's worker
    takes the data along, and bins them there.

    Parameters
    ----------
    training : Part
        The rows to train on.
    evaluation : Part
        The rows of the validation part, then those of the test part.
    valuations : mapping of str to Valuation
        The training part's values by each algorithm.
    measuring : Measuring
        How models are measured on those.
    seed : int
        Of samplers.
    min_group_size : int
        From how many rows on interventions take a group into account in any case.
    deadline : float or None
        Seconds after which a fit is given up.
    workers : int
        Threads for the binning; the bins do not depend on it.
    estimator : estimator, optional
        What is trained, with nothing set that a job sets; None is LightGBM's classifier.
    keep_scores : bool
        Whether what becomes of a job has its scores.
    compared : ndarray of bool, optional
        Which groups interventions on scores compare; None compares all.
    """

    def __init__(
        self,
        training: Part,
        evaluation: Part,
        *,
        valuations: Mapping[str, Valuation],
        measuring: Measuring,
        seed: int,
        min_group_size: int,
        deadline: float | None,
        workers: int,
        estimator: Any = None,
        keep_scores: bool = False,
        compared: npt.NDArray[np.bool_] | None = None,
    ) -> None:
        self._training = training
        self._evaluation = evaluation
        self._groups = training.groups.take(np.arange(len(training.positive)))
        self._valuations = valuations
        self._measuring = measuring
        self._seed = seed
        self._min_group_size = min_group_size
        self._deadline = deadline
        self._estimator = make_estimator(LIGHTGBM) if estimator is None else estimator
        self._keep_scores = keep_scores
        self._engines: dict[type[Engine], Engine] = {
            LightGBMEngine: LightGBMEngine(training.table, workers=workers, prefilter=False)
        }
        self._target = Variable("y", "classes", training.positive.astype(np.int32), (False, True))
        self._known = KnownParts(
            training,
            evaluation,
            measuring.n_validation,
            np.ones(len(training.groups), dtype=np.bool_) if compared is None else compared,
            measuring.settings.budget,
            seed,
        )
        self._start()

    @classmethod
    def of(
        cls,
        data: Data,
        valuations: Mapping[str, Valuation],
        config: Config,
        workers: int,
        given: Given | None = None,
    ) -> Bench:
        """Gather what fits need, with the estimator and the metrics that are given, if any are."""
        given, models = Given() if given is None else given, config.models
        named = given.estimator is None
        return cls(
            data.part("train"),
            data.part("validation", "test"),
            valuations=valuations,
            measuring=data.measuring(config, given.metrics),
            seed=config.seed,
            min_group_size=config.data.min_group_size,
            deadline=models.deadline,
            workers=workers,
            estimator=make_estimator(models.estimator, models.pipeline) if named else given.estimator,
            keep_scores=config.evaluation.keep_scores,
            compared=data.compared,
        )

    def _start(self) -> None:
        self._lock = threading.Lock()
        self._sets: dict[str, TrainingSet] = {}
        self._rows: dict[tuple[str, bool], EvaluatedRows] = {}
        self._stop: threading.Event | None = None

    def __getstate__(self) -> dict[str, Any]:
        made = ("_lock", "_sets", "_rows", "_stop")
        return {name: value for name, value in vars(self).items() if name not in made}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._start()

    def training_set(self, recipe: Recipe) -> TrainingSet:
        """Make a training set; the last few are kept. Interventions on scores leave all rows as they are.

        Raises
        ------
        ValueError
            If the intervention leaves nothing to train on, such as weights that are all zero.
        """
        if _changes_scores(recipe):
            recipe = UNTOUCHED
        with self._lock:
            if recipe.key not in self._sets:
                while len(self._sets) >= _SETS_KEPT:
                    self._sets.pop(next(iter(self._sets)))
                self._sets[recipe.key] = self._make_training_set(recipe)
            return self._sets[recipe.key]

    def _make_training_set(self, recipe: Recipe) -> TrainingSet:
        entry, settings = intervention_named(recipe.intervention), dict(recipe.settings)
        training, utilities = self._training, None
        if entry.uses_values:
            valuation = self._valuations[settings.pop("algorithm")]
            settings["utility"] = utility_class(settings["utility"])(alpha=settings.pop("alpha"))
            utilities = _known(settings["utility"](valuation))
        settings = {"min_group_size": self._min_group_size, **settings}
        chosen = entry.make(random_state=self._seed, **settings).training_set(
            Labels(training.positive.astype(np.int32), (False, True), 1),
            self._groups,
            utilities,
            training.weights,
        )
        if chosen.parents is not None:
            raise ValueError("The intervention makes rows, which an experiment cannot train on.")
        rows = np.asarray(chosen.rows, dtype=np.int32)
        own = None if training.weights is None else mean_one(training.weights)[rows]
        weights = _single(_product(chosen.weights, own))
        return TrainingSet(rows, weights, labels=chosen.labels)

    def run(
        self, job: Job, stop: threading.Event | None = None, begin: Callable[[str], None] = lambda _: None
    ) -> Measured:
        """Train and measure one model; whatever goes wrong is part of the result.

        Parameters
        ----------
        job : Job
            The model.
        stop : threading.Event, optional
            Ends the fit when it is set.
        begin : callable
            Called with "training" when the training set is there, and with "measuring" when the model is.
        """
        start = time.monotonic()
        try:
            self.training_set(job.recipe)  # another thread may be making it
            begin("training")
            scores = self.scores(job.recipe, job.parameters, stop, job.scores)
            if stop is not None and stop.is_set():
                return Measured(job.key, time.monotonic() - start, error="stopped before it was done")
            begin("measuring")
            metrics = self._validation(scores, job.key)
        except MemoryError as error:
            return Measured(job.key, time.monotonic() - start, error=_said(error), out_of_memory=True)
        except Exception as error:
            return Measured(
                job.key,
                time.monotonic() - start,
                error=_said(error),
                out_of_memory="bad_alloc" in str(error) or "out of memory" in str(error).lower(),
            )
        kept = scores if self._keep_scores else None
        return Measured(job.key, time.monotonic() - start, metrics=metrics, scores=kept)

    def scores(
        self,
        recipe: Recipe,
        parameters: Mapping[str, Any],
        stop: threading.Event | None = None,
        fitted: FloatArray | None = None,
    ) -> FloatArray:
        """Give a model's scores of the validation rows, then the test rows, after the intervention.

        For an intervention on scores, `fitted` are the model's own, if it was fitted before.
        """
        if not _changes_scores(recipe):
            return _of_positives(self.fitted(recipe, parameters, stop).scores)
        own = self.scores(UNTOUCHED, parameters, stop) if fitted is None else fitted
        with ONE_THREAD:
            scores: FloatArray = self._made(recipe).rescore(self._evaluated(recipe, parameters, own, stop))
        return scores

    def scorer(self, recipe: Recipe, parameters: Mapping[str, Any]) -> tuple[Scorer, FloatArray]:
        """Give the model after an intervention without its rows, and its scores of the evaluated rows.

        Raises
        ------
        ValueError
            If there is no such model, as decisions need more than a row's features.
        """
        model = self.fitted(recipe, parameters)
        own = _of_positives(model.scores)
        if not _changes_scores(recipe):
            return detach(model), own
        with ONE_THREAD:
            rows, made = self._evaluated(recipe, parameters, own, None), self._made(recipe)
            scorer, scores = made.scorer(rows), made.rescore(rows)
        if scorer is None:
            raise ValueError(f"The intervention {recipe.intervention!r} has no model to hand over.")
        return scorer, scores

    def rows(self, parameters: Mapping[str, Any], scores: FloatArray) -> EvaluatedRows:
        """Give the evaluated rows and what models know of them, given a model's scores."""
        return self._evaluated(UNTOUCHED, parameters, scores, None)

    def _evaluated(
        self,
        recipe: Recipe,
        parameters: Mapping[str, Any],
        scores: FloatArray,
        stop: threading.Event | None,
    ) -> EvaluatedRows:
        """Give what an intervention on scores sees; the last few are kept, with what was made of them."""
        needs_group = intervention_named(recipe.intervention).needs_group
        key = (key_of(dict(parameters)), needs_group)
        with self._lock:
            self._stop = stop  # all jobs of a batch have the same, and rows outlast their batch
            if key not in self._rows:
                while len(self._rows) >= _ROWS_KEPT:
                    self._rows.pop(next(iter(self._rows)))
                self._rows[key] = self._known.rows(
                    scores,
                    self._model(parameters),
                    lambda task: self._fit(task, self._stop),
                    lambda: detach(self.fitted(UNTOUCHED, parameters)),
                    needs_group=needs_group,
                )
            return self._rows[key]

    def _made(self, recipe: Recipe) -> Any:
        return intervention_named(recipe.intervention).make(random_state=self._seed, **recipe.settings)

    def fitted(
        self, recipe: Recipe, parameters: Mapping[str, Any], stop: threading.Event | None = None
    ) -> Model:
        """Train a model on a training set; it has scored the validation rows, then the test rows."""
        chosen = self.training_set(recipe)
        labels = self._training.positive[chosen.rows] if chosen.labels is None else chosen.labels
        if labels.all() or not labels.any():
            raise ValueError("The training set holds only one label.")
        task = Task(
            self._model(parameters),
            self._target if chosen.labels is None else self._relabelled(chosen),
            chosen.rows.astype(np.int32, copy=False),
            seed=self._seed,
            scored=self._evaluation.table,
            weights=chosen.weights,
        )
        return self._fit(task, stop)

    def _fit(self, task: Task, stop: threading.Event | None) -> Model:
        """Run one fit, until it is stopped or its time is up."""
        end, engine = FitEnd(stop, self._deadline), self._engine(task)
        with nullcontext() if engine.in_threads else ONE_THREAD:
            model = engine.fit(task, end)
        if not engine.in_threads:
            end.is_set()  # nobody has looked at the clock
        if end.late:
            raise TimeoutError(f"The fit took longer than `models.deadline`, {self._deadline:g} s.")
        return model

    def _relabelled(self, chosen: TrainingSet) -> Variable:
        """Give the target with the labels that are to be learnt."""
        labels = self._target.labels.copy()
        labels[chosen.rows] = chosen.labels
        return replace(self._target, labels=labels)

    def digest(self, recipe: Recipe) -> str:
        """Give a name that only recipes share after which models do the same."""
        digest = self.training_set(recipe).digest()
        return key_of([digest, recipe.key]) if _changes_scores(recipe) else digest

    def _model(self, parameters: Mapping[str, Any]) -> Any:
        """Make the estimator with the parameters of a job."""
        from sklearn.base import clone

        return clone(self._estimator).set_params(**parameters)

    def _engine(self, task: Task) -> Engine:
        """Give the engine that serves an estimator, made ready for it."""
        kind = engine_class(task.estimator, self._training.table)
        with self._lock:
            if kind not in self._engines:
                self._engines[kind] = kind(self._training.table)
            engine = self._engines[kind]
            if not engine.in_threads:
                engine.prepare([task])
        return engine

    def _validation(self, scores: FloatArray, key: str) -> dict[str, float]:
        """Measure the validation part, if there is one, and the test part."""
        return self._measuring.measure(scores, key)


def run_job(job: Job, bench: Bench, stop: threading.Event | None = None) -> Measured:
    """Run a job on a bench: what executors call."""
    return bench.run(job, stop)


def _changes_scores(recipe: Recipe) -> bool:
    return intervention_named(recipe.intervention).changes_scores


def _of_positives(scores: FloatArray) -> FloatArray:
    """Give the scores of the positive label, and refuse what is no score."""
    own = scores[:, 1] if scores.ndim == 2 else scores
    if not np.isfinite(own).all():
        raise ValueError("The model gives some rows scores that are not finite.")
    return np.ascontiguousarray(own)


def _known(utilities: FloatArray) -> FloatArray:
    """Refuse utilities that some rows lack."""
    lacking = int((~np.isfinite(utilities)).sum())
    if lacking:
        raise ValueError(f"{lacking} of {len(utilities)} rows have no utility.")
    return utilities


def _product(
    weights: npt.NDArray[np.floating[Any]] | None, own: FloatArray | None
) -> npt.NDArray[np.floating[Any]] | None:
    """Multiply the weights that an intervention gives with those that rows have of their own."""
    return own if weights is None else weights if own is None else weights * own


def _single(weights: npt.NDArray[np.floating[Any]] | None) -> npt.NDArray[np.float32] | None:
    """Give weights as LightGBM holds them, refusing what it would take in silence."""
    if weights is None:
        return None
    with np.errstate(over="ignore", under="ignore"):
        single = weights.astype(np.float32)
    if not np.isfinite(single).all() or (single < 0).any() or not single.any():
        raise ValueError("The weights are all zero, negative, or beyond what a 32-bit float can hold.")
    return single


def _said(error: BaseException) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())}"[:500]
