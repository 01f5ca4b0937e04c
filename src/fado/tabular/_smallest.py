"""A sample of a table that is read block by block: the rows of the smallest hashes."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

__all__ = ["SmallestRows"]

_SLACK = 1.25  # times the rows that are asked for are held before some are let go


class SmallestRows:
    """Keep the rows of the smallest hashes among all that are seen.

    The rows that are kept depend neither on the order of the blocks nor on their sizes. Little more than
    `n_rows` rows are held at any time, beside a block.

    Parameters
    ----------
    n_rows : int
        How many to keep; all, if fewer are seen.
    schema : pyarrow.Schema
        Of every block.

    Examples
    --------
    >>> from fado.tabular import row_hash
    >>> table = pa.table({"age": [20, 30, 40, 50, 60, 70]})
    >>> sample = SmallestRows(2, table.schema)
    >>> for rows in (np.array([3, 4, 5]), np.array([0, 1, 2])):
    ...     sample.add(row_hash(0, rows), rows, table.take(rows))
    >>> rows, kept = sample.finish()
    >>> rows, kept["age"].to_pylist()
    (array([0, 1]), [20, 30])
    """

    def __init__(self, n_rows: int, schema: pa.Schema) -> None:
        self.n_rows = n_rows
        self.schema = schema
        self._hashes: list[npt.NDArray[np.uint64]] = [np.empty(0, dtype=np.uint64)]
        self._rows: list[npt.NDArray[np.int64]] = [np.empty(0, dtype=np.int64)]
        self._columns: list[list[pa.Array]] = [[pa.array([], field.type)] for field in schema]
        self._held = 0
        self._bound: np.uint64 | None = None  # below which are the hashes of all further rows to keep

    def add(
        self, hashes: npt.NDArray[np.uint64], rows: npt.NDArray[np.integer[Any]], block: pa.Table
    ) -> None:
        """See a block.

        Parameters
        ----------
        hashes : ndarray of uint64
            Of its rows, no two alike among all rows.
        rows : ndarray of int
            Their places in the whole table.
        block : pyarrow.Table
            The rows themselves.
        """
        wanted = np.arange(len(hashes)) if self._bound is None else np.flatnonzero(hashes < self._bound)
        if len(wanted) > self.n_rows:
            wanted = np.sort(wanted[_smallest(hashes[wanted], self.n_rows)])
        if not len(wanted):
            return
        self._hashes.append(hashes[wanted])
        self._rows.append(rows[wanted].astype(np.int64))
        for kept, column in zip(self._columns, block.take(pa.array(wanted)).columns, strict=True):
            kept.extend(column.chunks)
        self._held += len(wanted)
        if self._held > _SLACK * self.n_rows:
            self._let_go()

    def finish(self) -> tuple[npt.NDArray[np.int64], pa.Table]:
        """Give the places of the kept rows in the whole table, in order, and the rows."""
        if self._held > self.n_rows:
            self._let_go()
        self._arrange(np.argsort(np.concatenate(self._rows)))
        return self._rows[0], pa.table([kept[0] for kept in self._columns], schema=self.schema)

    def _let_go(self) -> None:
        """Keep the rows of the smallest hashes alone, and learn which further ones can be among them."""
        self._arrange(np.sort(_smallest(np.concatenate(self._hashes), self.n_rows)))
        self._bound = self._hashes[0].max(initial=0)

    def _arrange(self, places: npt.NDArray[np.int64]) -> None:
        """Take some of the rows that are held, column by column, so that only one is held twice."""
        self._hashes = [np.concatenate(self._hashes)[places]]
        self._rows = [np.concatenate(self._rows)[places]]
        self._held = len(places)
        taken, pool = pa.array(places), pa.default_memory_pool()
        for kept in self._columns:
            whole = pa.concat_arrays(kept)
            kept.clear()
            kept.append(whole.take(taken))
            del whole
            pool.release_unused()  # or blocks that are gone still count as memory of this process


def _smallest(hashes: npt.NDArray[np.uint64], n_rows: int) -> npt.NDArray[np.int64]:
    """Give the places of the smallest."""
    return np.argpartition(hashes, n_rows - 1)[:n_rows] if n_rows else np.empty(0, dtype=np.int64)
