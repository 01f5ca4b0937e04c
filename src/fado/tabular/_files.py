"""Tables in files: finding the files, and reading CSV or Parquet by the file's ending."""

from __future__ import annotations

import codecs
import csv
import io
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from fnmatch import fnmatchcase
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet

from fado._messages import list_names, warn_user
from fado.tabular._column import is_text
from fado.tabular._table import is_pattern, named_index, without_index

Paths = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]

ENDINGS = (".csv", ".parquet")
_MAGIC = b"PAR1"  # with which Parquet files begin and end
_PAGES = 1 << 18  # bytes of a column that are read at once, page by page
_LARGEST_BLOCK = 1 << 30  # types are inferred from the first block: let it be the whole file up to here
_START = 1 << 16  # bytes that show what separates fields
_OTHER_SEPARATORS = {";": "semicolons", "\t": "tabs"}
_NUMBER = r"^\s*[+-]?(\d+[.,]?\d*|[.,]\d+)([eE][+-]?\d+)?\s*$"
_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\0")
_UTF_16 = "is UTF-16 text: save it as UTF-8, for example with `iconv -f utf-16 -t utf-8`."
_STARTS = {
    b"\xff\xfe": _UTF_16,
    b"\xfe\xff": _UTF_16,
    b"\x1f\x8b": "is compressed: unpack it, for example with `gunzip`.",
    b"PK\x03\x04": "is a ZIP archive or a workbook: unpack it, or save the sheet as CSV.",
    b"BZh": "is compressed: unpack it, for example with `bunzip2`.",
    b"\xfd7zXZ": "is compressed: unpack it, for example with `unxz`.",
    b"(\xb5/\xfd": "is compressed: unpack it, for example with `unzstd`.",
    b"PAR1": "is a Parquet file: rename it to end in .parquet.",
}


def read_table(path: Path) -> pa.Table:
    """Read a CSV or Parquet file, or raise an error of one sentence.

    A CSV file is UTF-8 text with a line of names. Its fields are separated by commas, or by semicolons or
    tabs if that is unambiguous; its numbers may then have decimal commas. Only an empty cell is missing. An
    index without a name that pandas wrote to a Parquet file is left out. A named index is read as a column,
    with a warning, because pandas would not show it among the columns.
    """
    ending = ending_of(path)
    if not path.exists():
        raise ValueError(f"There is no file {str(path)!r}.")
    if not path.is_file():
        raise ValueError(f"{str(path)!r} is not a file.")
    if ending == ".csv":
        whole = pyarrow.csv.ReadOptions(block_size=min(path.stat().st_size + 1, _LARGEST_BLOCK))
        table, *_ = parse_csv(path, lambda *options: pyarrow.csv.read_csv(path, whole, *options))
        check_distinct(path, table.column_names)
    else:
        with opened_parquet(path) as opened:
            table = opened.read()
    if table.num_rows == 0:
        raise ValueError(f"{str(path)!r} has no rows.")
    tell_index(path, named_index(table))
    return without_index(table)


def ending_of(path: Path) -> str:
    """Return a file's ending, or refuse an unknown format."""
    ending = path.suffix.lower()
    if ending not in ENDINGS:
        raise ValueError(f"{str(path)!r} must end in .csv or .parquet, so that its format is known.")
    return ending


def tell_index(path: Path, index: Sequence[str]) -> None:
    """Warn that a named index of a pandas table is read as columns."""
    if index:
        warn_user(
            f"The index {list_names([repr(name) for name in index])} of the pandas table in {str(path)!r} is "
            "read as a column: leave it out if models must not see it."
        )


def check_distinct(path: Path, names: list[str]) -> None:
    """Refuse repeated column names."""
    repeated = _repeated(names)
    if repeated:
        raise ValueError(
            f"{str(path)!r} has more than one column called {list_names(repeated)}: rename them."
        )


def _repeated(names: Sequence[object]) -> list[str]:
    """List repeated names, in quotes."""
    texts = [str(name) for name in names]
    few = len(set(texts)) == len(texts)  # counting each would be quadratic
    return [] if few else [repr(text) for text in sorted(set(texts)) if texts.count(text) > 1]


@contextmanager
def opened_parquet(path: Path, *, page_by_page: bool = False) -> Iterator[pyarrow.parquet.ParquetFile]:
    """Open a Parquet file, as a whole or page by page to save memory, or explain the error."""
    with path.open("rb") as file:
        start = file.read(len(_MAGIC))
        file.seek(max(path.stat().st_size - len(_MAGIC), 0))
        end = file.read()
    if not start:
        raise ValueError(f"{str(path)!r} is empty.")
    if (start, end) != (_MAGIC, _MAGIC):
        why = "its end is missing; it is still being written, or was cut off"
        if start != _MAGIC:
            why = "it is not Parquet; if it is CSV, rename it to end in .csv"
        raise ValueError(f"{str(path)!r} cannot be read as Parquet: {why}.")
    buffers = {"pre_buffer": False, "buffer_size": _PAGES} if page_by_page else {}
    try:
        with pyarrow.parquet.ParquetFile(path, **buffers) as opened:
            check_distinct(path, opened.schema_arrow.names)
            yield opened
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise ValueError(f"{str(path)!r} cannot be read as Parquet: {_reason(error)}") from error


