"""Find feature columns that alone determine a variable.

With a raw age beside ``age >= 50``, every model would know the group, and every fairness value would be 0.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa

from fado._typing import Floats, Integers
from fado.tabular._column import Column
from fado.tabular._suspects import numbers_in
from fado.tabular._table import Table
from fado.tabular._variables import Variable

SAMPLE = 2_000  # rows that are enough to exclude most columns
TOLERANCE = 0.001  # share of the errors of guessing the most frequent class (or of the variance)
EVIDENCE = 10.0  # least disagreements expected by chance
PART = 20_000  # rows that are enough to accept a column
FEW_VALUES = 20
LENIENCE = 20.0  # how much worse a column may be on the sample before it is excluded


def columns_that_determine(variable: Variable, table: Table, skip: frozenset[int]) -> list[int]:
    """List the positions of the columns that alone determine a variable.

    For classes: every value of the column has one class, or the sorted column splits into a few runs of one
    class each. For numbers: the column has the same order as the variable, or each of its values has one
    number. Only evidence beyond chance counts, so an identifier, whose values never repeat, is not reported;
    nor is a column whose values repeat only with the whole row, in a table with repeated rows.
    """
    rows = np.flatnonzero(variable.given)  # missing entries are a group that no rule made
    sample = rows[:: max(1, len(rows) // SAMPLE)]

    @cache
    def distinct(step: int) -> Integers:
        return _without_copies(variable, table, rows[::step])

    def holds(column: Column, among: Integers) -> bool:
        return _determines(*_sorted(column, variable, among), ordered=column.levels is None)

    def determines(column: Column, among: Integers, missing: bool) -> bool:
        """Judge a column by all rows, or, unless `missing`, by those that have an entry."""
        labels, starts = _sorted(column, variable, among)
        if _ruled_out(labels, starts, ordered=column.levels is None):
            return False
        given = np.ones(table.n_rows, dtype=bool) if missing else ~np.isnan(column.numbers())
        # A column of few values repeats them in any table, and so does the only column of a table. Any other
        # is accepted if some rows without copies, or all of them, are enough evidence.
        if len(starts) > FEW_VALUES and table.n_columns > 1:
            some = distinct(max(1, len(rows) // PART))
            if holds(column, some[given[some]]):
                return True
            return holds(column, (every := distinct(1))[given[every]])
        return holds(column, rows[given[rows]])

    candidates: Iterable[int] = range(table.n_columns)
    if table.is_sparse:
        candidates = _sparse_candidates(table.source, variable, sample)
    places = []
    for j in candidates:
        if j in skip:
            continue
        column = _comparable(table.column(j), variable)
        given = ~np.isnan(column.take(sample).numbers())
        # Missing entries are a value like any other; unless they are most, the others may determine it alone.
        if determines(column, sample, missing=True) or (
            len(sample) / 2 < given.sum() < len(sample) and determines(column, sample[given], missing=False)
        ):
            places.append(j)
    return places


def _comparable(column: Column, variable: Variable) -> Column:
    """Return a column as numbers if it is numbers that were written as text, beside a variable of numbers."""
    if variable.kind == "classes" or column.levels is None:
        return column
    numbers = numbers_in(column.levels)
    if np.isnan(numbers).any():
        return column
    entries = np.append(numbers, np.nan)[column.codes()]
    return Column(column.name, pa.chunked_array([entries]))


def _without_copies(variable: Variable, table: Table, rows: Integers) -> Integers:
    """Return the first of the rows that agree in the variable and in every column, by their hashes."""
    values = [variable.labels[rows].astype(np.float64)]
    if table.is_sparse:
        matrix = table.source[rows]  # as one number per row, equal only for equal rows
        matrix.data = np.nan_to_num(matrix.data.astype(np.float64), nan=-1 / 3, posinf=1 / 7, neginf=-1 / 7)
        values.append(np.asarray(matrix @ np.random.default_rng(0).random(matrix.shape[1])).ravel())
    key = np.zeros(len(rows), dtype=np.uint64)
    for numbers in chain(values, (_values(column, rows) for column in table.columns)):
        key = pd.util.hash_array((numbers + 0.0).view(np.uint64) ^ (key * np.uint64(3)))  # one zero, not two
    return rows[~pd.Series(key).duplicated().to_numpy()]


def _sparse_candidates(matrix: Any, variable: Variable, sample: Integers) -> list[int]:
    """List the columns of a sparse matrix that a sample's zeros do not exclude, all columns at once.

    If the rows with a zero vary too much, so do all rows; see `_ruled_out`.
    """
    rows, labels = matrix[sample], variable.labels[sample]
    there = rows.copy()
    there.data = (rows.data != 0).astype(np.float64)
    n_zeros = len(sample) - np.asarray(there.sum(axis=0)).ravel()
    if variable.kind == "classes":
        members = (labels[:, None] == np.unique(labels)).astype(np.float64)
        zeros = members.sum(axis=0) - there.T @ members
        allowed = 1 + LENIENCE * TOLERANCE * (len(sample) - members.sum(axis=0).max())
        possible = n_zeros - zeros.max(axis=1) <= allowed
    else:
        moments = np.column_stack([labels - labels.mean(), np.square(labels - labels.mean())])
        sums, squares = (moments.sum(axis=0) - there.T @ moments).T
        scatter = squares - np.square(sums) / np.maximum(n_zeros, 1)
        possible = (n_zeros <= len(sample) / 2) | (scatter <= LENIENCE * TOLERANCE * moments[:, 1].sum())
    return np.flatnonzero(possible).tolist()


def columns_equal_to(variable: Variable, table: Table) -> list[int]:
    """List the positions of the columns that equal the variable wherever they have entries.

    Labels may differ, and numbers may be written as text.
    """
    places = []
    for j in columns_that_determine(variable, table, frozenset()):
        column = _comparable(table.column(j), variable)
        numbers = column.numbers()
        given = variable.given & ~np.isnan(numbers)
        numbers, labels = numbers[given], variable.labels[given]
        if variable.kind == "classes":
            same = len(np.unique(numbers)) == len(np.unique(labels)) > 1
        else:
            same = bool(abs(np.corrcoef(numbers, labels)[0, 1]) > 1 - 1e-9)
        if same:
            places.append(j)
    return places


def _values(column: Column, rows: Integers) -> Floats:
    """Return the column's numbers or codes, missing entries as a separate value."""
    whole = len(rows) == len(column)
    values = (column if whole else column.take(rows)).numbers()
    return np.where(np.isnan(values), -np.inf, values)


