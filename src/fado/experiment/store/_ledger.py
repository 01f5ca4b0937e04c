"""The ledger: a SQLite file that says what is done. A task is done when its record is committed."""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any

__all__ = [
    "DONE",
    "FAILED",
    "PROPOSED",
    "DamagedLedgerError",
    "ForeignLedgerError",
    "Ledger",
    "Record",
    "read_json",
]

PROPOSED, DONE, FAILED = "proposed", "done", "failed"

_TABLES = (
    "CREATE TABLE about (name TEXT PRIMARY KEY, text TEXT, seal TEXT) WITHOUT ROWID",
    "CREATE TABLE records (kind TEXT, key TEXT, state TEXT, text TEXT, checksum TEXT, seconds REAL,"
    " seal TEXT, PRIMARY KEY (kind, key)) WITHOUT ROWID",
)
# What SQLite says when the disk, not the ledger, is at fault.
_OUTSIDE = {
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_LOCKED,
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_READONLY,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_PERM,
    sqlite3.SQLITE_AUTH,
}


_HEADER = b"SQLite format 3\0"
_ROLLBACK_JOURNAL = b"\1\1"  # how a ledger is written and read; others keep files of their own beside it
_NAMES_ANOTHER_JOURNAL = bytes.fromhex("d9d505f920a163d7")  # which SQLite would look up, and delete


class DamagedLedgerError(Exception):
    """The ledger cannot be read as what it was written as."""


class ForeignLedgerError(Exception):
    """The ledger is whole, and says what no run writes."""


@dataclass(frozen=True)
class Record:
    """What became of one task.

    Parameters
    ----------
    kind : {"trial", "values", "set", "fit", "scores", "crash"}
        A trial, values, a training set, a fit, its scores, or the crashes of a fit.
    key : str
        Its content's key; a trial's number.
    state : {"proposed", "done", "failed"}
        Whether there is a result; a trial is proposed, and its fit says what became of it.
    text : str
        What is tried; the error of a failed task; a training set's digest; how often a fit crashed.
    checksum : str
        The checksum of the result's file; empty if there is none.
    seconds : float
        How long it took.
    """

    kind: str
    key: str
    state: str
    text: str = ""
    checksum: str = ""
    seconds: float = 0.0


