"""What the columns of training rows were like, in short, and how far the columns of new rows are from that.

How far is the population stability index: over the bins of a column, the sum of (now - before) * log(now /
before) of the shares of rows. Where nothing has changed, the index of n rows against m is about (1 / n + 1 /
m) times a chi-square of as many degrees of freedom as there are bins, less one: what chance explains.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fado._messages import list_names
from fado.engine import Schema
from fado.models._facts import FEW
from fado.tabular import Column, Table

Counts = npt.NDArray[np.int64]

DRIFT_LIMIT = 0.2  # the index from which a column is said to have drifted, if chance does not explain it
_FALSE_ALARMS = 0.001  # the share of checks in which chance alone passes for drift, over all columns
_BINS = 10  # of numbers
_MOST_LEVELS = 50
_FEW_NUMBERS = 20  # different ones that are levels, as everywhere in the package
_FIRST_ROWS = 1_000  # that tell most columns of many numbers without a look at all rows
_NAMED = 5  # levels that a check names


@dataclass(frozen=True)
class ColumnSummary:
    """How many training rows fell into each bin of a column; no number of fewer than 10 rows is kept.

    Parameters
    ----------
    name : str
        The column's name.
    edges : tuple of float, optional
        Of numbers, the upper end of every bin but the last, which is open.
    levels : tuple of str, optional
        Of levels, or of at most 20 different numbers, the 50 most frequent.
    counts : tuple of int
        Rows per bin; of levels, all others are the bin after them. The last are the rows without an entry.

    Examples
    --------
    >>> from fado.tabular import column_from
    >>> ColumnSummary.of(column_from("town", ["Ulm"] * 30 + ["Bonn"] * 20 + ["Kiel"] * 3 + [None] * 12))
    ColumnSummary(name='town', counts=(30, 20, 0, 12), edges=None, levels=('Ulm', 'Bonn'))
    >>> ColumnSummary.of(column_from("age", list(range(40)))).edges  # four bins of ten
    (9.0, 19.0, 29.0)
    """

    name: str
    counts: tuple[int, ...]
    edges: tuple[float, ...] | None = None
    levels: tuple[str, ...] | None = None

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
            bins = cls(column.name, (), levels=kept)
        counted = bins.count(column)
        return cls(column.name, tuple(np.where(counted < FEW, 0, counted).tolist()), bins.edges, bins.levels)

    def count(self, column: Column) -> Counts:
        """Count the rows of another column in these bins."""
        if self.levels is None:
            numbers = column.numbers()
            known = numbers[~np.isnan(numbers)]
            places, n_bins = np.searchsorted(np.array(self.edges), known), len(self.edges or ()) + 1
        else:
            place, others = {level: code for code, level in enumerate(self.levels)}, len(self.levels)
            codes, texts = _levels(column)
            told = np.array([place.get(text, others) for text in texts], dtype=np.int64)
            places, n_bins = told[codes[codes >= 0]], others + 1
        return np.append(np.bincount(places, minlength=n_bins), len(column) - len(places))

    def distance(self, column: Column) -> tuple[float, int]:
        """Give the population stability index of another column, and how many bins have rows."""
        both = np.array([self.counts, self.count(column)])
        both = both[:, both.any(axis=0)] + 0.5  # half a row more: an empty bin is no proof that none come
        before, now = both / both.sum(axis=1, keepdims=True)
        return float(((now - before) * np.log(now / before)).sum()), both.shape[1]

    def to_plain(self) -> dict[str, Any]:
        """Give all of it as JSON can hold it."""
        edges, levels = (None if own is None else list(own) for own in (self.edges, self.levels))
        return {"name": self.name, "counts": list(self.counts), "edges": edges, "levels": levels}

    @classmethod
    def from_plain(cls, told: Any) -> ColumnSummary:
        """Read what `to_plain` gave, refusing anything else."""
        name, counts, edges, levels = (told.get(key) for key in ("name", "counts", "edges", "levels"))
        bins, kind = (edges, float) if levels is None else (levels, str)
        if not (
            isinstance(name, str)
            and isinstance(bins, list)
            and all(isinstance(own, kind) for own in bins)
            and isinstance(counts, list)
            and len(counts) == len(bins) + 2
            and all(type(own) is int and own >= 0 for own in counts)
        ):
            raise ValueError("The summary of its training columns is not told as it should be.")
        return cls(name, tuple(counts), *(None if own is None else tuple(own) for own in (edges, levels)))


def summarize_columns(
    table: Table, rows: npt.NDArray[np.integer[Any]] | None = None
) -> tuple[ColumnSummary, ...]:
    """Sum up the columns of training rows, all of the table if none are named; none of a sparse matrix.

    Parameters
    ----------
    table : Table
        Its columns are those of the model's schema, in order.
    rows : ndarray of int, optional
        Positions of the rows that a model learns from.
    """
    if table.is_sparse:
        return ()
    return tuple(ColumnSummary.of(own if rows is None else own.take(rows)) for own in table.columns)


def compare_columns(
    summaries: Sequence[ColumnSummary], schema: Schema | None, table: Table
) -> tuple[list[dict[str, Any]], list[str]]:
    """Say how far each column of new rows is from the training rows, and in sentences which have drifted.

    Parameters
    ----------
    summaries : sequence of ColumnSummary
        One per column of the schema, or none.
    schema : Schema or None
        The columns that the model learnt from.
    table : Table
        New rows, which the model has scored.
    """
    if schema is None or table.is_sparse:
        return [], [] if schema is None else ["Columns of a sparse matrix are not compared."]
    found: list[dict[str, Any]] = []
    for j, place in enumerate(schema.find(table, ())):
        column, known = None if place is None else table.column(place), schema.levels[j]
        if column is None:
            continue
        told: dict[str, Any] = {"column": schema.names[j]}
        if summaries and not (column.levels is not None and summaries[j].levels is None):
            told |= _distance(summaries[j], column, len(summaries))
        told |= {"unseen": 0, "unseen_levels": []}
        if known is not None and column.levels is not None:
            told |= _unseen(column, set(known))
        found.append(told)
    return found, _notes(found, told_of=bool(summaries))


def _distance(summary: ColumnSummary, column: Column, n_columns: int) -> dict[str, Any]:
    """Say how far a column is from its summary, and whether that is drift."""
    from scipy.special import chdtri

    index, n_bins = summary.distance(column)
    n_before = sum(summary.counts)
    chance = 0.0
    if n_bins > 1 and n_before:
        unsure = 1 / n_before + 1 / len(column)
        chance = unsure * float(chdtri(n_bins - 1, _FALSE_ALARMS / n_columns))
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
    """Say in sentences which columns have drifted, and which hold levels that the model has not seen."""
    notes = []
    drifted = sorted((own for own in found if own.get("drifted")), key=lambda own: -own["stability_index"])
    if drifted:
        named = list_names([f"{own['column']!r} ({own['stability_index']:.2f})" for own in drifted], 10)
        notes.append(
            f"Drifted from the training rows, by a population stability index above {DRIFT_LIMIT:g} and "
            f"beyond chance: {len(drifted)} of {len(found)} columns, {named}."
        )
    unseen = [
        f"{own['column']!r} in {own['unseen']:,} rows ({', '.join(map(repr, own['unseen_levels']))})"
        for own in found
        if own["unseen"]
    ]
    if unseen:
        told = list_names(unseen, 10)
        notes.append(f"Levels that the model has not seen, which it takes for missing: {told}.")
    if not told_of:
        notes.append(
            "The model keeps no summary of its training columns: whether columns have drifted cannot be told."
        )
    return notes


def _has_few_numbers(column: Column) -> bool:
    """Tell whether numbers are so few different ones that they are levels."""
    for rows in (slice(_FIRST_ROWS), slice(None)):
        numbers = column.numbers()[rows]
        if len(np.unique(numbers[~np.isnan(numbers)])) > _FEW_NUMBERS:
            return False
    return True


def _edges(numbers: npt.NDArray[np.float64]) -> tuple[float, ...]:
    """Give the deciles, or fewer, so that no bin has fewer rows than may be told."""
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
    """Give codes into texts: the levels, or numbers as they are written, whatever their type."""
    if column.levels is not None:
        return column.codes(), column.levels
    codes, entries = column.encode()
    return codes, [f"{float(entry):.15g}" for entry in entries]
