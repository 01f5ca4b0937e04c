import numpy as np
import pandas as pd
import pytest
from scipy.stats import binomtest, spearmanr
from sklearn.metrics import roc_auc_score

from fado import Valuation, explore
from fado.valuation import Provenance


def biases_of(seen):
    return {bias["id"]: bias for bias in seen.to_dict()["attributes"][0]["biases"]}


@pytest.fixture(scope="module")
def found(small):
    return biases_of(
        explore(small.X, small.y, sensitive_features=small.z, valuation=small.valuation, retrain=0)
    )


def test_group_size(small, found):
    sizes = small.z["sex"].value_counts()
    bias = found["group_size"]
    assert bias["number"] == pytest.approx(sizes["m"] / sizes["f"])
    assert bias["low"] < bias["number"] < bias["high"]
    assert {bar["group"]: bar["number"] for bar in bias["bars"]} == pytest.approx(
        {"f": sizes["f"] / 600, "m": sizes["m"] / 600}
    )
    assert bias["sentence"].startswith("“m” has ")


def test_prevalence(small, found):
    rates = (small.y == "yes").groupby(small.z["sex"]).mean()
    bias = found["prevalence"]
    assert bias["number"] == pytest.approx(rates["m"] - rates["f"])
    assert [bar["number"] for bar in bias["bars"]] == pytest.approx([rates["f"], rates["m"]])
    assert "“yes”" in bias["sentence"]


def test_separability_is_the_gap_in_the_auc_of_the_agreement(small, found):
    agreement, one = small.valuation.agreement["y"].to_numpy(), (small.y == "yes").to_numpy()
    scores = np.where(one, agreement, 1 - agreement)
    areas = {g: roc_auc_score(one[rows], scores[rows]) for g in "fm" for rows in [small.z["sex"] == g]}
    bias = found["separability"]
    assert {bar["group"]: bar["number"] for bar in bias["bars"]} == pytest.approx(areas)
    assert bias["number"] == pytest.approx(abs(areas["f"] - areas["m"]))


def test_base_bias_is_the_auc_of_a_binary_attribute(small, found):
    agreement, one = small.valuation.agreement["sex"].to_numpy(), (small.z["sex"] == "m").to_numpy()
    bias = found["base"]
    assert bias["number"] == pytest.approx(roc_auc_score(one, np.where(one, agreement, 1 - agreement)))
    bars = {bar["group"]: bar for bar in bias["bars"]}
    assert bars["m"]["number"] == pytest.approx(agreement[one].mean())
    assert bars["m"]["reference"] == pytest.approx(one.mean())


def test_base_bias_of_several_groups_is_the_doubt_that_is_gone(small):
    origin = small.z["origin"].where(small.z["origin"] != "c", "b").to_numpy()
    origin[:100] = "c"
    bias = biases_of(
        explore(small.X, small.y, sensitive_features={"origin": origin}, valuation=small.valuation, retrain=0)
    )
    shares = pd.Series(origin).map(pd.Series(origin).value_counts(normalize=True)).to_numpy()
    left = (1 - small.valuation.agreement["origin"]).mean() / (1 - shares).mean()
    assert bias["base"]["number"] == pytest.approx(1 - left)


def test_small_groups_are_not_compared(small):
    few = small.z["origin"].copy()
    few[few == "c"] = "a"
    few.iloc[:9] = "c"
    found = biases_of(
        explore(small.X, small.y, sensitive_features={"origin": few}, valuation=small.valuation, retrain=0)
    )
    for bias in found.values():
        assert [bar["group"] for bar in bias["bars"]] == ["a", "b"]


def test_a_single_group_that_is_large_enough_leaves_nothing_to_compare(small):
    sex = np.where(np.arange(600) < 5, "f", "m")
    seen = explore(small.X, small.y, sensitive_features={"sex": sex}, valuation=small.valuation, retrain=0)
    for name in ("group_size", "prevalence", "separability"):
        assert biases_of(seen)[name]["number"] is None
        assert "Only one group" in biases_of(seen)[name]["sentence"]


def test_values_without_agreement_leave_models_biases_unknown(small):
    values = Valuation.from_probabilities(np.full(600, 0.3), {"sex": np.full(600, 0.6)})
    found = biases_of(
        explore(small.X, small.y, sensitive_features={"sex": small.z["sex"]}, valuation=values, retrain=0)
    )
    assert found["prevalence"]["number"] is not None
    assert found["separability"]["number"] is None
    assert found["base"]["number"] is None
    assert "agreement" in found["base"]["sentence"]


def test_three_classes_are_compared_by_the_label_that_differs_most(small):
    y = np.array(["low", "middle", "high"])[np.arange(600) % 3]
    y[(small.z["sex"] == "f").to_numpy() & (y == "low")] = "high"
    found = biases_of(explore(small.X, y, sensitive_features=small.z, valuation=small.valuation, retrain=0))
    rates = pd.crosstab(small.z["sex"], y, normalize="index")
    gaps = (rates.loc["f"] - rates.loc["m"]).abs()
    assert found["prevalence"]["number"] == pytest.approx(gaps.max())
    assert f"“{gaps.idxmax()}”" in found["prevalence"]["measure"]
    agreement = small.valuation.agreement["y"].groupby(small.z["sex"]).mean()
    assert found["separability"]["number"] == pytest.approx(abs(agreement["f"] - agreement["m"]))


