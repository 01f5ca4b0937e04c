"""One SQLite file whose rows have digests: a damaged row counts as absent."""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from fado._messages import warn_user

TRIALS = (
    "number INTEGER PRIMARY KEY, intervention TEXT, settings TEXT, model INTEGER, parameters TEXT, "
    "status TEXT, training_rows INTEGER, metrics TEXT, error TEXT, fit TEXT, seconds REAL"
)
_TABLES = {
    "about": "name TEXT PRIMARY KEY, text TEXT",
    "scores": "fit TEXT PRIMARY KEY, validation INTEGER, rows INTEGER, packed BLOB",
    "trials": TRIALS,
    "valuations": "name TEXT PRIMARY KEY, checksum TEXT, error TEXT, seconds REAL",
}
_CREATE = {
    name: f"CREATE TABLE {name} ({columns}, seal TEXT) WITHOUT ROWID" for name, columns in _TABLES.items()
}
# SQLite's errors of the disk, not of the file.
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
_ROLLBACK_JOURNAL = b"\1\1"  # other journal modes use further files
_NAMES_ANOTHER_JOURNAL = bytes.fromhex("d9d505f920a163d7")  # a file that SQLite would open and delete

Row = tuple[Any, ...]


class BrokenFileError(Exception):
    """The file is damaged."""


class ForeignStoreError(Exception):
    """The file is intact, but has content that no run writes."""


class Database:
    """The SQLite file: rows by table, each with a digest of its content, the seal.

    `BrokenFileError` is raised if the file as a whole is wrong: it is cut off, has other tables or triggers,
    or would make SQLite open other files.

    Parameters
    ----------
    path : pathlib.Path
        The file; it must exist, unless `about` is given.
    about : dict, optional
        The description of the experiment in a new file: plain data by name.
    reading : bool
        Whether the file is only read. It is then not written, unless a killed writer left a transaction that
        must be undone.
    """

    def __init__(self, path: Path, about: dict[str, Any] | None = None, *, reading: bool = False) -> None:
        self._path = path
        self.n_broken = 0
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
        try:
            self._prepare(about, writing=mode != "ro")
        except BaseException:
            self._connection.close()
            raise

    def _prepare(self, about: dict[str, Any] | None, *, writing: bool) -> None:
        self._connection.text_factory = lambda text: text.decode("utf-8", "replace")
        with self._errors():
            self._connection.execute("PRAGMA trusted_schema = OFF")
            there = self._connection.execute("SELECT sql FROM sqlite_master").fetchall()
            if there and sorted(there, key=str) != [(sql,) for sql in _CREATE.values()]:
                raise BrokenFileError("its tables are others, or there are triggers or views beside them")
            if writing:
                self._connection.execute("PRAGMA journal_mode = TRUNCATE")
                self._connection.execute("PRAGMA synchronous = FULL")
            # scores may be large; their seals are checked when they are read
            checked = [""] if writing else [f"({name})" for name in ("about", "trials") if there]
            for table in checked:
                if self._connection.execute(f"PRAGMA integrity_check{table}").fetchall() != [("ok",)]:
                    raise BrokenFileError("its structure is broken")
            if not there and about is not None:
                with self._transaction():
                    for sql in _CREATE.values():
                        self._connection.execute(sql)
                    self._insert({"about": [(name, json.dumps(content)) for name, content in about.items()]})

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def about(self) -> dict[str, Any]:
        """Return the description of the experiment."""
        rows = list(self.rows("about"))
        if self.n_broken or not rows:
            raise BrokenFileError("what it says of its experiment is broken")
        return {name: read_json(text, f"its {name!r}") for name, text in rows}

    def rows(self, table: str, key: Any = None) -> Iterator[Row]:
        """Return the intact rows of a table, or the row of a key."""
        first = _TABLES[table].split()[0]
        chosen, given = (f" WHERE {first} = ?", (key,)) if key is not None else ("", ())
        with self._errors():
            for row in self._connection.execute(f"SELECT * FROM {table}{chosen}", given):  # noqa: S608
                if row[-1] == seal_of(table, row[:-1]):
                    yield row[:-1]
                else:
                    self.n_broken += 1

    def write(self, rows: Mapping[str, Sequence[Row]]) -> None:
        """Write rows by table, all or none; a row with the same key is replaced."""
        with self._transaction():
            self._insert(rows)

    def _insert(self, rows: Mapping[str, Sequence[Row]]) -> None:
        for table, own in rows.items():
            marks = ", ".join("?" * (_TABLES[table].count(",") + 2))
            sealed = [(*row, seal_of(table, row)) for row in own]
            statement = f"INSERT OR REPLACE INTO {table} VALUES ({marks})"  # noqa: S608
            self._connection.executemany(statement, sealed)

    def forget(self, table: str, keys: Sequence[Any]) -> None:
        """Drop the rows of some keys."""
        first = _TABLES[table].split()[0]
        with self._transaction():
            self._connection.executemany(
                f"DELETE FROM {table} WHERE {first} = ?",  # noqa: S608
                [(key,) for key in keys],
            )

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
        """Distinguish a disk that is full or read-only from a damaged file."""
        try:
            yield
        except sqlite3.Error as error:
            code = getattr(error, "sqlite_errorcode", None)
            if code is not None and code & 0xFF in _OUTSIDE:
                raise OSError(f"the file {str(self._path)!r} cannot be written or read: {error}") from error
            raise BrokenFileError(str(error)) from error


