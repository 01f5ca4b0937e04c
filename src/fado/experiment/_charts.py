"""The landscapes: true-positive rate against a ratio, one point per model, as in the paper's figures."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from fado._altair import load_altair
from fado.experiment._plan import CORRECTED, INTERVENTIONS, NONE, RPS, RW, UAPS, UAR

if TYPE_CHECKING:
    import pandas as pd

    from fado.experiment._results import Results

__all__ = ["RATIO_TITLES", "landscape", "landscape_spec", "points_of", "points_table"]

RATIO_TITLES = {
    "fpr_ratio": "Predictive equality (ratio of false-positive rates)",
    "fnr_ratio": "Equality of opportunity (ratio of false-negative rates)",
    "tpr_ratio": "Ratio of true-positive rates",
    "selection_rate_ratio": "Demographic parity (ratio of selection rates)",
}
RULE = 0.8
_SHAPES = dict.fromkeys([NONE, RPS, RW], "circle") | {
    UAPS: "triangle-up",
    UAR: "square",
    CORRECTED: "diamond",
}
_BASELINE_COLOURS = {NONE: "#111111", RPS: "#1f6fd0", RW: "#8e44ad"}
_GREEN_TO_RED = ["#1a9850", "#d9c31c", "#d73027"]
_SIZE = 340


def points_table(results: Results, metrics: Sequence[str]) -> dict[str, Any]:
    """Give the points of several landscapes as plain data, each setting and model told once.

    Returns
    -------
    dict
        ``settings`` and ``models``, what is told of each; ``rows``, per model the positions of its setting
        and its model, its true-positive rate, and per ratio a pair: the ratio, None where the model cannot
        be compared, and whether it is on the frontier.
    """
    frame = results.frame
    settings = frame[["intervention", "alpha"]].assign(setting=_settings_text(frame))
    texts = _models_text(frame)
    number = {text: position for position, text in enumerate(dict.fromkeys(texts))}
    told = settings.drop_duplicates()
    place = {tuple(map(str, row)): position for position, row in enumerate(told.itertuples(index=False))}
    pairs = []
    for metric in metrics:
        ratios = results.comparable_points(metric)[:, 1].round(5)
        pairs.append([(_plain(r), int(f)) for r, f in zip(ratios, results.on_frontier(metric), strict=True)])
    rows = [
        [place[tuple(map(str, setting))], number[text], _plain(round(tpr, 5)), *own]
        for setting, text, tpr, *own in zip(
            settings.itertuples(index=False), texts, frame["test_tpr"], *pairs, strict=True
        )
        if any(ratio is not None for ratio, _ in own)
    ]
    known = [{name: _plain(value) for name, value in row.items()} for row in told.to_dict("records")]
    return {"settings": known, "models": list(number), "rows": rows}


def points_of(table: dict[str, Any], which: int) -> list[dict[str, Any]]:
    """Give the points of one landscape of a table, those on the frontier last, to be drawn on top."""
    points = [
        {
            **table["settings"][setting],
            "model": table["models"][model],
            "tpr": tpr,
            "ratio": pairs[which][0],
            "frontier": bool(pairs[which][1]),
        }
        for setting, model, tpr, *pairs in table["rows"]
        if pairs[which][0] is not None
    ]
    return sorted(points, key=lambda point: point["frontier"])


def landscape(results: Results, metric: str, *, zoom: bool) -> Any:
    """Make the chart of a landscape, with its points in it."""
    altair = load_altair()

    points = points_of(points_table(results, [metric]), 0)
    spec = landscape_spec(points, metric, zoom=zoom) | {"data": {"values": points}}
    return altair.Chart.from_dict({"$schema": altair.SCHEMA_URL, **spec})


def landscape_spec(points: list[dict[str, Any]], metric: str, *, zoom: bool) -> dict[str, Any]:
    """Give the Vega-Lite specification of a landscape, without its points."""
    there = {point["intervention"] for point in points}
    named = [name for name in INTERVENTIONS if name in there]
    x, y = _corner(points) if zoom else _whole(points)
    rule = {
        "data": {"values": [{"line": RULE}]},
        "mark": {"type": "rule", "strokeDash": [6, 4], "color": "#555"},
        "encoding": {"y": {"field": "line", "type": "quantitative"}},
    }
    return {
        "width": _SIZE,
        "height": _SIZE,
        "title": RATIO_TITLES[metric],
        "layer": [
            rule,
            _layer("isValid(datum.alpha)", _alpha_colour(), 0.3, named, x, y),
            _layer("!isValid(datum.alpha)", _baseline_colour(named), 0.9, named, x, y),
        ],
        "resolve": {"scale": {"color": "independent", "shape": "shared"}},
    }


def _layer(
    shown: str, colour: dict[str, Any], opacity: float, named: list[str], x: list[float], y: list[float]
) -> dict[str, Any]:
    """Give the points of our methods or of the baselines; the two differ in what colour means."""
    return {
        "transform": [{"filter": shown}],
        "mark": {"type": "point", "filled": True, "clip": True},
        "encoding": {
            "x": _axis("tpr", "True-positive rate", x),
            "y": _axis("ratio", "Ratio between groups", y),
            "shape": {
                "field": "intervention",
                "type": "nominal",
                "scale": {"domain": named, "range": [_SHAPES[name] for name in named]},
                "legend": {"title": "intervention"},
            },
            "color": colour,
            "size": {"condition": {"test": "datum.frontier", "value": 130}, "value": 30},
            "opacity": {"condition": {"test": "datum.frontier", "value": 1}, "value": opacity},
            "stroke": {"condition": {"test": "datum.frontier", "value": "#000"}, "value": None},
            "tooltip": [
                {"field": "intervention", "type": "nominal"},
                {"field": "setting", "type": "nominal"},
                {"field": "model", "type": "nominal"},
                {"field": "tpr", "type": "quantitative", "format": ".4f", "title": "true-positive rate"},
                {"field": "ratio", "type": "quantitative", "format": ".4f"},
            ],
        },
    }


def _settings_text(frame: pd.DataFrame) -> list[str]:
    """Say the settings of every row in a few words."""
    names = ["algorithm", "utility", "alpha", "scaling", "strength", "floor", "correction"]
    return [_words(row) for row in frame[names].to_dict("records")]


def _models_text(frame: pd.DataFrame) -> list[str]:
    """Say the number and the parameters of every row's model in a few words."""
    columns = list(frame.columns)
    names = columns[columns.index("model") + 1 : columns.index("training_rows")]
    return [f"{row.pop('model')}: {_words(row)}" for row in frame[["model", *names]].to_dict("records")]


