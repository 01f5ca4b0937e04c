"""Limits of shares and ratios, thresholds that are drawn, and the intervals of all metrics."""

import itertools
from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom, binomtest, norm
from sklearn.exceptions import UndefinedMetricWarning

from fado.metrics import RATIO_NAMES, evaluate, measure
from fado.metrics._intervals import (
    _least_moved,
    count_at,
    draw_thresholds,
    effective_sizes,
    pair_limits,
    ratio_limits,
    share_limits,
)
from fado.metrics._rates import count_by_group


@pytest.mark.parametrize("error", [0.025, 0.05, 0.0005])
@pytest.mark.parametrize(("events", "members"), [(0, 11), (11, 11), (1, 50), (7, 20), (250, 5000)])
def test_limits_of_a_share_are_those_of_scipy(events, members, error):
    low, high = share_limits(np.array([events / members]), np.array([members]), error)
    peer = binomtest(events, members).proportion_ci(1 - 2 * error, method="exact")
    assert low[0] == pytest.approx(peer.low, abs=1e-12)
    assert high[0] == pytest.approx(peer.high, abs=1e-12)


def test_a_share_without_members_has_no_limits():
    low, high = share_limits(np.array([np.nan, 0.5]), np.array([0, 4]), 0.025)
    assert np.isnan([low[0], high[0]]).all()
    assert 0 < low[1] < 0.5 < high[1] < 1


def test_effective_sizes_by_hand():
    def size(weights, events):
        weights, events = np.array(weights, dtype=float), np.array(events)
        return float(
            effective_sizes(
                weights[events].sum(), weights.sum(), (weights[events] ** 2).sum(), (weights**2).sum()
            )
        )

    assert size([1, 1, 1, 1], [True, False, False, False]) == pytest.approx(4)
    assert size([2.5] * 6, [True] * 6) == pytest.approx(6)
    # Without events the weights alone tell: 6 squared over 12.
    assert size([3, 1, 1, 1], [False] * 4) == pytest.approx(3)
    # The share is half; its variance (9 + 3) / 4 / 36 is that of three rows.
    assert size([3, 1, 1, 1], [True, False, False, False]) == pytest.approx(3)
    # An event that weighs 4 of 8: a variance of (16 + 4) / 4 / 64 is that of 3.2 rows.
    assert size([4, 1, 1, 1, 1], [True, False, False, False, False]) == pytest.approx(0.25 * 64 / 5)
    assert effective_sizes(*(np.array(0.0),) * 4) == 0.0


def test_a_ratio_to_a_known_share_has_the_limits_of_the_other_share():
    shares, sizes = (np.array([0.02, 0.1]), np.array([200.0, 1e10]))  # NaN of many more, before scipy 1.17
    low, high = ratio_limits(shares, sizes, 0.025)
    own = share_limits(shares[:1], sizes[:1], 0.025)
    assert low == pytest.approx(own[0][0] / 0.1, rel=1e-4)
    assert high == pytest.approx(own[1][0] / 0.1, rel=1e-4)


def test_two_shares_by_hand():
    # Donner and Zou (2012), with Clopper and Pearson's limits of 20 and of 40 of 200.
    (l1, l2), (u1, u2) = share_limits(np.array([0.1, 0.2]), np.array([200.0, 200.0]), 0.025)
    root = np.sqrt(0.02**2 - l1 * (0.2 - l1) * u2 * (0.4 - u2))
    expected_low = (0.02 - root) / (u2 * (0.4 - u2))
    root = np.sqrt(0.02**2 - u1 * (0.2 - u1) * l2 * (0.4 - l2))
    expected_high = (0.02 + root) / (l2 * (0.4 - l2))
    low, high = ratio_limits(np.array([0.1, 0.2]), np.array([200.0, 200.0]), 0.025)
    assert (low, high) == pytest.approx((expected_low, expected_high))


def test_no_events_are_no_certainty():
    # None of 100 beside 100 of 1,000: the lower group may have up to 3.6 %.
    low, high = ratio_limits(np.array([0.0, 0.1]), np.array([100.0, 1000.0]), 0.025)
    assert low == 0.0
    assert 0.36 < high < 0.42
    assert ratio_limits(np.array([0.0, 0.0]), np.array([100.0, 1000.0]), 0.025) == (0.0, 1.0)


