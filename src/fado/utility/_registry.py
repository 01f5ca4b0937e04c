"""The one list of utilities: what configurations, commands and pages call them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from fado._registry import ClassRegistry
from fado.utility._base import BaseUtility

__all__ = ["register_utility", "utility_class", "utility_names"]

Class = TypeVar("Class", bound=type[BaseUtility])

_CLASSES = ClassRegistry("utility")


def register_utility(name: str) -> Callable[[Class], Class]:
    """Register a utility under a name, for configurations, commands and pages.

    Parameters
    ----------
    name : str
        A name that no other utility has.

    Returns
    -------
    callable
        A decorator for a subclass of `BaseUtility`. It raises a ValueError if another class has the name.

    Examples
    --------
    >>> from fado.utility import LinearUtility, utility_class
    >>> utility_class("linear") is LinearUtility
    True
    """
    return _CLASSES.register(name)


def utility_names() -> tuple[str, ...]:
    """List the names of all registered utilities, in the order in which they were registered."""
    return _CLASSES.names()


def utility_class(name: str) -> Any:
    """Give the class of a utility by its name; a ValueError lists the names if there is none."""
    return _CLASSES.find(name, "`utility`")
