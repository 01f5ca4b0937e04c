"""Rows whose labels models contradict, per group, one by one, and in slices."""

from __future__ import annotations

from typing import Any

import numpy as np

from fado._messages import list_names
from fado._typing import Floats
from fado.exploration._estimates import Estimate, share, share_gap, widest_gap
from fado.exploration._explored import ExploredRows, Protected, percent, plain_number, quoted
from fado.exploration._groups import cells_of
from fado.exploration._slices import SliceFinder

CONTRADICTED = 0.1  # probability of the row's own label, at the most
NAMED_LIMITS = 5
MOST_ROWS = 10  # listed, of a group or of all


def suspicious_part(finder: SliceFinder, attribute: Protected, show_rows: bool) -> dict[str, Any] | None:
    """Count the rows whose label the models contradict, per group and label, and name the worst.

    A label is contradicted if models give it a probability of at most 10 %, and at most half of its share
    among all rows. A number is contradicted if its error is beyond Tukey's far fence. Slices are those where
    agreement is lower than models predict; of other targets than two labels, where it is lowest. None for
    values that do not contain the models' agreement with the labels.
    """
    explored, groups, target = finder.explored, attribute.groups, finder.explored.target
    agreement = explored.label_probability("y")
    if agreement is None:
        return None
    limits = _limits(explored, agreement)
    contradicted = agreement <= (limits if target.kind == "continuous" else limits[target.labels])
    expected = rows_expected = None
    if explored.is_binary:  # the agreement of calibrated models, and the contradicted rows that they predict
        other = 1.0 - agreement
        expected = np.square(agreement) + np.square(other)
        rows_expected = np.where(contradicted, agreement, 0.0)
        rows_expected += np.where(other <= limits[1 - target.labels], other, 0.0)
    per_group, shares, listed = [], [], []
    for group, name in enumerate(groups.names):
        rows = groups.members(group)
        worst = np.flatnonzero(rows & contradicted)
        shares.append(share(len(worst), int(rows.sum())))
        per_group.append(
            {"group": name, "rows": int(rows.sum()), "contradicted": len(worst)}
            | _share(shares[-1])
            | {"expected": None if rows_expected is None else float(rows_expected[rows].mean())}
        )
        worst = worst[np.argsort(agreement[worst], kind="stable")[:MOST_ROWS]]
        entries = [
            row_entry(explored, row, show_rows) | {"agreement": agreement[row]} for row in worst.tolist()
        ]
        listed.append({"group": name, "rows": entries})
    slices = []
    for one in finder.find((1.0 if expected is None else expected) - agreement):
        rows = one.rows(finder.columns)
        slices.append(
            finder.described(one, [attribute.name], groups)
            | {
                "p_value": one.p_value,
                "mean_agreement": float(agreement[rows].mean()),
                "expected_agreement": None if expected is None else float(expected[rows].mean()),
                "contradicted_share": float(contradicted[rows].mean()),
            }
        )
    what = "numbers" if target.kind == "continuous" else "labels"
    says = f"Models {'confidently contradict' if explored.is_binary else 'contradict'}"
    widest = widest_gap(shares, groups.compared, share_gap)
    if not contradicted.any():
        sentence = f"{says} none of the {what}."
    elif widest.is_clear:
        high, low = (attribute.spoken[group] for group in (widest.high, widest.low))
        sentence = (
            f"{says} {percent(shares[widest.high].number)} of the {what} in {high} and "
            f"{percent(shares[widest.low].number)} in {low}."
        )
    else:
        none = "; no clear difference between groups was found" if widest.known else ""
        sentence = f"{says} {percent(float(contradicted.mean()))} of the {what}{none}."
    return {
        "rule": _rule(explored, limits),
        "groups": per_group,
        "labels": [
            {"group": group, "label": label, "rows": len(rows)}
            | _share(share(int(contradicted[rows].sum()), len(rows)))
            for group, label, rows in cells_of(groups, explored.labels)
        ],
        "sentence": sentence,
        "rows": listed,
        "slices": slices,
    }


def _share(estimate: Estimate) -> dict[str, float]:
    return {"share": estimate.number, "low": estimate.low, "high": estimate.high}


def _limits(explored: ExploredRows, agreement: Floats) -> Floats:
    """Give the agreement up to which a row is contradicted: per label, or one for a continuous target."""
    if explored.target.kind == "continuous":
        low, high = np.quantile(agreement, [0.25, 0.75])
        return np.array([low - 3.0 * (high - low)])
    labels = explored.target.labels
    shares = np.bincount(labels, minlength=len(explored.target.classes)) / len(labels)
    return np.minimum(CONTRADICTED, shares / 2)


def _rule(explored: ExploredRows, limits: Floats) -> str:
    """Say when a label is contradicted."""
    if explored.target.kind == "continuous":
        return (
            "A number is contradicted if the models' error is beyond Tukey's far fence (agreement below "
            f"{plain_number(float(limits[0]))})."
        )
    rule = f"A label is contradicted if models give it a probability of at most {percent(CONTRADICTED)}"
    lower = [code for code in range(len(limits)) if 0 < limits[code] < CONTRADICTED]
    if not lower:
        return f"{rule}."
    rare = [f"{percent(float(limits[code]))} for {quoted(explored.speak_label(code))}" for code in lower]
    return (
        f"{rule}, and of at most half of the label's share. For rare labels that is less: "
        f"{list_names(rare, NAMED_LIMITS)}."
    )


def row_entry(explored: ExploredRows, row: int, show_rows: bool) -> dict[str, Any]:
    """List a row by its number; its entries, as text, only if they are to be shown."""
    entry: dict[str, Any] = {"row": int(explored.rows[row])}
    if show_rows:
        target, features = explored.target, []
        for column in explored.problem.table.columns:
            value = column.data[row].as_py()
            if value is None or value != value:
                value = "(missing)"
            elif column.levels is not None:
                value = column.levels[value]
            features.append([column.name, str(value)])
        label = target.labels[row]
        entry["label"] = str(target.classes[label]) if target.kind == "classes" else f"{label:.6g}"
        entry["features"] = features
    return entry
