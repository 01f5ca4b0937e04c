"""The one list of valuators: what configurations and commands call them."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, TypeVar

from fado._registry import ClassRegistry

__all__ = ["make_valuator", "register_valuator", "valuator_names"]

Class = TypeVar("Class", bound=type)

_CLASSES = ClassRegistry("valuator")


def register_valuator(name: str) -> Callable[[Class], Class]:
    """Give a valuator the name by which configurations and commands know it.

    Parameters
    ----------
    name : str
        A word that no other valuator has.
    """
    return _CLASSES.register(name)


def valuator_names() -> tuple[str, ...]:
    """List the valuators, in the order in which they were registered."""
    return _CLASSES.names()


def make_valuator(name: str, **settings: Any) -> Any:
    """Make a valuator with those of some settings that it takes.

    Examples
    --------
    >>> from fado.valuation import make_valuator
    >>> make_valuator("oob", n_bags=5, random_state=0)
    OutOfBagEntropy(n_bags=5, random_state=0)
    >>> make_valuator("inbag", n_bags=5, random_state=0)
    InBagEntropy(random_state=0)
    """
    kind = _CLASSES.find(name, "The algorithm")
    taken = inspect.signature(kind).parameters
    return kind(**{own: value for own, value in settings.items() if own in taken})
