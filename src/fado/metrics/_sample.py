"""The rows that metrics are measured on, at a threshold, and as how many rows they count."""

from __future__ import annotations

import numpy as np

from fado.metrics._inputs import Bools, Floats, Integers
from fado.metrics._limits import Floats64, effective_sizes
from fado.metrics._rates import GroupCounts, Rate, count_by_group
from fado.metrics._weights import Weights


class Sample:
    """Rows, the threshold at which they are predicted positive, and their counts there.

    Parameters
    ----------
    positive, scores, codes : ndarray of shape (n,)
        Label, score and group of each row.
    n_groups : int
        The number of groups, with those that have no rows.
    weights : ndarray of shape (n,) or None
        The weight of each row, above zero.
    threshold : float
        Rows that score at least this are predicted positive.
    """

    def __init__(
        self,
        positive: Bools,
        scores: Floats,
        codes: Integers,
        n_groups: int,
        weights: Weights | None,
        threshold: float,
    ) -> None:
        self.positive, self.scores, self.codes, self.n_groups = positive, scores, codes, n_groups
        self.weights, self.threshold = weights, threshold
        predicted = scores.astype(np.float64) >= threshold
        self.n_predicted = int(predicted.sum())  # as rows are, whatever they weigh
        self.counts = count_by_group(positive, predicted, codes, n_groups, weights)
        self._squares = self.counts
        if weights is not None:
            self._squares = count_by_group(positive, predicted, codes, n_groups, weights**2)

    def shares(self, rate: Rate) -> tuple[Floats64, Floats64]:
        """Return a rate of every group, NaN without members, and as how many equal rows these count."""
        counts = rate.counts(self.counts)
        return shares_in(rate, self.counts), effective_sizes(*counts, *rate.counts(self._squares))

    def share_of_all(self, rate: Rate) -> tuple[float, float]:
        """Return a rate over all groups, and as how many equal rows its members count."""
        sums = [part.sum() for counts in (self.counts, self._squares) for part in rate.counts(counts)]
        return float(sums[0] / sums[1]), float(effective_sizes(*map(np.asarray, sums)))


def shares_in(rate: Rate, counts: GroupCounts) -> Floats64:
    """Return a rate of every group, NaN without members; a leading axis may hold several counts."""
    events, members = rate.counts(counts)
    with np.errstate(invalid="ignore"):
        return np.asarray(events / members, dtype=np.float64)


def share_of_all_in(rate: Rate, counts: GroupCounts) -> Floats64:
    """Return a rate over all groups; a leading axis may hold several counts."""
    events, members = rate.counts(counts)
    return np.asarray(events.sum(axis=-1) / members.sum(axis=-1), dtype=np.float64)
