"""Values in a directory of Parquet parts: a column is read when it is first asked for."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from fado._storage import Manifest
from fado.tabular import TARGET
from fado.valuation._fields import check_fields
from fado.valuation._scale import Scale

__all__ = ["DONE", "PLAN", "Part", "StoredColumns", "footer_digest", "open_one", "open_parts", "value_blocks"]

PLAN = Manifest(name="_plan.json", kind="fado plan of values", layout=1, what="plan")
DONE = Manifest(name="_done.json", kind="fado values in parts", layout=1, what="valuation in parts")
_ROWS_AT_A_TIME = 1 << 17
_PAGES = 1 << 16  # bytes of a column that are read at once
_TAIL = 8  # bytes that end a Parquet file: the length of its footer, and "PAR1"


@dataclass(frozen=True)
class Part:
    """One file of values: where it stands, how many rows it has, and the digest of its footer."""

    path: Path
    n_rows: int
    digest: str


class StoredColumns(Mapping[str, npt.NDArray[Any]]):
    """One field of all variables, by their names; an array is read when it is first asked for, and kept.

    Parameters
    ----------
    parts : sequence of Part
        The files, in the order of the rows.
    field : str
        Which field of a valuation.
    columns : mapping of str to str
        Per variable, what its column is called in the files.
    scales : mapping of str to Scale
        Between which ends each variable's values lie.
    rows : ndarray of int, optional
        The places of the rows that are wanted, in the order that is wanted; all if not given.
    """

    def __init__(
        self,
        parts: Sequence[Part],
        field: str,
        columns: Mapping[str, str],
        scales: Mapping[str, Scale],
        rows: npt.NDArray[np.int64] | None = None,
    ) -> None:
        self._parts = tuple(parts)
        self._field = field
        self._columns = dict(columns)
        self._scales = scales
        self._rows = rows
        self._read: dict[str, npt.NDArray[Any]] = {}

    @property
    def n_rows(self) -> int:
        """How many rows there are."""
        return sum(part.n_rows for part in self._parts) if self._rows is None else len(self._rows)

    def take(self, rows: npt.NDArray[np.int64]) -> StoredColumns:
        """Give the same of some rows; of the others little is ever held in memory at once."""
        places = rows if self._rows is None else self._rows[rows]
        taken = StoredColumns(self._parts, self._field, self._columns, self._scales, places)
        taken._read = {name: own[rows] for name, own in self._read.items()}
        return taken

    def __getitem__(self, variable: str) -> npt.NDArray[Any]:
        if variable not in self._read:
            self._read[variable] = self._column(variable, self._columns[variable])
        return self._read[variable]

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)

    def _column(self, variable: str, name: str) -> npt.NDArray[Any]:
        """Read one column of all parts, and refuse what no valuator can have given."""
        found = np.empty(self.n_rows, dtype=np.int32 if self._field == "counts" else np.float64)
        order = None if self._rows is None else np.argsort(self._rows, kind="stable")
        wanted = None if self._rows is None else self._rows[order]
        first = before = 0
        for part in self._parts:
            for batch in _batches(part, {variable: name}, _ROWS_AT_A_TIME):
                _check(part, self._field, batch, self._scales, self._columns, first - before)
                numbers = batch[variable]
                if wanted is None or order is None:
                    found[first : first + len(numbers)] = numbers
                else:
                    start, stop = np.searchsorted(wanted, [first, first + len(numbers)])
                    found[order[start:stop]] = numbers[wanted[start:stop] - first]
                first += len(numbers)
            before = first
        return found


def open_parts(directory: str | os.PathLike[str]) -> tuple[list[Part], bytes | None]:
    """Find the parts of a finished valuation, and its description of itself.

    Raises
    ------
    ValueError
        If there is none in the directory, it is not finished, or a part is missing or another's.
    """
    folder = Path(directory)
    if (folder / PLAN.name).is_file() and not (folder / DONE.name).is_file():
        raise ValueError(
            f"The values in {str(folder)!r} are not finished: run the same command again to finish them."
        )
    told = DONE.open(folder)
    try:
        parts = [
            Part(folder / Path(str(entry["file"])).name, int(entry["rows"]), str(entry["digest"]))
            for entry in told["parts"]
        ]
        description = str(told["description"]).encode()
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{str(folder / DONE.name)!r} does not tell of values: {error}") from error
    for part in parts:
        _check_part(part)
    return parts, description


def value_blocks(
    parts: Sequence[Part], names: Mapping[str, str], scales: Mapping[str, Scale], block_rows: int
) -> Iterator[dict[str, npt.NDArray[np.float64]]]:
    """Give the values of all rows by variable, in blocks of one size that no boundary of a part shows in.

    Parameters
    ----------
    parts : sequence of Part
        The files, in the order of the rows.
    names : mapping of str to str
        Per variable, what its column of values is called in the files.
    scales : mapping of str to Scale
        Between which ends each variable's values lie.
    block_rows : int
        That every block has, but for the last.
    """
    held: list[dict[str, npt.NDArray[np.float64]]] = []
    n_held = 0
    for part in parts:
        first = 0
        for batch in _batches(part, names, block_rows):
            _check(part, "values", batch, scales, names, first)
            held.append(batch)
            first += len(batch[TARGET])
            n_held += len(batch[TARGET])
            if n_held >= block_rows:
                joined = _joined(held)
                yield {name: own[:block_rows] for name, own in joined.items()}
                held = [{name: own[block_rows:] for name, own in joined.items()}]
                n_held -= block_rows
    if n_held:
        yield _joined(held)


def _batches(
    part: Part, names: Mapping[str, str], most_rows: int
) -> Iterator[dict[str, npt.NDArray[np.float64]]]:
    """Give some columns of a part as numbers, some rows at a time."""
    import pyarrow as pa
    import pyarrow.parquet

    with (
        _reading(part),
        pyarrow.parquet.ParquetFile(  # with its own buffer, it would hold all row groups before
            part.path, page_checksum_verification=True, pre_buffer=False, buffer_size=_PAGES
        ) as file,
    ):
        if footer_digest(part.path) != part.digest:
            raise pa.ArrowException("it was replaced after it was opened")
        for group in range(file.num_row_groups):
            for batch in file.iter_batches(most_rows, [group], list(names.values()), use_threads=False):
                yield {
                    variable: batch.column(name).cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
                    for variable, name in names.items()
                }


def _joined(blocks: Sequence[Mapping[str, npt.NDArray[Any]]]) -> dict[str, npt.NDArray[np.float64]]:
    return {name: np.concatenate([own[name] for own in blocks]) for name in blocks[0]}


def _check(
    part: Part,
    field: str,
    arrays: Mapping[str, npt.NDArray[Any]],
    scales: Mapping[str, Scale],
    names: Mapping[str, str],
    first: int = 0,
) -> None:
    """Refuse what no valuator can have given."""
    try:
        check_fields({field: arrays}, scales, lambda _, variable: names[variable], first)
    except ValueError as error:
        raise ValueError(f"{str(part.path)!r} is not a part of a valuation: {error}") from error


def open_one(path: str | os.PathLike[str], key: bytes) -> tuple[list[Part], bytes | None]:
    """Take a Parquet file for the only part, and give what stands under a key of its footer."""
    footer = _footer(Path(path))
    return [Part(Path(path), footer.num_rows, footer_digest(Path(path)))], (footer.metadata or {}).get(key)


def _footer(path: Path) -> Any:
    import pyarrow as pa
    import pyarrow.parquet

    try:
        return pyarrow.parquet.read_metadata(path)
    except (pa.ArrowException, OSError) as error:
        raise ValueError(f"{str(path)!r} is no Parquet file, or it is damaged.") from error


def _check_part(part: Part) -> None:
    if not part.path.is_file():
        raise ValueError(f"{str(part.path)!r} is missing: the valuation is not whole.")
    n_rows = _footer(part.path).num_rows
    if n_rows != part.n_rows:
        raise ValueError(
            f"{str(part.path)!r} has {n_rows:,} rows and should have {part.n_rows:,}: it is of another "
            "valuation."
        )
    if footer_digest(part.path) != part.digest:
        raise ValueError(
            f"{str(part.path)!r} is another part, of another valuation, or damaged: put back the file that "
            "stood there, or delete it and run `value_files` again."
        )


def footer_digest(path: Path) -> str:
    """Give the digest of a Parquet file's footer, which tells of its place and of every column."""
    with path.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - _TAIL))
        length = int.from_bytes(file.read(_TAIL)[:4], "little")
        file.seek(max(0, size - _TAIL - length))
        return hashlib.sha256(file.read()).hexdigest()


@contextmanager
def _reading(part: Part) -> Iterator[None]:
    import pyarrow as pa

    try:
        yield
    except (pa.ArrowException, OSError, IndexError, KeyError) as error:
        raise ValueError(f"{str(part.path)!r} cannot be read: it is damaged, or of another valuation.") from (
            error
        )
