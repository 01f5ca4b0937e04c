"""The roles of a table's columns, and one pass over its rows in files, which finds labels and groups."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa

from fado._messages import closest_names, list_names
from fado._progress import tracked
from fado._typing import Integers
from fado.tabular._column import Column, column_from, unknown_values
from fado.tabular._expressions import Expression, GroupNames, read_attributes
from fado.tabular._problem import check_weights, one_column
from fado.tabular._source import Source
from fado.tabular._table import as_names, columns_named
from fado.tabular._variables import TARGET, Variable, variable_from

BLOCK_ROWS = 1 << 15  # that are read at once
_ROWS_OF_A_PART = 1_000_000
_MOST_NUMBERS = 100  # more different numbers are no classes, whatever the rule is
_MOST_CLASSES = 10_000


@dataclass(frozen=True)
class Roles:
    """The roles of the columns of a table.

    Parameters
    ----------
    target : Expression
        What is predicted.
    attributes : tuple of Expression
        The protected attributes.
    weight, groups : str or None
        The columns of the weight of each row, and of which rows belong together.
    features : tuple of str
        The columns that models may see, in the table's order.
    excluded : mapping of str to tuple of str
        Per attribute, the features hidden from its models.
    """

    target: Expression
    attributes: tuple[Expression, ...]
    weight: str | None = None
    groups: str | None = None
    features: tuple[str, ...] = ()
    excluded: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def names(self) -> list[str]:
        """The variables' names: the target, then the attributes."""
        return [TARGET, *(attribute.name for attribute in self.attributes)]

    @property
    def unknown(self) -> tuple[Any, ...]:
        """The entries of protected attributes' columns that mean the same as a missing one."""
        return unknown_values(self.attributes[0].unknown) if self.attributes else ()

    def needed(self, *, features: bool = True) -> list[str]:
        """Return the columns that are read, each once, or those for target, attributes and weights only."""
        columns = [name for variable in (self.target, *self.attributes) for name in variable.sources]
        columns += [] if self.weight is None else [self.weight]
        if features:
            columns = [*self.features, *columns, *([] if self.groups is None else [self.groups])]
        return list(dict.fromkeys(columns))

    def variables(self, block: pa.Table) -> list[Column]:
        """Read the target and the attributes of some rows."""
        target = column_from(TARGET, self.target.read(block, named=False))
        return [
            target,
            *(column_from(attribute.name, attribute.read(block)) for attribute in self.attributes),
        ]

    def weights(self, block: pa.Table) -> npt.NDArray[np.float64] | None:
        """Read the weights of some rows; None if there are none."""
        if self.weight is None:
            return None
        column = column_from(self.weight, block.column(self.weight))
        if column.levels is not None:
            raise ValueError(f"`weight` names {self.weight!r}, which holds text: name a column of numbers.")
        return column.numbers()

    def row_groups(self, block: pa.Table) -> Integers | None:
        """Return which of some rows belong together, -1 if it is missing; None if none do."""
        if self.groups is None:
            return None
        return one_column(block.column(self.groups), "groups", times=True).encode()[0].astype(np.int64)


def read_roles(
    schema: pa.Schema,
    target: str,
    protected: str | Sequence[str],
    *,
    drop: str | Sequence[str] | None = None,
    exclude: str | Sequence[str] | None = None,
    weight: str | None = None,
    groups: str | None = None,
    group_names: GroupNames | None = None,
    unknown: Any = None,
    features: bool = True,
) -> Roles:
    """Find the roles of the columns, from their names only; without `features`, others may hold anything.

    Examples
    --------
    >>> names = ["id", "age", "income", "default"]
    >>> schema = pa.schema([(name, pa.int64()) for name in names])
    >>> roles = read_roles(schema, "default", ["age >= 50"], drop=["id"])
    >>> roles.features, roles.names, roles.excluded
    (('age', 'income'), ['y', 'age>=50'], {'age>=50': ('age',)})
    """
    names, empty = list(schema.names), schema.empty_table()
    predicted = Expression.of(names, target, "target")
    for argument, name in (("weight", weight), ("groups", groups)):
        if name is not None and name not in names:
            raise ValueError(
                f"`{argument}` names {name!r}, which is not a column of the table{closest_names(name, names)}"
            )
        predicted.check_apart(argument, [name])
    attributes = read_attributes(names, as_names(protected, "protected"), predicted, group_names, unknown)
    roles = Roles(predicted, attributes, weight, groups)
    roles.variables(empty)  # refuses what cannot be a variable
    if not features:
        return roles
    for argument, columns in (("drop", drop), ("exclude", exclude)):
        predicted.check_apart(argument, as_names(columns or (), argument))
    others = [name for name in names if name not in predicted.sources]
    unseen = {*columns_named(others, drop, "drop"), weight, groups}
    seen = tuple(name for name in others if name not in unseen)
    if not seen:
        raise ValueError("No column is left for models to see: drop fewer.")
    by_hand = columns_named(seen, exclude, "exclude")
    excluded = {
        attribute.name: tuple(
            dict.fromkeys([*by_hand, *(name for name in attribute.sources if name in seen)])
        )
        for attribute in attributes
    }
    for name in seen:
        column_from(name, empty.column(name))  # refuses what models have no use for
    return replace(roles, features=seen, excluded=excluded)


