"""Tables in a file that other processes see: what is sent to them is its path."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fado._storage import replacing
from fado.tabular._columns import Column
from fado.tabular._table import Table

__all__ = ["ShelvedTable", "on_shelf"]

_LEVELS = b"fado.levels"


class ShelvedTable(Table):
    """A table whose columns also stand in a file. Pickled, it is the file's path and the rows it holds.

    Parameters
    ----------
    path : pathlib.Path
        The file, which `on_shelf` wrote.
    columns : sequence of Column
        What it holds, of these rows.
    rows : ndarray of int or None
        The places of these rows in the file; None is all.
    """

    def __init__(
        self, path: Path, columns: tuple[Column, ...], rows: npt.NDArray[np.integer[Any]] | None = None
    ) -> None:
        super().__init__(None, [column.name for column in columns], len(columns[0]), columns, named=True)
        self._path = path
        self._rows = rows

    def take(self, rows: npt.NDArray[np.integer[Any]]) -> ShelvedTable:
        """Give the table at some row positions."""
        places = np.asarray(rows if self._rows is None else self._rows[rows])
        return ShelvedTable(self._path, tuple(column.take(rows) for column in self.columns), places)

    def __reduce__(self) -> tuple[Any, ...]:
        return _from_shelf, (str(self._path), self._rows)


@contextmanager
def on_shelf(table: Table, path: Path) -> Iterator[ShelvedTable]:
    """Put a table into a file for as long as others need it.

    Parameters
    ----------
    table : Table
        Of columns that hold numbers or text.
    path : pathlib.Path
        Where all who are sent the table can read it.

    Examples
    --------
    >>> import pickle, tempfile
    >>> table = Table.from_input(pa.table({"job": ["nurse", None, "clerk"], "age": [20, 30, 40]}))
    >>> with tempfile.TemporaryDirectory() as folder, on_shelf(table, Path(folder) / "table") as shelved:
    ...     there = pickle.loads(pickle.dumps(shelved.take(np.array([2, 0]))))
    ...     [(column.levels, column.numbers().tolist()) for column in there.columns]
    [(('clerk', 'nurse'), [0.0, 1.0]), (None, [40.0, 20.0])]
    """
    path = path.resolve()  # others may have begun elsewhere
    fields = [
        pa.field(
            f"f{place}",
            column.data.type,
            metadata={_LEVELS: json.dumps([column.name, column.levels]).encode()},
        )
        for place, column in enumerate(table.columns)
    ]
    schema = pa.schema(fields)
    arrays = [_one_chunk(column.data) for column in table.columns]
    with (
        replacing(path, "The table for the cluster's workers", tidy=False) as temporary,
        pa.ipc.new_file(str(temporary), schema) as writer,
    ):
        writer.write_batch(pa.record_batch(arrays, schema=schema))
    try:
        yield ShelvedTable(path, table.columns)
    finally:
        path.unlink(missing_ok=True)


def _from_shelf(path: str, rows: npt.NDArray[np.integer[Any]] | None) -> ShelvedTable:
    try:
        table = pa.ipc.open_file(pa.memory_map(path)).read_all()
    except OSError as error:
        raise ValueError(
            f"{path!r} cannot be read by this worker: the cluster's workers must see the same files."
        ) from error
    told = [json.loads(field.metadata[_LEVELS]) for field in table.schema]
    columns = tuple(
        Column(name, data, None if levels is None else tuple(levels))
        for (name, levels), data in zip(told, table.columns, strict=True)
    )
    whole = ShelvedTable(Path(path), columns)
    return whole if rows is None else whole.take(rows)


def _one_chunk(data: pa.ChunkedArray) -> pa.Array:
    whole = data.combine_chunks()
    return pa.concat_arrays(whole.chunks) if isinstance(whole, pa.ChunkedArray) else whole
