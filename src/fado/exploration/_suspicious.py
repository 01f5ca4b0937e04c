"""Suspicious rows: labels that models confidently contradict, and how unequal that is over groups."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from fado.exploration import _intervals
from fado.exploration._groups import FEWEST_MEMBERS
from fado.exploration._labels import label_groups
from fado.exploration._material import Attribute, Material
from fado.exploration._slices import SliceFinder
from fado.exploration._wording import percent, quoted
from fado.tabular import MISSING

__all__ = ["suspicious_part"]

FloatArray = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

CONTRADICTED = 0.1  # probability of the row's own label, at the most
MOST_ROWS = 10  # listed per group


def suspicious_part(
    material: Material, attribute: Attribute, finder: SliceFinder, *, show_rows: bool
) -> dict[str, Any] | None:
    """Count the rows whose label the models contradict, per group and label, and name the worst.

    Returns
    -------
    dict or None
        None for values that came without the models' agreement with the labels.
    """
    agreement = material.agreement("y")
    if agreement is None:
        return None
    limit = CONTRADICTED if material.target.kind == "classes" else _fence(agreement)
    contradicted = agreement <= limit
    groups = attribute.groups
    per_group = [
        _counted(material, name, groups.members(group), agreement, contradicted)
        for group, name in enumerate(groups.names)
    ]
    return {
        "limit": limit,
        "groups": per_group,
        "labels": _per_label(material, attribute, contradicted),
        "sentence": _sentence(per_group, attribute.spoken),
        "rows": [
            {
                "group": name,
                "rows": _worst(material, groups.members(group), agreement, contradicted, show_rows),
            }
            for group, name in enumerate(groups.names)
        ],
        "least_agreement": _slices(material, attribute, finder, contradicted, 1.0 - agreement),
        "beyond_doubt": _slices(material, attribute, finder, contradicted, _expected(agreement) - agreement)
        if _is_binary(material)
        else None,
    }


def _is_binary(material: Material) -> bool:
    return material.target.kind == "classes" and len(material.target.classes) == 2


def _expected(agreement: FloatArray) -> FloatArray:
    """Give the agreement to expect of models that are as often right as they say, for two labels."""
    return np.square(agreement) + np.square(1.0 - agreement)


def _fence(agreement: FloatArray) -> float:
    """Give Tukey's far fence: an error beyond it is out of line with all others."""
    low, high = np.quantile(agreement, [0.25, 0.75])
    return float(low - 3.0 * (high - low))


def _counted(
    material: Material, name: str, members: Bools, agreement: FloatArray, contradicted: Bools
) -> dict[str, Any]:
    found = _intervals.share(int((members & contradicted).sum()), int(members.sum()))
    counted: dict[str, Any] = {
        "group": name,
        "rows": int(members.sum()),
        "contradicted": int((members & contradicted).sum()),
        "share": found.number,
        "low": found.low,
        "high": found.high,
        "expected": None,
    }
    if _is_binary(material):
        # Models that are sure of a row and right about how sure they are still miss some.
        doubt = np.minimum(agreement, 1.0 - agreement)[members]
        counted["expected"] = float(doubt[doubt <= CONTRADICTED].sum() / members.sum())
    return counted


def _per_label(material: Material, attribute: Attribute, contradicted: Bools) -> list[dict[str, Any]]:
    labels, groups = label_groups(material), attribute.groups
    cells = []
    for group, group_name in enumerate(groups.names):
        for label, label_name in enumerate(labels.names):
            members = groups.members(group) & labels.members(label)
            if members.sum() >= FEWEST_MEMBERS:
                found = _intervals.share(int((members & contradicted).sum()), int(members.sum()))
                cells.append(
                    {"group": group_name, "label": label_name, "rows": int(members.sum()),
                     "share": found.number, "low": found.low, "high": found.high}
                )  # fmt: skip
    return cells


def _worst(
    material: Material, members: Bools, agreement: FloatArray, contradicted: Bools, show_rows: bool
) -> list[dict[str, Any]]:
    rows = np.flatnonzero(members & contradicted)
    rows = rows[np.argsort(agreement[rows], kind="stable")[:MOST_ROWS]]
    listed: list[dict[str, Any]] = [
        {"row": int(material.rows[row]), "agreement": float(agreement[row])} for row in rows
    ]
    if show_rows:
        for entry, row in zip(listed, rows, strict=True):
            entry["label"] = _label(material, int(row))
            entry["features"] = [
                [column.name, _cell(column, entry["row"])] for column in material.table.columns
            ]
    return listed


def _label(material: Material, row: int) -> str:
    label = material.target.labels[row]
    return str(material.target.classes[label]) if material.target.kind == "classes" else f"{label:.6g}"


def _cell(column: Any, row: int) -> str:
    value = column.data[row].as_py()
    if value is None or value != value:
        return MISSING
    return str(value) if column.levels is None else column.levels[value]


def _slices(
    material: Material,
    attribute: Attribute,
    finder: SliceFinder,
    contradicted: Bools,
    target: FloatArray,
) -> list[dict[str, Any]]:
    agreement = material.valuation.field("agreement", "y")
    slices = []
    for one in finder.find(target, highest=True):
        rows = finder.rows(one)
        slices.append(
            finder.described(one, attribute.name, attribute.groups)
            | {
                "p_value": one.p_value,
                "mean_agreement": float(agreement[rows].mean()),
                "expected_agreement": float(_expected(agreement[rows]).mean())
                if _is_binary(material)
                else None,
                "contradicted_share": float(contradicted[rows].mean()),
            }
        )
    return slices


def _sentence(groups: list[dict[str, Any]], spoken: Sequence[str]) -> str:
    if not any(group["contradicted"] for group in groups):
        return "Models contradict no label confidently."
    shares = [group["share"] for group in groups]
    most, least = int(np.argmax(shares)), int(np.argmin(shares))
    if most == least:
        return f"Models confidently contradict {percent(shares[most])} of the labels."
    return (
        f"Models confidently contradict {percent(shares[most])} of the labels in {quoted(spoken[most])} "
        f"and {percent(shares[least])} in {quoted(spoken[least])}."
    )
