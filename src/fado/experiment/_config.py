"""The configuration: what an experiment can set, read from TOML and checked."""

from __future__ import annotations

import math
import os
import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any

from fado._checks import MOST_ROWS, check_choice, check_probabilities
from fado._storage import remove_abandoned, replacing
from fado.experiment import _reader as reader
from fado.experiment._metrics import check_metrics, metric_names
from fado.experiment._models import (
    LIGHTGBM,
    Parameter,
    ParameterReader,
    describe_object,
    draw_models,
    is_object,
    make_estimator,
    parameter_names,
    parameter_reader,
    read_lightgbm,
    read_lightgbm_models,
    read_space,
)
from fado.experiment._reader import REQUIRED, Reader
from fado.interventions import Entry, Setting, intervention_entries
from fado.metrics import Budget
from fado.tabular import MIN_GROUP_SIZE
from fado.utility import utility_names
from fado.valuation import valuator_names

CROSSED, EACH = "crossed", "each"  # how several protected attributes are measured
GIVEN = "given"  # the method of a split that comes with data in memory
BUDGET_FIELDS = {
    "fpr": "max_fpr",
    "selection_rate": "max_selection_rate",
    "top_k": "top_k",
    "threshold": "fixed_threshold",
}
GENERATORS = ("account_fraud",)
VARIANTS = ("base", "I", "II", "III", "IV", "V")
MOST_SEEDS = 2**32 - 1
MOST_MODELS = MOST_BAGS = MOST_RESAMPLES = 100_000
MOST_TRIALS = 10_000_000
_DRAWN = 1_000  # models whose parameters are checked for a method that depends on them
_RESERVED = re.compile("intervention|model|training_rows|status|error|(?:validation|test)_.*", re.DOTALL)

_seed = reader.whole(0, MOST_SEEDS)
_labels = reader.list_of(reader.label)
_validation_share = reader.number("a number in [0, 1)", lambda value: 0 <= value < 1)

# The values to try of one intervention: per key of its table a list, or one value.
Grid = dict[str, tuple[Any, ...] | Any]


@dataclass(frozen=True, kw_only=True)
class DataConfig:
    """The source of the table, and the roles of its columns."""

    path: str | None = None
    generator: Annotated[str | None, reader.choice(GENERATORS)] = None
    rows: Annotated[int, reader.whole(100, MOST_ROWS)] = 0
    variant: Annotated[str, reader.choice(VARIANTS)] = ""
    target: str
    positive: Annotated[str | int | float | bool | None, reader.label] = None
    protected: Annotated[tuple[str, ...], reader.one_or_more(reader.text)]
    unknown: Annotated[tuple[str | int | float | bool, ...], reader.one_or_more(reader.label)] = ()
    drop: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    weight: str | None = None
    groups: str | None = None
    min_group_size: Annotated[int, reader.whole(0, MOST_ROWS)] = MIN_GROUP_SIZE
    given: bool = False


def _read_split(table: Any, place: str) -> SplitConfig:
    """Read the keys of the split's method."""
    method = table.get("method") if isinstance(table, Mapping) else None
    keys: dict[str, tuple[Reader, Any]] = {"method": (reader.choice(("column", "random")), REQUIRED)}
    if method == GIVEN:
        keys = {"method": (reader.text, REQUIRED), "validation": (reader.switch, True)}
    elif method == "column":
        keys |= {"column": (reader.text, REQUIRED), "train": (_labels, ()), "test": (_labels, ())}
        keys |= {"validation": (_labels_or_share, ())}
    elif method == "random":
        inner = reader.between(0, 1)
        keys |= {
            "train": (inner, REQUIRED),
            "validation": (_validation_share, 0.0),
            "test": (inner, REQUIRED),
        }
    parts = reader.read_table(table, place, keys)
    if method == GIVEN:
        return SplitConfig(GIVEN, None, (), (True,) if parts["validation"] else (), ())
    if method == "random":
        shares = [parts[part] for part in ("train", "validation", "test")]
        if abs(sum(shares) - 1) > 1e-9:
            raise ValueError(f"The shares of `{place}` must add up to 1, got {' + '.join(map(str, shares))}.")
        return SplitConfig("random", None, *((part,) for part in shares))
    part_of: dict[Any, str] = {}
    for part in ("train", "test", "validation"):
        values = parts[part]
        if part != "validation" and not values:
            raise ValueError(
                f"`{place}.{part}` is empty: list the values of {parts['column']!r} that it holds."
            )
        for value in values if isinstance(values, tuple) else ():
            if value in part_of:
                raise ValueError(
                    f"`{place}.{part}` holds {value!r}, which `{place}.{part_of[value]}` holds too."
                )
            part_of[value] = part
    return SplitConfig(**parts)


