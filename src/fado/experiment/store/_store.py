"""The store: a directory with the ledger and one immutable file per result."""

from __future__ import annotations

import hashlib
import json
import os
import stat
import warnings
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet

from fado._files import replacing
from fado.experiment.config import config_from, decides_data, former_settings, rename_former
from fado.experiment.store._content import FORMAT, check_about, check_metrics, check_record
from fado.experiment.store._ledger import (
    DONE,
    FAILED,
    DamagedLedgerError,
    ForeignLedgerError,
    Ledger,
    Record,
)
from fado.experiment.store._lock import RunLock, holder_of
from fado.valuation import Valuation

__all__ = ["RUNNING", "Store", "differences"]

LEDGER, LOCK = "ledger.sqlite", "lock"
RUNNING = "running"  # notes of the fits at hand, of use only after a crash
FOLDERS = ("values", "fits", RUNNING)
_SEALED_KEY = b"fado.fit"
_MOST_METRICS = 100_000


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
        check_about(self.about)
        self.records = ledger.records()
        for record in self.records.values():
            check_record(record)

    @classmethod
    @contextmanager
    def writing(
        cls, path: str | os.PathLike[str], about: dict[str, Any], *, holder: int | None = None
    ) -> Iterator[Store]:
        """Open a store to work on it, or make a new one.

        Parameters
        ----------
        path : path-like
            The directory.
        about : dict
            What the store must say of its experiment: configuration, data, versions.
        holder : int, optional
            The process that supervises this one, in whose name the store is held.

        Raises
        ------
        StoreInUseError
            If another runner works on it.
        ValueError
            If it belongs to another experiment, holds links, or says what no run writes.
        OSError
            If it cannot be written.
        """
        path = Path(path)
        with ExitStack() as held:
            with _explained(path), _told(path):
                path.mkdir(parents=True, exist_ok=True)
                _check_directory(path)
                _check_links(path)
                held.enter_context(RunLock(path / LOCK, holder))
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
        with ExitStack() as held:
            with _told(path):
                try:
                    ledger = Ledger(path / LEDGER, reading=True)
                except DamagedLedgerError as error:
                    raise ValueError(
                        f"The ledger of the store {str(path)!r} is damaged ({error}): run the experiment "
                        "again, which mends it."
                    ) from error
                held.callback(ledger.close)
                store = cls(path, ledger)
                _check_configuration(store.about["configuration"])
            yield store

    def get(self, kind: str, key: str) -> Record | None:
        """Give a task's record, if there is one."""
        return self.records.get((kind, key))

    def write(self, records: Sequence[Record]) -> None:
        """Commit records."""
        with _explained(self.path):
            self._ledger.write(records)
        self.records |= {(record.kind, record.key): record for record in records}

    def forget_failed(self) -> None:
        """Drop the records of what failed, and the counts of crashes, so that all of it is tried again."""
        failed = [which for which, record in self.records.items() if record.state == FAILED]
        with _explained(self.path):
            self._ledger.forget(failed)
        for which in failed:
            del self.records[which]

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
        with _explained(self.path), replacing(self._file("fit", key), tidy=False) as temporary:
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
            with pyarrow.parquet.ParquetFile(path, page_checksum_verification=True) as file:
                if file.metadata.num_rows > _MOST_METRICS:
                    return None
                table = file.read()
            sealed = json.loads(table.schema.metadata[_SEALED_KEY])
            metrics = dict(zip(*(column.to_pylist() for column in table.columns), strict=True))
            whole = sealed["key"] == key and sealed["seal"] == _seal(key, metrics)
        except (pa.ArrowException, OSError, ValueError, KeyError, TypeError, RecursionError):
            return None
        return metrics if whole and check_metrics(metrics) else None

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


def differences(before: dict[str, Any], now: dict[str, Any]) -> dict[str, str]:
    """Say in which entries two mappings of plain data differ, and how.

    What is not there, as another release did not know it, is as good as None or switched off.

    Examples
    --------
    >>> differences({"models.count": 25, "seed": 0}, {"models.count": 5, "seed": 0, "data.weight": None})
    {'models.count': '`models.count` = 25, the configuration says 5'}
    """
    found = {}
    for name in dict.fromkeys([*before, *now]):
        old, new = (given.get(name) for given in (before, now))
        known = name in before and name in now
        if old != new and (known or (old or new) not in (None, False)):
            told = f"`{name}` = {old!r}" if name in before else f"no `{name}`"
            found[name] = (
                f"{told}, the configuration {f'says {new!r}' if name in now else 'does not name it'}"
            )
    return found


