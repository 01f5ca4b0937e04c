"""The one list of valuators: what configurations and commands call them."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, TypeVar

from fado._plugins import load_plugins

__all__ = ["make_valuator", "register_valuator", "valuator_names"]

Class = TypeVar("Class", bound=type)

_CLASSES: dict[str, type[Any]] = {}


def register_valuator(name: str) -> Callable[[Class], Class]:
    """Give a valuator the name by which configurations and commands know it.

    Parameters
    ----------
    name : str
        A word that no other valuator has.
    """

    def register(kind: Class) -> Class:
        known = _CLASSES.get(name)
        if known is not None and known.__qualname__ != kind.__qualname__:
            raise ValueError(f"There is a valuator called {name!r} already, {known.__qualname__}.")
        _CLASSES[name] = kind
        return kind

    return register


def valuator_names() -> tuple[str, ...]:
    """List the valuators, in the order in which they were registered."""
    load_plugins()
    return tuple(_CLASSES)


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
    if name not in valuator_names():
        known = " or ".join(map(repr, _CLASSES))
        raise ValueError(f"The algorithm must be {known}, got {name!r}.")
    taken = inspect.signature(_CLASSES[name]).parameters
    return _CLASSES[name](**{own: value for own, value in settings.items() if own in taken})
