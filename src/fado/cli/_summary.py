"""The tables that commands print."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from fado.tabular import Groups, Variable

__all__ = ["in_shown_order", "print_settings", "print_table", "table_text"]

WIDTH = 80  # of text that goes to no terminal
_BOUND = "\N{NO-BREAK SPACE}"
UNBROKEN = 10_000  # a table that goes to no terminal is as wide as its longest name


def print_table(title: str, header: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """Print a table to stdout, as `table_text` gives it."""
    print(table_text(title, header, rows), end="")


def table_text(title: str, header: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """Give a table as text; whatever the cells contain stands as it is.

    Parameters
    ----------
    title : str
        What stands above it.
    header : sequence of str
        The columns' names; a line break keeps a column of numbers narrow.
    rows : sequence of sequences
        The cells; on a narrow terminal the first of each row is folded and numbers are not.
    """
    table = Table(box=SIMPLE_HEAD, collapse_padding=True)
    for number, name in enumerate(header):
        if number == 0:
            table.add_column(Text(name), min_width=5, overflow="fold", vertical="bottom")
        else:
            table.add_column(Text(name), justify="right", min_width=5, no_wrap=True, vertical="bottom")
    for row in rows:
        table.add_row(*(Text(_cell(value)) for value in row))
    console = Console()
    if not console.is_terminal:
        console.width = UNBROKEN
    with console.capture() as captured:  # printed by us, since rich leaves the program when a pipe is closed
        if title:
            console.print(Text(title, style="bold"))
        console.print(table)
    return captured.get()


def print_settings(settings: Mapping[str, Any]) -> None:
    """Print what a command did its work with, a setting that has no value left out."""
    told = ", ".join(f"{name}{_BOUND}{value}" for name, value in settings.items() if value is not None)
    lines = textwrap.fill(f"Settings: {told}.", WIDTH, subsequent_indent="  ", break_on_hyphens=False)
    print(lines.replace(_BOUND, " "))


def in_shown_order(groups: Groups, attributes: Sequence[Variable]) -> list[int]:
    """Order groups as tables show them: the largest first, parts of a range of numbers as they follow."""
    if any(attribute.kind == "continuous" for attribute in attributes):
        return list(range(len(groups)))
    return [int(group) for group in np.argsort(-groups.sizes, kind="stable")]


def _cell(value: Any) -> str:
    if isinstance(value, float | np.floating):
        return "-" if np.isnan(value) else f"{value:.3f}"
    if isinstance(value, int | np.integer):
        return f"{value:,}"
    return str(value)