def test_a_continuous_attribute_has_dependence_measures(small):
    wealth = np.random.default_rng(3).normal(size=600)
    values = small.valuation
    parts = {
        part: getattr(values, part)[["y", "sex"]].rename(columns={"sex": "wealth"}).to_dict("series")
        for part in ("values", "standard_error", "counts", "agreement")
    }
    arrays = {part: {k: v.to_numpy() for k, v in by.items()} for part, by in parts.items()}
    valuation = Valuation(**arrays, provenance=Provenance(largest_error={"wealth": 2.0}))
    found = biases_of(
        explore(small.X, small.y, sensitive_features={"wealth": wealth}, valuation=valuation, retrain=0)
    )
    assert found["prevalence"]["number"] == pytest.approx(spearmanr(small.y == "yes", wealth).statistic)
    agreement = values.agreement["y"]
    assert found["separability"]["number"] == pytest.approx(spearmanr(agreement, wealth).statistic)
    errors = (1 - values.agreement["sex"]) * 2.0
    baseline = np.abs(wealth - wealth.mean())
    assert found["base"]["number"] == pytest.approx(1 - errors.mean() / baseline.mean())
    low, high = np.quantile(wealth, [0.02, 0.98])
    counts, _ = np.histogram(wealth[(wealth >= low) & (wealth <= high)], np.linspace(low, high, 5))
    assert found["group_size"]["number"] == pytest.approx(counts.max() / counts.min())


def test_a_continuous_target_is_compared_by_its_mean(small):
    y = small.X["age"] + np.where(small.z["sex"] == "f", 10.0, 0.0)
    found = biases_of(explore(small.X, y, sensitive_features=small.z, valuation=small.valuation, retrain=0))
    means = y.groupby(small.z["sex"]).mean()
    assert found["prevalence"]["number"] == pytest.approx(means["f"] - means["m"])
    assert found["prevalence"]["format"] == "number"


def test_every_label_has_its_share_where_none_is_positive(small):
    y = pd.Series(np.arange(600) % 7 + 1, name="cover")
    y[(small.z["sex"] == "f") & (y == 3)] = 5
    found = biases_of(explore(small.X, y, sensitive_features=small.z, valuation=small.valuation, retrain=0))
    bias, rates = found["prevalence"], pd.crosstab(small.z["sex"], y, normalize="index")
    label = (rates.loc["f"] - rates.loc["m"]).abs().idxmax()
    high, low = sorted(["f", "m"], key=lambda group: -rates.loc[group, label])
    assert bias["measure"] == f"gap in the share of “cover = {label}”"
    assert bias["sentence"].startswith(f"The share of “cover = {label}” is ")
    assert f" in “{high}” and " in bias["sentence"]
    assert bias["sentence"].endswith("Of the 7 labels it differs most.")
    assert low in bias["labels_per"]
    assert [one["label"] for one in bias["labels"]] == list("1234567")
    for one in bias["labels"]:
        assert one["share"] == pytest.approx((y == int(one["label"])).mean())
        assert one["groups"] == pytest.approx([rates.loc[group, int(one["label"])] for group in "fm"])
    text = str(found).lower()
    assert "positive" not in text
    assert "rate of" not in text


def test_a_positive_label_leaves_the_others_unnamed(small):
    y = np.array(["low", "middle", "high"])[np.arange(600) % 3]
    seen = explore(
        small.X, y, sensitive_features=small.z, valuation=small.valuation, pos_label="high", retrain=0
    )
    assert biases_of(seen)["prevalence"]["labels"] is None
    assert biases_of(seen)["prevalence"]["measure"] == "gap in the rate of “high”"
    assert seen.to_dict()["about"]["outcome"]["name"] == "rate of “high”"


def test_no_direction_is_named_where_the_interval_holds_0(small, made_up):
    side = np.where(np.arange(600) % 2, "left", "right")  # has nothing to do with anything
    values = made_up(600, ["side"])
    found = biases_of(
        explore(small.X, small.y, sensitive_features={"side": side}, valuation=values, retrain=0)
    )
    assert found["prevalence"]["low"] < 0 < found["prevalence"]["high"]
    end = "was found between groups: the interval of the gap holds 0."
    assert found["prevalence"]["sentence"] == f"No clear difference in the rate of “yes” {end}"
    assert found["separability"]["low"] < 0 < found["separability"]["high"]
    assert found["separability"]["sentence"] == f"No clear difference in the AUC of loan {end}"
    assert found["base"]["low"] < 0.5 < found["base"]["high"]
    assert found["base"]["sentence"].startswith(
        "“side” is not clearly predicted from the features and the target"
    )
    assert "has about as many rows as" in found["group_size"]["sentence"]


def test_the_interval_of_the_widest_gap_holds_for_all_pairs(small):
    groups = np.array(["a", "b", "c"])[np.arange(600) % 3]
    y = np.arange(600) % 4 == 0  # 50 of every 200
    values = Valuation.from_probabilities(np.full(600, 0.3), {"z": np.full((600, 3), 1 / 3)})
    bias = biases_of(explore(small.X, y, sensitive_features={"z": groups}, valuation=values, retrain=0))[
        "prevalence"
    ]
    wilson = binomtest(50, 200).proportion_ci(method="wilson")
    reach = np.hypot(0.25 - wilson.low, wilson.high - 0.25) * 2.393980 / 1.959964  # three pairs, Bonferroni
    assert (bias["number"], bias["low"], bias["high"]) == pytest.approx((0, -reach, reach), abs=1e-6)