@pytest.mark.parametrize("sizes", [(20, 30), (8, 60)])
@pytest.mark.parametrize("share", [0.05, 0.3, 0.7, 0.95])
@pytest.mark.parametrize("ratio", [1.0, 0.7, 0.3])
def test_exact_coverage_for_two_small_groups(sizes, share, ratio):
    # Over all possible tables of the two binomials, with their probabilities.
    true = np.array([share * ratio, share])
    missed = 0.0
    for events in itertools.product(range(sizes[0] + 1), range(sizes[1] + 1)):
        probability = binom.pmf(events, sizes, true).prod()
        if probability > 1e-9:
            low, high = ratio_limits(np.array(events) / sizes, np.array(sizes, dtype=float), 0.025)
            missed += probability * (not low - 1e-12 <= ratio <= high + 1e-12)
    assert missed <= 0.055


@settings(deadline=None, max_examples=100)
@given(data=st.data())
def test_limits_hold_the_estimate_and_widen_with_confidence(data):
    n_groups = data.draw(st.integers(2, 6))
    sizes = np.array(data.draw(st.lists(st.integers(1, 500), min_size=n_groups, max_size=n_groups)))
    events = np.array([data.draw(st.integers(0, int(size))) for size in sizes])
    shares = events / sizes
    low, high = ratio_limits(shares, sizes.astype(float), 0.025)
    assert 0 <= low <= high <= 1
    if shares.max() > 0:
        assert low <= shares.min() / shares.max() <= high
    wider = ratio_limits(shares, sizes.astype(float), 0.005)
    assert wider[0] <= low + 1e-12
    assert high <= wider[1] + 1e-12
    drawn = np.tile(shares, (50, 1))  # a threshold that is sure widens nothing
    assert ratio_limits(shares, sizes.astype(float), 0.025, drawn) == pytest.approx((low, high))


def test_what_varies_with_the_threshold_widens_the_limits():
    shares, sizes = np.array([0.05, 0.1]), np.array([1000.0, 1000.0])
    low, high = ratio_limits(shares, sizes, 0.025)
    factors = np.exp(np.linspace(-1, 1, 201))
    together = shares * factors[:, np.newaxis]  # both alike: the ratio stays
    assert ratio_limits(shares, sizes, 0.025, together) == pytest.approx((low, high), abs=0.002)
    apart = np.column_stack([shares[0] * factors, np.full(201, shares[1])])
    wider = ratio_limits(shares, sizes, 0.025, apart)
    # Squares of the distances on the scale of logarithms add up; that of the draws ends at 0.95.
    assert np.log(0.5 / wider[0]) == pytest.approx(np.hypot(np.log(0.5 / low), 0.95), abs=0.03)
    assert wider[1] == 1.0


def test_blocks_of_pairs_change_nothing(monkeypatch):
    rng = np.random.default_rng(0)
    sizes = rng.integers(50, 500, 9).astype(float)
    shares = rng.binomial(sizes.astype(int), 0.2) / sizes
    drawn = shares * rng.uniform(0.8, 1.2, (40, 9))
    whole = ratio_limits(shares, sizes, 0.025), ratio_limits(shares, sizes, 0.025, drawn)
    monkeypatch.setattr("fado.metrics._intervals._PAIRS_AT_ONCE", 20)
    assert (ratio_limits(shares, sizes, 0.025), ratio_limits(shares, sizes, 0.025, drawn)) == whole


@pytest.fixture
def many_groups():
    rng = np.random.default_rng(0)
    sizes = rng.integers(2000, 9000, 150)
    shares = rng.binomial(sizes, np.repeat([0.02, 0.06], [20, 130])) / sizes
    drawn = np.clip(shares + rng.normal(0, 0.0003, (50, 150)), 0, 1)
    return shares, sizes.astype(float), drawn


def test_pairs_that_are_passed_over_would_change_nothing(many_groups):
    shares, sizes, drawn = (part[..., 110:] for part in many_groups)
    shares[:3] /= 3
    logs = [np.log((rates * sizes + 0.5) / (sizes + 0.5)) for rates in (shares, drawn)]
    above, below = np.nonzero(~np.eye(40, dtype=bool))
    ends = share_limits(shares, sizes, 0.025)
    for upper in (False, True):
        limits = pair_limits(shares, *ends, np.arange(40), upper=upper)[above, below]

        def least(pairs, limits=limits, upper=upper):
            about = (limits[pairs], above[pairs], below[pairs], 9.0, *logs, 0.025)
            return _least_moved(*about, upper=upper, n_pairs=780)

        assert 0 < least(slice(None)) == min(least([pair]) for pair in range(len(limits))) < 1


