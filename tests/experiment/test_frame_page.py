"""The page that tells of the frame names every column, and none that there is not."""

import re
from itertools import chain
from pathlib import Path

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from fado import find_frontier
from fado.experiment import Experiment
from fado.interventions import intervention_entries
from fado.utility import utility_names

PAGE = Path(__file__).parents[2] / "docs" / "frame.md"
# Lines of tables whose second cell is a type.
ROW = re.compile(r"^\| `(\w+)` \| (text|number|whole number) \| (.+) \|$", re.MULTILINE)
EVERYTHING = {
    "uaps": {"alphas": [0.5]},
    "uar": {"alphas": [0.5]},
    "corrected_uar": {"alphas": [0.5]},
    "fairlearn_grid": {"points": [0.5]},
    "aimed": True,
    "student": True,
    "group_thresholds": True,
}
NOTHING = {"rps": False, "rw": False}
KINDS = {"text": "O", "number": "f", "whole number": "i"}


def run(folder, protected, interventions, evaluation):
    config = {
        "data": {"generator": "account_fraud", "rows": 4000, "target": "fraud_bool", "protected": protected},
        "split": {"method": "random", "train": 0.5, "validation": 0.25, "test": 0.25},
        "valuation": {"bags": 5, "models": [{"n_estimators": 3}]},
        "interventions": interventions,
        "models": {"count": 1, "space": {"n_estimators": 5, "num_leaves": 7}},
        "evaluation": {"metrics": ["equalized_odds_ratio"], "bootstrap": 5, **evaluation},
    }
    return Experiment(config).run(folder, n_jobs=1, isolated=False)


@pytest.fixture(scope="module")
def frames(tmp_path_factory):
    """Of every intervention, of each attribute for itself, and of a search that shows few rows first."""
    folder = tmp_path_factory.mktemp("frames")
    rng = np.random.default_rng(0)
    X, z = rng.normal(size=(600, 3)), rng.choice(["a", "b"], 600)
    y = X[:, 0] + (z == "a") + rng.normal(size=600) > 1
    models = {"estimator": LogisticRegression(), "space": {"C": {"log_uniform": [0.1, 1.0]}}}
    search = find_frontier(X, y, sensitive_features={"z": z}, max_fits=6, max_fpr=0.2, n_jobs=1, **models)
    whole = run(folder / "whole", "customer_age>=50", EVERYTHING, {"top_k": 50})
    each = run(folder / "each", ["customer_age>=50", "income>=0.5"], NOTHING, {"groups": "each"})
    assert set(whole.frame["intervention"]) == {entry.name for entry in intervention_entries()}
    return [whole.frame, each.frame, search.frame]


def plain(column):
    """A column's name as the page has it: without its part, its attribute and its end."""
    name = re.sub(r"\[.*\]", "", column)
    measured = re.fullmatch(r"(?:validation|test)_(\w+)", name)
    return re.sub(r"_(low|high)$", "", measured[1]) if measured else name


TOLD = ROW.findall(PAGE.read_text(encoding="utf-8"))


def test_every_column_is_told_and_no_other_in_its_order_and_type(frames):
    kinds = {name: KINDS[kind] for name, kind, _ in TOLD}
    assert len(kinds) == len(TOLD)
    parameters = {"n_estimators", "num_leaves", "random_state", "C"}
    assert set(kinds) == {plain(column) for column in chain.from_iterable(frames)} - parameters
    for frame in frames:
        known = list(dict.fromkeys(plain(column) for column in frame if plain(column) in kinds))
        assert known == [name for name in kinds if name in known]
        for column in frame:
            assert frame[column].dtype.kind == kinds.get(plain(column), frame[column].dtype.kind), column


def test_what_texts_may_be_is_told_in_full():
    told = {name: re.findall(r"`([^`]+)`", meaning) for name, _, meaning in TOLD}
    assert told["intervention"] == [entry.name for entry in intervention_entries()]
    assert told["utility"] == list(utility_names())
