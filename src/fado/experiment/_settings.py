"""The frozen settings of an experiment, and the registry of metrics; `_config.py` reads the settings."""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from importlib.metadata import packages_distributions
from typing import Any, TypeVar

from fado._checks import ClassRegistry
from fado._messages import closest_names
from fado.experiment._estimators import LIGHTGBM, describe_object, make_estimator
from fado.experiment._section import Parameter
from fado.interventions import intervention_entries
from fado.metrics import RATIO_NAMES, Budget
from fado.tabular import MIN_GROUP_SIZE
from fado.utility import utility_class, utility_names
from fado.valuation import valuator_class, valuator_names

CROSSED, EACH = "crossed", "each"  # how several protected attributes are measured
BUDGET_FIELDS = {
    "fpr": "max_fpr",
    "selection_rate": "max_selection_rate",
    "top_k": "top_k",
    "threshold": "fixed_threshold",
}
GIVEN = "given"  # the method of a split that comes with data in memory

# Defaults that a store leaves out: the names of fits are made of what it has.
_USUAL: dict[str, dict[str, Any]] = {
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

# The values to try of one intervention: per key of its table a list, or one value.
Grid = dict[str, tuple[Any, ...] | Any]


@dataclass(frozen=True, kw_only=True)
class DataConfig:
    """The source of the table, and the roles of its columns."""

    path: str | None = None
    generator: str | None = None
    rows: int = 0
    variant: str = ""
    target: str
    positive: str | int | float | bool | None = None
    protected: tuple[str, ...]
    unknown: tuple[str | int | float | bool, ...] = ()
    drop: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    weight: str | None = None
    groups: str | None = None
    min_group_size: int = MIN_GROUP_SIZE
    given: bool = False


@dataclass(frozen=True)
class SplitConfig:
    """The split into parts: by the values of a column, at random by shares, or as given."""

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

    algorithms: tuple[str, ...] = ("oob",)
    bags: int = 10
    unseen_fraction: float = 0.2
    models: tuple[dict[str, Any], ...] = ()


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
    """How models are measured: one of four budgets, and further metrics."""

    max_fpr: float | None = None
    threshold: str = "test"
    bootstrap: int = 0
    groups: str = CROSSED
    max_selection_rate: float | None = None
    top_k: int | None = None
    fixed_threshold: float | None = None
    metrics: tuple[str, ...] = ()
    keep_scores: bool = False

    @property
    def budget(self) -> Budget:
        """The budget of decisions."""
        limits = {kind: getattr(self, name) for kind, name in BUDGET_FIELDS.items()}
        return Budget.read(next((own for own in limits.items() if own[1] is not None), None))


@dataclass(frozen=True)
class Config:
    """The whole configuration."""

    seed: int
    data: DataConfig
    split: SplitConfig
    valuation: ValuationConfig
    interventions: dict[str, Grid | bool | None]
    models: ModelsConfig
    evaluation: EvaluationConfig

    @property
    def on_scores(self) -> list[str]:
        """The keys of the interventions on scores in this experiment."""
        asked = self.interventions
        return [own.key for own in intervention_entries() if own.changes_scores and asked[own.key]]

    @property
    def attributes(self) -> tuple[str, ...]:
        """The protected attributes, if each is measured separately; none if they are crossed."""
        if self.evaluation.groups == CROSSED:
            return ()
        return tuple(expression.strip() for expression in self.data.protected)

    def flat(self) -> dict[str, Any]:
        """Return every setting by its place, for comparisons and reports."""
        settings = asdict(self)
        del settings["data"]["path"]
        for section, usual in _USUAL.items():
            for name, value in usual.items():
                if settings[section][name] == value:
                    settings[section].pop(name)
        return _flattened(settings, "")


def ratio_name(ratio: str, attribute: str | None) -> str:
    """Return the name of a ratio of one attribute.

    Examples
    --------
    >>> ratio_name("fpr_ratio", "sex")
    'fpr_ratio[sex]'
    """
    return ratio if attribute is None else f"{ratio}[{attribute}]"


def decides_data(name: str) -> bool:
    """Return whether a setting, by its place, changes the data or their parts."""
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
    """Objects that were passed in Python; a configuration has only their names."""

    estimator: Any = None
    space: Mapping[str, Any] | None = None
    metrics: Mapping[str, Callable[..., Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.estimator is not None:
            from sklearn.base import clone

            describe_object(self.estimator)
            object.__setattr__(self, "estimator", clone(self.estimator))  # the user may change theirs
        for name, function in self.metrics.items():
            check_metric_name(name)
            if not callable(function):
                raise TypeError(f"The metric {name!r} must be a function, got {function!r}.")


def estimator_of(config: Config, given: Given | None) -> Any:
    """Return the estimator that was passed in Python, or make the one that a configuration names."""
    if given is not None and given.estimator is not None:
        return given.estimator
    return make_estimator(config.models.estimator, config.models.pipeline)


PLUGIN_FIELDS = ("kind", "name", "module", "package")
_OURS = "fado."
_SHOWN = 80  # characters of what a store says


def plugins_used(config: Config) -> list[dict[str, str]]:
    """Return the origins of the valuators, utilities and interventions of other packages."""
    classes = _classes()
    used = []
    for kind, name in _names_used(config):
        module = classes[kind, name].__module__
        if not module.startswith(_OURS):
            package = ", ".join(packages_distributions().get(module.partition(".")[0], []))
            used.append(dict(zip(PLUGIN_FIELDS, (kind, name, module, package), strict=True)))
    return used


def lacking_plugins(config: Config, plugins: Sequence[Mapping[str, str]]) -> list[str]:
    """Name what the experiment of a store used and is not registered here, with its module."""
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
    """Return all registered classes by their kind and name."""
    return {
        **{("valuator", name): valuator_class(name) for name in valuator_names()},
        **{("utility", name): utility_class(name) for name in utility_names()},
        **{("intervention", entry.key): entry.kind for entry in intervention_entries()},
    }


def _names_used(config: Config) -> Iterator[tuple[str, str]]:
    """List the names that a configuration uses, each once."""
    found = {("valuator", name): None for name in config.valuation.algorithms}
    for key, grid in config.interventions.items():
        if grid:
            found["intervention", str(key)] = None
        named = grid.get("utilities", ()) if isinstance(grid, Mapping) else ()
        for name in named if isinstance(named, list | tuple) else ():
            found["utility", str(name)] = None
    yield from found


Function = TypeVar("Function", bound=Callable[..., Any])

_FUNCTIONS: Any = ClassRegistry("metric")
_NAME = re.compile(r"[A-Za-z]\w*")
_TAKEN = {"threshold", "fpr", "tpr", "selection_rate", "selected", *RATIO_NAMES}


def register_metric(name: str) -> Callable[[Function], Function]:
    """Register a metric under a name, for ``evaluation.metrics`` of a configuration.

    Parameters
    ----------
    name : str
        A word that no other metric has. The columns are ``validation_<name>`` and ``test_<name>``.

    Returns
    -------
    callable
        A decorator for a function that returns a number, or NaN if it is undefined. The function is called
        with the labels (an array of bool), the scores and the groups (an array of names) of the rows of one
        part. If it has parameters of these names, it also gets the ``threshold`` of decisions, the
        ``sample_weight`` (None without weights), and the other ``metrics`` of the part, a dict by name.

    See Also
    --------
    fado.experiment.Experiment : Takes further metrics as an argument, too.
    Results.remeasure : Measures all models again by other metrics.

    Examples
    --------
    >>> from fado.experiment import register_metric
    >>> @register_metric("accuracy")
    ... def accuracy(y_true, scores, groups, threshold):
    ...     return ((scores >= threshold) == y_true).mean()
    """
    check_metric_name(name)
    decorator: Callable[[Function], Function] = _FUNCTIONS.register(name)
    return decorator


def metric_names() -> tuple[str, ...]:
    """List the metrics, in the order in which they were registered."""
    names: tuple[str, ...] = _FUNCTIONS.names()
    return names


def metric_functions(
    names: Iterable[str], given: Mapping[str, Callable[..., Any]] | None = None
) -> dict[str, Callable[..., Any]]:
    """Find the functions of some names among given and registered ones."""
    known = {name: _FUNCTIONS[name] for name in metric_names()} | dict(given or {})
    found = {}
    for name in names:
        if name not in known:
            raise ValueError(
                f"There is no metric {name!r}{closest_names(name, list(known), ': register it, ')}"
                "or pass it in Python, as `metrics`."
            )
        found[name] = known[name]
    return found


def check_metric_name(name: Any) -> None:
    """Check the name of a metric."""
    if not isinstance(name, str) or not _NAME.fullmatch(name) or name.endswith(("_low", "_high")):
        raise ValueError(f"A metric's name must be a word, such as 'f1', got {name!r}.")
    if name in _TAKEN:
        raise ValueError(f"{name!r} is the name of a built-in metric: choose another name.")


def apply_metric(name: str, function: Callable[..., Any], *rows: Any, **offered: Any) -> float:
    """Return the value of a user's metric, or raise a ValueError if it fails.

    Examples
    --------
    >>> apply_metric("half", lambda y, scores, groups, threshold: threshold / 2, [], [], [], threshold=1)
    0.5
    """
    try:
        value = function(*rows, **_taken(function, offered))
    except MemoryError:
        raise
    except Exception as error:
        raise ValueError(f"The metric {name!r} failed with {type(error).__name__}: {error}") from error
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = math.inf
    if math.isinf(number):
        raise ValueError(f"The metric {name!r} must return a number or NaN, got {str(value)[:80]}.")
    return number


def _taken(function: Callable[..., Any], offered: Mapping[str, Any]) -> dict[str, Any]:
    """Select the arguments for which a function has parameters."""
    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError):  # of some that are written in C
        return {}
    return {name: value for name, value in offered.items() if name in parameters}


@register_metric("equalized_odds_ratio")
def _equalized_odds_ratio(y_true: Any, scores: Any, groups: Any, metrics: Mapping[str, float]) -> float:
    """Return the lesser of the ratios of false-positive and true-positive rates between groups."""
    ratios = metrics["fpr_ratio"], metrics["tpr_ratio"]
    return math.nan if any(map(math.isnan, ratios)) else min(ratios)
