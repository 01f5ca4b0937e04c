"""How long an experiment may take."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from fado.execution import n_workers
from fado.experiment.config import LIGHTGBM, Config, Given
from fado.experiment.run._bench import Bench
from fado.experiment.run._reading import read_data
from fado.experiment.search import UNTOUCHED, GridProposer

__all__ = ["estimate_seconds"]

_TREES = 5
_MOST_MODELS = 10
_FEW_MODELS = 3  # of an estimator whose fits are not made of trees


def estimate_seconds(config: Config, n_jobs: int | None, given: Given | None = None) -> float:
    """Time some models on the whole training part, of LightGBM only their first trees, and multiply."""
    plan, workers = GridProposer.of(config), n_workers(n_jobs)
    bench = Bench.of(read_data(config), {}, config, workers, given)
    by_trees = config.models.estimator == LIGHTGBM and not config.models.pipeline
    timed = _seconds_by_trees if by_trees else _seconds
    return timed(bench, plan.models) * plan.n_fits / workers


def _seconds_by_trees(bench: Bench, models: Sequence[dict[str, Any]]) -> float:
    """Give the mean time of a fit, from the first trees of each."""
    sampled = models[:_MOST_MODELS]
    bench.scores(UNTOUCHED, sampled[0] | {"n_estimators": 1})  # the bins are made once
    seconds = 0.0
    for model in sampled:
        trees = min(_TREES, model.get("n_estimators", 100))
        start = time.monotonic()
        bench.scores(UNTOUCHED, model | {"n_estimators": trees})
        seconds += (time.monotonic() - start) / trees * model.get("n_estimators", 100)
    return seconds / len(sampled)


def _seconds(bench: Bench, models: Sequence[dict[str, Any]]) -> float:
    """Give the mean time of a fit, from whole ones."""
    sampled = models[:_FEW_MODELS]
    start = time.monotonic()
    for model in sampled:
        bench.scores(UNTOUCHED, model)
    return (time.monotonic() - start) / len(sampled)
