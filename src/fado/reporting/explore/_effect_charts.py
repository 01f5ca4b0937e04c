"""What rows do to the model, as Altair charts."""

from __future__ import annotations

from typing import Any

import pandas as pd

__all__ = ["draw_effects", "draw_removal"]

_LINE = "predicted"
_HOLLOW = "predicted without the judged rows"
_FILLED = "measured"


def draw_effects(altair: Any, entry: dict[str, Any]) -> Any:
    """Draw the sums of effects per group and label, a panel per metric."""
    part = _part(entry)
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
    """Draw how the metrics are predicted to change as rows go, and what retraining measured."""
    part = _part(entry)
    return altair.hconcat(*(_curve(altair, part, key) for key in _metrics(part)))


def _curve(altair: Any, part: dict[str, Any], key: str) -> Any:
    points = pd.DataFrame(
        [{"share": one["share"], "change": one[f"{key}_change"], "which": _LINE} for one in part["curve"]]
    )
    color = altair.Color("which:N", title=None, sort=[_LINE, _HOLLOW, _FILLED])
    at = {
        "x": altair.X("share:Q", title="share of rows removed", axis=altair.Axis(format="%")),
        "y": altair.Y("change:Q", title=f"change of {part[key]}"),
    }
    layers = [altair.Chart(points).mark_line().encode(**at, color=color)]
    measured = part["measured"]
    if measured is not None:
        dots = pd.DataFrame(
            [
                {
                    "share": one["share"],
                    "change": one[f"{which}_{key}_change"],
                    "low": one[f"lowest_{key}_change"],
                    "high": one[f"highest_{key}_change"],
                    "which": name,
                }
                for one in measured["points"]
                for which, name in (("predicted", _HOLLOW), ("measured", _FILLED))
            ]
        )
        base = altair.Chart(dots)
        found = base.transform_filter(altair.datum.which == _FILLED)
        layers.append(found.mark_rule().encode(x="share:Q", y="low:Q", y2="high:Q", color=color))
        layers.append(base.mark_point(filled=True, size=60).encode(**at, color=color))
    return altair.layer(*layers).properties(width=280, height=220)


def _part(entry: dict[str, Any]) -> dict[str, Any]:
    part: dict[str, Any] | None = entry.get("effects")
    if part is None:
        raise ValueError(f"The values of {entry['name']!r} are no effects: nothing to draw.")
    return part


def _metrics(part: dict[str, Any]) -> list[str]:
    return [key for key in ("ratio", "performance") if part[key] is not None]
