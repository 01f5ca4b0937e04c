"""Tables that are read part by part, on a command line."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from fado._memory import format_memory, free_memory
from fado.tabular import ENDINGS, is_pattern, open_source

__all__ = ["DataOrParts", "MemoryOfParts", "OutOrParts", "is_beyond_memory", "names_several"]

DataOrParts = Annotated[
    Path,
    typer.Argument(
        metavar="DATA",
        help="The table: a .csv or .parquet file; or a directory or a pattern of such files, which are read "
        "part by part.",
    ),
]
OutOrParts = Annotated[
    Path,
    typer.Option(
        metavar="FILE|DIR",
        help="The file to write, .csv or .parquet. For a table that is read part by part: a directory, or a "
        ".parquet file.",
    ),
]
MemoryOfParts = Annotated[
    str | None,
    typer.Option(
        metavar="SIZE",
        show_default="three quarters of what is free",
        help="Read the table part by part, and use no more memory than this, such as 4GB.",
    ),
]

_WORTH_A_LOOK = 0.05  # of the free memory: smaller files fit, whatever they hold
_TIMES_ITS_SIZE = 3.5  # what work on a table in memory takes; of valuing, by benchmarks/scale.py


def names_several(data: Path) -> bool:
    """Tell whether this is a directory, or a pattern of names."""
    return data.is_dir() or (not data.exists() and is_pattern(str(data)))


def is_beyond_memory(data: Path, doing: str) -> bool:
    """Tell whether work on a file in memory would take more than is free, and say so.

    Parameters
    ----------
    data : Path
        The file.
    doing : str
        What the work is called.
    """
    free = free_memory()
    if free is None or not data.is_file() or data.suffix.lower() not in ENDINGS:
        return False
    if data.stat().st_size < _WORTH_A_LOOK * free:
        return False
    source = open_source(data)
    need = _TIMES_ITS_SIZE * source.bytes_per_row * source.about_rows
    if need <= free:
        return False
    print(
        f"{doing} {data} in memory would take about {format_memory(need)}, and {format_memory(free)} are "
        "free: it is read part by part, as with `--memory`.",
        file=sys.stderr,
    )
    return True
