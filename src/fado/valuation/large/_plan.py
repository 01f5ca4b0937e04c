"""What valuing a table in files takes: memory and training rows; and the ledger of a run."""

from __future__ import annotations

import hashlib
import math
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fado._memory import format_memory, free_memory, parse_memory
from fado._messages import list_names
from fado._records import encode, shorten
from fado._storage import Lock, Manifest, lock_files, remove_unfinished, writing
from fado.tabular import Source
from fado.valuation._saved import DONE, PLAN, DoneNote, PartNote, footer_digest, open_note
from fado.valuation.large._table import BLOCK_ROWS, Roles

SHARE_OF_FREE = 0.75
MOST_TRAIN_ROWS = 400_000  # if the caller sets none: twice as many hardly changed the ranks of values
LEAST_TRAIN_ROWS = 1_000  # with fewer, memory is too small to be of use
_LEAST_BLOCK_ROWS = 1 << 10
_PART_ROWS = 1_000_000
_IF_UNKNOWN = 4 * 10**9  # bytes, where the system does not say how much memory is free

# Bytes of one row beside its columns, as measured by benchmarks/scale.py: positions in bags, moments, scores.
_BYTES_OF_A_SAMPLED_ROW = 20
_BYTES_OF_A_POSITION = 4  # in every bag
_BYTES_OF_A_SAMPLED_VARIABLE = 60
_BYTES_OF_A_FITTED_ROW = 100
_BYTES_OF_A_BIN = 2
_COPIES_OF_BINS = 3  # by columns, by rows, and those of the rows left out
_BYTES_OF_A_SCORE = 8

_LEARNT = Manifest(name="_learnt.json", kind="fado notes of values", layout=1, what="set of notes")


def sample_size(train_rows: int, unseen_fraction: float) -> int:
    """Return how many rows to sample, so that about this many are left after a bag's share is taken out.

    Examples
    --------
    >>> sample_size(100, 0.2)
    125
    """
    return math.ceil(train_rows / (1 - unseen_fraction) - 1e-6)


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
    told = f"the {n_rows:,} rows that {str(path)!r} gives"
    return ReadingCosts(source.bytes_per_row * share, round(n_bytes * share), told)


