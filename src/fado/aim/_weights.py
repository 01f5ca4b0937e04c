"""Which log factors to try next: from the measured rates towards the line, and no further.

The search is a function of the steps before. As long as no step has reached the line, every group's log
factor is moved by how far its rate is outside the range that the line allows, divided by how much rates have
moved so far per move of the factors. Once a step has reached it, the search goes back towards the steps that
have not, because smaller moves cost less performance.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from fado._progress import tracked
from fado._typing import Bools, Floats
from fado.aim._choose import Aimed
from fado.aim._curve import Coefficients, Point, point_of
from fado.aim._folds import Folds, group_predictability
from fado.aim._lines import Lines
from fado.engine import Scorer
from fado.metrics import RATIOS, best_first

_CLOSE = 0.01  # above the line, where the search ends
_FIRST_SLOPE = 0.6  # of log rates over log factors, before anything is known
_SLOPES = (0.2, 2.5)
_LEAST_MOVE, _LARGEST_MOVE = 0.1, 2.5  # of a log factor in one step
_LARGEST_MOVE_OF_MANY = 1.0  # where there are more than two groups
_LARGEST = 7.0  # a factor of about 1,000 between two groups
_INNER = 0.12  # of a bracket, left out at either end
_NARROW = 0.02  # a bracket of log factors too narrow for any gain
_SAME = 0.001
_WIDE = 0.2  # a gap between steps that is worth a step
_INSIDE = 0.95


@dataclass(frozen=True)
class Step:
    """The figures of a model with some log factors."""

    log_factors: tuple[float, ...]
    log_rates: tuple[float, ...]
    errors: tuple[float, ...]
    tpr: float
    ratio: float
    low: float


@dataclass(frozen=True)
class Search:
    """Chooses the log factors to try next, until a ratio reaches a line.

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
        """Give the figure that must reach the line, the ratio or its lower bound; -inf if undefined."""
        figure = step.low if self.by_bound else step.ratio
        return -math.inf if math.isnan(figure) else figure

    def reached(self, step: Step) -> bool:
        """Check whether a step reaches the line."""
        return self.figure(step) >= self.at_least

    def best(self, steps: Sequence[Step]) -> int:
        """Give the position of the best step."""
        rates, figures = np.array([[step.tpr, self.figure(step)] for step in steps]).T
        return int(best_first(rates, figures, figures >= self.at_least)[0])

    def next(self, steps: Sequence[Step]) -> Floats | None:
        """Give the log factors to try next."""
        if len(steps) >= self.max_fits or self.reached(steps[0]):
            return None
        above = [step for step in steps if self.reached(step)]
        return self._between(steps, above) if above else self._onwards(steps)

    def _onwards(self, steps: Sequence[Step]) -> Floats | None:
        """Move every group by how far its rate is outside the range."""
        last = steps[-1]
        outside, errors, largest = self._outside(last), np.asarray(last.errors), _LARGEST_MOVE
        if len(outside) > 2:  # rates of few rows vary by chance, and one of many groups is always far out
            outside, largest = outside * outside**2 / (outside**2 + errors**2), _LARGEST_MOVE_OF_MANY
        move = np.clip(outside / _slope(steps), -largest, largest)
        overshot = len(steps) > 1 and float(outside @ self._outside(steps[-2])) < 0
        if not overshot:
            move *= max(1.0, _LEAST_MOVE / max(np.abs(move).max(), 1e-12))
        now = np.asarray(last.log_factors)
        there = now + move
        there = np.clip(there - (there.max() + there.min()) / 2, -_LARGEST / 2, _LARGEST / 2)
        return there if np.abs(there - now).max() > _SAME else _halfway(steps)

    def _outside(self, step: Step) -> Floats:
        """Give how far each log rate is above or below the range that the line allows."""
        aimed = min(self.at_least + _CLOSE / 2, 1.0)
        if self.by_bound and 0 < step.low < step.ratio:
            aimed = min(aimed * step.ratio / step.low, 1.0)
        rates, width = np.asarray(step.log_rates), -math.log(aimed)
        width = min(width, _INSIDE * float(np.ptp(rates)))  # the ratio itself was below the line
        # The range that needs the smallest moves is used; groups of many events count for more.
        lows = np.unique(np.concatenate([rates, rates - width]))[:, np.newaxis]
        outside = rates - np.clip(rates, lows, lows + width)
        costs = np.abs(outside) @ (1 / np.asarray(step.errors))
        return outside[np.lexsort([(outside != 0).sum(axis=1), costs.round(9)])[0]]

    def _between(self, steps: Sequence[Step], above: Sequence[Step]) -> Floats | None:
        """Go back from the weakest step above the line towards the strongest weaker one below it."""
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