def _reason(error: Exception) -> str:
    """Return another library's message as the end of a sentence."""
    text = " ".join(str(error).split())
    text = text if len(text) <= 200 else text[:200] + "..."
    return text if text.endswith(".") else text + "."


def parse_csv(path: Path, read: Callable[..., pa.Table]) -> tuple[pa.Table, str, str]:
    """Read a table by its file's separator and decimal point, and return all three."""
    separator = _separator(path)
    mixed: list[str] = []
    for decimal_point in ".,":
        with parsing(path):
            table = read(*csv_options(separator, decimal_point))
            table.column_names  # noqa: B018 - raises if names are not UTF-8
        table = with_missing_cells(path, table)
        mixed = [] if separator == "," else _columns_of_numbers(table)
        if not mixed:
            return table, separator, decimal_point
    raise ValueError(
        f"{str(path)!r} writes numbers with decimal commas and with decimal points (column {mixed[0]!r}): "
        "save it with points alone."
    )


def csv_options(
    separator: str, decimal_point: str
) -> tuple[pyarrow.csv.ParseOptions, pyarrow.csv.ConvertOptions]:
    """Return Arrow's options for fields and entries."""
    # "NA" in a column of text is a category; only an empty cell is a missing one
    entries = pyarrow.csv.ConvertOptions(strings_can_be_null=False, decimal_point=decimal_point)
    return pyarrow.csv.ParseOptions(delimiter=separator, newlines_in_values=True), entries


@contextmanager
def parsing(path: Path) -> Iterator[None]:
    """Explain an error while reading a CSV file in one sentence."""
    try:
        yield
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        if isinstance(error, UnicodeDecodeError) or "invalid UTF8" in str(error):
            raise ValueError(_encoding(path)) from error
        raise ValueError(f"{str(path)!r} cannot be read as CSV: {_reason(error)}") from error


def with_missing_cells(path: Path, table: pa.Table) -> pa.Table:
    """Return a table whose empty cells are missing in columns of text, too."""
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
    """Describe which byte of a file is not UTF-8."""
    where = ""
    decoder = codecs.getincrementaldecoder("utf-8")()
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            try:
                decoder.decode(line)
            except UnicodeDecodeError as error:
                where = f" line {number} has the byte 0x{error.object[error.start]:02x};"
                break
    return f"{str(path)!r} is not UTF-8 text:{where} convert it, for example with `iconv -f latin1 -t utf-8`."


def _separator(path: Path) -> str:
    """Find the separator of a file's fields; refuse a file that is not text."""
    size = path.stat().st_size
    if size == 0:
        raise ValueError(f"{str(path)!r} is empty.")
    with path.open("rb") as file:
        start = file.read(_START)
    for known, what in _STARTS.items():
        if start.startswith(known):
            raise ValueError(f"{str(path)!r} {what}")
    if start[:4].count(0) > 1:  # UTF-16 or UTF-32 without a mark
        raise ValueError(f"{str(path)!r} {_UTF_16}")
    text = start.decode("utf-8-sig", errors="replace")
    whole = size <= _START
    if _fields(text, ",", whole) > 1:
        return ","
    fitting = [separator for separator in _OTHER_SEPARATORS if _fields(text, separator, whole) > 1]
    if len(fitting) == 1:
        return fitting[0]
    header = next((line for line in text.splitlines() if line.strip()), "")
    for separator, name in _OTHER_SEPARATORS.items():
        if separator in header and "," not in header:
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


def _columns_of_numbers(table: pa.Table) -> list[str]:
    """List the columns that were read as text, but hold numbers with a decimal comma or point."""
    missing = pa.array([None, *pyarrow.csv.ConvertOptions().null_values], pa.string())  # as in any number
    names = []
    for name, column in zip(table.column_names, table.columns, strict=True):
        if not pa.types.is_string(column.type):
            continue
        known = column.filter(pc.invert(pc.is_in(column, value_set=missing)))
        numbers = pc.all(pc.match_substring_regex(known, _NUMBER), min_count=0).as_py()
        if numbers and pc.any(pc.match_substring_regex(known, "[.,]"), min_count=0).as_py():
            names.append(name)
    return names


def write_csv(table: pa.Table, path: Path) -> None:
    """Write a CSV file; names and text that a spreadsheet would run as a formula are refused."""
    columns = [
        column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column
        for column in table.columns
    ]
    for name, column in zip(table.column_names, columns, strict=True):
        formulas = [name] if name.startswith(_FORMULA_STARTS) else []
        if is_text(column.type):
            begins = pc.is_in(pc.utf8_slice_codeunits(column, 0, 1), pa.array(_FORMULA_STARTS, column.type))
            formulas += column.filter(begins).slice(0, 1).to_pylist()
        if formulas:
            raise ValueError(
                f"Column {name!r} has text that a spreadsheet may run as a formula ({formulas[0][:30]!r}): "
                "write a file that ends in .parquet, or change the text."
            )
    pyarrow.csv.write_csv(pa.Table.from_arrays(columns, names=table.column_names), path)


