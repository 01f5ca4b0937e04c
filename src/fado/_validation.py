"""Checks of settings that several parts share."""

from __future__ import annotations

from numbers import Real
from typing import Any

__all__ = ["check_choice", "check_share"]


def check_share(name: str, value: Any) -> float:
    """Give a setting as a float, or say that it is no number between 0 and 1."""
    if not isinstance(value, Real):
        raise TypeError(f"`{name}` must be a number in [0, 1], got {value!r}.")
    if not 0 <= float(value) <= 1:
        raise ValueError(f"`{name}` must be in [0, 1], got {value}.")
    return float(value)


def check_choice(name: str, value: Any, choices: tuple[str, ...]) -> None:
    """Refuse a setting that is none of a few words."""
    if value not in choices:
        raise ValueError(f"`{name}` must be {' or '.join(map(repr, choices))}, got {value!r}.")
