"""How far the columns of new rows are from the training rows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from fado._messages import list_names
from fado.engine import Schema
from fado.metrics import share_limits
from fado.models._facts import ColumnSummary
from fado.tabular import Column, Table

DRIFT_LIMIT = 0.2  # the index above which a column has drifted, if chance does not explain it
FALSE_ALARMS = 0.001  # the share of checks without drift in which any column is said to have drifted
_NAMED = 5  # levels that a check names


def compare_columns(
    summaries: Sequence[ColumnSummary], schema: Schema | None, table: Table
) -> tuple[list[dict[str, Any]], list[str]]:
    """Measure how far each column of new rows is from the training rows, and name those that drifted.

    The distance is the population stability index: over the bins of a column, the sum of
    (now - before) * log(now / before) of the shares of rows. Without drift, the index of n rows against m is
    about (1 / n + 1 / m) times a chi-square with one degree of freedom fewer than there are bins.

    Parameters
    ----------
    summaries : sequence of ColumnSummary
        One per column of the schema, or none.
    schema : Schema or None
        The columns that the model was trained on.
    table : Table
        New rows, which the model has scored.
    """
    if schema is None or table.is_sparse:
        return [], [] if schema is None else ["Columns of a sparse matrix are not compared."]
    found: list[dict[str, Any]] = []
    for j, place in enumerate(schema.find(table, ())):
        column, levels = None if place is None else table.column(place), schema.levels[j]
        entry: dict[str, Any] = {"column": schema.names[j], "absent": column is None}
        summary = summaries[j] if summaries else None
        if column is None:
            entry["drifted"] = True
        elif summary is not None and not (column.levels is not None and summary.levels is None):
            entry |= _distance(summary, column, len(summaries))
        entry |= {"unseen": 0, "unseen_levels": []}
        if levels is not None and column is not None and column.levels is not None:
            entry |= _unseen(column, set(levels))
            if summary is not None and len(column):
                share, error = entry["unseen"] / len(column), FALSE_ALARMS / (2 * len(summaries))
                surely = share_limits(np.array([share]), np.array([len(column)]), error)[0][0]
                much = share > summary.unseen + DRIFT_LIMIT and surely > summary.unseen
                entry["drifted"] = bool(entry.get("drifted") or much)
        found.append(entry)
    return found, _notes(found, told_of=bool(summaries))


def _distance(summary: ColumnSummary, column: Column, n_columns: int) -> dict[str, Any]:
    """Measure how far a column is from its summary, and whether that is drift."""
    from scipy.special import chdtri

    index, n_bins = summary.distance(column)
    n_before = sum(summary.counts)
    chance = 0.0
    if n_bins > 1 and n_before:
        unsure = 1 / n_before + 1 / len(column)
        chance = unsure * float(chdtri(n_bins - 1, FALSE_ALARMS / n_columns))
    limit = max(DRIFT_LIMIT, chance)
    missing = int(summary.count(column)[-1]) / len(column)
    return {
        "stability_index": index,
        "limit": limit,
        "drifted": index > limit,
        "missing": missing,
        "missing_before": summary.counts[-1] / n_before if n_before else 0.0,
    }


def _unseen(column: Column, known: set[str]) -> dict[str, Any]:
    """Count the rows of levels that the model has not seen, and name the most frequent."""
    levels = column.levels or ()
    codes = column.codes()
    counts = np.bincount(codes[codes >= 0], minlength=len(levels))
    strange = [code for code, level in enumerate(levels) if level not in known and counts[code]]
    strange.sort(key=lambda code: -counts[code])
    named = [levels[code] for code in strange[:_NAMED]]
    return {"unseen": int(counts[strange].sum()), "unseen_levels": named}


def _notes(found: Sequence[dict[str, Any]], *, told_of: bool) -> list[str]:
    """State which columns drifted, and which hold levels that the model has not seen."""
    notes = []
    absent = [repr(entry["column"]) for entry in found if entry["absent"]]
    if absent:
        named = list_names(absent, 10)
        notes.append(f"Columns of the training rows that these rows lack, and scores do not use: {named}.")
    moved = [entry for entry in found if entry.get("stability_index", 0.0) > entry.get("limit", math.inf)]
    if moved:
        moved.sort(key=lambda entry: -entry["stability_index"])
        named = list_names([f"{entry['column']!r} ({entry['stability_index']:.2f})" for entry in moved], 10)
        notes.append(
            f"{len(moved)} of {len(found)} columns drifted from the training rows, by a population "
            f"stability index above {DRIFT_LIMIT:g} and beyond chance: {named}."
        )
    unseen = [
        f"{own['column']!r} in {own['unseen']:,} rows ({', '.join(map(repr, own['unseen_levels']))})"
        for own in found
        if own["unseen"]
    ]
    if unseen:
        told = list_names(unseen, 10)
        notes.append(f"Levels that the model has not seen, which it treats as missing: {told}.")
    if not told_of:
        notes.append("The model has no summary of its training columns: drift cannot be detected.")
    return notes
