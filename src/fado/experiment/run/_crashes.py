"""Remember which fit crashed the process, so that a fit that always does is set aside in the end.

A segmentation fault or an abort inside compiled code leaves no exception, only a dead process. Python's fault
handler still names the thread, and an empty file per running fit tells what that thread was at. A process
that is killed from outside leaves no trace of a fault, and no fit is blamed for it.
"""

from __future__ import annotations

import faulthandler
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from fado.experiment.run._bench import Bench, Job, Judged
from fado.experiment.store import FAILED, RUNNING, Record, Store

__all__ = ["TRIES", "RunJob", "blame_crashes", "note_fits"]

RunJob = Callable[[Job, Bench, threading.Event], Judged]

TRIES = 3
_TRACE = "trace.txt"
_NOTE = re.compile("(?P<thread>[0-9a-f]+)-(?P<key>[0-9a-f]{32})")


def blame_crashes(store: Store) -> None:
    """Count the last crash, if there was one, against its fit; after the third, record the fit as failed."""
    folder = store.path / RUNNING
    notes = {path: found for path in folder.iterdir() if (found := _NOTE.fullmatch(path.name))}
    crashed = _crashed_thread(folder / _TRACE)
    keys = [note["key"] for note in notes.values() if note["thread"] == crashed]
    records: list[Record] = []
    for key in keys:
        before = store.get("crash", key)
        count = 1 + (int(before.text) if before is not None else 0)
        records.append(Record("crash", key, FAILED, str(count)))
        if count >= TRIES:
            text = f"The process crashed inside this fit {count} times; it was set aside."
            records.append(Record("fit", key, FAILED, text))
    store.write(records)
    for path in [*notes, folder / _TRACE]:
        path.unlink(missing_ok=True)


@contextmanager
def note_fits(store: Store, run: RunJob) -> Iterator[RunJob]:
    """Give a function that runs a fit and leaves a note of it while it does."""
    folder = store.path / RUNNING

    def run_noted(job: Job, bench: Bench, stop: threading.Event) -> Judged:
        note = folder / f"{threading.get_ident():x}-{job.key}"
        with suppress(OSError):  # no space for a note is no reason not to fit
            note.touch()
        try:
            return run(job, bench, stop)
        finally:
            with suppress(OSError):
                note.unlink()

    with _fault_handler(folder / _TRACE):
        yield run_noted


@contextmanager
def _fault_handler(path: Path) -> Iterator[None]:
    """Send the trace of a fault to a file, and put back what was there before."""
    was_enabled = faulthandler.is_enabled()
    try:
        file = path.open("w", encoding="utf-8")
    except OSError:
        yield
        return
    with file:
        faulthandler.enable(file)
        try:
            yield
        finally:
            faulthandler.disable()
            if was_enabled:
                with suppress(Exception):  # a notebook's stderr has no file
                    faulthandler.enable()
            with suppress(OSError):
                path.unlink()


def _crashed_thread(path: Path) -> str | None:
    try:
        found = re.search(r"Current thread 0x0*([0-9a-f]+)", path.read_text("utf-8", "replace"))
    except OSError:
        return None
    return found[1] if found else None
