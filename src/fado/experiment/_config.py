"""The configuration: reads TOML, checks it, and returns frozen settings."""

from __future__ import annotations

import math
import os
import re
import tomllib
from collections.abc import Callable
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from typing import Any

from fado._checks import MOST_ROWS, check_probabilities
from fado._storage import remove_abandoned, replacing
from fado.experiment._estimators import LIGHTGBM, describe_object, is_object, make_estimator, parameter_names
from fado.experiment._section import (
    MOST_MODELS,
    MOST_SEEDS,
    REQUIRED,
    Parameter,
    Reader,
    Section,
    as_number,
    as_share,
    as_text,
    draw_models,
    plain_reader,
    read_parameter,
    read_space,
    shown,
)
from fado.experiment._settings import (
    BUDGET_FIELDS,
    CROSSED,
    EACH,
    GIVEN,
    Config,
    DataConfig,
    EvaluationConfig,
    Given,
    Grid,
    ModelsConfig,
    SplitConfig,
    ValuationConfig,
    metric_names,
)
from fado.interventions import Entry, Setting, intervention_entries
from fado.tabular import MIN_GROUP_SIZE
from fado.utility import utility_names
from fado.valuation import valuator_names

GENERATORS = ("account_fraud",)
VARIANTS = ("base", "I", "II", "III", "IV", "V")
MOST_BAGS = 100_000
MOST_RESAMPLES = 100_000
_BUDGETS = tuple(BUDGET_FIELDS.values())
MOST_TRIALS = 10_000_000


def read_config(path: str | os.PathLike[str], given: Given | None = None) -> Config:
    """Read and check a TOML file; a relative path of the data is relative to it."""
    path = Path(path)
    if path.is_dir():
        raise ValueError(f"The configuration {str(path)!r} is a directory: name a TOML file.")
    if not path.exists():
        raise FileNotFoundError(f"There is no configuration {str(path)!r}.")
    return config_from(_toml(path), path.parent, given=given)


def _toml(path: Path) -> dict[str, Any]:
    """Read a TOML file, with or without a byte-order mark."""
    subject = f"The configuration {str(path)!r}"
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"{subject} is not UTF-8 text: save it as UTF-8.") from error
    except OSError as error:
        raise ValueError(f"{subject} cannot be read: {error.strerror or error}.") from error
    if not text.strip():
        raise ValueError(f"{subject} is empty: `fado experiment init` writes one to start from.")
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise ValueError(f"{subject} is nested too deeply.") from None
    except ValueError as error:  # also of a number that Python does not read
        raise ValueError(f"{subject} is not TOML: {error}.") from error


def config_from(
    table: dict[str, Any], directory: Path | None = None, *, given: Given | None = None
) -> Config:
    """Check a configuration."""
    top, given = Section(table), Given() if given is None else given
    models = {} if given.estimator is not None or given.space is not None else REQUIRED
    interventions, data = top.section("interventions"), _data(top.section("data"), directory)
    config = Config(
        seed=top.whole("seed", 0, at_most=MOST_SEEDS),
        data=data,
        split=_split(top.section("split"), given=data.given),
        valuation=_valuation(top.section("valuation", {})),
        interventions=read_interventions(interventions),
        models=_models(top.section("models", models), given),
        evaluation=_evaluation(top.section("evaluation", {}), given),
    )
    top.done()
    _check_size(config)
    config = _with_kept_scores(config)
    if config.evaluation.threshold == "validation" and not config.split.has_validation:
        raise ValueError(
            '`evaluation.threshold` is "validation", but `split.validation` is empty: change one of them.'
        )
    return config


def _with_kept_scores(config: Config) -> Config:
    """Save scores if an intervention changes them, which also needs validation rows."""
    if not config.on_scores:
        return config
    place = f"`interventions.{config.on_scores[0]}`"
    if not config.split.has_validation:
        raise ValueError(
            f"{place} adjusts scores on validation rows, but `split.validation` is empty: change one of them."
        )
    if config.evaluation.groups != CROSSED:
        raise ValueError(
            f"{place} compares the groups of all attributes crossed, but `evaluation.groups` compares those "
            "of each attribute: remove one of them."
        )
    return replace(config, evaluation=replace(config.evaluation, keep_scores=True))


def _check_size(config: Config) -> None:
    """Raise a ValueError if the grid is too large, before it is listed."""
    sizes = {entry.key: _n_settings(config, entry.key) for entry in intervention_entries()}
    trials = sum(sizes.values()) * config.models.count
    if trials > MOST_TRIALS:
        largest = max(sizes, key=lambda key: sizes[key])
        raise ValueError(
            f"`interventions.{largest}` has {sizes[largest]:,} combinations of settings, and all with "
            f"`models.count` = {config.models.count:,} make {trials:,} trials, more than {MOST_TRIALS:,}: "
            "list fewer."
        )


