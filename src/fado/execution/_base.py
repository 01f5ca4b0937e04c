"""The contract of the executors: a function and tasks in, results out.

Tasks are independent: neither the executor nor the number of workers nor the order in which tasks end changes
a result. An executor may be used again, for one run after the other or for several at a time.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

__all__ = ["Executor", "Function", "LostTask", "Result", "Task", "n_workers"]

Task = TypeVar("Task")
Result = TypeVar("Result")

Function = Callable[[Task, Any, threading.Event], Result]
"""Takes a task, what all tasks share, and an event: when it is set, nobody waits for the result any more and
the function should return early."""


@dataclass(frozen=True)
class LostTask(Generic[Task]):
    """Stands in place of the result of a task that took its workers with it."""

    task: Task
    reason: str


class Executor(Protocol):
    """Runs a function for every task, several at a time.

    Tasks are taken a few ahead of the workers, so they do not pile up. An error that the function raises is
    raised here, as it is, and ends the run. So does closing the generator: tasks that have not begun never
    will, and those that run are told to stop or ended.

    Where tasks run in other processes, function, tasks, shared and results must be such as can be pickled.
    """

    def run(
        self, function: Function[Task, Result], tasks: Iterable[Task], shared: Any = None
    ) -> Generator[Result | LostTask[Task], None, None]:
        """Give the results in the order of the tasks, whichever ends first.

        Parameters
        ----------
        function : callable
            Called as ``function(task, shared, stop)``.
        tasks : iterable
            One entry per call.
        shared : object
            What all tasks need, such as an engine.
        """
        ...

    def run_unordered(
        self, function: Function[Task, Result], tasks: Iterable[Task], shared: Any = None
    ) -> Generator[list[Result | LostTask[Task]], None, None]:
        """Give the results as they come, those that came meanwhile together; parameters as for `run`."""
        ...


def n_workers(n_jobs: int | None) -> int:
    """Translate `n_jobs`: None means every core that this process may use, negative numbers count from there.

    Inside a joblib worker that is already one of many, None means one.
    """
    from joblib import effective_n_jobs

    if n_jobs == 0:
        raise ValueError("`n_jobs` must not be 0: use 1 for one worker, -1 or None for all cores.")
    return int(effective_n_jobs(-1 if n_jobs is None else n_jobs))
