"""Sentences about an experiment that no row of its frame tells."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fado.experiment._trial import DONE, UNTOUCHED
from fado.interventions import intervention_entries
from fado.metrics import RATIO_NAMES

if TYPE_CHECKING:
    from fado.experiment._results import Results

__all__ = ["left_out_groups", "notes_of"]


def notes_of(results: Results) -> list[str]:
    """Say of how many models an intervention on scores leaves the scores as they are, by line."""
    changing = {entry.name for entry in intervention_entries() if entry.changes_scores}
    done = results.frame[results.frame["status"] == DONE]
    asked = done[done["intervention"].isin(changing)]
    if asked.empty or "ratio" not in asked.columns:  # a plug-in on scores may know no ratio
        return []
    asked = asked[asked["ratio"].notna()]
    if "demand" in asked.columns:
        asked = asked[asked["demand"].isna()]
    metrics = [f"{results.chosen_on}_{name}" for name in ("threshold", "fpr", "tpr", *RATIO_NAMES)]
    untouched = done[done["intervention"] == UNTOUCHED.intervention].set_index("model")[metrics]
    notes = []
    for (name, ratio, line), rows in asked.groupby(["intervention", "ratio", "at_least"], sort=False):
        same = sum(
            untouched.loc[[model]].iloc[0].equals(row)
            for model, (_, row) in zip(rows["model"], rows[metrics].iterrows(), strict=True)
            if model in untouched.index
        )
        if same:
            notes.append(
                f"{name}: {same:,} of {len(rows):,} models reach a {ratio} of {line:g} on "
                f"{results.chosen_on} rows as they are, or cannot be moved: their scores stay as they are."
            )
    return notes


def left_out_groups(summary: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Do the work of `Results.left_out`."""
    found: dict[tuple[Any, str], dict[str, Any]] = {}
    for entry in summary:
        if entry.get("left_out"):
            about = {"group": entry["group"], "attribute": entry["attribute"]}
            found.setdefault((entry["attribute"], entry["group"]), about)[entry["part"]] = entry["rows"]
    return list(found.values())
