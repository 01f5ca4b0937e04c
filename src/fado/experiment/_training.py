"""Train a model after an intervention and measure it, with the same result in any process."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from copy import copy
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, TypeVar

import numpy as np

from fado._typing import Bools, Floats
from fado.engine import Engine, LightGBMEngine, Model, Scorer, Task, engine_class
from fado.execution import tell
from fado.experiment._config import Config, EvaluationConfig, ratio_name
from fado.experiment._data import ComparedGroups, Data
from fado.experiment._metrics import apply_metric, metric_functions
from fado.experiment._models import make_estimator
from fado.experiment._score_inputs import ScoreInputs
from fado.experiment._trial import DONE, FAILED, IMPOSSIBLE, UNTOUCHED, Trial, key_of
from fado.interventions import EvaluatedRows, TrainingSet, intervention_named
from fado.metrics import RATIO_NAMES, measure
from fado.tabular import Groups, Labels, Table, Variable, mean_one
from fado.utility import utility_class
from fado.valuation import Valuation

OUT_OF_MEMORY = "out of memory"  # the status of a trial that is tried again
_SETS_KEPT, _ROWS_KEPT = 4, 8

Item = TypeVar("Item")


class Job(NamedTuple):
    """A trial to run, with the scores that its intervention changes; or its outcome, with those to save."""

    trial: Trial
    scores: Floats | None = None


class _FitEnd(threading.Event):
    """An event that is also set when another is, or when the time is up."""

    def __init__(self, stop: threading.Event | None, deadline: float | None) -> None:
        super().__init__()
        self._stop = stop
        self._end = None if deadline is None else time.monotonic() + deadline
        self.late = False

    def is_set(self) -> bool:
        if self._stop is not None and self._stop.is_set():
            return True
        self.late = self.late or (self._end is not None and time.monotonic() > self._end)
        return self.late


class _OneThread:
    """Limits the linear-algebra libraries to one thread while any fit of the process runs.

    The number of threads is one setting for the whole process, and may change the last digits of a result. If
    every fit set it separately, the first fit to end would reset it for the others.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users = 0
        self._limits: Any = None

    def __enter__(self) -> None:
        from threadpoolctl import threadpool_limits

        with self._lock:
            if self._users == 0:
                self._limits = threadpool_limits(1, "blas")
            self._users += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._users -= 1
            if self._users == 0:
                self._limits.restore_original_limits()


_ONE_THREAD = _OneThread()


