"""Which columns give a protected attribute away, and which matter for the target."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from fado.exploration._conditions import BinnedColumn
from fado.exploration._material import Attribute, Material
from fado.exploration._wording import percent, quoted
from fado.tabular import Variable

__all__ = ["columns_part", "explained"]

MOST_COLUMNS = 500
MOST_DRAWN = 20


def columns_part(material: Material, attribute: Attribute, binned: Sequence[BinnedColumn]) -> dict[str, Any]:
    """Measure every feature, and the target, by what it says of the attribute and of the target.

    Returns
    -------
    dict
        ``basis`` ("gains": shares of the split gain of the models that made the values; "alone": the variance
        that the column explains by itself), the ``columns``, strongest for the attribute first, and the
        places of those that are ``drawn``: they matter most, for the attribute or for the target.
    """
    features = [(column, column.feature) for column in binned if column.feature is not None]
    excluded = material.excluded_columns(attribute.name)
    gains_y, gains_z = (_gains(material, name) for name in ("y", attribute.name))
    by_gains = gains_y is not None and gains_z is not None
    rows: list[dict[str, Any]] = []
    for column, position in features:
        rows.append(
            {
                "name": column.name,
                "is_target": False,
                "left_out": column.name in excluded or position == attribute.position,
                "alone_y": explained(column.codes, material.target),
                "alone_z": explained(column.codes, attribute.variable),
                "gain_y": None if gains_y is None else gains_y[position],
                "gain_z": None if gains_z is None else gains_z[position],
            }
        )
    if material.valuation.provenance.settings.get("z_sees_target", True):
        rows.append(_target_row(material, attribute, gains_z))
    basis = "gain" if by_gains else "alone"
    rows.sort(key=lambda row: (row["left_out"], -row[f"{basis}_z"], -(row[f"{basis}_y"] or 0.0)))
    return {
        "basis": "gains" if by_gains else "alone",
        "columns": rows[:MOST_COLUMNS],
        "not_shown": max(0, len(rows) - MOST_COLUMNS),
        "drawn": _drawn(rows[:MOST_COLUMNS], basis),
        "sentence": _sentence(rows, basis, attribute.name),
    }


def explained(codes: npt.NDArray[np.integer], variable: Variable) -> float:
    """Give the share of a variable's variance that a column explains alone, less what chance would.

    For classes this is Goodman and Kruskal's tau, for numbers the squared correlation ratio; both adjusted
    for the number of parts the column is cut into.

    Examples
    --------
    >>> import numpy as np
    >>> z = Variable("z", "classes", np.repeat([0, 1], 50).astype(np.int32), (0, 1))
    >>> explained(np.repeat([3, 7], 50), z), explained(np.tile([3, 7], 50), z)
    (1.0, 0.0)
    """
    known = variable.known
    _, parts = np.unique(codes[known], return_inverse=True)
    labels = variable.labels[known]
    n_rows, n_parts = len(labels), int(parts.max()) + 1 if len(parts) else 0
    if n_parts < 2 or n_rows <= n_parts:
        return 0.0
    if variable.kind == "classes":
        n_classes = len(variable.classes)
        cells = np.bincount(parts * n_classes + labels, minlength=n_parts * n_classes)
        table = cells.reshape(n_parts, n_classes).astype(np.float64)
        chance = np.square(table.sum(axis=0)).sum() / n_rows
        between, total = (np.square(table).sum(axis=1) / table.sum(axis=1)).sum() - chance, n_rows - chance
    else:
        centred = labels - labels.mean()
        sums, counts = np.bincount(parts, centred), np.bincount(parts)
        between, total = (np.square(sums) / counts).sum(), np.square(centred).sum()
    if total <= 0:
        return 0.0
    left = (1.0 - between / total) * (n_rows - 1) / (n_rows - n_parts)
    return float(min(max(1.0 - left, 0.0), 1.0))


def _gains(material: Material, variable: str) -> list[float] | None:
    """Give the shares of the split gain, if the values' models told and were fitted to these columns."""
    told = material.valuation.provenance.split_gains
    if told is None or list(told.columns) != material.table.names or variable not in told.shares:
        return None
    return list(told.shares[variable])


def _target_row(material: Material, attribute: Attribute, gains_z: list[float] | None) -> dict[str, Any]:
    """Describe the target as one of the columns that the attribute's models see."""
    target = material.target
    if target.kind == "classes":
        codes = target.labels
    else:
        edges = np.quantile(target.labels, np.linspace(0, 1, 11)[1:-1])
        codes = np.searchsorted(edges, target.labels).astype(np.int32)
    return {
        "name": material.target_name,
        "is_target": True,
        "left_out": False,
        "alone_y": None,
        "alone_z": explained(codes, attribute.variable),
        "gain_y": None,
        "gain_z": None if gains_z is None else gains_z[-1],
    }


def _drawn(rows: list[dict[str, Any]], basis: str) -> list[int]:
    """Choose the columns of the highest shares, each by the larger of its two, as parts of the highest."""
    of_both = np.array([[row[f"{basis}_{which}"] or 0.0 for which in "zy"] for row in rows]).reshape(-1, 2)
    weight = (of_both / np.maximum(of_both.max(axis=0, initial=0.0), 1e-12)).max(axis=1)
    return sorted(int(row) for row in np.argsort(-weight, kind="stable")[:MOST_DRAWN])


def _sentence(rows: list[dict[str, Any]], basis: str, attribute: str) -> str:
    seen = [row for row in rows if not row["left_out"]]
    if not seen or not seen[0][f"{basis}_z"]:
        return f"No column says anything about {attribute}."
    first = seen[0]
    how = (
        f"{percent(first['gain_z'])} of the gain of its models' splits"
        if basis == "gain"
        else f"{percent(first['alone_z'])} of its variance explained by this column alone"
    )
    return f"{quoted(first['name'])} gives {attribute} away most: {how}."
