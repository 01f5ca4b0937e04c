"""Effects as tables of pandas."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["effect_frames"]

_CHANGES = ["rows", "share", "ratio_change", "performance_change", "ratio", "performance"]
_COLUMNS = {
    "cells": ["group", "label", "rows", "ratio_effect", "performance_effect"],
    "slices": ["slice", *_CHANGES, "p_value"],
    "curve": ["share", "rows", *_CHANGES[2:]],
}


def effect_frames(summary: dict[str, Any], attribute: str | None) -> dict[str, pd.DataFrame]:
    """Give the effects of a summary's attribute as tables: see `Exploration.effects`."""
    import pandas as pd

    entries = {entry["name"]: entry for entry in summary["attributes"]}
    name = next(iter(entries)) if attribute is None else attribute
    if name not in entries:
        raise ValueError(f"`attribute` must be one of {list(entries)}, got {attribute!r}.")
    part = entries[name].get("effects")
    if part is None:
        raise ValueError(
            f"The values of {name!r} are no effects: value the rows with TreeInfluence, or another valuator "
            "of effects, to see what rows do to the model."
        )
    slices = [one | {"slice": " and ".join(one["conditions"])} for one in part["slices"]]
    rows = {"cells": part["cells"], "slices": slices, "curve": part["curve"]}
    frames = {key: pd.DataFrame(own, columns=_COLUMNS[key]) for key, own in rows.items()}
    for frame in frames.values():
        numbers = [column for column in frame.columns if frame[column].isna().all()]
        frame[numbers] = frame[numbers].astype("float64")  # what is not known is NaN
    if part.get("measured") is not None:
        frames["measured"] = pd.DataFrame(part["measured"]["points"])
    return frames
