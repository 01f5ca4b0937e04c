"""Which cluster fits are sent to, for as long as somebody says so."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fado.execution._dask import DaskExecutor

__all__ = ["cluster_executor", "on_cluster"]

_client: ContextVar[Any] = ContextVar("fado_cluster", default=None)


@contextmanager
def on_cluster(client: Any) -> Iterator[None]:
    """Send the fits of valuators inside a ``with`` block to a Dask cluster.

    The entropy valuators send their fits, also if a sampler or a reweigher calls them. Other valuators stay
    on this machine. The values are exactly the same.

    Parameters
    ----------
    client : dask.distributed.Client or None
        A client of a cluster whose workers have the same versions of the libraries; otherwise a fit raises a
        ValueError. None keeps the fits on this machine.

    Examples
    --------
    >>> from fado import OutOfBagEntropy
    >>> from fado.execution import on_cluster
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]] * 5, [0, 0, 1, 1] * 5
    >>> with on_cluster(None):  # or a `dask.distributed.Client`
    ...     values = OutOfBagEntropy(n_bags=5, random_state=0).fit(X, y).valuation_
    """
    token = _client.set(client)
    try:
        yield
    finally:
        _client.reset(token)


def cluster_executor() -> DaskExecutor | None:
    """Give an executor for the cluster that `on_cluster` sets; None if fits stay on this machine."""
    client = _client.get()
    if client is None:
        return None
    from fado.execution._dask import DaskExecutor  # Dask is an extra

    return DaskExecutor(client)
