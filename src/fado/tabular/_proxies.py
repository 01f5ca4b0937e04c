"""Find feature columns that alone determine a variable.

A raw age beside ``age >= 50`` would make every model sure of the group, and every fairness value zero.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from fado.tabular._columns import Column
from fado.tabular._table import Table
from fado.tabular._variables import Variable

__all__ = ["columns_equal_to", "columns_that_determine"]

SAMPLE = 2_000  # rows that are enough to rule most columns out
TOLERANCE = 0.001  # share of what guessing the commonest class (or the mean) leaves open
EVIDENCE = 10.0  # disagreements that chance alone would have shown, at the least
LENIENCE = 20.0  # how much worse a column may do on the sample before it is ruled out


def columns_that_determine(variable: Variable, table: Table, skip: frozenset[int]) -> list[int]:
    """List the positions of the columns that alone determine a variable.

    For classes: every value of the column goes with one class, or the sorted column splits into a few
    stretches of one class each. For numbers: the column orders rows as the variable does, or each of its
    values goes with one number. Only as much evidence as chance cannot explain counts, so an identifier,
    whose values never repeat, is not reported.
    """
    known = variable.known
    if variable.has_missing:  # a group that no rule made
        known = variable.labels != len(variable.classes) - 1
    rows = np.flatnonzero(known)
    sample = rows[:: max(1, len(rows) // SAMPLE)]
    return [
        j
        for j, column in enumerate(table.columns)
        if j not in skip
        and not _ruled_out(*_sorted(column, variable, sample), ordered=column.levels is None)
        and _determines(*_sorted(column, variable, rows), ordered=column.levels is None)
    ]


def columns_equal_to(variable: Variable, table: Table) -> list[int]:
    """List the positions of the columns that are the variable itself, perhaps under other labels."""
    found = []
    for j in columns_that_determine(variable, table, frozenset()):
        values = _values(table.columns[j], np.arange(table.n_rows))
        if variable.kind == "classes":
            same = len(np.unique(values)) == len(variable.classes)
        else:
            same = bool(abs(np.corrcoef(values, variable.labels)[0, 1]) > 1 - 1e-9)
        if same:
            found.append(j)
    return found


def _values(column: Column, rows: npt.NDArray[np.intp]) -> npt.NDArray[np.float64]:
    """Give the column's numbers or codes, missing entries as a value of their own."""
    whole = len(rows) == len(column)
    values = (column if whole else column.take(rows)).numbers()
    return np.where(np.isnan(values), -np.inf, values)


def _sorted(
    column: Column, variable: Variable, rows: npt.NDArray[np.intp]
) -> tuple[npt.NDArray[Any], npt.NDArray[np.intp]]:
    """Give the variable's labels in the order of the column, and where each value of the column starts."""
    values, labels = _values(column, rows), variable.labels[rows]
    order = np.argsort(values, kind="stable")
    values, labels = values[order], labels[order]
    return labels, np.flatnonzero(np.r_[True, values[1:] != values[:-1]])


def _ruled_out(labels: npt.NDArray[Any], starts: npt.NDArray[np.intp], *, ordered: bool) -> bool:
    """Tell from a sample that a column cannot determine a variable: its labels scatter too much."""
    n = len(labels)
    if labels.dtype.kind == "f":
        return (
            _scatter(labels, starts) > LENIENCE * TOLERANCE
            and _scatter_of_order(labels) > LENIENCE * TOLERANCE
        )
    lost = _minority(labels, starts) > 1 + LENIENCE * TOLERANCE * (n - np.bincount(labels).max())
    repeats = (n - len(starts)) * _disagreement(labels) >= EVIDENCE
    scatter = _changes(labels) > 2 * len(np.unique(labels)) + LENIENCE * 0.01 * n * _disagreement(labels)
    return bool(lost or (ordered and not repeats and scatter))


def _determines(labels: npt.NDArray[Any], starts: npt.NDArray[np.intp], *, ordered: bool) -> bool:
    n = len(labels)
    if len(starts) < 2:
        return False
    if labels.dtype.kind == "f":
        if n - len(starts) >= max(EVIDENCE, n / 2) and _scatter(labels, starts) <= TOLERANCE:
            return True
        return ordered and n >= EVIDENCE and _scatter_of_order(labels) <= TOLERANCE
    if _minority(labels, starts) > TOLERANCE * (n - np.bincount(labels).max()):
        return False
    if (n - len(starts)) * _disagreement(labels) >= EVIDENCE:
        return True
    expected = (n - 1) * _disagreement(labels)
    few = _changes(labels) <= max(len(np.unique(labels)) - 1, 0.01 * expected)
    return ordered and expected >= EVIDENCE and few


def _disagreement(labels: npt.NDArray[Any]) -> float:
    """Give the probability that two random rows differ in class."""
    return float(1.0 - np.square(np.bincount(labels) / len(labels)).sum())


def _changes(labels: npt.NDArray[Any]) -> int:
    return int((labels[1:] != labels[:-1]).sum())


def _minority(labels: npt.NDArray[Any], starts: npt.NDArray[np.intp]) -> int:
    """Count the rows that are not of the commonest class of their value of the column."""
    n, n_classes = len(labels), int(labels.max()) + 1
    groups = np.repeat(np.arange(len(starts)), np.diff(np.r_[starts, n]))
    cells, counts = np.unique(groups * n_classes + labels, return_counts=True)
    largest = np.maximum.reduceat(counts, np.flatnonzero(np.r_[True, np.diff(cells // n_classes) > 0]))
    return int(n - largest.sum())


def _scatter(labels: npt.NDArray[Any], starts: npt.NDArray[np.intp]) -> float:
    """Give the share of the variance that is left within the values of the column."""
    total = np.square(labels - labels.mean()).sum()
    counts = np.diff(np.r_[starts, len(labels)])
    means = np.add.reduceat(labels, starts) / counts
    return float(np.square(labels - np.repeat(means, counts)).sum() / total)


def _scatter_of_order(labels: npt.NDArray[Any]) -> float:
    """Give how far the labels, in the order of the column, are from being sorted: 1 - |rank correlation|."""
    ranks = np.argsort(np.argsort(labels, kind="stable"), kind="stable")
    return float(1.0 - abs(np.corrcoef(ranks, np.arange(len(labels)))[0, 1]))
