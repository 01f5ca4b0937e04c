"""The settings of an experiment, checked and frozen; `_config.py` reads them."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from fado.experiment.config._space import Parameter

__all__ = [
    "Config",
    "DataConfig",
    "EvaluationConfig",
    "Grid",
    "ModelsConfig",
    "SplitConfig",
    "ValuationConfig",
]

# What is tried of one intervention: per key of its table a list, or a setting that has one value.
Grid = dict[str, Any]


@dataclass(frozen=True)
class DataConfig:
    """Where the table comes from, and what its columns are."""

    path: str | None
    generator: str | None
    rows: int
    variant: str
    target: str
    positive: str | int | float | bool | None
    protected: tuple[str, ...]
    drop: tuple[str, ...]
    exclude: tuple[str, ...]
    weight: str | None = None
    groups: str | None = None


@dataclass(frozen=True)
class SplitConfig:
    """Which rows train, choose and judge: by the values of a column, or at random by shares."""

    method: str
    column: str | None
    train: tuple[Any, ...]
    validation: tuple[Any, ...]
    test: tuple[Any, ...]

    @property
    def has_validation(self) -> bool:
        """Whether there is a validation part."""
        return self.validation not in ((), (0.0,))


@dataclass(frozen=True)
class ValuationConfig:
    """How the training rows are valued."""

    algorithms: tuple[str, ...]
    bags: int
    unseen_fraction: float
    models: tuple[dict[str, Any], ...]


@dataclass(frozen=True)
class ModelsConfig:
    """Which models are trained after every intervention."""

    count: int
    seed: int
    deadline: float | None
    space: dict[str, Parameter]


@dataclass(frozen=True)
class EvaluationConfig:
    """How models are judged."""

    max_fpr: float
    threshold: str
    bootstrap: int


@dataclass(frozen=True)
class Config:
    """The whole configuration, with the plain data that it was read from.

    `interventions` maps the key of every registered intervention to its grid, or, if it has nothing to set,
    to whether it is switched on; None stands for one that is not asked for.
    """

    seed: int
    data: DataConfig
    split: SplitConfig
    valuation: ValuationConfig
    interventions: dict[str, Grid | bool | None]
    models: ModelsConfig
    evaluation: EvaluationConfig
    source: dict[str, Any] = field(repr=False, compare=False)

    def flat(self) -> dict[str, Any]:
        """Give every setting by its place, as two configurations are compared and as a report shows one.

        Where the data came from is left out: what they are is for their fingerprint to say.
        """
        settings = asdict(self)
        settings.pop("source")
        settings["data"].pop("path")
        return _flattened(settings, "")


def _flattened(table: dict[str, Any], place: str) -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in table.items():
        here = f"{place}.{key}" if place else key
        if isinstance(value, dict) and value:
            flat |= _flattened(value, here)
        else:
            flat[here] = list(value) if isinstance(value, tuple) else value
    return flat