@dataclass(frozen=True)
class Measuring:
    """The rows on which models are measured, and how.

    Parameters
    ----------
    positive : ndarray of bool
        The positives among the validation rows, then the test rows.
    weights : ndarray or None
        The weights of these rows.
    comparisons : sequence of ComparedGroups
        The groups of these rows: one comparison of crossed attributes, or one per attribute.
    n_validation : int
        The number of validation rows.
    settings : EvaluationConfig
        Budget, threshold and resamples.
    seed : int
        The seed of the bootstrap.
    groups : Groups or None
        The crossed groups of these rows, for the user's metrics.
    functions : mapping of str to callable
        The user's metrics, by name; see `fado.experiment.register_metric`.
    confidence : float
        The confidence level of intervals.
    """

    positive: Bools
    weights: Floats | None
    comparisons: Sequence[ComparedGroups]
    n_validation: int
    settings: EvaluationConfig
    seed: int
    groups: Groups | None = None
    functions: Mapping[str, Callable[..., Any]] = field(default_factory=dict)
    confidence: float = 0.95

    @classmethod
    def of(
        cls, data: Data, config: Config, metrics: Mapping[str, Callable[..., Any]] | None = None
    ) -> Measuring:
        """Take the rows from data; `metrics` are metrics of the configuration that are not registered."""
        evaluated = data.part("validation", "test")
        rows = np.concatenate([data.parts[name] for name in ("validation", "test")])
        return cls(
            evaluated.positive,
            evaluated.weights,
            tuple(comparison.take(rows) for comparison in data.comparisons),
            len(data.parts["validation"]),
            config.evaluation,
            config.seed,
            evaluated.groups,
            metric_functions(config.evaluation.metrics, metrics),
        )

    def measure(self, scores: Floats, fit: str) -> dict[str, float]:
        """Measure a model on validation rows, if there are any, and on test rows.

        Parameters
        ----------
        scores : ndarray
            The scores of the rows.
        fit : str
            The name of the fit, which seeds the bootstrap.
        """
        cut, threshold = self.n_validation, None
        metrics: dict[str, float] = {}
        for part, rows in (("validation", slice(0, cut)), ("test", slice(cut, None))):
            if part == "validation" and cut == 0:
                continue
            measured = self._measure(scores, rows, threshold, [self.seed, int(fit[:8], 16), cut])
            weights, built_in = None if self.weights is None else self.weights[rows], dict(measured)
            names = None if self.groups is None else np.array(self.groups.names)[self.groups.codes[rows]]
            for name, function in self.functions.items():
                measured[name] = apply_metric(
                    name,
                    function,
                    self.positive[rows].copy(),
                    scores[rows].copy(),
                    copy(names),
                    threshold=built_in["threshold"],
                    sample_weight=copy(weights),
                    metrics=dict(built_in),
                )
            metrics |= {f"{part}_{name}": value for name, value in measured.items()}
            if self.settings.threshold == "validation":
                threshold = measured["threshold"]
        return metrics

    def _measure(
        self, scores: Floats, rows: slice, threshold: float | None, seed: list[int]
    ) -> dict[str, float]:
        """Measure one part by every comparison."""
        measured = [
            measure(
                self.positive[rows],
                scores[rows],
                comparison.groups.codes[rows],
                comparison.groups.names,
                budget=self.settings.budget,
                n_boot=self.settings.bootstrap,
                random_state=np.random.default_rng(seed + [number] * bool(number)),
                threshold=threshold,
                sample_weight=None if self.weights is None else self.weights[rows],
                left_out=comparison.left_out,
                confidence=self.confidence,
            )[0]
            for number, comparison in enumerate(self.comparisons)
        ]
        metrics = dict(measured[0])
        # a ratio is the lowest of all attributes, and undefined if it is undefined for one
        columns: list[tuple[str | None, str, dict[str, float]]] = [
            (None, ratio, measured[int(np.argmin([one[ratio] for one in measured]))]) for ratio in RATIO_NAMES
        ]
        for comparison, one in zip(self.comparisons, measured, strict=True):
            if comparison.attribute is not None:
                columns += [(comparison.attribute, ratio, one) for ratio in RATIO_NAMES]
        for attribute, ratio, one in columns:
            title = ratio_name(ratio, attribute)
            metrics |= {name.replace(ratio, title): one[name] for name in list(one) if name.startswith(ratio)}
        return metrics


