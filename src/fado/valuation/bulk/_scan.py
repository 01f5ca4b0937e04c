"""The first pass over a table in files: what its variables and levels are, and a sample to learn from."""

from __future__ import annotations

import hashlib
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
    Column,
    LevelsCollector,
    SmallestRows,
    Source,
    SourcePart,
    StrataCounter,
    Variable,
    row_hash,
)
from fado.valuation.bulk._classes import Classes
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
    digest = hashlib.blake2b(digest_size=16)
    counted = dict.fromkeys((file.path for file in source.files), 0)
    n_rows = 0
    for part, block in _blocks(source, roles, block_rows, progress=progress):
        columns = roles.variables(block)
        _check(columns, roles.weights(block), str(part.file.path))
        rows = np.arange(n_rows, n_rows + block.num_rows, dtype=np.int64)
        codes = [own.add(column) for own, column in zip(seen, columns, strict=True)]
        strata.add(codes, rows)
        digest.update(codes[0].astype(np.int32).data)
        levels.add(block)
        smallest.add(row_hash(seed, rows), rows, block)
        n_rows += block.num_rows
        counted[part.file.path] += block.num_rows
    variables = tuple(own.variable() for own in seen)
    _check_two_sides(variables, roles)
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
        digest.hexdigest() if variables[0].kind == "classes" else None,
    )


class _Strata:
    """The joint classes of all variables, and the rows of those that are rare."""

    def __init__(self, seen: list[Classes]) -> None:
        self._seen = seen
        self._places: dict[tuple[int, ...], int] = {}
        self._counter = StrataCounter()

    def add(self, codes: list[npt.NDArray[np.int64]], rows: Rows) -> None:
        """See a block."""
        joint = np.zeros(len(rows), dtype=np.int64)
        for own in codes:
            joint = joint * (int(own.max(initial=0)) + 1) + own
            _, joint = np.unique(joint, return_inverse=True)
        first = np.zeros(int(joint.max(initial=0)) + 1, dtype=np.int64)
        first[joint[::-1]] = np.arange(len(rows))[::-1]
        found = np.column_stack([own[first] for own in codes]).tolist()
        places = np.array([self._places.setdefault(tuple(own), len(self._places)) for own in found])
        self._counter.add(places[joint], rows)

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
                for own in self._places
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


def _check(columns: list[Column], weights: npt.NDArray[np.float64] | None, where: str) -> None:
    """Refuse a target that is missing or infinite, and weights that are none."""
    target = columns[0]
    if target.levels is None or target.data.null_count:
        numbers = target.numbers()
        missing = int(np.isnan(numbers).sum())
        if missing:
            raise ValueError(
                f"The target is missing in {missing} or more rows of {where!r}: drop those rows or label "
                "them first."
            )
        if np.isinf(numbers).any():
            raise ValueError(f"The target contains infinity in {where!r}: drop or mend those rows first.")
    if weights is not None and (not np.isfinite(weights).all() or (weights < 0).any()):
        raise ValueError(f"`weight` must be finite and not negative in every row, and is not in {where!r}.")


def _check_two_sides(variables: tuple[Variable, ...], roles: Roles) -> None:
    """Refuse variables that do not tell rows apart."""
    for variable, attribute in zip(variables, (None, *roles.attributes), strict=True):
        if variable.kind == "continuous":
            continue
        known = variable.classes[:-1] if variable.has_missing else variable.classes
        if attribute is not None and not attribute.is_column and len(known) < 2:
            where = "is missing in every row" if not known else f"is {str(known[0]).lower()} in every row"
            raise ValueError(
                f"`protected` {attribute.name!r} {where}: look at {list_names(list(attribute.sources))}, or "
                "leave it out."
            )
        if len(variable.classes) < 2:
            what = "The target" if variable.name == TARGET else f"Protected attribute {variable.name!r}"
            shown = list_names([repr(label) for label in variable.classes])
            raise ValueError(
                f"{what} has only one class ({shown}): there is nothing to tell apart; leave it out or check "
                "the data."
            )
