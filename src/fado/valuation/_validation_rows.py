"""The rows that effects are measured on, and the metrics that are measured there."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from fado._checks import check_choice
from fado._messages import COMPARE_TARGET, list_names, warn_user
from fado.metrics import RATIO_NAMES, lowest_threshold, measure
from fado.tabular import (
    MIN_GROUP_SIZE,
    Labels,
    Problem,
    Table,
    Variable,
    group_rows,
    small_groups,
    tell_small,
    warn_of_missing,
)
from fado.valuation._probabilities import log_losses

__all__ = [
    "PERFORMANCES",
    "ValidationGroups",
    "ValidationRows",
    "binary_labels",
    "check_metrics",
    "decide",
    "measure_validation_rows",
    "read_validation_rows",
]

Bools = npt.NDArray[np.bool_]
FloatArray = npt.NDArray[np.float64]

PERFORMANCES = ("tpr_at_fpr", "log_loss", "accuracy")


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
        What each counts in a metric; 1 if nobody says.
    attributes : tuple of ValidationGroups
        The protected attributes, in the order of the valued rows' own.
    """

    table: Table
    positive: Bools
    weights: FloatArray
    attributes: tuple[ValidationGroups, ...]

    @property
    def n_rows(self) -> int:
        """How many rows there are."""
        return len(self.positive)

    def take(self, rows: npt.NDArray[np.integer[Any]]) -> ValidationRows:
        """Give the labels and weights of some rows, without their features and groups."""
        return replace(self, positive=self.positive[rows], weights=self.weights[rows], attributes=())


def check_metrics(performance: Any, fairness: Any, max_fpr: Any = 0.05) -> None:
    """Refuse names that no metric has, and a budget that is none."""
    check_choice("performance", performance, PERFORMANCES)
    check_choice("fairness", fairness, RATIO_NAMES)
    if isinstance(max_fpr, bool) or not isinstance(max_fpr, int | float | np.number):
        raise TypeError(f"`max_fpr` must be a number in (0, 1), got {max_fpr!r}.")
    if not 0 < max_fpr < 1:
        raise ValueError(f"`max_fpr` must be in (0, 1), got {max_fpr}.")


def binary_labels(problem: Problem, who: str) -> Labels:
    """Give a target of two classes, or say that effects on rates need one.

    Parameters
    ----------
    problem : Problem
        The rows to value.
    who : str
        The valuator, for the message.
    """
    remedy = f"{COMPARE_TARGET}."
    if problem.target.kind == "continuous":
        raise ValueError(f"{who} needs a target of two classes, and `y` is continuous: {remedy}")
    labels = problem.labels
    if len(labels.classes) == 1:
        raise ValueError(
            f"{who} needs a target of two classes, and `y` has only one class ({labels.classes[0]!r})."
        )
    if len(labels.classes) > 2:
        raise ValueError(
            f"{who} needs a target of two classes, and `y` has {len(labels.classes)}: {remedy} "
            "Only binary classification is supported."
        )
    return labels


def read_validation_rows(problem: Problem, validation: Problem | None, who: str) -> ValidationRows:
    """Read the validation rows: those that the user set apart, or, without any, all that are valued.

    Parameters
    ----------
    problem : Problem
        The rows to value; their target has two classes.
    validation : Problem or None
        The validation rows.
    who : str
        The valuator, for messages.
    """
    labels = binary_labels(problem, who)
    rows = problem if validation is None else validation
    positive = labels.is_positive if validation is None else _positives(validation, labels)
    attributes = problem.protected if validation is None else _same_attributes(problem, validation)
    warn_of_missing(attributes)
    groups = [
        _compared_groups(theirs, own.name) for own, theirs in zip(problem.protected, attributes, strict=True)
    ]
    weights = np.ones(rows.n_rows) if rows.sample_weight is None else rows.sample_weight
    for marked, what in ((positive, "positive"), (~positive, "negative")):
        if not weights[marked].any():
            raise ValueError(f"Every {what} among the validation rows weighs nothing: give some a weight.")
    return ValidationRows(rows.table, positive, weights, tuple(groups))