def data_files(paths: Paths) -> list[Path]:
    """List the files of a table, sorted by path, or explain why there are none.

    Names that begin with ``_`` or ``.`` are data only if they are given explicitly. Files of other endings
    are left out, with a warning.
    """
    if not isinstance(paths, str | os.PathLike | Iterable) or hasattr(paths, "columns"):
        raise TypeError(
            f"`paths` must name files or directories, got {type(paths).__name__}: write a table to a file "
            "first."
        )
    given = [paths] if isinstance(paths, str | os.PathLike) else list(paths)
    wrong = [path for path in given if not isinstance(path, str | os.PathLike)]
    if wrong:
        raise TypeError(f"`paths` must hold paths, got {wrong[0]!r}.")
    if not given:
        raise ValueError("`paths` must name at least one file, directory or pattern.")
    try:
        files = [path for each in given for path in _meant_by(os.fspath(each))]
    except OSError as error:
        raise ValueError(f"{error.filename!r} cannot be read: {error.strerror}.") from error
    twice = _repeated(files)
    if twice:
        raise ValueError(f"{list_names(twice)} would be read twice: list it once.")
    kinds = {ending: [path for path in files if ending_of(path) == ending] for ending in ENDINGS}
    if all(kinds.values()):
        named = " and ".join(repr(str(of_kind[0])) for of_kind in kinds.values())
        raise ValueError(
            f"A table is in CSV or in Parquet files, not in both: {named}; name those of one kind, for "
            "example with the pattern '*.parquet'."
        )
    return sorted(files, key=lambda path: path.parts)


def _meant_by(name: str) -> list[Path]:
    """List the files that one path or pattern matches; leave out those of other endings, with a warning."""
    path = Path(name)
    if path.is_dir():
        inside = [file for file in path.iterdir() if not _is_hidden(file.name)]
        folders = sorted(file.name for file in inside if file.is_dir())
        if folders:
            raise ValueError(
                f"{name!r} has directories inside it ({list_names([repr(folder) for folder in folders])}): "
                f"name the files with a pattern, for example {str(path / '*' / '*.parquet')!r}."
            )
        nothing = f"The directory {name!r} has no file that ends in .csv or .parquet."
    elif path.exists():
        return [path]
    elif is_pattern(name):
        fixed = _fixed_parts(path)
        matches = Path(*path.parts[:fixed]).glob(str(Path(*path.parts[fixed:])))
        inside = [match for match in matches if not any(map(_is_hidden, match.parts[fixed:]))]
        nothing = f"{name!r} matches no file that ends in .csv or .parquet."
    else:
        raise ValueError(f"There is no file or directory {name!r}.")
    found = [file for file in inside if file.is_file()]
    known = [file for file in found if file.suffix.lower() in ENDINGS]
    others = sorted(file.name for file in found if file.suffix.lower() not in ENDINGS)
    if known and others:
        warn_user(
            f"{list_names([repr(other) for other in others])} of {name!r} are left out: only files that end "
            "in .csv or .parquet are read."
        )
    known += [file for folder in inside if folder.is_dir() for file in _meant_by(str(folder))]
    if not known:
        raise ValueError(nothing)
    return known


def _is_hidden(name: str) -> bool:
    return name.startswith(("_", "."))


def _fixed_parts(path: Path) -> int:
    """Count the parts of a path before the first that is a pattern."""
    return next((place for place, part in enumerate(path.parts) if is_pattern(part)), len(path.parts))


def reader_of(paths: Paths, out: Path) -> str | None:
    """Return the directory or pattern that would also match the output, once it is written.

    Examples
    --------
    >>> reader_of(["in/a.csv", "data/*"], Path("data/values")), reader_of("data/*", Path("data/_values"))
    ('data/*', None)
    """
    for name in [paths] if isinstance(paths, str | os.PathLike) else paths:
        given = Path(name)
        fixed = len(given.parts) if given.exists() else _fixed_parts(given)
        base, pattern = Path(*given.parts[:fixed]).resolve(), "/".join(given.parts[fixed:])
        if not out.resolve().is_relative_to(base):
            continue
        inside = out.resolve().relative_to(base).parts
        if any(map(_is_hidden, inside)):
            continue
        # a pattern may match the output, its directory, or files in it
        for parts in (inside[:-1], inside, (*inside, "part-00000.parquet")):
            as_deep = "**" in pattern or len(parts) == len(given.parts) - fixed
            if as_deep and fnmatchcase("/".join(parts), pattern.replace("**/", "*")):
                return os.fspath(name)
    return None
