"""Executors that run a function for many tasks: in threads, under joblib, or on a Dask cluster.

Tasks are independent: results depend neither on the executor, nor on the number of workers, nor on the order
in which tasks end. An executor may be used again, also for several runs at a time.
"""

from __future__ import annotations

import threading
import warnings
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import closing, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from fado._checks import check_count

if TYPE_CHECKING:
    from fado.execution._dask import DaskExecutor

_MOST_WORKERS = 1_000
_SECONDS = 10  # until a scheduler that does not answer counts as absent

_client: ContextVar[Any] = ContextVar("fado_cluster", default=None)

Task = TypeVar("Task")
Result = TypeVar("Result")

Function = Callable[[Task, Any, threading.Event], Result]
"""Takes a task, the shared data, and an event: once it is set, the result is not needed and the function
should return early."""


@dataclass(frozen=True)
class LostTask(Generic[Task]):
    """The result of a task that was given up because its workers died.

    Parameters
    ----------
    task : object
        The task.
    reason : str
        The reason, as far as known.
    late : bool
        Whether the task was ended because it hung or took too long.
    phase : str
        The phase that the task last reported, if any: see `fado.execution.tell`.
    deaths : int
        How many workers died, if known.
    """

    task: Task
    reason: str
    late: bool = False
    phase: str = ""
    deaths: int = 0


class Executor(Protocol):
    """Runs a function for every task, several in parallel.

    Only a few more tasks are taken from the iterable than are running. If the function raises an error, the
    run ends and the same error is raised here. Closing the generator also ends the run: tasks that have not
    begun are dropped, and running tasks are stopped.

    If tasks run in other processes, the function, the tasks, `shared` and the results must be picklable.

    See Also
    --------
    fado.execution.ThreadExecutor : Runs tasks in threads.
    fado.execution.JoblibExecutor : Runs tasks with joblib.
    fado.execution.ProcessExecutor : Runs tasks in processes that may crash or hang.
    fado.execution.DaskExecutor : Runs tasks on a Dask cluster.
    """

    def run(
        self, function: Function[Task, Result], tasks: Iterable[Task], shared: Any = None
    ) -> Generator[Result | LostTask[Task], None, None]:
        """Return the results one by one, in the order of the tasks.

        Parameters
        ----------
        function : callable
            Called as ``function(task, shared, stop)``. `stop` is a `threading.Event`: once it is set, the
            result is not needed, and the function should return early.
        tasks : iterable
            One entry per call.
        shared : object
            The data that all tasks share, such as an engine.
        """
        ...

    def run_unordered(
        self, function: Function[Task, Result], tasks: Iterable[Task], shared: Any = None
    ) -> Generator[list[Result | LostTask[Task]], None, None]:
        """Return the results as they come, in lists; parameters as for `run`.

        A list has the results since the previous list.
        """
        ...


def n_workers(n_jobs: int | None) -> int:
    """Return the number of workers for `n_jobs`.

    None and -1 mean every core that this process may use, -2 all but one, and so on; 0 raises a ValueError.
    Inside a joblib worker, None means one.

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


class ThreadExecutor:
    """Runs tasks in threads; see `fado.execution.Executor`.

    Tasks are taken in the caller's thread. Closing a run early waits for the tasks that have begun.

    Parameters
    ----------
    workers : int
        Number of threads.

    See Also
    --------
    fado.execution.Executor : The contract of all executors.

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
        """Return the results in the order of the tasks."""
        with self._opened(function, tasks, shared) as (pending, submit):
            while pending:
                result = pending.popleft().result()
                submit(1)
                yield result

    def run_unordered(
        self, function: Function[Task, Result], tasks: Iterable[Task], shared: Any = None
    ) -> Generator[list[Result], None, None]:
        """Return the results as they come."""
        with self._opened(function, tasks, shared) as (pending, submit):
            while pending:
                done, _ = wait(pending, return_when=FIRST_COMPLETED)
                for future in done:
                    pending.remove(future)
                yield [future.result() for future in done]
                submit(len(done))

    @contextmanager
    def _opened(
        self, function: Function[Task, Result], tasks: Iterable[Task], shared: Any
    ) -> Iterator[tuple[deque[Future[Result]], Callable[[int], None]]]:
        """Return the running tasks, and a function that begins more; at the end, others are dropped."""
        stop, remaining, pending = threading.Event(), iter(tasks), deque[Future[Result]]()
        with ThreadPoolExecutor(self.workers, thread_name_prefix="fado") as pool:

            def submit(count: int) -> None:
                for task in islice(remaining, count):
                    pending.append(pool.submit(function, task, shared, stop))

            try:
                submit(2 * self.workers)
                yield pending, submit
            finally:
                stop.set()
                for future in pending:
                    future.cancel()


