"""Tasks in separate processes: a crash or a hang costs only the task in which it happens.

Every worker is a new process that runs one task at a time, which it gets over a pipe. If it dies, its task is
known; if it hangs, it is ended. Workers write no files: the caller saves the results.
"""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
import traceback
import warnings
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.connection import wait as wait_for
from pathlib import Path
from queue import SimpleQueue
from typing import Any, Self

from fado._messages import warn_user
from fado._progress import progress_stream
from fado.execution._executors import Function, LostTask, Result, Task

TRIES = 3  # for a task whose workers die
_MOST_STILLBORN = 5  # workers in a row that die before they are ready
_SOON = 1.0  # seconds of work after which all workers are started
_LOOK = 0.2  # seconds between two checks of the clock
_LONGEST_STEP = 1.0  # seconds that count at most: time in which the machine slept does not
_LEAST_GRACE = 5.0  # seconds after the deadline; a fit that checks the clock itself ends earlier
_BEAT = 1.0
_BOOT = """
import ctypes, os, sys
if sys.platform == "linux":  # the system ends a worker whose parent is gone, even while it hangs
    PR_SET_PDEATHSIG, SIGKILL = 1, 9
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, SIGKILL)
    if os.getppid() != {parent}:
        os._exit(1)
sys.path[:] = {path!r}
from fado.execution._processes import work
work({descriptor}, {watched})
"""


class NotSentError(Exception):
    """The data of a task cannot be sent to another process."""


class _WorkerError(Exception):
    """Shows where in the worker an error came from."""

    def __str__(self) -> str:
        return f'\n"""\n{self.args[0]}"""'


def _pack(content: Any) -> bytes:
    """Pickle something for another process; classes that cannot be imported there are included."""
    from joblib import wrap_non_picklable_objects

    try:
        return pickle.dumps(wrap_non_picklable_objects((content,), keep_wrapper=False))
    except Exception as error:
        raise NotSentError(f"{type(error).__name__}: {error}") from error


