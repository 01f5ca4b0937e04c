"""The contract of the executors: a function and tasks in, results out.

Tasks are independent: neither the executor nor the number of workers nor the order in which tasks end changes
a result. An executor may be used again, for one run after the other or for several at a time.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from fado._checks import check_count

__all__ = ["Executor", "Function", "LostTask", "Result", "Task", "n_workers"]

_MOST_WORKERS = 1_000

Task = TypeVar("Task")
Result = TypeVar("Result")

Function = Callable[[Task, Any, threading.Event], Result]
"""Takes a task, what all tasks share, and an event: when it is set, nobody waits for the result any more and
the function should return early."""


@dataclass(frozen=True)
class LostTask(Generic[Task]):
    """The result of a task that was given up because the workers that ran it died.

    Parameters
    ----------
    task : object
        The task.
    reason : str
        What the cluster says of it.
    """

    task: Task
    reason: str


class Executor(Protocol):
    """Runs a function for every task, several at a time.

    Only a few more tasks are taken from the iterable than are running, so they do not pile up. If the
    function raises an error, the run ends and the same error is raised here. Closing the generator ends the
    run too. Tasks that have not begun are then dropped, and running tasks are told to stop or ended.

    If tasks run in other processes, the function, the tasks, `shared` and the results must be picklable.
    """

    def run(
        self, function: Function[Task, Result], tasks: Iterable[Task], shared: Any = None
    ) -> Generator[Result | LostTask[Task], None, None]:
        """Give the results one by one, in the order of the tasks.

        Parameters
        ----------
        function : callable
            Called as ``function(task, shared, stop)``. `stop` is a `threading.Event`: once it is set, nobody
            waits for the result, and the function should return early.
        tasks : iterable
            One entry per call.
        shared : object
            What all tasks need, such as an engine.
        """
        ...

    def run_unordered(
        self, function: Function[Task, Result], tasks: Iterable[Task], shared: Any = None
    ) -> Generator[list[Result | LostTask[Task]], None, None]:
        """Give the results as they come, in lists; parameters as for `run`.

        A list holds the results that have come since the list before.
        """
        ...


def n_workers(n_jobs: int | None) -> int:
    """Give the number of workers that `n_jobs` stands for.

    None and -1 mean every core that this process may use, -2 all but one, and so on; 0 raises a ValueError.
    Inside a joblib worker that is already one of many, None means one.

    Examples
    --------
    >>> n_workers(10**12)
    Traceback (most recent call last):
        ...
    ValueError: `n_jobs` must be at most 1,000, got 1000000000000.
    """
    from joblib import effective_n_jobs

    if n_jobs is not None:
        check_count("n_jobs", n_jobs, -_MOST_WORKERS, _MOST_WORKERS)
    if n_jobs == 0:
        raise ValueError("`n_jobs` must not be 0: use 1 for one worker, -1 or None for all cores.")
    return int(effective_n_jobs(-1 if n_jobs is None else n_jobs))
