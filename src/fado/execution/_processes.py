"""Tasks in processes of their own: a crash or a hang costs the task that it happens in, and nothing else.

Every worker is a fresh process with one task at a time, told over a pipe what to do. When it dies, what it
was at is known; when that hangs, the process is ended. Workers write nothing: whoever waits for the results
keeps them.
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

TRIES = 3  # of a task whose workers die
_MOST_STILLBORN = 5  # workers in a row that die before they are ready
_SOON = 1.0  # seconds of work after which all workers are worth their start
_LOOK = 0.2  # seconds between two looks at the clock
_LONGEST_STEP = 1.0  # of time: a machine that slept makes nothing late
_LEAST_GRACE = 5.0  # seconds beyond the deadline; a fit that looks at the clock itself ends before
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
    """What a task needs cannot travel to another process."""


class _WorkerError(Exception):
    """Shows where in the worker an error came from."""

    def __str__(self) -> str:
        return f'\n"""\n{self.args[0]}"""'


def _pack(content: Any) -> bytes:
    """Pickle something for another process of ours; classes that no module holds are taken along whole."""
    from joblib import wrap_non_picklable_objects

    try:
        return pickle.dumps(wrap_non_picklable_objects((content,), keep_wrapper=False))
    except Exception as error:
        raise NotSentError(f"{type(error).__name__}: {error}") from error


def _unpack(packed: bytes) -> Any:
    """Give what was packed: what comes over a pipe between two processes of ours, never from a file."""
    (content,) = pickle.loads(packed)  # noqa: S301
    return content


@dataclass
class _Job:
    """A task on its way, and how many workers died of it."""

    number: int
    task: Any
    deaths: int = 0


class ProcessExecutor:
    """Runs tasks in processes, one run after the other; see `fado.execution.Executor`.

    Processes stay until the end of its ``with`` block; closing a run early ends those that work. Tasks are
    taken in the caller's thread. A task whose worker dies is tried again, alone, as it may have lacked
    memory; after the third time its result is a `LostTask`. Warnings are given here, each once. A second
    worker starts when the first is ready, all others after a second of work: a few small tasks are done
    sooner than more could start.

    Parameters
    ----------
    workers : int
        The most processes at a time.
    setup : sequence of callable
        Called without arguments in every worker, each sent when those before it are done, and all before
        anything else.
    deadline : float, optional
        Seconds that a timed phase of a task may take (see `tell`), and that one call of compiled code may
        take elsewhere; beyond it, by a grace, the worker is ended and the result is a `LostTask`.

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
        """Tell whether this system lets a process be handed a pipe."""
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
        """Give the results in the order of the tasks."""
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
        """Give the results as they come."""
        with closing(self._run(function, tasks, shared)) as batches:
            for batch in batches:
                yield list(batch.values())

    def _run(
        self, function: Function[Task, Result], tasks: Iterable[Task], shared: Any
    ) -> Generator[dict[int, Result | LostTask[Task]], None, None]:
        """Give the results by the numbers of their tasks."""
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
        """Give every worker a task that has none, and start workers as long as there are tasks for them."""
        while True:
            busy = [worker.job for worker in self._there if worker.job is not None]
            if any(job.deaths for job in busy) or (again and busy):  # it runs alone
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
        """Tell whether another worker would be worth its start."""
        self._there = [worker for worker in self._there if worker.job is not None or worker.is_alive()]
        most = 1
        if self._began is not None:
            most = self.workers if time.monotonic() - self._began > _SOON else min(2, self.workers)
        return len(self._there) < most

    def _hear(self, worker: _Worker, found: dict[int, Any], again: deque[_Job]) -> None:
        """Take in what a worker has said."""
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
                continue  # which tells nothing of how far it is
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
        """Bury a worker, and say what becomes of its task."""
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
    """One process, from its start until it is gone."""

    def __init__(self, setup: bytes, *, watched: bool) -> None:
        self.pipe, there = multiprocessing.Pipe()
        self.job: _Job | None = None
        self.phase, self.age, self.is_ready = "", 0.0, False
        self._shared: Any = None
        path = [entry for entry in sys.path if isinstance(entry, str)]
        code = _BOOT.format(parent=os.getpid(), path=path, descriptor=there.fileno(), watched=watched)
        own = [("stdout", sys.stdout, sys.__stdout__), ("stderr", progress_stream(), sys.__stderr__)]
        piped: dict[str, Any] = {name: subprocess.PIPE for name, stream, real in own if stream is not real}
        # Ctrl-C reaches all processes of a terminal; the one that waits ends its workers itself.
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
        """Send a task, after what it shares with others if that is not there yet."""
        packed = _pack((function, job.task))
        self.job, self.phase, self.age = job, "", 0.0
        if self._shared is not shared[0]:
            self._shared = shared[0]
            self._say("shared", shared[1])
        self._say("task", packed)

    def _say(self, word: str, packed: bytes) -> None:
        with suppress(OSError):  # it is gone, which the next look tells
            self.pipe.send_bytes(word.encode())
            self.pipe.send_bytes(packed)

    def end(self) -> str:
        """End the process, and say what it died of; one that is dead has died of what it did."""
        self._process.kill()
        code = self._process.wait()
        self.pipe.close()
        for thread in self._forwarding:
            thread.join(1)  # a process that the worker left behind may still hold the stream
        return _cause(code)


def _forward(stream: Any, own: Any) -> None:
    """Write what a worker prints to where this process's own output goes, which may be a notebook."""
    with stream:
        for line in stream:
            with suppress(OSError, ValueError):  # nobody reads it, or a notebook's stream is closed
                own.write(line)


def _cause(code: int) -> str:
    """Say what a process died of.

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
    """Says things to the process that waits, from any thread of a worker."""

    def __init__(self, pipe: Connection) -> None:
        self._pipe = pipe
        self._lock = threading.Lock()
        self.timed = False

    def __call__(self, word: str, content: Any = None) -> None:
        packed = _pack((word, content))
        with self._lock, suppress(OSError):  # without a parent this process ends anyway
            self._pipe.send_bytes(packed)


_voice: _Voice | None = None  # there is one in a worker


def tell(phase: str, *, timed: bool = False) -> None:
    """Say what the task of this worker is at; anywhere else, nothing.

    A timed phase may take as long as the executor's deadline. Any other may last as long as it comes along.
    """
    if _voice is not None:
        _voice.timed = timed
        _voice("phase", phase)


def work(descriptor: int, watched: bool) -> None:
    """Do what comes over a pipe, one task after the other, and say over it what became of each."""
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
                _unpack(step)()  # what follows may need its classes
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
    """Do one task."""
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
    """Take in what is sent, and leave when there is nobody to send any more."""
    with suppress(EOFError, OSError):
        while True:
            messages.put((pipe.recv_bytes().decode(), pipe.recv_bytes()))
    os._exit(1)


def _beat(say: _Voice) -> None:
    """Tell every second that some thread comes back from compiled code, or that other processes work.

    Nobody can ask a task how far it is. But a thread whose frame, place in it and variables are the same as
    before is inside one call of compiled code; and if that call holds Python's lock, nothing is told either.
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
    """Tell whether this process has others work for it, as far as the system says."""
    try:
        return any(path.read_text() for path in Path("/proc/self/task").glob("*/children"))
    except OSError:
        return False
