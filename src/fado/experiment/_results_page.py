"""The report: results, plain data, page."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from fado._checks import check_choice
from fado._messages import list_names, warn_user
from fado._storage import replacing
from fado._version import __version__
from fado.experiment._choice import decides_alone
from fado.experiment._config import ratio_name
from fado.experiment._frame import is_whole, parameter_columns, parts_of
from fado.experiment._metrics import metric_names
from fado.experiment._trial import DONE, UNTOUCHED
from fado.interventions import intervention_entries
from fado.metrics import RATES, RATIO_NAMES, RATIO_TITLES, best_first, pareto_frontier
from fado.reporting import render_page, select_points, shown_table, tabulate_points

if TYPE_CHECKING:
    import pandas as pd

    from fado.experiment._results import Results

View: TypeAlias = tuple[str, str | None]  # a ratio, and the attribute if it is that of one

RULE = 0.8  # the 80 % rule
ENDS = ("", "_low", "_high")
ALL = "all attributes (the lowest ratio)"
FEW = 10  # rows below which the numbers of a group are not shown


def write_report(
    results: Results, path: Path, metric: str, at_least: float, notes: Sequence[str] = ()
) -> None:
    """Write the report, which shows a ratio and its line first."""
    if path.suffix.lower() != ".html":
        raise ValueError(f"A report must end in .html, got {str(path)!r}.")
    text = render_page("landscape.html", report_content(results, metric, at_least, notes))
    with replacing(path, "The report") as temporary:
        temporary.write_text(text, encoding="utf-8")


def report_content(
    results: Results, metric: str = RATIO_NAMES[0], at_least: float = RULE, notes: Sequence[str] = ()
) -> dict[str, Any]:
    """Return the content of the page as plain data, with the given ratio first.

    The page's script draws the landscape and selects the models above the line, which the reader can move.

    Returns
    -------
    dict
        Numbers are formatted as text, except those of models.

        - ``models``, the number of models; ``statuses``, a list such as ``["30 done"]``; ``notes``, sentences
          below them.
        - ``rule``, the first line; ``chosen_on``, the part that selects models, which the page draws;
          ``first_looks``, whether some models were trained in part and cannot be selected.
        - ``looks``, see `landscape_chart`, with whether decisions need the group of a row (``needs_group``),
          whether a model decides ``alone``, and the ``statuses`` of the models; ``marks``, what the shapes
          mean, in words.
        - ``titles``, of the ratios; ``attributes``, the names of the attributes to choose from: all, and, if
          there are several, each of them. A view is one ratio of one attribute; the views of the first ratio
          come first.
        - ``points``, the result of `tabulate_points` for the views, with two frontiers of each part (models
          that need no group, and models that do), and the ``choices`` at every line: per ``intervention`` how
          many models were ``compared``, and its ``steps``, pairs of a row and its place among all. The first
          whose ratio reaches a line is the best there; if none does, the last is the closest.
          The page shows the first view first. Rows are sorted by true-positive rate, from high to low, on
          the part that selects models.
        - ``figures``, the metrics on a model's card: the ``name`` of each, without that of its part, and its
          ``title``.
        - ``areas``, per view ``rows`` (``intervention``, ``area``, ``interval``, ``models``), and whether
          they are ``ranked``.
        - ``groups`` and ``left_out``, the groups that ratios compare and those that they leave out, having
          fewer than ``min_group_size`` rows: the ``group``, and per entry of ``parts`` its ``rows`` and its
          ``rate``; ``positive``, the positive label or None.
        - ``errors``, rows of ``intervention``, ``models``, ``status`` and ``error``.
        - ``settings``, rows of ``name`` and ``value``.
        - ``version``, that of the library.
    """
    check_choice("metric", metric, RATIO_NAMES)
    if not 0 <= at_least <= 1:
        raise ValueError(f"`at_least` must be in [0, 1], got {at_least!r}.")
    ratios = list(dict.fromkeys([metric, *RATIO_NAMES]))
    attributes = [None, *results.attributes] if len(results.attributes) > 1 else [None]
    views = [(metric, attribute) for metric in ratios for attribute in attributes]
    return {
        "version": __version__,
        "rule": at_least,
        "models": f"{len(results.frame):,}",
        "statuses": _statuses(results.frame),
        "notes": [*results.notes, *notes],
        "errors": _errors(results.frame),
        "chosen_on": results.chosen_on,
        "first_looks": not is_whole(results.frame).all(),
        "looks": [
            look | {"statuses": _statuses(results.frame[results.frame["intervention"] == look["name"]])}
            for look in looks_of(results.frame)
        ],
        "marks": describe_marks(results.frame),
        "titles": [RATIO_TITLES[metric] for metric in ratios],
        "attributes": [attribute or ALL for attribute in attributes],
        "points": _models_table(results, views),
        "figures": [{"name": name, "title": _title(name)} for name in _measured(results.frame)],
        "areas": [_areas(results, *view) for view in views],
        "parts": list(dict.fromkeys(entry["part"] for entry in results.summary)),
        "groups": _groups(results.summary, left_out=False),
        "left_out": _groups(results.summary, left_out=True),
        "min_group_size": results.settings.get("data.min_group_size", 0),
        "positive": results.positive,
        "settings": [{"name": name, "value": json.dumps(value)} for name, value in results.settings.items()],
    }


def points_of(results: Results, metric: str, attribute: str | None) -> list[dict[str, Any]]:
    """Return the points of one landscape on test data, for a chart."""
    ratio = ratio_name(metric, attribute)
    table = tabulate_points(
        results.frame.assign(settings=describe_settings(results.frame)),
        [{"ratio": ratio, "frontiers": {"test": [results.on_frontier(metric, attribute=attribute)]}}],
        setting_columns=["settings"],
        model_columns=parameter_columns(results.frame),
        metrics=["test_tpr", f"test_{ratio}"],
        barred={"test": _barred(results, [(metric, attribute)], "test")},
    )
    return select_points(table, 0)


def _models_table(results: Results, views: Sequence[View]) -> dict[str, Any]:
    """Return the table of all models that are done, by true-positive rate from high to low.

    The rate is on the part that selects models. Models that were trained in part cannot be selected.
    """
    frame, parts = results.frame, parts_of(results.config)
    done = np.flatnonzero((frame["status"] == DONE).to_numpy())
    rates = frame[f"{results.chosen_on}_tpr"].reset_index(drop=True).iloc[done]
    rows = rates.sort_values(ascending=False, kind="stable").index.to_numpy()
    columns = [f"{part}_{name}{end}" for part in parts for name in _measured(frame) for end in ENDS]
    return tabulate_points(
        results.frame.assign(settings=describe_settings(results.frame)),
        [
            {
                "ratio": ratio_name(*view),
                "frontiers": {part: _frontiers(results, view, part) for part in parts},
                "choices": _choices(results, view, rows),
            }
            for view in views
        ],
        rows=rows,
        setting_columns=["settings"],
        model_columns=parameter_columns(frame),
        metrics=[name for name in dict.fromkeys(columns) if name in frame.columns],
        counts=[name for name in ("training_rows", "fits") if name in frame.columns],
        barred={part: _barred(results, views, part) | ~is_whole(frame) for part in parts},
    )


def _barred(results: Results, views: Sequence[View], part: str) -> Any:
    """Mark the rows that cannot be compared in any view: over the budget, not done, or undefined."""
    ratios = [results.comparable_points(metric, part, attribute=name)[:, 1] for metric, name in views]
    return np.isnan(ratios).all(axis=0)


def _choices(results: Results, view: View, rows: Any) -> list[dict[str, Any]]:
    """Return for every intervention the models that are selected at some line, and their places among all.

    The first of an intervention whose ratio reaches a line is its best there; if none does, its last is the
    closest.
    """
    rates, ratios = results.comparable_points(view[0], results.chosen_on, attribute=view[1])[rows].T
    names = results.frame["intervention"].to_numpy()[rows]
    known = np.flatnonzero(~np.isnan(ratios) & is_whole(results.frame)[rows])
    best = known[best_first(rates[known], ratios[known], np.ones(len(known), dtype=np.bool_))]
    choices: dict[str, dict[str, Any]] = {}
    for place, row in enumerate(best.tolist()):
        choice = choices.setdefault(names[row], {"intervention": names[row], "compared": 0, "steps": []})
        choice["compared"] += 1
        if not choice["steps"] or ratios[row] > ratios[choice["steps"][-1][0]]:
            choice["steps"].append([row, place])
    return list(choices.values())


def _frontiers(results: Results, view: View, part: str) -> list[Any]:
    """Mark two frontiers: of the models whose decisions need no group, and of those that need it."""
    names = [look["name"] for look in looks_of(results.frame) if look["needs_group"]]
    needs = results.frame["intervention"].isin(names).to_numpy()
    fronts = []
    for mask in (~needs, needs):
        points = results.comparable_points(view[0], part, attribute=view[1])
        points[~mask | ~is_whole(results.frame)] = np.nan
        fronts.append(pareto_frontier(points))
    return fronts


def _measured(frame: pd.DataFrame) -> list[str]:
    """Name the metrics, the true-positive rate and the ratios first."""
    names = [str(name).removeprefix("test_") for name in frame.columns if str(name).startswith("test_")]
    ends = {f"{name}{end}" for name in names for end in ENDS[1:]}
    first = [name for name in ("tpr", "fpr", *RATIO_TITLES) if name in names]
    return list(dict.fromkeys([*first, *(name for name in names if name not in ends)]))


def _title(name: str) -> str:
    """Return the title of a metric.

    Examples
    --------
    >>> _title("fpr"), _title("tpr_ratio[sex]"), _title("balanced_accuracy")
    ('False-positive rate', 'Ratio of true-positive rates, sex', 'Balanced accuracy')
    """
    base, _, attribute = name.partition("[")
    title = (
        RATIO_TITLES.get(base)
        or (RATES[base].title if base in RATES else base.replace("_", " ")).capitalize()
    )
    return f"{title}, {attribute.removesuffix(']')}" if attribute else title


def _statuses(frame: pd.DataFrame) -> list[str]:
    return [f"{count:,} {name}" for name, count in frame["status"].value_counts().items()]


def _errors(frame: pd.DataFrame) -> list[dict[str, Any]]:
    failed = frame.dropna(subset=["error"])
    counts = failed.groupby(["intervention", "status", "error"], sort=False).size().reset_index(name="models")
    counts = counts.sort_values("models", ascending=False, kind="stable")
    counts = counts.assign(models=[f"{count:,}" for count in counts["models"]])
    records: Any = counts.to_dict("records")
    return list(records)


def _areas(results: Results, metric: str, attribute: str | None) -> dict[str, Any]:
    """Return the areas of interventions, the largest first if all have the same number of models."""
    areas = results.hypervolume(metric, part=results.chosen_on, attribute=attribute)
    areas = areas[areas["models"] > 0]
    ranked = len(set(areas["models"])) <= 1
    if ranked:
        areas = areas.sort_values("hypervolume", ascending=False, kind="stable")
    return {
        "ranked": ranked,
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


def _groups(summary: list[dict[str, Any]], *, left_out: bool) -> list[dict[str, Any]]:
    """Return the rows and positive rates of groups in every part, without numbers of very small groups."""
    groups: dict[tuple[Any, str], dict[str, Any]] = {}
    for entry in summary:
        if bool(entry.get("left_out")) is left_out:
            group = groups.setdefault((entry.get("attribute"), entry["group"]), {"group": entry["group"]})
            enough = entry["rows"] >= FEW
            group[entry["part"]] = {
                "rows": f"{entry['rows']:,}" if enough else f"fewer than {FEW}",
                "rate": _shown(entry["positives"] / entry["rows"], 4) if enough else "",
            }
    return list(groups.values())


def _shown(number: Any, digits: int = 3) -> str:
    return "" if number is None or number != number else f"{number:.{digits}f}"


_SHAPE, _COLOUR = "circle", "#777777"  # of unregistered interventions, or without colour and alpha
_PLURALS = {"triangle-up": "triangles", "triangle-down": "triangles", "cross": "crosses"}


def intervention_names(frame: pd.DataFrame) -> list[str]:
    """List the interventions of a frame: in the order of registration, then unregistered ones."""
    there = list(dict.fromkeys(frame["intervention"]))
    known = [entry.name for entry in intervention_entries()]
    return [name for name in dict.fromkeys([*known, *there]) if name in there]


def looks_of(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Return the mark of every intervention of a frame; without a colour, alpha sets it.

    It also states whether decisions need the group of a row, and whether a model can be returned.
    """
    entries = {entry.name: entry for entry in intervention_entries()}
    steered = set(frame.loc[frame["alpha"].notna(), "intervention"])
    looks = []
    for name in intervention_names(frame):
        entry = entries.get(name)
        colour = entry.colour if entry is not None else None
        looks.append(
            {
                "name": name,
                "shape": entry.shape if entry is not None else _SHAPE,
                "colour": _COLOUR if colour is None and name not in steered else colour,
                "needs_group": bool(getattr(entry, "needs_group", False)),
                "alone": entry is None or decides_alone(name),
            }
        )
    return looks


