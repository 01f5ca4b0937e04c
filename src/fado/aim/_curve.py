"""The best decisions that do not use the group, under limits on ratios between groups. Arrays in, arrays out.

Among all rules of the features, the one with the most true positives within a budget, with the rates of
groups within bounds, selects a row where

    odds(x) * (1 + sum_g k_g p(g|x, 1)) >= threshold * (1 + sum_g v_g p(g|x, 0)),    odds = p(1|x) / p(0|x).

The coefficients k and v come from the multipliers of a linear programme over all decisions. Only its dual is
solved, a convex function of a few numbers for any number of rows. So the whole trade-off between rates and
performance follows from models of the label and of the groups, without another fit.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import astuple, dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from fado._typing import Bools, Floats, Integers
from fado.engine import combine_probabilities
from fado.metrics import RATIOS, Budget, effective_sizes, lower_ratio_limit, predicted_positive

# Of decisions while multipliers are sought, in mean gains: less and less.
_SOFTNESS: Sequence[float] = (0.1, 0.02, 0.004)
_STEEPNESS = 1e3  # of the price of a lowest rate that lies outside its bounds
_LARGEST = 1e3  # multiplier: where no decisions keep to all lines, they grow without end
_CHEAPEST = 1e-6  # price of a negative row, in positive ones
_DUAL_ROUNDS = 300
_TINY = np.finfo(np.float64).tiny
_STEERED_ROWS = 200_000  # for the search of multipliers; rates are counted on all rows
_SPREAD = 0.2  # the common difference, in logarithms, between groups' rates and what models expect
_ROUNDS = 2  # of corrections, at each demand
_STEPS = np.arange(16) / 10 - 0.5  # demands, besides lower ones
_LOWER = 6  # how many
_NARROWEST = 0.05  # the least width of a line, in logarithms: that of equal rates would be 0


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows on which decisions are counted, and predictions for them by models that have not seen them.

    Parameters
    ----------
    positive : ndarray of bool
        Which rows have the positive label.
    groups : tuple of ndarray of int
        Per attribute, each row's group.
    weights : ndarray
        How much each row counts.
    scores : ndarray
        The probability of the positive label; empty as long as nothing is predicted.
    group_probabilities : tuple of pairs of ndarray of shape (n_rows, n_groups)
        Per attribute, the probabilities of its groups if the label is negative, and if it is positive. The
        compared groups come first.
    """

    positive: Bools
    groups: tuple[Integers, ...]
    weights: Floats
    scores: Floats = field(default_factory=lambda: np.empty(0))
    group_probabilities: tuple[tuple[Floats, Floats], ...] = ()

    def take(self, rows: npt.NDArray[np.intp]) -> Rows:
        """Give some of the rows, with their predictions."""
        return Rows(
            self.positive[rows],
            tuple(codes[rows] for codes in self.groups),
            self.weights[rows],
            self.scores[rows],
            tuple((negative[rows], positive[rows]) for negative, positive in self.group_probabilities),
        )

    def masses(self, limit: Limit) -> Floats:
        """Give each row's expected weight in every compared group, among the rows that the ratio counts."""
        label, columns = RATIOS[limit.ratio].label, list(range(len(limit.compared)))
        negative, positive = (given[:, columns] for given in self.group_probabilities[limit.attribute])
        masses = np.zeros_like(negative)
        if label != 1:
            masses += (self.weights * (1 - self.scores))[:, np.newaxis] * negative
        if label != 0:
            masses += (self.weights * self.scores)[:, np.newaxis] * positive
        return masses


@dataclass(frozen=True)
class Limit:
    """A ratio between the compared groups of an attribute, and the line that it must reach."""

    attribute: int
    ratio: str
    compared: tuple[int, ...]
    line: float = 1.0
    name: str = ""
    titles: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Coefficients:
    """The coefficients of a row's probabilities of groups in its decision."""

    negative: tuple[Floats, ...]
    positive: tuple[Floats, ...]

    @classmethod
    def none(cls, rows: Rows) -> Coefficients:
        """Give coefficients that leave all groups unchanged."""
        zeros = tuple(np.zeros(negative.shape[1]) for negative, _ in rows.group_probabilities)
        return cls(zeros, zeros)

    @property
    def moves_nothing(self) -> bool:
        """Whether all groups are left unchanged."""
        return not any(moved.any() for moved in (*self.negative, *self.positive))


