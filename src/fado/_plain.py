"""Plain data for JSON and back, nothing lost: numbers that are none, labels with their types."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, TypeVar, get_type_hints

import numpy as np

__all__ = ["decode", "encode", "label_from", "label_to", "record_from", "simplify"]

_Record = TypeVar("_Record")

_FLOAT = "float"  # the key of a number that JSON has no word for
_LABELS: dict[str, type] = {"bool": bool, "int": int, "float": float, "str": str}


def simplify(value: Any) -> Any:
    """Turn a setting into texts, numbers, booleans, None, lists and mappings by text; else its class's name.

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
        return {str(key): simplify(own) for key, own in value.items()}
    if isinstance(value, list | tuple):
        return [simplify(own) for own in value]
    if isinstance(value, np.ndarray):
        return simplify(value.tolist())
    named = isinstance(value, type) or callable(value)
    return str(getattr(value, "__name__", type(value).__name__)) if named else type(value).__name__


def encode(value: Any) -> Any:
    """Give plain data as strict JSON holds them: a float that is not finite by its name.

    Examples
    --------
    >>> encode({"tpr": 0.5, "low": float("nan")})
    {'tpr': 0.5, 'low': {'float': 'nan'}}
    """
    if isinstance(value, Mapping):
        return {key: encode(own) for key, own in value.items()}
    if isinstance(value, list | tuple):
        return [encode(own) for own in value]
    if isinstance(value, float) and not math.isfinite(value):
        return {_FLOAT: repr(value)}
    return value


def decode(value: Any) -> Any:
    """Give back what was encoded."""
    if isinstance(value, Mapping):
        if set(value) == {_FLOAT}:
            return float(value[_FLOAT])
        return {key: decode(own) for key, own in value.items()}
    if isinstance(value, list):
        return [decode(own) for own in value]
    return value


def record_from(kind: type[_Record], told: Any) -> _Record:
    """Make a dataclass of texts, numbers and booleans from its encoded fields, each of its declared type.

    Examples
    --------
    >>> from dataclasses import make_dataclass
    >>> Look = make_dataclass("Look", [("rows", int), ("mean", float)])
    >>> record_from(Look, {"rows": 3, "mean": {"float": "nan"}})
    Look(rows=3, mean=nan)
    >>> record_from(Look, {"rows": "3", "mean": 0.5})
    Traceback (most recent call last):
        ...
    ValueError: `rows` of a Look must be of type int, got '3'.
    """
    hints, values = get_type_hints(kind), decode(told)
    if not isinstance(values, dict) or set(values) != set(hints):
        raise ValueError(f"a {kind.__name__} must have {', '.join(hints)}.")
    for name, own in hints.items():
        if own is float and type(values[name]) is int:
            values[name] = float(values[name])
        if type(values[name]) is not own:
            raise ValueError(
                f"`{name}` of a {kind.__name__} must be of type {own.__name__}, got {values[name]!r}."
            )
    return kind(**values)


def label_to(label: Any) -> dict[str, Any]:
    """Give a label with its type, so that it comes back as what it was.

    Examples
    --------
    >>> label_to(np.bool_(True)), label_to(0.1)
    ({'type': 'bool', 'value': True}, {'type': 'float', 'value': '0x1.999999999999ap-4'})
    """
    if isinstance(label, np.generic):
        label = label.item()
    kind = type(label).__name__
    if kind not in _LABELS:
        raise TypeError(f"A label must be text, a number or a boolean, got {label!r} of type {kind}.")
    return {"type": kind, "value": label.hex() if isinstance(label, float) else label}


def label_from(told: Any) -> Any:
    """Read what `label_to` gave."""
    kind = told.get("type") if isinstance(told, Mapping) else None
    value = told["value"] if kind in _LABELS and "value" in told else None
    if kind == "float" and isinstance(value, str):
        return float.fromhex(value)
    if kind not in _LABELS or type(value) is not _LABELS[kind]:
        raise ValueError("Its labels are not told as they should be.")
    return value
