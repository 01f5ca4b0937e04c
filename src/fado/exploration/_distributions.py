"""The distribution of values per group and label, and whether another run would give the same ranking."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from fado.exploration._certainty import cut_of
from fado.exploration._groups import FEWEST_MEMBERS
from fado.exploration._material import Attribute, Material, known_mean, label_groups
from fado.exploration._wording import plain_number, quoted
from fado.tabular import Variable
from fado.valuation import read_stability

__all__ = ["BINS", "binned", "distributions", "stability_part"]

BINS = 20

FloatArray = npt.NDArray[np.float64]


def binned(values: FloatArray, low: float, high: float) -> npt.NDArray[np.int64]:
    """Give the bin of every value, of `BINS` equally wide ones; the last holds its upper end.

    Examples
    --------
    >>> import numpy as np
    >>> binned(np.array([0.0, 0.049, 0.05, 1.0]), 0.0, 1.0)
    array([ 0,  0,  1, 19])
    """
    scaled = np.floor((values - low) / (high - low) * BINS + 1e-9)
    return np.clip(scaled, 0, BINS - 1).astype(np.int64)


def distributions(material: Material, attribute: Attribute) -> dict[str, Any]:
    """Describe the values of the target and of one attribute, per group and label.

    Returns
    -------
    dict
        ``labels``, a ``lead``, the ``scales`` of both values, and for ``v_y`` and ``v_z`` one entry per group
        and label of at least ten rows, with its rows, histogram, quartiles, mean and mean standard error.
    """
    labels, groups = label_groups(material), attribute.groups
    return {
        "labels": list(labels.names),
        "groups": [groups.names[group] for group in groups.rated],
        "lead": _lead(material, attribute),
        "scales": {
            "v_y": _scale(material, "v_y", "y", material.target_name),
            "v_z": _scale(material, "v_z", attribute.name, attribute.name),
        },
        "v_y": _per_cell(material, "y", attribute, labels),
        "v_z": _per_cell(material, attribute.name, attribute, labels),
    }


def _scale(material: Material, symbol: str, variable: str, name: str) -> dict[str, Any]:
    """Say between which ends values are drawn, and what they mean."""
    scale = material.valuation.scales[variable]
    title = "how unsure models are of" if scale.is_unit else "what rows are worth for"
    if scale.is_unit:
        told = f"how unsure models are of its {name}, from 0 (certain) to 1 (no idea)"
    elif scale.neutral == 0.0:
        told = f"{scale.meaning}; above 0 the row helps, below 0 it harms"
    else:
        told = f"{scale.meaning}; the higher, the more the row is worth"
    return {
        **material.span(variable).to_dict(),
        "meaning": scale.meaning,
        "title": title,
        "sentence": f"{symbol} of a row: {told}.",
    }


def _lead(material: Material, attribute: Attribute) -> str:
    """Say in a few sentences what the values of the target and of an attribute tell."""
    scales = [material.valuation.scales[name] for name in ("y", attribute.name)]
    if all(scale.is_unit for scale in scales):
        known = ", and ".join(_nothing_learnt(material, one) for one in (material.target, attribute.variable))
        return (
            f"A value says how unsure models are: 0 is certain; {known}. A high "
            "value for the target marks a row that still has something to teach; a high value for the "
            "attribute marks a row that does not give its group away."
        )
    first, second = (scale.meaning for scale in scales)
    told = first if first == second else f"{first} (target); {second} (attribute)"
    return f"A higher value means that the row is worth more. What it says: {told}."


def _nothing_learnt(material: Material, variable: Variable) -> str:
    """Say which value a variable has where models know nothing but its shares, or its mean."""
    name, uninformed = material.shown_name(variable), cut_of(material, variable).uninformed
    if uninformed is None:
        return f"knowing only the mean of {name} gives 1"
    return f"knowing only the classes' shares of {name} gives {plain_number(uninformed)}"


def _per_cell(material: Material, variable: str, attribute: Attribute, labels: Any) -> list[dict[str, Any]]:
    values, error = material.valuation[variable], material.error(variable)
    span = material.span(variable)
    bins = binned(values, span.low, span.high)
    cells = []
    for group in attribute.groups.rated:
        name = attribute.groups.names[group]
        for label, label_name in enumerate(labels.names):
            rows = np.flatnonzero(attribute.groups.members(group) & labels.members(label))
            if len(rows) < FEWEST_MEMBERS:
                continue
            quartiles = np.quantile(values[rows], [0.25, 0.5, 0.75])
            cells.append(
                {
                    "group": name,
                    "label": label_name,
                    "rows": len(rows),
                    "histogram": np.bincount(bins[rows], minlength=BINS).tolist(),
                    "quartiles": quartiles.tolist(),
                    "mean": float(values[rows].mean()),
                    "standard_error": None if error is None else known_mean(error[rows]),
                }
            )
    return cells


def stability_part(material: Material, frame: Any) -> dict[str, Any]:
    """Say whether another run would rank rows alike: as it was measured, or by the standard errors.

    Returns
    -------
    dict
        A ``sentence``; and ``rows``, ``changes`` and ``notes`` of what `Valuation.stability` gives, in which
        the target is called ``"y"``.
    """
    if frame is None:
        groups = {
            one.name: np.array([*one.groups.names, ""], dtype=object)[one.groups.codes]  # -1: below ten rows
            for one in material.attributes
        }
        frame = material.valuation.stability(sensitive_features=groups)
    told = read_stability(frame)
    names = {"y": material.target_name} | {one.name: one.name for one in material.attributes}
    rows = told["rows"] = [row for row in told["rows"] if row["column"] in names]
    if not rows:
        return {"sentence": "It is not known whether another run would rank rows alike.", **told}
    means = []
    for column, name in names.items():
        own = [row["rank_agreement"] for row in rows if (row["column"], row["group"]) == (column, "all rows")]
        means += [f"{name} {plain_number(float(np.mean(own)))}"] if own else []
    least = min(rows, key=lambda row: row["rank_agreement"])
    where = "" if least["group"] == "all rows" else f" in {quoted(least['group'])}"
    sentence = (
        f"Rank correlation with values made again (1: the same order of rows): {', '.join(means)}. Lowest: "
        f"{plain_number(least['rank_agreement'])}, {names[least['column']]}{where}, with other "
        f"{least['variation']}."
    )
    return {"sentence": sentence, **told}
