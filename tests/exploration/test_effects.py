"""Effects of rows on the model, as values that were passed say them."""

import json

import numpy as np
import pandas as pd
import pytest
from tests.exploration.conftest import Case

from fado import Valuation
from fado.exploration._effects import cell_effects
from fado.exploration._groups import show_groups
from fado.tabular import Groups, mean_one
from fado.valuation import Provenance, Scale


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
    return Case(X, y, {"sex": sex}, Valuation.from_values({"y": v_y, "sex": v_z}))


@pytest.fixture(scope="module")
def seen(case):
    return case.seen()


@pytest.fixture(scope="module")
def effects(seen):
    return seen.to_dict()["attributes"][0]["effects"]


def valued(case, values):
    return case._replace(valuation=Valuation.from_values(values))


def test_cells_add_up_and_small_ones_are_left_out():
    groups = show_groups(Groups(np.repeat([0, 1], [30, 30]), ("f", "m"), ("f", "m")))
    codes = np.concatenate([np.repeat([0, 1], [21, 9]), np.repeat([0, 1], [10, 20])])
    labels = show_groups(Groups(codes, ("n", "p"), ("n", "p")))
    on_ratio, on_performance = np.arange(60.0), np.repeat([1.0, -2.0], 30)
    cells = cell_effects(groups, labels, on_ratio, on_performance)
    assert [tuple(cell.values()) for cell in cells] == [
        ("f", "n", 21, 210.0, 21.0),
        ("m", "n", 10, 345.0, -20.0),
        ("m", "p", 20, 990.0, -40.0),
    ]


def test_the_page_s_part_holds_the_sums_of_the_values(case, effects):
    cells = {(cell["group"], cell["label"]): cell for cell in effects["cells"]}
    assert list(cells) == [("f", "no"), ("f", "yes"), ("m", "no"), ("m", "yes")]
    for (group, label), cell in cells.items():
        rows = (case.z["sex"] == group) & (case.y == label).to_numpy()
        assert cell["rows"] == rows.sum()
        assert cell["ratio_effect"] == pytest.approx(case.valuation["sex"][rows].sum())
        assert cell["performance_effect"] == pytest.approx(case.valuation["y"][rows].sum())
    assert effects["harmful"] == (case.valuation["sex"] < 0).sum()
    assert (effects["curve"], effects["measured"]) == ([], None)
    assert effects["reason"] == "Nothing was measured, since no model was retrained (`retrain=0`)."
    assert (effects["ratio"], effects["performance"]) == ("ratio", "performance")
    assert "other" not in json.dumps(effects)  # a group of nine rows is not named


@pytest.mark.parametrize("max_rows", [50_000, 500])
def test_the_planted_slice_is_found_in_a_sample_and_counted_in_all_rows(case, max_rows):
    first = case.part(max_rows=max_rows)["effects"]["slices"][0]
    assert first["conditions"] == ["job = nurse", "hired = yes"]
    assert first["rows"] == ((case.X["job"] == "nurse") & (case.y == "yes")).sum()
    assert first["p_value"] < 1e-6
    assert first["measured"] is None


def test_effects_are_per_unit_of_weight(case):
    weights = np.random.default_rng(1).integers(0, 4, 1000) * 1.0
    weighted = {name: case.valuation[name] * mean_one(weights) for name in ("y", "sex")}
    assert case.part(sample_weight=weights)["effects"] == valued(case, weighted).part()["effects"]


def test_rows_are_numbers_and_hold_nothing_unless_asked_for(case, effects):
    worst = np.argsort(case.valuation["sex"])[:10].tolist()
    assert [row["row"] for row in effects["rows"]] == worst
    assert all(set(row) == {"row", "ratio_effect"} for row in effects["rows"])
    shown = case.part(show_rows=True)["effects"]["rows"][0]
    assert shown["label"] == case.y[worst[0]]
    assert dict(shown["features"]) == {name: str(case.X[name][worst[0]]) for name in case.X}


def test_rows_without_a_value_keep_the_numbers_of_the_others(case):
    values = np.where(np.isin(np.arange(1000), [0, 500]), np.nan, case.valuation["sex"])
    rows = valued(case, {"y": case.valuation["y"], "sex": values}).part()["effects"]["rows"]
    assert [row["row"] for row in rows] == np.argsort(values)[:10].tolist()


def test_values_of_the_target_may_be_no_effects(case):
    values = {"y": np.full(1000, 0.5), "sex": case.valuation["sex"]}
    mixed = Valuation.from_values(values, scales={"y": Scale("how unsure", 0.0, 1.0, None)})
    seen = case._replace(valuation=mixed).seen()
    found = seen.to_dict()["attributes"][0]["effects"]
    assert found["performance"] is None
    assert {cell["performance_effect"] for cell in found["cells"]} == {None}
    assert seen.effects()["cells"]["performance_effect"].isna().all()


def test_entropies_have_no_effects(seen_small):
    assert all("effects" not in one for one in seen_small.to_dict()["attributes"])
    assert "Effects of rows on the model" not in seen_small.html()
    message = r"The values of 'sex' are not effects\. Nothing was measured, since no"
    with pytest.raises(ValueError, match=message):
        seen_small.effects()


def test_frames_hold_what_the_page_shows(seen, effects):
    frames = seen.effects("sex")
    assert list(frames) == ["cells", "slices", "changes", "curve"]
    assert frames["cells"].to_dict("records") == effects["cells"]
    assert frames["slices"]["slice"][0] == "job = nurse and hired = yes"
    for name in ("measured_ratio_change", "measured_performance_error"):
        assert frames["slices"][name].isna().all()
    assert len(frames["changes"]) == len(frames["curve"]) == 0
    with pytest.raises(ValueError, match=r"`attribute` must be one of \['sex'\], got 'age'"):
        seen.effects("age")


@pytest.mark.parametrize(
    ("metric", "budget", "title"),
    [
        ("tpr_at_fpr", 0.1, "TPR at 10 % FPR"),
        ("tpr_at_fpr", "unknown", "TPR"),
        ("log_loss", 0.1, "minus log-loss"),
        ("accuracy", 0.1, "accuracy"),
    ],
)
def test_metrics_are_named_by_the_meaning_of_effects(case, metric, budget, title):
    meanings = {"y": metric, "sex": "selection_rate_ratio"}
    scales = {name: Scale(f"effect of the row's weight on {one}") for name, one in meanings.items()}
    values = {name: case.valuation[name] for name in meanings}
    made = Provenance("other", settings={"max_fpr": budget})
    valuation = Valuation(values, scales=scales, provenance=made)
    found = case._replace(valuation=valuation).part()["effects"]
    assert (found["ratio"], found["performance"]) == ("selection-rate ratio", title)
