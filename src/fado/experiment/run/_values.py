"""Value the rows of the training part."""

from __future__ import annotations

from fado.experiment.config import Config, make_valuator
from fado.experiment.run._data import Data
from fado.valuation import Valuation

__all__ = ["value_training_part"]


def value_training_part(
    config: Config, data: Data, algorithm: str, *, workers: int, progress: bool
) -> Valuation:
    """Value the training part by an algorithm."""
    there = data.problem.table.names
    valuator = make_valuator(
        algorithm,
        config.valuation,
        z_exclude={
            name: [*config.data.exclude, *([source] if source in there else [])]
            for name, source in data.sources.items()
        },
        random_state=config.seed,
        n_jobs=workers,
        progress=progress,
    )
    return valuator.fit_problem(data.problem.take(data.parts["train"])).valuation_
