"""Match a second table to a first one: its columns and attributes by name or position, its labels by value.

Callers name the two tables for messages, with a verb.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from fado._messages import closest_names, list_names
from fado._typing import Bools, Integers
from fado.tabular._column import Column
from fado.tabular._problem import Problem
from fado.tabular._table import Table
from fado.tabular._variables import Labels

UNSEEN, NOT_GIVEN = -1, -2  # the codes of a label that the first table does not have, and of a missing one
_TRAINING, _VALIDATION = "the training rows have", "`validation` has"


def match_names(
    names: Sequence[str],
    others: Sequence[str],
    *,
    by_name: bool,
    first: str,
    second: str,
    what: str = "column",
    needed: Collection[int] | None = None,
) -> list[int]:
    """Find the columns or attributes of a first table among those of a second.

    Parameters
    ----------
    names, others : sequence of str
        The names in the first table, and in the second. Equal ones match by position, even if they repeat.
    by_name : bool
        Whether both tables have names; otherwise all match by position.
    first, second : str
        The two tables in messages, with a verb: "the model learnt from", "The table has".
    what : str
        What is matched.
    needed : collection of int, optional
        The positions in `names` that must match, by default all.

    Returns
    -------
    list of int
        A position in `others` for each name; -1 for one that is neither there nor needed.

    Examples
    --------
    >>> tables = {"first": "the model learnt from", "second": "The table has"}
    >>> match_names(["age", "sex"], ["sex", "job", "age"], by_name=True, **tables)
    [2, 0]
    >>> match_names(["age", "sex"], ["sex", "job"], by_name=True, **tables)
    Traceback (most recent call last):
        ...
    ValueError: The table has no column 'age', which the model learnt from; it is not among 'sex', 'job'.
    """
    if not by_name or tuple(names) == tuple(others):
        if len(names) != len(others):
            counted = f"{len(others)} {what}s, and {first} {len(names)}"
            raise ValueError(f"{second} {counted}: give both the same.")
        return list(range(len(names)))
    places = {name: place for place, name in reversed(list(enumerate(others)))}
    counts, there = Counter(names), Counter(others)
    must = set(range(len(names)) if needed is None else needed)
    for j, name in enumerate(names):
        if j in must and name not in places:
            known = f"; it is not among {list_names(list(map(repr, others)))}." if others else "."
            close = closest_names(name, others, known)
            raise ValueError(f"{second} no {what} {name!r}, which {first}{close}")
        if j in must and (counts[name] > 1 or there[name] > 1):
            raise ValueError(f"Column {name!r} appears more than once: give every column a different name.")
    return [places.get(name, -1) for name in names]


def match_attributes(
    problem: Problem, validation: Problem, first: str = _TRAINING, second: str = _VALIDATION
) -> list[int]:
    """Find the protected attributes of a first problem among those of a second; both have as many."""
    names, others = ([variable.name for variable in rows.protected] for rows in (problem, validation))
    by_name = len(names) == len(others) and problem.names_given and validation.names_given
    return match_names(names, others, by_name=by_name, first=first, second=second, what="protected attribute")


def label_codes(column: Column, classes: Sequence[Any], missing: int = NOT_GIVEN) -> Integers:
    """Encode labels as positions in `classes`: `UNSEEN` for others, `missing` where there is none.

    Examples
    --------
    >>> from fado.tabular import column_from
    >>> label_codes(column_from("sex", ["f", "m", "x", None]), ["f", "m"])
    array([ 0,  1, -1, -2], dtype=int32)
    """
    codes, entries = column.encode()
    place = {label: code for code, label in enumerate(classes)}
    places = [place.get(column.label_of(entry), UNSEEN) for entry in entries]
    return np.array([*places, missing], dtype=np.int32)[codes]


def match_positive(
    labels: Labels, pair: tuple[Any, Any], first: str = _TRAINING, second: str = _VALIDATION
) -> Bools:
    """Mark the rows of the positive label, the second of the pair that a first table has.

    `first` and `second` are the two tables in messages, as in `match_names`.

    Examples
    --------
    >>> match_positive(Labels(np.array([0, 1, 1]), ("a", "b")), ("b", "a"))
    array([ True, False, False])
    """
    for label in labels.classes:
        if label not in pair:
            known = f"{first} {pair[0]!r} and {pair[1]!r}"
            raise ValueError(f"{second} the label {label!r}, and {known}: give both the same labels.")
    if len(labels.classes) == 1:
        raise ValueError(f"{second} only one label ({labels.classes[0]!r}): give rows of both labels.")
    return labels.codes == labels.classes.index(pair[1])


def join_problems(first: Problem, second: Problem, called: str = "`validation`") -> Problem:
    """Return the rows of both, the first ones first, in the columns of the first; `called` names the second.

    Columns and attributes are matched by name, or by position if they have none. Blocks stay separate.
    """
    table, other = first.table, second.table
    if table.is_sparse or other.is_sparse:
        raise ValueError("Rows of sparse matrices cannot be joined here: convert them to dense tables.")
    tables = _TRAINING, f"{called} has"
    by_name = table.is_named and other.is_named
    places = match_names(table.names, other.names, by_name=by_name, first=tables[0], second=tables[1])
    columns = [
        _join_columns(column, other.column(place), called)
        for column, place in zip(table.columns, places, strict=True)
    ]
    places = match_attributes(first, second, *tables)
    sources = [second.sources[0], *(second.sources[1 + place] for place in places)]
    both = (first, second)
    weights = blocks = None
    if any(rows.sample_weight is not None for rows in both):
        parts = [np.ones(rows.n_rows) if rows.sample_weight is None else rows.sample_weight for rows in both]
        weights = np.concatenate(parts)
    if any(rows.blocks is not None for rows in both):
        before, after = (np.arange(rows.n_rows) if rows.blocks is None else rows.blocks for rows in both)
        blocks = np.concatenate([before, after + before.max() + 1])
    return first.with_sources(
        [_join_columns(*pair, called) for pair in zip(first.sources, sources, strict=True)],
        first.kinds,
        table=Table.of_columns(columns, named=table.is_named),
        sample_weight=weights,
        blocks=blocks,
    )


def _join_columns(first: Column, second: Column, called: str) -> Column:
    """Join two columns, with the levels of both."""
    if first.levels is None and second.levels is None:
        if first.data.type == second.data.type:
            data = pa.chunked_array([*first.data.chunks, *second.data.chunks], first.data.type)
        else:
            data = pa.chunked_array([first.numbers(), second.numbers()])
        return Column(first.name, data)
    both = []
    for column in (first, second):
        has_no_type = column.levels is None and np.isnan(column.numbers()).all()  # as it has no entry
        nothing = pa.chunked_array([pa.nulls(len(column), pa.int32())])
        both.append(Column(column.name, nothing, ()) if has_no_type else column)
    first, second = both
    kinds = [
        "numbers" if column.levels is None else "text" if column.labels is None else "categories of numbers"
        for column in both
    ]
    differ = first.levels and second.levels and kinds[0] != kinds[1]
    if first.levels is None or second.levels is None or differ:
        raise ValueError(
            f"Column {first.name!r} holds {kinds[0]}, and that of {called} {kinds[1]}: convert it."
        )
    labels = dict(zip(second.levels, second.labels or second.levels, strict=True))
    labels |= zip(first.levels, first.labels or first.levels, strict=True)
    levels = tuple(sorted(labels))
    codes = [column.with_levels(levels).data.combine_chunks() for column in both]
    written = None if first.labels is None else tuple(labels[level] for level in levels)
    return Column(first.name, pa.chunked_array(codes), levels, written)
