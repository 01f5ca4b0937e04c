"""Tasks under joblib: in processes, unless the user has chosen another backend."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Generator, Iterable
from contextlib import closing
from typing import Any

from fado.execution._base import Function, Result, Task

__all__ = ["JoblibExecutor"]


class JoblibExecutor:
    """Runs tasks under joblib; see `fado.execution.Executor`.

    Tasks run in processes, unless another backend of joblib is set. `shared` is pickled with every task;
    joblib puts large arrays into memory that all processes see. Tasks may be taken in another thread than the
    caller's. Closing a run early ends the processes; tasks that run in this process are told by `stop`.

    Parameters
    ----------
    workers : int
        Number of processes; 1 runs the tasks in the caller's thread.

    Examples
    --------
    >>> executor = JoblibExecutor(1)
    >>> list(executor.run(lambda task, shared, stop: task * shared, range(5), shared=10))
    [0, 10, 20, 30, 40]
    """

    def __init__(self, workers: int) -> None:
        self.workers = workers

    def run(
        self, function: Function[Task, Result], tasks: Iterable[Task], shared: Any = None
    ) -> Generator[Result, None, None]:
        """Give the results in the order of the tasks."""
        return self._run("generator", function, tasks, shared)

    def run_unordered(
        self, function: Function[Task, Result], tasks: Iterable[Task], shared: Any = None
    ) -> Generator[list[Result], None, None]:
        """Give the results as they come, in lists of one."""
        with closing(self._run("generator_unordered", function, tasks, shared)) as results:
            for result in results:
                yield [result]

    def _run(
        self, order: str, function: Function[Task, Result], tasks: Iterable[Task], shared: Any
    ) -> Generator[Result, None, None]:
        from joblib import Parallel, delayed

        stop = _Stop()
        calls = (delayed(function)(task, shared, stop) for task in tasks)
        results = Parallel(n_jobs=self.workers, return_as=order)(calls)
        try:
            for result in results:  # noqa: UP028  # with `yield from`, joblib would be closed first
                yield result
        finally:
            stop.set()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # joblib warns that tasks were cancelled
                results.close()


class _Stop(threading.Event):
    """An event that other processes get a new one for, which is never set."""

    def __reduce__(self) -> tuple[type[threading.Event], tuple[()]]:
        return threading.Event, ()
