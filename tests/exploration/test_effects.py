"""What rows do to the model: worked out by hand, and on values whose sums are known."""

import json

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import log_loss

from fado import TreeInfluence, Valuation, explore
from fado.exploration._material import show_groups
from fado.exploration._rows import cell_effects
from fado.metrics import evaluate
from fado.tabular import mean_one
from fado.valuation import Provenance, Scale


def part_of(seen, number=0):
    return seen.to_dict()["attributes"][number].get("effects")


@pytest.fixture(scope="module")
def case():
    """1,000 rows; nurses of label yes do the harm, and there is a group of nine rows."""
    rng = np.random.default_rng(0)
    n_rows = 1000
    X = pd.DataFrame(
        {
            "job": rng.choice(["clerk", "nurse", "driver", "cook"], n_rows),
            "age": rng.integers(18, 80, n_rows),
            "town": rng.choice(["x", "y"], n_rows),
        }
    )
    sex = rng.choice(["f", "m"], n_rows).astype(object)
    sex[:9] = "other"
    y = pd.Series(rng.choice(["no", "yes"], n_rows), name="hired")
    harmful = ((X["job"] == "nurse") & (y == "yes")).to_numpy()
    v_z = 0.001 * rng.normal(size=n_rows) + np.where(harmful, -0.004, 0.0005)
    v_y = 0.001 * rng.normal(size=n_rows)
    return X, y, sex, {"y": v_y, "sex": v_z}, harmful


def explored(case, **settings):
    X, y, sex, values, _ = case
    return explore(
        X, y, sensitive_features={"sex": sex}, valuation=Valuation.from_values(values), **settings, retrain=0
    )


def test_cells_add_up_and_small_ones_are_left_out():
    groups = show_groups(np.repeat([0, 1], [30, 30]), ("f", "m"))
    labels = show_groups(
        np.concatenate([np.repeat([0, 1], [21, 9]), np.repeat([0, 1], [10, 20])]), ("n", "p")
    )
    on_ratio, on_performance = np.arange(60.0), np.repeat([1.0, -2.0], 30)
    cells = cell_effects(groups, labels, on_ratio, on_performance)
    assert [tuple(cell.values()) for cell in cells] == [
        ("f", "n", 21, 210.0, 21.0),
        ("m", "n", 10, 345.0, -20.0),
        ("m", "p", 20, 990.0, -40.0),
    ]


def test_the_page_s_part_holds_the_sums_of_the_values(case):
    _, y, sex, values, _ = case
    found = part_of(explored(case))
    assert [(cell["group"], cell["label"]) for cell in found["cells"]] == [
        ("f", "no"), ("f", "yes"), ("m", "no"), ("m", "yes"),
    ]  # fmt: skip
    for cell in found["cells"]:
        rows = (sex == cell["group"]) & (y == cell["label"]).to_numpy()
        assert cell["rows"] == rows.sum()
        assert cell["ratio_effect"] == pytest.approx(values["sex"][rows].sum())
        assert cell["performance_effect"] == pytest.approx(values["y"][rows].sum())
    assert found["harmful"] == (values["sex"] < 0).sum()
    assert (found["curve"], found["measured"]) == ([], None)
    assert found["reason"] == "Nothing was measured, as no model was to be trained again (`retrain=0`)."
    assert (found["ratio"], found["performance"], found["now"]) == ("ratio", "performance", None)
    assert "other" not in json.dumps(found)  # a group of nine rows is not named


def test_the_planted_slice_is_found_and_nothing_is_said_of_its_removal(case):
    *_, harmful = case
    first = part_of(explored(case))["slices"][0]
    assert first["conditions"] == ["job = nurse", "hired = yes"]
    assert first["rows"] == harmful.sum()
    assert first["p_value"] < 1e-6
    assert (first["ratio_change"], first["performance_change"]) == (None, None)
    assert first["measured"] == {"remove": None, "halve": None, "relabel": None}


def test_slices_are_counted_in_all_rows_and_searched_in_a_sample(case):
    first = part_of(explored(case, max_rows=500))["slices"][0]
    assert first["conditions"] == ["job = nurse", "hired = yes"]
    assert first["rows"] == case[4].sum()


def test_effects_are_per_unit_of_weight(case):
    X, y, sex, values, _ = case
    weights = np.random.default_rng(1).integers(0, 4, 1000) * 1.0
    weighted = part_of(explored(case, sample_weight=weights))
    multiplied = Valuation.from_values({name: own * mean_one(weights) for name, own in values.items()})
    alike = part_of(explore(X, y, sensitive_features={"sex": sex}, valuation=multiplied, retrain=0))
    assert weighted == alike


