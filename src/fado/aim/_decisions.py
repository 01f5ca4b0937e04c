"""The best decisions that do not see the group, under limits on ratios between groups. Arrays in, arrays out.

Among all rules of the features, the one of the most true positives within a budget, with the rates of groups
within bounds, selects a row where

    odds(x) * (1 + sum_g k_g p(g|x, 1)) >= threshold * (1 + sum_g v_g p(g|x, 0)),    odds = p(1|x) / p(0|x).

The coefficients k and v come from the multipliers of a linear programme over all decisions. Only its dual is
solved, a convex function of a few numbers, however many rows there are. So the whole trade-off between rates
and performance follows from models of the label and of the groups, without another fit.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from fado.engine import combine_probabilities

__all__ = ["RATES", "Coefficients", "Dual", "Knowledge", "Limit", "decision_scores", "expected_rates"]

FloatArray = npt.NDArray[np.float64]

# Of each ratio: among rows of which label a group's rate is counted (None: of both), and whether it counts
# those that are selected.
RATES: Mapping[str, tuple[int | None, bool]] = {
    "fpr_ratio": (0, True),
    "tpr_ratio": (1, True),
    "fnr_ratio": (1, False),
    "selection_rate_ratio": (None, True),
}
_SOFTNESS = (0.1, 0.02, 0.004)  # of decisions while multipliers are sought, in mean gains: less and less
_STEEPNESS = 1e3  # of the price of a lowest rate that lies outside its bounds
_LARGEST = 1e3  # multiplier: where no decisions keep to all lines, they grow without end
_CHEAPEST = 1e-6  # price of a negative row, in positive ones
_ROUNDS = 300
_TINY = np.finfo(np.float64).tiny


@dataclass(frozen=True, eq=False)
class Knowledge:
    """What models that have not seen a row say about it.

    Parameters
    ----------
    positive : ndarray of shape (n_rows,)
        The probability of the positive label.
    groups : tuple of pairs of ndarray of shape (n_rows, n_groups)
        Per attribute, the probabilities of its groups if the label is negative, and if it is positive.
    weights : ndarray of shape (n_rows,)
        How much each row counts.
    """

    positive: FloatArray
    groups: tuple[tuple[FloatArray, FloatArray], ...]
    weights: FloatArray

    def take(self, rows: npt.NDArray[np.intp]) -> Knowledge:
        """Give what is known of some of the rows."""
        groups = tuple((negative[rows], positive[rows]) for negative, positive in self.groups)
        return Knowledge(self.positive[rows], groups, self.weights[rows])

    def masses(self, limit: Limit) -> FloatArray:
        """Say how much of every compared group a row is expected to be, among those that the ratio counts."""
        label, _ = RATES[limit.ratio]
        negative, positive = (own[:, list(limit.compared)] for own in self.groups[limit.attribute])
        masses = np.zeros_like(negative)
        if label != 1:
            masses += (self.weights * (1 - self.positive))[:, np.newaxis] * negative
        if label != 0:
            masses += (self.weights * self.positive)[:, np.newaxis] * positive
        return masses


@dataclass(frozen=True)
class Limit:
    """A ratio between the groups of an attribute that is to reach a line.

    Parameters
    ----------
    attribute : int
        The attribute's position.
    ratio : str
        The ratio's name.
    compared : tuple of int
        The groups that are compared.
    """

    attribute: int
    ratio: str
    compared: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Coefficients:
    """What a row's probabilities of groups count for in its decision.

    Parameters
    ----------
    negative, positive : tuple of ndarray of shape (n_groups,)
        Per attribute, for groups given a negative and given a positive label; 0 leaves a group as it is.
    """

    negative: tuple[FloatArray, ...]
    positive: tuple[FloatArray, ...]

    @classmethod
    def none(cls, knowledge: Knowledge) -> Coefficients:
        """Leave all groups as they are."""
        zeros = tuple(np.zeros(negative.shape[1]) for negative, _ in knowledge.groups)
        return cls(zeros, zeros)

    @property
    def moves_nothing(self) -> bool:
        """Whether all groups are left as they are."""
        return not any(own.any() for own in (*self.negative, *self.positive))


def decision_scores(knowledge: Knowledge, coefficients: Coefficients) -> FloatArray:
    """Score rows between 0 and 1: by the model of the label alone, or moved by probabilities of groups."""
    if coefficients.moves_nothing:
        return knowledge.positive
    moved = combine_probabilities(
        knowledge.positive, knowledge.groups, coefficients.negative, coefficients.positive
    )
    return expit(moved)


def expected_rates(masses: FloatArray, selected: npt.NDArray[np.bool_], *, of_selected: bool) -> FloatArray:
    """Give the rates of groups that models expect of some decisions."""
    rates: FloatArray = masses.T @ selected / np.maximum(masses.sum(axis=0), _TINY)
    return rates if of_selected else 1 - rates


class Dual:
    """Finds the coefficients of the best decisions, by the multipliers of the budget and of groups' bounds.

    Parameters
    ----------
    knowledge : Knowledge
        Of the rows.
    limits : sequence of Limit
        The ratios that are limited.
    share : float or None
        The largest share of negatives that may be selected, or of all rows; None if there is a price instead.
    of_all : bool, default=False
        Whether `share` is one of all rows.
    price : float, default=1.0
        If there is no share: how many positives must be selected for one negative.
    """

    def __init__(
        self,
        knowledge: Knowledge,
        limits: Sequence[Limit],
        share: float | None,
        *,
        of_all: bool = False,
        price: float = 1.0,
    ) -> None:
        self._knowledge, self._limits, self._share = knowledge, tuple(limits), share
        gain, negative = (knowledge.weights * own for own in (knowledge.positive, 1 - knowledge.positive))
        spent = gain + negative if of_all else negative
        self._unit, self._scale, self._of_all = float(gain.sum()), float(spent.sum()), of_all
        self._gain, self._spent = gain / self._unit, spent / self._scale
        self._price = price * self._scale / self._unit
        self._masses = [knowledge.masses(limit) for limit in limits]
        self._totals = [np.maximum(masses.sum(axis=0), _TINY) for masses in self._masses]
        self._multipliers: FloatArray | None = None

    def spend(self, share: float) -> None:
        """Change the largest share that may be selected, where models expect another than there is."""
        self._share = share

    def solve(self, lines: Sequence[float], corrections: Sequence[FloatArray]) -> Coefficients:
        """Find the coefficients at some lines; what was found before is where the search begins.

        Parameters
        ----------
        lines : sequence of float
            Of each limit, the least that the lowest rate may be of the highest, in (0, 1].
        corrections : sequence of ndarray
            Of each limit, by how much the rates of the compared groups are higher than models expect.
        """
        from scipy.optimize import minimize
        from threadpoolctl import threadpool_limits

        shares = [
            masses * (own / total)
            for masses, total, own in zip(self._masses, self._totals, corrections, strict=True)
        ]
        first = self._multipliers
        if first is None:
            first = np.zeros(1 + 2 * sum(map(len, self._totals)))
            first[0] = self._price if self._share is None else 1.0
        bounds = [(0.0, _LARGEST)] * len(first)
        if self._share is None:
            bounds[0] = (self._price, self._price)
        with threadpool_limits(1):  # threads of products this small wait for each other
            for softness in _SOFTNESS[0 if self._multipliers is None else 1 :]:
                first = minimize(
                    self._value_and_slope,
                    first,
                    args=(softness / len(self._gain), lines, shares, corrections),
                    jac=True,
                    method="L-BFGS-B",
                    bounds=bounds,
                    options={"maxiter": _ROUNDS, "ftol": 1e-13, "gtol": 1e-9},
                ).x
        self._multipliers = first
        return self._coefficients(lines, corrections)

    def _value_and_slope(
        self,
        multipliers: FloatArray,
        softness: float,
        lines: Sequence[float],
        shares: Sequence[FloatArray],
        corrections: Sequence[FloatArray],
    ) -> tuple[float, FloatArray]:
        """Give the dual, made smooth, and its derivatives by the multipliers."""
        scores = self._gain - multipliers[0] * self._spent
        value = float(multipliers[0]) * (self._share or 0.0)
        worst = []
        pieces = self._pieces(multipliers)
        for limit, line, share, own, (high, low) in zip(
            self._limits, lines, shares, corrections, pieces, strict=True
        ):
            net = line * high - low
            if RATES[limit.ratio][1]:
                scores = scores - share @ net
            else:
                scores = scores + share @ net
                value -= float(net @ own)
            # The lowest rate lies anywhere from 0 to the highest that there can be: the dual takes the worst.
            most = float(own.max())
            excess = (high.sum() - low.sum()) * _STEEPNESS
            value += most / _STEEPNESS * float(np.logaddexp(0.0, excess))
            worst.append(most * float(expit(excess)))
        selected, gained = _soft(scores / softness)
        value += softness * gained
        slope = np.empty_like(multipliers)
        slope[0] = (self._share or 0.0) - float(self._spent @ selected)
        pieces = self._pieces(slope)
        for limit, line, share, own, lowest, (high, low) in zip(
            self._limits, lines, shares, corrections, worst, pieces, strict=True
        ):
            rates = share.T @ selected
            rates = rates if RATES[limit.ratio][1] else own - rates
            high[:], low[:] = lowest - line * rates, rates - lowest
        return value, slope

    def _pieces(self, multipliers: FloatArray) -> Iterator[tuple[FloatArray, FloatArray]]:
        """Give each limit's multipliers: of the compared groups' highest and lowest rates."""
        start = 1
        for total in self._totals:
            width = len(total)
            yield multipliers[start : start + width], multipliers[start + width : start + 2 * width]
            start += 2 * width

    def _coefficients(self, lines: Sequence[float], corrections: Sequence[FloatArray]) -> Coefficients:
        """Turn multipliers into what probabilities of groups count for, beside odds and threshold."""
        none = Coefficients.none(self._knowledge)
        negative, positive = ([own.copy() for own in given] for given in (none.negative, none.positive))
        assert self._multipliers is not None  # noqa: S101 - for the type checker
        # In units of one positive row: what a negative row costs, and what is left of a positive one.
        cost = max(float(self._multipliers[0]) * self._unit / self._scale, _CHEAPEST)
        left = max(1 - cost, _CHEAPEST) if self._of_all else 1.0
        pieces = self._pieces(self._multipliers)
        for limit, line, own, total, (high, low) in zip(
            self._limits, lines, corrections, self._totals, pieces, strict=True
        ):
            label, of_selected = RATES[limit.ratio]
            net = (line * high - low) * own / total * (self._unit if of_selected else -self._unit)
            places = list(limit.compared)
            if label != 1:
                negative[limit.attribute][places] += net / cost
            if label != 0:
                positive[limit.attribute][places] -= net / left
        return Coefficients(tuple(negative), tuple(positive))


def _soft(numbers: FloatArray) -> tuple[FloatArray, float]:
    """Give soft decisions, the logistic function of numbers, and the sum of its integrals."""
    small = np.exp(-np.abs(numbers))
    selected = np.where(numbers >= 0, 1.0, small) / (1.0 + small)
    return selected, float(np.maximum(numbers, 0.0).sum() + np.log1p(small).sum())
