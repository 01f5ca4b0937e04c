"""One progress bar for notebooks and terminals, plain lines elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator
from typing import Any, TypeVar

__all__ = ["tracked"]

Item = TypeVar("Item")

SECONDS_BETWEEN_LINES = 5.0


def tracked(items: Iterable[Item], total: int, *, what: str, show: bool) -> Iterator[Item]:
    """Pass items on and show how many of `total` have come, and the time left.

    Parameters
    ----------
    items : iterable
        What is waited for.
    total : int
        How many will come.
    what : str
        What one of them is called, in the plural.
    show : bool
        False passes the items on in silence.
    """
    if not show:
        yield from items
    elif _in_notebook() or sys.stderr.isatty():
        from tqdm.auto import tqdm

        yield from tqdm(items, total=total, desc=what, leave=False)
    else:
        yield from _lines(items, total, what)


def _in_notebook() -> bool:
    shell: Any = sys.modules.get("IPython")
    found = shell.get_ipython() if shell is not None else None
    return found is not None and type(found).__name__ == "ZMQInteractiveShell"


def _lines(items: Iterable[Item], total: int, what: str) -> Iterator[Item]:
    start = said = time.monotonic()
    for done, item in enumerate(items, 1):
        now = time.monotonic()
        if now - said >= SECONDS_BETWEEN_LINES or done == total:
            left = (now - start) / done * (total - done)
            print(f"{what}: {done} of {total}, {left:.0f} s left", file=sys.stderr, flush=True)
            said = now
        yield item
