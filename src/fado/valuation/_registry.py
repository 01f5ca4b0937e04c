"""The one list of valuators: what configurations and commands call them."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, TypeVar

from fado._registry import ClassRegistry

__all__ = ["make_valuator", "register_valuator", "valuator_class", "valuator_names"]

Class = TypeVar("Class", bound=type)

_CLASSES = ClassRegistry("valuator")


def register_valuator(name: str) -> Callable[[Class], Class]:
    """Register a valuator class, as a decorator, under the name that configurations and commands use.

    Parameters
    ----------
    name : str
        A name that no other valuator has; otherwise the decorator raises a ValueError.
    """
    return _CLASSES.register(name)


def valuator_names() -> tuple[str, ...]:
    """List the names of the valuators, in the order in which they were registered."""
    return _CLASSES.names()


def valuator_class(name: str) -> Any:
    """Give the class of a valuator by its name; a ValueError lists the names if there is none."""
    return _CLASSES.find(name, "The algorithm")


def make_valuator(name: str, **settings: Any) -> Any:
    """Make a valuator by its name, with those of the settings that it takes; others are ignored.

    Parameters
    ----------
    name : str
        One of `valuator_names`; anything else raises a ValueError.
    **settings
        Parameters of the valuator.

    Examples
    --------
    >>> from fado.valuation import make_valuator
    >>> make_valuator("oob", n_bags=5, random_state=0)
    OutOfBagEntropy(n_bags=5, random_state=0)
    >>> make_valuator("inbag", n_bags=5, random_state=0)
    InBagEntropy(random_state=0)
    """
    kind = valuator_class(name)
    taken = inspect.signature(kind).parameters
    return kind(**{own: value for own, value in settings.items() if own in taken})
