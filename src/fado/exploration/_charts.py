"""The page's single pictures as Altair charts."""

from __future__ import annotations

from typing import Any

import pandas as pd

from fado._altair import load_altair
from fado.exploration._alpha import ALPHAS, UTILITIES
from fado.exploration._distributions import BINS

__all__ = ["chart"]

BIASES = ("group_size", "prevalence", "separability", "base")


def chart(summary: dict[str, Any], name: str, attribute: str | None, utility: str, alpha: float) -> Any:
    """Draw one chart of a summary."""
    altair = load_altair()

    entry = _attribute(summary, attribute)
    if name in BIASES:
        return _bias(altair, entry, name)
    drawn = {
        "values": lambda: _values(altair, entry),
        "plane": lambda: _plane(altair, entry, summary["about"]["target"]["name"]),
        "utility": lambda: _utility(altair, entry, utility, alpha),
        "columns": lambda: _columns(altair, entry, summary["about"]["target"]["name"]),
        "suspicious": lambda: _suspicious(altair, entry),
    }
    if name not in drawn:
        raise ValueError(f"`name` must be one of {[*BIASES, *drawn]}, got {name!r}.")
    return drawn[name]()


def _attribute(summary: dict[str, Any], name: str | None) -> dict[str, Any]:
    entries = {entry["name"]: entry for entry in summary["attributes"]}
    if name is None:
        return next(iter(entries.values()))
    if name not in entries:
        raise ValueError(f"`attribute` must be one of {list(entries)}, got {name!r}.")
    return entries[name]


def _bias(altair: Any, entry: dict[str, Any], name: str) -> Any:
    bias = next(bias for bias in entry["biases"] if bias["id"] == name)
    form = ".1%" if bias["bars_format"] == "percent" else ".3f"
    return _bars(altair, bias["bars"], bias["bars_are"], form, f"{bias['name']}: {bias['sentence']}")


def _suspicious(altair: Any, entry: dict[str, Any]) -> Any:
    found = entry["suspicious"]
    if found is None:
        raise ValueError("The values came without the models' agreement with the labels: nothing to draw.")
    bars = [group | {"number": group["share"]} for group in found["groups"]]
    return _bars(altair, bars, "contradicted labels", ".1%", found["sentence"])


def _bars(altair: Any, bars: list[dict[str, Any]], what: str, form: str, title: str) -> Any:
    frame = pd.DataFrame(bars, columns=["group", "rows", "number", "low", "high"])
    base = altair.Chart(frame, title=altair.Title(title, anchor="start", fontSize=12)).encode(
        y=altair.Y("group:N", sort=None, title=None)
    )
    columns = base.mark_bar(opacity=0.6).encode(
        x=altair.X("number:Q", title=what, axis=altair.Axis(format=form)),
        tooltip=["group:N", "rows:Q", altair.Tooltip("number:Q", format=form)],
    )
    return columns + base.mark_rule(strokeWidth=2).encode(x="low:Q", x2="high:Q")


def _values(altair: Any, entry: dict[str, Any]) -> Any:
    rows = [
        {"variable": which, "group": cell["group"], "label": cell["label"], "value": (bin_ + 0.5) / BINS,
         "share": number / cell["rows"]}
        for which in ("v_y", "v_z")
        for cell in entry["values"][which]
        for bin_, number in enumerate(cell["histogram"])
    ]  # fmt: skip
    steps = altair.Chart(pd.DataFrame(rows)).mark_area(interpolate="step", opacity=0.35, line=True)
    return (
        steps.encode(
            x=altair.X("value:Q", scale=altair.Scale(domain=[0, 1])),
            y=altair.Y("share:Q", stack=None, title="share of rows", axis=altair.Axis(format="%")),
            color="label:N",
        )
        .properties(width=280, height=70)
        .facet(row=altair.Row("group:N", sort=None), column="variable:N")
    )


def _plane(altair: Any, entry: dict[str, Any], target: str) -> Any:
    rows = [
        {"v_y": (y + 0.5) / BINS, "v_z": (z + 0.5) / BINS, "rows": number}
        for z, line in enumerate(entry["plane"]["counts"])
        for y, number in enumerate(line)
    ]
    step = altair.Bin(step=1 / BINS)
    return (
        altair.Chart(pd.DataFrame(rows))
        .mark_rect()
        .encode(
            x=altair.X("v_y:Q", bin=step, title=f"v_y: unsure of {target}"),
            y=altair.Y("v_z:Q", bin=step, title=f"v_z: unsure of {entry['name']}"),
            color=altair.Color("rows:Q", scale=altair.Scale(type="sqrt", scheme="blues")),
        )
        .properties(width=320, height=320)
    )


def _utility(altair: Any, entry: dict[str, Any], utility: str, alpha: float) -> Any:
    if utility not in UTILITIES:
        raise ValueError(f"`utility` must be one of {list(UTILITIES)}, got {utility!r}.")
    step = round(float(alpha) * 20)
    if not 0 <= step < len(ALPHAS) or abs(ALPHAS[step] - alpha) > 1e-9:
        raise ValueError(f"`alpha` must be a multiple of 0.05 in [0, 1], got {alpha}.")
    scene = entry["alpha"]
    kind = scene["utilities"][utility]
    low, width = kind["low"], (kind["high"] - kind["low"]) / BINS
    rows = [
        {"group": group, "utility": low + (bin_ + 0.5) * width, "share": number / n_rows}
        for group, n_rows, histogram in zip(
            scene["groups"], scene["rows"], kind["settings"][step]["histogram"], strict=True
        )
        for bin_, number in enumerate(histogram)
    ]
    title = f"{utility} utility, alpha = {alpha:.2f}"
    return (
        altair.Chart(pd.DataFrame(rows))
        .mark_area(interpolate="step", opacity=0.5, line=True)
        .encode(
            x=altair.X("utility:Q", scale=altair.Scale(domain=[low, kind["high"]])),
            y=altair.Y("share:Q", title="share of rows", axis=altair.Axis(format="%")),
            color=altair.Color("group:N", legend=None),
        )
        .properties(width=420, height=70)
        .facet(row=altair.Row("group:N", sort=None), title=title)
    )


def _columns(altair: Any, entry: dict[str, Any], target: str) -> Any:
    part = entry["columns"]
    key = "gain" if part["basis"] == "gains" else "alone"
    rows = [
        {"column": row["name"], "target": row[f"{key}_y"] or 0.0, "attribute": row[f"{key}_z"] or 0.0}
        for row in part["columns"]
    ]
    base = altair.Chart(pd.DataFrame(rows), title=part["sentence"]).encode(
        x=altair.X("target:Q", title=f"matters for {target}", axis=altair.Axis(format="%")),
        y=altair.Y("attribute:Q", title=f"gives {entry['name']} away", axis=altair.Axis(format="%")),
    )
    dots = base.mark_circle(size=70).encode(tooltip=["column:N", "target:Q", "attribute:Q"])
    return (dots + base.mark_text(align="left", dx=7).encode(text="column:N")).properties(
        width=420, height=320
    )
