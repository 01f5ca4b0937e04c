"""Values in a directory of Parquet parts: a column is read when it is first asked for."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from fado._manifests import Manifest
from fado.valuation._fields import check_fields
from fado.valuation._scale import Scale

__all__ = ["DONE", "PLAN", "Part", "StoredColumns", "open_one", "open_parts"]

PLAN = Manifest(name="_plan.json", kind="fado plan of values", layout=1, what="plan")
DONE = Manifest(name="_done.json", kind="fado values in parts", layout=1, what="valuation in parts")
_ROWS_AT_A_TIME = 1 << 17
_BUFFER = 1 << 20  # bytes of a column that are read at once


@dataclass(frozen=True)
class Part:
    """One file of values: where it stands, and how many rows it has."""

    path: Path
    n_rows: int


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
        first = 0
        for part in self._parts:
            for numbers in _numbers(part, name):
                self._check(part, variable, name, numbers)
                if wanted is None or order is None:
                    found[first : first + len(numbers)] = numbers
                else:
                    start, stop = np.searchsorted(wanted, [first, first + len(numbers)])
                    found[order[start:stop]] = numbers[wanted[start:stop] - first]
                first += len(numbers)
        return found

    def _check(self, part: Part, variable: str, name: str, numbers: npt.NDArray[Any]) -> None:
        try:
            check_fields({self._field: {variable: numbers}}, self._scales, lambda _, own: name)
        except ValueError as error:
            raise ValueError(f"{str(part.path)!r} is not a part of a valuation: {error}") from error


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
        entries = [(int(entry["rows"]), str(entry["file"])) for entry in told["parts"]]
        description = str(told["description"]).encode()
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{str(folder / DONE.name)!r} does not tell of values: {error}") from error
    parts = [Part(folder / Path(name).name, n_rows) for n_rows, name in entries]
    for part in parts:
        _check_part(part)
    return parts, description


def open_one(path: str | os.PathLike[str], key: bytes) -> tuple[list[Part], bytes | None]:
    """Take a Parquet file for the only part, and give what stands under a key of its footer."""
    footer = _footer(Path(path))
    return [Part(Path(path), footer.num_rows)], (footer.metadata or {}).get(key)


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


def _numbers(part: Part, name: str) -> Iterator[npt.NDArray[Any]]:
    """Read one column of a part, some rows at a time."""
    import pyarrow as pa
    import pyarrow.parquet

    try:
        with pyarrow.parquet.ParquetFile(
            part.path, page_checksum_verification=True, pre_buffer=False, buffer_size=_BUFFER
        ) as file:
            if name not in file.schema_arrow.names or file.metadata.num_rows != part.n_rows:
                raise pa.ArrowException(name)
            for batch in file.iter_batches(_ROWS_AT_A_TIME, columns=[name], use_threads=False):
                yield batch.column(0).cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    except (pa.ArrowException, OSError) as error:
        raise ValueError(f"{str(part.path)!r} cannot be read: it is damaged, or of another valuation.") from (
            error
        )
