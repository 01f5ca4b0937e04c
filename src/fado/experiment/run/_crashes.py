"""Remember what crashed the process or hung, so that work that always does is set aside in the end.

A segmentation fault or an abort inside compiled code leaves no exception, only a dead process. Python's fault
handler still names the thread, and a small file per piece of work tells what that thread was at. A process
that is killed from outside leaves no trace of a fault, and nothing is blamed for it.
"""

from __future__ import annotations

import faulthandler
import re
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from fado.experiment.store import FAILED, RUNNING, Record, Store

__all__ = ["TRIES", "Ending", "Note", "Notes", "blame_crashes", "culprits", "forget_notes", "read_notes"]

TRIES = 3
_TRACE = "trace.txt"
_NOTE = re.compile(
    r"(?P<thread>[0-9a-f]+)(?:\.(?P<native>[0-9]+))?-(?:(?P<kind>set|values)-)?(?P<key>[0-9a-f]{32})"
)
_LATE = {
    "fit": "The fit did not end within `models.deadline`, {:g} s, and was ended.",
    "set": "The training set was not made within `models.deadline`, {:g} s; its making was ended.",
}
_CRASHED = {
    "fit": "The process crashed inside this fit {} times; it was set aside.",
    "set": "The process crashed {} times while this training set was made; it was set aside.",
    "values": "The process crashed or hung {} times while these values were made; they were set aside.",
}


@dataclass(frozen=True)
class Note:
    """What a file in the folder of running work says: a thread is at a fit, a training set, or values.

    `thread` is Python's number of the thread, `native` the system's, if it is known.
    """

    path: Path
    thread: str
    native: str | None
    kind: str
    key: str


@dataclass(frozen=True)
class Ending:
    """How the process before this one ended, as far as its supervisor knows.

    Parameters
    ----------
    died : bool
        Whether it ended of itself, though no fault was seen: compiled code may leave a program.
    late : tuple of str
        The names of the notes of work that did not end in time.
    """

    died: bool = False
    late: tuple[str, ...] = ()


class Notes:
    """Leaves a note of every piece of work while it lasts.

    Parameters
    ----------
    folder : pathlib.Path
        Where notes stand.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @contextmanager
    def of(self, kind: str, key: str, text: str = "") -> Iterator[Path]:
        """Leave a note of some work of this thread, and give its file."""
        own = key if kind == "fit" else f"{kind}-{key}"
        note = self._folder / f"{threading.get_ident():x}.{threading.get_native_id()}-{own}"
        try:
            with suppress(OSError):  # no space for a note is no reason not to work
                note.write_text(text, encoding="utf-8")
            yield note
        finally:
            with suppress(OSError):
                note.unlink()

    @classmethod
    @contextmanager
    def kept(cls, store: Store) -> Iterator[Notes]:
        """Give the notes of a store, and note faults of the whole process beside them meanwhile."""
        with _fault_handler(store.path / RUNNING / _TRACE):
            yield cls(store.path / RUNNING)


def read_notes(folder: Path) -> list[Note]:
    """Give the notes of a folder, by name; what is none of ours is left alone."""
    try:
        paths = sorted(folder.iterdir())
    except FileNotFoundError:
        return []
    found = ((path, _NOTE.fullmatch(path.name)) for path in paths)
    return [
        Note(path, told["thread"], told["native"], told["kind"] or "fit", told["key"])
        for path, told in found
        if told
    ]


def culprits(folder: Path, *, died: bool) -> list[Note]:
    """Tell what the process that left these notes died of.

    Parameters
    ----------
    folder : pathlib.Path
        The notes and the trace of a fault.
    died : bool
        Whether the process ended of itself, even if there is no such trace.

    Returns
    -------
    list of Note
        The work of the thread that crashed. If compiled code crashed in a thread of its own, the only work
        that was at hand; of several, nobody knows which.
    """
    notes = read_notes(folder)
    thread = _crashed_thread(folder / _TRACE)
    own = [note for note in notes if note.thread == thread]
    return own or (notes if len(notes) == 1 and (died or thread is not None) else [])


def blame_crashes(store: Store, ending: Ending, deadline: float | None) -> None:
    """Count the last crash, if there was one, against what it happened in; after the third, record a failure.

    A fit or a training set that was late is recorded as failed at once, values only after the third time.

    Parameters
    ----------
    store : Store
        Where the notes of the process before stand.
    ending : Ending
        How that process ended.
    deadline : float or None
        The seconds that a fit may take.
    """
    folder = store.path / RUNNING
    notes = read_notes(folder)
    late = [note for note in notes if note.path.name in ending.late]
    if ending.late:
        counted = [note for note in late if note.kind not in _LATE]
    else:
        counted = culprits(folder, died=ending.died)
    store.write(
        [
            *_counted(store, counted),
            *(
                Record(note.kind, note.key, FAILED, _LATE[note.kind].format(deadline))
                for note in late
                if note.kind in _LATE
            ),
        ]
    )
    forget_notes(folder)


def forget_notes(folder: Path) -> None:
    """Remove all notes and the trace of a fault."""
    for path in [*(note.path for note in read_notes(folder)), folder / _TRACE]:
        path.unlink(missing_ok=True)


def _counted(store: Store, notes: Sequence[Note]) -> list[Record]:
    """Count a crash against each of some work."""
    records = []
    for note in notes:
        before = store.get("crash", note.key)
        count = 1 + (int(before.text) if before is not None else 0)
        records.append(Record("crash", note.key, FAILED, str(count)))
        if count >= TRIES:
            records.append(Record(note.kind, note.key, FAILED, _CRASHED[note.kind].format(count)))
    return records


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
    """Name the thread of a fault: empty if it was none of Python's, None if there was no fault."""
    try:
        text = path.read_text("utf-8", "replace")
    except OSError:
        return None
    found = re.search(r"Current thread 0x0*([0-9a-f]+)", text)
    return found[1] if found else ("" if text else None)
