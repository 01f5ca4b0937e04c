"""A dossier of alternatives: compares the model in use with models of nearly equal performance."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import comb
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from fado._records import is_number, simplify
from fado._storage import replacing
from fado._typing import Floats
from fado.experiment._choice import baseline_row, returnable_points, tell_lines
from fado.experiment._data import Data
from fado.experiment._frame import parameter_columns
from fado.experiment._results import Results
from fado.metrics import audit, best_first, predicted_positive
from fado.reporting import render_page

_RATES = ("selection_rate", "tpr", "fpr")


@dataclass(frozen=True, eq=False)
class _Model:
    """A model in the dossier: what it is, and its decisions on each part at one threshold."""

    title: str
    about: dict[str, Any]
    threshold: float
    decisions: dict[str, npt.NDArray[np.bool_]]


def dossier_content(
    results: Results,
    data: Data,
    lines: Mapping[str, float],
    *,
    fits: int,
    in_use: Any,
    less: Sequence[float],
    confidence: float = 0.95,
) -> dict[str, Any]:
    """Return the model in use, alternatives, the search and what more search could gain, as plain data."""
    losses = list(less) if isinstance(less, Iterable) else []
    if not losses or not all(is_number(loss) and 0 <= loss <= 1 for loss in losses):
        raise ValueError(f"`less` must hold one or more numbers from 0 to 1, got {less!r}.")
    part = results.chosen_on
    rates, shares = returnable_points(results, lines)
    used = _in_use(results, data, lines, in_use, part)
    base = _rate(used, data, part)
    models = [used]
    with results.opened("that keeps scores"):
        for allowed in losses:
            near = np.flatnonzero(rates >= base - allowed - 1e-12)
            if not len(near):
                continue
            title = (
                f"up to {100 * allowed:g} points less" if allowed else "at least the same true-positive rate"
            )
            none = np.zeros(len(near), dtype=np.bool_)  # the closest to equal rates
            row = int(near[best_first(rates[near], shares[near], none)[0]])
            model = _of_row(results, row, f"Alternative: {title}", part)
            # the model in use, or an alternative of a smaller loss, is not listed again
            if not any(np.array_equal(model.decisions[part], other.decisions[part]) for other in models):
                models.append(model)
    parts = [name for name in ("validation", "test") if len(data.parts[name])]
    line = next(iter(lines.values())) if len(lines) == 1 else 1.0
    known = np.isfinite(rates) & np.isfinite(shares)
    return {
        "required": tell_lines(lines),
        "lines": dict(lines),
        "budget": str(results.config.evaluation.budget),
        "confidence": confidence,
        "chosen_on": part,
        "parts": {name: len(data.parts[name]) for name in ("train", *parts)},
        "target": data.positive_label,
        "models": [_described(model, used, data, parts, lines, confidence) for model in models],
        "points": np.column_stack([rates[known], shares[known] * line]).tolist(),
        "searched": _searched(results, fits, rates),
        "further": _further(results, rates, shares, base, losses),
    }


def write_dossier(content: dict[str, Any], path: str | os.PathLike[str]) -> None:
    """Write a dossier as a page or as JSON, by the ending of the path."""
    ending = Path(path).suffix.lower()
    if ending not in (".html", ".json"):
        raise ValueError(f"A dossier is written to a file that ends in .html or .json, got {str(path)!r}.")
    if ending == ".html":
        text = render_page("dossier.html", content)
    else:
        text = json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    with replacing(path, "The dossier") as temporary:
        temporary.write_text(text, encoding="utf-8")


def _in_use(results: Results, data: Data, lines: Mapping[str, float], in_use: Any, part: str) -> _Model:
    """Read the model in use; without one, the best untouched model of the search."""
    if in_use is None:
        row = baseline_row(results, lines)
        if row is None:
            raise ValueError(
                "The search has no untouched model to compare with: pass the model in use by `in_use`."
            )
        return _of_row(results, row, "In use: the best untouched model of this search", part)
    scores = {
        name: _scores_of(in_use, data, name) for name in ("validation", "test") if len(data.parts[name])
    }
    rows = data.part(part)
    # like all others: rates at different budgets could not be compared
    threshold = float(results.config.evaluation.budget.threshold(rows.positive, scores[part], rows.weights))
    decisions = {name: predicted_positive(numbers, threshold) for name, numbers in scores.items()}
    about = {} if getattr(in_use, "threshold_", None) is None else {"threshold_in_use": in_use.threshold_}
    return _Model(f"In use: {type(in_use).__name__}", about, threshold, decisions)


def _scores_of(model: Any, data: Data, part: str) -> Floats:
    """Score the rows of a part with the model in use; check its columns and labels."""
    frame = data.part(part).table.to_pandas().rename(columns=str)
    names = getattr(model, "feature_names_in_", None)
    if names is None:
        names = getattr(model, "feature_name_", list(frame.columns))
    lacking = [str(name) for name in names if str(name) not in frame.columns]
    if lacking:
        raise ValueError(
            f"`in_use` needs the column {lacking[0]!r}, which the search does not have: pass a model of "
            "the same columns."
        )
    if not hasattr(model, "predict_proba"):
        raise TypeError(f"`in_use` must be a fitted classifier that gives probabilities, got {model!r}.")
    classes = list(getattr(model, "classes_", data.labels))
    if data.labels[1] not in classes:
        raise ValueError(f"`in_use` has the labels {classes}, not the positive label {data.labels[1]!r}.")
    try:
        scored = np.asarray(model.predict_proba(frame[list(map(str, names))]))
        scores: Floats = scored[:, classes.index(data.labels[1])]  # in their own precision
    except Exception as error:
        raise ValueError(
            f"`in_use` cannot score the rows of the search ({type(error).__name__}: {error}): pass a model "
            "that accepts these columns."
        ) from error
    if np.isnan(scores).any():
        row = int(np.argmax(np.isnan(scores)))
        raise ValueError(f"`in_use` must score every row, got nan in row {row} of the {part} rows.")
    return scores


def _of_row(results: Results, row: int, title: str, part: str) -> _Model:
    """Return a model of the search, with decisions at the threshold of the rows that select models."""
    frame = results.frame
    threshold = float(frame[f"{part}_threshold"].iloc[row])
    parts = ["validation", "test"] if part == "validation" else ["test"]
    decisions = {name: predicted_positive(results.scores(row, name), threshold) for name in parts}
    columns = list(frame.columns)
    settings = frame.iloc[row][columns[: columns.index("training_rows")]].dropna()
    return _Model(title, simplify(settings.to_dict()), threshold, decisions)


def _rate(model: _Model, data: Data, part: str, *, positive: bool = True) -> float:
    """Return the true-positive rate of a model on a part, or its false-positive rate."""
    rows = data.part(part)
    mask = rows.positive if positive else ~rows.positive
    return float(
        np.average(model.decisions[part][mask], weights=None if rows.weights is None else rows.weights[mask])
    )


def _described(
    model: _Model,
    used: _Model,
    data: Data,
    parts: Sequence[str],
    lines: Mapping[str, float],
    confidence: float,
) -> dict[str, Any]:
    """Describe a model on every part: rates and ratios with intervals, and its cost against that in use."""
    by_part = {}
    for part in parts:
        rows = data.part(part)
        report = audit(
            rows.positive,
            model.decisions[part].astype(int),
            sensitive_features={"group": rows.groups.by_row},
            unknown=None if rows.groups.unknown is None else rows.groups.titles[rows.groups.unknown],
            sample_weight=rows.weights,
            min_group_size=data.min_group_size,
            confidence=confidence,
        ).to_dict()
        weights = np.ones(len(rows.positive)) if rows.weights is None else rows.weights
        weights = weights[rows.positive]
        change = (model.decisions[part].astype(float) - used.decisions[part])[rows.positive]
        mean = float(np.average(change, weights=weights))
        by_part[part] = {
            "groups": [
                {name: line[name] for name in ("group", "rows", "positives", "compared", "reason")}
                | {rate: [line[f"{rate}{end}"] for end in ("", "_low", "_high")] for rate in _RATES}
                for line in report["groups"]
            ],
            "ratios": {
                line["ratio"]: [line["value"], line["low"], line["high"]]
                for line in report["ratios"]
                if line["ratio"] in lines
            },
            "tpr": _rate(model, data, part),
            "tpr_change": mean,
            "tpr_change_error": float(np.sqrt(weights**2 @ (change - mean) ** 2) / weights.sum()),
            "fpr": _rate(model, data, part, positive=False),
        }
    return {"title": model.title, "about": model.about, "threshold": model.threshold, "parts": by_part}


def _searched(results: Results, fits: int, rates: Floats) -> dict[str, Any]:
    """Describe the search."""
    frame = results.frame
    ranges, choices = {}, {}
    for name in parameter_columns(frame):
        values = list(dict.fromkeys(frame[name].dropna()))
        if len(values) > 1 and all(map(is_number, values)):
            ranges[name] = simplify([min(values), max(values)])
        elif len(values) > 1:
            choices[name] = simplify(values)
    return {
        "fits": fits,
        "models": int(frame["model"].nunique()),
        "points": int(np.isfinite(rates).sum()),
        "interventions": sorted(map(str, frame["intervention"].unique())),
        "ranges": ranges,
        "choices": choices,
        "seed": results.config.seed,
    }


def _further(
    results: Results, rates: Floats, shares: Floats, base: float, less: Sequence[float]
) -> dict[str, Any] | None:
    """Bound the gain in ratio from as many models again, within the largest allowed loss."""
    near = np.isfinite(shares) & (rates >= base - max(less) - 1e-12)
    models = results.frame["model"].to_numpy()
    best = [float(shares[near & (models == model)].max()) for model in np.unique(models[near])]
    if len(best) < 4:
        return None
    gained, at_most = expected_gain(best)
    return {"models": len(best), "gained": gained, "at_most": at_most, "within": max(less)}


def expected_gain(drawn: Sequence[float]) -> tuple[float, float]:
    """Return the expected gain of the second half of some random draws, and a bound for as many again.

    The expected maximum of n draws is concave in n. For random halves of the draws it can be computed, and so
    can the gain of the other half. As many draws again gain at most that, times the ratio of their numbers.

    Examples
    --------
    The highest of two of four numbers is 2, 3 or 4 with chances of 1, 2 and 3 in 6, so 20 / 6 on average.

    >>> gained, at_most = expected_gain([3.0, 1.0, 4.0, 2.0])
    >>> round(gained, 3), round(at_most, 3)
    (0.667, 1.333)
    """
    ordered, count = np.sort(drawn), len(drawn)
    half = count // 2
    chances = np.array([comb(place, half - 1) / comb(count, half) for place in range(count)])
    gained = float(ordered[-1] - chances @ ordered)
    return gained, gained * count / (count - half)
