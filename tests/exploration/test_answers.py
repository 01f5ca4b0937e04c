"""What a reader asks first, and what a line costs."""

import re

import numpy as np
import pandas as pd
import pytest
from tests.exploration.conftest import Case, made_up

from fado import OutOfBagEntropy, Valuation
from fado.aim import trade_off
from fado.exploration._answers import answers
from fado.exploration._effects import most_helpful
from fado.exploration._explored import read_explored
from fado.tabular import read_problem
from fado.valuation import Provenance


def answers_of(*case, attribute=0, **settings):
    return {one["id"]: one for one in Case(*case).part(attribute, **settings)["answers"]}


def decided_by(scores, y, z, *, algorithm="out-of-bag", names=("sex",)):
    """Values whose agreement says that models gave these scores."""
    agreement = {"y": np.where(y, scores, 1 - scores)} | {name: np.full(len(y), 0.5) for name in names}
    values = {name: np.full(len(y), 0.5) for name in agreement}
    return Valuation(values, label_probability=agreement, provenance=Provenance(algorithm=algorithm))


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
    found = answers_of(X, y, {"sex": sex}, decided_by(scores, y, sex))
    assert found["gap"] == {
        "id": "gap",
        "title": "Largest gap",
        "sentence": (
            "No clear difference in the rate of “y = True” was found between groups: the interval of the gap "
            "contains 0. Gap: 0.0 points (95 % interval -10.1 to 10.1). For decisions of these models at 5 % "
            "false positives: the false-positive rate is 10 % in “m” and 0 % in “f”, gap 10.0 points (95 % "
            "interval 3.7 to 17.6); the true-positive rate is 100 % in “m” and 50 % in “f”, gap 50.0 points "
            "(95 % interval 39.2 to 60.2)."
        ),
        "command": None,
    }
    step = found["next"]
    assert step["sentence"] == (
        "Without any change, the false-positive-rate ratio is 0.000 at 5 % false positives, below 0.8. Train "
        "a model aimed at it."
    )
    assert step["command"] == (
        'AimedEstimator(LGBMClassifier(), ratio="fpr_ratio", at_least=0.8).fit(X, y, sensitive_features=z)'
    )


def test_models_that_have_seen_the_rows_tell_nothing_of_decisions(by_hand):
    X, y, sex, scores = by_hand
    values = decided_by(scores, y, sex, algorithm="in-bag")
    found = answers_of(X, y, {"sex": sex}, values)
    assert "decide" not in found["gap"]["sentence"]
    assert found["next"]["command"] is None
    assert found["next"]["sentence"].startswith("To see the ratio, let `explore` compute the values")


def test_the_command_names_what_was_handed_over(by_hand):
    X, y, sex, scores = by_hand
    values = decided_by(scores, y, sex, names=("sex", "side"))
    z = {"sex": sex, "side": np.where(np.arange(400) % 2, "l", "r")}
    case = X, np.where(y, "a", "b"), z, values
    first, second = (answers_of(*case, attribute=one, pos_label="a")["next"] for one in (0, 1))
    assert first["command"].endswith("at_least=0.8, pos_label='a').fit(X, y, sensitive_features=z['sex'])")
    assert second["command"] is None
    assert second["sentence"].endswith("at or above 0.8: no change is needed.")
    found = answers_of(X.assign(sex=sex), y, "sex", decided_by(scores, y, sex))
    assert found["next"]["command"].endswith(".fit(X.drop(columns=['sex']), y, sensitive_features=X['sex'])")
    assert found["giveaway"]["sentence"].startswith(
        "Features that were hidden from the models of the group: “sex”."
    )


def test_a_ratio_below_the_line_that_may_be_chance_is_called_that():
    y = np.tile(np.repeat([False, True], [90, 10]), 2)
    sex, scores = np.repeat(["f", "m"], 100), np.full(200, 0.2)
    scores[[0, 1, 2, 100, 101, 102, 103, 104]] = 0.8  # 3 and 5 of 90: 8 of 180 are less than 5 %
    found = answers_of(np.arange(200.0).reshape(-1, 1), y, {"sex": sex}, decided_by(scores, y, sex))
    assert found["next"]["sentence"] == (
        "Without any change, the false-positive-rate ratio is 0.600 at 5 % false positives, below 0.8. But "
        "the rates do not differ clearly: more rows may show that no change is needed. Train a model aimed "
        "at it."
    )
    assert "no clear difference in the false-positive rate was found" in found["gap"]["sentence"]


