"""Slices: rows that meet a few readable conditions and differ from the others beyond chance.

A beam search over conjunctions of at most three conditions. A slice is measured by the distance of its mean
from that of all rows, in standard deviations of the mean of as many random rows (the z of a permutation
test). Its p-value is multiplied by the number of possible conjunctions of its length and by the number of
lengths, which corrects for the search. A further condition must improve the slice: the slice must differ more
than its parts, and from the rest of the slice that it was added to.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, takewhile
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.sparse
from scipy.special import comb, ndtr

from fado._typing import Bools, Floats, Integers
from fado.exploration._explored import ExploredRows, written
from fado.exploration._groups import FEWEST_MEMBERS, ShownGroups, divided
from fado.tabular import Column
from fado.utility import BaseUtility, LinearUtility, utility_class, utility_names
from fado.valuation import Valuation

Key = tuple[int, ...]  # positions among the conditions that are searched

MOST_LEVELS = 30
FEW_NUMBERS = 10  # at most this many distinct numbers are treated as levels
CUTS = (0.1, 0.25, 0.5, 0.75, 0.9)
OTHER, ABSENT = 254, 255  # codes of rare levels and of missing entries

MOST_CONDITIONS = 3
LEAST_SHARE = 0.01
MOST_SHARE = 0.5  # of the rows in a slice
SIGNIFICANCE = 0.05
BEAM = 8
MOST_OVERLAP = 0.5  # rows in both of two slices, over rows in either
KEPT_OF_LENGTH = 40  # candidates per number of conditions
MOST_SHOWN = 5
FROM_EACH_SEARCH = 6  # slices of the slider's pool
MOST_RANKED = 4  # of them, for a setting of the slider


@dataclass(frozen=True)
class Condition:
    """Rows whose code in a column lies between two ends; `text` states it in the column's own values."""

    column: int
    low: int
    high: int
    text: str

    def holds(self, codes: npt.NDArray[np.integer]) -> Bools:
        """Mark the rows, given their codes in the column, that meet the condition."""
        return (codes >= self.low) & (codes <= self.high)


@dataclass(frozen=True)
class BinnedColumn:
    """A column as small codes with its possible conditions, and its place among the columns."""

    number: int
    name: str
    codes: npt.NDArray[np.uint8]
    conditions: tuple[Condition, ...]


def binned_columns(explored: ExploredRows) -> list[BinnedColumn]:
    """Cut every feature, and every protected attribute that is not among them, into readable parts."""
    table, sources = explored.problem.table, explored.problem.sources[1:]
    columns = list(table.columns)
    for attribute, source in zip(explored.attributes, sources, strict=True):
        if attribute.position is None and not table.positions(attribute.name):
            columns.append(source)
    return [binned_column(number, column, explored.sample) for number, column in enumerate(columns)]


def binned_column(number: int, column: Column, sample: Integers) -> BinnedColumn:
    """Cut a column: the most frequent levels of the sample, or numbers at quantiles of the sample."""
    name, missing = column.name, Condition(number, ABSENT, ABSENT, f"{column.name} is missing")
    if column.levels is not None:
        codes, levels = column.codes(), list(column.levels)
    else:
        numbers = column.numbers()
        known = numbers[sample]
        known = known[~np.isnan(known)]
        distinct = np.unique(known)
        if len(distinct) > FEW_NUMBERS:
            edges = np.unique(np.quantile(known, CUTS, method="inverted_cdf"))
            edges = edges[edges < known.max()]
            bins = np.searchsorted(edges, numbers).astype(np.uint8)  # how many edges a number is over
            bins[np.isnan(numbers)] = ABSENT
            conditions = []
            for j, edge in enumerate(edges):
                conditions.append(Condition(number, 0, j, f"{name} ≤ {written(edge)}"))
                conditions.append(Condition(number, j + 1, len(edges), f"{name} > {written(edge)}"))
            return BinnedColumn(number, name, bins, (*conditions, missing))
        codes = np.searchsorted(distinct, numbers).astype(np.int32)
        inside = codes < len(distinct)
        inside[inside] &= distinct[codes[inside]] == numbers[inside]
        codes[~inside] = len(distinct)  # beyond all levels: not in the sample
        codes[np.isnan(numbers)] = -1
        levels = [str(column.label_of(value)) for value in distinct]
    drawn = codes[sample]
    frequency = np.bincount(drawn[(drawn >= 0) & (drawn < len(levels))], minlength=len(levels))
    kept = np.sort(np.argsort(-frequency, kind="stable")[:MOST_LEVELS])
    place = np.full(len(levels) + 2, OTHER, dtype=np.uint8)
    place[kept] = np.arange(len(kept))
    place[-1] = ABSENT
    conditions = [Condition(number, j, j, f"{name} = {levels[level]}") for j, level in enumerate(kept)]
    return BinnedColumn(number, name, place[codes], (*conditions, missing))


