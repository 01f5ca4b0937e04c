"""The curve of decisions: rows whose labels and groups are drawn from what the models know."""

from dataclasses import replace

import numpy as np
import pytest
from tests.aim.test_decisions import known

from fado.aim._curve import Coefficients, Limit, curve_points, decision_scores
from fado.metrics import Budget

BUDGET = Budget("fpr", 0.1)


def drawn(predicted, seed=1):
    """Rows with labels and groups as likely as the models say."""
    rng = np.random.default_rng(seed)
    n_rows = len(predicted.scores)
    positive = rng.random(n_rows) < predicted.scores
    codes = []
    for negative, given in predicted.group_probabilities:
        shares = np.where(positive[:, np.newaxis], given, negative).cumsum(axis=1)
        codes.append((rng.random(n_rows)[:, np.newaxis] > shares[:, :-1]).sum(axis=1))
    return replace(predicted, positive=positive, groups=tuple(codes))


def copies(rows, times):
    return rows.take(np.tile(np.arange(len(rows.scores)), times))


def curve(rows, ratios=("fpr_ratio",), lines=(0.8,), budget=BUDGET):
    n_groups = rows.group_probabilities[0][0].shape[1]
    pairs = zip(ratios, lines, strict=True)
    limits = [Limit(0, ratio, tuple(range(n_groups)), line) for ratio, line in pairs]
    return curve_points(rows, limits, budget, seed=0)


@pytest.mark.parametrize("ratio", ["fpr_ratio", "tpr_ratio", "fnr_ratio", "selection_rate_ratio"])
def test_the_line_is_met_where_it_is_demanded_and_more_costs_more(ratio):
    points = curve(drawn(copies(known(), 10)), (ratio,))
    assert points[0].demand == -np.inf
    assert points[0].counts[0].ratio < 0.6
    at_line = next(point for point in points if abs(point.demand) < 1e-9)
    assert at_line.counts[0].ratio == pytest.approx(0.8, abs=0.04)
    assert points[-1].demand == 1.0
    assert points[-1].counts[0].ratio > 0.93
    assert points[0].tpr > at_line.tpr > points[-1].tpr
    assert all(point.fpr <= 0.1 for point in points)
    ratios = [point.counts[0].ratio for point in points]
    assert min(np.diff(ratios)) > -0.05


def test_every_kind_of_budget_is_kept():
    rows = drawn(known())
    for budget, kept in (
        (Budget("selection_rate", 0.2), lambda point: point.selection_rate <= 0.2),
        (Budget("top_k", 300), lambda point: point.selection_rate * len(rows.positive) <= 400),
        (Budget("threshold", 0.4), lambda point: point.threshold == 0.4),
    ):
        points = curve(rows, budget=budget)
        assert all(map(kept, points))
        at_line = next(point for point in points if abs(point.demand) < 1e-9)
        assert at_line.counts[0].ratio > points[0].counts[0].ratio + 0.2


def test_counts_are_those_of_the_decisions():
    rows = drawn(known())
    point = curve(rows)[5]
    selected = decision_scores(rows, point.coefficients) >= point.threshold
    for group, (events, members) in enumerate(
        zip(point.counts[0].events, point.counts[0].members, strict=True)
    ):
        negatives = ~rows.positive & (rows.groups[0] == group)
        assert members == pytest.approx(rows.weights[negatives].sum())
        assert events == pytest.approx(rows.weights[negatives & selected].sum())


def test_rates_that_models_expect_wrongly_are_corrected():
    """The models take every row for less likely of group 1 than it is; many events show it."""
    rows = drawn(copies(known(2), 20))

    def shifted(probabilities):
        odd = probabilities * np.array([1.0, 0.6])
        return odd / odd.sum(axis=1, keepdims=True)

    wrong = replace(rows, group_probabilities=(tuple(map(shifted, rows.group_probabilities[0])),))
    at_line = next(point for point in curve(wrong) if abs(point.demand) < 1e-9)
    assert at_line.counts[0].ratio == pytest.approx(0.8, abs=0.03)


def test_groups_that_nothing_tells_are_not_moved():
    rows = drawn(known(2))
    same = np.full((len(rows.scores), 2), 0.5)
    blind = replace(rows, group_probabilities=((same, same),))
    points = curve(blind)
    untouched = decision_scores(blind, Coefficients.none(blind)) >= points[0].threshold
    for point in points:
        selected = decision_scores(blind, point.coefficients) >= point.threshold
        assert (selected == untouched).mean() > 0.999
