"""A run in a process of its own: crashes and hangs cost the work that they happen in and nothing else."""

import copy
import importlib
import io
import os
import shutil
import subprocess
import sys
import threading
import time
from contextlib import redirect_stderr

import pandas as pd
import pytest

from fado._storage import InUseError, Lock
from fado.experiment import Experiment
from fado.experiment.run import Bench, read_data, run_experiment
from fado.experiment.run import _supervisor as supervisor_module
from fado.experiment.run import _watch as watch_module
from fado.experiment.run._crashes import culprits
from fado.experiment.run._watch import Watch, beating, tell_phase
from fado.experiment.search import GridProposer
from fado.experiment.store import RUNNING

KEY, OTHER = "0" * 31 + "1", "0" * 31 + "2"

REGISTRIES = (
    ("fado.interventions._registry", "_ENTRIES"),
    ("fado.utility._utilities", "_CLASSES"),
    ("fado.valuation._base", "_CLASSES"),
)

# What goes wrong is read from the environment, by a module that the child imports with the class.
PLUGIN = """
import ctypes, os
import numpy as np
import fado.experiment.run._runner as runner
from fado.experiment.run import Bench
from fado.interventions import BaseIntervention, TrainingSet, register_intervention
from fado.valuation import OutOfBagEntropy, register_valuator

WAYS = {
    "fault": lambda: ctypes.string_at(0),
    "abort": os.abort,
    "exit": lambda: os._exit(3),
    "hang": lambda: ctypes.PyDLL(None).sleep(1000),  # with Python's lock
    "sleep": lambda: ctypes.CDLL(None).sleep(1000),
    "interrupt": lambda: (_ for _ in ()).throw(KeyboardInterrupt),
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

read_data, scores = runner.read_data, Bench.scores

def odd_data(config):
    go_wrong("data")
    return read_data(config)

def odd_scores(bench, recipe, parameters, *more):
    if recipe.intervention == "odd":
        go_wrong("fit")
    return scores(bench, recipe, parameters, *more)

Bench.scores, runner.read_data = odd_scores, odd_data
"""


@pytest.fixture
def odd(tmp_path, table, monkeypatch):
    """A small experiment with an intervention, values and data that go wrong on demand, in the child only."""
    (tmp_path / "odd_plugin.py").write_text(PLUGIN)
    monkeypatch.syspath_prepend(tmp_path)
    for module, name in REGISTRIES:
        monkeypatch.setattr(sys.modules[module], name, copy.copy(getattr(sys.modules[module], name)))
    with monkeypatch.context() as kept:
        kept.setattr("fado.experiment.run.Bench.scores", Bench.scores)
        kept.setattr("fado.experiment.run._runner.read_data", read_data)
        importlib.import_module("odd_plugin")
    yield table | {
        "interventions": {"odd": True, "rps": False, "rw": False, "uar": {"alphas": [0.5]}},
        "valuation": table["valuation"] | {"algorithms": ["odd"]},
        "models": table["models"] | {"count": 1},
    }
    del sys.modules["odd_plugin"]


def run_gone_wrong(table, store, monkeypatch, what, **options):
    monkeypatch.setenv("FADO_TEST", what)
    return Experiment(table).run(store, n_jobs=2, isolated=True, **options)


def status_of(results):
    told = results.frame.set_index("intervention")[["status", "error"]]
    return told.astype(object).where(told.notna(), None).T.to_dict("list")


@pytest.mark.parametrize(
    ("what", "status", "error"),
    [
        ("fit fault", "failed", "The process crashed inside this fit 3 times; it was set aside."),
        ("fit exit", "failed", "The process crashed inside this fit 3 times; it was set aside."),
    ],
)
def test_work_that_crashes_is_set_aside_and_the_others_go_on(odd, tmp_path, monkeypatch, what, status, error):
    expected = Experiment(odd).run(tmp_path / "right", n_jobs=1).frame
    results = run_gone_wrong(odd, tmp_path / "s", monkeypatch, what)
    found = results.frame["intervention"] == "odd"
    (told,) = results.frame[found].to_dict("records")
    assert told["status"] == status
    assert told["error"].startswith(error)
    pd.testing.assert_frame_equal(results.frame[~found], expected[~found], check_exact=True)
    assert not list((tmp_path / "s" / "running").iterdir())


def test_what_was_set_aside_can_be_tried_again(odd, tmp_path, monkeypatch):
    expected = Experiment(odd).run(tmp_path / "right", n_jobs=1).frame
    run_gone_wrong(odd, tmp_path / "s", monkeypatch, "set abort")
    still = run_gone_wrong(odd, tmp_path / "s", monkeypatch, "set abort", retry_failed=True)
    assert status_of(still)["odd"][0] == "no training set"  # and it has come to an end
    mended = run_gone_wrong(odd, tmp_path / "s", monkeypatch, "", retry_failed=True)
    pd.testing.assert_frame_equal(mended.frame, expected, check_exact=True)