def describe_marks(frame: pd.DataFrame) -> str:
    """Explain the shapes of the registered interventions of a frame."""
    shapes: dict[str, dict[str, None]] = {}
    families = {"rows": "sampling", "weights": "reweighing"}
    for entry in intervention_entries():
        if entry.name in set(frame["intervention"]):
            family = families.get(entry.kind.changes, "changed scores")
            family = family if entry.uses_values or entry.changes_scores else "baselines"
            plural = _PLURALS.get(entry.shape, f"{entry.shape}s")
            shapes.setdefault(family, {})[plural] = None
    phrases = [
        f"{' and '.join(plurals)}{'' if place else ' are'} {family}"
        for place, (family, plurals) in enumerate(shapes.items())
    ]
    return ", ".join(phrases).capitalize()


def setting_columns(frame: pd.DataFrame) -> list[str]:
    """Name the columns of settings, except those with one value per experiment."""
    columns = list(frame.columns)
    single = {
        setting.name
        for entry in intervention_entries()
        for setting in entry.settings
        if setting.plural is None
    }
    there = columns[columns.index("intervention") + 1 : columns.index("model")]
    return [name for name in there if name not in single]


def describe_settings(frame: pd.DataFrame) -> list[str]:
    """Describe the settings of every row in words; the algorithm only if there are several."""
    names = [
        name
        for name in setting_columns(frame)
        if name != "algorithm" or len(frame[name].dropna().unique()) > 1
    ]
    return [
        ", ".join(
            f"{str(name).replace('_', ' ')} {value if isinstance(value, str) else format(value, '.4g')}"
            for name, value in row.items()
            if value is not None and value == value
        )
        for row in frame[names].to_dict("records")
    ]


