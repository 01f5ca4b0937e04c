"""What rows do to the model, as Altair charts."""

from __future__ import annotations

from typing import Any

import pandas as pd

__all__ = ["draw_effects", "draw_removal"]

_REACH = 1.96  # errors to either side: a 95 % interval


def draw_effects(altair: Any, entry: dict[str, Any]) -> Any:
    """Draw the sums of effects per group and label, a panel per metric."""
    part = entry.get("effects")
    if part is None or not part["cells"]:
        raise ValueError(f"The values of {entry['name']!r} are no effects: nothing to draw.")
    panels = [
        altair.Chart(
            pd.DataFrame(
                {
                    "cell": f"{cell['group']}, {cell['label']}",
                    "rows": cell["rows"],
                    "effect": cell[f"{key}_effect"],
                }
                for cell in part["cells"]
            )
        )
        .mark_bar(opacity=0.6)
        .encode(
            x=altair.X("effect:Q", title=f"sum of effects on {part[key]}"),
            y=altair.Y("cell:N", sort=None, title=None),
            tooltip=["cell:N", "rows:Q", altair.Tooltip("effect:Q", format=".4f")],
        )
        .properties(width=280)
        for key in _metrics(part)
    ]
    return altair.hconcat(*panels)


def draw_removal(altair: Any, entry: dict[str, Any]) -> Any:
    """Draw how the metrics changed as the most harmful rows went, as retraining measured it."""
    part = entry.get("effects")
    points = [one for one in part["curve"] if one["measured"] is not None] if part is not None else []
    if part is None or not points:
        raise ValueError(f"There is nothing to draw. {entry['not_measured']}".rstrip())
    return altair.hconcat(*(_points(altair, part, points, key) for key in _metrics(part)))


def _points(altair: Any, part: dict[str, Any], points: list[dict[str, Any]], key: str) -> Any:
    rows = []
    for one in points:
        change, error = one["measured"][f"{key}_change"], one["measured"][f"{key}_error"]
        if change is not None and error is not None:
            reach = _REACH * error
            told = "measurable" if abs(change) > reach else "no measurable change"
            rows.append(
                {
                    "share": one["share"],
                    "change": change,
                    "low": change - reach,
                    "high": change + reach,
                    "told": told,
                }
            )
    base = altair.Chart(pd.DataFrame(rows, columns=["share", "change", "low", "high", "told"])).encode(
        x=altair.X("share:O", title="share of rows removed", axis=altair.Axis(format="%", labelAngle=0))
    )
    title = f"change of {part[key]}, with 95 % intervals"
    return (
        base.mark_rule().encode(y=altair.Y("low:Q", title=title), y2="high:Q")
        + base.mark_point(filled=True, size=70).encode(
            y=altair.Y("change:Q", title=title),
            color=altair.Color("told:N", title=None),
            tooltip=["share:O", "change:Q", "low:Q", "high:Q", "told:N"],
        )
    ).properties(width=280, height=220)


def _metrics(part: dict[str, Any]) -> list[str]:
    return [key for key in ("ratio", "performance") if part[key] is not None]
