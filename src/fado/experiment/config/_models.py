"""The `[models]` of a configuration: which estimator, and what its parameters may be."""

from __future__ import annotations

import re
from typing import Any

from fado._checks import check_probabilities
from fado.experiment.config._estimators import LIGHTGBM, is_object, make_estimator, parameter_names
from fado.experiment.config._given import Given
from fado.experiment.config._section import MOST_SEEDS, Section
from fado.experiment.config._settings import ModelsConfig
from fado.experiment.config._space import Reader, draw_models, plain_reader, read_parameter, read_space
from fado.interventions import intervention_entries

__all__ = ["read_models"]

MOST_MODELS = 100_000
_DRAWN = 1_000  # of them are looked at for a method that depends on parameters
_RESERVED = re.compile("intervention|model|training_rows|status|error|(?:validation|test)_.*", re.DOTALL)


def read_models(section: Section, given: Given | None, *, stored: bool) -> ModelsConfig:
    """Read which models are trained; of what comes from a store nothing is imported."""
    name, pipeline = section.text("estimator", LIGHTGBM), section.texts("pipeline", ())
    plain = name != LIGHTGBM or bool(pipeline)
    has_space = "space" in section or not plain
    space = section.section("space") if has_space else Section({}, section.at("space"))
    models = ModelsConfig(
        count=section.whole("count", 25, 1, at_most=MOST_MODELS),
        seed=section.whole("seed", 0, at_most=MOST_SEEDS),
        deadline=section.number("deadline", above=0) if "deadline" in section else None,
        space=read_space(space, _reader(name, pipeline, given, stored=stored) if plain else read_parameter),
        estimator=name,
        pipeline=pipeline,
    )
    for key in ("deadline", "space"):
        section.take(key, None)
    section.done()
    if plain and not stored:
        is_given = given is not None and given.estimator is not None
        place = "estimator" if is_given else section.at("estimator")
        _check_probabilities(_estimator(models, given), models, place)
    if not models.space and not plain:
        raise ValueError(f"`{space.place}` is empty: set at least `n_estimators`.")
    _check_free(models, space.place)
    return models


def _reader(name: str, pipeline: tuple[str, ...], given: Given | None, *, stored: bool) -> Reader:
    """Give what checks the parameters of an estimator that is not LightGBM's, or not alone."""
    if stored:
        return plain_reader(name, None)
    if given is not None and given.estimator is not None:
        if pipeline:
            raise ValueError("`models.pipeline` goes with a name: put the steps into the `estimator` given.")
        kind = type(given.estimator).__name__
        return plain_reader(kind, list(given.estimator.get_params(deep=True)))
    if is_object(name):
        raise ValueError(
            f"`models.estimator` is {name!r}, which was handed over in Python: hand it over again, by "
            "`Experiment(..., estimator=...)`."
        )
    return plain_reader(name, parameter_names(make_estimator(name, pipeline)))


def _estimator(models: ModelsConfig, given: Given | None) -> Any:
    """Give the estimator that was handed over, or make the one that is named."""
    if given is not None and given.estimator is not None:
        return given.estimator
    return make_estimator(models.estimator, models.pipeline)


def _check_probabilities(estimator: Any, models: ModelsConfig, place: str) -> None:
    """Refuse a classifier that gives no probabilities with one of the parameters that are drawn for it."""
    from sklearn.base import clone

    told = {}  # by the parameters that are words or switches: numbers decide no method
    for drawn in draw_models(models.space, min(models.count, _DRAWN), models.seed):
        words = {name: value for name, value in drawn.items() if isinstance(value, str | bool | None)}
        told[repr(words)] = words
    for words in told.values():
        check_probabilities(place, clone(estimator).set_params(**words))


def _check_free(models: ModelsConfig, place: str) -> None:
    """Refuse parameters whose columns would be those of settings or results."""
    taken = {"algorithm", "utility", "alpha"}
    for entry in intervention_entries():
        taken |= {setting.name for setting in entry.settings} | set(entry.fixed)
    for name in models.space:
        if name in taken or _RESERVED.fullmatch(name):
            raise ValueError(
                f"`{place}.{name}` has the name of another column of the results: with a step before it, as "
                '`models.pipeline = ["sklearn.preprocessing.StandardScaler"]`, it is called by its step, '
                f"{models.estimator.rpartition('.')[2].lower()}__{name}."
            )
