"""Plain data for JSON and back, nothing lost: numbers that are none, labels with their types."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

__all__ = ["decode", "encode", "label_from", "label_to", "simplify"]

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
    return value.__name__ if isinstance(value, type) or callable(value) else type(value).__name__


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
