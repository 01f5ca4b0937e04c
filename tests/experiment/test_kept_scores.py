"""Kept scores: exact, as safe as all else in a store, and measured again without a fit."""

import copy
import shutil

import numpy as np
import pandas as pd
import pytest
from tests.experiment.conftest import TINY

from fado.experiment import Experiment, Results
from fado.experiment.run import Bench, read_data, run_experiment
from fado.experiment.search import Recipe, Trial
from fado.experiment.store import Store
from fado.experiment.store._scores import read_scores, write_scores
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


def test_a_file_gives_back_every_bit(tmp_path):
    scores = np.random.default_rng(0).random(5000)
    write_scores(tmp_path / "a", "0" * 32, scores, 2000)
    found = read_scores(tmp_path / "a", "0" * 32)
    np.testing.assert_array_equal(np.concatenate([found["validation"], found["test"]]), scores)
    assert len(found["validation"]) == 2000
    assert read_scores(tmp_path / "a", "1" * 32) is None
    assert read_scores(tmp_path / "none", "0" * 32) is None
    whole = bytearray((tmp_path / "a").read_bytes())
    whole[100] ^= 1
    (tmp_path / "a").write_bytes(bytes(whole))
    assert read_scores(tmp_path / "a", "0" * 32) is None


def test_they_are_those_of_the_models(kept):
    table, _, results = kept
    config = Experiment(copy.deepcopy(table)).config
    data = read_data(config)
    bench = Bench.of(data, {}, config, 1)
    row = results.frame.loc[0]
    parameters = {name: row[name] for name in ("boosting_type", "n_estimators", "num_leaves", "random_state")}
    scores = bench.scores(Recipe("none"), parameters)
    cut = len(data.parts["validation"])
    np.testing.assert_array_equal(results.scores(0), scores[cut:])
    np.testing.assert_array_equal(results.scores(results.frame.loc[0], "validation"), scores[:cut])


def test_measured_again_all_is_as_it_was(kept, monkeypatch):
    monkeypatch.setattr(Bench, "scores", None)
    pd.testing.assert_frame_equal(kept[2].remeasure(), kept[2].frame, check_exact=True)
    loaded = Results.load(kept[1])
    pd.testing.assert_frame_equal(loaded.remeasure(), kept[2].frame, check_exact=True)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.UndefinedMetricWarning")
@pytest.mark.parametrize(
    ("asked", "given"),
    [
        ({"max_fpr": 0.4}, {"max_fpr": 0.4}),
        ({"budget": ("top_k", 60)}, {"budget": ("top_k", 60)}),
        ({"threshold": 0.02}, {"threshold": 0.02}),
    ],
)
def test_another_budget_without_a_fit(kept, asked, given):
    table, _, results = kept
    data = read_data(Experiment(copy.deepcopy(table)).config)
    test = data.parts["test"]
    frame = results.remeasure(**asked)
    for row in frame.index:
        expected = evaluate(
            data.positive[test], results.scores(row), sensitive_features=data.groups.codes[test], **given
        )
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
        ({"metrics": {"tpr": max}}, "'tpr' is the name of a metric"),
        ({"data": "other.csv"}, "`data` names a table, and those of this experiment are not in a file"),
        ({"budget": ("top", 5)}, "`budget` must be of kind"),
    ],
)
def test_what_cannot_be_measured_is_told(kept, asked, match):
    with pytest.raises(ValueError, match=match):
        kept[2].remeasure(**asked)


def test_other_data_are_refused(table, tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.random(600), "z": rng.integers(0, 2, 600)})
    frame["y"] = (frame["x"] + rng.random(600) > 1).astype(int)
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
    with pytest.raises(ValueError, match=r"The data are not those of the store .* name them by `data`"):
        results.remeasure()


def test_without_kept_scores_a_sentence_says_so(undisturbed):
    results = undisturbed[1]
    for asked in (lambda: results.scores(0), results.remeasure):
        with pytest.raises(ValueError, match=r"run the experiment with `evaluation.keep_scores = true`"):
            asked()
    assert not (undisturbed[0] / "store" / "scores").exists()
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


@pytest.mark.parametrize("harm", ["delete", "alter", "cut"])
def test_damaged_scores_are_made_again(kept, store, harm):
    path = sorted((store / "scores").iterdir())[0]
    before = path.read_bytes()
    if harm == "delete":
        path.unlink()
    else:
        path.write_bytes(before[:-10] if harm == "cut" else before[:200] + b"?" + before[201:])
    with pytest.warns(UserWarning, match=r"1 file\(s\) of the store are missing or damaged"):
        results = Experiment(copy.deepcopy(kept[0])).run(store, n_jobs=1)
    pd.testing.assert_frame_equal(results.frame, kept[2].frame, check_exact=True)
    assert path.read_bytes() == before


def test_a_ledger_made_anew_takes_scores_in_again(kept, store):
    (store / "ledger.sqlite").write_bytes(b"no ledger")
    times = {path.name: path.stat().st_mtime_ns for path in (store / "scores").iterdir()}
    with pytest.warns(UserWarning, match=r"a new one was made from the files of \d+ fit"):
        results = Experiment(copy.deepcopy(kept[0])).run(store, n_jobs=1)
    pd.testing.assert_frame_equal(results.remeasure(), kept[2].frame, check_exact=True)
    assert {path.name: path.stat().st_mtime_ns for path in (store / "scores").iterdir()} == times


def test_a_store_with_scores_of_other_fits_is_read_and_no_further(kept, store):
    files = sorted((store / "scores").iterdir())
    shutil.copy(files[0], files[1])
    results = Results.load(store)
    wrong = 0
    for row in results.frame.index:
        try:
            results.scores(row)
        except ValueError as error:
            assert "A file of scores in the store" in str(error)  # noqa: PT017
            wrong += 1
    assert wrong == 1


class Halving:
    """Proposes the models again whose scores of validation rows spread the most, with more trees."""

    def __init__(self):
        self.lengths = set()

    def ask(self, outcomes, n=None):
        if not outcomes:
            return [Trial("none", {}, j, {"n_estimators": j + 2, "random_state": 0}) for j in range(4)]
        if len(outcomes) > 4:
            return []
        self.lengths |= {len(outcome.scores()) for outcome in outcomes}
        best = max(outcomes, key=lambda outcome: np.std(outcome.scores()))
        return [Trial("RW", {}, 4, {**best.trial.parameters, "n_estimators": 10})]


def test_a_proposer_sees_scores(kept, tmp_path):
    config, proposer = Experiment(copy.deepcopy(kept[0])).config, Halving()
    run_experiment(config, tmp_path / "s", n_jobs=2, proposer=proposer)
    assert proposer.lengths == {len(read_data(config).parts["validation"])}
    frame = Results.load(tmp_path / "s").frame
    assert frame["status"].tolist() == ["done"] * 5
    assert frame["n_estimators"].tolist() == [2, 3, 4, 5, 10]
    with Store.reading(tmp_path / "s") as opened:
        assert sum(kind == "scores" for kind, _ in opened.records) == 5
