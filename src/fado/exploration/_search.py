"""Search for slices: conjunctions of readable conditions whose rows stand out.

A beam search over conjunctions of at most three conditions. A slice is measured by its distance from the
mean of all rows, in standard deviations of the mean of as many rows drawn at random (a permutation test's z).
Its p-value is multiplied by the number of conjunctions of its length that could have been asked for, times
the number of lengths, so that the search itself cannot make chance look like a finding. A further condition
must earn its place: the slice must stand out more than its parts, and from the rest of what it was cut from.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate

import numpy as np
import numpy.typing as npt
from scipy.special import comb, ndtr

from fado.exploration._conditions import BinnedColumn, Condition
from fado.exploration._groups import FEWEST_MEMBERS

__all__ = [
    "LEAST_SHARE",
    "MOST_OVERLAP",
    "SIGNIFICANCE",
    "ConditionTable",
    "Slice",
    "SliceSearch",
    "corrected",
    "overlap",
    "permutation_z",
    "rows_of",
]

FloatArray = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

MOST_CONDITIONS = 3
LEAST_SHARE = 0.01
MOST_SHARE = 0.5  # what holds for most rows is better said of the others
SIGNIFICANCE = 0.05
BEAM = 8
MOST_OVERLAP = 0.5  # rows in both of two slices, over rows in either
KEPT_OF_LENGTH = 40  # candidates per number of conditions


@dataclass(frozen=True)
class Slice:
    """A conjunction of conditions, with its z, its corrected p-value, and the factor of that correction."""

    conditions: tuple[Condition, ...]
    z: float
    p_value: float
    tested: float


@dataclass(frozen=True)
class _Candidate:
    key: tuple[int, ...]  # positions among the conditions that are searched
    z: float


class SliceSearch:
    """Search the rows of a sample again and again, for different targets.

    Parameters
    ----------
    columns : sequence of BinnedColumn
        What conditions are about.
    sample : ndarray
        The rows to search.
    """

    def __init__(self, columns: Sequence[BinnedColumn], sample: npt.NDArray[np.intp]) -> None:
        self._columns = columns
        self._codes = [column.codes[sample].astype(np.intp) for column in columns]

    def find(
        self,
        target: FloatArray,
        *,
        highest: bool,
        most: int,
        among: Bools | None = None,
        without: Collection[int] = (),
    ) -> list[Slice]:
        """Find the slices whose mean of a target stands out most, the clearest first.

        Parameters
        ----------
        target : ndarray
            One number per row of the sample.
        highest : bool
            Whether to look for high means rather than low ones.
        most : int
            How many slices at most; none overlaps another by half.
        among : ndarray of bool, optional
            Rows to look at; None is all.
        without : collection of int
            Numbers of the columns to ask nothing about.
        """
        rows = slice(None) if among is None else np.flatnonzero(among)
        target = target[rows]
        if len(target) < 2 * FEWEST_MEMBERS or target.min() == target.max():
            return []
        centred = (target - target.mean()) * (1.0 if highest else -1.0)
        unasked = set(without)
        columns = [column for number, column in enumerate(self._columns) if number not in unasked]
        codes = {column.number: self._codes[column.number][rows] for column in columns}
        return _Search(columns, codes, centred).clearest(most)


class ConditionTable:
    """All conditions that can be asked of some rows: which rows meet them, and what amounts add up to there.

    Parameters
    ----------
    columns : sequence of BinnedColumn
        What conditions are about.
    codes : mapping of int to ndarray
        The rows' codes in each column, by the column's number.
    amounts : ndarray
        One number per row.
    """

    def __init__(
        self, columns: Sequence[BinnedColumn], codes: Mapping[int, npt.NDArray[np.intp]], amounts: FloatArray
    ) -> None:
        self._columns, self._codes, self._amounts = columns, codes, amounts
        self._conditions = [condition for column in columns for condition in column.conditions]
        self._ends = np.array([(one.column, one.low, one.high) for one in self._conditions]).reshape(-1, 3)
        last = list(accumulate(len(column.conditions) for column in columns))
        self._own_ends = [
            self._ends[stop - len(column.conditions) : stop, 1:].T
            for column, stop in zip(columns, last, strict=True)
        ]

    def _nested(self, key: Sequence[int]) -> Bools:
        """Mark the conditions that hold wherever one of the slice's own does, or the other way round."""
        nested = np.zeros(len(self._conditions), dtype=bool)
        for j in key:
            column, low, high = self._ends[j]
            wider = (self._ends[:, 1] <= low) & (self._ends[:, 2] >= high)
            narrower = (self._ends[:, 1] >= low) & (self._ends[:, 2] <= high)
            nested |= (self._ends[:, 0] == column) & (wider | narrower)
        return nested

    def _totals(self, rows: npt.NDArray[np.intp] | None) -> tuple[FloatArray, FloatArray]:
        """Count the rows under every condition, and add up the amounts there."""
        amounts = self._amounts if rows is None else self._amounts[rows]
        counts: list[FloatArray] = []
        sums: list[FloatArray] = []
        for column, (low, high) in zip(self._columns, self._own_ends, strict=True):
            codes = self._codes[column.number] if rows is None else self._codes[column.number][rows]
            for totals, weights in ((counts, None), (sums, amounts)):
                upto = np.concatenate([[0.0], np.cumsum(np.bincount(codes, weights, minlength=256))])
                totals.append(upto[high + 1] - upto[low])
        if not counts:
            return np.empty(0), np.empty(0)
        return np.concatenate(counts), np.concatenate(sums)

    def _rows(self, key: Sequence[int]) -> Bools:
        rows = np.ones(len(self._amounts), dtype=bool)
        for j in key:
            condition = self._conditions[j]
            rows &= condition.holds(self._codes[condition.column])
        return rows


