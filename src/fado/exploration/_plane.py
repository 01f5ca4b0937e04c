"""The plane of the two values: where rows lie, and what its corners mean."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from fado.exploration._certainty import Cut, cut_of
from fado.exploration._distributions import BINS, binned
from fado.exploration._groups import FEWEST_MEMBERS
from fado.exploration._material import Attribute, Material, known_mean
from fado.exploration._wording import plain_number
from fado.valuation import Valuation

__all__ = ["plane", "pool_plane"]

Bools = npt.NDArray[np.bool_]

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
    (True, True, "high for both", "Worth most: above the cut for the target and for the attribute."),
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
        the target's; the ``scales`` of both, with the ``cut`` between sure and unsure; the ``cuts`` in a
        sentence; and the four ``corners``, with their shares, overall and per group, their mean standard
        errors, and what they mean.
    """
    spans = material.span("y"), material.span(attribute.name)
    unit = _is_unit(material, attribute)
    parted = "sure from unsure" if unit else "low from high"
    cuts = _cuts(material, attribute)
    return {
        "counts": _counts(material, attribute, material.valuation),
        "scales": {
            key: {**span.to_dict(), "cut": cut.number}
            for key, span, cut in zip(("v_y", "v_z"), spans, cuts, strict=True)
        },
        "cuts": (
            f"The dashed lines part {parted}: v_y at {plain_number(cuts[0].number)}, {cuts[0].why}; "
            f"v_z at {plain_number(cuts[1].number)}, {cuts[1].why}."
        ),
        "titles": ["unsure of", "unsure of"] if unit else ["worth for", "worth for"],
        "corners": [_corner(material, attribute, cuts, *corner) for corner in _corners(unit)],
        "groups": list(attribute.groups.names),
    }


def pool_plane(material: Material, attribute: Attribute, pool: Valuation) -> dict[str, Any]:
    """Count the rows of a pool over the same plane.

    Returns
    -------
    dict
        ``counts`` as `plane` gives them, and the same ``corners``, with their rows and share of the pool, and
        their share of the labelled rows.
    """
    cuts, unit = _cuts(material, attribute), _is_unit(material, attribute)
    corners = []
    for unsure_y, unsure_z, name, _ in _corners(unit):
        n_rows = int(_members(pool, attribute, cuts, unsure_y, unsure_z).sum())
        labelled = _members(material.valuation, attribute, cuts, unsure_y, unsure_z)
        corners.append(
            {
                "name": name,
                "unsure_of_target": unsure_y,
                "unsure_of_attribute": unsure_z,
                "rows": n_rows,
                "share": n_rows / len(pool),
                "labelled_share": float(labelled.mean()),
            }
        )
    return {"counts": _counts(material, attribute, pool), "corners": corners}


def _is_unit(material: Material, attribute: Attribute) -> bool:
    return all(material.valuation.scales[name].is_unit for name in ("y", attribute.name))


def _corners(unit: bool) -> tuple[tuple[bool, bool, str, str], ...]:
    return _CORNERS if unit else _OTHER_CORNERS


def _cuts(material: Material, attribute: Attribute) -> tuple[Cut, Cut]:
    return cut_of(material, material.target), cut_of(material, attribute.variable)


def _counts(material: Material, attribute: Attribute, valuation: Valuation) -> list[list[int]]:
    x, y = material.span("y"), material.span(attribute.name)
    across, up = binned(valuation["y"], x.low, x.high), binned(valuation[attribute.name], y.low, y.high)
    counts: list[list[int]] = (
        np.bincount(up * BINS + across, minlength=BINS * BINS).reshape(BINS, BINS).tolist()
    )
    return counts


def _members(
    valuation: Valuation, attribute: Attribute, cuts: tuple[Cut, Cut], unsure_y: bool, unsure_z: bool
) -> Bools:
    """Mark the rows of a corner."""
    v_y, v_z = valuation["y"], valuation[attribute.name]
    rows: Bools = ((v_y >= cuts[0].number) == unsure_y) & ((v_z >= cuts[1].number) == unsure_z)
    return rows


def _corner(
    material: Material,
    attribute: Attribute,
    cuts: tuple[Cut, Cut],
    unsure_y: bool,
    unsure_z: bool,
    name: str,
    meaning: str,
) -> dict[str, Any]:
    rows = _members(material.valuation, attribute, cuts, unsure_y, unsure_z)
    n_rows, positive, groups = int(rows.sum()), material.is_positive, attribute.groups
    known = n_rows >= FEWEST_MEMBERS
    return {
        "name": name,
        "meaning": meaning,
        "unsure_of_target": unsure_y,
        "unsure_of_attribute": unsure_z,
        "rows": n_rows,
        "share": n_rows / len(material),
        "share_per_group": [
            None if group == groups.small else float(count / size)
            for group, (count, size) in enumerate(zip(groups.count(rows), groups.sizes, strict=True))
        ],
        "positive_rate": float(positive[rows].mean()) if known and positive is not None else None,
        "standard_error_y": _mean_error(material, "y", rows),
        "standard_error_z": _mean_error(material, attribute.name, rows),
    }


def _mean_error(material: Material, variable: str, rows: Any) -> float | None:
    error = material.error(variable)
    if error is None or rows.sum() < FEWEST_MEMBERS:
        return None
    return known_mean(error[rows])
