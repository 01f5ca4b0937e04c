"""Value the rows of the training part."""

from __future__ import annotations

import threading
from typing import Any

from fado.execution import LostTask, on_cluster
from fado.experiment.config import Config
from fado.experiment.run._data import Data
from fado.tabular import Problem
from fado.valuation import Valuation, make_valuator

__all__ = ["value_training_part"]


def value_training_part(
    config: Config, data: Data, algorithm: str, *, workers: int, progress: bool, client: Any = None
) -> Valuation:
    """Value the training part by an algorithm.

    On a cluster, every worker has a part in values that come of many fits; others are made by one worker.

    Parameters
    ----------
    config : Config
        The experiment.
    data : Data
        All rows.
    algorithm : str
        The valuator's name.
    workers : int
        How many fits run side by side, where there is no cluster.
    progress : bool
        Whether to show a progress bar.
    client : dask.distributed.Client, optional
        Of a cluster.
    """
    there = data.problem.table.names
    valuator = make_valuator(
        algorithm,
        estimators=_estimators(config.valuation.models),
        n_bags=config.valuation.bags,
        unseen_fraction=config.valuation.unseen_fraction,
        z_exclude={
            name: [*data.excluded, *(source for source in sources if source in there)]
            for name, sources in data.sources.items()
        },
        random_state=config.seed,
        n_jobs=workers,
        progress=progress,
    )
    problem = data.problem.take(data.parts["train"])
    if client is None or getattr(valuator, "sends_fits", False):
        with on_cluster(client):
            return valuator.fit_problem(problem).valuation_
    return _value_elsewhere(valuator, problem, client)


def _value_elsewhere(valuator: Any, problem: Problem, client: Any) -> Valuation:
    from fado.execution import DaskExecutor  # Dask is an extra

    (made,) = DaskExecutor(client).run(_value, [valuator], problem)
    if isinstance(made, LostTask):
        raise RuntimeError(f"{type(valuator).__name__} was lost with its workers ({made.reason}): run again.")
    return made


def _value(valuator: Any, problem: Problem, stop: threading.Event) -> Valuation:
    valuation: Valuation = valuator.fit_problem(problem).valuation_
    return valuation


def _estimators(models: tuple[dict[str, Any], ...]) -> list[Any] | None:
    from lightgbm import LGBMClassifier, LGBMRegressor

    if not models:
        return None
    return [kind(**model) for model in models for kind in (LGBMClassifier, LGBMRegressor)]
