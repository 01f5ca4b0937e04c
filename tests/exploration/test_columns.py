import numpy as np
import pandas as pd
import pytest

from fado import Valuation, explore
from fado.exploration._values import explained
from fado.tabular import Variable


def columns_of(seen, attribute=0):
    return seen.to_dict()["attributes"][attribute]["columns"]


def test_gains_are_those_of_the_models_that_made_the_values(planted):
    part = columns_of(
        explore(planted.X, planted.y, sensitive_features=planted.z, valuation=planted.valuation, retrain=0)
    )
    told = planted.valuation.metadata["split_gains"]
    assert part["basis"] == "gains"
    rows = {row["name"]: row for row in part["columns"]}
    for position, name in enumerate(planted.X.columns):
        assert rows[name]["gain_y"] == told["shares"]["y"][position]
        assert rows[name]["gain_z"] == told["shares"]["sex"][position]
    assert rows["y"]["is_target"]
    assert rows["y"]["gain_z"] == told["shares"]["sex"][-1]
    order = [row["gain_z"] for row in part["columns"]]
    assert order == sorted(order, reverse=True)


def test_values_without_gains_are_explained_column_by_column(small):
    part = columns_of(
        explore(small.X, small.y, sensitive_features=small.z, valuation=small.valuation, retrain=0)
    )
    assert part["basis"] == "alone"
    assert {row["name"] for row in part["columns"]} == {"age", "job", "kids", "loan"}
    assert all(row["gain_z"] is None for row in part["columns"])


def test_gains_of_other_columns_are_not_used(planted):
    fewer = planted.X.drop(columns="noise")
    part = columns_of(
        explore(fewer, planted.y, sensitive_features=planted.z, valuation=planted.valuation, retrain=0)
    )
    assert part["basis"] == "alone"
    assert part["columns"][0]["name"] == "club"


def test_a_column_kept_from_the_models_comes_last_and_is_marked(small):
    frame = small.X.assign(sex=small.z["sex"])
    part = columns_of(explore(frame, small.y, sensitive_features="sex", valuation=small.valuation, retrain=0))
    assert part["columns"][-1]["name"] == "sex"
    assert part["columns"][-1]["left_out"]
    assert part["columns"][-1]["alone_z"] == pytest.approx(1)


def test_explained_variance_of_classes_and_numbers():
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 3, 500)
    numbers = codes * 1.0 + rng.normal(size=500)
    within = sum(((numbers[codes == c] - numbers[codes == c].mean()) ** 2).sum() for c in range(3))
    total = ((numbers - numbers.mean()) ** 2).sum()
    expected = 1 - within / total * 499 / 497
    assert explained(codes, Variable("v", "continuous", numbers)) == pytest.approx(expected)
    labels = (numbers > 1).astype(np.int32)
    shares = np.array([labels[codes == c].mean() for c in range(3)])[codes]
    left = (shares * (1 - shares)).mean() / (labels.mean() * (1 - labels.mean()))
    expected = 1 - left * 499 / 497
    assert explained(codes, Variable("v", "classes", labels, (0, 1))) == pytest.approx(expected)


def test_a_matrix_without_columns_is_explored_without_them(small):
    from scipy.sparse import csr_matrix

    X = csr_matrix(small.X[["age", "kids"]].to_numpy(dtype=float))
    values = Valuation.from_probabilities(np.linspace(0, 1, 600), {"sex": np.linspace(1, 0, 600)})
    part = columns_of(
        explore(X, small.y, sensitive_features={"sex": small.z["sex"]}, valuation=values, retrain=0)
    )
    assert [row["name"] for row in part["columns"]] == ["loan"]


def test_of_many_columns_those_that_matter_most_are_drawn(made_up):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(300, 125)), columns=[f"c{j}" for j in range(125)])
    z, y = np.where(X["c99"] > 0, "f", "m"), X["c7"] > 0
    part = columns_of(explore(X, y, sensitive_features={"z": z}, valuation=made_up(300, ["z"]), retrain=0))
    assert len(part["columns"]) == 126  # and the target
    assert len(part["drawn"]) == 20
    assert part["drawn"] == sorted(part["drawn"])
    assert part["columns"][0]["name"] == "c99"
    drawn = [part["columns"][place] for place in part["drawn"]]
    assert {"c99", "c7"} <= {column["name"] for column in drawn}
    most = {key: max(column[key] or 0.0 for column in part["columns"]) for key in ("alone_z", "alone_y")}
    parts = [max((one[key] or 0.0) / most[key] for key in most) for one in part["columns"]]
    others = [own for place, own in enumerate(parts) if place not in part["drawn"]]
    assert min(parts[place] for place in part["drawn"]) >= max(others)
