"""What other packages register: which of it a configuration uses, and how another process gets it."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib.metadata import packages_distributions
from typing import Any

from fado.experiment._config import Config
from fado.experiment._metrics import metric_functions, metric_names, register_metric
from fado.interventions import intervention_entries, register_intervention
from fado.utility import register_utility, utility_class, utility_names
from fado.valuation import register_valuator, valuator_class, valuator_names

_SHOWN = 80  # characters of what a store says
_ENTRY_FIELDS = ("key", "settings", "fixed", "by_default", "shape", "colour", "needs_group")


def plugins_used(config: Config) -> list[dict[str, str]]:
    """Return the origins of the valuators, utilities and interventions of other packages."""
    classes, used = _classes(), []
    for kind, name in _names_used(config):
        module = classes[kind, name].__module__
        if not module.startswith("fado."):
            package = ", ".join(packages_distributions().get(module.partition(".")[0], []))
            used.append({"kind": kind, "name": name, "module": module, "package": package})
    return used


def lacking_plugins(config: Config, plugins: Sequence[Mapping[str, str]]) -> list[str]:
    """Name what the experiment of a store used and is not registered here, with its module."""
    registered = _classes()
    origins = {(plugin["kind"], plugin["name"]): plugin for plugin in plugins}
    lacking = []
    for kind, name in _names_used(config):
        if (kind, name) not in registered:
            title, origin = f"the {kind} {name[:_SHOWN]!r}", origins.get((kind, name))
            if origin is not None:
                of = f" of the package {origin['package'][:_SHOWN]!r}" if origin["package"] else ""
                title += f" (module {origin['module'][:_SHOWN]!r}{of})"
            lacking.append(title)
    return lacking


def _classes() -> dict[tuple[str, str], Any]:
    """Return all registered classes by their kind and name."""
    return {
        **{("valuator", name): valuator_class(name) for name in valuator_names()},
        **{("utility", name): utility_class(name) for name in utility_names()},
        **{("intervention", entry.key): entry.kind for entry in intervention_entries()},
    }


def _names_used(config: Config) -> list[tuple[str, str]]:
    """List the names that a configuration uses, each once."""
    names = [("valuator", name) for name in config.valuation.algorithms]
    for key, grid in config.interventions.items():
        names += [("intervention", str(key))] if grid else []
        utilities = grid.get("utilities", ()) if isinstance(grid, Mapping) else ()
        if isinstance(utilities, list | tuple):
            names += [("utility", str(name)) for name in utilities]
    return list(dict.fromkeys(names))


def registrations() -> list[Callable[[], Any]]:
    """Return functions that register, in another process, what is registered here.

    Classes of modules are imported there by name; those of ``__main__`` or of a function are sent.
    """
    steps: list[Callable[[], Any]] = []
    for entry in intervention_entries():
        about = {name: getattr(entry, name) for name in _ENTRY_FIELDS}
        steps.append(partial(_register, entry.kind, register_intervention, entry.name, **about))
    steps += [partial(_register, utility_class(name), register_utility, name) for name in utility_names()]
    steps += [partial(_register, valuator_class(name), register_valuator, name) for name in valuator_names()]
    metrics = metric_functions(metric_names())
    steps += [partial(_register, metric, register_metric, name) for name, metric in metrics.items()]
    return [*steps, partial(_filter_warnings, list(warnings.filters))]


def _register(what: Any, register: Callable[..., Any], *names: str, **settings: Any) -> None:
    register(*names, **settings)(what)


def _filter_warnings(filters: list[Any]) -> None:
    warnings.resetwarnings()
    here: Any = warnings.filters
    here[:] = filters
