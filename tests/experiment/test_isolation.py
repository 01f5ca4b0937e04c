"""Fits in processes of their own: crashes and hangs cost the work that they happen in and nothing else."""

import importlib
import subprocess
import sys
import threading

import pandas as pd
import pytest

from fado.execution import _processes
from fado.experiment import Experiment
from fado.experiment._training import Trainer

# What goes wrong is read from the environment, by a module that workers import with the class.
PLUGIN = """
import ctypes, os, warnings
import numpy as np
from fado.experiment._training import Trainer
from fado.interventions import BaseIntervention, TrainingSet, register_intervention
from fado.valuation import OutOfBagEntropy, register_valuator

WAYS = {
    "fault": lambda: ctypes.string_at(0),
    "abort": os.abort,
    "exit": lambda: os._exit(3),
    "hang": lambda: ctypes.PyDLL(None).sleep(1000),  # with Python's lock
    "sleep": lambda: ctypes.CDLL(None).sleep(1000),
    "interrupt": lambda: (_ for _ in ()).throw(KeyboardInterrupt),
    "warn": lambda: warnings.warn("oddly made", UserWarning, stacklevel=1),
}

def go_wrong(where):
    place, _, way = os.environ.get("FADO_TEST", "").partition(" ")
    if place == where:
        WAYS[way]()

@register_intervention("odd")
class Odd(BaseIntervention):
    def _choose(self, labels, groups, utilities, sample_weight, generator):
        go_wrong("set")
        return TrainingSet(np.arange(0, len(labels.codes), 2))

@register_valuator("odd")
class OddValues(OutOfBagEntropy):
    def _value(self, problem, validation, seed):
        go_wrong("values")
        return super()._value(problem, validation, seed)

scores = Trainer.scores

def odd_scores(trainer, trial, *more):
    if trial.intervention == "odd":
        go_wrong("fit")
    return scores(trainer, trial, *more)

Trainer.scores = odd_scores
"""


@pytest.fixture
def odd(tmp_path, table, monkeypatch):
    """A small experiment with an intervention, fits and values that go wrong on demand, in workers only."""
    (tmp_path / "odd_plugin.py").write_text(PLUGIN)
    monkeypatch.syspath_prepend(tmp_path)
    with monkeypatch.context() as kept:
        kept.setattr(Trainer, "scores", Trainer.scores)
        importlib.import_module("odd_plugin")
    yield table | {
        "interventions": {"odd": True, "rps": False, "rw": False, "uar": {"alphas": [0.5]}},
        "valuation": table["valuation"] | {"algorithms": ["odd"]},
        "models": table["models"] | {"count": 1},
    }
    del sys.modules["odd_plugin"]


def run_gone_wrong(table, store, monkeypatch, what, n_jobs=2, **options):
    monkeypatch.setenv("FADO_TEST", what)
    return Experiment(table).run(store, n_jobs=n_jobs, isolated=True, **options)


def run_right(table, store):
    return Experiment(table).run(store, n_jobs=1, isolated=False).frame


def status_of(results):
    told = results.frame.set_index("intervention")[["status", "error"]]
    return told.astype(object).where(told.notna(), None).T.to_dict("list")


@pytest.mark.parametrize(
    ("what", "status", "error"),
    [
        ("fit fault", "failed", "The process crashed inside this fit 3 times; it was set aside."),
        ("fit hang", "failed", "The fit did not end within `models.deadline`, 3 s, and was ended."),
        ("set sleep", "no training set", "The training set was not made within `models.deadline`, 3 s; its"),
    ],
)
def test_work_that_crashes_or_hangs_is_ended_and_the_others_go_on(
    odd, tmp_path, monkeypatch, what, status, error
):
    if what != "fit fault":
        odd["models"]["deadline"] = 3  # enough for the others on a busy machine
        monkeypatch.setattr(_processes, "_LEAST_GRACE", 1.0)
    expected = run_right(odd, tmp_path / "right")
    results = run_gone_wrong(odd, tmp_path / "s", monkeypatch, what)
    found = results.frame["intervention"] == "odd"
    (told,) = results.frame[found].to_dict("records")
    assert told["status"] == status
    assert told["error"].startswith(error)
    pd.testing.assert_frame_equal(results.frame[~found], expected[~found], check_exact=True)


