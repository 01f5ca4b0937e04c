"""Biases with their intervals."""

import math

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binomtest, spearmanr
from sklearn.metrics import roc_auc_score
from tests.exploration.conftest import Case, made_up

from fado import Valuation
from fado.exploration import _estimates as estimates
from fado.valuation import Provenance


def biases_of(case, **settings):
    return {bias["id"]: bias for bias in case.part(**settings)["biases"]}


@pytest.fixture(scope="module")
def biases(small):
    return biases_of(small)


def test_sizes_and_rates_of_groups(small, biases):
    sizes = small.z["sex"].value_counts()
    bias = biases["group_size"]
    assert bias["number"] == pytest.approx(sizes["m"] / sizes["f"])
    assert bias["low"] < bias["number"] < bias["high"]
    assert bias["sentence"].startswith("“m” has ")
    bars = {bar["group"]: bar["number"] for bar in bias["bars"]}
    assert bars == pytest.approx({"f": sizes["f"] / 600, "m": sizes["m"] / 600})

    rates = (small.y == "yes").groupby(small.z["sex"]).mean()
    bias = biases["prevalence"]
    assert bias["number"] == pytest.approx(rates["m"] - rates["f"])
    assert [bar["number"] for bar in bias["bars"]] == pytest.approx([rates["f"], rates["m"]])
    assert "“yes”" in bias["sentence"]


def test_separability_and_base_bias_are_aucs_of_the_agreement(small, biases):
    agreement, positive = small.valuation.label_probability["y"].to_numpy(), (small.y == "yes").to_numpy()
    scores = np.where(positive, agreement, 1 - agreement)
    areas = {g: roc_auc_score(positive[rows], scores[rows]) for g in "fm" for rows in [small.z["sex"] == g]}
    bias = biases["separability"]
    assert {bar["group"]: bar["number"] for bar in bias["bars"]} == pytest.approx(areas)
    assert bias["number"] == pytest.approx(abs(areas["f"] - areas["m"]))

    agreement, male = small.valuation.label_probability["sex"].to_numpy(), (small.z["sex"] == "m").to_numpy()
    bias = biases["base"]
    assert bias["number"] == pytest.approx(roc_auc_score(male, np.where(male, agreement, 1 - agreement)))
    bars = {bar["group"]: bar for bar in bias["bars"]}
    assert bars["m"]["number"] == pytest.approx(agreement[male].mean())
    assert bars["m"]["reference"] == pytest.approx(male.mean())


def test_base_bias_of_several_groups_is_the_doubt_that_is_gone(small):
    origin = small.z["origin"].where(small.z["origin"] != "c", "b").to_numpy()
    origin[:100] = "c"
    shares = pd.Series(origin).map(pd.Series(origin).value_counts(normalize=True)).to_numpy()
    left = (1 - small.valuation.label_probability["origin"]).mean() / (1 - shares).mean()
    bias = biases_of(small._replace(z={"origin": origin}))["base"]
    assert bias["number"] == pytest.approx(1 - left)


def test_values_without_agreement_leave_models_biases_unknown(small):
    values = Valuation.from_probabilities(np.full(600, 0.3), {"sex": np.full(600, 0.6)})
    biases = biases_of(small._replace(z={"sex": small.z["sex"]}, valuation=values))
    assert biases["prevalence"]["number"] is not None
    assert biases["separability"]["number"] is None
    assert biases["base"]["number"] is None
    assert "agreement" in biases["base"]["sentence"]


def test_three_classes_are_compared_by_the_label_that_differs_most(small):
    y = np.array(["low", "middle", "high"])[np.arange(600) % 3]
    y[(small.z["sex"] == "f").to_numpy() & (y == "low")] = "high"
    biases = biases_of(small._replace(y=y))
    rates = pd.crosstab(small.z["sex"], y, normalize="index")
    gaps = (rates.loc["f"] - rates.loc["m"]).abs()
    assert biases["prevalence"]["number"] == pytest.approx(gaps.max())
    assert f"“{gaps.idxmax()}”" in biases["prevalence"]["measure"]
    agreement = small.valuation.label_probability["y"].groupby(small.z["sex"]).mean()
    assert biases["separability"]["number"] == pytest.approx(abs(agreement["f"] - agreement["m"]))