def _unpack(packed: bytes) -> Any:
    """Unpickle what came over a pipe from a process of this run, never from a file."""
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
    memory. After the third time its result is a `LostTask`. Warnings are shown here, each once. A second
    worker starts when the first is ready, all others after a second of work: a few small tasks need no more.

    Parameters
    ----------
    workers : int
        The largest number of processes at a time.
    setup : sequence of callable
        Functions without arguments that every worker calls first, in order.
    deadline : float, optional
        Seconds that a timed phase of a task may take (see `tell`), and that one call of compiled code may
        take in other phases. After the deadline and a grace period, the worker is ended and the result is a
        `LostTask`.

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
        self._limit = None if deadline is None else deadline + max(_LEAST_GRACE, deadline / 2)
        self._there: list[_Worker] = []
        self._shared: tuple[Any, bytes] = (None, _pack(None))
        self._began: float | None = None
        self._stillborn = 0
        self._shown: set[tuple[type[Warning], str]] = set()

    @staticmethod
    def is_supported() -> bool:
        """Return whether this system can pass a pipe to a process."""
        return os.name == "posix" and bool(sys.executable)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for worker in self._there:
            worker.end()
        self._there = []

    def run(
        self, function: Function[Task, Result], tasks: Iterable[Task], shared: Any = None
    ) -> Generator[Result | LostTask[Task], None, None]:
        """Return the results in the order of the tasks."""
        found: dict[int, Result | LostTask[Task]] = {}
        given = 0
        with closing(self._run(function, tasks, shared)) as batches:
            for batch in batches:
                found |= batch
                while given in found:
                    yield found.pop(given)
                    given += 1

    def run_unordered(
        self, function: Function[Task, Result], tasks: Iterable[Task], shared: Any = None
    ) -> Generator[list[Result | LostTask[Task]], None, None]:
        """Return the results as they come."""
        with closing(self._run(function, tasks, shared)) as batches:
            for batch in batches:
                yield list(batch.values())

    def _run(
        self, function: Function[Task, Result], tasks: Iterable[Task], shared: Any
    ) -> Generator[dict[int, Result | LostTask[Task]], None, None]:
        """Return the results by the numbers of their tasks."""
        if shared is not self._shared[0]:
            self._shared = shared, _pack(shared)
        remaining, again = (_Job(*numbered) for numbered in enumerate(tasks)), deque[_Job]()
        looked = time.monotonic()
        try:
            while True:
                self._hand_out(function, remaining, again)
                busy = [worker for worker in self._there if worker.job is not None]
                if not busy:
                    return
                ready = wait_for([worker.pipe for worker in busy], _LOOK)
                now = time.monotonic()
                step, looked = min(now - looked, _LONGEST_STEP), now
                found: dict[int, Any] = {}
                for worker in busy:
                    worker.age += step if worker.is_ready else 0.0
                    if worker.pipe in ready or not worker.is_alive():
                        self._hear(worker, found, again)
                    elif self._limit is not None and worker.age > self._limit:
                        self._lose(worker, found, again, hung=True)
                if found:
                    yield found
        finally:
            for worker in [own for own in self._there if own.job is not None]:
                worker.end()
                self._there.remove(worker)

    def _hand_out(self, function: Any, remaining: Iterator[_Job], again: deque[_Job]) -> None:
        """Give a task to every idle worker, and start workers while there are tasks for them."""
        while True:
            busy = [worker.job for worker in self._there if worker.job is not None]
            if any(job.deaths for job in busy) or (again and busy):  # such a task runs alone
                return
            idle = [worker for worker in self._there if worker.job is None and worker.is_alive()]
            if not idle and not self._may_start():
                return
            job = again.popleft() if again else next(remaining, None)
            if job is None:
                return
            if not idle:
                idle = [_Worker(self._setup, watched=self._limit is not None)]
                self._there += idle
            idle[0].give(job, function, self._shared)

    def _may_start(self) -> bool:
        """Return whether another worker may be started."""
        self._there = [worker for worker in self._there if worker.job is not None or worker.is_alive()]
        most = 1
        if self._began is not None:
            most = self.workers if time.monotonic() - self._began > _SOON else min(2, self.workers)
        return len(self._there) < most

    def _hear(self, worker: _Worker, found: dict[int, Any], again: deque[_Job]) -> None:
        """Read the messages of a worker."""
        is_alive = worker.is_alive()
        while worker.job is not None:
            try:
                if not worker.pipe.poll():
                    break
                packed = worker.pipe.recv_bytes()
            except (EOFError, OSError):
                is_alive = False
                break
            word, content = _unpack(packed)
            if word == "ready":
                self._stillborn = 0
                self._began = self._began or time.monotonic()
                worker.is_ready = True
            elif word == "done":
                found[worker.job.number] = content
                worker.job = None
            elif word == "unsent":
                raise NotSentError(content)
            elif word == "error":
                error, trace = content
                raise error from _WorkerError(trace)
            elif word == "warning":
                self._warn(*content)
                continue  # a warning is not progress
            elif word == "phase":
                worker.phase = content
            worker.age = 0.0
        if worker.job is not None and not is_alive:
            self._lose(worker, found, again)

    def _warn(self, category: type[Warning], text: str) -> None:
        if (category, text) not in self._shown:
            self._shown.add((category, text))
            warn_user(text, category)

    def _lose(
        self, worker: _Worker, found: dict[int, Any], again: deque[_Job], *, hung: bool = False
    ) -> None:
        """Remove a dead or hung worker, and try its task again or give it up."""
        job, reason = worker.job, worker.end()
        self._there.remove(worker)
        if job is None:
            return
        if not worker.is_ready:
            self._stillborn += 1
            if self._stillborn >= _MOST_STILLBORN:
                raise RuntimeError(
                    f"A worker process {reason} {self._stillborn} times in a row before it had done anything."
                )
            again.append(job)
            return
        job.deaths += 1
        if hung or job.deaths >= TRIES:
            found[job.number] = LostTask(job.task, reason, hung, worker.phase, job.deaths)
        else:
            again.append(job)


class _Worker:
    """One worker process."""

    def __init__(self, setup: bytes, *, watched: bool) -> None:
        self.pipe, there = multiprocessing.Pipe()
        self.job: _Job | None = None
        self.phase, self.age, self.is_ready = "", 0.0, False
        self._shared: Any = None
        path = [entry for entry in sys.path if isinstance(entry, str)]
        code = _BOOT.format(parent=os.getpid(), path=path, descriptor=there.fileno(), watched=watched)
        own = [("stdout", sys.stdout, sys.__stdout__), ("stderr", progress_stream(), sys.__stderr__)]
        piped: dict[str, Any] = {name: subprocess.PIPE for name, stream, real in own if stream is not real}
        # Ctrl-C reaches all processes of a terminal; this process ends its workers itself.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
        try:
            with there:
                self._process = subprocess.Popen(  # noqa: S603 - this interpreter, and nothing of the user's
                    [sys.executable, "-c", code],
                    stdin=subprocess.DEVNULL,
                    pass_fds=[there.fileno()],
                    text=True,
                    errors="replace",
                    **piped,
                )
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        self._forwarding = [
            threading.Thread(target=_forward, args=(getattr(self._process, name), stream), daemon=True)
            for name, stream, _ in own
            if name in piped
        ]
        for thread in self._forwarding:
            thread.start()
        self._say("setup", setup)

    def is_alive(self) -> bool:
        return self._process.poll() is None

    def give(self, job: _Job, function: Any, shared: tuple[Any, bytes]) -> None:
        """Send a task, and first the shared data if the worker does not have them."""
        packed = _pack((function, job.task))
        self.job, self.phase, self.age = job, "", 0.0
        if self._shared is not shared[0]:
            self._shared = shared[0]
            self._say("shared", shared[1])
        self._say("task", packed)

    def _say(self, word: str, packed: bytes) -> None:
        with suppress(OSError):  # a dead worker is noticed later
            self.pipe.send_bytes(word.encode())
            self.pipe.send_bytes(packed)

    def end(self) -> str:
        """End the process, and return why it ended."""
        self._process.kill()
        code = self._process.wait()
        self.pipe.close()
        for thread in self._forwarding:
            thread.join(1)  # a process that the worker left behind may still hold the stream
        return _cause(code)


