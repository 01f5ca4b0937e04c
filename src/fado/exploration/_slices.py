"""Slices: rows that meet a few readable conditions and differ from the others beyond chance.

A beam search over conjunctions of at most three conditions. A slice is measured by the distance of its mean
from that of all rows, in standard deviations of the mean of as many random rows (the z of a permutation
test). Its p-value is multiplied by the number of possible conjunctions of its length and by the number of
lengths, which corrects for the search. A further condition must improve the slice: the slice must differ more
than its parts, and from the rest of the slice that it was added to.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, takewhile
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.sparse
from scipy.special import comb, ndtr

from fado._typing import Bools, Floats, Integers
from fado.exploration._explored import ExploredRows, Protected, written
from fado.exploration._groups import FEWEST_MEMBERS, ShownGroups
from fado.tabular import Variable
from fado.utility import BaseUtility, LinearUtility, utility_class, utility_names
from fado.valuation import Valuation

Drop = Callable[[Floats], Bools] | None  # marks the rows that would be dropped under some utilities
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
    is_feature: bool = True


def binned_columns(explored: ExploredRows) -> list[BinnedColumn]:
    """Cut every feature, and every protected attribute that is not among them, into readable parts."""
    found, sample = [], explored.sample
    for number, column in enumerate(explored.problem.table.columns):
        if column.levels is not None:
            found.append(_levels(number, column.name, column.codes(), column.levels, sample))
            continue
        numbers = column.numbers()
        drawn = numbers[sample]
        distinct = np.unique(drawn[~np.isnan(drawn)])
        if len(distinct) > FEW_NUMBERS:
            found.append(_cuts(number, column.name, numbers, sample))
            continue
        codes = np.searchsorted(distinct, numbers).astype(np.int32)
        inside = codes < len(distinct)
        inside[inside] &= distinct[codes[inside]] == numbers[inside]
        codes[~inside] = len(distinct)
        codes[np.isnan(numbers)] = -1
        names = [str(column.label_of(value)) for value in distinct]
        found.append(_levels(number, column.name, codes, names, sample))
    for attribute in explored.attributes:
        if attribute.position is None and not explored.problem.table.positions(attribute.name):
            found.append(_bin_variable(attribute.variable, len(found), sample))
    return found


def binned_target(explored: ExploredRows, number: int) -> BinnedColumn:
    """Cut the target into readable parts, under the user's name for it."""
    return _bin_variable(replace(explored.target, name=explored.target_name), number, explored.sample)


def _bin_variable(variable: Variable, number: int, sample: Integers) -> BinnedColumn:
    if variable.kind == "continuous":
        return replace(_cuts(number, variable.name, variable.labels, sample), is_feature=False)
    codes, names = variable.labels.astype(np.int32), [str(value) for value in variable.classes]
    if variable.has_missing:
        codes = np.where(codes == len(names) - 1, np.int32(-1), codes)
        names.pop()
    return replace(_levels(number, variable.name, codes, names, sample), is_feature=False)


def _levels(
    number: int, name: str, codes: npt.NDArray[np.int32], levels: Sequence[str], sample: Integers
) -> BinnedColumn:
    """Keep the most frequent levels; a code beyond all levels marks one that is not in the sample."""
    drawn = codes[sample]
    frequency = np.bincount(drawn[(drawn >= 0) & (drawn < len(levels))], minlength=len(levels))
    kept = np.sort(np.argsort(-frequency, kind="stable")[:MOST_LEVELS])
    place = np.full(len(levels) + 2, OTHER, dtype=np.uint8)
    place[kept] = np.arange(len(kept))
    place[-1] = ABSENT
    conditions = [Condition(number, j, j, f"{name} = {levels[level]}") for j, level in enumerate(kept)]
    return BinnedColumn(number, name, place[codes], (*conditions, _missing(number, name)))


def _cuts(number: int, name: str, numbers: Floats, sample: Integers) -> BinnedColumn:
    """Cut numbers at quantiles of the sample."""
    known = numbers[sample]
    known = known[~np.isnan(known)]
    edges = np.unique(np.quantile(known, CUTS, method="inverted_cdf"))
    edges = edges[edges < known.max()]
    codes = np.searchsorted(edges, numbers).astype(np.uint8)  # how many edges a number is over
    codes[np.isnan(numbers)] = ABSENT
    conditions = []
    for j, edge in enumerate(edges):
        conditions.append(Condition(number, 0, j, f"{name} ≤ {written(edge)}"))
        conditions.append(Condition(number, j + 1, len(edges), f"{name} > {written(edge)}"))
    return BinnedColumn(number, name, codes, (*conditions, _missing(number, name)))