def test_a_continuous_attribute_has_dependence_measures(small):
    wealth = np.random.default_rng(3).normal(size=600)
    values = small.valuation
    arrays = {
        part: {"y": getattr(values, part)["y"].to_numpy(), "wealth": getattr(values, part)["sex"].to_numpy()}
        for part in ("values", "standard_error", "counts", "label_probability")
    }
    valuation = Valuation(**arrays, provenance=Provenance(largest_error={"wealth": 2.0}))
    found = biases_of(small._replace(z={"wealth": wealth}, valuation=valuation))
    assert found["prevalence"]["number"] == pytest.approx(spearmanr(small.y == "yes", wealth).statistic)
    agreement = values.label_probability["y"]
    assert found["separability"]["number"] == pytest.approx(spearmanr(agreement, wealth).statistic)
    errors = (1 - values.label_probability["sex"]) * 2.0
    baseline = np.abs(wealth - wealth.mean())
    assert found["base"]["number"] == pytest.approx(1 - errors.mean() / baseline.mean())
    low, high = np.quantile(wealth, [0.02, 0.98])
    counts, _ = np.histogram(wealth[(wealth >= low) & (wealth <= high)], np.linspace(low, high, 5))
    assert found["group_size"]["number"] == pytest.approx(counts.max() / counts.min())


def test_a_continuous_target_is_compared_by_its_mean(small):
    y = small.X["age"] + np.where(small.z["sex"] == "f", 10.0, 0.0)
    found = biases_of(small._replace(y=y))
    means = y.groupby(small.z["sex"]).mean()
    assert found["prevalence"]["number"] == pytest.approx(means["f"] - means["m"])
    assert found["prevalence"]["format"] == "number"


def test_every_label_has_its_share_where_none_is_positive(small):
    y = pd.Series(np.arange(600) % 7 + 1, name="cover")
    y[(small.z["sex"] == "f") & (y == 3)] = 5
    found = biases_of(small._replace(y=y))
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
    summary = small._replace(y=y).seen(pos_label="high").to_dict()
    bias = summary["attributes"][0]["biases"][1]
    assert bias["labels"] is None
    assert bias["measure"] == "gap in the rate of “high”"
    assert summary["about"]["outcome"]["name"] == "rate of “high”"


def test_no_direction_is_named_where_the_interval_holds_0(small):
    side = np.where(np.arange(600) % 2, "left", "right")  # has nothing to do with anything
    found = biases_of(small._replace(z={"side": side}, valuation=made_up(600, ["side"])))
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
    bias = biases_of(Case(small.X, y, {"z": groups}, values))["prevalence"]
    ends = binomtest(50, 200).proportion_ci(method="exact")
    reach = np.hypot(0.25 - ends.low, ends.high - 0.25) * 2.393980 / 1.959964  # three pairs, Bonferroni
    assert (bias["number"], bias["low"], bias["high"]) == pytest.approx((0, -reach, reach), abs=1e-6)


def test_shares_have_exact_intervals_and_their_differences_newcombes():
    for events, members in ((81, 263), (0, 20), (20, 20)):
        ends = binomtest(events, members).proportion_ci(method="exact")
        assert estimates.share(events, members) == pytest.approx((events / members, ends.low, ends.high))
    assert all(map(math.isnan, estimates.share(0, 0)))
    first, second = estimates.share(56, 70), estimates.share(48, 80)
    gap = estimates.share_gap(first, second)
    below = math.hypot(first.number - first.low, second.high - second.number)
    above = math.hypot(first.high - first.number, second.number - second.low)
    assert (gap.number - gap.low, gap.high - gap.number) == pytest.approx((below, above))


def test_ratio_of_counts_has_a_symmetric_interval_of_logarithms():
    ratio = estimates.count_ratio(400, 100)
    assert ratio.number == 4
    assert math.log(ratio.high / 4) == pytest.approx(1.96 * math.sqrt(1 / 400 + 1 / 100), rel=1e-4)
    assert ratio.low * ratio.high == pytest.approx(16)


def test_auc_and_its_delong_interval():
    rng = np.random.default_rng(0)
    positive = rng.random(200) < 0.3
    scores = np.round(rng.normal(size=200) + positive, 1)  # with ties
    area = estimates.auc(scores, positive)
    high, low = scores[positive][:, None], scores[~positive]
    wins = (high > low) + 0.5 * (high == low)
    error = math.sqrt(wins.mean(axis=1).var(ddof=1) / len(high) + wins.mean(axis=0).var(ddof=1) / len(low))
    assert area.number == pytest.approx(roc_auc_score(positive, scores))
    assert area.high - area.number == pytest.approx(1.959964 * error, rel=1e-6)
    assert math.isnan(estimates.auc(scores[:3], np.array([True, False, False])).number)


