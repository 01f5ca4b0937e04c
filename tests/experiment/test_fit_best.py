"""`Results.fit_best`: from a finished experiment to a model that can be kept."""

import copy

import numpy as np
import pandas as pd
import pytest
from sklearn.naive_bayes import GaussianNB
from tests.experiment.test_score_interventions import APPLICANTS, TABLE

from fado.experiment import Experiment, Results


def value_table(tmp_path):
    path = tmp_path / "data.parquet"
    table = copy.deepcopy(TABLE) | {
        "data": {"path": str(path), "target": "y", "protected": ["sex"], "drop": ["sex"]},
        "split": {"method": "random", "train": 0.5, "validation": 0.3, "test": 0.2},
        "valuation": {"bags": 5, "models": [{"n_estimators": 5}]},
        "interventions": {
            "rps": False, "uar": {"alphas": [0.5]}, "aimed": {"lines": [0.7, 0.8]}, "group_thresholds": True,
        },
    }  # fmt: skip
    table["models"]["count"] = 1
    table["evaluation"]["threshold"] = "validation"
    APPLICANTS.X.assign(y=APPLICANTS.y, sex=APPLICANTS.sex).to_parquet(path)
    return table


@pytest.fixture(scope="module")
def mixed(tmp_path_factory):
    folder = tmp_path_factory.mktemp("mixed")
    return Experiment(value_table(folder)).run(folder / "store", n_jobs=2, isolated=False)


@pytest.mark.parametrize("line", [0.05, 0.8])
def test_the_best_of_an_experiment_is_trained_again(mixed, line):
    best = mixed.fit_best("fpr_ratio", line)
    frame = mixed.frame
    alone = frame[(frame["intervention"] != "group thresholds") & (frame["validation_fpr_ratio"] >= line)]
    row = alone.sort_values(["validation_tpr", "validation_fpr_ratio"], ascending=False).index[0]
    tested = best.facts_.measured["test"]  # the card and the landscape are at one threshold
    for name in ("tpr", "fpr", "fpr_ratio", "selection_rate_ratio", "threshold"):
        assert best.metrics_[name] == frame[f"validation_{name}"][row]
        assert tested[name] == pytest.approx(frame[f"test_{name}"][row], nan_ok=True)
    assert best.facts_.intervention == frame["intervention"][row].replace("none", "")
    assert best.facts_.models == (frame["intervention"] != "group thresholds").sum()
    assert best.classes_.tolist() == [0, 1]


def of_one_intervention(results, name):
    """The results as if nothing else had been done."""
    only = copy.copy(results)
    theirs = results.frame["intervention"] == name
    assert theirs.any()
    only.frame = results.frame.assign(status=results.frame["status"].where(theirs))
    return only


def test_values_are_read_again_for_a_model_that_needs_them(mixed):
    best = of_one_intervention(mixed, "UAR").fit_best("fpr_ratio", 0.01)
    assert best.facts_.intervention == "UAR"
    (row,) = np.flatnonzero(mixed.frame["intervention"] == "UAR")
    assert best.metrics_["tpr"] == mixed.frame["validation_tpr"][row]
    assert best.sample_weight_ is not None
    # thresholds of groups are never chosen
    assert of_one_intervention(mixed, "group thresholds").fit_best("fpr_ratio", 0.01) is None


def test_what_no_model_reached_is_none_and_bad_asks_are_refused(mixed):
    assert mixed.fit_best("fnr_ratio", 1.0) is None
    with pytest.raises(ValueError, match="`ratio` must be 'fpr_ratio'"):
        mixed.fit_best("auc")
    with pytest.raises(ValueError, match=r"The experiment names its estimator, .*: do not pass"):
        mixed.fit_best("fpr_ratio", estimator=GaussianNB())
    alone = Results(mixed.frame, mixed.config, mixed.summary)
    with pytest.raises(ValueError, match="do not come from a store"):
        alone.fit_best("fpr_ratio")


def test_an_estimator_that_was_handed_over_is_handed_over_again(tmp_path):
    table = value_table(tmp_path)
    table["interventions"] = {"rps": False, "aimed": True}
    del table["models"]["space"]
    results = Experiment(table, estimator=GaussianNB(var_smoothing=1e-8)).run(tmp_path / "s", n_jobs=1)
    for other in (None, GaussianNB()):
        with pytest.raises(ValueError, match="was run with an estimator that was passed in Python"):
            results.fit_best("fpr_ratio", 0.05, estimator=other)
    best = results.fit_best("fpr_ratio", 0.05, estimator=GaussianNB(var_smoothing=1e-8))
    assert best.metrics_["tpr"] == results.frame["validation_tpr"].max()
    assert best.facts_.estimator == "GaussianNB"


def test_attributes_that_are_validated_apart_have_no_one_line(tmp_path):
    table = value_table(tmp_path)
    table["interventions"] = {"rps": False}
    rng = np.random.default_rng(0)
    frame = pd.read_parquet(tmp_path / "data.parquet").assign(town=rng.choice(["a", "b"], 5000))
    frame.to_parquet(tmp_path / "data.parquet")
    table["data"] |= {"protected": ["sex", "town"], "drop": ["sex", "town"]}
    table["evaluation"]["groups"] = "each"
    results = Experiment(table).run(tmp_path / "s", n_jobs=1)
    with pytest.raises(ValueError, match="compares the groups of each attribute"):
        results.fit_best("fpr_ratio", 0.05)
