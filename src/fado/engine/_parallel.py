"""Run many independent fits side by side and hand their results back in order."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from itertools import islice
from typing import Any, TypeVar

__all__ = ["as_they_finish", "in_threads", "n_workers", "with_joblib"]

Task = TypeVar("Task")
Result = TypeVar("Result")


def n_workers(n_jobs: int | None) -> int:
    """Translate `n_jobs`: None means every core that this process may use, negative numbers count from there.

    Inside a joblib worker that is already one of many, None means one.
    """
    from joblib import effective_n_jobs

    if n_jobs == 0:
        raise ValueError("`n_jobs` must not be 0: use 1 for one worker, -1 or None for all cores.")
    return int(effective_n_jobs(-1 if n_jobs is None else n_jobs))


def in_threads(
    function: Callable[[Task, threading.Event], Result], tasks: Iterable[Task], workers: int
) -> Iterator[Result]:
    """Run tasks in threads; give their results in the order of the tasks, whichever ends first.

    Parameters
    ----------
    function : callable
        Takes a task and an event; when the event is set, nobody waits for the result any more and the
        function should return early.
    tasks : iterable
        Only a few are taken ahead of the results, so neither tasks nor results pile up.
    workers : int
        Number of threads.
    """
    stop = threading.Event()
    remaining = iter(tasks)
    pending: deque[Future[Result]] = deque()
    with ThreadPoolExecutor(workers, thread_name_prefix="fado") as pool:
        try:
            pending.extend(pool.submit(function, task, stop) for task in islice(remaining, 2 * workers))
            while pending:
                result = pending.popleft().result()
                pending.extend(pool.submit(function, task, stop) for task in islice(remaining, 1))
                yield result
        finally:
            stop.set()
            for future in pending:
                future.cancel()


def as_they_finish(
    function: Callable[[Task, threading.Event], Result], tasks: Iterable[Task], workers: int
) -> Generator[list[Result], None, None]:
    """Run tasks in threads; give their results as they come, those that ended meanwhile together.

    Parameters
    ----------
    function : callable
        As for `in_threads`.
    tasks : iterable
        Taken in the caller's thread, a few ahead of the workers.
    workers : int
        Number of threads.
    """
    stop = threading.Event()
    remaining = iter(tasks)
    pending: set[Future[Result]] = set()
    with ThreadPoolExecutor(workers, thread_name_prefix="fado") as pool:
        try:
            while True:
                for task in islice(remaining, 2 * workers - len(pending)):
                    pending.add(pool.submit(function, task, stop))
                if not pending:
                    return
                done, pending = wait(pending, return_when=FIRST_COMPLETED)
                yield [future.result() for future in done]
        finally:
            stop.set()
            for future in pending:
                future.cancel()


def with_joblib(
    function: Callable[..., Result], tasks: Iterable[tuple[Any, ...]], workers: int
) -> Iterator[Result]:
    """Run `function(*task)` for every task under joblib; give the results in order."""
    from joblib import Parallel, delayed

    yield from Parallel(n_jobs=workers, return_as="generator")(delayed(function)(*task) for task in tasks)
