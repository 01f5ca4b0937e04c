"""The command line. Every command wraps one call of the library.

This module imports nothing that takes time, so that Ctrl-C finds `main` on guard from the very beginning.
"""

from __future__ import annotations

from _signal import SIG_DFL, SIGINT, default_int_handler, getsignal, signal  # `signal` itself takes time

__all__ = ["main"]


def main() -> None:
    """Run the command line."""
    _stop_at_once_when_interrupted()
    from fado.cli._app import run_program

    run_program()


def _stop_at_once_when_interrupted() -> None:
    """Let Ctrl-C end the process without a word, as long as no command runs that has something to put away.

    An exception would surface in the middle of an import, as a traceback or as another library's error.
    """
    if getsignal(SIGINT) is default_int_handler:
        try:
            signal(SIGINT, SIG_DFL)
        except ValueError:  # not the main thread, which alone hears of Ctrl-C
            return
