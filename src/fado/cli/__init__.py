"""The command line. Every command wraps one call of the library.

This module imports nothing that takes time, so that `main` handles Ctrl-C from the beginning.
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
    """Let Ctrl-C end the process without a message until a command runs that has something to clean up.

    An exception would appear in the middle of an import, as a traceback or as another library's error.
    """
    if getsignal(SIGINT) is default_int_handler:
        try:
            signal(SIGINT, SIG_DFL)
        except ValueError:  # not the main thread, which alone receives Ctrl-C
            return
