"""The one list of utilities: what configurations, commands and pages call them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from fado._plugins import load_plugins
from fado.utility._base import BaseUtility

__all__ = ["register_utility", "utility_class", "utility_names"]

Class = TypeVar("Class", bound=type[BaseUtility])

_CLASSES: dict[str, type[BaseUtility]] = {}


def register_utility(name: str) -> Callable[[Class], Class]:
    """Give a utility the name by which configurations, commands and pages know it.

    Parameters
    ----------
    name : str
        A word that no other utility has.

    Examples
    --------
    >>> from fado.utility import LinearUtility, utility_class
    >>> utility_class("linear") is LinearUtility
    True
    """

    def register(kind: Class) -> Class:
        known = _CLASSES.get(name)
        if known is not None and known.__qualname__ != kind.__qualname__:
            raise ValueError(f"There is a utility called {name!r} already, {known.__qualname__}.")
        _CLASSES[name] = kind
        return kind

    return register


def utility_names() -> tuple[str, ...]:
    """List the utilities, in the order in which they were registered."""
    load_plugins()
    return tuple(_CLASSES)


def utility_class(name: str) -> Any:
    """Give the class of a utility."""
    load_plugins()
    if name not in _CLASSES:
        raise ValueError(f"`utility` must be {' or '.join(map(repr, _CLASSES))}, got {name!r}.")
    return _CLASSES[name]
