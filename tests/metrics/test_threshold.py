"""Thresholds and the budgets that set them."""

import json

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq
from scipy.stats import binomtest, norm
from sklearn.exceptions import UndefinedMetricWarning

from fado.metrics import (
    RATIO_NAMES,
    Budget,
    audit,
    by_group,
    evaluate,
    measure,
    predicted_positive,
    predictions_frame,
    threshold_at_fpr,
    tpr_at_fpr,
)

TRUTH = [0, 0, 0, 0, 1, 1, 1]
TIED = [0.1, 0.4, 0.4, 0.7, 0.2, 0.6, 0.9]


@pytest.mark.parametrize(("labels", "pos_label"), [((0, 1), None), (("n", "y"), None), ((1, 0), 0)], ids=str)
@pytest.mark.parametrize(
    ("max_fpr", "threshold", "tpr"),
    [
        (0.2, 0.9, 1 / 3),  # no false positive
        (0.25, 0.6, 2 / 3),  # one: the negative at 0.7
        (0.5, 0.6, 2 / 3),  # two would need three, as those at 0.4 are tied
        (0.75, 0.2, 1.0),
        (0.99, 0.2, 1.0),
    ],
)
def test_lowest_threshold_within_the_budget(labels, pos_label, max_fpr, threshold, tpr):
    y_true = [labels[label] for label in TRUTH]
    assert threshold_at_fpr(y_true, TIED, max_fpr, pos_label=pos_label) == threshold
    assert tpr_at_fpr(y_true, TIED, max_fpr, pos_label=pos_label) == tpr


def test_default_budget_is_five_percent():
    y_true = [0] * 40 + [1] * 2
    scores = [*range(40), 37.5, 36.5]
    assert threshold_at_fpr(y_true, scores) == 37.5  # two of 40 are above
    assert tpr_at_fpr(y_true, scores) == 0.5


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_a_threshold_above_all_scores_holds_in_their_precision(dtype):
    scores = np.array([0.1, 0.7, 0.7, 0.7], dtype=dtype)
    threshold = threshold_at_fpr([0, 0, 1, 0], scores, 0.5)
    assert threshold == float(np.nextafter(dtype(0.7), dtype(1)))
    assert not (scores >= threshold).any()
    assert tpr_at_fpr([0, 0, 1, 0], scores, 0.5) == 0.0


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_every_function_compares_in_the_precision_of_the_scores(dtype):
    y_true, groups = [0, 1, 0, 1, 0, 1], list("aabbab")
    scores = np.array([0.1, 0.7, 0.7, 0.1, 0.7, 0.9], dtype=dtype)
    saved = json.loads(json.dumps(threshold_at_fpr(y_true, scores, 0.7)))
    assert dtype(saved) == dtype(0.7)
    for threshold in (0.7, dtype(0.7), saved):
        settings = {"sensitive_features": groups, "threshold": threshold}
        assert predictions_frame(y_true, scores, **settings)["score"].tolist() == [0, 1, 1, 0, 1, 1]
        assert audit(y_true, scores, **settings).about["selected"] == 4
        assert by_group(y_true, scores, **settings)["selection_rate"].tolist() == [2 / 3, 2 / 3]
        assert evaluate(y_true, scores, **settings)["fpr"] == 2 / 3
        assert tpr_at_fpr(y_true, scores, 0.7) == 2 / 3


def test_a_threshold_in_single_precision_is_the_score_that_it_is():
    scores = [float(np.float32(0.7)), 0.2, 0.8, 0.1]  # as a list they are in double precision
    for passed in ({"threshold": np.float32(0.7)}, {"budget": ("threshold", np.float32(0.7))}):
        assert audit(None, scores, sensitive_features=list("aabb"), **passed).about["selected"] == 2


