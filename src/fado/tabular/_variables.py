"""The variables that rows are valued for: the target and the protected attributes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from fado._messages import warn_user
from fado.tabular._columns import Column

__all__ = ["MISSING", "TARGET", "Kind", "Variable", "check_kinds", "check_learnable", "variable_from"]

Kind = Literal["classes", "continuous"]

MISSING = "(missing)"
TARGET = "y"
MOST_NUMERIC_CLASSES = 20
_KIND_WORDS: dict[str, Kind] = {
    "class": "classes",
    "classes": "classes",
    "categorical": "classes",
    "continuous": "continuous",
}


@dataclass(frozen=True)
class Variable:
    """One variable in the form that the engines learn from.

    Parameters
    ----------
    name : str
        ``"y"`` for the target, the attribute's name otherwise.
    kind : {"classes", "continuous"}
        How it is predicted and valued.
    labels : ndarray
        int32 codes into `classes`, or float64 numbers with NaN where the entry is missing.
    classes : tuple
        The sorted classes; the group of missing entries, if any, comes last. Empty for numbers.
    excluded : frozenset of int
        Positions of the feature columns that its models must not see.
    sees_target : bool
        Whether its models see the target beside the features.
    has_missing : bool
        Whether the last class is the group of missing entries.
    declared : tuple of int or None
        The places of the classes, but for that group, among the categories that a categorical declares.
    """

    name: str
    kind: Kind
    labels: npt.NDArray[Any]
    classes: tuple[Any, ...] = ()
    excluded: frozenset[int] = field(default_factory=frozenset)
    sees_target: bool = False
    has_missing: bool = False
    declared: tuple[int, ...] | None = None

    @property
    def known(self) -> npt.NDArray[np.bool_]:
        """Rows whose label a model can learn from."""
        if self.kind == "classes":
            return np.ones(len(self.labels), dtype=bool)
        return ~np.isnan(self.labels)

    def take(self, rows: npt.NDArray[np.integer[Any]]) -> Variable:
        """Give the variable at some row positions; all classes stay, whether or not they occur."""
        return replace(self, labels=self.labels[rows])


def check_kinds(kinds: Mapping[str, str] | None, names: list[str]) -> dict[str, Kind]:
    """Check the user's choices of kinds against the variables there are."""
    chosen: dict[str, Kind] = {}
    for name, word in {str(name): word for name, word in (kinds or {}).items()}.items():
        if name not in names:
            raise ValueError(f"`kinds` names {name!r}, which is none of the variables {names}.")
        if word not in _KIND_WORDS:
            raise ValueError(f"`kinds[{name!r}]` must be 'classes' or 'continuous', got {word!r}.")
        chosen[name] = _KIND_WORDS[word]
    return chosen


def variable_from(column: Column, kind: Kind | None = None) -> Variable:
    """Decide what a variable is and encode it.

    Strings, booleans and categories are classes; numbers are classes up to 20 distinct values. Missing
    entries of classes are a class of their own, the last.

    Examples
    --------
    >>> from fado.tabular import column_from
    >>> variable_from(column_from("sex", ["m", "f", None])).classes
    ('f', 'm', '(missing)')
    """
    codes, entries = column.encode()
    if column.levels is not None:
        if kind == "continuous":
            raise ValueError(f"Variable {column.name!r} holds text: it cannot be valued as continuous.")
    else:
        if kind is None:
            few = column.is_boolean or len(entries) <= MOST_NUMERIC_CLASSES
            kind = "classes" if few else "continuous"
        if kind == "continuous":
            return Variable(column.name, "continuous", column.numbers())
    classes = tuple(column.label_of(entry) for entry in entries)
    missing = codes < 0
    if not missing.any():
        return Variable(column.name, "classes", codes, classes, declared=column.declared_places)
    name = MISSING if MISSING not in classes else "(no value)"
    while name in classes:
        name = f"({name})"
    codes = np.where(missing, np.int32(len(classes)), codes)
    return Variable(
        column.name, "classes", codes, (*classes, name), has_missing=True, declared=column.declared_places
    )


def check_learnable(variable: Variable) -> None:
    """Refuse a variable that no model can learn, and warn of what makes its values odd."""
    if variable.kind == "continuous":
        _check_numbers(variable)
    else:
        _check_classes(variable)


def _check_numbers(variable: Variable) -> None:
    numbers = variable.labels[variable.known]
    if np.isinf(numbers).any():
        raise ValueError(f"Variable {variable.name!r} contains infinity: mend or drop those rows first.")
    if not len(numbers) or (numbers == numbers[0]).all():
        raise ValueError(_one_class(variable.name, numbers[:1].tolist()))
    missing = len(variable.labels) - len(numbers)
    if missing:
        warn_user(
            f"Protected attribute {variable.name!r} is missing in {missing} of {len(variable.labels)} rows: "
            "its models learn from the others, and those rows are valued by their predictions."
        )


def _check_classes(variable: Variable) -> None:
    name, classes, n_rows = variable.name, variable.classes, len(variable.labels)
    sizes = np.bincount(variable.labels, minlength=len(classes))
    if variable.has_missing:
        if len(classes) == 1:
            raise ValueError(f"Protected attribute {name!r} is missing in every row: leave it out.")
        warn_user(
            f"Protected attribute {name!r} is missing in {sizes[-1]} of {n_rows} rows: they are a group of "
            f"their own, {classes[-1]!r}, and every row is valued over {len(classes)} classes, not "
            f"{len(classes) - 1}."
        )
    if len(classes) < 2:
        raise ValueError(_one_class(name, list(classes)))
    if _is_identifier(len(classes), n_rows):
        raise ValueError(
            f"Variable {name!r} has {len(classes)} classes in {n_rows} rows, like an identifier: coarsen it, "
            f'leave it out, or, if it is a number, set `kinds={{{name!r}: "continuous"}}`.'
        )
    lonely = [classes[code] for code in np.flatnonzero(sizes == 1)]
    if lonely:
        shown = ", ".join(map(repr, lonely[:5])) + (", ..." if len(lonely) > 5 else "")
        warn_user(
            f"Variable {name!r} has a class with one member ({shown}): no model that values that row has "
            "seen the class; merge it with another to value it better."
        )


def _is_identifier(n_classes: int, n_rows: int) -> bool:
    """Tell a class per row, or nearly so, from classes that rows share."""
    return n_classes > 2 and (n_classes == n_rows or n_classes > max(10, n_rows // 2))


def _one_class(name: str, values: list[Any]) -> str:
    shown = f" ({values[0]!r})" if values else ""
    what = "`y`" if name == TARGET else f"Protected attribute {name!r}"
    return (
        f"{what} has only one class{shown}: there is nothing to tell apart; leave it out or check the data."
    )
