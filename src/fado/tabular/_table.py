"""Tables of any library as Arrow columns; rows and columns by position, name or pattern.

All other packages use one form: numbers and booleans as plain Arrow columns, strings and categoricals as
integer codes into their sorted levels. Rows are identified by position. A column is read once, when it is
first needed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from fado._messages import closest_names
from fado._typing import Floats, Integers
from fado.tabular._column import Column, column_from, is_frame

_UNNAMED = r"__index_level_\d+__"  # what pandas calls an index without a name


class Table:
    """The features: columns in order, and the object that the user passed.

    Parameters
    ----------
    source : numpy array, scipy sparse matrix, pandas, polars or pyarrow table, or None
        What the user passed; None for a table that is made of `columns`.
    names : sequence of str
        The names of the columns.
    n_rows : int
        The number of rows.
    columns : sequence of Column, optional
        The columns, if they have been read.
    named : bool, optional
        Whether the names are the user's; None derives it from the source.

    Attributes
    ----------
    n_columns : int
        The number of columns.
    is_sparse : bool
        Whether the features came as a sparse matrix.
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
        self.n_columns = len(self.names)
        self.is_sparse = hasattr(source, "tocsr")
        self.is_named = not (self.is_sparse or isinstance(source, np.ndarray)) if named is None else named
        self._read: dict[int, Column] = dict(enumerate(columns or ()))

    @classmethod
    def from_input(cls, X: Any) -> Table:
        """Read the shape of a two-dimensional table of any supported library."""
        if not is_frame(X):
            is_sparse = hasattr(X, "tocsr")
            matrix: Any = X if is_sparse or np.ma.isMaskedArray(X) else np.asarray(X)
            if matrix.ndim != 2:
                raise ValueError(
                    f"`X` must be a table with rows and columns, got an array with {matrix.ndim} "
                    "dimension(s). Reshape your data, for example with `X.reshape(-1, 1)`."
                )
            if np.iscomplexobj(matrix):
                raise ValueError("Complex data not supported: `X` holds complex numbers.")
            if is_sparse:
                is_float = matrix.dtype.kind == "f" and matrix.dtype.itemsize <= 8
                matrix = matrix.tocsr() if is_float else matrix.tocsr().astype(np.float64)
            return cls(matrix, [f"x{j}" for j in range(matrix.shape[1])], matrix.shape[0])
        import narwhals as nw

        frame = nw.to_native(X, pass_through=True)
        if nw.dependencies.is_polars_lazyframe(frame):
            frame = frame.collect()
        if isinstance(frame, pa.Table):
            frame = without_index(frame)
            return cls(frame, frame.column_names, frame.num_rows)
        return cls(frame, [str(name) for name in frame.columns], len(frame))

    @classmethod
    def of_columns(cls, columns: Sequence[Column], *, named: bool = True) -> Table:
        """Make a table of columns that have been read."""
        return cls(None, [column.name for column in columns], len(columns[0]), columns, named=named)

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        """All columns; empty for a sparse matrix, which would become dense."""
        return () if self.is_sparse else tuple(self.column(j) for j in range(self.n_columns))

    def column(self, j: int) -> Column:
        """Read one column, by its position; those of a sparse matrix are not kept."""
        if self.is_sparse:
            return column_from(self.names[j], self._by_column[:, [j]].toarray()[:, 0])
        if j not in self._read:
            if isinstance(self.source, pa.Table):
                values = self.source.column(j)
            else:
                values = (self.source.iloc if hasattr(self.source, "iloc") else self.source)[:, j]
            self._read[j] = column_from(self.names[j], values)
        return self._read[j]

    @cached_property
    def _by_column(self) -> Any:
        return self.source.tocsc()

    @property
    def given_names(self) -> list[str] | None:
        """The user's names of the columns; None without names, or if some are not text."""
        if self.source is None or not self.is_named:
            return None
        names = self.names if isinstance(self.source, pa.Table) else self.source.columns
        return self.names if all(isinstance(name, str) for name in names) else None

    @property
    def index(self) -> Any:
        """The row labels of a pandas table; None for any other."""
        return self.source.index if hasattr(self.source, "iloc") else None

    def positions(self, name: Any) -> list[int]:
        """Find the positions of the columns with a name."""
        return list(self._places.get(str(name), ()))

    @cached_property
    def _places(self) -> dict[str, list[int]]:
        """The positions of the columns by name; a search for each name would be quadratic."""
        places: dict[str, list[int]] = {}
        for j, name in enumerate(self.names):
            places.setdefault(name, []).append(j)
        return places

    def take(self, rows: Integers) -> Table:
        """Return the table at some row positions; categories keep their codes."""
        source = None if self.source is None else take_rows(self.source, rows)
        columns = [] if self.is_sparse else [column.take(rows) for column in self.columns]
        return Table(source, self.names, len(rows), columns, named=self.is_named)

    def slice(self, start: int, stop: int) -> Table:
        """Return the rows between two positions, as a table whose columns are read when needed."""
        n_rows = stop - start
        if self.source is None:
            columns = [replace(column, data=column.data.slice(start, n_rows)) for column in self.columns]
            return Table(None, self.names, n_rows, columns, named=self.is_named)
        if isinstance(self.source, pa.Table):
            source = self.source.slice(start, n_rows)
        else:
            source = (self.source.iloc if hasattr(self.source, "iloc") else self.source)[start:stop]
        return Table(source, self.names, n_rows, named=self.is_named)

    def to_pandas(self) -> pd.DataFrame:
        """Return the user's table as a pandas frame, its values unchanged."""
        if isinstance(self.source, pd.DataFrame):
            return self.source
        if isinstance(self.source, np.ndarray):
            return pd.DataFrame(self.source, columns=self.names)
        if self.source is None:
            return pd.DataFrame({column.name: column.to_pandas() for column in self.columns})
        return self.source.to_pandas()


