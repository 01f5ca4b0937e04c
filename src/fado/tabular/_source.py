"""A table in files, read part by part: more rows than memory."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet
import pyarrow.types as kinds

from fado._messages import closest_names, list_names
from fado.tabular._files import (
    Paths,
    check_distinct,
    data_files,
    ending_of,
    in_own_decimals,
    opened_parquet,
    parse_options,
    parsing,
    separator_of,
    tell_index,
    with_missing_cells,
)
from fado.tabular._table import named_index, without_index

__all__ = [
    "CsvForm",
    "LargestUnit",
    "Source",
    "SourceFile",
    "SourcePart",
    "as_united",
    "csv_blocks",
    "in_blocks",
    "open_csv",
    "open_source",
    "united_schema",
]

_SAMPLED_FILES, _SAMPLED_ROWS = 4, 5_000  # that tell how much memory a row takes


@dataclass(frozen=True)
class SourceFile:
    """One file of a table.

    Parameters
    ----------
    path : pathlib.Path
        Where it lies.
    size, modified : int
        Its bytes, and when it was written, in nanoseconds.
    n_rows : int or None
        Its rows; None for a CSV file of more than one block, of which only reading tells.
    row_groups : tuple of int
        The rows of each row group of a Parquet file.
    form : CsvForm or None
        How a CSV file is written; None for Parquet files, and where there are no rows.
    """

    path: Path
    size: int
    modified: int
    n_rows: int | None
    row_groups: tuple[int, ...] = ()
    form: CsvForm | None = None


@dataclass(frozen=True)
class SourcePart:
    """Rows of one file that are worked on together.

    Parameters
    ----------
    number : int
        From 0 on, in the order of the rows.
    file : SourceFile
        Where they lie.
    row_groups : range or None
        Which row groups of a Parquet file; None for the whole of a CSV file.
    first_row : int or None
        Place of the first in the whole table; None while rows of files before it have not been counted.
    n_rows : int or None
        How many there are; None if only reading tells.
    """

    number: int
    file: SourceFile
    row_groups: range | None
    first_row: int | None
    n_rows: int | None


class LargestUnit(NamedTuple):
    """The rows that a file gives at once if `Source.blocks` is given no `most_rows`."""

    path: Path
    n_rows: int
    n_bytes: int


@dataclass(frozen=True)
class Source:
    """A table in files, whose rows stand in the order of the sorted paths. Made by `open_source`.

    Parameters
    ----------
    files : tuple of SourceFile
        All of them, those without rows too.
    schema : pyarrow.Schema
        The types that hold what each file has; text is `large_string`.
    """

    files: tuple[SourceFile, ...]
    schema: pa.Schema

    @property
    def n_rows(self) -> int | None:
        """How many rows there are; None while those of a CSV file have not been counted."""
        known = [file.n_rows for file in self.files if file.n_rows is not None]
        return sum(known) if len(known) == len(self.files) else None

    @property
    def about_rows(self) -> int:
        """How many rows there are, those of long CSV files as the length of their first rows has it."""
        return sum(
            round(file.size / file.form.row_bytes) if file.n_rows is None and file.form else file.n_rows or 0
            for file in self.files
        )

    def parts(self, most_rows: int) -> tuple[SourcePart, ...]:
        """Cut the table into parts of whole row groups; a CSV file is one part, an empty file none.

        Parameters
        ----------
        most_rows : int
            That a part has, unless a single row group has more.
        """
        parts: list[SourcePart] = []
        first: int | None = 0
        for file in self.files:
            if file.form is not None:
                parts.append(SourcePart(len(parts), file, None, first, file.n_rows))
                first = None if first is None or file.n_rows is None else first + file.n_rows
                continue
            for groups in _runs(file.row_groups, most_rows):
                n_rows = sum(file.row_groups[groups.start : groups.stop])
                parts.append(SourcePart(len(parts), file, groups, first, n_rows))
                first = None if first is None else first + n_rows
        return tuple(parts)

    def blocks(
        self, part: SourcePart, columns: Sequence[str] | None = None, most_rows: int | None = None
    ) -> Iterator[pa.Table]:
        """Give the rows of a part, block by block, in the types of the whole table.

        One block is held in memory at a time, and of the file little more.

        Parameters
        ----------
        part : SourcePart
            One of `parts`.
        columns : sequence of str, optional
            Those to read; they come in the order of the schema. Without, all.
        most_rows : int, optional
            That every block has, but for the last. Without, a block is a row group, or what is read of a CSV
            file at once.
        """
        schema = self._selected(columns)
        file = part.file
        _check_unchanged(file)
        if file.form is not None:
            found = csv_blocks(file.path, file.form, self.schema, None if columns is None else schema.names)
        else:
            found = _parquet_blocks(file, part.row_groups or range(0), schema.names, most_rows)
        united = (as_united(file.path, table, schema) for table in found if table.num_rows)
        yield from united if most_rows is None else in_blocks(united, most_rows)

    def rows(self, columns: Sequence[str] | None, block_rows: int) -> Iterator[pa.Table]:
        """Give all rows in blocks of one size, which no boundary of a file or a row group shows in.

        Parameters
        ----------
        columns : sequence of str or None
            Those to read, as `blocks` takes them.
        block_rows : int
            That every block has, but for the last.
        """
        parts = self.parts(1)
        yield from in_blocks(
            (block for part in parts for block in self.blocks(part, columns, block_rows)), block_rows
        )

    def with_rows_counted(self, n_rows: Sequence[int]) -> Source:
        """Give the table once the rows of its files have been counted.

        Parameters
        ----------
        n_rows : sequence of int
            Of each of `files`.
        """
        counted = zip(self.files, n_rows, strict=True)
        return replace(self, files=tuple(replace(file, n_rows=rows) for file, rows in counted))

    @cached_property
    def bytes_per_row(self) -> float:
        """The memory that a row takes in Arrow, as the first rows of a few files have it."""
        parts = self.parts(1)
        sampled = parts[:: max(1, len(parts) // _SAMPLED_FILES)][:_SAMPLED_FILES]
        n_bytes = n_rows = 0
        for part in sampled:
            block = next(self.blocks(part, most_rows=_SAMPLED_ROWS))
            n_bytes, n_rows = n_bytes + block.nbytes, n_rows + block.num_rows
        return n_bytes / n_rows

    @cached_property
    def largest_unit(self) -> LargestUnit:
        """The largest row group, or block of a CSV file, and the memory that it takes, about."""
        units = [(rows, file) for file in self.files for rows in file.row_groups]
        units += [(file.form.block_rows, file) for file in self.files if file.form is not None]
        n_rows, file = max(units, key=lambda unit: unit[0])
        return LargestUnit(file.path, n_rows, round(n_rows * self.bytes_per_row))

    def _selected(self, columns: Sequence[str] | None) -> pa.Schema:
        if columns is None:
            return self.schema
        wanted, names = set(columns), set(self.schema.names)
        for name in columns:
            if name not in names:
                raise ValueError(f"There is no column {name!r}" + closest_names(name, self.schema.names))
        return pa.schema([field for field in self.schema if field.name in wanted])


def open_source(paths: Paths) -> Source:
    """Open a table in files for reading part by part, or say what is wrong with which file.

    Only what tells of columns and rows is read: the footers of Parquet files, the first blocks of CSV files.

    Parameters
    ----------
    paths : path-like or sequence of path-like
        A file, several, a directory, or a pattern as a shell has it; CSV or Parquet by the ending. Rows stand
        in the order of the sorted paths. Names that begin with ``_`` or ``.`` are not data.

    Returns
    -------
    Source
        Its columns are those of every file: files that differ in a column, or in whether it holds text or
        numbers, are refused. Files without rows are passed over. An index that pandas wrote is taken as
        `read_table` takes it.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for name, ages in {"b": [40.5], "a": [20, 30, 25]}.items():
    ...         pa.parquet.write_table(pa.table({"age": ages}), f"{folder}/{name}.parquet", row_group_size=2)
    ...     source = open_source(folder)
    ...     parts = source.parts(most_rows=1000)
    ...     [block["age"].to_pylist() for part in parts for block in source.blocks(part)]
    [[20.0, 30.0], [25.0], [40.5]]
    >>> [(part.file.path.name, part.row_groups, part.first_row) for part in parts]
    [('a.parquet', range(0, 2), 0), ('b.parquet', range(0, 1), 3)]
    """
    opened = [_opened(path) for path in data_files(paths)]
    filled = [(file.path, schema) for file, schema in opened if file.n_rows != 0]
    if not filled:
        named = repr(str(opened[0][0].path)) + (" and the other files" if len(opened) > 1 else "")
        raise ValueError(f"There are no rows in {named}.")
    tables = [(path, schema.empty_table()) for path, schema in filled]
    index = next(((path, names) for path, table in tables if (names := named_index(table))), None)
    if index is not None:
        tell_index(*index)
    schemas = [(path, without_index(table).schema) for path, table in tables]
    return Source(tuple(file for file, _ in opened), united_schema(schemas))


def _opened(path: Path) -> tuple[SourceFile, pa.Schema]:
    """Read what tells of a file's columns and rows."""
    try:
        state = path.stat()
        if ending_of(path) == ".csv":
            form = open_csv(path)
            n_rows = 0 if form is None else form.n_rows
            schema = pa.schema([]) if form is None else form.schema
            return SourceFile(path, state.st_size, state.st_mtime_ns, n_rows, form=form), schema
        with opened_parquet(path) as parquet:
            told = parquet.metadata
            groups = tuple(told.row_group(place).num_rows for place in range(told.num_row_groups))
            file = SourceFile(path, state.st_size, state.st_mtime_ns, sum(groups), groups)
            return file, parquet.schema_arrow
    except OSError as error:
        raise ValueError(f"{str(path)!r} cannot be read: {error.strerror}.") from error