LABELS = "Ratios need decisions between two labels: compare it first"


@pytest.mark.parametrize(
    ("y", "z", "sentence"),
    [
        (np.arange(90) % 3, np.arange(90) % 2, LABELS),
        (np.arange(90.0), np.arange(90) % 2, LABELS),
        (np.arange(90) % 2, np.sqrt(np.arange(90.0)), "Ratios compare groups: cut “z” into a few"),
        (np.arange(90) % 2, np.arange(90) < 5, "Fewer than two groups are large enough to be compared"),
    ],
)
def test_where_there_is_no_line_the_page_says_what_to_do(y, z, sentence):
    found = answers_of(np.ones((90, 1)), y, {"z": z}, made_up(90, ["z"]))
    assert found["next"]["sentence"].startswith(sentence)
    assert found["next"]["command"] is None
    assert "aim" not in found


def test_what_gives_the_group_away(seen_planted):
    part = seen_planted.to_dict()["attributes"][0]
    (sentence,) = (one["sentence"] for one in part["answers"] if one["id"] == "giveaway")
    base = part["biases"][3]
    assert re.match(
        r"Features that were hidden from the models of the group: “sex”\. “club” \([\d.]+ % ± [\d.]+ %\).* "
        r"sex most \(in brackets: the share of the uncertainty about the group ",
        sentence,
    )
    assert sentence.endswith(f"{base['sentence']} 95 % interval: {base['low']:.3f} to {base['high']:.3f}.")


def measured(ratio, ratio_error, performance=0.0, performance_error=0.01):
    return {
        "ratio_change": ratio, "ratio_error": ratio_error,
        "performance_change": performance, "performance_error": performance_error,
    }  # fmt: skip


def effects(*removals, curve=(), reason=""):
    """Hand-made effects; each removal of a slice, and of the most harmful rows, has its measured changes."""
    conditions = (["job = nurse"], ["age > 50", "job = clerk"], ["kids = 0"])
    pairs = zip(conditions, removals, strict=False)
    slices = [{"conditions": texts, "rows": 1200, "measured": one} for texts, one in pairs]
    cells = [{"group": "m", "label": "no", "rows": 70}, {"group": "f", "label": "yes", "rows": 20}]
    shares = [{"share": 0.1, "rows": 100, "cells": cells, "measured": one} for one in curve]
    return {
        "ratio": "FPR ratio",
        "performance": "TPR",
        "slices": slices,
        "curve": shares,
        "headline": most_helpful([*slices, *shares]),
        "measured": None if reason else {"fits": 48},
        "reason": reason,
    }


HOW = "(found on one half of the rows, measured on the other half, 48 fits)"
HARMFUL = measured(-0.134, 0.03, -0.609, 0.02)  # the largest change of all, and it lowers both


@pytest.mark.parametrize(
    ("found", "sentence"),
    [
        (
            effects(HARMFUL, measured(0.08, 0.025, -0.03), curve=[measured(0.478, 0.05, -0.067, 0.012)]),
            "Removing the most harmful 10 % of the rows (100 rows: 70 of “m” labelled “no”, 20 of “f” "
            "labelled “yes”) raises the FPR ratio by 0.478 (plus or minus 0.098) and lowers the TPR by 0.067 "
            "(plus or minus 0.024). Of the 3 removals that were tried, it raises the FPR ratio most for its "
            f"cost in TPR {HOW}.",
        ),
        (
            effects(measured(0.12, 0.04), HARMFUL),
            "Removing the 1,200 rows where “job = nurse” raises the FPR ratio by 0.120 (plus or minus 0.078) "
            "and does not change the TPR measurably. Of the 2 removals that were tried, it raises the FPR "
            f"ratio most for its cost in TPR {HOW}.",
        ),
        (  # 0.08 is 2 errors: clear of one removal, but not of three
            effects(measured(0.08, 0.04), HARMFUL, measured(0.3, 0.05, -0.4)),
            f"No removal that was tried (3) clearly raises the FPR ratio by more than it costs in TPR {HOW}.",
        ),
        (
            effects(HARMFUL, None),
            f"No removal that was tried (1) clearly raises the FPR ratio by more than it costs in TPR {HOW}.",
        ),
        (effects(None, reason="Too few rows."), "Too few rows."),
        (None, "Too few rows."),
    ],
)
def test_the_headline_is_a_removal_that_helps_or_says_that_none_does(by_hand, found, sentence):
    X, y, sex, scores = by_hand
    values = decided_by(scores, y, sex)
    explored = read_explored(
        read_problem(X, y, {"sex": sex}), "y", values, max_rows=400, min_group_size=30, seed=0
    )
    part = Case(X, y, {"sex": sex}, values).part()
    parts = part | {"effects": found, "not_measured": "Too few rows."}
    given = answers(explored, explored.attributes[0], parts)
    assert {one["id"]: one["sentence"] for one in given}["slice"] == sentence


