"""The fairness-performance landscape of many models: its points, and its chart (as in the paper)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from fado._messages import plain_number

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["landscape_chart", "select_points", "tabulate_points"]

MILLION = 1_000_000
_ALPHAS = ["#440154", "#404387", "#29788e", "#22a784"]  # viridis as far as it stands out from white paper
_SIZE = 340


def tabulate_points(
    frame: pd.DataFrame,
    views: Sequence[Mapping[str, Any]],
    *,
    rows: Any = slice(None),
    setting_columns: Sequence[str],
    model_columns: Sequence[str],
    metrics: Sequence[str],
    counts: Sequence[str] = (),
    barred: Mapping[str, Any],
) -> dict[str, Any]:
    """Return the models of several landscapes as plain data.

    Metrics are in millionths, rounded down, so that a metric reaches a line of up to six decimals if and only
    if its millionths do.

    Parameters
    ----------
    frame : DataFrame
        One row per model, with ``intervention``, ``alpha`` (missing where there is none), the number of the
        ``model``, and the columns named below.
    views : sequence of dict
        For each landscape the ``ratio``, by the name of its columns without the part (``"fpr_ratio"`` for
        ``test_fpr_ratio``), and by part its ``frontiers``: masks of their rows.
    rows : ndarray of int, optional
        The positions of the rows that are tabulated, in order; all of them by default. Masks are of all rows.
    setting_columns, model_columns : sequence of str
        The columns of an intervention's settings, and those of a model's parameters.
    metrics, counts : sequence of str
        The columns of metrics, and those of whole numbers.
    barred : mapping
        For each part, the mask of the rows that cannot be compared there.

    Returns
    -------
    dict
        ``settings`` and ``models``, each once; per row the positions of its ``setting`` and its ``model``
        among them; ``metrics`` and ``counts`` by name, None where missing; ``barred``, positions of rows by
        part; and ``views``, with positions instead of masks.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({
    ...     "intervention": ["none", "UAR"], "alpha": [None, 0.5], "model": [0, 0], "trees": [5, 5],
    ...     "test_tpr": [0.7, 0.6], "test_fpr_ratio": [0.5, 0.7999999]})
    >>> table = tabulate_points(
    ...     frame, [{"ratio": "fpr_ratio", "frontiers": {"test": [[True, True]]}}], setting_columns=["alpha"],
    ...     model_columns=["trees"], metrics=["test_tpr", "test_fpr_ratio"], barred={"test": [False, False]})
    >>> table["settings"][1], table["models"]
    ({'intervention': 'UAR', 'alpha': 0.5, 'setting': 'alpha 0.5'}, ['0: trees 5'])
    >>> table["setting"], table["model"], table["metrics"]["test_fpr_ratio"]
    ([0, 1], [0, 0], [500000, 799999])
    """
    frame = frame.iloc[rows]
    texts = [_words(row) for row in frame[list(setting_columns)].to_dict("records")] or [""] * len(frame)
    setting, kinds = _distinct(
        [
            (_plain(name), _plain(alpha), text)
            for name, alpha, text in zip(frame["intervention"], frame["alpha"], texts, strict=True)
        ]
    )
    about = frame[["model", *model_columns]].to_dict("records")
    model, models = _distinct([f"{row.pop('model')}: {_words(row)}" for row in about])
    return {
        "settings": [dict(zip(("intervention", "alpha", "setting"), kind, strict=True)) for kind in kinds],
        "models": models,
        "setting": setting,
        "model": model,
        "metrics": {name: _millionths(frame[name].to_numpy(dtype=np.float64)) for name in metrics},
        "counts": {name: _whole(frame[name]) for name in counts},
        "barred": {part: _positions(mask, rows) for part, mask in barred.items()},
        "views": [
            {
                **view,
                "frontiers": {
                    part: [_positions(mask, rows) for mask in masks]
                    for part, masks in view["frontiers"].items()
                },
            }
            for view in views
        ],
    }


def select_points(table: dict[str, Any], which: int) -> list[dict[str, Any]]:
    """Return the points of one landscape on test data; those on a frontier come last, to be on top."""
    view = table["views"][which]
    tpr, ratio = (table["metrics"][f"test_{name}"] for name in ("tpr", view["ratio"]))
    barred, frontier = set(table["barred"]["test"]), set().union(*view["frontiers"]["test"])
    points = [
        {
            **table["settings"][table["setting"][row]],
            "model": table["models"][table["model"][row]],
            "tpr": tpr[row] / MILLION,
            "ratio": ratio[row] / MILLION,
            "frontier": row in frontier,
        }
        for row in range(len(tpr))
        if row not in barred and tpr[row] is not None and ratio[row] is not None
    ]
    return sorted(points, key=lambda point: point["frontier"])


def _distinct(entries: Sequence[Any]) -> tuple[list[int], list[Any]]:
    """Return the position of each entry among the distinct entries, and these."""
    positions = {entry: position for position, entry in enumerate(dict.fromkeys(entries))}
    return [positions[entry] for entry in entries], list(positions)


def _words(row: dict[Any, Any]) -> str:
    known = {name: _plain(value) for name, value in row.items() if _plain(value) is not None}
    return ", ".join(
        value if isinstance(value, str) else f"{name} {plain_number(value, 4)}"
        for name, value in known.items()
    )


def _millionths(numbers: Any) -> list[int | None]:
    """Round numbers down to millionths; None where a number is not finite."""
    finite = np.isfinite(numbers)
    known = np.where(finite, numbers, 0.0)
    whole = np.floor(known * MILLION)
    whole += (whole + 1) / MILLION <= known  # the product is rounded, and may be so across a whole number
    whole -= whole / MILLION > known
    return [int(one) if there else None for one, there in zip(whole, finite, strict=True)]


def _positions(mask: Any, rows: Any) -> list[int]:
    positions: list[int] = np.flatnonzero(np.asarray(mask, dtype=np.bool_)[rows]).tolist()
    return positions


def _whole(column: pd.Series) -> list[int | None]:
    numbers = column.to_numpy(dtype=np.float64, na_value=np.nan)
    return [None if math.isnan(number) else int(number) for number in numbers]


def _plain(value: Any) -> Any:
    """Return a value for JSON, None if it is missing."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return None
    return value.item() if isinstance(value, np.generic) else value