def one_hot(columns: Sequence[Column], most: int = 32) -> Floats:
    """Turn columns into numbers, for estimators that need numbers.

    A column of levels becomes one indicator per level, at most `most`, for the most frequent levels.
    """
    blocks: list[Floats] = []
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
    return np.column_stack(blocks) if blocks else np.empty((len(columns[0]), 0))


def named_index(table: pa.Table) -> list[str]:
    """List the columns that are the named index of a pandas table.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"a": [1]}, index=pd.Index([7], name="id"))
    >>> named_index(pa.Table.from_pandas(frame))
    ['id']
    """
    index = (table.schema.pandas_metadata or {}).get("index_columns", [])  # or how to make it
    names = [name for name in index if isinstance(name, str) and not re.fullmatch(_UNNAMED, name)]
    return [name for name in names if name in table.column_names]


def without_index(table: pa.Table) -> pa.Table:
    """Return a table without an unnamed index; a named index is a column.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"a": [1, 2]}, index=pd.Index([7, 8], name="id"))
    >>> without_index(pa.Table.from_pandas(frame)).to_pandas()
       a  id
    0  1   7
    1  2   8
    >>> without_index(pa.Table.from_pandas(frame.rename_axis(None))).column_names
    ['a']
    """
    unnamed = [name for name in table.column_names if re.fullmatch(_UNNAMED, name)]
    named = named_index(table)
    if unnamed:
        table = table.drop_columns(unnamed)
    if not named:
        return table
    metadata = json.dumps(table.schema.pandas_metadata | {"index_columns": []}).encode()
    return table.replace_schema_metadata((table.schema.metadata or {}) | {b"pandas": metadata})


def take_rows(values: Any, rows: Integers) -> Any:
    """Return some rows of a table, a column or a list, in its own type."""
    if hasattr(values, "iloc"):  # pandas, whose labels are not positions
        return values.take(rows)  # pandas 2 warns of changes to the result of `iloc`
    if hasattr(values, "tocsr"):
        return values.tocsr()[rows].asformat(values.format)
    if isinstance(values, pa.Table | pa.ChunkedArray | pa.Array):
        return values.take(pa.array(rows))
    if isinstance(values, list | tuple):
        return type(values)(values[row] for row in rows)
    if hasattr(values, "collect"):  # a lazy polars table
        return values.collect()[rows]
    return values[rows]  # numpy and polars


