"""Read plain data as typed settings; errors name the place of the wrong value."""

from __future__ import annotations

import difflib
import math
import reprlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from typing import Annotated, Any, TypeVar, get_args, get_origin, get_type_hints

from fado._records import is_number

Record = TypeVar("Record")
Reader = Callable[[Any, str], Any]  # takes a value and its place; returns it, or raises a ValueError

REQUIRED: Any = object()


def read_record(kind: type[Record], table: Any, place: str = "") -> Record:
    """Read a table as a dataclass: every field by its type, or by the reader in its annotation.

    Examples
    --------
    >>> from dataclasses import make_dataclass
    >>> Grid = make_dataclass("Grid", [("alphas", Annotated[tuple, list_of(share)]), ("clip", bool, False)])
    >>> read_record(Grid, {"alphas": [0, 0.5]}, "interventions.uar")
    Grid(alphas=(0.0, 0.5), clip=False)
    >>> read_record(Grid, {"alphas": [0.0, 0.5, 1.5]}, "interventions.uar")
    Traceback (most recent call last):
    ValueError: `interventions.uar.alphas[2]` must be a number in [0, 1], got 1.5.
    """
    return kind(**read_table(table, place, _keys_of(kind)))  # type: ignore[arg-type]


def read_table(table: Any, place: str, keys: Mapping[str, tuple[Reader, Any]]) -> dict[str, Any]:
    """Read a table by its keys, each with its reader and its default; other keys raise a ValueError."""
    check_table(table, place)
    above, values = f"{place}." if place else "", {}
    for key, (read, default) in keys.items():
        if table.get(key) is not None or (key in table and default is REQUIRED):
            values[key] = read(table[key], above + key)
        elif default is REQUIRED:
            raise ValueError(
                f"`{above}{key}` is missing: set it, as in a file that `fado experiment init FILE` writes."
            )
        else:  # a dict in Python may use None for no value
            values[key] = default
    for key in table:
        if key not in keys:
            close = difflib.get_close_matches(str(key), keys, n=1)
            hint = f"did you mean {close[0]!r}?" if close else f"there are {_listed(sorted(keys))}."
            raise ValueError(f"`{above}{key}` is not a key of the configuration: {hint}")
    return values


def check_table(table: Any, place: str) -> None:
    """Raise a ValueError for what is not a table."""
    if not isinstance(table, Mapping):
        subject = f"`{place}`" if place else "The configuration"
        raise ValueError(f"{subject} must be a table, got {shown(table)}.")


@cache
def _keys_of(kind: type[Any]) -> dict[str, tuple[Reader, Any]]:
    """Return the reader and the default of every field of a dataclass."""
    hints = get_type_hints(kind, include_extras=True)
    keys = {}
    for field in fields(kind):
        default = field.default if field.default_factory is MISSING else field.default_factory()
        keys[field.name] = (_reader_of(hints[field.name]), REQUIRED if default is MISSING else default)
    return keys


def _reader_of(hint: Any) -> Reader:
    if get_origin(hint) is Annotated:
        reader: Reader = get_args(hint)[1]
        return reader
    if is_dataclass(hint):
        return lambda value, place: read_record(hint, value, place)  # type: ignore[arg-type]
    readers: dict[Any, Reader] = {bool: switch, str: text, str | None: text, tuple[str, ...]: list_of(text)}
    return readers[hint]


def as_it_is(value: Any, place: str) -> Any:
    """Return any value."""
    return value


def switch(value: Any, place: str) -> bool:
    """Read true or false."""
    if not isinstance(value, bool):
        raise ValueError(f"`{place}` must be true or false, got {shown(value)}.")
    return value


def text(value: Any, place: str) -> str:
    """Read a text."""
    if not isinstance(value, str) or not value:
        raise ValueError(f"`{place}` must be a text, got {shown(value)}.")
    return value


def choice(names: Iterable[str] | Callable[[], Iterable[str]]) -> Reader:
    """Return the reader of one of some texts."""

    def read(value: Any, place: str) -> str:
        known = list(names() if callable(names) else names)
        if text(value, place) not in known:
            raise ValueError(f"`{place}` must be {_listed(known)}, got {shown(value)}.")
        return str(value)

    return read


def whole(at_least: int, at_most: int) -> Reader:
    """Return the reader of a whole number between two bounds."""

    def read(value: Any, place: str) -> int:
        if not isinstance(value, int) or isinstance(value, bool) or value < at_least:
            raise ValueError(f"`{place}` must be a whole number of at least {at_least}, got {shown(value)}.")
        if value > at_most:
            raise ValueError(f"`{place}` must be at most {at_most:,}, got {shown(value)}.")
        return value

    return read


def number(what: str, is_right: Callable[[float], bool]) -> Reader:
    """Return the reader of a number; `what` states in an error what it must be."""

    def read(value: Any, place: str) -> float:
        if not is_number(value) or not is_right(value):
            raise ValueError(f"`{place}` must be {what}, got {shown(value)}.")
        return float(value)

    return read


def between(above: float, below: float = math.inf) -> Reader:
    """Return the reader of a number strictly between two bounds."""
    what = f"a number in ({above:g}, {below:g})" if below < math.inf else f"a number above {above:g}"
    return number(what, lambda value: above < value < below)


share = number("a number in [0, 1]", lambda value: 0 <= value <= 1)


def label(value: Any, place: str) -> Any:
    """Read a label: a text, a number or a boolean."""
    if not isinstance(value, str | int | float):
        raise ValueError(f"`{place}` must be a text, a number, true or false, got {shown(value)}.")
    return value


def list_of(read: Reader) -> Reader:
    """Return the reader of a list of different entries."""

    def read_all(values: Any, place: str) -> tuple[Any, ...]:
        if not isinstance(values, list | tuple):
            raise ValueError(f"`{place}` must be a list, got {shown(values)}.")
        entries: list[Any] = []
        for position, value in enumerate(values):
            entry = read(value, f"{place}[{position}]")
            if entry in entries:
                raise ValueError(f"`{place}[{position}]` repeats {shown(value)}: list it once.")
            entries.append(entry)
        return tuple(entries)

    return read_all


def one_or_more(read: Reader) -> Reader:
    """Return the reader of a list, or of one entry that stands for a list of it."""

    def read_all(value: Any, place: str) -> Any:
        return list_of(read)([value] if isinstance(value, str | int | float) else value, place)

    return read_all


_SHORT = reprlib.Repr()  # for what is long or deep
_SHORT.maxlist = _SHORT.maxtuple = _SHORT.maxdict = 8
_SHORT.maxstring = _SHORT.maxother = 80


def shown(value: Any) -> str:
    """Show a value of the configuration in a message.

    Examples
    --------
    >>> shown({"alphas": [0.5, [[[[[[1]]]]]]]})
    "{'alphas': [0.5, [[[[[...]]]]]]}"
    """
    return _SHORT.repr(value)


def _listed(names: Iterable[str]) -> str:
    return " or ".join(map(repr, names))
