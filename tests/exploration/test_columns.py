"""Columns that reveal the group: measured on rows that models have not seen."""

import json
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_matrix
from tests.exploration.conftest import Case, made_up

from fado import Valuation
from fado.exploration._columns import _Held, _reliance


def columns_of(*case, **settings):
    """Give the part about columns, and what the page answers first about them."""
    part = Case(*case).part(**settings)
    return part["columns"], next(one["sentence"] for one in part["answers"] if one["id"] == "giveaway")


def table(n_rows, seed, strength):
    """A text of 700 random days, a club that follows the sex in a share of the rows, and noise."""
    rng = np.random.default_rng(seed)
    sex = rng.choice(["f", "m"], n_rows)
    told = rng.random(n_rows) < strength
    club = np.where(told, np.where(sex == "f", "choir", "rowing"), rng.choice(["choir", "rowing"], n_rows))
    X = pd.DataFrame({"day": [f"d{day}" for day in rng.integers(0, 700, n_rows)], "club": club})
    return X.assign(noise=rng.normal(size=n_rows)), pd.Series(rng.random(n_rows) < 0.4, name="hired"), sex


@pytest.mark.parametrize("seed", range(3))
def test_a_text_of_random_days_reveals_nothing_and_a_true_proxy_is_named(seed):
    X, y, sex = table(3000, seed, 0.3)
    part, answer = columns_of(X, y, {"sex": sex}, made_up(3000, ["sex"]))
    rows = {row["name"]: row["reveals"] for row in part["columns"]}
    assert [name for name, one in rows.items() if one["clear"]] == ["club"]
    assert rows["club"]["share"] - rows["club"]["margin"] > 0
    assert part["sentence"].startswith("“club” (")
    assert " reveals sex most (in brackets: the share of the uncertainty about the group" in part["sentence"]
    assert part["sentence"] in answer
    assert "day" not in answer
    assert "gain" not in json.dumps(part)


def test_where_the_group_cannot_be_told_no_column_is_named():
    X, y, sex = table(3000, 5, 0.0)
    part, answer = columns_of(X, y, {"sex": sex}, made_up(3000, ["sex"]))
    assert part["sentence"].startswith("Models do not predict sex from the columns beyond chance")
    assert all(row["reveals"] == {"share": None, "margin": None, "clear": False} for row in part["columns"])
    assert answer.startswith("“sex” is not clearly predicted from the features and the target: an AUC of 0.")
    assert not any(f"“{name}”" in answer for name in X)


def test_a_perfect_proxy_has_all_of_the_uncertainty():
    """Shuffled, it names a random group: the error is that of knowing only the groups' sizes."""
    rng = np.random.default_rng(0)
    sex = rng.choice(["f", "m"], 4000, p=[0.2, 0.8])
    X = pd.DataFrame({"club": np.where(sex == "f", "choir", "rowing"), "noise": rng.normal(size=4000)})
    values = Valuation.from_probabilities(rng.random(4000), {"sex": rng.random(4000)})
    part, _ = columns_of(X, rng.random(4000) < 0.4, {"sex": sex}, values)
    assert part["columns"][0]["name"] == "club"
    assert part["columns"][0]["reveals"]["share"] == pytest.approx(1, abs=0.05)


def test_shares_are_those_worked_out_by_hand():
    """Two folds of two rows: shuffled, the errors of three rows grow by 0.2, 0.4 and 0.2."""
    folds = [
        _Held(np.array([0, 2]), np.array([0.1, 0.1]), np.array([0.5, 0.5]), {3: np.array([0.2, 0.4])}),
        _Held(np.array([1, 3]), np.array([0.2, 0.1]), np.array([0.5, 0.5]), {3: np.array([0.2, 0.0])}),
    ]
    alone = _reliance(folds, SimpleNamespace(blocks=None))
    margin = 1.959964 * np.sqrt(0.08) / 4 / 0.5  # 0.277
    assert alone.of(3) == {"share": pytest.approx(0.4), "margin": pytest.approx(margin), "clear": True}
    assert alone.of(0) == {"share": 0.0, "margin": 0.0, "clear": False}
    together = _reliance(folds, SimpleNamespace(blocks=np.array([0, 0, 1, 1])))  # 0.2 + 0.2, 0.4 + 0.0
    assert together.of(3)["margin"] == 0.0
    worse = [one._replace(errors=np.array([0.6, 0.5])) for one in folds]
    assert _reliance(worse, SimpleNamespace(blocks=None)).figures is None


def test_a_column_kept_from_the_models_comes_last_and_is_marked(small):
    part, _ = columns_of(small.X.assign(sex=small.z["sex"]), small.y, "sex", small.valuation)
    assert part["columns"][-1]["name"] == "sex"
    assert part["columns"][-1]["left_out"]
    assert part["columns"][-1]["reveals"]["share"] is None


def test_a_number_is_revealed_by_the_column_it_follows():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(1500, 3)), columns=["a", "b", "c"])
    z = np.where(np.arange(1500) % 50 == 0, np.nan, X["b"] + 0.3 * rng.normal(size=1500))
    part, _ = columns_of(X, X["a"] > 0, {"z": z}, made_up(1500, ["z"]))
    assert part["sentence"].startswith("“b” (")


def test_a_matrix_without_columns_is_explored_without_them(small):
    X = csr_matrix(small.X[["age", "kids"]].to_numpy(dtype=float))
    values = Valuation.from_probabilities(np.linspace(0, 1, 600), {"sex": np.linspace(1, 0, 600)})
    part, _ = columns_of(X, small.y, {"sex": small.z["sex"]}, values)
    assert (part["columns"], part["drawn"]) == ([], [])


def test_of_many_columns_those_that_are_clear_are_drawn():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(300, 125)), columns=[f"c{j}" for j in range(125)])
    part, _ = columns_of(X, X["c7"] > 0, {"z": np.where(X["c99"] > 0, "f", "m")}, made_up(300, ["z"]))
    assert len(part["columns"]) == 126  # and the target
    assert part["columns"][0]["name"] == "c99"
    assert {part["columns"][place]["name"] for place in part["drawn"]} == {"c99", "c7"}


def test_workers_change_no_bit():
    X, y, sex = table(1000, 0, 0.5)
    one, two = (columns_of(X, y, {"sex": sex}, made_up(1000, ["sex"]), n_jobs=n) for n in (1, 2))
    assert one == two
