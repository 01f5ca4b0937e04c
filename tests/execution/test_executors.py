"""One suite over every executor, and what a Dask cluster adds."""

import ctypes
import os
import signal
import threading
import time
import warnings
from contextlib import closing, contextmanager, nullcontext
from functools import partial
from itertools import chain, count
from types import SimpleNamespace

import numpy as np
import pytest

from fado.execution import (
    JoblibExecutor,
    LostTask,
    NotSentError,
    ProcessExecutor,
    ThreadExecutor,
    cluster_executor,
    n_workers,
    on_cluster,
    tell,
)

# distributed's own clean-up leaves sockets to the collector now and then
pytestmark = pytest.mark.filterwarnings(
    "ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"
)


def local_cluster(workers, *, processes=False):
    distributed = pytest.importorskip("distributed")
    settings = {"threads_per_worker": 1, "dashboard_address": ":0", "memory_limit": None}
    return distributed.LocalCluster(n_workers=workers, processes=processes, **settings)


@contextmanager
def dask_executor(workers, **settings):
    with local_cluster(workers, **settings) as cluster, cluster.get_client() as client:
        from fado.execution import DaskExecutor

        yield DaskExecutor(client)


def make(kind, workers):
    if kind in ("dask", "processes"):
        return (dask_executor if kind == "dask" else ProcessExecutor)(workers)
    return nullcontext((ThreadExecutor if kind == "threads" else JoblibExecutor)(workers))


KINDS = ["threads", "processes", "joblib", "dask"]


@pytest.fixture(scope="module", params=KINDS)
def executor(request):
    with make(request.param, 2) as made:
        yield made


def run(executor, order, *arguments):
    """Give a generator of single results, ordered or not."""
    if order == "ordered":
        yield from executor.run(*arguments)
    else:
        with closing(executor.run_unordered(*arguments)) as batches:
            yield from chain.from_iterable(batches)


both = pytest.mark.parametrize("order", ["ordered", "unordered"])


def slow_first(task, shared, stop):
    time.sleep(0.05 if task == 0 else 0.0)
    return task * 10


def test_results_come_in_order_whichever_ends_first(executor):
    assert list(executor.run(slow_first, range(20))) == [task * 10 for task in range(20)]
    batches = list(executor.run_unordered(slow_first, range(20)))
    assert all(isinstance(batch, list) and batch for batch in batches)
    assert sorted(result for batch in batches for result in batch) == [task * 10 for task in range(20)]
    assert list(executor.run(slow_first, [])) == list(executor.run_unordered(slow_first, [])) == []


def nap(task, shared, stop):
    time.sleep(0.02)
    return task


@both
def test_tasks_are_taken_a_few_ahead(executor, order):
    taken = []

    def tasks():
        for task in range(500):
            taken.append(task)
            yield task

    with closing(run(executor, order, nap, tasks())) as results:
        next(results)
        assert len(taken) < 50


def fail_at_three(task, shared, stop):
    if task == 3:
        raise shared("task 3 failed")
    return task


@both
@pytest.mark.parametrize("kind", [LookupError, ConnectionError])
def test_errors_are_raised_as_they_are(executor, order, kind):
    with pytest.raises(kind, match="task 3 failed"):
        list(run(executor, order, fail_at_three, range(10), kind))


def leave_a_note(task, shared, stop):
    (shared / str(task)).touch()
    stop.wait(0.1)
    return task


def wait_for_stop(task, shared, stop):
    if task == 1:
        (shared / "begun").touch()
        stop.wait(60)
    while not (shared / "begun").exists():
        time.sleep(0.01)
    return task


