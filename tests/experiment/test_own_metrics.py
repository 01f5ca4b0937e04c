"""Metrics of the user's own: functions by name, and names that a configuration may say."""

import copy
import math

import numpy as np
import pytest
from sklearn.metrics import f1_score

from fado.experiment import Experiment, Results, _metrics, register_metric
from fado.experiment._config import config_from
from fado.experiment._data import read_data
from fado.experiment._metrics import metric_names


@pytest.fixture
def own(table, monkeypatch):
    """The tiny experiment with few interventions, and a registry that forgets."""
    monkeypatch.setattr(_metrics, "_FUNCTIONS", copy.copy(_metrics._FUNCTIONS))
    table["interventions"] = {"rps": False}
    table["evaluation"] = {"max_fpr": 0.3, "keep_scores": True}
    return table


def f1(y_true, scores, groups, threshold):
    return f1_score(y_true, scores >= threshold)


def test_functions_get_labels_scores_and_groups(own, tmp_path):
    seen = []

    def size(y_true, scores, groups):
        seen.append((y_true, scores, groups))
        return 100 + len(scores)

    results = Experiment(own, metrics={"f1": f1, "size": size}).run(tmp_path, n_jobs=1)
    frame, data = results.frame, read_data(results.config)
    columns = list(frame)
    assert columns.index("validation_size") == columns.index("validation_f1") + 1
    assert columns[-4:] == ["test_f1", "test_size", "status", "error"]
    for part in ("validation", "test"):
        assert (frame[f"{part}_size"] == 100 + len(data.parts[part])).all()
    test = data.parts["test"]
    for row in frame.index:
        decided = results.scores(row) >= frame.loc[row, "test_threshold"]
        assert frame.loc[row, "test_f1"] == f1_score(data.positive[test], decided)
    y_true, scores, groups = seen[1]
    assert (y_true == data.positive[test]).all()
    assert len(scores) == len(test)
    assert (groups == np.array(data.groups.names)[data.groups.codes[test]]).all()


def test_in_a_process_of_its_own(own, tmp_path):
    given = {"least": lambda y_true, scores, groups: scores.min()}
    frame = Experiment(copy.deepcopy(own), metrics=given).run(tmp_path / "a", n_jobs=2, isolated=True).frame
    here = Experiment(own, metrics=given).run(tmp_path / "b", n_jobs=1).frame
    assert (frame["test_least"] == here["test_least"]).all()


def test_equalized_odds_by_name(own, tmp_path):
    own["evaluation"] = {"max_fpr": 0.3, "metrics": ["equalized_odds_ratio"], "groups": "each"}
    own["data"] |= {"protected": ["customer_age>=50", "income>=0.5"], "rows": 8000}
    own["interventions"] = {"rps": False, "rw": False}
    results = Experiment(own).run(tmp_path, n_jobs=1)
    for part in ("validation", "test"):
        least = results.frame[[f"{part}_fpr_ratio", f"{part}_tpr_ratio"]].min(axis=1, skipna=False)
        np.testing.assert_array_equal(results.frame[f"{part}_equalized_odds_ratio"], least)
    assert results.frame["test_equalized_odds_ratio"].notna().any()
    assert results.settings["evaluation.metrics"] == ["equalized_odds_ratio"]
    Results.load(tmp_path)  # it is registered, and nothing is said


def test_a_registered_metric_gets_weights_and_metrics(own, tmp_path):
    @register_metric("checked")
    def checked(y_true, scores, groups, *, sample_weight, metrics):
        assert sample_weight is None
        return metrics["tpr"] * 2

    assert metric_names()[-1] == "checked"
    own["evaluation"]["metrics"] = ["checked"]
    frame = Experiment(own).run(tmp_path, n_jobs=1).frame
    assert (frame["test_checked"] == 2 * frame["test_tpr"]).all()


@pytest.mark.parametrize(
    ("function", "told"),
    [
        (lambda y, s, g: 1 / 0, "ValueError: The metric 'own' failed with ZeroDivisionError: division by"),
        (lambda y, s, g: "much", "ValueError: The metric 'own' must return a number or NaN, got much."),
        (lambda y, s, g: math.inf, "ValueError: The metric 'own' must return a number or NaN, got inf."),
        (lambda y, s, g: None, "ValueError: The metric 'own' must return a number or NaN, got None."),
        (lambda: 1, "ValueError: The metric 'own' failed with TypeError"),
    ],
)
def test_a_function_that_fails_fails_the_fit(own, tmp_path, function, told):
    frame = Experiment(own, metrics={"own": function}).run(tmp_path, n_jobs=1).frame
    assert (frame["status"] == "failed").all()
    assert frame["error"].str.startswith(told).all()


def test_a_function_may_return_nan_and_cannot_change_what_others_see(own, tmp_path):
    def greedy(y_true, scores, groups):
        y_true[:] = True
        scores[:] = 1.0
        return math.nan

    frame = Experiment(copy.deepcopy(own)).run(tmp_path / "a", n_jobs=1).frame
    other = Experiment(own, metrics={"greedy": greedy, "f1": f1}).run(tmp_path / "b", n_jobs=1).frame
    np.testing.assert_array_equal(frame["test_tpr"], other["test_tpr"])
    assert (other["test_f1"] < 1).all()
    assert (other["status"] == "done").all()
    assert other["test_greedy"].isna().all()


def test_a_store_shows_metrics_that_are_not_registered_and_says_so(own, tmp_path):
    results = Experiment(copy.deepcopy(own), metrics={"f1": f1}).run(tmp_path, n_jobs=1)
    with pytest.warns(UserWarning, match=r"has metrics that are not registered here, f1: they are shown"):
        loaded = Results.load(tmp_path)
    assert loaded.frame.equals(results.frame)
    with pytest.raises(ValueError, match=r"There is no metric 'f1'.* pass it in Python"):
        loaded.remeasure()
    assert loaded.remeasure({"f1": f1}).equals(results.frame)
    with pytest.raises(ValueError, match=r"`evaluation.metrics` = \['f1'\], the configuration does not name"):
        Experiment(own).run(tmp_path, n_jobs=1)


@pytest.mark.parametrize("name", ["tpr", "fpr_ratio", "a b", "", "f1_low", "1st", 3])
def test_names_that_no_column_can_have(own, name):
    with pytest.raises(ValueError, match=r"A metric's name must be a word|is the name of a built-in metric"):
        Experiment(own, metrics={name: f1})


def test_names_are_checked(own):
    own["evaluation"]["metrics"] = ["f1"]
    with pytest.raises(
        ValueError, match=r"`evaluation.metrics\[0\]` must be 'equalized_odds_ratio', got 'f1'"
    ):
        config_from(own)
    with pytest.raises(TypeError, match="The metric 'f1' must be a function, got 3"):
        Experiment(own, metrics={"f1": 3})
    with pytest.raises(ValueError, match="There is a metric called 'equalized_odds_ratio' already"):
        register_metric("equalized_odds_ratio")(f1)
