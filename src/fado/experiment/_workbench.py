"""Train a model on a training set and judge it: the same on one machine and on a cluster's workers."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fado._frames import Column
from fado.engine._boosting import BINNING, bin_columns, grown, own_scores, parameters_of, subset
from fado.engine._threads import fitting
from fado.experiment._data import Data
from fado.experiment._plan import Setting
from fado.experiment._sets import TrainingSet, training_set
from fado.experiment._settings import Config, EvaluationConfig
from fado.metrics._evaluate import measure
from fado.valuation import Valuation

__all__ = ["Bench", "Job", "Judged", "Material", "material_of"]

FloatArray = npt.NDArray[np.float64]
_SETS_KEPT = 4


@dataclass(frozen=True)
class Job:
    """One fit: a model after an intervention. `key` names its result in the store."""

    key: str
    setting: Setting
    parameters: dict[str, Any]


@dataclass(frozen=True)
class Judged:
    """What became of a job: its metrics, or why there are none."""

    key: str
    seconds: float
    metrics: dict[str, float] | None = None
    error: str | None = None
    out_of_memory: bool = False


@dataclass(frozen=True)
class Material:
    """All that fits need, without binned tables: this is what a cluster's workers are sent, once each."""

    training: tuple[Column, ...]
    evaluation: tuple[Column, ...]
    training_positive: npt.NDArray[np.bool_]
    evaluation_positive: npt.NDArray[np.bool_]
    training_groups: npt.NDArray[Any]
    evaluation_groups: npt.NDArray[np.int64]
    group_names: list[str]
    n_validation: int
    valuations: Mapping[str, Valuation]
    judging: EvaluationConfig
    negative: str
    seed: int
    deadline: float | None


def material_of(data: Data, valuations: Mapping[str, Valuation], config: Config) -> Material:
    """Gather what fits need."""
    train = data.parts["train"]
    judged = np.concatenate([data.parts["validation"], data.parts["test"]])
    return Material(
        training=tuple(column.take(train) for column in data.columns),
        evaluation=tuple(column.take(judged) for column in data.columns),
        training_positive=data.positive[train],
        evaluation_positive=data.positive[judged],
        training_groups=np.array(data.group_names, dtype=object)[data.groups[train]],
        evaluation_groups=data.groups[judged],
        group_names=data.group_names,
        n_validation=len(data.parts["validation"]),
        valuations=valuations,
        judging=config.evaluation,
        negative=config.interventions.uar.negative if config.interventions.uar else "raise",
        seed=config.seed,
        deadline=config.models.deadline,
    )


class Bench:
    """The training part binned once, the other parts in its bins, and the fits on them.

    Fits may run side by side in threads; each grows its trees in one.

    Parameters
    ----------
    material : Material
        The data.
    workers : int
        Threads for the binning; the bins do not depend on it.
    """

    def __init__(self, material: Material, workers: int) -> None:
        self._material = material
        self._workers = workers
        self._lock = threading.Lock()
        self._binned: dict[Any, tuple[Any, Any]] = {}
        self._sets: dict[Setting, TrainingSet] = {}

    def training_set(self, setting: Setting) -> TrainingSet:
        """Apply an intervention; the last few training sets are kept."""
        with self._lock:
            if setting not in self._sets:
                material = self._material
                while len(self._sets) >= _SETS_KEPT:
                    self._sets.pop(next(iter(self._sets)))
                self._sets[setting] = training_set(
                    setting,
                    material.training_positive,
                    material.training_groups,
                    material.valuations,
                    negative=material.negative,
                    seed=material.seed,
                )
            return self._sets[setting]

    def run(self, job: Job, stop: threading.Event | None = None) -> Judged:
        """Train and judge one model; whatever goes wrong is part of the result."""
        start = time.monotonic()
        try:
            scores = self.scores(job.setting, job.parameters, stop)
            if stop is not None and stop.is_set():
                return Judged(job.key, time.monotonic() - start, error="stopped before it was done")
            metrics = self._judged(scores, job.key)
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
        self, setting: Setting, parameters: dict[str, Any], stop: threading.Event | None = None
    ) -> FloatArray:
        """Give a model's scores of the validation rows, then the test rows."""
        from lightgbm import LGBMClassifier

        chosen = self.training_set(setting)
        parameters = parameters_of(LGBMClassifier(**parameters)) | {"objective": "binary"}
        binned, evaluation = self._bins(parameters)
        labels = self._material.training_positive[chosen.rows]
        if labels.all() or not labels.any():
            raise ValueError("The training set holds only one label.")
        watch = _Watch(stop, self._material.deadline)
        with fitting():
            training = subset(binned, chosen.rows, labels, chosen.weights)
            booster = grown(parameters, training, evaluation, watch)
            if watch.late:
                raise TimeoutError(
                    f"The fit took longer than `models.deadline`, {self._material.deadline:g} s."
                )
            return own_scores(booster, training=False)

    def _bins(self, parameters: dict[str, Any]) -> tuple[Any, Any]:
        """Bin the parts, once for all models that agree on the bins."""
        key = tuple(parameters.get(name) for name in BINNING)
        with self._lock:
            if key not in self._binned:
                training = bin_columns(self._material.training, parameters, self._workers)
                evaluation = bin_columns(self._material.evaluation, parameters, self._workers, training)
                self._binned[key] = training, evaluation
            return self._binned[key]

    def _judged(self, scores: FloatArray, key: str) -> dict[str, float]:
        """Measure the validation part, if there is one, and the test part."""
        material, judging = self._material, self._material.judging
        cut, threshold = material.n_validation, None
        metrics: dict[str, float] = {}
        parts = {"validation": slice(0, cut), "test": slice(cut, None)}
        for part, rows in parts.items():
            if part == "validation" and cut == 0:
                continue
            found, _ = measure(
                material.evaluation_positive[rows],
                scores[rows],
                material.evaluation_groups[rows],
                material.group_names,
                max_fpr=judging.max_fpr,
                n_boot=judging.bootstrap,
                random_state=[material.seed, int(key[:8], 16), cut],
                threshold=threshold,
            )
            metrics |= {f"{part}_{name}": value for name, value in found.items()}
            if judging.threshold == "validation":
                threshold = found["threshold"]
        return metrics


class _Watch(threading.Event):
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


def _said(error: BaseException) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())}"[:500]
