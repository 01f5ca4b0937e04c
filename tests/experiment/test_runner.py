"""The runner: the same results for any number of workers, equal to those of hand-written code."""

import pickle
import threading

import numpy as np
import pandas as pd
import pytest
from lightgbm import LGBMClassifier

from fado import LinearUtility, OutOfBagEntropy, UtilityAwarePrevalenceSampler, UtilityAwareReweigher
from fado.experiment import Experiment, Results
from fado.experiment._data import read_data
from fado.experiment._runner import run_experiment
from fado.experiment._store import Store
from fado.experiment._training import Trainer
from fado.experiment._trial import Trial
from fado.metrics import evaluate


@pytest.mark.parametrize("n_jobs", [2, 4])
def test_any_number_of_workers_gives_the_same_frame(undisturbed, table, tmp_path, n_jobs):
    results = Experiment(table).run(tmp_path / "store", n_jobs=n_jobs)
    pd.testing.assert_frame_equal(results.frame, undisturbed[1].frame, check_exact=True)


def test_a_second_run_does_nothing_and_reports_the_same_to_the_byte(
    undisturbed, table, tmp_path, monkeypatch
):
    monkeypatch.setattr(Trainer, "run", None)
    monkeypatch.setattr("fado.experiment._runner._value", None)
    folder, first = undisturbed
    results = Experiment(table).run(folder / "store", n_jobs=1)
    pd.testing.assert_frame_equal(results.frame, first.frame, check_exact=True)
    results.report(tmp_path / "again.html")
    assert (tmp_path / "again.html").read_bytes() == (folder / "report.html").read_bytes()


def test_the_frame_lists_every_setting_and_shares_fits(undisturbed):
    folder, results = undisturbed
    frame = results.frame
    assert frame["intervention"].value_counts().to_dict() == {
        "UAR": 16, "UAPS": 8, "none": 2, "RPS": 2, "RW": 2
    }  # fmt: skip
    lost = frame[(frame["utility"] == "difference") & (frame["alpha"] == 0) & (frame["scaling"] == "none")]
    assert (lost["status"] == "no training set").all()
    assert lost["error"].str.contains("No utility is above 0").all()
    assert (frame.drop(lost.index)["status"] == "done").all()
    # UAPS: 2 of 4 differ; UAR: 3 of 4 per scaling (linear 0, both 1, difference 0), one of them impossible.
    assert frame.drop(lost.index)["test_tpr"].notna().all()
    with Store.reading(folder / "store") as store:
        fits = {trial.fit for trial in store.trials if trial.fit}
    assert len(fits) == 2 * (3 + 2 + 3 + 2)
    # at alpha 0 both utilities are one
    uaps = frame[(frame["intervention"] == "UAPS") & (frame["alpha"] == 0)]
    measured = [name for name in frame.columns if name.startswith(("validation_", "test_"))]
    one, other = (uaps.loc[uaps["utility"] == name, measured] for name in ("linear", "cobb-douglas"))
    np.testing.assert_array_equal(one, other)


def by_hand(table, parameters, intervention):
    """Train and measure one model with the libraries' own classes."""
    data = read_data(Experiment(table).config)
    frame = data.problem.table.to_pandas()
    train, test = data.parts["train"], data.parts["test"]
    old = pd.Series(data.problem.protected[0].labels == 1)
    valuator = OutOfBagEntropy(
        LGBMClassifier(n_estimators=5), n_bags=5, random_state=0, z_exclude=["customer_age"]
    )
    X, y, z = frame.iloc[train], data.positive[train], old.iloc[train]
    valuation = valuator.fit(X, y, sensitive_features={"customer_age>=50": z}).valuation_
    rows, weights = intervention(X, y, z, valuation)
    model = LGBMClassifier(**parameters, verbosity=-1, n_jobs=1)
    model.fit(X.iloc[rows], y[rows], sample_weight=None if weights is None else weights[rows])
    scores = model.predict_proba(frame.iloc[test])[:, 1]
    return evaluate(data.positive[test], scores, sensitive_features=old.iloc[test])


