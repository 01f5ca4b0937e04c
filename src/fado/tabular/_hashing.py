"""Draws that follow from a seed and a row's place in the whole table: the same in any part and order."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["deal_small_strata", "fold_of", "row_hash"]

Rows = npt.NDArray[np.integer[Any]]

_MASK = (1 << 64) - 1
_STEP, _FIRST, _SECOND = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB  # of splitmix64
_SAMPLE, _FOLD, _OFFSET = 0, 1, 2  # what a hash is for: draws of one kind tell nothing of another


def row_hash(seed: int, rows: Rows) -> npt.NDArray[np.uint64]:
    """Give each row a number that looks drawn; no two rows share one.

    The k rows of the smallest numbers are a random sample of k rows, and part of every larger such sample.

    Parameters
    ----------
    seed : int
        From 0 to 2^64 - 1.
    rows : ndarray of int
        The rows' places in the whole table, from 0 on.

    Examples
    --------
    >>> row_hash(0, np.arange(6)).argsort()
    array([0, 1, 3, 5, 4, 2])
    """
    return _mixed_rows(_key(seed, _SAMPLE), rows)


def fold_of(seed: int, tile: int, rows: Rows, n_folds: int) -> npt.NDArray[np.int64]:
    """Give each row's fold in a tile: every fold is as likely, and one tile tells nothing of another.

    Parameters
    ----------
    seed : int
        From 0 to 2^64 - 1.
    tile : int
        Which of several divisions of the same rows into folds.
    rows : ndarray of int
        The rows' places in the whole table, from 0 on.
    n_folds : int
        At least 1.

    Examples
    --------
    >>> fold_of(0, 0, np.arange(8), 5)
    array([4, 0, 3, 3, 3, 3, 1, 3])
    >>> fold_of(0, 0, np.array([6, 3]), 5)
    array([1, 3])
    """
    return _share(_mixed_rows(_key(seed, _FOLD, tile), rows), n_folds)


def deal_small_strata(
    seed: int, tile: int, rows: Rows, strata: npt.NDArray[np.integer[Any]], n_folds: int
) -> npt.NDArray[np.int64]:
    """Deal all rows of some strata to folds, so that the counts of a stratum differ by one at most.

    The rows of a stratum are dealt in turn, in the order of their hashes in the tile, from a fold on that
    follows from its first row. Neither the order of `rows` nor the numbers of the strata matter.

    Parameters
    ----------
    seed, tile, n_folds : int
        As `fold_of` takes them.
    rows : ndarray of int
        The places of all rows of these strata in the whole table.
    strata : ndarray of int
        Each row's stratum.

    Examples
    --------
    >>> strata = np.array([7, 7, 7, 9, 9, 9, 9])
    >>> folds = deal_small_strata(0, 0, np.arange(7), strata, 3)
    >>> np.bincount(folds[:3]), np.sort(np.bincount(folds[3:]))
    (array([1, 1, 1]), array([1, 1, 2]))
    """
    if not len(rows):
        return np.empty(0, dtype=np.int64)
    order = np.lexsort((_mixed_rows(_key(seed, _FOLD, tile), rows), strata))
    begins = np.flatnonzero(np.diff(strata[order], prepend=strata[order[0]] - 1))
    sizes = np.diff(begins, append=len(rows))
    first = np.minimum.reduceat(rows[order], begins)
    offset = _share(_mixed_rows(_key(seed, _OFFSET, tile), first), n_folds)
    folds = np.empty(len(rows), dtype=np.int64)
    folds[order] = (np.arange(len(rows)) - np.repeat(begins - offset, sizes)) % n_folds
    return folds


def _key(seed: int, *words: int) -> int:
    """Mix a seed and what follows into one number."""
    key = _mixed(seed)
    for word in words:
        key = _mixed(key ^ word)
    return key


def _mixed(number: int) -> int:
    """Take one step of splitmix64."""
    number = (number + _STEP) & _MASK
    number = ((number ^ (number >> 30)) * _FIRST) & _MASK
    number = ((number ^ (number >> 27)) * _SECOND) & _MASK
    return number ^ (number >> 31)


def _mixed_rows(key: int, rows: Rows) -> npt.NDArray[np.uint64]:
    """Take that step from each row's place under a key, in arrays."""
    numbers = rows.astype(np.uint64)
    numbers ^= np.uint64(key)
    numbers += np.uint64(_STEP)
    for shift, factor in ((30, _FIRST), (27, _SECOND)):
        numbers ^= numbers >> np.uint64(shift)
        numbers *= np.uint64(factor)
    numbers ^= numbers >> np.uint64(31)
    return numbers


def _share(hashes: npt.NDArray[np.uint64], n_folds: int) -> npt.NDArray[np.int64]:
    """Cut the range of the hashes into equal shares, and tell in which each lies."""
    upper = hashes >> np.uint64(32)
    return ((upper * np.uint64(n_folds)) >> np.uint64(32)).astype(np.int64)
