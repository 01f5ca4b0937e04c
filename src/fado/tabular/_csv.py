"""CSV files: which bytes they are made of, what separates their fields, and the table that they hold."""

from __future__ import annotations

import codecs
import csv
import io
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

__all__ = [
    "in_own_decimals",
    "parse_options",
    "parsing",
    "read_csv",
    "reason_of",
    "separator_of",
    "with_missing_cells",
    "write_csv",
]

_LARGEST_BLOCK = 1 << 30  # types are inferred from the first block: let it be the whole file up to here
_START = 1 << 16  # bytes that show what separates fields
_OTHER_SEPARATORS = {";": "semicolons", "\t": "tabs"}
_NUMBER = r"^\s*[+-]?(\d+[.,]?\d*|[.,]\d+)([eE][+-]?\d+)?\s*$"
_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\0")
_RECODE = "`iconv -f latin1 -t utf-8`"
_UTF_16 = "is UTF-16 text: save it as UTF-8, for example with `iconv -f utf-16 -t utf-8`."
_STARTS = {
    b"\xff\xfe": _UTF_16,
    b"\xfe\xff": _UTF_16,
    b"\x1f\x8b": "is compressed: unpack it, for example with `gunzip`.",
    b"PK\x03\x04": "is a ZIP archive or a workbook: unpack it, or save the sheet as CSV.",
    b"BZh": "is compressed: unpack it, for example with `bunzip2`.",
    b"\xfd7zXZ": "is compressed: unpack it, for example with `unxz`.",
    b"(\xb5/\xfd": "is compressed: unpack it, for example with `unzstd`.",
    b"PAR1": "is a Parquet file: let its name end in .parquet.",
}


def read_csv(path: Path) -> pa.Table:
    """Read a CSV file, or say in one sentence what is wrong with it.

    Fields are separated by commas; by semicolons or tabs, if the first lines are so, one like the other, and
    not by commas. Numbers of such files may have decimal commas. Only an empty cell is a missing one.
    """
    separator = separator_of(path)
    return in_own_decimals(path, separator, lambda decimal_point: _read(path, separator, decimal_point))[0]


def separator_of(path: Path) -> str:
    """Find what separates a file's fields; refuse a file that is no text."""
    size = path.stat().st_size
    if size == 0:
        raise ValueError(f"{str(path)!r} is empty.")
    with path.open("rb") as file:
        start = file.read(_START)
    _check_start(path, start)
    return _separator(path, start.decode("utf-8-sig", errors="replace"), whole=size <= _START)


def in_own_decimals(path: Path, separator: str, read: Callable[[str], pa.Table]) -> tuple[pa.Table, str]:
    """Read a table with decimal points, or commas if its numbers are so; give it, and which they are."""
    table = read(".")
    if separator == "," or not _columns_of_numbers(table):
        return table, "."
    table = read(",")
    mixed = _columns_of_numbers(table)
    if mixed:
        raise ValueError(
            f"{str(path)!r} writes numbers with decimal commas and with decimal points (column "
            f"{mixed[0]!r}): save it with points alone."
        )
    return table, ","


def reason_of(error: Exception) -> str:
    """Give another library's message as the end of a sentence."""
    text = " ".join(str(error).split())
    text = text if len(text) <= 200 else text[:200] + "..."
    return text if text.endswith(".") else text + "."


def _check_start(path: Path, start: bytes) -> None:
    """Refuse files that are something else, by their first bytes."""
    for known, what in _STARTS.items():
        if start.startswith(known):
            raise ValueError(f"{str(path)!r} {what}")
    if start[:4].count(0) > 1:  # UTF-16 or UTF-32 without a mark
        raise ValueError(f"{str(path)!r} {_UTF_16}")


def _separator(path: Path, start: str, *, whole: bool) -> str:
    """Find what separates the fields of the first lines."""
    if _fields(start, ",", whole) > 1:
        return ","
    found = [own for own in _OTHER_SEPARATORS if _fields(start, own, whole) > 1]
    if len(found) == 1:
        return found[0]
    header = next((line for line in start.splitlines() if line.strip()), "")
    for own, name in _OTHER_SEPARATORS.items():
        if own in header and "," not in header:
            raise ValueError(
                f"{str(path)!r} has {name} in its header, but its lines do not all have the same number of "
                "fields: save it with commas between them."
            )
    return ","


def _fields(start: str, separator: str, whole: bool) -> int:
    """Count the fields of each of the first lines; 0 if the counts differ."""
    try:
        counts = [len(row) for row in csv.reader(io.StringIO(start, newline=""), delimiter=separator) if row]
    except csv.Error:
        return 0
    if not whole:
        counts = counts[:-1]  # the last was cut
    return counts[0] if len(set(counts)) == 1 else 0


