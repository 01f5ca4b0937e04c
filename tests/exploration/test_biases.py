"""Biases with their intervals, and what is said of something along a continuous attribute."""

import math

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binomtest, spearmanr
from sklearn.metrics import roc_auc_score

from fado import Valuation, explore
from fado.exploration import _biases
from fado.exploration._biases import Estimate, difference, trend_of
from fado.valuation import Provenance


def biases_of(seen):
    return {bias["id"]: bias for bias in seen.to_dict()["attributes"][0]["biases"]}


@pytest.fixture(scope="module")
def found(seen_small):
    return biases_of(seen_small)


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
        for part in ("values", "standard_error", "counts", "label_probability")
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
    assert bias["sentence"].endswith("Of the 7 labels, this one differs most.")
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
    end = "was found between groups: the interval of the gap contains 0."
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


def test_wilson_interval_of_a_share():
    # Newcombe (1998), Statistics in Medicine 17: 81 of 263.
    assert _biases.share(81, 263) == pytest.approx((0.3080, 0.2553, 0.3662), abs=5e-5)
    assert _biases.share(0, 20).low == 0.0
    assert _biases.share(20, 20).high == 1.0
    assert all(map(math.isnan, _biases.share(0, 0)))


def test_newcombe_interval_of_a_difference_of_shares():
    # Newcombe (1998), method 10: 56 of 70 against 48 of 80.
    gap = _biases.share_gap(_biases.share(56, 70), _biases.share(48, 80))
    assert gap == pytest.approx((0.2, 0.0524, 0.3339), abs=5e-5)


def test_ratio_of_counts_has_a_symmetric_interval_of_logarithms():
    ratio = _biases.count_ratio(400, 100)
    assert ratio.number == 4
    assert math.log(ratio.high / 4) == pytest.approx(1.96 * math.sqrt(1 / 400 + 1 / 100), rel=1e-4)
    assert ratio.low * ratio.high == pytest.approx(16)


def test_auc_and_its_delong_interval():
    rng = np.random.default_rng(0)
    positive = rng.random(200) < 0.3
    scores = np.round(rng.normal(size=200) + positive, 1)  # with ties
    area = _biases.auc(scores, positive)
    wins = (scores[positive][:, None] > scores[~positive]) + 0.5 * (
        scores[positive][:, None] == scores[~positive]
    )
    error = math.sqrt(
        wins.mean(axis=1).var(ddof=1) / positive.sum() + wins.mean(axis=0).var(ddof=1) / (~positive).sum()
    )
    assert area.number == pytest.approx(roc_auc_score(positive, scores))
    assert area.high - area.number == pytest.approx(1.959964 * error, rel=1e-6)
    assert math.isnan(_biases.auc(scores[:3], np.array([True, False, False])).number)


def test_rank_correlation_is_spearmans():
    rng = np.random.default_rng(0)
    first = rng.integers(0, 20, 300)
    second = first + rng.normal(scale=10, size=300)
    found = _biases.rank_correlation(first, second)
    assert found.number == pytest.approx(spearmanr(first, second).statistic)
    assert found.low < found.number < found.high
    assert math.isnan(_biases.rank_correlation(np.ones(10), second[:10]).number)


def test_mean_difference_and_skill():
    first, second = _biases.mean(np.array([1.0, 2.0, 3.0])), _biases.mean(np.array([0.0, 1.0]))
    assert first.number == 2
    assert first.high - 2 == pytest.approx(1.959964 / math.sqrt(3))
    gap = _biases.difference(first, second)
    assert gap.number == 1.5
    assert gap.high - 1.5 == pytest.approx(1.959964 * math.hypot(1 / math.sqrt(3), 0.5))
    skill = _biases.skill(np.array([1.0, 1.0, 2.0, 0.0]), np.array([2.0, 2.0, 3.0, 1.0]))
    assert skill.number == pytest.approx(0.5)
    # of the four differences 1 - 0.5 * 2, 1 - 0.5 * 2, 2 - 0.5 * 3, 0 - 0.5 * 1
    assert skill.high - 0.5 == pytest.approx(1.959964 * np.std([0, 0, 0.5, -0.5], ddof=1) / 2 / 2)


def test_skill_of_perfect_models_is_one():
    assert _biases.skill(np.zeros(5), np.arange(1.0, 6.0)).number == 1


N = 4000
AGE = np.random.default_rng(0).permutation(N) / N * 60 + 20


