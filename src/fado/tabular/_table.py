"""Tables of any library in; Arrow columns out.

Everything behind the public surface sees one form: numbers and booleans as plain Arrow columns, strings and
categoricals as integer codes into their sorted levels. Rows are known by their position alone. A column is
read when it is first asked for, and only once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fado.tabular._columns import Column, column_from
from fado.tabular._index import without_index
from fado.tabular._rows import is_sparse, take_rows

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Table", "is_frame", "named_columns", "one_hot"]


class Table:
    """The features: columns in order, and the object that the user passed.

    Parameters
    ----------
    source : numpy array, scipy sparse matrix, pandas, polars or pyarrow table, or None
        What the user passed; None for a table that is made of `columns`.
    names : sequence of str
        What the columns are called.
    n_rows : int
        How many rows there are.
    columns : sequence of Column, optional
        The columns, if they have been read.
    named : bool, optional
        Whether the names are the user's; None if the source tells.
    """

    def __init__(
        self,
        source: Any,
        names: Sequence[str],
        n_rows: int,
        columns: Sequence[Column] | None = None,
        *,
        named: bool | None = None,
    ) -> None:
        self.source = source
        self.names = list(names)
        self.n_rows = n_rows
        told = not is_sparse(source) and not isinstance(source, np.ndarray)
        self.is_named = told if named is None else named
        self._read: dict[int, Column] = dict(enumerate(columns or ()))

    @classmethod
    def from_input(cls, X: Any) -> Table:
        """Read the shape of a two-dimensional table of any supported library."""
        if is_sparse(X):
            if np.issubdtype(X.dtype, np.complexfloating):
                raise ValueError("Complex data not supported: `X` holds complex numbers.")
            matrix = X.tocsr()
            if matrix.dtype.kind != "f" or matrix.dtype.itemsize > 8:
                matrix = matrix.astype(np.float64)
            return cls(matrix, [f"x{j}" for j in range(X.shape[1])], X.shape[0])
        if is_frame(X):
            X = _collected(X)
            X = without_index(X) if isinstance(X, pa.Table) else X
            names = X.column_names if isinstance(X, pa.Table) else X.columns
            return cls(X, [str(name) for name in names], X.num_rows if isinstance(X, pa.Table) else len(X))
        X = _matrix(X)
        return cls(X, [f"x{j}" for j in range(X.shape[1])], X.shape[0])

    @classmethod
    def of_columns(cls, columns: Sequence[Column], *, named: bool = True) -> Table:
        """Make a table of columns that have been read, by whose names others find them, or not."""
        return cls(None, [column.name for column in columns], len(columns[0]), columns, named=named)

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        """All columns; none of a sparse matrix, whose columns together would be a dense one."""
        return () if self.is_sparse else tuple(self.column(j) for j in range(self.n_columns))

    def column(self, j: int) -> Column:
        """Read one column, by its position; those of a sparse matrix are not kept."""
        if self.is_sparse:
            return column_from(self.names[j], self._by_column[:, [j]].toarray()[:, 0])
        if j not in self._read:
            self._read[j] = column_from(self.names[j], self._source_column(j))
        return self._read[j]

    @cached_property
    def _by_column(self) -> Any:
        return self.source.tocsc()

    def _source_column(self, j: int) -> Any:
        if isinstance(self.source, np.ndarray):
            return self.source[:, j]
        if hasattr(self.source, "iloc"):
            return self.source.iloc[:, j]
        if isinstance(self.source, pa.Table):
            return self.source.column(j)
        import narwhals as nw

        return nw.from_native(self.source)[:, j]

    @property
    def n_columns(self) -> int:
        """How many columns there are."""
        return len(self.names)

    @property
    def is_sparse(self) -> bool:
        """Whether the features came as a sparse matrix."""
        return is_sparse(self.source)

    @property
    def given_names(self) -> list[str] | None:
        """The names that the user gave to the columns; None if there are none, or if some are not text."""
        if not is_frame(self.source):
            return None
        names = self.names if isinstance(self.source, pa.Table) else list(self.source.columns)
        return self.names if all(isinstance(name, str) for name in names) else None

    @property
    def index(self) -> Any:
        """The row labels of a pandas table; None for any other."""
        return self.source.index if hasattr(self.source, "iloc") else None

    def positions(self, name: Any) -> list[int]:
        """Find the positions of the columns that carry a name."""
        return list(self._places.get(str(name), ()))

    @cached_property
    def _places(self) -> dict[str, list[int]]:
        """The positions of the columns by name: to look through all names for each would be quadratic."""
        places: dict[str, list[int]] = {}
        for j, own in enumerate(self.names):
            places.setdefault(own, []).append(j)
        return places

    def take(self, rows: npt.NDArray[np.integer[Any]]) -> Table:
        """Give the table at some row positions; categories keep their codes."""
        source = None if self.source is None else take_rows(self.source, rows)
        columns = [] if self.is_sparse else [column.take(rows) for column in self.columns]
        return Table(source, self.names, len(rows), columns, named=self.is_named)

    def slice(self, start: int, stop: int) -> Table:
        """Give the rows between two positions, as a table whose columns are read when they are asked for."""
        n_rows = stop - start
        if self.source is None:
            columns = [replace(own, data=own.data.slice(start, n_rows)) for own in self.columns]
            return Table(None, self.names, n_rows, columns, named=self.is_named)
        if isinstance(self.source, pa.Table):
            source = self.source.slice(start, n_rows)
        else:
            source = (self.source.iloc if hasattr(self.source, "iloc") else self.source)[start:stop]
        return Table(source, self.names, n_rows, named=self.is_named)

    def to_pandas(self) -> pd.DataFrame:
        """Give the user's own table as a pandas frame, its values unchanged."""
        import pandas as pd

        if isinstance(self.source, pd.DataFrame):
            return self.source
        if isinstance(self.source, np.ndarray):
            return pd.DataFrame(self.source, columns=self.names)
        if isinstance(self.source, pa.Table):
            return self.source.to_pandas()
        if self.source is None:
            return pd.DataFrame({column.name: column.to_pandas() for column in self.columns})
        import narwhals as nw

        return nw.from_native(self.source).to_pandas()