def _read(path: Path, separator: str, decimal_point: str) -> pa.Table:
    block = min(path.stat().st_size + 1, _LARGEST_BLOCK)
    parse, convert = parse_options(separator, decimal_point)
    with parsing(path):
        table = pyarrow.csv.read_csv(path, pyarrow.csv.ReadOptions(block_size=block), parse, convert)
        table.column_names  # noqa: B018 - which may be no text
    return with_missing_cells(path, table)


def parse_options(
    separator: str, decimal_point: str
) -> tuple[pyarrow.csv.ParseOptions, pyarrow.csv.ConvertOptions]:
    """Give the rules by which lines become fields, and fields entries."""
    # "NA" in a column of text is a category; only an empty cell is a missing one
    entries = pyarrow.csv.ConvertOptions(strings_can_be_null=False, decimal_point=decimal_point)
    return pyarrow.csv.ParseOptions(delimiter=separator, newlines_in_values=True), entries


@contextmanager
def parsing(path: Path) -> Iterator[None]:
    """Say in one sentence what is wrong with a file that is being read."""
    try:
        yield
    except UnicodeDecodeError as error:
        raise ValueError(_encoding(path)) from error
    except (pa.ArrowException, OSError) as error:
        if "invalid UTF8" in str(error):
            raise ValueError(_encoding(path)) from error
        raise ValueError(f"{str(path)!r} cannot be read as CSV: {reason_of(error)}") from error


def with_missing_cells(path: Path, table: pa.Table) -> pa.Table:
    """Give a table whose empty cells are missing in columns of text, too."""
    columns = table.columns
    for j, column in enumerate(columns):
        if pa.types.is_binary(column.type):
            raise ValueError(_encoding(path))
        if pa.types.is_string(column.type):
            empty = pc.equal(column, "")
            if pc.any(empty).as_py():
                columns[j] = pc.if_else(empty, pa.scalar(None, column.type), column)
    return pa.Table.from_arrays(columns, schema=table.schema)


def _encoding(path: Path) -> str:
    """Say which byte of a file is not UTF-8."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            try:
                decoder.decode(line)
            except UnicodeDecodeError as error:
                byte = error.object[error.start]
                return (
                    f"{str(path)!r} is not UTF-8 text: line {number} has the byte 0x{byte:02x}; convert it, "
                    f"for example with {_RECODE}."
                )
    return f"{str(path)!r} is not UTF-8 text: convert it, for example with {_RECODE}."


def _columns_of_numbers(table: pa.Table) -> list[str]:
    """List the columns that were read as text, but hold numbers with a decimal comma or point."""
    missing = pa.array([None, *pyarrow.csv.ConvertOptions().null_values], pa.string())  # as in any number
    found = []
    for name, column in zip(table.column_names, table.columns, strict=True):
        if not pa.types.is_string(column.type):
            continue
        known = column.filter(pc.invert(pc.is_in(column, value_set=missing)))
        numbers = pc.all(pc.match_substring_regex(known, _NUMBER), min_count=0).as_py()
        if numbers and pc.any(pc.match_substring_regex(known, "[.,]"), min_count=0).as_py():
            found.append(name)
    return found


def write_csv(table: pa.Table, path: Path) -> None:
    """Write a CSV file; names and text that a spreadsheet would run are refused."""
    table = _decoded(table)
    _refuse_formulas(table)
    pyarrow.csv.write_csv(table, path)


def _decoded(table: pa.Table) -> pa.Table:
    """Turn categories into what they stand for, as CSV has no other form for them."""
    columns = [
        column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column
        for column in table.columns
    ]
    return pa.Table.from_arrays(columns, names=table.column_names)


def _refuse_formulas(table: pa.Table) -> None:
    """Refuse text that a spreadsheet would run; to change it in silence would be to change the data."""
    for name, column in zip(table.column_names, table.columns, strict=True):
        found = [name] if name.startswith(_FORMULA_STARTS) else _formulas(column)
        if found:
            raise ValueError(
                f"Column {name!r} has text that a spreadsheet may run as a formula ({found[0][:30]!r}): "
                "write a file that ends in .parquet, or change the text."
            )


def _formulas(column: pa.ChunkedArray) -> list[str]:
    """Find an entry that begins like a formula, if there is one."""
    if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
        return []
    begins = pc.is_in(pc.utf8_slice_codeunits(column, 0, 1), pa.array(_FORMULA_STARTS, column.type))
    return column.filter(begins).slice(0, 1).to_pylist()
