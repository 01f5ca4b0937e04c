"""The public name: what is planted is found; the page and its charts show the summary."""

import json
import re

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from tests.exploration.conftest import Case

from fado import OutOfBagEntropy, Valuation


def test_what_is_planted_comes_first(planted, seen_planted):
    part, women = seen_planted.to_dict()["attributes"][0], planted.X["sex"] == "f"
    assert part["columns"]["columns"][0]["name"] == "club"
    assert part["columns"]["sentence"].startswith("“club” (")

    bias = part["biases"][1]
    assert bias["number"] == pytest.approx(planted.y[~women].mean() - planted.y[women].mean())
    assert bias["low"] > 0.05
    assert "in “m” and" in bias["sentence"]

    one, rows = part["suspicious"]["slices"][0], women & (planted.X["region"] == "north")
    assert one["conditions"] == ["region = north", "sex = f"]
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


def test_the_same_data_in_any_library_give_the_same_page(small, seen_small):
    shuffled = small.X.set_index(1_000 + np.random.default_rng(0).permutation(600))
    for X in (pl.from_pandas(small.X), pa.Table.from_pandas(small.X), shuffled):
        assert small._replace(X=X).seen().to_dict() == seen_small.to_dict()


def test_values_are_computed_if_there_are_none(small):
    seen = Case(small.X, small.y, {"sex": small.z["sex"]}).seen()
    assert seen.to_dict()["about"]["algorithm"] == "out-of-bag"
    assert repr(seen) == "Exploration of 600 rows by sex"


def test_rows_without_a_value_are_left_out(small):
    arrays = {
        part: {name: column.to_numpy(copy=True) for name, column in getattr(small.valuation, part).items()}
        for part in ("values", "standard_error", "counts", "label_probability")
    }
    arrays["values"]["sex"][[3, 8]] = np.nan
    summary = small._replace(valuation=Valuation(**arrays)).seen().to_dict()
    assert summary["about"]["rows_without_value"] == 2
    kept = np.delete(np.arange(600), [3, 8])
    cut = {name: column[kept] for name, column in small.z.items()}
    expected = Case(small.X.iloc[kept], small.y[kept], cut, small.valuation.take(kept)).part()
    part = summary["attributes"][0]
    assert part["biases"] == expected["biases"]
    assert part["alpha"] == expected["alpha"]
    listed, shorter = (
        [row["row"] for row in one["suspicious"]["rows"][0]["rows"]] for one in (part, expected)
    )
    assert listed == kept[shorter].tolist()


@pytest.mark.filterwarnings("ignore:Protected attribute 'wealth' is unknown")
def test_what_is_unknown_is_none_and_never_nan(small):
    wealth = np.where(np.arange(600) % 5 == 0, np.nan, np.random.default_rng(0).normal(size=600))
    one_sided = np.where(np.arange(600) < 300, "a", "b")
    y = np.where(np.arange(600) < 300, "no", small.y)  # no positives in one group: no AUC there
    z = {"wealth": wealth, "side": one_sided}
    valuation = OutOfBagEntropy(n_bags=7, random_state=0).fit(small.X, y, sensitive_features=z).valuation_
    assert valuation.standard_error["y"].isna().any()
    data = Case(small.X, y, z, valuation).seen().to_dict()
    json.dumps(data, allow_nan=False)
    separability = data["attributes"][1]["biases"][2]
    assert [bar["number"] is None for bar in separability["bars"]] == [True, False]
    assert separability["number"] is None
    assert data["attributes"][0]["groups"][-1]["name"] == "unknown"


def test_slices_are_searched_in_a_sample(small):
    summary = small.seen(max_rows=200).to_dict()
    assert summary["about"]["rows_searched"] == 200
    assert sum(group["rows"] for group in summary["attributes"][0]["groups"]) == 600


def test_missing_protected_values_are_a_group(small):
    sex = small.z["sex"].where(np.arange(600) % 4 > 0, None)
    assert [group["name"] for group in small._replace(z={"sex": sex}).part()["groups"]] == [
        "f",
        "m",
        "unknown",
    ]


@pytest.fixture(scope="module")
def tiny():
    values = Valuation.from_probabilities([0.5] * 30, {"z": [0.5] * 30})
    return Case(pd.DataFrame({"x": np.arange(30.0)}), [0, 1] * 15, {"z": list("ab") * 15}, values)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"sensitive_features": None}, ValueError, "no protected attribute to explore"),
        (
            {"valuation": Valuation.from_probabilities([0.5], {"z": [0.5]})},
            ValueError,
            "has 1 rows and X has 30",
        ),
        (
            {"valuation": Valuation.from_probabilities([0.5] * 30, dict.fromkeys("vw", [0.5] * 30))},
            ValueError,
            "no values for 'z'",
        ),
        ({"valuation": [1, 2]}, TypeError, "must be a Valuation, got list"),
        ({"pos_label": 7}, ValueError, "`pos_label` must be one of the labels 0 and 1, got 7"),
        ({"max_rows": 0}, ValueError, "`max_rows` must be a positive whole number, got 0"),
        ({"min_group_size": -1}, ValueError, "`min_group_size` must be at least 0, got -1"),
        ({"min_group_size": 2.5}, TypeError, "`min_group_size` must be a whole number, got 2.5"),
        ({"stability": {}}, TypeError, r"`stability` must be what `Valuation\.stability` gives, got dict"),
        ({"estimator": OutOfBagEntropy()}, TypeError, "`estimator` must be"),
        ({"retrain": True}, TypeError, "`retrain` must be a number of fits, 0 for none, got True"),
        ({"retrain": 5}, ValueError, "`retrain` must be 0, or a number of fits from 12 to 100,000, got 5"),
        ({"retrain": 10**12}, ValueError, "from 12 to 100,000, got 1000000000000"),
    ],
)
def test_bad_input_is_refused(tiny, change, error, message):
    with pytest.raises(error, match=message):
        tiny.seen(**change)


def test_a_positive_label_for_a_continuous_target_is_refused(small):
    with pytest.raises(ValueError, match="this one is continuous"):
        small._replace(y=small.X["age"] * 1.0).seen(pos_label=1)


def test_constant_values_are_explored(tiny):
    setting = tiny.part()["alpha"]["utilities"]["linear"]["settings"][10]
    assert setting["slices"] == {"highest": [], "lowest": []}
    assert setting["weights"]["effective_rows"] == pytest.approx(30)


def test_weights_are_said_to_count_in_models_alone(small, seen_small):
    plain, weighted = seen_small.to_dict(), small.seen(sample_weight=np.arange(1, 601)).to_dict()
    assert (plain["about"]["weights_given"], weighted["about"]["weights_given"]) == (False, True)
    assert weighted["attributes"] == plain["attributes"]


def test_the_page_holds_the_summary_to_six_digits(seen_small):
    def rounded(value):
        if isinstance(value, dict):
            return {key: rounded(entry) for key, entry in value.items()}
        if isinstance(value, list):
            return [rounded(entry) for entry in value]
        return float(f"{value:.6g}") if isinstance(value, float) else value

    data = re.search(r'<script type="application/json" id="data">(.*?)</script>', seen_small.html(), re.S)[1]
    assert json.loads(data) == rounded(seen_small.to_dict())


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
    seen = Case(X, rng.integers(0, 2, n_rows), z, values).seen(max_rows=2_000)
    assert len(seen.html().encode()) < 3_000_000
