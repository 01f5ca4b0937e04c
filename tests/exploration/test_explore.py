"""The public name: what is planted is found; the page and its charts show the summary."""

import json
import re

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from fado import OutOfBagEntropy, Valuation, explore


def test_the_planted_proxy_is_named_first(seen_planted):
    columns = seen_planted.to_dict()["attributes"][0]["columns"]
    assert columns["columns"][0]["name"] == "club"
    assert columns["sentence"].startswith("“club” (")


def test_the_planted_prevalence_gap_is_sized(planted, seen_planted):
    bias = seen_planted.to_dict()["attributes"][0]["biases"][1]
    rates = [planted.y[planted.sex == group].mean() for group in "mf"]
    assert bias["number"] == pytest.approx(rates[0] - rates[1])
    assert bias["low"] > 0.05
    assert "in “m” and" in bias["sentence"]


def test_the_planted_flipped_slice_is_named_first_and_described_over_all_rows(planted, seen_planted):
    one = seen_planted.to_dict()["attributes"][0]["suspicious"]["slices"][0]
    assert one["conditions"] == ["region = north", "sex = f"]
    rows = (planted.X["region"] == "north").to_numpy() & (planted.sex == "f")
    assert one["share"] == pytest.approx(rows.mean())
    assert one["mean_v_y"] == pytest.approx(planted.valuation["y"][rows].mean())
    assert one["mean_v_z"] == pytest.approx(planted.valuation["sex"][rows].mean())
    assert one["outcome"] == pytest.approx(planted.y[rows].mean())
    assert one["outcome_per_group"] == [pytest.approx(planted.y[rows].mean()), None]


def test_the_summary_is_plain_data_and_a_copy(seen_planted):
    data = seen_planted.to_dict()
    assert json.loads(json.dumps(data, allow_nan=False)) == data
    data["attributes"].clear()
    assert seen_planted.to_dict()["attributes"]


def summary_of(small, **more):
    settings = {
        "y": small.y,
        "sensitive_features": small.z,
        "valuation": small.valuation,
        "retrain": 0,
    } | more
    return explore(small.X, **settings).to_dict()


def test_the_same_data_in_any_library_give_the_same_page(small):
    def summary(X):
        y, z = small.y, small.z
        return explore(X, y, sensitive_features=z, valuation=small.valuation, retrain=0).to_dict()

    expected = summary(small.X)
    shuffled = small.X.set_index(1_000 + np.random.default_rng(0).permutation(600))
    for X in (pl.from_pandas(small.X), pa.Table.from_pandas(small.X), shuffled):
        assert summary(X) == expected


def test_values_are_computed_if_there_are_none(small):
    seen = explore(small.X, small.y, sensitive_features={"sex": small.z["sex"]}, retrain=0)
    assert seen.to_dict()["about"]["algorithm"] == "out-of-bag"
    assert repr(seen) == "Exploration of 600 rows by sex"


def test_rows_without_a_value_are_left_out(small):
    arrays = {
        part: {name: column.to_numpy(copy=True) for name, column in getattr(small.valuation, part).items()}
        for part in ("values", "standard_error", "counts", "label_probability")
    }
    arrays["values"]["sex"][[3, 8]] = np.nan
    seen = summary_of(small, valuation=Valuation(**arrays))
    kept = np.delete(np.arange(600), [3, 8])
    cut = {name: column[kept] for name, column in small.z.items()}
    expected = explore(
        small.X.iloc[kept],
        small.y[kept],
        sensitive_features=cut,
        valuation=small.valuation.take(kept),
        retrain=0,
    ).to_dict()
    assert seen["about"]["rows_without_value"] == 2
    assert seen["attributes"][0]["biases"] == expected["attributes"][0]["biases"]
    assert seen["attributes"][0]["alpha"] == expected["attributes"][0]["alpha"]
    listed = [row["row"] for row in seen["attributes"][0]["suspicious"]["rows"][0]["rows"]]
    shorter = [row["row"] for row in expected["attributes"][0]["suspicious"]["rows"][0]["rows"]]
    assert listed == kept[shorter].tolist()


@pytest.mark.filterwarnings("ignore:Protected attribute 'wealth' is unknown")
def test_what_is_unknown_is_none_and_never_nan(small):
    wealth = np.where(np.arange(600) % 5 == 0, np.nan, np.random.default_rng(0).normal(size=600))
    one_sided = np.where(np.arange(600) < 300, "a", "b")
    y = np.where(np.arange(600) < 300, "no", small.y)  # no positives in one group: no AUC there
    z = {"wealth": wealth, "side": one_sided}
    valuation = OutOfBagEntropy(n_bags=7, random_state=0).fit(small.X, y, sensitive_features=z).valuation_
    assert valuation.standard_error["y"].isna().any()
    data = explore(small.X, y, sensitive_features=z, valuation=valuation, retrain=0).to_dict()
    json.dumps(data, allow_nan=False)
    separability = data["attributes"][1]["biases"][2]
    assert [bar["number"] is None for bar in separability["bars"]] == [True, False]
    assert separability["number"] is None
    assert data["attributes"][0]["groups"][-1]["name"] == "unknown"


