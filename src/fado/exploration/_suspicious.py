"""Suspicious rows: labels that models confidently contradict, and how unequal that is over groups."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from fado._messages import list_names
from fado.exploration import _intervals
from fado.exploration._groups import FEWEST_MEMBERS
from fado.exploration._intervals import Estimate, share_gap, widest_gap
from fado.exploration._material import Attribute, Material, label_groups, row_contents
from fado.exploration._slices import SliceFinder
from fado.exploration._wording import percent, plain_number, quoted

__all__ = ["contradicted_rows", "suspicious_part"]

FloatArray = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

CONTRADICTED = 0.1  # probability of the row's own label, at the most
NAMED_LIMITS = 5
MOST_ROWS = 10  # listed per group


def suspicious_part(
    material: Material, attribute: Attribute, finder: SliceFinder, *, show_rows: bool
) -> dict[str, Any] | None:
    """Count the rows whose label the models contradict, per group and label, and name the worst.

    A label is contradicted where models give it at most 10 %, and at most half of its share among all rows:
    midway between no chance and what a model would give it that knows only how frequent each label is. A
    number is contradicted where the error is beyond Tukey's far fence.

    Returns
    -------
    dict or None
        None for values that came without the models' agreement with the labels.
    """
    agreement = material.agreement("y")
    if agreement is None:
        return None
    limits, contradicted = _limits(material, agreement), contradicted_rows(material, agreement)
    groups = attribute.groups
    per_group = [
        _counted(material, groups.names[group], groups.members(group), agreement, contradicted, limits)
        for group in groups.rated
    ]
    return {
        "limit": float(limits.max()),
        "rule": _rule(material, limits),
        "groups": per_group,
        "labels": _per_label(material, attribute, contradicted),
        "sentence": _sentence(material, attribute, per_group, int(contradicted.sum())),
        "rows": [
            {
                "group": name,
                "rows": _worst(material, groups.members(group), agreement, contradicted, show_rows),
            }
            for group, name in enumerate(groups.names)
        ],
        "least_agreement": _slices(material, attribute, finder, contradicted, 1.0 - agreement),
        "beyond_doubt": _slices(material, attribute, finder, contradicted, _expected(agreement) - agreement)
        if _is_binary(material)
        else None,
    }


def contradicted_rows(material: Material, agreement: FloatArray) -> Bools:
    """Mark the rows whose label models contradict."""
    limits = _limits(material, agreement)
    return np.asarray(agreement <= (limits[material.target.labels] if _has_classes(material) else limits[0]))


def _has_classes(material: Material) -> bool:
    return material.target.kind == "classes"


def _is_binary(material: Material) -> bool:
    return _has_classes(material) and len(material.target.classes) == 2


def _limits(material: Material, agreement: FloatArray) -> FloatArray:
    """Give the agreement up to which a row is contradicted: per label, or one for a continuous target."""
    if not _has_classes(material):
        return np.array([_fence(agreement)])
    labels = material.target.labels
    shares = np.bincount(labels, minlength=len(material.target.classes)) / len(labels)
    return np.minimum(CONTRADICTED, shares / 2)


def _rule(material: Material, limits: FloatArray) -> str:
    """Say what is contradicted."""
    if not _has_classes(material):
        return (
            "A number is contradicted where the models' error is beyond Tukey's far fence (agreement under "
            f"{plain_number(float(limits[0]))})."
        )
    rule = f"A label is contradicted where models give it a probability of at most {percent(CONTRADICTED)}"
    lower = [code for code in range(len(limits)) if 0 < limits[code] < CONTRADICTED]
    if not lower:
        return f"{rule}."
    told = [f"{percent(float(limits[code]))} for {quoted(material.speak_label(code))}" for code in lower]
    return (
        f"{rule}, and of at most half of the label's share, which is less for rare labels: "
        f"{list_names(told, NAMED_LIMITS)}."
    )


def _expected(agreement: FloatArray) -> FloatArray:
    """Give the agreement to expect of models that are as often right as they say, for two labels."""
    return np.square(agreement) + np.square(1.0 - agreement)


def _fence(agreement: FloatArray) -> float:
    """Give Tukey's far fence: an error beyond it is out of line with all others."""
    low, high = np.quantile(agreement, [0.25, 0.75])
    return float(low - 3.0 * (high - low))


