"""Checks of what is aimed at."""

from __future__ import annotations

from numbers import Real
from typing import Any

from fado._messages import COMPARE_TARGET
from fado._validation import check_count
from fado.tabular import Labels, Problem

__all__ = ["check_confidence", "check_folds", "check_line", "check_within", "two_classes"]

MOST_FOLDS = 1_000


def check_line(at_least: Any, name: str = "at_least") -> float:
    """Check a line, and give it as a float.

    Parameters
    ----------
    at_least : float
        The line.
    name : str, default="at_least"
        What the error message calls it.

    Raises
    ------
    TypeError
        If it is no number.
    ValueError
        If it is not in (0, 1].
    """
    if isinstance(at_least, bool) or not isinstance(at_least, Real):
        raise TypeError(f"`{name}` must be a number in (0, 1], got {at_least!r}.")
    if not 0 < float(at_least) <= 1:
        raise ValueError(f"`{name}` must be in (0, 1], as a ratio is, got {at_least}.")
    return float(at_least)


def check_within(name: str, value: Any, above: float, below: float) -> float:
    """Give a setting as a float, or say that it is no number between two others."""
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(f"`{name}` must be a number in ({above:g}, {below:g}), got {value!r}.")
    if not above < float(value) < below:
        raise ValueError(f"`{name}` must be in ({above:g}, {below:g}), got {value}.")
    return float(value)


def check_confidence(confidence: Any) -> float | None:
    """Check the confidence of a lower bound, and give it as a float.

    Parameters
    ----------
    confidence : float or None
        None, which asks for no bound, is given back as it is.

    Raises
    ------
    TypeError
        If it is neither a number nor None.
    ValueError
        If it is not in (0.5, 1).
    """
    return None if confidence is None else check_within("confidence", confidence, 0.5, 1)


def check_folds(cv: Any) -> Any:
    """Check a number of folds; whatever else says which they are is read with the rows."""
    return check_count("cv", cv, 2, MOST_FOLDS) if isinstance(cv, Real) else cv


def two_classes(problem: Problem) -> Labels:
    """Give a target of two classes, or say that rates need one."""
    remedy = f"{COMPARE_TARGET}."
    if problem.target.kind == "continuous":
        raise ValueError(f"`y` must have two classes and is continuous (Unknown label type): {remedy}")
    labels = problem.labels
    if len(labels.classes) == 1:
        raise ValueError(f"`y` must have two classes and has only one class, {labels.classes[0]!r}.")
    if len(labels.classes) > 2:
        raise ValueError(
            f"`y` must have two classes and has {len(labels.classes)}: {remedy} Only binary classification "
            "is supported."
        )
    return labels
