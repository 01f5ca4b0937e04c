"""Compare models by several metrics at once: the Pareto frontier and the area that it dominates."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fado.metrics._inputs import Bools


def pareto_frontier(points: Any) -> Bools:
    """Return which points no other point dominates.

    A point dominates another if it is at least as high in every objective and higher in at least one. Equal
    points do not dominate each other: if one of them is on the frontier, all are. A point with a NaN is never
    on the frontier.

    Parameters
    ----------
    points : array-like of shape (n_points, n_objectives)
        At least two objectives, all to be maximised.

    Returns
    -------
    ndarray of bool, of shape (n_points,)
        True for the points on the frontier.

    Notes
    -----
    Two objectives take one sort, O(n log n). More take one vectorised pass over the points per point of the
    frontier.

    Examples
    --------
    >>> from fado.metrics import pareto_frontier
    >>> pareto_frontier([[0.5, 0.9], [0.7, 0.6], [0.4, 0.8], [0.7, float("nan")]])
    array([ True,  True, False, False])
    """
    points = _as_points(points)
    known = np.flatnonzero(~np.isnan(points).any(axis=1))
    order = known[np.lexsort(points[known].T[::-1])]
    first_copy = np.ones(len(order), dtype=np.bool_)
    first_copy[1:] = (points[order[1:]] != points[order[:-1]]).any(axis=1)
    distinct = points[order[first_copy]]
    on_frontier = _frontier_of_two(distinct) if points.shape[1] == 2 else _frontier_of_many(distinct)
    mask = np.zeros(len(points), dtype=np.bool_)
    mask[order] = on_frontier[np.cumsum(first_copy) - 1]
    return mask


def hypervolume(points: Any, reference: Any = (0.0, 0.0)) -> float:
    """Return the area that points dominate above a reference point, for two objectives.

    Parameters
    ----------
    points : array-like of shape (n_points, 2)
        Two objectives, both to be maximised. Points with a NaN, and points that are not above the reference
        in both objectives, add nothing.
    reference : array-like of shape (2,), default=(0.0, 0.0)
        The corner of the area where both objectives are lowest.

    Returns
    -------
    float

    Examples
    --------
    Two rectangles of area 0.5 and 0.5 that share 0.25:

    >>> from fado.metrics import hypervolume
    >>> hypervolume([[0.5, 1.0], [1.0, 0.5]])
    0.75
    """
    points = _as_points(points)
    corner = np.asarray(reference, dtype=np.float64)
    if points.shape[1] != 2 or corner.shape != (2,):
        raise ValueError(
            "`points` and `reference` must have two objectives, "
            f"got {points.shape[1]} and a reference of shape {corner.shape}; pass two columns."
        )
    if np.isinf(points).any() or not np.isfinite(corner).all():
        raise ValueError(
            "`points` and `reference` must be finite, got an infinite or missing coordinate; drop it."
        )
    above = points[(points > corner).all(axis=1)] - corner
    widths, heights = above[np.argsort(-above[:, 0])].T
    return float(np.sum(-np.diff(widths, append=0.0) * np.maximum.accumulate(heights)))


def _frontier_of_two(distinct: NDArray[np.float64]) -> Bools:
    """Return the frontier of distinct points, sorted by the first objective, then the second."""
    second = distinct[:, 1][::-1]
    best_before = np.maximum.accumulate(np.concatenate([[-np.inf], second]))[:-1]
    on_frontier = second > best_before
    on_frontier[:1] = True  # even at minus infinity
    return on_frontier[::-1]


def _frontier_of_many(distinct: NDArray[np.float64]) -> Bools:
    """Return the frontier of distinct points in lexicographic order: only later points can dominate."""
    on_frontier = np.zeros(len(distinct), dtype=np.bool_)
    left = np.arange(len(distinct))
    while len(left) > 0:
        on_frontier[left[-1]] = True
        left = left[(distinct[left] > distinct[left[-1]]).any(axis=1)]
    return on_frontier


def _as_points(points: Any) -> NDArray[np.float64]:
    array = np.asarray(points, dtype=np.float64)
    if array.ndim != 2 or array.shape[1] < 2:
        raise ValueError(
            f"`points` must have shape (n_points, 2 or more objectives), got {array.shape}; "
            "pass one row per point and one column per objective."
        )
    return array
