"""Rows into Parquet, as a file or as a directory of parts: whole or not at all."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain, islice
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet

from fado._storage import replacing, replacing_directory
from fado.tabular import in_blocks
from fado.valuation.bulk import part_name

__all__ = ["row_group_rows", "write_rows"]

_ROWS_OF_A_PART = 1 << 20
_MOST_ROWS, _LEAST_ROWS = 1 << 17, 1 << 10  # of a row group
_CELLS = 1 << 21  # of a row group, about


def row_group_rows(n_columns: int) -> int:
    """Say how many rows a row group has: of a wide table fewer, and never by memory.

    Examples
    --------
    >>> row_group_rows(1), row_group_rows(100), row_group_rows(10**6)
    (131072, 16384, 1024)
    """
    rows = _MOST_ROWS
    while rows > _LEAST_ROWS and rows * n_columns > _CELLS:
        rows //= 2
    return rows


def write_rows(out: Path, tables: Iterable[pa.Table], schema: pa.Schema) -> None:
    """Write rows as they come.

    Parameters
    ----------
    out : Path
        A file that ends in ``.parquet``; else a directory, for parts of about a million rows each.
    tables : iterable of pyarrow.Table
        The rows, in their order; how they are cut does not show.
    schema : pyarrow.Schema
        Of each.
    """
    rows = row_group_rows(len(schema.names))
    groups = in_blocks(tables, rows)
    if out.suffix.lower() == ".parquet":
        with replacing(out, "The rows") as temporary:
            _write(temporary, groups, schema)
        return
    with replacing_directory(out, "The rows") as folder:
        for number, part in enumerate(_parts(groups, _ROWS_OF_A_PART // rows, schema)):
            with replacing(folder / part_name(number), "The rows", tidy=False) as temporary:
                _write(temporary, part, schema)


def _parts(
    groups: Iterator[pa.Table], groups_of_a_part: int, schema: pa.Schema
) -> Iterator[Iterator[pa.Table]]:
    """Cut row groups into parts; there is one even of no rows."""
    first = next(groups, schema.empty_table())
    while first is not None:
        yield chain([first], islice(groups, groups_of_a_part - 1))
        first = next(groups, None)


def _write(path: Path, groups: Iterable[pa.Table], schema: pa.Schema) -> None:
    with pa.parquet.ParquetWriter(path, schema, compression="zstd", write_page_checksum=True) as writer:
        for group in groups:
            writer.write_table(group, row_group_size=max(1, group.num_rows))
