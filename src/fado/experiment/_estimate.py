"""How long an experiment may take."""

from __future__ import annotations

import time

from fado.engine._parallel import n_workers
from fado.experiment._data import read_data
from fado.experiment._plan import NONE, Plan, Setting
from fado.experiment._settings import Config
from fado.experiment._workbench import Bench, material_of

__all__ = ["estimated_seconds"]

_TREES = 5
_MOST_MODELS = 10


def estimated_seconds(config: Config, n_jobs: int | None) -> float:
    """Time the first trees of some models on the whole training part, and multiply."""
    plan, workers = Plan.of(config), n_workers(n_jobs)
    bench = Bench(material_of(read_data(config), {}, config), workers)
    sampled = plan.models[:_MOST_MODELS]
    bench.scores(Setting(NONE), sampled[0] | {"n_estimators": 1})  # the bins are made once
    seconds = 0.0
    for model in sampled:
        trees = min(_TREES, model.get("n_estimators", 100))
        start = time.monotonic()
        bench.scores(Setting(NONE), model | {"n_estimators": trees})
        seconds += (time.monotonic() - start) / trees * model.get("n_estimators", 100)
    return seconds / len(sampled) * plan.n_fits / workers