def test_few_pairs_are_looked_at_draw_by_draw(many_groups, monkeypatch):
    looked_at, quantile = [], np.quantile

    def counted(draws, *args, **kwargs):
        looked_at.append(draws.shape[1])
        return quantile(draws, *args, **kwargs)

    monkeypatch.setattr(np, "quantile", counted)
    low, high = ratio_limits(*many_groups[:2], 0.025, many_groups[2])
    assert 0 < low < high < 1
    assert 0 < sum(looked_at) < 150 * 149 / 20


# Ten negatives, with ties at 0.4 and 0.8; positives score between and above them.
NEGATIVES = np.array([0.1, 0.2, 0.3, 0.4, 0.4, 0.5, 0.6, 0.7, 0.8, 0.8])
POSITIVES = np.array([0.45, 0.75, 0.9])
SCORES = np.concatenate([NEGATIVES, POSITIVES])
POSITIVE = np.arange(13) >= 10
# What the threshold is if so many negatives score above the population's.
AT_COUNT = {0: 0.9, 1: 0.9, 2: 0.75, 3: 0.7, 4: 0.6, 5: 0.45, 6: 0.45, 7: 0.4, 8: 0.3, 9: 0.2, 10: 0.2}


def test_law_is_that_of_a_binomial_number_of_negatives_above():
    n_draws = 40_000
    drawn = draw_thresholds(~POSITIVE, SCORES, share=0.3, n_draws=n_draws, rng=np.random.default_rng(0))
    law = Counter()
    for count, threshold in AT_COUNT.items():
        law[threshold] += binom.pmf(count, 10, 0.3)
    found = Counter(drawn.tolist())
    assert set(found) <= set(law)
    for threshold, probability in law.items():
        noise = np.sqrt(probability * (1 - probability) / n_draws)
        assert found[threshold] / n_draws == pytest.approx(probability, abs=5 * noise)


def test_above_all_scores_there_is_the_next_float():
    scores = np.array([0.5, 0.5, 0.2], dtype=np.float32)
    drawn = draw_thresholds(
        np.array([True, True, False]), scores, share=0.4, n_draws=50, rng=np.random.default_rng(0)
    )
    assert drawn.dtype == np.float32
    assert set(drawn.tolist()) == {float(np.nextafter(np.float32(0.5), np.float32(1)))}


def test_weights_count_by_their_share():
    # The negative at 0.8 weighs half: shares below a half refuse it, shares from there on let it pass.
    scores, weights = np.array([0.8, 0.6, 0.4, 0.9]), np.array([2.0, 1.0, 1.0, 1.0])
    drawn = draw_thresholds(
        np.array([True, True, True, False]),
        scores,
        share=0.3,
        n_draws=20_000,
        rng=np.random.default_rng(0),
        weights=weights,
        n_effective=8 / 3,
    )
    shares = Counter(drawn.tolist())
    # Three effective rows: a share of 0 or 1/3 makes the threshold 0.9, 2/3 makes it 0.8, and 1 makes it 0.6.
    for threshold, probability in {0.9: 0.784, 0.8: 0.189, 0.6: 0.027}.items():
        assert shares[threshold] / 20_000 == pytest.approx(probability, abs=0.015)


@pytest.mark.parametrize("weighted", [False, True])
def test_draws_hold_the_populations_threshold_as_often_as_they_say(weighted):
    rng, held = np.random.default_rng(0), 0
    positive = np.arange(400) >= 300
    for _ in range(400):
        scores = rng.normal(size=400)
        weights = rng.uniform(0.5, 1.5, 400) if weighted else None
        drawn = draw_thresholds(
            ~positive,
            scores,
            share=0.1,
            n_draws=200,
            rng=rng,
            weights=weights,
            n_effective=277,  # 300 / (1 + 1 / 12)
        )
        low, high = np.quantile(drawn, [0.025, 0.975])
        held += low <= norm.isf(0.1) <= high
    assert 0.92 <= held / 400 <= 0.985  # 95 % and three standard errors


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("weighted", [False, True])
def test_counts_at_many_thresholds_are_those_at_each(dtype, weighted):
    rng = np.random.default_rng(0)
    positive, codes = rng.random(300) < 0.4, rng.integers(0, 3, 300)
    scores = np.round(rng.normal(size=300), 1).astype(dtype)
    weights = rng.integers(1, 5, 300).astype(float) if weighted else None
    thresholds = np.append(rng.choice(scores, 20), np.nextafter(scores.max(), np.inf, dtype=dtype))
    found = count_at(thresholds, positive, scores, codes, 4, weights)
    for at, threshold in enumerate(thresholds):
        peer = count_by_group(positive, scores >= threshold, codes, 4, weights)
        assert (found.negatives == peer.negatives).all()
        assert (found.positives == peer.positives).all()
        assert found.false_positives[at].tolist() == peer.false_positives.tolist()
        assert found.true_positives[at].tolist() == peer.true_positives.tolist()