class Slice(NamedTuple):
    """A conjunction of conditions, with its z, its corrected p-value, and the factor of the correction."""

    conditions: tuple[Condition, ...]
    z: float
    p_value: float
    tested: float

    @property
    def texts(self) -> list[str]:
        """The conditions in words."""
        return [condition.text for condition in self.conditions]

    def rows(self, columns: Sequence[BinnedColumn]) -> Bools:
        """Mark the rows, of all rows, that meet every condition."""
        return np.logical_and.reduce([one.holds(columns[one.column].codes) for one in self.conditions])


def corrected(z: float, tested: float) -> float:
    """Give the one-sided p-value of a z, corrected for the number of possible tests."""
    return min(1.0, float(ndtr(-z)) * tested)


def permutation_z(
    counts: npt.NDArray[np.number], sums: Floats, n_rows: int | Floats, variance: float | Floats
) -> Floats:
    """Give the distance of a slice's mean from 0, the mean of all rows, relative to random rows."""
    with np.errstate(divide="ignore", invalid="ignore"):
        spread = np.sqrt(
            np.maximum(variance, 0.0) * counts * (n_rows - counts) / np.maximum(np.subtract(n_rows, 1), 1)
        )
        return np.where(spread > 0, sums / spread, 0.0)


class ConditionTable:
    """All possible conditions on some rows: which rows meet them, and the sums of amounts there.

    Parameters
    ----------
    columns : sequence of BinnedColumn
        The columns of the conditions.
    codes : mapping of int to ndarray
        The rows' codes in each column, by the column's number.
    amounts : ndarray
        One number per row.
    most_conditions : int
        How many conditions a slice may have.
    """

    def __init__(
        self,
        columns: Sequence[BinnedColumn],
        codes: Mapping[int, Integers],
        amounts: Floats,
        most_conditions: int = MOST_CONDITIONS,
    ) -> None:
        self._columns, self._codes, self._amounts = columns, codes, amounts
        self._conditions = [condition for column in columns for condition in column.conditions]
        self._ends = np.array([(one.column, one.low, one.high) for one in self._conditions]).reshape(-1, 3)
        last = list(accumulate(len(column.conditions) for column in columns))
        self._spans = [
            self._ends[stop - len(column.conditions) : stop, 1:].T
            for column, stop in zip(columns, last, strict=True)
        ]
        self._n_rows, self._variance = len(amounts), float(amounts.var())
        self._least = max(FEWEST_MEMBERS, math.ceil(LEAST_SHARE * len(amounts)))
        self._counts, self._sums = self._totals(amounts)
        self._large_enough = (self._counts >= self._least) & (self._counts <= len(amounts) - FEWEST_MEMBERS)
        self._tested = [
            most_conditions * float(comb(int(self._large_enough.sum()), length))
            for length in range(1, most_conditions + 1)
        ]

    def _totals(self, amounts: Floats, rows: Integers | None = None) -> tuple[Floats, Floats]:
        """Count the rows under every condition, and add up the amounts there."""
        amounts = amounts if rows is None else amounts[rows]
        counts: list[Floats] = [np.empty(0)]
        sums: list[Floats] = [np.empty(0)]
        for column, (low, high) in zip(self._columns, self._spans, strict=True):
            codes = self._codes[column.number] if rows is None else self._codes[column.number][rows]
            for totals, weights in ((counts, None), (sums, amounts)):
                upto = np.concatenate([[0.0], np.cumsum(np.bincount(codes, weights, minlength=256))])
                totals.append(upto[high + 1] - upto[low])
        return np.concatenate(counts), np.concatenate(sums)

    def _rows(self, key: Key) -> Bools:
        """Mark the rows that meet some conditions."""
        rows = np.ones(self._n_rows, dtype=bool)
        for j in key:
            condition = self._conditions[j]
            rows &= condition.holds(self._codes[condition.column])
        return rows

    def _may_join(self, key: Key) -> Bools:
        """Mark the conditions that may be added to a slice: none that contains it or is part of its own."""
        allowed = self._large_enough.copy()
        for j in key:
            column, low, high = self._ends[j]
            wider = (self._ends[:, 1] <= low) & (self._ends[:, 2] >= high)
            narrower = (self._ends[:, 1] >= low) & (self._ends[:, 2] <= high)
            allowed &= ~((self._ends[:, 0] == column) & (wider | narrower))
        return allowed

    def _p_value(self, key: Key, z: float) -> float:
        return corrected(z, self._tested[len(key) - 1])

    def _chosen(
        self, candidates: Iterable[tuple[Key, float]], most: int, keeps: Callable[[Bools], bool]
    ) -> list[Slice]:
        """Take the first candidates whose rows are allowed, none overlapping another by half."""
        slices: list[Slice] = []
        taken: list[Bools] = []
        for key, z in candidates:
            if len(slices) == most:
                break
            rows = self._rows(key)
            apart = ((rows & other).sum() <= MOST_OVERLAP * (rows | other).sum() for other in taken)
            if keeps(rows) and all(apart):
                taken.append(rows)
                conditions = tuple(self._conditions[j] for j in key)
                slices.append(Slice(conditions, z, self._p_value(key, z), self._tested[len(key) - 1]))
        return slices


