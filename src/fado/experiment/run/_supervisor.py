"""Run an experiment in a process of its own, and start another when that one crashes or hangs.

The run happens in one child process at a time, started afresh and told what to do over a pipe. Compiled code
that crashes takes the child with it, and compiled code that hangs is ended with it. The next child finds in
the store what is done, counts the crash against the work it happened in, and goes on.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Any

from fado._messages import warn_user
from fado._progress import progress_stream
from fado.experiment.run._crashes import Ending, culprits, forget_notes
from fado.experiment.run._order import RunOrder
from fado.experiment.run._session import Session, pack, unpack
from fado.experiment.run._watch import Watch
from fado.experiment.store import RUNNING, Record, Store

__all__ = ["NotIsolatedError", "can_isolate", "supervise"]

_MOST_DEATHS = 5  # in a row, without anything done or anyone to blame
_LOOK = 0.2  # seconds between two looks at the notes
_PATIENCE = 3.0  # seconds for a child to put away what it holds
_ANSWER = 5.0  # seconds for a child to answer, unless something holds Python's lock
_BOOT = """
import ctypes, os, sys
if sys.platform == "linux":  # the system ends a child whose supervisor is gone, even while it hangs
    PR_SET_PDEATHSIG, SIGKILL = 1, 9
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, SIGKILL)
    if os.getppid() != {supervisor}:
        os._exit(1)
