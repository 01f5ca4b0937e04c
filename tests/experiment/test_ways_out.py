"""Trials in MLflow and Optuna: what arrives, and that it arrives once."""

import json
import sys
from wsgiref.util import setup_testing_defaults

import numpy as np
import optuna
import pytest
from mlflow import MlflowClient
from optuna.trial import TrialState

from fado import __version__
from fado.experiment import Frontier, Results

# MLflow's tables, as the newest SQLAlchemy reads them.
pytestmark = pytest.mark.filterwarnings("ignore:The ``noload`` loader strategy is deprecated")


@pytest.fixture
def results(undisturbed):
    folder, _ = undisturbed
    return Results.load(folder / "store")


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """A database of MLflow: its tables take seconds to make."""
    return f"sqlite:///{tmp_path_factory.mktemp('mlflow') / 'runs.db'}"


def set_status(results, row, status, error=None):
    """Make a row look as if its model had not been done."""
    columns = list(results.frame.columns)
    measured = columns[columns.index("training_rows") + 1 : columns.index("status")]
    results.frame.loc[row, measured] = np.nan
    results.frame.loc[row, "status"] = status
    results.frame.loc[row, "error"] = error


def test_the_best_trials_of_the_study_are_the_frontier(results, tmp_path):
    study = results.to_optuna(tmp_path / "trials.db", metric="selection_rate_ratio", part="test")
    frontier = results.pareto("selection_rate_ratio")
    points = frontier[["test_tpr", "test_selection_rate_ratio"]].to_numpy().tolist()
    assert sorted(trial.values for trial in study.best_trials) == sorted(points)
    assert study.metric_names == ["test_tpr", "test_selection_rate_ratio"]


def test_a_trial_tells_what_its_row_does(results, tmp_path):
    study = results.to_optuna(tmp_path / "trials.db")
    assert len(study.trials) == len(results.frame)
    for trial, (_, row) in zip(study.trials, results.frame.iterrows(), strict=True):
        assert trial.params["intervention"] == row["intervention"]
        assert trial.params["n_estimators"] == row["n_estimators"]
        assert trial.params.get("alpha", np.nan) == pytest.approx(row["alpha"], nan_ok=True)
        assert trial.user_attrs["status"] == row["status"]
        if trial.state == TrialState.COMPLETE:
            assert trial.values == [row["validation_tpr"], row["validation_fpr_ratio"]]
            assert trial.user_attrs["test_tpr"] == row["test_tpr"]
        failed = row["status"] == "no training set"
        assert (trial.state == TrialState.FAIL) == failed
        assert ("error" in trial.user_attrs) == failed
    drawn = study.trials[0].distributions["n_estimators"]
    assert drawn == optuna.distributions.IntDistribution(3, 20, log=True)  # as the space has it


def test_what_may_not_be_compared_is_pruned(results, tmp_path):
    results.frame.loc[0, "validation_fpr"] = 0.5  # beyond the budget
    study = results.to_optuna(tmp_path / "trials.db")
    assert study.trials[0].state == TrialState.PRUNED
    assert study.trials[0].values is None


def test_trials_are_added_once_and_again_when_something_came_of_them(results, undisturbed, tmp_path):
    file = tmp_path / "trials.db"
    set_status(results, 0, "pending")
    set_status(results, 1, "failed", "out of memory")
    study = results.to_optuna(file)
    assert len(study.trials) == len(results.frame) - 1
    assert (study.trials[0].state, study.trials[0].user_attrs["error"]) == (TrialState.FAIL, "out of memory")
    assert len(results.to_optuna(file).trials) == len(study.trials)
    whole = Results.load(undisturbed[0] / "store")
    study = whole.to_optuna(f"sqlite:///{file}")
    assert len(study.trials) == len(results.frame) + 1  # the failed one is kept
    assert [trial.user_attrs["model"] for trial in study.trials[-2:]] == [0, 1]
    assert len(whole.to_optuna(file).trials) == len(study.trials)


def test_a_study_with_other_objectives_is_refused(results, tmp_path):
    storage = optuna.storages.RDBStorage(f"sqlite:///{tmp_path / 'trials.db'}")
    results.to_optuna(storage, "mine")
    with pytest.raises(ValueError, match=r"The study 'mine' has the objectives .* give another `study_name`"):
        results.to_optuna(storage, "mine", metric="tpr_ratio")


