"""Utilities and interventions of other packages: they are found by their entry points."""

from __future__ import annotations

from functools import cache
from importlib.metadata import entry_points

__all__ = ["load_plugins"]

GROUP = "fado.plugins"


@cache
def load_plugins() -> None:
    """Import, once, every installed module that adds utilities or interventions.

    A package names such a module in its metadata: ``[project.entry-points."fado.plugins"]``, then
    ``mine = "my_package.my_module"``. Nothing that a configuration or a store says is ever imported.
    """
    for point in entry_points(group=GROUP):
        point.load()