def test_a_threshold_that_the_precision_cannot_hold_selects_nothing():
    scores = np.array([0.1, 60_000.0], dtype=np.float16)
    assert predicted_positive(scores, 1e6).tolist() == [False, False]
    assert predicted_positive(scores, -1e6).tolist() == [True, True]
    assert predicted_positive(np.array([0, 1]), 0.5).tolist() == [False, True]


def test_equal_scores_put_the_threshold_above_them_and_leave_the_rate_undefined():
    assert threshold_at_fpr([0, 1, 0], [0.5] * 3) == np.nextafter(0.5, 1)
    told = "`tpr_at_fpr` is undefined and set to NaN: all scores are 0.5"
    with pytest.warns(UndefinedMetricWarning, match=told):
        assert np.isnan(tpr_at_fpr([0, 1, 0], [0.5] * 3))


@settings(deadline=None, max_examples=200)
@given(
    rows=st.lists(st.tuples(st.booleans(), st.integers(0, 5)), max_size=40),
    max_fpr=st.one_of(st.floats(0.001, 0.999), st.sampled_from([0.05, 0.1, 0.2, 1 / 3, 0.5])),
    dtype=st.sampled_from([np.int64, np.float32, np.float64]),
)
def test_budget_holds_under_ties_and_no_lower_score_would_hold_it(rows, max_fpr, dtype):
    rows = [(False, 1), (True, 2), *rows]
    y_true = np.array([label for label, _ in rows])
    scores = np.array([score for _, score in rows]).astype(dtype) / dtype(10)

    def fpr(threshold):
        return np.mean(scores[~y_true] >= threshold)

    threshold = threshold_at_fpr(y_true, scores, max_fpr)
    assert fpr(threshold) <= max_fpr
    assert threshold in scores or threshold > scores.max()
    assert all(fpr(float(score)) > max_fpr for score in scores if score < threshold)
    if threshold > scores.max():
        assert fpr(float(np.nextafter(scores.dtype.type(threshold), scores.dtype.type(-1)))) > max_fpr


@settings(deadline=None)
@given(n_negatives=st.integers(1, 2_000), thousandths=st.integers(1, 999))
@example(n_negatives=100, thousandths=290)  # int(0.29 * 100) is 28, although 29 / 100 does not exceed 0.29
def test_as_many_negatives_pass_as_the_budget_allows_as_floats_compare(n_negatives, thousandths):
    max_fpr, scores = thousandths / 1000, np.arange(n_negatives + 1.0)
    threshold = Budget("fpr", max_fpr).threshold(scores == n_negatives, scores)
    passing = n_negatives - threshold
    assert passing / n_negatives <= max_fpr < (passing + 1) / n_negatives


# By score: 0.9 (positive), 0.8 twice (negative), 0.6 (positive), 0.5, 0.4 (negative), 0.3 (positive), 0.1.
POSITIVE = np.array([True, False, False, True, False, False, True, False])
SCORES = np.array([0.9, 0.8, 0.8, 0.6, 0.5, 0.4, 0.3, 0.1])
GROUPS = list("abababab")


@pytest.mark.parametrize(
    ("kind", "limit", "threshold"),
    [
        ("fpr", 0.4, 0.6),  # two of five negatives
        ("fpr", 0.39, 0.9),
        ("selection_rate", 0.125, 0.9),
        ("selection_rate", 0.374, 0.9),  # two of three would do, but they are tied
        ("selection_rate", 0.375, 0.8),
        ("selection_rate", 0.5, 0.6),
        ("selection_rate", 0.1, np.nextafter(0.9, 1)),
        ("top_k", 1, 0.9),
        ("top_k", 2, 0.9),
        ("top_k", 3, 0.8),
        ("top_k", 8, 0.1),
        ("top_k", 500, 0.1),
        ("threshold", 0.45, 0.45),
    ],
)
def test_thresholds_by_hand(kind, limit, threshold):
    found = Budget(kind, limit).threshold(POSITIVE, SCORES)
    assert type(found) is float
    assert found == threshold