def _halfway(steps: Sequence[Step]) -> Floats | None:
    """Give the middle of the two neighbours that are furthest apart; None if all are close together."""
    ordered = sorted(steps, key=_strength)
    pairs = [(_strength(b) - _strength(a), a, b) for a, b in pairwise(ordered)]
    if not pairs:
        return None
    gap, first, second = max(pairs, key=lambda pair: pair[0])
    if gap < _WIDE:
        return None
    return (np.asarray(first.log_factors) + np.asarray(second.log_factors)) / 2


def _slope(steps: Sequence[Step]) -> float:
    """Estimate how much log rates fall as log factors rise, both relative to the other groups."""
    if len(steps) < 2:
        return _FIRST_SLOPE
    first, last = steps[-2], steps[-1]
    weights = 1 / (np.asarray(first.errors) ** 2 + np.asarray(last.errors) ** 2)
    factors, rates = (
        change - np.average(change, weights=weights)
        for change in (
            np.subtract(last.log_factors, first.log_factors),
            np.subtract(last.log_rates, first.log_rates),
        )
    )
    return float(np.clip(-(weights * factors) @ rates / max((weights * factors) @ factors, 1e-12), *_SLOPES))


def _strength(step: Step) -> float:
    """Give the largest difference between two groups' log factors."""
    return max(step.log_factors) - min(step.log_factors)


def aim_weights(store: Folds, max_fits: int) -> Aimed:
    """Fit, measure and change the weights until the ratio reaches its line on validation data."""
    train, table, rows = store.last_fold()
    lines, limits, (attribute,) = store.lines, store.lines.limits, store.lines.attributes
    memberships, predictability = np.ones((0, 1)), 0.0
    if limits:  # rows' probabilities of groups, given features and label
        _, known, _ = store.out_of_fold(store.deal(train), label=False)
        negative, positive = known.group_probabilities[0]
        memberships = np.where(known.positive[:, np.newaxis], positive, negative)
        predictability = group_predictability(known, lines.attributes)
    untouched = ~attribute.compared[attribute.groups.codes[train]]
    at_least, max_fits = (limits[0].line, max_fits) if limits else (1.0, 1)
    search = Search(at_least, by_bound=lines.confidence is not None, max_fits=max_fits)
    steps: list[Step] = []
    points: list[Point] = []
    models: dict[int, tuple[Scorer, Floats, Floats]] = {}

    def tried() -> Iterator[Floats]:
        """Give the log factors of every step: none at first, then what the steps before suggest."""
        yield np.zeros(int(attribute.compared.sum()))
        while limits and (following := search.next(steps)) is not None:
            yield following

    for log_factors in tracked(tried(), max_fits, what="steps", show=store.progress):
        weights = np.ones(len(train))
        if log_factors.any():
            weights = cell_weights(
                np.append(log_factors, np.zeros(memberships.shape[1] - len(log_factors))),
                memberships,
                store.problem.labels.is_positive[train],
                sample_weight=store.weights(train),
                untouched=untouched,
            )
        scorer = store.fit_weighted(weights, train).detach()
        scores = scorer.score(table)[:, 1]
        point = point_of(scores, rows, limits, lines.budget, _shown(log_factors, attribute.n_classes))
        steps.append(_step(log_factors, point, lines))
        points.append(point)
        models[len(steps) - 1] = scorer, scores, weights
        chosen = search.best(steps)
        models = {place: models[place] for place in (0, chosen)}
    (scorer, scores, weights), (first, before, _) = models[chosen], models[0]
    return Aimed(
        scorer=scorer,
        untouched=first,
        threshold=points[chosen].threshold,
        untouched_threshold=points[0].threshold,
        rows=replace(rows, scores=before),
        scores=scores,
        lines=lines,
        points=points,
        chosen=chosen,
        point=points[chosen],
        predictability=predictability,
        sample_weight=store.spread(train, weights, 0.0),
    )