def _missing(number: int, name: str) -> Condition:
    return Condition(number, ABSENT, ABSENT, f"{name} is missing")


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
        self._own_ends = [
            self._ends[stop - len(column.conditions) : stop, 1:].T
            for column, stop in zip(columns, last, strict=True)
        ]
        self._n_rows, self._variance = len(amounts), float(amounts.var())
        self._least = max(FEWEST_MEMBERS, math.ceil(LEAST_SHARE * len(amounts)))
        self._counts, self._sums = self._totals(amounts)
        self._asked = (self._counts >= self._least) & (self._counts <= len(amounts) - FEWEST_MEMBERS)
        self._tested = [
            most_conditions * float(comb(int(self._asked.sum()), length))
            for length in range(1, most_conditions + 1)
        ]

    def _totals(self, amounts: Floats, rows: Integers | None = None) -> tuple[Floats, Floats]:
        """Count the rows under every condition, and add up the amounts there."""
        amounts = amounts if rows is None else amounts[rows]
        counts: list[Floats] = [np.empty(0)]
        sums: list[Floats] = [np.empty(0)]
        for column, (low, high) in zip(self._columns, self._own_ends, strict=True):
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
        allowed = self._asked.copy()
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
            if keeps(rows) and all(_overlap(rows, other) <= MOST_OVERLAP for other in taken):
                taken.append(rows)
                conditions = tuple(self._conditions[j] for j in key)
                slices.append(Slice(conditions, z, self._p_value(key, z), self._tested[len(key) - 1]))
        return slices


def _overlap(first: Bools, second: Bools) -> float:
    """Give the rows in both of two slices, over the rows in either."""
    either = int((first | second).sum())
    return int((first & second).sum()) / either if either else 0.0


class _BeamSearch(ConditionTable):
    """One search: for high sums of a target whose mean is 0."""

    def clearest(self, most: int) -> list[Slice]:
        """List the slices that differ most, beyond chance."""
        self._z = permutation_z(self._counts, self._sums, self._n_rows, self._variance)
        singles = [int(j) for j in np.argsort(-self._z, kind="stable") if self._asked[j] and self._z[j] > 0]
        level: list[tuple[Key, float]] = [((j,), float(self._z[j])) for j in singles[:KEPT_OF_LENGTH]]
        found = list(level)
        for _ in range(1, MOST_CONDITIONS):
            children = {key: z for parent in level[:BEAM] for key, z in self._refined(*parent)}
            level = sorted(children.items(), key=_clearest_first)[:KEPT_OF_LENGTH]
            found += level
        clear = takewhile(lambda one: self._p_value(*one) <= SIGNIFICANCE, sorted(found, key=_clearest_first))
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


def _clearest_first(candidate: tuple[Key, float]) -> tuple[float, Key]:
    return -candidate[1], candidate[0]


class SliceFinder:
    """Find slices of the searched rows, and describe them over all its rows."""

    def __init__(self, explored: ExploredRows) -> None:
        self.explored, self.columns = explored, binned_columns(explored)
        self._codes = [column.codes[explored.sample].astype(np.intp) for column in self.columns]

    def find(
        self,
        target: Floats,
        *,
        highest: bool,
        most: int = MOST_SHOWN,
        among: Bools | None = None,
        without: Collection[int] = (),
    ) -> list[Slice]:
        """Find the slices whose mean of a target differs most, the clearest first.

        Parameters
        ----------
        target : ndarray
            One number per row, whether searched or not.
        highest : bool
            Whether to search for high means, not low ones.
        most : int
            How many slices at most; none overlaps another by half.
        among : ndarray of bool, optional
            Rows to look at; None is all.
        without : collection of int
            Numbers of the columns that conditions must not use.
        """
        rows = slice(None) if among is None else np.flatnonzero(among[self.explored.sample])
        target = target[self.explored.sample][rows]
        if len(target) < 2 * FEWEST_MEMBERS or target.min() == target.max():
            return []
        centred = (target - target.mean()) * (1.0 if highest else -1.0)
        unasked = set(without)
        columns = [column for column in self.columns if column.number not in unasked]
        codes = {column.number: self._codes[column.number][rows] for column in columns}
        return _BeamSearch(columns, codes, centred).clearest(most)

    def gives_away(self, attribute: Protected) -> list[dict[str, Any]]:
        """Describe the slices whose rows reveal their group: models are most certain about it.

        Conditions use only columns that the attribute's models saw. There are none for effects.
        """
        valuation, name = self.explored.valuation, attribute.name
        if valuation.scales[name].is_signed:
            return []
        hidden = {name, *self.explored.excluded_columns(name)}
        without = [one.number for one in self.columns if not one.is_feature or one.name in hidden]
        found = self.find(valuation[name], highest=False, without=without)
        return [self.described(one, [name], attribute.groups) | {"p_value": one.p_value} for one in found]

    def described(self, found: Slice, names: Sequence[str], groups: ShownGroups) -> dict[str, Any]:
        """Describe a slice over all rows; figures of too few rows, or of groups not compared, are None."""
        rows, valuation, outcome = found.rows(self.columns), self.explored.valuation, self.explored.outcome
        n_rows, counts = int(rows.sum()), groups.count(rows)
        told = np.isin(np.arange(len(groups)), groups.compared) & (counts >= FEWEST_MEMBERS)

        def per_group(amounts: npt.NDArray[Any], of: npt.NDArray[Any] | int) -> list[float | None]:
            shares = amounts / np.maximum(of, 1)
            return [float(own) if known else None for own, known in zip(shares, told, strict=True)]

        return {
            "conditions": found.texts,
            "rows": n_rows,
            "share": n_rows / len(self.explored),
            "mean_v_y": float(valuation["y"][rows].mean()),
            "mean_v_z": float(np.mean([valuation[name][rows].mean() for name in names])),
            "outcome": None if outcome is None else float(outcome[rows].mean()),
            "outcome_per_group": [None] * len(groups)
            if outcome is None
            else per_group(groups.total(np.where(rows, outcome, 0.0)), counts),
            "share_per_group": per_group(counts, n_rows),
        }


