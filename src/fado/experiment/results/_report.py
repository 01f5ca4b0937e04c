"""The report: results -> plain dict -> page."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fado._files import replacing
from fado.experiment.results._looks import describe_marks, looks_of, setting_columns
from fado.metrics import RATIO_TITLES
from fado.reporting import landscape_page, tabulate_points

if TYPE_CHECKING:
    from fado.experiment.results._results import Results

__all__ = ["RULE", "points_table", "report_content", "write_report"]

RULE = 0.8  # the 80 % rule
REPORTED = ("fpr_ratio", "fnr_ratio", "selection_rate_ratio")
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
    return {
        "rule": RULE,
        "models": f"{len(results.frame):,}",
        "statuses": [f"{n:,} {name}" for name, n in results.frame["status"].value_counts().items()],
        "errors": _errors(results),
        "chosen_on": results.chosen_on,
        "looks": looks_of(results.frame),
        "marks": describe_marks(),
        "titles": [RATIO_TITLES[metric] for metric in REPORTED],
        "points": points_table(results, REPORTED),
        "best": [_best(results, metric) for metric in REPORTED],
        "areas": [_areas(results, metric) for metric in REPORTED],
        "groups": _groups(results.summary),
        "positive": results.positive,
        "settings": [{"name": name, "value": json.dumps(value)} for name, value in results.settings.items()],
    }


def points_table(results: Results, metrics: Sequence[str]) -> dict[str, Any]:
    """Give the points of several landscapes as plain data; see `fado.reporting.tabulate_points`."""
    import pandas as pd

    columns = list(results.frame.columns)
    return tabulate_points(
        results.frame,
        pd.DataFrame({metric: results.comparable_points(metric)[:, 1] for metric in metrics}),
        pd.DataFrame({metric: results.on_frontier(metric) for metric in metrics}),
        setting_columns=setting_columns(results.frame),
        model_columns=columns[columns.index("model") + 1 : columns.index("training_rows")],
    )


def _errors(results: Results) -> list[dict[str, Any]]:
    told = results.frame.dropna(subset=["error"])
    counts = told.groupby(["intervention", "status", "error"], sort=False).size().reset_index(name="models")
    return [
        {str(name): value for name, value in row.items()} | {"models": f"{row['models']:,}"}
        for row in counts.to_dict("records")
    ]


def _best(results: Results, metric: str) -> dict[str, Any]:
    best = results.best(metric, RULE)
    reached = set(best["intervention"])
    return {
        "title": RATIO_TITLES[metric],
        "rows": [
            {
                "intervention": row["intervention"],
                "alpha": _shown(row["alpha"], 1),
                "tpr": _with_interval(row, "test_tpr"),
                "ratio": _with_interval(row, f"test_{metric}"),
                "model": str(row["model"]),
            }
            for row in best.to_dict("records")
        ],
        "without": [name for name in results.interventions if name not in reached],
    }


def _areas(results: Results, metric: str) -> dict[str, Any]:
    areas = results.hypervolume(metric)
    return {
        "title": RATIO_TITLES[metric],
        "rows": [
            {
                "intervention": name,
                "area": _shown(row["hypervolume"]),
                "interval": f"{_shown(row['low'])} to {_shown(row['high'])}",
                "models": f"{row['models']:,.0f}",
            }
            for name, row in areas.iterrows()
        ],
    }


def _groups(summary: list[dict[str, Any]]) -> list[dict[str, str]]:
    """Tell the sizes and rates of groups, except of the few members of a small one."""
    return [
        {
            "part": entry["part"],
            "group": entry["group"],
            "rows": f"{entry['rows']:,}" if entry["rows"] >= FEW else f"fewer than {FEW}",
            "rate": _shown(entry["positives"] / entry["rows"], 4) if entry["rows"] >= FEW else "",
        }
        for entry in summary
    ]


def _with_interval(row: dict[Any, Any], name: str) -> str:
    low, high = row.get(f"{name}_low"), row.get(f"{name}_high")
    interval = "" if low is None else f" ({_shown(low)} to {_shown(high)})"
    return f"{_shown(row[name])}{interval}"


def _shown(number: Any, digits: int = 3) -> str:
    return "" if number is None or number != number else f"{number:.{digits}f}"
