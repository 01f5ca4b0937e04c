"""Batches without near-copies: utility traded against the distance to rows that are chosen already."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fado.tabular import Column, Table


_CANDIDATES = 10  # times the batch, at most, if they hold enough that are no near-copies
_MORE, _MOST = 4.0, 100.0  # times as many if they do not, and what is too many
_NEAR = 0.01  # as the mean over columns: below, rows are near-copies


def pick_diverse(scores: FloatArray, limits: Limits, diversity: float, ruler: Ruler) -> Rows:
    """Pick rows one after the other, each by its score and its distance from those picked before."""
    plain = pick_best(scores, limits)
    multiple = 1 + (_CANDIDATES - 1) * diversity
    while True:
        rows, points, there_are_more = _candidates(scores, limits, plain, multiple, ruler)
        picked, n_copies = _greedily(scores[rows], limits, rows, points, diversity)
        if not n_copies or not there_are_more or multiple >= _MOST:
            break
        multiple *= _MORE
    picked = rows[picked]
    left = np.ones(len(scores), dtype=bool)
    left[picked] = False
    rest = np.flatnonzero(left)
    spent = float(limits.spending[picked].sum())
    more = pick_best(scores[rest], Limits(limits.spending[rest], limits.total - spent))
    return np.concatenate([picked, rest[more]])


def _candidates(
    scores: FloatArray, limits: Limits, plain: Rows, multiple: float, ruler: Ruler
) -> tuple[Rows, Points, bool]:
    """Give every part's best rows, so many times what is wanted of it, and whether there are more."""
    found, there_are_more = [], False
    for part in range(len(limits.of_parts)):
        ordered = best_first(scores, np.flatnonzero(limits.parts == part))
        wanted = math.ceil(multiple * np.count_nonzero(limits.parts[plain] == part))
        rows, seen_all = _distinct(ordered, wanted, ruler)
        there_are_more |= not seen_all
        found.append(rows)
    rows = best_first(scores, np.concatenate(found))
    return rows, ruler.points(rows), there_are_more


def _distinct(ordered: Rows, wanted: int, ruler: Ruler) -> tuple[Rows, bool]:
    """Give as many of the first rows as are wanted, and whether that took a look at all."""
    looked_at = wanted
    while True:
        rows, seen_all = ordered[:looked_at], looked_at >= len(ordered)
        first = ruler.points(rows).first_of_copies()
        if len(first) >= wanted or seen_all:
            copies = np.setdiff1d(np.arange(len(rows)), first)
            return rows[np.append(first, copies)[:wanted]], seen_all
        looked_at *= 4


def _greedily(
    scores: FloatArray, limits: Limits, rows: Rows, points: Points, diversity: float
) -> tuple[Rows, int]:
    """Pick candidates one by one: first as far as the limits of parts go, then that of all."""
    worth = _on_unit(scores) ** (1 - diversity)
    nearest = np.ones(len(rows))
    spending, parts = limits.spending[rows], limits.parts[rows]
    free = np.ones(len(rows), dtype=bool)
    picked: list[int] = []
    n_copies = 0
    total, of_parts = limits.total, limits.of_parts.copy()
    for by_part in (True, False):
        while True:
            fits = free & (spending <= (np.minimum(of_parts[parts], total) if by_part else total))
            if not fits.any():
                break
            gains = worth * nearest**diversity - (nearest < _NEAR)  # near-copies come after all others
            best = int(np.argmax(np.where(fits, gains, -np.inf)))
            n_copies += bool(nearest[best] < _NEAR)
            picked.append(best)
            free[best] = False
            total -= spending[best]
            of_parts[parts[best]] -= spending[best]
            nearest = np.minimum(nearest, points.distances_from(best))
    return np.asarray(picked, dtype=np.int64), n_copies


def _on_unit(scores: FloatArray) -> FloatArray:
    known = np.isfinite(scores)
    if not known.any():
        return np.ones(len(scores))
    low, high = scores[known].min(), scores[known].max()
    if low == high:
        return known.astype(np.float64)
    return np.where(known, (np.where(known, scores, low) - low) / (high - low), 0.0)


_MISSING = 2.0  # numbers lie in [0, 1]: as far from all as can be, and not from another missing one
_TAILS = (0.01, 0.99)  # what lies beyond these quantiles counts as if it lay on them
_FINE = 100  # numbers that differ by less than a hundredth of their range are nearly the same


@dataclass(frozen=True, eq=False)
class Points:
    """Rows as their distances need them."""

    numbers: npt.NDArray[np.float32]
    codes: npt.NDArray[np.int32]

    def distances_from(self, row: int) -> npt.NDArray[np.float64]:
        """Give every row's distance from one: the mean over columns of how far they differ, in [0, 1]."""
        differing = np.minimum(np.abs(self.numbers - self.numbers[row]), 1.0).sum(axis=1, dtype=np.float64)
        differing += (self.codes != self.codes[row]).sum(axis=1)
        return np.asarray(differing / (self.numbers.shape[1] + self.codes.shape[1]))

    def first_of_copies(self) -> npt.NDArray[np.int64]:
        """Find the rows that are no near-copies of one before them."""
        rounded = np.rint(self.numbers * _FINE).astype(np.int32)
        _, first = np.unique(np.hstack([rounded, self.codes]), axis=0, return_index=True)
        return np.sort(first).astype(np.int64)


