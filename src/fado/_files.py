"""Files and directories that are either whole or not there."""

from __future__ import annotations

import errno
import os
import re
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from fado._locks import InUseError, Lock
from fado._memory import format_memory

__all__ = [
    "WriteError",
    "check_replaceable",
    "moved_aside",
    "remove_abandoned",
    "remove_unfinished",
    "replacing",
    "replacing_directory",
    "writing",
]

_NEW, _OLD = ".part", ".old"
_TOKEN = re.compile(r"[0-9a-f]{8}")
_TEMPORARY = re.compile(rf"\..*\.{_TOKEN.pattern}\{_NEW}")
_LOCK = "lock"
_NO_SPACE = (errno.ENOSPC, errno.EDQUOT)


class WriteError(OSError):
    """Something cannot be written; the sentence says what, where and why."""


def check_replaceable(path: Path) -> None:
    """Refuse what must not be replaced: a directory, or a file that nobody may write."""
    if path.is_dir():
        raise IsADirectoryError(f"{str(path)!r} is a directory: name a file.")
    if path.exists() and not path.stat().st_mode & 0o222:  # a rename would not ask
        raise PermissionError(f"{str(path)!r} is read-only: name another file.")


@contextmanager
def replacing(path: str | os.PathLike[str], what: str, *, tidy: bool = True) -> Iterator[Path]:
    """Write a file under a temporary name; sync it and bring it to its place when all went well.

    Parameters
    ----------
    path : path-like
        Where the finished file is to stand. If the block fails, whatever stood there before still does.
    what : str
        What it holds, as the beginning of a sentence that says why it cannot be written.
    tidy : bool
        Whether to remove first what processes that were killed left of the same file. False is for
        directories that one process at a time writes to, which tidies up with `remove_unfinished`.

    Yields
    ------
    pathlib.Path
        The temporary file to write to.

    Raises
    ------
    WriteError
        If it cannot be written.
    """
    final = Path(path)
    if not final.parent.is_dir():
        raise FileNotFoundError(f"The directory {str(final.parent)!r} does not exist: create it first.")
    check_replaceable(final)
    with writing(final, what), _place_for(final) if tidy else _beside(final) as temporary:
        temporary.touch(exist_ok=False)
        yield temporary
        _sync(temporary)
        temporary.replace(final)
    _sync_directory(final.parent)


@contextmanager
def replacing_directory(final: Path, what: str) -> Iterator[Path]:
    """Fill a directory under a temporary name; bring it to its place when all went well.

    A directory that stood there before still does if the block fails. It is moved aside and removed once the
    new one has its name; whoever is killed in between leaves both, whole, under names that begin with a dot.

    Parameters
    ----------
    final : Path
        Where the finished directory is to stand; whoever calls has made sure that it may be replaced.
    what : str
        What it holds, as the beginning of a sentence that says why it cannot be written.

    Yields
    ------
    pathlib.Path
        The temporary directory. Files in it must be synced by whoever writes them.
    """
    aside = _named(final, _OLD)
    with writing(final, what):
        with _place_for(final) as temporary:
            temporary.mkdir()
            yield temporary
            _sync_directory(temporary)
            _put_in_place(temporary, final, aside)
        _sync_directory(final.parent)
    shutil.rmtree(aside, ignore_errors=True)
    remove_abandoned(final)  # what was the only one until now


@contextmanager
def writing(path: Path, what: str, left: str = "") -> Iterator[None]:
    """Say what cannot be written where, and why.

    Parameters
    ----------
    path : Path
        The file, or its directory.
    what : str
        What it is to hold, as the beginning of a sentence.
    left : str
        The end of the sentence: what becomes of what was written before.

    Raises
    ------
    WriteError
        Instead of what the system says.
    """
    try:
        yield
    except WriteError as error:  # it has been said
        raise error if left in str(error) else WriteError(f"{str(error).rstrip('.')}{left}.") from error
    except OSError as error:
        if error.errno is None and type(error) is not OSError:  # a sentence of ours
            raise
        failed = f"{what} cannot be written to {_shown(path)!r} ({_why(error, path)})"
        remedy = "make room" if error.errno in _NO_SPACE else "put that right"
        raise WriteError(f"{failed}: {remedy} and run again{left}.") from error


def moved_aside(final: Path) -> Path | None:
    """Give what stood in a place before somebody was killed while replacing it; None if there is nothing."""
    if final.exists() or not final.parent.is_dir():
        return None
    left = [path for path in _leftovers(final) if path.name.endswith(_OLD)]
    return max(left, key=lambda path: path.stat().st_mtime, default=None)


def remove_unfinished(directory: Path) -> None:
    """Remove what killed processes left half-written in a directory that nobody else may write to."""
    for path in directory.glob(f".*{_NEW}"):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()


def _shown(path: Path) -> str:
    """Give the place that a file will have when the directory that it is written in is brought to its own."""
    return str(Path(*(name for name in path.parts if not _TEMPORARY.fullmatch(name))))


def _why(error: OSError, path: Path) -> str:
    """Give what the system says, of which file if it is another, and how much space is left."""
    why = error.strerror or " ".join(str(error).split())
    if error.errno in _NO_SPACE:
        with suppress(OSError):
            why += f", {format_memory(shutil.disk_usage(path.parent).free)} are free"
    other = error.filename
    is_other = isinstance(other, str | os.PathLike) and _NEW not in str(other) and Path(other) != path
    return f"{str(other)!r}: {why}" if is_other else why


@contextmanager
def _beside(final: Path) -> Iterator[Path]:
    """Give a temporary name beside a file."""
    temporary = _named(final, _NEW)
    try:
        yield temporary
    except BaseException:
        with suppress(OSError):
            temporary.unlink()
        raise


@contextmanager
def _place_for(final: Path) -> Iterator[Path]:
    """Give a temporary name in a directory that is locked as long as somebody is at work in it."""
    remove_abandoned(final)
    folder = _named(final, _NEW)
    folder.mkdir()
    try:
        with Lock(folder / _LOCK):
            yield folder / final.name
    finally:
        shutil.rmtree(folder, ignore_errors=True)


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


def _named(final: Path, ending: str) -> Path:
    return final.parent / f".{final.name[:100]}.{secrets.token_hex(4)}{ending}"


def remove_abandoned(final: Path) -> None:
    """Remove what processes that are gone left of something that they had not finished.

    What was moved aside is whole, and removed only where what took its place stands.
    """
    for path in _leftovers(final):
        if path.name.endswith(_OLD):
            if final.exists():
                shutil.rmtree(path, ignore_errors=True)
            continue
        with suppress(OSError, InUseError), Lock(path / _LOCK):
            shutil.rmtree(path, ignore_errors=True)


def _leftovers(final: Path) -> list[Path]:
    """List the temporary directories of a file or directory, by their names."""
    prefix = f".{final.name[:100]}."
    return [
        path
        for path in final.parent.iterdir()
        if path.name.startswith(prefix)
        and path.suffix in (_NEW, _OLD)
        and _TOKEN.fullmatch(path.stem[len(prefix) :])
        and path.is_dir()
        and not path.is_symlink()
    ]


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY if os.name == "posix" else os.O_RDWR)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _sync_directory(path: Path) -> None:
    with suppress(OSError):  # some file systems cannot sync a directory
        _sync(path)
