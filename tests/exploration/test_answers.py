"""The first screen: sentences worked out by hand, and no direction where chance may have made it."""

import re

import numpy as np
import pandas as pd
import pytest

from fado import Valuation, explore
from fado.exploration._answers import answers
from fado.exploration._material import read_material
from fado.tabular import read_problem
from fado.valuation import Provenance


def told(seen, attribute=0):
    return {one["id"]: one for one in seen.to_dict()["attributes"][attribute]["answers"]}


def decided_by(scores, y, z, *, algorithm="out-of-bag", names=("sex",)):
    """Values whose agreement says that models gave these scores."""
    agreement = {"y": np.where(y, scores, 1 - scores)} | {name: np.full(len(y), 0.5) for name in names}
    values = {name: np.full(len(y), 0.5) for name in agreement}
    return Valuation(values, agreement=agreement, provenance=Provenance(algorithm=algorithm))


@pytest.fixture(scope="module")
def by_hand():
    """400 rows: 10 of 100 negatives of m score high and none of f; all positives of m, and half of f."""
    sex = np.repeat(["f", "m"], 200)
    y = np.tile(np.repeat([False, True], 100), 2)
    scores = np.full(400, 0.25)
    scores[200:210] = 0.75  # negatives of m: 10 of 200 negatives in all are 5 %
    scores[100:150] = scores[300:] = 0.75
    return pd.DataFrame({"a": np.arange(400.0) % 7}), y, sex, scores


def test_the_largest_gap_is_told_of_the_data_and_of_decisions(by_hand):
    X, y, sex, scores = by_hand
    seen = explore(X, y, sensitive_features={"sex": sex}, valuation=decided_by(scores, y, sex), retrain=0)
    assert told(seen)["gap"] == {
        "id": "gap",
        "title": "The largest gap",
        "sentence": (
            "No clear difference in the rate of “y = True” was found between groups: the interval of the gap "
            "holds 0. Gap: 0.0 points (95 % interval -9.7 to 9.7). Where these models decide at 5 % false "
            "positives: the false-positive rate is 10 % in “m” and 0 % in “f”, gap 10.0 points (95 % "
            "interval 4.2 to 17.4); the true-positive rate is 100 % in “m” and 50 % in “f”, gap 50.0 points "
            "(95 % interval 39.7 to 59.6)."
        ),
        "command": None,
    }
    step = told(seen)["next"]
    assert step["sentence"] == (
        "Untouched, the false-positive-rate ratio is 0.000 at 5 % false positives, below a line of 0.8. Aim "
        "a model at it."
    )
    assert step["command"] == (
        'AimedEstimator(LGBMClassifier(), ratio="fpr_ratio", at_least=0.8).fit(X, y, sensitive_features=z)'
    )


def test_models_that_have_seen_the_rows_tell_nothing_of_decisions(by_hand):
    X, y, sex, scores = by_hand
    values = decided_by(scores, y, sex, algorithm="in-bag")
    found = told(explore(X, y, sensitive_features={"sex": sex}, valuation=values, retrain=0))
    assert "decide" not in found["gap"]["sentence"]
    assert found["next"]["command"] is None
    assert found["next"]["sentence"].startswith("To see where a line stands, let `explore` make the values")


def test_the_command_names_what_was_handed_over(by_hand):
    X, y, sex, scores = by_hand
    values = decided_by(scores, y, sex, names=("sex", "side"))
    z = {"sex": sex, "side": np.where(np.arange(400) % 2, "l", "r")}
    labels = np.where(y, "a", "b")
    seen = explore(X, labels, sensitive_features=z, valuation=values, pos_label="a", retrain=0)
    assert told(seen)["next"]["command"].endswith(
        "at_least=0.8, pos_label='a').fit(X, y, sensitive_features=z['sex'])"
    )
    step = told(seen, 1)["next"]
    assert step["command"] is None
    assert step["sentence"].endswith("nothing has to be changed for a line of 0.8.")
    seen = explore(
        X.assign(sex=sex), y, sensitive_features="sex", valuation=decided_by(scores, y, sex), retrain=0
    )
    assert told(seen)["next"]["command"].endswith(".fit(X, y, sensitive_features='sex')")
    assert told(seen)["giveaway"]["sentence"].startswith(
        "Among the features, though kept from the models of the group: “sex”."
    )