class _BeamSearch(ConditionTable):
    """One search: for high sums of a target whose mean is 0."""

    def clearest(self, most: int) -> list[Slice]:
        """List the slices that differ most, beyond chance."""
        self._z = permutation_z(self._counts, self._sums, self._n_rows, self._variance)
        singles = [
            int(j) for j in np.argsort(-self._z, kind="stable") if self._large_enough[j] and self._z[j] > 0
        ]
        level: list[tuple[Key, float]] = [((j,), float(self._z[j])) for j in singles[:KEPT_OF_LENGTH]]
        candidates = list(level)
        clearest_first = lambda one: (-one[1], one[0])  # noqa: E731
        for _ in range(1, MOST_CONDITIONS):
            children = {key: z for parent in level[:BEAM] for key, z in self._refined(*parent)}
            level = sorted(children.items(), key=clearest_first)[:KEPT_OF_LENGTH]
            candidates += level
        clear = takewhile(
            lambda one: self._p_value(*one) <= SIGNIFICANCE, sorted(candidates, key=clearest_first)
        )
        return self._chosen(clear, most, lambda rows: bool(rows.mean() <= MOST_SHARE))

    def _refined(self, key: Key, z: float) -> Iterator[tuple[Key, float]]:
        """Add one condition to a slice, in every way that improves it."""
        rows = np.flatnonzero(self._rows(key))
        inside = self._amounts[rows]
        counts, sums = self._totals(self._amounts, rows)
        overall = permutation_z(counts, sums, self._n_rows, self._variance)
        within = permutation_z(counts, sums - counts * inside.mean(), len(inside), float(inside.var()))
        earns = (
            self._may_join(key)
            & (counts >= self._least)
            & (counts < len(inside))
            & (overall > z)
            & (overall > self._z)
            & (ndtr(-within) * self._tested[len(key)] <= SIGNIFICANCE)
        )
        for j in np.flatnonzero(earns).tolist():
            yield tuple(sorted((*key, j))), float(overall[j])


