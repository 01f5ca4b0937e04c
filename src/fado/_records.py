"""Plain data to JSON and back without loss; records, checked when they are read."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy as np

_Record = TypeVar("_Record")

_LONGEST = 100  # characters of a value that a message quotes
_FLOAT = "float"  # the key of a number that JSON cannot write
_NOT_FINITE = [{_FLOAT: text} for text in ("nan", "inf", "-inf")]


def simplify(value: Any) -> Any:
    """Turn a setting into text, numbers, booleans, None, lists and mappings; else its class's name.

    Examples
    --------
    >>> simplify({"C": np.float64(0.5), "steps": ("a", object())})
    {'C': 0.5, 'steps': ['a', 'object']}
    """
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, str | bool | int | float):
        return value
    if isinstance(value, Mapping):
        return {str(key): simplify(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [simplify(item) for item in value]
    if isinstance(value, np.ndarray):
        return simplify(value.tolist())
    named = isinstance(value, type) or callable(value)
    return str(getattr(value, "__name__", type(value).__name__)) if named else type(value).__name__


def encode(value: Any) -> Any:
    """Return plain data for strict JSON: a float that is not finite by its name.

    Fields of a record that have their default are left out.

    Examples
    --------
    >>> encode({"tpr": 0.5, "low": float("nan")})
    {'tpr': 0.5, 'low': {'float': 'nan'}}
    """
    if is_dataclass(value):
        content = ((name, default, getattr(value, name)) for name, _, default in _fields_of(type(value)))  # type: ignore[arg-type]
        return {name: encode(item) for name, default, item in content if item != default}
    if isinstance(value, Mapping):
        return {key: encode(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [encode(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return {_FLOAT: repr(value)}
    return value


def decode(value: Any) -> Any:
    """Return what was encoded."""
    if isinstance(value, Mapping):
        if value.keys() == {_FLOAT}:
            return float(value[_FLOAT])
        return {key: decode(item) for key, item in value.items()}
    if isinstance(value, list):
        return [decode(item) for item in value]
    return value


def record_from(kind: type[_Record], content: Any, what: str) -> _Record:
    """Make a dataclass from its encoded fields, each of its declared type; missing ones get defaults.

    Fields are texts, numbers and booleans, records, and tuples, lists and mappings of them.

    Examples
    --------
    >>> from dataclasses import make_dataclass
    >>> Look = make_dataclass("Look", [("rows", int), ("mean", float), ("names", tuple[str, ...], ())])
    >>> record_from(Look, {"rows": 3, "mean": {"float": "nan"}}, "a look")
    Look(rows=3, mean=nan, names=())
    >>> record_from(Look, {"rows": "3", "mean": 0.5}, "a look")
    Traceback (most recent call last):
        ...
    ValueError: `rows` of a look is broken, got '3'.
    """
    if not isinstance(content, Mapping):
        raise ValueError(f"{what} must be a mapping, got {shorten(content)}.")
    known, values = _fields_of(kind), {}  # type: ignore[arg-type]
    names = [name for name, _, _ in known]
    for name in content:
        if name not in names:
            raise ValueError(f"{shorten(name)} is not a field of {what}.")
    for name, hint, default in known:
        optional = default is MISSING or NoneType in get_args(hint)
        if content.get(name) is not None or (name in content and optional):
            values[name] = _value_from(hint, content[name], name, what)
        elif default is MISSING:
            raise ValueError(f"`{name}` of {what} is missing.")
    return kind(**values)


def _value_from(hint: Any, value: Any, name: str, what: str) -> Any:
    """Read a value of a declared type."""
    kind, inner = get_origin(hint), get_args(hint)
    if hint is Any or (kind is Literal and value in inner):
        return decode(value)
    if kind in (Union, UnionType):
        if value is None and NoneType in inner:
            return None
        *first, last = (option for option in inner if option is not NoneType)
        for option in first:
            with suppress(ValueError):
                return _value_from(option, value, name, what)
        return _value_from(last, value, name, what)
    if is_dataclass(hint):
        return record_from(hint, value, what)  # type: ignore[arg-type]
    if kind in (tuple, list, Sequence) and isinstance(value, list):
        items = [_value_from(inner[0], item, name, what) for item in value]
        return items if kind is list else tuple(items)
    if kind in (Mapping, dict) and isinstance(value, Mapping):
        return {str(key): _value_from(inner[1], item, name, what) for key, item in value.items()}
    if hint is float and (is_number(value) or value in _NOT_FINITE):
        return float(decode(value))
    if hint is not float and type(value) is hint:
        return value
    raise ValueError(f"`{name}` of {what} is broken, got {shorten(value)}.")


@cache
def _fields_of(kind: Any) -> list[tuple[str, Any, Any]]:
    """Return the name, the declared type and the default of every field of a dataclass."""
    hints = get_type_hints(kind)
    return [
        (
            field.name,
            hints[field.name],
            field.default if field.default_factory is MISSING else field.default_factory(),
        )
        for field in fields(kind)
    ]


def label_to(label: Any) -> Any:
    """Return a label as plain data, so that it can be read back unchanged.

    Examples
    --------
    >>> label_to(np.bool_(True)), label_to(0.1)
    (True, 0.1)
    """
    label = label.item() if isinstance(label, np.generic) else label
    if not isinstance(label, str | int | float):
        kind = type(label).__name__
        raise TypeError(f"A label must be text, a number or a boolean, got {label!r} of type {kind}.")
    return encode(label)


def label_from(content: Any) -> Any:
    """Read what `label_to` returned."""
    label = decode(content)
    if not isinstance(label, str | int | float):
        raise ValueError("Its labels are damaged.")
    return label


def shorten(value: Any) -> str:
    """Quote a value in a message, cut where it is long."""
    text = repr(value)
    return text if len(text) <= _LONGEST else text[:_LONGEST] + "..."


def is_number(value: Any) -> bool:
    """Return whether this is a number that a float can represent."""
    try:
        return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    except OverflowError:
        return False
