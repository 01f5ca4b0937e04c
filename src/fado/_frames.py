"""Tables of any library in; Arrow columns out.

Everything behind the public surface sees one form: numbers and booleans as plain Arrow columns, strings and
categoricals as integer codes into their sorted levels. Rows are known by their position alone.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Column", "Table", "column_from", "is_frame", "is_sparse", "named_columns", "one_hot"]


@dataclass(frozen=True)
class Column:
    """One column: numbers, or codes into `levels`.

    Parameters
    ----------
    name : str
        What messages call it.
    data : pyarrow.ChunkedArray
        Numbers or booleans; for a column of levels, int32 codes. Missing entries are null or NaN.
    levels : tuple of str or None
        The sorted levels of a string or categorical column; None for numbers.
    """

    name: str
    data: pa.ChunkedArray
    levels: tuple[str, ...] | None = None

    def __len__(self) -> int:
        return len(self.data)

    @property
    def is_boolean(self) -> bool:
        """Whether the column holds booleans."""
        return pa.types.is_boolean(self.data.type)

    def numbers(self) -> npt.NDArray[np.float64]:
        """Give the numbers (or codes) as float64, with NaN where the entry is missing."""
        data = self.data.cast(pa.int8()) if self.is_boolean else self.data
        return data.cast(pa.float64(), safe=False).to_numpy()

    def codes(self) -> npt.NDArray[np.int32]:
        """Give the codes of a column of levels, -1 where the entry is missing."""
        return self.data.fill_null(-1).to_numpy().astype(np.int32, copy=False)

    def digest(self) -> bytes:
        """Give a key of the contents alone: neither the name nor how the entries are stored changes it."""
        numbers = self.numbers() + 0.0  # a copy, without negative zeros
        numbers[np.isnan(numbers)] = np.nan
        return hashlib.blake2b(numbers.data, digest_size=16).digest()

    def take(self, rows: npt.NDArray[np.integer[Any]]) -> Column:
        """Give the column at some row positions."""
        return Column(self.name, self.data.take(pa.array(rows)), self.levels)


@dataclass(frozen=True)
class Table:
    """The features: columns in order, and the object that the user passed."""

    columns: tuple[Column, ...]
    n_rows: int
    source: Any

    @classmethod
    def from_input(cls, X: Any, only: Collection[str] | None = None) -> Table:
        """Read a two-dimensional table of any supported library.

        Parameters
        ----------
        X : numpy array, scipy sparse matrix, pandas, polars or pyarrow table
            A sparse matrix keeps no columns here: only the generic path can use it.
        only : collection of str, optional
            Names of the columns to read. The others are named and hold nothing, so that what they hold
            costs nothing and may be anything.
        """
        if is_sparse(X):
            if np.issubdtype(X.dtype, np.complexfloating):
                raise ValueError("Complex data not supported: `X` holds complex numbers.")
            return cls((), X.shape[0], X.tocsr())
        if is_frame(X):
            columns = tuple(named_columns(X, only))
            n_rows = X.num_rows if isinstance(X, pa.Table) else len(X)
        else:
            X = _matrix(X)
            columns = tuple(_column(f"x{j}", X[:, j], only) for j in range(X.shape[1]))
            n_rows = X.shape[0]
        return cls(columns, n_rows, X)

    @property
    def names(self) -> list[str]:
        """The columns' names, in order."""
        return [column.name for column in self.columns]

    @property
    def n_columns(self) -> int:
        """How many columns there are, sparse or not."""
        return self.source.shape[1] if self.is_sparse else len(self.columns)

    @property
    def is_sparse(self) -> bool:
        """Whether the features came as a sparse matrix."""
        return is_sparse(self.source)

    def positions(self, name: Any) -> list[int]:
        """Find the positions of the columns that carry a name."""
        return [j for j, column in enumerate(self.columns) if column.name == str(name)]

    def to_pandas(self) -> pd.DataFrame:
        """Give the user's own table as a pandas frame, its values unchanged."""
        import pandas as pd

        if isinstance(self.source, pd.DataFrame):
            return self.source
        if isinstance(self.source, np.ndarray):
            return pd.DataFrame(self.source, columns=self.names)
        if isinstance(self.source, pa.Table):
            return self.source.to_pandas()
        import narwhals as nw

        return nw.from_native(self.source).to_pandas()


def is_sparse(X: Any) -> bool:
    """Tell whether this is a scipy sparse matrix or array."""
    import scipy.sparse

    return scipy.sparse.issparse(X)


def is_frame(X: Any) -> bool:
    """Tell whether this is a table with named columns: pandas, polars or pyarrow."""
    if isinstance(X, pa.Table):
        return True
    import narwhals as nw

    if isinstance(X, nw.DataFrame):
        return True
    return nw.dependencies.is_pandas_dataframe(X) or nw.dependencies.is_polars_dataframe(X)


def named_columns(frame: Any, only: Collection[str] | None = None) -> list[Column]:
    """Read the columns of a pandas, polars or pyarrow table, or only some; names may repeat."""
    import narwhals as nw

    if nw.dependencies.is_pandas_dataframe(frame):
        return [_column(str(name), frame.iloc[:, j], only) for j, name in enumerate(frame.columns)]
    table = frame if isinstance(frame, pa.Table) else nw.from_native(frame).to_arrow()
    return [_column(name, table.column(j), only) for j, name in enumerate(table.column_names)]


