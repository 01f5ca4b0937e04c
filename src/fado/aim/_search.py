"""Which log factors to try next: from the rates that were measured, towards the line and no further.

The search is a function of the steps before. As long as no step has reached the line, every group's log
factor is moved by how far its rate lies outside the band that the line allows, over how much rates have moved
so far for a move of the factors. Once one has, the search goes back towards the steps that have not: the less
is moved, the more of the performance stays.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

__all__ = ["Search", "Step"]

FloatArray = npt.NDArray[np.float64]

_CLOSE = 0.01  # above the line, where the search ends
_FIRST_SLOPE = 0.6  # of log rates over log factors, before anything is known
_SLOPES = (0.2, 2.5)
_LEAST_MOVE, _LARGEST_MOVE = 0.1, 2.5  # of a log factor in one step
_LARGEST_MOVE_OF_MANY = 1.0  # where there are more than two groups
_LARGEST = 7.0  # a factor of about 1,000 between two groups
_INNER = 0.12  # of a bracket, which is left to either side
_NARROW = 0.02  # a bracket of log factors that nothing is won in
_SAME = 0.001
_WIDE = 0.2  # a gap between steps in which something may lie
_INSIDE = 0.95


@dataclass(frozen=True)
class Step:
    """What a model achieved with some log factors.

    Parameters
    ----------
    log_factors : tuple of float
        One per compared group.
    log_rates : tuple of float
        The logarithms of their rates on the validation rows; of false-negative rates, with the sign changed,
        so that higher scores always mean a higher number.
    errors : tuple of float
        The standard errors of `log_rates`.
    tpr : float
        The true-positive rate on the validation rows.
    ratio, low : float
        The ratio and its lower bound; NaN where undefined.
    """

    log_factors: tuple[float, ...]
    log_rates: tuple[float, ...]
    errors: tuple[float, ...]
    tpr: float
    ratio: float
    low: float


@dataclass(frozen=True)
class Search:
    """Chooses the log factors to try next, until a ratio reaches a line.

    Parameters
    ----------
    at_least : float
        The line.
    by_bound : bool
        Whether the ratio's lower bound must reach the line, and not only the ratio.
    max_fits : int
        The most steps.

    Examples
    --------
    >>> search = Search(0.8, by_bound=False, max_fits=12)
    >>> first = Step((0.0, 0.0), (math.log(0.02), math.log(0.06)), (0.1, 0.1), 0.6, 1 / 3, 0.3)
    >>> search.next([first]).round(2)
    array([-0.73,  0.73])
    """

    at_least: float
    by_bound: bool
    max_fits: int

    def figure(self, step: Step) -> float:
        """Give what must reach the line, the ratio or its lower bound; -inf if it is undefined."""
        figure = step.low if self.by_bound else step.ratio
        return -math.inf if math.isnan(figure) else figure

    def reached(self, step: Step) -> bool:
        """Tell whether a step reaches the line."""
        return self.figure(step) >= self.at_least

    def best(self, steps: Sequence[Step]) -> int:
        """Give the position of the best step.

        That is the step of the highest true-positive rate among those that reach the line; if none does, the
        one that comes closest.
        """
        above = [k for k, step in enumerate(steps) if self.reached(step)]
        if above:
            return max(above, key=lambda k: (steps[k].tpr, -k))
        return max(range(len(steps)), key=lambda k: (self.figure(steps[k]), steps[k].tpr, -k))

    def next(self, steps: Sequence[Step]) -> FloatArray | None:
        """Give the log factors to try next.

        Parameters
        ----------
        steps : sequence of Step
            All steps so far, in their order; at least one.

        Returns
        -------
        ndarray of shape (n_compared,) or None
            None ends the search: the first step reaches the line, `max_fits` is spent, or no better step is
            expected.
        """
        if len(steps) >= self.max_fits or self.reached(steps[0]):
            return None
        above = [step for step in steps if self.reached(step)]
        return self._between(steps, above) if above else self._onwards(steps)

    def _onwards(self, steps: Sequence[Step]) -> FloatArray | None:
        """Move every group by how far its rate lies outside the band."""
        last = steps[-1]
        outside, errors, largest = self._outside(last), np.asarray(last.errors), _LARGEST_MOVE
        if len(outside) > 2:  # a few rows' rate may be chance, and one of many groups is always far out
            outside, largest = outside * outside**2 / (outside**2 + errors**2), _LARGEST_MOVE_OF_MANY
        move = np.clip(outside / _slope(steps), -largest, largest)
        overshot = len(steps) > 1 and float(outside @ self._outside(steps[-2])) < 0
        if not overshot:
            move *= max(1.0, _LEAST_MOVE / max(np.abs(move).max(), 1e-12))
        now = np.asarray(last.log_factors)
        there = now + move
        there = np.clip(there - (there.max() + there.min()) / 2, -_LARGEST / 2, _LARGEST / 2)
        return there if np.abs(there - now).max() > _SAME else _halfway(steps)

    def _outside(self, step: Step) -> FloatArray:
        """Say how far each log rate lies above or below the band that the line allows."""
        aimed = min(self.at_least + _CLOSE / 2, 1.0)
        if self.by_bound and 0 < step.low < step.ratio:
            aimed = min(aimed * step.ratio / step.low, 1.0)
        rates, width = np.asarray(step.log_rates), -math.log(aimed)
        width = min(width, _INSIDE * float(np.ptp(rates)))  # the ratio itself was below the line
        # The band lies where the least is to be moved, and groups of many events count for more.
        lows = np.unique(np.concatenate([rates, rates - width]))[:, np.newaxis]
        outside = rates - np.clip(rates, lows, lows + width)
        costs = np.abs(outside) @ (1 / np.asarray(step.errors))
        return outside[np.lexsort([(outside != 0).sum(axis=1), costs.round(9)])[0]]

    def _between(self, steps: Sequence[Step], above: Sequence[Step]) -> FloatArray | None:
        """Go back from the weakest step above the line, towards the strongest below it that is weaker still.

        A step may be below the line for having gone too far: nothing is sought there.
        """
        upper = min(above, key=_strength)
        if self.figure(upper) <= self.at_least + _CLOSE:
            return None
        weaker = [step for step in steps if not self.reached(step) and _strength(step) < _strength(upper)]
        lower = max(weaker, key=_strength)
        there = np.asarray(upper.log_factors)
        here = np.asarray(lower.log_factors)
        if np.abs(there - here).max() < _NARROW or upper.tpr >= lower.tpr:
            return None
        figures = self.at_least + _CLOSE / 2, self.figure(lower), self.figure(upper)
        wanted, low, high = (math.log(max(figure, 1e-3)) for figure in figures)
        share = (wanted - low) / (high - low)
        return here + float(np.clip(share, _INNER, 1 - _INNER)) * (there - here)


def _halfway(steps: Sequence[Step]) -> FloatArray | None:
    """Give what lies halfway between the two neighbours furthest apart; None if all lie close together.

    With few rows the ratio jumps as factors move, and may be above the line between two steps below it.
    """
    ordered = sorted(steps, key=_strength)
    pairs = [(_strength(b) - _strength(a), a, b) for a, b in pairwise(ordered)]
    if not pairs:
        return None
    gap, first, second = max(pairs, key=lambda pair: pair[0])
    if gap < _WIDE:
        return None
    return (np.asarray(first.log_factors) + np.asarray(second.log_factors)) / 2


def _slope(steps: Sequence[Step]) -> float:
    """Estimate how much log rates fall as log factors rise, both beside the other groups'."""
    if len(steps) < 2:
        return _FIRST_SLOPE
    first, last = steps[-2], steps[-1]
    weights = 1 / (np.asarray(first.errors) ** 2 + np.asarray(last.errors) ** 2)
    factors, rates = (
        _centred(np.subtract(after, before), weights)
        for after, before in ((last.log_factors, first.log_factors), (last.log_rates, first.log_rates))
    )
    return float(np.clip(-(weights * factors) @ rates / max((weights * factors) @ factors, 1e-12), *_SLOPES))


def _centred(numbers: FloatArray, weights: FloatArray) -> FloatArray:
    return numbers - np.average(numbers, weights=weights)


def _strength(step: Step) -> float:
    """Say how far apart the groups furthest from each other were moved."""
    return max(step.log_factors) - min(step.log_factors)
