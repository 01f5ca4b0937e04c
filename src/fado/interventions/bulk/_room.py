"""Whether a bound on memory has room for what is held at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fado._memory import format_memory
from fado.interventions.bulk._blocks import BLOCK_ROWS
from fado.tabular import Source
from fado.valuation.bulk import StoredValues, reading_costs

__all__ = ["check_room", "check_room_for_values"]

_COPIES = 3  # of a block: as it was read, cut to size, and what is made of it
_BYTES_OF_A_CODED_ROW = 200  # codes, keys, hashes, weights and the masks that choose among them
_SEARCHING = 24 * 10**6  # bytes of bins, and of the rows that are sorted in the end
_COLUMNS_OF_A_UTILITY = 4  # that it makes of all rows: ranks, orders, and what it gives
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


def check_room_for_values(utility: Any, values: StoredValues, memory: int) -> None:
    """Refuse a bound without room for the values of all rows, which a utility of the user's own sees at once.

    Parameters
    ----------
    utility : callable
        For the message.
    values : StoredValues
        The values.
    memory : int
        The bound, in bytes.
    """
    least = values.n_bytes + 8 * values.n_rows * _COLUMNS_OF_A_UTILITY
    if least > memory:
        name = getattr(utility, "__name__", type(utility).__name__)
        raise ValueError(
            f"`memory` of {format_memory(memory)} is too small for the utility {name!r}, which may compare "
            f"rows and so needs the values of all {values.n_rows:,} at once: the least that works is "
            f"{-(-least // 10**6):,} MB; LinearUtility, DifferenceUtility and CobbDouglasUtility need less."
        )


def _block(bytes_of_a_row: float) -> float:
    return BLOCK_ROWS * (_COPIES * bytes_of_a_row + _BYTES_OF_A_CODED_ROW)
