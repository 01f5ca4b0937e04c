"""What the alpha slider shows, for every utility and every alpha, computed before the page is written."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from fado.exploration._distributions import BINS, binned
from fado.exploration._groups import ShownGroups
from fado.exploration._material import Material, Span, span_around
from fado.exploration._pool import Dropping, SlicePool
from fado.exploration._slices import SliceFinder
from fado.interventions import minmax
from fado.tabular import Groups, mean_one, small_groups
from fado.utility import BaseUtility, utility_class, utility_names

__all__ = ["ALPHAS", "alpha_part"]

FloatArray = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

ALPHAS = tuple(step / 20 for step in range(21))


def alpha_part(
    material: Material, finder: SliceFinder, names: Sequence[str], fine: Groups, groups: ShownGroups
) -> dict[str, Any]:
    """Give for every utility and alpha what the utility, the sampler and the reweigher would do.

    Parameters
    ----------
    material : Material
        The rows.
    finder : SliceFinder
        Of the same rows.
    names : sequence of str
        The protected attributes that the utility weighs, in equal parts.
    fine : Groups
        The groups whose positive rates the sampler matches.
    groups : ShownGroups
        The groups that are shown; small ones are counted, and have no rates.
    """
    parts = _Parts(material, finder, names, fine, groups)
    return {
        "attributes": list(names),
        "alphas": list(ALPHAS),
        "groups": list(groups.names),
        "rows": groups.sizes.tolist(),
        "small": groups.small,
        "outcome_before": parts.per_row(parts.outcome_sums(None), groups.sizes),
        "sampling": parts.sampling_counts(),
        "slices": parts.pool.described(groups),
        "utilities": {utility: parts.settings(utility) for utility in _usable(material, names)},
    }


def _usable(material: Material, names: Sequence[str]) -> list[str]:
    """List the utilities that take the values at hand: some refuse signed ones."""
    signed = any(material.valuation.scales[name].is_signed for name in ("y", *names))
    return [name for name in utility_names() if utility_class(name).takes_signed or not signed]


class _Parts:
    """What all settings of one scenario share."""

    def __init__(
        self, material: Material, finder: SliceFinder, names: Sequence[str], fine: Groups, groups: ShownGroups
    ) -> None:
        self._material, self._groups, self._names = material, groups, names
        positive = material.is_positive
        self._sampling: Dropping | None = None
        n_small = int(small_groups(fine.sizes, material.min_group_size).sum())
        if positive is not None and len(fine) - n_small > 1:
            self._sampling = Dropping(positive, fine, material.min_group_size, material.seed)
        self.pool = SlicePool(material, finder, names, self._sampling)

    def settings(self, utility: str) -> dict[str, Any]:
        """Give what the page shows for one utility at every alpha."""
        kind, valuation = utility_class(utility), self._material.valuation
        every = [kind(alpha=alpha).over(self._names)(valuation) for alpha in ALPHAS]
        span = self._span(kind, every)
        return {**span.to_dict(), "settings": [self._setting(utilities, span) for utilities in every]}

    def _span(self, kind: type[BaseUtility], every: Sequence[FloatArray]) -> Span:
        scales = self._material.valuation.scales
        if all(scales[name].is_unit for name in ("y", *self._names)):
            return Span(*kind.ends)
        return span_around(np.concatenate(every), 0.0)

    def _setting(self, utilities: FloatArray, span: Span) -> dict[str, Any]:
        """Give what the page shows for one utility at one alpha."""
        bins = binned(utilities, span.low, span.high)
        everyone = np.ones(len(bins), dtype=bool)
        dropped = None if self._sampling is None else self._sampling.dropped(utilities)
        return {
            "histogram": self._histograms(bins, everyone),
            "mean": self.per_row(self._groups.total(utilities), self._groups.sizes),
            "dropped": None if dropped is None else self._dropped(bins, dropped),
            "weights": self._weights(mean_one(minmax(utilities))),
            "slices": self.pool.ranked(utilities, dropped),
        }

    def outcome_sums(self, weights: FloatArray | None) -> FloatArray | None:
        """Add up the outcome per group, weighted; None where there is none to compare."""
        outcome = self._material.outcome
        if outcome is None:
            return None
        return self._groups.total(outcome if weights is None else outcome * weights)

    def sampling_counts(self) -> dict[str, Any] | None:
        """Give per group what is dropped and what rate is left, which no utility changes."""
        if self._sampling is None:
            return None
        groups = self._groups
        gone = groups.count(self._sampling.dropped(np.zeros(len(self._material))))
        positives = groups.count(self._sampling.positive)
        return {
            "target_rate": self._sampling.target_rate,
            "dropped": gone.tolist(),
            "kept": (groups.sizes - gone).tolist(),
            "rate_before": self.per_row(positives, groups.sizes),
            "rate_after": self.per_row(positives, groups.sizes - gone),
        }

    def per_row(self, sums: npt.NDArray[Any] | None, counts: npt.NDArray[Any]) -> list[float | None] | None:
        """Divide each group's sum by its count; None for small groups, and where the count is 0."""
        if sums is None:
            return None
        return [
            float(total / count) if count > 0 and group != self._groups.small else None
            for group, (total, count) in enumerate(zip(sums, counts, strict=True))
        ]

    def _histograms(self, bins: npt.NDArray[np.int64], rows: Bools) -> list[list[int]]:
        groups = self._groups
        there = rows & (groups.codes >= 0)
        cells = np.bincount(groups.codes[there] * BINS + bins[there], minlength=len(groups) * BINS)
        return cells.reshape(len(groups), BINS).tolist()

    def _dropped(self, bins: npt.NDArray[np.int64], dropped: Bools) -> dict[str, Any]:
        groups, valuation = self._groups, self._material.valuation
        counts = groups.count(dropped)
        v_z = np.mean([valuation[name] for name in self._names], axis=0)
        return {
            "histogram": self._histograms(bins, dropped),
            "mean_v_y": self.per_row(groups.total(valuation["y"] * dropped), counts),
            "mean_v_z": self.per_row(groups.total(v_z * dropped), counts),
        }

    def _weights(self, weights: FloatArray) -> dict[str, Any]:
        effective = float(weights.sum() ** 2 / np.square(weights).sum())
        per_group = self._groups.total(weights)
        return {
            "effective_rows": effective,
            "effective_share": effective / len(weights),
            "largest": float(weights.max()),
            "share_per_group": (per_group / weights.sum()).tolist(),
            "outcome_per_group": self.per_row(self.outcome_sums(weights), per_group),
        }
