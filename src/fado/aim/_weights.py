"""Weights that teach a classifier of one's own to decide so that a ratio reaches a line: one fit per step."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from fado.aim._choosing import Lines
from fado.aim._curve import Point, point_of
from fado.aim._decisions import RATES, Coefficients
from fado.aim._scores import Aim, Aimed
from fado.aim._search import Search, Step
from fado.engine import Model, Scorer, detach

__all__ = ["cell_weights", "search_weights"]

FloatArray = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
Rows = npt.NDArray[np.int32]


def search_weights(aim: Aim, max_fits: int) -> Aimed:
    """Fit, measure and move the weights, until validation rows say that the ratio reaches its line.

    The validation rows are those that were set apart, or the last fold. The model of the best step is handed
    over as it was measured.

    Parameters
    ----------
    aim : Aim
        The rows and what is asked: one ratio at most, and one attribute.
    max_fits : int
        The most steps.
    """
    learnt, table, attributes, rows = aim.last_fold()
    own = aim.attributes[0]
    memberships, predictability = aim.memberships(learnt) if aim.lines.limits else (np.ones((0, 1)), 0.0)
    untouched = ~own.compared[own.codes[learnt]]
    search = Search(
        aim.lines.lines[0] if aim.lines.lines else 1.0,
        by_bound=aim.lines.confidence is not None,
        max_fits=max_fits if aim.lines.limits else 1,
    )
    n_compared = int(own.compared.sum())
    steps: list[Step] = []
    points: list[Point] = []
    first: tuple[Scorer, FloatArray] | None = None
    kept: tuple[Model, FloatArray, FloatArray] | None = None
    log_factors: FloatArray | None = np.zeros(n_compared)
    while log_factors is not None:
        weights = np.ones(len(learnt))
        if log_factors.any():
            weights = cell_weights(
                np.append(log_factors, np.zeros(memberships.shape[1] - len(log_factors))),
                memberships,
                aim.positive[learnt],
                sample_weight=aim.learner.weights_of(learnt),
                untouched=untouched,
            )
        model = aim.learner.label_model(weights, learnt)
        scores = detach(model).score(table)
        point = point_of(scores, rows, aim.lines.limits, aim.budget, _shown(log_factors, own.n_classes))
        steps.append(_step(log_factors, point, aim.lines))
        points.append(point)
        if first is None:
            first = detach(model), scores
        if kept is None or search.best(steps) == len(steps) - 1:
            kept = model, scores, weights
        log_factors = search.next(steps) if aim.lines.limits else None
    assert first is not None and kept is not None  # noqa: S101, PT018 - for the type checker
    model, scores, weights = kept
    chosen = search.best(steps)
    full = np.zeros(aim.table.n_rows)
    full[learnt] = weights
    return Aimed(
        detach(model),
        *first,
        points[chosen],
        points,
        chosen,
        scores,
        rows,
        attributes,
        aim.lines,
        predictability,
        sample_weight=full,
    )


def _shown(log_factors: FloatArray, n_classes: int) -> Coefficients:
    """Say log factors of weights as coefficients of decisions: half of each for either label."""
    factors = np.zeros(n_classes)
    factors[: len(log_factors)] = (log_factors - log_factors.mean()) / 2 if len(log_factors) else 0.0
    return Coefficients((np.expm1(factors),), (np.expm1(-factors),))


def _step(log_factors: FloatArray, point: Point, lines: Lines) -> Step:
    """Gather what the search needs; half an event more than there are keeps logarithms finite."""
    if not lines.limits:
        return Step((), (), (), point.tpr, float("nan"), float("nan"))
    (counts,), (limit,) = point.counts, lines.limits
    sizes = counts.sizes
    events = np.nan_to_num(counts.rates) * sizes
    rates = (events + 0.5) / (sizes + 1.0)
    sign = 1 if RATES[limit.ratio][1] else -1
    return Step(
        tuple(log_factors.tolist()),
        tuple((sign * np.log(rates)).tolist()),
        tuple(np.sqrt((1 - rates) / (events + 0.5)).tolist()),
        point.tpr,
        counts.ratio,
        lines.bounds(point.counts)[0],
    )


def cell_weights(
    log_factors: FloatArray,
    memberships: FloatArray,
    positive: Bools,
    *,
    sample_weight: FloatArray | None = None,
    untouched: Bools | None = None,
) -> FloatArray:
    """Weigh rows so that the scores of some groups fall and those of others rise.

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
        How much each row counts in the means of 1; None counts all rows alike.
    untouched : ndarray of bool of shape (n_rows,), optional
        Rows whose weight stays 1; None leaves out none.

    Returns
    -------
    ndarray of shape (n_rows,)
        The weights. They do not contain `sample_weight`.

    Examples
    --------
    Two groups; each row's group is known for sure.

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
        own = memberships[moved] @ factors
        counted = None if sample_weight is None else sample_weight[moved]
        if len(own) and (counted is None or counted.any()):
            weights[moved] = own / np.average(own, weights=counted)
    return weights
