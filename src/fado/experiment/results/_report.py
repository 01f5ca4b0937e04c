"""The report: results -> plain dict -> page."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fado._files import replacing
from fado.experiment.config import ratio_name
from fado.experiment.results._looks import describe_marks, describe_settings, looks_of
from fado.metrics import RATIO_TITLES
from fado.reporting import landscape_page, tabulate_points

if TYPE_CHECKING:
    from fado.experiment.results._results import Results

__all__ = ["RULE", "points_table", "report_content", "write_report"]

RULE = 0.8  # the 80 % rule
REPORTED = ("fpr_ratio", "fnr_ratio", "selection_rate_ratio")
ALL = "all attributes (the least ratio)"
FEW = 10  # members below which a group's numbers are not told


def write_report(results: Results, path: Path) -> None:
    """Write the report."""
    if path.suffix.lower() != ".html":
        raise ValueError(f"A report must end in .html, got {str(path)!r}.")
    text = landscape_page(report_content(results))
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def report_content(results: Results) -> dict[str, Any]:
    """Give all that the page tells, as plain data."""
    attributes = [None, *results.attributes] if len(results.attributes) > 1 else [None]
    views = [(metric, attribute) for metric in REPORTED for attribute in attributes]
    return {
        "rule": RULE,
        "models": f"{len(results.frame):,}",
        "statuses": [f"{n:,} {name}" for name, n in results.frame["status"].value_counts().items()],
        "errors": _errors(results),
        "chosen_on": results.chosen_on,
        "looks": looks_of(results.frame),
        "marks": describe_marks(),
        "titles": [RATIO_TITLES[metric] for metric in REPORTED],
        "attributes": [attribute or ALL for attribute in attributes],
        "points": points_table(results, views),
        "best": [_best(results, *view) for view in views],
        "areas": [_areas(results, *view) for view in views],
        "parts": list(dict.fromkeys(entry["part"] for entry in results.summary)),
        "groups": _groups(results.summary, left_out=False),
        "left_out": _groups(results.summary, left_out=True),
        "min_group_size": results.settings.get("data.min_group_size", 0),
        "positive": results.positive,
        "settings": [{"name": name, "value": json.dumps(value)} for name, value in results.settings.items()],
    }


def points_table(results: Results, views: Sequence[tuple[str, str | None]]) -> dict[str, Any]:
    """Give the points of several landscapes as plain data; see `fado.reporting.tabulate_points`.

    Parameters
    ----------
    results : Results
        The models.
    views : sequence of pairs
        Of each landscape the ratio, and the attribute if it is that of one.
    """
    import pandas as pd

    columns = list(results.frame.columns)
    ratios = {view: results.comparable_points(view[0], attribute=view[1])[:, 1] for view in views}
    fronts = {view: results.on_frontier(view[0], attribute=view[1]) for view in views}
    return tabulate_points(
        results.frame.assign(settings=describe_settings(results.frame)),
        pd.DataFrame({number: ratios[view] for number, view in enumerate(views)}),
        pd.DataFrame({number: fronts[view] for number, view in enumerate(views)}),
        setting_columns=["settings"],
        model_columns=columns[columns.index("model") + 1 : columns.index("training_rows")],
    )


def _errors(results: Results) -> list[dict[str, Any]]:
    told = results.frame.dropna(subset=["error"])
    counts = told.groupby(["intervention", "status", "error"], sort=False).size().reset_index(name="models")
    counts = counts.sort_values("models", ascending=False, kind="stable")
    return [
        {str(name): value for name, value in row.items()} | {"models": f"{row['models']:,}"}
        for row in counts.to_dict("records")
    ]


def _best(results: Results, metric: str, attribute: str | None) -> dict[str, Any]:
    winners = results.winners(metric, RULE, attribute=attribute)
    rows = [
        {
            "intervention": row["intervention"],
            "settings": row["settings"],
            "tpr": _with_interval(row, "tpr"),
            "ratio": _with_interval(row, "ratio"),
            "model": str(row["model"]),
            "reached": row["reached"],
            "each": [_with_interval(row, ratio_name("ratio", name)) for name in results.attributes],
        }
        for row in winners.to_dict("records")
    ]
    told = {row["intervention"] for row in rows}
    return {
        "rows": [row for row in rows if row["reached"]],
        "closest": [row for row in rows if not row["reached"]],
        "without": [name for name in results.interventions if name not in told],
    }


def _areas(results: Results, metric: str, attribute: str | None) -> dict[str, Any]:
    areas = results.hypervolume(metric, attribute=attribute)
    return {
        "rows": [
            {
                "intervention": name,
                "area": _shown(row["hypervolume"]),
                "interval": f"{_shown(row['low'])} to {_shown(row['high'])}",
                "models": f"{row['models']:,.0f}",
            }
            for name, row in areas.sort_values("hypervolume", ascending=False, kind="stable").iterrows()
        ],
    }


def _groups(summary: list[dict[str, Any]], *, left_out: bool) -> list[dict[str, Any]]:
    """Tell the rows and positive rates of groups in every part, except of the few members of a small one."""
    found: dict[tuple[Any, str], dict[str, Any]] = {}
    for entry in summary:
        if bool(entry.get("left_out")) is left_out:
            own = found.setdefault((entry.get("attribute"), entry["group"]), {"group": entry["group"]})
            enough = entry["rows"] >= FEW
            own[entry["part"]] = {
                "rows": f"{entry['rows']:,}" if enough else f"fewer than {FEW}",
                "rate": _shown(entry["positives"] / entry["rows"], 4) if enough else "",
            }
    return list(found.values())


def _with_interval(row: dict[Any, Any], name: str) -> str:
    """Show a metric, with its interval if there is one."""
    low, high = (row.get(f"{name}{end}") for end in ("_low", "_high"))
    if low is None or low != low:
        return _shown(row[name])
    return f"{_shown(row[name])} ({_shown(low)} to {_shown(high)})"


def _shown(number: Any, digits: int = 3) -> str:
    return "" if number is None or number != number else f"{number:.{digits}f}"