class JoblibExecutor:
    """Runs tasks under joblib; see `fado.execution.Executor`.

    Tasks run in processes, unless another backend of joblib is set. `shared` is pickled with every task;
    joblib puts large arrays into shared memory. Tasks may be taken in another thread than the caller's.
    Closing a run early ends the processes; tasks in this process are stopped by `stop`.

    Parameters
    ----------
    workers : int
        Number of processes; 1 runs the tasks in the caller's thread.

    See Also
    --------
    fado.execution.Executor : The contract of all executors.

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
        """Return the results in the order of the tasks."""
        return self._run("generator", function, tasks, shared)

    def run_unordered(
        self, function: Function[Task, Result], tasks: Iterable[Task], shared: Any = None
    ) -> Generator[list[Result], None, None]:
        """Return the results as they come, in lists of one."""
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
    """An event that is pickled as a new event, which is never set."""

    def __reduce__(self) -> tuple[type[threading.Event], tuple[()]]:
        return threading.Event, ()


@contextmanager
def on_cluster(client: Any) -> Iterator[None]:
    """Send the fits of valuators inside a ``with`` block to a Dask cluster.

    The entropy valuators send their fits, also when a sampler or a reweigher calls them. Other valuators run
    on this machine. The values are exactly the same.

    Parameters
    ----------
    client : dask.distributed.Client, cluster, str or None
        A client of a cluster, a cluster object such as a ``LocalCluster``, or the address of a scheduler. The
        workers must have the same versions of the libraries; otherwise a fit raises a ValueError. None runs
        the fits on this machine.

    Raises
    ------
    ValueError
        If the client is closed, or no scheduler answers at the address.

    See Also
    --------
    fado.execution.opened_client : Opens a client for a block.

    Examples
    --------
    >>> from fado import OutOfBagEntropy
    >>> from fado.execution import on_cluster
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]] * 5, [0, 0, 1, 1] * 5
    >>> with on_cluster(None):  # or a `dask.distributed.Client`
    ...     values = OutOfBagEntropy(n_bags=5, random_state=0).fit(X, y).valuation_
    """
    with opened_client(client) as opened:
        token = _client.set(opened)
        try:
            yield
        finally:
            _client.reset(token)


@contextmanager
def opened_client(client: Any) -> Iterator[Any]:
    """Return the client of a cluster for a ``with`` block; a client that is opened here is closed after it.

    Parameters
    ----------
    client : dask.distributed.Client, cluster, str or None
        An open client and None are returned unchanged; a client is opened for a cluster object and for the
        address of a scheduler.

    Raises
    ------
    TypeError
        If it is none of these.
    ValueError
        If the client is closed, or no scheduler answers.
    """
    if client is None:
        yield None
        return
    try:
        from distributed import Client
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "`client` needs Dask: install it with `pip install 'fado-ml[dask]'`.", name=error.name
        ) from None
    if isinstance(client, Client):
        if client.asynchronous:
            raise ValueError("The Dask client is asynchronous: connect one with `asynchronous=False`.")
        if client.status != "running":
            raise ValueError(f"The Dask client is {client.status}: connect again, with `Client(address)`.")
        yield client
        return
    if not isinstance(client, str) and not hasattr(client, "scheduler_address"):
        raise TypeError(
            "`client` must be a `dask.distributed.Client`, a cluster or the address of a scheduler, got "
            f"{client!r}."
        )
    try:
        opened = Client(client, timeout=_SECONDS, set_as_default=False)  # type: ignore[no-untyped-call]
    except (OSError, RuntimeError, TypeError, ValueError) as error:
        where = repr(client) if isinstance(client, str) else f"the address of {type(client).__name__}"
        said = " ".join(str(error).split())
        raise ValueError(f"There is no Dask scheduler at {where}: {said}") from error
    with opened:
        yield opened


def cluster_executor() -> DaskExecutor | None:
    """Return an executor for the cluster of `on_cluster`; None if fits run on this machine."""
    client = _client.get()
    if client is None:
        return None
    from fado.execution._dask import DaskExecutor  # Dask is an extra

    return DaskExecutor(client)
