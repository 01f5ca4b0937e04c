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
    return _CLASSES.register(name)


def utility_names() -> tuple[str, ...]:
    """List the utilities, in the order in which they were registered."""
    return _CLASSES.names()


def utility_class(name: str) -> Any:
    """Give the class of a utility."""
    return _CLASSES.find(name, "`utility`")
