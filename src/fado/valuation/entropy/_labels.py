"""The labels of new rows, coded as the models' own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from fado._messages import closest_names, list_names
from fado.tabular import Column, Table, Variable, protected_columns, target_column

__all__ = ["NOT_TOLD", "UNSEEN", "label_codes", "read_labels"]

UNSEEN, NOT_TOLD = -1, -2  # the codes of a class that no model has learnt, and of a missing entry

Labels = npt.NDArray[Any]


def read_labels(
    y: Any, sensitive_features: Any, table: Table, variables: Sequence[Variable], *, named: bool
) -> dict[str, Labels]:
    """Read the labels of new rows that are known, by the names of the variables.

    Parameters
    ----------
    y : array-like or None
        The target's.
    sensitive_features : Series, array, DataFrame, dict, name(s) of columns, or None
        Those of protected attributes, of all or some.
    table : Table
        The features.
    variables : sequence of Variable
        What the models learnt, the target first.
    named : bool
        Whether the attributes among these were given names.
    """
    target, *protected = variables
    found = {}
    if y is not None:
        found[target.name] = _target_labels(target, target_column(y, table.n_rows))
    columns = [column for column, _ in protected_columns(sensitive_features, table)]
    for variable, column in _matched(protected, columns, named=named):
        found[variable.name] = _protected_labels(variable, column)
    return found


def label_codes(variable: Variable, column: Column) -> Labels:
    """Code labels like those that models learnt; numbers stay as they are.

    Examples
    --------
    >>> from fado.tabular import column_from, variable_from
    >>> sex = variable_from(column_from("sex", ["m", "f"]))
    >>> label_codes(sex, column_from("sex", ["f", "m", "x", None]))
    array([ 0,  1, -1, -2], dtype=int32)
    """
    if variable.kind == "continuous":
        if column.levels is not None:
            raise ValueError(
                f"The labels of {variable.name!r} hold text, and its models learnt numbers: convert them."
            )
        return column.numbers()
    codes, entries = column.encode()
    known = variable.classes[:-1] if variable.has_missing else variable.classes
    place = {label: code for code, label in enumerate(known)}
    missing = len(known) if variable.has_missing else NOT_TOLD
    places = [place.get(column.label_of(entry), UNSEEN) for entry in entries]
    return np.array([*places, missing], dtype=np.int32)[codes]


def _target_labels(target: Variable, column: Column) -> Labels:
    labels = label_codes(target, column)
    if target.kind == "classes" and (labels == UNSEEN).any():
        codes, entries = column.encode()
        strange = column.label_of(entries[codes[np.argmax(labels == UNSEEN)]])
        shown = list_names([repr(label) for label in target.classes])
        raise ValueError(
            f"`y` holds the label {strange!r}, which the models have not learnt (they know {shown}): mend "
            "it, or leave `y` out."
        )
    return labels


def _protected_labels(attribute: Variable, column: Column) -> Labels:
    """Code the labels of an attribute, refusing text for numbers and the other way round.

    A group that was not there is none of the models' classes; labels of another type are none by mistake.
    """
    labels = label_codes(attribute, column)
    if attribute.kind == "continuous":
        return labels
    codes, entries = column.encode()
    told = codes >= 0
    if told.any() and (labels[told] == UNSEEN).all():
        strange = column.label_of(entries[codes[told][0]])
        if isinstance(strange, str) is not isinstance(attribute.classes[0], str):
            shown = list_names([repr(label) for label in attribute.classes])
            raise ValueError(
                f"`sensitive_features` holds the label {strange!r} of {attribute.name!r}, whose labels are "
                f"{shown}: give it the same type, or leave the attribute out."
            )
    return labels


def _matched(
    protected: Sequence[Variable], columns: Sequence[Column], *, named: bool
) -> list[tuple[Variable, Column]]:
    """Match attributes by their names, or, where either side has none, by their places."""
    by_name = {variable.name: variable for variable in protected}
    names = [column.name for column in columns]
    if len(names) == len(by_name) and not (named and all(column.named for column in columns)):
        return list(zip(protected, columns, strict=True))
    for name in names:
        if name not in by_name:
            known = f"they know {list_names([repr(own) for own in by_name])}" if by_name else "they know none"
            raise ValueError(
                f"`sensitive_features` names {name!r}, a protected attribute that the models have not learnt "
                f"({known}){closest_names(name, list(by_name))}"
            )
    return [(by_name[column.name], column) for column in columns]