def test_rank_correlation_is_spearmans():
    rng = np.random.default_rng(0)
    first = rng.integers(0, 20, 300)
    second = first + rng.normal(scale=10, size=300)
    found = estimates.rank_correlation(first, second)
    assert found.number == pytest.approx(spearmanr(first, second).statistic)
    assert found.low < found.number < found.high
    assert math.isnan(estimates.rank_correlation(np.ones(10), second[:10]).number)


def test_mean_difference_and_skill():
    first, second = estimates.mean(np.array([1.0, 2.0, 3.0])), estimates.mean(np.array([0.0, 1.0]))
    assert first.number == 2
    assert first.high - 2 == pytest.approx(1.959964 / math.sqrt(3))
    gap = estimates.difference(first, second)
    assert gap.number == 1.5
    assert gap.high - 1.5 == pytest.approx(1.959964 * math.hypot(1 / math.sqrt(3), 0.5))
    skill = estimates.skill(np.array([1.0, 1.0, 2.0, 0.0]), np.array([2.0, 2.0, 3.0, 1.0]))
    assert skill.number == pytest.approx(0.5)
    # of the four differences 1 - 0.5 * 2, 1 - 0.5 * 2, 2 - 0.5 * 3, 0 - 0.5 * 1
    assert skill.high - 0.5 == pytest.approx(1.959964 * np.std([0, 0, 0.5, -0.5], ddof=1) / 2 / 2)

    assert estimates.skill(np.zeros(5), np.arange(1.0, 6.0)).number == 1


N = 4000
AGE = np.random.default_rng(0).permutation(N) / N * 60 + 20
QUARTER = np.argsort(np.argsort(AGE)) * 4 // N


def along_age(y, age=AGE, agreement=None):
    halves = np.full(len(age), 0.5)
    parts = {"values": {"y": halves, "age": halves}, "label_probability": {"y": halves, "age": halves}}
    if agreement is not None:
        parts["label_probability"]["y"] = agreement
    X = pd.DataFrame({"x": np.arange(float(len(age)))})
    return biases_of(Case(X, y, {"age": age}, Valuation(**parts)))


def drawn(rates):
    """Labels whose rate in each quarter of age is exact."""
    order = np.random.default_rng(0).permutation(N) % (N // 4)
    place = pd.Series(order).groupby(QUARTER).rank(method="first").to_numpy()
    return pd.Series(np.where(place <= np.array(rates)[QUARTER] * N / 4, "yes", "no"), name="claim")


@pytest.mark.parametrize("rates", [[0.1, 0.2, 0.3, 0.4], [0.4, 0.1, 0.1, 0.5], [0.1, 0.4, 0.5, 0.2]])
def test_along_a_number_the_sentence_names_the_quarters_that_differ_most(rates):
    bias = along_age(drawn(rates))["prevalence"]
    assert [bar["number"] for bar in bias["bars"]] == pytest.approx(rates)
    names = [f"“age {bar['group']}”" for bar in bias["bars"]]
    high, low = names[int(np.argmax(rates))], names[int(np.argmin(rates))]
    assert bias["sentence"] == (
        f"The rate of “yes” is {100 * max(rates):.0f} % in {high} and {100 * min(rates):.0f} % in {low}."
    )
    assert bias["measure"] == "rank correlation of age and rate of “yes”"
    assert bias["number"] == pytest.approx(spearmanr(drawn(rates) == "yes", AGE).statistic)


def test_along_a_number_agreement_and_means_are_told_in_their_own_numbers():
    found = along_age(pd.Series((AGE - 50) ** 2, name="cost"), agreement=np.abs(AGE - 50) / 40)
    assert found["prevalence"]["sentence"].startswith("The mean of cost is ")
    assert "%" not in found["prevalence"]["sentence"]
    assert found["separability"]["sentence"].startswith("The models' agreement on cost is 0.")
    quarters = [(np.abs(AGE - 50) / 40)[quarter == QUARTER].mean() for quarter in range(4)]
    assert [bar["number"] for bar in found["separability"]["bars"]] == pytest.approx(quarters)


def test_along_a_number_what_does_not_differ_or_has_few_rows_is_told():
    flat = along_age(drawn([0.2, 0.2, 0.2, 0.2]))["prevalence"]
    assert flat["sentence"].startswith("No clear difference in the rate of “yes” was found")
    few = along_age(np.arange(30) % 2, age=np.linspace(20, 80, 30))["prevalence"]
    assert few["sentence"] == "No group is large enough to be compared."
