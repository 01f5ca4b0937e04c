"""Which groups are compared, on which rows, and at which lines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from numbers import Real
from typing import Any

import numpy as np
import numpy.typing as npt

from fado._checks import check_choice
from fado._messages import COMPARE_TARGET, list_names, warn_user
from fado.metrics import RATIO_NAMES
from fado.tabular import Groups, Labels, Problem, Variable, group_rows, read_problem, small_groups, tell_small

__all__ = [
    "Attribute",
    "check_confidence",
    "check_line",
    "find_attributes",
    "groups_of",
    "labels_apart",
    "labels_in_order",
    "numbered_as",
    "read_lines",
    "read_rows_apart",
    "two_classes",
]

Bools = npt.NDArray[np.bool_]
Codes = npt.NDArray[np.int64]

BOTH = "equalized_odds_ratio"  # the lower of two ratios
_PARTS_OF_BOTH = ("fpr_ratio", "tpr_ratio")


@dataclass(frozen=True, eq=False)
class Attribute:
    """The groups of an attribute, or of several crossed.

    Parameters
    ----------
    name : str
        What messages call it.
    names, titles : tuple of str
        Of the groups, for messages and for people.
    codes : ndarray of int
        Each training row's group.
    validation : ndarray of int
        Each validation row's group; those of the training rows where these are measured out of fold.
    compared : ndarray of bool
        Which groups are large enough to be compared.
    """

    name: str
    names: tuple[str, ...]
    titles: tuple[str, ...]
    codes: Codes
    validation: Codes
    compared: Bools

    @cached_property
    def classes(self) -> npt.NDArray[np.intp]:
        """By what number models know each group: compared ones by their own, all others by one."""
        return np.where(self.compared, np.cumsum(self.compared) - 1, int(self.compared.sum()))

    @property
    def n_classes(self) -> int:
        """How many numbers there are among the training rows."""
        return int(self.classes[self.codes].max()) + 1

    @property
    def compared_names(self) -> tuple[str, ...]:
        """What messages call the compared groups."""
        return tuple(name for name, own in zip(self.names, self.compared, strict=True) if own)

    @property
    def compared_titles(self) -> tuple[str, ...]:
        """What people call the compared groups."""
        return tuple(title for title, own in zip(self.titles, self.compared, strict=True) if own)


def find_attributes(
    problem: Problem, validation: Problem | None, how: str, min_group_size: int
) -> tuple[Attribute, ...]:
    """Give the groups that are compared: of all attributes crossed, or of each.

    Parameters
    ----------
    problem : Problem
        The training rows.
    validation : Problem or None
        The validation rows; None where training rows are measured out of fold.
    how : {"crossed", "each"}
        Which groups.
    min_group_size : int
        Which groups are small.
    """
    own = groups_of(problem.protected, how, problem.n_rows)
    theirs = own
    if validation is not None:
        theirs = groups_of(_matched(problem, validation), how, validation.n_rows)
    return tuple(
        _attribute(
            name, groups, theirs[name] if name in theirs else list(theirs.values())[number], min_group_size
        )
        for number, (name, groups) in enumerate(own.items())
    )


def groups_of(variables: Sequence[Variable], how: str, n_rows: int) -> dict[str, Groups]:
    """Give the groups of all attributes crossed, or of each, by name."""
    if not variables:
        return {"": Groups(np.zeros(n_rows, dtype=np.int64), ("all rows",), ("all rows",))}
    if how == "crossed" or len(variables) < 2:
        return {" and ".join(own.name for own in variables): group_rows(variables)}
    return {own.name: group_rows([own]) for own in variables}


def _attribute(name: str, own: Groups, theirs: Groups, min_group_size: int) -> Attribute:
    """Give the groups of an attribute among training and validation rows."""
    every = numbered_as(own.names, own.titles, theirs)
    compared = _compare(own.codes, every.codes, every.names, min_group_size)
    return Attribute(name, every.names, every.titles, own.codes, every.codes, compared)


def numbered_as(names: tuple[str, ...], titles: tuple[str, ...], theirs: Groups) -> Groups:
    """Give other rows' groups the numbers of those that are known; new ones come after them."""
    new = [place for place, name in enumerate(theirs.names) if name not in names]
    every = (*names, *(theirs.names[place] for place in new))
    place = np.array([every.index(name) for name in theirs.names], dtype=np.int64)
    return Groups(place[theirs.codes], every, (*titles, *(theirs.titles[own] for own in new)))