def test_what_was_set_aside_can_be_tried_again(odd, tmp_path, monkeypatch):
    monkeypatch.setattr(_processes, "TRIES", 1)
    expected = run_right(odd, tmp_path / "right")
    run_gone_wrong(odd, tmp_path / "s", monkeypatch, "set abort", n_jobs=1)
    still = run_gone_wrong(odd, tmp_path / "s", monkeypatch, "set abort", n_jobs=1, retry_failed=True)
    assert status_of(still)["odd"][0] == "no training set"  # and it has come to an end
    right = run_gone_wrong(odd, tmp_path / "s", monkeypatch, "", n_jobs=1, retry_failed=True)
    pd.testing.assert_frame_equal(right.frame, expected, check_exact=True)


def test_values_that_crash_are_set_aside_and_what_needs_none_goes_on(odd, tmp_path, monkeypatch):
    results = run_gone_wrong(odd, tmp_path / "s", monkeypatch, "values abort", n_jobs=1)
    error = "The process crashed 3 times while these values were made; they were set aside."
    assert status_of(results) == {
        "none": ["done", None], "UAR": ["no training set", error], "odd": ["done", None]
    }  # fmt: skip


def test_an_isolated_run_gives_the_same_frame(undisturbed, table, tmp_path, monkeypatch):
    monkeypatch.setattr("fado.experiment._runner._LARGE", 0)  # tables stand in files that workers see
    results = Experiment(table).run(tmp_path / "s", n_jobs=2, isolated=True)
    pd.testing.assert_frame_equal(results.frame, undisturbed[1].frame, check_exact=True)
    assert not (tmp_path / "s" / "shelf").exists()
    again = Experiment(table).run(undisturbed[0] / "store", n_jobs=1, isolated=True)
    pd.testing.assert_frame_equal(again.frame, undisturbed[1].frame, check_exact=True)


def test_errors_and_warnings_of_workers_are_those_of_the_run(odd, tmp_path, monkeypatch):
    with pytest.raises(KeyboardInterrupt) as caught:
        run_gone_wrong(odd, tmp_path / "s", monkeypatch, "values interrupt", n_jobs=1)
    assert "in go_wrong" in str(caught.value.__cause__)  # where in the worker
    with pytest.warns(UserWarning, match="oddly made") as given:
        run_gone_wrong(odd, tmp_path / "s", monkeypatch, "set warn", n_jobs=1)
    assert [warning.filename for warning in given] == [__file__]


def test_what_cannot_travel_is_run_here_with_a_warning(table, tmp_path):
    lock = threading.Lock()

    def locked(y_true, scores, groups):
        with lock:
            return 0.5

    table["interventions"] = {}
    with pytest.warns(UserWarning, match=r"The run happens in this process.*cannot pickle '_thread.lock'"):
        results = Experiment(table, metrics={"locked": locked}).run(tmp_path / "s", n_jobs=1, isolated=True)
    assert (results.frame["test_locked"] == 0.5).all()


SCRIPT = """
import sys
import numpy as np
from fado.experiment import Experiment
from fado.interventions import BaseIntervention, TrainingSet, register_intervention
print("main runs")

@register_intervention("thinned")
class Thinned(BaseIntervention):
    def _choose(self, labels, groups, utilities, sample_weight, generator):
        return TrainingSet(np.arange(0, len(labels.codes), 2))

TABLE = {table!r}
TABLE["interventions"] = {{"thinned": True, "rps": False, "rw": False}}
print(Experiment(TABLE).run(sys.argv[1], n_jobs=1).frame["training_rows"].tolist())
"""


def test_a_class_of_a_script_exists_in_workers_and_the_script_runs_once(table, tmp_path):
    (tmp_path / "script.py").write_text(SCRIPT.format(table=table))
    done = subprocess.run(
        [sys.executable, "script.py", "store"], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines() == ["main runs", "[1000, 1000, 500, 500]"]
