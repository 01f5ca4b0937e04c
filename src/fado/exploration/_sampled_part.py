"""What a page of a sample says of it: how large it is, and by how much it may be off."""

from __future__ import annotations

import math
from typing import Any

from fado.exploration._material import Attribute, Material
from fado.exploration._sampled import Sampled, share_error

__all__ = ["sampled_part"]


def sampled_part(material: Material) -> dict[str, Any] | None:
    """Tell of the sample that is explored; None where all rows are.

    Returns
    -------
    dict or None
        ``rows`` are drawn ``of`` all, by ``seed``. ``error`` is the half-width of a 95 % interval of a share,
        or of a mean of values between 0 and 1, at its worst. ``groups`` has per attribute the shown groups:
        their sampled ``rows``, the rows that they are ``of`` (None for quarters of a number), their
        ``error``, and the ``positive_rate`` of all rows. ``sentence`` says the most of it.
    """
    sampled = material.sampled
    if sampled is None:
        return None
    groups = {one.name: _groups(sampled, one) for one in material.attributes}
    error = share_error(len(material), sampled.n_rows)
    return {
        "rows": len(sampled.places),
        "of": sampled.n_rows,
        "seed": sampled.seed,
        "error": error,
        "groups": groups,
        "sentence": _sentence(material, sampled, error, groups),
    }


def _groups(sampled: Sampled, attribute: Attribute) -> list[dict[str, Any]]:
    shown, whole = attribute.groups, attribute.whole
    groups = []
    for group, rows in enumerate(shown.sizes.tolist()):
        of, rate = (None, None) if whole is None else whole.together(shown.pooled(group))
        # a quarter of a number is as large a part of the table as of the sample, about
        drawn_from = round(rows * sampled.times) if of is None else of
        groups.append(
            {
                "name": shown.names[group],
                "rows": rows,
                "of": of,
                "error": share_error(rows, drawn_from),
                "positive_rate": rate,
            }
        )
    return groups


def _sentence(
    material: Material, sampled: Sampled, error: float, groups: dict[str, list[dict[str, Any]]]
) -> str:
    are_unit = all(material.valuation.scales[name].is_unit for name in ("y", *groups))
    what = "A share, or a mean value," if are_unit else "A share"
    said = (
        f"This is a random sample of {len(sampled.places):,} of {sampled.n_rows:,} rows. {what} is off by at "
        f"most {_points(error)} percentage points (95 %)"
    )
    rated = [
        (groups[one.name][group], one.spoken[group])
        for one in material.attributes
        for group in one.groups.rated
    ]
    if not rated:
        return f"{said}."
    least, name = min(rated, key=lambda entry: int(entry[0]["rows"]))
    return (
        f"{said}; within the smallest group shown, {name} ({least['rows']:,} of the sampled rows), by at "
        f"most {_points(least['error'])}."
    )


def _points(share: float) -> str:
    """Write a share in percentage points with two digits that count, rounded up: it is a bound."""
    points = 100 * share
    digits = 1 - math.floor(math.log10(points)) if points > 0 else 0
    step = 10.0**-digits
    return f"{math.ceil(points / step - 1e-9) * step:.{max(digits, 0)}f}"