class Classes:
    """The different labels of one variable, in the order in which they first occur.

    Examples
    --------
    >>> sex = Classes("sex")
    >>> sex.add(column_from("sex", ["m", None, "f"])), sex.add(column_from("sex", ["f", "m"]))
    (array([0, 1, 2]), array([2, 0]))
    >>> sex.labels, sex.numbered().classes
    (('m', None, 'f'), ('f', 'm', 'unknown'))
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._places: dict[Any, int] = {}
        self.are_numbers = False

    def add(self, column: Column) -> Integers:
        """Record the labels of some rows, and return for each the number of its first occurrence.

        Missing labels are a class; for numbers that are not classes, all are 0.
        """
        codes, entries = (None, ()) if self.are_numbers else column.encode()
        self.are_numbers |= column.levels is None and len(entries) > _MOST_NUMBERS
        if codes is None or self.are_numbers:
            return np.zeros(len(column), dtype=np.int64)
        different, occurring = pd.unique(codes), np.zeros(len(entries) + 1, dtype=np.int64)
        for code in different.tolist():  # -1, which is also the last, is of the missing
            label = None if code < 0 else column.label_of(entries[code])
            occurring[code] = self._places.setdefault(label, len(self._places))
        if column.levels is None:
            self.are_numbers = len(self._places) > _MOST_NUMBERS
        elif len(self._places) > _MOST_CLASSES:
            raise ValueError(
                f"Variable {self._name!r} has more than {_MOST_CLASSES:,} classes: coarsen it, or leave it "
                "out."
            )
        return occurring[codes]

    @property
    def labels(self) -> tuple[Any, ...]:
        """The labels in the order of their numbers, None for the missing; of classes only."""
        return tuple(self._places)

    def numbered(self) -> Variable:
        """Return the variable, by the rule for a table in memory; its rows are the different labels."""
        if self.are_numbers:
            return Variable(self._name, "continuous", np.zeros(0))
        return variable_from(column_from(self._name, list(self._places)))


class Combinations:
    """The combinations of several variables' classes, in the order in which they first occur.

    Examples
    --------
    >>> joint = Combinations()
    >>> joint.add([np.array([0, 1, 0]), np.array([0, 0, 0])])
    array([0, 1, 0])
    >>> joint.add([np.array([1, 1]), np.array([0, 1])])
    array([1, 2])
    >>> joint.seen, joint.sizes
    ([(0, 0), (1, 0), (1, 1)], array([2, 2, 1]))
    """

    def __init__(self) -> None:
        self._places: dict[tuple[int, ...], int] = {}
        self.sizes = np.zeros(0, dtype=np.int64)  # how many rows each combination has

    @property
    def seen(self) -> list[tuple[int, ...]]:
        """The classes of every combination, by its number."""
        return list(self._places)

    def add(self, codes: Sequence[Integers]) -> Integers:
        """Record some rows, given the classes of each variable, and return the combination of each row."""
        joint = np.zeros(len(codes[0]), dtype=np.int64)
        for variable in codes:
            joint, _ = pd.factorize(joint * (int(variable.max(initial=0)) + 1) + variable)
        first = np.zeros(int(joint.max(initial=-1)) + 1, dtype=np.int64)
        first[joint[::-1]] = np.arange(len(joint))[::-1]
        classes = np.column_stack([variable[first] for variable in codes]).tolist()
        places = np.array([self._places.setdefault(tuple(each), len(self._places)) for each in classes])
        added = places[joint]
        sizes = np.bincount(added, minlength=len(self._places))
        sizes[: len(self.sizes)] += self.sizes
        self.sizes = sizes
        return added


class TablePass:
    """One reading of all rows, which finds the kinds and classes of target and attributes."""

    def __init__(self, source: Source, roles: Roles) -> None:
        needed = set(roles.needed())
        self.schema = pa.schema([column for column in source.schema if column.name in needed])
        self.file_rows = dict.fromkeys((file.path for file in source.files), 0)
        self.classes = [Classes(name) for name in roles.names]
        self._source = source
        self._roles = roles
        self._pattern = hashlib.blake2b(digest_size=16)  # of the target's labels, as `target_pattern` has it

    @property
    def n_rows(self) -> int:
        """How many rows have been read."""
        return sum(self.file_rows.values())

    def blocks(
        self, most_rows: int, *, progress: bool
    ) -> Iterator[tuple[Integers, pa.Table, list[Integers]]]:
        """Read all rows in blocks of this size; invalid targets, weights and groups raise an error.

        A block has its rows' positions in the whole table, their columns, and the codes of their labels: of
        the target and then of each attribute, numbered by first occurrence.
        """
        parts, n_rows = self._source.parts(_ROWS_OF_A_PART), 0
        for part in tracked(parts, len(parts), what="parts read", show=progress):
            for table in self._source.blocks(part, self.schema.names, most_rows):
                columns = self._roles.variables(table)
                self._check(table, columns[0], str(part.file.path))
                codes = [classes.add(column) for classes, column in zip(self.classes, columns, strict=True)]
                self._pattern.update(np.ascontiguousarray(codes[0], dtype=np.int32).data)
                self.file_rows[part.file.path] += table.num_rows
                yield np.arange(n_rows, n_rows + table.num_rows, dtype=np.int64), table, codes
                n_rows += table.num_rows

    def variables(self) -> list[Variable]:
        """Return the target and the attributes without rows; each must have two classes."""
        variables = [
            replace(variable, labels=variable.labels[:0])
            for variable in (classes.numbered() for classes in self.classes)
        ]
        check_comparisons(variables, self._roles)
        for variable in variables:
            if variable.kind == "classes" and len(variable.classes) < 2:
                what = "The target" if variable.name == TARGET else f"Protected attribute {variable.name!r}"
                shown = list_names([repr(label) for label in variable.classes])
                raise ValueError(
                    f"{what} has only one class ({shown}): there is nothing to distinguish; leave it out or "
                    "check the data."
                )
        return variables

    def target_pattern(self) -> str | None:
        """Return a digest of which rows share a label of the target; None for numbers."""
        return None if self.classes[0].numbered().kind == "continuous" else self._pattern.hexdigest()

    def _check(self, table: pa.Table, target: Column, path: str) -> None:
        """Raise an error for a missing or infinite target, or invalid weights or groups, in some rows."""
        if target.levels is None or target.data.null_count:
            numbers = target.numbers()
            missing = int(np.isnan(numbers).sum())
            if missing:
                raise ValueError(
                    f"The target is missing in {missing} or more rows of {path!r}: drop those rows or label "
                    "them first."
                )
            if np.isinf(numbers).any():
                raise ValueError(
                    f"The target contains infinity in {path!r}: drop or correct those rows first."
                )
        weights, row_groups = self._roles.weights(table), self._roles.row_groups(table)
        if weights is not None:
            check_weights(weights, "`weight`", f" of {path!r}")
        if row_groups is not None and (row_groups < 0).any():
            raise ValueError(
                f"`groups` is missing in {int((row_groups < 0).sum())} or more rows of {path!r}: give every "
                "row the block it belongs to."
            )


def check_comparisons(variables: Sequence[Variable], roles: Roles) -> None:
    """Raise an error for comparisons, of the target or an attribute, that are the same in every row."""
    for variable, expression in zip(variables, (roles.target, *roles.attributes), strict=True):
        known = variable.classes[:-1] if variable.has_missing else variable.classes
        if expression.is_column or len(known) > 1:
            continue
        where = "is missing in every row"
        if known:
            where = f"is true in {'every' if known[0] in (True, expression.group_titles[0]) else 'no'} row"
        raise ValueError(
            f"`{expression.argument}` {expression.name!r} {where}: look at "
            f"{list_names(list(expression.sources))}, or leave it out."
        )


def check_group_names(source: Source, roles: Roles) -> None:
    """Raise an error for names of groups without rows; only columns with named groups are read."""
    named = {
        attribute.sources[0]: attribute
        for attribute in roles.attributes
        if attribute.is_column and attribute.names
    }
    classes = {name: Classes(name) for name in named}
    for block in source.rows(list(named), BLOCK_ROWS) if named else ():
        for name in named:
            classes[name].add(column_from(name, block.column(name)))
    for name, attribute in named.items():
        attribute.check_named(classes[name].numbered())
