"""The command line. Every command wraps one call of the library.

This module imports nothing that takes time, so that Ctrl-C finds `main` on guard from the very beginning.
"""

from __future__ import annotations

import sys
from _signal import SIG_DFL, SIGINT, default_int_handler, getsignal, signal  # `signal` itself takes time

__all__ = ["main"]

BAD_INPUT = 2


def main() -> None:
    """Run the command line."""
    _stop_at_once_when_interrupted()
    from fado.cli._process import run_program

    run_program(_program)


def _stop_at_once_when_interrupted() -> None:
    """Let Ctrl-C end the process without a word, as long as no command runs that has something to put away.

    An exception would surface in the middle of an import, as a traceback or as another library's error.
    """
    if getsignal(SIGINT) is default_int_handler:
        try:
            signal(SIGINT, SIG_DFL)
        except ValueError:  # not the main thread, which alone hears of Ctrl-C
            return


def _program() -> None:
    try:
        from fado.cli._app import build_app
    except ModuleNotFoundError as error:
        needed = (error.name or "").partition(".")[0]
        if needed == "fado":
            raise
        print(
            f"error: the command line needs {needed}: install it with `pip install 'fado-ml[cli]'`.",
            file=sys.stderr,
        )
        raise SystemExit(BAD_INPUT) from None
    build_app()()