class Ledger:
    """The records of a store.

    One connection of one thread of the one process that holds the store's lock writes; any number may read.
    `write` returns when the records are on the disk, all or none. Every record carries a seal, and one whose
    seal is broken is treated as if it were not there; `DamagedLedgerError` says that the file as a whole
    makes no sense: it is cut off, holds other tables or triggers, or would lead SQLite to other files.

    Parameters
    ----------
    path : pathlib.Path
        The SQLite file; it must exist, unless `about` is given.
    about : dict, optional
        What a new ledger says of its experiment: plain data by name.
    reading : bool
        Whether it is only read. The file is not written then, unless a writer that was killed left a
        transaction that must be undone.
    """

    def __init__(self, path: Path, about: dict[str, Any] | None = None, *, reading: bool = False) -> None:
        self._path = path
        _check_file(path)
        if not reading:
            self._open("rw" if about is None else "rwc", about)
            return
        try:
            self._open("ro", None)
        except OSError:
            if not _journal_of(path).exists():
                raise
            self._open("rw", None)

    def _open(self, mode: str, about: dict[str, Any] | None) -> None:
        with self._errors():
            uri = f"{self._path.absolute().as_uri()}?mode={mode}"
            self._connection = sqlite3.connect(uri, uri=True, isolation_level=None, timeout=30)
        self._connection.text_factory = lambda text: text.decode("utf-8", "replace")
        try:
            self._prepare(about, writing=mode != "ro")
        except BaseException:
            self._connection.close()
            raise

    def _prepare(self, about: dict[str, Any] | None, *, writing: bool) -> None:
        with self._errors():
            self._connection.execute("PRAGMA trusted_schema = OFF")
            there = self._connection.execute("SELECT sql FROM sqlite_master").fetchall()
            if there and sorted(there, key=str) != [(table,) for table in _TABLES]:
                raise DamagedLedgerError("its tables are others, or there are triggers or views beside them")
            if writing:
                self._connection.execute("PRAGMA journal_mode = TRUNCATE")
                self._connection.execute("PRAGMA synchronous = FULL")
            if self._connection.execute("PRAGMA integrity_check").fetchall() != [("ok",)]:
                raise DamagedLedgerError("its structure is broken")
        if not there and about is not None:
            with self._transaction():
                for table in _TABLES:
                    self._connection.execute(table)
                for name, content in about.items():
                    text = json.dumps(content)
                    self._connection.execute(
                        "INSERT INTO about VALUES (?, ?, ?)", (name, text, _seal([name, text]))
                    )
        self.about()

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def about(self) -> dict[str, Any]:
        """Give what the ledger says of its experiment."""
        with self._errors():
            rows = self._connection.execute("SELECT name, text, seal FROM about").fetchall()
        if not rows or any(seal != _seal([name, text]) for name, text, seal in rows):
            raise DamagedLedgerError("what it says of its experiment is broken")
        return {name: read_json(text, f"its {name!r}") for name, text, _ in rows}

    def records(self) -> dict[tuple[str, str], Record]:
        """Give every record whose seal is whole, by kind and key."""
        with self._errors():
            rows = self._connection.execute(
                "SELECT kind, key, state, text, checksum, seconds, seal FROM records"
            ).fetchall()
        return {(row[0], row[1]): Record(*row[:-1]) for row in rows if row[-1] == _seal(list(row[:-1]))}

    def write(self, records: Sequence[Record]) -> None:
        """Keep some records, all or none; one of the same kind and key is replaced."""
        rows = [(*astuple(record), _seal(list(astuple(record)))) for record in records]
        with self._transaction():
            self._connection.executemany("INSERT OR REPLACE INTO records VALUES (?, ?, ?, ?, ?, ?, ?)", rows)

    def forget(self, which: Iterable[tuple[str, str]]) -> None:
        """Drop the records of some kinds and keys."""
        with self._transaction():
            self._connection.executemany("DELETE FROM records WHERE kind = ? AND key = ?", list(which))

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        with self._errors():
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield
                self._connection.execute("COMMIT")
            except BaseException:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """Tell a disk that is full or read-only from a ledger that is damaged."""
        try:
            yield
        except sqlite3.Error as error:
            code = getattr(error, "sqlite_errorcode", None)
            if code is not None and code & 0xFF in _OUTSIDE:
                raise OSError(f"the ledger {str(self._path)!r} cannot be written or read: {error}") from error
            raise DamagedLedgerError(str(error)) from error


def read_json(text: Any, where: str) -> Any:
    """Read plain data: no NaN, and not deeper than anyone can look."""
    try:
        return json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, TypeError, RecursionError):
        raise ForeignLedgerError(f"{where} is no JSON") from None


def _refuse_constant(name: str) -> Any:
    raise ValueError(name)


def _journal_of(path: Path) -> Path:
    return path.with_name(f"{path.name}-journal")


def _check_file(path: Path) -> None:
    """Refuse a file, or what a killed writer may have left beside it, that would lead SQLite to others."""
    head, tail = _part(path, 0, 20), _part(_journal_of(path), -len(_NAMES_ANOTHER_JOURNAL))
    if head.startswith(_HEADER) and head[18:] != _ROLLBACK_JOURNAL:
        raise DamagedLedgerError("it is kept in another way than runs keep it")
    if tail == _NAMES_ANOTHER_JOURNAL:
        raise DamagedLedgerError("its journal names another file")


def _part(path: Path, start: int, length: int = -1) -> bytes:
    """Read some bytes of a file, from its end if `start` is negative; none if there is no such file."""
    try:
        with path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(start if start >= 0 else max(0, size + start))
            return file.read(length)
    except FileNotFoundError:
        return b""


def _seal(fields: list[Any]) -> str:
    return hashlib.sha256(repr(fields).encode()).hexdigest()