def test_a_share_is_of_weight_and_k_are_rows():
    weights = np.array([4.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 2.0])  # of 12
    assert Budget("selection_rate", 0.3).threshold(POSITIVE, SCORES, weights) > 0.9
    assert Budget("selection_rate", 0.34).threshold(POSITIVE, SCORES, weights) == 0.9
    assert Budget("selection_rate", 0.5).threshold(POSITIVE, SCORES, weights) == 0.8
    assert Budget("top_k", 3).threshold(POSITIVE, SCORES, weights) == 0.8


def test_single_precision_stays():
    scores = SCORES.astype(np.float32)
    found = Budget("selection_rate", 0.1).threshold(POSITIVE, scores)
    assert np.float32(found) == found == np.nextafter(np.float32(0.9), np.float32(1))
    # 0.7 of ten rows are seven, whatever the precision in which the share is told.
    ten = np.arange(10.0)
    labels = ten > 5
    for share in (0.7, np.float32(0.7)):
        assert Budget("selection_rate", share).threshold(labels, ten) == 3.0


def test_budgets_are_read():
    assert Budget.read(None) == Budget("fpr", 0.05)
    assert Budget.read(None, 0.1) == Budget.read(("fpr", 0.1)) == Budget("fpr", 0.1)
    assert Budget.read(["top_k", 500], 0.1) == Budget("top_k", 500)
    ten = Budget("top_k", np.int64(10))
    assert Budget.read(ten) is ten
    assert type(ten.limit) is type(Budget("top_k", 10.0).limit) is int
    assert type(Budget("threshold", 1).limit) is type(Budget("fpr", np.float16(0.1)).limit) is float


@pytest.mark.parametrize(
    ("budget", "error", "message"),
    [
        (500, TypeError, r"`budget` must be None, a Budget or a pair such as \('top_k', 500\), got 500"),
        ("top_k", TypeError, "`budget` must be None, a Budget or a pair .*, got 'top_k'"),
        (("top_k",), ValueError, r"must be a pair of a kind and its limit, .* got 1 values \(\('top_k',\)\)"),
        (("topk", 5), ValueError, "must be of kind 'fpr' or 'selection_rate' or 'top_k' or 'threshold', got"),
        ((["fpr"], 5), ValueError, r"`budget` must be of kind .*, got \['fpr'\]"),
        (("top_k", 0), ValueError, "of a budget of kind 'top_k' must be a whole number of at least 1, got 0"),
        (("top_k", 2.5), ValueError, "must be a whole number of at least 1, got 2.5"),
        (("top_k", float("inf")), ValueError, "must be a whole number of at least 1, got inf"),
        (("top_k", 10**12), ValueError, "must be at most 1,000,000,000, got 1000000000000"),
        (("top_k", True), TypeError, "of kind 'top_k' must be a number, got True"),
        (("selection_rate", 2), ValueError, r"'selection_rate' must be a share in \(0, 1\), got 2"),
        (("selection_rate", "2 %"), TypeError, "of kind 'selection_rate' must be a number, got '2 %'"),
        (("selection_rate", 10**400), ValueError, r"must be a share in \(0, 1\), got 1000"),
        (("fpr", 0), ValueError, r"of kind 'fpr' must be a share in \(0, 1\), got 0"),
        (("fpr", float("nan")), ValueError, r"must be a share in \(0, 1\), got nan"),
        (("threshold", float("nan")), ValueError, "of kind 'threshold' must be finite, got nan"),
    ],
)
def test_what_is_no_budget_is_refused_with_a_sentence(budget, error, message):
    for read in (
        Budget.read,
        lambda budget: evaluate(POSITIVE, SCORES, sensitive_features=GROUPS, budget=budget),
        lambda budget: by_group(POSITIVE, SCORES, sensitive_features=GROUPS, budget=budget),
    ):
        with pytest.raises(error, match=message):
            read(budget)


