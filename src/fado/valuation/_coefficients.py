"""What a metric owes to each validation row.

Rates are means of decisions over rows, so a metric is, to first order, a sum over the validation rows of a
coefficient times whether the row is predicted positive. Influence, KNN-Shapley and Data Shapley values all
take these coefficients from here.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from fado._messages import list_names, warn_user
from fado.valuation._validation_rows import ValidationGroups, ValidationRows

__all__ = [
    "Extremes",
    "directed_ratio",
    "find_extremes",
    "performance_coefficients",
    "ratio_coefficients",
    "warn_of_equal_rates",
]

Bools = npt.NDArray[np.bool_]
FloatArray = npt.NDArray[np.float64]

_EVENTS = {
    "fpr_ratio": "false positives",
    "fnr_ratio": "false negatives",
    "tpr_ratio": "true positives",
    "selection_rate_ratio": "predicted positives",
}


def performance_coefficients(rows: ValidationRows, performance: str) -> FloatArray:
    """Give what each validation row adds to a performance if it is predicted positive.

    Parameters
    ----------
    rows : ValidationRows
        The rows.
    performance : {"tpr_at_fpr", "accuracy"}
        Rates, that is; a log-loss is no sum of decisions.
    """
    if performance == "tpr_at_fpr":
        weights = np.where(rows.positive, rows.weights, 0.0)
        return weights / weights.sum()
    return np.where(rows.positive, rows.weights, -rows.weights) / rows.weights.sum()


def ratio_coefficients(
    rows: ValidationRows, attribute: ValidationGroups, fairness: str, predicted: npt.NDArray[Any]
) -> FloatArray:
    """Give what each validation row adds to a ratio if it is predicted positive, to first order.

    A ratio changes with the rates of the groups with the lowest and the highest rate; the others have no
    part in it.

    Parameters
    ----------
    rows : ValidationRows
        The rows.
    attribute : ValidationGroups
        Their groups.
    fairness : str
        The ratio.
    predicted : ndarray of bool or float
        How far each row is predicted positive by the model around which the ratio changes, in [0, 1].

    Raises
    ------
    ValueError
        If the ratio is undefined there.

    Examples
    --------
    >>> import numpy as np
    >>> from fado.tabular import Table
    >>> groups = ValidationGroups("sex", np.array([0, 0, 1, 1, 1]), ("'f'", "'m'"), np.array([True, True]))
    >>> positive = np.array([False, False, False, False, True])
    >>> rows = ValidationRows(Table.from_input(np.zeros((5, 1))), positive, np.ones(5), (groups,))
    >>> ratio_coefficients(rows, groups, "fpr_ratio", np.array([0.2, 0.2, 0.5, 0.3, 1.0])).round(3)
    array([ 1.25 ,  1.25 , -0.625, -0.625,  0.   ])
    """
    members, sign = _members(rows, fairness)
    found = find_extremes(rows, attribute, fairness, predicted)
    by_group = np.zeros(len(attribute.names))
    by_group[found.lowest] = 1.0 / found.high / found.low_size
    by_group[found.highest] = -found.low / found.high**2 / found.high_size
    return np.where(members, sign * by_group[attribute.codes] * rows.weights, 0.0)


class Extremes(NamedTuple):
    """The groups that decide a ratio: those with the lowest and the highest rate, and what these are."""

    lowest: int
    highest: int
    low: float
    high: float
    low_size: float
    high_size: float


def find_extremes(
    rows: ValidationRows, attribute: ValidationGroups, fairness: str, predicted: npt.NDArray[Any]
) -> Extremes:
    """Find the groups that decide a ratio, or say that it is undefined; parameters as above."""
    rates, sizes = _rates(rows, attribute, fairness, predicted)
    candidates = np.flatnonzero(attribute.compared)
    empty = [attribute.names[group] for group in candidates if sizes[group] == 0]
    if empty:
        what = {"fpr_ratio": "negatives", "selection_rate_ratio": "rows"}.get(fairness, "positives")
        raise ValueError(
            f"`{fairness}` of {attribute.name!r} is undefined: group {list_names(empty)} has no {what} of "
            "any weight among the validation rows; leave the group out or use more validation rows."
        )
    lowest = candidates[np.argmin(rates[candidates])]
    others = candidates[candidates != lowest]
    highest = others[np.argmax(rates[others])]
    if rates[highest] == 0:
        how_many = "fewer" if fairness == "fnr_ratio" else "more"
        raise ValueError(
            f"`{fairness}` of {attribute.name!r} is undefined: no group has {_EVENTS[fairness]} among the "
            f"validation rows; use more validation rows or allow {how_many} false positives."
        )
    return Extremes(
        int(lowest),
        int(highest),
        float(rates[lowest]),
        float(rates[highest]),
        float(sizes[lowest]),
        float(sizes[highest]),
    )


def warn_of_equal_rates(attribute: ValidationGroups, fairness: str, extremes: Extremes) -> None:
    """Warn if it is not certain which group has the lower rate: the signs of effects hang on it."""
    low, high = extremes.low, extremes.high
    spread = np.sqrt(low * (1 - low) / extremes.low_size + high * (1 - high) / extremes.high_size)
    if high - low < 2 * spread:
        names = [attribute.names[group] for group in (extremes.lowest, extremes.highest)]
        warn_user(
            f"`{fairness}` of {attribute.name!r} is {low / high:.2f}: group {names[0]} has a rate of "
            f"{low:.3f} and group {names[1]} of {high:.3f}, too close to tell which is the lower one. The "
            "signs of the effects hang on it."
        )


def directed_ratio(
    rows: ValidationRows,
    attribute: ValidationGroups,
    fairness: str,
    predicted: npt.NDArray[Any],
    extremes: Extremes,
) -> float:
    """Give the rate of one group over that of another, in that order: above 1 once they changed places."""
    rates, _ = _rates(rows, attribute, fairness, predicted)
    low, high = rates[extremes.lowest], rates[extremes.highest]
    return float(low / high) if high > 0 else float("nan")


def _rates(
    rows: ValidationRows, attribute: ValidationGroups, fairness: str, predicted: npt.NDArray[Any]
) -> tuple[FloatArray, FloatArray]:
    """Give every group's rate, 0 without members, and how much its members weigh."""
    members, sign = _members(rows, fairness)
    events = np.asarray(predicted, dtype=np.float64) if sign > 0 else 1.0 - predicted
    n_groups = len(attribute.names)
    sizes = np.bincount(attribute.codes, rows.weights * members, n_groups)
    sums = np.bincount(attribute.codes, rows.weights * members * events, n_groups)
    return np.divide(sums, sizes, out=np.zeros(n_groups), where=sizes > 0), np.asarray(sizes, np.float64)


def _members(rows: ValidationRows, fairness: str) -> tuple[Bools, float]:
    """Give the rows that a ratio's rates are about, and whether predicted positives raise or lower them."""
    if fairness == "selection_rate_ratio":
        return np.ones(rows.n_rows, dtype=np.bool_), 1.0
    return (~rows.positive if fairness == "fpr_ratio" else rows.positive), (
        -1.0 if fairness == "fnr_ratio" else 1.0
    )
