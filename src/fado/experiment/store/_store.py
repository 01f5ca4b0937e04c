"""The store: a directory with the ledger and one immutable file per result."""

from __future__ import annotations

import hashlib
import json
import os
import warnings
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet

from fado._files import replacing
from fado.experiment.config import rename_former
from fado.experiment.store._ledger import DONE, DamagedLedgerError, Ledger, Record
from fado.experiment.store._lock import RunLock, holder_of
from fado.valuation import Valuation

__all__ = ["FORMAT", "RUNNING", "Store", "differences"]

FORMAT = 1
LEDGER, LOCK = "ledger.sqlite", "lock"
RUNNING = "running"  # notes of the fits at hand, of use only after a crash
FOLDERS = ("values", "fits", RUNNING)
_SEALED_KEY = b"fado.fit"


class Store:
    """What an experiment has done so far.

    Every result stands in a Parquet file of its own, named by the key of its content: written under a
    temporary name, synced, renamed, and only then entered in the ledger with its checksum. A file without a
    record is nothing; a record whose file is missing or altered is dropped when the store is opened.

    Parameters
    ----------
    path : pathlib.Path
        The directory.
    ledger : Ledger
        Its open ledger.
    """

    def __init__(self, path: Path, ledger: Ledger) -> None:
        self.path = path
        self._ledger = ledger
        self.about = ledger.about()
        self.records = ledger.records()

    @classmethod
    @contextmanager
    def writing(cls, path: str | os.PathLike[str], about: dict[str, Any]) -> Iterator[Store]:
        """Open a store to work on it, or make a new one.

        Parameters
        ----------
        path : path-like
            The directory.
        about : dict
            What the store must say of its experiment: configuration, data, versions.

        Raises
        ------
        StoreInUseError
            If another runner works on it.
        ValueError
            If it belongs to another experiment, or holds links.
        OSError
            If it cannot be written.
        """
        path = Path(path)
        with ExitStack() as held:
            with _explained(path):
                path.mkdir(parents=True, exist_ok=True)
                _check_directory(path)
                _check_links(path)
                held.enter_context(RunLock(path / LOCK))
                for folder in FOLDERS:
                    (path / folder).mkdir(exist_ok=True)
                _remove_unfinished(path)
                ledger, rebuilt = _opened(path, about)
                held.callback(ledger.close)
                store = cls(path, ledger)
                _refuse_other(store.about, about)
                if rebuilt:
                    store._adopt()
                else:
                    store._verify()
            yield store

    @classmethod
    @contextmanager
    def reading(cls, path: str | os.PathLike[str]) -> Iterator[Store]:
        """Open a store to read it, whether or not a runner works on it."""
        path = Path(path)
        if not (path / LEDGER).is_file():
            raise FileNotFoundError(f"There is no store in {str(path)!r}.")
        _check_links(path)
        try:
            ledger = Ledger(path / LEDGER)
        except DamagedLedgerError as error:
            raise ValueError(
                f"The ledger of the store {str(path)!r} is damaged ({error}): run the experiment again, "
                "which mends it."
            ) from error
        try:
            yield cls(path, ledger)
        finally:
            ledger.close()

    def get(self, kind: str, key: str) -> Record | None:
        """Give a task's record, if there is one."""
        return self.records.get((kind, key))

    def write(self, records: Sequence[Record]) -> None:
        """Commit records."""
        with _explained(self.path):
            self._ledger.write(records)
        self.records |= {(record.kind, record.key): record for record in records}

    def save_values(self, key: str, valuation: Valuation, seconds: float) -> None:
        """Keep values, file first, record second."""
        path = self._file("values", key)
        with _explained(self.path):
            valuation.save(path)
            checksum = _checksum(path)
        self.write([Record("values", key, DONE, checksum=checksum, seconds=seconds)])

    def load_values(self, key: str) -> Valuation:
        """Read values that are done."""
        return Valuation.load(self._file("values", key))

    def save_fit(self, key: str, metrics: dict[str, float], seconds: float) -> Record:
        """Write a fit's file; the fit is done when the record that this returns is committed."""
        table = pa.table({"metric": list(metrics), "value": pa.array(metrics.values(), pa.float64())})
        sealed = json.dumps({"format": FORMAT, "key": key, "seal": _seal(key, metrics)})
        with _explained(self.path), replacing(self._file("fit", key)) as temporary:
            pyarrow.parquet.write_table(
                table.replace_schema_metadata({_SEALED_KEY: sealed.encode()}),
                temporary,
                write_page_checksum=True,
            )
            checksum = _checksum(temporary)
        return Record("fit", key, DONE, checksum=checksum, seconds=seconds)

    def load_fit(self, key: str) -> dict[str, float] | None:
        """Read the metrics of a fit; None if its file is not as it was written."""
        path = self._file("fit", key)
        try:
            table = pyarrow.parquet.ParquetFile(path, page_checksum_verification=True).read()
            sealed = json.loads(table.schema.metadata[_SEALED_KEY])
            metrics = dict(zip(*(column.to_pylist() for column in table.columns), strict=True))
        except (pa.ArrowException, OSError, ValueError, KeyError, TypeError):
            return None
        whole = sealed.get("key") == key and sealed.get("seal") == _seal(key, metrics)
        return metrics if whole else None

    def _file(self, kind: str, key: str) -> Path:
        return self.path / ("values" if kind == "values" else "fits") / f"{key}.parquet"

    def _verify(self) -> None:
        """Drop the records of files that are missing or not as they were written."""
        broken = [
            (record.kind, record.key)
            for record in self.records.values()
            if record.checksum and _checksum_or_none(self._file(record.kind, record.key)) != record.checksum
        ]
        if broken:
            self._ledger.forget(broken)
            for which in broken:
                del self.records[which]
            _warn(f"{len(broken)} file(s) of the store are missing or damaged; their tasks are done again.")

    def _adopt(self) -> None:
        """Enter in a new ledger the fits whose files vouch for themselves."""
        found = []
        for path in sorted((self.path / "fits").glob("*.parquet")):
            if self.load_fit(path.stem) is not None:
                found.append(Record("fit", path.stem, DONE, checksum=_checksum(path)))
        self.write(found)
        _warn(f"The ledger was damaged: a new one was made from the files of {len(found)} fit(s).")


