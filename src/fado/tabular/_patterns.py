"""Columns by their names, or by patterns as a shell has them."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase

__all__ = ["is_pattern", "names_like"]


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
