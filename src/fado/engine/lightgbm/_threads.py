"""Keep LightGBM's one, process-wide number of threads from growing under a running fit.

Every call that names a number of threads sets it for the whole process. A fit that started with one thread
and meets two writes past its buffers and crashes. So tables are binned by several threads only while no fit
runs, and no fit starts meanwhile.

A forked child has its parent's memory and none of its threads: there, several would wait for ever.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

__all__ = ["binning", "fitting"]

_changed = threading.Condition()
_fits = 0
_binning = False
_forked = False


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
        How many may be used: 1 while fits run, and in a forked child.
    """
    global _binning
    with _changed:
        _changed.wait_for(lambda: not _binning)
        alone = _fits == 0
        _binning = alone
    try:
        yield wanted if alone and not _forked else 1
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
        if _forked:
            _name_one_thread()
        yield
    finally:
        with _changed:
            _fits -= 1
            _changed.notify_all()


def _name_one_thread() -> None:
    """Keep calls that name no number of threads from using that of the parent's last call."""
    import lightgbm

    lightgbm.Dataset(np.zeros((1, 1)), params={"num_threads": 1, "verbosity": -1}).construct()


def _start_anew() -> None:
    """Forget, in a forked child, the fits that its parent was at."""
    global _changed, _fits, _binning, _forked
    _changed = threading.Condition()
    _fits, _binning, _forked = 0, False, True


if hasattr(os, "register_at_fork"):  # Windows has no fork
    os.register_at_fork(after_in_child=_start_anew)
