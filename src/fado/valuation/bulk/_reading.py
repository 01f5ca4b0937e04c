"""What reading a table in files takes of memory, and the sentence for a bound that is too small."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fado._memory import format_memory, free_memory, parse_memory
from fado.tabular import Source

__all__ = ["BLOCK_ROWS", "LEAST_BLOCK_ROWS", "SHARE_OF_FREE", "ReadingCosts", "memory_bound", "reading_costs"]

BLOCK_ROWS = 1 << 15  # that are read at once
LEAST_BLOCK_ROWS = 1 << 10
SHARE_OF_FREE = 0.75
_IF_NOT_TOLD = 4 * 10**9  # bytes, where the system does not say how much memory is free


@dataclass(frozen=True)
class ReadingCosts:
    """Bytes that some columns take.

    Parameters
    ----------
    row : float
        Of one row.
    unit : int
        Of the rows that a file gives at once: a row group, or a block of a CSV file.
    largest : str
        What those rows are, for a sentence.
    """

    row: float
    unit: int
    largest: str

    def too_small(self, memory: int, least: int, what: str = "", instead: str = "") -> ValueError:
        """Make the error of a bound that is too small.

        Parameters
        ----------
        memory, least : int
            The bound, and the least that works.
        what, instead : str
            What it is too small for, and what else would help.
        """
        return ValueError(
            f"`memory` of {format_memory(memory)} is too small{what}: {self.largest} take(s) "
            f"{format_memory(self.unit)} at once; the least that works is {-(-least // 10**6):,} MB{instead}."
        )


def reading_costs(source: Source, columns: Sequence[str]) -> ReadingCosts:
    """Estimate what reading some columns takes, by the first rows of a few files."""
    share = len(columns) / len(source.schema.names)
    largest = source.largest_unit
    return ReadingCosts(
        source.bytes_per_row * share,
        round(largest.n_bytes * share),
        f"the {largest.n_rows:,} rows that {str(largest.path)!r} gives",
    )


def memory_bound(memory: str | int | None) -> int:
    """Give the bound in bytes: three quarters of what is free if none is given."""
    if memory is not None:
        return parse_memory(memory)
    free = free_memory()
    return _IF_NOT_TOLD if free is None else round(SHARE_OF_FREE * free)
