"""Batches without near-copies: utility traded against the distance to rows that are chosen already."""

from __future__ import annotations

import math

import numpy as np

from fado.active._batch import FloatArray, Limits, Rows, best_first, pick_best
from fado.active._points import Points, Ruler

__all__ = ["pick_diverse"]

_CANDIDATES = 10  # times the batch, at most, if they hold enough that are no near-copies
_MORE, _MOST = 4.0, 100.0  # times as many if they do not, and what is too many
_NEAR = 0.01  # as the mean over columns: below, rows are near-copies


def pick_diverse(scores: FloatArray, limits: Limits, diversity: float, ruler: Ruler) -> Rows:
    """Pick rows one after the other, each by its score and its distance from those picked before.

    What counts is ``score ** (1 - diversity) * distance ** diversity``, the score on [0, 1] among the
    candidates: those of highest score, up to ten times as many as rows are wanted. A near-copy of a row that
    was picked comes after all others; candidates are up to a hundred times the rows while near-copies would
    be taken. Time goes with candidates times rows, memory with candidates.

    Parameters
    ----------
    scores : ndarray of shape (n_rows,)
        The rows' utilities.
    limits : Limits
        What the batch may hold.
    diversity : float
        In (0, 1]; 1 takes the candidates that are farthest from each other.
    ruler : Ruler
        Of the pool.

    Returns
    -------
    ndarray of int
        The rows, in the order in which they were picked.
    """
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
    """Give as many of the first rows as are wanted, and whether that took a look at all.

    Rows that are all but equal to one before them are only among them if there are no others.
    """
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
    """Pick candidates one by one: first as far as the limits of parts go, then that of all.

    Returns
    -------
    picked : ndarray of int
        Their places among the candidates.
    n_copies : int
        How many of them are near-copies of others.
    """
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
