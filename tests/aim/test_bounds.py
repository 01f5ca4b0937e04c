"""Bounds of ratios by counts: closed forms, simulated coverage, how many rows are missing, what is said."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import beta, norm

from fado.aim._curve import Coefficients, Counts, Rows, point_of
from fado.aim._groups import Attribute
from fado.aim._lines import Lines, chance_of_showing, expected_counts
from fado.metrics import Budget, lower_ratio_limit
from fado.tabular import Groups


def counts(events, members):
    return Counts.of_rows(np.asarray(events, dtype=float), np.asarray(members, dtype=float))


def sexes_of(codes):
    return Attribute("sex", Groups(codes, ("'f'", "'m'"), ("f", "m")), np.ones(2, dtype=bool))


def test_many_events_give_the_normal_bound_of_the_log_ratio():
    events, members = np.array([5_000.0, 6_000.0]), np.array([1e6, 1e6])
    error = np.sqrt((1 - events / members) @ (1 / events))
    expected = 5 / 6 * np.exp(-norm.ppf(0.9) * error)
    assert counts(events, members).bound(0.9) == pytest.approx(expected, rel=2e-3)


def test_a_sure_rate_leaves_the_limit_of_the_other():
    """One group's rate is known (of a billion rows): the bound is Jeffreys' limit of the other over it."""
    own = counts([30, 5e7], [600, 1e9])
    low = beta.ppf(0.1, 30.5, 570.5)
    assert own.bound(0.9) == pytest.approx(low / 0.05, rel=2e-3)


def test_the_worst_of_all_pairs_counts_with_half_the_error_for_three_groups():
    pairs = [counts(pair, [1000, 1000]).bound(0.95) for pair in ([50, 60], [50, 55], [55, 60])]
    assert counts([50, 60, 55], [1000, 1000, 1000]).bound(0.9) == pytest.approx(min(pairs))


@pytest.mark.parametrize("n_groups", [2, 3, 6])
def test_groups_that_are_equal_on_these_rows_alone_are_as_unequal_as_the_bound_allows(n_groups):
    """Decisions are fitted to measured rates: the true ones lie around them, each by chance of its own."""
    own = counts([200] * n_groups, [4_000] * n_groups)
    rates = np.random.default_rng(0).beta(200.5, 3_800.5, (20_000, n_groups))
    held = rates.min(axis=1) / rates.max(axis=1) >= own.bound(0.9, allowance=1.5)
    assert held.mean() == pytest.approx(0.885, abs=0.015)


@pytest.mark.parametrize(("members", "rates"), [((2_000, 2_000), (0.04, 0.05)), ((600, 9_000), (0.06, 0.05))])
def test_it_is_right_as_often_as_it_says(members, rates):
    rng = np.random.default_rng(0)
    truth = min(rates) / max(rates)
    drawn = rng.binomial(members, rates, size=(3_000, 2))
    right = [lower_ratio_limit(own / members, np.array(members, dtype=float), 0.1) <= truth for own in drawn]
    assert np.mean(right) > 0.88


def test_an_allowance_is_as_if_there_were_fewer_rows():
    own = counts([100, 120], [2_000, 2_000])
    fewer = counts([50, 60], [1_000, 1_000])
    assert own.bound(0.9, allowance=2.0) == pytest.approx(fewer.bound(0.9))
    assert own.times(0.5).bound(0.9) == pytest.approx(fewer.bound(0.9))


def test_a_line_that_rounding_alone_misses_is_reached_and_one_that_is_missed_looks_like_it():
    codes = np.repeat([0, 1], 10_000)
    sexes = sexes_of(codes)
    lines = Lines.between([sexes], {"fpr_ratio": 0.8}, None, Budget("threshold", 0.5), seed=0)
    rows = Rows(np.zeros(20_000, dtype=bool), (codes,), np.ones(20_000))
    rows.positive[-1] = True
    nothing = Coefficients((np.zeros(2),), (np.zeros(2),))
    for events, reached in ((800, True), (799, False)):
        assert lines.reached([counts([events, 1000], [10_000, 10_000])]) is reached
    close = counts([79_996, 100_000], [1e6, 1e6])
    point = replace(point_of(np.ones(20_000), rows, lines.limits, lines.budget, nothing), counts=(close,))
    reason = lines.reason(point, rows, predictability=0.5, each_alone=False, missing=None)
    assert "The closest has fpr_ratio 0.79996 (95 % interval" in reason


def test_rows_of_unequal_weight_count_for_fewer():
    weights = np.array([3.0, 1.0])  # of events, half of the rows each
    once, squared = weights.sum(), (weights**2).sum()
    unequal = Counts(
        np.array([100 * once, 400.0]),
        np.array([1_000 * once, 4_000.0]),
        np.array([100 * squared, 400.0]),
        np.array([1_000 * squared, 4_000.0]),
    )
    assert unequal.sizes.tolist() == pytest.approx([1_000 * 4**2 / 10, 4_000])


def test_no_ratio_has_no_bound():
    assert np.isnan(counts([0, 0], [10, 10]).ratio)
    for events, members in (([0, 0], [10, 10]), ([3, 0], [10, 0]), ([3, 0], [10, 10])):
        assert counts(events, members).bound(0.9) == 0


@pytest.mark.parametrize(
    ("ratio", "budget", "events"),
    [
        ("fpr_ratio", Budget("fpr", 0.05), [50, 200]),
        ("selection_rate_ratio", Budget("selection_rate", 0.1), [110, 490]),
        ("fpr_ratio", Budget("top_k", 500), [100, 400]),
        ("tpr_ratio", Budget("fpr", 0.05), None),
        ("fpr_ratio", Budget("threshold", 0.5), None),
    ],
)
def test_expected_events_are_the_budgets(ratio, budget, events):
    expected = expected_counts(ratio, budget, np.array([1_000.0, 4_000.0]), np.array([100.0, 900.0]))
    assert (expected and expected.events.tolist()) == (events and pytest.approx(events))


def test_rows_that_are_missing():
    """The bound of equal rates of x events each is exp(-(z + |noise|) * sqrt(2 (1 - rate) / x)).

    It reaches the line in four of five tries if z(confidence) + z(0.9) is log(1 / line) in such errors.
    """
    line, level, rate, n = 0.8, 0.9, 0.05, 1_000
    positive, codes = np.arange(2 * n) >= 2 * n - 2, np.tile([0, 1], n)
    rows = Rows(positive, (codes,), np.ones(2 * n))
    lines = Lines.between([sexes_of(codes)], {"fpr_ratio": line}, level, Budget("fpr", rate), 0)
    errors = (norm.ppf(level) + norm.ppf(0.9)) / np.log(1 / line)
    needed = 2 * (1 - rate) * errors**2 / rate * 2  # negatives of both groups
    assert 2 * n + lines.missing_rows(rows) == pytest.approx(needed, rel=0.1)
    assert replace(lines, limits=(replace(lines.limits[0], line=0.3),)).missing_rows(rows) == 0
    assert replace(lines, confidence=None).missing_rows(rows) == 0
    assert replace(lines, limits=(replace(lines.limits[0], line=1.0),)).missing_rows(rows) == -1


def test_the_chance_that_fresh_rows_show_the_line():
    """At the line itself half of all tests pass; with a wide margin nearly all do; more rows tell more."""
    at_line = counts([80_000, 100_000], [2e6, 2e6])
    assert chance_of_showing([at_line], [0.8], 0.01, seed=0) == pytest.approx(0.5, abs=0.04)
    above = counts([900, 1_000], [20_000, 20_000])
    few, many = (chance_of_showing([above], [0.8], share, seed=0) for share in (0.05, 1.0))
    error = np.sqrt((1 - 0.045) / 900 + 0.95 / 1_000)
    assert many == pytest.approx(norm.cdf(np.log(0.9 / 0.8) / (np.sqrt(2) * error)), abs=0.03)
    assert few < many - 0.15
    both = chance_of_showing([above, above], [0.8, 0.8], 0.05, seed=0)
    assert both == pytest.approx(few**2, abs=0.04)


@pytest.mark.parametrize(
    ("confidence", "beside"),
    [(None, "95 % interval 0.000 to {high}"), (0.9, "lower bound 0.000 at 90 % confidence")],
)
@pytest.mark.parametrize(
    ("n_female", "high", "end"),
    [
        (
            5,
            "1.000",
            " on 200 validation rows, which are too few to rule it out (group f has 5 positives). The "
            "closest has tpr_ratio 0.000 ({}) at a true-positive rate of 0.455.",
        ),
        (
            95,
            "0.080",  # 0.0381 over the root of 0.3553 x 0.6447
            ". The closest has tpr_ratio 0.000 ({}) at a true-positive rate of 0.172. Try another "
            "estimator, or a lower line.",
        ),
    ],
)
def test_few_rows_in_a_cell_are_called_that(n_female, high, end, confidence, beside):
    """25 of 50 positive men are selected, no woman: of 5 that may be chance (at most 52 %), of 95 not."""
    codes = np.repeat([0, 1], 100)
    positive = np.concatenate([np.arange(100) < n_female, np.arange(100) < 50])
    sexes = sexes_of(codes)
    budget = Budget("threshold", 0.5)
    lines = Lines.between([sexes], {"tpr_ratio": 0.8}, confidence, budget, seed=0)
    rows = Rows(positive, (codes,), np.ones(200))
    scores = np.where((codes == 1) & (np.arange(200) < 125), 0.9, 0.1)
    nothing = Coefficients((np.zeros(2),), (np.zeros(2),))
    point = point_of(scores, rows, lines.limits, budget, nothing)
    reason = lines.reason(point, rows, predictability=0.5, each_alone=False, missing=None)
    assert reason == f"The line tpr_ratio 0.8 was not reached{end.format(beside.format(high=high))}"