def test_the_cost_of_the_line_is_the_first_sentence_of_that_part():
    rng = np.random.default_rng(0)
    sex = rng.choice(["f", "m"], 2000)
    X = pd.DataFrame({"job": np.where(rng.random(2000) < 0.8, sex, "x"), "score": rng.normal(size=2000)})
    y = X["score"] + (sex == "m") + 0.5 * rng.normal(size=2000) > 1
    part = Case(X, y, {"sex": sex}).part()
    found, first = {one["id"]: one for one in part["answers"]}, of(part["aim"])
    assert found["aim"]["title"] == "Cost of a ratio of 0.8"
    assert found["aim"]["sentence"] == first["sentences"][0]
    assert f"{first['points'][0]['ratio']:.2f}" in found["next"]["sentence"]
    assert list(found) == ["gap", "giveaway", "slice", "aim", "next"]


@pytest.mark.parametrize("n_groups", [2, 5])
@pytest.mark.parametrize("seed", range(6))
def test_a_direction_is_never_named_where_the_interval_holds_0(seed, n_groups):
    """Chance alone: whatever is named must have an interval that excludes 0."""
    rng, n_rows = np.random.default_rng(seed), 400
    names = [f"group {letter}" for letter in "pqrst"[:n_groups]]
    z, y = rng.choice(names, n_rows), rng.random(n_rows) < 0.4
    X = pd.DataFrame({"a": rng.normal(size=n_rows)})
    entry = Case(X, y, {"z": z}, decided_by(rng.random(n_rows), y, z, names=("z",))).part()
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
    from fado.exploration._estimates import share, share_gap, widest_gap

    rng = np.random.default_rng(0)
    events = rng.binomial(200, 0.3, size=(300, 5))
    wrong = sum(widest_gap([share(int(e), 200) for e in row], range(5), share_gap).is_clear for row in events)
    assert wrong <= 0.08 * 300  # 5 % and what chance adds; 75 without the correction


# Per cell: group, likelihood of the positive label, negatives, positives. At 5 % of 2,000 negatives, the
# untouched model selects the first two cells; one that keeps groups equal selects the first and the third.
CELLS = [("m", 200 / 250, 50, 200), ("m", 60 / 110, 50, 60), ("f", 30 / 80, 50, 30), ("f", 10 / 60, 50, 10),
         ("m", 240 / 1140, 900, 240), ("f", 60 / 960, 900, 60)]  # fmt: skip


def cells_case(cells, known=1.0):
    """Rows of cells, whose groups models know for sure, or not at all."""
    sizes = [negatives + positives for _, _, negatives, positives in cells]
    sex = np.repeat([group for group, *_ in cells], sizes)
    y = np.concatenate([np.repeat([0, 1], counts) for _, _, *counts in cells])
    p_y, p_male = (
        np.repeat([likely for _, likely, *_ in cells], sizes),
        np.where(sex == "m", known, 1 - known),
    )
    X = pd.DataFrame({"cell": np.repeat(np.arange(len(cells)), sizes)})
    return Case(X, y, {"sex": sex}, Valuation.from_probabilities(p_y, {"sex": p_male}))


@pytest.fixture(scope="module")
def table():
    return cells_case(CELLS)


def of(aim, name="fpr_ratio"):
    return next(one for one in aim["ratios"] if one["ratio"] == name)


