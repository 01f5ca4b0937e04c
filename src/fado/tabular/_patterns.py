"""Columns by their names, or by patterns as a shell has them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from typing import Any

from fado._messages import closest_names

__all__ = ["as_names", "columns_named", "is_pattern", "names_like"]


def as_names(given: Any, called: str) -> list[Any]:
    """Read a list of columns: a name alone is a list of one, None an empty list.

    Parameters
    ----------
    given : sequence, str or None
        What was passed in.
    called : str
        What the user knows it by, for a message.

    Examples
    --------
    >>> as_names("age", "drop"), as_names(None, "drop")
    (['age'], [])
    """
    if given is None:
        return []
    if isinstance(given, str):
        return [given]
    if not isinstance(given, Iterable):
        raise TypeError(f"`{called}` must be a list of column names, got {given!r}.")
    return list(given)


def is_pattern(name: str) -> bool:
    """Tell whether a name could stand for several."""
    return any(sign in name for sign in "*?[")


def names_like(name: str, names: Sequence[str]) -> list[str]:
    """Find the names that one stands for: itself if it is among them, else those that it fits as a pattern.

    Examples
    --------
    >>> names_like("age_*", ["age_1", "age_2", "sex"])
    ['age_1', 'age_2']
    >>> names_like("age_*", ["age_1", "age_*"])
    ['age_*']
    """
    return [name] if name in names else [own for own in names if fnmatchcase(own, name)]


def columns_named(names: Sequence[str], wanted: str | Sequence[str] | None, called: str) -> list[str]:
    """Find columns by their names or patterns, each once; a column called like a pattern wins.

    Parameters
    ----------
    names : sequence of str
        Those of all columns.
    wanted : sequence of str, str or None
        Names or patterns, as `as_names` reads them.
    called : str
        What the user knows `wanted` by, for a message.

    Examples
    --------
    >>> columns_named(["age_1", "age_2", "sex"], ["age_*", "sex"], "--drop")
    ['age_1', 'age_2', 'sex']
    """
    known = set(names)
    found: dict[str, None] = {}
    for name in as_names(wanted, called):
        if not isinstance(name, str):
            raise TypeError(f"`{called}` must list names of columns as text, got {name!r}.")
        here = [name] if name in known else names_like(name, names)
        if not here:
            what = "no column fits this pattern" if is_pattern(name) else f"there is no column {name!r}"
            raise ValueError(f"`{called}` names {name!r}: {what}{closest_names(name, names)}")
        found.update(dict.fromkeys(here))
    return list(found)
