"""Plain data that somebody else may have written: JSON's texts, numbers, lists and mappings."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

__all__ = ["Entries", "is_number", "is_shallow", "shorten"]

_LONGEST = 100  # characters of a value that a message quotes
_DEEPEST = 20


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
