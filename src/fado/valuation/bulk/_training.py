"""Models of the rows that fit into memory, on bags that folds decide."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from fado.tabular import Problem, Variable
from fado.valuation.bulk._folds import Folds
from fado.valuation.entropy import OutOfBagEntropy, ValuationModels
from fado.valuation.entropy._fits import Bag

__all__ = ["FoldedEntropy", "bags_of", "sample_size", "train"]

Rows = npt.NDArray[np.int64]


class FoldedEntropy(OutOfBagEntropy):
    """Out-of-bag entropy whose bags are given.

    Parameters
    ----------
    bags : sequence of Bag
        Which rows each bag learns from, and which it leaves out.
    settings : dict
        What more is told of how the values came about.
    n_bags, unseen_fraction, z_exclude, random_state, n_jobs, progress
        As `OutOfBagEntropy` takes them; the first two are only told.
    """

    def __init__(
        self,
        bags: Sequence[Bag],
        settings: dict[str, Any],
        *,
        n_bags: int,
        unseen_fraction: float,
        z_exclude: Any,
        random_state: int,
        n_jobs: int | None,
        progress: bool = False,
    ) -> None:
        super().__init__(
            n_bags=n_bags,
            unseen_fraction=unseen_fraction,
            z_exclude=z_exclude,
            random_state=random_state,
            n_jobs=n_jobs,
            progress=progress,
            keep_models=True,
        )
        self.bags = bags
        self.settings = settings

    def _check(self, problem: Problem) -> None:
        """Leave it at what was checked when the bags were dealt."""

    def _bags(self, variables: Sequence[Variable], blocks: Any, generator: np.random.Generator) -> list[Bag]:
        return list(self.bags)

    def _algorithm(self) -> dict[str, Any]:
        told = super()._algorithm()
        return {**told, "settings": {**told["settings"], **self.settings}}


def sample_size(train_rows: int, n_folds: int) -> int:
    """Say how many rows to sample, so that about so many are left once a fold is taken away.

    Examples
    --------
    >>> sample_size(100, 5)
    125
    """
    return -(-train_rows * n_folds // (n_folds - 1))


def bags_of(folds: Folds, rows: Rows, hashes: npt.NDArray[np.uint64], train_rows: int) -> list[Bag]:
    """Deal the rows of a sample to bags.

    A bag leaves out its fold, and learns from the rows of the smallest hashes among the others.

    Parameters
    ----------
    folds : Folds
        Which bag leaves out which row.
    rows : ndarray of int64
        The places of the sample's rows in the whole table.
    hashes : ndarray of uint64
        Theirs.
    train_rows : int
        How many rows a bag learns from at most.

    Examples
    --------
    >>> from fado.tabular import row_hash
    >>> rows = np.arange(100)
    >>> bags = bags_of(Folds(0, 2, 5), rows, row_hash(0, rows), 60)
    >>> [len(bag.in_bag) for bag in bags], np.bincount(np.concatenate([bag.out_of_bag for bag in bags])).max()
    ([60, 60, 60, 60, 60, 60, 60, 60, 60, 60], np.int64(2))
    """
    by_hash = np.argsort(hashes, kind="stable")
    bags = []
    for tile in range(folds.tiles):
        fold = folds.of(tile, rows)
        for number in range(folds.n_folds):
            others = by_hash[fold[by_hash] != number][:train_rows]
            in_bag, left_out = np.sort(others), np.flatnonzero(fold == number)
            bags.append(
                Bag(tile * folds.n_folds + number, in_bag.astype(np.int32), left_out.astype(np.int32))
            )
    return bags


def train(valuator: FoldedEntropy, problem: Problem) -> ValuationModels:
    """Have every bag's models learn, and give them without their rows."""
    for bag in valuator.bags:
        if not len(bag.in_bag) or not len(bag.scored):
            raise ValueError(
                f"{problem.n_rows:,} rows are too few for {len(valuator.bags)} bags: one of them would have "
                "no rows to learn from, or none to leave out."
            )
    models: ValuationModels = valuator.fit_problem(problem).models_
    return models
