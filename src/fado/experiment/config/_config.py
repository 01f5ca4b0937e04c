"""The configuration: TOML in, checked and frozen settings out."""

from __future__ import annotations

import math
import os
import tomllib
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

from fado._checks import MOST_ROWS
from fado.experiment.config._evaluation import read_evaluation
from fado.experiment.config._given import Given
from fado.experiment.config._interventions import keep_interventions, read_interventions
from fado.experiment.config._models import read_models
from fado.experiment.config._section import MOST_SEEDS, Section, is_number, shown
from fado.experiment.config._settings import (
    CROSSED,
    GIVEN,
    Config,
    DataConfig,
    SplitConfig,
    ValuationConfig,
)
from fado.experiment.config._space import read_parameter
from fado.interventions import intervention_entries
from fado.tabular import MIN_GROUP_SIZE
from fado.valuation import valuator_names

__all__ = ["config_from", "read_config"]

GENERATORS = ("account_fraud",)
VARIANTS = ("base", "I", "II", "III", "IV", "V")
MOST_BAGS = 100_000
MOST_TRIALS = 10_000_000


def read_config(path: str | os.PathLike[str], given: Given | None = None) -> Config:
    """Read and check a TOML file; a relative path of the data is relative to it.

    Parameters
    ----------
    path : path-like
        The file.
    given : Given, optional
        As for `config_from`.
    """
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
    table: dict[str, Any],
    directory: Path | None = None,
    *,
    stored: bool = False,
    given: Given | None = None,
) -> Config:
    """Check a configuration.

    Parameters
    ----------
    table : dict
        Plain data, as TOML gives it.
    directory : pathlib.Path, optional
        What a relative path of the data is relative to.
    stored : bool
        Whether it comes from a store, where it was checked before: the valuators, interventions and metrics
        that it asks for may belong to packages that are not installed any more, and nothing that it names is
        imported.
    given : Given, optional
        What is handed over in Python beside it.
    """
    if given is not None:
        table = given.added_to(table)
    top = Section(table)
    interventions, data = top.section("interventions"), _data(top.section("data"), directory)
    config = Config(
        seed=top.whole("seed", 0, at_most=MOST_SEEDS),
        data=data,
        split=_split(top.section("split"), given=data.given),
        valuation=_valuation(top.section("valuation") if "valuation" in top else Section({}), stored=stored),
        interventions=keep_interventions(interventions) if stored else read_interventions(interventions),
        models=read_models(top.section("models"), given, stored=stored),
        evaluation=read_evaluation(
            top.section("evaluation") if "evaluation" in top else Section({}), given, stored=stored
        ),
        source=table,
    )
    for key in ("valuation", "evaluation"):
        top.take(key, None)
    top.done()
    _check_size(config)
    config = _with_kept_scores(config)
    if config.evaluation.threshold == "validation" and not config.split.has_validation:
        raise ValueError(
            '`evaluation.threshold` is "validation" and `split.validation` is empty: set either.'
        )
    return replace(config, source=deepcopy(table))  # the caller may change it before a store keeps it


def _with_kept_scores(config: Config) -> Config:
    """Keep scores, which interventions on scores change; refuse these without validation rows."""
    asked = [
        entry.key
        for entry in intervention_entries()
        if entry.changes_scores and config.interventions[entry.key]
    ]
    if not asked:
        return config
    place = f"`interventions.{asked[0]}`"
    if not config.split.has_validation:
        raise ValueError(
            f"{place} changes scores by validation rows, and `split.validation` is empty: set either."
        )
    if config.evaluation.groups != CROSSED:
        raise ValueError(
            f"{place} compares the groups of all attributes crossed, and `evaluation.groups` compares those "
            "of each attribute: leave one of them out."
        )
    return replace(config, evaluation=replace(config.evaluation, keep_scores=True))


def _check_size(config: Config) -> None:
    """Refuse a grid that nobody gets through, before it is listed."""
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
    section.take("path", None)
    section.take("generator", None)
    if (path is not None) + (generator is not None) + given != 1:
        raise ValueError("`data` must have either a `path` or a `generator`.")
    if path is not None and directory is not None:
        path = str(directory / path)
    positive = section.take("positive", None)
    if positive is not None and not isinstance(positive, str | int | float):
        raise ValueError(f"`data.positive` must be a label of the target, got {shown(positive)}.")
    protected = section.take("protected")
    protected = [protected] if isinstance(protected, str) else protected
    data = DataConfig(
        path=path,
        generator=generator,
        rows=section.whole("rows", 100_000, 100, at_most=MOST_ROWS) if generator is not None else 0,
        variant=section.text("variant", "base", VARIANTS) if generator is not None else "",
        target=section.text("target"),
        positive=positive,
        protected=Section({"protected": protected}, "data").texts("protected"),
        drop=section.texts("drop", ()),
        exclude=section.texts("exclude", ()),
        weight=section.text("weight") if "weight" in section else None,
        groups=section.text("groups") if "groups" in section else None,
        min_group_size=section.whole("min_group_size", MIN_GROUP_SIZE, at_most=MOST_ROWS),
        given=given,
    )
    for key in ("weight", "groups"):
        section.take(key, None)
        if getattr(data, key) == data.target:
            raise ValueError(f"`data.{key}` is {data.target!r}, the target: name another column.")
    section.done()
    for key, unseen in (("drop", data.drop), ("weight", (data.weight,)), ("groups", (data.groups,))):
        both = sorted(set(data.exclude).intersection(unseen))
        if both:
            raise ValueError(f"`data.exclude` names {both[0]!r}, which no model sees: it is in `data.{key}`.")
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
    value = section.take(key, 0.0)
    if not is_number(value) or not 0 <= value < 1:
        raise ValueError(f"`{section.at(key)}` must be {what}, got {shown(value)}.")
    return float(value)


def _label(value: Any, place: str) -> Any:
    if not isinstance(value, str | int | float):
        raise ValueError(f"`{place}` must be a text, a number, true or false, got {shown(value)}.")
    return value


def _valuation(section: Section, *, stored: bool) -> ValuationConfig:
    given = section.take("models", [])
    if not isinstance(given, list | tuple):
        raise ValueError(f"`valuation.models` must be a list of tables, got {shown(given)}.")
    models = []
    for j, model in enumerate(given):
        one = Section(model, f"valuation.models[{j}]")
        models.append({name: read_parameter(one.take(name), name, one.at(name)) for name in one})
    valuation = ValuationConfig(
        algorithms=section.texts("algorithms", ("oob",), () if stored else valuator_names()),
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
