"""What LightGBM sees: the table's columns and, last, the target; and their bins.

LightGBM has one, process-wide number of threads, which must not grow under a running fit: every call that
sets a number of threads sets it for the whole process. A fit that started with one thread and then gets two
writes past its buffers and crashes. So tables are binned by several threads only while no fit runs, and no
fit starts meanwhile. A forked child has its parent's memory and none of its threads: there, several threads
would wait forever.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fado._typing import Floats, Integers
from fado.engine._base import LabelArray, Schema, check_target, replace_target
from fado.tabular import Column, ShelvedTable, Table, Variable

if TYPE_CHECKING:
    import lightgbm

# What decides the bins; estimators that agree on these share one binned table.
BINNING = ("subsample_for_bin", "max_bin", "min_data_in_bin", "random_state")
_SAMPLED_ROWS = 2000
_MANY = 0.2
_USUAL = 0.7  # of the rows

_changed = threading.Condition()
_fits = 0
_binning = False
_forked = False


class DenseColumns:
    """Columns of numbers or codes of levels, one by one."""

    def __init__(self, columns: Sequence[Column]) -> None:
        self._columns = columns
        self.levelled = [j for j, column in enumerate(columns) if column.levels is not None]

    def __len__(self) -> int:
        return len(self._columns)

    @property
    def n_rows(self) -> int:
        """How many rows there are."""
        return len(self._columns[0])

    def with_column(self, column: Column) -> DenseColumns:
        """Return the columns and one more, the last."""
        return DenseColumns([*self._columns, column])

    def take(self, rows: Integers) -> DenseColumns:
        """Return the columns at some row positions."""
        return DenseColumns([column.take(rows) for column in self._columns])

    def in_order(self, order: Sequence[int]) -> DenseColumns:
        """Return some columns, in an order."""
        return DenseColumns([self._columns[j] for j in order])

    def digests(self) -> list[bytes]:
        """Return a key of the content of each column."""
        return [column.digest() for column in self._columns]

    def for_bins(self) -> Any:
        """Return the columns as `lightgbm.Dataset` takes them."""
        # Column names never reach LightGBM: it refuses some characters and confuses "a b" with "a_b".
        return pa.table({f"f{j}": column.data for j, column in enumerate(self._columns)})

    def for_scores(self) -> Any:
        """Return the columns as `lightgbm.Booster.predict` takes them."""
        return np.column_stack([column.numbers() for column in self._columns])

    def usual_shares(self, rows: npt.NDArray[np.integer[Any]]) -> Floats:
        """Return each column's share of zeros, or of the value in at least 70 % of some rows."""
        shares = []
        for column in self._columns:
            sample = column.take(rows).numbers()
            _, counts = np.unique(sample, return_counts=True)
            most = counts.max() / len(rows)
            zeros = np.mean(sample == 0.0) if column.levels is None else 0.0
            shares.append(most if most >= _USUAL else zeros)
        return np.array(shares)


