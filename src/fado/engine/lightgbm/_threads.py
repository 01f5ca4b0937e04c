"""Keep LightGBM's one, process-wide number of threads from growing under a running fit.

Every call that names a number of threads sets it for the whole process. A fit that started with one thread
and meets two writes past its buffers and crashes. So tables are binned by several threads only while no fit
runs, and no fit starts meanwhile.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["binning", "fitting"]

_changed = threading.Condition()
_fits = 0
_binning = False


@contextmanager
def binning(wanted: int) -> Iterator[int]:
    """Reserve threads for binning a table.

    Parameters
    ----------
    wanted : int
        How many threads would be used if nothing else ran.

    Yields
    ------
    int
        How many may be used: 1 while fits run.
    """
    global _binning
    with _changed:
        _changed.wait_for(lambda: not _binning)
        alone = _fits == 0
        _binning = alone
    try:
        yield wanted if alone else 1
    finally:
        if alone:
            with _changed:
                _binning = False
                _changed.notify_all()


@contextmanager
def fitting() -> Iterator[None]:
    """Run a fit of one thread, from its first subset of the bins to its last score."""
    global _fits
    with _changed:
        _changed.wait_for(lambda: not _binning)
        _fits += 1
    try:
        yield
    finally:
        with _changed:
            _fits -= 1
            _changed.notify_all()