def _check_unchanged(file: SourceFile) -> None:
    """Refuse a file that is another than when the table was opened."""
    try:
        state = file.path.stat()
    except OSError as error:
        raise ValueError(f"{str(file.path)!r} cannot be read any more: {error.strerror}.") from error
    if (state.st_size, state.st_mtime_ns) != (file.size, file.modified):
        raise ValueError(f"{str(file.path)!r} has changed while the table was read: begin again.")


def _parquet_blocks(
    file: SourceFile, groups: range, names: list[str], most_rows: int | None
) -> Iterator[pa.Table]:
    with opened_parquet(file.path, page_by_page=most_rows is not None) as parquet:
        for group in groups:
            if most_rows is None:
                yield parquet.read_row_group(group, columns=names, use_threads=False)
            else:
                batches = parquet.iter_batches(most_rows, [group], names, use_threads=False)
                yield from (pa.Table.from_batches([batch]) for batch in batches)


def in_blocks(tables: Iterable[pa.Table], most_rows: int) -> Iterator[pa.Table]:
    """Cut and join tables to blocks of so many rows; the last may have fewer."""
    held: list[pa.Table] = []
    free = most_rows
    for table in tables:
        start = 0
        while start < table.num_rows:
            held.append(table.slice(start, free))
            start += held[-1].num_rows
            free -= held[-1].num_rows
            if not free:
                yield pa.concat_tables(held)
                held, free = [], most_rows
    if held:
        yield pa.concat_tables(held)