@pytest.mark.parametrize(
    ("what", "status", "error"),
    [
        ("fit hang", "failed", "The fit did not end within `models.deadline`, 8 s, and was ended."),
        ("fit sleep", "failed", "The fit did not end within `models.deadline`, 8 s, and was ended."),
        ("set sleep", "no training set", "The training set was not made within `models.deadline`, 8 s; its"),
        ("set hang", "no training set", "The training set was not made within `models.deadline`, 8 s; its"),
    ],
)
def test_work_that_hangs_is_ended_and_the_others_go_on(odd, tmp_path, monkeypatch, what, status, error):
    odd["models"]["deadline"] = 8  # enough for the others on a busy machine
    monkeypatch.setattr(watch_module, "_LEAST_GRACE", 2.0)
    monkeypatch.setattr(supervisor_module, "_ANSWER", 2.0)
    expected = Experiment(odd).run(tmp_path / "right", n_jobs=1).frame
    results = run_gone_wrong(odd, tmp_path / "s", monkeypatch, what)
    found = results.frame["intervention"] == "odd"
    (told,) = results.frame[found].to_dict("records")
    assert told["status"] == status
    assert told["error"].startswith(error)
    pd.testing.assert_frame_equal(results.frame[~found], expected[~found], check_exact=True)


@pytest.mark.parametrize("way", ["fault", "sleep"])
def test_values_that_crash_or_hang_are_set_aside_and_what_needs_none_goes_on(odd, tmp_path, monkeypatch, way):
    odd["models"]["deadline"] = 0.5
    monkeypatch.setattr(watch_module, "_LEAST_GRACE", 3.0)
    results = run_gone_wrong(odd, tmp_path / "s", monkeypatch, f"values {way}")
    told = "The process crashed or hung 3 times while these values were made; they were set aside."
    assert status_of(results) == {
        "none": ["done", None], "UAR": ["no training set", told], "odd": ["done", None]
    }  # fmt: skip


def test_a_run_that_always_dies_ends_in_a_sentence(odd, tmp_path, monkeypatch):
    monkeypatch.setattr(supervisor_module, "_MOST_DEATHS", 2)
    with pytest.raises(RuntimeError, match=r"left with code 3 2 times in a row before .* is kept in the"):
        run_gone_wrong(odd, tmp_path / "s", monkeypatch, "data exit")


def test_an_isolated_run_gives_the_same_frame(undisturbed, table, tmp_path):
    results = Experiment(table).run(tmp_path / "s", n_jobs=2, isolated=True)
    pd.testing.assert_frame_equal(results.frame, undisturbed[1].frame, check_exact=True)
    again = Experiment(table).run(undisturbed[0] / "store", n_jobs=1, isolated=True)
    pd.testing.assert_frame_equal(again.frame, undisturbed[1].frame, check_exact=True)


def test_errors_of_the_child_are_raised_here(undisturbed, table, odd, tmp_path, monkeypatch):
    table["models"]["count"] = 3
    with pytest.raises(ValueError, match=r"`models.count` = 2, the configuration says 3") as caught:
        Experiment(table).run(undisturbed[0] / "store", isolated=True)
    assert "in run_here" in str(caught.value.__cause__)  # where in the child
    (tmp_path / "held").mkdir()
    with (
        Lock(tmp_path / "held" / "lock"),
        pytest.raises(InUseError, match=f"in use by process {os.getpid()}"),
    ):
        Experiment(table).run(tmp_path / "held", isolated=True)
    with pytest.raises(KeyboardInterrupt):
        run_gone_wrong(odd, tmp_path / "s", monkeypatch, "values interrupt")


def test_warnings_of_the_child_are_given_here(undisturbed, table, tmp_path):
    shutil.copytree(undisturbed[0] / "store", tmp_path / "store")
    next((tmp_path / "store" / "fits").iterdir()).unlink()
    with pytest.raises(UserWarning, match=r"1 file\(s\) of the store are missing"):  # they are errors here
        Experiment(copy.deepcopy(table)).run(tmp_path / "store", isolated=True)
    shutil.rmtree(tmp_path / "store")
    shutil.copytree(undisturbed[0] / "store", tmp_path / "store")
    next((tmp_path / "store" / "fits").iterdir()).unlink()
    with pytest.warns(UserWarning, match=r"1 file\(s\) of the store are missing") as given:
        Experiment(table).run(tmp_path / "store", isolated=True)
    assert [warning.filename for warning in given] == [__file__]


