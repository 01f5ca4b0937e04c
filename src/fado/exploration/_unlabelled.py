"""Rows without labels, as they are handed over: the columns of the labelled rows, and values like theirs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fado._messages import list_names
from fado.engine import Schema
from fado.tabular import Column, Table
from fado.valuation import Valuation

__all__ = ["GivenPool", "Unlabelled", "read_pool"]


@dataclass(frozen=True)
class GivenPool:
    """A pool as the user passed it.

    Parameters
    ----------
    source : table
        The table itself.
    columns : tuple of Column
        The columns that the labelled rows have, in their order; none if these came as a sparse matrix.
    n_rows : int
        How many rows there are.
    valuation : Valuation or None
        The values, if they were given.
    """

    source: Any
    columns: tuple[Column, ...]
    n_rows: int
    valuation: Valuation | None


@dataclass(frozen=True)
class Unlabelled:
    """Rows without labels that have values; their columns, and how many further ones have none."""

    columns: tuple[Column, ...]
    valuation: Valuation
    n_without_value: int

    def __len__(self) -> int:
        return len(self.valuation)

    @classmethod
    def of(cls, given: GivenPool, labelled: Valuation, names: Sequence[str]) -> Unlabelled:
        """Cut a pool that has been valued to the rows that have a value.

        Parameters
        ----------
        given : GivenPool
            The pool.
        labelled : Valuation
            Of the labelled rows: the values must say the same.
        names : sequence of str
            The variables that are shown.
        """
        values = _checked_values(given, labelled, names)
        rows = np.flatnonzero(~np.isnan([values[name] for name in names]).any(axis=0))
        if not len(rows):
            raise ValueError("The valuation of `pool` holds no value for any row: value the rows first.")
        if len(rows) == given.n_rows:
            return cls(given.columns, values, 0)
        columns = tuple(column.take(rows) for column in given.columns)
        return cls(columns, values.take(rows), given.n_rows - len(rows))


def read_pool(pool: Any, labelled: Table, *, valued: bool) -> GivenPool:
    """Read a pool: a table, or a table and the values of its rows.

    Parameters
    ----------
    pool : table, or tuple of a table and a Valuation
        The rows without labels.
    labelled : Table
        The rows with labels, whose columns are looked for by name.
    valued : bool
        Whether the values of the labelled rows were given: then the pool must bring its own.

    Examples
    --------
    >>> import pandas as pd
    >>> labelled = Table.from_input(pd.DataFrame({"age": [30, 40], "job": ["clerk", "nurse"]}))
    >>> pool = pd.DataFrame({"job": ["cook"], "age": [50], "more": [1]})
    >>> [column.name for column in read_pool(pool, labelled, valued=False).columns]
    ['age', 'job']
    """
    source, valuation = _parts(pool)
    _check_both_valued(labelled=valued, pool=valuation is not None)
    schema = Schema.of(labelled)
    try:
        table = Table.from_input(source)
        columns = tuple(_columns(table, schema, sparse=labelled.is_sparse))
    except (TypeError, ValueError) as error:
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(f"`pool`: {error}") from None
    if not table.n_rows:
        raise ValueError("`pool` has no rows: pass some, or leave it out.")
    return GivenPool(source, columns, table.n_rows, valuation)


def _parts(pool: Any) -> tuple[Any, Valuation | None]:
    """Take a table and its values apart, if both were given."""
    paired = isinstance(pool, tuple)
    if isinstance(pool, Valuation) or (
        paired and [isinstance(own, Valuation) for own in pool] != [False, True]
    ):
        raise TypeError("`pool` must be a table, or a tuple of a table and the Valuation of its rows.")
    return pool if paired else (pool, None)


def _check_both_valued(*, labelled: bool, pool: bool) -> None:
    if labelled and not pool:
        raise ValueError(
            "`valuation` was given, so `pool` needs values too: pass `(table, valuator.value(table))`, by a "
            "valuator that was fitted with `keep_models=True`."
        )
    if pool and not labelled:
        raise ValueError(
            "`pool` came with values, and the labelled rows without: pass their `valuation` too, or the "
            "pool's table alone."
        )


def _columns(table: Table, schema: Schema, *, sparse: bool) -> Iterator[Column]:
    """Find the columns of the labelled rows; levels that only the pool has stay what they are."""
    places = schema.find(table, range(len(schema.names)))
    for j, place in enumerate(() if sparse else places):
        column = schema.column(table, j, place)
        own = column if place is None else table.column(place)
        yield column if own.levels is None or column.levels is None else own


def _checked_values(given: GivenPool, labelled: Valuation, names: Sequence[str]) -> Valuation:
    values = given.valuation
    if values is None or len(values) != given.n_rows:
        raise ValueError(
            f"The valuation of `pool` has {0 if values is None else len(values)} rows and its table has "
            f"{given.n_rows}: pass the valuation of the same rows."
        )
    for name in names:
        if name not in values.variables:
            raise ValueError(
                f"The valuation of `pool` holds no values for {name!r}; it has {values.variables}: value the "
                "pool by the valuator of the labelled rows."
            )
        own, theirs = values.scales[name], labelled.scales[name]
        if own != theirs:
            raise ValueError(
                f"The values for {name!r} say one thing in `pool` ({own.meaning}) and another in the "
                f"labelled rows ({theirs.meaning}): value both by one valuator."
            )
        mine, others = _classes(values, name), _classes(labelled, name)
        if mine and others and mine != others:
            raise ValueError(
                f"The values for {name!r} are of other classes in `pool` ({list_names(mine)}) than in the "
                f"labelled rows ({list_names(others)}): value both by one valuator."
            )
    return values


def _classes(valuation: Valuation, name: str) -> list[str]:
    """Give the classes that values are about, as text; none where that is not known."""
    note = valuation.provenance.variables.get(name)
    return [] if note is None else [str(label) for label in note.classes or ()]
