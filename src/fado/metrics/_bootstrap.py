"""Draw confusion counts of bootstrap resamples without drawing their rows.

A resample stratified by group and label draws as many rows from every cell (group, label) as the cell has.
Metrics at a threshold only need to know how many of them score above it, and such counts have a known law:

- At a fixed threshold the count of a cell is binomial.
- A threshold that each resample sets anew by the false-positive budget lies just above its (k+1)-th highest
  negative, k being the number of allowed false positives. That negative is found by bisection over the
  distinct scores: the draws of a group that lie between two scores fall into the upper half of that stretch
  by a binomial law, and only the half with the (k+1)-th highest negative is followed. This ends at its
  score, with the number of draws above it in every group. Positives are independent of negatives, so theirs
  are binomial as at a fixed threshold.

Both are exact, not approximations: the counts have the same joint law as if rows had been drawn and counted.
A resample costs O(groups * log(rows)).
"""

from typing import NamedTuple

import numpy as np

from fado.metrics._inputs import Bools, Floats, Integers
from fado.metrics._rates import GroupCounts
from fado.metrics._threshold import allowed_false_positives

_COUNTS_AT_ONCE = 1_000_000  # resamples times groups held in memory


class _Cells(NamedTuple):
    """The rows of one label, sorted by group and, within it, by the rank of the score."""

    keys: Integers  # group * n_ranks + rank
    ends: Integers  # per group, the position after its last row
    sizes: Integers  # per group, its rows
    n_ranks: int

    def at_or_above(self, rank: Integers) -> Integers:
        """Return, for each rank and group, how many rows score at least that high."""
        groups = np.arange(len(self.ends)) * self.n_ranks
        return self.ends - np.searchsorted(self.keys, groups + rank[:, np.newaxis])


def resample(
    positive: Bools,
    scores: Floats,
    codes: Integers,
    n_groups: int,
    *,
    max_fpr: float,
    threshold: float | None,
    n_boot: int,
    rng: np.random.Generator,
) -> tuple[Floats, GroupCounts]:
    """Return the thresholds and the counts per group of stratified bootstrap resamples.

    Parameters
    ----------
    positive, scores, codes : ndarray of shape (n,)
        Label, score and group of each row.
    n_groups : int
        The number of groups, with those that have no rows.
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
        False and true positives have shape (n_boot, n_groups).
    """
    levels, ranks = np.unique(scores, return_inverse=True)
    negatives = _cells(codes[~positive], ranks[~positive], n_groups, len(levels))
    positives = _cells(codes[positive], ranks[positive], n_groups, len(levels))
    candidates = np.append(levels, np.nextafter(levels[-1], np.inf, dtype=levels.dtype))
    at_once = max(1, _COUNTS_AT_ONCE // n_groups)
    thresholds, false_positives, true_positives = [], [], []
    for start in range(0, n_boot, at_once):
        n = min(at_once, n_boot - start)
        if threshold is None:
            lowest_predicted, false = _bisect(negatives, max_fpr, n, rng)
            thresholds.append(candidates[lowest_predicted])
        else:
            lowest_predicted = np.full(n, np.searchsorted(levels, threshold))
            false = _draw(rng, negatives.sizes, negatives.at_or_above(lowest_predicted), negatives.sizes)
            thresholds.append(np.full(n, threshold))
        false_positives.append(false)
        true_positives.append(
            _draw(rng, positives.sizes, positives.at_or_above(lowest_predicted), positives.sizes)
        )
    counts = GroupCounts(
        negatives.sizes, positives.sizes, np.concatenate(false_positives), np.concatenate(true_positives)
    )
    return np.concatenate(thresholds), counts


def _bisect(
    negatives: _Cells, max_fpr: float, n_boot: int, rng: np.random.Generator
) -> tuple[Integers, Integers]:
    """Return the rank just above each resample's (k+1)-th highest negative, and each group's draws above."""
    allowed = allowed_false_positives(int(negatives.sizes.sum()), max_fpr)
    low, high = np.zeros(n_boot, dtype=np.int64), np.full(n_boot, negatives.n_ranks)
    above_high = np.zeros((n_boot, len(negatives.sizes)), dtype=np.int64)
    between = np.broadcast_to(negatives.sizes, above_high.shape)  # draws with low <= rank < high
    # Where low and high already are neighbours, a further step draws all of `between` and changes nothing.
    while (high - low > 1).any():
        middle = (low + high) // 2
        rows_above_high = negatives.at_or_above(high)
        in_upper = _draw(
            rng,
            between,
            negatives.at_or_above(middle) - rows_above_high,
            negatives.at_or_above(low) - rows_above_high,
        )
        ends_in_upper = (above_high + in_upper).sum(axis=1) > allowed
        upper = ends_in_upper[:, np.newaxis]
        above_high = np.where(upper, above_high, above_high + in_upper)
        between = np.where(upper, in_upper, between - in_upper)
        low, high = np.where(ends_in_upper, middle, low), np.where(ends_in_upper, high, middle)
    return high, above_high


def _draw(rng: np.random.Generator, n: Integers, rows_hit: Integers, rows: Integers) -> Integers:
    """Return how many of n draws with replacement among the rows hit some of them."""
    return rng.binomial(n, rows_hit / np.maximum(rows, 1))


def _cells(codes: Integers, ranks: Integers, n_groups: int, n_ranks: int) -> _Cells:
    sizes = np.bincount(codes, minlength=n_groups)
    return _Cells(np.sort(codes * n_ranks + ranks), np.cumsum(sizes), sizes, n_ranks)
