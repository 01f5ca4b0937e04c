"""Read one table of a configuration; errors name the place of the wrong value."""

from __future__ import annotations

import difflib
import math
import reprlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from fado._messages import closest_names, list_names
from fado._records import is_number

Item = TypeVar("Item")

REQUIRED: Any = object()
MOST_SEEDS = 2**32 - 1
MOST_MODELS = 100_000
_DIGITS = 1000  # of a whole number that can be shown


class _Short(reprlib.Repr):
    """Python's form of a value, shortened where it is long or deep, for messages."""

    def __init__(self) -> None:
        super().__init__()
        self.maxlist = self.maxtuple = self.maxdict = 8
        self.maxstring = self.maxother = 80

    def repr_int(self, number: int, level: int) -> str:
        if abs(number) >= 10**_DIGITS:  # Python refuses to write longer ones
            return f"a whole number of more than {_DIGITS} digits"
        return super().repr_int(number, level)


def shown(value: Any) -> str:
    """Show a value of the configuration in a message.

    Examples
    --------
    >>> shown({"alphas": [0.5, [[[[[[1]]]]]]]})
    "{'alphas': [0.5, [[[[[...]]]]]]}"
    """
    return _Short().repr(value)


class Section:
    """A table of the configuration that knows its place and which of its keys have been read.

    Examples
    --------
    >>> section = Section({"alphas": [0.0, 0.5, 1.5]}, "interventions.uar")
    >>> section.different("alphas", [], as_share)
    Traceback (most recent call last):
    ValueError: `interventions.uar.alphas[2]` must be a number in [0, 1], got 1.5.
    """

    def __init__(self, table: Any, place: str = "") -> None:
        if not isinstance(table, Mapping):
            subject = f"`{place}`" if place else "The configuration"
            raise ValueError(f"{subject} must be a table, got {shown(table)}.")
        self.place = place
        self._table = table
        self._read: set[str] = set()

    def __contains__(self, key: str) -> bool:
        self._read.add(key)
        return key in self._table

    def __iter__(self) -> Any:
        return iter(self._table)

    def at(self, key: str) -> str:
        """Return the place of a key: ``alphas`` of ``interventions.uar`` is ``interventions.uar.alphas``."""
        return f"{self.place}.{key}" if self.place else key

    def take(self, key: str, default: Any = REQUIRED) -> Any:
        """Return the value of a key."""
        if key in self:
            return self._table[key]
        if default is REQUIRED:
            raise ValueError(
                f"`{self.at(key)}` is missing: set it, as in a file that `fado experiment init FILE` writes."
            )
        return default

    def section(self, key: str, default: Any = REQUIRED) -> Section:
        """Return a table inside this one."""
        return Section(self.take(key, default), self.at(key))

    def done(self) -> None:
        """Raise a ValueError for keys that were not read."""
        for key in self._table:
            if key not in self._read:
                close = difflib.get_close_matches(str(key), self._read, n=1)
                hint = f"did you mean {close[0]!r}?" if close else f"there are {_listed(sorted(self._read))}."
                raise ValueError(f"`{self.at(key)}` is not a key of the configuration: {hint}")

    def switch(self, key: str, default: bool) -> bool:
        """Return a boolean."""
        value = self.take(key, default)
        if not isinstance(value, bool):
            raise ValueError(f"`{self.at(key)}` must be true or false, got {shown(value)}.")
        return value

    def text(self, key: str, default: Any = REQUIRED, choices: Sequence[str] = ()) -> str:
        """Return a text, one of some choices if there are any."""
        return as_text(self.take(key, default), self.at(key), choices)

    def whole(self, key: str, default: Any = REQUIRED, at_least: int = 0, *, at_most: int) -> int:
        """Return a whole number between two bounds."""
        value, place = self.take(key, default), self.at(key)
        if not isinstance(value, int) or isinstance(value, bool) or value < at_least:
            raise ValueError(f"`{place}` must be a whole number of at least {at_least}, got {shown(value)}.")
        if value > at_most:
            raise ValueError(f"`{place}` must be at most {at_most:,}, got {shown(value)}.")
        return value

    def number(self, key: str, default: Any = REQUIRED, *, above: float, below: float = math.inf) -> float:
        """Return a number strictly between two bounds."""
        what = f"a number in ({above:g}, {below:g})" if below < math.inf else f"a number above {above:g}"
        return as_number(self.take(key, default), self.at(key), what, lambda own: above < own < below)

    def texts(self, key: str, default: Any = REQUIRED, choices: Sequence[str] = ()) -> tuple[str, ...]:
        """Return a list of different texts."""
        return self.different(key, default, lambda value, place: as_text(value, place, choices))

    def different(self, key: str, default: Any, read: Callable[[Any, str], Item]) -> tuple[Item, ...]:
        """Return a list of different entries, each read by a function."""
        values = self.take(key, default)
        if values is None and default is not REQUIRED:  # a dict in Python may use None for no value
            values = default
        if not isinstance(values, list | tuple):
            raise ValueError(f"`{self.at(key)}` must be a list, got {shown(values)}.")
        found: list[Item] = []
        for position, value in enumerate(values):
            place = f"{self.at(key)}[{position}]"
            item = read(value, place)
            if item in found:
                raise ValueError(f"`{place}` repeats {shown(value)}: list it once.")
            found.append(item)
        return tuple(found)


def as_text(value: Any, place: str, choices: Sequence[str] = ()) -> str:
    """Return a text, or raise a ValueError."""
    if not isinstance(value, str) or not value:
        raise ValueError(f"`{place}` must be a text, got {shown(value)}.")
    if choices and value not in choices:
        raise ValueError(f"`{place}` must be {_listed(choices)}, got {shown(value)}.")
    return value


def as_number(value: Any, place: str, what: str, is_right: Callable[[float], bool]) -> float:
    """Return a number, or raise a ValueError that says what it must be."""
    if not is_number(value) or not is_right(value):
        raise ValueError(f"`{place}` must be {what}, got {shown(value)}.")
    return float(value)


def as_share(value: Any, place: str) -> float:
    """Return a number in [0, 1], or raise a ValueError."""
    return as_number(value, place, "a number in [0, 1]", lambda own: 0 <= own <= 1)


def _listed(choices: Sequence[str]) -> str:
    return " or ".join(map(repr, choices))


Reader = Callable[[Any, str, str], Any]  # takes a value, the name of its parameter, and its place

_INT = 2**31 - 1
_FLOAT = 1e12

# The parameters that may be set: whether each is a whole number, and its bounds.
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
    """How one parameter is drawn: from a few choices, or log-uniformly between two ends."""

    choices: tuple[Any, ...] = ()
    low: int | float | None = None
    high: int | float | None = None

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


def read_space(space: Mapping[str, Any], place: str, read: Reader) -> dict[str, Parameter]:
    """Read how parameters are drawn, each value by a function."""
    section = Section(space, place)
    return {name: _read(section.take(name), name, section.at(name), read) for name in section}


def plain_reader(of: str, names: Sequence[str]) -> Reader:
    """Return the check of one value of a parameter of any estimator."""

    def read(value: Any, name: str, place: str) -> Any:
        if name not in names:
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
    low, high = (read(end, name, f"{where}[{j}]") for j, end in enumerate(ends))
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
