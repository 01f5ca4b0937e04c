"""Train a model on a training set and judge it: the same on one machine and on a cluster's workers."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fado.engine import LightGBMEngine, Task
from fado.experiment.config import Config
from fado.experiment.run._data import Data, Part
from fado.experiment.run._judging import Judging
from fado.experiment.search import Recipe
from fado.interventions import TrainingSet, intervention_named
from fado.tabular import Labels, Variable
from fado.utility import utility_class
from fado.valuation import Valuation

__all__ = ["Bench", "Job", "Judged", "run_job"]

FloatArray = npt.NDArray[np.float64]
_SETS_KEPT = 4


@dataclass(frozen=True)
class Job:
    """One fit: a model after an intervention. `key` names its result in the store."""

    key: str
    recipe: Recipe
    parameters: Mapping[str, Any]


@dataclass(frozen=True)
class Judged:
    """What became of a job: its metrics, or why there are none."""

    key: str
    seconds: float
    metrics: dict[str, float] | None = None
    error: str | None = None
    out_of_memory: bool = False


class Bench:
    """The training part, the parts that judge, and the fits on them.

    The training part is binned once, the others in its bins. Fits may run side by side in threads; each grows
    its trees in one. A bench that is sent to a cluster's worker takes the data along, and bins them there.

    Parameters
    ----------
    training : Part
        The rows to train on.
    evaluation : Part
        The rows of the validation part, then those of the test part.
    valuations : mapping of str to Valuation
        The training part's values by each algorithm.
    judging : Judging
        How models are judged on those.
    seed : int
        Of samplers.
    min_group_size : int
        From how many rows on interventions take a group into account in any case.
    deadline : float or None
        Seconds after which a fit is given up.
    workers : int
        Threads for the binning; the bins do not depend on it.
    """

    def __init__(
        self,
        training: Part,
        evaluation: Part,
        *,
        valuations: Mapping[str, Valuation],
        judging: Judging,
        seed: int,
        min_group_size: int,
        deadline: float | None,
        workers: int,
    ) -> None:
        self._training = training
        self._evaluation = evaluation
        self._groups = training.groups.take(np.arange(len(training.positive)))
        self._valuations = valuations
        self._judging = judging
        self._seed = seed
        self._min_group_size = min_group_size
        self._deadline = deadline
        self._engine = LightGBMEngine(training.table, workers=workers, prefilter=False)
        self._target = Variable("y", "classes", training.positive.astype(np.int32), (False, True))
        self._start()

    @classmethod
    def of(cls, data: Data, valuations: Mapping[str, Valuation], config: Config, workers: int) -> Bench:
        """Gather what fits need."""
        return cls(
            data.part("train"),
            data.part("validation", "test"),
            valuations=valuations,
            judging=data.judging(config),
            seed=config.seed,
            min_group_size=config.data.min_group_size,
            deadline=config.models.deadline,
            workers=workers,
        )

    def _start(self) -> None:
        self._lock = threading.Lock()
        self._sets: dict[str, TrainingSet] = {}

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name not in ("_lock", "_sets")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._start()

    def training_set(self, recipe: Recipe) -> TrainingSet:
        """Make a training set; the last few are kept.

        Raises
        ------
        ValueError
            If the intervention leaves nothing to train on, such as weights that are all zero.
        """
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
        return TrainingSet(rows, _single(_product(chosen.weights, training.weights, rows)))

    def run(
        self, job: Job, stop: threading.Event | None = None, begin: Callable[[str], None] = lambda _: None
    ) -> Judged:
        """Train and judge one model; whatever goes wrong is part of the result.

        Parameters
        ----------
        job : Job
            The model.
        stop : threading.Event, optional
            Ends the fit when it is set.
        begin : callable
            Called with "training" when the training set is there, and with "judging" when the model is.
        """
        start = time.monotonic()
        try:
            self.training_set(job.recipe)  # another thread may be making it
            begin("training")
            scores = self.scores(job.recipe, job.parameters, stop)
            if stop is not None and stop.is_set():
                return Judged(job.key, time.monotonic() - start, error="stopped before it was done")
            begin("judging")
            metrics = self._judge(scores, job.key)
        except MemoryError as error:
            return Judged(job.key, time.monotonic() - start, error=_said(error), out_of_memory=True)
        except Exception as error:
            return Judged(
                job.key,
                time.monotonic() - start,
                error=_said(error),
                out_of_memory="bad_alloc" in str(error) or "out of memory" in str(error).lower(),
            )
        return Judged(job.key, time.monotonic() - start, metrics=metrics)

    def scores(
        self, recipe: Recipe, parameters: Mapping[str, Any], stop: threading.Event | None = None
    ) -> FloatArray:
        """Give a model's scores of the validation rows, then the test rows."""
        from lightgbm import LGBMClassifier

        chosen = self.training_set(recipe)
        labels = self._training.positive[chosen.rows]
        if labels.all() or not labels.any():
            raise ValueError("The training set holds only one label.")
        task = Task(
            LGBMClassifier(**parameters),
            self._target,
            chosen.rows.astype(np.int32, copy=False),
            seed=self._seed,
            scored=self._evaluation.table,
            weights=chosen.weights,
        )
        end = _End(stop, self._deadline)
        model = self._engine.fit(task, end)
        if end.late:
            raise TimeoutError(f"The fit took longer than `models.deadline`, {self._deadline:g} s.")
        return model.scores

    def _judge(self, scores: FloatArray, key: str) -> dict[str, float]:
        """Measure the validation part, if there is one, and the test part."""
        return self._judging.judge(scores, key)


def run_job(job: Job, bench: Bench, stop: threading.Event | None = None) -> Judged:
    """Run a job on a bench: what executors call."""
    return bench.run(job, stop)


class _End(threading.Event):
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


def _known(utilities: FloatArray) -> FloatArray:
    """Refuse utilities that some rows lack."""
    lacking = int((~np.isfinite(utilities)).sum())
    if lacking:
        raise ValueError(f"{lacking} of {len(utilities)} rows have no utility.")
    return utilities


def _product(
    weights: npt.NDArray[np.floating[Any]] | None, own: FloatArray | None, rows: npt.NDArray[np.int32]
) -> npt.NDArray[np.floating[Any]] | None:
    """Multiply the weights that an intervention gives with those that rows have of their own."""
    if own is None:
        return weights
    return own[rows] if weights is None else weights * own[rows]


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
