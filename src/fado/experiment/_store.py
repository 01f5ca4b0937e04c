"""The store of an experiment: a directory with one SQLite file, and a file of values per algorithm.

Trials are kept as JSON and scores as compressed bytes; nothing is ever unpickled.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from shutil import rmtree
from typing import Any

import numpy as np
import pyarrow as pa

from fado._records import encode, record_from
from fado._storage import Lock, lock_files, remove_unfinished, writing
from fado._typing import Floats
from fado.experiment._config import CROSSED, Config
from fado.experiment._trial import FAILED, IMPOSSIBLE, Trial, key_of
from fado.valuation import Valuation

FORMAT = 1
DATABASE, LOCK, VALUES, SHELF = "experiment.sqlite", "lock", "values", "shelf"
_TABLES = (
    "CREATE TABLE about (content TEXT NOT NULL)",
    "CREATE TABLE trials (number INTEGER PRIMARY KEY, trial TEXT NOT NULL)",
    "CREATE TABLE scores (fit TEXT PRIMARY KEY, validation INTEGER NOT NULL, packed BLOB NOT NULL)",
    "CREATE TABLE failed_values (name TEXT PRIMARY KEY, reason TEXT NOT NULL)",
)
# SQLite's errors of the disk, not of the file.
_OF_THE_DISK = {
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_LOCKED,
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_READONLY,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_PERM,
    sqlite3.SQLITE_AUTH,
}
_NAMES_ANOTHER_FILE = bytes.fromhex("d9d505f920a163d7")  # the end of a journal that SQLite would follow


@dataclass(frozen=True, kw_only=True)
class About:
    """The description of an experiment in its store."""

    format: int
    configuration: Config
    versions: Mapping[str, str]
    fingerprint: str
    summary: list[dict[str, Any]]
    positive: str | None
    plugins: list[dict[str, str]]


class Store:
    """The trials, scores and values of an experiment so far.

    One thread of the process that holds the store's lock writes; any number of processes may read meanwhile.
    A method that writes returns when everything is on the disk.

    Parameters
    ----------
    path : pathlib.Path or None
        The directory; None if the store is in memory.
    connection : sqlite3.Connection
        Its open file.

    Attributes
    ----------
    about : About
        The description of the experiment.
    rows : dict of int to Trial
        The trials by number, with their outcomes. A model that only other trials need has a negative number.
    """

    def __init__(self, path: Path | None, connection: sqlite3.Connection) -> None:
        self.path = path
        self._connection = connection
        with _errors(self.path):
            (text,) = connection.execute("SELECT content FROM about").fetchone()
            content = json.loads(text)
            version = content.get("format")
        if version != FORMAT:
            raise ValueError(
                f"The store {str(path)!r} is not as runs of this release write it: it is of format "
                f"{version!r}, and this release knows format {FORMAT}."
            )
        with _errors(self.path):
            self.about = record_from(About, content, "its description")
            rows = connection.execute("SELECT number, trial FROM trials").fetchall()
            self.rows = {number: record_from(Trial, json.loads(row), "a trial") for number, row in rows}
        self._identity = key_of([version, self.about.fingerprint, dict(self.about.versions)])

    @classmethod
    @contextmanager
    def writing(cls, path: str | os.PathLike[str], about: About) -> Iterator[Store]:
        """Open a store for writing, or make a new one.

        Parameters
        ----------
        path : path-like
            The directory.
        about : About
            The expected description of the experiment.

        Raises
        ------
        InUseError
            If another process is writing it.
        ValueError
            If it belongs to another experiment, holds links or other files, or is damaged.
        OSError
            If it cannot be written.
        """
        path = Path(path)
        with ExitStack() as held:
            with _explained(path):
                path.mkdir(parents=True, exist_ok=True)
                _check_directory(path)
                held.enter_context(Lock(path / LOCK, f"The store {str(path)!r}"))
                (path / VALUES).mkdir(exist_ok=True)
                remove_unfinished(path / VALUES)
                rmtree(path / SHELF, ignore_errors=True)
                with _errors(path):
                    connection = held.enter_context(closing(_connect(path, "rwc")))
                    connection.execute("PRAGMA journal_mode = TRUNCATE")
                    connection.execute("PRAGMA synchronous = FULL")
                    if _is_empty(connection):
                        _create(connection, about)
                store = cls(path, connection)
                _refuse_other(store.about, about)
            yield store

    @classmethod
    def in_memory(cls, about: About) -> Store:
        """Make a store in memory, which saves no values."""
        connection = sqlite3.connect(":memory:", check_same_thread=False)
        _create(connection, about)
        return cls(None, connection)

    @classmethod
    @contextmanager
    def reading(cls, path: str | os.PathLike[str]) -> Iterator[Store]:
        """Open a store for reading, also while it is being written."""
        path = Path(path)
        if not (path / DATABASE).is_file():
            raise FileNotFoundError(f"There is no store in {str(path)!r}.")
        _check_links(path)
        with ExitStack() as held:
            with _errors(path):  # it is written only to undo the transaction of a killed writer
                connection = held.enter_context(closing(_connect(path, "rw")))
                if _is_empty(connection):  # its writer has just begun
                    raise FileNotFoundError(f"There is no store in {str(path)!r}.")
            yield cls(path, connection)

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_connection": self._connection.serialize()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._connection = sqlite3.connect(":memory:", check_same_thread=False)
        self._connection.deserialize(state["_connection"])

    @property
    def trials(self) -> list[Trial]:
        """All trials with their outcomes, in the order in which they were proposed."""
        return [trial for number, trial in sorted(self.rows.items()) if number >= 0]

    @property
    def named(self) -> list[Any]:
        """What the names of fits are made of, in addition to the training set and the parameters."""
        return [self._identity, self._settings("seed", "evaluation", "models.estimator", "models.pipeline")]

    @property
    def keeps_scores(self) -> bool:
        """Whether the scores of fits are saved."""
        return self.about.configuration.evaluation.keep_scores

    def add(self, trials: Sequence[Trial]) -> list[int]:
        """Save new trials, and return their numbers."""
        first = max([-1, *self.rows]) + 1
        new = dict(enumerate(trials, first))
        self.write(new)
        return list(new)

    def write(
        self, trials: Mapping[int, Trial], scores: Mapping[str, Floats] | None = None, cut: int = 0
    ) -> None:
        """Save the outcomes of trials and the scores of fits, the first `cut` of validation rows."""
        with _explained(self.path), _errors(self.path), self._connection:
            self._connection.executemany(
                "INSERT OR REPLACE INTO trials VALUES (?, ?)",
                [(number, json.dumps(encode(trial))) for number, trial in trials.items()],
            )
            self._connection.executemany(
                "INSERT OR REPLACE INTO scores VALUES (?, ?, ?)",
                [(fit, cut, _compressed(numbers)) for fit, numbers in (scores or {}).items()],
            )
        self.rows |= trials

    def forget_failed(self) -> None:
        """Reset all failed trials and values, so that they are run again."""
        self.write(
            {
                number: Trial(trial.intervention, trial.settings, trial.model, trial.parameters)
                for number, trial in self.rows.items()
                if trial.status in (FAILED, IMPOSSIBLE)
            }
        )
        with _explained(self.path), _errors(self.path), self._connection:
            self._connection.execute("DELETE FROM failed_values")

    def values(self, algorithm: str) -> Valuation | str | None:
        """Read the values of an algorithm; the reason as text if they failed; None if there are none.

        Raises
        ------
        ValueError
            If their file is damaged.
        """
        file = self._values_file(algorithm)
        with _errors(self.path):
            query = "SELECT reason FROM failed_values WHERE name = ?"
            row = self._connection.execute(query, [file.stem]).fetchone()
        if row is not None:
            return str(row[0])
        if self.path is None or not file.exists():
            return None
        try:
            return Valuation.load(file)
        except ValueError as error:
            raise ValueError(f"{str(error).rstrip('.')}: delete it, and run the experiment again.") from error

    def save_values(self, algorithm: str, values: Valuation | str) -> None:
        """Save values, or the reason why there are none."""
        if self.path is None:
            return  # the run itself keeps them
        file = self._values_file(algorithm)
        with _explained(self.path):
            if isinstance(values, Valuation):
                values.save(file)
            else:
                with _errors(self.path), self._connection:
                    self._connection.execute("INSERT INTO failed_values VALUES (?, ?)", [file.stem, values])

    def scores(self, fit: str) -> dict[str, Floats]:
        """Read the scores of a fit by part; the validation part may be empty.

        Raises
        ------
        ValueError
            If they are not saved, or damaged.
        """
        if not self.keeps_scores:
            raise ValueError(
                f"The store {str(self.path)!r} keeps no scores of this fit: run the experiment with "
                "`evaluation.keep_scores = true`."
            )
        with _errors(self.path):
            query = "SELECT validation, packed FROM scores WHERE fit = ?"
            cut, packed = self._connection.execute(query, [fit]).fetchone()
            scores = _scores_from(packed)
        return {"validation": scores[:cut], "test": scores[cut:]}

    def all_scores(self, fit: str) -> Floats:
        """Read the scores of a fit, of the validation rows, then of the test rows."""
        return np.concatenate(list(self.scores(fit).values()))

    def _settings(self, *places: str) -> dict[str, Any]:
        settings = self.about.configuration.flat()
        return {name: value for name, value in settings.items() if name.startswith(places)}

    def _values_file(self, algorithm: str) -> Path:
        settings = self._settings("seed", "data.exclude", "valuation")
        name = key_of([self._identity, settings, algorithm])
        return Path(str(self.path)) / VALUES / f"{name}.parquet"


def _connect(path: Path, mode: str) -> sqlite3.Connection:
    file = path / DATABASE
    journal = Path(f"{file}-journal")
    if journal.exists() and journal.read_bytes().endswith(_NAMES_ANOTHER_FILE):
        raise sqlite3.DatabaseError("its journal names another file")
    uri = f"{file.absolute().as_uri()}?mode={mode}"
    connection = sqlite3.connect(
        uri, uri=True, isolation_level="IMMEDIATE", timeout=30, check_same_thread=False
    )
    connection.execute("PRAGMA trusted_schema = OFF")
    return connection


def _is_empty(connection: sqlite3.Connection) -> bool:
    return connection.execute("SELECT 1 FROM sqlite_master").fetchone() is None


def _create(connection: sqlite3.Connection, about: About) -> None:
    with connection:
        connection.execute("BEGIN IMMEDIATE")
        for statement in _TABLES:
            connection.execute(statement)
        connection.execute("INSERT INTO about VALUES (?)", [json.dumps(encode(about))])


@contextmanager
def _errors(path: Path | None) -> Iterator[None]:
    """Distinguish a disk that is full or read-only from a damaged store, which is to be deleted."""
    try:
        yield
    except (sqlite3.Error, pa.ArrowException, ValueError, TypeError, AttributeError) as error:
        if getattr(error, "sqlite_errorcode", -1) & 0xFF in _OF_THE_DISK:
            raise OSError(f"the file {str(path)!r} cannot be written or read: {error}") from error
        raise ValueError(
            f"The store {str(path)!r} is damaged ({error}): delete it, and run the experiment again."
        ) from error


def _explained(path: Path | None) -> Any:
    """Turn an error of the disk into a sentence about the store."""
    return nullcontext() if path is None else writing(path, "The store", "; all earlier results are kept")


def _compressed(scores: Floats) -> bytes:
    """Compress scores without loss; bytes of the same place are stored together, which compresses better."""
    places = np.ascontiguousarray(scores, dtype="<f8").view(np.uint8).reshape(-1, 8).T
    return len(scores).to_bytes(8) + bytes(pa.compress(places.tobytes(), "zstd", asbytes=True))


def _scores_from(packed: bytes) -> Floats:
    rows = int.from_bytes(packed[:8])
    try:
        places = pa.decompress(packed[8:], 8 * rows, "zstd", asbytes=True)
    except OSError as error:  # also of what is not compressed
        raise ValueError(str(error)) from error
    scores = np.frombuffer(places, np.uint8).reshape(8, rows).T.copy().view("<f8").reshape(rows)
    return scores.astype(np.float64, copy=False)


def _refuse_other(before: About, now: About) -> None:
    """Raise a ValueError if a store belongs to another experiment; a missing setting equals None or False."""
    usual = {"evaluation.groups": CROSSED}  # left out where it is so
    old, new = (usual | about.configuration.flat() for about in (before, now))
    differences = {}
    for name in dict.fromkeys([*old, *new]):
        was, is_now = old.get(name), new.get(name)
        known = name in old and name in new
        if was != is_now and (known or (was or is_now) not in (None, False)):
            stored = f"`{name}` = {old[name]!r}" if name in old else f"no `{name}`"
            says = f"says {new[name]!r}" if name in new else "does not name it"
            differences[name] = f"{stored}, the configuration {says}"
    sentences = list(differences.values())
    for name in dict.fromkeys([*before.versions, *now.versions]):
        if before.versions.get(name) != now.versions.get(name):
            sentences.append(f"{name} {before.versions.get(name)}, here is {now.versions.get(name)}")
    if before.fingerprint != now.fingerprint and not any(map(_decides_data, differences)):
        was, is_now = (f"{one.fingerprint[:12]}, {_n_rows(one.summary):,} rows" for one in (before, now))
        sentences.append(f"other data (fingerprint {was}, and now {is_now})")
    if sentences:
        raise ValueError(
            f"The store was made with {'; with '.join(sentences)}: undo the change, or use another store."
        )


def _decides_data(name: str) -> bool:
    """Return whether a setting, by its place, changes the data or their parts."""
    return name.startswith(("data.", "split.", "seed")) and name != "data.exclude"


def _n_rows(summary: list[dict[str, Any]]) -> int:
    """Count the rows of all parts, once if there are several attributes."""
    first = summary[0].get("attribute") if summary else None
    return sum(entry["rows"] for entry in summary if entry.get("attribute") == first)


def _check_directory(path: Path) -> None:
    """Refuse a directory with other files; a store that was just begun has no database yet."""
    _check_links(path)
    lock = path / LOCK
    names = {f"{DATABASE}-journal", VALUES, *(file.name for file in lock_files(lock))}
    if not (path / DATABASE).exists() and (
        any(entry.name not in names for entry in path.iterdir()) or (lock.is_file() and lock.stat().st_size)
    ):
        raise ValueError(f"{str(path)!r} is neither empty nor a store: name a new directory.")


def _check_links(path: Path) -> None:
    """Refuse links: a store reads and writes files in its directory only."""
    for entry in [*path.iterdir(), *path.glob(f"{VALUES}/*")]:
        if entry.is_symlink():
            raise ValueError(f"{str(entry)!r} is a link: a store holds regular files only.")