def prevalence_of(y, age=AGE, agreement=None):
    n_rows = len(age)
    parts = {"values": np.full(n_rows, 0.5), "label_probability": np.full(n_rows, 0.5)}
    parts = {part: {"y": array, "age": array} for part, array in parts.items()}
    if agreement is not None:
        parts["label_probability"]["y"] = agreement
    X = pd.DataFrame({"x": np.arange(float(n_rows))})
    seen = explore(X, y, sensitive_features={"age": age}, valuation=Valuation(**parts), retrain=0)
    biases = {bias["id"]: bias for bias in seen.to_dict()["attributes"][0]["biases"]}
    return biases["prevalence"], biases["separability"]


def drawn(rates):
    """Labels whose rate in each quarter of age is exact."""
    labels = np.empty(N, dtype=object)
    for quarter, rate in enumerate(rates):
        rows = np.argsort(AGE)[quarter * N // 4 : (quarter + 1) * N // 4]
        chosen = np.random.default_rng(quarter).permutation(rows)[: round(rate * len(rows))]
        labels[rows] = "no"
        labels[chosen] = "yes"
    return pd.Series(labels, name="claim")


def test_a_steady_rise_and_fall_are_called_so():
    bias, _ = prevalence_of(drawn([0.1, 0.2, 0.3, 0.4]))
    assert bias["sentence"].startswith("The rate of “yes” rises with age: from 10 % in “age up to ")
    assert "to 40 % in “age over " in bias["sentence"]
    assert "turning" not in bias
    bias, _ = prevalence_of(drawn([0.4, 0.3, 0.2, 0.1]))
    assert bias["sentence"].startswith("The rate of “yes” falls with age: from 40 % in “age up to ")


@pytest.mark.parametrize(
    ("rates", "course"),
    [
        ([0.4, 0.1, 0.1, 0.5], "falls, then rises"),
        ([0.1, 0.4, 0.5, 0.2], "rises, then falls"),
        ([0.1, 0.4, 0.1, 0.5], "rises and falls"),
    ],
)
def test_a_course_that_turns_is_called_what_it_is(rates, course):
    bias, _ = prevalence_of(drawn(rates))
    assert (
        f"The rate of “yes” {course} as age increases: highest with 50 % in " in bias["sentence"]
        or max(rates) < 0.5
    )
    assert f"lowest with {100 * min(rates):.0f} % in " in bias["sentence"]
    assert "rises with" not in bias["sentence"]
    assert bias["measure"].startswith("rank correlation")
    assert bias["turning"]["number"] == pytest.approx(max(rates) - min(rates))
    assert bias["turning"]["low"] > 0


def test_a_course_that_turns_is_seen_behind_a_clear_rank_correlation():
    bias, _ = prevalence_of(drawn([0.2, 0.1, 0.4, 0.5]))
    assert bias["number"] > 0.2
    assert "falls, then rises as age increases" in bias["sentence"]


def test_a_dent_that_chance_explains_is_no_turn_but_is_told():
    bias, _ = prevalence_of(drawn([0.1, 0.2, 0.195, 0.3]))
    assert "rises with age, though not from every quarter to the next" in bias["sentence"]


def test_flat_is_neither():
    bias, _ = prevalence_of(drawn([0.2, 0.2, 0.2, 0.2]))
    assert bias["sentence"] == "The rate of “yes” does not clearly rise or fall with age."


def test_agreement_that_turns_is_called_so():
    turning = np.abs(AGE - 50) / 40
    _, bias = prevalence_of(drawn([0.2, 0.2, 0.2, 0.2]), agreement=turning)
    assert "Models' agreement on claim falls, then rises as age increases: highest with" in bias["sentence"]
    assert bias["bars_are"].startswith("agreement on claim")
    quarters = [turning[np.argsort(AGE)[q * N // 4 : (q + 1) * N // 4]].mean() for q in range(4)]
    assert [bar["number"] for bar in bias["bars"]] == pytest.approx(quarters)


def test_a_mean_that_turns_is_told_in_its_own_numbers():
    bias, _ = prevalence_of(pd.Series((AGE - 50) ** 2, name="cost"))
    assert "The mean of cost falls, then rises as age increases: highest with " in bias["sentence"]
    assert "%" not in bias["sentence"]


def test_too_few_rows_for_quarters_are_told():
    bias, _ = prevalence_of(np.arange(30) % 2, age=np.linspace(20, 80, 30))
    assert bias["sentence"] == "There are too few rows to show how the rate of “y = 1” changes with age."


def test_chance_seldom_makes_a_turn():
    rng = np.random.default_rng(0)
    turns = 0
    for _ in range(300):
        numbers = rng.normal(0, 1, (4, 200))
        means, spreads = numbers.mean(axis=1), numbers.std(axis=1) / np.sqrt(200)
        quarters = [Estimate(m, m - 1.96 * s, m + 1.96 * s) for m, s in zip(means, spreads, strict=True)]
        turns += bool(trend_of(Estimate(0.0, -0.1, 0.1), quarters, difference)[1])
    assert turns <= 0.08 * 300
