"""Tasks in threads of this process, for functions that let go of Python's lock."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Generator, Iterable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from itertools import islice
from typing import Any

from fado.execution._base import Function, Result, Task

__all__ = ["ThreadExecutor"]


class ThreadExecutor:
    """Runs tasks in threads; see `fado.execution.Executor`.

    Tasks are taken in the caller's thread. Closing a run early waits for the tasks that have begun.

    Parameters
    ----------
    workers : int
        Number of threads.

    Examples
    --------
    >>> executor = ThreadExecutor(2)
    >>> list(executor.run(lambda task, shared, stop: task * shared, range(5), shared=10))
    [0, 10, 20, 30, 40]
    """

    def __init__(self, workers: int) -> None:
        self.workers = workers

    def run(
        self, function: Function[Task, Result], tasks: Iterable[Task], shared: Any = None
    ) -> Generator[Result, None, None]:
        """Give the results in the order of the tasks; only a few tasks are taken ahead of the results."""
        stop = threading.Event()
        remaining = iter(tasks)
        pending: deque[Future[Result]] = deque()
        with ThreadPoolExecutor(self.workers, thread_name_prefix="fado") as pool:

            def submit(count: int) -> None:
                for task in islice(remaining, count):
                    pending.append(pool.submit(function, task, shared, stop))

            try:
                submit(2 * self.workers)
                while pending:
                    result = pending.popleft().result()
                    submit(1)
                    yield result
            finally:
                stop.set()
                for future in pending:
                    future.cancel()

    def run_unordered(
        self, function: Function[Task, Result], tasks: Iterable[Task], shared: Any = None
    ) -> Generator[list[Result], None, None]:
        """Give the results as they come."""
        stop = threading.Event()
        remaining = iter(tasks)
        pending: set[Future[Result]] = set()
        with ThreadPoolExecutor(self.workers, thread_name_prefix="fado") as pool:
            try:
                while True:
                    for task in islice(remaining, 2 * self.workers - len(pending)):
                        pending.add(pool.submit(function, task, shared, stop))
                    if not pending:
                        return
                    done, pending = wait(pending, return_when=FIRST_COMPLETED)
                    yield [future.result() for future in done]
            finally:
                stop.set()
                for future in pending:
                    future.cancel()
