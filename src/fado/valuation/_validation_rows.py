"""Validation data, the metrics measured on them, and the contribution of each row to a metric.

Rates are means of decisions over rows, so a metric is, to first order, a sum over the validation rows of a
coefficient times whether the row is predicted positive. Influence, KNN-Shapley and Data Shapley values all
use these coefficients.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from fado._checks import check_choice
from fado._messages import list_names, warn_user
from fado._typing import Bools, Floats
from fado.metrics import RATIO_NAMES, RATIOS, Budget, measure, predicted_positive
from fado.tabular import (
    MIN_GROUP_SIZE,
    Problem,
    Table,
    Variable,
    group_rows,
    match_attributes,
    match_positive,
    warn_of_unknown,
)
from fado.valuation._probabilities import log_losses
from fado.valuation._provenance import Provenance, Scale
from fado.valuation._result import Valuation

_TABLES = "the valued rows have", "The validation rows have"
_PERFORMANCES = ("tpr_at_fpr", "log_loss", "accuracy")


@dataclass(frozen=True, eq=False)
class ValidationGroups:
    """One protected attribute of the validation rows.

    Parameters
    ----------
    name : str
        The attribute's, as the valued rows have it.
    codes : ndarray of int
        Each row's group, as a position in `names`.
    names : tuple of str
        What messages call the groups.
    compared : ndarray of bool
        Which groups are large enough to be compared; there are two at least.
    """

    name: str
    codes: npt.NDArray[np.int64]
    names: tuple[str, ...]
    compared: Bools


class Extremes(NamedTuple):
    """The groups that determine a ratio: those with the lowest and the highest rate, and these rates."""

    lowest: int
    highest: int
    low: float
    high: float
    low_size: float
    high_size: float

    def warn_if_close(self, attribute: ValidationGroups, fairness: str) -> None:
        """Warn if it is not certain which group has the lower rate, which decides the signs of effects."""
        low, high = self.low, self.high
        spread = np.sqrt(low * (1 - low) / self.low_size + high * (1 - high) / self.high_size)
        if high - low < 2 * spread:
            names = [attribute.names[group] for group in (self.lowest, self.highest)]
            warn_user(
                f"`{fairness}` of {attribute.name!r} is {low / high:.2f}: group {names[0]} has a rate of "
                f"{low:.3f} and group {names[1]} of {high:.3f}, too close to say which is lower. The "
                "signs of the effects depend on it."
            )


@dataclass(frozen=True, eq=False)
class ValidationRows:
    """The rows that effects are measured on.

    Parameters
    ----------
    table : Table
        Their features.
    positive : ndarray of bool
        Which hold the positive label; some do, and some do not.
    weights : ndarray
        The weight of each in a metric, by default 1.
    attributes : tuple of ValidationGroups
        The protected attributes, in the order of the valued rows.
    """

    table: Table
    positive: Bools
    weights: Floats
    attributes: tuple[ValidationGroups, ...]

    @property
    def n_rows(self) -> int:
        """How many rows there are."""
        return len(self.positive)

    def take(self, rows: npt.NDArray[np.integer[Any]]) -> ValidationRows:
        """Return the labels and weights of some rows, without their features and groups."""
        return replace(self, positive=self.positive[rows], weights=self.weights[rows], attributes=())

    def decide(self, scores: Floats, max_fpr: float) -> Bools:
        """Predict rows positive from the lowest score that keeps the budget of false positives."""
        return predicted_positive(
            scores, Budget("fpr", max_fpr).threshold(self.positive, scores, self.weights)
        )

    def measure(self, scores: Floats, performance: str, fairness: str, max_fpr: float) -> dict[str, float]:
        """Measure a model by its probabilities: its performance as ``"y"``, and the ratio of every attribute.

        More is always better, so a log-loss is negative; accuracy is at a threshold of 0.5; a ratio is
        measured at the lowest threshold that keeps the budget. NaN if a metric is undefined.
        """
        measured: dict[str, float] = {}
        for groups in self.attributes:
            metrics, _ = measure(
                *(self.positive, scores, groups.codes, groups.names),
                max_fpr=max_fpr,
                sample_weight=self.weights,
                left_out=~groups.compared,
            )
            measured[groups.name] = metrics[fairness]
        if performance == "tpr_at_fpr":
            selected = self.decide(scores, max_fpr)[self.positive]
            figure = float(np.average(selected, weights=self.weights[self.positive]))
        elif performance == "accuracy":
            figure = float(np.average((scores >= 0.5) == self.positive, weights=self.weights))
        else:
            of_label = np.where(self.positive, scores, 1.0 - scores)
            figure = -float(np.average(log_losses(of_label), weights=self.weights))
        return {"y": figure, **measured}

    def performance_coefficients(self, performance: str) -> Floats:
        """Return what each row adds to a rate (not a log-loss) if it is predicted positive."""
        if performance == "tpr_at_fpr":
            weights = np.where(self.positive, self.weights, 0.0)
            return weights / weights.sum()
        return np.where(self.positive, self.weights, -self.weights) / self.weights.sum()

    def ratio_coefficients(
        self, attribute: ValidationGroups, fairness: str, predicted: npt.NDArray[Any]
    ) -> Floats:
        """Return what each row adds to a ratio if it is predicted positive, to first order.

        `predicted` says how far each row is predicted positive by the model around which the ratio changes,
        in [0, 1]. Only the groups with the lowest and the highest rate have a part in it.

        Examples
        --------
        >>> import numpy as np
        >>> from fado.tabular import Table
        >>> compared = np.array([True, True])
        >>> groups = ValidationGroups("sex", np.array([0, 0, 1, 1, 1]), ("'f'", "'m'"), compared)
        >>> positive = np.array([False, False, False, False, True])
        >>> rows = ValidationRows(Table.from_input(np.zeros((5, 1))), positive, np.ones(5), (groups,))
        >>> rows.ratio_coefficients(groups, "fpr_ratio", np.array([0.2, 0.2, 0.5, 0.3, 1.0])).round(3)
        array([ 1.25 ,  1.25 , -0.625, -0.625,  0.   ])
        """
        members, sign = self._members(fairness)
        extremes = self.extremes(attribute, fairness, predicted)
        by_group = np.zeros(len(attribute.names))
        by_group[extremes.lowest] = 1.0 / extremes.high / extremes.low_size
        by_group[extremes.highest] = -extremes.low / extremes.high**2 / extremes.high_size
        return np.where(members, sign * by_group[attribute.codes] * self.weights, 0.0)

    def extremes(self, attribute: ValidationGroups, fairness: str, predicted: npt.NDArray[Any]) -> Extremes:
        """Find the groups that determine a ratio, or raise an error if it is undefined."""
        rates, sizes = self._rates(attribute, fairness, predicted)
        candidates = np.flatnonzero(attribute.compared)
        empty = [attribute.names[group] for group in candidates if sizes[group] == 0]
        if empty:
            raise ValueError(
                f"`{fairness}` of {attribute.name!r} is undefined: group {list_names(empty)} has no "
                f"{RATIOS[fairness].members} of any weight among the validation rows; leave the group out or "
                "use more validation rows."
            )
        lowest = candidates[np.argmin(rates[candidates])]
        others = candidates[candidates != lowest]
        highest = others[np.argmax(rates[others])]
        if rates[highest] == 0:
            how_many = "more" if RATIOS[fairness].of_selected else "fewer"
            raise ValueError(
                f"`{fairness}` of {attribute.name!r} is undefined: no group has {RATIOS[fairness].events} "
                f"among the validation rows; use more validation rows or allow {how_many} false positives."
            )
        of_both = [float(figures[group]) for figures in (rates, sizes) for group in (lowest, highest)]
        return Extremes(int(lowest), int(highest), *of_both)

    def directed_ratio(
        self, attribute: ValidationGroups, fairness: str, predicted: npt.NDArray[Any], extremes: Extremes
    ) -> float:
        """Return the ratio of the rates of two given groups, in this order; it may be above 1."""
        rates, _ = self._rates(attribute, fairness, predicted)
        low, high = rates[extremes.lowest], rates[extremes.highest]
        return float(low / high) if high > 0 else float("nan")

    def _rates(
        self, attribute: ValidationGroups, fairness: str, predicted: npt.NDArray[Any]
    ) -> tuple[Floats, Floats]:
        """Return every group's rate, 0 without members, and how much its members weigh."""
        members, sign = self._members(fairness)
        events = np.asarray(predicted, dtype=np.float64) if sign > 0 else 1.0 - predicted
        n_groups = len(attribute.names)
        sizes = np.bincount(attribute.codes, self.weights * members, n_groups)
        sums = np.bincount(attribute.codes, self.weights * members * events, n_groups)
        return np.divide(sums, sizes, out=np.zeros(n_groups), where=sizes > 0), np.asarray(sizes, np.float64)

    def _members(self, fairness: str) -> tuple[Bools, float]:
        """Return the rows that a ratio's rates are about, and the sign of a predicted positive."""
        rate = RATIOS[fairness]
        members = np.ones(self.n_rows, dtype=np.bool_) if rate.label is None else self.positive == rate.label
        return members, 1.0 if rate.of_selected else -1.0


