"""Classes of other packages that an experiment uses: where they come from, and which of them are not here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import packages_distributions
from typing import Any

from fado.experiment.config._settings import Config
from fado.interventions import intervention_entries
from fado.utility import utility_class, utility_names
from fado.valuation import valuator_class, valuator_names

__all__ = ["PLUGIN_FIELDS", "lacking_plugins", "plugins_used"]

PLUGIN_FIELDS = ("kind", "name", "module", "package")
_OURS = "fado."
_SHOWN = 80  # characters of what a store says


def plugins_used(config: Config) -> list[dict[str, str]]:
    """Say where the valuators, utilities and interventions come from that are not of this package.

    Each has its kind and its name, the module that registered it, and the installed package that the module
    belongs to; "" if there is none, as of a script or a notebook.
    """
    classes = _classes()
    used = []
    for kind, name in _names_used(config):
        module = classes[kind, name].__module__
        if not module.startswith(_OURS):
            package = ", ".join(packages_distributions().get(module.partition(".")[0], []))
            used.append(dict(zip(PLUGIN_FIELDS, (kind, name, module, package), strict=True)))
    return used


def lacking_plugins(config: Config, plugins: Sequence[Mapping[str, str]]) -> list[str]:
    """Name what a store's experiment used and nobody has registered here, with the module it came from.

    Parameters
    ----------
    config : Config
        The store's configuration.
    plugins : sequence of mapping
        What `plugins_used` said when the store was made.
    """
    registered = _classes()
    noted = {(own["kind"], own["name"]): own for own in plugins}
    lacking = []
    for kind, name in _names_used(config):
        if (kind, name) not in registered:
            told = f"the {kind} {name[:_SHOWN]!r}"
            origin = noted.get((kind, name))
            if origin is not None:
                of = f" of the package {origin['package'][:_SHOWN]!r}" if origin["package"] else ""
                told += f" (module {origin['module'][:_SHOWN]!r}{of})"
            lacking.append(told)
    return lacking


def _classes() -> dict[tuple[str, str], Any]:
    """Give all registered classes by their kind and name."""
    return {
        **{("valuator", name): valuator_class(name) for name in valuator_names()},
        **{("utility", name): utility_class(name) for name in utility_names()},
        **{("intervention", entry.key): entry.kind for entry in intervention_entries()},
    }


def _names_used(config: Config) -> Iterator[tuple[str, str]]:
    """List what a configuration asks for, each once; what a store says may be of any kind."""
    found = {("valuator", name): None for name in config.valuation.algorithms}
    for key, grid in config.interventions.items():
        if grid:
            found["intervention", str(key)] = None
        named = grid.get("utilities", ()) if isinstance(grid, Mapping) else ()
        for name in named if isinstance(named, list | tuple) else ():
            found["utility", str(name)] = None
    yield from found
