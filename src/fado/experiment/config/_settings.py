"""The settings of an experiment, checked and frozen; `_config.py` reads them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import asdict, dataclass, field
from importlib.metadata import packages_distributions
from typing import Any

from fado.experiment.config._estimators import LIGHTGBM, describe_object
from fado.experiment.config._metrics import check_metric_name
from fado.experiment.config._section import Parameter
from fado.interventions import intervention_entries
from fado.metrics import Budget
from fado.tabular import MIN_GROUP_SIZE
from fado.utility import utility_class, utility_names
from fado.valuation import valuator_class, valuator_names

__all__ = [
    "CROSSED",
    "EACH",
    "GIVEN",
    "PLUGIN_FIELDS",
    "Config",
    "DataConfig",
    "EvaluationConfig",
    "Given",
    "Grid",
    "ModelsConfig",
    "SplitConfig",
    "ValuationConfig",
    "decides_data",
    "lacking_plugins",
    "plugins_used",
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
    """Which rows train, validate and test: by the values of a column, at random by shares, or as given."""

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
    """The whole configuration, with the plain data that it was read from."""

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
        """Give every setting by its place, as two configurations are compared and as a report shows one."""
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


@dataclass(frozen=True)
class Given:
    """Objects that no file can hold; a configuration notes what they are called."""

    estimator: Any = None
    space: Mapping[str, Any] | None = None
    metrics: Mapping[str, Callable[..., Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.estimator is not None:
            from sklearn.base import clone

            describe_object(self.estimator)
            object.__setattr__(self, "estimator", clone(self.estimator))  # the user's may change
        for name, function in self.metrics.items():
            check_metric_name(name)
            if not callable(function):
                raise TypeError(f"The metric {name!r} must be a function, got {function!r}.")

    def added_to(self, table: Any) -> Any:
        """Give a configuration that names what is given; one that is none stays for its reader to refuse."""
        if not isinstance(table, Mapping):
            return table
        named = deepcopy(dict(table))
        if self.estimator is not None:
            _section(named, "models")["estimator"] = describe_object(self.estimator)
        if self.space is not None:
            _section(named, "models")["space"] = deepcopy(dict(self.space))
        if self.metrics:
            evaluation = _section(named, "evaluation")
            before = evaluation.get("metrics", [])
            if isinstance(before, list | tuple):
                evaluation["metrics"] = [*before, *(name for name in self.metrics if name not in before)]
        return named


def _section(table: dict[str, Any], name: str) -> dict[str, Any]:
    """Give a table of the configuration, to be changed, or an empty one that nobody reads."""
    own = table.setdefault(name, {})
    return own if isinstance(own, dict) else {}


PLUGIN_FIELDS = ("kind", "name", "module", "package")
_OURS = "fado."
_SHOWN = 80  # characters of what a store says


def plugins_used(config: Config) -> list[dict[str, str]]:
    """Say where the valuators, utilities and interventions come from that are not of this package."""
    classes = _classes()
    used = []
    for kind, name in _names_used(config):
        module = classes[kind, name].__module__
        if not module.startswith(_OURS):
            package = ", ".join(packages_distributions().get(module.partition(".")[0], []))
            used.append(dict(zip(PLUGIN_FIELDS, (kind, name, module, package), strict=True)))
    return used


def lacking_plugins(config: Config, plugins: Sequence[Mapping[str, str]]) -> list[str]:
    """Name what a store's experiment used and nobody has registered here, with the module it came from."""
    registered = _classes()
    noted = {(own["kind"], own["name"]): own for own in plugins}
    lacking = []
    for kind, name in _names_used(config):
        if (kind, name) not in registered:
            told = f"the {kind} {name[:_SHOWN]!r}"
            origin = noted.get((kind, name))
            if origin is not None:
                of = f" of the package {origin['package'][:_SHOWN]!r}" if origin["package"] else ""
                told += f" (module {origin['module'][:_SHOWN]!r}{of})"
            lacking.append(told)
    return lacking


def _classes() -> dict[tuple[str, str], Any]:
    """Give all registered classes by their kind and name."""
    return {
        **{("valuator", name): valuator_class(name) for name in valuator_names()},
        **{("utility", name): utility_class(name) for name in utility_names()},
        **{("intervention", entry.key): entry.kind for entry in intervention_entries()},
    }


def _names_used(config: Config) -> Iterator[tuple[str, str]]:
    """List what a configuration asks for, each once; what a store says may be of any kind."""
    found = {("valuator", name): None for name in config.valuation.algorithms}
    for key, grid in config.interventions.items():
        if grid:
            found["intervention", str(key)] = None
        named = grid.get("utilities", ()) if isinstance(grid, Mapping) else ()
        for name in named if isinstance(named, list | tuple) else ():
            found["utility", str(name)] = None
    yield from found