def _words(row: dict[Any, Any]) -> str:
    known = {name: _plain(value) for name, value in row.items() if _plain(value) is not None}
    return ", ".join(
        value if isinstance(value, str) else f"{name} {value:.4g}" for name, value in known.items()
    )


def _alpha_colour() -> dict[str, Any]:
    return {
        "field": "alpha",
        "type": "quantitative",
        "scale": {"domain": [0, 1], "range": _GREEN_TO_RED},
        "legend": {"title": "alpha"},
    }


def _baseline_colour(named: list[str]) -> dict[str, Any]:
    domain = [name for name in _BASELINE_COLOURS if name in named]
    return {
        "field": "intervention",
        "type": "nominal",
        "scale": {"domain": domain, "range": [_BASELINE_COLOURS[name] for name in domain]},
        "legend": {"title": "baseline"} if domain else None,
    }


def _axis(field: str, title: str, domain: list[float]) -> dict[str, Any]:
    return {
        "field": field,
        "type": "quantitative",
        "title": title,
        "scale": {"domain": domain, "zero": False, "nice": False},
        "axis": {"labelSeparation": 6},  # the ends of the range are labelled flush, and would touch others
    }


def _whole(points: list[dict[str, Any]]) -> tuple[list[float], list[float]]:
    """Give the ranges that show all points."""
    best = max((point["tpr"] for point in points), default=1.0)
    return [0.0, min(math.ceil(20 * best + 0.5) / 20, 1.0)], [0.0, 1.0]


def _corner(points: list[dict[str, Any]]) -> tuple[list[float], list[float]]:
    """Give the ranges that show the frontier down to nine tenths of the best true-positive rate."""
    best = max((point["tpr"] for point in points), default=1.0)
    near = [point for point in points if point["frontier"] and point["tpr"] >= 0.9 * best]
    lowest = min((point["ratio"] for point in near), default=RULE)
    bottom = math.floor(20 * min(lowest, RULE - 0.05)) / 20
    return [round(0.9 * best, 3), round(min(1.01 * best, 1.0), 3)], [max(bottom, 0.0), 1.0]


def _plain(value: Any) -> Any:
    """Give a value as JSON has it, None for what is missing."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return None
    return value.item() if isinstance(value, np.generic) else value
