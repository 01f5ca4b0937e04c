"""The report: results -> plain dict -> one HTML page that makes no request.

Everything that comes from the data passes through the template's escaping, or stands in a block of JSON that
no browser runs. The page's own scripts are named by their digests in its security policy; no other may run.
"""

from __future__ import annotations

import base64
import hashlib
import json
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fado._files import replacing
from fado._version import __version__
from fado.experiment._charts import RATIO_TITLES, RULE, landscape_spec, points_of, points_table

if TYPE_CHECKING:
    from fado.experiment._results import Results

__all__ = ["page_content", "write_page"]

RATIOS = ("fpr_ratio", "fnr_ratio", "selection_rate_ratio")
_NEEDED = "window.vegaEmbed = vegaEmbed;"  # of the charting library, by the page's own script
FEW = 10  # members below which a group's numbers are not told


def write_page(results: Results, path: Path) -> None:
    """Write the report."""
    if path.suffix.lower() != ".html":
        raise ValueError(f"A report must end in .html, got {str(path)!r}.")
    text = _rendered(page_content(results))
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def page_content(results: Results) -> dict[str, Any]:
    """Give all that the page tells, as plain data."""
    table = points_table(results, RATIOS)
    charts = []
    for which, metric in enumerate(RATIOS):
        points = points_of(table, which)
        charts += [
            {"which": which, "zoom": zoom, "spec": landscape_spec(points, metric, zoom=zoom)}
            for zoom in (True, False)
        ]
    return {
        "version": __version__,
        "rule": RULE,
        "models": f"{len(results.frame):,}",
        "statuses": {name: f"{n:,}" for name, n in results.frame["status"].value_counts().items()},
        "errors": _errors(results),
        "chosen_on": results.chosen_on,
        "landscapes": [{"metric": metric, "title": RATIO_TITLES[metric]} for metric in RATIOS],
        "best": [_best(results, metric) for metric in RATIOS],
        "areas": [_areas(results, metric) for metric in RATIOS],
        "groups": _groups(results.summary),
        "positive": results.positive,
        "settings": {name: json.dumps(value) for name, value in results.config.flat().items()},
        "data": {"table": table, "charts": charts},
    }


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


def _rendered(content: dict[str, Any]) -> str:
    import jinja2
    import vl_convert

    folder = files("fado.experiment") / "templates"
    # "</script" inside a script would end it, wherever it stands.
    library = vl_convert.javascript_bundle(_NEEDED).replace("</script", "<\\/script")
    own = (folder / "report.js").read_text(encoding="utf-8")
    environment = jinja2.Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    template = environment.from_string((folder / "report.html").read_text(encoding="utf-8"))
    return template.render(
        **{name: value for name, value in content.items() if name != "data"},
        style=(folder / "report.css").read_text(encoding="utf-8"),
        scripts=[library, own],
        digests=[_digest(script) for script in (library, own)],
        data=_harmless(content["data"]),
    )


def _digest(script: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()


def _harmless(data: Any) -> str:
    """Write JSON in which no browser can see a tag."""
    text = json.dumps(data, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