def _compare(training: Codes, validation: Codes, names: tuple[str, ...], min_group_size: int) -> Bools:
    """Tell which groups are large enough among both the training and the validation rows."""
    sizes, there = (np.bincount(codes, minlength=len(names)) for codes in (training, validation))
    new = (sizes == 0) & (there > 0)
    small = (small_groups(sizes, min_group_size) | small_groups(there, min_group_size)) & ~new
    lacking = np.flatnonzero(~small & (there == 0))
    if len(lacking):
        told = list_names([names[group] for group in lacking])
        raise ValueError(
            f"The validation rows hold no row of group {told}: give rows of every group, or leave that group "
            "out of the training rows."
        )
    if new.any():
        told = list_names([names[group] for group in np.flatnonzero(new)])
        warn_user(f"Group {told} of the validation rows is not among the training rows, and not compared.")
    if small.any():
        told = tell_small(names, np.minimum(sizes, there), small, min_group_size)
        verb = "is" if small.sum() == 1 else "are"
        warn_user(f"{told} {verb} not compared and not moved.")
    return ~(small | new)


def _matched(problem: Problem, validation: Problem) -> list[Variable]:
    """Give the validation rows' attributes in the order of the training rows'."""
    if len(problem.protected) != len(validation.protected):
        raise ValueError(
            f"`validation` has {len(validation.protected)} protected attributes, and the training rows have "
            f"{len(problem.protected)}: give both the same."
        )
    if not (validation.protected and problem.names_given and validation.names_given):
        return list(validation.protected)
    by_name = {variable.name: variable for variable in validation.protected}
    lacking = [variable.name for variable in problem.protected if variable.name not in by_name]
    if lacking:
        raise ValueError(f"`validation` has no protected attribute {lacking[0]!r}: give both the same.")
    return [by_name[variable.name] for variable in problem.protected]


def read_rows_apart(given: Any, name: str) -> Problem:
    """Read rows that were set apart, (X, y, sensitive_features) and perhaps their weights."""
    if not isinstance(given, tuple | list) or len(given) not in (3, 4):
        raise ValueError(
            f"`{name}` must be a tuple of (X, y, sensitive_features), with sample_weight as a fourth entry "
            "if rows have weights."
        )
    X, y, sensitive_features, *weights = given
    return read_problem(X, y, sensitive_features, sample_weight=weights[0] if weights else None)


def labels_apart(classes: tuple[Any, Any], rows: Problem, name: str) -> Bools:
    """Tell which rows that were set apart hold the positive label, the second of two."""
    found = rows.labels.classes
    strange = [label for label in found if label not in classes]
    if strange:
        raise ValueError(
            f"`{name}` has the label {strange[0]!r}, and the training rows have {classes[0]!r} and "
            f"{classes[1]!r}: give both the same labels."
        )
    if len(found) == 1:
        raise ValueError(f"`{name}` holds one label only ({found[0]!r}): give rows of both labels.")
    return rows.labels.codes == found.index(classes[1])


def labels_in_order(labels: Labels) -> tuple[Any, Any]:
    """Give the negative label and the positive one, as plain Python has them."""
    first, second = np.asarray(labels.classes).tolist()
    return (first, second) if labels.positive else (second, first)


def read_lines(ratio: Any, at_least: Any) -> dict[str, float]:
    """Give the line of each ratio that is to reach one.

    Parameters
    ----------
    ratio : str or mapping of str to float
        A ratio's name, or the line of each of several.
    at_least : float
        The line, if there is one name.

    Examples
    --------
    >>> read_lines("equalized_odds_ratio", 0.8)
    {'fpr_ratio': 0.8, 'tpr_ratio': 0.8}
    >>> read_lines({"fpr_ratio": 0.8, "equalized_odds_ratio": 0.9}, None)
    Traceback (most recent call last):
        ...
    ValueError: `ratio` gives 'fpr_ratio' two lines, 0.8 and 0.9: give it one.
    """
    if not isinstance(ratio, str | Mapping):
        raise TypeError(f"`ratio` must be a name or a mapping of names to lines, got {ratio!r}.")
    asked = ratio if isinstance(ratio, Mapping) else {ratio: at_least}
    if not asked:
        raise ValueError("`ratio` is empty: name at least one ratio and its line.")
    lines: dict[str, float] = {}
    for name, line in asked.items():
        check_choice("ratio", name, (*RATIO_NAMES, BOTH))
        own = check_line(line, f"ratio[{name!r}]" if isinstance(ratio, Mapping) else "at_least")
        for part in _PARTS_OF_BOTH if name == BOTH else (name,):
            if lines.get(part, own) != own:
                raise ValueError(
                    f"`ratio` gives {part!r} two lines, {lines[part]:g} and {own:g}: give it one."
                )
            lines[part] = own
    return lines


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
    if confidence is None:
        return None
    if isinstance(confidence, bool) or not isinstance(confidence, Real):
        raise TypeError(f"`confidence` must be a number in (0.5, 1), got {confidence!r}.")
    if not 0.5 < float(confidence) < 1:
        raise ValueError(f"`confidence` must be in (0.5, 1), got {confidence}.")
    return float(confidence)


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