def differences(before: dict[str, Any], now: dict[str, Any]) -> list[str]:
    """Say in which entries two mappings of plain data differ.

    What is not there, as another release did not know it, is as good as None or switched off.

    Examples
    --------
    >>> differences({"models.count": 25, "seed": 0}, {"models.count": 5, "seed": 0, "data.weight": None})
    ['models.count was 25 and is 5']
    """
    found = []
    for name in dict.fromkeys([*before, *now]):
        old, new = (given.get(name) for given in (before, now))
        known = name in before and name in now
        if old != new and (known or (old or new) not in (None, False)):
            shown = [repr(given[name]) if name in given else "not there" for given in (before, now)]
            found.append(f"{name} was {shown[0]} and is {shown[1]}")
    return found


def _refuse_other(before: dict[str, Any], now: dict[str, Any]) -> None:
    """Refuse to mix results of different experiments."""
    if before["format"] != now["format"]:
        raise ValueError(
            f"The store was written in format {before['format']} and this release continues format "
            f"{now['format']}: use another store."
        )
    found = [
        *differences(rename_former(before["settings"]), now["settings"]),
        *differences(before["versions"], now["versions"]),
    ]
    if before["fingerprint"] != now["fingerprint"]:
        rows = [sum(entry["rows"] for entry in about["summary"]) for about in (before, now)]
        found.append(
            f"the data are others (fingerprint {before['fingerprint'][:12]}, {rows[0]:,} rows before; "
            f"{now['fingerprint'][:12]}, {rows[1]:,} rows now)"
        )
    if found:
        raise ValueError(
            f"The store holds another experiment: {'; '.join(found)}. Undo the change, or use another store."
        )


def _opened(path: Path, about: dict[str, Any]) -> tuple[Ledger, bool]:
    """Open the ledger, or put a damaged one aside and make a new one."""
    ledger = path / LEDGER
    try:
        return Ledger(ledger, about), False
    except DamagedLedgerError:
        number = len(list(path.glob("ledger.damaged-*.sqlite")))
        ledger.rename(path / f"ledger.damaged-{number}.sqlite")
        with suppress(FileNotFoundError):
            Path(f"{ledger}-journal").unlink()
        return Ledger(ledger, about), True


def _check_directory(path: Path) -> None:
    """Refuse a directory that holds other things; a store killed at its birth has no ledger yet."""
    ours = {LEDGER, f"{LEDGER}-journal", LOCK, *FOLDERS}
    if (path / LEDGER).exists():
        return
    foreign = [entry for entry in path.iterdir() if entry.name not in ours]
    lock = path / LOCK
    if foreign or (lock.exists() and lock.stat().st_size and not holder_of(lock)):
        raise ValueError(f"{str(path)!r} is neither empty nor a store: name a new directory.")


def _check_links(path: Path) -> None:
    """Refuse links: what a store writes must stay in it, and what it reads must come from it."""
    ours = [path / name for name in (LEDGER, f"{LEDGER}-journal", LOCK, *FOLDERS)]
    for folder in FOLDERS:
        if (path / folder).is_dir() and not (path / folder).is_symlink():
            ours += [Path(entry.path) for entry in os.scandir(path / folder)]
    for entry in ours:
        if entry.is_symlink():
            raise ValueError(f"{str(entry)!r} is a link: a store holds files of its own only.")


def _remove_unfinished(path: Path) -> None:
    """Remove what runners that were killed left half-written."""
    for folder in FOLDERS:
        for part in (path / folder).glob(".*.part"):
            part.unlink()


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    """Say of a disk that is full or read-only what it means for the store."""
    try:
        yield
    except OSError as error:
        if isinstance(error, StoreWriteError):
            raise
        reason = error.strerror or str(error)
        raise StoreWriteError(
            f"The store {str(path)!r} cannot be written: {reason}. All that was done before is kept; run "
            "again when this is mended."
        ) from error


class StoreWriteError(OSError):
    """The store cannot be written; what it holds is whole."""


def _warn(message: str) -> None:
    warnings.warn(message, UserWarning, stacklevel=6)


def _seal(key: str, metrics: dict[str, Any]) -> str:
    return hashlib.sha256(repr((key, sorted(metrics.items()))).encode()).hexdigest()


def _checksum(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _checksum_or_none(path: Path) -> str | None:
    try:
        return _checksum(path)
    except OSError:
        return None
