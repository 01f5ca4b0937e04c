"""How far rows are from the nearest row of a table, over columns of numbers and levels."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from fado.tabular import Column

__all__ = ["as_positions", "nearest_distances"]

FloatArray = npt.NDArray[np.float32]

_BLOCK = 2**22  # pairs of rows that are looked at together


def as_positions(columns: Sequence[Column], n_known: int) -> FloatArray:
    """Lay out columns so that the distance of two entries is the difference of their numbers, at most 1.

    A number becomes the share of the first `n_known` rows that have a lower one, equal ones counted half; a
    level becomes twice its code, and a missing entry -2.

    Examples
    --------
    >>> from fado.tabular import column_from
    >>> as_positions([column_from("n", [10, 30, 20, 90, None])], 4).T
    array([[ 0.125,  0.625,  0.375,  0.875, -2.   ]], dtype=float32)
    """
    laid = []
    for column in columns:
        codes, _ = column.encode()
        if column.levels is not None:
            laid.append(2.0 * codes)
            continue
        known = np.sort(codes[:n_known][codes[:n_known] >= 0])
        below, up_to = (np.searchsorted(known, codes, side=side) for side in ("left", "right"))
        laid.append(np.where(codes < 0, -2.0, (below + up_to) / (2 * max(len(known), 1))))
    return np.column_stack(laid).astype(np.float32)


def nearest_distances(rows: FloatArray, table: FloatArray) -> FloatArray:
    """Give every row's distance to the nearest of a table: the mean over columns, each at most 1.

    Only so many pairs are looked at together that memory stays small, however large the table is.

    Examples
    --------
    >>> import numpy as np
    >>> table = np.array([[0.0, 2.0], [0.5, 4.0]], dtype=np.float32)  # a number, and a level
    >>> nearest_distances(np.array([[0.25, 2.0], [0.5, 6.0]], dtype=np.float32), table)
    array([0.125, 0.5  ], dtype=float32)
    """
    nearest = np.empty(len(rows), dtype=np.float32)
    step = max(1, _BLOCK // len(table))
    columns = np.ascontiguousarray(table.T)
    for start in range(0, len(rows), step):
        block = rows[start : start + step]
        sums = np.zeros((len(block), len(table)), dtype=np.float32)
        for j, column in enumerate(columns):
            apart = np.abs(block[:, j, None] - column)
            sums += np.minimum(apart, 1.0, out=apart)
        nearest[start : start + step] = sums.min(axis=1) / len(columns)
    return nearest
