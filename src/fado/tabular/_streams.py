"""Tables in blocks: random draws, samples, levels."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from fado._storage import replacing
from fado._typing import Integers
from fado.tabular._column import Column
from fado.tabular._table import Table

_PENDING = 1 << 16  # texts in memory before repeated ones are dropped
_SLACK = 1.25  # times the requested rows are in memory before some are dropped
_LEVELS = b"fado.levels"
_STEP, _FIRST, _SECOND = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB  # of splitmix64


def row_hash(seed: int, rows: Integers) -> npt.NDArray[np.uint64]:
    """Return a pseudo-random number for each row, different for all rows.

    The k rows of the smallest numbers are a random sample of k rows, and part of every larger such sample.

    Parameters
    ----------
    seed : int
        From 0 to 2^64 - 1.
    rows : ndarray of int
        The rows' places in the whole table, from 0 on.

    Examples
    --------
    >>> row_hash(0, np.arange(6)).argsort()
    array([0, 1, 3, 5, 4, 2])
    """
    none = np.uint64(0)
    key = _mixed_rows(none, _mixed_rows(none, np.array([seed], dtype=np.uint64)))
    return _mixed_rows(key[0], rows)


def _mixed_rows(key: np.uint64, rows: Integers) -> npt.NDArray[np.uint64]:
    """Apply one step of splitmix64 to each row's position under a key."""
    numbers = rows.astype(np.uint64)
    numbers ^= key
    numbers += np.uint64(_STEP)
    for shift, factor in ((30, _FIRST), (27, _SECOND)):
        numbers ^= numbers >> np.uint64(shift)
        numbers *= np.uint64(factor)
    numbers ^= numbers >> np.uint64(31)
    return numbers


def deal_rows(
    cells: Integers, shares: Sequence[float], generator: np.random.Generator, blocks: Integers | None = None
) -> Integers:
    """Return the number of each row's part; every part gets its share of every cell.

    Parameters
    ----------
    cells : ndarray of int
        Each row's kind, such as its combination of label and group.
    shares : sequence of float
        Of the rows, for each part; they sum to 1.
    generator : numpy.random.Generator
        Of the draws.
    blocks : ndarray of int, optional
        Which rows belong together, 0, 1, 2, ...: whole blocks are in one part, so shares are approximate. A
        block counts for the rarest of its rows' cells.

    Examples
    --------
    >>> cells = np.repeat([0, 1], [8, 4])
    >>> dealt = deal_rows(cells, [0.75, 0.25], np.random.default_rng(0))
    >>> np.bincount(cells[dealt == 0]), np.bincount(cells[dealt == 1])
    (array([6, 3]), array([2, 1]))
    """
    blocks = np.arange(len(cells)) if blocks is None else blocks
    sizes = np.bincount(blocks)
    rarest = np.lexsort((cells, np.bincount(cells)[cells], blocks))[np.cumsum(sizes) - sizes]
    stratum = cells[rarest]
    drawn = np.empty(len(sizes), dtype=np.int64)
    edges = np.cumsum(shares)[:-1]
    for cell in np.unique(stratum):
        members = generator.permutation(np.flatnonzero(stratum == cell))
        before = np.cumsum(sizes[members]) - sizes[members]
        place = (before + generator.random() * sizes[members]) / sizes[members].sum()
        drawn[members] = np.searchsorted(edges, place, side="right")
    return drawn[blocks]


class SmallestRows:
    """Keep the rows of the smallest hashes among all that are seen.

    The rows that are kept depend neither on the order of the blocks nor on their sizes. Little more than
    `n_rows` rows are in memory at any time, beside a block.

    Parameters
    ----------
    n_rows : int
        How many to keep; all, if fewer are seen.
    seed : int
        The seed of the hashes.
    schema : pyarrow.Schema
        Of every block.

    Examples
    --------
    >>> table = pa.table({"age": [20, 30, 40, 50, 60, 70]})
    >>> sample = SmallestRows(2, 0, table.schema)
    >>> for rows in (np.array([3, 4, 5]), np.array([0, 1, 2])):
    ...     sample.add(rows, table.take(rows))
    >>> rows, kept = sample.finish()
    >>> rows, kept["age"].to_pylist()
    (array([0, 1]), [20, 30])
    """

    def __init__(self, n_rows: int, seed: int, schema: pa.Schema) -> None:
        self.n_rows = n_rows
        self.seed = seed
        self.schema = schema
        self._hashes: list[npt.NDArray[np.uint64]] = [np.empty(0, dtype=np.uint64)]
        self._rows: list[npt.NDArray[np.int64]] = [np.empty(0, dtype=np.int64)]
        self._columns: list[list[pa.Array]] = [[pa.array([], field.type)] for field in schema]
        self._held = 0
        self._bound: np.uint64 | None = None  # further rows to keep have hashes below this

    def add(self, rows: Integers, block: pa.Table) -> None:
        """Add some rows, given their places in the whole table."""
        hashes = row_hash(self.seed, rows)
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
        """Return the positions of the kept rows in the whole table, in order, and the rows."""
        if self._held > self.n_rows:
            self._let_go()
        self._arrange(np.argsort(np.concatenate(self._rows)))
        return self._rows[0], pa.table([kept[0] for kept in self._columns], schema=self.schema)

    def _let_go(self) -> None:
        """Keep only the rows of the smallest hashes, and set the bound for further rows."""
        self._arrange(np.sort(_smallest(np.concatenate(self._hashes), self.n_rows)))
        self._bound = self._hashes[0].max(initial=0)

    def _arrange(self, places: npt.NDArray[np.int64]) -> None:
        """Take some of the rows, column by column, so that only one column is in memory twice."""
        self._hashes = [np.concatenate(self._hashes)[places]]
        self._rows = [np.concatenate(self._rows)[places]]
        self._held = len(places)
        taken, pool = pa.array(places), pa.default_memory_pool()
        for kept in self._columns:
            whole = pa.concat_arrays(kept)
            kept.clear()
            kept.append(whole.take(taken))
            del whole
            pool.release_unused()  # otherwise freed blocks still count as memory of this process