def _refuse_other(before: dict[str, Any], now: dict[str, Any]) -> None:
    """Refuse to mix results of different experiments."""
    settings = differences(*former_settings(rename_former(before["settings"]), now["settings"]))
    found = [*settings.values(), *_other_versions(before["versions"], now["versions"])]
    if before["fingerprint"] != now["fingerprint"] and not any(map(decides_data, settings)):
        rows = [_n_rows(about["summary"]) for about in (before, now)]
        found.append(
            f"other data (fingerprint {before['fingerprint'][:12]}, {rows[0]:,} rows, and now "
            f"{now['fingerprint'][:12]}, {rows[1]:,} rows{_unknown_size(before, now)})"
        )
    if found:
        raise ValueError(
            f"The store was made with {'; with '.join(found)}: undo the change, or use another store."
        )


def _other_versions(before: dict[str, Any], now: dict[str, Any]) -> list[str]:
    names = dict.fromkeys([*before, *now])
    return [
        f"{name} {before.get(name)}, here is {now.get(name)}"
        for name in names
        if before.get(name) != now.get(name)
    ]


def _n_rows(summary: list[dict[str, Any]]) -> int:
    """Count the rows of all parts, once if several attributes divide them."""
    first = summary[0].get("attribute") if summary else None
    return sum(entry["rows"] for entry in summary if entry.get("attribute") == first)


def _unknown_size(before: dict[str, Any], now: dict[str, Any]) -> str:
    """Say what else may be the reason if the store's release knew no small groups."""
    size = now["settings"].get("data.min_group_size")
    if "data.min_group_size" in before["settings"] or not size:
        return ""
    return "; if they are the same, a release that compared small groups made it: `data.min_group_size = 0`"


def _opened(path: Path, about: dict[str, Any]) -> tuple[Ledger, bool]:
    """Open the ledger, or put a damaged one aside and make a new one."""
    ledger = path / LEDGER
    try:
        return Ledger(ledger, about), False
    except DamagedLedgerError:
        number = len(list(path.glob("ledger.damaged-*.sqlite")))
        ledger.rename(path / f"ledger.damaged-{number}.sqlite")
        for end in ("-journal", "-wal", "-shm"):
            Path(f"{ledger}{end}").unlink(missing_ok=True)
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
    """Refuse links: what a store writes must stay in it, and what it reads must come from it.

    Nor may there be pipes or devices, which are not to be read like files.
    """
    beside = [f"{LEDGER}{end}" for end in ("", "-journal", "-wal", "-shm")]
    kinds = dict.fromkeys((path / name for name in (*beside, LOCK)), stat.S_ISREG)
    for folder in FOLDERS:
        kinds[path / folder] = stat.S_ISDIR
        if (path / folder).is_dir() and not (path / folder).is_symlink():
            kinds |= dict.fromkeys((Path(entry.path) for entry in os.scandir(path / folder)), stat.S_ISREG)
    for entry, right in kinds.items():
        try:
            mode = entry.lstat().st_mode
        except FileNotFoundError:  # or done with meanwhile
            continue
        if stat.S_ISLNK(mode):
            raise ValueError(f"{str(entry)!r} is a link: a store holds files of its own only.")
        if not right(mode):
            raise ValueError(f"{str(entry)!r} is not what a store holds there: name another directory.")


def _check_configuration(table: dict[str, Any]) -> None:
    """Refuse a configuration that no run could have followed."""
    try:
        config_from(table, stored=True)
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError) as error:
        raise ForeignLedgerError(f"its configuration is none ({error})") from None


def _remove_unfinished(path: Path) -> None:
    """Remove what runners that were killed left half-written."""
    for folder in FOLDERS:
        for part in (path / folder).glob(".*.part"):
            part.unlink()


@contextmanager
def _told(path: Path) -> Iterator[None]:
    """Say of a store that somebody else wrote what is wrong with it."""
    try:
        yield
    except ForeignLedgerError as error:
        raise ValueError(
            f"The store {str(path)!r} is not as runs of this release write it: {error}."
        ) from None


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