class _Search(ConditionTable):
    """One search: for high sums of a target whose mean is 0."""

    def __init__(
        self, columns: Sequence[BinnedColumn], codes: Mapping[int, npt.NDArray[np.intp]], centred: FloatArray
    ) -> None:
        super().__init__(columns, codes, centred)
        self._centred = centred
        self._least = max(FEWEST_MEMBERS, math.ceil(LEAST_SHARE * len(centred)))
        self._counts, sums = self._totals(None)
        self._asked = (self._counts >= self._least) & (self._counts <= len(centred) - FEWEST_MEMBERS)
        self._z = permutation_z(self._counts, sums, len(centred), float(centred.var()))
        lengths = range(1, MOST_CONDITIONS + 1)
        self._tested = [MOST_CONDITIONS * float(comb(int(self._asked.sum()), length)) for length in lengths]

    def clearest(self, most: int) -> list[Slice]:
        """List the slices that stand out most, beyond chance, none half inside another."""
        slices: list[Slice] = []
        chosen: list[Bools] = []
        for candidate in sorted(self._grown(), key=lambda one: (-one.z, one.key)):
            factor = self._tested[len(candidate.key) - 1]
            p_value = corrected(candidate.z, factor)
            if len(slices) == most or p_value > SIGNIFICANCE:
                break
            rows = self._rows(candidate.key)
            if rows.mean() <= MOST_SHARE and all(overlap(rows, other) <= MOST_OVERLAP for other in chosen):
                chosen.append(rows)
                conditions = tuple(self._conditions[j] for j in candidate.key)
                slices.append(Slice(conditions, candidate.z, p_value, factor))
        return slices

    def _grown(self) -> list[_Candidate]:
        """Grow conjunctions from the clearest conditions."""
        singles = [int(j) for j in np.argsort(-self._z, kind="stable") if self._asked[j] and self._z[j] > 0]
        level = [_Candidate((j,), float(self._z[j])) for j in singles[:KEPT_OF_LENGTH]]
        found = list(level)
        for _ in range(1, MOST_CONDITIONS):
            children = {child.key: child for parent in level[:BEAM] for child in self._refined(parent)}
            level = sorted(children.values(), key=lambda one: (-one.z, one.key))[:KEPT_OF_LENGTH]
            found += level
        return found

    def _refined(self, parent: _Candidate) -> list[_Candidate]:
        """Add one condition to a slice, in every way that earns its place."""
        rows = np.flatnonzero(self._rows(parent.key))
        inside = self._centred[rows]
        counts, sums = self._totals(rows)
        overall = permutation_z(counts, sums, len(self._centred), float(self._centred.var()))
        within = permutation_z(counts, sums - counts * inside.mean(), len(inside), float(inside.var()))
        earns = (
            self._asked
            & ~self._nested(parent.key)
            & (counts >= self._least)
            & (counts < len(inside))
            & (overall > parent.z)
            & (overall > self._z)
            & (ndtr(-within) * self._tested[len(parent.key)] <= SIGNIFICANCE)
        )
        return [
            _Candidate(tuple(sorted((*parent.key, int(j)))), float(overall[j])) for j in np.flatnonzero(earns)
        ]


def corrected(z: float, tested: float) -> float:
    """Give the p-value of a z, one-sided, for as many tests as could have been made."""
    return min(1.0, float(ndtr(-z)) * tested)


def rows_of(conditions: Sequence[Condition], columns: Sequence[BinnedColumn]) -> Bools:
    """Mark the rows, of all rows, that meet every condition."""
    rows = conditions[0].holds(columns[conditions[0].column].codes)
    for condition in conditions[1:]:
        rows &= condition.holds(columns[condition.column].codes)
    return rows


def permutation_z(
    counts: npt.NDArray[np.number], sums: FloatArray, n_rows: int, variance: float
) -> FloatArray:
    """Give how far a slice's mean lies from 0, the mean of all rows, against as many rows drawn at random."""
    with np.errstate(divide="ignore", invalid="ignore"):
        spread = np.sqrt(variance * counts * (n_rows - counts) / max(n_rows - 1, 1))
        return np.where(spread > 0, sums / spread, 0.0)


def overlap(first: Bools, second: Bools) -> float:
    """Give the rows in both of two slices, over the rows in either."""
    either = int((first | second).sum())
    return int((first & second).sum()) / either if either else 0.0
