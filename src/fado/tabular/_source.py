"""A table in files, read part by part: more rows than memory."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.types as kinds

from fado._messages import list_names
from fado.tabular import _files
from fado.tabular._column import is_text
from fado.tabular._table import named_index, without_index

_SAMPLED_FILES, _SAMPLED_ROWS = 4, 5_000  # to estimate the memory of a row
_FIRST = 1 << 23  # bytes of text that show the types of a CSV file
_BLOCK = 1 << 20  # that are read at once; Arrow has about twenty such blocks in memory
# of a block of long rows, to limit the overhead of each column in each block
_LEAST_ROWS = 128
_LARGEST_WHOLE = 1 << 53  # up to which every integer is a float
_MISFIT = re.compile(
    r"In CSV column #(\d+): (?:Row #(\d+): )?CSV conversion error to .*: invalid value '(.*)'", re.S
)
_WORDS = {"double": "numbers", "int64": "whole numbers", "bool": "booleans", "null": "empty cells"}


@dataclass(frozen=True)
class CsvForm:
    """The format of a CSV file, read from its first block.

    Parameters
    ----------
    separator, decimal_point : str
        Between fields, and within numbers.
    schema : pyarrow.Schema
        The types of the first block. Whole numbers are floats, unless a float cannot represent them, so that
        later rows may have fractions.
    row_bytes : float
        The average number of bytes of a row.
    block_bytes : int
        The number of bytes that are read at once.
    """

    separator: str
    decimal_point: str
    schema: pa.Schema
    row_bytes: float
    block_bytes: int


@dataclass(frozen=True)
class SourceFile:
    """One file of a table.

    Parameters
    ----------
    path : pathlib.Path
        Its path.
    size, modified : int
        Its size in bytes, and its modification time in nanoseconds.
    n_rows : int or None
        Its number of rows; None for a CSV file of more than one block, before it is read.
    row_groups : tuple of int
        The rows of each row group of a Parquet file.
    form : CsvForm or None
        The format of a CSV file; None for Parquet files, and without rows.
    """

    path: Path
    size: int
    modified: int
    n_rows: int | None
    row_groups: tuple[int, ...] = ()
    form: CsvForm | None = None


@dataclass(frozen=True)
class SourcePart:
    """Rows of one file that are processed together.

    Parameters
    ----------
    number : int
        Counted from 0, in the order of the rows.
    file : SourceFile
        The file that contains them.
    row_groups : range or None
        Which row groups of a Parquet file; None for the whole of a CSV file.
    first_row : int or None
        Position of the first row in the whole table; None before the rows of earlier files are counted.
    n_rows : int or None
        The number of rows; None before they are counted.
    """

    number: int
    file: SourceFile
    row_groups: range | None
    first_row: int | None
    n_rows: int | None


@dataclass(frozen=True)
class Source:
    """A table in files, with rows in the order of the sorted paths. Made by `open_source`.

    Parameters
    ----------
    files : tuple of SourceFile
        All files, also those without rows.
    schema : pyarrow.Schema
        Types that fit every file; text is `large_string`.
    """

    files: tuple[SourceFile, ...]
    schema: pa.Schema

    @property
    def n_rows(self) -> int | None:
        """The number of rows; None before those of CSV files are counted."""
        counts = [file.n_rows for file in self.files]
        return None if None in counts else sum(count or 0 for count in counts)

    @property
    def about_rows(self) -> int:
        """The number of rows, estimated for long CSV files from the length of their first rows."""
        return sum(
            round(file.size / file.form.row_bytes) if file.n_rows is None and file.form else file.n_rows or 0
            for file in self.files
        )

    def parts(self, most_rows: int) -> tuple[SourcePart, ...]:
        """Split the table into parts of whole row groups; a CSV file is one part.

        A part has at most `most_rows`, unless a single row group has more.
        """
        pieces: list[tuple[SourceFile, range | None, int | None]] = []
        for file in self.files:
            if file.form is not None:
                pieces.append((file, None, file.n_rows))
            start = n_rows = 0
            for place, size in enumerate([*file.row_groups, most_rows + 1]):  # the last is after the end
                if n_rows and n_rows + size > most_rows:
                    pieces.append((file, range(start, place), n_rows))
                    start, n_rows = place, 0
                n_rows += size
        parts: list[SourcePart] = []
        first: int | None = 0
        for number, (file, row_groups, rows) in enumerate(pieces):
            parts.append(SourcePart(number, file, row_groups, first, rows))
            first = None if first is None or rows is None else first + rows
        return tuple(parts)

    def blocks(self, part: SourcePart, columns: Sequence[str] | None, most_rows: int) -> Iterator[pa.Table]:
        """Yield the rows of a part in blocks of one size, in the types of the whole table.

        Only one block is in memory at a time.

        Parameters
        ----------
        part : SourcePart
            One of `parts`.
        columns : sequence of str or None
            The columns to read, returned in the order of the schema. None reads all.
        most_rows : int
            The size of every block but the last.
        """
        schema, file = self.schema, part.file
        if columns is not None:
            wanted = set(columns)
            schema = pa.schema([field for field in schema if field.name in wanted])
        try:
            state = file.path.stat()
        except OSError as error:
            raise ValueError(f"{str(file.path)!r} cannot be read any more: {error.strerror}.") from error
        if (state.st_size, state.st_mtime_ns) != (file.size, file.modified):
            raise ValueError(f"{str(file.path)!r} has changed while the table was read: start again.")
        if file.form is not None:
            tables = _csv_blocks(file.path, file.form, self.schema, schema.names)
        else:
            tables = _parquet_blocks(part, schema.names, most_rows)
        united = (_as_united(file.path, table, schema) for table in tables if table.num_rows)
        yield from in_blocks(united, most_rows)

    def rows(self, columns: Sequence[str] | None, block_rows: int) -> Iterator[pa.Table]:
        """Yield all rows in blocks of one size, across files and row groups."""
        blocks = (block for part in self.parts(1) for block in self.blocks(part, columns, block_rows))
        yield from in_blocks(blocks, block_rows)

    def with_rows_counted(self, n_rows: Sequence[int]) -> Source:
        """Return the table with the counted rows of each file."""
        counted = zip(self.files, n_rows, strict=True)
        return replace(self, files=tuple(replace(file, n_rows=rows) for file, rows in counted))

    @cached_property
    def bytes_per_row(self) -> float:
        """The memory of a row in Arrow, estimated from the first rows of a few files."""
        parts = self.parts(1)
        sampled = parts[:: max(1, len(parts) // _SAMPLED_FILES)][:_SAMPLED_FILES]
        blocks = [next(self.blocks(part, None, _SAMPLED_ROWS)) for part in sampled]
        return sum(block.nbytes for block in blocks) / sum(block.num_rows for block in blocks)

    @cached_property
    def largest_unit(self) -> tuple[Path, int, int]:
        """The file, rows and approximate bytes of the largest row group or block of a CSV file."""
        units = [(rows, file) for file in self.files for rows in file.row_groups]
        for file in self.files:
            if file.form is not None:
                units.append((round(min(file.size, file.form.block_bytes) / file.form.row_bytes), file))
        n_rows, file = max(units, key=lambda unit: unit[0])
        return file.path, n_rows, round(n_rows * self.bytes_per_row)


def open_source(paths: _files.Paths) -> Source:
    """Open a table in files for reading part by part, or explain the error in a file.

    Only the footers of Parquet files and the first blocks of CSV files are read.

    Parameters
    ----------
    paths : path-like or sequence of path-like
        A file, several, a directory, or a shell pattern; CSV or Parquet by the ending. Rows are in the order
        of the sorted paths. Names that begin with ``_`` or ``.`` are not data.

    Returns
    -------
    Source
        All files must have the same columns, each of text or of numbers in all of them. Files without rows
        are skipped. An index that pandas wrote is read as in `read_table`.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for name, ages in {"b": [40.5], "a": [20, 30, 25]}.items():
    ...         pa.parquet.write_table(pa.table({"age": ages}), f"{folder}/{name}.parquet", row_group_size=2)
    ...     source = open_source(folder)
    ...     parts = source.parts(most_rows=1000)
    ...     [block["age"].to_pylist() for part in parts for block in source.blocks(part, None, 2)]
    [[20.0, 30.0], [25.0], [40.5]]
    >>> [(part.file.path.name, part.row_groups, part.first_row) for part in parts]
    [('a.parquet', range(0, 2), 0), ('b.parquet', range(0, 1), 3)]
    """
    opened = [_opened(path) for path in _files.data_files(paths)]
    tables = [(file.path, schema.empty_table()) for file, schema in opened if file.n_rows != 0]
    if not tables:
        named = repr(str(opened[0][0].path)) + (" and the other files" if len(opened) > 1 else "")
        raise ValueError(f"There are no rows in {named}.")
    index = next(((path, names) for path, table in tables if (names := named_index(table))), None)
    if index is not None:
        _files.tell_index(*index)
    schemas = [(path, without_index(table).schema) for path, table in tables]
    return Source(tuple(file for file, _ in opened), _united_schema(schemas))


def _opened(path: Path) -> tuple[SourceFile, pa.Schema]:
    """Read a file's columns and number of rows."""
    try:
        state = path.stat()
        file = SourceFile(path, state.st_size, state.st_mtime_ns, 0)
        if _files.ending_of(path) == ".csv":
            return (file, pa.schema([])) if not file.size else _opened_csv(file)
        with _files.opened_parquet(path) as parquet:
            footer = parquet.metadata
            groups = tuple(footer.row_group(place).num_rows for place in range(footer.num_row_groups))
            return replace(file, n_rows=sum(groups), row_groups=groups), parquet.schema_arrow
    except OSError as error:
        raise ValueError(f"{str(path)!r} cannot be read: {error.strerror}.") from error


