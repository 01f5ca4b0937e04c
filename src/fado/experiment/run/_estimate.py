"""How long an experiment may take."""

from __future__ import annotations

import time

from fado.execution import n_workers
from fado.experiment.config import Config
from fado.experiment.run._bench import Bench
from fado.experiment.run._data import read_data
from fado.experiment.search import GridProposer, Recipe

__all__ = ["estimate_seconds"]

_TREES = 5
_MOST_MODELS = 10
_UNTOUCHED = Recipe("none")


def estimate_seconds(config: Config, n_jobs: int | None) -> float:
    """Time the first trees of some models on the whole training part, and multiply."""
    plan, workers = GridProposer.of(config), n_workers(n_jobs)
    bench = Bench.of(read_data(config), {}, config, workers)
    sampled = plan.models[:_MOST_MODELS]
    bench.scores(_UNTOUCHED, sampled[0] | {"n_estimators": 1})  # the bins are made once
    seconds = 0.0
    for model in sampled:
        trees = min(_TREES, model.get("n_estimators", 100))
        start = time.monotonic()
        bench.scores(_UNTOUCHED, model | {"n_estimators": trees})
        seconds += (time.monotonic() - start) / trees * model.get("n_estimators", 100)
    return seconds / len(sampled) * plan.n_fits / workers