def decision_scores(rows: Rows, moved: Coefficients) -> Floats:
    """Score rows between 0 and 1: by the model of the label, moved by probabilities of groups."""
    if moved.moves_nothing:
        return rows.scores
    return expit(combine_probabilities(rows.scores, rows.group_probabilities, moved.negative, moved.positive))


def expected_rates(masses: Floats, selected: Bools, *, of_selected: bool) -> Floats:
    """Give the rates of groups that models expect for some decisions."""
    rates: Floats = masses.T @ selected / np.maximum(masses.sum(axis=0), _TINY)
    return rates if of_selected else 1 - rates


class Dual:
    """Finds the coefficients of the best decisions by the multipliers of the budget and of groups' bounds."""

    def __init__(self, rows: Rows, limits: Sequence[Limit], budget: Budget, n_rows: int) -> None:
        self._rows, self._limits = rows, tuple(limits)
        by_price, self._of_all = budget.kind == "threshold", budget.kind in ("selection_rate", "top_k")
        self.share = None if by_price else budget.share(n_rows)  # the largest that may be selected
        gain, negative = rows.weights * rows.scores, rows.weights * (1 - rows.scores)
        spent = gain + negative if self._of_all else negative
        self._unit, self._scale = float(gain.sum()), float(spent.sum())
        self._gain, self._spent = gain / self._unit, spent / self._scale
        price = budget.limit / (1 - budget.limit) if by_price else 1.0
        self._price = price * self._scale / self._unit
        self._masses = [rows.masses(limit) for limit in limits]
        self._totals = [np.maximum(masses.sum(axis=0), _TINY) for masses in self._masses]
        self._multipliers: Floats | None = None

    def solve(self, lines: Sequence[float], corrections: Sequence[Floats]) -> Coefficients:
        """Find the coefficients at some lines, starting from the last solution."""
        from scipy.optimize import minimize
        from threadpoolctl import threadpool_limits

        terms = [
            (line, masses * (correction / total), correction, RATIOS[limit.ratio].of_selected)
            for limit, line, masses, total, correction in zip(
                self._limits, lines, self._masses, self._totals, corrections, strict=True
            )
        ]
        first, schedule = self._multipliers, _SOFTNESS[1:]
        if first is None:
            first, schedule = np.zeros(1 + 2 * sum(map(len, self._totals))), _SOFTNESS
            first[0] = self._price if self.share is None else 1.0
        bounds = [(0.0, _LARGEST)] * len(first)
        if self.share is None:
            bounds[0] = (self._price, self._price)
        with threadpool_limits(1):  # threads of products this small wait for each other
            for softness in schedule:
                first = minimize(
                    self._value_and_slope,
                    first,
                    args=(softness / len(self._gain), terms),
                    jac=True,
                    method="L-BFGS-B",
                    bounds=bounds,
                    options={"maxiter": _DUAL_ROUNDS, "ftol": 1e-13, "gtol": 1e-9},
                ).x
        self._multipliers = first
        return self._coefficients(first, lines, corrections)

    def _value_and_slope(
        self, multipliers: Floats, softness: float, terms: Sequence[tuple[Any, ...]]
    ) -> tuple[float, Floats]:
        """Give the dual, made smooth, and its derivatives by the multipliers."""
        scores = self._gain - multipliers[0] * self._spent
        value = float(multipliers[0]) * (self.share or 0.0)
        worst = []
        for (line, share, correction, of_selected), (high, low) in zip(
            terms, self._pieces(multipliers), strict=True
        ):
            net = line * high - low
            if of_selected:
                scores = scores - share @ net
            else:
                scores = scores + share @ net
                value -= float(net @ correction)
            # The lowest rate lies anywhere from 0 to the highest that there can be: the dual takes the worst.
            most = float(correction.max())
            excess = (high.sum() - low.sum()) * _STEEPNESS
            value += most / _STEEPNESS * float(np.logaddexp(0.0, excess))
            worst.append(most * float(expit(excess)))
        # Soft decisions, the logistic function of the scores, and the sum of its integrals.
        scores = scores / softness
        small = np.exp(-np.abs(scores))
        selected = np.where(scores >= 0, 1.0, small) / (1.0 + small)
        value += softness * float(np.maximum(scores, 0.0).sum() + np.log1p(small).sum())
        slope = np.empty_like(multipliers)
        slope[0] = (self.share or 0.0) - float(self._spent @ selected)
        for (line, share, correction, of_selected), lowest, (high, low) in zip(
            terms, worst, self._pieces(slope), strict=True
        ):
            rates = share.T @ selected
            rates = rates if of_selected else correction - rates
            high[:], low[:] = lowest - line * rates, rates - lowest
        return value, slope

    def _pieces(self, multipliers: Floats) -> Iterator[tuple[Floats, Floats]]:
        """Give each limit's multipliers: of the compared groups' highest and lowest rates."""
        start = 1
        for total in self._totals:
            width = len(total)
            yield multipliers[start : start + width], multipliers[start + width : start + 2 * width]
            start += 2 * width

    def _coefficients(
        self, multipliers: Floats, lines: Sequence[float], corrections: Sequence[Floats]
    ) -> Coefficients:
        """Turn multipliers into coefficients of the probabilities of groups."""
        none = Coefficients.none(self._rows)
        negative, positive = (tuple(map(np.copy, zeros)) for zeros in (none.negative, none.positive))
        # In units of one positive row: what a negative row costs, and what is left of a positive one.
        cost = max(float(multipliers[0]) * self._unit / self._scale, _CHEAPEST)
        left = max(1 - cost, _CHEAPEST) if self._of_all else 1.0
        for limit, line, correction, total, (high, low) in zip(
            self._limits, lines, corrections, self._totals, self._pieces(multipliers), strict=True
        ):
            label, of_selected = RATIOS[limit.ratio].label, RATIOS[limit.ratio].of_selected
            net = (line * high - low) * correction / total * (self._unit if of_selected else -self._unit)
            if label != 1:
                negative[limit.attribute][: len(net)] += net / cost
            if label != 0:
                positive[limit.attribute][: len(net)] -= net / left
        return Coefficients(negative, positive)


