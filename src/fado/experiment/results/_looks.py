"""How a report shows interventions and their settings, by what the registry says of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fado.interventions import Entry, intervention_entries

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["describe_marks", "describe_settings", "intervention_names", "looks_of", "setting_columns"]

_SHAPE, _COLOUR = "circle", "#777777"  # of what is not registered, or has neither a colour nor an alpha
_PLURALS = {"triangle-up": "triangles", "triangle-down": "triangles", "cross": "crosses"}


def intervention_names(frame: pd.DataFrame) -> list[str]:
    """List the interventions of a frame: in the registry's order, then those that it does not know."""
    there = list(dict.fromkeys(frame["intervention"]))
    known = [entry.name for entry in intervention_entries()]
    return [name for name in dict.fromkeys([*known, *there]) if name in there]


def looks_of(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Give the mark of every intervention of a frame; without a colour, alpha gives it.

    The mark also says whether decisions need the group of a row.
    """
    entries = {entry.name: entry for entry in intervention_entries()}
    steered = set(frame.loc[frame["alpha"].notna(), "intervention"])
    looks = []
    for name in intervention_names(frame):
        entry = entries.get(name)
        colour = entry.colour if entry is not None else None
        looks.append(
            {
                "name": name,
                "shape": entry.shape if entry is not None else _SHAPE,
                "colour": _COLOUR if colour is None and name not in steered else colour,
                "needs_group": bool(getattr(entry, "needs_group", False)),
            }
        )
    return looks


def describe_marks() -> str:
    """Say what the shapes stand for.

    Examples
    --------
    >>> describe_marks()
    'Circles are baselines, triangles sampling, squares and diamonds reweighing, crosses changed scores'
    """
    shapes: dict[str, dict[str, None]] = {}
    for entry in intervention_entries():
        shapes.setdefault(_family(entry), {})[_PLURALS.get(entry.shape, f"{entry.shape}s")] = None
    told = [
        f"{' and '.join(own)}{'' if place else ' are'} {family}"
        for place, (family, own) in enumerate(shapes.items())
    ]
    return ", ".join(told).capitalize()


def _family(entry: Entry) -> str:
    if entry.changes_scores:
        return "changed scores"
    if not entry.uses_values:
        return "baselines"
    return "sampling" if entry.kind.changes == "rows" else "reweighing"


def setting_columns(frame: pd.DataFrame) -> list[str]:
    """Name the columns of a frame that tell settings, except those that have one value per experiment."""
    columns = list(frame.columns)
    single = {
        setting.name
        for entry in intervention_entries()
        for setting in entry.settings
        if setting.plural is None
    }
    there = columns[columns.index("intervention") + 1 : columns.index("model")]
    return [name for name in there if name not in single]


def describe_settings(frame: pd.DataFrame) -> list[str]:
    """Say every row's settings in words; the algorithm only where there are several."""
    names = [
        name
        for name in setting_columns(frame)
        if name != "algorithm" or len(frame[name].dropna().unique()) > 1
    ]
    return [
        ", ".join(
            f"{str(name).replace('_', ' ')} {value if isinstance(value, str) else format(value, '.4g')}"
            for name, value in row.items()
            if value is not None and value == value
        )
        for row in frame[names].to_dict("records")
    ]
