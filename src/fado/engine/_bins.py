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

from fado._typing import Integers
from fado.engine._base import Schema
from fado.tabular import Column, Table, Variable

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
    """A table's columns of numbers or codes of levels and, last, the target if there is one.

    Parameters
    ----------
    columns : sequence of Column
        One by one.
    """

    def __init__(self, columns: Sequence[Column]) -> None:
        self._columns = columns
        self.n_columns = len(columns)
        self.n_rows = len(columns[0]) if columns else 0
        self.levelled = [j for j, column in enumerate(columns) if column.levels is not None]

    def with_target(self, target: Variable) -> DenseColumns:
        """Return the columns and the target, for the models of protected attributes."""
        levels = tuple(map(str, target.classes)) if len(target.classes) > 2 else None
        return DenseColumns([*self._columns, Column("", pa.chunked_array([pa.array(target.labels)]), levels)])

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

    def has_many_usual(self) -> bool:
        """Return whether many entries are usual: zero, or a value in at least 70 % of the rows.

        LightGBM need not count them. Many means a fifth, in a sample of the rows.
        """
        rows, shares = _sampled(self.n_rows), []
        for column in self._columns:
            sample = column.take(rows).numbers()
            _, counts = np.unique(sample, return_counts=True)
            most = counts.max() / len(rows)
            zeros = np.mean(sample == 0.0) if column.levels is None else 0.0
            shares.append(most if most >= _USUAL else zeros)
        return bool(np.mean(shares) >= _MANY)


class SparseColumns:
    """Columns of numbers, most of them zero, with the methods of `DenseColumns`; only others take memory.

    Examples
    --------
    >>> import numpy as np
    >>> import scipy.sparse
    >>> columns = SparseColumns(scipy.sparse.csr_matrix([[0, 2], [1, 0]]))
    >>> columns.n_columns, columns.take(np.array([1])).for_scores().toarray()
    (2, array([[1., 0.]]))
    """

    def __init__(self, matrix: Any, levelled: Sequence[int] = ()) -> None:
        import scipy.sparse

        rows = scipy.sparse.csr_matrix(matrix, dtype=np.float64)  # LightGBM warns about every other form
        if not rows.has_canonical_format or not rows.data.all():
            rows = rows.copy()  # the user's own stays as it is
            rows.sum_duplicates()
            rows.eliminate_zeros()
        self._matrix = rows
        self.n_rows, self.n_columns = map(int, rows.shape)
        self.levelled = list(levelled)

    def with_target(self, target: Variable) -> SparseColumns:
        import scipy.sparse

        more = scipy.sparse.hstack([self._matrix, target.labels.astype(float)[:, np.newaxis]], format="csr")
        return SparseColumns(more, [*self.levelled, *([self.n_columns] if len(target.classes) > 2 else [])])

    def take(self, rows: Integers) -> SparseColumns:
        return SparseColumns(self._matrix[rows], self.levelled)

    def in_order(self, order: Sequence[int]) -> SparseColumns:
        levelled = [place for place, j in enumerate(order) if j in self.levelled]
        return SparseColumns(self._matrix[:, list(order)], levelled)

    def digests(self) -> list[bytes]:
        matrix = self._matrix.tocsc()
        entries = np.zeros(matrix.shape[0])
        digests = []
        for start, end in zip(matrix.indptr[:-1], matrix.indptr[1:], strict=True):
            rows = matrix.indices[start:end]
            entries[rows] = matrix.data[start:end]
            digests.append(Column("", pa.chunked_array([pa.array(entries)])).digest())
            entries[rows] = 0.0
        return digests

    def for_bins(self) -> Any:
        return self._matrix

    def for_scores(self) -> Any:
        return self._matrix

    def has_many_usual(self) -> bool:
        rows = _sampled(self.n_rows)
        matrix = self._matrix[rows].tocsc()
        shares = 1.0 - np.diff(matrix.indptr) / len(rows)
        for j in np.flatnonzero(shares <= 1.0 - _USUAL):  # no other value can be in 70 % of the rest
            _, counts = np.unique(matrix.data[matrix.indptr[j] : matrix.indptr[j + 1]], return_counts=True)
            most = counts.max() / len(rows)
            shares[j] = most if most >= _USUAL else 0.0 if j in self.levelled else shares[j]
        return bool(shares.mean() >= _MANY)


Columns = DenseColumns | SparseColumns


def _sampled(n_rows: int) -> npt.NDArray[np.int64]:
    return np.linspace(0, n_rows - 1, min(n_rows, _SAMPLED_ROWS)).astype(np.int64)


def columns_of(table: Table, schema: Schema, places: Sequence[int | None], *, sparse: bool) -> Columns:
    """Return the columns of another table, from their places there, in the order and levels of a schema."""
    if table.is_sparse and sparse:
        return SparseColumns(table.source)
    return DenseColumns([schema.column(table, j, place) for j, place in enumerate(places)])


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