def _labels_or_share(value: Any, place: str) -> Any:
    if isinstance(value, list | tuple):
        return _labels(value, place)
    return reader.number("a list of values or a number in [0, 1)", lambda share: 0 <= share < 1)(value, place)


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
        return bool(self.validation) and (self.method != "random" or self.validation != (0.0,))


@dataclass(frozen=True)
class ValuationConfig:
    """How the training rows are valued."""

    algorithms: Annotated[tuple[str, ...], reader.list_of(reader.choice(valuator_names))] = ("oob",)
    bags: Annotated[int, reader.whole(1, MOST_BAGS)] = 10
    unseen_fraction: Annotated[float, reader.between(0, 1)] = 0.2
    models: Annotated[tuple[dict[str, Any], ...], read_lightgbm_models] = ()


@dataclass(frozen=True)
class ModelsConfig:
    """Which models are trained after every intervention."""

    count: Annotated[int, reader.whole(1, MOST_MODELS)] = 25
    seed: Annotated[int, _seed] = 0
    deadline: Annotated[float | None, reader.between(0)] = None
    space: Annotated[dict[str, Parameter], reader.as_it_is] = field(default_factory=dict)  # see `read_models`
    estimator: str = LIGHTGBM
    pipeline: tuple[str, ...] = ()


@dataclass(frozen=True)
class EvaluationConfig:
    """How models are measured: one of four budgets, and further metrics."""

    max_fpr: Annotated[float | None, reader.between(0, 1)] = None
    threshold: Annotated[str, reader.choice(("test", "validation"))] = "test"
    bootstrap: Annotated[int, reader.whole(0, MOST_RESAMPLES)] = 0
    groups: Annotated[str, reader.choice((CROSSED, EACH))] = CROSSED
    max_selection_rate: Annotated[float | None, reader.between(0, 1)] = None
    top_k: Annotated[int | None, reader.whole(1, MOST_ROWS)] = None
    fixed_threshold: Annotated[float | None, reader.number("a number", math.isfinite)] = None
    metrics: tuple[str, ...] = ()
    keep_scores: bool = False

    @property
    def budget(self) -> Budget:
        """The budget of decisions."""
        limits = {kind: getattr(self, name) for kind, name in BUDGET_FIELDS.items()}
        return Budget.read(next((item for item in limits.items() if item[1] is not None), None))

    def with_budget(self, budget: Budget) -> EvaluationConfig:
        """Return the same with another budget."""
        limits: Any = dict.fromkeys(BUDGET_FIELDS.values()) | {BUDGET_FIELDS[budget.kind]: budget.limit}
        return replace(self, **limits)


UTILITY = "linear"  # if a configuration names none


def read_interventions(table: Any, place: str) -> dict[str, Grid | bool | None]:
    """Return the grid of every registered intervention by its key; see `Config`."""
    keys = {}
    for entry in intervention_entries():
        read = partial(_read_entry, entry)
        keys[entry.key] = (read, read(entry.by_default, f"{place}.{entry.key}"))
    interventions = reader.read_table(table, place, keys)
    if not any(interventions.values()):
        raise ValueError(f"`{place}` has none: switch at least one on.")
    return interventions