def _n_settings(config: Config, key: str) -> int:
    """Count the combinations of settings of one intervention."""
    grid = config.interventions.get(key)
    if not isinstance(grid, dict):
        return int(bool(grid))
    lists = [len(values) for values in grid.values() if isinstance(values, tuple)]
    algorithms = len(config.valuation.algorithms) if "utilities" in grid else 1
    return algorithms * math.prod(lists)


def _data(section: Section, directory: Path | None) -> DataConfig:
    path = section.text("path") if "path" in section else None
    generator = section.text("generator", choices=GENERATORS) if "generator" in section else None
    given = section.switch("given", False)
    if (path is not None) + (generator is not None) + given != 1:
        raise ValueError("`data` must have either a `path` or a `generator`.")
    if path is not None and directory is not None:
        path = str(directory / path)
    positive = section.take("positive", None)
    if positive is not None and not isinstance(positive, str | int | float):
        raise ValueError(f"`data.positive` must be a label of the target, got {shown(positive)}.")
    protected = section.take("protected")
    protected = [protected] if isinstance(protected, str) else protected
    unknown = section.take("unknown", ())
    unknown = tuple(unknown) if isinstance(unknown, list | tuple) else (unknown,)
    if not all(isinstance(value, str | int | float) for value in unknown):
        raise ValueError(f"`data.unknown` must be a value or a list of values, got {shown(unknown)}.")
    data = DataConfig(
        path=path,
        generator=generator,
        rows=section.whole("rows", 100_000, 100, at_most=MOST_ROWS) if generator is not None else 0,
        variant=section.text("variant", "base", VARIANTS) if generator is not None else "",
        target=section.text("target"),
        positive=positive,
        protected=Section({"protected": protected}, "data").texts("protected"),
        unknown=unknown,
        drop=section.texts("drop", ()),
        exclude=section.texts("exclude", ()),
        weight=section.text("weight") if "weight" in section else None,
        groups=section.text("groups") if "groups" in section else None,
        min_group_size=section.whole("min_group_size", MIN_GROUP_SIZE, at_most=MOST_ROWS),
        given=given,
    )
    for key in ("weight", "groups"):
        if getattr(data, key) == data.target:
            raise ValueError(f"`data.{key}` is {data.target!r}, the target: name another column.")
    section.done()
    for key, unseen in (("drop", data.drop), ("weight", (data.weight,)), ("groups", (data.groups,))):
        both = sorted(set(data.exclude).intersection(unseen))
        if both:
            raise ValueError(f"`data.exclude` names {both[0]!r}, which no model uses: it is in `data.{key}`.")
    if not data.protected:
        raise ValueError("`data.protected` is empty: name at least one protected attribute.")
    return data


def _split(section: Section, *, given: bool) -> SplitConfig:
    method = section.text("method", choices=(GIVEN,) if given else ("column", "random"))
    column: str | None = None
    parts: dict[str, Any]
    if method == GIVEN:
        parts = {"train": (), "test": ()}
        parts["validation"] = (True,) if section.switch("validation", True) else ()
    elif method == "column":
        column = section.text("column")
        parts = {part: section.different(part, [], _label) for part in ("train", "test")}
        for part, values in parts.items():
            if not values:
                raise ValueError(f"`split.{part}` is empty: list the values of {column!r} that it holds.")
        if isinstance(section.take("validation", []), list | tuple):
            parts["validation"] = section.different("validation", [], _label)
        seen: dict[Any, str] = {}
        for part, values in parts.items():
            for value in values:
                if value in seen:
                    raise ValueError(
                        f"`split.{part}` holds {value!r}, which `split.{seen[value]}` holds too."
                    )
                seen[value] = part
        if "validation" not in parts:
            parts["validation"] = _share(section, "validation", "a list of values or a number in [0, 1)")
    else:
        shares = {
            "train": section.number("train", above=0, below=1),
            "validation": _share(section, "validation", "a number in [0, 1)"),
            "test": section.number("test", above=0, below=1),
        }
        if abs(sum(shares.values()) - 1) > 1e-9:
            raise ValueError(
                f"The shares of `split` must add up to 1, got {' + '.join(map(str, shares.values()))}."
            )
        parts = {part: (share,) for part, share in shares.items()}
    section.done()
    return SplitConfig(method, column, **parts)


def _share(section: Section, key: str, what: str) -> float:
    return as_number(section.take(key, 0.0), section.at(key), what, lambda own: 0 <= own < 1)


def _label(value: Any, place: str) -> Any:
    if not isinstance(value, str | int | float):
        raise ValueError(f"`{place}` must be a text, a number, true or false, got {shown(value)}.")
    return value


