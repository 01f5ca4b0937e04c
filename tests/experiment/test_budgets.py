"""Budgets beside the false-positive rate: what decides the threshold, and who is compared."""

import numpy as np
import pytest

from fado.experiment import Experiment
from fado.experiment._config import config_from
from fado.metrics import Budget


def small(table, **evaluation):
    table["interventions"] = {"rps": False}
    table["evaluation"] = evaluation
    return table


@pytest.mark.parametrize(
    ("evaluation", "budget"),
    [
        ({}, Budget("fpr", 0.05)),
        ({"max_fpr": 0.1}, Budget("fpr", 0.1)),
        ({"max_selection_rate": 0.02}, Budget("selection_rate", 0.02)),
        ({"top_k": 50}, Budget("top_k", 50)),
        ({"fixed_threshold": 1}, Budget("threshold", 1.0)),
    ],
)
def test_a_configuration_has_one(table, evaluation, budget):
    config = config_from(small(table, **evaluation))
    assert config.evaluation.budget == budget
    told = {name: value for name, value in config.flat().items() if name.startswith("evaluation")}
    expected = {"evaluation.threshold": "test", "evaluation.bootstrap": 0}
    if not evaluation:
        expected["evaluation.max_fpr"] = 0.05
    assert told == expected | {f"evaluation.{name}": value for name, value in evaluation.items()}


@pytest.mark.parametrize(
    ("evaluation", "match"),
    [
        ({"max_fpr": 0.1, "top_k": 5}, "`evaluation.max_fpr` and `evaluation.top_k` both set the threshold"),
        ({"max_selection_rate": 1.0}, r"`evaluation.max_selection_rate` must be a number in \(0, 1\)"),
        ({"top_k": 0}, "`evaluation.top_k` must be a whole number of at least 1"),
        ({"top_k": 2.5}, "`evaluation.top_k` must be a whole number"),
        ({"fixed_threshold": "half"}, "`evaluation.fixed_threshold` must be a number, got 'half'"),
        ({"fixed_threshold": float("nan")}, "`evaluation.fixed_threshold` must be a number, got nan"),
        ({"top_kk": 5}, "did you mean 'top_k'"),
    ],
)
def test_what_is_none_is_refused(table, evaluation, match):
    with pytest.raises(ValueError, match=match):
        config_from(small(table, **evaluation))


def test_rows_of_highest_score(table, tmp_path):
    config = small(table, top_k=40, bootstrap=20, keep_scores=True)
    results = Experiment(config).run(tmp_path, n_jobs=1)
    frame = results.frame
    assert {"test_selected", "validation_selected", "test_selection_rate_low"} <= set(frame)
    assert "test_selected_low" not in frame
    for row in frame.index:
        scores = results.scores(row)
        threshold = frame.loc[row, "test_threshold"]
        assert frame.loc[row, "test_selected"] == (scores >= threshold).sum() <= 40
        assert frame.loc[row, "test_selection_rate"] == (scores >= threshold).mean()
        below = scores[scores < threshold]
        assert (scores >= below.max()).sum() > 40  # no lower threshold keeps it
    assert len(results.pareto("selection_rate_ratio"))


def test_a_fixed_threshold_keeps_every_model(table, tmp_path):
    results = Experiment(small(table, fixed_threshold=0.01)).run(tmp_path, n_jobs=1)
    assert (results.frame[["test_threshold", "validation_threshold"]] == 0.01).all(axis=None)
    points = results.comparable_points("selection_rate_ratio")
    defined = results.frame["test_selection_rate_ratio"].notna()
    assert (~np.isnan(points).any(axis=1) == defined).all()


def test_models_beyond_the_budget_are_not_compared(table, tmp_path):
    config = small(table, max_selection_rate=0.1, threshold="validation")
    results = Experiment(config).run(tmp_path / "validation", n_jobs=1)
    beyond = (results.frame["test_selection_rate"] > 0.1).to_numpy()
    points = results.comparable_points("selection_rate_ratio")
    assert np.isnan(points[beyond]).all()
    assert not np.isnan(points[~beyond]).any()
    assert 0 < beyond.sum() < len(beyond)
    table["evaluation"].pop("threshold")
    frame = Experiment(table).run(tmp_path / "test", n_jobs=1).frame
    assert (frame["test_selection_rate"] <= 0.1).all()
    assert (frame["test_fpr"] > 0.05).any()
    assert "test_selected" not in frame
