"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

__all__ = [
    "Alpha",
    "Data",
    "Drop",
    "Exclude",
    "Jobs",
    "Out",
    "Positive",
    "Protected",
    "Seed",
    "Target",
    "Values",
    "ValuesIfUsed",
    "Weight",
]

Data = Annotated[Path, typer.Argument(metavar="DATA", help="The table, CSV or Parquet by its ending.")]
Target = Annotated[str, typer.Option(metavar="COL", help="The column to be predicted.")]
Protected = Annotated[
    list[str],
    typer.Option(
        metavar='COL|"COL>=50"',
        help="A protected attribute: a column, or a comparison of one. May be repeated.",
    ),
]
Positive = Annotated[str | None, typer.Option(metavar="LABEL", help="The target's positive label.")]
Exclude = Annotated[
    list[str] | None,
    typer.Option(metavar="COL", help="A column that models of protected attributes must not see."),
]
Drop = Annotated[
    list[str] | None, typer.Option(metavar="COL", help="A column that no model may see, like an id.")
]
Weight = Annotated[
    str | None,
    typer.Option(metavar="COL", help="What each row counts, like survey weights; no model sees this column."),
]
Seed = Annotated[int, typer.Option(metavar="N", min=0, help="The same seed gives the same result.")]
Jobs = Annotated[int | None, typer.Option(metavar="N", help="Fits side by side; all cores if not given.")]
Out = Annotated[Path, typer.Option(metavar="FILE", help="Where to write; CSV or Parquet by its ending.")]
_VALUES = "The values of the rows, as `fado value` writes them"
Values = Annotated[Path, typer.Option(metavar="FILE", help=f"{_VALUES}.")]
ValuesIfUsed = Annotated[
    Path | None, typer.Option(metavar="FILE", help=f"{_VALUES}; for methods that use values.")
]
Alpha = Annotated[
    float | None,
    typer.Option(
        metavar="A",
        help="Weight of performance against fairness in a utility, 0 to 1; for methods that use values.",
    ),
]
