"""Tasks in separate processes: a crash or a hang costs only the task in which it happens.

Every worker is a pool of one process, so that its task is known when it dies or hangs. loky starts the
processes: it does not fork, with which OpenMP would hang, nor run the caller's script again. Workers write no
files: the caller saves the results.
"""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import pickle
import signal
import sys
import threading
import time
import warnings
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing, suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any, Self

from fado._messages import warn_user
from fado.execution._executors import Function, LostTask, Result, Task

TRIES = 3  # for a task whose workers die
_MOST_STILLBORN = 5  # workers in a row that die before they are ready
_LOOK = 0.2  # seconds between two checks of the clock
_LONGEST_STEP = 1.0  # seconds that count at most: time in which the machine slept does not
_LEAST_GRACE = 5.0  # seconds after the deadline; a fit that checks the clock itself ends earlier


class NotSentError(Exception):
    """The data of a task cannot be sent to another process."""


def _pack(content: Any) -> bytes:
    """Pickle something for another process; classes that cannot be imported there are included."""
    from joblib import wrap_non_picklable_objects

    try:
        return pickle.dumps(wrap_non_picklable_objects((content,), keep_wrapper=False))
    except Exception as error:
        raise NotSentError(f"{type(error).__name__}: {error}") from error


def _unpack(packed: bytes) -> Any:
    """Unpickle what came from a process of this run, never from a file."""
    (content,) = pickle.loads(packed)  # noqa: S301
    return content


@dataclass
class _Job:
    """A submitted task, and how many workers died while running it."""

    number: int
    task: Any
    deaths: int = 0


class ProcessExecutor:
    """Runs tasks in processes, one run after the other; see `fado.execution.Executor`.

    Processes last until the end of its ``with`` block; closing a run early ends the busy ones. Tasks are
    taken in the caller's thread. A task whose worker dies is tried again, alone, because it may have lacked
    memory. After the third time its result is a `LostTask`. Warnings are shown here, each once.

    Parameters
    ----------
    workers : int
        The largest number of processes at a time.
    setup : sequence of callable
        Functions without arguments that every worker calls first, in order.
    deadline : float, optional
        Seconds that a timed phase of a task may take (see `tell`). After the deadline and a grace period, the
        worker is ended and the result is a `LostTask`.

    See Also
    --------
    fado.execution.Executor : The methods of all executors.

    Examples
    --------
    >>> with ProcessExecutor(2) as executor:
    ...     list(executor.run(lambda task, shared, stop: task * shared, range(5), shared=10))
    [0, 10, 20, 30, 40]
    """

    def __init__(
        self, workers: int, *, setup: Sequence[Callable[[], Any]] = (), deadline: float | None = None
    ) -> None:
        self.workers = workers
        self._setup = _pack([_pack(step) for step in setup])
        self._limit = float("inf") if deadline is None else deadline + max(_LEAST_GRACE, deadline / 2)
        self._started: list[_Worker] = []
        self._shared: tuple[Any, bytes] = (None, _pack(None))
        self._stillborn = 0
        self._shown: set[tuple[type[Warning], str]] = set()

    @staticmethod
    def is_supported() -> bool:
        """Return whether this system can start such processes."""
        return os.name == "posix" and bool(sys.executable)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        while self._started:
            self._started.pop().end()

    def run(
        self, function: Function[Task, Result], tasks: Iterable[Task], shared: Any = None
    ) -> Generator[Result | LostTask[Task], None, None]:
        """Return the results in the order of the tasks."""
        early: dict[int, Result | LostTask[Task]] = {}
        number = 0
        with closing(self._run(function, tasks, shared)) as batches:
            for batch in batches:
                early |= batch
                while number in early:
                    yield early.pop(number)
                    number += 1

    def run_unordered(
        self, function: Function[Task, Result], tasks: Iterable[Task], shared: Any = None
    ) -> Generator[list[Result | LostTask[Task]], None, None]:
        """Return the results as they come."""
        with closing(self._run(function, tasks, shared)) as batches:
            for batch in batches:
                yield list(batch.values())

    def _run(
        self, function: Function[Task, Result], tasks: Iterable[Task], shared: Any
    ) -> Generator[dict[int, Any], None, None]:
        """Return the results by the numbers of their tasks."""
        if shared is not self._shared[0]:
            self._shared = shared, _pack(shared)
        remaining, again = (_Job(*numbered) for numbered in enumerate(tasks)), deque[_Job]()
        clock = time.monotonic()
        try:
            while busy := self._hand_out(function, remaining, again):
                wait([worker.future for worker in busy], _LOOK, FIRST_COMPLETED)
                now = time.monotonic()
                step, clock = min(now - clock, _LONGEST_STEP), now
                results: dict[int, Any] = {}
                for worker in busy:
                    worker.listen(step)
                    number, is_done = worker.job.number, worker.future.done()
                    if is_done and not isinstance(worker.future.exception(), BrokenProcessPool):
                        results[number] = self._result(worker)
                    elif is_done or worker.age > self._limit:
                        self._lose(worker, results, again, hung=not is_done)
                if results:
                    yield results
        finally:
            for worker in [worker for worker in self._started if worker.job is not None]:
                self._started.remove(worker)
                worker.end()

    def _hand_out(self, function: Any, remaining: Iterator[_Job], again: deque[_Job]) -> list[_Worker]:
        """Give tasks to idle or new workers, and return the busy; a task whose worker died runs alone."""
        while True:
            busy = [worker for worker in self._started if worker.job is not None]
            if len(busy) == self.workers or (busy and (again or any(one.job.deaths for one in busy))):
                return busy
            job = again.popleft() if again else next(remaining, None)
            if job is None:
                return busy
            packed = _pack((function, job.task))
            idle = next((worker for worker in self._started if worker.job is None), None)
            if idle is None:
                idle = _Worker()
                self._started.append(idle)
            idle.give(job, packed, self._setup, self._shared)

    def _result(self, worker: _Worker) -> Any:
        """Return the result of a task, or raise its error; show its warnings."""
        self._stillborn = 0
        packed, caught = worker.future.result()
        worker.job = None
        for category, text in caught:
            if (category, text) not in self._shown:
                self._shown.add((category, text))
                warn_user(text, category)
        return _unpack(packed)

    def _lose(self, worker: _Worker, results: dict[int, Any], again: deque[_Job], *, hung: bool) -> None:
        """Remove a dead or hung worker, and try its task again or give it up."""
        self._started.remove(worker)
        job, reason = worker.job, f"left with code {worker.end()}"
        if worker.is_ready:
            job.deaths += 1
        else:
            self._stillborn += 1
        if self._stillborn == _MOST_STILLBORN:
            raise RuntimeError(
                f"A worker process {reason} {self._stillborn} times in a row before it had done anything."
            )
        if hung or job.deaths == TRIES:
            results[job.number] = LostTask(job.task, reason, hung, worker.phase, job.deaths)
        else:
            again.append(job)