def test_what_the_child_prints_goes_where_this_process_prints(table, tmp_path):
    table["interventions"] = {}
    with redirect_stderr(io.StringIO()) as printed:
        Experiment(table).run(tmp_path / "s", n_jobs=1, isolated=True, progress=True)
    assert "fits: 6 of 6 done, 0 failed" in printed.getvalue()


def test_what_cannot_travel_is_run_here_with_a_warning(table, tmp_path):
    class Stuck(GridProposer):
        def __reduce__(self):
            raise TypeError("it holds a lock")

    table["interventions"] = {}
    config = Experiment(table).config
    proposer = GridProposer.of(config)
    stuck = Stuck(**vars(proposer))
    with pytest.warns(UserWarning, match=r"The run happens in this process.*TypeError: it holds a lock"):
        run_experiment(config, tmp_path / "s", n_jobs=1, isolated=True, proposer=stuck)
    assert len(list((tmp_path / "s" / "fits").iterdir())) == 6


SCRIPT = """
import sys
import numpy as np
from fado._storage import InUseError, Lock
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


def test_a_class_of_a_script_exists_in_the_child_and_the_script_runs_once(table, tmp_path):
    (tmp_path / "script.py").write_text(SCRIPT.format(table=table))
    done = subprocess.run(
        [sys.executable, "script.py", "store"], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines() == ["main runs", "[1000, 1000, 500, 500]"]


def note(folder, name, text=""):
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(text)


@pytest.mark.parametrize(
    ("notes", "trace", "died", "blamed"),
    [
        (["a-" + KEY, "b-" + OTHER], "Fatal\n\nCurrent thread 0x000b (most recent", False, [OTHER]),
        (["a-" + KEY, "b-" + OTHER], "", False, []),  # killed from outside
        (["a-" + KEY, "b-" + OTHER], "", True, []),  # one of them left the program, nobody knows which
        (["a-" + KEY], "", True, [KEY]),
        (["a-" + KEY], "", False, []),
        (["a-values-" + KEY], "Fatal\n\nCurrent thread 0x000b (most recent", False, [KEY]),  # its workers
        (["a-values-" + KEY], "Fatal Python error\n\nThread 0x000a (most", False, [KEY]),
        (["a-letter"], "Fatal\n\nCurrent thread 0x000a (most recent", False, []),  # none of ours
    ],
)
def test_who_is_to_blame(tmp_path, notes, trace, died, blamed):
    for name in notes:
        note(tmp_path / RUNNING, name)
    note(tmp_path / RUNNING, "trace.txt", trace)
    assert [found.key for found in culprits(tmp_path / RUNNING, died=died)] == blamed


def test_only_time_that_the_watch_saw_makes_work_late(tmp_path, monkeypatch):
    now = {"t": 0.0}
    monkeypatch.setattr(watch_module.time, "monotonic", lambda: now["t"])
    watch = Watch(tmp_path, 20.0)  # and half as long again

    def look(step, times):
        for _ in range(times):
            now["t"] += step
            found = watch.late()
        return found

    note(tmp_path, "a-" + KEY)
    assert look(3600, 25) == ()  # the machine slept again and again
    note(tmp_path, "b-" + OTHER)
    tell_phase(tmp_path / ("b-" + OTHER), "measuring")
    assert look(1, 6) == ()
    assert look(1, 1) == ("a-" + KEY,)
    os.utime(tmp_path / ("a-" + KEY), ns=(1, 1))  # it has come along, whatever the clock says
    assert look(1, 31) == ()
    assert look(1, 1) == ("a-" + KEY,)
    (tmp_path / ("a-" + KEY)).unlink()
    assert look(1, 100) == ()
    assert Watch(tmp_path, None).late() == ()


def test_a_note_is_renewed_while_python_moves_and_not_in_one_long_call(tmp_path, monkeypatch):
    own, frames = threading.get_ident(), sys._current_frames
    monkeypatch.setattr(watch_module, "_BEAT", 0.05)
    monkeypatch.setattr(sys, "_current_frames", lambda: {own: frames()[own]})  # not the runner's
    monkeypatch.setattr(watch_module, "_has_children", lambda: False)  # other tests leave a browser behind
    note(tmp_path, "a")
    path, seen = tmp_path / "a", set()
    with beating(path):
        for _ in range(20):
            time.sleep(0.06)
            seen.add(path.stat().st_mtime_ns)
        began = time.time_ns()
        time.sleep(2)
        renewed = path.stat().st_mtime_ns
    assert len(seen) > 5
    assert renewed - began < 1e9  # when the long call began, and not in it