def _valuation(section: Section) -> ValuationConfig:
    given = section.take("models", [])
    if not isinstance(given, list | tuple):
        raise ValueError(f"`valuation.models` must be a list of tables, got {shown(given)}.")
    models = []
    for j, model in enumerate(given):
        one = Section(model, f"valuation.models[{j}]")
        models.append({name: read_parameter(one.take(name), name, one.at(name)) for name in one})
    valuation = ValuationConfig(
        algorithms=section.texts("algorithms", ("oob",), valuator_names()),
        bags=section.whole("bags", 10, 1, at_most=MOST_BAGS),
        unseen_fraction=section.number("unseen_fraction", 0.2, above=0, below=1),
        models=tuple(models),
    )
    section.done()
    if not valuation.algorithms:
        listed = ", ".join(map(repr, valuator_names()))
        raise ValueError(f"`valuation.algorithms` is empty: list at least one of {listed}.")
    if valuation.bags * valuation.unseen_fraction < 1 - 1e-9:
        raise ValueError(
            f"`valuation.bags` ({valuation.bags}) times `valuation.unseen_fraction` "
            f"({valuation.unseen_fraction:g}) must be at least 1, so that every row is left out once."
        )
    return valuation


UTILITY = "linear"  # if a configuration names none


def read_interventions(section: Section) -> dict[str, Grid | bool | None]:
    """Return the grid of every registered intervention by its key; see `Config`."""
    found = {entry.key: _read_entry(section, entry) for entry in intervention_entries()}
    section.done()
    if not any(found.values()):
        raise ValueError(f"`{section.place}` has none: switch at least one on.")
    return found


def _read_entry(section: Section, entry: Entry) -> Grid | bool | None:
    """Read a switch, or a table of the values to try."""
    if not entry.settings and not entry.uses_values:
        return section.switch(entry.key, entry.by_default)
    if section.take(entry.key, entry.by_default) is False:
        return None
    given = Section({}, section.at(entry.key))
    if entry.key in section and (entry.uses_values or section.take(entry.key) is not True):
        given = section.section(entry.key)
    return _read_grid(given, entry)


def _read_grid(section: Section, entry: Entry) -> Grid:
    grid: Grid = {}
    if entry.uses_values:
        grid["utilities"] = section.texts("utilities", (UTILITY,), utility_names())
        grid["alphas"] = section.different("alphas", REQUIRED, as_share)
    for setting in entry.settings:
        read = _reader(setting)
        if setting.plural is None:
            grid[setting.name] = read(section.take(setting.name, setting.default), section.at(setting.name))
        else:
            grid[setting.plural] = section.different(setting.plural, (setting.default,), read)
    section.done()
    for name, values in grid.items():
        if values == ():
            raise ValueError(f"`{section.at(name)}` is empty: list at least one.")
    return grid


def _reader(setting: Setting) -> Callable[[Any, str], Any]:
    """Return the check of one value of a setting."""
    if setting.kind == "choice":
        return lambda value, place: as_text(value, place, setting.choices)
    if setting.kind == "number":
        return lambda value, place: as_number(value, place, "a number of at least 0", lambda own: own >= 0)
    if setting.kind == "share":
        return as_share
    # a line is a share that is not 0
    return lambda value, place: as_share(value, place) or as_number(value, place, "above 0", bool)


def _evaluation(section: Section, given: Given) -> EvaluationConfig:
    """Read how models are measured."""
    known = (*metric_names(), *given.metrics)
    evaluation = EvaluationConfig(
        **_budget(section),
        threshold=section.text("threshold", "test", ("test", "validation")),
        bootstrap=section.whole("bootstrap", 0, at_most=MOST_RESAMPLES),
        groups=section.text("groups", CROSSED, (CROSSED, EACH)),
        metrics=tuple(dict.fromkeys([*section.texts("metrics", (), known), *given.metrics])),
        keep_scores=section.switch("keep_scores", False),
    )
    section.done()
    return evaluation


def _budget(section: Section) -> dict[str, Any]:
    """Read the budget; the default is a false-positive rate."""
    there = [name for name in _BUDGETS if name in section]
    if len(there) > 1:
        told = " and ".join(f"`{section.at(name)}`" for name in there)
        raise ValueError(f"{told} both set the threshold: keep one of them.")
    budget: dict[str, Any] = dict.fromkeys(_BUDGETS)
    kind = there[0] if there else "max_fpr"
    if kind == "top_k":
        budget[kind] = section.whole(kind, at_least=1, at_most=MOST_ROWS)
    elif kind == "fixed_threshold":
        budget[kind] = as_number(section.take(kind), section.at(kind), "a number", lambda _: True)
    else:
        budget[kind] = section.number(kind, 0.05, above=0, below=1)
    return budget


