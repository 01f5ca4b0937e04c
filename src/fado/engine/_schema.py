"""The columns that models learn from, found again in another table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from fado._messages import closest_names, list_names, warn_user
from fado.tabular import Column, Table

__all__ = ["Schema"]


@dataclass(frozen=True)
class Schema:
    """What a table's columns are called, and the levels that they hold.

    Parameters
    ----------
    names : tuple of str
        One per column.
    levels : tuple
        One per column: its levels, or None for numbers.
    named : bool
        Whether the user gave the names: the columns of an array have none.

    Examples
    --------
    >>> import pandas as pd
    >>> from fado.tabular import Table
    >>> schema = Schema.of(Table.from_input(pd.DataFrame({"colour": ["red", "blue"], "size": [1, 2]})))
    >>> other = Table.from_input(pd.DataFrame({"size": [3], "colour": ["green"]}))
    >>> schema.find(other, [0, 1])
    [1, 0]
    >>> schema.column(other, 0, 1).codes()  # a level that was not there is missing
    array([-1], dtype=int32)
    """

    names: tuple[str, ...]
    levels: tuple[tuple[str, ...] | None, ...]
    named: bool

    @classmethod
    def of(cls, table: Table, read: Collection[int] | None = None) -> Schema:
        """Note a table's columns, and the levels of those to read: all of them, unless said otherwise."""
        every = range(table.n_columns)
        read = set() if table.is_sparse else every if read is None else set(read)
        levels = [table.column(j).levels if j in read else None for j in every]
        return cls(tuple(table.names), tuple(levels), table.is_named)

    def to_plain(self) -> dict[str, Any]:
        """Give all of it as JSON can hold it."""
        levels = [None if own is None else list(own) for own in self.levels]
        return {"names": list(self.names), "levels": levels, "named": self.named}

    @classmethod
    def from_plain(cls, plain: Any) -> Schema:
        """Read what `to_plain` gave, refusing anything else."""
        names, levels, named = (plain.get(key) for key in ("names", "levels", "named"))
        if not (
            _are_texts(names)
            and isinstance(levels, list)
            and len(levels) == len(names)
            and all(own is None or _are_texts(own) for own in levels)
            and isinstance(named, bool)
        ):
            raise ValueError("The columns that the model learnt from are not told as they should be.")
        return cls(tuple(names), tuple(own if own is None else tuple(own) for own in levels), named)

    def find(self, table: Table, needed: Collection[int]) -> list[int | None]:
        """Find every column's position in another table; None for one that is not there.

        Parameters
        ----------
        table : Table
            The other table.
        needed : collection of int
            Positions of the columns that must be there.
        """
        if not (self.named and table.is_named):
            if table.n_columns != len(self.names):
                raise ValueError(
                    f"The table must have the {len(self.names)} columns that the model learnt from, got "
                    f"{table.n_columns}."
                )
            return list(range(len(self.names)))
        if tuple(table.names) == self.names:  # also where names repeat
            return list(range(len(self.names)))
        places: list[int | None] = []
        must, counts = set(needed), Counter(self.names)
        for j, name in enumerate(self.names):
            found = table.positions(name)
            if j in must and not found:
                raise ValueError(
                    f"The table has no column {name!r}, which the model learnt from"
                    f"{closest_names(name, table.names)}"
                )
            if j in must and (len(found) > 1 or counts[name] > 1):
                raise ValueError(f"Column {name!r} is there more than once: give every column its own name.")
            places.append(found[0] if found else None)
        return places

    def warn_of_lost_names(self, table: Table) -> None:
        """Say that columns are taken by position where a table has lost the names that models learnt by."""
        if self.named and not table.is_named:
            order = list_names([repr(name) for name in self.names])
            warn_user(
                "X has no column names, and the model learnt from named columns: they are taken in this "
                f"order, {order}. Pass a table with these names to be sure."
            )

    def column(self, table: Table, j: int, place: int | None) -> Column:
        """Give column `j` from where it stands in another table, in this one's levels.

        Parameters
        ----------
        table : Table
            The other table.
        j : int
            The column's position in this table.
        place : int or None
            Its position in the other, from `find`; None gives a column of missing entries.
        """
        levels, name = self.levels[j], self.names[j]
        if place is None:
            return _empty(name, levels, table.n_rows)
        column = table.column(place)
        if levels is None and column.levels is None:
            return column
        if levels is not None and column.levels is not None:
            return column if column.levels == levels else column.with_levels(levels)
        if np.isnan(column.numbers()).all():
            return _empty(name, levels, table.n_rows)
        learnt, given = ("numbers", "text") if levels is None else ("text", "numbers")
        raise ValueError(f"Column {name!r} holds {given}, but the model learnt from {learnt}: convert it.")


def _are_texts(given: Any) -> bool:
    return isinstance(given, list) and all(isinstance(own, str) for own in given)


def _empty(name: str, levels: tuple[str, ...] | None, n_rows: int) -> Column:
    kind = pa.float64() if levels is None else pa.int32()
    return Column(name, pa.chunked_array([pa.nulls(n_rows, kind)]), levels)
