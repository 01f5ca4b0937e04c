"""Value the rows of the training part."""

from __future__ import annotations

from typing import Any

from fado.experiment.config import Config, make_valuator
from fado.experiment.run._data import Data
from fado.valuation import Valuation

__all__ = ["value_training_part"]


def value_training_part(
    config: Config, data: Data, algorithm: str, *, workers: int, progress: bool
) -> Valuation:
    """Value the training part by an algorithm."""
    there, train = data.table.names, data.parts["train"]
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
    given: dict[str, Any] = {"sample_weight": data.weights, "groups": data.blocks}
    valuator.fit(
        data.table.source.take(train),
        data.positive[train],
        sensitive_features={name: values.iloc[train] for name, values in data.protected.items()},
        **{name: values[train] for name, values in given.items() if values is not None},
    )
    return valuator.valuation_
