"""What counts of events say about ratios in the population: lower bounds, and how many rows they need.

Decisions are counted on rows that their models have not seen, and the models are then fitted again on all
rows. What that changes is allowed for: events count for fewer than there are. The allowance was chosen by
draws from three large tables and measured on others (`benchmarks/aim.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fado.metrics import Budget, effective_sizes, lower_ratio_limit

__all__ = ["ALLOWANCE", "Counts", "chance_of_showing", "expected_counts", "missing_factor"]

FloatArray = npt.NDArray[np.float64]

ALLOWANCE = 1.5  # by how much counts are divided where models are fitted again
_DRAWS = 4_000
_MOST = 1e6  # times as many rows: more are never told
_ROUNDS = 60


@dataclass(frozen=True, eq=False)
class Counts:
    """The events of a ratio in the compared groups: sums of weights, and of their squares.

    Parameters
    ----------
    events, members, squared_events, squared_members : ndarray of shape (n_compared,)
        Of rows that a rate counts, and of those that it is a share of.
    """

    events: FloatArray
    members: FloatArray
    squared_events: FloatArray
    squared_members: FloatArray

    @classmethod
    def of_rows(cls, events: FloatArray, members: FloatArray) -> Counts:
        """Count rows that weigh the same."""
        return cls(events, members, events, members)

    @property
    def defined(self) -> bool:
        """Whether there is a ratio: every group has members, and some group an event."""
        return bool((self.members > 0).all() and self.events.any())

    @property
    def rates(self) -> FloatArray:
        """Each group's rate; NaN without members."""
        with np.errstate(invalid="ignore", divide="ignore"):
            return self.events / self.members

    @property
    def ratio(self) -> float:
        """The lowest rate over the highest; NaN if a group has no members, or no group an event."""
        if not self.defined:
            return float("nan")
        return float(self.rates.min() / self.rates.max())

    @property
    def sizes(self) -> FloatArray:
        """As how many rows of equal weight each group's members count."""
        return effective_sizes(self.events, self.members, self.squared_events, self.squared_members)

    def bound(self, confidence: float, allowance: float = 1.0) -> float:
        """Give what the population's ratio is above, with this confidence; 0 where there is no ratio.

        Parameters
        ----------
        confidence : float
            How often the bound is to be right.
        allowance : float, default=1.0
            By how much counts are divided first.
        """
        if not self.defined:
            return 0.0
        return lower_ratio_limit(self.rates, self.sizes / allowance, 1 - confidence)

    def times(self, factor: float) -> Counts:
        """Give the counts of so many times as many rows."""
        parts = (self.events, self.members, self.squared_events, self.squared_members)
        return Counts(*(part * factor for part in parts))


def expected_counts(
    ratio: str, budget: Budget, negatives: FloatArray, positives: FloatArray
) -> Counts | None:
    """Give the counts of a perfectly equal model, before anything is fitted; None if they cannot be told.

    Only the rates that a budget limits are known before: false positives of a share of negatives, selections
    of a share of rows.

    Parameters
    ----------
    ratio : str
        The ratio's name.
    budget : Budget
        What limits decisions.
    negatives, positives : ndarray of shape (n_compared,)
        Rows of each group.
    """
    members = negatives if ratio == "fpr_ratio" else negatives + positives
    limited = {
        "fpr_ratio": ("fpr", "selection_rate", "top_k"),
        "selection_rate_ratio": ("selection_rate", "top_k"),
    }
    if budget.kind not in limited.get(ratio, ()):
        return None
    n_rows = int((negatives + positives).sum())
    share = budget.share(n_rows)
    if ratio == "fpr_ratio" and budget.kind != "fpr":  # at the most, all that is selected is negative
        share = min(share * n_rows / max(float(negatives.sum()), 1.0), 1.0)
    return Counts.of_rows(share * members, members)


def missing_factor(passes: Callable[[float], bool]) -> float:
    """Give how many times as many rows would let a perfectly equal model pass; 1 if there are enough.

    Parameters
    ----------
    passes : callable
        From a factor of rows to whether the bound of equal rates is above the line.
    """
    if passes(1.0):
        return 1.0
    low, high = 1.0, 2.0
    while not passes(high):
        low, high = high, 2 * high
        if high > _MOST:
            return float("inf")
    for _ in range(_ROUNDS):
        middle = (low + high) / 2
        low, high = (low, middle) if passes(middle) else (middle, high)
    return high


def chance_of_showing(
    counts: Sequence[Counts], lines: Sequence[float], share: float, *, seed: int, allowance: float = 1.0
) -> float:
    """Give how likely other rows, so many times as many as were counted, show all ratios at their lines.

    Rates of the population are drawn from what the counts leave open, and events of the other rows from
    these.

    Parameters
    ----------
    counts : sequence of Counts
        Of each ratio.
    lines : sequence of float
        Of each.
    share : float
        The number of other rows over that of those counted.
    seed : int
        Of the draws.
    allowance : float, default=1.0
        By how much counts are divided first.

    Examples
    --------
    Equal rates of 500 events each, where a line of 0.8 is not close:

    >>> counts = Counts.of_rows(np.array([500.0, 500.0]), np.array([10_000.0, 10_000.0]))
    >>> chance_of_showing([counts], [0.8], 1.0, seed=0) > 0.98
    True
    """
    shown = np.ones(_DRAWS, dtype=np.bool_)
    generator = np.random.default_rng([seed, 5])
    for own, line in zip(counts, lines, strict=True):
        if not own.defined:
            return float("nan")
        sizes = own.sizes / allowance
        events = own.rates * sizes
        rates = generator.beta(events + 0.5, np.maximum(sizes - events, 0.0) + 0.5, (_DRAWS, len(sizes)))
        drawn = np.maximum(np.rint(own.sizes * share), 1).astype(np.int64)
        found = generator.binomial(drawn, rates) / drawn
        highest = found.max(axis=1)
        shown &= (highest > 0) & (found.min(axis=1) >= line * highest)
    return float(shown.mean())
