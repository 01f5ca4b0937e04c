"""Draw bootstrap resamples of rows that weigh unequally.

A resample stratified by group and label draws as many rows from every cell (group, label) as the cell has,
and each drawn row brings its weight. Sums of weights have no simple law as counts do (see `_bootstrap`), so
the rows are drawn: how often each occurs, times its weight, is its weight in the resample. A resample costs
O(rows).
"""

from __future__ import annotations

import numpy as np

from fado.metrics._inputs import Bools, Floats, Integers
from fado.metrics._rates import GroupCounts
from fado.metrics._threshold import ends_of_ties, first_over_budget
from fado.metrics._weights import Weights

_ROWS_AT_ONCE = 1_000_000  # resamples times rows held in memory


def resample_rows(
    positive: Bools,
    scores: Floats,
    codes: Integers,
    n_groups: int,
    *,
    weights: Weights,
    max_fpr: float,
    threshold: float | None,
    n_boot: int,
    rng: np.random.Generator,
) -> tuple[Floats, GroupCounts]:
    """Return the thresholds and the sums of weights per group of stratified bootstrap resamples.

    Parameters
    ----------
    positive, scores, codes : ndarray of shape (n,)
        Label, score and group of each row.
    n_groups : int
        The number of groups, with those that have no rows.
    weights : ndarray of shape (n,)
        The weight of each row, above zero.
    max_fpr : float
        The false-positive budget that sets each resample's threshold.
    threshold : float or None
        A threshold for all resamples in place of one by the budget.
    n_boot : int
        The number of resamples.
    rng : numpy.random.Generator
        The source of randomness.

    Returns
    -------
    thresholds : ndarray of shape (n_boot,)
    counts : GroupCounts
        Each of shape (n_boot, n_groups).
    """
    cells = codes * 2 + positive
    by_cell = np.argsort(cells, kind="stable")
    weights = weights[by_cell]
    sizes = np.bincount(cells, minlength=2 * n_groups)
    levels, ranks = np.unique(scores[by_cell], return_inverse=True)
    candidates = np.append(levels, np.nextafter(levels[-1], np.inf, dtype=levels.dtype))
    negatives = np.flatnonzero(~positive[by_cell])
    negatives = negatives[np.argsort(ranks[negatives], kind="stable")[::-1]]  # from the highest score on
    ends = ends_of_ties(ranks[negatives])
    at_once = max(1, _ROWS_AT_ONCE // len(weights))
    thresholds, sums = [], []
    for start in range(0, n_boot, at_once):
        held = weights * _times_drawn(sizes, min(at_once, n_boot - start), rng)
        if threshold is None:
            refused = first_over_budget(held[:, negatives], ends, max_fpr)
            lowest_predicted = ranks[negatives[ends[refused]]] + 1
            thresholds.append(candidates[lowest_predicted])
        else:
            lowest_predicted = np.full(len(held), np.searchsorted(levels, threshold))
            thresholds.append(np.full(len(held), threshold))
        predicted = held * (ranks >= lowest_predicted[:, np.newaxis])
        sums.append((_sum_by_cell(held, sizes), _sum_by_cell(predicted, sizes)))
    members, events = (np.concatenate(parts) for parts in zip(*sums, strict=True))
    counts = GroupCounts(members[:, ::2], members[:, 1::2], events[:, ::2], events[:, 1::2])
    return np.concatenate(thresholds), counts


def _times_drawn(sizes: Integers, n_boot: int, rng: np.random.Generator) -> Integers:
    """Return how often each row is drawn, in the order of cells: each cell has as many draws as rows."""
    n_rows = int(sizes.sum())
    first = np.repeat(np.cumsum(sizes) - sizes, sizes)
    drawn = first + rng.integers(0, np.repeat(sizes, sizes), size=(n_boot, n_rows))
    drawn += np.arange(n_boot)[:, np.newaxis] * n_rows
    return np.bincount(drawn.ravel(), minlength=n_boot * n_rows).reshape(n_boot, n_rows)


def _sum_by_cell(held: Weights, sizes: Integers) -> Weights:
    """Return the weight of each cell in each resample; a cell without rows has none."""
    sums = np.zeros((len(held), len(sizes)))
    filled = np.flatnonzero(sizes)
    sums[:, filled] = np.add.reduceat(held, (np.cumsum(sizes) - sizes)[filled], axis=1)
    return sums
