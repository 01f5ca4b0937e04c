"""Files that are either whole or not there."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

__all__ = ["check_replaceable", "replacing"]


def check_replaceable(path: Path) -> None:
    """Refuse what must not be replaced: a directory, or a file that nobody may write."""
    if path.is_dir():
        raise IsADirectoryError(f"{str(path)!r} is a directory: name a file.")
    if path.exists() and not path.stat().st_mode & 0o222:  # a rename would not ask
        raise PermissionError(f"{str(path)!r} is read-only: name another file.")


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Write a file under a temporary name beside it; sync and rename it when all went well.

    Parameters
    ----------
    path : path-like
        Where the finished file is to stand. If the block fails, whatever stood there before still does.

    Yields
    ------
    pathlib.Path
        The temporary file to write to.
    """
    final = Path(path)
    if not final.parent.is_dir():
        raise FileNotFoundError(f"The directory {str(final.parent)!r} does not exist: create it first.")
    check_replaceable(final)
    handle, name = tempfile.mkstemp(prefix=f".{final.name[:100]}.", suffix=".part", dir=final.parent)
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        _sync(temporary)
        temporary.chmod(0o666 & ~_umask())  # mkstemp makes files that only their owner can read
        temporary.replace(final)
    except BaseException:
        with suppress(OSError):
            temporary.unlink()
        raise
    with suppress(OSError):  # some file systems cannot sync a directory
        _sync(final.parent)


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _umask() -> int:
    current = os.umask(0)
    os.umask(current)
    return current
