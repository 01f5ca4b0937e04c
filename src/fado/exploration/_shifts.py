"""Which columns are distributed otherwise in a pool than in the labelled rows, beyond chance.

Numbers are compared by the distance of Kolmogorov and Smirnov, the widest gap between the shares of rows up
to any number; levels by the total variation, the share of rows that would have to change theirs. Both lie in
[0, 1]. A missing entry is a level of its own, and stands above all numbers.

Two samples of one distribution differ too. Of n and m rows, with r = 1/n + 1/m, in all but a share a of cases

- the distance of Kolmogorov and Smirnov stays below sqrt(r log(2/a) / 2), by Massart's inequality;
- the total variation stays within sqrt(r log(1/a) / 2) of its expectation, by McDiarmid's, and that is at
  most half the sum of sqrt(p (1 - p) r) over all levels, of shares p.

Since every column is asked, a is 5 % divided by their number.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fado.exploration._groups import FEWEST_MEMBERS
from fado.exploration._search import SIGNIFICANCE
from fado.exploration._wording import percent, quoted, written
from fado.tabular import Column

__all__ = ["Shift", "shift_of", "shifts_part"]

FloatArray = npt.NDArray[np.float64]
Counts = npt.NDArray[np.int64]

MOST_COLUMNS = 60


@dataclass(frozen=True)
class Shift:
    """How far a column's distribution in the pool is from that in the labelled rows.

    Parameters
    ----------
    column : str
        Its name.
    distance : float
        Between 0 and 1.
    chance : float
        What chance alone stays below, in all columns at once, 95 times out of 100.
    where : str
        Where the gap is widest: up to a number, at a level, or where entries are missing. Empty if there is
        no gap, or at a level of fewer than ten rows, which is not named.
    labelled_share, pool_share : float
        Which share of the rows lies there.
    """

    column: str
    distance: float
    chance: float
    where: str
    labelled_share: float
    pool_share: float

    @property
    def is_clear(self) -> bool:
        """Whether chance does not explain the distance."""
        return self.distance > self.chance


def shifts_part(labelled: Sequence[Column], pool: Sequence[Column]) -> dict[str, Any]:
    """Compare the columns of labelled rows with those of a pool, one by one.

    Returns
    -------
    dict
        The ``columns``, those farthest beyond chance first; how many were ``compared`` and how many differ
        clearly; and a ``sentence``.
    """
    shifts = [shift_of(own, other, len(labelled)) for own, other in zip(labelled, pool, strict=True)]
    shifts.sort(key=lambda shift: shift.chance - shift.distance)
    n_clear = sum(shift.is_clear for shift in shifts)
    return {
        "columns": [asdict(shift) | {"is_clear": shift.is_clear} for shift in shifts[:MOST_COLUMNS]],
        "compared": len(shifts),
        "clear": n_clear,
        "sentence": _sentence(shifts, n_clear),
    }


def shift_of(labelled: Column, pool: Column, n_columns: int = 1) -> Shift:
    """Compare a column of labelled rows with the same column of a pool.

    Parameters
    ----------
    labelled, pool : Column
        Both of numbers, or both of levels.
    n_columns : int
        How many columns are asked in all.

    Examples
    --------
    >>> from fado.tabular import column_from
    >>> shift = shift_of(column_from("age", [1, 2, 3, 4]), column_from("age", [3, 4, 5, 6]))
    >>> shift.distance, shift.where, shift.is_clear
    (0.5, 'age ≤ 2', False)
    >>> jobs = ["clerk", "cook"]
    >>> shift = shift_of(column_from("job", jobs * 100), column_from("job", ["cook"] * 100))
    >>> shift.distance, shift.where, shift.pool_share, shift.is_clear
    (0.5, 'job = clerk', 0.0, True)
    """
    odds = n_columns / SIGNIFICANCE
    if labelled.levels is None and not (labelled.is_boolean and pool.is_boolean):
        return _numbers_shift(labelled.name, labelled.numbers(), pool.numbers(), odds)
    return _levels_shift(labelled.name, *_level_counts(labelled, pool), odds)


def _numbers_shift(name: str, labelled: FloatArray, pool: FloatArray, odds: float) -> Shift:
    entries, places = np.unique(np.concatenate([labelled, pool]), return_inverse=True)  # NaN comes last
    counts = _counted(places[: len(labelled)], places[len(labelled) :], len(entries))
    upto = counts.cumsum(axis=1) / counts.sum(axis=1, keepdims=True)
    widest = int(np.argmax(np.abs(upto[1] - upto[0])))
    first, second = upto[:, widest]
    where = f"{name} ≤ {written(entries[widest])}"
    if widest + 2 == len(entries) and np.isnan(entries[-1]):  # all that is known
        first, second, where = 1 - first, 1 - second, f"{name} is missing"
    distance = abs(float(first - second))
    chance = math.sqrt(_noise(counts) * math.log(2 * odds) / 2)
    return Shift(name, distance, chance, where if distance else "", float(first), float(second))


def _levels_shift(name: str, counts: Counts, levels: Sequence[str], odds: float) -> Shift:
    shares, noise = counts / counts.sum(axis=1, keepdims=True), _noise(counts)
    gaps = np.abs(shares[1] - shares[0])
    widest = int(np.argmax(gaps))
    first, second = map(float, shares[:, widest])
    where = f"{name} = {levels[widest]}" if widest < len(levels) else f"{name} is missing"
    unnamed = widest < len(levels) and counts[:, widest].sum() < FEWEST_MEMBERS
    common = counts.sum(axis=0) / counts.sum()
    expected = float(np.sqrt(common * (1 - common) * noise).sum() / 2)
    chance = expected + math.sqrt(noise * math.log(odds) / 2)
    distance = float(gaps.sum() / 2)
    return Shift(name, distance, chance, "" if unnamed or not distance else where, first, second)


def _level_counts(labelled: Column, pool: Column) -> tuple[Counts, list[str]]:
    """Count the rows of each level that either has, and then those where it is missing."""
    if labelled.levels is None:  # booleans
        first, second = (np.nan_to_num(own.numbers(), nan=2.0).astype(np.int64) for own in (labelled, pool))
        return _counted(first, second, 3), ["False", "True"]
    levels = sorted({*labelled.levels, *(pool.levels or ())})
    first, second = (own.with_levels(levels).codes().astype(np.int64) for own in (labelled, pool))
    first[first < 0] = second[second < 0] = len(levels)
    return _counted(first, second, len(levels) + 1), levels


def _counted(labelled: Counts, pool: Counts, n_entries: int) -> Counts:
    return np.stack([np.bincount(places, minlength=n_entries) for places in (labelled, pool)])


def _noise(counts: Counts) -> float:
    """Give 1/n + 1/m, which the variance of any gap between two shares is a part of."""
    return float((1 / counts.sum(axis=1)).sum())


def _sentence(shifts: Sequence[Shift], n_clear: int) -> str:
    if not shifts:
        return "The features came as a matrix without columns to name."
    if not n_clear:
        return "No column is distributed otherwise than among the labelled rows, beyond chance."
    first = shifts[0]
    verb = "is" if n_clear == 1 else "are"
    told = (
        f"{n_clear} of {len(shifts)} columns {verb} distributed otherwise than among the labelled rows, "
        f"beyond chance; most of all {quoted(first.column)}"
    )
    if not first.where:
        return f"{told}."
    return (
        f"{told}: {quoted(first.where)} holds for {percent(first.pool_share)} of the pool and "
        f"{percent(first.labelled_share)} of the labelled rows."
    )
