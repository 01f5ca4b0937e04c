"""Tables into files, by their ending: CSV or Parquet."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet

from fado._files import check_replaceable, replacing
from fado.tabular import ENDINGS, ending_of

__all__ = ["check_apart", "check_output", "write_table"]

_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\0")


def check_output(path: Path, inputs: Sequence[Path], endings: Sequence[str] = ENDINGS) -> None:
    """Refuse, before any work is done, an output that cannot be written or would replace an input."""
    if path.suffix.lower() not in endings:
        raise ValueError(f"`--out` must end in {' or '.join(endings)}, got {str(path)!r}.")
    parent = path.parent
    if not parent.is_dir():
        raise ValueError(f"The directory {str(parent)!r} does not exist: create it first.")
    if not os.access(parent, os.W_OK):
        raise ValueError(f"The directory {str(parent)!r} is not writable.")
    check_replaceable(path)
    if path.exists() and any(given.exists() and path.samefile(given) for given in inputs):
        raise ValueError(f"`--out` is {str(path)!r}, which is read as well: name another file.")


def check_apart(out: Path, folder: Path, named: str) -> None:
    """Refuse, before any work is done, an output and a directory that is kept if one lies in the other."""
    first, second = out.resolve(), folder.resolve()
    if first.is_relative_to(second) or second.is_relative_to(first):
        same = "the same place" if first == second else "one inside the other"
        raise ValueError(
            f"`--out` {str(out)!r} and {named} {str(folder)!r} are {same}: name another place for one."
        )


def write_table(table: pa.Table, path: Path) -> None:
    """Write a CSV or Parquet file, whole or not at all."""
    if ending_of(path) == ".csv":
        table = _decoded(table)
        _refuse_formulas(table)
    with replacing(path, "The table") as temporary:
        if ending_of(path) == ".csv":
            pyarrow.csv.write_csv(table, temporary)
        else:
            pyarrow.parquet.write_table(table, temporary, compression="zstd")


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
                "write Parquet, with `--out` ending in .parquet, or change the text."
            )


def _formulas(column: pa.ChunkedArray) -> list[str]:
    """Find an entry that begins like a formula, if there is one."""
    if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
        return []
    begins = pc.is_in(pc.utf8_slice_codeunits(column, 0, 1), pa.array(_FORMULA_STARTS, column.type))
    return column.filter(begins).slice(0, 1).to_pylist()
