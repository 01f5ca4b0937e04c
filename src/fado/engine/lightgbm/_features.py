"""The columns that LightGBM sees: the table's and, last, the target, each at its place."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from fado.engine._base import LabelArray, Rows
from fado.engine._schema import Schema
from fado.engine._target import check_target, replace_target
from fado.engine.lightgbm._matrix import (
    Columns,
    SparseColumns,
    digests_of,
    in_order,
    input_for_scores,
    levelled,
)
from fado.tabular import Column, ShelvedTable, Table, Variable

__all__ = ["Features", "columns_of", "with_target"]


class Features:
    """A table's columns and the target, in an order, and which of them a variable's models see.

    Parameters
    ----------
    table : Table
        The features.
    target : Variable or None
        The target, if models of protected attributes are to see it.
    by_content : bool
        Order the columns by what they hold, so that their places and names change nothing.

    Attributes
    ----------
    columns : list of Column, or SparseColumns
        The table's, then the target.
    order : tuple of int
        Positions in `columns`.
    n_columns : int
        How many columns the table has.
    schema : Schema
        What the table's columns are called, and the levels that they hold.
    """

    def __init__(self, table: Table, target: Variable | None, *, by_content: bool) -> None:
        self.schema = Schema.of(table)
        self._target = target
        self._shelved = table if isinstance(table, ShelvedTable) else None
        self.n_columns = table.n_columns
        self.columns = self._columns_of(table)
        order = list(range(len(self.columns)))
        if by_content:
            digests = digests_of(self.columns)
            order.sort(key=lambda j: digests[j])
        self.order = tuple(order)

    def _columns_of(self, table: Table) -> Columns:
        return with_target(
            SparseColumns(table.source) if table.is_sparse else table.columns,
            None if self._target is None else _as_column(self._target),
        )

    def __getstate__(self) -> dict[str, Any]:
        if self._shelved is None:
            return self.__dict__
        return {name: value for name, value in self.__dict__.items() if name != "columns"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        if self._shelved is not None:  # its columns stand in a file
            self.columns = self._columns_of(self._shelved)

    @property
    def is_sparse(self) -> bool:
        """Whether the columns are those of a sparse matrix."""
        return isinstance(self.columns, SparseColumns)

    def sees(self, variable: Variable, j: int) -> bool:
        """Tell whether a variable's models may split on a column."""
        check_target(variable, self._target)
        return j not in variable.excluded if j < self.n_columns else variable.sees_target

    def seen(self, variable: Variable) -> list[int]:
        """Give the positions of the table's columns that a variable's models may split on."""
        return [j for j in range(self.n_columns) if self.sees(variable, j)]

    def levelled(self) -> frozenset[int]:
        """Give the positions of the columns that hold codes of levels."""
        return frozenset(levelled(self.columns))

    def find(self, table: Table, variable: Variable) -> list[int | None]:
        """Find the columns in another table, refusing it if one that a variable's models see is not there."""
        return self.schema.find(table, self.seen(variable))

    def of_table(self, table: Table, target: LabelArray | None, variable: Variable) -> Columns:
        """Give the columns of another table like `columns`; those that the models do not see may be missing.

        Parameters
        ----------
        table : Table
            The other table.
        target : ndarray or None
            The target's labels of its rows.
        variable : Variable
            What is learnt.
        """
        places = self.find(table, variable)
        columns = columns_of(table, self.schema, places, sparse=self.is_sparse)
        if self._target is None:
            return columns
        theirs = replace_target(self._target, target, table.n_rows, variable)
        unseen = self._target.take(np.zeros(table.n_rows, dtype=np.intp))
        return with_target(columns, _as_column(unseen if theirs is None else theirs))

    def with_rows(self, table: Table) -> Features:
        """Add the rows of another table, which must have all columns, in the order and levels of this one."""
        places = self.schema.find(table, range(self.n_columns))
        theirs = columns_of(table, self.schema, places, sparse=self.is_sparse)
        joined = copy.copy(self)
        joined._shelved = None
        if isinstance(self.columns, SparseColumns):
            joined.columns = self.columns.with_rows(input_for_scores(theirs))
        elif not isinstance(theirs, SparseColumns):
            joined.columns = [
                replace(own, data=pa.chunked_array([np.concatenate([own.numbers(), other.numbers()])]))
                for own, other in zip(self.columns, theirs, strict=True)
            ]
        return joined

    def of_rows(self, rows: Rows, target: LabelArray | None, variable: Variable) -> Columns:
        """Give the columns at some row positions, with other labels of the target where models see it."""
        if isinstance(self.columns, SparseColumns):
            columns: Columns = self.columns.take(rows)
        else:
            columns = [column.take(rows) for column in self.columns]
        theirs = None
        if target is not None:
            theirs = replace_target(self._target, target, len(rows), variable)
        if theirs is None:
            return columns
        return with_target(in_order(columns, range(self.n_columns)), _as_column(theirs))


def columns_of(table: Table, schema: Schema, places: Sequence[int | None], *, sparse: bool) -> Columns:
    """Give the columns of another table in the order and the levels of a schema.

    Parameters
    ----------
    table : Table
        The other table.
    schema : Schema
        Of the table that models learnt from.
    places : sequence of int or None
        Where its columns stand in the other; None for a column of missing entries.
    sparse : bool
        Whether models learnt from a sparse matrix.
    """
    if table.is_sparse and sparse:
        return SparseColumns(table.source)
    return [schema.column(table, j, place) for j, place in enumerate(places)]


def with_target(columns: Columns, target: Column | None) -> Columns:
    """Give a table's columns and, last, the target, if there is one."""
    if target is None:
        return columns
    return columns.with_column(target) if isinstance(columns, SparseColumns) else [*columns, target]


def _as_column(target: Variable) -> Column:
    """Turn the target into a feature column for the models of protected attributes."""
    levels = tuple(map(str, target.classes)) if len(target.classes) > 2 else None
    return Column(target.name, pa.chunked_array([pa.array(target.labels)]), levels)