def read_rows(given: Any, n_rows: int, what: str) -> Integers:
    """Read which rows a user selects: their positions, in the given order, or a mask over all rows.

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


def read_folds(
    cv: Any, n_rows: int, labels: Any = None, blocks: Any = None
) -> list[tuple[Integers, Integers]]:
    """Read folds as scikit-learn accepts them, except a number of folds: the rows of each, ascending.

    `cv` is a splitter, or pairs of positions of rows or masks; a splitter may use labels and blocks. No fold
    may be empty, or train on a row that it validates or on one of its block; no row is validated twice.
    """
    if isinstance(cv, type):
        raise TypeError(f"`cv` must be a splitter, got the class {cv.__name__}: write `{cv.__name__}()`.")
    if hasattr(cv, "split") and not isinstance(cv, str):
        try:
            pairs = list(cv.split(np.zeros((n_rows, 1)), labels, blocks))
        except (TypeError, ValueError) as error:
            reason = " ".join(str(error).split())
            raise ValueError(f"`cv` ({cv!r}) cannot split these rows: {reason}") from error
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
        fold = f"Fold {number} of `cv`"
        if not isinstance(pair, list | tuple) or len(pair) != 2:
            raise ValueError(f"{fold} must be a pair of the rows to train on and to validate, got {pair!r}.")
        both = []
        for what, given in zip(("training", "validation"), pair, strict=True):
            rows = np.sort(read_rows(given, n_rows, f"{fold}, {what} rows"))
            if not len(rows):
                raise ValueError(f"{fold}, {what} rows: a fold needs at least one row, got none.")
            repeated = rows[1:][rows[1:] == rows[:-1]]
            if len(repeated):
                raise ValueError(f"{fold}, {what} rows: row {repeated[0]} appears twice; list it once.")
            both.append(rows)
        train, validation = both
        shared = np.intersect1d(train, validation, assume_unique=True)
        if len(shared):
            raise ValueError(
                f"{fold} trains on row {shared[0]} and validates it: remove it from one of the two."
            )
        if blocks is not None and len(shared := validation[np.isin(blocks[validation], blocks[train])]):
            raise ValueError(
                f"{fold} trains on a row of the same entry of `groups` as row {shared[0]}, which it "
                "validates: use a splitter that keeps groups together, such as GroupKFold."
            )
        before = validation[validated_by[validation] >= 0]
        if len(before):
            raise ValueError(
                f"{fold} validates row {before[0]}, which fold {validated_by[before[0]]} also validates: "
                "every row may be validated once."
            )
        validated_by[validation] = number
        folds.append((train, validation))
    return folds


def as_names(given: Any, called: str) -> list[Any]:
    """Read a list of columns: a name alone is a list of one, None an empty list.

    Examples
    --------
    >>> as_names("age", "drop"), as_names(None, "drop")
    (['age'], [])
    """
    if given is None:
        return []
    if isinstance(given, str):
        return [given]
    if not isinstance(given, Iterable):
        raise TypeError(f"`{called}` must be a list of column names, got {given!r}.")
    return list(given)


def is_pattern(name: str) -> bool:
    """Return whether a name is a pattern."""
    return any(sign in name for sign in "*?[")


def names_like(name: str, names: Collection[str]) -> list[str]:
    """Find the names that a name or pattern matches; an exact name comes first.

    Examples
    --------
    >>> names_like("age_*", ["age_1", "age_2", "sex"])
    ['age_1', 'age_2']
    >>> names_like("age_*", ["age_1", "age_*"])
    ['age_*']
    """
    return [name] if name in names else [known for known in names if fnmatchcase(known, name)]


def columns_named(names: Sequence[str], wanted: str | Sequence[str] | None, called: str) -> list[str]:
    """Find columns by their names or patterns, each once; an exact name comes first.

    Examples
    --------
    >>> columns_named(["age_1", "age_2", "sex"], ["age_*", "sex"], "--drop")
    ['age_1', 'age_2', 'sex']
    """
    known = dict.fromkeys(names)  # a search in a list would be quadratic
    matches: dict[str, None] = {}
    for name in as_names(wanted, called):
        if not isinstance(name, str):
            raise TypeError(f"`{called}` must list names of columns as text, got {name!r}.")
        here = names_like(name, known)
        if not here:
            what = "no column fits this pattern" if is_pattern(name) else f"there is no column {name!r}"
            raise ValueError(f"`{called}` names {name!r}: {what}{closest_names(name, names)}")
        matches.update(dict.fromkeys(here))
    return list(matches)


def open_table(frame: Any) -> Any:
    """Wrap a pandas, polars or pyarrow table as a narwhals DataFrame."""
    # Imported here so that the data generator and the loader only need numpy and pandas.
    import narwhals.stable.v2 as nw

    if isinstance(frame, pd.DataFrame) and not frame.columns.is_unique:
        repeated = frame.columns[frame.columns.duplicated()][0]
        raise ValueError(f"`frame` must have distinct column names, got {repeated!r} more than once.")
    try:
        return nw.from_native(frame, eager_only=True)
    except TypeError:
        kind = type(frame).__name__
        raise TypeError(f"`frame` must be a pandas, polars or pyarrow table, got {kind}.") from None
