"""Tasks on a `dask.distributed` cluster.

Every worker receives the shared data once, when it joins. If a worker dies, Dask gives its tasks to another,
and gives up on a task after several workers died with it.
"""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Generator, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Generic, Self

import distributed

from fado._version import library_versions
from fado.execution._executors import Function, LostTask, Result, Task

_AHEAD = 3  # tasks submitted per thread of the cluster, so that no thread waits
_MOST_DEATHS = 5  # while all workers get the data
_PAUSE = 0.2  # seconds until the scheduler knows of one


@dataclass
class _Delivered:
    """The data of one run in a worker's process."""

    shared: Any
    refused: str | None = None  # why this process must not run tasks
    stop: threading.Event = field(default_factory=threading.Event)
    n_holders: int = 0  # the number of workers in this process


_delivered: dict[str, _Delivered] = {}
_lock = threading.Lock()


class _Delivery(distributed.WorkerPlugin):
    """Sends the shared data to every worker, also to those that join later."""

    def __init__(self, run: str, shared: Any) -> None:
        self.name = f"fado-{run}"
        self._run = run
        self._shared = shared
        self._versions = library_versions()

    def setup(self, worker: Any) -> None:
        """Keep the data; workers of one process share the first copy.

        A worker with other libraries ends the run with its first task.
        """
        there, refused = library_versions(), None
        if there != self._versions:
            refused = (
                f"The Dask worker {worker.address} has other libraries: {there} there and {self._versions} "
                "here."
            )
        with _lock:
            delivered = _delivered.setdefault(self._run, _Delivered(self._shared, refused))
            delivered.n_holders += 1

    def teardown(self, worker: Any) -> None:
        """Drop the data and stop its tasks, unless another worker of this process needs them."""
        with _lock:
            delivered = _delivered[self._run]
            delivered.n_holders -= 1
            if not delivered.n_holders:
                delivered.stop.set()
                del _delivered[self._run]


class DaskExecutor:
    """Runs tasks on a cluster; see `fado.execution.Executor`.

    Tasks are taken in the caller's thread. If the workers of a task die repeatedly, its result is a
    `LostTask`.

    Parameters
    ----------
    client : dask.distributed.Client
        A client of the cluster. Its workers must have the same versions of the libraries as this process;
        otherwise a run raises a ValueError.

    See Also
    --------
    fado.execution.on_cluster : Sends the fits of valuators to a cluster.
    """

    def __init__(self, client: Any) -> None:
        self._client = client

    def run(
        self, function: Function[Task, Result], tasks: Iterable[Task], shared: Any = None
    ) -> Generator[Result | LostTask[Task], None, None]:
        """Return the results in the order of the tasks."""
        with _ClusterRun(self._client, function, tasks, shared) as run:
            run.submit()
            while run.pending:
                result = run.collect(next(iter(run.pending)))
                run.submit()
                yield result

    def run_unordered(
        self, function: Function[Task, Result], tasks: Iterable[Task], shared: Any = None
    ) -> Generator[list[Result | LostTask[Task]], None, None]:
        """Return the results as they come."""
        with _ClusterRun(self._client, function, tasks, shared) as run:
            arriving: Any = distributed.as_completed(run.submit())  # type: ignore[no-untyped-call]
            for batch in arriving.batches():
                results = [run.collect(future.key) for future in batch]
                arriving.update(run.submit())
                yield results


class _ClusterRun(Generic[Task, Result]):
    """One function for many tasks, from sending the shared data until the workers drop them."""

    def __init__(
        self, client: Any, function: Function[Task, Result], tasks: Iterable[Task], shared: Any
    ) -> None:
        self._client = client
        self._function = function
        self._remaining = enumerate(tasks)
        self._name = uuid.uuid4().hex
        self._delivery = _Delivery(self._name, shared)
        self.pending: dict[str, tuple[Any, Task]] = {}  # futures and their tasks by key, in order

    def __enter__(self) -> Self:
        for attempt in range(_MOST_DEATHS):
            try:
                self._client.register_plugin(self._delivery)
                break
            except OSError:  # a worker died before it answered
                if attempt == _MOST_DEATHS - 1:
                    raise
                time.sleep(_PAUSE)
        return self

    def __exit__(self, *_: object) -> None:
        self._client.cancel([future for future, _ in self.pending.values()], force=True)
        with suppress(OSError):  # a worker that dies meanwhile has forgotten it too
            self._client.unregister_worker_plugin(self._delivery.name)

    def submit(self) -> list[Any]:
        """Submit as many tasks as the cluster should have, and return their futures."""
        wanted = _AHEAD * max(1, sum(self._client.nthreads().values()))
        new = []
        for number, task in islice(self._remaining, max(0, wanted - len(self.pending))):
            key = f"fado-{self._name}-{number}"
            future = self._client.submit(
                _call, self._name, self._function, task, key=key, pure=False, priority=-number
            )
            self.pending[key] = future, task
            new.append(future)
        return new

    def collect(self, key: str) -> Result | LostTask[Task]:
        """Wait for a result, and release it on the cluster."""
        future, task = self.pending.pop(key)
        try:
            return future.result()
        except distributed.KilledWorker as error:
            return LostTask(task, f"{type(error).__name__}: {' '.join(str(error).split())}"[:500])
        finally:
            future.release()


def _call(run: str, function: Function[Task, Result], task: Task) -> Result:
    """Run one task, on a worker."""
    with _lock:
        delivered = _delivered[run]
    if delivered.refused is not None:
        raise ValueError(delivered.refused)
    return function(task, delivered.shared, delivered.stop)
