"""Kills, signals, full disks: nothing is lost, nothing is done twice, and the end is the same."""

import os
import resource
import signal
import socket
import time
from importlib.metadata import version

import pandas as pd
import pytest
from benchmarks.faults import children_of, done_fits, is_alive, killed_until_done, start, wait_until

from fado._storage import InUseError, Lock, holder_of
from fado.experiment import Experiment, Results

CONFIG = """
[data]
generator = "account_fraud"
rows = 3000
target = "fraud_bool"
protected = "customer_age>=50"
[split]
method = "random"
train = 0.5
validation = 0.25
test = 0.25
[valuation]
bags = 5
models = [{ n_estimators = 5 }]
[interventions.uaps]
alphas = [0.0, 0.5, 1.0]
[interventions.uar]
alphas = [0.0, 0.25, 0.5, 0.75, 1.0]
[models]
count = 6
[models.space]
n_estimators = { log_uniform = [2, 10] }
learning_rate = { log_uniform = [0.02, 0.5] }
"""


@pytest.fixture(scope="module")
def config(tmp_path_factory):
    path = tmp_path_factory.mktemp("config") / "c.toml"
    path.write_text(CONFIG)
    return path


@pytest.fixture(scope="module")
def undisturbed(config, tmp_path_factory):
    folder = tmp_path_factory.mktemp("undisturbed")
    results = Experiment.from_toml(config).run(folder / "store", n_jobs=1)
    results.report(folder / "report.html")
    return folder, results


def test_eight_kills_leave_no_trace(config, undisturbed, tmp_path):
    store = tmp_path / "store"
    done_before_the_last, repeated = killed_until_done(config, store, kills=8, seed=1)
    assert done_before_the_last > 0
    assert repeated == 0, "a finished fit was lost or done again"
    results = Results.load(store)
    pd.testing.assert_frame_equal(results.frame, undisturbed[1].frame, check_exact=True)
    results.report(tmp_path / "report.html")
    assert (tmp_path / "report.html").read_bytes() == (undisturbed[0] / "report.html").read_bytes()
    assert not list(store.rglob("*.part"))


SLOW = CONFIG.replace("rows = 3000", "rows = 20_000").replace("[2, 10]", "[3000, 3000]")


@pytest.fixture
def running(tmp_path):
    """A runner in the middle of long fits, the first of a group of processes."""
    path = tmp_path / "slow.toml"
    path.write_text(SLOW)
    process = start(path, tmp_path / "store", start_new_session=True)
    assert wait_until(lambda: list(tmp_path.glob("store/values/*.parquet")), 60), process.poll()
    time.sleep(1)
    yield process, path, tmp_path / "store"
    if process.poll() is None:
        process.kill()
    process.communicate()


@pytest.mark.parametrize(
    ("send", "number", "code"),
    [(os.kill, signal.SIGINT, 130), (os.killpg, signal.SIGINT, 130), (os.kill, signal.SIGTERM, 143)],
)
def test_signals_stop_cleanly_within_five_seconds_with_all_workers(running, send, number, code):
    """From a terminal Ctrl-C goes to all processes of the group; `kill` sends it to one."""
    process, _, store = running
    workers, sent = children_of(process.pid), time.monotonic()
    send(process.pid, number)
    _, err = process.communicate(timeout=30)
    assert time.monotonic() - sent < 5
    assert process.returncode == code
    assert "run the same command again to resume" in err
    assert "Traceback" not in err
    assert not any(map(is_alive, workers))
    assert Results.load(store).frame["status"].isin(["pending", "done"]).all()
    assert holder_of(store / "lock") == "another process"


def is_free(store):
    try:
        with Lock(store / "lock"):
            return True
    except InUseError:
        return False


def test_workers_do_not_outlive_a_killed_process(running):
    process, _, store = running
    workers = children_of(process.pid)
    assert any(map(is_alive, workers))
    process.kill()
    process.wait()
    assert wait_until(lambda: not any(map(is_alive, workers)), 5)
    assert wait_until(lambda: is_free(store), 5)


def test_a_killed_worker_is_followed_by_another(running):
    process, _, store = running
    workers = children_of(process.pid)
    os.kill(workers[0], signal.SIGKILL)
    assert wait_until(lambda: set(children_of(process.pid)) - set(workers), 60)
    assert process.poll() is None
    assert holder_of(store / "lock").startswith(f"process {process.pid} ")


def test_ctrl_c_twice_stops_at_once(running):
    process, _, store = running
    process.send_signal(signal.SIGINT)
    time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=5)
    assert process.returncode in (130, -signal.SIGINT)  # a shell shows 130 for both
    assert "Traceback" not in err
    assert Results.load(store).frame["status"].isin(["pending", "done"]).all()


def test_a_second_runner_is_refused_and_told_of_the_first(running):
    process, config, store = running
    second = start(config, store)
    _, err = second.communicate(timeout=60)
    assert second.returncode == 2
    assert f"in use by process {process.pid} on host {socket.gethostname()}" in err
    assert "Traceback" not in err
    process.kill()
    process.wait()
    third = start(config, store)  # a dead one's lock is no lock
    assert wait_until(lambda: holder_of(store / "lock").startswith(f"process {third.pid} "), 60)
    third.send_signal(signal.SIGTERM)
    third.communicate(timeout=30)
    assert third.returncode == 143


@pytest.mark.parametrize("size", [0, 1000, 9000, 30_000, 44_000, 56_000])
def test_a_full_disk_loses_nothing(config, undisturbed, tmp_path, size):
    """No file may grow beyond so many bytes: the first, or a later write fails."""
    if size == 0 and version("scipy").startswith("1.14."):
        pytest.skip("scipy 1.14 itself writes a file when it is imported")
    store = tmp_path / "store"
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        with pytest.raises(OSError, match=r"cannot be written.*all earlier results are kept"):
            Experiment.from_toml(config).run(store, n_jobs=1)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    done = done_fits(store)
    results = Experiment.from_toml(config).run(store, n_jobs=1)
    pd.testing.assert_frame_equal(results.frame, undisturbed[1].frame, check_exact=True)
    assert done.items() <= done_fits(store).items()


def test_values_that_cannot_be_synced_lose_nothing(config, undisturbed, tmp_path, monkeypatch):
    def fsync(handle):
        raise OSError(30, "Read-only file system")

    with monkeypatch.context() as patched:
        patched.setattr("fado._storage.os.fsync", fsync)
        with pytest.raises(OSError, match=r"cannot be written to .*\(.*Read-only file system\)"):
            Experiment.from_toml(config).run(tmp_path / "store", n_jobs=2, isolated=False)
    results = Experiment.from_toml(config).run(tmp_path / "store", n_jobs=2, isolated=False)
    pd.testing.assert_frame_equal(results.frame, undisturbed[1].frame, check_exact=True)


def test_a_directory_without_permission_ends_in_a_sentence(config, tmp_path):
    (tmp_path / "file").write_text("")
    process = start(config, tmp_path / "file" / "store")
    _, err = process.communicate(timeout=60)
    assert process.returncode == 2
    assert "The store cannot be written to" in err
    assert "Not a directory" in err
    assert "Traceback" not in err