def untouched(X, y, z, valuation):
    return np.arange(len(y)), None


def reweighed(X, y, z, valuation):
    reweigher = UtilityAwareReweigher(LinearUtility(alpha=1.0))
    return np.arange(len(y)), reweigher.fit(X, y, sensitive_features=z, valuation=valuation).sample_weight_


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.UndefinedMetricWarning")
def test_models_equal_those_of_hand_written_code(undisturbed, table):
    """The bins are cut on the training part, as LightGBM itself would: not a bit differs."""
    uar = "intervention == 'UAR' and utility == 'linear' and alpha == 1 and scaling == 'minmax'"
    names = ["boosting_type", "n_estimators", "num_leaves", "random_state"]
    frame = undisturbed[1].frame
    for intervention, query in ((untouched, "intervention == 'none'"), (reweighed, uar)):
        for row in frame.query(query).to_dict("records"):
            expected = by_hand(table, {name: row[name] for name in names}, intervention)
            told = {name: row[f"test_{name}"] for name in expected}
            assert told == pytest.approx(expected, abs=1e-12, nan_ok=True)
    kept = []

    def sampled(X, y, z, valuation):
        sampler = UtilityAwarePrevalenceSampler(LinearUtility(alpha=1.0), random_state=0)
        sampler.fit(X, y, sensitive_features=z, valuation=valuation)
        kept.append(len(sampler.sample_indices_))
        return untouched(X, y, z, valuation)

    by_hand(table, {"n_estimators": 1}, sampled)
    assert set(frame.query("intervention == 'UAPS' and alpha == 1")["training_rows"]) == set(kept)


def test_the_threshold_may_come_from_validation(table, tmp_path):
    table["evaluation"] = {"threshold": "validation", "max_fpr": 0.1}
    table["interventions"] = {}
    frame = Experiment(table).run(tmp_path / "s", n_jobs=1).frame
    assert (frame["test_threshold"] == frame["validation_threshold"]).all()
    assert (frame["validation_fpr"] <= 0.1).all()


def failing(monkeypatch, error):
    """Let two fits of one intervention fail."""
    original, lock, errors = Trainer.scores, threading.Lock(), [error, error]

    def scores(self, trial, *more):
        with lock:
            fails = errors.pop() if trial.intervention == "RW" and errors else None
        if fails:
            raise fails
        return original(self, trial, *more)

    monkeypatch.setattr(Trainer, "scores", scores)


def test_a_fit_that_fails_is_recorded_and_can_be_run_again(undisturbed, table, tmp_path, monkeypatch):
    with monkeypatch.context() as patched:
        failing(patched, RuntimeError("no luck"))
        frame = Experiment(table).run(tmp_path / "s", n_jobs=2).frame
    failed = frame[frame["status"] == "failed"]
    assert failed["intervention"].tolist() == ["RW", "RW"]
    assert failed["error"].tolist() == ["RuntimeError: no luck"] * 2
    assert failed["test_tpr"].isna().all()
    again = Experiment(table).run(tmp_path / "s", n_jobs=1).frame
    assert (again["status"] == "failed").sum() == 2
    mended = Experiment(table).run(tmp_path / "s", n_jobs=1, retry_failed=True).frame
    pd.testing.assert_frame_equal(mended, undisturbed[1].frame, check_exact=True)


def test_a_fit_out_of_memory_is_tried_again_alone(undisturbed, table, tmp_path, monkeypatch):
    failing(monkeypatch, MemoryError("std::bad_alloc"))
    frame = Experiment(table).run(tmp_path / "s", n_jobs=2).frame
    pd.testing.assert_frame_equal(frame, undisturbed[1].frame, check_exact=True)


def test_a_fit_that_is_late_is_given_up(table, tmp_path):
    table["models"] |= {"deadline": 1e-6}
    table["interventions"] = {"rps": False, "rw": False}
    frame = Experiment(table).run(tmp_path / "s", n_jobs=1).frame
    assert frame["error"].str.startswith("TimeoutError: The fit took longer than `models.deadline`").all()


