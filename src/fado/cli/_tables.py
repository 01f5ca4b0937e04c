"""Tables into files, by their ending: CSV or Parquet."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet

from fado._storage import check_replaceable, replacing
from fado.tabular import ENDINGS, ending_of, write_csv

__all__ = ["check_apart", "check_output", "write_table"]


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
    with replacing(path, "The table") as temporary:
        if ending_of(path) == ".csv":
            write_csv(table, temporary)
        else:
            pyarrow.parquet.write_table(table, temporary, compression="zstd")