SPACE = "models.space"
_DRAWN = 1_000  # of them are looked at for a method that depends on parameters
_RESERVED = re.compile("intervention|model|training_rows|status|error|(?:validation|test)_.*", re.DOTALL)


def _models(section: Section, given: Given) -> ModelsConfig:
    """Read which models are trained."""
    name, pipeline = section.text("estimator", LIGHTGBM), section.texts("pipeline", ())
    if given.estimator is not None:
        name = describe_object(given.estimator)
    is_plain = name != LIGHTGBM or bool(pipeline)
    space = section.take("space", {} if is_plain or given.space is not None else REQUIRED)
    space = space if given.space is None else given.space
    read = _parameter_reader(name, pipeline, given)
    models = ModelsConfig(
        count=section.whole("count", 25, 1, at_most=MOST_MODELS),
        seed=section.whole("seed", 0, at_most=MOST_SEEDS),
        deadline=section.number("deadline", above=0) if "deadline" in section else None,
        space=read_space(space, SPACE, read),
        estimator=name,
        pipeline=pipeline,
    )
    section.done()
    return check_models(models, given)


def _parameter_reader(name: str, pipeline: tuple[str, ...], given: Given) -> Reader:
    """Return the check of an estimator's parameters."""
    if given.estimator is not None:
        if pipeline:
            raise ValueError("`models.pipeline` needs a named estimator: put the steps into `estimator`.")
        kind = type(given.estimator).__name__
        return plain_reader(kind, list(given.estimator.get_params(deep=True)))
    if name == LIGHTGBM and not pipeline:
        return read_parameter
    if is_object(name):
        raise ValueError(
            f"`models.estimator` is {name!r}, which was passed in Python: pass it again, by "
            "`Experiment(..., estimator=...)`."
        )
    return plain_reader(name, parameter_names(make_estimator(name, pipeline)))


def models_given(given: Given, count: int, seed: int, usual: dict[str, Parameter]) -> ModelsConfig:
    """Return the models of an estimator and a space passed in Python, or of the usual space."""
    name = LIGHTGBM if given.estimator is None else describe_object(given.estimator)
    space = {} if given.estimator is not None else usual
    if given.space is not None:
        space = read_space(given.space, SPACE, _parameter_reader(name, (), given))
    return check_models(ModelsConfig(count, seed, None, space, name), given)


def check_models(models: ModelsConfig, given: Given) -> ModelsConfig:
    """Check that classifiers give probabilities and that parameters have their own columns."""
    from sklearn.base import clone

    if models.estimator == LIGHTGBM and not models.pipeline:
        if not models.space:
            raise ValueError(f"`{SPACE}` is empty: set at least `n_estimators`.")
    else:
        place, estimator = "estimator", given.estimator
        if estimator is None:
            place, estimator = "models.estimator", make_estimator(models.estimator, models.pipeline)
        told = {}  # only texts and switches can decide whether there are probabilities
        for drawn in draw_models(models.space, min(models.count, _DRAWN), models.seed):
            words = {name: value for name, value in drawn.items() if isinstance(value, str | bool | None)}
            told[repr(words)] = words
        for words in told.values():
            check_probabilities(place, clone(estimator).set_params(**words))
    taken = {"algorithm", "utility", "alpha"}
    for entry in intervention_entries():
        taken |= {setting.name for setting in entry.settings} | set(entry.fixed)
    for name in models.space:
        if name in taken or _RESERVED.fullmatch(name):
            raise ValueError(
                f"`{SPACE}.{name}` has the name of another column of the results: add a step before it, such "
                'as `models.pipeline = ["sklearn.preprocessing.StandardScaler"]`, which renames it to '
                f"{models.estimator.rpartition('.')[2].lower()}__{name}."
            )
    return models


PRESETS = ("quick", "paper")


def preset_text(preset: str) -> str:
    """Return a preset's TOML text.

    Examples
    --------
    >>> "count = 25" in preset_text("paper")
    True
    """
    if preset not in PRESETS:
        raise ValueError(f"`preset` must be {' or '.join(map(repr, PRESETS))}, got {preset!r}.")
    return (files("fado.experiment") / "templates" / f"{preset}.toml").read_text(encoding="utf-8")


def write_preset(path: str | os.PathLike[str], preset: str = "quick") -> None:
    """Write a commented configuration that runs without changes; an existing file is not replaced."""
    text = preset_text(preset)
    if Path(path).exists():
        remove_abandoned(Path(path))
        raise FileExistsError(f"{str(path)!r} exists already: name another file, or delete it first.")
    with replacing(path, "The configuration") as temporary:
        temporary.write_text(text, encoding="utf-8")