def _forward(stream: Any, own: Any) -> None:
    """Write the output of a worker to the output of this process, which may be a notebook."""
    with stream:
        for line in stream:
            with suppress(OSError, ValueError):  # nobody reads it, or a notebook's stream is closed
                own.write(line)


def _cause(code: int) -> str:
    """Describe why a process ended.

    Examples
    --------
    >>> _cause(-11), _cause(3)
    ('died of SIGSEGV', 'left with code 3')
    """
    if code >= 0:
        return f"left with code {code}"
    try:
        return f"died of {signal.Signals(-code).name}"
    except ValueError:
        return f"died of signal {-code}"


class _Voice:
    """Sends messages to the parent process, from any thread of a worker."""

    def __init__(self, pipe: Connection) -> None:
        self._pipe = pipe
        self._lock = threading.Lock()
        self.timed = False

    def __call__(self, word: str, content: Any = None) -> None:
        packed = _pack((word, content))
        with self._lock, suppress(OSError):  # without a parent this process ends anyway
            self._pipe.send_bytes(packed)


_voice: _Voice | None = None  # set in a worker


def tell(phase: str, *, timed: bool = False) -> None:
    """Report the phase of this worker's task; outside workers, do nothing.

    A timed phase may last as long as the executor's deadline, any other as long as it makes progress.

    Parameters
    ----------
    phase : str
        The name of the phase.
    timed : bool, default=False
        Whether the deadline applies to the phase.
    """
    if _voice is not None:
        _voice.timed = timed
        _voice("phase", phase)


def work(descriptor: int, watched: bool) -> None:
    """Run the tasks that come over a pipe, one after the other, and send the results back."""
    global _voice
    os.set_inheritable(descriptor, False)
    pipe = Connection(descriptor)
    say = _voice = _Voice(pipe)
    messages: SimpleQueue[tuple[str, bytes]] = SimpleQueue()
    threading.Thread(target=_read, args=(pipe, messages), name="fado-pipe", daemon=True).start()
    if watched:
        threading.Thread(target=_beat, args=(say,), name="fado-heartbeat", daemon=True).start()
    warnings.showwarning = lambda message, category, *_, **__: say("warning", (category, str(message)))
    shared = None
    while True:
        word, packed = messages.get()
        try:
            content = _unpack(packed)
            for step in content if word == "setup" else ():
                _unpack(step)()  # the following steps may need its classes
        except Exception as error:
            say("unsent", f"{type(error).__name__}: {error}")
            continue
        if word == "setup":
            say("ready")
        elif word == "shared":
            shared = content
        else:
            function, task = content
            _do(function, task, shared, say)


def _do(function: Any, task: Any, shared: Any, say: _Voice) -> None:
    """Run one task."""
    say.timed = False
    try:
        say("done", function(task, shared, threading.Event()))
    except BaseException as error:
        try:
            _unpack(_pack(error))
        except Exception:
            error = RuntimeError(f"{type(error).__name__}: {error}")
        say("error", (error, traceback.format_exc()))


def _read(pipe: Connection, messages: SimpleQueue[tuple[str, bytes]]) -> None:
    """Read messages, and exit when the parent process is gone."""
    with suppress(EOFError, OSError):
        while True:
            messages.put((pipe.recv_bytes().decode(), pipe.recv_bytes()))
    os._exit(1)


def _beat(say: _Voice) -> None:
    """Send a sign of life every second while Python code makes progress, or child processes run.

    A thread whose frame, position and variables have not changed is inside one call of compiled code. If that
    call holds Python's lock, nothing is sent at all.
    """
    before: Any = None
    while True:
        time.sleep(_BEAT)
        now = {
            thread: (id(frame), frame.f_lasti, tuple(map(id, frame.f_locals.values())))
            for thread, frame in sys._current_frames().items()
            if thread != threading.get_ident()
        }
        if not say.timed and (now != before or _has_children()):
            say("beat")
        before = now


def _has_children() -> bool:
    """Return whether this process has child processes, as far as known."""
    try:
        return any(path.read_text() for path in Path("/proc/self/task").glob("*/children"))
    except OSError:
        return False
