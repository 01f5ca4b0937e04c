"""The `[interventions]` of a configuration, read by what the registry says of each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fado.experiment.config._section import Section, as_amount, as_share, as_text, shown
from fado.experiment.config._settings import Grid
from fado.interventions import Entry, Setting, intervention_entries
from fado.utility import utility_names

__all__ = ["keep_interventions", "read_interventions", "rename_former"]

UTILITY = "linear"  # if a configuration names none


def read_interventions(section: Section) -> dict[str, Grid | bool | None]:
    """Give the grid of every registered intervention by its key; see `Config`."""
    found = {entry.key: _read_entry(section, entry) for entry in intervention_entries()}
    section.done()
    if not any(found.values()):
        raise ValueError(f"`{section.place}` has none: switch at least one on.")
    return found


def keep_interventions(section: Section) -> dict[str, Grid | bool | None]:
    """Give what a store says of its interventions, whether or not they are registered.

    Those that cannot be read, as they or their utilities are not there any more, are kept as they stand.
    """
    entries = {entry.key: entry for entry in intervention_entries()}
    found: dict[str, Grid | bool | None] = {}
    for key in dict.fromkeys([*entries, *section]):
        try:
            found[key] = _read_entry(section, entries[key])
        except (KeyError, ValueError):
            found[key] = section.take(key, None)
    return found


def rename_former(settings: dict[str, Any]) -> dict[str, Any]:
    """Give the flat settings of an earlier release by the names of this one.

    Examples
    --------
    >>> rename_former({"seed": 0, "interventions.corrected_uar.corrections": [1.0]})
    {'seed': 0, 'interventions.corrected_uar.prevalence_corrections': [1.0]}
    """
    renamed = {
        f"interventions.{entry.key}.{setting.former}": f"interventions.{entry.key}.{setting.plural}"
        for entry in intervention_entries()
        for setting in entry.settings
        if setting.former is not None
    }
    return {renamed.get(place, place): value for place, value in settings.items()}


def _read_entry(section: Section, entry: Entry) -> Grid | bool | None:
    """Read a switch, if there is nothing to set, or a table of what to try."""
    if not entry.settings and not entry.uses_values:
        return section.switch(entry.key, entry.by_default)
    if section.take(entry.key, entry.by_default) is False:
        return None
    given = Section({}, section.at(entry.key))
    if entry.key in section and (entry.uses_values or section.take(entry.key) is not True):
        given = section.section(entry.key)
    return _read_grid(given, entry)


def _as_line(value: Any, place: str) -> float:
    if as_share(value, place) == 0:
        raise ValueError(f"`{place}` must be above 0, got {shown(value)}.")
    return float(value)


def _read_grid(section: Section, entry: Entry) -> Grid:
    grid: Grid = {}
    if entry.uses_values:
        grid["utilities"] = section.texts("utilities", (UTILITY,), utility_names())
        grid["alphas"] = section.shares("alphas")
    for setting in entry.settings:
        read = _reader(setting)
        if setting.plural is None:
            grid[setting.name] = read(section.take(setting.name, setting.default), section.at(setting.name))
        else:
            grid[setting.plural] = section.different(_key(section, setting), (setting.default,), read)
    section.done()
    for name, values in grid.items():
        if values == ():
            raise ValueError(f"`{section.at(name)}` is empty: list at least one.")
    return grid


def _reader(setting: Setting) -> Callable[[Any, str], Any]:
    """Give what checks one value of a setting."""
    if setting.kind == "choice":
        return lambda value, place: as_text(value, place, setting.choices)
    return {"share": as_share, "line": _as_line, "number": as_amount}[setting.kind]


def _key(section: Section, setting: Setting) -> str:
    """Give the key that lists a setting's values: its plural, or what earlier releases called it."""
    plural, former = str(setting.plural), setting.former
    if former is None or former not in section:
        return plural
    if plural in section:
        raise ValueError(f"`{section.at(former)}` is the former name of `{plural}`: give one of them.")
    section.take(plural, None)
    return former
