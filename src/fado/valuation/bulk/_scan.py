"""The first pass over a table in files: what its variables and levels are, and a sample to learn from."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fado._messages import list_names
from fado._progress import tracked
from fado.tabular import (
    SMALL_STRATUM,
    TARGET,
    LevelsCollector,
    SmallestRows,
    Source,
    SourcePart,
    StrataCounter,
    Variable,
    row_hash,
)
from fado.valuation._alignment import PatternDigest
from fado.valuation.bulk._checks import check_comparisons, check_rows
from fado.valuation.bulk._classes import Classes, Combinations
from fado.valuation.bulk._roles import Roles

__all__ = ["Scan", "scan"]

Rows = npt.NDArray[np.int64]

_ROWS_OF_A_PART = 1_000_000


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
    schema = pa.schema([field for field in source.schema if field.name in set(roles.needed)])
    seen = [Classes(name) for name in roles.names]
    strata = _Strata(seen)
    levels = LevelsCollector(pa.schema([schema.field(name) for name in roles.features]))
    smallest = SmallestRows(n_sampled, schema)
    digest = PatternDigest()
    counted = dict.fromkeys((file.path for file in source.files), 0)
    n_rows = 0
    for part, block in _blocks(source, roles, block_rows, progress=progress):
        columns = roles.variables(block)
        check_rows(columns[0], roles.weights(block), str(part.file.path))
        rows = np.arange(n_rows, n_rows + block.num_rows, dtype=np.int64)
        codes = [own.add(column) for own, column in zip(seen, columns, strict=True)]
        strata.add(codes, rows)
        digest.add(codes[0])
        levels.add(block)
        smallest.add(row_hash(seed, rows), rows, block)
        n_rows += block.num_rows
        counted[part.file.path] += block.num_rows
    variables = tuple(own.variable() for own in seen)
    check_comparisons(variables[1:], roles)
    _check_two_classes(variables)
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
        digest.finish() if variables[0].kind == "classes" else None,
    )


class _Strata:
    """The joint classes of all variables, and the rows of those that are rare."""

    def __init__(self, seen: list[Classes]) -> None:
        self._seen = seen
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


def _blocks(
    source: Source, roles: Roles, block_rows: int, *, progress: bool
) -> Iterator[tuple[SourcePart, pa.Table]]:
    parts = source.parts(_ROWS_OF_A_PART)
    for part in tracked(parts, len(parts), what="parts read", show=progress):
        for block in source.blocks(part, roles.needed, block_rows):
            if block.num_rows:
                yield part, block


def _check_two_classes(variables: tuple[Variable, ...]) -> None:
    """Refuse variables that do not tell rows apart."""
    for variable in variables:
        if variable.kind == "classes" and len(variable.classes) < 2:
            what = "The target" if variable.name == TARGET else f"Protected attribute {variable.name!r}"
            shown = list_names([repr(label) for label in variable.classes])
            raise ValueError(
                f"{what} has only one class ({shown}): there is nothing to tell apart; leave it out or check "
                "the data."
            )
