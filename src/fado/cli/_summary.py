"""The tables that commands print."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

__all__ = ["print_table"]


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
