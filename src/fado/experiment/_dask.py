"""The same fits on a `dask.distributed` cluster.

Every worker is sent the data once, when it joins, and bins them once. Tasks name a training set and a model;
what comes back are metrics. The ledger stays with the runner. A worker that is lost costs the fits it was at:
Dask gives them to another, and gives up on a fit that has taken several workers with it.
"""

from __future__ import annotations

import threading
import uuid
from collections import Counter
from collections.abc import Generator, Iterable
from itertools import islice
from typing import Any

import distributed

from fado.experiment._workbench import Bench, Job, Judged, Material
from fado.valuation._result import library_versions

__all__ = ["on_cluster"]

_AHEAD = 3  # jobs given out per thread of the cluster, so that none waits for the next

_materials: dict[str, Material] = {}
_benches: dict[str, Bench] = {}
_holders: Counter[str] = Counter()  # workers of this process that hold the data of a run
_lock = threading.Lock()


class _Delivery(distributed.WorkerPlugin):
    """Brings the data to every worker that is there or comes."""

    def __init__(self, run: str, material: Material) -> None:
        self.name = f"fado-{run}"
        self._run = run
        self._material = material

    def setup(self, worker: Any) -> None:
        """Keep the data."""
        with _lock:
            _holders[self._run] += 1
            _materials[self._run] = self._material

    def teardown(self, worker: Any) -> None:
        """Forget them, unless another worker of this process needs them."""
        with _lock:
            _holders[self._run] -= 1
            if not _holders[self._run]:
                del _holders[self._run], _materials[self._run]
                _benches.pop(self._run, None)


def on_cluster(client: Any, material: Material, jobs: Iterable[Job]) -> Generator[list[Judged], None, None]:
    """Run jobs on a cluster; give their results as they come.

    Parameters
    ----------
    client : dask.distributed.Client
        Connected to the cluster, whose workers must have the same libraries as this process.
    material : Material
        The data.
    jobs : iterable of Job
        Taken a few ahead of the workers.
    """
    _check_versions(client)
    run = uuid.uuid4().hex
    delivery = _Delivery(run, material)
    client.register_plugin(delivery)
    remaining = iter(jobs)
    given: dict[str, Job] = {}
    arriving: Any = distributed.as_completed()  # type: ignore[no-untyped-call]

    def submit() -> None:
        wanted = _AHEAD * max(1, sum(client.nthreads().values()))
        for job in islice(remaining, max(0, wanted - len(given))):  # fewer workers than before want none
            future = client.submit(_fit, run, job, key=f"fado-{run}-{job.key}", pure=False)
            given[future.key] = job
            arriving.add(future)

    try:
        submit()
        for future in arriving:
            job = given.pop(future.key)
            yield [_result(future, job)]
            future.release()
            submit()
    finally:
        client.cancel(list(arriving.futures), force=True)
        client.unregister_worker_plugin(delivery.name)


def _fit(run: str, job: Job) -> Judged:
    """Train and judge one model, on a worker."""
    with _lock:
        if run not in _benches:
            _benches[run] = Bench(_materials[run], 1)
        bench = _benches[run]
    return bench.run(job)


def _result(future: Any, job: Job) -> Judged:
    """Give a fit's result; one that took its workers with it is a failed one."""
    try:
        return future.result()
    except distributed.KilledWorker as error:
        return Judged(job.key, 0.0, error=f"{type(error).__name__}: {' '.join(str(error).split())}"[:500])


def _check_versions(client: Any) -> None:
    here = library_versions()
    for worker, there in client.run(library_versions).items():
        if there != here:
            raise ValueError(f"The Dask worker {worker} has other libraries: {there} there and {here} here.")