@dataclass(frozen=True, eq=False)
class Point:
    """One set of decisions, and their rates."""

    demand: float
    coefficients: Coefficients
    threshold: float
    tpr: float
    fpr: float
    selection_rate: float
    counts: tuple[Counts, ...]
    positives: float


def curve_points(rows: Rows, limits: Sequence[Limit], budget: Budget, seed: int) -> list[Point]:
    """Decide at every demand: the untouched model first, equal rates last."""
    none = Coefficients.none(rows)
    points = [point_of(rows.scores, rows, limits, budget, none, -np.inf)]
    if not limits:
        return points
    some, n_rows = rows, len(rows.positive)
    if n_rows > _STEERED_ROWS:
        chosen = np.random.default_rng([seed, 3]).choice(n_rows, _STEERED_ROWS, replace=False)
        some = rows.take(np.sort(chosen))
    dual = Dual(some, limits, budget, n_rows)
    spent = 1 - rows.scores if budget.kind == "fpr" else np.ones(n_rows)
    spent = rows.weights * spent / (rows.weights @ spent)
    masses = [rows.masses(limit) for limit in limits]
    corrections = [np.ones(len(limit.compared)) for limit in limits]
    for demand in demands_of([counts.ratio for counts in points[0].counts], [limit.line for limit in limits]):
        lines = [float(np.exp(-(1 - demand) * _width(limit.line))) for limit in limits]
        for _ in range(_ROUNDS):
            moved = dual.solve(lines, corrections)
            scores = decision_scores(rows, moved)
            point = point_of(scores, rows, limits, budget, moved, demand)
            selected = predicted_positive(scores, point.threshold)
            if budget.kind != "threshold":
                dual.share = float(spent @ selected)
            corrections = [
                _correction(
                    counts, expected_rates(expected, selected, of_selected=RATIOS[limit.ratio].of_selected)
                )
                for limit, counts, expected in zip(limits, point.counts, masses, strict=True)
            ]
        points.append(point)
    return points


def _correction(counts: Counts, expected: Floats) -> Floats:
    """Compare groups' rates with what models expect, and shrink the difference by its error."""
    n_rows = counts.members**2 / np.maximum(counts.squared_members, _TINY)
    rates = (counts.events / np.maximum(counts.members, _TINY) * n_rows + 0.5) / (n_rows + 1)
    off = np.log(rates) - np.log(np.maximum(expected, 1e-9))
    errors = (1 - rates) / (rates * n_rows + 0.5)
    off -= np.average(off, weights=1 / (errors + _SPREAD**2))
    return np.exp(off * _SPREAD**2 / (_SPREAD**2 + errors))


