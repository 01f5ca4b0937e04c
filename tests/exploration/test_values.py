import numpy as np
import pytest

from fado import explore


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
