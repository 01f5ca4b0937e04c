"""The ledger: a SQLite file that says what is done. A task is done when its record is committed."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any

__all__ = ["DONE", "FAILED", "PROPOSED", "DamagedLedgerError", "Ledger", "Record"]

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


class DamagedLedgerError(Exception):
    """The ledger cannot be read as what it was written as."""


@dataclass(frozen=True)
class Record:
    """What became of one task.

    Parameters
    ----------
    kind : {"trial", "values", "set", "fit", "crash"}
        A trial, values, a training set, a fit, or the crashes of a fit.
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
    makes no sense.

    Parameters
    ----------
    path : pathlib.Path
        The SQLite file; it must exist, unless `about` is given.
    about : dict, optional
        What a new ledger says of its experiment: plain data by name.
    """

    def __init__(self, path: Path, about: dict[str, Any] | None = None) -> None:
        self._path = path
        mode = "rw" if about is None else "rwc"
        with self._errors():
            uri = f"{path.absolute().as_uri()}?mode={mode}"
            self._connection = sqlite3.connect(uri, uri=True, isolation_level=None, timeout=30)
        self._connection.text_factory = lambda text: text.decode("utf-8", "replace")
        try:
            self._prepare(about)
        except BaseException:
            self._connection.close()
            raise

    def _prepare(self, about: dict[str, Any] | None) -> None:
        with self._errors():
            self._connection.execute("PRAGMA journal_mode = TRUNCATE")
            self._connection.execute("PRAGMA synchronous = FULL")
            if self._connection.execute("PRAGMA integrity_check").fetchall() != [("ok",)]:
                raise DamagedLedgerError("its structure is broken")
            there = self._connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        if there == 0 and about is not None:
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
        return {name: json.loads(text) for name, text, _ in rows}

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


def _seal(fields: list[Any]) -> str:
    return hashlib.sha256(repr(fields).encode()).hexdigest()