def landscape_chart(
    points: list[dict[str, Any]], *, title: str, rule: float, looks: Sequence[dict[str, Any]], zoom: bool
) -> Any:
    """Make the chart of a landscape.

    Parameters
    ----------
    points : list of dict
        The points from `select_points`.
    title : str
        The title of the ratio.
    rule : float
        The ratio at which a line is drawn.
    looks : sequence of dict
        The mark of every intervention, in the order of display: its ``name``, its ``shape``, and its
        ``colour``, or None if alpha sets it.
    zoom : bool
        Whether to show the corner of the best models instead of all.

    Returns
    -------
    altair.LayerChart
    """
    try:
        import altair
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "Charts need Altair: install it with `pip install 'fado-ml[plot]'`.", name="altair"
        ) from error
    names = {point["intervention"] for point in points}
    if lacking := sorted(names - {look["name"] for look in looks}):
        raise ValueError(f"`looks` must name every intervention of the points, lacks {lacking}.")
    seen = [look for look in looks if look["name"] in names]
    steered = [look for look in seen if look["colour"] is None]
    baselines = [look for look in seen if look["colour"] is not None]
    best = max((point["tpr"] for point in points), default=1.0)
    if zoom:  # the whole frontier, and at least the best tenth of true-positive rates
        front = [point for point in points if point["frontier"]]
        left = min([0.9 * best, *(point["tpr"] - 0.01 for point in front)])
        bottom = min([rule - 0.05, *(point["ratio"] - 0.01 for point in front)])
        x = [max(math.floor(100 * left) / 100, 0.0), min(math.ceil(1010 * best) / 1000, 1.0)]
        y = [max(math.floor(20 * bottom + 1e-9) / 20, 0.0), 1.0]
    else:
        x, y = [0.0, min(math.ceil(20 * best + 0.5) / 20, 1.0)], [0.0, 1.0]
    line = {
        "data": {"values": [{"line": rule}]},
        "mark": {"type": "rule", "strokeDash": [6, 4], "color": "#555"},
        "encoding": {"y": {"field": "line", "type": "quantitative"}},
    }
    by_alpha = {
        "field": "alpha",
        "type": "quantitative",
        "scale": {"domain": [0, 1], "range": _ALPHAS},
        "legend": {"title": "alpha"} if steered else None,
    }
    shape = _by_intervention(seen, "shape", "intervention")
    by_name = _by_intervention(baselines, "colour", "baseline")
    return altair.Chart.from_dict(
        {
            "$schema": altair.SCHEMA_URL,
            "width": _SIZE,
            "height": _SIZE,
            "title": title,
            "layer": [
                line,
                _layer(steered, by_alpha, 0.3, shape, x, y),
                _layer(baselines, by_name, 0.9, shape, x, y),
            ],
            "resolve": {"scale": {"color": "independent", "shape": "shared"}},
            "data": {"values": points},
        }
    )


def _by_intervention(looks: list[dict[str, Any]], key: str, title: str) -> dict[str, Any]:
    """Encode interventions by shape or colour; an empty legend is left out."""
    return {
        "field": "intervention",
        "type": "nominal",
        "scale": {"domain": [look["name"] for look in looks], "range": [look[key] for look in looks]},
        "legend": {"title": title} if looks else None,
    }


def _layer(
    looks: list[dict[str, Any]],
    colour: dict[str, Any],
    opacity: float,
    shape: dict[str, Any],
    x: list[float],
    y: list[float],
) -> dict[str, Any]:
    """Return the layer of points that alpha colours, or that of the baselines."""
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


def _axis(field: str, title: str, domain: list[float]) -> dict[str, Any]:
    return {
        "field": field,
        "type": "quantitative",
        "title": title,
        "scale": {"domain": domain, "zero": False, "nice": False},
        "axis": {"labelSeparation": 6},  # the ends of the range are labelled flush, and would touch others
    }