def test_numbers_are_those_worked_out_by_hand(table):
    aim = table.part()["aim"]
    own = of(aim)
    assert aim["groups"] == ["f", "m"]
    assert (aim["line"], aim["max_fpr"], aim["confidence"], aim["rows"]) == (0.8, 0.05, 0.9, 2600)
    first, answer = own["points"][0], own["points"][own["answer"]]
    assert first["tpr"] == pytest.approx(260 / 600)
    assert first["rates"] == pytest.approx([0, 0.1])
    assert (first["ratio"], first["tpr_change"]) == (0, 0)
    assert first["tpr_change_error"] == pytest.approx(np.sqrt(2) / 600)
    assert answer["tpr"] == pytest.approx(230 / 600)
    assert answer["rates"] == pytest.approx([0.05, 0.05])
    assert answer["ratio"] == pytest.approx(1)
    assert answer["tpr_change"] == pytest.approx(-30 / 600)  # 60 lost, 30 gained
    assert answer["tpr_change_error"] == pytest.approx(np.sqrt(60 + 30 - 30**2 / 600 + 2) / 600)
    assert own["sure"] is None
    assert own["sentences"][0] == (
        "A false-positive-rate ratio of 0.8 costs about 5.0 points (plus or minus 3.1) of true-positive rate "
        "(0.433 to 0.383) at 5 % false positives, by decisions from the given probabilities that do not use "
        "the group."
    )
    bound = np.floor(1000 * answer["low"]) / 1000
    assert own["sentences"][1] == (
        "These 2,600 rows are too few for 90 % confidence: the most equal point has a ratio of 1.000 with a "
        f"lower bound of {bound:.3f}, below 0.8."
    )


def test_ten_times_the_rows_are_enough_to_be_sure():
    own = of(cells_case([(*cell[:2], 10 * cell[2], 10 * cell[3]) for cell in CELLS]).part()["aim"])
    assert own["sure"] == own["answer"]
    assert own["points"][own["sure"]]["low"] > 0.8
    assert own["sentences"][1].startswith("The lower bound of that ratio at 90 % confidence is 0.9")


@pytest.mark.parametrize(
    ("cells", "known", "ratio", "sentence"),
    [
        (  # 40 positives lost, 30 gained
            [CELLS[0], (*CELLS[1][:3], 40), *CELLS[2:]],
            1.0,
            1.0,
            "A false-positive-rate ratio of 0.8 has no measurable cost: 1.7 points (plus or minus "
            f"{196 * np.sqrt(70 - 100 / 580 + 2) / 580:.1f}) less true-positive rate (0.414 to 0.397) at 5 %",
        ),
        (
            [("m", 0.7, 60, 160), ("f", 0.7, 40, 100), ("m", 0.1, 940, 100), ("f", 0.1, 960, 100)],
            0.5,
            2 / 3,
            "No decisions that do not use the group reach 0.8: the most equal ones have 0.666.",
        ),
        (
            [("m", 0.7, 50, 160), ("f", 0.7, 45, 100), ("m", 0.1, 950, 100), ("f", 0.1, 955, 100)],
            0.5,
            0.9,
            "Without any change, the false-positive-rate ratio is 0.900 at 5 % false positives: 0.8 costs "
            "nothing.",
        ),
    ],
)
def test_what_the_line_costs_is_called_what_it_is(cells, known, ratio, sentence):
    own = of(cells_case(cells, known).part()["aim"])
    assert own["points"][own["answer"] or 0]["ratio"] == pytest.approx(ratio)
    assert (own["answer"] is None) == (ratio < 0.8)
    assert own["sentences"][0].startswith(sentence)
    assert own["sentences"][1].startswith("The lower bound at 90 % confidence is 0.") or ratio > 0.8


