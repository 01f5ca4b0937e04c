"""Tables from files, by their ending: CSV or Parquet."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet

from fado._messages import list_names, warn_user
from fado.tabular._csv import read_csv, reason_of
from fado.tabular._index import named_index, without_index

__all__ = ["ENDINGS", "ending_of", "read_table"]

ENDINGS = (".csv", ".parquet")
_MAGIC = b"PAR1"  # with which Parquet files begin and end


def read_table(path: Path) -> pa.Table:
    """Read a CSV or Parquet file, or say in one sentence what is wrong with it.

    A CSV file is UTF-8 text with a line of names; commas separate its fields, or semicolons or tabs, if that
    is plain to see. An index without a name that pandas wrote to a Parquet file is left out. One with a name
    is a column of the file like any other, which may be named as a target or an attribute; a warning tells,
    since pandas would not show it among the columns.
    """
    ending = ending_of(path)
    if not path.exists():
        raise ValueError(f"There is no file {str(path)!r}.")
    if not path.is_file():
        raise ValueError(f"{str(path)!r} is not a file.")
    table = read_csv(path) if ending == ".csv" else _read_parquet(path)
    _check_distinct(path, table.column_names)
    if table.num_rows == 0:
        raise ValueError(f"{str(path)!r} has no rows.")
    index = named_index(table)
    if index:
        warn_user(
            f"The index {list_names([repr(name) for name in index])} of the pandas table in {str(path)!r} is "
            "read as a column: leave it out if models must not see it."
        )
    return without_index(table)


def ending_of(path: Path) -> str:
    """Give a file's ending, or say that its format is not known."""
    ending = path.suffix.lower()
    if ending not in ENDINGS:
        raise ValueError(f"{str(path)!r} must end in .csv or .parquet, so that its format is known.")
    return ending


def _read_parquet(path: Path) -> pa.Table:
    size = path.stat().st_size
    if size == 0:
        raise ValueError(f"{str(path)!r} is empty.")
    with path.open("rb") as file:
        start = file.read(len(_MAGIC))
        file.seek(max(size - len(_MAGIC), 0))
        end = file.read()
    if start != _MAGIC:
        raise ValueError(
            f"{str(path)!r} cannot be read as Parquet: it is none; if it is CSV, let its name end in .csv."
        )
    if end != _MAGIC:
        raise ValueError(
            f"{str(path)!r} cannot be read as Parquet: its end is missing; it is still being written, or was "
            "cut off."
        )
    try:
        with pyarrow.parquet.ParquetFile(path) as opened:
            _check_distinct(path, opened.schema_arrow.names)
            return opened.read()
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise ValueError(f"{str(path)!r} cannot be read as Parquet: {reason_of(error)}") from error


def _check_distinct(path: Path, names: list[str]) -> None:
    repeated = (
        sorted({name for name in names if names.count(name) > 1}) if len(set(names)) < len(names) else []
    )
    if repeated:
        called = list_names([repr(name) for name in repeated])
        raise ValueError(f"{str(path)!r} has more than one column called {called}: rename them.")