def _shown(log_factors: Floats, n_classes: int) -> Coefficients:
    """Give log factors of weights as coefficients of decisions: half of each for either label."""
    factors = np.zeros(n_classes)
    factors[: len(log_factors)] = (log_factors - log_factors.mean()) / 2 if len(log_factors) else 0.0
    return Coefficients((np.expm1(factors),), (np.expm1(-factors),))


def _step(log_factors: Floats, point: Point, lines: Lines) -> Step:
    """Gather what the search needs; half an event is added to keep logarithms finite."""
    if not lines.limits:
        return Step((), (), (), point.tpr, float("nan"), float("nan"))
    (counts,), (limit,) = point.counts, lines.limits
    sizes = counts.sizes
    events = np.nan_to_num(counts.rates) * sizes
    rates = (events + 0.5) / (sizes + 1.0)
    sign = 1 if RATIOS[limit.ratio].of_selected else -1
    return Step(
        tuple(log_factors.tolist()),
        tuple((sign * np.log(rates)).tolist()),
        tuple(np.sqrt((1 - rates) / (events + 0.5)).tolist()),
        point.tpr,
        counts.ratio,
        lines.bounds(point.counts)[0],
    )


def cell_weights(
    log_factors: Floats,
    memberships: Floats,
    positive: Bools,
    *,
    sample_weight: Floats | None = None,
    untouched: Bools | None = None,
) -> Floats:
    """Weight rows so that the scores of some groups fall and those of others rise.

    In a group of log factor ``t``, negatives get the factor ``exp(t / 2)`` and positives ``exp(-t / 2)``. A
    row's weight is the mean of the factors of all groups, by its probabilities of belonging to them. Then
    the weights of each label are scaled to a mean of 1.

    Parameters
    ----------
    log_factors : ndarray of shape (n_groups,)
        One per group; above 0, the group's scores fall. Only their differences count.
    memberships : ndarray of shape (n_rows, n_groups)
        Each row's probability of belonging to each group.
    positive : ndarray of bool of shape (n_rows,)
        Which rows have the positive label.
    sample_weight : ndarray of shape (n_rows,), optional
        How much each row counts in the means of 1; None counts all rows equally.
    untouched : ndarray of bool of shape (n_rows,), optional
        Rows whose weight stays 1; None means no rows.

    Returns
    -------
    ndarray of shape (n_rows,)
        The weights. They do not contain `sample_weight`.

    Examples
    --------
    Two groups; each row's group is certain.

    >>> sure = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 1.0]])
    >>> positive = np.array([False, True, False, True])
    >>> cell_weights(np.array([0.0, 2 * np.log(3)]), sure, positive)
    array([0.5, 1.5, 1.5, 0.5])
    """
    half = (log_factors - log_factors.mean()) / 2
    weights = np.empty(len(positive))
    for label, factors in ((False, np.exp(half)), (True, np.exp(-half))):
        rows = positive == label
        moved = rows if untouched is None else rows & ~untouched
        weights[rows] = 1.0
        expected = memberships[moved] @ factors
        counted = None if sample_weight is None else sample_weight[moved]
        if len(expected) and (counted is None or counted.any()):
            weights[moved] = expected / np.average(expected, weights=counted)
    return weights
