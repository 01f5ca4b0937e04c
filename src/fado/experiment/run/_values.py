"""Value the rows of the training part."""

from __future__ import annotations

from typing import Any

from fado.experiment.config import Config
from fado.experiment.run._data import Data
from fado.valuation import Valuation, make_valuator

__all__ = ["value_training_part"]


def value_training_part(
    config: Config, data: Data, algorithm: str, *, workers: int, progress: bool
) -> Valuation:
    """Value the training part by an algorithm."""
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
    return valuator.fit_problem(data.problem.take(data.parts["train"])).valuation_


def _estimators(models: tuple[dict[str, Any], ...]) -> list[Any] | None:
    from lightgbm import LGBMClassifier, LGBMRegressor

    if not models:
        return None
    return [kind(**model) for model in models for kind in (LGBMClassifier, LGBMRegressor)]