class _Worker:
    """One worker process, and its task."""

    def __init__(self) -> None:
        from joblib.externals.loky.backend import get_context

        self.job: Any = None
        self.phase, self.is_timed, self.age, self.is_ready = "", False, 0.0, False
        self._process: Any = None
        self._shared: Any = _pack  # nothing that a run shares
        self._pipe, self._their_end = multiprocessing.Pipe()
        self._pool = ProcessPoolExecutor(1, get_context("loky"), _begin, (self._their_end,))

    def give(self, job: _Job, packed: bytes, setup: bytes, shared: tuple[Any, bytes]) -> None:
        """Send a task, with the shared data if the worker does not have them."""
        self.job, self.phase, self.is_timed, self.age = job, "", False, 0.0
        new = self._shared is not shared[0]
        # Ctrl-C reaches all processes of a terminal; this process ends its workers itself.
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
        try:
            first = None if self._process else setup
            self.future = self._pool.submit(_work, packed, shared[1] if new else None, first)
            (self._process,) = self._pool._processes.values()
        except BrokenProcessPool as error:  # it died while it was idle
            self.future = Future()
            self.future.set_exception(error)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        self._shared = shared[0]
        self._their_end.close()

    def listen(self, step: float) -> None:
        """Read which phase the task is in, and count its seconds."""
        self.age += step if self.is_timed else 0.0
        with suppress(EOFError, OSError):
            while self._pipe.poll():
                self.phase, self.is_timed = self._pipe.recv()
                self.is_ready, self.age = True, 0.0

    def end(self) -> int | None:
        """End the process, and return its exit code, as far as known."""
        with suppress(ProcessLookupError):
            if self._process is not None and self._process.exitcode is None:
                os.kill(self._process.pid, signal.SIGKILL)
        self._pool.shutdown()
        self._pipe.close()
        return None if self._process is None else self._process.exitcode


_pipe: Connection | None = None  # to the parent process, in a worker
_shared: Any = None
_caught: list[tuple[type[Warning], str]] = []


def tell(phase: str, *, timed: bool = False) -> None:
    """Report the phase of this worker's task; outside workers, do nothing.

    Parameters
    ----------
    phase : str
        The name of the phase.
    timed : bool, default=False
        Whether the deadline applies to the phase.
    """
    if _pipe is not None:
        with suppress(OSError):  # without a parent this process ends anyway
            _pipe.send((phase, timed))


def _begin(pipe: Connection) -> None:
    """Prepare a worker: it ends with its parent, and collects warnings."""
    global _pipe
    _pipe = pipe
    if sys.platform == "linux":  # the system ends it even while it hangs
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
    threading.Thread(target=_end_with_parent, args=(pipe,), name="fado-pipe", daemon=True).start()
    warnings.showwarning = lambda message, category, *_, **__: _caught.append((category, str(message)))


def _end_with_parent(pipe: Connection) -> None:
    with suppress(EOFError, OSError):
        pipe.recv()  # nothing is ever sent
    os._exit(1)


def _work(packed: bytes, shared: bytes | None, setup: bytes | None) -> tuple[bytes, list[Any]]:
    """Run a task in a worker, and return its result and the warnings; errors are raised."""
    global _shared
    try:
        for step in () if setup is None else _unpack(setup):
            _unpack(step)()  # the following steps may need its classes
        _shared = _shared if shared is None else _unpack(shared)
        function, task = _unpack(packed)
    except Exception as error:
        raise NotSentError(f"{type(error).__name__}: {error}") from error
    tell("")
    _caught.clear()
    try:
        return _pack(function(task, _shared, threading.Event())), _caught
    except BaseException as error:
        try:
            _unpack(_pack(error))
        except Exception:
            raise RuntimeError(f"{type(error).__name__}: {error}") from error
        raise