METRICS = ["threshold", "fpr", "tpr", *RATIO_NAMES]


def table(negatives, positives, rng, up=0.0):
    """Draw normal scores of groups with so many negatives and positives; up is how much higher group 0 is."""
    groups = np.arange(len(negatives))
    codes = np.concatenate([np.repeat(groups, negatives), np.repeat(groups, positives)])
    positive = np.arange(len(codes)) >= sum(negatives)
    return positive, rng.normal(size=len(codes)) + 1.5 * positive + up * (codes == 0), codes


def names_of(codes):
    return [f"g{code}" for code in range(codes.max() + 1)]


def coverage(name, truth, draw, n_tables=150, **options):
    """Return how many tables have an interval, and which share of these intervals holds the truth."""
    rng, given, held = np.random.default_rng(0), 0, 0
    for _ in range(n_tables):
        positive, scores, codes = draw(rng)
        found, _ = measure(positive, scores, codes, names_of(codes), n_boot=200, random_state=rng, **options)
        low, high = found[f"{name}_low"], found[f"{name}_high"]
        if not np.isnan(low):
            given, held = given + 1, held + (low <= truth <= high)
    return given, held / max(given, 1)


def test_eight_equal_groups_reach_one():
    given, held = coverage(
        "fpr_ratio", 1.0, lambda rng: table([300] * 8, [50] * 8, rng), threshold=norm.isf(0.05)
    )
    assert given == 150
    assert held > 0.92  # the two extremes alone, resampled, hold it in half of the tables


def test_a_group_of_eleven_negatives_has_no_interval_of_a_ratio_but_a_reason():
    positive, scores, codes = table([11, 2000], [300, 1000], np.random.default_rng(0))
    found, reasons = measure(positive, scores, codes, ["'x'", "'y'"], n_boot=200, random_state=0)
    assert not np.isnan(found["fpr_ratio"])
    assert np.isnan([found["fpr_ratio_low"], found["fpr_ratio_high"]]).all()
    n_false = int((scores >= found["threshold"])[(codes == 0) & ~positive].sum())
    assert reasons == [
        f"`fpr_ratio` has no interval: too few false positives in group 'x' ({n_false} of 11 negatives)."
    ]
    for name in set(METRICS) - {"fpr_ratio"}:
        assert found[f"{name}_low"] < found[name] < found[f"{name}_high"] or name == "fpr"


def test_a_group_without_false_positives_is_not_sure_to_have_none():
    positive, scores, codes = table([150, 2000], [100, 1000], np.random.default_rng(0))
    scores[(codes == 0) & ~positive] = -1.0
    found, reasons = measure(positive, scores, codes, ["x", "y"], n_boot=200, random_state=0)
    assert reasons == []
    assert found["fpr_ratio"] == found["fpr_ratio_low"] == 0.0
    # None of 150 leaves up to 2.4 %, against 5 % and a little in the other group.
    assert 0.4 < found["fpr_ratio_high"] < 0.6


def test_an_interval_that_would_tell_nothing_is_none():
    # Of 120 negatives each, 6 are predicted positive in all groups but one: 5.25 would be expected in that.
    positive, codes = np.repeat([False, True], [960, 800]), np.arange(1760) % 8
    scores = np.where(np.arange(1760) < 6 * 8, 1.0, 0.0) + (np.arange(1760) >= 1360)
    scores[(codes == 3) & ~positive] = 0.0
    found, reasons = measure(positive, scores, codes, names_of(codes), n_boot=1, threshold=0.5)
    assert found["fpr_ratio"] == 0.0
    assert np.isnan([found["fpr_ratio_low"], found["fpr_ratio_high"]]).all()
    assert reasons == [
        "`fpr_ratio` has no interval: too few false positives in group g3 (0 of 120 negatives)."
    ]