def test_slices_are_searched_in_a_sample(small):
    found = summary_of(small, max_rows=200)
    assert found["about"]["rows_searched"] == 200
    assert sum(group["rows"] for group in found["attributes"][0]["groups"]) == 600


def test_missing_protected_values_are_a_group(small):
    sex = small.z["sex"].where(np.arange(600) % 4 > 0, None)
    found = summary_of(small, sensitive_features={"sex": sex})
    assert [group["name"] for group in found["attributes"][0]["groups"]] == ["f", "m", "unknown"]


def test_no_small_group_is_anywhere_in_the_summary(small):
    origin = small.z["origin"].where(small.z["origin"] != "c", "a")
    origin.iloc[:9] = "a secret"
    assert "a secret" not in json.dumps(summary_of(small, sensitive_features={"origin": origin}))


def small_table():
    X = pd.DataFrame({"x": np.arange(30.0)})
    return X, [0, 1] * 15, {"z": list("ab") * 15}, Valuation.from_probabilities([0.5] * 30, {"z": [0.5] * 30})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"sensitive_features": None}, "no protected attribute to explore"),
        ({"valuation": Valuation.from_probabilities([0.5], {"z": [0.5]})}, "has 1 rows and X has 30"),
        (
            {"valuation": Valuation.from_probabilities([0.5] * 30, dict.fromkeys("vw", [0.5] * 30))},
            "no values for 'z'",
        ),
        ({"pos_label": 7}, "`pos_label` must be one of the labels 0 and 1, got 7"),
        ({"max_rows": 0}, "`max_rows` must be a positive whole number, got 0"),
    ],
)
def test_bad_input_is_refused(change, message):
    X, y, z, valuation = small_table()
    with pytest.raises(ValueError, match=message):
        explore(X, y, **{"sensitive_features": z, "valuation": valuation, **change}, retrain=0)


def test_something_other_than_a_valuation_is_refused():
    X, y, z, _ = small_table()
    with pytest.raises(TypeError, match="must be a Valuation, got list"):
        explore(X, y, sensitive_features=z, valuation=[1, 2], retrain=0)


def test_a_positive_label_for_a_continuous_target_is_refused(small):
    with pytest.raises(ValueError, match="this one is continuous"):
        summary_of(small, y=small.X["age"] * 1.0, pos_label=1)


def test_constant_values_are_explored():
    X, y, z, valuation = small_table()
    part = explore(X, y, sensitive_features=z, valuation=valuation, retrain=0).to_dict()["attributes"][0]
    setting = part["alpha"]["utilities"]["linear"]["settings"][10]
    assert setting["slices"] == {"highest": [], "lowest": []}
    assert setting["weights"]["effective_rows"] == pytest.approx(30)


def test_weights_are_said_to_count_in_models_alone(small):
    plain, weighted = summary_of(small), summary_of(small, sample_weight=np.arange(1, 601))
    assert (plain["about"]["weights_given"], weighted["about"]["weights_given"]) == (False, True)
    assert weighted["attributes"] == plain["attributes"]


@pytest.fixture(scope="module")
def text(seen_small):
    return seen_small.html()


def embedded(text):
    return re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.S)[1]


def test_the_page_holds_the_summary_to_six_digits(seen_small, text):
    summary = seen_small.to_dict()

    def rounded(value):
        if isinstance(value, dict):
            return {key: rounded(entry) for key, entry in value.items()}
        if isinstance(value, list):
            return [rounded(entry) for entry in value]
        return float(f"{value:.6g}") if isinstance(value, float) else value

    assert json.loads(embedded(text)) == rounded(summary)


def test_the_page_is_written_whole(tmp_path, seen_small):
    seen_small.write_html(tmp_path / "page.html")
    assert (tmp_path / "page.html").read_text(encoding="utf-8") == seen_small.html()
    assert [file.name for file in tmp_path.iterdir()] == ["page.html"]
    with pytest.raises(FileNotFoundError, match="does not exist"):
        seen_small.write_html(tmp_path / "missing" / "page.html")


def test_a_notebook_shows_the_page_in_a_frame_of_its_own(seen_small):
    frame = seen_small._repr_html_()
    assert frame.startswith('<iframe sandbox="allow-scripts" srcdoc="&lt;!doctype html&gt;')
    assert frame.count("<") == 2


def test_many_rows_attributes_and_groups_stay_under_three_megabytes():
    rng = np.random.default_rng(0)
    n_rows = 20_000
    X = pd.DataFrame({f"column {j}": rng.integers(0, 40, n_rows) for j in range(6)})
    z = {f"z{k}": rng.integers(0, 15, n_rows) for k in range(3)}
    values = Valuation.from_probabilities(rng.random(n_rows), {name: rng.random(n_rows) for name in z})
    seen = explore(
        X, rng.integers(0, 2, n_rows), sensitive_features=z, valuation=values, max_rows=2_000, retrain=0
    )
    assert len(seen.html().encode()) < 3_000_000