@pytest.mark.parametrize("directions", [["maximize"], ["minimize", "maximize"]], ids="-".join)
def test_a_study_that_maximises_something_else_is_refused(results, tmp_path, directions):
    storage = f"sqlite:///{tmp_path / 'trials.db'}"
    study = optuna.create_study(storage=storage, study_name="mine", directions=directions)
    told = f"has {len(directions)} objective\\(s\\) \\({' and '.join(directions)}\\)"
    with pytest.raises(
        ValueError,
        match=f"^The study 'mine' {told}, and these trials have two .*: give another `study_name`\\.$",
    ):
        results.to_optuna(storage, "mine")
    assert study.trials == []
    assert study.metric_names is None


def test_what_is_no_storage_gets_a_sentence(results, tmp_path):
    (tmp_path / "text.db").write_text("no database" * 1000)
    with pytest.raises(ValueError, match=r"^`storage` '.*text\.db' cannot be opened: .*not a database"):
        results.to_optuna(tmp_path / "text.db")
    with pytest.raises(ValueError, match=r"^`storage` '.*x\.db' cannot be opened: .*unable to open"):
        results.to_optuna(tmp_path / "nowhere" / "x.db")
    with pytest.raises(TypeError, match=r"^`storage` must be a file, .* got Study\.$"):
        results.to_optuna(optuna.create_study(direction="maximize"))


def test_the_dashboard_opens_it(results, tmp_path):
    from optuna_dashboard import wsgi

    url = f"sqlite:///{tmp_path / 'trials.db'}"
    study = results.to_optuna(url, "first")
    app, status = wsgi(url), []

    def get(path):
        environ = {"PATH_INFO": path}
        setup_testing_defaults(environ)
        body = b"".join(app(environ, lambda line, *rest: status.append(line)))
        assert status[-1] == "200 OK"
        return json.loads(body)

    (shown,) = get("/api/studies")["study_summaries"]
    assert (shown["study_name"], shown["directions"]) == ("first", ["maximize", "maximize"])
    trials = get(f"/api/studies/{shown['study_id']}")["trials"]
    complete = [trial.values for trial in study.trials if trial.state == TrialState.COMPLETE]
    assert [trial["values"] for trial in trials if trial["state"] == "Complete"] == complete


def test_a_frontier_goes_by_its_own_ratio(results, tmp_path):
    frontier = Frontier(results, None, {"tpr_ratio": 0.8}, 3, None)
    study = frontier.to_optuna(tmp_path / "trials.db")
    assert study.metric_names == ["validation_tpr", "validation_tpr_ratio"]


def test_a_run_of_mlflow_tells_what_its_row_does(results, server):
    runs = results.to_mlflow("told", server)
    client = MlflowClient(server)
    assert runs.index.equals(results.frame.index)
    for label, run_id in runs.items():
        row, run = results.frame.loc[label], client.get_run(run_id)
        assert run.data.params["intervention"] == row["intervention"]
        assert run.data.params["n_estimators"] == str(row["n_estimators"])
        assert ("alpha" in run.data.params) == (not np.isnan(row["alpha"]))
        measured = [name for name in results.frame if name.startswith(("test_", "validation_"))]
        told = {name: row[name] for name in measured if not np.isnan(row[name])}
        assert {name: run.data.metrics[name] for name in told} == told
        assert len(run.data.metrics) == len(told) + (row["status"] == "done")  # and the rows it learnt from
        assert run.data.tags["fado.version"] == __version__
        assert run.data.tags["fado.status"] == row["status"]
        assert run.info.status == ("FINISHED" if row["status"] == "done" else "FAILED")


def test_runs_are_logged_once_and_those_cut_short_are_filled(results, undisturbed, server):
    client = MlflowClient(server)
    set_status(results, 0, "pending")
    set_status(results, 1, "failed", "out of memory")
    first = Frontier(results, None, {"fpr_ratio": 0.8}, 3, None).to_mlflow("once", server)
    assert 0 not in first
    assert client.get_run(first[1]).data.tags["fado.error"] == "out of memory"
    client.update_run(first[2], status="RUNNING")  # as a run is until it is filled
    assert results.to_mlflow("once", server).equals(first)
    assert client.get_run(first[2]).info.status == "FINISHED"
    whole = Results.load(undisturbed[0] / "store").to_mlflow("once", server)
    assert whole.index.equals(results.frame.index)
    assert whole[1] != first[1]  # which is done now
    assert whole.loc[2:].equals(first.loc[2:])
    experiment = client.get_experiment_by_name("once").experiment_id
    assert len(client.search_runs([experiment])) == len(whole) + 1


@pytest.mark.parametrize(("library", "call"), [("mlflow", "to_mlflow"), ("optuna", "to_optuna")])
def test_a_missing_library_is_one_sentence(results, monkeypatch, library, call):
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(ModuleNotFoundError, match=rf"pip install 'fado-ml\[{library}\]'"):
        getattr(results, call)(*(["trials.db"] if library == "optuna" else []))
