"""The process of its own in which a run happens; the other end of `_supervisor.py`."""

from __future__ import annotations

import os
import signal
import threading
import traceback
import warnings
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import Any, NoReturn

from fado.experiment.run._runner import run_here
from fado.experiment.run._session import pack, unpack

__all__ = ["main"]


class _Stopped(BaseException):
    """The supervisor wants this process to put away what it holds, and to leave."""


def main(descriptor: int) -> None:
    """Do what comes over a pipe, and say over it what became of that.

    Parameters
    ----------
    descriptor : int
        This process's end of the pipe. What is said over it is a word and its content: ``begun``; ``alive``
        when it is asked; ``warning`` with a category and a text; then ``done``, ``error`` with an exception
        and its traceback, or ``unready`` with the reason why this process cannot do what it is asked.
    """
    signal.signal(signal.SIGTERM, _stop)
    os.set_inheritable(descriptor, False)
    pipe = Connection(descriptor)
    say = _Voice(pipe)
    try:
        try:
            unpack(pipe.recv_bytes()).restore()  # what follows may need its classes
            order, ending, holder = unpack(pipe.recv_bytes())
        except Exception as error:
            say("unready", f"{type(error).__name__}: {error}")
            return
        threading.Thread(target=_answer, args=(pipe, say), name="fado-pipe", daemon=True).start()
        _send_warnings(say)
        run_here(order, ending=ending, holder=holder, begun=lambda: say("begun"))
        say("done")
    except _Stopped:
        os._exit(128 + signal.SIGTERM)
    except BaseException as error:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        say("error", (_picklable(error), traceback.format_exc()))


class _Voice:
    """Says things over the pipe, from any thread."""

    def __init__(self, pipe: Any) -> None:
        self._pipe = pipe
        self._lock = threading.Lock()

    def __call__(self, word: str, content: Any = None) -> None:
        pickled = pack((word, content))
        with self._lock, suppress(OSError):  # without a supervisor this process ends anyway
            self._pipe.send_bytes(pickled)


def _send_warnings(say: _Voice) -> None:
    """Let the supervisor show the warnings, where the user will look for them."""

    def show(message: Any, category: Any, *_: Any, **__: Any) -> None:
        say("warning", (category, str(message)))

    warnings.showwarning = show


def _picklable(error: BaseException) -> BaseException:
    """Give an error as it is, or, if it cannot travel, one that says the same."""
    try:
        unpack(pack(error))
    except Exception:
        return RuntimeError(f"{type(error).__name__}: {error}")
    return error


def _stop(*_: Any) -> NoReturn:
    raise _Stopped


def _answer(pipe: Any, say: _Voice) -> None:
    """Say that Python's lock is free whenever the supervisor asks, and leave when it is gone."""
    with suppress(EOFError, OSError):
        while True:
            pipe.recv_bytes()
            say("alive")
    os._exit(1)
