"""The space that models are drawn from."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fado._messages import closest_names, list_names
from fado.experiment.config._section import Section, as_text, is_number, shown, shown_place

__all__ = ["Parameter", "draw_models", "plain_reader", "read_parameter", "read_space"]

Reader = Callable[[Any, str, str], Any]  # of a value, the name of its parameter, and its place

_INT = 2**31 - 1
_FLOAT = 1e12

# scikit-learn's spelling of every parameter that may be set, whether it is whole, and its ends.
_NUMBERS: dict[str, tuple[bool, float, float]] = {
    "n_estimators": (True, 1, 1_000_000),
    "num_leaves": (True, 2, 131_072),
    "max_depth": (True, -1, _INT),
    "learning_rate": (False, 1e-9, _FLOAT),
    "min_child_samples": (True, 0, _INT),
    "min_child_weight": (False, 0, _FLOAT),
    "min_split_gain": (False, 0, _FLOAT),
    "subsample": (False, 1e-9, 1),
    "subsample_freq": (True, 0, _INT),
    "colsample_bytree": (False, 1e-9, 1),
    "reg_alpha": (False, 0, _FLOAT),
    "reg_lambda": (False, 0, _FLOAT),
    "max_bin": (True, 2, _INT),
    "min_data_in_bin": (True, 1, _INT),
    "top_rate": (False, 0, 1),
    "other_rate": (False, 0, 1),
    "max_delta_step": (False, 0, _FLOAT),
    "path_smooth": (False, 0, _FLOAT),
    "scale_pos_weight": (False, 1e-9, _FLOAT),
    "cat_l2": (False, 0, _FLOAT),
    "cat_smooth": (False, 0, _FLOAT),
    "min_data_per_group": (True, 1, _INT),
    "max_cat_threshold": (True, 1, _INT),
}
_BOOSTING = ("gbdt", "goss")


@dataclass(frozen=True)
class Parameter:
    """How one parameter is drawn: from a few choices, or log-uniformly between two ends.

    Parameters
    ----------
    choices : tuple
        What it may be, all as likely; one alone is fixed.
    low, high : int or float, optional
        The ends, both included. Whole numbers give whole numbers.
    """

    choices: tuple[Any, ...] = ()
    low: float | None = None
    high: float | None = None

    def draw(self, generator: np.random.Generator) -> Any:
        """Draw a value."""
        if self.low is None or self.high is None:
            return self.choices[generator.integers(len(self.choices))]
        if isinstance(self.low, int) and isinstance(self.high, int):
            return min(int(_log_uniform(generator, self.low, self.high + 1)), self.high)
        return float(_log_uniform(generator, self.low, self.high))


def _log_uniform(generator: np.random.Generator, low: float, high: float) -> float:
    return math.exp(generator.uniform(math.log(low), math.log(high)))


def draw_models(space: dict[str, Parameter], count: int, seed: int) -> list[dict[str, Any]]:
    """Draw the parameters of some models.

    Every parameter of every model has a seed of its own: neither the order of the space nor the number of
    models changes a model.

    Examples
    --------
    >>> space = {"n_estimators": Parameter(low=20, high=300), "boosting_type": Parameter(("goss",))}
    >>> draw_models(space, count=2, seed=0)
    [{'n_estimators': 77, 'boosting_type': 'goss'}, {'n_estimators': 96, 'boosting_type': 'goss'}]
    """
    return [
        {
            name: parameter.draw(np.random.default_rng([seed, model, *name.encode()]))
            for name, parameter in space.items()
        }
        for model in range(count)
    ]


def read_space(section: Section, read: Reader) -> dict[str, Parameter]:
    """Read the space from the configuration, each value by a function."""
    return {name: _read(section.take(name), name, section.at(name), read) for name in section}


def plain_reader(of: str, names: Sequence[str] | None) -> Reader:
    """Give what checks one value of a parameter of any estimator.

    Parameters
    ----------
    of : str
        What messages call the estimator.
    names : sequence of str or None
        Its parameters; None if nobody knows them.
    """

    def read(value: Any, name: str, place: str) -> Any:
        if names is not None and name not in names:
            there = f"; there are {list_names(names, most=60)}."
            raise ValueError(
                f"`{place}` is not a parameter of {of} that can be set{closest_names(name, names, there)}"
            )
        if not is_number(value) and not isinstance(value, str | bool | None):
            raise ValueError(f"`{place}` must be a number, a text, true or false, got {shown(value)}.")
        return value

    return read


def _read(given: Any, name: str, place: str, read: Reader) -> Parameter:
    if isinstance(given, list | tuple):
        given = {"choices": given}
    if not isinstance(given, dict):
        return Parameter((read(given, name, place),))
    section = Section(given, place)
    if len(given) != 1 or not set(given) <= {"choices", "log_uniform"}:
        raise ValueError(
            f"`{place}` must be a value, {{ choices = [...] }} or {{ log_uniform = [low, high] }}, "
            f"got the keys {', '.join(map(shown, given)) or 'none'}."
        )
    if "choices" in section:
        choices = section.different("choices", [], lambda value, where: read(value, name, where))
        if not choices:
            raise ValueError(f"`{section.at('choices')}` is empty: list at least one.")
        return Parameter(choices)
    ends = section.take("log_uniform")
    where = section.at("log_uniform")
    if not isinstance(ends, list | tuple) or len(ends) != 2:
        raise ValueError(f"`{where}` must be a list of two ends, got {shown(ends)}.")
    low, high = (read(end, name, shown_place(where, j)) for j, end in enumerate(ends))
    if not (is_number(low) and is_number(high)) or not 0 < low <= high:
        raise ValueError(f"`{where}` must rise from a number above 0, got {shown(ends)}.")
    return Parameter(low=low, high=high)


def read_parameter(value: Any, name: str, place: str) -> Any:
    """Check one value of a LightGBM parameter."""
    if name == "boosting_type":
        return as_text(value, place, _BOOSTING)
    if name not in _NUMBERS:
        known = ", ".join(["boosting_type", *_NUMBERS])
        raise ValueError(f"`{place}` is not a parameter that can be set; there are {known}.")
    whole, least, most = _NUMBERS[name]
    kind = "a whole number" if whole else "a number"
    if not is_number(value) or (whole and not isinstance(value, int)) or value < least:
        raise ValueError(f"`{place}` must be {kind} of at least {least:g}, got {shown(value)}.")
    if value > most:
        raise ValueError(f"`{place}` must be at most {most:,.12g}, got {shown(value)}.")
    return value if whole else float(value)
