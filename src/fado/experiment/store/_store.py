"""The store: a directory with the ledger and one immutable file per result."""

from __future__ import annotations

import hashlib
import json
import os
import stat
import warnings
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet

from fado._storage import Lock, claims_of, remove_unfinished, replacing, writing
from fado.experiment.config import config_from
from fado.experiment.store._content import FORMAT, check_about, check_metrics, check_record
from fado.experiment.store._differences import refuse_other
from fado.experiment.store._ledger import (
    DONE,
    FAILED,
    DamagedLedgerError,
    ForeignLedgerError,
    Ledger,
    Record,
)
from fado.experiment.store._scores import read_scores, write_scores
from fado.valuation import Valuation

__all__ = ["RUNNING", "Store"]

LEDGER, LOCK = "ledger.sqlite", "lock"
RUNNING = "running"  # notes of the fits at hand, of use only after a crash
SCORES = "scores"  # only there if scores are kept
FOLDERS = ("values", "fits", RUNNING, SCORES)
_OF_KIND = {"values": "values", "fit": "fits", "scores": SCORES}
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
        InUseError
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
                held.enter_context(Lock(path / LOCK, f"The store {str(path)!r}", holder))
                keeps = about["settings"].get("evaluation.keep_scores", False)
                for folder in FOLDERS:
                    if folder != SCORES or keeps:
                        (path / folder).mkdir(exist_ok=True)
                for folder in FOLDERS:
                    remove_unfinished(path / folder)
                ledger, rebuilt = _opened(path, about)
                held.callback(ledger.close)
                store = cls(path, ledger)
                refuse_other(store.about, about)
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
        """Read values that are done, if their file is as it was written.

        Raises
        ------
        ValueError
            If it is not.
        """
        path, record = self._file("values", key), self.get("values", key)
        if record is None or _checksum_or_none(path) != record.checksum:
            raise ValueError(
                f"{str(path)!r} is missing, damaged, or holds other values: run the experiment again."
            )
        return Valuation.load(path)

    def save_fit(self, key: str, metrics: dict[str, float], seconds: float) -> Record:
        """Write a fit's file; the fit is done when the record that this returns is committed."""
        table = pa.table({"metric": list(metrics), "value": pa.array(metrics.values(), pa.float64())})
        sealed = json.dumps({"format": FORMAT, "key": key, "seal": _seal(key, metrics)})
        with _explained(self.path), replacing(self._file("fit", key), "A fit", tidy=False) as temporary:
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

    @property
    def keeps_scores(self) -> bool:
        """Whether the scores of fits are kept."""
        return bool(self.about["settings"].get("evaluation.keep_scores", False))

    def has_fit(self, key: str) -> bool:
        """Tell whether a fit is done, with its scores if they are kept, or failed."""
        record = self.get("fit", key)
        if record is None or record.state == FAILED or not self.keeps_scores:
            return record is not None
        return self.get("scores", key) is not None

    def save_scores(self, key: str, scores: npt.NDArray[np.float64], n_validation: int) -> Record:
        """Write the scores of a fit; they are there when the record that this returns is committed."""
        with (
            _explained(self.path),
            replacing(self._file("scores", key), "The scores of a fit", tidy=False) as temporary,
        ):
            write_scores(temporary, key, scores, n_validation)
            checksum = _checksum(temporary)
        return Record("scores", key, DONE, checksum=checksum)

    def load_scores(self, key: str) -> dict[str, npt.NDArray[np.float64]]:
        """Read the scores of a fit by the parts of the rows; the validation part may have none.

        Raises
        ------
        ValueError
            If they are not kept, or the file is not as it was written.
        """
        if self.get("scores", key) is None:
            raise ValueError(
                f"The store {str(self.path)!r} keeps no scores of this fit: run the experiment with "
                "`evaluation.keep_scores = true`."
            )
        found = read_scores(self._file("scores", key), key)
        if found is None:
            raise ValueError(
                f"A file of scores in the store {str(self.path)!r} is damaged: run the experiment again."
            )
        return found

    def load_chosen_scores(self, key: str) -> npt.NDArray[np.float64]:
        """Read a fit's scores of the rows that models are chosen on: of validation, or of test without it."""
        found = self.load_scores(key)
        return found["validation"] if len(found["validation"]) else found["test"]

    def _file(self, kind: str, key: str) -> Path:
        return self.path / _OF_KIND[kind] / f"{key}.parquet"

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
        for path in sorted((self.path / SCORES).glob("*.parquet")):
            if read_scores(path, path.stem) is not None:
                found.append(Record("scores", path.stem, DONE, checksum=_checksum(path)))
        self.write(found)
        fits = sum(record.kind == "fit" for record in found)
        _warn(f"The ledger was damaged: a new one was made from the files of {fits} fit(s).")


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
    lock = path / LOCK
    ours |= {claim.name for claim in claims_of(lock)}
    foreign = [entry for entry in path.iterdir() if entry.name not in ours]
    if foreign or (lock.is_file() and lock.stat().st_size):
        raise ValueError(f"{str(path)!r} is neither empty nor a store: name a new directory.")


def _check_links(path: Path) -> None:
    """Refuse links: what a store writes must stay in it, and what it reads must come from it.

    Nor may there be pipes or devices, which are not to be read like files.
    """
    beside = [f"{LEDGER}{end}" for end in ("", "-journal", "-wal", "-shm")]
    kinds = dict.fromkeys([*(path / name for name in (*beside, LOCK)), *claims_of(path / LOCK)], stat.S_ISREG)
    for folder in FOLDERS:
        kinds[path / folder] = stat.S_ISDIR
        if (path / folder).is_dir() and not (path / folder).is_symlink():
            inside = [
                Path(entry.path)
                for entry in os.scandir(path / folder)
                if not (entry.name.endswith(".part") and entry.is_dir(follow_symlinks=False))  # being written
            ]
            kinds |= dict.fromkeys(inside, stat.S_ISREG)
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


@contextmanager
def _told(path: Path) -> Iterator[None]:
    """Say of a store that somebody else wrote what is wrong with it."""
    try:
        yield
    except ForeignLedgerError as error:
        raise ValueError(
            f"The store {str(path)!r} is not as runs of this release write it: {error}."
        ) from None


def _explained(path: Path) -> AbstractContextManager[None]:
    """Say of a disk that is full or read-only what it means for the store."""
    return writing(path, "The store", "; all that was done before is kept")


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
