"""The ways in which values are made again with one thing changed: seeds, bags, sizes of models, encodings."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from numbers import Integral
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from sklearn.base import clone

from fado._checks import check_instance
from fado._records import is_number, shorten
from fado.tabular import Column, Problem, Table
from fado.valuation._bags import MOST_BAGS
from fado.valuation._base import BaseValuator, texts_of
from fado.valuation._registry import make_valuator, valuator_names
from fado.valuation._result import Valuation
from fado.valuation.entropy import NEW_ROWS, EntropyValuator, OutOfBagEntropy, variables_to_learn

__all__ = ["VARIATIONS", "WITHOUT", "read_valuator", "value_again"]

FloatArray = npt.NDArray[np.float64]
Way = tuple[str, Any, Problem, Problem | None]  # what is changed, then what values are made with

_BINS = 10
# What is halved and doubled: the first of these that an estimator has.
_SIZES = ("num_leaves", "max_leaf_nodes", "n_neighbors", "C", "alpha", "n_estimators")
_ALGORITHMS = {"out-of-bag": "oob", "in-bag": "inbag"}  # others are noted as they are registered


def read_valuator(
    given: Any,
    valuation: Valuation,
    problem: Problem,
    validation: Problem | None,
    beside: Mapping[str, Any],
    n_jobs: int | None,
    notes: list[str],
) -> Any:
    """Give a copy of the valuator that made the values, with their seed, that keeps and shows nothing.

    Parameters
    ----------
    given : valuator or None
        None stands for what the values' provenance tells of.
    valuation : Valuation
        The values.
    problem, validation : Problem
        The rows, and those that effects are measured on.
    beside : mapping
        What the user gave for `fit` beside X and y; only our own valuators surely take it.
    n_jobs : int or None
        How many fits run side by side.
    notes : list of str
        Gets a note if it is not known what made the values.
    """
    valuator = _noted_valuator(valuation, problem, validation, notes) if given is None else given
    check_instance("valuator", valuator)
    if not hasattr(valuator, "fit"):
        raise TypeError(f"`valuator` must be a valuator like OutOfBagEntropy(), got {valuator!r}.")
    useless = [name for name, own in beside.items() if own is not None]
    if useless and not isinstance(valuator, BaseValuator):
        raise ValueError(
            f"`{useless[0]}` is for valuators that derive from BaseValuator, got {type(valuator).__name__}: "
            "leave it out."
        )
    own, seed = _settings_of(valuator).get("random_state"), valuation.provenance.seed
    if seed is None:
        seed = int(own) if isinstance(own, Integral) else 0
    quiet = {"random_state": seed, "keep_models": False, "keep_probabilities": False, "progress": False}
    return _changed(valuator, **quiet, **({} if n_jobs is None else {"n_jobs": n_jobs}))


def _noted_valuator(
    valuation: Valuation, problem: Problem, validation: Problem | None, notes: list[str]
) -> Any:
    """Make the valuator that provenance tells of; for entropies of unknown origin, the usual one."""
    told = valuation.provenance
    name = _ALGORITHMS.get(told.algorithm, told.algorithm)
    if told.algorithm.endswith(NEW_ROWS):
        raise ValueError(
            "These values are of rows that their models have not learnt from, and cannot be made again from "
            "them: leave out `X` and `y`."
        )
    if name not in valuator_names():
        if not all(scale.is_unit and scale.neutral is None for scale in valuation.scales.values()):
            raise ValueError(
                f"It is not known what makes these values ({shorten(told.algorithm)}): pass the `valuator` "
                "that does."
            )
        notes.append("It is not known what made these values: they are compared with OutOfBagEntropy's.")
        return OutOfBagEntropy()
    kinds = {own.name: told.kind_of(own.name) for own in problem.variables if told.kind_of(own.name)}
    hidden = {own.name: (told.excluded_columns or {}).get(own.name, ()) for own in problem.protected}
    valuator = make_valuator(name, **{**told.settings, "kinds": kinds, "z_exclude": hidden})
    if validation is None and "n_bags" in _settings_of(valuator) and "n_bags" not in told.settings:
        raise ValueError("These values are effects on validation rows: pass these rows as `validation`.")
    if told.estimators is not None and isinstance(valuator, BaseValuator):
        models = texts_of(valuator._default_models(problem.table.n_columns))
        if told.estimators != models:
            raise ValueError(
                f"These values were made by {shorten(', '.join(told.estimators))}, kept as a text "
                "alone: pass the `valuator` that made them."
            )
    return valuator


def _settings_of(valuator: Any) -> dict[str, Any]:
    return valuator.get_params(deep=False) if hasattr(valuator, "get_params") else {}


def _changed(valuator: Any, **settings: Any) -> Any:
    """Give a copy of a valuator with those of the settings that it takes."""
    taken = {name: value for name, value in settings.items() if name in _settings_of(valuator)}
    copied = clone(valuator, safe=False)
    return copied.set_params(**taken) if taken else copied


def value_again(way: Way, y: Any, sensitive_features: Any) -> dict[str, FloatArray]:
    """Value the rows in another way, and give the values by variable.

    Parameters
    ----------
    way : tuple
        One that the functions of `VARIATIONS` gave.
    y, sensitive_features
        As the user gave them, for valuators of others.
    """
    _, valuator, problem, validation = way
    if isinstance(valuator, BaseValuator):
        made = valuator.fit_problem(problem, validation).valuation_
    else:
        table = problem.table
        features = table.to_pandas() if table.source is None else table.source
        made = valuator.fit(features, y, sensitive_features=sensitive_features).valuation_
    return {own.name: made[name] for own, name in zip(problem.variables, made.variables, strict=False)}


def _other_seeds(valuator: Any, problem: Problem, validation: Problem | None, n_seeds: int) -> Iterator[Way]:
    if "random_state" in _settings_of(valuator):
        for seed in range(valuator.random_state + 1, valuator.random_state + 1 + n_seeds):
            yield f"random_state={seed}", _changed(valuator, random_state=seed), problem, validation


def _other_bags(valuator: Any, problem: Problem, validation: Problem | None, _: int) -> Iterator[Way]:
    """Half and twice as many bags, as far as they work; effects on validation rows have none."""
    settings = _settings_of(valuator)
    share = settings.get("unseen_fraction")
    if "n_bags" not in settings or (share is None and validation is not None):
        return
    n_units = problem.n_rows if problem.blocks is None else int(problem.blocks.max()) + 1
    least, most = (2, n_units) if share is None else (math.ceil(1 / share - 1e-9), MOST_BAGS)
    for n_bags in (settings["n_bags"] // 2, 2 * settings["n_bags"]):
        if least <= n_bags <= most:
            yield f"n_bags={n_bags}", _changed(valuator, n_bags=n_bags), problem, validation


def _other_sizes(valuator: Any, problem: Problem, validation: Problem | None, _: int) -> Iterator[Way]:
    """Half and twice what makes models small or large; the default models are paced as ever."""
    settings = _settings_of(valuator)
    place = next((name for name in ("estimators", "estimator") if name in settings), None)
    given = valuator if place is None else settings[place]
    if given is None and isinstance(valuator, BaseValuator):
        models = valuator._default_models(problem.table.n_columns)
    else:
        models = list(given) if isinstance(given, list | tuple) else [given]
    for factor in (0.5, 2.0):
        sizes = [_sizes(model, factor) for model in models]
        if not any(sizes):
            continue
        text = ", ".join(dict.fromkeys(f"{name}={size:g}" for own in sizes for name, size in own.items()))
        resized = [clone(model).set_params(**own) for model, own in zip(models, sizes, strict=True)]
        other = resized[0]
        if place is not None:
            other = _changed(valuator, **{place: resized if place == "estimators" else resized[0]})
        if given is None and isinstance(other, EntropyValuator):
            other._paced = True
        yield text, other, problem, validation


def _sizes(model: Any, factor: float) -> dict[str, Any]:
    """Give the first of `_SIZES` that an estimator, or a part of it, has, times a factor."""
    settings = model.get_params(deep=True) if hasattr(model, "get_params") else {}
    for size in _SIZES:
        own = {name: value for name, value in settings.items() if name.rpartition("__")[2] == size}
        found = {
            name: max(2, round(value * factor)) if isinstance(value, int) else value * factor
            for name, value in own.items()
            if is_number(value) and value > 0
        }
        if any(own[name] != value for name, value in found.items()):
            return found
    return {}


def _other_encodings(valuator: Any, problem: Problem, validation: Problem | None, _: int) -> Iterator[Way]:
    """Text as codes, and numbers in bins; what models of an attribute must not see stays hidden."""
    settings, table = _settings_of(valuator), problem.table
    if "z_exclude" in settings:
        learnt = variables_to_learn(
            problem.with_kinds(settings.get("kinds")),
            settings["z_exclude"],
            sees_target=bool(settings.get("z_sees_target", True)),
        )
        hidden = {own.name: [table.names[j] for j in sorted(own.excluded)] for own in learnt[1:]}
        valuator = _changed(valuator, z_exclude=hidden)
    for text, encode in (
        ("text as codes in the order of the alphabet", _as_codes),
        (f"numbers in {_BINS} bins of equal counts", _in_bins),
    ):
        encoded = [encode(own, own) for own in table.columns]
        if any(new is not own for new, own in zip(encoded, table.columns, strict=True)):
            other = (
                None
                if validation is None
                else replace(validation, table=_like(validation.table, table, encode))
            )
            changed = replace(problem, table=Table.of_columns(encoded, named=table.is_named))
            yield text, _changed(valuator), changed, other


def _like(table: Table, learnt: Table, encode: Callable[[Column, Column], Column]) -> Table:
    """Encode validation rows as those that models learn from; columns are found by their names."""
    by_name = {own.name: own for own in learnt.columns}
    columns = [encode(own, by_name.get(own.name, own)) for own in table.columns]
    return Table.of_columns(columns, named=table.is_named)


def _as_codes(column: Column, like: Column) -> Column:
    """Give text as numbers: the places of its levels among those of a column."""
    if column.levels is None or like.levels is None:
        return column
    return replace(column.with_levels(like.levels), levels=None)


def _in_bins(column: Column, like: Column) -> Column:
    """Give numbers as those of bins that hold equally many of a column's; as they are if these are few."""
    if column.levels is not None or like.levels is not None:
        return column
    known = like.numbers()[~np.isnan(like.numbers())]
    if len(np.unique(known)) <= _BINS:
        return column
    edges = np.unique(np.quantile(known, np.arange(1, _BINS) / _BINS, method="inverted_cdf"))
    own = column.numbers()
    bins = np.where(np.isnan(own), np.nan, np.searchsorted(edges, own).astype(np.float64))
    return replace(column, data=pa.chunked_array([bins]))


VARIATIONS: dict[str, Callable[[Any, Problem, Problem | None, int], Iterator[Way]]] = {
    "seeds": _other_seeds,
    "bags": _other_bags,
    "settings": _other_sizes,
    "encodings": _other_encodings,
}
WITHOUT = {  # notes on what a valuator, or a table, does not have
    "seeds": "seeds: {} has no `random_state`.",
    "bags": "bags: {} has none here.",
    "settings": f"settings: {{}} and its models have none of {', '.join(_SIZES)} to halve and double.",
    "encodings": f"encodings: X has neither text nor numbers of more than {_BINS} values, or is sparse.",
}
