"""The report: results -> plain dict -> page."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from fado._storage import replacing
from fado.experiment._trial import DONE
from fado.experiment.config import ratio_name
from fado.experiment.results._looks import describe_marks, describe_settings, looks_of
from fado.experiment.results._winners import ENDS
from fado.metrics import RATIO_TITLES, pareto_frontier
from fado.reporting import landscape_page, tabulate_points

if TYPE_CHECKING:
    import pandas as pd

    from fado.experiment._results import Results

__all__ = ["RULE", "models_table", "points_table", "report_content", "write_report"]

View: TypeAlias = tuple[str, str | None]  # a ratio, and the attribute if it is that of one

RULE = 0.8  # the 80 % rule
REPORTED = ("fpr_ratio", "fnr_ratio", "selection_rate_ratio")
RATE_TITLES = {"tpr": "True-positive rate", "fpr": "False-positive rate"}
ALL = "all attributes (the least ratio)"
FEW = 10  # members below which a group's numbers are not told


def write_report(results: Results, path: Path) -> None:
    """Write the report."""
    if path.suffix.lower() != ".html":
        raise ValueError(f"A report must end in .html, got {str(path)!r}.")
    text = landscape_page(report_content(results))
    with replacing(path, "The report") as temporary:
        temporary.write_text(text, encoding="utf-8")


def report_content(results: Results) -> dict[str, Any]:
    """Give all that the page tells, as plain data."""
    attributes = [None, *results.attributes] if len(results.attributes) > 1 else [None]
    views = [(metric, attribute) for metric in REPORTED for attribute in attributes]
    return {
        "rule": RULE,
        "models": f"{len(results.frame):,}",
        "statuses": _statuses(results.frame),
        "notes": results.notes,
        "errors": _errors(results),
        "chosen_on": results.chosen_on,
        "looks": _looks(results),
        "marks": describe_marks(),
        "titles": [RATIO_TITLES[metric] for metric in REPORTED],
        "attributes": [attribute or ALL for attribute in attributes],
        "points": models_table(results, views),
        "figures": [{"name": name, "title": _title(name)} for name in _measured(results.frame)],
        "areas": [_areas(results, *view) for view in views],
        "parts": list(dict.fromkeys(entry["part"] for entry in results.summary)),
        "groups": _groups(results.summary, left_out=False),
        "left_out": _groups(results.summary, left_out=True),
        "min_group_size": results.settings.get("data.min_group_size", 0),
        "positive": results.positive,
        "settings": [{"name": name, "value": json.dumps(value)} for name, value in results.settings.items()],
    }


def points_table(results: Results, views: Sequence[View]) -> dict[str, Any]:
    """Give the points of several landscapes on the test part; see `fado.reporting.tabulate_points`.

    Parameters
    ----------
    results : Results
        The models.
    views : sequence of pairs
        Of each landscape the ratio, and the attribute if it is that of one.
    """
    ratios = [ratio_name(*view) for view in views]
    fronts = [results.on_frontier(metric, attribute=attribute) for metric, attribute in views]
    return _tabulated(
        results,
        np.arange(len(results.frame)),
        [{"ratio": ratio, "frontiers": [front]} for ratio, front in zip(ratios, fronts, strict=True)],
        metrics=[f"test_{name}" for name in ("tpr", *ratios)],
        barred={"test": _barred(results, views, "test")},
    )


def models_table(results: Results, views: Sequence[View]) -> dict[str, Any]:
    """Give all that a page tells of the models that are done, by falling true-positive rate.

    They are sorted as `Results.best` sorts them, on the part that they are chosen on.
    """
    frame, parts = results.frame, _measuring_parts(results)
    done = np.flatnonzero((frame["status"] == DONE).to_numpy())
    rates = frame[f"{results.chosen_on}_tpr"].reset_index(drop=True).iloc[done]
    rows = rates.sort_values(ascending=False, kind="stable").index.to_numpy()
    columns = [f"{part}_{name}{end}" for part in parts for name in _measured(frame) for end in ENDS]
    return _tabulated(
        results,
        rows,
        [{"ratio": ratio_name(*view), "frontiers": _frontiers(results, view)} for view in views],
        metrics=[name for name in columns if name in frame.columns],
        counts=[name for name in ("training_rows", "fits") if name in frame.columns],
        barred={part: _barred(results, views, part) for part in parts},
    )


def _tabulated(
    results: Results,
    rows: Any,
    views: Sequence[dict[str, Any]],
    *,
    metrics: Sequence[str],
    counts: Sequence[str] = (),
    barred: dict[str, Any],
) -> dict[str, Any]:
    """Tabulate some rows of the frame; masks are those of the whole frame."""
    columns = list(results.frame.columns)
    return tabulate_points(
        results.frame.assign(settings=describe_settings(results.frame)).iloc[rows],
        [view | {"frontiers": [front[rows] for front in view["frontiers"]]} for view in views],
        setting_columns=["settings"],
        model_columns=columns[columns.index("model") + 1 : columns.index("training_rows")],
        metrics=list(dict.fromkeys(metrics)),
        counts=counts,
        barred={part: mask[rows] for part, mask in barred.items()},
    )


def _measuring_parts(results: Results) -> list[str]:
    return list(dict.fromkeys([results.chosen_on, "test"]))


def _barred(results: Results, views: Sequence[View], part: str) -> Any:
    """Mark the rows that can be compared in no view: beyond the budget, not done, or undefined."""
    points = [results.comparable_points(metric, part, attribute=own)[:, 1] for metric, own in views]
    return np.isnan(points).all(axis=0)


def _frontiers(results: Results, view: View) -> list[Any]:
    """Mark the frontier of the models whose decisions need no group, and that of those that need it."""
    needing = [look["name"] for look in looks_of(results.frame) if look["needs_group"]]
    needs = results.frame["intervention"].isin(needing).to_numpy()
    fronts = []
    for mask in (~needs, needs):
        points = results.comparable_points(view[0], attribute=view[1])
        points[~mask] = np.nan
        fronts.append(pareto_frontier(points))
    return fronts


def _measured(frame: pd.DataFrame) -> list[str]:
    """Name what models are measured by, the true-positive rate and the ratios' first."""
    names = [str(name).removeprefix("test_") for name in frame.columns if str(name).startswith("test_")]
    ends = {f"{name}{end}" for name in names for end in ENDS[1:]}
    first = [name for name in ("tpr", "fpr", *RATIO_TITLES) if name in names]
    return list(dict.fromkeys([*first, *(name for name in names if name not in ends)]))