def test_max_fpr_and_kind_are_checked():
    with pytest.raises(ValueError, match=r"`max_fpr` must be in \(0, 1\), got 1.5"):
        Budget.read(("top_k", 5), max_fpr=1.5)
    with pytest.raises(ValueError, match=r"`kind` must be 'fpr' or .*, got 'tpr'"):
        Budget("tpr", 0.5)


def test_as_they_read_in_a_sentence():
    assert str(Budget("fpr", 0.05)) == "a false-positive rate of at most 5 %"
    assert str(Budget("fpr", 0.07)) == "a false-positive rate of at most 7 %"
    assert str(Budget("selection_rate", 0.0025)) == "a selection rate of at most 0.25 %"
    assert str(Budget("top_k", 500)) == "the 500 rows of highest score"
    assert str(Budget("top_k", 1)) == "the row of highest score"
    assert str(Budget("threshold", 0.5)) == "a threshold of 0.5"


def test_whether_metrics_keep_a_budget():
    assert Budget("fpr", 0.05).kept({"fpr": 0.05, "selection_rate": 0.9})
    assert not Budget("fpr", 0.05).kept({"fpr": 0.0501})
    assert Budget("selection_rate", 0.2).kept({"fpr": 0.9, "selection_rate": 0.2})
    assert not Budget("selection_rate", 0.2).kept({"selection_rate": float("nan")})
    assert Budget("top_k", 3).kept({"selected": 3.0})
    assert not Budget("top_k", 3).kept({"selected": 4.0})
    assert Budget("threshold", 0.5).kept({})
    with pytest.raises(ValueError, match=r"`metrics` must have 'selected' .* the 3 rows of highest score"):
        Budget("top_k", 3).kept({"fpr": 0.1})


def test_metrics_at_a_selection_rate_and_at_k_rows_by_hand():
    # At 0.6 group a has its 0.9 and one 0.8, of two negatives and two positives; b an 0.8 and its 0.6.
    expected = {"threshold": 0.6, "fpr": 2 / 5, "tpr": 2 / 3, "selection_rate": 0.5}
    expected |= dict(zip(RATIO_NAMES, [(1 / 3) / (1 / 2), 0.0, 0.5, 1.0], strict=True))
    found = evaluate(POSITIVE, SCORES, sensitive_features=GROUPS, budget=("selection_rate", 0.5))
    assert found == expected
    assert list(found) == list(expected)
    four = {"sensitive_features": GROUPS, "budget": ("top_k", 4)}
    best = evaluate(POSITIVE, SCORES, **four)
    assert best == expected | {"selected": 4.0}
    assert list(best)[3:6] == ["selection_rate", "selected", "fpr_ratio"]
    assert by_group(POSITIVE, SCORES, **four)["selection_rate"].tolist() == [0.5, 0.5]
    weighed = evaluate(POSITIVE, SCORES, **four, sample_weight=[5, *[1] * 7])
    assert (weighed["selected"], weighed["selection_rate"]) == (4.0, 8 / 12)


def rows(seed=0, n=1500, weighted=False):
    rng = np.random.default_rng(seed)
    positive, codes = rng.random(n) < 0.2, rng.integers(0, 2, n)
    scores = rng.normal(size=n) + 1.5 * positive + 0.4 * codes
    return positive, scores, codes, rng.gamma(3.0, size=n) if weighted else None


def measured(positive, scores, codes, kind=None, limit=None, **settings):
    """Measure two groups, with intervals if there are weights or draws."""
    budget = None if kind is None else Budget(kind, limit)
    return measure(positive, scores, codes, ["a", "b"], budget=budget, random_state=0, **settings)


