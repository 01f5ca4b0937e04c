"""Classes by name: what a configuration, a command or a page may ask for."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib.metadata import entry_points
from typing import Any, TypeVar

_GROUP = "fado.plugins"

Class = TypeVar("Class", bound=type)


class ClassRegistry(dict[str, type[Any]]):
    """Classes of one kind by their names, in the order in which they were registered.

    Parameters
    ----------
    kind : str
        What such a class is called in a message.
    """

    def __init__(self, kind: str) -> None:
        super().__init__()
        self._kind = kind

    def register(self, name: str) -> Callable[[Class], Class]:
        """Give a decorator that enters a class under a name which no other has."""

        def enter(own: Class) -> Class:
            known = self.get(name)
            if known is not None and known.__qualname__ != own.__qualname__:
                raise ValueError(f"There is a {self._kind} called {name!r} already, {known.__qualname__}.")
            self[name] = own
            return own

        return enter

    def names(self) -> tuple[str, ...]:
        """List the names, those of plug-ins too."""
        load_plugins()
        return tuple(self)

    def find(self, name: str, argument: str) -> type[Any]:
        """Give the class of a name, or say which names there are."""
        if name not in self.names():
            raise ValueError(f"{argument} must be {' or '.join(map(repr, self))}, got {name!r}.")
        return self[name]


@cache
def load_plugins() -> None:
    """Import, once, every installed module that adds utilities or interventions.

    A package names such a module in its metadata: ``[project.entry-points."fado.plugins"]``, then
    ``mine = "my_package.my_module"``. Nothing that a configuration or a store says is ever imported.
    """
    for point in entry_points(group=_GROUP):
        point.load()