def _counted(
    material: Material,
    name: str,
    members: Bools,
    agreement: FloatArray,
    contradicted: Bools,
    limits: FloatArray,
) -> dict[str, Any]:
    found = _intervals.share(int((members & contradicted).sum()), int(members.sum()))
    counted: dict[str, Any] = {
        "group": name,
        "rows": int(members.sum()),
        "contradicted": int((members & contradicted).sum()),
        "share": found.number,
        "low": found.low,
        "high": found.high,
        "expected": None,
    }
    if _is_binary(material):
        # Models that are sure of a row and right about how sure they are still miss some.
        own, labels = agreement[members], material.target.labels[members]
        other = 1.0 - own
        expected = own[own <= limits[labels]].sum() + other[other <= limits[1 - labels]].sum()
        counted["expected"] = float(expected / members.sum())
    return counted


def _per_label(material: Material, attribute: Attribute, contradicted: Bools) -> list[dict[str, Any]]:
    labels, groups = label_groups(material), attribute.groups
    cells = []
    for group in groups.rated:
        group_name = groups.names[group]
        for label, label_name in enumerate(labels.names):
            members = groups.members(group) & labels.members(label)
            if members.sum() >= FEWEST_MEMBERS:
                found = _intervals.share(int((members & contradicted).sum()), int(members.sum()))
                cells.append(
                    {"group": group_name, "label": label_name, "rows": int(members.sum()),
                     "share": found.number, "low": found.low, "high": found.high}
                )  # fmt: skip
    return cells


def _worst(
    material: Material, members: Bools, agreement: FloatArray, contradicted: Bools, show_rows: bool
) -> list[dict[str, Any]]:
    rows = np.flatnonzero(members & contradicted)
    rows = rows[np.argsort(agreement[rows], kind="stable")[:MOST_ROWS]]
    listed: list[dict[str, Any]] = [
        {"row": material.row_number(int(row)), "agreement": float(agreement[row])} for row in rows
    ]
    if show_rows:
        for entry, row in zip(listed, rows, strict=True):
            entry |= row_contents(material, int(row))
    return listed


def _slices(
    material: Material,
    attribute: Attribute,
    finder: SliceFinder,
    contradicted: Bools,
    target: FloatArray,
) -> list[dict[str, Any]]:
    agreement = material.valuation.field("agreement", "y")
    slices = []
    for one in finder.find(target, highest=True):
        rows = finder.rows(one)
        slices.append(
            finder.described(one, attribute.name, attribute.groups)
            | {
                "p_value": one.p_value,
                "mean_agreement": float(agreement[rows].mean()),
                "expected_agreement": float(_expected(agreement[rows]).mean())
                if _is_binary(material)
                else None,
                "contradicted_share": float(contradicted[rows].mean()),
            }
        )
    return slices


def _sentence(
    material: Material, attribute: Attribute, per_group: list[dict[str, Any]], n_contradicted: int
) -> str:
    what = "labels" if _has_classes(material) else "numbers"
    verb = "confidently contradict" if _is_binary(material) else "contradict"
    if not n_contradicted:
        return f"Models {verb} none of the {what}."
    rated = attribute.groups.rated
    shares = [Estimate(one["share"], one["low"], one["high"]) for one in per_group]
    widest = widest_gap(shares, [rated.index(group) for group in attribute.groups.compared], share_gap)
    if not widest.is_clear:
        none = "; no clear difference between groups was found" if widest.known else ""
        return f"Models {verb} {percent(n_contradicted / len(material))} of the {what}{none}."
    high, low = (attribute.spoken[rated[one]] for one in (widest.high, widest.low))
    return (
        f"Models {verb} {percent(shares[widest.high].number)} of the {what} in {high} and "
        f"{percent(shares[widest.low].number)} in {low}."
    )