def _runs(sizes: Sequence[int], most: int) -> Iterator[range]:
    """Cut row groups into runs of neighbours that have at most so many rows together, or are one."""
    ends = [0, *accumulate(sizes)]
    start = 0
    for stop in range(1, len(sizes) + 1):
        if stop == len(sizes) or ends[stop + 1] - ends[start] > most:
            if ends[stop] > ends[start]:
                yield range(start, stop)
            start = stop


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


def united_schema(schemas: Sequence[tuple[Path, pa.Schema]]) -> pa.Schema:
    """Unite the columns of files, or say in which file which column differs.

    Text in any form is text, and numbers are the numbers that hold them all: whole numbers beside floats are
    floats. A column without entries in one file is what it is in the others. Columns stand as in the first.

    Parameters
    ----------
    schemas : sequence of (pathlib.Path, pyarrow.Schema)
        Of each file that has rows.

    Examples
    --------
    >>> first = pa.schema({"age": pa.int32(), "sex": pa.string()})
    >>> second = pa.schema({"sex": pa.null(), "age": pa.float32()})
    >>> united = united_schema([(Path("a.parquet"), first), (Path("b.parquet"), second)])
    >>> dict(zip(united.names, united.types))
    {'age': DataType(double), 'sex': DataType(large_string)}
    """
    first_path, first = schemas[0]
    types = [dict(zip(schema.names, schema.types, strict=True)) for _, schema in schemas]
    differences = []
    for (path, _), own in zip(schemas, types, strict=True):
        missing = [repr(name) for name in first.names if name not in own]
        added = [repr(name) for name in own if name not in types[0]]
        if missing:
            differences.append(f"{str(path)!r} has no column {list_names(missing)}")
        if added:
            differences.append(f"{str(path)!r} has {list_names(added)}, which {str(first_path)!r} has not")
    fields = []
    for name in first.names:
        found = [(path, own[name]) for (path, _), own in zip(schemas, types, strict=True) if name in own]
        known = [(path, type_) for path, type_ in found if not kinds.is_null(type_)]
        differences += [
            f"column {name!r} holds {_word(type_)} in {str(path)!r} and {_word(known[0][1])} in "
            f"{str(known[0][0])!r}"
            for path, type_ in known
            if _kind(type_) != _kind(known[0][1])
        ]
        fields.append(pa.field(name, _united([type_ for _, type_ in known])))
    if differences:
        raise ValueError(
            f"The files differ in their columns: {list_names(differences, most=4)}. Give them the same "
            "columns of the same types, or name only those that belong together."
        )
    return pa.schema(fields)


