from itertools import pairwise

import numpy as np
import pytest
from scipy.stats import binomtest, norm
from sklearn.exceptions import UndefinedMetricWarning

from fado.metrics import RATIO_NAMES, evaluate, measure

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
        f"71 negatives are too few to tell where the threshold of `max_fpr` {max_fpr} lies."
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
    assert (
        "`fpr_ratio` has no interval: it is open where the threshold of `max_fpr` 0.052 lies, and the ratio "
        "hangs on that."
    ) in reasons


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
