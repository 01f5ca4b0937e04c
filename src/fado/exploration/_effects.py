"""What rows do to the model: effects per group and label, slices to remove, and the curve of removals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from fado.exploration._conditions import binned_target
from fado.exploration._effect_metrics import Metrics, level_now, metrics_of
from fado.exploration._groups import FEWEST_MEMBERS, ShownGroups
from fado.exploration._labels import label_groups
from fado.exploration._material import Attribute, Material
from fado.exploration._removal_search import RemovalSearch
from fado.exploration._rows import row_contents
from fado.exploration._search import rows_of
from fado.exploration._slices import SliceFinder

__all__ = ["SHARES", "cell_effects", "effects_part", "removal_curve"]

FloatArray = npt.NDArray[np.float64]

SHARES = (0.0, 0.005, 0.01, 0.02, 0.03, 0.04, 0.05, 0.06, 0.08, 0.1, 0.125, 0.15, 0.175, 0.2)
MOST_SLICES = 8
MOST_ROWS = 10


def effects_part(
    material: Material, attribute: Attribute, finder: SliceFinder, *, show_rows: bool
) -> dict[str, Any] | None:
    """Tell what rows do to the ratio between an attribute's groups, and to the model's performance.

    Returns
    -------
    dict or None
        None for values that are no effects. ``ratio`` and ``performance`` name the metrics (the latter is
        None where the target's values are no effects), and ``now`` holds where they stand, if that is known;
        ``cells``, ``slices``, ``curve`` and ``rows`` tell what removing rows is foretold to do.
    """
    valuation = material.valuation
    if not valuation.scales[attribute.name].is_signed:
        return None
    metrics = metrics_of(valuation, attribute.name)
    of_rows = [_weighted(material, name) for name in (attribute.name, "y")]
    times = 1.0 if material.sampled is None else material.sampled.times  # that a row stands for
    on_ratio = times * of_rows[0]
    on_performance = None if metrics.performance is None else times * of_rows[1]
    now = level_now(material, attribute)
    curve = removal_curve(on_ratio, on_performance, SHARES)
    return {
        "lead": _lead(metrics, attribute, is_sample=material.sampled is not None),
        "ratio": metrics.ratio,
        "performance": metrics.performance,
        "now": now,
        "harmful": int((on_ratio < 0).sum()),
        "cells": cell_effects(attribute.groups, label_groups(material), on_ratio, on_performance),
        "slices": [one | _levels(one, now) for one in _slices(material, finder, on_ratio, on_performance)],
        "curve": [one | _levels(one, now) for one in curve],
        "rows": _worst(
            material, of_rows[0], None if on_performance is None else of_rows[1], show_rows=show_rows
        ),
    }


def cell_effects(
    groups: ShownGroups, labels: ShownGroups, on_ratio: FloatArray, on_performance: FloatArray | None
) -> list[dict[str, Any]]:
    """Add up effects per group and label; small groups, and cells of fewer than ten rows, are left out.

    Parameters
    ----------
    groups, labels : ShownGroups
        The rows' groups and labels.
    on_ratio, on_performance : ndarray or None
        Each row's effects, times its weight.

    Examples
    --------
    >>> import numpy as np
    >>> from fado.exploration._groups import show_groups
    >>> groups = show_groups(np.repeat([0, 1], [25, 20]), ("a", "b"))
    >>> labels = show_groups(np.repeat([0, 1, 0], [15, 10, 20]), ("no", "yes"))
    >>> for cell in cell_effects(groups, labels, np.repeat([0.5, -1.0, 0.25], [15, 10, 20]), None):
    ...     print(cell["group"], cell["label"], cell["rows"], cell["ratio_effect"])
    a no 15 7.5
    a yes 10 -10.0
    b no 20 5.0
    """
    cells = []
    for group in groups.rated:
        for label, label_name in enumerate(labels.names):
            rows = groups.members(group) & labels.members(label)
            if rows.sum() >= FEWEST_MEMBERS:
                cells.append(
                    {
                        "group": groups.names[group],
                        "label": label_name,
                        "rows": int(rows.sum()),
                        "ratio_effect": float(on_ratio[rows].sum()),
                        "performance_effect": None
                        if on_performance is None
                        else float(on_performance[rows].sum()),
                    }
                )
    return cells


def removal_curve(
    on_ratio: FloatArray, on_performance: FloatArray | None, shares: Sequence[float]
) -> list[dict[str, Any]]:
    """Foretell what removing rows changes, the most harmful for the ratio first.

    Examples
    --------
    >>> import numpy as np
    >>> on_ratio, on_performance = np.array([0.3, -0.2, -0.5, 0.1]), np.array([0.0, 0.1, -0.1, 0.2])
    >>> for point in removal_curve(on_ratio, on_performance, [0, 0.25, 0.5]):
    ...     print(point["rows"], point["ratio_change"], point["performance_change"])
    0 0.0 0.0
    1 0.5 0.1
    2 0.7 0.0
    """
    order = np.argsort(on_ratio, kind="stable")
    ratio = _sums_upto(on_ratio[order])
    performance = None if on_performance is None else _sums_upto(on_performance[order])
    points = []
    for share in shares:
        rows = round(share * len(on_ratio))
        points.append(
            {
                "share": float(share),
                "rows": rows,
                "ratio_change": 0.0 - float(ratio[rows]),
                "performance_change": None if performance is None else 0.0 - float(performance[rows]),
            }
        )
    return points


def _sums_upto(effects: FloatArray) -> FloatArray:
    return np.concatenate([[0.0], np.cumsum(effects)])


def _weighted(material: Material, name: str) -> FloatArray:
    """Give the effects of whole rows: values are per unit of weight."""
    values = material.valuation[name]
    return values if material.weights is None else values * material.weights


def _levels(change: dict[str, Any], now: dict[str, float] | None) -> dict[str, float | None]:
    """Give where the metrics would stand after a change; a ratio cannot pass 1."""
    levels: dict[str, float | None] = {"ratio": None, "performance": None}
    if now is not None:
        levels["ratio"] = float(np.clip(now["ratio"] + change["ratio_change"], 0.0, 1.0))
        if change["performance_change"] is not None:
            levels["performance"] = now["performance"] + change["performance_change"]
    return levels


def _slices(
    material: Material, finder: SliceFinder, on_ratio: FloatArray, on_performance: FloatArray | None
) -> list[dict[str, Any]]:
    """Find the slices whose removal would raise the ratio most; conditions may be about the label too."""
    columns = [*finder.columns, binned_target(material, len(finder.columns))]
    protected = {one.name for one in material.attributes}
    always = [one.number for one in columns if one.name in protected or one is columns[-1]]
    search = RemovalSearch(columns, material.sample, -on_ratio[material.sample])
    slices = []
    for found in search.find(MOST_SLICES, always):
        rows = rows_of(found.conditions, columns)
        slices.append(
            {
                "conditions": [condition.text for condition in found.conditions],
                "rows": int(rows.sum()),
                "share": float(rows.mean()),
                "ratio_change": -float(on_ratio[rows].sum()),
                "performance_change": None if on_performance is None else -float(on_performance[rows].sum()),
                "p_value": found.p_value,
            }
        )
    return sorted(slices, key=lambda one: -one["ratio_change"])


def _worst(
    material: Material, on_ratio: FloatArray, on_performance: FloatArray | None, *, show_rows: bool
) -> list[dict[str, Any]]:
    """List the most harmful rows by their numbers; what they hold only if asked for."""
    worst = np.argsort(on_ratio, kind="stable")[:MOST_ROWS]
    return [
        {
            "row": material.row_number(int(row)),
            "ratio_effect": float(on_ratio[row]),
            "performance_effect": None if on_performance is None else float(on_performance[row]),
        }
        | (row_contents(material, int(row)) if show_rows else {})
        for row in worst
        if on_ratio[row] < 0
    ]


def _lead(metrics: Metrics, attribute: Attribute, *, is_sample: bool) -> str:
    scaled = " Sums are scaled up from the sample to all rows." if is_sample else ""
    both = "" if metrics.performance is None else f", and its {metrics.performance}"
    return (
        "A row's effect is what its weight adds to a metric of the model: here the model's "
        f"{metrics.ratio} between the groups of {attribute.name}{both}. A negative effect on the ratio marks "
        "a row that makes the groups less equal; removing rows changes a metric by about minus the sum of "
        "their effects. This is first order: it says where to look and holds for few rows; the more are "
        f"removed, the less it can be trusted.{scaled}"
    )
