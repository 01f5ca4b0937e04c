"""One progress bar for notebooks and terminals, plain lines elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import nullcontext
from importlib.util import find_spec
from typing import Any, TextIO, TypeVar

Item = TypeVar("Item")

SECONDS_BETWEEN_LINES = 5.0


def tracked(items: Iterable[Item], total: int, *, what: str, show: bool) -> Iterator[Item]:
    """Pass items on and show how many of `total` are done, and the time left.

    Parameters
    ----------
    items : iterable
        The items.
    total : int
        The number of items.
    what : str
        What the items are called, in the plural.
    show : bool
        False passes the items on without a bar.
    """
    if not show:
        yield from items
        return
    bar, start = open_bar(total, what=what), time.monotonic()
    said = start
    with nullcontext() if bar is None else bar:
        for done, item in enumerate(items, 1):
            now = time.monotonic()
            if bar is None and (now - said >= SECONDS_BETWEEN_LINES or done == total):
                left = (now - start) / done * (total - done)
                print(f"{what}: {done} of {total}, {left:.0f} s left", file=progress_stream(), flush=True)
                said = now
            yield item
            if bar is not None:
                bar.update()


def open_bar(total: int, *, what: str, smoothing: float = 0.3) -> Any:
    """Return a bar of tqdm in notebooks and on terminals, which must be closed; None elsewhere.

    A notebook without ipywidgets has a bar of text.
    """
    if _in_notebook() and find_spec("ipywidgets") is not None:
        from tqdm.notebook import tqdm as widget

        return widget(total=total, desc=what, leave=False, smoothing=smoothing)
    stream = progress_stream()
    if not (_in_notebook() or stream.isatty()):
        return None
    from tqdm.std import tqdm

    return tqdm(total=total, desc=what, leave=False, smoothing=smoothing, file=stream)


def set_total(bar: Any, total: int) -> None:
    """Set another total on a bar, also on the widget of a notebook."""
    bar.total = total
    if hasattr(bar, "container"):
        _, drawn, _ = bar.container.children
        drawn.max = total
    bar.refresh()


def progress_stream() -> TextIO:
    """Return the stream for lines and bars: stderr, or stdout in a notebook, which marks stderr as errors."""
    return sys.stdout if _in_notebook() else sys.stderr


def _in_notebook() -> bool:
    shell: Any = sys.modules.get("IPython")
    current = shell.get_ipython() if shell is not None else None
    return type(current).__name__ == "ZMQInteractiveShell"