def _opened_csv(file: SourceFile) -> tuple[SourceFile, pa.Schema]:
    """Read the first block of a CSV file for its format."""
    with file.path.open("rb") as opened:
        start = opened.read(_FIRST + 1)  # Arrow would read far ahead; it leaves a cut row off

    def first_block(parse: pyarrow.csv.ParseOptions, convert: pyarrow.csv.ConvertOptions) -> pa.Table:
        with pyarrow.csv.open_csv(pa.BufferReader(start), _reading(_FIRST), parse, convert) as reader:
            batch = next(iter(reader), None)
            return reader.schema.empty_table() if batch is None else pa.Table.from_batches([batch])

    table, separator, decimal_point = _files.parse_csv(file.path, first_block)
    _files.check_distinct(file.path, table.column_names)
    if not table.num_rows:
        return file, pa.schema([])
    fields = []
    for name, column in zip(table.column_names, table.columns, strict=True):
        type_ = column.type
        if kinds.is_integer(type_):  # later rows may have fractions
            ends = [abs(end) for end in pc.min_max(column).as_py().values() if end is not None]
            type_ = pa.float64() if max(ends, default=0) <= _LARGEST_WHOLE else type_
        fields.append((name, type_))
    row_bytes = min(file.size, _FIRST) / table.num_rows
    block_bytes = max(_BLOCK, min(_FIRST, round(_LEAST_ROWS * row_bytes)))
    form = CsvForm(separator, decimal_point, pa.schema(fields), row_bytes, block_bytes)
    n_rows = table.num_rows if file.size <= _FIRST else None
    return replace(file, n_rows=n_rows, form=form), form.schema


