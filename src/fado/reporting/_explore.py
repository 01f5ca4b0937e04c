"""The page of an exploration, and its single charts with Altair."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

import pandas as pd

from fado.reporting._page import load_altair, render_page

SCRIPTS = ("numbers.js", "svg.js", "scales.js", "plots.js", "sections.js", "slider.js", "aim.js", "main.js")
BIASES = ("group_size", "prevalence", "separability", "base")
_REACH = 1.96  # errors to either side: a 95 % interval


def explore_page(summary: dict[str, Any]) -> str:
    """Render a summary as a page.

    Parameters
    ----------
    summary : dict
        The content of the page, from `fado.Exploration.to_dict`.

    Returns
    -------
    str
        One self-contained text that loads nothing.
    """
    scripts = list(SCRIPTS)  # and, last, those of parts that only some pages have
    if any(attribute.get("effects") is not None for attribute in summary.get("attributes", ())):
        scripts.append("effects.js")
    if "pool" in summary:
        scripts.append("pool.js")
    return render_page("explore", title="Exploration", scripts=scripts, data=summary)


class _Scale(NamedTuple):
    """The range of values or utilities."""

    low: float
    high: float
    neutral: float | None
    cut: float | None = None  # between certain and uncertain

    def edges(self, bins: int) -> list[float]:
        """Give the edges of equally wide bins."""
        return [self.low + (self.high - self.low) * edge / bins for edge in range(bins + 1)]


def explore_chart(
    summary: dict[str, Any], name: str, attribute: str | None, utility: str, alpha: float
) -> Any:
    """Draw one chart of a summary.

    Parameters
    ----------
    summary : dict
        The content of the page, from `fado.Exploration.to_dict`.
    name : str
        "group_size", "prevalence", "separability", "base", "values", "plane", "utility", "columns" or
        "suspicious"; for values with probabilities also "aim", for effects also "effects", for measured
        removals also "removal", with a pool also "pool".
    attribute : str or None
        A protected attribute; None means the first.
    utility : str
        For "utility": one of the summary's.
    alpha : float
        For "utility": a multiple of 0.05 in [0, 1].

    Returns
    -------
    altair.Chart, altair.LayerChart, altair.FacetChart or altair.HConcatChart
    """
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
        "aim": lambda: _aim(altair, entry),
        "effects": lambda: _effects(altair, entry),
        "removal": lambda: _removal(altair, entry),
        "pool": lambda: _pool(altair, summary, entry),
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
        raise ValueError("The values do not contain the models' agreement with the labels: nothing to draw.")
    bars = [group | {"number": group["share"]} for group in found["groups"]]
    return _bars(altair, bars, "share contradicted", ".1%", found["sentence"])


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
    return altair.hconcat(*(_values_of(altair, entry["values"], variable) for variable in ("v_y", "v_z")))


def _values_of(altair: Any, values: dict[str, Any], variable: str) -> Any:
    scale = _scale(values, variable)
    rows = [
        {"group": cell["group"], "label": cell["label"], variable: middle, "share": number / cell["rows"]}
        for cell in values[variable]
        for middle, number in _histogram(cell["histogram"], scale)
    ]
    return _steps(altair, rows, variable, scale, color=altair.Color("label:N"), opacity=0.35, width=280)


def _pool(altair: Any, summary: dict[str, Any], entry: dict[str, Any]) -> Any:
    if "pool" not in summary:
        raise ValueError("There are no unlabelled rows to draw: pass them to `explore` as `pool`.")
    part = next(one for one in summary["pool"]["attributes"] if one["name"] == entry["name"])
    panels = []
    for variable in ("v_y", "v_z"):
        scale = _scale(entry["values"], variable)
        rows = [
            {"group": which, variable: middle, "share": share}
            for which in ("labelled", "pool")
            for middle, share in _histogram(part[variable][which]["shares"], scale)
        ]
        color = altair.Color("group:N", legend=None)
        panels.append(_steps(altair, rows, variable, scale, color=color, opacity=0.5, width=280))
    return altair.hconcat(*panels)


def _plane(altair: Any, entry: dict[str, Any], target: str) -> Any:
    part = entry["plane"]
    of_y, of_z = _scale(part, "v_y"), _scale(part, "v_z")
    ys, zs = of_y.edges(len(part["counts"][0])), of_z.edges(len(part["counts"]))
    rows = [
        {"v_y": ys[y], "v_y_end": ys[y + 1], "v_z": zs[z], "v_z_end": zs[z + 1], "rows": number}
        for z, line in enumerate(part["counts"])
        for y, number in enumerate(line)
    ]
    density = (
        altair.Chart(pd.DataFrame(rows))
        .mark_rect()
        .encode(
            x=altair.X("v_y:Q", scale=_domain(altair, of_y), title=f"v_y: {part['titles'][0]} {target}"),
            x2="v_y_end:Q",
            y=altair.Y(
                "v_z:Q", scale=_domain(altair, of_z), title=f"v_z: {part['titles'][1]} {entry['name']}"
            ),
            y2="v_z_end:Q",
            color=altair.Color("rows:Q", scale=altair.Scale(type="sqrt", scheme="blues")),
        )
        .properties(width=320, height=320)
    )
    lines = [
        altair.Chart(pd.DataFrame({field: [at]})).mark_rule(color="grey").encode(**{axis: field})
        for axis, field, scale in (("x", "v_y", of_y), ("y", "v_z", of_z))
        if (at := scale.neutral if scale.cut is None else scale.cut) is not None
    ]
    return altair.layer(density, *lines) if lines else density


def _utility(altair: Any, entry: dict[str, Any], utility: str, alpha: float) -> Any:
    scene = entry["alpha"]
    if utility not in scene["utilities"]:
        raise ValueError(f"`utility` must be one of {list(scene['utilities'])}, got {utility!r}.")
    settings = [
        setting
        for known, setting in zip(scene["alphas"], scene["utilities"][utility]["settings"], strict=True)
        if abs(known - alpha) < 1e-9
    ]
    if not settings:
        raise ValueError(f"`alpha` must be a multiple of 0.05 in [0, 1], got {alpha}.")
    scale = _scale(scene["utilities"][utility])
    rows = [
        {"group": group, "utility": middle, "share": number / n_rows}
        for position, (group, n_rows, histogram) in enumerate(
            zip(scene["groups"], scene["rows"], settings[0]["histogram"], strict=True)
        )
        if position != scene.get("small")
        for middle, number in _histogram(histogram, scale)
    ]
    color = altair.Color("group:N", legend=None)
    steps = _steps(altair, rows, "utility", scale, color=color, opacity=0.5, width=420)
    return steps.properties(title=f"{utility} utility, alpha = {alpha:.2f}")


def _scale(part: dict[str, Any], variable: str | None = None) -> _Scale:
    """Read a scale as the page does: of one variable, of all, or from 0 to 1."""
    said = part.get("scales", {}).get(variable, part)
    low, high, neutral = said.get("low", 0.0), said.get("high", 1.0), said.get("neutral")
    inside = neutral if neutral is not None and low < neutral < high else None
    return _Scale(low, high, inside, said.get("cut"))


def _domain(altair: Any, scale: _Scale) -> Any:
    return altair.Scale(domain=[scale.low, scale.high], nice=False, zero=False)


def _histogram(counts: list[Any], scale: _Scale) -> list[tuple[float, Any]]:
    """Give the middle of every bin with its count or its share."""
    edges = scale.edges(len(counts))
    return [((a + b) / 2, count) for (a, b), count in zip(pairwise(edges), counts, strict=True)]


def _steps(
    altair: Any,
    rows: list[dict[str, Any]],
    field: str,
    scale: _Scale,
    *,
    color: Any,
    opacity: float,
    width: int,
) -> Any:
    """Draw histograms below each other, one row per group, with a thin line at the neutral value."""
    base = altair.Chart(pd.DataFrame([row | {"neutral": scale.neutral} for row in rows]))
    layers = [
        base.mark_area(interpolate="step", opacity=opacity, line=True).encode(
            x=altair.X(f"{field}:Q", scale=_domain(altair, scale)),
            y=altair.Y("share:Q", stack=None, title="share of rows", axis=altair.Axis(format="%")),
            color=color,
        )
    ]
    if scale.neutral is not None:
        layers.append(base.mark_rule(color="grey").encode(x="mean(neutral):Q"))
    return (
        altair.layer(*layers).properties(width=width, height=70).facet(row=altair.Row("group:N", sort=None))
    )


def _columns(altair: Any, entry: dict[str, Any], target: str) -> Any:
    """Draw the columns that matter most: two bars each, for the attribute and for the target."""
    part = entry["columns"]
    key = "gain" if part["basis"] == "gains" else "alone"
    kinds = {f"reveals {entry['name']}": "z", f"matters for {target}": "y"}
    drawn = [part["columns"][place] for place in part["drawn"]]
    rows = [
        {"column": row["name"], "which": which, "share": row[f"{key}_{letter}"]}
        for row in drawn
        for which, letter in kinds.items()
    ]
    return (
        altair.Chart(
            pd.DataFrame(rows, columns=["column", "which", "share"]),
            title=altair.Title(part["sentence"], anchor="start", fontSize=12),
        )
        .mark_bar()
        .encode(
            x=altair.X("share:Q", title="share", axis=altair.Axis(format="%")),
            y=altair.Y("column:N", sort=[row["name"] for row in drawn], title=None),
            yOffset=altair.YOffset("which:N", sort=list(kinds)),
            color=altair.Color("which:N", sort=list(kinds), title=None),
            tooltip=["column:N", "which:N", altair.Tooltip("share:Q", format=".1%")],
        )
        .properties(width=420)
    )


def _aim(altair: Any, entry: dict[str, Any]) -> Any:
    """Draw the trade-off of every ratio: its curve and lower bound, the line, the untouched point."""
    part = entry.get("aim")
    if part is None:
        raise ValueError(
            "This needs probabilities of labels and groups, which the values do not contain: value the rows "
            "with `OutOfBagEntropy(keep_probabilities=True)`."
        )
    curve, bound = "ratio", f"lower bound at {part['confidence']:.0%} confidence"
    rows = [
        {
            "panel": own["title"],
            "which": which,
            "ratio": point[key],
            "tpr": point["tpr"],
            "order": order,
            "line": part["line"],
        }
        for own in part["ratios"]
        for which, key in ((curve, "ratio"), (bound, "low"))
        for order, point in enumerate(own["points"])
        if point["ratio"] is not None
    ]
    base = altair.Chart(pd.DataFrame(rows))
    at = {
        "x": altair.X("ratio:Q", scale=altair.Scale(domain=[0, 1]), title="ratio between groups"),
        "y": altair.Y("tpr:Q", scale=altair.Scale(zero=False), title="true-positive rate"),
        "color": altair.Color("which:N", title=None, sort=[curve, bound]),
    }
    first = base.transform_filter((altair.datum.order == 0) & (altair.datum.which == curve))
    return (
        altair.layer(
            base.mark_line(point=True).encode(**at, order="order:Q", tooltip=["which:N", "ratio:Q", "tpr:Q"]),
            first.mark_point(size=120, filled=True).encode(**at),
            base.mark_rule(strokeDash=[4, 3], color="firebrick").encode(x="mean(line):Q"),
        )
        .properties(width=280, height=200)
        .facet(
            facet=altair.Facet("panel:N", sort=[own["title"] for own in part["ratios"]], title=None),
            columns=2,
        )
        .resolve_scale(y="independent")
    )


def _effects(altair: Any, entry: dict[str, Any]) -> Any:
    """Draw the sums of effects per group and label, a panel per metric."""
    part = entry.get("effects")
    if part is None or not part["cells"]:
        raise ValueError(f"The values of {entry['name']!r} are not effects: nothing to draw.")
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


def _removal(altair: Any, entry: dict[str, Any]) -> Any:
    """Draw the measured changes of the metrics when the most harmful rows are removed."""
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
                    "result": told,
                }
            )
    base = altair.Chart(pd.DataFrame(rows, columns=["share", "change", "low", "high", "result"])).encode(
        x=altair.X("share:O", title="share of rows removed", axis=altair.Axis(format="%", labelAngle=0))
    )
    title = f"change of {part[key]}, with 95 % intervals"
    return (
        base.mark_rule().encode(y=altair.Y("low:Q", title=title), y2="high:Q")
        + base.mark_point(filled=True, size=70).encode(
            y=altair.Y("change:Q", title=title),
            color=altair.Color("result:N", title=None),
            tooltip=["share:O", "change:Q", "low:Q", "high:Q", "result:N"],
        )
    ).properties(width=280, height=220)


def _metrics(part: dict[str, Any]) -> list[str]:
    return [key for key in ("ratio", "performance") if part[key] is not None]