class Ruler:
    """Measures rows of a table: numbers in parts of their range, categories as equal or not.

    Examples
    --------
    >>> import pandas as pd
    >>> table = Table.from_input(pd.DataFrame({"size": [0.0, 1.0, None], "colour": ["red", "red", "blue"]}))
    >>> Ruler(table).points(np.arange(3)).distances_from(0)
    array([0. , 0.5, 1. ])
    """

    def __init__(self, table: Table) -> None:
        if table.is_sparse:
            raise ValueError(
                "`diversity` compares rows column by column, which a sparse matrix has too many of: set "
                "`diversity=0`, or pass a dense table."
            )
        self._numbers = [(column, *_range(column)) for column in table.columns if column.levels is None]
        self._categories = [column for column in table.columns if column.levels is not None]

    def points(self, rows: npt.NDArray[np.integer]) -> Points:
        """Give some rows."""
        numbers = np.empty((len(rows), len(self._numbers)), dtype=np.float32)
        for j, (column, low, width) in enumerate(self._numbers):
            with np.errstate(over="ignore"):
                scaled = np.clip((column.take(rows).numbers() - low) / width, 0.0, 1.0)
            numbers[:, j] = np.where(np.isnan(scaled), _MISSING, scaled)
        codes = np.empty((len(rows), len(self._categories)), dtype=np.int32)
        for j, column in enumerate(self._categories):
            codes[:, j] = column.take(rows).codes()
        return Points(numbers, codes)


def _range(column: Column) -> tuple[float, float]:
    """Give where the bulk of a column of numbers begins, and how wide it is; 1 if all are equal."""
    numbers = column.numbers()
    known = numbers[np.isfinite(numbers)]
    if not len(known):
        return 0.0, 1.0
    low, high = np.quantile(known, _TAILS)
    if low == high:
        low, high = known.min(), known.max()
    return float(low), float(high - low) or 1.0


FloatArray = npt.NDArray[np.float64]
Rows = npt.NDArray[np.int64]

_ROUNDING = 1e-12  # of what may be spent


class Limits:
    """What a batch may hold: of every part of the pool, and in all."""

    def __init__(
        self,
        spending: FloatArray,
        total: float,
        parts: npt.NDArray[np.int64] | None = None,
        of_parts: FloatArray | None = None,
    ) -> None:
        self.spending = spending
        self.total = total * (1 + _ROUNDING)
        self.parts = np.zeros(len(spending), dtype=np.int64) if parts is None else parts
        self.of_parts = (np.array([total]) if of_parts is None else of_parts) * (1 + _ROUNDING)


def best_first(scores: FloatArray, rows: Rows | None = None) -> Rows:
    """Order rows by their scores, the highest first; of equal ones the one that comes first."""
    rows = np.arange(len(scores)) if rows is None else rows
    return rows[np.lexsort((rows, -scores[rows]))]


def pick_best(scores: FloatArray, limits: Limits) -> Rows:
    """Pick the rows of highest score of every part, then of all, as far as the limits go.

    Examples
    --------
    >>> scores = np.array([0.9, 0.8, 0.7, 0.6])
    >>> pick_best(scores, Limits(np.ones(4), 2))
    array([0, 1])
    >>> pick_best(scores, Limits(np.ones(4), 2, np.array([0, 0, 1, 1]), np.array([1.0, 1.0])))
    array([0, 2])
    >>> pick_best(scores, Limits(np.array([5.0, 3.0, 3.0, 1.0]), 4))
    array([1, 3])
    """
    ordered = best_first(scores)
    taken = np.zeros(len(scores), dtype=bool)
    for part, limit in enumerate(limits.of_parts):
        members = ordered[limits.parts[ordered] == part] if len(limits.of_parts) > 1 else ordered
        taken[members[_that_fit(limits.spending[members], limit)]] = True
    left = limits.total - limits.spending[taken].sum()
    rest = ordered[~taken[ordered]]
    taken[rest[_that_fit(limits.spending[rest], left)]] = True
    return ordered[taken[ordered]]


def _that_fit(spending: FloatArray, limit: float) -> Rows:
    """Find the places that fit into a limit, taken one after the other."""
    places = np.flatnonzero(spending <= limit)
    found = []
    while len(places):
        sums = np.cumsum(spending[places])
        n_fitting = int(np.searchsorted(sums, limit, side="right"))
        found.append(places[:n_fitting])
        limit -= float(sums[n_fitting - 1])
        places = places[n_fitting:]
        places = places[spending[places] <= limit]
    return np.concatenate(found) if found else np.empty(0, dtype=np.int64)