def test_a_ratio_below_the_line_that_may_be_chance_is_called_that():
    y = np.tile(np.repeat([False, True], [90, 10]), 2)
    sex, scores = np.repeat(["f", "m"], 100), np.full(200, 0.2)
    scores[[0, 1, 2, 100, 101, 102, 103, 104]] = 0.8  # 3 and 5 of 90: 8 of 180 are less than 5 %
    seen = explore(
        np.arange(200.0).reshape(-1, 1),
        y,
        sensitive_features={"sex": sex},
        valuation=decided_by(scores, y, sex),
    )
    assert told(seen)["next"]["sentence"] == (
        "Untouched, the false-positive-rate ratio is 0.600 at 5 % false positives, below a line of 0.8. But "
        "the rates do not clearly differ: more rows may show that nothing has to be changed. Aim a model at "
        "it."
    )
    assert "no clear difference in the false-positive rate was found" in told(seen)["gap"]["sentence"]


@pytest.mark.parametrize(
    ("y", "z", "sentence"),
    [
        (
            np.arange(90) % 3,
            np.arange(90) % 2,
            "Lines are for decisions between two labels: compare it first",
        ),
        (np.arange(90.0), np.arange(90) % 2, "Lines are for decisions between two labels: compare it first"),
        (np.arange(90) % 2, np.sqrt(np.arange(90.0)), "Lines are between groups: cut “z” into a few"),
        (
            np.arange(90) % 2,
            np.arange(90) < 5,
            "There are no two groups that are large enough to be compared",
        ),
    ],
)
def test_where_there_is_no_line_the_page_says_what_to_do(made_up, y, z, sentence):
    seen = explore(np.ones((90, 1)), y, sensitive_features={"z": z}, valuation=made_up(90, ["z"]), retrain=0)
    step = told(seen)["next"]
    assert step["sentence"].startswith(sentence)
    assert step["command"] is None
    assert "aim" not in told(seen)


def test_what_gives_the_group_away(planted):
    seen = explore(planted.X, planted.y, sensitive_features=planted.z, valuation=planted.valuation, retrain=0)
    sentence = told(seen)["giveaway"]["sentence"]
    base = {bias["id"]: bias for bias in seen.to_dict()["attributes"][0]["biases"]}["base"]
    assert re.match(
        r"Among the features, though kept from the models of the group: “sex”\. “club” \([\d.]+ %\), .*give "
        r"sex away most, by the share of the split gain of its models\.",
        sentence,
    )
    assert sentence.endswith(f"{base['sentence']} 95 % interval: {base['low']:.3f} to {base['high']:.3f}.")


def test_a_group_that_is_not_told_is_given_away_by_no_column(made_up):
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.normal(size=500)})
    values = made_up(500, ["z"])  # agreement by chance
    seen = explore(
        X, rng.random(500) < 0.5, sensitive_features={"z": rng.choice(["p", "q"], 500)}, valuation=values
    )
    sentence = told(seen)["giveaway"]["sentence"]
    assert sentence.startswith("“z” is not clearly predicted from the features and the target: an AUC of 0.")
    assert "“a”" not in sentence


def measured(rows, ratio, ratio_error, performance=0.0, performance_error=0.01):
    return {
        "rows": rows, "ratio_change": ratio, "ratio_error": ratio_error,
        "performance_change": performance, "performance_error": performance_error,
    }  # fmt: skip


def effects(*slices, reason=""):
    """Hand-made effects; each slice is its measured actions."""
    conditions = (["job = nurse"], ["age > 50", "job = clerk"], ["kids = 0"])
    return {
        "ratio": "FPR ratio",
        "performance": "TPR",
        "slices": [
            {"conditions": own, "measured": {"remove": None, "halve": None, "relabel": None} | one}
            for own, one in zip(conditions, slices, strict=False)
        ],
        "measured": None if reason else {"fits": 48},
        "reason": reason,
    }


HOW = "(found by effects on one half of the rows, measured on the other, 48 fits)"