def test_rows_are_numbers_and_hold_nothing_unless_asked_for(case):
    X, y, _, values, _ = case
    worst = np.argsort(values["sex"])[:10].tolist()
    rows = part_of(explored(case))["rows"]
    assert [row["row"] for row in rows] == worst
    assert all(set(row) == {"row", "ratio_effect", "performance_effect"} for row in rows)
    shown = part_of(explored(case, show_rows=True))["rows"][0]
    assert shown["label"] == y[worst[0]]
    assert dict(shown["features"]) == {name: str(X[name][worst[0]]) for name in X}


def test_rows_without_a_value_keep_the_numbers_of_the_others(case):
    X, y, sex, values, _ = case
    cut = {name: own.copy() for name, own in values.items()}
    cut["sex"][[0, 500]] = np.nan
    found = part_of(
        explore(X, y, sensitive_features={"sex": sex}, valuation=Valuation.from_values(cut), retrain=0)
    )
    assert [row["row"] for row in found["rows"]] == np.argsort(cut["sex"])[:10].tolist()


def test_values_of_the_target_may_be_no_effects(case):
    X, y, sex, values, _ = case
    scales = {"y": Scale("how unsure", 0.0, 1.0, None)}
    mixed = Valuation.from_values({"y": np.full(1000, 0.5), "sex": values["sex"]}, scales=scales)
    seen = explore(X, y, sensitive_features={"sex": sex}, valuation=mixed, retrain=0)
    found = part_of(seen)
    assert found["performance"] is None
    assert {cell["performance_effect"] for cell in found["cells"]} == {None}
    assert seen.effects()["cells"]["performance_effect"].isna().all()


def test_entropies_have_no_effects(small):
    seen = explore(small.X, small.y, sensitive_features=small.z, valuation=small.valuation, retrain=0)
    assert all("effects" not in one for one in seen.to_dict()["attributes"])
    assert "What rows do to the model" not in seen.html()
    with pytest.raises(
        ValueError,
        match="The values of 'sex' are no effects, and nothing was measured: Nothing was measured, as no",
    ):
        seen.effects()
    with pytest.raises(ValueError, match="The values of 'origin' are no effects: nothing to draw"):
        seen.chart("effects", "origin")


def test_frames_hold_what_the_page_shows(case):
    seen = explored(case)
    found, frames = part_of(seen), seen.effects("sex")
    assert list(frames) == ["cells", "slices", "changes", "curve"]
    assert frames["cells"].to_dict("records") == found["cells"]
    assert frames["slices"]["slice"][0] == "job = nurse and hired = yes"
    for name in ("ratio_change", "measured_ratio_change", "measured_performance_error"):
        assert frames["slices"][name].isna().all()
    assert len(frames["changes"]) == len(frames["curve"]) == 0
    with pytest.raises(ValueError, match=r"`attribute` must be one of \['sex'\], got 'age'"):
        seen.effects("age")


@pytest.mark.parametrize("performance", ["tpr_at_fpr", "accuracy", "log_loss"])
def test_where_the_metrics_stand_is_what_the_models_said_of_rows_they_had_not_seen(performance):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1500, 3))
    z = np.where(X[:, 2] > 0, "b", "a")
    y = X[:, 0] + X[:, 2] + rng.normal(size=1500) > 1
    valuator = TreeInfluence(performance=performance, max_fpr=0.1, random_state=0)
    valuation = valuator.fit(X, y, sensitive_features={"z": z}).valuation_
    found = part_of(explore(X, y, sensitive_features={"z": z}, valuation=valuation, retrain=0))
    agreement = valuation.field("agreement", "y")
    scores = np.where(y, agreement, 1 - agreement)
    measured = evaluate(y, scores, sensitive_features=z, max_fpr=0.1)
    expected = {
        "tpr_at_fpr": ("TPR at 10 % FPR", measured["tpr"]),
        "accuracy": ("accuracy", (agreement >= 0.5).mean()),
        "log_loss": ("minus log-loss", np.log(agreement).mean()),
    }[performance]
    assert (found["ratio"], found["performance"]) == ("FPR ratio", expected[0])
    assert found["now"]["ratio"] == pytest.approx(measured["fpr_ratio"])
    assert found["now"]["performance"] == pytest.approx(expected[1])


def test_where_a_model_was_sure_and_wrong_the_log_loss_is_that_of_scikit_learn():
    y, z = np.tile([False, True], 50), np.repeat(["a", "b"], 50)
    agreement = np.where(np.arange(100) % 7 == 0, 0.0, 0.9)
    fields = {name: np.linspace(-1, 1, 100) for name in ("y", "z")}
    told = Provenance(
        "influence", settings={"performance": "log_loss", "fairness": "fpr_ratio", "max_fpr": 0.2}
    )
    valuation = Valuation(
        fields,
        agreement=dict.fromkeys(fields, agreement),
        provenance=told,
        scales=dict.fromkeys(fields, Scale("effect")),
    )
    found = part_of(
        explore(np.zeros((100, 1)), y, sensitive_features={"z": z}, valuation=valuation, retrain=0)
    )
    assert found["now"]["performance"] == pytest.approx(-log_loss(y, np.where(y, agreement, 1 - agreement)))