class SliceFinder:
    """Find slices of the searched rows, and describe them over all rows."""

    def __init__(self, explored: ExploredRows) -> None:
        self.explored, self.columns = explored, binned_columns(explored)
        self._codes = {one.number: one.codes[explored.sample].astype(np.intp) for one in self.columns}

    def find(self, target: Floats, most: int = MOST_SHOWN) -> list[Slice]:
        """Find the slices of the clearest high means of a target, which has a number for every row."""
        target = target[self.explored.sample]
        if len(target) < 2 * FEWEST_MEMBERS or target.min() == target.max():
            return []
        return _BeamSearch(self.columns, self._codes, target - target.mean()).clearest(most)

    def described(self, part: Slice, names: Sequence[str], groups: ShownGroups) -> dict[str, Any]:
        """Describe a slice over all rows; figures of too few rows, or of groups not compared, are None."""
        rows, valuation, outcome = part.rows(self.columns), self.explored.valuation, self.explored.outcome
        n_rows, counts = int(rows.sum()), groups.count(rows)
        shown = counts * ((counts >= FEWEST_MEMBERS) & (np.arange(len(groups)) < groups.n_compared))
        return {
            "conditions": part.texts,
            "rows": n_rows,
            "share": n_rows / len(self.explored),
            "mean_v_y": float(valuation["y"][rows].mean()),
            "mean_v_z": float(np.mean([valuation[name][rows].mean() for name in names])),
            "outcome": None if outcome is None else float(outcome[rows].mean()),
            "outcome_per_group": [None] * len(groups)
            if outcome is None
            else divided(groups.total(np.where(rows, outcome, 0.0)), shown),
        }


def usable_utilities(valuation: Valuation, names: Sequence[str]) -> dict[str, type[BaseUtility]]:
    """Give the utilities that accept these values: some refuse signed ones."""
    signed = any(valuation.scales[name].is_signed for name in ("y", *names))
    kinds = {name: utility_class(name) for name in utility_names()}
    return {name: kind for name, kind in kinds.items() if kind.takes_signed or not signed}


class SlicePool:
    """Slices that are high or low under some utility, found once and ranked under any."""

    def __init__(self, finder: SliceFinder, names: Sequence[str]) -> None:
        self._finder, self._names = finder, names
        valuation = finder.explored.valuation
        utilities = [kind(alpha=0.5) for kind in usable_utilities(valuation, names).values()]
        utilities += [LinearUtility(alpha=alpha) for alpha in (0.0, 1.0)]
        slices: dict[tuple[Condition, ...], Slice] = {}
        for utility in utilities:  # from the whole range of the slider
            target = utility.over(names)(valuation)
            for one in (*finder.find(target, FROM_EACH_SEARCH), *finder.find(-target, FROM_EACH_SEARCH)):
                slices.setdefault(one.conditions, one)
        self._slices = list(slices.values())
        rows = [np.flatnonzero(one.rows(finder.columns)) for one in self._slices]
        ends, where = np.cumsum([0, *map(len, rows)]), np.concatenate([np.empty(0, dtype=np.intp), *rows])
        shape = len(rows), len(finder.explored)
        self._members = scipy.sparse.csr_array((np.ones(len(where)), where, ends), shape=shape)
        self._rows = np.asarray(self._members.sum(axis=1)).ravel()
        both = (self._members @ self._members.T).toarray()
        either = self._rows[:, None] + self._rows[None, :] - both
        self._overlap = both / np.maximum(either, 1.0)

    def described(self, groups: ShownGroups) -> list[dict[str, Any]]:
        """Describe every slice."""
        return [self._finder.described(one, self._names, groups) for one in self._slices]

    def ranked(self, utilities: Floats) -> dict[str, list[list[float]]]:
        """Rank the slices that differ clearly by mean utility: pairs of a slice's number and its mean."""
        ranked: dict[str, list[list[float]]] = {"highest": [], "lowest": []}
        if not self._slices:
            return ranked
        sums = self._members @ utilities
        means, off = sums / np.maximum(self._rows, 1.0), sums - self._rows * utilities.mean()
        z = permutation_z(self._rows, off, len(utilities), float(utilities.var()))
        for key, sign in (("highest", 1.0), ("lowest", -1.0)):
            chosen: list[int] = []
            for number in np.argsort(-sign * means, kind="stable").tolist():
                clear = corrected(sign * float(z[number]), self._slices[number].tested) <= SIGNIFICANCE
                if clear and all(self._overlap[number, other] <= MOST_OVERLAP for other in chosen):
                    chosen.append(number)
                    if len(chosen) == MOST_RANKED:
                        break
            ranked[key] = [[number, float(means[number])] for number in chosen]
        return ranked