@pytest.mark.parametrize("weighted", [False, True])
def test_a_false_positive_budget_is_max_fpr_and_a_threshold_one_that_is_given(weighted):
    positive, scores, codes, weights = rows(weighted=weighted)
    groups, drawn = {"sensitive_features": codes, "sample_weight": weights}, {"n_boot": 50, "random_state": 0}
    for peer, budget in (({"max_fpr": 0.1}, ("fpr", 0.1)), ({"threshold": 1.0}, ("threshold", 1))):
        found = evaluate(positive, scores, budget=budget, **groups, **drawn)
        assert found == evaluate(positive, scores, **peer, **groups, **drawn)
        assert list(found)[:4] == ["threshold", "fpr", "tpr", "fpr_ratio"]
        one, other = (by_group(positive, scores, **groups, **given) for given in (peer, {"budget": budget}))
        assert one.equals(other)


@pytest.mark.parametrize("budget", [("selection_rate", 0.1), ("top_k", 5), ("threshold", 0.5)])
def test_a_budget_and_a_threshold_are_one_too_many(budget):
    for function in (evaluate, by_group):
        with pytest.raises(ValueError, match=r"`budget` .* and `threshold` 0\.7 both set the threshold"):
            function(POSITIVE, SCORES, sensitive_features=GROUPS, budget=budget, threshold=0.7)


@pytest.mark.parametrize(("kind", "limit", "kept"), [("selection_rate", 0.2, 1.0), ("top_k", 300, 2.0)])
def test_a_threshold_from_other_rows_is_measured_against_the_budget(kind, limit, kept):
    positive, scores, codes, _ = rows()
    found, _ = measured(positive, scores, codes, kind, limit)
    assert Budget(kind, limit).kept(found)
    for threshold, keeps in ((found["threshold"], True), (0.5, False), (2.0, True)):
        other, _ = measured(positive, scores, codes, kind, limit, threshold=threshold)
        assert Budget(kind, limit).kept(other) is keeps
        assert other["selection_rate"] == (scores >= threshold).mean()
        assert (other == found) is (threshold == found["threshold"])
    assert other["selection_rate"] < kept


def test_whole_weights_are_repeated_rows():
    positive, scores, codes, _ = rows(n=200)
    weights = np.random.default_rng(0).integers(0, 4, 200)
    repeated = [np.repeat(column, weights) for column in (positive, scores, codes)]
    budget = {"budget": ("selection_rate", 0.2)}
    weighted = evaluate(positive, scores, sensitive_features=codes, sample_weight=weights, **budget)
    assert weighted == evaluate(*repeated[:2], sensitive_features=repeated[2], **budget)


def test_scores_that_are_all_equal_keep_no_budget():
    with pytest.warns(UndefinedMetricWarning, match="all scores are 0.5"):
        found = evaluate(POSITIVE, [0.5] * 8, sensitive_features=GROUPS, budget=("top_k", 3), n_boot=5)
    assert np.isnan([found["selection_rate"], found["selected"], found["selection_rate_low"]]).all()
    assert not Budget("top_k", 3).kept(found)


# Intervals


def test_the_rate_of_a_budget_has_exact_limits_and_the_count_none():
    found, reasons = measured(*rows()[:3], "top_k", 150, n_boot=100)
    assert reasons == []
    peer = binomtest(150, 1500).proportion_ci(0.95)
    ends = (found["selection_rate_low"], found["selection_rate_high"])
    assert ends == pytest.approx((peer.low, peer.high))
    assert not {"selected_low", "selected_high"} & set(found)
    for name in ("threshold", "fpr", "tpr", *RATIO_NAMES):
        assert found[f"{name}_low"] < found[name] < found[f"{name}_high"]
    share, _ = measured(*rows()[:3], "selection_rate", 0.1, n_boot=100)
    assert share == {name: value for name, value in found.items() if name != "selected"}


