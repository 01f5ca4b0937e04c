"""Which bags leave out which row: read off a row's place in the whole table, in any part and in any order."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from fado._checks import check_count
from fado.tabular import deal_small_strata, fold_of
from fado.valuation._bags import MOST_BAGS

__all__ = ["Folds", "count_folds"]

Rows = npt.NDArray[np.int64]

_SLACK = 1e-9


@dataclass(frozen=True)
class Folds:
    """Rows dealt to folds, once per tile; bag number ``tile * n_folds + fold`` leaves a fold out.

    Parameters
    ----------
    seed : int
        Decides all.
    tiles : int
        How often the rows are dealt, and how many bags leave out each row.
    n_folds : int
        How many folds a tile has.
    small : ndarray of int64
        The sorted places of the rows of small strata, which are dealt exactly.
    small_folds : ndarray of shape (tiles, number of such rows)
        Their folds.

    Examples
    --------
    >>> import numpy as np
    >>> folds = Folds(0, tiles=2, n_folds=5)
    >>> folds.n_bags
    10
    >>> np.unique(folds.of(0, np.arange(1000)))
    array([0, 1, 2, 3, 4])
    """

    seed: int
    tiles: int
    n_folds: int
    small: Rows = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    small_folds: npt.NDArray[np.int64] = field(default_factory=lambda: np.empty((0, 0), dtype=np.int64))

    @property
    def n_bags(self) -> int:
        """How many bags there are."""
        return self.tiles * self.n_folds

    def with_small_strata(self, rows: Rows, strata: Rows) -> Folds:
        """Deal the rows of small strata exactly.

        Parameters
        ----------
        rows : ndarray of int64
            The places of all their rows.
        strata : ndarray of int64
            The stratum of each.
        """
        order = np.argsort(rows)
        rows, strata = rows[order], strata[order]
        dealt = [deal_small_strata(self.seed, tile, rows, strata, self.n_folds) for tile in range(self.tiles)]
        return Folds(self.seed, self.tiles, self.n_folds, rows, np.array(dealt, dtype=np.int64))

    def of(self, tile: int, rows: Rows) -> npt.NDArray[np.int64]:
        """Give the folds of some rows in one tile."""
        folds = fold_of(self.seed, tile, rows, self.n_folds)
        if len(self.small):
            place = np.minimum(np.searchsorted(self.small, rows), len(self.small) - 1)
            found = self.small[place] == rows
            folds[found] = self.small_folds[tile][place[found]]
        return folds


def count_folds(n_bags: int, unseen_fraction: float) -> tuple[int, int]:
    """Say how many tiles of how many folds the bags make up.

    Examples
    --------
    >>> count_folds(10, 0.2)
    (2, 5)
    >>> count_folds(10, 0.3)
    Traceback (most recent call last):
        ...
    ValueError: `unseen_fraction` must be 1 over a whole number, such as 0.2 or 0.25, got 0.3: every row ...
    """
    check_count("n_bags", n_bags, 1, MOST_BAGS)
    if isinstance(unseen_fraction, bool) or not isinstance(unseen_fraction, int | float | np.floating):
        raise TypeError(f"`unseen_fraction` must be a number in (0, 0.5], got {unseen_fraction!r}.")
    if not 0 < unseen_fraction <= 0.5:
        raise ValueError(f"`unseen_fraction` must be in (0, 0.5], got {unseen_fraction}.")
    n_folds = round(1 / unseen_fraction)
    if abs(n_folds * unseen_fraction - 1) > _SLACK:
        raise ValueError(
            f"`unseen_fraction` must be 1 over a whole number, such as 0.2 or 0.25, got {unseen_fraction}: "
            "every row is left out equally often."
        )
    if n_bags % n_folds:
        raise ValueError(
            f"`n_bags` must be a multiple of {n_folds} with `unseen_fraction={unseen_fraction}`, got "
            f"{n_bags}: every row is left out equally often."
        )
    return n_bags // n_folds, n_folds