def memory_bound(memory: str | int | None) -> int:
    """Return the memory limit in bytes: by default three quarters of what is free."""
    if memory is not None:
        return parse_memory(memory)
    free = free_memory()
    return _IF_UNKNOWN if free is None else round(SHARE_OF_FREE * free)


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
        rows = f"{self.rows:,}" if self.rows is not None else f"about {self.about_rows:,}"
        few, many = math.floor(self.bags_per_row + 1e-9), math.ceil(self.bags_per_row - 1e-9)
        bags = f"{few} bag{'' if few == 1 else 's'}" if few == many else f"{few} or {many} bags"
        return "\n".join(
            [
                f"Rows:           {rows} in {self.n_files:,} file{'' if self.n_files == 1 else 's'}, "
                f"{self.columns:,} columns that models see",
                f"Training rows:  {self.train_rows:,} per bag at most, {self.n_bags:,} bags, "
                f"{self.variables} variable{'' if self.variables == 1 else 's'}",
                f"Values:         {self.parts:,} part{'' if self.parts == 1 else 's'}, every row by "
                f"{bags} that left it out",
                f"Memory:         about {format_memory(self.peak_bytes)} of {format_memory(self.memory)}, "
                f"{self.workers} thread{'' if self.workers == 1 else 's'}",
            ]
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
    about_rows = source.about_rows
    all_rows = about_rows if source.n_rows is not None else 2 * about_rows  # an estimate may fall short
    reading, cells = reading_costs(source, roles.needed), len(roles.features) + 1
    costs = _Costs(reading, len(roles.names), cells, all_rows, n_bags, unseen_fraction, workers)
    block_rows = costs.block_rows(memory)
    wanted = MOST_TRAIN_ROWS if train_rows is None else train_rows
    most = min(wanted, all_rows)
    least = costs.peak(most if train_rows is not None else min(LEAST_TRAIN_ROWS, most), _LEAST_BLOCK_ROWS)
    if least > memory:
        what = f" for `train_rows={train_rows:,}`" if train_rows is not None else ""
        raise reading.too_small(memory, least, what)
    fitting = most if train_rows is not None else costs.rows_that_fit(memory, most)
    return FilesPlan(
        n_files=len(source.files),
        rows=source.n_rows,
        about_rows=about_rows,
        columns=len(roles.features),
        variables=costs.variables,
        n_bags=n_bags,
        bags_per_row=n_bags * unseen_fraction,
        train_rows=wanted if train_rows is not None else fitting,
        parts=len(source.parts(_PART_ROWS)),
        part_rows=_PART_ROWS,
        block_rows=block_rows,
        workers=workers,
        memory=memory,
        peak_bytes=costs.peak(fitting, block_rows),
    )


@dataclass(frozen=True)
class _Costs:
    """What the stages of the work take, in bytes."""

    reading: ReadingCosts
    variables: int
    cells: int
    all_rows: int
    n_bags: int
    unseen_fraction: float
    workers: int

    def peak(self, train_rows: int, block_rows: int) -> int:
        """Return what the most expensive stage takes."""
        sampled = min(sample_size(train_rows, self.unseen_fraction), self.all_rows)
        return self.reading.unit + max(round(sampled * self._sampling()), self._scoring(block_rows))

    def rows_that_fit(self, memory: int, most: int) -> int:
        """Return as many training rows as fit, at most those that are wanted."""
        sampled = int((memory - self.reading.unit) / self._sampling())
        if sampled >= self.all_rows:
            return most
        return min(most, int(sampled * (1 - self.unseen_fraction)))

    def block_rows(self, memory: int) -> int:
        """Return as many rows of a block as fit."""
        rows = BLOCK_ROWS
        while rows > _LEAST_BLOCK_ROWS and self._scoring(rows) + self.reading.unit > memory / 2:
            rows //= 2
        return rows

    def _sampling(self) -> float:
        """Bytes of a sampled row while models learn: the row, its bins, and the copies of each worker."""
        bins = self.cells * _BYTES_OF_A_BIN
        held = self.reading.row * 1.25 + bins + _BYTES_OF_A_SAMPLED_ROW
        held += _BYTES_OF_A_POSITION * self.n_bags + _BYTES_OF_A_SAMPLED_VARIABLE * self.variables
        copied = _COPIES_OF_BINS * bins + _BYTES_OF_A_FITTED_ROW
        return held + self.workers * copied

    def _scoring(self, block_rows: int) -> int:
        """Bytes while rows are scored: blocks in flight, and the numbers that each worker computes."""
        blocks = (2 * self.workers + 1) * (self.reading.row + 30 * self.variables)
        made = self.workers * self.cells * _BYTES_OF_A_SCORE * 2
        return round(block_rows * (blocks + made))


def request_of(source: Source, decisive: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is asked for: all that affects values, and which files."""
    schema = hashlib.sha256(source.schema.remove_metadata().to_string().encode()).hexdigest()
    files = [
        {"path": str(file.path.resolve()), "size": file.size, "modified": file.modified}
        for file in source.files
    ]
    return {**decisive, "schema": schema, "files": files}


@dataclass(frozen=True)
class Frozen:
    """What memory determined when a run began."""

    most_train_rows: int
    part_rows: int


@dataclass(frozen=True)
class PlanNote:
    """What was asked for when a run began, and what memory determined."""

    request: Mapping[str, Any]
    frozen: Frozen


@dataclass(frozen=True)
class LearntNote:
    """What the second pass needs: the rows of each file, the digest of the values, the target's pattern."""

    file_rows: tuple[int, ...]
    values: str
    target_pattern: str | None = None


class Run:
    """The directory of a run, and the ledger of what was asked for, learnt and done."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.models = directory / "_models"
        self.values = directory / "_values.arrow"  # of the rows that models learnt from
        self.sample = directory / "_sample"  # those rows, while workers of a cluster need them
        self._lock = directory / "_lock"

    @property
    def is_begun(self) -> bool:
        """Whether there is a plan."""
        return (self.directory / PLAN.name).is_file()

    @property
    def digest(self) -> str:
        """The digest of the plan."""
        return str(PLAN.open(self.directory)["digest"])

    def settle(self, request: Mapping[str, Any], frozen: Frozen) -> Frozen:
        """Store what memory determined, or return what was stored when a run of the same request began."""
        for name in sorted(own.name for own in self.directory.iterdir()):
            if not self._is_own(name):
                raise ValueError(
                    f"{str(self.directory)!r} holds {name!r}, which is not part of values in parts: name "
                    "another directory with `out`."
                )
        if not self.is_begun:
            PLAN.write(self.directory, encode(PlanNote(request, frozen)))
            return frozen
        self.compare(request)
        return open_note(PLAN, PlanNote, self.directory).frozen

    def _is_own(self, name: str) -> bool:
        """Return whether a run may have written this; parts without a plan belong to somebody else."""
        if name.startswith((".", self._lock.name)):
            return True
        own = {PLAN.name, _LEARNT.name, DONE.name, self.models.name, self.values.name, self.sample.name}
        return self.is_begun and (name in own or name.startswith("part-"))

    def compare(self, now: Mapping[str, Any]) -> None:
        """Refuse to continue a run that asked for something else."""
        before = open_note(PLAN, PlanNote, self.directory).request
        begun = f"The values in {str(self.directory)!r} were started"
        otherwise = "name another `out` to start again"
        for name in now:
            if name == "files" or before.get(name) == now[name]:
                continue
            if name == "schema":
                raise ValueError(f"{begun} with other columns: {otherwise}.")
            was, is_now = shorten(before.get(name)), shorten(now[name])
            raise ValueError(
                f"{begun} with `{name}` {was}, and now it is {is_now}: {otherwise}, or ask as before."
            )
        files, given = ({own["path"]: own for own in asked["files"]} for asked in (before, now))
        found = {
            "new": [path for path in given if path not in files],
            "gone": [path for path in files if path not in given],
            "changed": [path for path in given if path in files and files[path] != given[path]],
        }
        for what, paths in found.items():
            if paths:
                raise ValueError(
                    f"{begun} from other files: {list_names([repr(path) for path in paths])} "
                    f"{'is' if len(paths) == 1 else 'are'} {what}; {otherwise}."
                )

    @contextmanager
    def held(self) -> Iterator[None]:
        """Create the directory if there is none, keep a second run out of it, and tidy it up.

        What cannot be written is reported in a sentence. A directory that is empty in the end is removed.
        """
        with writing(self.directory, "Values", "; what is done stays"):
            self.directory.mkdir(exist_ok=True)
            try:
                with Lock(self._lock, f"The directory {str(self.directory)!r}"):
                    try:
                        remove_unfinished(self.directory)
                        yield
                    finally:
                        if set(self.directory.iterdir()) <= set(self._locks):
                            with suppress(PermissionError):  # Windows removes it when it is given back
                                self._lock.unlink(missing_ok=True)
            finally:
                with suppress(OSError):
                    self.directory.rmdir()

    @property
    def _locks(self) -> list[Path]:
        return lock_files(self._lock)

    def note(self, learnt: LearntNote) -> None:
        """Record that models have learnt."""
        _LEARNT.write(self.directory, encode(learnt))

    @property
    def has_learnt(self) -> bool:
        """Whether models have learnt."""
        return (self.directory / _LEARNT.name).is_file()

    def read_learnt(self) -> LearntNote:
        """Read the note about the models; damaged values raise an error."""
        learnt = open_note(_LEARNT, LearntNote, self.directory)
        _LEARNT.read_file(self.values, learnt.values)
        return learnt

    def finish(self, paths: Sequence[Path], sizes: Sequence[int], description: bytes) -> None:
        """Record that all parts are written."""
        parts = [
            PartNote(path.name, n_rows, footer_digest(path))
            for path, n_rows in zip(paths, sizes, strict=True)
        ]
        DONE.write(self.directory, encode(DoneNote(tuple(parts), description.decode())))

    def is_done(self) -> bool:
        """Return whether all parts are written; a part of another run is removed."""
        if not (self.directory / DONE.name).is_file():
            return False
        parts = {self.directory / own.file: own for own in open_note(DONE, DoneNote, self.directory).parts}
        for path, own in parts.items():
            if path.is_file() and footer_digest(path) != own.digest:
                path.unlink()
        return all(path.is_file() for path in parts)

    def remove(self) -> None:
        """Remove all that the run has kept; if this is interrupted, the rest can be continued."""
        manifests = [self.directory / own.name for own in (DONE, _LEARNT, PLAN)]
        last = [*manifests[:2], self.models, self.values, manifests[2]]
        first = [path for path in self.directory.iterdir() if path not in (*last, *self._locks)]
        for path in [*sorted(first), *last]:
            _remove(path)


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