def _parquet_blocks(part: SourcePart, names: list[str], most_rows: int) -> Iterator[pa.Table]:
    with _files.opened_parquet(part.file.path, page_by_page=True) as parquet:
        for group in part.row_groups or ():
            batches = parquet.iter_batches(most_rows, [group], names, use_threads=False)
            yield from (pa.Table.from_batches([batch]) for batch in batches)


def _csv_blocks(path: Path, form: CsvForm, schema: pa.Schema, columns: list[str]) -> Iterator[pa.Table]:
    """Yield a CSV file's rows in the types of a schema; lines within a cell end by a line feed."""
    types = {field.name: pa.string() if kinds.is_large_string(field.type) else field.type for field in schema}
    parse, convert = _files.csv_options(form.separator, form.decimal_point)
    convert.column_types, convert.include_columns = types, columns
    with _files.parsing(path):
        try:
            with pyarrow.csv.open_csv(path, _reading(form.block_bytes), parse, convert) as reader:
                for batch in reader:
                    if batch.num_rows:
                        block = _with_plain_line_ends(pa.Table.from_batches([batch]))
                        yield _files.with_missing_cells(path, block)
        except pa.ArrowInvalid as error:
            misfit = _MISFIT.search(str(error))
            if misfit is None:
                raise
            name = form.schema.names[int(misfit[1])]
            row = f" in row {int(misfit[2]) - 1:,}" if misfit[2] else ""  # Arrow's first is the line of names
            word = _WORDS.get(str(types[name]), str(types[name]))
            raise ValueError(
                f"Column {name!r} of {str(path)!r} holds {misfit[3]!r}{row}, where the first rows of the "
                f"files hold {word}: correct the entry, or save the table as Parquet, which states the "
                "type of each column."
            ) from error