def _title(name: str) -> str:
    """Say what a metric is.

    Examples
    --------
    >>> _title("fpr"), _title("tpr_ratio[sex]"), _title("balanced_accuracy")
    ('False-positive rate', 'Ratio of true-positive rates, sex', 'Balanced accuracy')
    """
    base, _, attribute = name.partition("[")
    title = {**RATE_TITLES, **RATIO_TITLES}.get(base, base.replace("_", " ").capitalize())
    return f"{title}, {attribute.removesuffix(']')}" if attribute else title


def _statuses(frame: pd.DataFrame) -> list[str]:
    return [f"{count:,} {name}" for name, count in frame["status"].value_counts().items()]


def _looks(results: Results) -> list[dict[str, Any]]:
    """Give the marks of interventions, each with what became of its models."""
    frame = results.frame
    return [
        look | {"statuses": _statuses(frame[frame["intervention"] == look["name"]])}
        for look in looks_of(frame)
    ]


def _errors(results: Results) -> list[dict[str, Any]]:
    told = results.frame.dropna(subset=["error"])
    counts = told.groupby(["intervention", "status", "error"], sort=False).size().reset_index(name="models")
    counts = counts.sort_values("models", ascending=False, kind="stable")
    return [
        {str(name): value for name, value in row.items()} | {"models": f"{row['models']:,}"}
        for row in counts.to_dict("records")
    ]


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


def _shown(number: Any, digits: int = 3) -> str:
    return "" if number is None or number != number else f"{number:.{digits}f}"