class SparseColumns:
    """Columns of numbers, most of them zero, with the methods of `DenseColumns`; only others take memory.

    Examples
    --------
    >>> import numpy as np
    >>> import scipy.sparse
    >>> columns = SparseColumns(scipy.sparse.csr_matrix([[0, 2], [1, 0]]))
    >>> len(columns), columns.take(np.array([1])).for_scores().toarray()
    (2, array([[1., 0.]]))
    """

    def __init__(self, matrix: Any, levelled: Sequence[int] = ()) -> None:
        import scipy.sparse

        own = scipy.sparse.csr_matrix(matrix, dtype=np.float64)  # LightGBM warns about every other form
        if not own.has_canonical_format or not own.data.all():
            own = own.copy()  # the user's own stays as it is
            own.sum_duplicates()
            own.eliminate_zeros()
        self._matrix = own
        self.levelled = list(levelled)

    def __len__(self) -> int:
        return int(self._matrix.shape[1])

    @property
    def n_rows(self) -> int:
        return int(self._matrix.shape[0])

    def with_column(self, column: Column) -> SparseColumns:
        import scipy.sparse

        more = scipy.sparse.hstack([self._matrix, column.numbers()[:, np.newaxis]], format="csr")
        return SparseColumns(more, [*self.levelled, *([] if column.levels is None else [len(self)])])

    def take(self, rows: Integers) -> SparseColumns:
        return SparseColumns(self._matrix[rows], self.levelled)

    def in_order(self, order: Sequence[int]) -> SparseColumns:
        levelled = [place for place, j in enumerate(order) if j in self.levelled]
        return SparseColumns(self._matrix[:, list(order)], levelled)

    def digests(self) -> list[bytes]:
        matrix = self._matrix.tocsc()
        entries = np.zeros(matrix.shape[0])
        found = []
        for start, end in zip(matrix.indptr[:-1], matrix.indptr[1:], strict=True):
            rows = matrix.indices[start:end]
            entries[rows] = matrix.data[start:end]
            found.append(Column("", pa.chunked_array([pa.array(entries)])).digest())
            entries[rows] = 0.0
        return found

    def for_bins(self) -> Any:
        return self._matrix

    def for_scores(self) -> Any:
        return self._matrix

    def usual_shares(self, rows: npt.NDArray[np.integer[Any]]) -> Floats:
        matrix = self._matrix[rows].tocsc()
        shares = 1.0 - np.diff(matrix.indptr) / len(rows)
        for j in np.flatnonzero(shares <= 1.0 - _USUAL):  # no other value can be in 70 % of the rest
            _, counts = np.unique(matrix.data[matrix.indptr[j] : matrix.indptr[j + 1]], return_counts=True)
            most = counts.max() / len(rows)
            shares[j] = most if most >= _USUAL else 0.0 if j in self.levelled else shares[j]
        return shares


Columns = DenseColumns | SparseColumns


def columns_of(table: Table, schema: Schema, places: Sequence[int | None], *, sparse: bool) -> Columns:
    """Return the columns of another table, from their places there, in the order and levels of a schema."""
    if table.is_sparse and sparse:
        return SparseColumns(table.source)
    return DenseColumns([schema.column(table, j, place) for j, place in enumerate(places)])