def notes_of(results: Results) -> list[str]:
    """State how many models an intervention on scores does not change, by line."""
    names = [entry.name for entry in intervention_entries() if entry.changes_scores]
    done = results.frame[results.frame["status"] == DONE]
    changed = done[done["intervention"].isin(names)]
    if changed.empty or "ratio" not in changed.columns:  # a plug-in on scores may have no ratio
        return []
    changed = changed[changed["ratio"].notna()]
    if "demand" in changed.columns:
        changed = changed[changed["demand"].isna()]
    part = results.chosen_on
    metrics = [f"{part}_{name}" for name in ("threshold", "fpr", "tpr", *RATIO_NAMES)]
    baselines = done[done["intervention"] == UNTOUCHED.intervention].set_index("model")[metrics]
    notes = []
    for (name, ratio, line), rows in changed.groupby(["intervention", "ratio", "at_least"], sort=False):
        same = [
            bool(row[f"{part}_{ratio}"] >= line)
            for model, (_, row) in zip(rows["model"], rows[metrics].iterrows(), strict=True)
            if model in baselines.index and baselines.loc[[model]].iloc[0].equals(row)
        ]
        for reach, what in ((True, "already reach"), (False, "cannot be moved closer to")):
            if n_models := same.count(reach):
                notes.append(
                    f"{name}: {n_models:,} of {len(rows):,} models {what} a {ratio} of {line:g} on "
                    f"{part} rows: their scores stay the same."
                )
    return notes


