"""The tables that commands print."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

__all__ = ["groups_of", "positives_of", "print_table"]

MISSING = "(missing)"


def print_table(title: str, header: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """Print a table to stdout; whatever the cells contain is printed as it is."""
    table = Table(title=Text(title), title_justify="left", title_style="bold", box=SIMPLE_HEAD)
    for number, name in enumerate(header):
        table.add_column(Text(name), justify="left" if number == 0 else "right", min_width=5)
    for row in rows:
        table.add_row(*(Text(_cell(value)) for value in row))
    console = Console()
    if not console.is_terminal:
        console.width = 120  # a file or a pipe has no width of its own
    console.print(table)


def _cell(value: Any) -> str:
    if isinstance(value, float | np.floating):
        return "-" if np.isnan(value) else f"{value:.3f}"
    if isinstance(value, int | np.integer):
        return f"{value:,}"
    return str(value)


def groups_of(attribute: pd.Series, most: int = 20) -> Mapping[str, npt.NDArray[np.bool_]]:
    """Split rows by the classes of an attribute; a continuous one by its quartiles."""
    missing = attribute.isna().to_numpy()
    if pd.api.types.is_numeric_dtype(attribute) and attribute.nunique() > most:
        parts = pd.qcut(attribute.astype(float), 4, duplicates="drop")
    else:
        parts = attribute.astype(object)
    groups = {}
    for name in sorted(parts[~missing].unique(), key=lambda value: (str(type(value)), value)):
        groups[str(name)] = (parts == name).fillna(False).to_numpy(dtype=bool)
    if missing.any():
        groups[MISSING] = missing
    return groups


def positives_of(target: pd.Series, positive: str | None) -> npt.NDArray[np.bool_] | None:
    """Mark the rows with the positive label; without one, the larger of two labels; None if there is none."""
    labels = target.dropna().unique()
    if positive is not None:
        matching = [label for label in labels if str(label) == positive or _same_number(label, positive)]
        if not matching:
            raise ValueError(
                f"`--positive {positive}` is not a label of the target; it has {_shown(labels)}."
            )
        return (target == matching[0]).to_numpy(dtype=bool)
    if len(labels) != 2:
        return None
    return (target == max(labels)).to_numpy(dtype=bool)


def _same_number(label: Any, text: str) -> bool:
    try:
        return float(label) == float(text)
    except (TypeError, ValueError):
        return False


def _shown(labels: npt.NDArray[Any]) -> str:
    return ", ".join(map(repr, map(str, labels[:8]))) + (", ..." if len(labels) > 8 else "")
