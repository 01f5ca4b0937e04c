"""The first pass over a table in files: what its variables and levels are, and a sample to learn from."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fado.tabular import (
    SMALL_STRATUM,
    LevelsCollector,
    SmallestRows,
    Source,
    StrataCounter,
    Variable,
    row_hash,
)
from fado.valuation.bulk._classes import Combinations
from fado.valuation.bulk._roles import Roles
from fado.valuation.bulk._table_pass import TablePass

__all__ = ["Scan", "scan"]

Rows = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Scan:
    """What a pass over all rows tells.

    Parameters
    ----------
    file_rows : tuple of int
        How many rows each file has.
    variables : tuple of Variable
        The target and the attributes, with the classes of all rows, and without rows.
    levels : mapping of str to tuple of str
        The levels of the feature columns that hold text.
    small_rows, small_strata : ndarray of int64
        The rows of strata of fewer than 1,000 rows, and the stratum of each.
    rows : ndarray of int64
        The places of the sample's rows.
    sample : pyarrow.Table
        The rows of the smallest hashes, in the order of the table.
    target_pattern : str or None
        A digest of which rows share a label of the target; None for numbers.
    """

    file_rows: tuple[int, ...]
    variables: tuple[Variable, ...]
    levels: dict[str, tuple[str, ...]]
    small_rows: Rows
    small_strata: Rows
    rows: Rows
    sample: pa.Table
    target_pattern: str | None

    @property
    def n_rows(self) -> int:
        """How many rows there are."""
        return sum(self.file_rows)


def scan(source: Source, roles: Roles, seed: int, *, n_sampled: int, block_rows: int, progress: bool) -> Scan:
    """Read all rows once.

    Parameters
    ----------
    source : Source
        The table.
    roles : Roles
        What its columns are for.
    seed : int
        Of the sample.
    n_sampled : int
        How many rows the sample has, or all.
    block_rows : int
        How many are read at once; it changes nothing.
    progress : bool
        Whether to show a progress bar.
    """
    reading = TablePass(source, roles)
    strata = _Strata()
    levels = LevelsCollector(pa.schema([reading.schema.field(name) for name in roles.features]))
    smallest = SmallestRows(n_sampled, reading.schema)
    counted = dict.fromkeys((file.path for file in source.files), 0)
    for block in reading.blocks(block_rows, progress=progress):
        strata.add(block.codes, block.rows)
        levels.add(block.table)
        smallest.add(row_hash(seed, block.rows), block.rows, block.table)
        counted[block.part.file.path] += block.table.num_rows
    variables = reading.variables()
    small_rows, small_strata = strata.small(variables)
    sampled, sample = smallest.finish()
    return Scan(
        tuple(counted.values()),
        variables,
        levels.levels(),
        small_rows,
        small_strata,
        sampled,
        sample,
        reading.target_pattern(),
    )


class _Strata:
    """The joint classes of all variables, and the rows of those that are rare."""

    def __init__(self) -> None:
        self._joint = Combinations()
        self._counter = StrataCounter()

    def add(self, codes: list[npt.NDArray[np.int64]], rows: Rows) -> None:
        """See a block."""
        self._counter.add(self._joint.add(codes), rows)

    def small(self, variables: tuple[Variable, ...]) -> tuple[Rows, Rows]:
        """Give the rows of small strata; what turned out to be a number has no part in them."""
        rows, strata = self._counter.small_rows()
        are_classes = [own.kind == "classes" for own in variables]
        united: dict[tuple[int, ...], int] = {}
        place_of = np.array(
            [
                united.setdefault(
                    tuple(code for code, used in zip(own, are_classes, strict=True) if used), len(united)
                )
                for own in self._joint.seen
            ],
            dtype=np.int64,
        )
        counts = np.bincount(place_of, weights=self._counter.counts)
        strata = place_of[strata]
        few = counts[strata] < SMALL_STRATUM
        return rows[few], strata[few]
