"""Whether a bound on memory has room for what is held at once."""

from __future__ import annotations

from collections.abc import Sequence

from fado._memory import format_memory
from fado.interventions.bulk._blocks import BLOCK_ROWS
from fado.tabular import Source

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
    share = len(needed) / len(source.schema.names)
    unit, row = source.largest_unit, source.bytes_per_row
    reading = unit.n_bytes * share
    least = reading + _block(row * share) + max(_SEARCHING, _ENCODING)
    if written_rows is not None:
        reading = unit.n_bytes
        least = max(least, reading + 2 * _COPIES * written_rows * row + _block(0.0) + _ENCODING)
    if least > memory:
        raise ValueError(
            f"`memory` of {format_memory(memory)} is too small: the {unit.n_rows:,} rows that "
            f"{str(unit.path)!r} gives take(s) {format_memory(reading)} at once; the least that works is "
            f"{-(-round(least) // 10**6):,} MB."
        )


def _block(bytes_of_a_row: float) -> float:
    return BLOCK_ROWS * (_COPIES * bytes_of_a_row + _BYTES_OF_A_CODED_ROW)
