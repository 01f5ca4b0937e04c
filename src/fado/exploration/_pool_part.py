"""Rows without labels beside the labelled ones: their values, their columns, where labels are worth most."""

from __future__ import annotations

from typing import Any

import numpy as np

from fado.exploration._conditions import BinnedColumn, binned_features
from fado.exploration._distributions import BINS, binned
from fado.exploration._material import Attribute, Material, known_mean, sample_rows
from fado.exploration._plane import pool_plane
from fado.exploration._search import SliceSearch, rows_of
from fado.exploration._shifts import shifts_part
from fado.exploration._unlabelled import Unlabelled
from fado.exploration._wording import percent, quoted
from fado.utility import LinearUtility
from fado.valuation import Valuation

__all__ = ["pool_part"]

ALPHA = 0.5  # where the page's slider stands at first
MOST_SLICES = 5


def pool_part(material: Material, pool: Unlabelled) -> dict[str, Any]:
    """Show a pool beside the labelled rows.

    Returns
    -------
    dict
        How many ``rows`` it has; a ``caution`` if its values are not quite the same; the ``shifts`` of its
        columns; and per attribute which shares of the ``labelled`` rows and of the ``pool`` lie in each bin
        of ``v_y`` and of ``v_z``, the pool's ``plane``, and the slices of highest ``utility``.
    """
    finder = _PoolSlices(material, pool)
    return {
        "rows": len(pool),
        "rows_without_value": pool.n_without_value,
        "rows_searched": finder.n_searched,
        "caution": _caution(pool.valuation, material.target_name),
        "shifts": shifts_part(material.columns, pool.columns),
        "attributes": [_attribute(material, one, pool.valuation, finder) for one in material.attributes],
    }


def _caution(pool: Valuation, target: str) -> str | None:
    """Say what sets values of rows without labels apart, whatever the rows are; None if nothing is known."""
    settings = pool.provenance.settings
    if settings.get("y_given", True):
        return None
    if pool.scales["y"].is_signed:
        return (
            f"Without {quoted(target)}, effects are averaged over what it may be: they lie nearer to 0 in "
            "the pool, even of rows that are alike."
        )
    if not settings.get("z_sees_target"):
        return None
    return (
        f"The attribute's models see {quoted(target)} where it is known, and average over what it may be "
        "where it is not: v_z is a little higher in the pool, even of rows that are alike."
    )


def _attribute(
    material: Material, attribute: Attribute, pool: Valuation, finder: _PoolSlices
) -> dict[str, Any]:
    plane = pool_plane(material, attribute, pool)
    corner = plane["corners"][0]
    return {
        "name": attribute.name,
        "sentence": (
            f"{percent(corner['share'])} of the pool lie in the corner {quoted(corner['name'])}, and "
            f"{percent(corner['labelled_share'])} of the labelled rows."
        ),
        "v_y": _beside(material, pool, "y"),
        "v_z": _beside(material, pool, attribute.name),
        "plane": plane,
        "utility": finder.worth_most(attribute.name),
    }


def _beside(material: Material, pool: Valuation, name: str) -> dict[str, Any]:
    """Describe the values of labelled rows and of a pool, over the same bins."""
    span, described = material.span(name), {}
    for which, valuation in (("labelled", material.valuation), ("pool", pool)):
        values = valuation[name]
        counts = np.bincount(binned(values, span.low, span.high), minlength=BINS)
        described[which] = {
            "rows": len(values),
            "shares": (counts / len(values)).tolist(),
            "mean": float(values.mean()),
            "quartiles": np.quantile(values, [0.25, 0.5, 0.75]).tolist(),
            "epistemic": known_mean(valuation.field("epistemic", name)),
        }
    return described


class _PoolSlices:
    """Find the slices of a pool whose labels are worth most."""

    def __init__(self, material: Material, pool: Unlabelled) -> None:
        self._pool = pool.valuation
        self._sample = sample_rows(len(pool), material.max_rows, material.seed)
        self._columns: list[BinnedColumn] = binned_features(pool.columns, self._sample)
        self._search = SliceSearch(self._columns, self._sample)

    @property
    def n_searched(self) -> int:
        """How many rows are searched."""
        return len(self._sample)

    def worth_most(self, attribute: str) -> dict[str, Any]:
        """Give the slices that stand out by the linear utility, the clearest first, and its mean."""
        utilities = LinearUtility(alpha=ALPHA).over([attribute])(self._pool)
        found = self._search.find(utilities[self._sample], highest=True, most=MOST_SLICES)
        slices = []
        for one in found:
            rows = rows_of(one.conditions, self._columns)
            slices.append(
                {
                    "conditions": [condition.text for condition in one.conditions],
                    "rows": int(rows.sum()),
                    "share": float(rows.mean()),
                    "p_value": one.p_value,
                    "mean_utility": float(utilities[rows].mean()),
                    "mean_v_y": float(self._pool["y"][rows].mean()),
                    "mean_v_z": float(self._pool[attribute][rows].mean()),
                }
            )
        return {"alpha": ALPHA, "mean": float(utilities.mean()), "slices": slices}
