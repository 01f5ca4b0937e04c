"""Rows by position: which ones a user asks for, and rows out of whatever holds them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

__all__ = ["is_sparse", "read_folds", "read_rows", "take_rows"]

Rows = npt.NDArray[np.int64]


def is_sparse(X: Any) -> bool:
    """Tell whether this is a scipy sparse matrix or array."""
    import scipy.sparse

    return scipy.sparse.issparse(X)


def take_rows(values: Any, rows: npt.NDArray[np.integer[Any]]) -> Any:
    """Give some rows of a table, a column or a list, as what it was passed as."""
    if hasattr(values, "iloc"):  # pandas, whose labels are not positions
        return values.take(rows)  # what `iloc` gives, pandas 2 takes for a view and warns of changes to it
    if is_sparse(values):
        return values.tocsr()[rows].asformat(values.format)
    if isinstance(values, pa.Table | pa.ChunkedArray | pa.Array):
        return values.take(pa.array(rows))
    if isinstance(values, list | tuple):
        return type(values)(values[row] for row in rows)
    if hasattr(values, "collect"):  # a lazy polars table
        return values.collect()[rows]
    return values[rows]  # numpy and polars


def read_rows(given: Any, n_rows: int, what: str) -> Rows:
    """Read which rows a user asks for: their positions, in the order given, or a mask over all rows.

    Parameters
    ----------
    given : array-like of int or bool, of shape (n,)
        What was passed in.
    n_rows : int
        How many rows there are.
    what : str
        What the user knows it by; a message begins with it.

    Raises
    ------
    TypeError
        If it is neither positions nor a mask.
    ValueError
        If there is no such row, or a mask has not one entry per row.

    Examples
    --------
    >>> read_rows([4, 0], 5, "`rows`"), read_rows([True, False, True], 3, "`rows`")
    (array([4, 0]), array([0, 2]))
    >>> read_rows([True, False], 3, "`rows`")
    Traceback (most recent call last):
        ...
    ValueError: `rows`: a mask must have one entry for each of the 3 rows, got 2.
    """
    array = np.asarray(given)
    if array.ndim == 1 and array.dtype == np.bool_:
        if len(array) != n_rows:
            raise ValueError(
                f"{what}: a mask must have one entry for each of the {n_rows:,} rows, got {len(array):,}."
            )
        return np.flatnonzero(array)
    if array.ndim != 1 or (len(array) and array.dtype.kind not in "iu"):
        raise TypeError(f"{what}: must be positions of rows, or a mask over all of them, got {given!r}.")
    wrong = array[(array < 0) | (array >= n_rows)]
    if len(wrong):
        raise ValueError(f"{what}: there is no row {wrong[0]}; rows are 0 to {n_rows - 1}.")
    return array.astype(np.int64)


def read_folds(cv: Any, n_rows: int, labels: Any = None, blocks: Any = None) -> list[tuple[Rows, Rows]]:
    """Read folds as scikit-learn takes them, but for a number of them: the rows of each, ascending.

    Parameters
    ----------
    cv : splitter, or iterable of (train, validation)
        A splitter of scikit-learn, or pairs of positions of rows or masks.
    n_rows : int
        How many rows there are.
    labels, blocks : ndarray of shape (n_rows,), optional
        What a splitter may go by: the rows' labels, and which rows belong together.

    Raises
    ------
    TypeError
        If it is neither.
    ValueError
        If a fold is empty, learns from a row that it also validates, or from a row of the same block, or if a
        row is measured twice.
    """
    if isinstance(cv, type):
        raise TypeError(f"`cv` must be a splitter, got the class {cv.__name__}: write `{cv.__name__}()`.")
    if hasattr(cv, "split") and not isinstance(cv, str):
        try:
            pairs = list(cv.split(np.zeros((n_rows, 1)), labels, blocks))
        except (TypeError, ValueError) as error:
            said = " ".join(str(error).split())
            raise ValueError(f"`cv` ({cv!r}) cannot split these rows: {said}") from error
    elif isinstance(cv, Iterable) and not isinstance(cv, str):
        pairs = list(cv)
    else:
        raise TypeError(
            "`cv` must be a number of folds, a splitter of scikit-learn, or pairs of the rows to train on "
            f"and to validate, got {cv!r}."
        )
    if not pairs:
        raise ValueError("`cv` has no folds: give at least one pair of rows to train on and to validate.")
    folds, validated_by = [], np.full(n_rows, -1)
    for number, pair in enumerate(pairs):
        if not isinstance(pair, list | tuple) or len(pair) != 2:
            raise ValueError(
                f"Fold {number} of `cv` must be a pair of the rows to train on and to validate, got {pair!r}."
            )
        train, validation = (
            _rows_of_fold(part, n_rows, f"Fold {number} of `cv`, {name} rows")
            for part, name in zip(pair, ("training", "validation"), strict=True)
        )
        _check_apart(number, train, validation, blocks)
        before = validation[validated_by[validation] >= 0]
        if len(before):
            raise ValueError(
                f"Fold {number} of `cv` validates row {before[0]}, which fold {validated_by[before[0]]} has "
                "validated: every row may be measured once."
            )
        validated_by[validation] = number
        folds.append((train, validation))
    return folds


def _rows_of_fold(part: Any, n_rows: int, what: str) -> Rows:
    rows = np.sort(read_rows(part, n_rows, what))
    if not len(rows):
        raise ValueError(f"{what}: there are none, and a fold needs some.")
    repeated = rows[1:][rows[1:] == rows[:-1]]
    if len(repeated):
        raise ValueError(f"{what}: row {repeated[0]} is there twice; name it once.")
    return rows


def _check_apart(number: int, train: Rows, validation: Rows, blocks: Any) -> None:
    """Refuse a fold that learns from what it validates."""
    both = np.intersect1d(train, validation, assume_unique=True)
    if len(both):
        raise ValueError(
            f"Fold {number} of `cv` trains on row {both[0]} and validates it: leave it out of one of both."
        )
    if blocks is None:
        return
    shared = np.isin(blocks[validation], blocks[train])
    if shared.any():
        raise ValueError(
            f"Fold {number} of `cv` trains on a row of the same entry of `groups` as row "
            f"{validation[shared.argmax()]}, which it validates: use a splitter that keeps groups together, "
            "such as GroupKFold."
        )