def _reading(block: int) -> pyarrow.csv.ReadOptions:
    return pyarrow.csv.ReadOptions(block_size=block, use_threads=False)  # so that errors name the row


def _with_plain_line_ends(table: pa.Table) -> pa.Table:
    r"""End lines within cells by ``\n`` alone: Arrow loses it from a ``\r\n`` that two blocks share."""
    columns = table.columns
    for j, column in enumerate(columns):
        if kinds.is_string(column.type) and pc.any(pc.match_substring(column, "\r")).as_py():
            columns[j] = pc.replace_substring_regex(column, "\r\n?", "\n")
    return pa.Table.from_arrays(columns, schema=table.schema)


def in_blocks(tables: Iterable[pa.Table], most_rows: int) -> Iterator[pa.Table]:
    """Split and join tables to blocks of `most_rows`; the last may have fewer."""
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


def _united_schema(schemas: Sequence[tuple[Path, pa.Schema]]) -> pa.Schema:
    """Return types that fit every file, or explain which file and column differ."""
    plain = [
        (path, pa.schema([(field.name, _plain_type(field.type)) for field in schema]))
        for path, schema in schemas
    ]
    first_path, first = plain[0]
    names = set(first.names)
    if all(set(schema.names) == names for _, schema in plain):
        try:
            return pa.unify_schemas([schema for _, schema in plain], promote_options="permissive")
        except pa.ArrowTypeError:
            pass  # explained below, by file and column
    differences = []
    for path, schema in plain:
        missing = [repr(name) for name in first.names if name not in schema.names]
        added = [repr(name) for name in schema.names if name not in names]
        if missing:
            differences.append(f"{str(path)!r} has no column {list_names(missing)}")
        if added:
            differences.append(f"{str(path)!r} has {list_names(added)}, which {str(first_path)!r} has not")
    for name in first.names:
        typed = [(path, schema.field(name).type) for path, schema in plain if name in schema.names]
        typed = [(path, type_) for path, type_ in typed if not kinds.is_null(type_)]
        for path, type_ in typed:
            word, known = _word(type_), _word(typed[0][1])
            if word != known:
                differences.append(
                    f"column {name!r} holds {word} in {str(path)!r} and {known} in {str(typed[0][0])!r}"
                )
    raise ValueError(
        f"The files differ in their columns: {list_names(differences, most=4)}. Give them the same "
        "columns of the same types, or name only those that belong together."
    )


def _plain_type(type_: pa.DataType) -> pa.DataType:
    """Return the common type: `large_string` for text, at most 64 bits for numbers."""
    if kinds.is_dictionary(type_):
        return _plain_type(type_.value_type)
    if is_text(type_):
        return pa.large_string()  # the offsets of others end at two gigabytes
    return pa.float64() if kinds.is_decimal(type_) or kinds.is_float16(type_) else type_


def _word(type_: pa.DataType) -> str:
    """Return a word for the type of a column."""
    if is_text(type_):
        return "text"
    if kinds.is_integer(type_) or kinds.is_floating(type_):
        return "numbers"
    return "booleans" if kinds.is_boolean(type_) else str(type_)


def _as_united(path: Path, table: pa.Table, schema: pa.Schema) -> pa.Table:
    """Return a file's rows in the types of all files, with the columns of `schema`."""
    columns = []
    for field in schema:
        column = table.column(field.name)
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
