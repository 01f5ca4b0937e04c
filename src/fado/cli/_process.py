"""How the program starts and ends: Ctrl-C, and streams that nobody reads any more."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import current_thread, main_thread
from typing import Any, NoReturn, TextIO

__all__ = ["CLOSED_PIPE", "Interrupts", "interruptible", "run_program"]

CLOSED_PIPE = 128 + 13  # what a shell says of a program that SIGPIPE ended, as `cat` and `grep` do
UNWRITTEN = 2


class Interrupts:
    """What Ctrl-C does while a command runs: it raises `KeyboardInterrupt`, the second time it ends all.

    Attributes
    ----------
    seen : bool
        Whether there was one: a library may have turned it into an error of its own.
    """

    def __init__(self) -> None:
        self.seen = False

    def __call__(self, number: int, _: Any) -> NoReturn:
        self.seen = True
        signal.signal(number, signal.SIG_DFL)
        raise KeyboardInterrupt


@contextmanager
def interruptible() -> Iterator[Interrupts]:
    """Let Ctrl-C raise `KeyboardInterrupt`, and note that it did; a handler of somebody else's stays."""
    before = signal.getsignal(signal.SIGINT)
    if isinstance(before, Interrupts):
        yield before
    elif current_thread() is not main_thread() or before not in (
        signal.SIG_DFL,
        signal.default_int_handler,
    ):
        yield Interrupts()
    else:
        handler = Interrupts()
        signal.signal(signal.SIGINT, handler)
        try:
            yield handler
        finally:
            signal.signal(signal.SIGINT, before)


def run_program(program: Callable[[], Any]) -> NoReturn:
    """Run the program and leave, with the code of a closed pipe if nobody reads what it prints."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # it was closed before the program began
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115, PTH123 - stays open to the end
    code: Any = 0
    failures: list[OSError] = []
    try:
        program()
    except SystemExit as stop:
        code = stop.code
        if code == 1 and isinstance(
            stop.__context__, BrokenPipeError
        ):  # so typer and rich leave a closed pipe
            failures.append(stop.__context__)
    except OSError as error:  # help and the like; commands have sentences for theirs
        failures.append(error)
    failures += [error for error in map(_flush, (sys.__stdout__, sys.__stderr__)) if error is not None]
    if not failures:
        raise SystemExit(code)
    if isinstance(failures[0], BrokenPipeError):
        raise SystemExit(CLOSED_PIPE)
    print(f"error: what is printed cannot be written: {failures[0].strerror}.", file=sys.stderr)
    raise SystemExit(UNWRITTEN)


def _flush(stream: TextIO | None) -> OSError | None:
    """Write what is printed, and give the error if that cannot be done."""
    if stream is None:
        return None
    try:
        stream.flush()
    except OSError as error:
        # Python flushes once more in the end, and would complain
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
        return error
    return None
