"""The whole trade-off between ratios and performance, on rows that models have not seen, without a fit.

One number, the demand, asks all ratios at once: 0 for their lines, 1 for equal rates, less for less. At every
demand the dual gives the best decisions by what models expect; a correction for how far the groups' rates are
from what was expected, shrunk where events are few, keeps them on course. What came of them is then counted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fado.aim._bounds import Counts
from fado.aim._decisions import RATES, Coefficients, Dual, Knowledge, Limit, decision_scores, expected_rates
from fado.metrics import Budget

__all__ = ["Curve", "Point", "Rows", "point_of"]

FloatArray = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
Codes = npt.NDArray[np.int64]

_STEERED_ROWS = 200_000  # on which multipliers are sought; everything is counted on all
_SPREAD = 0.2  # how far, in logarithms, groups' rates commonly are from what models expect
_ROUNDS = 2  # of corrections, at each demand
_STEPS = np.arange(16) / 10 - 0.5  # demands, besides lower ones
_LOWER = 6  # how many
_NARROWEST = 0.05  # the least width of a line, in logarithms: equal rates are no width


@dataclass(frozen=True, eq=False)
class Rows:
    """The rows that decisions are counted on.

    Parameters
    ----------
    positive : ndarray of bool
        Which rows have the positive label.
    codes : tuple of ndarray of int
        Per attribute, each row's group.
    weights : ndarray
        How much each row counts.
    """

    positive: Bools
    codes: tuple[Codes, ...]
    weights: FloatArray


@dataclass(frozen=True, eq=False)
class Point:
    """One way to decide, and what came of it.

    Parameters
    ----------
    demand : float
        What was asked for; -inf leaves the decisions of the model of the label alone.
    coefficients : Coefficients
        What probabilities of groups count for.
    threshold : float
        Rows of at least this score, between 0 and 1, are selected.
    tpr, fpr, selection_rate : float
        Over all groups.
    counts : tuple of Counts
        Of each limit.
    positives : float
        As how many rows of equal weight the positives count.
    """

    demand: float
    coefficients: Coefficients
    threshold: float
    tpr: float
    fpr: float
    selection_rate: float
    counts: tuple[Counts, ...]
    positives: float


class Curve:
    """Decides at every demand, from the untouched model to equal rates.

    Parameters
    ----------
    knowledge : Knowledge
        What models say that have not seen the rows.
    rows : Rows
        What the rows are.
    limits : sequence of Limit
        The ratios.
    lines : sequence of float
        The least that each must be.
    budget : Budget
        What sets the threshold.
    seed : int
        Of the rows that multipliers are sought on, if there are many.
    """

    def __init__(
        self,
        knowledge: Knowledge,
        rows: Rows,
        limits: Sequence[Limit],
        lines: Sequence[float],
        budget: Budget,
        seed: int,
    ) -> None:
        self._knowledge, self._rows, self._budget = knowledge, rows, budget
        self._limits = tuple(limits)
        self._widths = [max(-float(np.log(line)), _NARROWEST) for line in lines]
        self._masses = [knowledge.masses(limit) for limit in limits]
        self._corrections = [np.ones(len(limit.compared)) for limit in limits]
        self._dual = _dual_of(_some(knowledge, seed), limits, budget, len(rows.positive))
        spent = 1 - knowledge.positive if budget.kind == "fpr" else np.ones_like(knowledge.positive)
        self._spent = knowledge.weights * spent / (knowledge.weights @ spent)

    def points(self) -> list[Point]:
        """Give the points, the untouched one first and the most equal one last."""
        untouched = self.point(-np.inf, Coefficients.none(self._knowledge))
        if not self._limits:
            return [untouched]
        return [untouched, *(self._at(demand) for demand in self._demands(untouched))]

    def point(self, demand: float, coefficients: Coefficients) -> Point:
        """Count what comes of some coefficients."""
        scores = decision_scores(self._knowledge, coefficients)
        return point_of(scores, self._rows, self._limits, self._budget, coefficients, demand)

    def _demands(self, untouched: Point) -> FloatArray:
        """Give the demands that are tried: none below what the untouched model meets."""
        met = [
            1 + np.log(max(own.ratio, 1e-3)) / width
            for own, width in zip(untouched.counts, self._widths, strict=True)
            if own.ratio > 0
        ]
        least = min(met, default=-5.0)
        lower = np.linspace(least, _STEPS[0], _LOWER + 1)[1:-1] if least < _STEPS[0] else np.empty(0)
        return np.concatenate([lower, _STEPS[least < _STEPS]])

    def _at(self, demand: float) -> Point:
        """Find the best decisions at a demand, corrected by what came of them."""
        lines = [float(np.exp(-(1 - demand) * width)) for width in self._widths]
        for _ in range(_ROUNDS):
            point = self.point(demand, self._dual.solve(lines, self._corrections))
            self._correct(point)
        return point

    def _correct(self, point: Point) -> None:
        """Compare rates with what models expect; of groups, shrink the difference by its error."""
        selected = decision_scores(self._knowledge, point.coefficients) >= point.threshold
        if self._budget.kind != "threshold":
            self._dual.spend(float(self._spent @ selected))
        for place, (limit, masses, own) in enumerate(
            zip(self._limits, self._masses, point.counts, strict=True)
        ):
            expected = expected_rates(masses, selected, of_selected=RATES[limit.ratio][1])
            n_rows = own.members**2 / np.maximum(own.squared_members, np.finfo(np.float64).tiny)
            rates = (own.events / np.maximum(own.members, np.finfo(np.float64).tiny) * n_rows + 0.5) / (
                n_rows + 1
            )
            off = np.log(rates) - np.log(np.maximum(expected, 1e-9))
            errors = (1 - rates) / (rates * n_rows + 0.5)
            off -= np.average(off, weights=1 / (errors + _SPREAD**2))
            self._corrections[place] = np.exp(off * _SPREAD**2 / (_SPREAD**2 + errors))


def point_of(
    scores: FloatArray,
    rows: Rows,
    limits: Sequence[Limit],
    budget: Budget,
    coefficients: Coefficients,
    demand: float = np.nan,
) -> Point:
    """Decide by scores at the threshold that keeps the budget, and count what comes of it."""
    threshold = budget.threshold(rows.positive, scores, rows.weights)
    selected = scores >= threshold
    tpr, fpr, rate = (
        float(np.average(selected[of], weights=rows.weights[of]))
        for of in (rows.positive, ~rows.positive, np.ones_like(rows.positive))
    )
    counts = tuple(_count(rows, limit, selected) for limit in limits)
    own = rows.weights[rows.positive]
    return Point(demand, coefficients, threshold, tpr, fpr, rate, counts, float(own.sum() ** 2 / (own @ own)))


def _some(knowledge: Knowledge, seed: int) -> Knowledge:
    """Take some rows, if there are many."""
    n_rows = len(knowledge.positive)
    if n_rows <= _STEERED_ROWS:
        return knowledge
    chosen = np.random.default_rng([seed, 3]).choice(n_rows, _STEERED_ROWS, replace=False)
    return knowledge.take(np.sort(chosen))


def _dual_of(knowledge: Knowledge, limits: Sequence[Limit], budget: Budget, n_rows: int) -> Dual:
    if budget.kind == "threshold":
        return Dual(knowledge, limits, None, price=budget.limit / (1 - budget.limit))
    return Dual(knowledge, limits, budget.share(n_rows), of_all=budget.kind != "fpr")


def _count(rows: Rows, limit: Limit, selected: Bools) -> Counts:
    """Count the events of a ratio in the compared groups."""
    label, of_selected = RATES[limit.ratio]
    counted = np.ones_like(rows.positive) if label is None else rows.positive == bool(label)
    codes, places = rows.codes[limit.attribute], list(limit.compared)

    def total(of: Bools, power: FloatArray) -> FloatArray:
        sums: FloatArray = np.bincount(codes[of], power[of], minlength=max(places) + 1).astype(np.float64)
        return sums[places]

    events, squares = counted & (selected == of_selected), rows.weights**2
    return Counts(
        total(events, rows.weights),
        total(counted, rows.weights),
        total(events, squares),
        total(counted, squares),
    )
