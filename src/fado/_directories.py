"""Directories that are either whole or not there."""

from __future__ import annotations

import os
import re
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

__all__ = ["moved_aside", "replacing_directory"]

_NEW, _OLD = ".part", ".old"
_TOKEN = re.compile(r"[0-9a-f]{8}")


@contextmanager
def replacing_directory(final: Path) -> Iterator[Path]:
    """Fill a directory under a temporary name beside it; rename it when all went well.

    A directory that stood there before still does if the block fails. It is moved aside and removed once the
    new one has its name; whoever is killed in between leaves both, whole, under names that begin with a dot,
    which the next one removes.

    Parameters
    ----------
    final : Path
        Where the finished directory is to stand; whoever calls has made sure that it may be replaced.

    Yields
    ------
    pathlib.Path
        The temporary directory. Files in it must be synced by whoever writes them.
    """
    _remove_abandoned(final)
    temporary, aside = _beside(final, _NEW), _beside(final, _OLD)
    temporary.mkdir()
    handle = _lock(temporary)
    try:
        yield temporary
        _sync(temporary)
        _put_in_place(temporary, final, aside)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise
    finally:
        if handle is not None:
            os.close(handle)
    _sync(final.parent)
    shutil.rmtree(aside, ignore_errors=True)
    _remove_abandoned(final)  # what was the only one until now


def moved_aside(final: Path) -> Path | None:
    """Give what stood in a place before somebody was killed while replacing it; None if there is nothing."""
    if final.exists() or not final.parent.is_dir():
        return None
    left = [path for path in _leftovers(final) if path.name.endswith(_OLD)]
    return max(left, key=lambda path: path.stat().st_mtime, default=None)


def _put_in_place(temporary: Path, final: Path, aside: Path) -> None:
    there = final.exists()
    if there:
        final.rename(aside)
    try:
        temporary.rename(final)
    except BaseException:
        if there:
            aside.rename(final)
        raise


def _beside(final: Path, ending: str) -> Path:
    return final.parent / f".{final.name[:100]}.{secrets.token_hex(4)}{ending}"


def _lock(path: Path) -> int | None:
    """Take a lock that the system frees when this process ends; None if it is not to be had."""
    if fcntl is None:
        return None
    handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:  # somebody has it, or the file system has no locks
        os.close(handle)
        return None
    return handle


def _remove_abandoned(final: Path) -> None:
    """Remove what processes that are gone left of a directory that they had not finished.

    What was moved aside is whole, and removed only where the directory that took its place stands.
    """
    for path in _leftovers(final):
        if path.name.endswith(_OLD) and not final.exists():
            continue
        with suppress(OSError):
            handle = _lock(path)
            if handle is not None:
                shutil.rmtree(path, ignore_errors=True)
                os.close(handle)


def _leftovers(final: Path) -> list[Path]:
    """List the temporary directories of a directory, by their names."""
    prefix = f".{final.name[:100]}."
    return [
        path
        for path in final.parent.iterdir()
        if path.name.startswith(prefix)
        and path.suffix in (_NEW, _OLD)
        and _TOKEN.fullmatch(path.stem[len(prefix) :])
    ]


def _sync(path: Path) -> None:
    with suppress(OSError):  # some file systems cannot sync a directory
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
