"""A table in files: the roles of its columns, and all rows block by block, with their classes or values."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fado._messages import closest_names, list_names
from fado._progress import tracked
from fado._typing import Integers
from fado.tabular import (
    TARGET,
    Column,
    Expression,
    GroupNames,
    Source,
    SourcePart,
    Variable,
    as_names,
    check_weights,
    column_from,
    columns_named,
    one_column,
    read_attributes,
    variable_from,
)
from fado.valuation._base import is_same_pattern
from fado.valuation._provenance import FIELDS
from fado.valuation._result import Valuation
from fado.valuation._saved import open_values, value_blocks

BLOCK_ROWS = 1 << 15  # that are read at once
_ROWS_OF_A_PART = 1_000_000
_MOST_NUMBERS = 100  # more different numbers are no classes, whatever the rule is
_MOST_CLASSES = 10_000
_MOST_JOINT = 1 << 16  # numbers of combinations that are looked up without a sort


@dataclass(frozen=True)
class Roles:
    """The roles of the columns of a table.

    Parameters
    ----------
    target : Expression
        What is predicted.
    attributes : tuple of Expression
        The protected attributes.
    features : tuple of str
        The columns that models may see, in the table's order.
    excluded : mapping of str to tuple of str
        Per attribute, the features hidden from its models.
    weight, groups : str or None
        The columns of the weight of each row, and of which rows belong together.
    """

    target: Expression
    attributes: tuple[Expression, ...]
    features: tuple[str, ...]
    excluded: Mapping[str, tuple[str, ...]]
    weight: str | None = None
    groups: str | None = None

    @property
    def beside(self) -> list[str]:
        """The columns that are read for target, attributes and weights, each once."""
        columns = [name for variable in (self.target, *self.attributes) for name in variable.sources]
        return list(dict.fromkeys([*columns, *([] if self.weight is None else [self.weight])]))

    @property
    def needed(self) -> list[str]:
        """All columns that are read, each once."""
        groups = [] if self.groups is None else [self.groups]
        return list(dict.fromkeys([*self.features, *self.beside, *groups]))

    @property
    def unknown(self) -> tuple[Any, ...]:
        """The entries of protected attributes' columns that mean the same as a missing one."""
        return self.attributes[0].unknown if self.attributes else ()

    @property
    def names(self) -> list[str]:
        """The variables' names: the target, then the attributes."""
        return [TARGET, *(attribute.name for attribute in self.attributes)]

    def variables(self, block: pa.Table) -> list[Column]:
        """Read the target and the attributes of some rows."""
        target = column_from(TARGET, self.target.read(block, named=False))
        attributes = [column_from(attribute.name, attribute.read(block)) for attribute in self.attributes]
        return [target, *attributes]

    def weights(self, block: pa.Table) -> npt.NDArray[np.float64] | None:
        """Read the weights of some rows; None if there are none."""
        if self.weight is None:
            return None
        column = column_from(self.weight, block.column(self.weight))
        if column.levels is not None:
            raise ValueError(f"`weight` names {self.weight!r}, which holds text: name a column of numbers.")
        return column.numbers()

    def blocks(self, table: pa.Table) -> Integers | None:
        """Return which of some rows belong together, -1 if it is missing; None if none do."""
        if self.groups is None:
            return None
        return one_column(table.column(self.groups), "groups", times=True).encode()[0].astype(np.int64)

    def to_plain(self) -> dict[str, Any]:
        """Return what affects values, as JSON can hold it."""
        return {
            "target": self.target.name,
            "protected": self.names[1:],
            "unknown": [str(value) for value in self.unknown],
            "features": list(self.features),
            "excluded": {name: list(hidden) for name, hidden in self.excluded.items()},
            "weight": self.weight,
            "groups": self.groups,
        }


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
) -> Roles:
    """Find the roles of the columns, from their names only.

    Examples
    --------
    >>> names = ["id", "age", "income", "default"]
    >>> schema = pa.schema([(name, pa.int64()) for name in names])
    >>> roles = read_roles(schema, "default", ["age >= 50"], drop=["id"])
    >>> roles.features, roles.names, roles.excluded
    (('age', 'income'), ['y', 'age>=50'], {'age>=50': ('age',)})
    """
    roles = name_roles(
        schema, target, protected, weight=weight, groups=groups, group_names=group_names, unknown=unknown
    )
    for argument, names in (("drop", drop), ("exclude", exclude)):
        roles.target.check_apart(argument, as_names(names or (), argument))
    others = [name for name in schema.names if name not in roles.target.sources]
    unseen = {*columns_named(others, drop, "drop"), weight, groups}
    features = tuple(name for name in others if name not in unseen)
    if not features:
        raise ValueError("No column is left for models to see: drop fewer.")
    by_hand = columns_named(features, exclude, "exclude")
    excluded = {
        attribute.name: tuple(
            dict.fromkeys([*by_hand, *(name for name in attribute.sources if name in features)])
        )
        for attribute in roles.attributes
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
    groups: str | None = None,
    group_names: GroupNames | None = None,
    unknown: Any = None,
) -> Roles:
    """Find which columns are target, protected attributes, weights and groups, without features."""
    names = list(schema.names)
    predicted = Expression.of(names, target, "target")
    for argument, name in (("weight", weight), ("groups", groups)):
        if name is not None and name not in names:
            raise ValueError(
                f"`{argument}` names {name!r}, which is not a column of the table{closest_names(name, names)}"
            )
        predicted.check_apart(argument, [name])
    attributes = read_attributes(names, as_names(protected, "protected"), predicted, group_names, unknown)
    roles = Roles(predicted, attributes, (), {}, weight, groups)
    roles.variables(schema.empty_table())  # refuses what cannot be a variable
    return roles


