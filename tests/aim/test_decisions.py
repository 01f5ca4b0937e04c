"""Coefficients of decisions: the linear programme over all decisions is the oracle."""

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.special import logit

from fado.aim._curve import Coefficients, Dual, Limit, Rows, decision_scores, expected_rates
from fado.metrics import RATIOS, Budget

N = 3_000
FPR = Budget("fpr", 0.1)


def unlabelled(scores, group_probabilities, weights):
    nothing = np.zeros(len(scores), dtype=int)
    codes = (nothing,) * len(group_probabilities)
    return Rows(nothing > 0, codes, weights, scores, group_probabilities)


def known(n_groups=3, n_attributes=1, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(N, 2))
    positive = 1 / (1 + np.exp(2.0 - 1.5 * x[:, 0] - 0.5 * x[:, 1]))
    groups = []
    for attribute in range(n_attributes):
        lean = np.column_stack([g * (x[:, attribute] + 0.3 * rng.normal(size=N)) for g in range(n_groups)])
        given = [np.exp(lean + 0.4 * label * np.arange(n_groups)) for label in (0, 1)]
        groups.append(tuple(own / own.sum(axis=1, keepdims=True) for own in given))
    return unlabelled(positive, tuple(groups), rng.uniform(0.5, 1.5, N))


def best_by_programme(rows, limits, lines, share, of_all=False):
    """The most true positives of any decisions: a linear programme of a variable per row and per limit."""
    gain = rows.weights * rows.scores
    spent = rows.weights if of_all else rows.weights * (1 - rows.scores)
    sides, ends = [np.append(spent, np.zeros(len(limits)))], [share * spent.sum()]
    for place, (limit, line) in enumerate(zip(limits, lines, strict=True)):
        masses = rows.masses(limit)
        for own in (masses / masses.sum(axis=0)).T:
            sign, constant = (1, 0.0) if RATIOS[limit.ratio].of_selected else (-1, 1.0)
            lowest = np.eye(len(limits))[place]
            sides += [np.append(sign * line * own, -lowest), np.append(-sign * own, lowest)]
            ends += [-line * constant, constant]
    found = linprog(
        -np.append(gain / gain.sum(), np.zeros(len(limits))),
        np.array(sides),
        ends,
        bounds=[(0, 1)] * N + [(0, None)] * len(limits),
    )
    return -found.fun


def decide(rows, coefficients, share, of_all=False):
    """Select by score until the budget is spent."""
    order = np.argsort(-decision_scores(rows, coefficients))
    spent = rows.weights if of_all else rows.weights * (1 - rows.scores)
    selected = np.zeros(N, dtype=bool)
    selected[order[np.cumsum(spent[order]) <= share * spent.sum()]] = True
    return selected


@pytest.mark.parametrize("line", [0.5, 0.8, 0.95])
@pytest.mark.parametrize("ratio", list(RATIOS))
def test_no_decisions_within_the_line_and_the_budget_have_more_true_positives(ratio, line):
    rows, limit = known(), Limit(0, ratio, (0, 1, 2))
    coefficients = Dual(rows, [limit], FPR, N).solve([line], [np.ones(3)])
    selected = decide(rows, coefficients, 0.1)
    rates = expected_rates(rows.masses(limit), selected, of_selected=RATIOS[ratio].of_selected)
    tpr = (rows.weights * rows.scores)[selected].sum() / (rows.weights @ rows.scores)
    assert rates.min() / rates.max() == pytest.approx(line, abs=0.02)
    assert tpr == pytest.approx(best_by_programme(rows, [limit], [line], 0.1), abs=0.004)


def test_several_limits_of_two_attributes_and_a_budget_of_all_rows():
    rows = known(2, n_attributes=2)
    limits = [Limit(0, "fpr_ratio", (0, 1)), Limit(0, "tpr_ratio", (0, 1)), Limit(1, "fpr_ratio", (0, 1))]
    lines = [0.7, 0.8, 0.6]
    coefficients = Dual(rows, limits, Budget("selection_rate", 0.15), N).solve(lines, [np.ones(2)] * 3)
    selected = decide(rows, coefficients, 0.15, of_all=True)
    for limit, line in zip(limits, lines, strict=True):
        rates = expected_rates(rows.masses(limit), selected, of_selected=True)
        assert rates.min() / rates.max() > line - 0.02
    tpr = (rows.weights * rows.scores)[selected].sum() / (rows.weights @ rows.scores)
    assert tpr == pytest.approx(best_by_programme(rows, limits, lines, 0.15, of_all=True), abs=0.004)


def test_a_line_that_holds_by_itself_moves_nothing():
    rows, limit = known(), Limit(0, "fpr_ratio", (0, 1, 2))
    coefficients = Dual(rows, [limit], FPR, N).solve([0.01], [np.ones(3)])
    np.testing.assert_allclose(coefficients.negative[0], 0, atol=0.01)
    assert not coefficients.positive[0].any()


def test_a_group_that_is_known_for_sure_gets_a_threshold_of_its_own():
    rng = np.random.default_rng(1)
    sure = np.eye(2)[rng.integers(0, 2, N)]
    positive = 1 / (1 + np.exp(2.0 - rng.normal(size=N) - 1.5 * sure[:, 1]))
    rows = unlabelled(positive, ((sure, sure),), np.ones(N))
    coefficients = Dual(rows, [Limit(0, "fpr_ratio", (0, 1))], FPR, N).solve([1.0], [np.ones(2)])
    first, second = np.log1p(coefficients.negative[0])
    assert second > 0.5 + first
    moved = logit(decision_scores(rows, coefficients)) - logit(rows.scores)
    np.testing.assert_allclose(moved, np.where(sure[:, 1], -second, -first), rtol=1e-9)


def test_a_price_instead_of_a_budget():
    rows, limit = known(), Limit(0, "fpr_ratio", (0, 1, 2))
    coefficients = Dual(rows, [limit], Budget("threshold", 0.5), N).solve([0.8], [np.ones(3)])
    selected = decision_scores(rows, coefficients) >= 0.5
    rates = expected_rates(rows.masses(limit), selected, of_selected=True)
    assert rates.min() / rates.max() == pytest.approx(0.8, abs=0.07)  # of 150 rows
    assert (decision_scores(rows, Coefficients.none(rows)) >= 0.5).sum() > 2 * selected.sum()
