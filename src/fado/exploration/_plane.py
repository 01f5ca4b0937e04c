"""The plane of the two values: where rows lie, and what its corners mean."""

from __future__ import annotations

from typing import Any

import numpy as np

from fado.exploration._distributions import BINS, binned
from fado.exploration._groups import FEWEST_MEMBERS
from fado.exploration._material import Attribute, Material, known_mean

__all__ = ["plane"]

_CORNERS = (
    # unsure of y, unsure of z, what the corner is called and means
    (True, True, "unsure of both", "Worth most: still to be learnt from, and silent about the group."),
    (True, False, "unsure of the target only", "Still to be learnt from, but models can tell the group here: "
     "the place where a model may lean on it."),
    (False, True, "unsure of the attribute only", "Silent about the group, and the target is settled: "
     "harmless, with little to learn from."),
    (False, False, "sure of both", "Redundant, and gives the group away: the first to go when rows are "
     "dropped."),
)  # fmt: skip
_OTHER_CORNERS = (
    # the same for values that are no entropies
    (True, True, "high for both", "Worth most: above the middle for the target and for the attribute."),
    (True, False, "high for the target only", "Good for the target, and not for the attribute."),
    (False, True, "high for the attribute only", "Good for the attribute, and not for the target."),
    (False, False, "low for both", "Worth least: the first to go when rows are dropped."),
)


def plane(material: Material, attribute: Attribute) -> dict[str, Any]:
    """Count rows over the plane of the target's and an attribute's values.

    Returns
    -------
    dict
        ``counts``, a square table with one row per bin of the attribute's value and one column per bin of
        the target's; the ``scales`` of both; and the four ``corners``, split in the middle or at the neutral
        point, with their shares, overall and per group, their mean standard errors, and what they mean.
    """
    v_y, v_z = material.valuation["y"], material.valuation[attribute.name]
    x, y = material.span("y"), material.span(attribute.name)
    cells = binned(v_z, y.low, y.high) * BINS + binned(v_y, x.low, x.high)
    counts = np.bincount(cells, minlength=BINS * BINS).reshape(BINS, BINS)
    unit = all(material.valuation.scales[name].is_unit for name in ("y", attribute.name))
    corners = _CORNERS if unit else _OTHER_CORNERS
    return {
        "counts": counts.tolist(),
        "scales": {"v_y": x.to_dict(), "v_z": y.to_dict()},
        "titles": ["unsure of", "unsure of"] if unit else ["worth for", "worth for"],
        "corners": [_corner(material, attribute, *corner) for corner in corners],
        "groups": list(attribute.groups.names),
    }


def _corner(
    material: Material, attribute: Attribute, unsure_y: bool, unsure_z: bool, name: str, meaning: str
) -> dict[str, Any]:
    v_y, v_z = material.valuation["y"], material.valuation[attribute.name]
    middle_y, middle_z = material.span("y").middle, material.span(attribute.name).middle
    rows = ((v_y >= middle_y) == unsure_y) & ((v_z >= middle_z) == unsure_z)
    n_rows, positive = int(rows.sum()), material.is_positive
    known = n_rows >= FEWEST_MEMBERS
    return {
        "name": name,
        "meaning": meaning,
        "unsure_of_target": unsure_y,
        "unsure_of_attribute": unsure_z,
        "rows": n_rows,
        "share": n_rows / len(material),
        "share_per_group": (attribute.groups.count(rows) / attribute.groups.sizes).tolist(),
        "positive_rate": float(positive[rows].mean()) if known and positive is not None else None,
        "standard_error_y": _mean_error(material, "y", rows),
        "standard_error_z": _mean_error(material, attribute.name, rows),
    }


def _mean_error(material: Material, variable: str, rows: Any) -> float | None:
    error = material.error(variable)
    if error is None or rows.sum() < FEWEST_MEMBERS:
        return None
    return known_mean(error[rows])
