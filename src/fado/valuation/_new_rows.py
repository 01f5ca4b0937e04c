"""Rows that models have not learnt from: their table, and their labels with the codes that models use."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from fado._messages import list_names
from fado.tabular import (
    UNSEEN,
    Column,
    Table,
    Variable,
    label_codes,
    match_names,
    protected_columns,
    target_column,
)
from fado.valuation._provenance import Provenance

Labels = npt.NDArray[Any]


def table_of(X: Any) -> Table:
    """Read new rows; there must be at least one."""
    table = X if isinstance(X, Table) else Table.from_input(X)
    if table.n_rows == 0:
        raise ValueError("`X` has 0 row(s) (n_samples = 0): there is nothing to value; give at least one.")
    return table


def read_labels(
    y: Any,
    sensitive_features: Any,
    table: Table,
    variables: Sequence[Variable],
    provenance: Provenance,
    unknown: Any = None,
) -> dict[str, Labels]:
    """Read the known labels of new rows, with the names and unknown values of the rows that were learnt."""
    target, *protected = variables
    labels = {}
    if y is not None:
        column = target_column(y, table.n_rows)
        codes = labels[target.name] = known_labels(target, column)
        if target.kind == "classes" and (codes == UNSEEN).any():
            raw, entries = column.encode()
            strange = column.label_of(entries[raw[np.argmax(codes == UNSEEN)]])
            shown = list_names(list(map(repr, target.classes)))
            raise ValueError(
                f"`y` holds the label {strange!r}, which the models have not learnt (they know {shown}): "
                "correct it, or leave `y` out."
            )
    values = provenance.unknown if unknown is None else unknown
    columns = [column for column, _ in protected_columns(sensitive_features, table, values)]
    names, known = [column.name for column in columns], [variable.name for variable in protected]
    unnamed = not (provenance.names_given and all(column.named for column in columns))
    places = match_names(
        names,
        known,
        by_name=len(names) != len(known) or not unnamed,
        first="`sensitive_features` names",
        second="The models have learnt",
        what="protected attribute",
    )
    for place, column in zip(places, columns, strict=True):
        labels[protected[place].name] = _attribute_labels(protected[place], column)
    return labels


def known_labels(variable: Variable, column: Column) -> Labels:
    """Encode labels with the codes that models learnt; numbers are returned unchanged.

    Examples
    --------
    >>> from fado.tabular import column_from, variable_from
    >>> sex = variable_from(column_from("sex", ["m", "f"]))
    >>> known_labels(sex, column_from("sex", ["f", "m", "x", None]))
    array([ 0,  1, -1, -2], dtype=int32)
    """
    if variable.kind == "continuous":
        if column.levels is not None:
            raise ValueError(
                f"The labels of {variable.name!r} hold text, and its models learnt numbers: convert them."
            )
        return column.numbers()
    if variable.has_missing:
        return label_codes(column, variable.classes[:-1], missing=len(variable.classes) - 1)
    return label_codes(column, variable.classes)


def _attribute_labels(attribute: Variable, column: Column) -> Labels:
    """Encode the labels of an attribute; raise an error if all are new and of another type."""
    labels = known_labels(attribute, column)
    if attribute.kind == "continuous":
        return labels
    codes, entries = column.encode()
    given = codes >= 0
    if given.any() and (labels[given] == UNSEEN).all():
        strange = column.label_of(entries[codes[given][0]])
        if isinstance(strange, str) is not isinstance(attribute.classes[0], str):
            shown = list_names(list(map(repr, attribute.classes)))
            raise ValueError(
                f"`sensitive_features` holds the label {strange!r} of {attribute.name!r}, whose labels are "
                f"{shown}: give it the same type, or leave the attribute out."
            )
    return labels