class Features:
    """A table's columns and, last, the target, in an order, and which of them a variable's models see.

    With `by_content`, the order depends on the columns' content, so that their places and names do not
    matter.
    """

    def __init__(self, table: Table, target: Variable | None, *, by_content: bool) -> None:
        self.schema = Schema.of(table)
        self._target = target
        self._shelved = table if isinstance(table, ShelvedTable) else None
        self.n_columns = table.n_columns
        self.columns = self._columns_of(table)
        digests = self.columns.digests() if by_content else range(len(self.columns))
        self.order = tuple(sorted(range(len(self.columns)), key=digests.__getitem__))

    def _columns_of(self, table: Table) -> Columns:
        columns = columns_of(table, self.schema, range(self.n_columns), sparse=table.is_sparse)
        return columns if self._target is None else columns.with_column(_as_column(self._target))

    def __getstate__(self) -> dict[str, Any]:
        if self._shelved is None:
            return self.__dict__
        return {name: value for name, value in self.__dict__.items() if name != "columns"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        if self._shelved is not None:  # its columns are in a file
            self.columns = self._columns_of(self._shelved)

    @property
    def is_sparse(self) -> bool:
        """Whether the columns are those of a sparse matrix."""
        return isinstance(self.columns, SparseColumns)

    def sees(self, variable: Variable, j: int) -> bool:
        """Return whether a variable's models may split on a column."""
        check_target(variable, self._target)
        return j not in variable.excluded if j < self.n_columns else variable.sees_target

    def seen(self, variable: Variable) -> list[int]:
        """Return the positions of the table's columns that a variable's models may split on."""
        return [j for j in range(self.n_columns) if self.sees(variable, j)]

    def find(self, table: Table, variable: Variable) -> list[int | None]:
        """Find the columns in another table; one that a variable's models see must not be missing."""
        return self.schema.find(table, self.seen(variable))

    def of_table(self, table: Table, target: LabelArray | None, variable: Variable) -> Columns:
        """Return the columns of another table like `columns`; those that models do not see may be missing."""
        places = self.find(table, variable)
        columns = columns_of(table, self.schema, places, sparse=self.is_sparse)
        if self._target is None:
            return columns
        theirs = replace_target(self._target, target, table.n_rows, variable)
        unseen = self._target.take(np.zeros(table.n_rows, dtype=np.intp))
        return columns.with_column(_as_column(unseen if theirs is None else theirs))

    def of_rows(self, rows: Integers, target: LabelArray | None, variable: Variable) -> Columns:
        """Return the columns at some row positions, with other labels of the target where models see it."""
        columns = self.columns.take(rows)
        theirs = None if target is None else replace_target(self._target, target, len(rows), variable)
        if theirs is None:
            return columns
        return columns.in_order(range(self.n_columns)).with_column(_as_column(theirs))


def _as_column(target: Variable) -> Column:
    """Turn the target into a feature column for the models of protected attributes."""
    levels = tuple(map(str, target.classes)) if len(target.classes) > 2 else None
    return Column(target.name, pa.chunked_array([pa.array(target.labels)]), levels)


def many_usual_values(columns: Columns) -> bool:
    """Return whether many of a table's entries are usual: zero, or a value in at least 70 % of the rows.

    LightGBM need not count them. Many means a fifth, in a sample of the rows.
    """
    n_rows = columns.n_rows
    rows = np.linspace(0, n_rows - 1, min(n_rows, _SAMPLED_ROWS)).astype(np.int64)
    return bool(columns.usual_shares(rows).mean() >= _MANY)


def bin_columns(
    columns: Columns,
    parameters: dict[str, Any],
    workers: int,
    reference: lightgbm.Dataset | None = None,
    *,
    least_rows: int = 1,
) -> lightgbm.Dataset:
    """Bin a table; with a reference, into the bins of that one.

    No model will ever split off fewer than `least_rows`: a column that cannot be split then, such as a
    constant one, is never drawn by models that draw columns. The bins do not depend on the `workers`.
    """
    import lightgbm

    decisive = {name: parameters[name] for name in BINNING if name in parameters}
    settings = decisive | {"verbosity": -1, "min_data_in_leaf": least_rows}
    dataset = lightgbm.Dataset(
        columns.for_bins(),
        reference=reference,
        label=np.zeros(columns.n_rows, dtype=np.float32),
        categorical_feature=columns.levelled,
        params=settings,
    )
    with binning(workers) as threads:
        dataset.params = {**settings, "num_threads": threads}
        dataset.construct()
        dataset.params = {**settings, "num_threads": 1}  # its subsets name the number again, while fits run
    return dataset


def subset(
    binned: lightgbm.Dataset,
    rows: Integers,
    labels: npt.NDArray[Any] | None = None,
    weights: npt.NDArray[np.floating[Any]] | None = None,
) -> lightgbm.Dataset:
    """Return some rows of a binned table with labels (else those of the table) and, if any, weights.

    LightGBM takes any weights, also all zero or negative: they must have been checked before. Call it, and
    all that follows with the subset, within `fitting`.
    """
    part = binned.subset([])
    part.used_indices = rows  # type: ignore[assignment]  # `subset` would sort them as a Python list
    part.construct()
    if labels is not None:
        part.set_field("label", labels.astype(np.float32))  # `set_label` looks through every library first
    return part if weights is None else part.set_weight(weights.astype(np.float32, copy=False))


@contextmanager
def binning(wanted: int) -> Iterator[int]:
    """Reserve threads for binning a table: as many as wanted, but 1 while fits run and in a forked child."""
    global _binning
    with _changed:
        _changed.wait_for(lambda: not _binning)
        alone = _fits == 0
        _binning = alone
    try:
        yield wanted if alone and not _forked else 1
    finally:
        if alone:
            with _changed:
                _binning = False
                _changed.notify_all()


@contextmanager
def fitting() -> Iterator[None]:
    """Run a fit of one thread, from its first subset of the bins to its last score."""
    global _fits
    with _changed:
        _changed.wait_for(lambda: not _binning)
        _fits += 1
    try:
        if _forked:
            _name_one_thread()
        yield
    finally:
        with _changed:
            _fits -= 1
            _changed.notify_all()


def _name_one_thread() -> None:
    """Set one thread for calls that set no number: else they would use that of the parent's last call."""
    import lightgbm

    lightgbm.Dataset(np.zeros((1, 1)), params={"num_threads": 1, "verbosity": -1}).construct()


def _start_anew() -> None:
    """Forget, in a forked child, the running fits of its parent."""
    global _changed, _fits, _binning, _forked
    _changed = threading.Condition()
    _fits, _binning, _forked = 0, False, True


if hasattr(os, "register_at_fork"):  # Windows has no fork
    os.register_at_fork(after_in_child=_start_anew)
