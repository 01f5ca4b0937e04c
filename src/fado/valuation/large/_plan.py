"""What valuing a table in files takes: training rows, blocks and memory."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from fado._memory import format_memory, free_memory, parse_memory
from fado.tabular import BLOCK_ROWS, Roles, Source
from fado.valuation.large._learning import sample_size
from fado.valuation.large._scoring import PART_ROWS

_SHARE_OF_FREE = 0.75
MOST_TRAIN_ROWS = 400_000  # if the caller sets none: twice as many hardly changed the ranks of values
LEAST_TRAIN_ROWS = 1_000  # with fewer, memory is too small to be of use
_LEAST_BLOCK_ROWS = 1 << 10
_IF_UNKNOWN = 4 * 10**9  # bytes, where the system does not say how much memory is free

# Bytes of one row beside its columns, as measured by benchmarks/scale.py: positions in bags, moments, scores.
_BYTES_OF_A_SAMPLED_ROW = 20
_BYTES_OF_A_POSITION = 4  # in every bag
_BYTES_OF_A_SAMPLED_VARIABLE = 60
_BYTES_OF_A_FITTED_ROW = 100
_BYTES_OF_A_BIN = 2
_COPIES_OF_BINS = 3  # by columns, by rows, and those of the rows left out
_BYTES_OF_A_SCORE = 8
_BYTES_OF_A_SCORED_VARIABLE = 30


def memory_bound(memory: str | int | None) -> int:
    """Return the memory limit in bytes: by default three quarters of what is free."""
    if memory is not None:
        return parse_memory(memory)
    free = free_memory()
    return _IF_UNKNOWN if free is None else round(_SHARE_OF_FREE * free)


@dataclass(frozen=True)
class ReadingCosts:
    """Bytes that some columns take: of one row, and of the `largest` rows that a file returns at once."""

    row: float
    unit: int
    largest: str

    def too_small(self, memory: int, least: int, what: str = "", instead: str = "") -> ValueError:
        """Return the error of a memory limit that is too small, with the least that works."""
        return ValueError(
            f"`memory` of {format_memory(memory)} is too small{what}: {self.largest} take(s) "
            f"{format_memory(self.unit)} at once; the least that works is {-(-least // 10**6):,} MB{instead}."
        )


def reading_costs(source: Source, columns: Sequence[str]) -> ReadingCosts:
    """Estimate what reading some columns takes, from the first rows of a few files."""
    share = len(columns) / len(source.schema.names)
    path, n_rows, n_bytes = source.largest_unit
    largest = f"the {n_rows:,} rows that {str(path)!r} gives"
    return ReadingCosts(source.bytes_per_row * share, round(n_bytes * share), largest)


@dataclass(frozen=True)
class FilesPlan:
    """What valuing a table in files will take.

    Parameters
    ----------
    n_files : int
        How many files there are.
    rows : int or None
        How many rows; None while those of a CSV file have not been counted.
    about_rows : int
        The same or, if `rows` is None, an estimate from the sizes of the files.
    columns : int
        How many columns models see.
    variables : int
        How many variables are valued: the target and the protected attributes.
    n_bags : int
        How many bags there are.
    bags_per_row : float
        How many of them leave out each row, on average.
    train_rows : int
        How many rows a bag learns from, at most.
    parts : int
        How many parts the values are written in.
    part_rows, block_rows : int
        The most rows of a part, and the most rows that are scored at once.
    workers : int
        How many threads work.
    memory : int
        The memory limit, in bytes.
    peak_bytes : int
        About how much memory is needed at most, in bytes, on top of what Python and its libraries take.

    See Also
    --------
    fado.valuation.plan_files : Makes the plan.
    """

    n_files: int
    rows: int | None
    about_rows: int
    columns: int
    variables: int
    n_bags: int
    bags_per_row: float
    train_rows: int
    parts: int
    part_rows: int
    block_rows: int
    workers: int
    memory: int
    peak_bytes: int

    def __str__(self) -> str:
        def count(number: int, what: str) -> str:
            return f"{number:,} {what}{'' if number == 1 else 's'}"

        rows = f"{self.rows:,}" if self.rows is not None else f"about {self.about_rows:,}"
        few, many = math.floor(self.bags_per_row + 1e-9), math.ceil(self.bags_per_row - 1e-9)
        bags = count(few, "bag") if few == many else f"{few} or {many} bags"
        return (
            f"Rows:           {rows} in {count(self.n_files, 'file')}, {self.columns:,} columns that models "
            f"see\nTraining rows:  {self.train_rows:,} per bag at most, {self.n_bags:,} bags, "
            f"{count(self.variables, 'variable')}\nValues:         {count(self.parts, 'part')}, every row by "
            f"{bags} that left it out\nMemory:         about {format_memory(self.peak_bytes)} of "
            f"{format_memory(self.memory)}, {count(self.workers, 'thread')}"
        )


def make_plan(
    source: Source,
    roles: Roles,
    *,
    memory: int,
    train_rows: int | None,
    n_bags: int,
    unseen_fraction: float,
    workers: int,
) -> FilesPlan:
    """Fit the work into memory; if it does not fit, name the least that works."""
    all_rows = source.about_rows if source.n_rows is not None else 2 * source.about_rows  # if it falls short
    reading, variables, cells = (
        reading_costs(source, roles.needed()),
        len(roles.names),
        len(roles.features) + 1,
    )
    # While models learn: a sampled row, its bins, and the copies of each worker.
    bins = cells * _BYTES_OF_A_BIN
    sampled_row = reading.row * 1.25 + bins + _BYTES_OF_A_SAMPLED_ROW
    sampled_row += _BYTES_OF_A_POSITION * n_bags + _BYTES_OF_A_SAMPLED_VARIABLE * variables
    sampled_row += workers * (_COPIES_OF_BINS * bins + _BYTES_OF_A_FITTED_ROW)
    # While rows are scored: blocks in flight, and the numbers that each worker computes.
    scored_row = (2 * workers + 1) * (reading.row + _BYTES_OF_A_SCORED_VARIABLE * variables)
    scored_row += workers * cells * _BYTES_OF_A_SCORE * 2

    def peak(train_rows: int, block_rows: int) -> int:
        sampled = min(sample_size(train_rows, unseen_fraction), all_rows)
        return reading.unit + max(round(sampled * sampled_row), round(block_rows * scored_row))

    block_rows = BLOCK_ROWS
    while block_rows > _LEAST_BLOCK_ROWS and reading.unit + block_rows * scored_row > memory / 2:
        block_rows //= 2
    wanted = fitting = min(MOST_TRAIN_ROWS if train_rows is None else train_rows, all_rows)
    if train_rows is None:
        sampled = int((memory - reading.unit) / sampled_row)
        if sampled < all_rows:
            fitting = min(wanted, int(sampled * (1 - unseen_fraction)))
    least = peak(wanted if train_rows is not None else min(LEAST_TRAIN_ROWS, wanted), _LEAST_BLOCK_ROWS)
    if least > memory:
        what = f" for `train_rows={train_rows:,}`" if train_rows is not None else ""
        raise reading.too_small(memory, least, what)
    return FilesPlan(
        n_files=len(source.files),
        rows=source.n_rows,
        about_rows=source.about_rows,
        columns=len(roles.features),
        variables=variables,
        n_bags=n_bags,
        bags_per_row=n_bags * unseen_fraction,
        train_rows=fitting if train_rows is None else train_rows,
        parts=len(source.parts(PART_ROWS)),
        part_rows=PART_ROWS,
        block_rows=block_rows,
        workers=workers,
        memory=memory,
        peak_bytes=peak(fitting, block_rows),
    )