def test_enough_events_that_nobody_expected_do():
    # 20 false positives of 60 beside 10 of 2,000: at the rate of both, less than one would be expected.
    positive = np.repeat([False, False, False, False, True], [20, 40, 10, 1990, 400])
    scores = np.repeat([1.0, 0.0, 1.0, 0.0, 1.0], [20, 40, 10, 1990, 400])
    codes = np.repeat([0, 0, 1, 1, 1], [20, 40, 10, 1990, 400])
    scores[-200:], codes[-300:-100] = 0.0, 0
    found, reasons = measure(positive, scores, codes, ["a", "b"], n_boot=10, threshold=0.5)
    assert reasons == []
    assert 0 < found["fpr_ratio_low"] < found["fpr_ratio"] == pytest.approx(0.015)
    assert found["fpr_ratio_high"] < 0.04


@pytest.mark.parametrize("max_fpr", [0.05, 0.95])
def test_too_few_negatives_cannot_tell_a_threshold(max_fpr):
    options = {"max_fpr": max_fpr, "n_boot": 100, "random_state": 0}
    positive, scores, codes = table([35, 36], [200, 200], np.random.default_rng(0))
    found, reasons = measure(positive, scores, codes, ["a", "b"], **options)
    assert reasons == [
        "Only `fpr` has an interval: "
        f"71 negatives are too few to estimate the threshold of `max_fpr` {max_fpr}."
    ]
    assert {name for name in METRICS if np.isnan(found[f"{name}_low"])} == set(METRICS) - {"fpr"}
    # With one more, less than 2.5 % of tables have all negatives on one side of the population's threshold.
    positive, scores, codes = table([36, 36], [200, 200], np.random.default_rng(0))
    found, reasons = measure(positive, scores, codes, ["a", "b"], **options)
    assert found["threshold_low"] < found["threshold"] < found["threshold_high"]
    assert not any("Only" in reason for reason in reasons)


@pytest.mark.parametrize("confidence", [0.95, 0.8])
def test_rates_at_a_given_threshold_have_exact_limits(confidence):
    positive, scores, codes = table([300, 400], [30, 10], np.random.default_rng(0))
    found, _ = measure(positive, scores, codes, ["a", "b"], n_boot=1, threshold=1.0, confidence=confidence)
    for name, rows in (("fpr", ~positive), ("tpr", positive)):
        peer = binomtest(int((scores[rows] >= 1.0).sum()), int(rows.sum())).proportion_ci(confidence)
        assert (found[f"{name}_low"], found[f"{name}_high"]) == pytest.approx((peer.low, peer.high))
    assert found["threshold_low"] == found["threshold_high"] == 1.0


def test_all_positives_found_leave_doubt():
    positive = np.repeat([False, True], [200, 5])
    scores = np.concatenate([np.linspace(0, 1, 200), np.full(5, 2.0)])
    codes = np.arange(205) % 2
    found, _ = measure(positive, scores, codes, ["a", "b"], n_boot=200, random_state=0)
    assert found["tpr"] == found["tpr_high"] == 1.0
    assert found["tpr_low"] == pytest.approx(0.4782, abs=1e-4)  # 0.025 to the power of a fifth


@pytest.mark.parametrize("threshold", [None, 1.5])
@pytest.mark.parametrize("weighted", [False, True])
def test_more_confidence_is_wider_everywhere(threshold, weighted):
    rng = np.random.default_rng(0)
    positive, scores, codes = table([600, 800, 700], [200, 300, 200], rng, up=0.4)
    weights = rng.gamma(3.0, size=len(codes)) if weighted else None
    options = {"n_boot": 1000, "random_state": 0, "threshold": threshold, "sample_weight": weights}
    ends = [
        measure(positive, scores, codes, ["a", "b", "c"], confidence=level, **options)[0]
        for level in (0.5, 0.9, 0.95, 0.99)
    ]
    for narrow, wide in pairwise(ends):
        for name in METRICS:
            if threshold is not None and name == "threshold":
                continue
            assert wide[f"{name}_low"] <= narrow[f"{name}_low"] <= narrow[name]
            assert narrow[name] <= narrow[f"{name}_high"] <= wide[f"{name}_high"]
            assert wide[f"{name}_high"] - wide[f"{name}_low"] > narrow[f"{name}_high"] - narrow[f"{name}_low"]


def test_few_positives_are_covered():
    truth = norm.sf(norm.isf(0.05) - 1.5)
    for threshold in (None, norm.isf(0.05)):
        given, held = coverage("tpr", truth, lambda rng: table([250, 250], [3, 3], rng), threshold=threshold)
        assert given == 150
        assert held > 0.93