@both
def test_closing_early_cancels_what_has_not_begun_and_ends_what_runs(executor, order, tmp_path):
    with closing(run(executor, order, leave_a_note, range(50), tmp_path)) as results:
        next(results)
    time.sleep(0.3)
    begun = len(list(tmp_path.iterdir()))
    assert begun <= 10
    time.sleep(0.3)
    assert len(list(tmp_path.iterdir())) == begun
    started = time.monotonic()
    with closing(run(executor, order, wait_for_stop, range(2), tmp_path)) as results:
        assert next(results) == 0
    assert list(executor.run(slow_first, range(4))) == [0, 10, 20, 30]  # all workers are free again
    assert time.monotonic() - started < 30


def add_shared(task, shared, stop):
    return float(shared["numbers"][task])


@both
def test_what_tasks_share_arrives(executor, order):
    shared = {"numbers": np.arange(300_000) / 2}  # large enough for joblib to map it
    assert sorted(run(executor, order, add_shared, range(10), shared)) == [task / 2 for task in range(10)]


def draw(task, shared, stop):
    return np.random.default_rng([shared, task]).normal(size=3).tolist()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("workers", [1, 2, 8])
def test_the_number_of_workers_changes_nothing(kind, workers):
    with make(kind, workers) as executor:
        assert list(executor.run(draw, range(20), 7)) == [draw(task, 7, None) for task in range(20)]


def test_joblib_in_threads_is_told_to_stop():
    from joblib import parallel_config

    stopped = threading.Event()

    def wait(task, shared, stop):
        if task and stop.wait(30):
            stopped.set()

    with parallel_config(backend="threading"), closing(JoblibExecutor(2).run(wait, range(10))) as results:
        next(results)
    assert stopped.wait(10)


@pytest.mark.parametrize(
    ("n_jobs", "error", "sentence"),
    [
        (10**12, ValueError, "^`n_jobs` must be at most 1,000, got 1000000000000.$"),
        (-(10**12), ValueError, "^`n_jobs` must be at least -1,000, got -1000000000000.$"),
        ("3", TypeError, "^`n_jobs` must be a whole number, got '3'.$"),
        (2.0, TypeError, "^`n_jobs` must be a whole number, got 2.0.$"),
        (0, ValueError, "^`n_jobs` must not be 0"),
    ],
)
def test_what_is_no_number_of_workers_is_refused(n_jobs, error, sentence):
    with pytest.raises(error, match=sentence):
        n_workers(n_jobs)


def test_numbers_of_workers():
    assert n_workers(3) == 3
    assert n_workers(None) == n_workers(-1) >= 1


# --- processes alone


def die_at_three(task, shared, stop):
    if task == 3:
        tell("the third")
        os.kill(os.getpid(), shared)
    return task


@pytest.mark.parametrize("number", [signal.SIGSEGV, signal.SIGKILL], ids=str)
def test_what_a_worker_dies_of_is_tried_three_times_and_the_others_go_on(number):
    with ProcessExecutor(2) as executor:
        results = list(run(executor, "unordered", die_at_three, range(8), number))
    (lost,) = (result for result in results if isinstance(result, LostTask))
    assert lost == LostTask(3, f"left with code {-number}", False, "the third", 3)
    assert sorted(result for result in results if result is not lost) == [0, 1, 2, 4, 5, 6, 7]


def die_once(task, shared, stop):
    if not shared.exists():
        shared.touch()
        os._exit(3)
    return task


def test_a_task_that_only_had_bad_luck_is_done(tmp_path):
    with ProcessExecutor(2) as executor:
        assert list(executor.run(die_once, range(4), tmp_path / "seen")) == [0, 1, 2, 3]


def hang(task, shared, stop):
    if task == "moves":
        end = time.monotonic() + 4
        while time.monotonic() < end:
            time.sleep(0.01)
    elif task == "is timed":
        tell("timed", timed=True)
        while True:
            time.sleep(0.01)
    elif task is not None:
        tell("sleep", timed=True)
        (ctypes.PyDLL if task == "holds the lock" else ctypes.CDLL)(None).sleep(100)
    return task