def _sorted(column: Column, variable: Variable, rows: Integers) -> tuple[npt.NDArray[Any], Integers]:
    """Return the variable's labels in the order of the column, and where each value of the column starts."""
    values, labels = _values(column, rows), variable.labels[rows]
    order = np.argsort(values, kind="stable")
    values, labels = values[order], labels[order]
    return labels, np.flatnonzero(np.r_[True, values[1:] != values[:-1]])


def _ruled_out(labels: npt.NDArray[Any], starts: Integers, *, ordered: bool) -> bool:
    """Return whether a sample shows that a column cannot determine a variable."""
    n = len(labels)
    if labels.dtype.kind == "f":
        return (
            _scatter(labels, starts) > LENIENCE * TOLERANCE
            and _scatter_of_order(labels, starts) > LENIENCE * TOLERANCE
        )
    minority, others, differ = _counted(labels, starts)
    lost = minority > 1 + LENIENCE * TOLERANCE * others
    repeats = (n - len(starts)) * differ >= EVIDENCE
    scatter = np.count_nonzero(np.diff(labels)) > 2 * len(np.unique(labels)) + LENIENCE * 0.01 * n * differ
    return bool(lost or (ordered and not repeats and scatter))


def _determines(labels: npt.NDArray[Any], starts: Integers, *, ordered: bool) -> bool:
    n = len(labels)
    if len(starts) < 2:
        return False
    if labels.dtype.kind == "f":
        if n - len(starts) >= max(EVIDENCE, n / 2) and _scatter(labels, starts) <= TOLERANCE:
            return True
        return ordered and n >= EVIDENCE and _scatter_of_order(labels, starts) <= TOLERANCE
    minority, others, differ = _counted(labels, starts)
    if minority > TOLERANCE * others:
        return False
    if (n - len(starts)) * differ >= EVIDENCE:
        return True
    expected = (n - 1) * differ
    few = np.count_nonzero(np.diff(labels)) <= max(len(np.unique(labels)) - 1, 0.01 * expected)
    return ordered and expected >= EVIDENCE and bool(few)


def _counted(labels: npt.NDArray[Any], starts: Integers) -> tuple[int, int, float]:
    """Count the rows that are not of the most frequent class, of their value of the column and of all.

    The last is the probability that two random rows differ in class.
    """
    n, members = len(labels), np.bincount(labels)
    groups = np.repeat(np.arange(len(starts)), np.diff(np.r_[starts, n]))
    cells, counts = np.unique(groups * len(members) + labels, return_counts=True)
    largest = np.maximum.reduceat(counts, np.flatnonzero(np.r_[True, np.diff(cells // len(members)) > 0]))
    return n - int(largest.sum()), n - int(members.max()), 1.0 - float(np.square(members / n).sum())


def _scatter(labels: npt.NDArray[Any], starts: Integers) -> float:
    """Return the share of the variance within the values of the column."""
    total = np.square(labels - labels.mean()).sum()
    if not total:
        return 0.0
    counts = np.diff(np.r_[starts, len(labels)])
    means = np.add.reduceat(labels, starts) / counts
    return float(np.square(labels - np.repeat(means, counts)).sum() / total)


def _scatter_of_order(labels: npt.NDArray[Any], starts: Integers) -> float:
    """Return how far the labels are from the order of the column: 1 - |rank correlation|.

    Rows of one value have one rank in the column.
    """
    if len(starts) < 2:
        return 1.0
    ranks = np.argsort(np.argsort(labels, kind="stable"), kind="stable")
    ends = np.r_[starts[1:], len(labels)]
    places = np.repeat((starts + ends - 1) / 2, ends - starts)
    return float(1.0 - abs(np.corrcoef(ranks, places)[0, 1]))
