"""What rows do to the model: effects per group and label, and what changing the worst of them does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from fado.exploration._conditions import BinnedColumn
from fado.exploration._consequences import ACTIONS, MOST_SLICES, Consequences, cells_of, find_slices
from fado.exploration._effect_metrics import Metrics, level_now, metrics_of
from fado.exploration._groups import FEWEST_MEMBERS, ShownGroups
from fado.exploration._material import Attribute, Material, label_groups, row_contents
from fado.exploration._search import rows_of

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["cell_effects", "effect_frames", "effects_part"]

FloatArray = npt.NDArray[np.float64]

MOST_ROWS = 10
_CHANGES = ["ratio_change", "ratio_error", "performance_change", "performance_error"]
_MEASURED = [f"measured_{name}" for name in _CHANGES]
_COLUMNS = {
    "cells": ["group", "label", "rows", "ratio_effect", "performance_effect"],
    "slices": ["slice", "rows", "share", "ratio_change", "performance_change", "p_value", *_MEASURED],
    "changes": ["slice", "action", "rows", *_CHANGES],
    "curve": ["share", "rows", *_MEASURED],
}


def effects_part(
    material: Material,
    attribute: Attribute,
    columns: Sequence[BinnedColumn],
    consequences: Consequences,
    *,
    show_rows: bool,
) -> dict[str, Any] | None:
    """Tell what rows do to the ratio between an attribute's groups, and to the model's performance.

    Returns
    -------
    dict or None
        None where values are no effects and nothing was measured. ``ratio`` and ``performance`` name the
        metrics (the latter is None where the target's values are no effects), and ``now`` holds where they
        stand, if that is known; ``cells`` and ``rows`` hold effects; ``slices`` and ``curve`` what changing
        rows did, as ``measured`` on the validation rows; ``reason`` says why nothing was.
    """
    found = consequences.of(attribute)
    by_values = material.valuation.scales[attribute.name].is_signed
    if not by_values and not found:
        return None
    metrics = metrics_of(material.valuation, attribute.name, consequences)
    on_ratio, on_target = (
        _weighted(material, name) if by_values else _spread(material, found["effects"][place])
        for place, name in enumerate((attribute.name, "y"))
    )
    on_performance = None if metrics.performance is None else on_target
    times = 1.0 if material.sampled is None else material.sampled.times  # that a row stands for
    if not by_values:
        times *= len(material) / len(material.sample)
    sums = times * on_ratio, None if on_performance is None else times * on_performance
    before = found["measured"]["before"] if found else None
    return {
        "lead": _lead(metrics, attribute, is_sample=times != 1),
        "ratio": metrics.ratio,
        "performance": metrics.performance,
        "now": level_now(material, attribute) or before,
        "harmful": round(times * int((on_ratio < 0).sum())),
        "cells": cell_effects(attribute.groups, label_groups(material), *sums),
        "slices": _slices(material, attribute, columns, on_ratio, found),
        "curve": found.get("curve", []),
        "rows": _worst(material, on_ratio, on_performance, show_rows=show_rows),
        "measured": found.get("measured"),
        "reason": consequences.reasons[attribute.name],
        "forecast_note": _forecast_note(found),
    }


def effect_frames(summary: dict[str, Any], attribute: str | None) -> dict[str, pd.DataFrame]:
    """Give the effects of a summary's attribute as tables: see `Exploration.effects`."""
    import pandas as pd

    entries = {entry["name"]: entry for entry in summary["attributes"]}
    name = next(iter(entries)) if attribute is None else attribute
    if name not in entries:
        raise ValueError(f"`attribute` must be one of {list(entries)}, got {attribute!r}.")
    part = entries[name].get("effects")
    if part is None:
        raise ValueError(
            f"The values of {name!r} are no effects, and nothing was measured: "
            f"{entries[name]['not_measured']}"
        )
    slices = [one | {"slice": " and ".join(one["conditions"])} for one in part["slices"]]
    rows = {
        "cells": part["cells"],
        "slices": [one | _measured(one["measured"]["remove"]) for one in slices],
        "changes": [
            {"slice": one["slice"], "action": action} | one["measured"][action]
            for one in slices
            for action in ACTIONS
            if one["measured"][action] is not None
        ],
        "curve": [one | _measured(one["measured"]) for one in part["curve"]],
    }
    frames = {key: pd.DataFrame(own, columns=_COLUMNS[key]) for key, own in rows.items()}
    for frame in frames.values():
        numbers = [column for column in frame.columns if frame[column].isna().all()]
        frame[numbers] = frame[numbers].astype("float64")  # what is not known is NaN
    return frames


def _measured(figures: dict[str, Any] | None) -> dict[str, Any]:
    return {name: None if figures is None else figures[name.removeprefix("measured_")] for name in _MEASURED}


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


def _weighted(material: Material, name: str) -> FloatArray:
    """Give the effects of whole rows: values are per unit of weight."""
    values = material.valuation[name]
    return values if material.weights is None else values * material.weights


def _spread(material: Material, effects: FloatArray) -> FloatArray:
    """Give the effects of the searched rows their places among all; others have none."""
    spread = np.zeros(len(material))
    spread[material.sample] = effects
    return spread


def _slices(
    material: Material,
    attribute: Attribute,
    columns: Sequence[BinnedColumn],
    on_ratio: FloatArray,
    found: dict[str, Any],
) -> list[dict[str, Any]]:
    """List the slices with what changing them did; without figures, the largest sum first, if nothing was."""
    if found:
        slices = found["slices"]
    else:
        nothing = {"ratio_change": None, "performance_change": None, "measured": dict.fromkeys(ACTIONS)}
        gains, cells = -on_ratio[material.sample], cells_of(material, attribute)
        slices = [
            {"found": one, "rows": rows_of(one.conditions, columns)} | nothing
            for one in find_slices(material, columns, gains, MOST_SLICES, cells)
        ]
    return [
        {key: own for key, own in one.items() if key not in ("found", "forecast")}
        | {
            "conditions": [condition.text for condition in one["found"].conditions],
            "rows": int(one["rows"].sum()),
            "share": float(one["rows"].mean()),
            "p_value": one["found"].p_value,
        }
        for one in slices
    ]


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
        "A row's effect is an estimate of what its weight adds to a metric of the model: here the model's "
        f"{metrics.ratio} between the groups of {attribute.name}{both}. A negative effect on the ratio marks "
        "a row that makes the groups less equal. Effects say where to look. What changing rows does is "
        f"measured by training again.{scaled}"
    )


def _forecast_note(found: dict[str, Any]) -> str:
    """Say whether forecasts stand beside what was measured."""
    if not found:
        return ""
    if found["trusted"]:
        return "Forecasts are shown, as they agree with what was measured on this table."
    return "Forecasts are not shown, as they do not clearly agree with what was measured on this table."