def as_united(path: Path, table: pa.Table, schema: pa.Schema) -> pa.Table:
    """Give a file's rows in the types of all files, with the columns of `schema` alone."""
    columns = []
    for field in schema:
        column = table.column(field.name)
        if column.type == field.type:
            columns.append(column)
            continue
        if kinds.is_dictionary(column.type):
            column = column.cast(column.type.value_type)
        try:
            columns.append(column.cast(field.type, safe=not kinds.is_floating(field.type)))
        except pa.ArrowInvalid as error:
            raise ValueError(
                f"Column {field.name!r} of {str(path)!r} holds {column.type} entries that do not fit the "
                f"{field.type} of the other files: write it in the same type everywhere."
            ) from error
    return pa.table(columns, schema=schema)


def _kind(type_: pa.DataType) -> Any:
    """Tell types apart as far as they cannot be united."""
    if kinds.is_dictionary(type_):
        return _kind(type_.value_type)
    if kinds.is_string(type_) or kinds.is_large_string(type_) or kinds.is_string_view(type_):
        return "text"
    if kinds.is_integer(type_) or kinds.is_floating(type_) or kinds.is_decimal(type_):
        return "numbers"
    if kinds.is_boolean(type_):
        return "booleans"
    return ("times", getattr(type_, "tz", None)) if kinds.is_timestamp(type_) else str(type_)


def _word(type_: pa.DataType) -> str:
    kind = _kind(type_)
    return kind if isinstance(kind, str) else str(type_)


def _united(types: Sequence[pa.DataType]) -> pa.DataType:
    """Give the type that holds the entries of some types of one kind."""
    if not types:
        return pa.null()
    kind = _kind(types[0])
    if kind == "text":
        return pa.large_string()  # the offsets of others end at two gigabytes
    if kind == "numbers":
        return _united_numbers(types)
    if kinds.is_timestamp(types[0]):
        return max(types, key=lambda type_: ["s", "ms", "us", "ns"].index(type_.unit))
    return types[0]


def _united_numbers(types: Sequence[pa.DataType]) -> pa.DataType:
    if any(kinds.is_decimal(type_) or kinds.is_float16(type_) for type_ in types):
        return pa.float64()
    if len(set(types)) == 1:
        return types[0]
    if any(kinds.is_floating(type_) for type_ in types):
        return pa.float64()
    signed = [kinds.is_signed_integer(type_) for type_ in types]
    if len(set(signed)) > 1:
        return pa.int64()
    return max(types, key=lambda type_: type_.bit_width)
