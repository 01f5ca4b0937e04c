"""From scores to a batch: the best rows that fit, of every part its own."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

__all__ = ["Limits", "best_first", "pick_best"]

FloatArray = npt.NDArray[np.float64]
Rows = npt.NDArray[np.int64]

_ROUNDING = 1e-12  # of what may be spent


class Limits:
    """What a batch may hold: of every part of the pool, and in all.

    Parameters
    ----------
    spending : ndarray of shape (n_rows,)
        What each row takes of it: 1, where rows are counted, or its cost.
    total : float
        What all rows may take together.
    parts : ndarray of int, optional
        Each row's part; one without.
    of_parts : ndarray of float, optional
        What the rows of each part may take. What is left of it, all rows may take.
    """

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

    Rows are taken greedily, in the order of their scores; one that does not fit any more is passed over for
    the next that does.

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
