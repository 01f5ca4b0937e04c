"""Draw where the threshold of a budget truly lies, given the rows that set one.

A budget is a share of some rows: of the negatives, or of all. Of n such rows, those that score above the
population's threshold are a binomial number with that share as its probability: this holds whatever the
scores' law, and for tied scores too if ties are thought of as broken at random. So each draw of that number
points at one of the rows' own scores, and the draws are spread as the population's threshold may lie about
the one that the rows set. Unlike resamples of rows they are not cut off at the highest of a few.
"""

from __future__ import annotations

import numpy as np

from fado.metrics._inputs import Bools, Floats, Integers
from fado.metrics._rates import GroupCounts
from fado.metrics._weights import Weights


def draw_thresholds(
    counted: Bools,
    scores: Floats,
    *,
    share: float,
    n_draws: int,
    rng: np.random.Generator,
    weights: Weights | None = None,
    n_effective: float | None = None,
) -> Floats:
    """Return thresholds that the population's may be: each one of the scores, or the next float above all.

    Parameters
    ----------
    counted, scores : ndarray of shape (n,)
        Whether each row is one of those that the budget is a share of, and its score.
    share : float
        The budget.
    n_draws : int
        How many.
    rng : numpy.random.Generator
        The source of randomness.
    weights : ndarray of shape (n,), default=None
        The weight of each row, above zero.
    n_effective : float, default=None
        As how many rows of equal weight the counted ones count.

    Examples
    --------
    >>> scores = np.arange(1000) / 1000
    >>> drawn = draw_thresholds(
    ...     np.arange(1000) % 2 == 1, scores, share=0.1, n_draws=1000, rng=np.random.default_rng(0)
    ... )
    >>> np.quantile(drawn, [0.025, 0.5, 0.975]).round(2)
    array([0.87, 0.9 , 0.93])
    """
    ranked = scores[counted]
    if weights is None:
        n_above = np.minimum(rng.binomial(len(ranked), share, n_draws), len(ranked) - 1)
        deepest = len(ranked) - 1 - n_above.max()
        highest = np.sort(np.partition(ranked, deepest)[deepest:])[::-1]
        highest_refused = highest[n_above]
    else:
        order = np.argsort(ranked, kind="stable")[::-1]
        reached = np.cumsum(weights[counted][order])
        n = max(1, round(len(ranked) if n_effective is None else n_effective))
        drawn = rng.binomial(n, share, n_draws) / n
        n_above = np.searchsorted(reached / reached[-1], drawn, side="right")
        highest_refused = ranked[order][np.minimum(n_above, len(ranked) - 1)]
    levels = np.unique(scores[scores > highest_refused.min()])
    levels = np.append(levels, np.nextafter(scores.max(), np.inf, dtype=scores.dtype))
    return levels[np.searchsorted(levels, highest_refused, side="right")]


def count_at(
    thresholds: Floats,
    positive: Bools,
    scores: Floats,
    codes: Integers,
    n_groups: int,
    weights: Weights | None = None,
) -> GroupCounts:
    """Return the confusion counts of every group at each of many thresholds, from one pass over the rows.

    Examples
    --------
    >>> labels, scores, codes = np.array([True, False, True]), np.array([0.1, 0.5, 0.9]), np.array([0, 0, 1])
    >>> count_at(np.array([0.9, 0.2]), labels, scores, codes, 2).true_positives
    array([[0, 1],
           [0, 1]])
    """
    levels, place = np.unique(thresholds, return_inverse=True)
    passing = np.flatnonzero(scores >= levels[0])  # few rows score as high as that
    passed = (
        np.searchsorted(levels, scores[passing], side="right") - 1
    )  # the highest level that a row reaches
    cells = 2 * codes + positive
    members = np.bincount(cells, weights, minlength=2 * n_groups).reshape(n_groups, 2)
    at_level = np.bincount(
        cells[passing] * len(levels) + passed,
        None if weights is None else weights[passing],
        minlength=2 * n_groups * len(levels),
    ).reshape(n_groups, 2, len(levels))
    reached = np.cumsum(at_level[..., ::-1], axis=-1)[..., ::-1][..., place]
    return GroupCounts(members[:, 0], members[:, 1], reached[:, 0].T, reached[:, 1].T)