def _read_entry(entry: Entry, value: Any, place: str) -> Grid | bool | None:
    """Read a switch, or a table of the values to try."""
    if not entry.settings and not entry.uses_values:
        return reader.switch(value, place)
    if value is False:
        return None
    keys: dict[str, tuple[Reader, Any]] = {}
    if entry.uses_values:
        keys["utilities"] = (reader.list_of(reader.choice(utility_names)), (UTILITY,))
        keys["alphas"] = (reader.list_of(reader.share), REQUIRED)
    for setting in entry.settings:
        read = _setting_reader(setting)
        default = read(setting.default, place)
        if setting.plural is None:
            keys[setting.name] = (read, default)
        else:
            keys[setting.plural] = (reader.list_of(read), (default,))
    grid = reader.read_table({} if value is True and not entry.uses_values else value, place, keys)
    for name, values in grid.items():
        if values == ():
            raise ValueError(f"`{place}.{name}` is empty: list at least one.")
    return grid


def _setting_reader(setting: Setting) -> Reader:
    """Return the reader of one value of a setting."""
    if setting.kind == "choice":
        return reader.choice(setting.choices)
    if setting.kind == "number":
        return reader.number("a number of at least 0", lambda value: value >= 0)
    if setting.kind == "share":
        return reader.share
    above_0 = reader.number("above 0", bool)  # a minimum ratio
    return lambda value, place: above_0(reader.share(value, place), place)


@dataclass(frozen=True, kw_only=True)
class Config:
    """The whole configuration.

    The grid of an intervention has the values to try by key; an intervention without settings has a switch.
    """

    seed: Annotated[int, _seed] = 0
    data: DataConfig
    split: Annotated[SplitConfig, _read_split]
    valuation: ValuationConfig = field(default_factory=ValuationConfig)
    interventions: Annotated[dict[str, Grid | bool | None], read_interventions]
    models: ModelsConfig
    evaluation: EvaluationConfig = field(default_factory=EvaluationConfig)

    @property
    def on_scores(self) -> list[str]:
        """The keys of the interventions on scores in this experiment."""
        return [
            entry.key
            for entry in intervention_entries()
            if entry.changes_scores and self.interventions[entry.key]
        ]

    @property
    def attributes(self) -> tuple[str, ...]:
        """The protected attributes, if each is measured separately; none if they are crossed."""
        if self.evaluation.groups == CROSSED:
            return ()
        return tuple(expression.strip() for expression in self.data.protected)

    def flat(self) -> dict[str, Any]:
        """Return every setting by its place, for comparisons and reports.

        Settings that are newer than the format of stores are left out at their defaults: the names of fits
        are made of the others.
        """
        settings = asdict(self)
        del settings["data"]["path"]
        for section, usual, names in (
            ("models", ModelsConfig(), ("estimator", "pipeline")),
            ("evaluation", EvaluationConfig(), ("groups", *BUDGET_FIELDS.values(), "metrics", "keep_scores")),
        ):
            for name in names:
                if settings[section][name] == getattr(usual, name):
                    del settings[section][name]
        return _flattened(settings)


def ratio_name(ratio: str, attribute: str | None) -> str:
    """Return the name of a ratio of one attribute.

    Examples
    --------
    >>> ratio_name("fpr_ratio", "sex")
    'fpr_ratio[sex]'
    """
    return ratio if attribute is None else f"{ratio}[{attribute}]"


def _flattened(table: dict[str, Any]) -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in table.items():
        if isinstance(value, dict) and value:
            flat |= {f"{key}.{name}": item for name, item in _flattened(value).items()}
        else:
            flat[key] = list(value) if isinstance(value, tuple) else value
    return flat


