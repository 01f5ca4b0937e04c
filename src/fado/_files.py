"""Files that are either whole or not there."""

from __future__ import annotations

import glob
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

__all__ = ["check_replaceable", "replacing"]

_SUFFIX = ".part"


def check_replaceable(path: Path) -> None:
    """Refuse what must not be replaced: a directory, or a file that nobody may write."""
    if path.is_dir():
        raise IsADirectoryError(f"{str(path)!r} is a directory: name a file.")
    if path.exists() and not path.stat().st_mode & 0o222:  # a rename would not ask
        raise PermissionError(f"{str(path)!r} is read-only: name another file.")


@contextmanager
def replacing(path: str | os.PathLike[str], *, tidy: bool = True) -> Iterator[Path]:
    """Write a file under a temporary name beside it; sync and rename it when all went well.

    Parameters
    ----------
    path : path-like
        Where the finished file is to stand. If the block fails, whatever stood there before still does.
    tidy : bool
        Whether to remove first what processes that were killed left of the same file. It takes a look at
        every name of the directory.

    Yields
    ------
    pathlib.Path
        The temporary file to write to.
    """
    final = Path(path)
    if not final.parent.is_dir():
        raise FileNotFoundError(f"The directory {str(final.parent)!r} does not exist: create it first.")
    check_replaceable(final)
    if tidy:
        _remove_abandoned(final)
    handle, name = tempfile.mkstemp(prefix=_prefix(final), suffix=_SUFFIX, dir=final.parent)
    temporary = Path(name)
    try:
        _lock(handle)
        yield temporary
        _sync(temporary)
        temporary.chmod(0o666 & ~_umask())  # mkstemp makes files that only their owner can read
        if fcntl is None:
            os.close(handle)  # Windows renames no open file
            handle = -1
        temporary.replace(final)
    except BaseException:
        with suppress(OSError):
            temporary.unlink()
        raise
    finally:
        if handle >= 0:
            os.close(handle)
    with suppress(OSError):  # some file systems cannot sync a directory
        _sync(final.parent)


def _prefix(final: Path) -> str:
    return f".{final.name[:100]}."


def _lock(handle: int) -> bool:
    """Take a lock that the system frees when this process ends; tell whether it was to be had."""
    if fcntl is None:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:  # somebody has it, or the file system has no locks
        return False
    return True


def _remove_abandoned(final: Path) -> None:
    """Remove the temporary files of processes that are gone; those of others are locked."""
    for path in final.parent.glob(f"{glob.escape(_prefix(final))}????????{_SUFFIX}"):
        with suppress(OSError):
            handle = os.open(path, os.O_RDWR | getattr(os, "O_NOFOLLOW", 0))
            try:
                if _lock(handle):
                    path.unlink()
            finally:
                os.close(handle)


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
