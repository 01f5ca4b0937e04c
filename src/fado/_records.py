"""Plain data for JSON and back, nothing lost; records that others may have written, read with care."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, TypeVar, get_type_hints

import numpy as np

__all__ = [
    "Entries",
    "decode",
    "encode",
    "is_number",
    "is_shallow",
    "label_from",
    "label_to",
    "record_from",
    "shorten",
    "simplify",
]

_Record = TypeVar("_Record")

_LONGEST = 100  # characters of a value that a message quotes
_DEEPEST = 20
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


def shorten(value: Any) -> str:
    """Quote a value in a message, cut where it is long."""
    text = repr(value)
    return text if len(text) <= _LONGEST else text[:_LONGEST] + "..."


def is_number(value: Any) -> bool:
    """Tell a number that a float can hold from anything else."""
    try:
        return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    except OverflowError:
        return False


def is_shallow(content: Any, levels: int = _DEEPEST) -> bool:
    """Tell whether lists and mappings are nested only so deep.

    Examples
    --------
    >>> is_shallow([[1]], levels=2), is_shallow([[1]], levels=1)
    (True, False)
    """
    if not isinstance(content, Mapping | list):
        return True
    inner = content.values() if isinstance(content, Mapping) else content
    return levels > 0 and all(is_shallow(own, levels - 1) for own in inner)


class Entries:
    """Plain data by name, read entry by entry; what nobody asked for is the rest.

    Parameters
    ----------
    content : object
        Refused unless it is a mapping.

    Examples
    --------
    >>> entries = Entries({"seed": 3, "n_bags": 5})
    >>> entries.whole("seed"), entries.text("algorithm"), entries.rest()
    (3, None, {'n_bags': 5})
    >>> entries.text("n_bags")
    Traceback (most recent call last):
        ...
    ValueError: `n_bags` of the values' description is broken, got 5.
    """

    def __init__(self, content: Any) -> None:
        if not isinstance(content, Mapping):
            raise ValueError(f"What is told of the values must be a mapping, got {shorten(content)}.")
        self._content = {str(name): value for name, value in content.items()}
        self._read: set[str] = set()

    def text(self, name: str) -> str | None:
        """Give an entry that must be text, if it is there."""
        return self._plain(name, str)

    def whole(self, name: str) -> int | None:
        """Give an entry that must be a whole number from 0 on, if it is there."""
        found = self._plain(name, int)
        return found if found is None or found >= 0 else self._refuse(name, found)

    def flag(self, name: str) -> bool | None:
        """Give an entry that must be true or false, if it is there."""
        self._read.add(name)
        value = self._content.get(name)
        return value if value is None or isinstance(value, bool) else self._refuse(name, value)

    def mapping(self, name: str) -> dict[str, Any] | None:
        """Give an entry that must be a mapping, if it is there."""
        found = self._plain(name, Mapping)
        return None if found is None else {str(key): own for key, own in found.items()}

    def labels(self, name: str) -> tuple[Any, ...] | None:
        """Give an entry that must be a list of texts, numbers and booleans, if it is there."""
        return self._list(name, lambda own: isinstance(own, str | bool) or is_number(own))

    def texts(self, name: str) -> tuple[str, ...] | None:
        """Give an entry that must be a list of texts, if it is there."""
        return self._list(name, lambda own: isinstance(own, str))

    def numbers(self, name: str) -> tuple[float, ...] | None:
        """Give an entry that must be a list of numbers, if it is there."""
        return self._list(name, is_number)

    def amounts_by_name(self, name: str) -> dict[str, Any] | None:
        """Give an entry that must hold a number from 0 on per name, if it is there."""
        return self._mapping_of(name, lambda own: is_number(own) and own >= 0)

    def texts_by_name(self, name: str) -> dict[str, str] | None:
        """Give an entry that must hold a text per name, if it is there."""
        return self._mapping_of(name, lambda own: isinstance(own, str))

    def rest(self) -> dict[str, Any]:
        """Give the entries that were not asked for."""
        return {name: value for name, value in self._content.items() if name not in self._read}

    def _plain(self, name: str, kind: type) -> Any:
        self._read.add(name)
        value = self._content.get(name)
        if value is not None and (not isinstance(value, kind) or isinstance(value, bool)):
            self._refuse(name, value)
        return value

    def _list(self, name: str, good: Any) -> tuple[Any, ...] | None:
        found = self._plain(name, list)
        if found is None:
            return None
        for own in found:
            if not good(own):
                self._refuse(name, own)
        return tuple(found)

    def _mapping_of(self, name: str, good: Any) -> dict[str, Any] | None:
        found = self.mapping(name)
        for own in (found or {}).values():
            if not good(own):
                self._refuse(name, own)
        return found

    def _refuse(self, name: str, value: Any) -> Any:
        raise ValueError(f"`{name}` of the values' description is broken, got {shorten(value)}.")