def test_where_positives_weigh_nearly_nothing_a_selection_rate_is_a_false_positive_rate():
    # They score lowest, too, so that no threshold is one of theirs.
    rng = np.random.default_rng(0)
    positive, codes = np.arange(1200) >= 1000, np.arange(1200) % 2
    scores = rng.normal(size=1200) + 0.3 * codes - 100.0 * positive
    options = {"sample_weight": np.where(positive, 2.0**-40, 1.0), "n_boot": 200}
    by_rows, _ = measured(positive, scores, codes, "selection_rate", 0.1003, **options)
    by_negatives, _ = measured(positive, scores, codes, "fpr", 0.1003, **options)
    assert by_negatives["fpr"] == pytest.approx(0.1)
    for end in ("", "_low", "_high"):
        assert by_rows[f"threshold{end}"] == by_negatives[f"threshold{end}"]
        assert by_rows[f"selection_rate{end}"] == pytest.approx(by_negatives[f"fpr{end}"], rel=1e-6)
        assert by_rows[f"selection_rate_ratio{end}"] == pytest.approx(by_rows[f"fpr_ratio{end}"], rel=1e-6)
        assert by_rows[f"fpr_ratio{end}"] == pytest.approx(by_negatives[f"fpr_ratio{end}"], rel=1e-6)


@pytest.mark.parametrize(("kind", "limit"), [("selection_rate", 0.05), ("top_k", 3), ("top_k", 80)])
def test_too_few_rows_cannot_tell_a_threshold(kind, limit):
    found, reasons = measured(*rows(n=71)[:3], kind, limit, n_boot=50)
    told = f"71 rows are too few to estimate the threshold of {Budget(kind, limit)}."
    assert reasons[-1] == f"Only `selection_rate` has an interval: {told}"
    ends = {name for name in found if name.endswith("_low") and not np.isnan(found[name])}
    assert ends == {"selection_rate_low"}
    _, reasons = measured(*rows(n=90)[:3], "top_k", 30, n_boot=50)
    assert not any("Only" in reason for reason in reasons)


def test_weighted_rows_are_too_few_by_their_effective_number_but_k_rows_as_they_are():
    *drawn, weights = rows(n=90, weighted=True)
    _, reasons = measured(*drawn, "selection_rate", 4 / 90, n_boot=50, sample_weight=weights)
    assert any("rows by effective number are too few" in reason for reason in reasons)
    _, reasons = measured(*drawn, "top_k", 4, n_boot=50, sample_weight=weights)
    assert not any("too few to tell" in reason for reason in reasons)


@pytest.mark.parametrize(
    ("budget", "weighted"),
    [
        (Budget("selection_rate", 0.1), False),
        (Budget("selection_rate", 0.1), True),
        (Budget("top_k", 60), True),
    ],
)
def test_intervals_hold_the_truth_of_the_population(budget, weighted):
    # 600 rows of a population with 30 % positives; half of it scores higher by 0.5.
    def rate(threshold, shift):
        return (norm.sf(threshold - shift) + norm.sf(threshold - shift - 0.5)) / 2

    truth = brentq(lambda at: 0.7 * rate(at, 0) + 0.3 * rate(at, 1.5) - 0.1, 0, 5)
    truths = {"threshold": truth, "fpr": rate(truth, 0), "tpr": rate(truth, 1.5)}
    truths["tpr_ratio"] = norm.sf(truth - 1.5) / norm.sf(truth - 2.0)
    rng, held = np.random.default_rng(0), dict.fromkeys(truths, 0)
    options = {"budget": budget, "n_boot": 200, "random_state": rng}
    for _ in range(150):
        positive, codes = rng.random(600) < 0.3, rng.integers(0, 2, 600)
        scores = rng.normal(size=600) + 1.5 * positive + 0.5 * codes
        weights = rng.uniform(0.5, 4.5, 600) if weighted else None
        found, _ = measure(positive, scores, codes, ["a", "b"], sample_weight=weights, **options)
        for name, value in truths.items():
            held[name] += found[f"{name}_low"] <= value <= found[f"{name}_high"]
    for name, count in held.items():
        assert count / 150 > 0.9, name  # 95 % less three standard errors is 90 %
