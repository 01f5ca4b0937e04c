"""What a single row holds, for pages whose reader asked to see it."""

from __future__ import annotations

from typing import Any

from fado.exploration._material import Material
from fado.tabular import MISSING, Column

__all__ = ["row_contents"]


def row_contents(material: Material, row: int) -> dict[str, Any]:
    """Give the label and the features of one explored row as text."""
    place = int(material.rows[row])
    return {
        "label": _label(material, row),
        "features": [[column.name, _cell(column, place)] for column in material.table.columns],
    }


def _label(material: Material, row: int) -> str:
    label = material.target.labels[row]
    return str(material.target.classes[label]) if material.target.kind == "classes" else f"{label:.6g}"


def _cell(column: Column, row: int) -> str:
    value = column.data[row].as_py()
    if value is None or value != value:
        return MISSING
    return str(value) if column.levels is None else column.levels[value]
