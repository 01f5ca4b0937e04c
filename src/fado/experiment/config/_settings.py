"""The settings of an experiment, checked and frozen; `_config.py` reads them."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from fado.experiment.config._estimators import LIGHTGBM
from fado.experiment.config._space import Parameter
from fado.interventions import intervention_entries
from fado.metrics import Budget
from fado.tabular import MIN_GROUP_SIZE

__all__ = [
    "CROSSED",
    "EACH",
    "GIVEN",
    "Config",
    "DataConfig",
    "EvaluationConfig",
    "Grid",
    "ModelsConfig",
    "SplitConfig",
    "ValuationConfig",
    "decides_data",
    "former_settings",
    "ratio_name",
]

CROSSED, EACH = "crossed", "each"  # how several protected attributes are measured
GIVEN = "given"  # the method of a split that comes with data in memory

# What settings that came later were before there were any.
_BEFORE: dict[str, dict[str, Any]] = {
    "data": {"given": False},
    "models": {"estimator": LIGHTGBM, "pipeline": ()},
    "evaluation": {
        "groups": CROSSED,
        "max_fpr": None,
        "max_selection_rate": None,
        "top_k": None,
        "fixed_threshold": None,
        "metrics": (),
        "keep_scores": False,
    },
}

# What is tried of one intervention: per key of its table a list, or a setting that has one value.
Grid = dict[str, Any]

_LATER_INTERVENTIONS = ("fairlearn_grid",)  # beside those on scores: earlier stores say nothing of them


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
    min_group_size: int = MIN_GROUP_SIZE
    given: bool = False


@dataclass(frozen=True)
class SplitConfig:
    """Which rows train, validate and test: by the values of a column, at random by shares, or as given.

    With a column, `validation` may be a number: the share of the rows of `train` that is drawn for it. Of
    data that are given, it only says whether there is such a part.
    """

    method: str
    column: str | None
    train: tuple[Any, ...]
    validation: tuple[Any, ...] | float
    test: tuple[Any, ...]

    @property
    def has_validation(self) -> bool:
        """Whether there is a validation part."""
        if isinstance(self.validation, tuple) and self.method == "random":
            return self.validation != (0.0,)
        return bool(self.validation)


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
    estimator: str = LIGHTGBM
    pipeline: tuple[str, ...] = ()


@dataclass(frozen=True)
class EvaluationConfig:
    """How models are measured: at one budget of the four, by the metrics that all have and some more."""

    max_fpr: float | None
    threshold: str
    bootstrap: int
    groups: str = CROSSED
    max_selection_rate: float | None = None
    top_k: int | None = None
    fixed_threshold: float | None = None
    metrics: tuple[str, ...] = ()
    keep_scores: bool = False

    @property
    def budget(self) -> Budget:
        """What sets the threshold of decisions."""
        if self.max_selection_rate is not None:
            return Budget("selection_rate", self.max_selection_rate)
        if self.top_k is not None:
            return Budget("top_k", self.top_k)
        if self.fixed_threshold is not None:
            return Budget("threshold", self.fixed_threshold)
        return Budget("fpr", 0.05 if self.max_fpr is None else self.max_fpr)


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

    @property
    def attributes(self) -> tuple[str, ...]:
        """The protected attributes, if each is measured for itself; none if they are crossed."""
        if self.evaluation.groups == CROSSED:
            return ()
        return tuple(expression.strip() for expression in self.data.protected)

    def flat(self) -> dict[str, Any]:
        """Give every setting by its place, as two configurations are compared and as a report shows one.

        Where the data came from is left out: what they are is for their fingerprint to say. Fits are named
        by the settings of their evaluation: what became one of them later is told if it is not what all fits
        before had.
        """
        settings = asdict(self)
        settings.pop("source")
        settings["data"].pop("path")
        for entry in intervention_entries():
            later = entry.changes_scores or entry.key in _LATER_INTERVENTIONS
            if later and not settings["interventions"].get(entry.key):
                settings["interventions"].pop(entry.key, None)
        for section, before in _BEFORE.items():
            for name, value in before.items():
                if settings[section][name] == value:
                    settings[section].pop(name)
        return _flattened(settings, "")


def ratio_name(ratio: str, attribute: str | None) -> str:
    """Give what a ratio is called if it is that of one attribute.

    Examples
    --------
    >>> ratio_name("fpr_ratio", "sex")
    'fpr_ratio[sex]'
    """
    return ratio if attribute is None else f"{ratio}[{attribute}]"


def former_settings(before: dict[str, Any], now: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Give the flat settings of a store and of a configuration in a form in which they can be compared.

    Releases that knew no small groups say nothing of them: whether there are any is for the fingerprint of
    the data to say.

    Examples
    --------
    >>> former_settings({"seed": 0}, {"seed": 0, "data.min_group_size": 30, "evaluation.groups": "each"})
    ({'evaluation.groups': 'crossed', 'seed': 0}, {'evaluation.groups': 'each', 'seed': 0})
    """
    size = "data.min_group_size"
    told = {name: value for name, value in now.items() if name != size or size in before}
    return {"evaluation.groups": CROSSED} | before, {"evaluation.groups": CROSSED} | told


def decides_data(name: str) -> bool:
    """Tell whether a setting, by its place, decides what the data or their parts are."""
    return name.startswith(("data.", "split.", "seed")) and name != "data.exclude"


def _flattened(table: dict[str, Any], place: str) -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in table.items():
        here = f"{place}.{key}" if place else key
        if isinstance(value, dict) and value:
            flat |= _flattened(value, here)
        else:
            flat[here] = list(value) if isinstance(value, tuple) else value
    return flat