def test_what_hangs_is_ended_and_what_moves_is_not(monkeypatch):
    monkeypatch.setattr("fado.execution._processes._LEAST_GRACE", 8.0)  # of a busy machine
    with ProcessExecutor(4, deadline=0.1) as executor:
        first, *lost, last = executor.run(hang, ["moves", "sleeps", "holds the lock", "is timed", None])
    assert (first, last) == ("moves", None)
    assert [(task.task, task.late, task.phase, task.deaths) for task in lost] == [
        ("sleeps", True, "sleep", 1),
        ("holds the lock", True, "sleep", 1),
        ("is timed", True, "timed", 1),
    ]


def test_a_machine_that_slept_makes_nothing_late(monkeypatch):
    clock, now = count(0, 3600), time.monotonic
    with ProcessExecutor(1, deadline=3000) as executor:
        monkeypatch.setattr("fado.execution._processes.time", SimpleNamespace(monotonic=lambda: next(clock)))
        began = now()
        assert list(executor.run(nap, range(20))) == list(range(20))
    assert now() - began < 60


def test_workers_that_never_start_end_in_a_sentence():
    with (
        ProcessExecutor(2, setup=[partial(os._exit, 3)]) as executor,
        pytest.raises(RuntimeError, match=r"^A worker process left with code 3 5 times in a row before it"),
    ):
        list(executor.run(nap, range(3)))


def not_there():
    raise AttributeError("there is no such thing here")


class Missing:
    def __reduce__(self):
        return not_there, ()


def test_what_cannot_be_sent_gets_a_sentence():
    with ProcessExecutor(1) as executor:
        with pytest.raises(NotSentError, match=r"cannot pickle '_thread.lock'"):
            list(executor.run(nap, range(3), threading.Lock()))
        with pytest.raises(NotSentError, match="there is no such thing here"):
            list(executor.run(nap, range(3), Missing()))
        assert list(executor.run(nap, range(3))) == [0, 1, 2]


def warn(task, shared, stop):
    warnings.warn(f"odd {task % 2}", UserWarning, stacklevel=1)
    return task


def test_warnings_are_given_once_with_the_line_of_the_caller():
    setup = [partial(warnings.simplefilter, "always")]
    with ProcessExecutor(2, setup=setup) as executor, pytest.warns(UserWarning, match="odd") as given:
        list(executor.run(warn, range(6)))
    assert sorted(str(one.message) for one in given) == ["odd 0", "odd 1"]


# --- Dask alone


@pytest.mark.parametrize(("call", "calls"), [("register_plugin", 2), ("unregister_worker_plugin", 1)])
def test_a_worker_that_dies_while_all_are_called_costs_nothing(call, calls):
    with dask_executor(2) as executor:
        original, answers = getattr(executor._client, call), []

        def dying(*args, **kwargs):
            answers.append(original(*args, **kwargs))
            if len(answers) == 1:
                raise OSError("a worker closed the connection")  # as Dask's CommClosedError
            return answers[-1]

        setattr(executor._client, call, dying)
        assert list(executor.run(add_shared, range(5), {"numbers": range(5)})) == [0, 1, 2, 3, 4]
        assert len(answers) == calls


@pytest.fixture(scope="module")
def processes():
    dask = pytest.importorskip("dask")
    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 1}),
        dask_executor(2, processes=True) as executor,
    ):
        yield executor


class Counted:
    """Leaves a file wherever it is unpickled."""

    def __init__(self, folder):
        self.folder = folder

    def __setstate__(self, state):
        self.__dict__.update(state)
        (self.folder / f"{os.getpid()}-{time.monotonic_ns()}").touch()


def tell_process(task, shared, stop):
    time.sleep(0.01)
    return os.getpid()


def count_delivered():
    from fado.execution._dask import _delivered

    return len(_delivered)


def test_workers_are_sent_once_what_tasks_share_and_forget_it(processes, tmp_path):
    pids = set(processes.run(tell_process, range(30), Counted(tmp_path)))
    arrived = [int(path.name.split("-")[0]) for path in tmp_path.iterdir()]
    assert len(pids) == 2
    assert sorted(arrived) == sorted(pids)
    assert set(processes._client.run(count_delivered).values()) == {0}


