"""Under what conditions a fit runs: until when, and in one thread."""

from __future__ import annotations

import threading
import time
from typing import Any

__all__ = ["ONE_THREAD", "FitEnd"]


class FitEnd(threading.Event):
    """An event that is also set when another is, or when the time is up."""

    def __init__(self, stop: threading.Event | None, deadline: float | None) -> None:
        super().__init__()
        self._stop = stop
        self._end = None if deadline is None else time.monotonic() + deadline
        self.late = False

    def is_set(self) -> bool:
        if self._stop is not None and self._stop.is_set():
            return True
        self.late = self.late or (self._end is not None and time.monotonic() > self._end)
        return self.late


class OneThread:
    """Keeps the libraries of linear algebra to one thread as long as anyone in the process is at it.

    Their number of threads is one for the whole process, and may change the last digits of a result: were
    each fit to set it for itself, the first to end would give it back under the others.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users = 0
        self._limits: Any = None

    def __enter__(self) -> None:
        from threadpoolctl import threadpool_limits

        with self._lock:
            if self._users == 0:
                self._limits = threadpool_limits(1, "blas")
            self._users += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._users -= 1
            if self._users == 0:
                self._limits.restore_original_limits()


ONE_THREAD = OneThread()