def with_group_names(valuation: Valuation, attributes: Sequence[Expression]) -> Valuation:
    """Return values with the group names of these attributes; files of values hold labels, not names."""
    notes = dict(valuation.provenance.variables)
    for attribute in attributes:
        note = notes.get(attribute.name)
        if note is not None and note.classes:
            titles = tuple(attribute.called(label) for label in note.classes)
            notes[attribute.name] = replace(note, classes=titles)
    return valuation.with_provenance(variables=notes)


class Classes:
    """The different labels of one variable, in the order in which they first occur.

    Examples
    --------
    >>> sex = Classes("sex")
    >>> sex.add(column_from("sex", ["m", None, "f"])), sex.add(column_from("sex", ["f", "m"]))
    (array([0, 1, 2]), array([2, 0]))
    >>> sex.numbered().classes
    ('f', 'm', 'unknown')
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._places: dict[Any, int] = {}
        self.are_numbers = False

    def add(self, column: Column) -> Integers:
        """Record the labels of some rows, and return for each the number of its first occurrence.

        Missing labels are a class; for numbers that are not classes, all are 0.
        """
        if self.are_numbers:
            return np.zeros(len(column), dtype=np.int64)
        codes, entries = column.encode()
        if column.levels is None and len(entries) > _MOST_NUMBERS:
            self.are_numbers = True
            return np.zeros(len(column), dtype=np.int64)
        different, first = np.unique(codes, return_index=True)
        places = np.zeros(len(entries) + 1, dtype=np.int64)  # the last, which is also -1, is of the missing
        for code in different[np.argsort(first)]:
            label = None if code < 0 else column.label_of(entries[code])
            places[code] = self._places.setdefault(label, len(self._places))
        if column.levels is None:
            self.are_numbers = len(self._places) > _MOST_NUMBERS
        elif len(self._places) > _MOST_CLASSES:
            raise ValueError(
                f"Variable {self._name!r} has more than {_MOST_CLASSES:,} classes: coarsen it, or leave it "
                "out."
            )
        return places[codes]

    def labels(self) -> tuple[Any, ...] | None:
        """Return the labels in the order of their numbers, None for the missing; None if they are numbers."""
        return None if self.are_numbers else tuple(self._places)

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

    def __len__(self) -> int:
        return len(self._places)

    def add(self, codes: list[Integers]) -> Integers:
        """Record some rows, given the classes of each variable, and return the combination of each row."""
        joint, n_joint = np.zeros(len(codes[0]), dtype=np.int64), 1
        for variable in codes:
            n_classes = int(variable.max(initial=0)) + 1
            joint, n_joint = joint * n_classes + variable, n_joint * n_classes
            if n_joint > _MOST_JOINT:
                _, joint = np.unique(joint, return_inverse=True)
                n_joint = int(joint.max(initial=0)) + 1
        first = np.full(n_joint, -1)
        first[joint[::-1]] = np.arange(len(joint))[::-1]
        occurring = np.flatnonzero(first >= 0)
        classes = np.column_stack([variable[first[occurring]] for variable in codes]).tolist()
        places = np.zeros(n_joint, dtype=np.int64)
        places[occurring] = [self._places.setdefault(tuple(each), len(self._places)) for each in classes]
        added = places[joint]
        sizes = np.bincount(added, minlength=len(self))
        sizes[: len(self.sizes)] += self.sizes
        self.sizes = sizes
        return added


class TableBlock(NamedTuple):
    """Some rows: their part, their positions in the whole table, their columns, the codes of their labels.

    Codes are of the target and then of each attribute, numbered by first occurrence.
    """

    part: SourcePart
    rows: Integers
    table: pa.Table
    codes: list[Integers]


class TablePass:
    """One reading of all rows, which finds the kinds and classes of target and attributes."""

    def __init__(self, source: Source, roles: Roles) -> None:
        needed = set(roles.needed)
        self.schema = pa.schema([field for field in source.schema if field.name in needed])
        self.n_rows = 0
        self._source = source
        self._roles = roles
        self._classes = [Classes(name) for name in roles.names]
        self.pattern = hashlib.blake2b(digest_size=16)  # of the target's labels, as `target_pattern` has it

    def blocks(self, most_rows: int, *, progress: bool) -> Iterator[TableBlock]:
        """Read all rows in blocks of this size; invalid targets, weights and groups raise an error."""
        parts = self._source.parts(_ROWS_OF_A_PART)
        for part in tracked(parts, len(parts), what="parts read", show=progress):
            for table in self._source.blocks(part, self._roles.needed, most_rows):
                if table.num_rows:
                    yield self._block(part, table)

    def numbered(self) -> list[Variable]:
        """Return the target and the attributes; their rows are the labels in the order of their codes."""
        return [classes.numbered() for classes in self._classes]

    def labels(self) -> list[tuple[Any, ...] | None]:
        """Return the labels of the target and of each attribute in the order of their codes."""
        return [classes.labels() for classes in self._classes]

    def variables(self) -> list[Variable]:
        """Return the target and the attributes without rows; each must have two classes."""
        variables = [replace(variable, labels=variable.labels[:0]) for variable in self.numbered()]
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
        return None if self.numbered()[0].kind == "continuous" else self.pattern.hexdigest()

    def _block(self, part: SourcePart, table: pa.Table) -> TableBlock:
        columns, where = self._roles.variables(table), str(part.file.path)
        check_rows(columns[0], self._roles.weights(table), where)
        blocks = self._roles.blocks(table)
        if blocks is not None and (blocks < 0).any():
            raise ValueError(
                f"`groups` is missing in {int((blocks < 0).sum())} or more rows of {where!r}: give every row "
                "the block it belongs to."
            )
        rows = np.arange(self.n_rows, self.n_rows + table.num_rows, dtype=np.int64)
        codes = [classes.add(column) for classes, column in zip(self._classes, columns, strict=True)]
        self.pattern.update(np.ascontiguousarray(codes[0], dtype=np.int32).data)
        self.n_rows += table.num_rows
        return TableBlock(part, rows, table, codes)


def check_rows(target: Column, weights: npt.NDArray[np.float64] | None, where: str) -> None:
    """Raise an error for a missing or infinite target, or invalid weights, in the rows of a file."""
    if target.levels is None or target.data.null_count:
        numbers = target.numbers()
        missing = int(np.isnan(numbers).sum())
        if missing:
            raise ValueError(
                f"The target is missing in {missing} or more rows of {where!r}: drop those rows or label "
                "them first."
            )
        if np.isinf(numbers).any():
            raise ValueError(f"The target contains infinity in {where!r}: drop or correct those rows first.")
    if weights is not None:
        check_weights(weights, "`weight`", f" of {where!r}")


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
    named = [attribute for attribute in roles.attributes if attribute.is_column and attribute.names]
    columns = {attribute.sources[0]: Classes(attribute.sources[0]) for attribute in named}
    for block in source.rows(list(columns), BLOCK_ROWS) if named else ():
        for name, classes in columns.items():
            classes.add(column_from(name, block.column(name)))
    for attribute in named:
        attribute.check_named(columns[attribute.sources[0]].numbered())


class StoredValues:
    """The values of all rows, as `value_files` wrote them; only one block is in memory at a time.

    Values on another scale than [0, 1] raise an error: a utility divides those by their standard deviation
    over all rows.

    Examples
    --------
    >>> import tempfile
    >>> from fado import Valuation
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     Valuation.from_probabilities([0.5, 1.0, 0.0]).save(f"{folder}/v.parquet")
    ...     stored = StoredValues(f"{folder}/v.parquet")
    ...     [block["y"].tolist() for block in stored.blocks(2)]
    [[1.0, 0.0], [0.0]]
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        if not self.path.exists():
            raise ValueError(f"`values` names {str(path)!r}, which does not exist.")
        if self.path.is_file() and self.path.suffix.lower() != ".parquet":
            raise ValueError(
                f"`values` must be a directory, or a file that ends in .parquet, got {str(path)!r}."
            )
        self._parts, self._about = open_values(path)
        signed = [name for name, scale in self._about.scales.items() if not scale.is_unit]
        if signed:
            raise ValueError(
                f"The values of {signed[0]!r} in {str(path)!r} are on another scale than [0, 1], and a "
                "utility divides them by their standard deviation: that needs all rows in memory."
            )

    @property
    def n_rows(self) -> int:
        """How many rows have values."""
        return sum(part.n_rows for part in self._parts)

    @property
    def n_bytes(self) -> int:
        """How many bytes all fields of all variables take in memory."""
        return 8 * self.n_rows * len(FIELDS) * len(self._about.variables)

    def check(self, target: str, attributes: Sequence[str]) -> None:
        """Raise an error for values of another target, or without some of the attributes."""
        note = self._about.provenance.made_for
        if note is not None and note.target != target:
            raise ValueError(
                f"The values in {str(self.path)!r} are of the target {note.target!r}, not of {target!r}: "
                "name others, or value this target."
            )
        valued = self._about.variables[1:]
        lacking = [name for name in attributes if name not in valued]
        if lacking:
            has = list_names([repr(name) for name in valued]) or "no protected attribute"
            raise ValueError(
                f"The values in {str(self.path)!r} are of {has}, and there are none of {lacking[0]!r}, which "
                "`protected` asks for: value that attribute."
            )

    def check_pattern(self, pattern: str | None, n_labels: int) -> None:
        """Raise an error for values with other labels, or of rows in another order."""
        if not is_same_pattern(self._about.provenance, pattern, n_labels):
            raise ValueError(
                f"The values in {str(self.path)!r} were computed with other labels of the target, or with "
                "the rows in another order: value this table."
            )

    def check_rows(self, n_rows: int) -> None:
        """Raise an error for values of another number of rows."""
        if n_rows != self.n_rows:
            raise ValueError(
                f"The values in {str(self.path)!r} are of {self.n_rows:,} rows, and the table has "
                f"{n_rows:,}: value this table."
            )

    def blocks(self, block_rows: int) -> Iterator[Valuation]:
        """Yield the values of the rows, block by block."""
        columns = self._about.column_names()
        names = {variable: columns["values", variable] for variable in self._about.variables}
        for arrays in value_blocks(self._parts, names, self._about.scales, block_rows):
            yield Valuation(arrays, scales=self._about.scales)
