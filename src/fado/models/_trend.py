"""Many checks combined: by month, by day, as a page."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from fado._checks import check_choice
from fado._storage import replacing
from fado.metrics import RATIO_TITLES, Budget, compared_counts
from fado.models._check import (
    COUNTS,
    KIND,
    LAYOUT,
    VERDICTS,
    Check,
    budget_used,
    counts_of,
    judge_ratio,
    without_nan,
)
from fado.reporting import render_page
from fado.tabular import Groups

if TYPE_CHECKING:
    import pandas as pd

PAGE = "trend.html"
_NAME = re.compile(r"\d{4}-\d\d-\d\d\.json")
_COLUMNS = "period ratio line value low high level verdict checks rows budget_used drifted threshold"


def add_check(check: Check, directory: str | os.PathLike[str]) -> Path:
    """Keep a check in a directory of checks, and write the page of all of them.

    Parameters
    ----------
    check : Check
        It is kept as ``<date>.json``; an earlier check of the same day is replaced.
    directory : path-like
        It is created if it does not exist; its parent must.

    Returns
    -------
    Path
        The page, ``trend.html``.

    Raises
    ------
    ValueError
        If a file of the directory is named like a check and is not one.

    See Also
    --------
    fado.models.ChosenModel.check : Make a check.
    fado.models.check_trend : Combine checks.
    """
    folder = Path(directory)
    folder.mkdir(exist_ok=True)
    check.write_json(folder / f"{check.date}.json")
    with replacing(folder / PAGE, "The trend") as temporary:
        temporary.write_text(_page(_read_checks(folder)), encoding="utf-8")
    return folder / PAGE


def check_trend(
    checks: str | os.PathLike[str] | Iterable[Check], by: Literal["month", "day"] = "month"
) -> pd.DataFrame:
    """Combine checks: each ratio, the budget and the columns, month by month.

    Rows of one month are counted together, so that many small checks can decide what each alone has too few
    rows for. No row may be in two checks.

    Parameters
    ----------
    checks : path-like or iterable of Check
        A directory that `add_check` or ``fado predict --history`` wrote, or the checks themselves.
    by : {"month", "day"}, default="month"
        The period over which to combine. Checks of models that differ in threshold, lines or budget are not
        combined.

    Returns
    -------
    DataFrame
        One row per month, or day, and ratio: ``period``, ``ratio``, ``line``, ``value``, ``low``, ``high``,
        their confidence ``level``, ``verdict`` ("held", "missed" or "undecided"), ``checks``, ``rows``,
        ``budget_used`` (1 is all of it), ``drifted`` (columns that drifted in any check) and ``threshold``.

    Raises
    ------
    ValueError
        If a file of the directory is named like a check and is not one.

    See Also
    --------
    fado.models.ChosenModel.check : Make a check.
    fado.models.add_check : Keep a check in a directory.
    """
    import pandas as pd

    check_choice("by", by, ("month", "day"))
    if isinstance(checks, str | os.PathLike):
        found = _read_checks(Path(checks))
    else:
        found = sorted((own.to_plain() for own in checks), key=lambda own: str(own["date"]))
    return pd.DataFrame(_trend(found, by), columns=_COLUMNS.split())


def _read_checks(folder: Path) -> list[dict[str, Any]]:
    """Read the checks of a directory, in the order of their days."""
    if not folder.is_dir():
        raise ValueError(f"There is no directory {str(folder)!r} to read checks from.")
    return [_read(path) for path in sorted(folder.iterdir()) if _NAME.fullmatch(path.name)]


def _read(path: Path) -> dict[str, Any]:
    """Read a check; anything else raises a ValueError."""
    try:
        told = json.loads(path.read_text(encoding="utf-8"))
        whole = (told["kind"], told["format"], told["date"]) == (KIND, LAYOUT, path.stem)
        date.fromisoformat(told["date"])
        _together([told])
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        whole = False
    if not whole:
        raise ValueError(f"{str(path)!r} is not a check of this release: move it out of the directory.")
    return dict(told)


def _trend(checks: list[dict[str, Any]], by: str) -> list[dict[str, Any]]:
    """Return a row per period, model and ratio; periods and models in the order in which they come."""
    parts: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for own in checks:
        period = own["date"][:7] if by == "month" else own["date"]
        model = [own["metrics"]["threshold"], own["lines"], own["budget"]["kind"], own["budget"]["limit"]]
        parts.setdefault((period, json.dumps(model)), []).append(own)
    return [
        {"period": period, **row} for (period, _), together in parts.items() for row in _together(together)
    ]


def _together(checks: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Count the rows of some checks together, and compare each ratio with its line."""
    first = checks[-1]
    counted: dict[str, dict[str, int]] = {}
    unknown = {
        str(group["group"]) for own in checks for group in own["groups"] if group["reason"] == "unknown"
    }
    for group in (group for own in checks for group in own["groups"]):
        sums = counted.setdefault(str(group["group"]), dict.fromkeys(COUNTS, 0))
        for name in COUNTS:
            sums[name] += int(group[name])
    counts = counts_of(list(counted.values()))
    place = next((place for place, name in enumerate(counted) if name in unknown), None)
    groups = Groups(np.zeros(0, dtype=np.int64), tuple(counted), tuple(counted), place)
    compared = groups.compared(int(first["min_group_size"]), [own["rows"] for own in counted.values()])
    budget = Budget(first["budget"]["kind"], first["budget"]["limit"])
    level, rows = float(first["level"]), []
    for ratio, line in first["lines"].items():
        judged = judge_ratio(ratio, float(line), compared_counts(counts, compared), (1 - level) / 2)
        rows.append(
            {
                **judged._asdict(),
                "level": level,
                "verdict": VERDICTS[judged.held],
                "checks": len(checks),
                "rows": int(counts.negatives.sum() + counts.positives.sum()),
                "budget_used": budget_used(budget, counts, len(checks)),
                "drifted": tuple(dict.fromkeys(str(name) for own in checks for name in own["drifted"])),
                "threshold": first["metrics"]["threshold"],
            }
        )
    return rows


def _page(checks: list[dict[str, Any]]) -> str:
    """Render the page of all checks."""
    months, days = _trend(checks, "month"), _trend(checks, "day")
    budget = checks[-1]["budget"]
    data = {
        "last": {name: checks[-1][name] for name in ("date", "sentence", "notes")},
        "checks": len(checks),
        "budget": str(Budget(budget["kind"], budget["limit"])),
        "models": len({own["threshold"] for own in days}),
        "ratios": [
            {
                "name": ratio,
                "title": RATIO_TITLES[ratio],
                "months": [without_nan(own) for own in months if own["ratio"] == ratio],
                "days": [without_nan(own) for own in days if own["ratio"] == ratio],
            }
            for ratio in dict.fromkeys(own["ratio"] for own in days)
        ],
    }
    scripts = ["numbers.js", "svg.js", "trend.js"]
    return render_page("trend", title="Checks of a model", scripts=scripts, data=data)
