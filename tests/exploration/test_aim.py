"""What aiming would cost, against numbers worked out by hand and against `trade_off`."""

import numpy as np
import pandas as pd
import pytest

from fado import OutOfBagEntropy, Valuation, explore
from fado.aim import trade_off

# Per cell: group, likelihood of the positive label, negatives, positives. At 5 % of 2,000 negatives, the
# untouched model selects the first two cells; one that keeps groups equal selects the first and the third.
CELLS = [("m", 200 / 250, 50, 200), ("m", 60 / 110, 50, 60), ("f", 30 / 80, 50, 30), ("f", 10 / 60, 50, 10),
         ("m", 240 / 1140, 900, 240), ("f", 60 / 960, 900, 60)]  # fmt: skip


class Table:
    """Rows of cells, whose groups models know for sure, or not at all."""

    def __init__(self, cells, known=1.0):
        sizes = [negatives + positives for _, _, negatives, positives in cells]
        self.sex = np.repeat([group for group, *_ in cells], sizes)
        self.y = np.concatenate([np.repeat([0, 1], counts) for *_, counts in map(pairs, cells)])
        self.X = pd.DataFrame({"cell": np.repeat(np.arange(len(cells)), sizes)})
        p_male = np.where(self.sex == "m", known, 1 - known)
        p_y = np.repeat([likely for _, likely, *_ in cells], sizes)
        self.valuation = Valuation.from_probabilities(p_y, {"sex": p_male})

    def explored(self, **more):
        given = {"sensitive_features": {"sex": self.sex}, "valuation": self.valuation} | more
        return explore(self.X, self.y, **given, retrain=0)

    def aim(self, **more):
        return self.explored(**more).to_dict()["attributes"][0]["aim"]


def pairs(cell):
    return (*cell[:2], cell[2:])


@pytest.fixture(scope="module")
def table():
    return Table(CELLS)


def of(aim, name):
    return next(own for own in aim["ratios"] if own["ratio"] == name)


def test_numbers_are_those_worked_out_by_hand(table):
    aim = table.aim()
    own = of(aim, "fpr_ratio")
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
        "(0.433 to 0.383) at 5 % false positives, by decisions from the given probabilities that do not see "
        "the group."
    )
    bound = np.floor(1000 * answer["low"]) / 1000
    assert own["sentences"][1] == (
        "These 2,600 rows are too few to be sure: the most equal point has 1.000, and its lower bound at "
        f"90 % confidence, {bound:.3f}, is below 0.8."
    )


def test_ten_times_the_rows_are_enough_to_be_sure():
    many = Table([(*cell[:2], 10 * cell[2], 10 * cell[3]) for cell in CELLS]).aim()
    own = of(many, "fpr_ratio")
    assert own["sure"] == own["answer"]
    point = own["points"][own["sure"]]
    assert point["low"] > 0.8
    assert own["sentences"][1].startswith("With 90 % confidence the ratio there is above 0.9")


def test_a_difference_within_its_error_is_called_no_cost():
    cells = [list(cell) for cell in CELLS]
    cells[1][3], cells[2][3] = 40, 30  # 40 lost, 30 gained
    own = of(Table(cells).aim(), "fpr_ratio")
    reach = 196 * np.sqrt(70 - 100 / 580 + 2) / 580
    assert own["sentences"][0].startswith(
        "A false-positive-rate ratio of 0.8 has no measurable cost: 1.7 points (plus or minus "
        f"{reach:.1f}) less true-positive rate (0.414 to 0.397) at 5 %"
    )


def test_a_ratio_out_of_reach_is_called_so():
    cells = [("m", 0.7, 60, 160), ("f", 0.7, 40, 100), ("m", 0.1, 940, 100), ("f", 0.1, 960, 100)]
    own = of(Table(cells, known=0.5).aim(), "fpr_ratio")
    assert own["answer"] is None
    assert own["points"][0]["ratio"] == pytest.approx(2 / 3)
    assert own["sentences"][0] == (
        "No decision that does not see the group reaches 0.8: the most equal has 0.666."
    )
    assert own["sentences"][1].startswith("With 90 % confidence that is above 0.")


def test_what_is_above_the_line_already_costs_nothing():
    cells = [("m", 0.7, 50, 160), ("f", 0.7, 45, 100), ("m", 0.1, 950, 100), ("f", 0.1, 955, 100)]
    own = of(Table(cells, known=0.5).aim(), "fpr_ratio")
    assert own["answer"] == 0
    assert own["sentences"][0] == (
        "Untouched, the false-positive-rate ratio is 0.900 at 5 % false positives: 0.8 costs nothing."
    )


@pytest.fixture(scope="module")
def valued(planted):
    X = planted.X.drop(columns="sex")
    valuator = OutOfBagEntropy(n_bags=5, random_state=0, keep_probabilities=True)
    valuation = valuator.fit(X, planted.y, sensitive_features={"sex": planted.sex}).valuation_
    return X, planted.y, planted.sex, valuation