def demands_of(ratios: Sequence[float], lines: Sequence[float]) -> list[float]:
    """Give the demands of the points of a curve after the untouched one, all above what that one meets.

    Parameters
    ----------
    ratios : sequence of float
        The ratios of the untouched model.
    lines : sequence of float
        The line of each.

    Examples
    --------
    >>> demands_of([0.95], [0.8])
    [0.8, 0.9, 1.0]
    """
    pairs = [(ratio, line) for ratio, line in zip(ratios, lines, strict=True) if ratio > 0]
    least = min((1 + np.log(max(ratio, 1e-3)) / _width(line) for ratio, line in pairs), default=-5.0)
    lower = np.linspace(least, _STEPS[0], _LOWER + 1)[1:-1] if least < _STEPS[0] else np.empty(0)
    demands: list[float] = np.concatenate([lower, _STEPS[least < _STEPS]]).round(6).tolist()
    return demands


def _width(line: float) -> float:
    return max(-float(np.log(line)), _NARROWEST)


def point_of(
    scores: Floats,
    rows: Rows,
    limits: Sequence[Limit],
    budget: Budget,
    coefficients: Coefficients,
    demand: float = np.nan,
) -> Point:
    """Decide by scores at the threshold that keeps the budget, and count the results."""
    threshold = budget.threshold(rows.positive, scores, rows.weights)
    selected = predicted_positive(scores, threshold)
    tpr, fpr, rate = (
        float(np.average(selected[of], weights=rows.weights[of]))
        for of in (rows.positive, ~rows.positive, np.ones_like(rows.positive))
    )
    counts = tuple(count_limit(rows, limit, selected) for limit in limits)
    weights = rows.weights[rows.positive]
    positives = float(weights.sum() ** 2 / (weights @ weights))
    return Point(demand, coefficients, threshold, tpr, fpr, rate, counts, positives)


def count_limit(rows: Rows, limit: Limit, selected: Bools) -> Counts:
    """Count the events of a ratio in the compared groups."""
    label, of_selected = RATIOS[limit.ratio].label, RATIOS[limit.ratio].of_selected
    counted = np.ones_like(rows.positive) if label is None else rows.positive == bool(label)
    codes, places = rows.groups[limit.attribute], list(limit.compared)
    events = counted & (selected == of_selected)
    return Counts(
        *(
            np.bincount(codes[of], power[of], minlength=max(places) + 1).astype(np.float64)[places]
            for power in (rows.weights, rows.weights**2)
            for of in (events, counted)
        )
    )


@dataclass(frozen=True, eq=False)
class Counts:
    """The events of a ratio in the compared groups: sums of weights, and of their squares."""

    events: Floats
    members: Floats
    squared_events: Floats
    squared_members: Floats

    @classmethod
    def of_rows(cls, events: Floats, members: Floats) -> Counts:
        """Count rows that weigh the same."""
        return cls(events, members, events, members)

    @property
    def defined(self) -> bool:
        """Whether there is a ratio: every group has members, and some group an event."""
        return bool((self.members > 0).all() and self.events.any())

    @property
    def rates(self) -> Floats:
        """Each group's rate; NaN without members."""
        with np.errstate(invalid="ignore", divide="ignore"):
            return self.events / self.members

    @property
    def ratio(self) -> float:
        """The lowest rate over the highest; NaN if a group has no members, or no group an event."""
        return float(self.rates.min() / self.rates.max()) if self.defined else float("nan")

    @property
    def sizes(self) -> Floats:
        """How many rows of equal weight each group's members are equivalent to."""
        return effective_sizes(self.events, self.members, self.squared_events, self.squared_members)

    def bound(self, confidence: float, allowance: float = 1.0) -> float:
        """Give the lower bound of the population's ratio at this confidence; 0 if there is no ratio.

        Decisions are fitted to the rates of the same rows, so that several groups may seem equal at a time:
        the error is divided by how many groups there are beside one.
        """
        if not self.defined:
            return 0.0
        error = (1 - confidence) / (len(self.members) - 1)
        return lower_ratio_limit(self.rates, self.sizes / allowance, error)

    def times(self, factor: float) -> Counts:
        """Give the counts of `factor` times as many rows."""
        return Counts(*(part * factor for part in astuple(self)))
