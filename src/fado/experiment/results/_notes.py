"""Sentences about an experiment that no row of its frame tells."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from fado.experiment.search import UNTOUCHED
from fado.experiment.store import DONE
from fado.interventions import intervention_entries

if TYPE_CHECKING:
    from fado.experiment.results._results import Results

__all__ = ["left_out_groups", "notes_of"]


def notes_of(results: Results) -> list[str]:
    """Say how many models an intervention is not aimed with, since they reach its lines untouched."""
    notes = []
    for entry in intervention_entries():
        asked = results.config.interventions.get(entry.key)
        if entry.dial and isinstance(asked, Mapping):
            notes += [
                _untouched_note(results, entry.name, ratio, max(asked["targets"]))
                for ratio in asked["ratios"]
            ]
    return [note for note in notes if note]


def _untouched_note(results: Results, intervention: str, ratio: str, line: float) -> str:
    frame = results.frame
    done = frame[frame["status"] == DONE]
    untouched = done[done["intervention"] == UNTOUCHED].drop_duplicates("model")
    aimed = frame[frame["intervention"] == intervention]
    if "ratio" in aimed.columns:
        aimed = aimed[aimed["ratio"] == ratio]
    reached = untouched[untouched[f"{results.chosen_on}_{ratio}"] >= line]
    as_they_are = int((~reached["model"].isin(aimed["model"])).sum())
    if not as_they_are:
        return ""
    return (
        f"{intervention}: {as_they_are:,} of {len(untouched):,} models without an intervention reach a "
        f"{ratio} of {line:g} on {results.chosen_on} rows as they are, and are not aimed at it."
    )


def left_out_groups(summary: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Do the work of `Results.left_out`."""
    found: dict[tuple[Any, str], dict[str, Any]] = {}
    for entry in summary:
        if entry.get("left_out"):
            about = {"group": entry["group"], "attribute": entry["attribute"]}
            found.setdefault((entry["attribute"], entry["group"]), about)[entry["part"]] = entry["rows"]
    return list(found.values())