class Trainer:
    """The training part, the parts on which models are measured, and the fits.

    For LightGBM the training part is binned once, and the other parts use its bins. Fits may run in parallel
    threads, one thread each. A trainer that is sent to another process takes the data along, and bins them
    there.

    Parameters
    ----------
    data : Data
        The rows.
    config : Config
        The experiment.
    valuations : mapping of str to Valuation, optional
        The values of the training part by each algorithm.
    workers : int
        The number of threads for binning; the bins do not depend on it.
    estimator, metrics
        As for `Experiment`, if they were passed in Python.
    named : sequence
        What the names of fits are made of, in addition to the training set and the parameters.
    tables : pair of Table, optional
        The tables of the training part and of the other parts, if they are in files.
    """

    def __init__(
        self,
        data: Data,
        config: Config,
        valuations: Mapping[str, Valuation] | None = None,
        *,
        workers: int = 1,
        estimator: Any = None,
        metrics: Mapping[str, Callable[..., Any]] | None = None,
        named: Sequence[Any] = (),
        tables: tuple[Table, Table] | None = None,
    ) -> None:
        self._training, self._evaluation = data.part("train"), data.part("validation", "test")
        if tables is not None:
            self._training = replace(self._training, table=tables[0])
            self._evaluation = replace(self._evaluation, table=tables[1])
        self._groups = self._training.groups.take(np.arange(len(self._training.positive)))
        self._valuations = valuations or {}
        self._measuring = Measuring.of(data, config, metrics)
        self._seed = config.seed
        self._min_group_size = config.data.min_group_size
        self._deadline = config.models.deadline
        self._named = list(named)
        self._keep_scores = config.evaluation.keep_scores
        self._estimator = make_estimator(config.models.estimator, config.models.pipeline, estimator)
        self._engines: dict[type[Engine], Engine] = {
            LightGBMEngine: LightGBMEngine(self._training.table, workers=workers, prefilter=False)
        }
        self._target = Variable("y", "classes", self._training.positive.astype(np.int32), (False, True))
        self._score_inputs = ScoreInputs(
            self._training,
            self._evaluation,
            self._measuring.n_validation,
            data.compared,
            config.evaluation.budget,
            config.seed,
        )
        self._start()

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

    def run(self, job: Job, stop: threading.Event | None = None) -> Job:
        """Train and measure one model; an error is part of the outcome.

        Parameters
        ----------
        job : Job
            What to train.
        stop : threading.Event, optional
            Ends the fit once it is set.
        """
        trial, start = job.trial, time.monotonic()
        tell("", timed=not trial.changes_scores)
        try:
            chosen = self.training_set(trial)
        except ValueError as error:
            return Job(replace(trial, status=IMPOSSIBLE, error=" ".join(str(error).split())))
        digest = chosen.digest()
        if trial.changes_scores:
            digest = key_of([digest, trial.set_key])
        trial = replace(
            trial, training_rows=len(chosen.rows), fit=key_of([*self._named, digest, dict(trial.parameters)])
        )
        tell("fit", timed=not trial.changes_scores)
        kept = None
        try:
            scores = self.scores(trial, job.scores, stop)
            tell("metrics")
            trial = replace(trial, status=DONE, metrics=self._measuring.measure(scores, trial.fit))
            kept = scores if self._keep_scores else None
        except Exception as error:
            message = f"{type(error).__name__}: {' '.join(str(error).split())}"[:500]
            lacks_memory = isinstance(error, MemoryError) or "bad_alloc" in message
            status = OUT_OF_MEMORY if lacks_memory or "out of memory" in message.lower() else FAILED
            trial = replace(trial, status=status, error=message)
        return Job(replace(trial, seconds=time.monotonic() - start), kept)

    def training_set(self, trial: Trial) -> TrainingSet:
        """Make a training set; the last few are kept. Interventions on scores do not change it.

        Raises
        ------
        ValueError
            If the intervention leaves nothing to train on, such as weights that are all zero.
        """
        trial = UNTOUCHED if trial.changes_scores else trial
        with self._lock:
            return _kept(self._sets, trial.set_key, lambda: self._make_training_set(trial), _SETS_KEPT)

    def _make_training_set(self, trial: Trial) -> TrainingSet:
        entry, settings = intervention_named(trial.intervention), dict(trial.settings)
        training, utilities = self._training, None
        if entry.uses_values:
            valuation = self._valuations[settings.pop("algorithm")]
            settings["utility"] = utility_class(settings["utility"])(alpha=settings.pop("alpha"))
            utilities = settings["utility"](valuation)
            lacking = int((~np.isfinite(utilities)).sum())
            if lacking:
                raise ValueError(f"{lacking} of {len(utilities)} rows have no utility.")
        settings = {"min_group_size": self._min_group_size, **settings}
        chosen = entry.make(random_state=self._seed, **settings).training_set(
            Labels(training.positive.astype(np.int32), (False, True), 1),
            self._groups,
            utilities,
            training.weights,
        )
        if chosen.parents is not None:
            raise ValueError("The intervention makes rows, which an experiment cannot train on.")
        rows, weights = np.asarray(chosen.rows, dtype=np.int32), chosen.weights
        if training.weights is not None:
            sample_weight = mean_one(training.weights)[rows]
            weights = sample_weight if weights is None else weights * sample_weight
        if weights is not None:  # in LightGBM's precision; it would silently accept any
            with np.errstate(over="ignore", under="ignore"):
                weights = weights.astype(np.float32)
            if not np.isfinite(weights).all() or (weights < 0).any() or not weights.any():
                raise ValueError(
                    "The weights are all zero, negative, or beyond what a 32-bit float can hold."
                )
        return TrainingSet(rows, weights, labels=chosen.labels)

    def scores(
        self, trial: Trial, before: Floats | None = None, stop: threading.Event | None = None
    ) -> Floats:
        """Return the scores of the validation rows, then the test rows, after the intervention.

        An intervention on scores changes those of the model, `before`, which is trained if they are None.
        """
        if not trial.changes_scores:
            return _of_positives(self.fitted(trial, stop).scores)
        if before is None:
            before = self.scores(trial.untouched(), stop=stop)
        with _ONE_THREAD:
            scores: Floats = self._intervention(trial).rescore(self._evaluated(trial, before, stop))
        return scores

    def scorer(self, trial: Trial) -> tuple[Scorer, Floats]:
        """Return the model after an intervention, and its scores of the evaluated rows.

        Raises
        ------
        ValueError
            If decisions need more than the features of a row.
        """
        model = self.fitted(trial)
        scores = _of_positives(model.scores)
        if not trial.changes_scores:
            return model.detach(), scores
        with _ONE_THREAD:
            rows, intervention = self._evaluated(trial, scores, None), self._intervention(trial)
            scorer, scores = intervention.scorer(rows), intervention.rescore(rows)
        if scorer is None:
            raise ValueError(f"The intervention {trial.intervention!r} has no model that can be saved.")
        return scorer, scores

    def _evaluated(self, trial: Trial, scores: Floats, stop: threading.Event | None) -> EvaluatedRows:
        """Return the input of an intervention on scores; the last few are kept."""
        needs_group = intervention_named(trial.intervention).needs_group
        key = (key_of(dict(trial.parameters)), needs_group)

        def make() -> EvaluatedRows:
            return self._score_inputs.rows(
                scores,
                self._model(trial),
                lambda task: self._fit(task, self._stop),
                lambda: self.fitted(trial.untouched()).detach(),
                needs_group=needs_group,
            )

        with self._lock:
            self._stop = stop  # all fits of a batch have the same, and rows outlast their batch
            return _kept(self._rows, key, make, _ROWS_KEPT)

    def _intervention(self, trial: Trial) -> Any:
        return intervention_named(trial.intervention).make(random_state=self._seed, **trial.settings)

    def fitted(self, trial: Trial, stop: threading.Event | None = None) -> Model:
        """Train a model on a training set, and score the validation rows, then the test rows."""
        chosen, target = self.training_set(trial), self._target
        if chosen.labels is not None:
            labels = target.labels.copy()
            labels[chosen.rows] = chosen.labels
            target = replace(target, labels=labels)
        labels = target.labels[chosen.rows]
        if labels.all() or not labels.any():
            raise ValueError("The training set holds only one label.")
        task = Task(
            self._model(trial),
            target,
            chosen.rows.astype(np.int32, copy=False),
            seed=self._seed,
            scored=self._evaluation.table,
            weights=chosen.weights,
        )
        return self._fit(task, stop)

    def _fit(self, task: Task, stop: threading.Event | None) -> Model:
        """Run one fit until it ends, is stopped, or reaches the deadline."""
        end, engine = _FitEnd(stop, self._deadline), self._engine(task)
        with nullcontext() if engine.in_threads else _ONE_THREAD:
            model = engine.fit(task, end)
        if not engine.in_threads:
            end.is_set()  # these engines do not check the clock
        if end.late:
            raise TimeoutError(f"The fit took longer than `models.deadline`, {self._deadline:g} s.")
        return model

    def _model(self, trial: Trial) -> Any:
        """Make the estimator with the parameters of a trial."""
        from sklearn.base import clone

        return clone(self._estimator).set_params(**trial.parameters)

    def _engine(self, task: Task) -> Engine:
        """Return the engine of an estimator, prepared for it."""
        kind = engine_class(task.estimator, self._training.table)
        with self._lock:
            if kind not in self._engines:
                self._engines[kind] = kind(self._training.table)
            engine = self._engines[kind]
            if not engine.in_threads:
                engine.prepare([task])
        return engine


def run_jobs(jobs: Sequence[Job], trainer: Trainer, stop: threading.Event | None = None) -> list[Job]:
    """Run jobs, one after the other; executors call this."""
    return [trainer.run(job, stop) for job in jobs]


def _kept(made: dict[Any, Item], key: Any, make: Callable[[], Item], most: int) -> Item:
    """Return what was made under a key, or make it; the last few are kept."""
    if key not in made:
        while len(made) >= most:
            made.pop(next(iter(made)))
        made[key] = make()
    return made[key]


def _of_positives(scores: Floats) -> Floats:
    """Return the scores of the positive label; scores must be finite."""
    if not np.isfinite(scores[:, 1]).all():
        raise ValueError("The model gives some rows scores that are not finite.")
    return np.ascontiguousarray(scores[:, 1])
