"""Which column of a table in files is what: target, protected attributes, features, weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fado._messages import closest_names
from fado.tabular import (
    TARGET,
    Column,
    Expression,
    GroupNames,
    as_names,
    column_from,
    columns_named,
    read_attributes,
)
from fado.valuation._result import Valuation

__all__ = ["Roles", "name_roles", "read_roles", "with_group_names"]


@dataclass(frozen=True)
class Roles:
    """What the columns of a table are for.

    Parameters
    ----------
    target : Expression
        What is predicted.
    attributes : tuple of Expression
        The protected attributes.
    features : tuple of str
        The columns that models may see, in the table's order.
    excluded : mapping of str to tuple of str
        Per attribute, the features kept from its models.
    weight : str or None
        The column of what each row counts.
    """

    target: Expression
    attributes: tuple[Expression, ...]
    features: tuple[str, ...]
    excluded: Mapping[str, tuple[str, ...]]
    weight: str | None = None

    @property
    def needed(self) -> list[str]:
        """All columns that are read, each once."""
        sources = [source for own in (self.target, *self.attributes) for source in own.sources]
        beside = [] if self.weight is None else [self.weight]
        return list(dict.fromkeys([*self.features, *sources, *beside]))

    @property
    def names(self) -> list[str]:
        """The variables' names: the target, then the attributes."""
        return [TARGET, *(own.name for own in self.attributes)]

    def variables(self, block: pa.Table) -> list[Column]:
        """Read the target and the attributes of some rows."""
        target = column_from(TARGET, self.target.read(block, named=False))
        return [target, *(column_from(own.name, own.read(block)) for own in self.attributes)]

    def weights(self, block: pa.Table) -> npt.NDArray[np.float64] | None:
        """Read what some rows count; None if nobody says."""
        if self.weight is None:
            return None
        column = column_from(self.weight, block.column(self.weight))
        if column.levels is not None:
            raise ValueError(f"`weight` names {self.weight!r}, which holds text: name a column of numbers.")
        return column.numbers()

    def to_plain(self) -> dict[str, Any]:
        """Give what decides a value, as JSON can hold it."""
        return {
            "target": self.target.name,
            "protected": [own.name for own in self.attributes],
            "features": list(self.features),
            "excluded": {name: list(own) for name, own in self.excluded.items()},
            "weight": self.weight,
        }


def read_roles(
    schema: pa.Schema,
    target: str,
    protected: str | Sequence[str],
    *,
    drop: str | Sequence[str] | None = None,
    exclude: str | Sequence[str] | None = None,
    weight: str | None = None,
    group_names: GroupNames | None = None,
) -> Roles:
    """Find out what the columns are for, from their names alone.

    Parameters
    ----------
    schema : pyarrow.Schema
        Of the table.
    target : str
        What is predicted: a column, or comparisons such as ``"amount>=1000"``. No model sees its columns.
    protected : str or sequence of str
        Columns, or comparisons such as ``"age>=50"``.
    drop, exclude : sequence of str, str or None
        Columns, or patterns of their names, that no model may see, or no model of a protected attribute.
    weight : str, optional
        The column of what each row counts.
    group_names : mapping, optional
        What groups are called, as `read_attributes` takes it.

    Examples
    --------
    >>> import pyarrow as pa
    >>> names = ["id", "age", "income", "default"]
    >>> schema = pa.schema([(name, pa.int64()) for name in names])
    >>> roles = read_roles(schema, "default", ["age >= 50"], drop=["id"])
    >>> roles.features, roles.names, roles.excluded
    (('age', 'income'), ['y', 'age>=50'], {'age>=50': ('age',)})
    """
    roles = name_roles(schema, target, protected, weight=weight, group_names=group_names)
    for argument, names in (("drop", drop), ("exclude", exclude)):
        roles.target.check_apart(argument, as_names(names or (), argument))
    others = [name for name in schema.names if name not in roles.target.sources]
    unseen = {*columns_named(others, drop, "drop"), weight}
    features = tuple(name for name in others if name not in unseen)
    if not features:
        raise ValueError("No column is left for models to see: drop fewer.")
    by_hand = columns_named(features, exclude, "exclude")
    excluded = {
        own.name: tuple(dict.fromkeys([*by_hand, *(name for name in own.sources if name in features)]))
        for own in roles.attributes
    }
    empty = schema.empty_table()
    for name in features:
        column_from(name, empty.column(name))  # refuses what models have no use for
    return replace(roles, features=features, excluded=excluded)


def name_roles(
    schema: pa.Schema,
    target: str,
    protected: str | Sequence[str],
    *,
    weight: str | None = None,
    group_names: GroupNames | None = None,
) -> Roles:
    """Find out which columns are target, protected attributes and weights; of features, none.

    Parameters
    ----------
    schema, target, protected, weight, group_names
        As `read_roles` takes them.
    """
    names = list(schema.names)
    predicted = Expression.of(names, target, "target")
    if weight is not None and weight not in names:
        raise ValueError(
            f"`weight` names {weight!r}, which is no column of the table{closest_names(weight, names)}"
        )
    predicted.check_apart("weight", [weight])
    attributes = read_attributes(names, as_names(protected, "protected"), predicted, group_names)
    roles = Roles(predicted, attributes, (), {}, weight)
    roles.variables(schema.empty_table())  # refuses what cannot be a variable
    return roles


def with_group_names(valuation: Valuation, attributes: Sequence[Expression]) -> Valuation:
    """Give values that call groups as these attributes do; files of values hold labels, not names."""
    notes = dict(valuation.provenance.variables)
    for own in attributes:
        note = notes.get(own.name)
        if note is not None and note.classes:
            notes[own.name] = replace(note, classes=tuple(own.called(label) for label in note.classes))
    return valuation.with_provenance(variables=notes)