sys.path[:] = {path!r}
from fado.experiment.run._child import main
main({descriptor})
"""


class NotIsolatedError(Exception):
    """What is asked for cannot travel to another process."""


class _ChildError(Exception):
    """Shows where in the child an error came from."""

    def __str__(self) -> str:
        return f'\n"""\n{self.args[0]}"""'


def can_isolate() -> bool:
    """Tell whether this system lets a process be supervised."""
    return os.name == "posix" and bool(sys.executable)


def supervise(order: RunOrder) -> None:
    """Do what the store lacks, in child processes.

    Errors and warnings of a child are raised and shown here. An interrupt ends the child.

    Raises
    ------
    NotIsolatedError
        If something cannot be sent to a child, before anything is done.
    RuntimeError
        If children die again and again, and neither is anything done nor anyone to blame.
    """
    try:
        session = pack(Session.of_this_process())
        pack(order)
    except Exception as error:
        raise NotIsolatedError(f"{type(error).__name__}: {error}") from error
    ending, deaths, shown = Ending(), 0, set[tuple[type, str]]()
    known = _records(order)
    while True:
        try:
            with _Child(session, order, ending, shown) as child:
                ending, reason = child.outlived()
                if child.begun:
                    order = replace(order, retry_failed=False)
        except KeyboardInterrupt:
            forget_notes(order.store / RUNNING)  # nothing is to blame, even if the child had to be killed
            raise
        if reason is None:
            return
        now = _records(order)
        blamed = bool(ending.late or culprits(order.store / RUNNING, died=ending.died))
        deaths = 0 if blamed or now != known else deaths + 1
        if not blamed:  # perhaps memory was short; and of fewer, more is known when they crash or hang
            order = replace(order, workers=max(1, order.workers // 4))
        if deaths >= _MOST_DEATHS:
            raise RuntimeError(
                f"The process of the run {reason} {deaths} times in a row before it had done anything. What "
                f"was done before is kept in the store {str(order.store)!r}."
            )
        known = now
        if order.progress:
            print(f"the process of the run {reason}; another goes on", file=progress_stream(), flush=True)


def _records(order: RunOrder) -> dict[tuple[str, str], Record]:
    try:
        with Store.reading(order.store) as store:
            return store.records
    except (OSError, ValueError):
        return {}


class _Child:
    """One child process, from its start until it is gone.

    Parameters
    ----------
    session : bytes
        What it must know of this process, pickled.
    order : RunOrder
        What it is to do.
    ending : Ending
        How the one before it ended.
    shown : set
        Categories and texts of the warnings that those before it gave, which need not be shown again.
    """

    def __init__(self, session: bytes, order: RunOrder, ending: Ending, shown: set[tuple[type, str]]) -> None:
        self._messages = [session, pack((order, ending, os.getpid()))]
        self._watch = Watch(order.store / RUNNING, order.config.models.deadline)
        self._alone = order.workers == 1
        self._shown = shown
        self._shown_before = set(shown)
        self._process: subprocess.Popen[str] | None = None
        self._forwarding: list[threading.Thread] = []
        self.begun = False

    def __enter__(self) -> _Child:
        return self

    def _start(self) -> subprocess.Popen[str]:
        self._pipe, there = multiprocessing.Pipe()
        path = [entry for entry in sys.path if isinstance(entry, str)]
        code = _BOOT.format(supervisor=os.getpid(), path=path, descriptor=there.fileno())
        # A child's progress lines belong where ours do; its errors come over the pipe.
        own = [("stdout", sys.stdout, sys.__stdout__), ("stderr", progress_stream(), sys.__stderr__)]
        piped: dict[str, Any] = {name: subprocess.PIPE for name, stream, real in own if stream is not real}
        with there, _interrupts_kept_from_children():
            process = self._process = subprocess.Popen(  # noqa: S603 - this interpreter, and nothing of the user's
                [sys.executable, "-c", code],
                stdin=subprocess.DEVNULL,
                pass_fds=[there.fileno()],
                text=True,
                errors="replace",
                **piped,
            )
        self._forwarding = [
            threading.Thread(target=_forward, args=(getattr(process, name), stream), daemon=True)
            for name, stream, _ in own
            if name in piped
        ]
        for thread in self._forwarding:
            thread.start()
        return process

    def __exit__(self, *_: object) -> None:
        process = self._process
        if process is None:
            return
        try:
            if process.poll() is None:
                process.terminate()
                with suppress(subprocess.TimeoutExpired):
                    process.wait(_PATIENCE)
        finally:
            process.kill()
            process.wait()
            self._pipe.close()
            for thread in self._forwarding:
                thread.join(1)  # a process that the child left behind may still hold the stream

    def outlived(self) -> tuple[Ending, str | None]:
        """Wait until the child is done or gone; say how it ended, and what it died of, if it did."""
        process = self._start()
        with suppress(OSError):  # it is gone already
            for message in self._messages:
                self._pipe.send_bytes(message)
        asked = None
        while True:
            late = self._watch.late() if self.begun else ()  # before, notes are those of the child before
            if not late:
                asked = None
            elif asked is None:
                asked = time.monotonic()
                with suppress(OSError):
                    self._pipe.send_bytes(b"")
            elif time.monotonic() - asked > _ANSWER:
                return self._ended(process, self._holders(process.pid, late))
            if not self._pipe.poll(_LOOK):
                continue
            try:
                word, content = unpack(self._pipe.recv_bytes())
            except (EOFError, OSError):
                code = process.wait()
                return Ending(died=code >= 0), _cause(code)
            if word == "alive" and late:
                return self._ended(process, late)
            if word == "done":
                with suppress(subprocess.TimeoutExpired):
                    process.wait(_PATIENCE)
                return Ending(), None
            self._hear(word, content)

    def _holders(self, pid: int, late: tuple[str, ...]) -> tuple[str, ...]:
        """Say whose work holds Python's lock; nobody's if it may be one of several: fewer tell more."""
        holding = self._watch.holding_lock(pid)
        if len(holding) == 1 or self._alone:
            return holding or late
        return ()

    def _ended(self, process: subprocess.Popen[str], late: tuple[str, ...]) -> tuple[Ending, str]:
        """End a child in which some work hangs."""
        process.kill()
        return Ending(late=late), "hung"

    def _hear(self, word: str, content: Any) -> None:
        if word == "begun":
            self.begun = True
        elif word == "unready":
            raise NotIsolatedError(content)
        elif word == "error":
            error, trace = content
            raise error from _ChildError(trace)
        elif word == "warning" and content not in self._shown_before:
            self._shown.add(content)
            category, text = content
            warn_user(text, category)


@contextmanager
def _interrupts_kept_from_children() -> Iterator[None]:
    """Let a child that is started here not hear of Ctrl-C: the supervisor does, and ends it."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _forward(stream: Any, own: Any) -> None:
    """Write what a child prints to where this process's own output goes, which may be a notebook."""
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
