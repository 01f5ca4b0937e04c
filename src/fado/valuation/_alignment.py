"""Do values belong to the rows and attributes that they are used for? Names, numbers and labels tell."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from fado._messages import list_names, warn_user
from fado.tabular import LabelPattern, Problem

__all__ = ["check_alignment", "is_same_pattern", "target_pattern"]


def target_pattern(codes: npt.NDArray[np.int32]) -> str:
    """Digest which rows share a label, in the rows' order; what the labels are called does not matter.

    Examples
    --------
    >>> import numpy as np
    >>> target_pattern(np.array([0, 0, 1])) == target_pattern(np.array([1, 1, 0]))
    True
    >>> target_pattern(np.array([0, 0, 1])) == target_pattern(np.array([0, 1, 0]))
    False
    """
    first = np.full(int(codes.max()) + 1, len(codes))
    first[codes[::-1]] = np.arange(len(codes))[::-1]
    by_appearance = np.argsort(np.argsort(first, kind="stable"), kind="stable").astype(np.int32)
    pattern = LabelPattern()
    pattern.add(by_appearance[codes])
    return pattern.hexdigest()


def is_same_pattern(provenance: Any, pattern: str | None, n_labels: int) -> bool:
    """Tell whether values were made with these labels in this order, as far as they tell.

    Labels of another number are another target, which tells nothing about the rows. Given probabilities, some
    of the rows, a continuous target and old files have no pattern to compare.
    """
    if provenance is None or provenance.target_pattern is None or pattern is None:
        return True
    note = provenance.variables.get("y")
    if note is None or note.classes is None or n_labels != len(note.classes):
        return True
    return bool(pattern == provenance.target_pattern)


def check_alignment(valuation: Any, problem: Problem) -> None:
    """Refuse a valuation that does not fit a problem; warn if it was made with other labels.

    Parameters
    ----------
    valuation : Valuation
        The values, or any other object with the property `protected`.
    problem : Problem
        The rows that the values are used for, as `fado.tabular.read_problem` gives them.

    Raises
    ------
    ValueError
        If the valuation has another number of rows, or no values for a protected attribute of the problem.
        Attributes are compared by name, and only if both sides were given names: an array without names has
        none, though its attribute is called "z". If either side has no attributes, nothing is compared.

    Warns
    -----
    UserWarning
        If the labels of the target, or the order of the rows, were others.
    """
    told = getattr(valuation, "provenance", None)
    if problem.names_given and (told is None or told.names_given):
        _check_names(list(valuation.protected), [variable.name for variable in problem.protected])
    n_rows = len(valuation) if hasattr(valuation, "__len__") else problem.n_rows
    if n_rows != problem.n_rows:
        raise ValueError(
            f"`valuation` has {n_rows} rows and X has {problem.n_rows}: pass the valuation of the same rows."
        )
    _compare_labels(valuation, problem)


def _check_names(valued: list[str], asked: list[str]) -> None:
    lacking = [name for name in asked if name not in valued]
    if valued and lacking:
        raise ValueError(
            f"`valuation` has values of {list_names(list(map(repr, valued)))}, and none of the protected "
            f"attribute {lacking[0]!r} that `sensitive_features` asks for: pass the valuation of that "
            "attribute."
        )


def _compare_labels(valuation: Any, problem: Problem) -> None:
    """Warn of other labels."""
    provenance = getattr(valuation, "provenance", None)
    if provenance is None or provenance.target_pattern is None:
        return
    codes, labels = problem.sources[0].encode()
    if not is_same_pattern(provenance, target_pattern(codes), len(labels)):
        warn_user(
            "`valuation` was made with other labels `y`, or with the rows in another order: pass the "
            "valuation of these very rows."
        )
