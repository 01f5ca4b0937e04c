"""Find feature columns that alone determine a variable.

A raw age beside ``age >= 50`` would make every model sure of the group, and every fairness value zero.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from fado._frames import Column, Table
from fado._variables import Variable

__all__ = ["columns_equal_to", "columns_that_determine"]

SAMPLE = 20_000  # a column that determines a variable does so on any sample; only survivors are read whole
TOLERANCE = 0.001  # share of what guessing the commonest class (or the mean) leaves open
EVIDENCE = 10.0  # disagreements that chance alone would have shown, at the least


def columns_that_determine(variable: Variable, table: Table, skip: frozenset[int]) -> list[int]:
    """List the positions of the columns that alone determine a variable.

    For classes: every value of the column goes with one class, or the sorted column splits into a few
    stretches of one class each. For numbers: the column orders rows as the variable does, or each of its
    values goes with one number. Only as much evidence as chance cannot explain counts, so an identifier,
    whose values never repeat, is not reported.
    """
    known = variable.known
    if variable.kind == "classes":  # the group of missing entries was not made by any rule
        from fado._variables import MISSING

        if variable.classes[-1] == MISSING:
            known = variable.labels != len(variable.classes) - 1
    rows = np.flatnonzero(known)
    sample = rows if len(rows) <= SAMPLE else rows[:: -(-len(rows) // SAMPLE)]
    found = []
    for j, column in enumerate(table.columns):
        if j in skip or not _determines(column, variable, sample):
            continue
        if len(sample) == len(rows) or _determines(column, variable, rows):
            found.append(j)
    return found


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


def _determines(column: Column, variable: Variable, rows: npt.NDArray[np.intp]) -> bool:
    values, labels = _values(column, rows), variable.labels[rows]
    order = np.argsort(values, kind="stable")
    values, labels = values[order], labels[order]
    starts = np.flatnonzero(np.r_[True, values[1:] != values[:-1]])
    if len(starts) < 2:
        return False
    ordered = column.levels is None
    if variable.kind == "classes":
        return _determines_classes(labels, starts, ordered)
    return _determines_numbers(labels, starts, ordered)


def _determines_classes(labels: npt.NDArray[np.int32], starts: npt.NDArray[np.intp], ordered: bool) -> bool:
    n = len(labels)
    sizes = np.bincount(labels)
    disagreement = 1.0 - np.square(sizes / n).sum()  # two random rows
    groups = np.repeat(np.arange(len(starts)), np.diff(np.r_[starts, n]))
    n_classes = len(sizes)
    cells, counts = np.unique(groups * n_classes + labels, return_counts=True)
    largest = np.maximum.reduceat(counts, np.flatnonzero(np.r_[True, np.diff(cells // n_classes) > 0]))
    if n - largest.sum() > TOLERANCE * (n - sizes.max()):
        return False
    if (n - len(starts)) * disagreement >= EVIDENCE:
        return True
    changes = int((labels[1:] != labels[:-1]).sum())
    expected = (n - 1) * disagreement
    return ordered and expected >= EVIDENCE and changes <= max(n_classes - 1, 0.01 * expected)


def _determines_numbers(labels: npt.NDArray[np.float64], starts: npt.NDArray[np.intp], ordered: bool) -> bool:
    n = len(labels)
    total = np.square(labels - labels.mean()).sum()
    counts = np.diff(np.r_[starts, n])
    means = np.add.reduceat(labels, starts) / counts
    within = np.square(labels - np.repeat(means, counts)).sum()
    if within > TOLERANCE * total:
        return False
    if n - len(starts) >= EVIDENCE and len(starts) <= n / 2:
        return True
    ranks = np.argsort(np.argsort(labels, kind="stable"), kind="stable")
    return ordered and n >= EVIDENCE and bool(abs(np.corrcoef(ranks, np.arange(n))[0, 1]) > 1 - TOLERANCE)
