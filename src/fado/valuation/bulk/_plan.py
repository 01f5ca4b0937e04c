"""What valuing a table in files will take: rows, parts, memory, time."""

from __future__ import annotations

from dataclasses import dataclass

from fado._memory import format_memory
from fado.tabular import Source
from fado.valuation.bulk._reading import BLOCK_ROWS, LEAST_BLOCK_ROWS, reading_costs
from fado.valuation.bulk._roles import Roles
from fado.valuation.bulk._training import sample_size

__all__ = ["MOST_TRAIN_ROWS", "FilesPlan", "make_plan"]

MOST_TRAIN_ROWS = 1_600_000  # 12,500 doubled seven times: so far the learning curve goes
LEAST_TRAIN_ROWS = 1_000  # with fewer, memory is too small to be of use
_PART_ROWS = 1_000_000

# Bytes of one row beside its columns, as measured by benchmarks/scale.py: positions in bags, moments, scores.
_BYTES_OF_A_SAMPLED_ROW = 60
_BYTES_OF_A_SAMPLED_VARIABLE = 60
_BYTES_OF_A_FITTED_ROW = 100
_BYTES_OF_A_BIN = 2
_COPIES_OF_BINS = 3  # by columns, by rows, and those of the rows left out
_BYTES_OF_A_SCORE = 8

