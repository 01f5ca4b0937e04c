"""Which cluster fits are sent to, for as long as somebody says so."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fado.execution._dask import DaskExecutor

__all__ = ["cluster_executor", "on_cluster", "opened_client"]

_SECONDS = 10  # until a scheduler that does not answer is taken for absent

_client: ContextVar[Any] = ContextVar("fado_cluster", default=None)


@contextmanager
def on_cluster(client: Any) -> Iterator[None]:
    """Send the fits of valuators inside a ``with`` block to a Dask cluster.

    The entropy valuators send their fits, also if a sampler or a reweigher calls them. Other valuators stay
    on this machine. The values are exactly the same.

    Parameters
    ----------
    client : dask.distributed.Client, cluster, str or None
        A client of a cluster, a cluster object such as a ``LocalCluster``, or the address of a scheduler. The
        workers must have the same versions of the libraries; otherwise a fit raises a ValueError. None keeps
        the fits on this machine.

    Raises
    ------
    ValueError
        If the client is closed, or no scheduler answers at the address.

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
    """Give the client of a cluster for a ``with`` block; one that is opened here is closed after it.

    Parameters
    ----------
    client : dask.distributed.Client, cluster, str or None
        An open client and None are given as they are; a client is opened for a cluster object and for the
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
    """Give an executor for the cluster that `on_cluster` sets; None if fits stay on this machine."""
    client = _client.get()
    if client is None:
        return None
    from fado.execution._dask import DaskExecutor  # Dask is an extra

    return DaskExecutor(client)
