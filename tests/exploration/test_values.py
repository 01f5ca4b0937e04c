import numpy as np
import pandas as pd
import pytest

from fado import Valuation, explore


@pytest.fixture(scope="module")
def sex(small):
    seen = explore(small.X, small.y, sensitive_features=small.z, valuation=small.valuation, retrain=0)
    return seen.to_dict()["attributes"][0]


@pytest.mark.parametrize(("key", "variable"), [("v_y", "y"), ("v_z", "sex")])
def test_distributions_per_group_and_label(small, sex, key, variable):
    cells = {(cell["group"], cell["label"]): cell for cell in sex["values"][key]}
    assert set(cells) == {(g, label) for g in "fm" for label in ("no", "yes")}
    for (group, label), cell in cells.items():
        rows = ((small.z["sex"] == group) & (small.y == label)).to_numpy()
        values = small.valuation[variable][rows]
        assert cell["rows"] == rows.sum()
        edges = np.arange(21) / 20 - 1e-9
        edges[-1] = 1.1
        assert cell["histogram"] == np.histogram(values, edges)[0].tolist()
        assert cell["quartiles"] == pytest.approx(np.quantile(values, [0.25, 0.5, 0.75]))
        assert cell["mean"] == pytest.approx(values.mean())
        assert cell["standard_error"] == pytest.approx(small.valuation.standard_error[variable][rows].mean())


def test_plane_counts_every_row_once(small, sex):
    counts = np.array(sex["plane"]["counts"])
    assert counts.sum() == 600
    v_y, v_z = small.valuation["y"], small.valuation["sex"]
    here = (v_y > 0.2499) & (v_y < 0.2999) & (v_z > 0.7499) & (v_z < 0.7999)
    assert counts[15, 5] == here.sum()


def half_entropy(share):
    return -(share * np.log2(share) + (1 - share) * np.log2(1 - share)) / 2


def test_corners(small, sex):
    v_y, v_z = small.valuation["y"], small.valuation["sex"]
    cut_y, cut_z = half_entropy((small.y == "yes").mean()), half_entropy((small.z["sex"] == "f").mean())
    corners = {(c["unsure_of_target"], c["unsure_of_attribute"]): c for c in sex["plane"]["corners"]}
    assert sum(corner["share"] for corner in corners.values()) == pytest.approx(1)
    for (unsure_y, unsure_z), corner in corners.items():
        rows = ((v_y >= cut_y) == unsure_y) & ((v_z >= cut_z) == unsure_z)
        assert corner["share"] == pytest.approx(rows.mean())
        groups = [rows[small.z["sex"] == group].mean() for group in "fm"]
        assert corner["share_per_group"] == pytest.approx(groups)
        assert corner["positive_rate"] == pytest.approx((small.y[rows] == "yes").mean())
        assert corner["standard_error_z"] == pytest.approx(small.valuation.standard_error["sex"][rows].mean())


def test_cells_under_ten_rows_are_left_out(small):
    y = small.y.copy()
    y[small.z["sex"] == "f"] = "no"
    y[np.flatnonzero(small.z["sex"] == "f")[:9]] = "yes"
    seen = explore(
        small.X, y, sensitive_features={"sex": small.z["sex"]}, valuation=small.valuation, retrain=0
    )
    cells = seen.to_dict()["attributes"][0]["values"]["v_y"]
    assert [(c["group"], c["label"]) for c in cells] == [("f", "no"), ("m", "no"), ("m", "yes")]


def test_whether_another_run_would_rank_rows_alike_is_estimated_per_group(small):
    seen = explore(small.X, small.y, sensitive_features=small.z, valuation=small.valuation, retrain=0)
    found = seen.to_dict()["stability"]
    frame = small.valuation.stability(sensitive_features=small.z)  # "origin" has a group of ten rows and more
    assert found["rows"] == frame.to_dict("records")
    least = frame.loc[frame["rank_agreement"].idxmin()]
    shown = {"y": "loan", "sex": "sex", "origin": "origin"}[least["column"]]
    where = "" if least["group"] == "all rows" else f" in “{least['group']}”"
    assert found["sentence"].startswith(
        "Rank correlation with values made again (1: the same order of rows): loan "
    )
    assert found["sentence"].endswith(
        f" Lowest: {least['rank_agreement']:.3g}, {shown}{where}, with other bags."
    )
    assert found["changes"] == {"bags": "another run of as many fits, estimated from the standard errors"}


def test_a_frame_of_stability_is_shown_as_it_was_measured(small):
    columns = ["column", "variation", "group", "rows", "rank_agreement", "top_overlap"]
    evil = "</script><script>alert(1)</script>"
    rows = [
        ("y", "seeds", "all rows", 600, 0.5, 0.25),
        ("sex", "encodings", evil, 180, 0.125, 0.5),
        ("sex", "encodings", "tiny", 9, 0.9, 0.5),
        ("other", "seeds", "all rows", 600, 0.1, 0.1),
    ]
    frame = pd.DataFrame(rows, columns=columns)
    frame.attrs = {"changes": {"seeds": "random_state=1"}, "notes": ["A note."]}
    asked = {"sensitive_features": {"sex": small.z["sex"]}, "valuation": small.valuation, "retrain": 0}
    seen = explore(small.X, small.y, stability=frame, **asked)
    assert seen.to_dict()["stability"] == {
        "sentence": "Rank correlation with values made again (1: the same order of rows): loan 0.5. Lowest: "
        f"0.125, sex in “{evil}”, with other encodings.",
        "rows": [dict(zip(columns, row, strict=True)) for row in rows[:2]],
        "changes": {"seeds": "random_state=1"},
        "notes": ["A note."],
    }
    assert "<script>alert" not in seen.html()
    assert "tiny" not in seen.html().split('id="data"')[1]
    with pytest.raises(TypeError, match=r"`stability` must be what `Valuation\.stability` gives, got dict"):
        explore(small.X, small.y, stability={}, **asked)


def test_where_standard_errors_tell_nothing_the_page_says_so_and_names_no_tiny_group(small):
    z = {"town": np.where(np.arange(600) < 4, "hamlet", "city")}
    names = {"y": np.linspace(0, 1, 600), "town": np.linspace(0, 1, 600)}
    asked = {"sensitive_features": z, "retrain": 0}
    found = explore(small.X, small.y, valuation=Valuation.from_values(names), **asked).to_dict()
    assert found["stability"]["sentence"] == "It is not known whether another run would rank rows alike."
    assert found["stability"]["rows"] == []
    assert "have no standard errors" in found["stability"]["notes"][0]
    told = Valuation(names, {name: np.full(600, 0.1) for name in names})
    found = explore(small.X, small.y, valuation=told, **asked).to_dict()["stability"]
    assert [(row["column"], row["group"], row["rows"]) for row in found["rows"]] == [
        (column, group, rows)
        for column in ("y", "town")
        for group, rows in (("all rows", 600), ("city", 596))
    ]
    assert "hamlet" not in str(found)
