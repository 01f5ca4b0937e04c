"""CSV files block by block: the types of the first block, and what does not fit them further on."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from fado.tabular._csv import in_own_decimals, parse_options, parsing, separator_of, with_missing_cells
from fado.tabular._files import check_distinct

__all__ = ["CsvForm", "csv_blocks", "open_csv"]

_FIRST = 1 << 23  # bytes of text that show the types
_BLOCK = 1 << 20  # that are read at once; Arrow holds some twenty such blocks
_LEAST_ROWS = (
    128  # of a block of long rows, or what each column takes in every block would be most of the work
)
_LARGEST_WHOLE = 1 << 53  # that every float can be told from its neighbours
_MISFIT = re.compile(
    r"In CSV column #(\d+): (?:Row #(\d+): )?CSV conversion error to .*: invalid value '(.*)'", re.S
)
_WORDS = {"double": "numbers", "int64": "whole numbers", "bool": "booleans", "null": "empty cells"}


@dataclass(frozen=True)
class CsvForm:
    """How a CSV file is written.

    Parameters
    ----------
    separator, decimal_point : str
        Between fields, and within numbers.
    schema : pyarrow.Schema
        The types of the first block. Whole numbers are floats there, unless a float cannot hold them, so that
        a fraction further on is no surprise.
    n_rows : int or None
        How many rows there are, if the first block has them all.
    row_bytes : float
        How long a row is in the file, on average in the first block.
    block_rows : int
        How many rows are read at once, about.
    """

    separator: str
    decimal_point: str
    schema: pa.Schema
    n_rows: int | None
    row_bytes: float
    block_rows: int


def open_csv(path: Path) -> CsvForm | None:
    """Read the first block of a CSV file for its form; None if there are no rows.

    Parameters
    ----------
    path : pathlib.Path
        Of text, as `read_table` takes it.
    """
    size = path.stat().st_size
    if size == 0:
        return None
    separator = separator_of(path)
    table, decimal_point = in_own_decimals(
        path, separator, lambda point: _first_block(path, separator, point)
    )
    check_distinct(path, table.column_names)
    if not table.num_rows:
        return None
    fields = [pa.field(name, _open_type(table.column(name))) for name in table.column_names]
    row_bytes = min(size, _FIRST) / table.num_rows
    return CsvForm(
        separator,
        decimal_point,
        pa.schema(fields),
        n_rows=table.num_rows if size <= _FIRST else None,
        row_bytes=row_bytes,
        block_rows=round(min(size, _block_bytes(row_bytes)) / row_bytes),
    )


def csv_blocks(
    path: Path, form: CsvForm, schema: pa.Schema, columns: Sequence[str] | None = None
) -> Iterator[pa.Table]:
    """Give a CSV file's rows, block by block, in the types of a schema; text is `string` still.

    Lines within a cell end by a line feed, however they ended in the file.

    Parameters
    ----------
    path : pathlib.Path
        The file.
    form : CsvForm
        As `open_csv` found it.
    schema : pyarrow.Schema
        The types to read the file's columns in.
    columns : sequence of str, optional
        Those to read; without, all.
    """
    types = {
        field.name: pa.string() if pa.types.is_large_string(field.type) else field.type for field in schema
    }
    parse, convert = parse_options(form.separator, form.decimal_point)
    convert.column_types = types
    if columns is not None:
        convert.include_columns = list(columns)
    with parsing(path), _fitting(path, form, types):
        reader = pyarrow.csv.open_csv(path, _reading(_block_bytes(form.row_bytes)), parse, convert)
    with reader:
        while True:
            with parsing(path), _fitting(path, form, types):
                try:
                    batch = reader.read_next_batch()
                except StopIteration:
                    return
            if batch.num_rows:
                yield with_missing_cells(path, _with_plain_line_ends(pa.Table.from_batches([batch])))


def _first_block(path: Path, separator: str, decimal_point: str) -> pa.Table:
    parse, convert = parse_options(separator, decimal_point)
    with path.open("rb") as file:
        start = pa.BufferReader(file.read(_FIRST + 1))  # Arrow would read far ahead; it leaves a cut row off
    with parsing(path), pyarrow.csv.open_csv(start, _reading(_FIRST), parse, convert) as reader:
        reader.schema.names  # noqa: B018 - which may be no text
        try:
            batch = reader.read_next_batch()
        except StopIteration:
            return reader.schema.empty_table()
    return with_missing_cells(path, pa.Table.from_batches([batch]))


def _with_plain_line_ends(table: pa.Table) -> pa.Table:
    r"""End lines within cells by ``\n`` alone: Arrow loses it from a ``\r\n`` that two blocks share."""
    columns = table.columns
    for j, column in enumerate(columns):
        if pa.types.is_string(column.type) and pc.any(pc.match_substring(column, "\r")).as_py():
            columns[j] = pc.replace_substring_regex(column, "\r\n?", "\n")
    return pa.Table.from_arrays(columns, schema=table.schema)


def _block_bytes(row_bytes: float) -> int:
    """Say how many bytes of text are read at once."""
    return max(_BLOCK, min(_FIRST, round(_LEAST_ROWS * row_bytes)))


def _reading(block: int) -> pyarrow.csv.ReadOptions:
    return pyarrow.csv.ReadOptions(block_size=block, use_threads=False)  # one thread can tell the row


def _open_type(column: pa.ChunkedArray) -> pa.DataType:
    """Give the type to read the whole of a column in whose first entries are known."""
    if not pa.types.is_integer(column.type):
        return column.type
    ends = pc.min_max(column).as_py()
    known = [abs(end) for end in ends.values() if end is not None]
    return pa.float64() if max(known, default=0) <= _LARGEST_WHOLE else column.type


@contextmanager
def _fitting(path: Path, form: CsvForm, types: dict[str, Any]) -> Iterator[None]:
    """Say which entry of which row does not fit the type of its column."""
    try:
        yield
    except pa.ArrowInvalid as error:
        found = _MISFIT.search(str(error))
        if found is None:
            raise
        name = form.schema.names[int(found[1])]
        row = f" in row {int(found[2]) - 1:,}" if found[2] else ""  # the line of names is the first for Arrow
        word = _WORDS.get(str(types[name]), str(types[name]))
        raise ValueError(
            f"Column {name!r} of {str(path)!r} holds {found[3]!r}{row}, where the first rows of the files "
            f"hold {word}: mend the entry, or save the table as Parquet, which says the type of each column."
        ) from error
