"""What is asked for: a table in files, what its columns are for, and where its values go."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from fado._checks import check_count
from fado._version import library_versions
from fado.execution import n_workers
from fado.tabular import Source, open_source, reader_of
from fado.valuation.bulk._folds import count_folds
from fado.valuation.bulk._plan import FilesPlan, make_plan
from fado.valuation.bulk._reading import memory_bound
from fado.valuation.bulk._roles import Roles, read_roles

__all__ = ["Asked", "Paths", "Request", "check_out", "check_place", "directory_of", "read_request"]

Paths = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]

_MOST_TRAIN_ROWS = 10**12


@dataclass(frozen=True)
class Asked:
    """What a caller asks for, but for the table: as `value_files` takes it."""

    target: str
    protected: str | Sequence[str]
    drop: str | Sequence[str] | None
    exclude: str | Sequence[str] | None
    weight: str | None
    memory: str | int | None
    train_rows: int | None
    n_bags: int
    unseen_fraction: float
    n_jobs: int | None
    seed: int = 0

    def roles(self, schema: pa.Schema) -> Roles:
        """Say what the columns of a table are for."""
        return read_roles(
            schema, self.target, self.protected, drop=self.drop, exclude=self.exclude, weight=self.weight
        )

    def decisive(self, roles: Roles) -> dict[str, Any]:
        """Give all that decides a value, but for the files."""
        return {
            **roles.to_plain(),
            "random_state": self.seed,
            "n_bags": int(self.n_bags),
            "unseen_fraction": float(self.unseen_fraction),
            "train_rows": self.train_rows,
            "versions": library_versions(),
        }


@dataclass(frozen=True)
class Request:
    """What is to be done.

    Parameters
    ----------
    asked : Asked
        By the caller.
    source : Source
        The table.
    roles : Roles
        What its columns are for.
    tiles, n_folds : int
        What bags there are.
    plan : FilesPlan
        What it will take.
    """

    asked: Asked
    source: Source
    roles: Roles
    tiles: int
    n_folds: int
    plan: FilesPlan

    def decisive(self) -> dict[str, Any]:
        """Give all that decides a value, but for the files."""
        return self.asked.decisive(self.roles)

    def frozen(self) -> dict[str, Any]:
        """Give what memory has decided."""
        return {
            "most_train_rows": self.plan.train_rows,
            "part_rows": self.plan.part_rows,
        }


def read_request(paths: Paths, asked: Asked) -> Request:
    """Open the table, read what is asked for, and plan it."""
    tiles, n_folds = count_folds(asked.n_bags, asked.unseen_fraction)
    if asked.train_rows is not None:
        asked = replace(asked, train_rows=check_count("train_rows", asked.train_rows, 1, _MOST_TRAIN_ROWS))
    bound = memory_bound(asked.memory)
    source = open_source(paths)
    roles = asked.roles(source.schema)
    plan = make_plan(
        source,
        roles,
        memory=bound,
        train_rows=asked.train_rows,
        tiles=tiles,
        n_folds=n_folds,
        workers=n_workers(asked.n_jobs),
    )
    return Request(asked, source, roles, tiles, n_folds, plan)


def check_place(out: Path) -> None:
    """Refuse, before any work is done, an output that cannot be written."""
    if out.suffix.lower() == ".csv":
        raise ValueError(f"`out` must be a directory, or end in .parquet, got {str(out)!r}.")
    if not out.parent.is_dir():
        raise ValueError(f"The directory {str(out.parent)!r} does not exist: create it first.")
    is_file = out.suffix.lower() == ".parquet"
    if is_file and out.is_dir():
        raise ValueError(f"{str(out)!r} is a directory: name a file, or a directory without that ending.")
    if not is_file and out.exists() and not out.is_dir():
        raise ValueError(f"{str(out)!r} is a file: name a directory, or a file that ends in .parquet.")
    if not os.access(out if out.is_dir() else out.parent, os.W_OK):
        raise ValueError(f"The directory {str(out if out.is_dir() else out.parent)!r} is not writable.")


def check_out(out: Path, source: Source, paths: Paths, beside: Sequence[Path] = ()) -> None:
    """Refuse, before any work is done, an output that cannot be written or would replace an input.

    Parameters
    ----------
    out : Path
        The output.
    source : Source
        The table that is read.
    paths : path-like or sequence of path-like
        As the user named it.
    beside : sequence of Path
        What is read beside it: files, or directories whose files are.
    """
    check_place(out)
    files = [file.path.resolve() for file in source.files]
    others = [path.resolve() for path in beside]
    if out.resolve() in {*files, *others, *(path.parent for path in files)} or out.resolve().parent in others:
        raise ValueError(f"`out` is {str(out)!r}, which is read as well: name another.")
    reader = reader_of(paths, out)
    if reader is not None:
        raise ValueError(
            f"`out` is {str(out)!r}, which {reader!r} would read the next time: name a place elsewhere, or a "
            "name that begins with '_'."
        )


def directory_of(out: Path) -> Path:
    """Say where the parts stand while there are any."""
    return out.parent / f".{out.name}.parts" if out.suffix.lower() == ".parquet" else out
