"""Executors that run independent tasks in parallel: threads, processes, joblib, a Dask cluster."""

from typing import TYPE_CHECKING, Any

from fado.execution._executors import (
    Executor,
    JoblibExecutor,
    LostTask,
    ThreadExecutor,
    cluster_executor,
    n_workers,
    on_cluster,
    opened_client,
)
from fado.execution._processes import NotSentError, ProcessExecutor, tell

if TYPE_CHECKING:
    from fado.execution._dask import DaskExecutor

__all__ = [
    "DaskExecutor",
    "Executor",
    "JoblibExecutor",
    "LostTask",
    "NotSentError",
    "ProcessExecutor",
    "ThreadExecutor",
    "cluster_executor",
    "n_workers",
    "on_cluster",
    "opened_client",
    "tell",
]


def __getattr__(name: str) -> Any:
    if name != "DaskExecutor":
        raise AttributeError(f"module 'fado.execution' has no attribute {name!r}")
    from fado.execution._dask import DaskExecutor  # Dask is an extra

    return DaskExecutor
