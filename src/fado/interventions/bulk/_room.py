"""Whether a bound on memory has room for what is held at once."""

from __future__ import annotations

from collections.abc import Sequence

from fado.interventions.bulk._blocks import BLOCK_ROWS
from fado.tabular import Source
from fado.valuation.bulk import reading_costs

__all__ = ["check_room"]

_COPIES = 3  # of a block: as it was read, cut to size, and what is made of it
_BYTES_OF_A_CODED_ROW = 200  # codes, keys, hashes, weights and the masks that choose among them
_SEARCHING = 24 * 10**6  # bytes of bins, and of the rows that are sorted in the end
_ENCODING = 60 * 10**6  # bytes of pages that are encoded and compressed


def check_room(source: Source, needed: Sequence[str], written_rows: int | None, memory: int) -> None:
    """Refuse a bound that is too small, and say the least that works.

    Parameters
    ----------
    source : Source
        The table.
    needed : sequence of str
        The columns that decide.
    written_rows : int or None
        How many rows of all columns are written at once; None if no column of the table is.
    memory : int
        The bound, in bytes.
    """
    costs = reading_costs(source, needed)
    least = costs.unit + _block(costs.row) + max(_SEARCHING, _ENCODING)
    if written_rows is not None:
        costs = reading_costs(source, source.schema.names)
        writing = costs.unit + 2 * _COPIES * written_rows * costs.row + _block(0.0) + _ENCODING
        least = max(least, writing)
    if least > memory:
        raise costs.too_small(memory, round(least))


def _block(bytes_of_a_row: float) -> float:
    return BLOCK_ROWS * (_COPIES * bytes_of_a_row + _BYTES_OF_A_CODED_ROW)