def _column(name: str, values: Any, only: Collection[str] | None) -> Column:
    if only is None or name in only:
        return column_from(name, values)
    return Column(name, pa.chunked_array([], pa.null()))


def column_from(name: str, values: Any) -> Column:
    """Read one column.

    Parameters
    ----------
    name : str
        What messages call it.
    values : array-like
        One-dimensional: list, numpy array, pandas or polars Series, Arrow array.
    """
    data = _arrow(name, values)
    kind = data.type
    if pa.types.is_null(kind):
        return Column(name, pa.chunked_array([pa.nulls(len(data), pa.float64())]))
    if pa.types.is_decimal(kind) or pa.types.is_float16(kind):
        return Column(name, data.cast(pa.float64()))
    if pa.types.is_boolean(kind) or pa.types.is_integer(kind) or pa.types.is_floating(kind):
        return Column(name, data)
    if _is_text(kind) or pa.types.is_dictionary(kind):
        return _levelled(name, data)
    if pa.types.is_temporal(kind):
        raise ValueError(
            f"Column {name!r} holds dates or times ({kind}): turn it into numbers (days since a date, month, "
            "hour) or leave it out."
        )
    raise ValueError(f"Column {name!r} holds {kind}: use numbers, booleans, strings or categories.")


def _is_text(kind: pa.DataType) -> bool:
    return pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)


def _arrow(name: str, values: Any) -> pa.ChunkedArray:
    """Bring one column into Arrow memory, without a copy where its library allows it."""
    if isinstance(values, pa.ChunkedArray):
        return values
    if isinstance(values, pa.Array):
        return pa.chunked_array([values])
    import narwhals as nw

    if nw.dependencies.is_polars_series(values):
        return pa.chunked_array([values.to_arrow()])
    if isinstance(values, nw.Series):
        return pa.chunked_array([values.to_arrow()])
    if isinstance(values, np.ndarray):
        if np.iscomplexobj(values):
            raise ValueError(f"Complex data not supported: column {name!r} holds complex numbers.")
        if values.dtype.kind in "biuf":
            return pa.chunked_array([pa.array(np.ascontiguousarray(values))])
        if values.dtype.kind == "U":
            values = values.astype(object)
    try:
        array = pa.array(values, from_pandas=True)
    except (pa.ArrowException, TypeError, OverflowError) as error:
        raise _mixed(name, values) from error
    return array if isinstance(array, pa.ChunkedArray) else pa.chunked_array([array])


def _mixed(name: str, values: Any) -> Exception:
    """Say what is wrong with a column that fits no single type."""
    found = sorted({type(value).__name__ for value in values if value is not None})
    if not set(found) - {"bool", "int", "float", "str", "bytes", "Decimal"} or any("int" in f for f in found):
        return ValueError(
            f"Column {name!r} mixes types ({', '.join(found)}): make it all numbers or all strings, "
            "for example with `.astype(str)`."
        )
    return TypeError(
        f"Column {name!r} holds {', '.join(found)}: every argument must be a string or a number."
    )


def _levelled(name: str, data: pa.ChunkedArray) -> Column:
    """Encode strings or categories as codes into the sorted levels that occur."""
    indices, texts = _categories(data) if pa.types.is_dictionary(data.type) else _encoded(data)
    occurs = np.zeros(len(texts), dtype=bool)
    occurs[indices.drop_null().to_numpy()] = True
    order = pc.sort_indices(texts).to_numpy()
    order = order[occurs[order]]
    rank = np.zeros(len(texts), dtype=np.int32)
    rank[order] = np.arange(len(order), dtype=np.int32)
    codes = pa.array(rank).take(indices)
    return Column(name, pa.chunked_array([codes]), tuple(texts.take(pa.array(order)).to_pylist()))


def _categories(data: pa.ChunkedArray) -> tuple[pa.Array, pa.Array]:
    """Give a categorical column's positions in its categories, and these as text, each once."""
    parts = data.unify_dictionaries().chunks
    if not parts:
        return _encoded(data.cast(data.type.value_type))
    positions, texts = _encoded(pa.chunked_array([parts[0].dictionary]))
    return positions.take(pa.concat_arrays([part.indices for part in parts])), texts


def _encoded(data: pa.ChunkedArray) -> tuple[pa.Array, pa.Array]:
    """Give the positions of a column's entries among its distinct texts, and these."""
    text = data if pa.types.is_large_string(data.type) else data.cast(pa.large_string())
    encoded = text.dictionary_encode().combine_chunks()
    if isinstance(encoded, pa.ChunkedArray):
        encoded = encoded.chunk(0) if encoded.num_chunks else pa.array([], text.type).dictionary_encode()
    return encoded.indices, encoded.dictionary


def _matrix(X: Any) -> npt.NDArray[Any]:
    """Read a two-dimensional array, refusing what has no columns."""
    array = X if isinstance(X, np.ndarray) else np.asarray(X)
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
