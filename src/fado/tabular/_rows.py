"""Rows by position, out of whatever holds them."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

__all__ = ["is_sparse", "take_rows"]


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