def usable_utilities(valuation: Valuation, names: Sequence[str]) -> dict[str, type[BaseUtility]]:
    """Give the utilities that accept these values: some refuse signed ones."""
    signed = any(valuation.scales[name].is_signed for name in ("y", *names))
    kinds = {name: utility_class(name) for name in utility_names()}
    return {name: kind for name, kind in kinds.items() if kind.takes_signed or not signed}


class SlicePool:
    """Slices that are high, low or dropped under some utility, found once and ranked under any.

    Utilities use the named protected attributes. Only droppable rows may be dropped.
    """

    def __init__(
        self, finder: SliceFinder, names: Sequence[str], drop: Drop, droppable: Bools | None
    ) -> None:
        self._finder, self._names, self._droppable = finder, names, droppable
        found: dict[tuple[Condition, ...], Slice] = {}
        for one in self._searched(finder.explored.valuation, drop):
            found.setdefault(one.conditions, one)
        self._slices = list(found.values())
        rows = [np.flatnonzero(one.rows(finder.columns)) for one in self._slices]
        ends, where = np.cumsum([0, *map(len, rows)]), np.concatenate([np.empty(0, dtype=np.intp), *rows])
        shape = len(rows), len(finder.explored)
        self._members = scipy.sparse.csr_array((np.ones(len(where)), where, ends), shape=shape)
        self._rows = np.asarray(self._members.sum(axis=1)).ravel()
        both = (self._members @ self._members.T).toarray()
        either = self._rows[:, None] + self._rows[None, :] - both
        self._overlap = both / np.maximum(either, 1.0)

    def _searched(self, valuation: Valuation, drop: Callable[[Floats], Bools] | None) -> Iterator[Slice]:
        """Search under utilities from the whole range of the slider."""
        kinds = usable_utilities(valuation, self._names).values()
        middle = [kind(alpha=0.5).over(self._names)(valuation) for kind in kinds]
        ends = [LinearUtility(alpha=alpha).over(self._names)(valuation) for alpha in (0.0, 1.0)]
        find, most = self._finder.find, FROM_EACH_SEARCH
        for target in (*middle, *ends):
            for highest in (True, False):
                yield from find(target, highest=highest, most=most)
        if drop is not None and self._droppable is not None and self._droppable.any():
            for target in (*middle[:2], *ends):
                gone = drop(target).astype(np.float64)
                yield from find(gone, highest=True, most=most, among=self._droppable)

    def described(self, groups: ShownGroups) -> list[dict[str, Any]]:
        """Describe every slice."""
        return [self._finder.described(one, self._names, groups) for one in self._slices]

    def ranked(self, utilities: Floats, dropped: Bools | None) -> dict[str, list[list[float]]]:
        """Rank the slices that differ clearly: by mean utility, and by the share that is dropped.

        Each is a list of pairs: the number of a slice, and its mean utility or the share of its droppable
        rows that is dropped.
        """
        if not self._slices:
            return {"highest": [], "lowest": [], "dropped": []}
        sums = self._members @ utilities
        means = sums / np.maximum(self._rows, 1.0)
        z = permutation_z(
            self._rows, sums - self._rows * utilities.mean(), len(utilities), float(utilities.var())
        )
        return {
            "highest": self._clear(means, z),
            "lowest": [[number, -mean] for number, mean in self._clear(-means, -z)],
            "dropped": [] if dropped is None else self._most_dropped(dropped),
        }

    def _most_dropped(self, dropped: Bools) -> list[list[float]]:
        droppable = self._droppable
        if droppable is None or not droppable.any():
            return []
        counts = self._members @ droppable.astype(np.float64)
        gone = self._members @ dropped.astype(np.float64)
        n_rows, overall = int(droppable.sum()), float(dropped.sum() / droppable.sum())
        z = permutation_z(counts, gone - counts * overall, n_rows, overall * (1 - overall))
        shares = np.where(counts >= FEWEST_MEMBERS, gone / np.maximum(counts, 1.0), 0.0)
        return self._clear(shares, np.where(counts >= FEWEST_MEMBERS, z, 0.0))

    def _clear(self, scores: Floats, z: Floats) -> list[list[float]]:
        """List the slices with the highest scores beyond chance, none overlapping another by half."""
        chosen: list[int] = []
        for number in np.argsort(-scores, kind="stable").tolist():
            if len(chosen) == MOST_RANKED:
                break
            if corrected(float(z[number]), self._slices[number].tested) > SIGNIFICANCE:
                continue
            if all(self._overlap[number, other] <= MOST_OVERLAP for other in chosen):
                chosen.append(number)
        return [[number, float(scores[number])] for number in chosen]
