"""Labels that models contradict."""

import numpy as np
import pytest
from tests.exploration.conftest import Case

from fado import Valuation


@pytest.fixture(scope="module")
def found(seen_small):
    return seen_small.to_dict()["attributes"][0]["suspicious"]


def test_contradicted_labels_per_group(small, found):
    agreement = small.valuation.label_probability["y"].to_numpy()
    for group in found["groups"]:
        rows = (small.z["sex"] == group["group"]).to_numpy()
        assert group["rows"] == rows.sum()
        assert group["contradicted"] == (agreement[rows] <= 0.1).sum()
        assert group["share"] == pytest.approx((agreement[rows] <= 0.1).mean())
        assert group["low"] < group["share"] < group["high"]
        doubt = np.minimum(agreement, 1 - agreement)[rows]
        assert group["expected"] == pytest.approx(doubt[doubt <= 0.1].sum() / rows.sum())
    for cell in found["labels"]:
        rows = ((small.z["sex"] == cell["group"]) & (small.y == cell["label"])).to_numpy()
        assert cell["share"] == pytest.approx((agreement[rows] <= 0.1).mean())


def test_rows_are_positions_and_nothing_else(small, found):
    agreement = small.valuation.label_probability["y"].to_numpy()
    for group in found["rows"]:
        rows = np.flatnonzero((small.z["sex"] == group["group"]).to_numpy() & (agreement <= 0.1))
        expected = rows[np.argsort(agreement[rows], kind="stable")][:10]
        assert [row["row"] for row in group["rows"]] == expected.tolist()
        assert all(set(row) == {"row", "agreement"} for row in group["rows"])


def test_rows_are_shown_only_if_asked_for(small):
    row = small.part(show_rows=True)["suspicious"]["rows"][0]["rows"][0]
    age, job, kids = small.X.iloc[row["row"]]
    assert row["label"] == small.y[row["row"]]
    job = "(missing)" if job is None or job != job else job
    assert row["features"] == [["age", str(age)], ["job", job], ["kids", str(kids)]]


def test_slices_say_how_far_agreement_falls_short(planted, seen_planted):
    first = seen_planted.to_dict()["attributes"][0]["suspicious"]["slices"][0]
    agreement = planted.valuation.label_probability["y"].to_numpy()
    rows = ((planted.X["region"] == "north") & (planted.X["sex"] == "f")).to_numpy()
    assert first["rows"] == rows.sum()
    assert first["mean_agreement"] == pytest.approx(agreement[rows].mean())
    assert first["expected_agreement"] == pytest.approx((agreement**2 + (1 - agreement) ** 2)[rows].mean())
    assert first["contradicted_share"] == pytest.approx((agreement[rows] <= 0.1).mean())
    assert first["mean_agreement"] < first["expected_agreement"]


def test_values_without_agreement_leave_nothing_to_suspect(small):
    half = np.linspace(0, 1, 600)
    values = Valuation.from_probabilities(half, {"sex": half})
    assert Case(small.X, small.y, {"sex": small.z["sex"]}, values).part()["suspicious"] is None


def contradicted_of(y, agreement):
    rows, half = np.arange(len(y)), np.full(len(y), 0.5)
    valuation = Valuation({"y": half, "sex": half}, label_probability={"y": agreement, "sex": agreement})
    z = {"sex": np.where(rows % 2, "m", "f")}
    return Case(rows[:, None].astype(float), y, z, valuation).part()["suspicious"]


def test_a_rare_label_is_contradicted_only_below_half_of_its_share():
    y = np.arange(1000) < 10
    agreement = np.where(y, 0.01, 0.99)  # what a model without knowledge says
    found = contradicted_of(y, agreement)
    assert sum(group["contradicted"] for group in found["groups"]) == 0
    assert found["sentence"] == "Models confidently contradict none of the labels."
    assert found["rule"].endswith("For rare labels that is less: 0.5 % for “y = True”.")
    agreement[:4] = 0.005
    found = contradicted_of(y, agreement)
    assert sum(group["contradicted"] for group in found["groups"]) == 4
    expected = [group["expected"] * group["rows"] for group in found["groups"]]
    assert sum(expected) == pytest.approx(4 * 0.005)  # the others' 0.01 is above the limit


def test_labels_that_are_one_of_many_have_limits_of_their_own():
    y = np.arange(700) % 7
    agreement = np.where(np.arange(700) < 70, 0.07, 0.08)  # half of a seventh is 0.0714
    found = contradicted_of(y, agreement)
    assert sum(group["contradicted"] for group in found["groups"]) == 70
    assert "7.14 % for “y = 0”" in found["rule"]
    assert found["sentence"].startswith("Models contradict 10 % of the labels")


def test_numbers_are_not_called_labels():
    agreement = np.r_[np.linspace(0.9, 0.95, 599), 0.1]
    found = contradicted_of(np.linspace(0, 1, 600), agreement)
    assert found["rule"].startswith("A number is contradicted if the models' error")
    none = "no clear difference between groups was found."
    assert found["sentence"] == f"Models contradict 0.167 % of the numbers; {none}"
    assert [row["row"] for group in found["rows"] for row in group["rows"]] == [599]
    assert all(one["expected_agreement"] is None for one in found["slices"])
    agreement[1:60:2] = 0.1
    found = contradicted_of(np.linspace(0, 1, 600), agreement)
    assert found["sentence"] == "Models contradict 10.3 % of the numbers in “m” and 0 % in “f”."
