"""Which groups are compared, and what models achieve on them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from fado.experiment.config import EvaluationConfig, apply_metric, ratio_name
from fado.metrics import RATIO_NAMES, measure
from fado.tabular import SMALL_SHARE, Groups

__all__ = ["Comparison", "Measuring", "few_rows"]

Bools = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]
Rows = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Comparison:
    """Groups between which ratios are taken.

    Parameters
    ----------
    attribute : str or None
        The one protected attribute that makes them; None if all are crossed.
    groups : Groups
        Each row's group; one may have no rows here.
    left_out : ndarray of bool
        Per group, whether it is too small to count in ratios.
    """

    attribute: str | None
    groups: Groups
    left_out: Bools

    def take(self, rows: Rows) -> Comparison:
        """Give the groups of some rows."""
        return replace(self, groups=replace(self.groups, codes=self.groups.codes[rows]))


def few_rows(sizes: Sequence[npt.NDArray[np.int64]], min_group_size: int) -> Bools:
    """Mark the groups that are small in one of some parts: to be compared, a group must be so in all.

    A group without rows in a part is small there, other than in a table as a whole: what is chosen on one
    part could not be measured on the other.

    Examples
    --------
    >>> few_rows([np.array([4000, 50, 20]), np.array([5000, 0, 60])], 30)
    array([False,  True,  True])
    """
    small = [(counts < min_group_size) & (counts < SMALL_SHARE * counts.sum()) for counts in sizes]
    return np.any(small, axis=0)


@dataclass(frozen=True)
class Measuring:
    """The rows that models are measured on, and how.

    Parameters
    ----------
    positive : ndarray of bool
        The positives among the rows of the validation part, then of the test part.
    weights : ndarray or None
        What these rows count.
    comparisons : sequence of Comparison
        Of these rows: one of crossed attributes, or one per attribute.
    n_validation : int
        How many of the rows are of the validation part.
    settings : EvaluationConfig
        Budget, threshold and resamples.
    seed : int
        Of the bootstrap.
    groups : Groups or None
        The crossed groups of these rows, for metrics of the user's own.
    own : mapping of str to callable
        Those metrics, by name; see `fado.experiment.register_metric`.
    """

    positive: Bools
    weights: Floats | None
    comparisons: Sequence[Comparison]
    n_validation: int
    settings: EvaluationConfig
    seed: int
    groups: Groups | None = None
    own: Mapping[str, Callable[..., Any]] = field(default_factory=dict)

    def measure(self, scores: Floats, key: str) -> dict[str, float]:
        """Measure a model on the validation part, if there is one, and on the test part.

        Parameters
        ----------
        scores : ndarray
            Of the rows.
        key : str
            The fit's, which seeds the resamples.
        """
        cut, threshold = self.n_validation, None
        metrics: dict[str, float] = {}
        for part, rows in (("validation", slice(0, cut)), ("test", slice(cut, None))):
            if part == "validation" and cut == 0:
                continue
            found = self._measure(scores, rows, threshold, [self.seed, int(key[:8], 16), cut])
            found |= self._own(scores, rows, found)
            metrics |= {f"{part}_{name}": value for name, value in found.items()}
            if self.settings.threshold == "validation":
                threshold = found["threshold"]
        return metrics

    def _measure(
        self, scores: Floats, rows: slice, threshold: float | None, seed: list[int]
    ) -> dict[str, float]:
        """Measure one part by every comparison."""
        measured = []
        for number, comparison in enumerate(self.comparisons):
            found, _ = measure(
                self.positive[rows],
                scores[rows],
                comparison.groups.codes[rows],
                comparison.groups.names,
                budget=self.settings.budget,
                n_boot=self.settings.bootstrap,
                random_state=np.random.default_rng(seed + [number] * bool(number)),
                threshold=threshold,
                sample_weight=None if self.weights is None else self.weights[rows],
                left_out=comparison.left_out,
            )
            measured.append(found)
        return measured[0] | self._least(measured) | self._each(measured)

    def _own(self, scores: Floats, rows: slice, metrics: dict[str, float]) -> dict[str, float]:
        """Ask the metrics of the user's own about one part."""
        if not self.own or self.groups is None:
            return {}
        names = np.array(self.groups.names)[self.groups.codes[rows]]
        return {
            name: apply_metric(
                name,
                function,
                self.positive[rows].copy(),
                scores[rows].copy(),
                names.copy(),
                threshold=metrics["threshold"],
                sample_weight=None if self.weights is None else self.weights[rows].copy(),
                metrics=dict(metrics),
            )
            for name, function in self.own.items()
        }

    def _least(self, measured: list[dict[str, float]]) -> dict[str, float]:
        """Give every ratio of the attribute where it is least, NaN if it is undefined for one of them."""
        least: dict[str, float] = {}
        for ratio in RATIO_NAMES:
            lowest = measured[int(np.argmin([found[ratio] for found in measured]))]  # NaN comes first
            least |= {name: value for name, value in lowest.items() if name.startswith(ratio)}
        return least

    def _each(self, measured: list[dict[str, float]]) -> dict[str, float]:
        """Give the ratios of every attribute under names that tell it."""
        return {
            _of_attribute(name, ratio, str(comparison.attribute)): value
            for comparison, found in zip(self.comparisons, measured, strict=True)
            if comparison.attribute is not None
            for ratio in RATIO_NAMES
            for name, value in found.items()
            if name.startswith(ratio)
        }


def _of_attribute(name: str, ratio: str, attribute: str) -> str:
    return ratio_name(ratio, attribute) + name.removeprefix(ratio)