@pytest.mark.parametrize(
    ("found", "sentence"),
    [
        (
            effects({"remove": measured(120, 0.08, 0.025)}, {"halve": measured(40, -0.2, 0.05, -0.03)}),
            "Weighing by half the 40 rows where “age > 50 and job = clerk” lowers the FPR ratio by 0.200 "
            "(plus or minus 0.098) and lowers the TPR by 0.030 (plus or minus 0.020); of the 2 slices that "
            f"were tried it moves the ratio most {HOW}.",
        ),
        (
            effects({"remove": measured(1200, 0.08, 0.04), "relabel": measured(9, 0.0785, 0.04)}),
            "Removing the 1,200 rows where “job = nurse” raises the FPR ratio by 0.080 (plus or minus 0.078) "
            "and does not change the TPR measurably; of the one slice that was tried it "
            f"moves the ratio most {HOW}.",
        ),
        (
            effects({"remove": measured(120, 0.9, 0.5)}, {}, {"relabel": measured(3, None, None)}),
            f"None of the 2 slices that were tried changes the FPR ratio measurably {HOW}.",
        ),
        (
            effects({"halve": measured(120, -0.078, 0.04)}),
            f"The one slice that was tried does not change the FPR ratio measurably {HOW}.",
        ),
        (effects({}), "No slice of the rows stood out, so none was tried."),
        (effects({}, reason="Too few rows."), "Too few rows."),
        (None, "Too few rows."),
    ],
)
def test_a_slice_is_named_only_if_retraining_measured_a_change(by_hand, found, sentence):
    X, y, sex, scores = by_hand
    values = decided_by(scores, y, sex)
    material = read_material(
        read_problem(X, y, {"sex": sex}), "y", values, max_rows=400, min_group_size=30, seed=0
    )
    parts = explore(X, y, sensitive_features={"sex": sex}, valuation=values, retrain=0).to_dict()[
        "attributes"
    ][0]
    given = answers(
        material, material.attributes[0], parts | {"effects": found, "not_measured": "Too few rows."}
    )
    assert {one["id"]: one["sentence"] for one in given}["slice"] == sentence


def test_the_cost_of_the_line_is_the_first_sentence_of_that_part():
    rng = np.random.default_rng(0)
    sex = rng.choice(["f", "m"], 2000)
    X = pd.DataFrame({"job": np.where(rng.random(2000) < 0.8, sex, "x"), "score": rng.normal(size=2000)})
    y = X["score"] + (sex == "m") + 0.5 * rng.normal(size=2000) > 1
    seen = explore(X, y, sensitive_features={"sex": sex}, retrain=0)
    (own,) = (one for one in seen.to_dict()["attributes"][0]["aim"]["ratios"] if one["ratio"] == "fpr_ratio")
    assert told(seen)["aim"]["title"] == "What a line of 0.8 costs"
    assert told(seen)["aim"]["sentence"] == own["sentences"][0]
    assert f"{own['points'][0]['ratio']:.2f}" in told(seen)["next"]["sentence"]
    assert list(told(seen)) == ["gap", "giveaway", "slice", "aim", "next"]


@pytest.mark.parametrize("n_groups", [2, 5])
@pytest.mark.parametrize("seed", range(12))
def test_a_direction_is_never_named_where_the_interval_holds_0(seed, n_groups):
    """Chance alone: whatever is named must have an interval that excludes 0."""
    rng, n_rows = np.random.default_rng(seed), 400
    names = [f"group {letter}" for letter in "pqrst"[:n_groups]]
    z, y = rng.choice(names, n_rows), rng.random(n_rows) < 0.4
    X = pd.DataFrame({"a": rng.normal(size=n_rows)})
    values = decided_by(rng.random(n_rows), y, z, names=("z",))
    entry = explore(X, y, sensitive_features={"z": z}, valuation=values, retrain=0).to_dict()["attributes"][0]
    biases = {bias["id"]: bias for bias in entry["biases"]}
    for bias in (biases["prevalence"], biases["separability"]):
        clear = bias["low"] > 0 or bias["high"] < 0
        assert any(name in bias["sentence"] for name in names) == clear
        assert ("No clear difference" in bias["sentence"]) != clear
    gap = entry["answers"][0]["sentence"]
    decisions = re.findall(r"([^;:]*?), gap [\d.-]+ points \(95 % interval ([\d.-]+) to ([\d.-]+)\)", gap)
    assert len(decisions) == 2
    for said, low, high in decisions:
        holds = float(low) <= 0 <= float(high)
        assert ("no clear difference" in said) == holds
        assert any(name in said for name in names) != holds
    if "no clear difference" in entry["suspicious"]["sentence"]:
        assert not any(name in entry["suspicious"]["sentence"] for name in names)


def test_chance_seldom_makes_a_gap_among_many_groups():
    """The widest of ten gaps between five equal groups: its interval must exclude 0 in few of 300 tables."""
    from fado.exploration._biases import share, share_gap, widest_gap

    rng = np.random.default_rng(0)
    events = rng.binomial(200, 0.3, size=(300, 5))
    wrong = sum(widest_gap([share(int(e), 200) for e in row], range(5), share_gap).is_clear for row in events)
    assert wrong <= 0.08 * 300  # 5 % and what chance adds; 75 without the correction
