"""Find work that hangs: a fit by the clock, other work by whether any of its threads still moves."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from fado.experiment.run._crashes import read_notes

__all__ = ["Watch", "beating", "tell_phase"]

_LEAST_GRACE = 5.0  # seconds; a fit that looks at the clock itself ends before
_BEAT = 1.0
_LONGEST_STEP = 1.0
_LOCK_SAMPLE = 1.0
_FEW_PER_SECOND = 10


class Watch:
    """Tells whose notes have stood unchanged for longer than a fit may take.

    Only time that the watch was awake counts, and neither clock nor files say how late it is: a machine that
    slept, or a clock that jumped, makes nothing late.

    Parameters
    ----------
    folder : pathlib.Path
        The notes. Only empty ones count: a fit that says what it is at either waits for its training set or
        is done with its training.
    deadline : float or None
        The seconds that a fit may take; None lets all last as long as they like.
    """

    def __init__(self, folder: Path, deadline: float | None) -> None:
        self._folder = folder
        self._limit = None if deadline is None else deadline + max(_LEAST_GRACE, deadline / 2)
        self._ages: dict[tuple[str, int], float] = {}
        self._looked = time.monotonic()

    def late(self) -> tuple[str, ...]:
        """Look once more, and name the notes that have stood for too long."""
        if self._limit is None:
            return ()
        now = time.monotonic()
        step, self._looked = min(now - self._looked, _LONGEST_STEP), now
        ages = {}
        for note in read_notes(self._folder):
            with suppress(FileNotFoundError):  # done meanwhile
                about = note.path.stat()
                if about.st_size == 0:
                    which = note.path.name, about.st_mtime_ns
                    ages[which] = self._ages.get(which, -step) + step
        self._ages = ages
        return tuple(name for (name, _), age in ages.items() if age > self._limit)

    def holding_lock(self, pid: int) -> tuple[str, ...]:
        """Name the notes of threads of a process that do not wait for Python's lock, when nobody gets it.

        Whoever waits for it looks a few hundred times a second whether it is free. Only Linux tells.
        """
        notes = [
            (note.path.name, Path(f"/proc/{pid}/task/{note.native}/status"))
            for note in read_notes(self._folder)
            if not _waits(note.path)
        ]
        before = [_switches(status) for _, status in notes]
        time.sleep(_LOCK_SAMPLE)
        after = [_switches(status) for _, status in notes]
        return tuple(
            name
            for (name, _), first, last in zip(notes, before, after, strict=True)
            if first is not None and last is not None and last - first < _LOCK_SAMPLE * _FEW_PER_SECOND
        )


def _waits(note: Path) -> bool:
    """Tell whether a fit waits for its training set, and with it perhaps for whoever makes that."""
    try:
        return note.read_text(encoding="utf-8") == "waiting"
    except OSError:
        return True


def _switches(status: Path) -> int | None:
    """Count how often a thread has gone to sleep of its own accord; None if nobody knows."""
    try:
        return int(status.read_text().partition("\nvoluntary_ctxt_switches:")[2].split()[0])
    except (OSError, ValueError, IndexError):
        return None


def tell_phase(note: Path, phase: str) -> None:
    """Say in a fit's note what it is at; one that says nothing is training, against the clock."""
    with suppress(OSError):
        note.write_text("" if phase == "training" else phase, encoding="utf-8")


@contextmanager
def beating(note: Path) -> Iterator[None]:
    """Renew a note for as long as some thread comes back from compiled code, or other processes work.

    Values and training sets are made by whatever a valuator or an intervention is, which nobody can ask how
    far it is. But a thread whose frame, place in it and variables are the same as before is inside one call
    of compiled code; and if that call holds Python's lock, the one who renews the note cannot do so either.
    """
    stop = threading.Event()
    thread = threading.Thread(target=_beat, args=(note, stop), name="fado-heartbeat", daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def _beat(note: Path, stop: threading.Event) -> None:
    before: Any = None
    while not stop.wait(_BEAT):
        now = _places(but=threading.get_ident())
        if now != before or _has_children():
            with suppress(OSError):
                os.utime(note)
        before = now


def _places(but: int) -> dict[int, Any]:
    """Say where every thread but one is."""
    return {
        thread: (frame, frame.f_lasti, tuple(map(id, frame.f_locals.values())))
        for thread, frame in sys._current_frames().items()
        if thread != but
    }


def _has_children() -> bool:
    """Tell whether this process has others work for it, as far as the system says."""
    try:
        return any(path.read_text() for path in Path("/proc/self/task").glob("*/children"))
    except OSError:
        return False
