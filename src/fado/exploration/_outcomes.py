"""What groups may differ in: the rate of the positive label, every label's share, or the mean of a number."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy.typing as npt

from fado.exploration import _intervals
from fado.exploration._groups import ShownGroups
from fado.exploration._intervals import Estimate
from fado.exploration._material import Material
from fado.exploration._wording import percent, plain_number, quoted

__all__ = ["Outcome", "label_shares", "outcomes"]


@dataclass(frozen=True)
class Outcome:
    """One thing that groups may differ in: per row, and its estimate per shown group."""

    name: str
    rows: npt.NDArray[Any]
    per_group: list[Estimate]
    is_share: bool

    @property
    def format(self) -> str:
        """How the page writes it."""
        return "percent" if self.is_share else "number"

    def write(self, number: float) -> str:
        """Write it in a sentence."""
        return percent(number) if self.is_share else plain_number(number)

    def gap(self, first: Estimate, second: Estimate) -> Estimate:
        """Estimate the difference of two groups."""
        return (_intervals.share_gap if self.is_share else _intervals.difference)(first, second)


def outcomes(material: Material, groups: ShownGroups) -> list[Outcome]:
    """List the rate of the positive label; without one, the share of every label; or a number's mean."""
    target = material.target
    if target.kind == "continuous":
        means = [_intervals.mean(target.labels[groups.members(group)]) for group in range(len(groups))]
        return [Outcome(f"mean of {material.target_name}", target.labels, means, is_share=False)]
    found = []
    for code in range(len(target.classes)) if material.positive is None else [material.positive]:
        rows = target.labels == code
        events, sizes = groups.count(rows).tolist(), groups.sizes.tolist()
        rates = [_intervals.share(event, size) for event, size in zip(events, sizes, strict=True)]
        label = quoted(material.speak_label(code))
        name = f"share of {label}" if material.positive is None else f"rate of {label}"
        found.append(Outcome(name, rows, rates, is_share=True))
    return found


def label_shares(material: Material, groups: ShownGroups) -> list[dict[str, Any]] | None:
    """Give every label's share in all rows and in each compared group; None where one rate says all."""
    if material.target.kind == "continuous" or material.positive is not None:
        return None
    return [
        {
            "label": str(label),
            "share": float(outcome.rows.mean()),
            "groups": [outcome.per_group[group].number for group in groups.compared],
        }
        for label, outcome in zip(material.target.classes, outcomes(material, groups), strict=True)
    ]