def check_metrics(performance: Any, fairness: Any, max_fpr: Any = 0.05) -> None:
    """Raise an error for names that no metric has, or an invalid budget."""
    check_choice("performance", performance, _PERFORMANCES)
    check_choice("fairness", fairness, RATIO_NAMES)
    if isinstance(max_fpr, bool) or not isinstance(max_fpr, int | float | np.number):
        raise TypeError(f"`max_fpr` must be a number in (0, 1), got {max_fpr!r}.")
    if not 0 < max_fpr < 1:
        raise ValueError(f"`max_fpr` must be in (0, 1), got {max_fpr}.")


def effect_scales(variables: Iterable[str], performance: str, fairness: str) -> dict[str, Scale]:
    """Return the scales of effects: on a performance for the target, on a ratio for the others."""
    metrics = {name: performance if name == "y" else fairness for name in variables}
    return {name: Scale(f"effect of the row's weight on {metric}") for name, metric in metrics.items()}


def effect_valuation(
    effects: Floats,
    errors: Floats,
    counts: npt.NDArray[np.int32],
    scales: Mapping[str, Scale],
    provenance: Provenance,
    label_probability: Floats | None = None,
) -> Valuation:
    """Make a valuation of effects and their errors, with one column per variable each."""
    nothing = np.full(len(effects), np.nan)
    return Valuation(
        {name: effects[:, k].copy() for k, name in enumerate(scales)},
        {name: errors[:, k].copy() for k, name in enumerate(scales)},
        dict.fromkeys(scales, counts),
        None
        if label_probability is None
        else {name: label_probability if name == "y" else nothing for name in scales},
        scales=scales,
        provenance=provenance,
    )


