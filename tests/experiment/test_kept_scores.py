"""Kept scores: exact, as safe as all else in a store, and measured again without a fit."""

import copy
import shutil
import sqlite3
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pytest
from tests.experiment.conftest import TINY

from fado.experiment import Experiment, Results
from fado.experiment._data import read_data
from fado.experiment._store import DATABASE, Store
from fado.experiment._training import Trainer
from fado.experiment._trial import Trial
from fado.metrics import evaluate

RECIPES = {"rps": False, "uar": {"alphas": [0.5]}}


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    """A finished run that keeps scores: its table, its store, its results."""
    table = copy.deepcopy(TINY)
    table["interventions"] = copy.deepcopy(RECIPES)
    table["evaluation"] |= {"keep_scores": True, "max_fpr": 0.2}
    store = tmp_path_factory.mktemp("kept") / "store"
    return table, store, Experiment(copy.deepcopy(table)).run(store, n_jobs=1, isolated=False)


@pytest.fixture
def store(kept, tmp_path):
    shutil.copytree(kept[1], tmp_path / "store")
    return tmp_path / "store"


def test_they_are_those_of_the_models(kept):
    table, _, results = kept
    config = Experiment(copy.deepcopy(table)).config
    data = read_data(config)
    trainer = Trainer(data, config)
    row = results.frame.loc[0]
    parameters = {name: row[name] for name in ("boosting_type", "n_estimators", "num_leaves", "random_state")}
    scores = trainer.scores(Trial("none", parameters=parameters))
    cut = len(data.parts["validation"])
    np.testing.assert_array_equal(results.scores(0), scores[cut:])  # to the bit
    np.testing.assert_array_equal(results.scores(results.frame.loc[0], "validation"), scores[:cut])


def test_measured_again_all_is_as_it_was(kept, monkeypatch):
    monkeypatch.setattr(Trainer, "scores", None)
    pd.testing.assert_frame_equal(kept[2].remeasure(), kept[2].frame, check_exact=True)
    loaded = Results.load(kept[1])
    pd.testing.assert_frame_equal(loaded.remeasure(), kept[2].frame, check_exact=True)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.UndefinedMetricWarning")
@pytest.mark.parametrize("asked", [{"max_fpr": 0.4}, {"budget": ("top_k", 60)}, {"threshold": 0.02}])
def test_another_budget_without_a_fit(kept, asked):
    table, _, results = kept
    data = read_data(Experiment(copy.deepcopy(table)).config)
    test = data.parts["test"]
    y, codes = data.positive[test], data.groups.codes[test]
    frame = results.remeasure(**asked)
    for row in frame.index:
        expected = evaluate(y, results.scores(row), sensitive_features=codes, **asked)
        told = {name: frame.loc[row, f"test_{name}"] for name in expected}
        assert told == pytest.approx(expected, rel=1e-12, nan_ok=True)


def test_other_metrics_and_another_threshold_without_a_fit(kept):
    frame = kept[2].remeasure(
        {"rate": lambda y_true, scores, groups, threshold: (scores >= threshold).mean()},
        threshold="validation",
    )
    assert (frame["test_threshold"] == frame["validation_threshold"]).all()
    assert frame["test_rate"].between(0, 1).all()
    odds = kept[2].remeasure(["equalized_odds_ratio"])
    expected = odds[["test_fpr_ratio", "test_tpr_ratio"]].min(axis=1, skipna=False)
    np.testing.assert_array_equal(odds["test_equalized_odds_ratio"], expected)


@pytest.mark.parametrize(
    ("asked", "match"),
    [
        ({"max_fpr": 0.1, "budget": ("top_k", 5)}, "all set the threshold: give one"),
        ({"threshold": "train"}, "`threshold` must be 'test', 'validation' or a number"),
        ({"metrics": ["accuracies"]}, "There is no metric 'accuracies'"),
        ({"metrics": {"tpr": max}}, "'tpr' is the name of a built-in metric"),
        ({"data": "other.csv"}, "`data` names a table, but the data of this experiment are not in a file"),
        ({"budget": ("top", 5)}, "`budget` must be of kind"),
    ],
)
def test_what_cannot_be_measured_is_told(kept, asked, match):
    with pytest.raises(ValueError, match=match):
        kept[2].remeasure(**asked)


def test_other_data_are_refused(table, tmp_path):
    frame = pd.DataFrame({"x": np.random.default_rng(0).random(600), "z": np.arange(600) % 2})
    frame["y"] = (frame["x"] + np.random.default_rng(1).random(600) > 1).astype(int)
    frame.to_csv(tmp_path / "a.csv", index=False)
    table["data"] = {"path": str(tmp_path / "a.csv"), "target": "y", "protected": "z"}
    table["interventions"] = {"rps": False, "rw": False}
    table["evaluation"] = {"keep_scores": True}
    results = Experiment(table).run(tmp_path / "s", n_jobs=1)
    (tmp_path / "a.csv").rename(tmp_path / "b.csv")
    moved = results.remeasure(data=tmp_path / "b.csv")
    pd.testing.assert_frame_equal(moved, results.frame, check_exact=True)
    frame.loc[5, "x"] += 1
    frame.to_csv(tmp_path / "a.csv", index=False)
    with pytest.raises(ValueError, match=r"The data are not those of the store .* pass them as `data`"):
        results.remeasure()


def test_scores_of_many_models_open_the_store_once(kept, store, monkeypatch):
    results, opened, reading = Results.load(store), [], Store.reading
    expected = {row: results.scores(row) for row in results.frame.index[:4]}
    monkeypatch.setattr(Store, "reading", lambda path: opened.append(path) or reading(path))
    with results.opened():
        for row, scores in expected.items():
            np.testing.assert_array_equal(results.scores(row), scores)
        with ThreadPoolExecutor(1) as pool:  # SQLite's connections are of one thread
            np.testing.assert_array_equal(pool.submit(results.scores, 0).result(), expected[0])
    assert len(opened) == 2
    results.scores(0)
    assert len(opened) == 3


def test_without_kept_scores_a_sentence_says_so(undisturbed):
    results = undisturbed[1]
    for asked in (lambda: results.scores(0), results.remeasure):
        with pytest.raises(ValueError, match=r"run the experiment with `evaluation.keep_scores = true`"):
            asked()
    lost = results.frame.index[results.frame["status"] == "no training set"][0]
    with pytest.raises(ValueError, match="is not done, and has no scores"):
        results.scores(lost)
    with pytest.raises(ValueError, match="`row` must be a label of the frame's index, 0 to 29, got 30"):
        results.scores(30)
    with pytest.raises(ValueError, match="`part` must be 'validation' or 'test', got 'train'"):
        results.scores(0, "train")
    alone = Results(results.frame, results.config, results.summary)
    with pytest.raises(ValueError, match="do not come from a store"):
        alone.scores(0)


@pytest.mark.parametrize(
    "harm",
    [
        "DELETE FROM scores",
        "UPDATE scores SET packed = substr(packed, 1, 20)",
        "UPDATE scores SET packed = 3",
    ],
)
def test_damaged_scores_are_named_with_the_store_that_is_to_be_deleted(store, harm):
    connection = sqlite3.connect(store / DATABASE)
    with connection:
        connection.execute(harm)
    connection.close()
    with pytest.raises(ValueError, match=r"The store .* is damaged \(.*\): delete it, and run"):
        Results.load(store).scores(0)