def _smallest(hashes: npt.NDArray[np.uint64], n_rows: int) -> npt.NDArray[np.int64]:
    """Return the positions of the smallest hashes."""
    return np.argpartition(hashes, n_rows - 1)[:n_rows] if n_rows else np.empty(0, dtype=np.int64)


class LevelsCollector:
    """Collect the levels of columns of text over blocks.

    Parameters
    ----------
    schema : pyarrow.Schema
        Of every block; columns without text are skipped.
    most : int
        Levels that a column may have; a column with more is an identifier.

    Examples
    --------
    >>> table = pa.table({"sex": pa.array(["m", None, "f"], pa.large_string()), "age": [20, 30, 40]})
    >>> collector = LevelsCollector(table.schema)
    >>> for start in range(3):
    ...     collector.add(table.slice(start, 1))
    >>> collector.levels()
    {'sex': ('f', 'm')}
    """

    def __init__(self, schema: pa.Schema, most: int = 1_000_000) -> None:
        self.most = most
        self._seen = {
            field.name: [pa.array([], field.type)] for field in schema if pa.types.is_large_string(field.type)
        }

    def add(self, block: pa.Table) -> None:
        """Add a block; refuse a column with too many levels."""
        for name, (united, *new) in self._seen.items():
            new.append(pc.unique(block.column(name)).drop_null())
            self._seen[name] = [united, *new]
            if sum(map(len, new)) > max(_PENDING, len(united)):
                self._unite(name)

    def levels(self) -> dict[str, tuple[str, ...]]:
        """Return the sorted levels of each column."""
        return {name: tuple(self._unite(name).sort().to_pylist()) for name in self._seen}

    def _unite(self, name: str) -> pa.Array:
        united = pc.unique(pa.concat_arrays(self._seen[name]))
        if len(united) > self.most:
            raise ValueError(
                f"Column {name!r} has more than {self.most:,} different texts, like an identifier: leave it "
                f"out with `drop=[{name!r}]`, or coarsen it."
            )
        self._seen[name] = [united]
        return united


class ShelvedTable(Table):
    """A table whose columns are also in a file. Its pickle has only the file's path and the rows.

    Parameters
    ----------
    path : pathlib.Path
        The file, which `on_shelf` wrote.
    columns : sequence of Column
        Its columns, at these rows.
    rows : ndarray of int or None
        The positions of these rows in the file; None means all.
    """

    def __init__(
        self, path: Path, columns: tuple[Column, ...], rows: npt.NDArray[np.integer[Any]] | None = None
    ) -> None:
        super().__init__(None, [column.name for column in columns], len(columns[0]), columns, named=True)
        self._path = path
        self._rows = rows

    def take(self, rows: npt.NDArray[np.integer[Any]]) -> ShelvedTable:
        """Return the table at some row positions."""
        places = np.asarray(rows if self._rows is None else self._rows[rows])
        return ShelvedTable(self._path, tuple(column.take(rows) for column in self.columns), places)

    def __reduce__(self) -> tuple[Any, ...]:
        return _from_shelf, (str(self._path), self._rows)


@contextmanager
def on_shelf(table: Table, path: Path) -> Iterator[ShelvedTable]:
    """Write a table to a file while other processes need it.

    Parameters
    ----------
    table : Table
        A table of numbers or text.
    path : pathlib.Path
        A file that all these processes can read.

    Examples
    --------
    >>> import pickle, tempfile
    >>> table = Table.from_input(pa.table({"job": ["nurse", None, "clerk"], "age": [20, 30, 40]}))
    >>> with tempfile.TemporaryDirectory() as folder, on_shelf(table, Path(folder) / "table") as shelved:
    ...     there = pickle.loads(pickle.dumps(shelved.take(np.array([2, 0]))))
    ...     [(column.levels, column.numbers().tolist()) for column in there.columns]
    [(('clerk', 'nurse'), [0.0, 1.0]), (None, [40.0, 20.0])]
    """
    path = path.resolve()  # other processes may have another working directory
    levels = json.dumps([[column.name, column.levels] for column in table.columns])
    names = [f"f{place}" for place in range(table.n_columns)]  # those of columns may repeat
    whole = pa.table([column.data for column in table.columns], names=names).combine_chunks()
    whole = whole.replace_schema_metadata({_LEVELS: levels})
    with (
        replacing(path, "The table for the cluster's workers", tidy=False) as temporary,
        pa.ipc.new_file(str(temporary), whole.schema) as writer,
    ):
        writer.write_table(whole)
    try:
        yield ShelvedTable(path, table.columns)
    finally:
        path.unlink(missing_ok=True)


def _from_shelf(path: str, rows: npt.NDArray[np.integer[Any]] | None) -> ShelvedTable:
    try:
        table = pa.ipc.open_file(pa.memory_map(path)).read_all()
    except OSError as error:
        raise ValueError(
            f"{path!r} cannot be read by this worker: the cluster's workers must see the same files."
        ) from error
    described = json.loads(table.schema.metadata[_LEVELS])
    columns = tuple(
        Column(name, data, None if levels is None else tuple(levels))
        for (name, levels), data in zip(described, table.columns, strict=True)
    )
    whole = ShelvedTable(Path(path), columns)
    return whole if rows is None else whole.take(rows)