def read_validation_rows(problem: Problem, validation: Problem | None, who: str) -> ValidationRows:
    """Read the validation data: those that the user passes, or else all valued rows."""
    labels = problem.binary_labels(who)
    rows = problem if validation is None else validation
    positive, attributes = labels.is_positive, problem.protected
    if validation is not None:
        positive = match_positive(validation.labels, labels.pair, *_TABLES)
        places = match_attributes(problem, validation, *_TABLES)
        attributes = tuple(validation.protected[place] for place in places)
    warn_of_unknown(attributes)
    groups = [
        _compared_groups(attribute, valued.name)
        for valued, attribute in zip(problem.protected, attributes, strict=True)
    ]
    weights = np.ones(rows.n_rows) if rows.sample_weight is None else rows.sample_weight
    for marked, what in ((positive, "positive"), (~positive, "negative")):
        if not weights[marked].any():
            raise ValueError(f"Every {what} among the validation rows weighs nothing: give some a weight.")
    return ValidationRows(rows.table, positive, weights, tuple(groups))


def _compared_groups(variable: Variable, name: str) -> ValidationGroups:
    groups = group_rows([variable])
    compared = groups.compared(MIN_GROUP_SIZE)
    if small := groups.tell_small("not compared", MIN_GROUP_SIZE):
        warn_user(f"{small}: the effects of rows on {name!r} are about the others.")
    if compared.sum() < 2:
        left = groups.names[int(np.argmax(compared))]
        raise ValueError(
            f"Protected attribute {name!r} has only one group among the validation rows, {left}: there is "
            "nothing to compare; leave it out."
        )
    return ValidationGroups(name, groups.codes, groups.names, compared)
