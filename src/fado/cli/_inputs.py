"""From a table and the names on a command line to features, target and protected attributes."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
import pyarrow as pa

from fado.cli._tables import read_table
from fado.datasets._protected import protected_from, short_name, source_column

__all__ = ["Inputs", "read_inputs"]


@dataclass(frozen=True)
class Inputs:
    """What a command works on; `sources` names the column behind every protected attribute."""

    table: pa.Table
    features: pa.Table
    target: pa.ChunkedArray
    protected: dict[str, pd.Series]
    sources: dict[str, str]


def read_inputs(data: Path, target: str, protected: Sequence[str], drop: Sequence[str] = ()) -> Inputs:
    """Read a table and pick from it what the command line names."""
    table = read_table(data)
    for name in (target, *drop):
        _check_column(table, name)
    others = table.drop_columns([target])
    attributes, sources = {}, {}
    for expression in protected:
        name = short_name(others, expression)
        attributes[name] = protected_from(others, expression).rename(name)
        sources[name] = source_column(others, expression)
    features = others.drop_columns([name for name in drop if name != target])
    return Inputs(table, features, table.column(target), attributes, sources)


def _check_column(table: pa.Table, name: str) -> None:
    if name not in table.column_names:
        close = difflib.get_close_matches(name, table.column_names, n=3)
        hint = f"; did you mean {', '.join(map(repr, close))}?" if close else "."
        raise ValueError(f"The table has no column {name!r}{hint}")