def read_toml(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Read a TOML file, with or without a byte-order mark; a relative path of the data is relative to it."""
    path = Path(path)
    subject = f"The configuration {str(path)!r}"
    if path.is_dir():
        raise ValueError(f"{subject} is a directory: name a TOML file.")
    if not path.exists():
        raise FileNotFoundError(f"There is no configuration {str(path)!r}.")
    try:
        content = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"{subject} is not UTF-8 text: save it as UTF-8.") from error
    except OSError as error:
        raise ValueError(f"{subject} cannot be read: {error.strerror or error}.") from error
    if not content.strip():
        raise ValueError(f"{subject} is empty: `fado experiment init` writes one to start from.")
    try:
        table = tomllib.loads(content)
    except RecursionError:
        raise ValueError(f"{subject} is nested too deeply.") from None
    except ValueError as error:  # also of a number that Python does not read
        raise ValueError(f"{subject} is not TOML: {error}.") from error
    data = table.get("data")
    if isinstance(data, dict) and isinstance(data.get("path"), str) and data["path"]:
        data["path"] = str(path.parent / data["path"])
    return table


def config_from(
    table: Any,
    *,
    estimator: Any = None,
    space: Mapping[str, Any] | None = None,
    metrics: Mapping[str, Callable[..., Any]] | None = None,
) -> Config:
    """Read and check a configuration, with what is passed in Python: see `Experiment`."""
    models = {"estimator": None if estimator is None else describe_object(estimator), "space": space}
    passed = {key: value for key, value in models.items() if value is not None}
    if passed and isinstance(table, Mapping) and isinstance(table.get("models", {}), Mapping):
        table = {**table, "models": {**table.get("models", {}), **passed}}
    config = reader.read_record(Config, table)
    config = replace(
        config,
        data=_checked_data(config.data),
        models=read_models(config.models, estimator),
        evaluation=_checked_evaluation(config.evaluation, check_metrics(metrics)),
    )
    _check_valuation(config.valuation)
    reader.choice((GIVEN,) if config.data.given else ("column", "random"))(
        config.split.method, "split.method"
    )
    _check_size(config)
    if config.on_scores:  # which need scores and validation rows
        place = f"`interventions.{config.on_scores[0]}`"
        if not config.split.has_validation:
            raise ValueError(
                f"{place} adjusts scores on validation rows, but `split.validation` is empty: change one of "
                "them."
            )
        if config.evaluation.groups != CROSSED:
            raise ValueError(
                f"{place} compares the groups of all attributes crossed, but `evaluation.groups` compares "
                "those of each attribute: remove one of them."
            )
        config = replace(config, evaluation=replace(config.evaluation, keep_scores=True))
    if config.evaluation.threshold == "validation" and not config.split.has_validation:
        raise ValueError(
            '`evaluation.threshold` is "validation", but `split.validation` is empty: change one of them.'
        )
    return config


def _checked_data(data: DataConfig) -> DataConfig:
    if (data.path is not None) + (data.generator is not None) + data.given != 1:
        raise ValueError("`data` must have either a `path` or a `generator`.")
    if data.generator is not None:
        data = replace(data, rows=data.rows or 100_000, variant=data.variant or VARIANTS[0])
    elif data.rows or data.variant:
        key = "rows" if data.rows else "variant"
        raise ValueError(f"`data.{key}` is not a key of the configuration: it needs a `generator`.")
    for key in ("weight", "groups"):
        if getattr(data, key) == data.target:
            raise ValueError(f"`data.{key}` is {data.target!r}, the target: name another column.")
    for key, unseen in (("drop", data.drop), ("weight", (data.weight,)), ("groups", (data.groups,))):
        both = sorted(set(data.exclude).intersection(unseen))
        if both:
            raise ValueError(f"`data.exclude` names {both[0]!r}, which no model uses: it is in `data.{key}`.")
    if not data.protected:
        raise ValueError("`data.protected` is empty: name at least one protected attribute.")
    return data


def _check_valuation(valuation: ValuationConfig) -> None:
    if not valuation.algorithms:
        listed = ", ".join(map(repr, valuator_names()))
        raise ValueError(f"`valuation.algorithms` is empty: list at least one of {listed}.")
    if valuation.bags * valuation.unseen_fraction < 1 - 1e-9:
        raise ValueError(
            f"`valuation.bags` ({valuation.bags}) times `valuation.unseen_fraction` "
            f"({valuation.unseen_fraction:g}) must be at least 1, so that every row is left out once."
        )


def read_models(models: ModelsConfig, estimator: Any) -> ModelsConfig:
    """Read the space of the parameters, and check that models give probabilities."""
    name, pipeline, place = models.estimator, models.pipeline, "models.space"
    is_plain = name == LIGHTGBM and not pipeline
    read: ParameterReader = read_lightgbm
    made = None
    if not is_plain:
        if estimator is not None and pipeline:
            raise ValueError("`models.pipeline` needs a named estimator: put the steps into `estimator`.")
        if estimator is None and is_object(name):
            raise ValueError(
                f"`models.estimator` is {name!r}, which was passed in Python: pass it again, by "
                "`Experiment(..., estimator=...)`."
            )
        made = make_estimator(name, pipeline, estimator)
        title = name if estimator is None else type(estimator).__name__
        names = parameter_names(made) if estimator is None else list(made.get_params(deep=True))
        read = parameter_reader(title, names)
    models = replace(models, space=read_space(models.space, place, read))
    if is_plain and not models.space:
        raise ValueError(f"`{place}` is empty: set at least `n_estimators`.")
    if made is not None:
        from sklearn.base import clone

        drawn = draw_models(models.space, min(models.count, _DRAWN), models.seed)
        # only texts and switches can decide whether there are probabilities
        words = [
            {name: value for name, value in model.items() if isinstance(value, str | bool | None)}
            for model in drawn
        ]
        for settings in {repr(settings): settings for settings in words}.values():
            where = "models.estimator" if estimator is None else "estimator"
            check_probabilities(where, clone(made).set_params(**settings))
    taken = {"algorithm", "utility", "alpha"}
    for entry in intervention_entries():
        taken |= {setting.name for setting in entry.settings} | set(entry.fixed)
    for parameter in models.space:
        if parameter in taken or _RESERVED.fullmatch(parameter):
            raise ValueError(
                f"`{place}.{parameter}` has the name of another column of the results: add a step before it, "
                'such as `models.pipeline = ["sklearn.preprocessing.StandardScaler"]`, which renames it to '
                f"{name.rpartition('.')[2].lower()}__{parameter}."
            )
    return models


def _checked_evaluation(
    evaluation: EvaluationConfig, metrics: Mapping[str, Callable[..., Any]]
) -> EvaluationConfig:
    """Check that there is one budget, and that all metrics are known."""
    budgets = [name for name in BUDGET_FIELDS.values() if getattr(evaluation, name) is not None]
    if len(budgets) > 1:
        both = " and ".join(f"`evaluation.{name}`" for name in budgets)
        raise ValueError(f"{both} both set the threshold: keep one of them.")
    named = reader.list_of(reader.choice((*metric_names(), *metrics)))(
        evaluation.metrics, "evaluation.metrics"
    )
    evaluation = replace(evaluation, metrics=tuple(dict.fromkeys([*named, *metrics])))
    return evaluation if budgets else replace(evaluation, max_fpr=0.05)


def _check_size(config: Config) -> None:
    """Raise a ValueError if the grid is too large, before it is listed."""
    sizes = {}
    for key, grid in config.interventions.items():
        lists = (
            [values for values in grid.values() if isinstance(values, tuple)]
            if isinstance(grid, dict)
            else []
        )
        lists += [config.valuation.algorithms] if isinstance(grid, dict) and "utilities" in grid else []
        sizes[key] = math.prod(map(len, lists)) * (grid not in (None, False))
    trials = sum(sizes.values()) * config.models.count
    if trials > MOST_TRIALS:
        largest = max(sizes, key=lambda key: sizes[key])
        raise ValueError(
            f"`interventions.{largest}` has {sizes[largest]:,} combinations of settings, and all with "
            f"`models.count` = {config.models.count:,} make {trials:,} trials, more than {MOST_TRIALS:,}: "
            "list fewer."
        )


PRESETS = ("quick", "paper")


def preset_text(preset: str) -> str:
    """Return a preset's TOML text.

    Examples
    --------
    >>> "count = 25" in preset_text("paper")
    True
    """
    check_choice("preset", preset, PRESETS)
    return (files("fado.experiment") / "templates" / f"{preset}.toml").read_text(encoding="utf-8")


def write_preset(path: str | os.PathLike[str], preset: str = "quick") -> None:
    """Write a commented configuration that runs without changes; an existing file is not replaced."""
    content = preset_text(preset)
    if Path(path).exists():
        remove_abandoned(Path(path))
        raise FileExistsError(f"{str(path)!r} exists already: name another file, or delete it first.")
    with replacing(path, "The configuration") as temporary:
        temporary.write_text(content, encoding="utf-8")