def test_constant_scores_reach_no_frontier(table, tmp_path):
    table["models"]["space"] = {"n_estimators": 1, "min_child_samples": 100_000}
    table["interventions"] = {}
    results = Experiment(table).run(tmp_path / "s", n_jobs=1)
    assert (results.frame["status"] == "done").all()
    assert results.frame["test_tpr"].isna().all()
    assert len(results.pareto("fpr_ratio")) == 0
    assert len(results.select("fpr_ratio", 0.0)) == 0
    assert (results.hypervolume("fpr_ratio")["hypervolume"] == 0).all()
    results.report(tmp_path / "r.html")


def test_a_failed_write_ends_the_fits_before_the_store_is_let_go(table, tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("fado.experiment._store._compressed", full)
    table["evaluation"]["keep_scores"] = True
    with pytest.raises(OSError, match="No space left") as caught:  # it keeps the traceback and all it holds
        Experiment(table).run(tmp_path / "store", n_jobs=2)
    assert caught.traceback
    assert not [thread.name for thread in threading.enumerate() if thread.name.startswith("fado")]


class Doubling:
    """Proposes a model of twice the trees as long as there is room."""

    def __init__(self):
        self.rounds = []

    def ask(self, outcomes):
        self.rounds.append([(outcome.status, outcome.metrics) for outcome in outcomes])
        trees = 2 * outcomes[-1].parameters["n_estimators"] if outcomes else 2
        parameters = {"n_estimators": trees, "random_state": 0}
        return [Trial("RW", {}, len(outcomes), parameters)] if trees <= 8 else []


def test_a_proposer_is_asked_again_with_what_came_of_it(table, tmp_path):
    config, first, second = Experiment(table).config, Doubling(), Doubling()
    run_experiment(config, tmp_path / "s", n_jobs=1, proposer=first)
    frame = Results.load(tmp_path / "s").frame
    measured = [name for name in frame if name.startswith(("validation_", "test_"))]
    told = frame[measured].to_dict("records")
    assert [len(outcomes) for outcomes in first.rounds] == [0, 1, 2, 3]
    assert frame[["intervention", "model", "n_estimators", "status"]].to_numpy().tolist() == [
        ["RW", 0, 2, "done"], ["RW", 1, 4, "done"], ["RW", 2, 8, "done"]
    ]  # fmt: skip
    run_experiment(config, tmp_path / "s", n_jobs=1, proposer=second)
    assert [len(outcomes) for outcomes in second.rounds] == [3]
    for rounds in (first.rounds, second.rounds):
        assert [status for status, _ in rounds[-1]] == ["done"] * 3
        for (_, metrics), expected in zip(rounds[-1], told, strict=True):
            assert metrics == pytest.approx(expected, rel=0, abs=0, nan_ok=True)
    pd.testing.assert_frame_equal(Results.load(tmp_path / "s").frame, frame, check_exact=True)


def test_trials_are_in_the_store_before_they_are_run(table, tmp_path, monkeypatch):
    def stopped(*_, **__):
        raise KeyboardInterrupt

    experiment = Experiment(table)
    table["models"]["count"] = 1  # what is changed later changes nothing
    monkeypatch.setattr("fado.experiment._runner._value", stopped)
    with pytest.raises(KeyboardInterrupt):
        experiment.run(tmp_path / "s", n_jobs=1)
    assert Results.load(tmp_path / "s").frame["status"].tolist() == ["pending"] * 30


def test_a_trainer_that_was_sent_elsewhere_gives_the_same_scores(table):
    config = Experiment(table).config
    trainer = Trainer(read_data(config), config, workers=2)
    parameters = {"n_estimators": 5, "random_state": 0}
    expected = trainer.scores(Trial("RW", parameters=parameters))
    there = pickle.loads(pickle.dumps(trainer))
    np.testing.assert_array_equal(there.scores(Trial("RW", parameters=parameters)), expected)
