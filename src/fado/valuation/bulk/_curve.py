"""How many rows are enough to learn from: until more of them hardly change the ranking of other rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["FIRST_SIZE", "HELD_OUT", "LearningCurve", "follow_curve", "sizes_up_to"]

FloatArray = npt.NDArray[np.float64]
Values = Mapping[str, FloatArray]

FIRST_SIZE = 12_500
HELD_OUT = 20_000  # rows of the first fold, by whose ranks sizes are compared
ENOUGH = 0.005  # a gain in rank agreement that is not worth twice the rows


@dataclass(frozen=True)
class LearningCurve:
    """Where the learning curve was left.

    Parameters
    ----------
    train_rows : int
        How many rows are enough, or all that there are.
    compared_with : int or None
        The other size: twice as many rows; or, where the rows gave out, the size before. None if no other
        was tried.
    agreement : mapping of str to float
        Per variable, the rank correlation between the values from models of the two sizes.
    is_enough : bool
        Whether more rows would hardly change a rank, or there were no more.
    """

    train_rows: int
    compared_with: int | None
    agreement: Mapping[str, float]
    is_enough: bool

    def to_plain(self) -> dict[str, Any]:
        """Give it as JSON can hold it."""
        told = {name: round(own, 4) for name, own in self.agreement.items()}
        return {
            "compared_with": self.compared_with,
            "agreement": told,
            "more_rows_would_help": not self.is_enough,
        }


def sizes_up_to(most: int) -> Iterator[int]:
    """Give the sizes that are tried: each twice the one before, the last as many rows as there may be.

    Examples
    --------
    >>> list(sizes_up_to(60_000))
    [12500, 25000, 50000, 60000]
    """
    size = FIRST_SIZE
    while size < most:
        yield size
        size *= 2
    yield most


def follow_curve(values_of: Callable[[int], Values], most: int, *, are_all: bool) -> LearningCurve:
    """Double the rows until doubling them gains less than 0.005 of rank agreement.

    With r(a, b) for Spearman's correlation of the values from models of a and of b rows, T rows are enough if
    r(T, 2T) - r(T/2, 2T) < 0.005 for the target and every protected attribute: those of T rows are hardly
    closer to those of 2T than those of T/2 are. Where rows give out first, all of them are taken.

    Parameters
    ----------
    values_of : callable
        Gives the values of some held-out rows, per variable, by models of so many rows.
    most : int
        How many rows there may be.
    are_all : bool
        Whether those are all rows of the table.

    Examples
    --------
    >>> truth, noise = np.arange(1000.0), np.random.default_rng(0).normal(size=1000)
    >>> curve = follow_curve(lambda n: {"y": truth + noise * 1e6 / n}, 400_000, are_all=False)
    >>> curve.train_rows, round(curve.agreement["y"], 2)
    (50000, 1.0)
    """
    tried: list[tuple[int, Values]] = []
    for size in sizes_up_to(most):
        tried.append((size, values_of(size)))
        if len(tried) < 3 or size != 2 * tried[-2][0]:
            continue
        (_, half), (own, here), (_, double) = tried[-3:]
        closer, further = _agreement(here, double), _agreement(half, double)
        if all(closer[name] - further[name] < ENOUGH for name in closer):
            return LearningCurve(own, size, closer, is_enough=True)
    if len(tried) < 2:
        return LearningCurve(most, None, {}, is_enough=are_all)
    (before, half), (_, here) = tried[-2:]
    return LearningCurve(most, before, _agreement(half, here), is_enough=are_all)


def _agreement(one: Values, other: Values) -> dict[str, float]:
    return {name: _rank_correlation(one[name], other[name]) for name in one}


def _rank_correlation(one: FloatArray, other: FloatArray) -> float:
    """Compute Spearman's correlation; 1 where either ranks nothing, for there is nothing to gain."""
    from scipy.stats import rankdata

    known = np.isfinite(one) & np.isfinite(other)
    ranks = [rankdata(own[known]) for own in (one, other)]
    if not known.any() or min(own.std() for own in ranks) == 0:
        return 1.0
    return float(np.corrcoef(*ranks)[0, 1])