def _positives(validation: Problem, labels: Labels) -> Bools:
    classes = validation.labels.classes
    strange = [label for label in classes if label not in labels.classes]
    if strange:
        raise ValueError(
            f"Validation rows have the label {strange[0]!r}, and the valued rows {labels.classes[0]!r} and "
            f"{labels.classes[1]!r}: give both the same labels."
        )
    if len(classes) == 1:
        raise ValueError(
            f"The validation rows hold one label only ({classes[0]!r}): give rows of both labels."
        )
    return validation.labels.codes == classes.index(labels.classes[labels.positive or 0])


def _same_attributes(problem: Problem, validation: Problem) -> tuple[Variable, ...]:
    """Give the validation rows' attributes in the order of the valued rows' own."""
    own, theirs = ([one.name for one in rows.protected] for rows in (problem, validation))
    if len(own) != len(theirs):
        raise ValueError(
            f"Validation rows have {len(theirs)} protected attributes and the valued rows {len(own)}: give "
            "both the same."
        )
    if not (problem.names_given and validation.names_given) or own == theirs:
        return validation.protected
    if sorted(own) != sorted(theirs):
        raise ValueError(
            f"The validation rows have the protected attributes {list_names(theirs)}, and the valued rows "
            f"{list_names(own)}: give both the same."
        )
    return tuple(validation.protected[theirs.index(name)] for name in own)


def _compared_groups(variable: Variable, name: str) -> ValidationGroups:
    groups = group_rows([variable])
    small = small_groups(groups.sizes, MIN_GROUP_SIZE)
    if small.any():
        told = tell_small(groups.names, groups.sizes, small, MIN_GROUP_SIZE)
        verb = "is" if small.sum() == 1 else "are"
        warn_user(f"{told} {verb} not compared: the effects of rows on {name!r} are about the others.")
    if (~small).sum() < 2:
        raise ValueError(
            f"Protected attribute {name!r} has only one group among the validation rows, "
            f"{groups.names[int(np.argmax(groups.sizes))]}: there is nothing to compare; leave it out."
        )
    return ValidationGroups(name, groups.codes, groups.names, ~small)


def decide(rows: ValidationRows, scores: FloatArray, max_fpr: float) -> Bools:
    """Predict rows positive from the lowest score on that keeps the budget of false positives."""
    counted = rows.weights > 0
    threshold = lowest_threshold(
        rows.positive[counted], scores[counted], max_fpr, _unequal(rows.weights[counted])
    )
    return scores >= threshold


def measure_validation_rows(
    rows: ValidationRows, scores: FloatArray, performance: str, fairness: str, max_fpr: float
) -> dict[str, float]:
    """Measure a model: its performance as ``"y"``, and the ratio of every attribute by its name.

    Parameters
    ----------
    rows : ValidationRows
        The rows that were scored.
    scores : ndarray
        Probabilities of the positive label.
    performance : {"tpr_at_fpr", "log_loss", "accuracy"}
        Log-loss counts negatively, so that more is better; accuracy is that of probabilities of a half and
        more.
    fairness : str
        A ratio, at the lowest threshold that keeps the budget.
    max_fpr : float
        The budget.

    Returns
    -------
    dict of str to float
        NaN where a metric is undefined.
    """
    measured = {}
    weights = _unequal(rows.weights)
    for own in rows.attributes:
        metrics, _ = measure(
            rows.positive,
            scores,
            own.codes,
            own.names,
            max_fpr=max_fpr,
            sample_weight=weights,
            left_out=~own.compared,
        )
        measured[own.name] = metrics[fairness]
    if performance == "tpr_at_fpr":
        found = decide(rows, scores, max_fpr)[rows.positive]
        figure = float(np.average(found, weights=rows.weights[rows.positive]))
    elif performance == "accuracy":
        figure = float(np.average((scores >= 0.5) == rows.positive, weights=rows.weights))
    else:
        of_label = np.where(rows.positive, scores, 1.0 - scores)
        figure = -float(np.average(log_losses(of_label), weights=rows.weights))
    return {"y": figure, **measured}


def _unequal(weights: FloatArray) -> FloatArray | None:
    return None if (weights == 1.0).all() else weights
