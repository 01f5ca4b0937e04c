"""A dask DataFrame: written to files once, where its partitions are computed, and read from there."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any, TypeGuard

import pyarrow as pa

__all__ = ["TABLES", "clear_staged", "is_dask_frame", "schema_of", "stage", "token_of"]

TABLES = "_table-"  # what the folders of files begin with; the frame's token follows
_ROWS_OF_A_GROUP = 1 << 17


def is_dask_frame(given: Any) -> TypeGuard[Any]:
    """Tell whether this is a dask DataFrame, without importing Dask."""
    import narwhals as nw

    return bool(nw.dependencies.is_dask_dataframe(given))


def schema_of(frame: Any) -> pa.Schema:
    """Say what columns a frame has, without computing it."""
    columns = list(frame.columns)
    strange = [name for name in columns if not isinstance(name, str)]
    if strange:
        raise ValueError(
            f"The dask DataFrame has a column called {strange[0]!r}, which is no text: rename it, for "
            "example with `frame.rename(columns=str)`."
        )
    return pa.Schema.from_pandas(frame._meta, preserve_index=False).remove_metadata()


def token_of(frame: Any) -> str:
    """Give a name that frames share only if they are computed alike from the same data."""
    from dask.base import tokenize

    return str(tokenize(frame))


def stage(frame: Any, directory: Path, client: Any) -> Path:
    """Write a frame into Parquet files below a directory, unless they stand there; give their folder.

    Parameters
    ----------
    frame : dask.dataframe.DataFrame
        Its partitions become files, in their order.
    directory : Path
        Where the run keeps its files; workers of a cluster must see it.
    client : dask.distributed.Client or None
        Computes the partitions; None leaves it to Dask who does.
    """
    folder = directory.resolve() / f"{TABLES}{token_of(frame)}"
    if folder.is_dir():
        return folder
    clear_staged(directory)
    unfinished = folder.with_name(f"{folder.name}.unfinished")
    try:
        frame.to_parquet(
            str(unfinished),
            write_index=False,
            name_function=lambda number: f"{number:08d}.parquet",
            compute_kwargs={} if client is None else {"scheduler": client},
            row_group_size=_ROWS_OF_A_GROUP,
        )
    except (pa.ArrowException, TypeError, ValueError) as error:
        said = " ".join(str(error).split())
        raise ValueError(f"The dask DataFrame cannot be written to Parquet files: {said}") from error
    unfinished.rename(folder)
    return folder


def clear_staged(directory: Path) -> None:
    """Remove the files that frames were written to."""
    for folder in directory.glob(f"{TABLES}*"):
        shutil.rmtree(folder)
