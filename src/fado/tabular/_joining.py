"""Put the rows of one problem below those of another."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa

from fado._messages import closest_names
from fado.tabular._columns import Column
from fado.tabular._problem import Problem
from fado.tabular._table import Table
from fado.tabular._variables import variable_from

__all__ = ["join_problems"]


def join_problems(first: Problem, second: Problem, called: str = "`validation`") -> Problem:
    """Give the rows of both, the first ones first, in the columns of the first.

    Columns and attributes are found by name, or by position where they have none. Blocks are told apart.

    Parameters
    ----------
    first, second : Problem
        What to put together.
    called : str
        What messages call the second.

    Raises
    ------
    ValueError
        If the second lacks a column, or holds text where the first holds numbers.
    """
    if first.table.is_sparse or second.table.is_sparse:
        raise ValueError("Rows of sparse matrices cannot be put together here: convert them to dense tables.")
    places = _places(first.table, second.table, called)
    theirs = [second.table.column(place) for place in places]
    columns = [_joined(*pair, called) for pair in zip(first.table.columns, theirs, strict=True)]
    attributes = (second.sources[0], *_attributes(first, second, called))
    sources = tuple(_joined(*pair, called) for pair in zip(first.sources, attributes, strict=True))
    variables = tuple(map(variable_from, sources))
    weighted, blocked = (
        any(getattr(own, name) is not None for own in (first, second)) for name in ("sample_weight", "blocks")
    )
    weights = [
        np.ones(own.n_rows) if own.sample_weight is None else own.sample_weight for own in (first, second)
    ]
    blocks = [np.arange(own.n_rows) if own.blocks is None else own.blocks for own in (first, second)]
    return replace(
        first,
        table=Table.of_columns(columns, named=first.table.is_named),
        target=variables[0],
        protected=variables[1:],
        sources=sources,
        sample_weight=np.concatenate(weights) if weighted else None,
        blocks=np.concatenate([blocks[0], blocks[1] + blocks[0].max() + 1]) if blocked else None,
    )


def _places(first: Table, second: Table, called: str) -> list[int]:
    """Find the columns of the first in the second: by name, or by position where names tell nothing."""
    if not (first.is_named and second.is_named) or first.names == second.names:
        if first.n_columns != second.n_columns:
            raise ValueError(
                f"{called} has {second.n_columns} columns, and the rows to learn from have "
                f"{first.n_columns}: give both the same."
            )
        return list(range(first.n_columns))
    places = []
    for name in first.names:
        found = second.positions(name)
        if not found:
            raise ValueError(f"{called} has no column {name!r}{closest_names(name, second.names)}")
        if len(found) > 1 or len(first.positions(name)) > 1:
            raise ValueError(f"Column {name!r} is there more than once: give every column its own name.")
        places += found
    return places


def _attributes(first: Problem, second: Problem, called: str) -> list[Column]:
    """Find the protected attributes of the first among those of the second."""
    own, theirs = first.sources[1:], second.sources[1:]
    if len(own) != len(theirs):
        raise ValueError(
            f"{called} has {len(theirs)} protected attributes, and the rows to learn from have {len(own)}: "
            "give both the same."
        )
    if not (first.names_given and second.names_given):
        return list(theirs)
    by_name = {column.name: column for column in theirs}
    lacking = [column.name for column in own if column.name not in by_name]
    if lacking:
        raise ValueError(f"{called} has no protected attribute {lacking[0]!r}: give both the same.")
    return [by_name[column.name] for column in own]


def _joined(first: Column, second: Column, called: str) -> Column:
    """Put one column below another, with the levels of both."""
    if first.levels is None and second.levels is None:
        if first.data.type == second.data.type:
            return Column(
                first.name, pa.chunked_array([*first.data.chunks, *second.data.chunks], first.data.type)
            )
        numbers = np.concatenate([first.numbers(), second.numbers()])
        return Column(first.name, pa.chunked_array([pa.array(numbers)]))
    first, second = _levelled_as(second, first), _levelled_as(first, second)
    if first.levels is None or second.levels is None:
        raise _different(first, second, called)
    if (first.labels is None) != (second.labels is None) and first.levels and second.levels:
        raise _different(first, second, called)
    labels = {
        level: label
        for own in (second, first)
        for level, label in zip(own.levels or (), own.labels or own.levels or (), strict=True)
    }
    levels = tuple(sorted(labels))
    codes = [own.with_levels(levels).data.combine_chunks() for own in (first, second)]
    written = None if first.labels is None else tuple(labels[level] for level in levels)
    return Column(first.name, pa.chunked_array(codes), levels, written)


def _levelled_as(other: Column, column: Column) -> Column:
    """Give a column without any entry as one of levels, if another is: nobody can tell what it holds."""
    if column.levels is not None or other.levels is None or not np.isnan(column.numbers()).all():
        return column
    return Column(column.name, pa.chunked_array([pa.nulls(len(column), pa.int32())]), ())


def _different(first: Column, second: Column, called: str) -> ValueError:
    kinds = [
        "numbers" if own.levels is None else "text" if own.labels is None else "categories of numbers"
        for own in (first, second)
    ]
    return ValueError(f"Column {first.name!r} holds {kinds[0]}, and that of {called} {kinds[1]}: convert it.")
