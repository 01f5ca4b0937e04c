"""The last rows of a stream, in columns of their own."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from fado.tabular import Column, Problem, Table, join_problems, read_problem

__all__ = [
    "add_batch",
    "as_dense",
    "blank_columns",
    "has_new_label",
    "last_rows",
    "read_batch",
    "what_is_lacking",
    "without_text",
]

FEWEST_ROWS = 5  # of which a fifth can be out of bag
_EARLY = 100  # rows; until then a variable with nearly a class per row may yet turn out to be another


def as_dense(X: Any) -> Any:
    """Give a sparse matrix as a dense array, and anything else as it is."""
    import scipy.sparse

    return X.toarray() if scipy.sparse.issparse(X) else X


def read_batch(X: Any, y: Any, sensitive_features: Any, sample_weight: Any) -> Problem:
    """Read a batch; its columns may still be the user's own memory."""
    return read_problem(as_dense(X), y, sensitive_features, sample_weight=sample_weight)


def add_batch(window: Problem | None, batch: Problem, most: int, number: int) -> Problem:
    """Put a batch below the rows that are there, and give the last ones of both.

    Parameters
    ----------
    window : Problem or None
        The rows so far; its columns are those that a batch must have.
    batch : Problem
        The new rows.
    most : int
        How many rows to give at most.
    number : int
        Of the batch, for messages.
    """
    joined = batch if window is None else join_problems(window, batch, f"Batch {number}")
    return last_rows(joined, most)


def last_rows(problem: Problem, most: int) -> Problem:
    """Give the last rows as copies that nobody else holds, with no levels but those that occur."""
    rows = np.arange(max(problem.n_rows - most, 0), problem.n_rows)
    own = replace(
        problem,
        table=Table.of_columns(list(map(_undeclared, problem.table.columns)), named=problem.table.is_named),
        sources=tuple(map(_undeclared, problem.sources)),
    )
    return own.take(rows)


def _undeclared(column: Column) -> Column:
    """Forget the order in which a categorical declares its categories: each batch may have its own."""
    return replace(column, declared=None)


def blank_columns(table: Table) -> tuple[int, ...]:
    """Give the positions of the columns without any entry, which pass for numbers: nobody can tell."""
    return tuple(
        j
        for j, column in enumerate(table.columns)
        if column.levels is None and np.isnan(column.numbers()).all()
    )


def without_text(table: Table, blank: Collection[int], window: Table) -> Table:
    """Empty the columns of text that were blank when models learnt: these know nothing of what they hold.

    Parameters
    ----------
    table : Table
        New rows.
    blank : collection of int
        Positions of those columns in the window.
    window : Table
        Its columns are found by name, or by position where either table has none.
    """
    named = table.is_named and window.is_named
    places = {place for j in blank for place in (table.positions(window.names[j]) if named else [j])}
    texts = {j for j in places if j < table.n_columns and table.column(j).levels is not None}
    if not texts:
        return table
    nothing = pa.chunked_array([pa.nulls(table.n_rows, pa.float64())])
    columns = [Column(own.name, nothing) if j in texts else own for j, own in enumerate(table.columns)]
    return Table.of_columns(columns, named=table.is_named)


def what_is_lacking(problem: Problem, kinds: Mapping[str, str] | None) -> str:
    """Say what must still come before models can learn from these rows; empty if nothing must.

    Examples
    --------
    >>> from fado.tabular import read_problem
    >>> what_is_lacking(read_problem([[0.0]] * 6, [1, 1, 1, 1, 1, 1]), None)
    "a second label of 'y'"
    """
    if problem.n_rows < FEWEST_ROWS:
        return f"{FEWEST_ROWS} rows"
    for variable in problem.with_kinds(kinds).variables:
        distinct = len(variable.classes)
        if variable.kind == "continuous":
            known = variable.labels[variable.known]
            distinct = 0 if not len(known) else 1 if (known == known[0]).all() else 2
        if distinct < 2:
            return f"a second label of {variable.name!r}"
        if distinct > 2 and 2 * distinct > problem.n_rows and problem.n_rows < _EARLY:
            return f"more rows for each of the {distinct} labels of {variable.name!r}"
    return ""


def has_new_label(column: Column, classes: tuple[Any, ...]) -> bool:
    """Tell whether a column holds a label that is none of these classes; numbers have no classes."""
    if not classes:
        return False
    codes, entries = column.encode()
    occurs = np.bincount(codes[codes >= 0], minlength=len(entries)) > 0
    return any(
        column.label_of(entry) not in classes for entry, there in zip(entries, occurs, strict=True) if there
    )
