"""Runs that are kept in a store, stopped so that they can go on."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

__all__ = ["stopping"]


@contextmanager
def stopping(store: Path) -> Iterator[None]:
    """Stop cleanly at Ctrl-C and SIGTERM, at once at the second; the codes are 130 and 143."""

    def stop(number: int, _: Any) -> None:
        signal.signal(number, lambda *_: os._exit(128 + number))
        print("stopping; press again to stop at once", file=sys.stderr, flush=True)
        raise SystemExit(128 + number)

    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    except SystemExit as stopped:
        print(f"stopped; what is done is kept in {store}: run again to resume.", file=sys.stderr)
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(int(stopped.code or 0))  # all is put away: another signal could only change the exit code
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
