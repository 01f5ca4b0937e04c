"""What LightGBM bins and scores: columns one by one, or a sparse matrix of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fado.engine._base import Rows
from fado.tabular import Column

__all__ = [
    "Columns",
    "SparseColumns",
    "digests_of",
    "entries_of",
    "in_order",
    "input_for_bins",
    "input_for_scores",
    "levelled",
]


class SparseColumns:
    """Columns of numbers, most of them zero; only the others take memory.

    Parameters
    ----------
    matrix : scipy sparse matrix
        One row per row, one column per column.
    codes : frozenset of int
        Positions of the columns that hold codes of levels.

    Examples
    --------
    >>> import numpy as np
    >>> import scipy.sparse
    >>> columns = SparseColumns(scipy.sparse.csr_matrix([[0, 2], [1, 0]]))
    >>> len(columns), columns.take(np.array([1])).matrix.toarray()
    (2, array([[1., 0.]]))
    """

    def __init__(self, matrix: Any, codes: frozenset[int] = frozenset()) -> None:
        import scipy.sparse

        own = scipy.sparse.csr_matrix(matrix, dtype=np.float64)  # LightGBM warns about every other form
        if not own.has_canonical_format or not own.data.all():
            own = own.copy()  # the user's own stays as it is
            own.sum_duplicates()
            own.eliminate_zeros()
        self.matrix = own
        self.codes = codes

    def __len__(self) -> int:
        return int(self.matrix.shape[1])

    def with_column(self, column: Column) -> SparseColumns:
        """Give the columns and one more, the last."""
        import scipy.sparse

        more = scipy.sparse.hstack([self.matrix, column.numbers()[:, np.newaxis]], format="csr")
        return SparseColumns(more, self.codes | {len(self)} if column.levels is not None else self.codes)

    def with_rows(self, rows: Any) -> SparseColumns:
        """Give the columns with more rows, those of another matrix."""
        import scipy.sparse

        return SparseColumns(scipy.sparse.vstack([self.matrix, rows], format="csr"), self.codes)

    def take(self, rows: Rows) -> SparseColumns:
        """Give the columns at some row positions."""
        return SparseColumns(self.matrix[rows], self.codes)

    def in_order(self, order: Sequence[int]) -> SparseColumns:
        """Give some columns, in an order."""
        codes = frozenset(place for place, j in enumerate(order) if j in self.codes)
        return SparseColumns(self.matrix[:, list(order)], codes)

    def digests(self) -> list[bytes]:
        """Give every column's key, as `Column.digest` gives it of the same entries."""
        matrix = self.matrix.tocsc()
        entries = np.zeros(matrix.shape[0])
        found = []
        for start, end in zip(matrix.indptr[:-1], matrix.indptr[1:], strict=True):
            rows = matrix.indices[start:end]
            entries[rows] = matrix.data[start:end]
            found.append(Column("", pa.chunked_array([pa.array(entries)])).digest())
            entries[rows] = 0.0
        return found

    def usual_shares(self, rows: npt.NDArray[np.integer[Any]]) -> npt.NDArray[np.float64]:
        """Give each column's share of zeros or of the value in at least 70 % of some rows."""
        matrix = self.matrix[rows].tocsc()
        shares = 1.0 - np.diff(matrix.indptr) / len(rows)
        for j in np.flatnonzero(shares <= 0.3):  # no other value can be in 70 % of the rest
            _, counts = np.unique(matrix.data[matrix.indptr[j] : matrix.indptr[j + 1]], return_counts=True)
            most = counts.max() / len(rows)
            shares[j] = most if most >= 0.7 else 0.0 if j in self.codes else shares[j]
        return shares


Columns: TypeAlias = Sequence[Column] | SparseColumns


def in_order(columns: Columns, order: Sequence[int]) -> Columns:
    """Give some columns, in an order."""
    return columns.in_order(order) if isinstance(columns, SparseColumns) else [columns[j] for j in order]


def digests_of(columns: Columns) -> list[bytes]:
    """Give a key of what each column holds."""
    return (
        columns.digests() if isinstance(columns, SparseColumns) else [column.digest() for column in columns]
    )


def input_for_bins(columns: Columns) -> tuple[Any, list[int]]:
    """Give columns as `lightgbm.Dataset` takes them, and the positions of those that hold codes of levels."""
    if isinstance(columns, SparseColumns):
        return columns.matrix, levelled(columns)
    # Column names never reach LightGBM: it refuses some characters and confuses "a b" with "a_b".
    data = pa.table({f"f{j}": column.data for j, column in enumerate(columns)})
    return data, levelled(columns)


def levelled(columns: Columns) -> list[int]:
    """Give the positions of the columns that hold codes of levels."""
    if isinstance(columns, SparseColumns):
        return sorted(columns.codes)
    return [j for j, column in enumerate(columns) if column.levels is not None]


def entries_of(columns: Columns, j: int) -> npt.NDArray[np.float64]:
    """Give one column as numbers, NaN where an entry is missing."""
    if isinstance(columns, SparseColumns):
        return np.asarray(columns.matrix[:, [j]].toarray()[:, 0])
    return columns[j].numbers()


def input_for_scores(columns: Columns) -> Any:
    """Give columns as `lightgbm.Booster.predict` takes them."""
    if isinstance(columns, SparseColumns):
        return columns.matrix
    return np.column_stack([column.numbers() for column in columns])
