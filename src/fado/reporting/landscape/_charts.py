"""The landscapes: true-positive rate against a ratio, one point per model, as in the paper's figures."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from fado.reporting._altair import load_altair

__all__ = ["landscape_chart"]

_GREEN_TO_RED = ["#1a9850", "#d9c31c", "#d73027"]
_SIZE = 340


def landscape_chart(
    points: list[dict[str, Any]], *, title: str, rule: float, looks: Sequence[dict[str, Any]], zoom: bool
) -> Any:
    """Make the chart of a landscape, with its points in it.

    Parameters
    ----------
    points : list of dict
        What `select_points` gives.
    title : str
        What the ratio is.
    rule : float
        The ratio at which a line is drawn.
    looks : sequence of dict
        How every intervention looks, in the order of display: its ``name``; the ``shape`` of its marks; their
        ``colour``, or None if alpha gives it.
    zoom : bool
        Whether to show the corner of the best models instead of all.

    Returns
    -------
    altair.LayerChart
    """
    altair = load_altair()

    spec = _spec(points, title=title, rule=rule, looks=looks, zoom=zoom)
    data = {"data": {"values": points}}
    return altair.Chart.from_dict({"$schema": altair.SCHEMA_URL, **spec, **data})


def _spec(
    points: list[dict[str, Any]], *, title: str, rule: float, looks: Sequence[dict[str, Any]], zoom: bool
) -> dict[str, Any]:
    """Give the Vega-Lite specification of the chart, without its points."""
    there = {point["intervention"] for point in points}
    if lacking := sorted(there - {look["name"] for look in looks}):
        raise ValueError(f"`looks` must name every intervention of the points, lacks {lacking}.")
    seen = [look for look in looks if look["name"] in there]
    steered = [look for look in seen if look["colour"] is None]
    baselines = [look for look in seen if look["colour"] is not None]
    x, y = _corner(points, rule) if zoom else _whole(points)
    line = {
        "data": {"values": [{"line": rule}]},
        "mark": {"type": "rule", "strokeDash": [6, 4], "color": "#555"},
        "encoding": {"y": {"field": "line", "type": "quantitative"}},
    }
    shape = _shape(seen)
    return {
        "width": _SIZE,
        "height": _SIZE,
        "title": title,
        "layer": [
            line,
            _layer(steered, _alpha_colour(), 0.3, shape, x, y),
            _layer(baselines, _baseline_colour(baselines), 0.9, shape, x, y),
        ],
        "resolve": {"scale": {"color": "independent", "shape": "shared"}},
    }


def _layer(
    looks: list[dict[str, Any]],
    colour: dict[str, Any],
    opacity: float,
    shape: dict[str, Any],
    x: list[float],
    y: list[float],
) -> dict[str, Any]:
    """Give the points that alpha colours or those of the baselines; the two differ in what colour means."""
    names = [look["name"] for look in looks]
    return {
        "transform": [{"filter": {"field": "intervention", "oneOf": names}}],
        "mark": {"type": "point", "filled": True, "clip": True},
        "encoding": {
            "x": _axis("tpr", "True-positive rate", x),
            "y": _axis("ratio", "Ratio between groups", y),
            "shape": shape,
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


def _shape(looks: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "field": "intervention",
        "type": "nominal",
        "scale": {"domain": [look["name"] for look in looks], "range": [look["shape"] for look in looks]},
        "legend": {"title": "intervention"},
    }


def _alpha_colour() -> dict[str, Any]:
    return {
        "field": "alpha",
        "type": "quantitative",
        "scale": {"domain": [0, 1], "range": _GREEN_TO_RED},
        "legend": {"title": "alpha"},
    }


def _baseline_colour(looks: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "field": "intervention",
        "type": "nominal",
        "scale": {"domain": [look["name"] for look in looks], "range": [look["colour"] for look in looks]},
        "legend": {"title": "baseline"} if looks else None,
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


def _corner(points: list[dict[str, Any]], rule: float) -> tuple[list[float], list[float]]:
    """Give the ranges that show the frontier down to nine tenths of the best true-positive rate."""
    best = max((point["tpr"] for point in points), default=1.0)
    near = [point for point in points if point["frontier"] and point["tpr"] >= 0.9 * best]
    lowest = min((point["ratio"] for point in near), default=rule)
    bottom = math.floor(20 * min(lowest, rule - 0.05)) / 20
    return [round(0.9 * best, 3), round(min(1.01 * best, 1.0), 3)], [max(bottom, 0.0), 1.0]
