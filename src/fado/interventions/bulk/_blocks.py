"""A table in files and its values, read in lockstep: block by block, as often as it takes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from fado._progress import tracked
from fado.tabular import Source
from fado.valuation import Valuation
from fado.valuation.bulk import StoredValues

__all__ = ["BLOCK_ROWS", "Block", "Lockstep"]

BLOCK_ROWS = 1 << 16  # whatever the memory and the files are: sums are added up in the same order


@dataclass(frozen=True)
class Block:
    """Rows that follow one another.

    Parameters
    ----------
    first : int
        Place of the first in the whole table.
    table : pyarrow.Table
        The columns that were asked for.
    values : Valuation or None
        Their values, if there are any.
    """

    first: int
    table: pa.Table
    values: Valuation | None


@dataclass(frozen=True)
class Lockstep:
    """A table, and the values of its rows.

    Parameters
    ----------
    source : Source
        The table.
    values : StoredValues or None
        The values, in parts that need not be the table's.
    progress : bool
        Whether to show a progress bar for every pass.
    """

    source: Source
    values: StoredValues | None
    progress: bool = False

    def blocks(
        self, columns: Sequence[str] | None, what: str, block_rows: int = BLOCK_ROWS
    ) -> Iterator[Block]:
        """Read all rows once.

        Parameters
        ----------
        columns : sequence of str or None
            Those to read; None is all.
        what : str
            What a progress bar calls the pass.
        block_rows : int
            How many rows a block has.
        """
        n_blocks = -(-self.source.about_rows // block_rows)
        tables = self.source.rows(columns, block_rows)
        values = None if self.values is None else self.values.blocks(block_rows)
        first = 0
        for table in tracked(tables, n_blocks, what=what, show=self.progress):
            own = None if values is None else next(values, None)
            if self.values is not None and (own is None or len(own) < table.num_rows):
                raise ValueError(
                    f"The values in {str(self.values.path)!r} are of {self.values.n_rows:,} rows, and the "
                    "table has more: value this table."
                )
            if self.values is not None and own is not None and len(own) > table.num_rows:
                self.values.check_rows(first + table.num_rows)  # the table's last
            yield Block(first, table, own)
            first += table.num_rows