def test_the_curves_are_those_of_trade_off(planted):
    X, y, sex = planted.X.drop(columns="sex"), planted.y, {"sex": planted.X["sex"].to_numpy()}
    valuator = OutOfBagEntropy(n_bags=5, random_state=0, keep_probabilities=True)
    valuation = valuator.fit(X, y, sensitive_features=sex).valuation_
    aim = Case(X, y, sex, valuation).part()["aim"]
    names = ["fpr_ratio", "tpr_ratio", "fnr_ratio", "selection_rate_ratio"]
    assert [own["ratio"] for own in aim["ratios"]] == names
    for own in aim["ratios"]:
        frame = trade_off(valuation, y, sensitive_features=sex, ratio=own["ratio"])
        columns = ["tpr", "tpr_low", "tpr_high", "ratio", "low", "tpr_change", "tpr_change_error"]
        assert pd.DataFrame(own["points"])[columns].equals(frame[columns])
        rate = own["ratio"].removesuffix("_ratio")
        rates = np.array([point["rates"] for point in own["points"]])
        assert rates == pytest.approx(frame[[f"{rate}[f]", f"{rate}[m]"]].to_numpy())
        assert frame["tpr_change"].to_numpy() == pytest.approx((frame["tpr"] - frame["tpr"][0]).to_numpy())
        unseen = "by out-of-bag decisions that do not use the group" in own["sentences"][0]
        assert unseen or own["answer"] == 0
    assert aim["note"].startswith("Measured on out-of-bag rows, which the models were not trained on. ")


def test_weights_change_no_count(table):
    weights = np.random.default_rng(0).integers(1, 3, len(table.y))
    assert table.part(sample_weight=weights)["aim"] == table.part()["aim"]


def test_the_scale_of_weights_changes_no_error(table):
    plain, doubled = (
        trade_off(table.valuation, table.y, sensitive_features=table.z, sample_weight=weights)
        for weights in (None, np.full(len(table.y), 2.0))
    )
    for column in ("tpr_change", "tpr_change_error"):
        assert doubled[column].to_numpy() == pytest.approx(plain[column].to_numpy())


def test_values_made_by_explore_keep_what_it_needs(planted):
    blind = Case(planted.X.drop(columns="sex"), planted.y, {"sex": planted.X["sex"]})
    assert blind.part()["aim"]["rows"] == 4000
    few = blind.part(max_rows=1000)["aim"]
    assert few["rows"] == 1000
    assert few["note"].startswith("Measured on 1,000 out-of-bag rows")
    feature = planted._replace(valuation=None).part()["aim"]
    assert "“sex” is itself a feature" in feature["note"]
    assert not any("not see the group" in text for one in feature["ratios"] for text in one["sentences"])


def test_rows_without_a_value_are_left_out(table):
    half = np.arange(len(table.y)) % 2 == 0
    values = {name: np.where(half, table.valuation[name], np.nan) for name in ("y", "sex")}
    part = Valuation(values, probabilities=table.valuation.probabilities)
    own = of(table._replace(valuation=part).part()["aim"])
    assert own["points"][0]["tpr"] == pytest.approx(260 / 600)
    assert own["points"][own["answer"]]["tpr_change"] == pytest.approx(-15 / 300)


def test_groups_that_are_not_compared_have_no_rate():
    case = cells_case([*CELLS, ("x", 0.99, 0, 9)])
    three = np.column_stack([case.z["sex"] == label for label in "fmx"]).astype(float)
    valuation = Valuation.from_probabilities(case.valuation.probabilities["y"][:, 1], {"sex": three})
    aim = case._replace(valuation=valuation).part(min_group_size=0)["aim"]
    assert aim["groups"] == ["f", "m"]
    assert of(aim)["points"][0]["tpr"] == pytest.approx(269 / 609)


def test_without_probabilities_there_is_no_such_part(seen_small, table):
    assert [entry["aim"] for entry in seen_small.to_dict()["attributes"]] == [None, None]
    others = np.full((len(table.y), 3), 1 / 3)  # of three groups, and there are two
    strange = Valuation.from_probabilities(table.valuation.probabilities["y"], {"sex": others})
    assert table._replace(valuation=strange).part()["aim"] is None


@pytest.mark.parametrize("kind", ["target", "attribute", "classes"])
def test_where_there_is_nothing_to_aim_at_values_are_made_all_the_same(kind):
    rng = np.random.default_rng(0)
    X, sex, number = rng.normal(size=(400, 2)), rng.choice(["f", "m"], 400), rng.normal(size=400)
    y = {"target": number, "attribute": number > 0, "classes": rng.integers(0, 3, 400)}[kind]
    assert Case(X, y, {"z": number if kind == "attribute" else sex}).part()["aim"] is None
