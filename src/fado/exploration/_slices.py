"""Slices in plain data: their conditions, size, mean values and outcome per group."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from fado.exploration._conditions import BinnedColumn, binned_columns
from fado.exploration._groups import FEWEST_MEMBERS, ShownGroups
from fado.exploration._material import Attribute, Material
from fado.exploration._search import Slice, SliceSearch, rows_of

__all__ = ["SliceFinder"]

FloatArray = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

MOST_SHOWN = 5


class SliceFinder:
    """Find slices of one material, and describe them over all its rows."""

    def __init__(self, material: Material) -> None:
        self._material = material
        self.columns: list[BinnedColumn] = binned_columns(material)
        self._search = SliceSearch(self.columns, material.sample)

    def find(
        self,
        target: FloatArray,
        *,
        highest: bool,
        most: int = MOST_SHOWN,
        among: Bools | None = None,
        without: Sequence[int] = (),
    ) -> list[Slice]:
        """Find slices by a target that has one number per row of the material."""
        sample = self._material.sample
        return self._search.find(
            target[sample],
            highest=highest,
            most=most,
            among=None if among is None else among[sample],
            without=without,
        )

    def rows(self, found: Slice) -> Bools:
        """Mark the rows of a slice."""
        return rows_of(found.conditions, self.columns)

    def gives_away(self, attribute: Attribute) -> list[dict[str, Any]]:
        """Describe the slices whose rows give their group away: models are surest of it.

        Only columns that the attribute's models saw can say why; and only values that say how unsure models
        are, not effects.
        """
        material = self._material
        if material.valuation.scales[attribute.name].is_signed:
            return []
        hidden = material.excluded_columns(attribute.name)
        without = [
            number
            for number, column in enumerate(self.columns)
            if column.name == attribute.name or column.feature is None or column.name in hidden
        ]
        values = material.valuation[attribute.name]
        found = self.find(values, highest=False, without=without)
        return [
            self.described(one, attribute.name, attribute.groups) | {"p_value": one.p_value} for one in found
        ]

    def described(self, found: Slice, z: str | Sequence[str], groups: ShownGroups) -> dict[str, Any]:
        """Describe a slice over all rows; what too few rows, or no compared group, say is None."""
        rows, valuation = self.rows(found), self._material.valuation
        n_rows = int(rows.sum())
        names = [z] if isinstance(z, str) else list(z)
        outcome = self._material.outcome
        per_group: list[float | None] = [None] * len(groups)
        counts = groups.count(rows)
        enough = [group in groups.compared and count >= FEWEST_MEMBERS for group, count in enumerate(counts)]
        if outcome is not None:
            sums = groups.total(np.where(rows, outcome, 0.0))
            per_group = [
                float(total / count) if told else None
                for total, count, told in zip(sums, counts, enough, strict=True)
            ]
        return {
            "conditions": [condition.text for condition in found.conditions],
            "rows": n_rows,
            "share": n_rows / len(self._material),
            "mean_v_y": float(valuation["y"][rows].mean()),
            "mean_v_z": float(np.mean([valuation[name][rows].mean() for name in names])),
            "outcome": None if outcome is None else float(outcome[rows].mean()),
            "outcome_per_group": per_group,
            "share_per_group": [
                float(count / n_rows) if n_rows and told else None
                for count, told in zip(counts, enough, strict=True)
            ],
        }