MOST = 20  # rows


def results_shown(title: str, results: Results, metric: str) -> str:
    """Return the frontier of one ratio, on the rows that select models, as an output of a notebook."""
    part = results.chosen_on
    frontier = results.pareto(metric, part)
    if not len(frontier):
        return shown_table(title, [f"No model can be compared by {metric} yet."])
    chosen = frontier.iloc[:MOST]
    table = chosen[["intervention"]].assign(settings=describe_settings(chosen), model=chosen["model"])
    for measured in parts_of(results.config):
        for name in ("tpr", metric):
            table[f"{measured} {name}"] = chosen[f"{measured}_{name}"]
    lines = [f"Models that no other beats in both true-positive rate and {metric} on {part} rows:"]
    if len(frontier) > MOST:
        lines.append(f"The first {MOST} of {len(frontier):,}; `pareto` returns all.")
    return shown_table(title, lines, table)


def warn_of_lacking(results: Results, store: str | os.PathLike[str]) -> None:
    """Warn of what an experiment used and is not registered here."""
    where = f"The store {os.fspath(store)!r}"
    if results.lacking:
        warn_user(
            f"{where} was made with {'; '.join(results.lacking)}, not registered here: its results are shown "
            "as they were measured. To continue it, or to train its models again, import or install that "
            "first."
        )
    metrics = [name for name in results.config.evaluation.metrics if name not in metric_names()]
    if metrics:
        warn_user(
            f"{where} has metrics that are not registered here, {list_names(metrics)}: they are shown as "
            "they were measured."
        )
