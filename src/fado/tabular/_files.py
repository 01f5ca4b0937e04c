"""Tables from files, by their ending: CSV or Parquet."""

from __future__ import annotations

import re
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet

__all__ = ["ENDINGS", "ending_of", "read_table"]

ENDINGS = (".csv", ".parquet")
_LARGEST_BLOCK = 1 << 30  # types are inferred from the first block: let it be the whole file up to here


def read_table(path: Path) -> pa.Table:
    """Read a CSV or Parquet file, or say in one sentence what is wrong with it."""
    ending = ending_of(path)
    if not path.exists():
        raise ValueError(f"There is no file {str(path)!r}.")
    if not path.is_file():
        raise ValueError(f"{str(path)!r} is not a file.")
    table = _read_csv(path) if ending == ".csv" else _read_parquet(path)
    names = table.column_names
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise ValueError(f"{str(path)!r} has more than one column called {repeated[0]!r}: rename them.")
    if table.num_rows == 0:
        raise ValueError(f"{str(path)!r} has no rows.")
    index = [name for name in names if re.fullmatch(r"__index_level_\d+__", name)]  # pandas' row labels
    return table.drop_columns(index) if index else table


def ending_of(path: Path) -> str:
    """Give a file's ending, or say that its format is not known."""
    ending = path.suffix.lower()
    if ending not in ENDINGS:
        raise ValueError(f"{str(path)!r} must end in .csv or .parquet, so that its format is known.")
    return ending


def _read_parquet(path: Path) -> pa.Table:
    try:
        return pyarrow.parquet.read_table(path, partitioning=None)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise ValueError(f"{str(path)!r} cannot be read as Parquet: {_reason(error)}") from error


def _read_csv(path: Path) -> pa.Table:
    size = path.stat().st_size
    if size == 0:
        raise ValueError(f"{str(path)!r} is empty.")
    with path.open("rb") as file:
        start = file.read(4)
    if start[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise ValueError(
            f"{str(path)!r} is UTF-16 text: save it as UTF-8, for example with `iconv -t utf-8`."
        )
    try:
        table = pyarrow.csv.read_csv(
            path,
            read_options=pyarrow.csv.ReadOptions(block_size=min(size + 1, _LARGEST_BLOCK)),
            # "NA" in a column of text is a category; only an empty cell is a missing one
            convert_options=pyarrow.csv.ConvertOptions(strings_can_be_null=False),
        )
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise ValueError(f"{str(path)!r} cannot be read as CSV: {_reason(error)}") from error
    for j, field in enumerate(table.schema):
        if pa.types.is_binary(field.type):
            raise ValueError(
                f"{str(path)!r} is not UTF-8 text (column {field.name!r}): convert it, for example with "
                "`iconv -f latin1 -t utf-8`."
            )
        if pa.types.is_string(field.type):
            text = table.column(j)
            empty = pc.equal(text, "")
            if pc.any(empty).as_py():
                table = table.set_column(j, field.name, pc.if_else(empty, pa.scalar(None, field.type), text))
    return table


def _reason(error: Exception) -> str:
    text = " ".join(str(error).split())
    if "invalid UTF8" in text or isinstance(error, UnicodeDecodeError):
        return "it is not UTF-8 text; convert it, for example with `iconv -f latin1 -t utf-8`."
    text = text if len(text) <= 200 else text[:200] + "..."
    return text if text.endswith(".") else text + "."