def test_the_curves_are_those_of_trade_off(valued):
    X, y, sex, valuation = valued
    aim = explore(X, y, sensitive_features={"sex": sex}, valuation=valuation, retrain=0).to_dict()[
        "attributes"
    ][0]["aim"]
    assert [own["ratio"] for own in aim["ratios"]] == [
        "fpr_ratio", "tpr_ratio", "fnr_ratio", "selection_rate_ratio",
    ]  # fmt: skip
    for own in aim["ratios"]:
        frame = trade_off(valuation, y, sensitive_features={"sex": sex}, ratio=own["ratio"])
        columns = ["tpr", "tpr_low", "tpr_high", "ratio", "low", "tpr_change", "tpr_change_error"]
        assert pd.DataFrame(own["points"])[columns].equals(frame[columns])
        rate = own["ratio"].removesuffix("_ratio")
        rates = np.array([point["rates"] for point in own["points"]])
        assert rates == pytest.approx(frame[[f"{rate}[f]", f"{rate}[m]"]].to_numpy())
        assert frame["tpr_change"].to_numpy() == pytest.approx((frame["tpr"] - frame["tpr"][0]).to_numpy())
        assert (
            "by out-of-bag decisions that do not see the group" in own["sentences"][0] or own["answer"] == 0
        )
    assert aim["note"].startswith("Measured on out-of-bag rows, which the models had not seen; ")


def test_weights_change_no_count(table):
    weights = np.random.default_rng(0).integers(1, 3, len(table.y))
    assert table.aim(sample_weight=weights) == table.aim()


def test_the_scale_of_weights_changes_no_error(table):
    asked = {"sensitive_features": {"sex": table.sex}}
    plain, doubled = (
        trade_off(table.valuation, table.y, **asked, sample_weight=weights)
        for weights in (None, np.full(len(table.y), 2.0))
    )
    for column in ("tpr_change", "tpr_change_error"):
        assert doubled[column].to_numpy() == pytest.approx(plain[column].to_numpy())


def test_values_made_by_explore_keep_what_it_needs(planted):
    X = planted.X.drop(columns="sex")
    aim = explore(X, planted.y, sensitive_features={"sex": planted.sex}, retrain=0).to_dict()["attributes"][
        0
    ]["aim"]
    assert aim["rows"] == 4000
    few = explore(X, planted.y, sensitive_features={"sex": planted.sex}, max_rows=1000, retrain=0)
    found = few.to_dict()["attributes"][0]["aim"]
    assert found["rows"] == 1000
    assert found["note"].startswith("Measured on 1,000 out-of-bag rows")


def test_an_attribute_among_the_features_is_no_secret(planted):
    found = explore(planted.X, planted.y, sensitive_features="sex", retrain=0).to_dict()["attributes"][0][
        "aim"
    ]
    assert "“sex” is itself among the features" in found["note"]
    assert not any("not see the group" in text for own in found["ratios"] for text in own["sentences"])


def test_rows_without_a_value_are_left_out(table):
    n_rows = len(table.y)
    half = np.arange(n_rows) % 2 == 0
    values = {name: np.where(half, table.valuation[name], np.nan) for name in ("y", "sex")}
    part = Valuation(values, probabilities=table.valuation.probabilities)
    own = of(table.aim(valuation=part), "fpr_ratio")
    assert own["points"][0]["tpr"] == pytest.approx(260 / 600)
    assert own["points"][own["answer"]]["tpr_change"] == pytest.approx(-15 / 300)


def test_groups_that_are_not_compared_have_no_rate():
    table = Table([*CELLS, ("x", 0.99, 0, 9)])
    three = np.column_stack([table.sex == "f", table.sex == "m", table.sex == "x"]).astype(float)
    valuation = Valuation.from_probabilities(table.valuation.probabilities["y"][:, 1], {"sex": three})
    aim = table.aim(valuation=valuation, min_group_size=0)
    assert aim["groups"] == ["f", "m"]
    assert of(aim, "fpr_ratio")["points"][0]["tpr"] == pytest.approx(269 / 609)


def test_without_probabilities_there_is_no_such_part(small, table):
    seen = explore(small.X, small.y, sensitive_features=small.z, valuation=small.valuation, retrain=0)
    assert [entry["aim"] for entry in seen.to_dict()["attributes"]] == [None, None]
    with pytest.raises(ValueError, match=r"which this needs: value the rows with .*keep_probabilities=True"):
        seen.chart("aim")
    others = np.full((len(table.y), 3), 1 / 3)
    strange = Valuation.from_probabilities(table.valuation.probabilities["y"], {"sex": others})
    assert table.aim(valuation=strange) is None  # of three groups, and there are two


@pytest.mark.parametrize("kind", ["target", "attribute", "classes"])
def test_where_there_is_nothing_to_aim_at_values_are_made_all_the_same(kind):
    rng = np.random.default_rng(0)
    X, sex = rng.normal(size=(400, 2)), rng.choice(["f", "m"], 400)
    y = {
        "target": rng.normal(size=400),
        "attribute": rng.random(400) < 0.5,
        "classes": rng.integers(0, 3, 400),
    }
    z = rng.normal(size=400) if kind == "attribute" else sex
    assert (
        explore(X, y[kind], sensitive_features={"z": z}, retrain=0).to_dict()["attributes"][0]["aim"] is None
    )


def test_the_chart_shows_the_summary_s_numbers(table):
    seen = table.explored()
    aim = seen.to_dict()["attributes"][0]["aim"]
    chart = seen.chart("aim", "sex").to_dict()
    (rows,) = chart["datasets"].values()
    drawn = [(row["ratio"], row["tpr"]) for row in rows if row["panel"] == "false-positive-rate ratio"]
    points = of(aim, "fpr_ratio")["points"]
    assert drawn == [(p["ratio"], p["tpr"]) for p in points] + [(p["low"], p["tpr"]) for p in points]
    assert {row["line"] for row in rows} == {0.8}
    assert len(chart["spec"]["layer"]) == 3