# Seconds, about, of one core of the machine that benchmarks/scale.py was run on.
_READING_A_CELL = 6e-8
_LEARNING_A_CELL = 7e-7
_SCORING_A_ROW = 1.9e-6
_LEARNING_CURVE = 1.4  # times what models take to learn, for following it


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
    n_bags, tiles : int
        How many bags there are, and how many of them leave out each row.
    train_rows : int
        How many rows a bag learns from, at most.
    is_asked : bool
        Whether the caller set `train_rows`; if not, a learning curve decides, up to this number.
    parts : int
        How many parts the values are written in.
    part_rows, block_rows : int
        The most rows of a part, and the most rows that are scored at once.
    workers : int
        How many threads work.
    memory : int
        The bound, in bytes.
    peak_bytes : int
        About how much memory is needed at most, in bytes, on top of what Python and its libraries take.
    seconds : float
        About how long it takes, in seconds.
    """

    n_files: int
    rows: int | None
    about_rows: int
    columns: int
    variables: int
    n_bags: int
    tiles: int
    train_rows: int
    is_asked: bool
    parts: int
    part_rows: int
    block_rows: int
    workers: int
    memory: int
    peak_bytes: int
    seconds: float

    def __str__(self) -> str:
        rows = f"{self.rows:,}" if self.rows is not None else f"about {self.about_rows:,}"
        until = "as asked for" if self.is_asked else "at most; a learning curve decides"
        return "\n".join(
            [
                f"Rows:           {rows} in {self.n_files:,} file{'' if self.n_files == 1 else 's'}, "
                f"{self.columns:,} columns that models see",
                f"Training rows:  {self.train_rows:,} per bag ({until}), {self.n_bags:,} bags, "
                f"{self.variables} variable{'' if self.variables == 1 else 's'}",
                f"Values:         {self.parts:,} part{'' if self.parts == 1 else 's'}, every row by "
                f"{self.tiles} bag{'' if self.tiles == 1 else 's'} that left it out",
                f"Memory:         about {format_memory(self.peak_bytes)} of {format_memory(self.memory)}, "
                f"{self.workers} thread{'' if self.workers == 1 else 's'}",
                f"Time:           about {_shown_time(self.seconds)}",
            ]
        )


def make_plan(
    source: Source,
    roles: Roles,
    *,
    memory: int,
    train_rows: int | None,
    tiles: int,
    n_folds: int,
    workers: int,
) -> FilesPlan:
    """Fit the work into memory.

    Parameters
    ----------
    source : Source
        The table.
    roles : Roles
        What its columns are for.
    memory : int
        The bound, in bytes.
    train_rows : int or None
        How many rows a bag is to learn from; None lets memory, and then a learning curve, decide.
    tiles, n_folds : int
        What bags there are.
    workers : int
        How many threads work.

    Raises
    ------
    ValueError
        If the bound is too small; the sentence says the least that works.
    """
    costs = _Costs(source, roles, n_folds, workers)
    about_rows = source.about_rows
    block_rows = costs.block_rows(memory)
    wanted = MOST_TRAIN_ROWS if train_rows is None else train_rows
    all_rows = about_rows if source.n_rows is not None else 2 * about_rows  # an estimate may fall short
    most = min(wanted, all_rows)
    least = costs.peak(most if train_rows is not None else min(LEAST_TRAIN_ROWS, most), LEAST_BLOCK_ROWS)
    if least > memory:
        what = f" for `train_rows={train_rows:,}`" if train_rows is not None else ""
        raise costs.reading.too_small(memory, least, what)
    fitting = most if train_rows is not None else costs.rows_that_fit(memory, most)
    held = costs.peak(fitting, block_rows)
    part_rows = _PART_ROWS
    cells = len(roles.features) + 1
    reading = 2 * about_rows * len(roles.needed) * _READING_A_CELL
    learning = fitting * tiles * n_folds * costs.variables * cells * _LEARNING_A_CELL / workers
    learning *= 1.0 if train_rows is not None else _LEARNING_CURVE
    scoring = about_rows * tiles * costs.variables * _SCORING_A_ROW / workers
    return FilesPlan(
        n_files=len(source.files),
        rows=source.n_rows,
        about_rows=about_rows,
        columns=len(roles.features),
        variables=costs.variables,
        n_bags=tiles * n_folds,
        tiles=tiles,
        train_rows=wanted if train_rows is not None else fitting,
        is_asked=train_rows is not None,
        parts=len(source.parts(part_rows)),
        part_rows=part_rows,
        block_rows=block_rows,
        workers=workers,
        memory=memory,
        peak_bytes=held,
        seconds=reading + learning + scoring,
    )


class _Costs:
    """What the stages of the work take, in bytes."""

    def __init__(self, source: Source, roles: Roles, n_folds: int, workers: int) -> None:
        self.reading = reading_costs(source, roles.needed)
        self.variables = len(roles.names)
        self._cells = len(roles.features) + 1
        self._n_folds = n_folds
        self._workers = workers

    def peak(self, train_rows: int, block_rows: int) -> int:
        """Say what the hungriest stage takes."""
        return self.reading.unit + max(self._sampling(train_rows), self._scoring(block_rows))

    def rows_that_fit(self, memory: int, most: int) -> int:
        """Give as many training rows as fit, and no more than are wanted."""
        one = self._sampling(10**6) / 10**6
        return min(most, int((memory - self.reading.unit) / one))

    def block_rows(self, memory: int) -> int:
        """Give as many rows of a block as fit."""
        rows = BLOCK_ROWS
        while rows > LEAST_BLOCK_ROWS and self._scoring(rows) + self.reading.unit > memory / 2:
            rows //= 2
        return rows

    def _sampling(self, train_rows: int) -> int:
        """Bytes while models learn: the sample, its bins, and what each worker copies of them."""
        sampled = sample_size(train_rows, self._n_folds)
        bins = self._cells * _BYTES_OF_A_BIN
        held = (
            self.reading.row * 1.25
            + bins
            + _BYTES_OF_A_SAMPLED_ROW
            + _BYTES_OF_A_SAMPLED_VARIABLE * self.variables
        )
        copied = _COPIES_OF_BINS * bins + _BYTES_OF_A_FITTED_ROW
        return round(sampled * (held + self._workers * copied))

    def _scoring(self, block_rows: int) -> int:
        """Bytes while rows are scored: blocks in flight, and the numbers that each worker makes of one."""
        blocks = (2 * self._workers + 1) * (self.reading.row + 30 * self.variables)
        made = self._workers * self._cells * _BYTES_OF_A_SCORE * 2
        return round(block_rows * (blocks + made))


def _shown_time(seconds: float) -> str:
    if seconds < 90:
        return f"{max(seconds, 1):.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