class MemoryDatabase:
    """The same rows by table, in memory, for a run that is not saved.

    Parameters
    ----------
    about : dict
        The description of the experiment.
    """

    n_broken = 0

    def __init__(self, about: dict[str, Any]) -> None:
        self._about = json.dumps(about)
        self._tables: dict[str, dict[Any, Row]] = {name: {} for name in _TABLES}

    def about(self) -> dict[str, Any]:
        """Return the description of the experiment."""
        about: dict[str, Any] = json.loads(self._about)
        return about

    def rows(self, table: str, key: Any = None) -> Iterator[Row]:
        """Return the rows of a table, or the one of a key."""
        own = self._tables[table]
        yield from own.values() if key is None else [own[key]] if key in own else []

    def write(self, rows: Mapping[str, Sequence[Row]]) -> None:
        """Write rows by table; a row with the same key is replaced."""
        for table, own in rows.items():
            self._tables[table] |= {row[0]: row for row in own}

    def forget(self, table: str, keys: Sequence[Any]) -> None:
        """Drop the rows of some keys."""
        for key in keys:
            self._tables[table].pop(key, None)


def open_database(path: Path, about: dict[str, Any]) -> Database:
    """Open the file; a damaged file is renamed, and a new one is made of its intact rows."""
    try:
        database = Database(path, about)
        try:
            database.about()
        except BrokenFileError:
            database.close()
            raise
        return database
    except BrokenFileError:
        number = len(list(path.parent.glob(f"{path.stem}.damaged-*")))
        aside = path.rename(path.with_name(f"{path.stem}.damaged-{number}.sqlite"))
        for end in ("-journal", "-wal", "-shm"):
            Path(f"{path}{end}").unlink(missing_ok=True)
    database = Database(path, about)
    salvaged = {table: list(_salvaged(aside, table)) for table in ("about", "trials", "valuations", "scores")}
    before: dict[Any, Any] = dict(salvaged.pop("about"))
    n_trials = 0
    if before == {name: json.dumps(content) for name, content in about.items()}:
        database.write(salvaged)
        n_trials = len(salvaged["trials"])
    warn_user(f"The file of the store was damaged: a new one was made, with {n_trials} of its trials.")
    return database


def _salvaged(path: Path, table: str) -> Iterator[Row]:
    """Return the intact rows of a damaged file, as far as it can be read."""
    uri = f"{path.absolute().as_uri()}?mode=ro&immutable=1"  # so that no other file is looked at
    with closing(sqlite3.connect(uri, uri=True)) as connection:
        try:
            connection.execute("PRAGMA trusted_schema = OFF")
            if connection.execute("SELECT 1 FROM sqlite_master WHERE sql = ?", [_CREATE[table]]).fetchone():
                for row in connection.execute(f"SELECT * FROM {table}"):  # noqa: S608
                    if row[-1] == seal_of(table, row[:-1]):
                        yield row[:-1]
        except sqlite3.Error:
            return


def seal_of(table: str, row: Sequence[Any]) -> str:
    """Return the digest of a row's content and of the name of its table."""
    digest = hashlib.sha256(table.encode())
    for value in row:
        digest.update(b"\0" + value if isinstance(value, bytes) else repr(value).encode() + b",")
    return digest.hexdigest()


def read_json(text: Any, where: str, *, constants: bool = False) -> Any:
    """Read JSON that is not nested too deeply; NaN is allowed in metrics only."""
    try:
        return json.loads(text, parse_constant=float if constants else _refuse_constant)
    except (ValueError, TypeError, RecursionError):
        raise ForeignStoreError(f"{where} is not JSON") from None


def _refuse_constant(name: str) -> Any:
    raise ValueError(name)


def _journal_of(path: Path) -> Path:
    return path.with_name(f"{path.name}-journal")


def _check_file(path: Path) -> None:
    """Refuse a file, or a journal beside it, that would make SQLite open other files."""
    head, tail = _part(path, 0, 20), _part(_journal_of(path), -len(_NAMES_ANOTHER_JOURNAL))
    if head.startswith(_HEADER) and head[18:] != _ROLLBACK_JOURNAL:
        raise BrokenFileError("it is kept in another way than runs keep it")
    if tail == _NAMES_ANOTHER_JOURNAL:
        raise BrokenFileError("its journal names another file")


def _part(path: Path, start: int, length: int = -1) -> bytes:
    """Read some bytes of a file, from its end if `start` is negative; none if it does not exist."""
    try:
        with path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(start if start >= 0 else max(0, size + start))
            return file.read(length)
    except FileNotFoundError:
        return b""
