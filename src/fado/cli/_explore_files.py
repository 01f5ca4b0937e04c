"""`fado explore` of tables in files that need not fit into memory."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fado._messages import list_names
from fado.tabular import TARGET, label_named
from fado.valuation import read_lazily

if TYPE_CHECKING:
    from fado.exploration import Exploration

__all__ = ["MemoryOfSample", "SampleRows", "explore_by_files"]

MemoryOfSample = Annotated[
    str | None,
    typer.Option(
        "--memory",
        metavar="SIZE",
        show_default="three quarters of what is free",
        help="Read the table part by part, use no more memory than this, such as 4GB, and explore a "
        "sample of its rows.",
    ),
]
SampleRows = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        show_default="200000",
        help="For a table that is read part by part: how many rows, drawn at random, are explored.",
    ),
]


def explore_by_files(
    data: Path,
    values: Path,
    *,
    positive: str | None,
    sample_rows: int | None,
    settings: Mapping[str, Any],
    useless: Mapping[str, Any],
) -> Exploration:
    """Explore a sample of a table that is read part by part.

    Parameters
    ----------
    data : Path
        A file, a directory or a pattern.
    values : Path
        A directory of parts, or a Parquet file.
    positive : str or None
        The positive label, as the command line has it.
    sample_rows : int or None
        How many rows are explored.
    settings : mapping
        What else `fado.explore_files` takes.
    useless : mapping
        Options that are not for this; None or False where they were not given.
    """
    from fado import explore_files  # slow to import, and other commands need none

    given = [f"`{option}`" for option, own in useless.items() if own]
    if given:
        raise ValueError(
            f"A table that is read part by part is explored by a sample: leave out {list_names(given)}, or "
            "explore one file in memory, without `--memory` and `--sample-rows`."
        )
    asked = dict(settings) if sample_rows is None else {**settings, "sample_rows": sample_rows}
    return explore_files(data, values=values, pos_label=_label(values, positive), **asked)


def _label(values: Path, positive: str | None) -> Any:
    """Find the label that is meant among those that the values tell of."""
    is_lazy = values.is_dir() or (values.is_file() and values.suffix.lower() == ".parquet")
    if positive is None or not is_lazy:  # `explore_files` says what is wrong with others
        return None
    note = read_lazily(values).provenance.variables.get(TARGET)
    return label_named(note.classes, positive, "--positive") if note and note.classes else positive