def is_frame(X: Any) -> bool:
    """Tell whether this is a table with named columns: pandas, polars or pyarrow."""
    if isinstance(X, pa.Table):
        return True
    import narwhals as nw

    if isinstance(X, nw.DataFrame | nw.LazyFrame):
        return True
    known = nw.dependencies
    return known.is_pandas_dataframe(X) or known.is_polars_dataframe(X) or known.is_polars_lazyframe(X)


def _collected(frame: Any) -> Any:
    """Give a table as its own library holds it, a lazy one in full."""
    import narwhals as nw

    if isinstance(frame, nw.DataFrame | nw.LazyFrame):
        frame = frame.to_native()
    return frame.collect() if nw.dependencies.is_polars_lazyframe(frame) else frame


def named_columns(frame: Any) -> list[Column]:
    """Read the columns of a pandas, polars or pyarrow table; names may repeat."""
    return list(Table.from_input(frame).columns)


def _matrix(X: Any) -> npt.NDArray[Any]:
    """Read a two-dimensional array, refusing what has no columns."""
    array = X if isinstance(X, np.ndarray) else np.asarray(X)
    if isinstance(array, np.matrix):
        array = np.asarray(array)
    if array.ndim != 2:
        raise ValueError(
            f"`X` must be a table with rows and columns, got an array with {array.ndim} dimension(s). "
            "Reshape your data, for example with `X.reshape(-1, 1)`."
        )
    if np.iscomplexobj(array):
        raise ValueError("Complex data not supported: `X` holds complex numbers.")
    return array


def one_hot(columns: Sequence[Column], most: int = 32) -> npt.NDArray[np.float64]:
    """Turn columns into numbers for estimators that take nothing else.

    A column of levels becomes one indicator per level; of more than `most` levels the most frequent keep
    theirs, and the others have none.
    """
    blocks: list[npt.NDArray[np.float64]] = []
    for column in columns:
        if column.levels is None:
            blocks.append(column.numbers())
            continue
        codes = column.codes()
        kept = np.arange(len(column.levels))
        if len(kept) > most:
            frequency = np.bincount(codes[codes >= 0], minlength=len(kept))
            kept = np.sort(np.argsort(-frequency, kind="stable")[:most])
        blocks.extend((codes == level).astype(np.float64) for level in kept)
    return np.column_stack(blocks)