def test_ties_that_put_tables_on_either_side_of_the_budget_are_covered():
    # A level has 4.9 % of the negatives at or above it: in some tables more than the budget, in others less.
    step = norm.isf(0.049) / 3.5
    truth = norm.sf(3.5 * step - 1.5)  # the true-positive rate at that level

    def draw(rng):
        positive, scores, codes = table([300, 300], [150, 150], rng)
        return positive, np.round(scores / step) * step, codes

    given, held = coverage("tpr", truth, draw)
    assert given == 150
    assert held > 0.92


def test_ties_that_leave_the_threshold_open_are_the_reason_and_not_the_events():
    # 0.9 is above the budget in some tables, and in others not: then nothing is predicted positive.
    positive = np.repeat([False, True], [2000, 200])
    codes = np.arange(2200) % 2
    scores = np.where(np.arange(2200) % 40 < 2, 0.9, 0.1)
    metrics, reasons = measure(
        positive, scores, codes, ["'a'", "'b'"], max_fpr=0.052, n_boot=200, random_state=0
    )
    assert metrics["fpr_ratio"] == 1
    assert metrics["threshold_low"] == 0.9 < metrics["threshold_high"]
    assert np.isnan(metrics["fpr_ratio_low"])
    assert "`fpr_ratio` has no interval: the threshold of `max_fpr` 0.052 is too uncertain for it." in reasons


def test_groups_that_are_left_out_change_no_rate_and_count_in_no_ratio():
    rng = np.random.default_rng(0)
    positive, scores, codes = table([800, 800, 20], [400, 400, 5], rng)
    scores[codes == 2] += 3.0
    options = {"n_boot": 100, "random_state": 0}
    every, reasons = measure(positive, scores, codes, ["a", "b", "c"], **options)
    assert any("in group c" in reason for reason in reasons)
    left, reasons = measure(
        positive, scores, codes, ["a", "b", "c"], left_out=np.array([False, False, True]), **options
    )
    assert reasons == []
    for name in ("threshold", "fpr", "tpr"):
        for end in ("", "_low", "_high"):
            assert left[f"{name}{end}"] == every[f"{name}{end}"]
    rest = codes < 2
    alone, _ = measure(positive[rest], scores[rest], codes[rest], ["a", "b"], threshold=left["threshold"])
    for name in RATIO_NAMES:
        assert left[name] == alone[name] != every[name]
        assert left[f"{name}_low"] < left[name] <= left[f"{name}_high"]


def test_a_model_that_decides_nothing_for_the_compared_groups_has_no_ratios():
    positive = np.tile([False, True], 50)
    codes = np.repeat([0, 1, 2], [45, 45, 10])
    scores = np.where(codes == 2, 0.9, np.linspace(0, 0.5, 100))
    found, reasons = measure(
        positive, scores, codes, ["a", "b", "c"], threshold=0.8, left_out=np.array([False, False, True])
    )
    assert found["tpr"] == 0.1
    assert all(np.isnan(found[name]) for name in RATIO_NAMES)
    assert reasons == [
        "All ratios are undefined and set to NaN: every row of group a, b is predicted negative."
    ]


def test_evaluate_leaves_out_small_groups_with_one_warning():
    rng = np.random.default_rng(0)
    positive, scores, codes = table([2000, 2000, 6], [600, 600, 3], rng)
    groups = np.array(["a", "b", "tiny"])[codes]
    message = r"Group 'tiny' \(9 rows\), with fewer than 30 rows and less than 1 % of the table, is left out"
    with pytest.warns(UserWarning, match=message) as caught:
        found = evaluate(positive, scores, sensitive_features=groups, n_boot=100, random_state=0)
    assert len(caught) == 1
    assert not np.isnan(list(found.values())).any()
    with pytest.warns(UndefinedMetricWarning, match="has no interval: too few .* in group 'tiny'") as caught:
        every = evaluate(
            positive, scores, sensitive_features=groups, n_boot=100, random_state=0, min_group_size=0
        )
    assert not any("left out" in str(warning.message) for warning in caught)
    assert [every[name] for name in METRICS[:3]] == [found[name] for name in METRICS[:3]]
    assert every["fpr_ratio"] < found["fpr_ratio"]


def test_one_group_behaves_as_one_group_whatever_its_size():
    with pytest.warns(UndefinedMetricWarning, match="'a' is the only group, and a ratio compares two"):
        evaluate([0, 1, 0, 1], [0.1, 0.9, 0.6, 0.4], sensitive_features=["a"] * 4, max_fpr=0.5)
