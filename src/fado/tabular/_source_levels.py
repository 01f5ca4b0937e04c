"""The levels of a table's columns of text, united over all blocks."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["MOST_LEVELS", "LevelsCollector"]

MOST_LEVELS = 1_000_000  # of one column: more are names of rows, not kinds
_PENDING = 1 << 16  # texts that are held before those that repeat are let go


class LevelsCollector:
    """Unite the levels of columns of text over blocks.

    Parameters
    ----------
    schema : pyarrow.Schema
        Of every block; columns that hold no text are passed over.
    most : int
        Levels that a column may have.

    Examples
    --------
    >>> table = pa.table({"sex": pa.array(["m", None, "f"], pa.large_string()), "age": [20, 30, 40]})
    >>> collector = LevelsCollector(table.schema)
    >>> for start in range(3):
    ...     collector.add(table.slice(start, 1))
    >>> collector.levels()
    {'sex': ('f', 'm')}
    """

    def __init__(self, schema: pa.Schema, most: int = MOST_LEVELS) -> None:
        self.most = most
        self._seen = {
            field.name: _Distinct(field.type) for field in schema if pa.types.is_large_string(field.type)
        }

    def add(self, block: pa.Table) -> None:
        """See a block; refuse a column that has too many levels by now."""
        for name, distinct in self._seen.items():
            distinct.add(block.column(name))
            self._check(name)

    def levels(self) -> dict[str, tuple[str, ...]]:
        """Give the sorted levels of each column, as a `Column` has them."""
        found = {}
        for name, distinct in self._seen.items():
            found[name] = distinct.ordered()
            self._check(name)
        return found

    def _check(self, name: str) -> None:
        if self._seen[name].at_least > self.most:
            raise ValueError(
                f"Column {name!r} has more than {self.most:,} different texts, like an identifier: leave it "
                f"out with `drop=[{name!r}]`, or coarsen it."
            )


class _Distinct:
    """The distinct texts of one column."""

    def __init__(self, kind: pa.DataType) -> None:
        self._texts = pa.array([], kind)
        self._new: list[pa.Array] = []
        self._pending = 0

    @property
    def at_least(self) -> int:
        """How many there are for certain."""
        return len(self._texts)

    def add(self, column: pa.ChunkedArray) -> None:
        found = pc.unique(column).drop_null()
        self._new.append(found)
        self._pending += len(found)
        if self._pending > max(_PENDING, len(self._texts)):
            self._unite()

    def ordered(self) -> tuple[str, ...]:
        self._unite()
        return tuple(self._texts.take(pc.sort_indices(self._texts)).to_pylist())

    def _unite(self) -> None:
        self._texts = pc.unique(pa.concat_arrays([self._texts, *self._new]))
        self._new, self._pending = [], 0
