"""What the training columns were like, and how far the columns of new rows are from them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from fado._messages import list_names
from fado._records import record_from
from fado.engine import Schema
from fado.metrics import share_limits
from fado.models._facts import FEW
from fado.tabular import Column, Table

DRIFT_LIMIT = 0.2  # the index above which a column has drifted, if chance does not explain it
FALSE_ALARMS = 0.001  # the share of checks without drift in which any column is said to have drifted
_NAMED = 5  # levels that a check names
_BINS = 10  # of numbers
_MOST_LEVELS = 50
_FEW_NUMBERS = 20  # different numbers up to which numbers are levels
_FIRST_ROWS = 1_000  # enough to recognise most columns of many numbers


@dataclass(frozen=True)
class ColumnSummary:
    """How many training rows each bin of a column has; no number of fewer than 10 rows is kept.

    The bins are deciles of numbers, or levels.

    Parameters
    ----------
    name : str
        The column's name.
    edges : tuple of float, optional
        For numbers, the upper end of every bin but the last, which is open.
    levels : tuple of str, optional
        For levels, or at most 20 different numbers, the 50 most frequent.
    unseen : float, default=0.0
        The share of new rows that may be expected to have a level that no training row has: that of the
        training rows whose level occurs once (Good and Turing); 0 if these are fewer than 10.
    counts : tuple of int
        Rows per bin; all other levels share the bin after the levels. The last count is of missing entries.

    See Also
    --------
    fado.models.summarize_columns : The summaries of all columns of a table.
    ChosenModel.check : Compares new rows with these summaries, to detect drift.

    Examples
    --------
    >>> from fado.tabular import column_from
    >>> ColumnSummary.of(column_from("town", ["Ulm"] * 30 + ["Bonn"] * 20 + ["Kiel"] * 3 + [None] * 12))
    ColumnSummary(name='town', counts=(30, 20, 0, 12), edges=None, levels=('Ulm', 'Bonn'), unseen=0.0)
    >>> ColumnSummary.of(column_from("age", list(range(40)))).edges  # four bins of ten
    (9.0, 19.0, 29.0)
    """

    name: str
    counts: tuple[int, ...]
    edges: tuple[float, ...] | None = None
    levels: tuple[str, ...] | None = None
    unseen: float = 0.0

    @classmethod
    def of(cls, column: Column) -> ColumnSummary:
        """Choose the bins of a column, and count its rows."""
        if column.levels is None and not _has_few_numbers(column):
            bins = cls(column.name, (), edges=_edges(column.numbers()))
        else:
            codes, texts = _levels(column)
            counts = np.bincount(codes[codes >= 0], minlength=len(texts))
            frequent = np.argsort(-counts, kind="stable")[:_MOST_LEVELS]
            kept = tuple(texts[code] for code in frequent.tolist() if counts[code] >= FEW)
            once = int((counts == 1).sum())
            bins = cls(column.name, (), levels=kept, unseen=0.0 if once < FEW else once / len(column))
        counted = bins.count(column)
        return replace(bins, counts=tuple(np.where(counted < FEW, 0, counted).tolist()))

    def count(self, column: Column) -> npt.NDArray[np.int64]:
        """Count the rows of another column in these bins."""
        if self.levels is None:
            numbers = column.numbers()
            known = numbers[~np.isnan(numbers)]
            places, n_bins = np.searchsorted(np.array(self.edges), known), len(self.edges or ()) + 1
        else:
            place, others = {level: code for code, level in enumerate(self.levels)}, len(self.levels)
            codes, texts = _levels(column)
            bins = np.array([place.get(text, others) for text in texts], dtype=np.int64)
            places, n_bins = bins[codes[codes >= 0]], others + 1
        return np.append(np.bincount(places, minlength=n_bins), len(column) - len(places))

    def distance(self, column: Column) -> tuple[float, int]:
        """Return the population stability index of another column, and how many bins have rows."""
        both = np.array([self.counts, self.count(column)])
        both = both[:, both.any(axis=0)] + 0.5  # half a row more: an empty bin is no proof that none come
        before, now = both / both.sum(axis=1, keepdims=True)
        return float(((now - before) * np.log(now / before)).sum()), both.shape[1]

    @classmethod
    def from_plain(cls, content: Any) -> ColumnSummary:
        """Read an encoded summary; anything else raises a ValueError."""
        what = "the summary of its training columns"
        summary = record_from(cls, content, what)
        bins = summary.edges if summary.levels is None else summary.levels
        if bins is None or len(summary.counts) != len(bins) + 2 or min(summary.counts) < 0:
            raise ValueError(f"`counts` of {what} is broken, got {list(summary.counts)}.")
        return summary


def summarize_columns(
    table: Table, rows: npt.NDArray[np.integer[Any]] | None = None
) -> tuple[ColumnSummary, ...]:
    """Summarize the columns of training rows, so that drift can be detected later.

    Parameters
    ----------
    table : Table
        The columns that a model is trained on, in order.
    rows : ndarray of int, optional
        Positions of the rows that the model is trained on; None takes all rows.

    Returns
    -------
    tuple of ColumnSummary
        One per column; empty for a sparse matrix.
    """
    if table.is_sparse:
        return ()
    return tuple(ColumnSummary.of(column if rows is None else column.take(rows)) for column in table.columns)


def _has_few_numbers(column: Column) -> bool:
    """Return whether a column has so few different numbers that they are levels."""
    for rows in (slice(_FIRST_ROWS), slice(None)):
        numbers = column.numbers()[rows]
        if len(np.unique(numbers[~np.isnan(numbers)])) > _FEW_NUMBERS:
            return False
    return True


def _edges(numbers: npt.NDArray[np.float64]) -> tuple[float, ...]:
    """Return the deciles, or fewer, so that no bin has fewer rows than may be kept."""
    known = np.sort(numbers[~np.isnan(numbers)])
    n_bins = min(_BINS, len(known) // FEW)
    if n_bins < 2:
        return ()
    at = np.quantile(known, np.arange(1, n_bins) / n_bins, method="inverted_cdf")
    kept: list[float] = []
    below = 0
    for edge in np.unique(at[np.isfinite(at)]).tolist():
        reached = int(np.searchsorted(known, edge, side="right"))
        if reached - below >= FEW and len(known) - reached >= FEW:
            kept.append(edge)
            below = reached
    return tuple(kept)


def _levels(column: Column) -> tuple[npt.NDArray[np.int32], Sequence[str]]:
    """Return codes into texts: the levels, or numbers as they are written, whatever their type."""
    if column.levels is not None:
        return column.codes(), column.levels
    codes, entries = column.encode()
    return codes, [f"{float(entry):.15g}" for entry in entries]


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
    entries: list[dict[str, Any]] = []
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
        entries.append(entry)
    return entries, _notes(entries, summarized=bool(summaries))


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


def _notes(entries: Sequence[dict[str, Any]], *, summarized: bool) -> list[str]:
    """State which columns drifted, and which hold levels that the model has not seen."""
    notes = []
    absent = [repr(entry["column"]) for entry in entries if entry["absent"]]
    if absent:
        named = list_names(absent, 10)
        notes.append(f"Columns of the training rows that these rows lack, and scores do not use: {named}.")
    moved = [entry for entry in entries if entry.get("stability_index", 0.0) > entry.get("limit", math.inf)]
    if moved:
        moved.sort(key=lambda entry: -entry["stability_index"])
        named = list_names([f"{entry['column']!r} ({entry['stability_index']:.2f})" for entry in moved], 10)
        notes.append(
            f"{len(moved)} of {len(entries)} columns drifted from the training rows, by a population "
            f"stability index above {DRIFT_LIMIT:g} and beyond chance: {named}."
        )
    unseen = [
        f"{entry['column']!r} in {entry['unseen']:,} rows ({', '.join(map(repr, entry['unseen_levels']))})"
        for entry in entries
        if entry["unseen"]
    ]
    if unseen:
        named = list_names(unseen, 10)
        notes.append(f"Levels that the model has not seen, which it treats as missing: {named}.")
    if not summarized:
        notes.append("The model has no summary of its training columns: drift cannot be detected.")
    return notes
