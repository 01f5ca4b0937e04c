"""Tables from files, by their ending: CSV or Parquet."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet

from fado._messages import list_names, warn_user
from fado.tabular._csv import read_csv, reason_of
from fado.tabular._index import named_index, without_index

__all__ = ["ENDINGS", "check_distinct", "ending_of", "opened_parquet", "read_table", "tell_index"]

ENDINGS = (".csv", ".parquet")
_PAGES = 1 << 18  # bytes of a column that are read at once, page by page
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
    check_distinct(path, table.column_names)
    if table.num_rows == 0:
        raise ValueError(f"{str(path)!r} has no rows.")
    tell_index(path, named_index(table))
    return without_index(table)


def ending_of(path: Path) -> str:
    """Give a file's ending, or say that its format is not known."""
    ending = path.suffix.lower()
    if ending not in ENDINGS:
        raise ValueError(f"{str(path)!r} must end in .csv or .parquet, so that its format is known.")
    return ending


def tell_index(path: Path, index: Sequence[str]) -> None:
    """Warn that a pandas table's index, if it has names, is read as columns."""
    if index:
        warn_user(
            f"The index {list_names([repr(name) for name in index])} of the pandas table in {str(path)!r} is "
            "read as a column: leave it out if models must not see it."
        )


def check_distinct(path: Path, names: list[str]) -> None:
    """Refuse names that stand for more than one column."""
    repeated = (
        sorted({name for name in names if names.count(name) > 1}) if len(set(names)) < len(names) else []
    )
    if repeated:
        called = list_names([repr(name) for name in repeated])
        raise ValueError(f"{str(path)!r} has more than one column called {called}: rename them.")


@contextmanager
def opened_parquet(path: Path, *, page_by_page: bool = False) -> Iterator[pyarrow.parquet.ParquetFile]:
    """Open a Parquet file for reading, and say in one sentence what is wrong with it.

    Parameters
    ----------
    path : pathlib.Path
        The file.
    page_by_page : bool
        Whether to hold little more of a row group in memory than the rows that are asked for.
    """
    _check_magic(path)
    buffers = {"pre_buffer": False, "buffer_size": _PAGES} if page_by_page else {}
    try:
        with pyarrow.parquet.ParquetFile(path, **buffers) as opened:
            check_distinct(path, opened.schema_arrow.names)
            yield opened
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise ValueError(f"{str(path)!r} cannot be read as Parquet: {reason_of(error)}") from error


def _read_parquet(path: Path) -> pa.Table:
    with opened_parquet(path) as opened:
        return opened.read()


def _check_magic(path: Path) -> None:
    """Refuse what is no Parquet file, or only the beginning of one."""
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
