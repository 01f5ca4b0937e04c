"""Which entries are least, of more than memory holds: found by passes that narrow an interval."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["Cuts", "Entries", "ordered_keys", "select_least"]

FloatArray = npt.NDArray[np.float64]
Keys = npt.NDArray[np.uint64]
Codes = npt.NDArray[np.int64]

MOST_HELD = 100_000  # entries that are collected and sorted in the end
MOST_BINS = 1 << 19  # of all groups together, of 32 bytes each
_MOST_BITS = 16  # of a key that one pass looks at
_LAST = 2**64 - 1


@dataclass(frozen=True)
class Entries:
    """Rows of groups that lose some.

    Parameters
    ----------
    groups : ndarray of int
        The group of each.
    keys, ties : ndarray of uint64
        By which they are ordered: ties where keys are equal. No two of a group share both.
    weights : ndarray
        What each weighs, more than 0.
    """

    groups: Codes
    keys: Keys
    ties: Keys
    weights: FloatArray


@dataclass(frozen=True)
class Cuts:
    """Per group the last entry that goes.

    Parameters
    ----------
    some : ndarray of bool
        Whether any goes.
    keys, ties : ndarray of uint64
        Of the last.
    """

    some: npt.NDArray[np.bool_]
    keys: Keys
    ties: Keys

    def go(self, groups: Codes, keys: Keys, ties: Keys) -> npt.NDArray[np.bool_]:
        """Mark the rows that go: up to the last of their group, of whatever weight."""
        key = self.keys[groups]
        before = (keys < key) | ((keys == key) & (ties <= self.ties[groups]))
        return before & self.some[groups]


def ordered_keys(numbers: FloatArray) -> Keys:
    """Give whole numbers that are ordered as these numbers are, and equal where they are.

    Examples
    --------
    >>> ordered_keys(np.array([0.5, -1.0, 2.0, -0.0, 0.0])).argsort(kind="stable")
    array([1, 3, 4, 0, 2])
    """
    bits = (np.asarray(numbers, dtype=np.float64) + 0.0).view(np.uint64)  # + 0.0: one zero, not two
    top = np.uint64(1 << 63)
    return np.where(bits & top, ~bits, bits | top)


def select_least(
    entries: Callable[[], Iterable[Entries]],
    amounts: FloatArray,
    counts: Codes,
    low: int,
    high: int,
    *,
    most_held: int = MOST_HELD,
    most_bins: int = MOST_BINS,
) -> Cuts:
    """Find, per group, the least entries that weigh an amount, as closely as whole entries can.

    Every pass cuts the interval of a group in which the last of them lies into as many as 2^16 bins, and goes
    on with the one that holds it, from its least entry to its largest. When few entries are left, one more
    pass collects them, and they are sorted. Keys that spread take one pass before, and many equal ones a
    second; at most there are four for keys and four for ties, if there are up to eight groups.

    Parameters
    ----------
    entries : callable
        Gives all entries of groups that lose some once more, in the same order, as often as it is called.
    amounts : ndarray
        What is to go of each group; 0 of those that lose nothing.
    counts : ndarray of int
        How many entries each group has, at most.
    low, high : int
        Between which all keys lie.
    most_held, most_bins : int
        How many entries are collected, and how many bins counted, at most; neither changes a result.

    Examples
    --------
    >>> keys = np.array([30, 10, 20, 40], dtype=np.uint64)
    >>> one = Entries(np.zeros(4, dtype=np.int64), keys, np.arange(4, dtype=np.uint64), np.ones(4))
    >>> select_least(lambda: [one], np.array([2.0]), np.array([4]), 10, 40).keys
    array([20], dtype=uint64)
    """
    losing = np.flatnonzero(amounts > 0)
    search = _Search(losing, amounts, counts, low, high)
    bits = min(_MOST_BITS, max(1, (most_bins // max(1, len(losing))).bit_length() - 1))
    while search.n_left > most_held and search.is_open:
        search.narrow(entries(), bits)
    return search.finish(entries()) if len(losing) else search.nothing()


class _Search:
    """The interval of each group in which its last entry lies."""

    def __init__(self, losing: Codes, amounts: FloatArray, counts: Codes, low: int, high: int) -> None:
        n_groups = len(amounts)
        self._losing = losing.tolist()
        self._slots = np.zeros(n_groups, dtype=np.int64)
        self._slots[losing] = np.arange(len(losing))
        self._amounts = amounts
        self._counts = np.where(amounts > 0, counts, 0)
        self._before = np.zeros(n_groups)  # what weighs less than the interval
        self._keys = _Interval(n_groups, low, high)
        self._ties = _Interval(n_groups, 0, _LAST)

    @property
    def n_left(self) -> int:
        """How many entries lie in the intervals."""
        return int(self._counts.sum())

    @property
    def is_open(self) -> bool:
        """Whether any interval can be narrowed."""
        keys, ties = self._keys, self._ties
        return any(keys.width(group) or ties.width(group) for group in self._losing)

    def nothing(self) -> Cuts:
        """Cut nothing."""
        n_groups = len(self._amounts)
        keys, ties = np.zeros(n_groups, dtype=np.uint64), np.zeros(n_groups, dtype=np.uint64)
        return Cuts(np.zeros(n_groups, dtype=bool), keys, ties)

    def narrow(self, entries: Iterable[Entries], bits: int) -> None:
        """Count the entries of every interval by bins, and go on with the bin of the last that goes."""
        n_bins = 1 << bits
        moving = {g: self._keys if self._keys.width(g) else self._ties for g in self._losing}
        shifts = np.zeros(len(self._amounts), dtype=np.uint64)
        for group, interval in moving.items():
            shifts[group] = max(0, interval.width(group).bit_length() - bits)
        by_ties = np.array([moving.get(g) is self._ties for g in range(len(self._amounts))])
        start = np.where(by_ties, self._ties.low, self._keys.low)
        weights = np.zeros(len(self._losing) * n_bins)
        counts = np.zeros(len(weights), dtype=np.int64)
        lowest, highest = np.full(len(weights), _LAST, dtype=np.uint64), np.zeros(len(weights), np.uint64)
        for own in entries:
            inside = self._keys.holds(own.groups, own.keys) & self._ties.holds(own.groups, own.ties)
            groups = own.groups[inside]
            entry = np.where(by_ties[groups], own.ties[inside], own.keys[inside])
            bins = ((entry - start[groups]) >> shifts[groups]).astype(np.int64)
            places = self._slots[groups] * n_bins + bins
            weights += np.bincount(places, own.weights[inside], len(weights))
            counts += np.bincount(places, minlength=len(counts))
            np.minimum.at(lowest, places, entry)
            np.maximum.at(highest, places, entry)
        for slot, group in enumerate(self._losing):
            mine = slice(slot * n_bins, (slot + 1) * n_bins)
            sums = self._before[group] + np.cumsum(weights[mine])
            filled = np.flatnonzero(counts[mine])
            last = int(min(np.searchsorted(sums, self._amounts[group]), filled[-1]))
            self._before[group] = sums[last - 1] if last else self._before[group]
            self._counts[group] = counts[mine][last]
            moving[group].low[group] = lowest[mine][last]
            moving[group].high[group] = highest[mine][last]

    def finish(self, entries: Iterable[Entries]) -> Cuts:
        """Collect the entries of all intervals, and find the last that goes by sorting them."""
        held: list[tuple[Any, ...]] = []
        below = self.nothing()
        for own in entries:
            key_low = self._keys.low[own.groups]
            under = (own.keys < key_low) | ((own.keys == key_low) & (own.ties < self._ties.low[own.groups]))
            _raise_to(below, own, under)
            inside = self._keys.holds(own.groups, own.keys) & self._ties.holds(own.groups, own.ties)
            held.append((own.groups[inside], own.keys[inside], own.ties[inside], own.weights[inside]))
        groups, keys, ties, weights = (np.concatenate(each) for each in zip(*held, strict=True))
        order = np.lexsort((ties, keys, groups))
        bounds = np.searchsorted(groups[order], [self._losing, np.array(self._losing) + 1])
        for group, first, end in zip(self._losing, *bounds.tolist(), strict=True):
            own_order = order[first:end]
            gone = np.r_[0.0, np.cumsum(weights[own_order])]
            n_gone = int(np.argmin(np.abs(self._amounts[group] - self._before[group] - gone)))
            if n_gone:
                last = own_order[n_gone - 1]
                below.some[group], below.keys[group], below.ties[group] = True, keys[last], ties[last]
        return below


class _Interval:
    """Per group the first and the last whole number of 64 bits that it may be."""

    def __init__(self, n_groups: int, low: int, high: int) -> None:
        self.low = np.full(n_groups, low, dtype=np.uint64)
        self.high = np.full(n_groups, high, dtype=np.uint64)

    def width(self, group: int) -> int:
        """Say how far the ends of a group's interval lie apart."""
        return int(self.high[group]) - int(self.low[group])

    def holds(self, groups: Codes, numbers: Keys) -> npt.NDArray[np.bool_]:
        """Mark the numbers that lie in their group's interval."""
        return (numbers >= self.low[groups]) & (numbers <= self.high[groups])


def _raise_to(highest: Cuts, own: Entries, among: npt.NDArray[np.bool_]) -> None:
    """Note the last of some entries of every group, if it comes after that which is noted."""
    groups, keys, ties = own.groups[among], own.keys[among], own.ties[among]
    before = highest.keys.copy()
    np.maximum.at(highest.keys, groups, keys)
    highest.ties[highest.keys != before] = 0
    last = keys == highest.keys[groups]
    np.maximum.at(highest.ties, groups[last], ties[last])
    highest.some[groups] = True