def kill_at_three(task, shared, stop):
    if task == 3:
        os._exit(1)
    time.sleep(0.05)
    return task


@both
def test_a_task_that_takes_its_workers_with_it_is_lost(processes, order):
    """Dask may blame others that waited on the same workers."""
    results = list(run(processes, order, kill_at_three, range(8)))
    lost = {result.task: result.reason for result in results if isinstance(result, LostTask)}
    assert lost[3].startswith("KilledWorker: ")
    tasks = [result.task if isinstance(result, LostTask) else result for result in results]
    assert (tasks if order == "ordered" else sorted(tasks)) == list(range(8))
    assert len(lost) < 8
    assert list(processes.run(nap, range(4))) == [0, 1, 2, 3]


PRELOAD = """
import fado.execution._dask as dask
versions = dask.library_versions()
dask.library_versions = lambda: {**versions, "lightgbm": "0.1"}
"""


def test_a_late_worker_with_other_libraries_ends_the_run(processes, tmp_path):
    distributed = pytest.importorskip("distributed")
    preload = tmp_path / "preload.py"
    preload.write_text(PRELOAD)
    client = processes._client
    results = processes.run(nap, range(100_000))
    assert next(results) == 0

    async def join():
        return await distributed.Nanny(client.scheduler.address, nthreads=1, preload=[str(preload)])

    late = client.sync(join)
    try:
        with pytest.raises(ValueError, match=r"worker tcp:.* has other libraries: .*'lightgbm': '0.1'"):
            list(results)
    finally:
        client.sync(late.close)
    client.wait_for_workers(2)
    assert list(processes.run(nap, range(4))) == [0, 1, 2, 3]


def test_workers_of_one_process_may_go_one_by_one():
    pytest.importorskip("distributed")
    from fado.execution._dask import _delivered, _Delivery

    delivery = _Delivery("run", "shared")
    for _ in range(2):
        delivery.setup(None)
    stop = _delivered["run"].stop
    delivery.teardown(None)
    assert _delivered["run"].shared == "shared"
    assert not stop.is_set()
    delivery.teardown(None)
    assert "run" not in _delivered
    assert stop.is_set()


# --- what a cluster may be given by


@pytest.mark.parametrize("form", ["client", "cluster", "address"])
def test_a_cluster_is_given_by_a_client_a_cluster_or_an_address(form):
    with local_cluster(1) as cluster:
        from distributed import Client, get_worker

        with Client(cluster, set_as_default=False) as client:
            forms = {"client": client, "cluster": cluster, "address": cluster.scheduler_address}
            with on_cluster(forms[form]):
                (ran_on,) = cluster_executor().run(lambda *_: get_worker().address, [0])
            assert ran_on == cluster.workers[0].address
            assert cluster_executor() is None
            assert client.status == "running"  # what was handed over is not closed
        assert set(cluster.scheduler.clients) <= {"fire-and-forget"}  # what was opened here is
        with pytest.raises(
            ValueError, match=r"^The Dask client is closed: connect again, with `Client\(addr"
        ):
            on_cluster(client).__enter__()


@pytest.mark.parametrize(
    ("client", "error", "sentence"),
    [
        ("tcp://127.0.0.1:1", ValueError, "^There is no Dask scheduler at 'tcp://127.0.0.1:1': "),
        ("nowhere", ValueError, "^There is no Dask scheduler at 'nowhere': "),
        (7, TypeError, "^`client` must be a `dask.distributed.Client`, a cluster or the address .*, got 7"),
    ],
)
def test_what_is_no_cluster_gets_a_sentence(client, error, sentence, monkeypatch):
    pytest.importorskip("distributed")
    monkeypatch.setattr("fado.execution._executors._SECONDS", 0.2)
    with pytest.raises(error, match=sentence):
        on_cluster(client).__enter__()
    assert cluster_executor() is None
