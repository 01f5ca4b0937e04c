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
    as_names,
    column_from,
    columns_named,
    protected_from,
    short_name,
    source_columns,
)

__all__ = ["Attribute", "Roles", "name_roles", "read_roles"]


@dataclass(frozen=True)
class Attribute:
    """A protected attribute: a column, or a comparison of columns.

    Parameters
    ----------
    name : str
        What it is called, without needless spaces.
    expression : str
        As the user wrote it.
    sources : tuple of str
        The columns that it is read from.
    is_column : bool
        Whether it is a column as it stands.
    """

    name: str
    expression: str
    sources: tuple[str, ...]
    is_column: bool

    def entries(self, block: pa.Table) -> Any:
        """Give the attribute of some rows: a column as it stands, or what the comparison says."""
        if self.is_column:
            return block.column(self.sources[0])
        return protected_from(block.select(list(self.sources)), self.expression)

    def read(self, block: pa.Table) -> Column:
        """Read the attribute of some rows."""
        return column_from(self.name, self.entries(block))


@dataclass(frozen=True)
class Roles:
    """What the columns of a table are for.

    Parameters
    ----------
    target : str
        The column to be predicted.
    attributes : tuple of Attribute
        The protected attributes.
    features : tuple of str
        The columns that models may see, in the table's order.
    excluded : mapping of str to tuple of str
        Per attribute, the features kept from its models.
    weight : str or None
        The column of what each row counts.
    """

    target: str
    attributes: tuple[Attribute, ...]
    features: tuple[str, ...]
    excluded: Mapping[str, tuple[str, ...]]
    weight: str | None = None

    @property
    def needed(self) -> list[str]:
        """All columns that are read, each once."""
        sources = [source for own in self.attributes for source in own.sources]
        beside = [] if self.weight is None else [self.weight]
        return list(dict.fromkeys([*self.features, self.target, *sources, *beside]))

    @property
    def names(self) -> list[str]:
        """The variables' names: the target, then the attributes."""
        return [TARGET, *(own.name for own in self.attributes)]

    def variables(self, block: pa.Table) -> list[Column]:
        """Read the target and the attributes of some rows."""
        return [column_from(TARGET, block.column(self.target)), *(own.read(block) for own in self.attributes)]

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
            "target": self.target,
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
) -> Roles:
    """Find out what the columns are for, from their names alone.

    Parameters
    ----------
    schema : pyarrow.Schema
        Of the table.
    target : str
        The column to be predicted.
    protected : str or sequence of str
        Columns, or comparisons such as ``"age>=50"``.
    drop, exclude : sequence of str, str or None
        Columns, or patterns of their names, that no model may see, or no model of a protected attribute.
    weight : str, optional
        The column of what each row counts.

    Examples
    --------
    >>> import pyarrow as pa
    >>> names = ["id", "age", "income", "default"]
    >>> schema = pa.schema([(name, pa.int64()) for name in names])
    >>> roles = read_roles(schema, "default", ["age >= 50"], drop=["id"])
    >>> roles.features, roles.names, roles.excluded
    (('age', 'income'), ['y', 'age>=50'], {'age>=50': ('age',)})
    """
    roles = name_roles(schema, target, protected, weight=weight)
    others = [name for name in schema.names if name != target]
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
    schema: pa.Schema, target: str, protected: str | Sequence[str], *, weight: str | None = None
) -> Roles:
    """Find out which columns are target, protected attributes and weights; of features, none.

    Parameters
    ----------
    schema, target, protected, weight
        As `read_roles` takes them.
    """
    names = list(schema.names)
    for argument, name in (("target", target), ("weight", weight)):
        if name is not None and name not in names:
            raise ValueError(
                f"`{argument}` names {name!r}, which is no column of the table{closest_names(name, names)}"
            )
    if weight == target:
        raise ValueError(f"`weight` names {target!r}, the target: name another column.")
    roles = Roles(target, _attributes(schema, as_names(protected, "protected"), target), (), {}, weight)
    roles.variables(schema.empty_table())  # refuses what cannot be a variable
    return roles


def _attributes(schema: pa.Schema, protected: Sequence[str], target: str) -> tuple[Attribute, ...]:
    empty = schema.empty_table()
    others = empty.drop_columns([target])
    found = []
    for expression in protected:
        if target in source_columns(empty, expression):
            raise ValueError(f"`protected` names {target!r}, the target: name another column.")
        name = short_name(others, expression)
        sources = source_columns(others, expression)
        found.append(Attribute(name, expression, sources, is_column=name in others.column_names))
    names = [own.name for own in found]
    if TARGET in names:
        raise ValueError("A protected attribute cannot be called 'y', the target's name: rename it.")
    repeated = [name for name in names if names.count(name) > 1]
    if repeated:
        raise ValueError(
            f"Protected attributes must have different names, got {repeated[0]!r} more than once."
        )
    return tuple(found)
