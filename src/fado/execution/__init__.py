"""Executors that run many independent tasks side by side: in threads, under joblib, on a Dask cluster."""

from typing import TYPE_CHECKING, Any

from fado.execution._base import Executor, LostTask, n_workers
from fado.execution._cluster import cluster_executor, on_cluster, opened_client
from fado.execution._joblib import JoblibExecutor
from fado.execution._threads import ThreadExecutor

if TYPE_CHECKING:
    from fado.execution._dask import DaskExecutor

__all__ = [
    "DaskExecutor",
    "Executor",
    "JoblibExecutor",
    "LostTask",
    "ThreadExecutor",
    "cluster_executor",
    "n_workers",
    "on_cluster",
    "opened_client",
]


def __getattr__(name: str) -> Any:
    if name != "DaskExecutor":
        raise AttributeError(f"module 'fado.execution' has no attribute {name!r}")
    from fado.execution._dask import DaskExecutor  # Dask is an extra

    return DaskExecutor
