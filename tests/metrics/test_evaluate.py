"""Metrics of scores: over all groups, by group, and as other libraries take them."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from fairlearn.metrics import MetricFrame, false_negative_rate, false_positive_rate, selection_rate
from scipy.stats import binomtest, norm
from sklearn.exceptions import UndefinedMetricWarning

from fado.metrics import (
    Budget,
    by_group,
    evaluate,
    fnr_ratio,
    fpr_ratio,
    pareto_frontier,
    predictions_frame,
    selection_rate_ratio,
    threshold_at_fpr,
    tpr_at_fpr,
    tpr_ratio,
)

RATIOS = ["fpr_ratio", "fnr_ratio", "tpr_ratio", "selection_rate_ratio"]
METRICS = ["threshold", "fpr", "tpr", *RATIOS]

Y_TRUE = [0, 0, 0, 0, 1, 1, 1, 0, 0, 0, 0, 1, 1, 1]
SCORES = [0.1, 0.2, 0.3, 0.8, 0.2, 0.5, 0.9, 0.1, 0.2, 0.7, 0.8, 0.1, 0.3, 0.9]
GROUPS = list("aaaaaaabbbbbbb")


def random_rows(n, rng, groups=2, shift=0.5):
    """Draw labels, groups, and normal scores whose negatives lie higher in later groups."""
    codes = rng.integers(0, groups, n)
    y_true = rng.random(n) < 0.3
    return y_true, rng.normal(size=n) + 1.5 * y_true + shift * codes * ~y_true, codes


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        # At 0.5 the groups have 1 and 2 of 4 false positives, 2 and 1 of 3 true positives.
        ({"max_fpr": 0.4}, [0.5, 0.375, 0.5, 0.5, 0.5, 0.5, 1.0]),
        # 2 and 2 of 4 false positives, over the default budget; 2 and 2 of 3 true positives.
        ({"threshold": 0.25}, [0.25, 0.5, 2 / 3, 1.0, 1.0, 1.0, 1.0]),
    ],
)
def test_by_hand(settings, expected):
    result = evaluate(Y_TRUE, SCORES, sensitive_features=GROUPS, **settings)
    assert result == pytest.approx(dict(zip(METRICS, expected, strict=True)))
    assert list(result) == METRICS
    assert all(type(value) is float for value in result.values())


def test_agrees_with_the_single_metrics():
    y_true, scores, codes = random_rows(600, np.random.default_rng(0), groups=4)
    result = evaluate(y_true, scores, sensitive_features=codes, max_fpr=0.1)
    assert result["threshold"] == threshold_at_fpr(y_true, scores, 0.1)
    assert result["tpr"] == tpr_at_fpr(y_true, scores, 0.1)
    predicted = scores >= result["threshold"]
    assert result["fpr"] == predicted[~y_true].mean() <= 0.1
    for ratio in (fpr_ratio, fnr_ratio, tpr_ratio, selection_rate_ratio):
        assert result[ratio.__name__] == ratio(y_true, predicted, sensitive_features=codes)


@pytest.mark.filterwarnings("ignore:.* has no interval")  # of so few rows
@pytest.mark.parametrize("library", [pd.DataFrame, pl.DataFrame, pa.table], ids=["pandas", "polars", "arrow"])
def test_same_result_from_every_library(library):
    table = library({"y": ["bad" if label else "good" for label in Y_TRUE], "scores": SCORES, "z": GROUPS})
    settings = {"max_fpr": 0.4, "n_boot": 50, "random_state": 3}
    columns = {"sensitive_features": table["z"], "pos_label": "bad"}
    result = evaluate(table["y"], table["scores"], **columns, **settings)
    np.testing.assert_equal(result, evaluate(Y_TRUE, SCORES, sensitive_features=GROUPS, **settings))


def test_equal_scores_are_undefined_and_never_on_a_frontier():
    with pytest.warns(UndefinedMetricWarning, match="all scores are 0.5, in group 'a', 'b'"):
        result = evaluate(Y_TRUE, [0.5] * 14, sensitive_features=GROUPS, n_boot=20)
    assert result["threshold"] == result["threshold_low"] == result["threshold_high"] == np.nextafter(0.5, 1)
    rest = {name: value for name, value in result.items() if not name.startswith("threshold")}
    assert len(rest) == 18
    assert all(np.isnan(value) for value in rest.values())
    for ratio in RATIOS:
        assert pareto_frontier([[result["tpr"], result[ratio]], [0.1, 0.1]]).tolist() == [False, True]


@pytest.mark.parametrize(
    ("scores", "threshold", "fpr", "side"),
    [
        ([0.1] + [0.9] * 13, None, 0.0, "negative"),  # the tie at the top exceeds the budget
        (SCORES, 2.0, 0.0, "negative"),
        (SCORES, float("inf"), 0.0, "negative"),
        (SCORES, 0.0, 1.0, "positive"),
    ],
)
def test_a_model_that_decides_nothing_has_no_ratios(scores, threshold, fpr, side):
    with pytest.warns(UndefinedMetricWarning, match=f"every row of group 'a', 'b' is predicted {side}"):
        result = evaluate(Y_TRUE, scores, sensitive_features=GROUPS, threshold=threshold)
    assert result["fpr"] == result["tpr"] == fpr
    assert all(np.isnan(result[ratio]) for ratio in RATIOS)


def test_a_group_without_positives_leaves_the_other_metrics():
    rng = np.random.default_rng(0)
    y_true, scores, codes = random_rows(900, rng)
    y_true[codes == 1] = False
    with pytest.warns(UndefinedMetricWarning) as caught:
        result = evaluate(y_true, scores, sensitive_features=codes, max_fpr=0.2, n_boot=200, random_state=0)
    assert sorted(str(warning.message) for warning in caught) == [
        "`fnr_ratio` is undefined and set to NaN: no positives in group 1.",
        "`tpr_ratio` is undefined and set to NaN: no positives in group 1.",
    ]
    assert {name for name, value in result.items() if np.isnan(value)} == {
        *("fnr_ratio", "fnr_ratio_low", "fnr_ratio_high"),
        *("tpr_ratio", "tpr_ratio_low", "tpr_ratio_high"),
    }


def test_intervals_repeat_with_the_seed():
    y_true, scores, codes = random_rows(500, np.random.default_rng(0))

    def run(seed):
        return evaluate(y_true, scores, sensitive_features=codes, n_boot=100, random_state=seed)

    assert run(0) == run(0) == run(np.random.default_rng(0))
    assert run(0) != run(1)
    assert run(np.random.RandomState(0)) == run(np.random.RandomState(0))
    assert list(run(0)) == METRICS + [f"{name}_{end}" for name in METRICS for end in ("low", "high")]


def test_a_given_threshold_has_no_interval_of_its_own_but_its_rates_have():
    y_true, scores, codes = random_rows(500, np.random.default_rng(0))
    result = evaluate(y_true, scores, sensitive_features=codes, threshold=1.0, n_boot=400, random_state=0)
    assert result["threshold_low"] == result["threshold_high"] == 1.0
    # A rate's interval is that of a binomial share, stratified by group.
    spread = result["tpr_high"] - result["tpr_low"]
    expected = 2 * 1.96 * np.sqrt(result["tpr"] * (1 - result["tpr"]) / y_true.sum())
    assert spread == pytest.approx(expected, rel=0.2)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("threshold", [None, 1.8])
def test_intervals_cover_the_truth(threshold, weighted):
    # Normal scores: negatives of group 1 lie 0.5 higher, positives of both 1.5 higher.
    at = np.linspace(1, 3, 200_001)
    fpr = (norm.sf(at) + norm.sf(at - 0.5)) / 2
    at = at[np.argmin(np.abs(fpr - 0.1))] if threshold is None else threshold
    truth = {"threshold": at, "tpr": norm.sf(at - 1.5), "fpr_ratio": norm.sf(at) / norm.sf(at - 0.5)}
    rng, n_runs, weights = np.random.default_rng(0), 150, None
    covered = dict.fromkeys(truth, 0)
    options = {"max_fpr": 0.1, "threshold": threshold, "n_boot": 200, "random_state": rng}
    for _ in range(n_runs):
        rows = random_rows(3000 if weighted else 2000, rng)
        if (
            weighted
        ):  # group 1 is sampled three times as often as it occurs, and weighs a third; they vary, too
            sampled = (rows[2] == 1) | (rng.random(3000) < 1 / 3)
            rows = [column[sampled] for column in rows]
            weights = np.where(rows[2] == 1, 1.0, 3.0) * rng.uniform(0.5, 1.5, len(rows[2]))
        result = evaluate(*rows[:2], sensitive_features=rows[2], sample_weight=weights, **options)
        for name, value in truth.items():
            covered[name] += result[f"{name}_low"] <= value <= result[f"{name}_high"]
    for name, held in covered.items():
        assert held / n_runs > 0.89, name  # 95 % less three standard errors


def test_intervals_reach_one_for_groups_with_equal_true_rates():
    rng = np.random.default_rng(0)
    covered = 0
    for _ in range(150):
        y_true, scores, codes = random_rows(2000, rng, shift=0.0)
        result = evaluate(y_true, scores, sensitive_features=codes, max_fpr=0.1, n_boot=200, random_state=rng)
        covered += result["fpr_ratio_high"] == 1.0
        assert result["fpr_ratio_low"] < result["fpr_ratio"]
    assert covered / 150 > 0.89


def test_intervals_hold_the_estimate_even_for_equal_groups():
    rng = np.random.default_rng(0)
    y_true, scores, _ = random_rows(400, rng, shift=0.0)
    doubled = np.tile(y_true, 2), np.tile(scores, 2), np.repeat([0, 1], 400)
    result = evaluate(*doubled[:2], sensitive_features=doubled[2], max_fpr=0.1, n_boot=200, random_state=0)
    for name in METRICS:
        assert result[f"{name}_low"] <= result[name] <= result[f"{name}_high"]
    assert 0.5 < result["fpr_ratio_low"] < result["fpr_ratio"] == result["fpr_ratio_high"] == 1.0


@pytest.mark.parametrize("function", [evaluate, by_group], ids=lambda function: function.__name__)
@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"n_boot": -1}, ValueError, "`n_boot` must be at least 0, got -1"),
        ({"n_boot": 2.5}, TypeError, "`n_boot` must be a whole number, got 2.5"),
        ({"n_boot": 10**12}, ValueError, "`n_boot` must be at most 1,000,000, got 1000000000000"),
        ({"min_group_size": -1}, ValueError, "`min_group_size` must be at least 0, got -1"),
        ({"min_group_size": 0.5}, TypeError, "`min_group_size` must be a whole number, got 0.5"),
        ({"confidence": 95}, ValueError, r"`confidence` must be in \(0, 1\), got 95"),
        ({"confidence": "high"}, TypeError, r"`confidence` must be a number in \(0, 1\), got 'high'"),
        ({"threshold": "0.5"}, TypeError, "`threshold` must be a number, got '0.5'"),
        ({"threshold": float("nan")}, ValueError, "`threshold` must be a number, got nan"),
        ({"max_fpr": 0.0}, ValueError, r"`max_fpr` must be in \(0, 1\), got 0.0"),
        ({"pos_label": 7}, ValueError, "`pos_label` must be one of the labels 0 and 1, got 7"),
        ({"scores": [0.1]}, ValueError, r"`scores` must have as many rows as `y_true` \(14\), got 1"),
    ],
)
def test_bad_settings(function, changes, error, message):
    if function is by_group and "n_boot" in changes:
        pytest.skip("rates of groups have exact limits")
    settings = {"y_true": Y_TRUE, "scores": SCORES, "sensitive_features": GROUPS} | changes
    with pytest.raises(error, match=message):
        function(**settings)


SHOWN = ["selection_rate", "tpr", "fpr", "fnr"]
COLUMNS = ["rows", "positives", "negatives"]
COLUMNS += [f"{name}{end}" for name in SHOWN for end in ("", "_low", "_high")] + ["compared", "reason"]


def test_rates_of_groups_by_hand():
    # At 0.5: of the negatives of a 1 of 4 and of b 2 of 4, of the positives 2 and 1 of 3.
    table = by_group(Y_TRUE, SCORES, sensitive_features={"sex": GROUPS}, max_fpr=0.4)
    assert list(table.columns) == COLUMNS
    assert table.index.name == "group"
    assert table.index.tolist() == ["a", "b"]
    assert table[["rows", "positives", "negatives"]].to_numpy().tolist() == [[7, 3, 4], [7, 3, 4]]
    rates = [[3 / 7, 2 / 3, 1 / 4, 1 / 3], [3 / 7, 1 / 3, 1 / 2, 2 / 3]]
    np.testing.assert_allclose(table[SHOWN], rates)
    assert table["compared"].tolist() == [True, True]
    peer = binomtest(1, 4).proportion_ci(0.95)
    assert table.loc["a", ["fpr_low", "fpr_high"]].tolist() == pytest.approx([peer.low, peer.high])


def test_intervals_hold_the_rate_and_are_never_a_point():
    rng = np.random.default_rng(0)
    y_true, scores, codes = random_rows(500, rng, groups=5)
    scores[(codes == 0) & ~y_true] = -5.0  # no false positives
    scores[(codes == 1) & y_true] = 5.0  # all positives found
    for weights in (None, rng.gamma(1.0, size=500)):
        options = {"sensitive_features": codes, "max_fpr": 0.2, "sample_weight": weights}
        table = by_group(y_true, scores, **options)
        wider = by_group(y_true, scores, **options, confidence=0.99)
        for name in SHOWN:
            low, high = table[f"{name}_low"], table[f"{name}_high"]
            assert ((low <= table[name]) & (table[name] <= high) & (high - low > 0.01)).all()
            assert (wider[f"{name}_high"] - wider[f"{name}_low"] > high - low).all()
        assert table.loc["0", "fpr"] == table.loc["0", "fpr_low"] == 0.0
        assert table.loc["1", "tpr"] == table.loc["1", "tpr_high"] == 1.0


def test_a_rate_without_members_or_weight_is_nan():
    y_true, scores = [0, 0, 1, 1, 1], [0.1, 0.6, 0.7, 0.2, 0.4]
    table = by_group(y_true, scores, sensitive_features=list("aaaab"), max_fpr=0.5)
    assert table.loc["b", ["fpr", "fpr_low", "fpr_high"]].isna().all()
    assert table.loc["b", ["tpr", "negatives", "rows"]].tolist() == [1.0, 0, 1]
    weights = {"sample_weight": [1, 2, 1, 1, 0]}
    table = by_group(y_true, scores, sensitive_features=list("aaaab"), max_fpr=0.5, **weights)
    assert table["rows"].tolist() == [4, 1]
    assert table.loc["b", SHOWN].isna().all()


def test_groups_are_called_as_people_call_them():
    groups = {"sex": ["f", "f", "m", "m", None, "f"], "old": [1, 1, 0, 0, 1, 1]}
    with pytest.warns(UserWarning, match="unknown in 1 of 6 rows"):
        table = by_group([0, 1] * 3, [0.1, 0.9, 0.6, 0.4, 0.5, 0.5], sensitive_features=groups, max_fpr=0.5)
    assert table.index.tolist() == ["sex = f, old = 1", "sex = m, old = 0", "unknown"]
    assert table["compared"].tolist() == [True, True, False]
    assert table["reason"].tolist() == ["", "", "unknown"]
    assert table.loc["unknown", "rows"] == 1


def test_equal_scores_have_no_rates():
    told = "All rates are undefined and set to NaN: all scores are 0.5"
    with pytest.warns(UndefinedMetricWarning, match=told):
        table = by_group([0, 1, 0, 1], [0.5] * 4, sensitive_features=list("aabb"))
    assert table[[f"{name}{end}" for name in SHOWN for end in ("", "_low", "_high")]].isna().all(axis=None)
    assert table["rows"].tolist() == [2, 2]


RATES = {"fpr": false_positive_rate, "fnr": false_negative_rate, "selection_rate": selection_rate}


def rows(n=600):
    rng = np.random.default_rng(0)
    y = np.where(rng.random(n) < 0.4, "late", "in time")
    sex = pd.Series(rng.choice(["f", "m", None], size=n, p=[0.5, 0.4, 0.1]), name="sex")
    return y, rng.normal(size=n) + (y == "late"), sex


def test_the_form_is_aequitas_own():
    groups = {"old": [True, False, True], "band": pd.Categorical([1, 2, 2])}
    frame = predictions_frame(["no", "yes", "no"], [0.2, 0.9, 0.5], sensitive_features=groups, threshold=0.5)
    expected = {"score": [0, 1, 1], "label_value": [0, 1, 0]}
    expected |= {"old": ["True", "False", "True"], "band": ["1", "2", "2"]}
    pd.testing.assert_frame_equal(frame, pd.DataFrame(expected))


def test_fairlearn_finds_the_same_rates_in_every_group():
    y, scores, sex = rows()
    with pytest.warns(UserWarning, match="'sex' is unknown"):
        frame = predictions_frame(y, scores, sensitive_features=sex, pos_label="late", max_fpr=0.1)
    theirs = MetricFrame(
        metrics=RATES, y_true=frame["label_value"], y_pred=frame["score"], sensitive_features=frame[["sex"]]
    )
    with pytest.warns(UserWarning, match="'sex' is unknown"):
        ours = by_group(y, scores, sensitive_features=sex, pos_label="late", max_fpr=0.1)
    assert sorted(theirs.by_group.index) == ["f", "m", "unknown"]
    for name in RATES:
        assert theirs.by_group[name].to_dict() == pytest.approx(ours[name].to_dict())
    ratio = fpr_ratio(frame["label_value"], frame["score"], sensitive_features=frame["sex"])  # a name as any
    assert theirs.ratio(method="between_groups")["fpr"] == pytest.approx(ratio)


def test_weights_and_budgets_set_the_threshold():
    y, scores, sex = rows()
    known = {"sensitive_features": sex.fillna("f")}
    for budget in (("top_k", 25), Budget("top_k", 25)):
        assert predictions_frame(y, scores, **known, budget=budget)["score"].sum() == 25
    weights = np.where(scores > 0.5, 3.0, 1.0)
    weighed = predictions_frame(y, scores, **known, sample_weight=weights, max_fpr=0.1)
    negative = weighed["label_value"] == 0
    assert 0.08 < np.average(weighed["score"][negative], weights=weights[negative]) <= 0.1
    assert weighed["score"].sum() < predictions_frame(y, scores, **known, max_fpr=0.1)["score"].sum()


@pytest.mark.parametrize("name", ["score", "label_value"])
def test_an_attribute_of_a_columns_name_is_refused(name):
    with pytest.raises(ValueError, match=f"attribute is called '{name}', as a column here is: rename it"):
        predictions_frame([0, 1], [0.1, 0.9], sensitive_features={name: ["a", "b"]}, threshold=0.5)


def test_decisions_of_0_and_1_are_taken_as_they_are():
    y, decisions, group = [0, 0, 0, 1, 1, 0, 0, 1], [0, 1, 0, 1, 0, 1, 0, 1], list("aaaabbbb")
    found = evaluate(y, decisions, sensitive_features=group)
    assert (found["threshold"], found["fpr"], found["tpr"]) == (1.0, 2 / 5, 2 / 3)
    table = by_group(y, np.array(decisions, dtype=bool), sensitive_features=group)
    assert table["fpr"].tolist() == [1 / 3, 1 / 2]
    frame = predictions_frame(y, decisions, sensitive_features={"z": group})
    assert frame["score"].tolist() == decisions
    with pytest.warns(UndefinedMetricWarning, match="every row of group 'a', 'b' is predicted negative"):
        assert evaluate(y, decisions, sensitive_features=group, budget=("top_k", 2))["selected"] == 0
