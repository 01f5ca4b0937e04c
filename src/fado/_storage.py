"""Files and directories that are complete or absent, locked during writing, and checked by digests.

A file gets its name only when it is complete and synced. A saved directory may be untrusted: no file in it is
read before its digest matches the manifest, no name from the manifest is ever opened, and every error names
the file. Digests show damage and mixed-up files; they do not show who wrote a directory.
"""

from __future__ import annotations

import errno
import glob
import hashlib
import json
import os
import re
import secrets
import shutil
import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from fado._memory import format_memory
from fado._messages import warn_user

_NEW, _OLD = ".part", ".old"
_TOKEN = "[0-9a-f]" * 8
_TEMPORARY = re.compile(rf"\..*\.{_TOKEN}\{_NEW}")
_LOCK = "lock"
_NO_SPACE = (errno.ENOSPC, errno.EDQUOT)
_NETWORK = {"nfs", "nfs4", "cifs", "smb3", "smbfs", "afs", "lustre", "glusterfs", "ceph", "9p", "fuse.sshfs"}


class WriteError(OSError):
    """Something cannot be written; the sentence states what, where and why."""


def check_replaceable(path: Path) -> None:
    """Refuse to replace a directory or a read-only file."""
    if path.is_dir():
        raise IsADirectoryError(f"{str(path)!r} is a directory: name a file.")
    if path.exists() and not path.stat().st_mode & 0o222:  # a rename would not ask
        raise PermissionError(f"{str(path)!r} is read-only: name another file.")


@contextmanager
def replacing(path: str | os.PathLike[str], what: str, *, tidy: bool = True) -> Iterator[Path]:
    """Write a file under a temporary name; sync and rename it if the block succeeds.

    If the block fails, an earlier file stays. `tidy` first removes leftovers of killed processes for the same
    file; directories that one process at a time writes use `remove_unfinished`.
    """
    final = Path(path)
    if not final.parent.is_dir():
        raise FileNotFoundError(f"The directory {str(final.parent)!r} does not exist: create it first.")
    check_replaceable(final)
    with writing(final, what), _temporary_name(final, tidy=tidy) as temporary:
        yield temporary
        _sync(temporary)
        temporary.replace(final)
    _sync_directory(final.parent)


@contextmanager
def replacing_directory(final: Path, what: str) -> Iterator[Path]:
    """Fill a directory under a temporary name; rename it if the block succeeds.

    If the block fails, an earlier directory stays. Otherwise it is moved aside, and removed once the new one
    has its name; a process that is killed in between leaves the earlier one, complete, under a name that
    begins with a dot. Files in it must be synced by their writer.
    """
    with writing(final, what):
        with _temporary_name(final) as temporary:
            temporary.mkdir()
            yield temporary
            _sync_directory(temporary)
            if final.exists():
                final.rename(_named(final, _OLD))
            temporary.rename(final)
        _sync_directory(final.parent)
    remove_abandoned(final)


@contextmanager
def writing(path: Path, what: str, left: str = "") -> Iterator[None]:
    """Explain what cannot be written where, and why, instead of the system's error."""
    try:
        yield
    except WriteError as error:  # explained already
        raise error if left in str(error) else WriteError(f"{str(error).rstrip('.')}{left}.") from error
    except OSError as error:
        if error.errno is None and type(error) is not OSError:  # a sentence of ours
            raise
        final = Path(*(name for name in path.parts if not _TEMPORARY.fullmatch(name)))
        why, remedy = error.strerror or " ".join(str(error).split()), "fix that"
        if error.errno in _NO_SPACE:
            remedy = "make room"
            with suppress(OSError):
                why += f", {format_memory(shutil.disk_usage(path.parent).free)} are free"
        other = error.filename
        if isinstance(other, str | os.PathLike) and _NEW not in str(other) and Path(other) != path:
            why = f"{str(other)!r}: {why}"
        raise WriteError(
            f"{what} cannot be written to {str(final)!r} ({why}): {remedy} and run again{left}."
        ) from error


def remove_unfinished(directory: Path) -> None:
    """Remove unfinished files of killed processes from a directory with a single writer."""
    for path in directory.glob(f".*{_NEW}"):
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()


def remove_abandoned(final: Path) -> None:
    """Remove unfinished leftovers of processes that have ended.

    An earlier version that was moved aside is removed only if its replacement is in place.
    """
    for path in _leftovers(final, _NEW):
        with suppress(OSError, InUseError), Lock(path / _LOCK):
            shutil.rmtree(path, ignore_errors=True)
    for path in _leftovers(final, _OLD) if final.exists() else ():
        shutil.rmtree(path, ignore_errors=True)


def discard(folder: Path, final: Path) -> None:
    """Remove a directory; if this is interrupted, whoever writes `final` next removes the rest."""
    aside = _named(final, _NEW)
    folder.rename(aside)
    shutil.rmtree(aside)


@contextmanager
def _temporary_name(final: Path, *, tidy: bool = True) -> Iterator[Path]:
    """Return a temporary name in a directory that is removed at the end, and locked if others may tidy."""
    if tidy:
        remove_abandoned(final)
    folder = _named(final, _NEW)
    folder.mkdir()
    try:
        with Lock(folder / _LOCK) if tidy else nullcontext():
            yield folder / final.name
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _named(final: Path, ending: str) -> Path:
    return final.parent / f".{final.name[:100]}.{secrets.token_hex(4)}{ending}"


def _leftovers(final: Path, ending: str) -> list[Path]:
    return list(final.parent.glob(f".{glob.escape(final.name[:100])}.{_TOKEN}{ending}"))


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY if os.name == "posix" else os.O_RDWR)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _sync_directory(path: Path) -> None:
    with suppress(OSError):  # some file systems cannot sync a directory
        _sync(path)


class InUseError(RuntimeError):
    """Another process holds the lock."""


class Lock:
    """A lock that one process holds at a time; the system frees it when the process ends, however it ends.

    Parameters
    ----------
    path : pathlib.Path
        The lock file; its directory exists.
    what : str, optional
        What is locked, as the beginning of a sentence. With it, a file beside the lock names the process that
        holds it, and a network file system causes a warning.
    """

    def __init__(self, path: Path, what: str | None = None) -> None:
        self._path, self._holder = lock_files(path)
        self._what = what
        self._lock = FileLock(path, thread_local=False)

    def __enter__(self) -> Lock:
        if self._path.is_symlink():  # which would be emptied
            raise ValueError(f"{str(self._path)!r} is a link and not a lock file: delete it.")
        try:
            self._lock.acquire(blocking=False)
        except Timeout:
            raise InUseError(
                f"{self._what or repr(str(self._path))} is in use by {holder_of(self._path)}: wait for it, "
                "or stop it first."
            ) from None
        if self._what is not None:
            self._holder.unlink(missing_ok=True)  # which may be a link
            self._holder.write_text(f"process {os.getpid()} on host {socket.gethostname()}")
            if on_network(self._path):
                warn_user(
                    f"{self._what} is on a network file system, where locks and durable writes are not "
                    "reliable: a local disk is safer."
                )
        return self

    def __exit__(self, *_: object) -> None:
        if self._what is not None:
            self._holder.unlink(missing_ok=True)
        self._lock.release()


def lock_files(path: Path) -> list[Path]:
    """Return the lock file, and the file beside it that names the holder."""
    return [path, path.with_name(f"{path.name}.holder")]


def holder_of(path: Path) -> str:
    """Return which process holds a lock, or held it when it was killed."""
    try:
        return lock_files(path)[1].read_text() or "another process"
    except (OSError, UnicodeDecodeError):
        return "another process"


def on_network(path: Path) -> bool:
    """Return whether a path is on a network file system, as far as the system reports it."""
    kind, longest, resolved = "", -1, path.parent.resolve()
    with suppress(OSError):
        for line in Path("/proc/self/mounts").read_text(encoding="utf-8", errors="replace").splitlines():
            _, point, file_system, *_ = line.split(" ")
            point = point.replace("\\040", " ")
            if len(point) > longest and resolved.is_relative_to(point):
                kind, longest = file_system, len(point)
    return kind in _NETWORK


class DamagedError(ValueError):
    """Something is wrong with a file other than the manifest."""


@dataclass(frozen=True)
class Manifest:
    """One kind of saved directory.

    Parameters
    ----------
    name : str
        The name of the manifest's file.
    kind : str
        The kind that it states.
    layout : int
        The number of its format.
    what : str
        What is saved, for messages.
    """

    name: str
    kind: str
    layout: int
    what: str

    def dump(self, content: Mapping[str, Any]) -> bytes:
        """Return the manifest's bytes, its digest last."""
        return _as_json({**content, "digest": digest_of(_as_json(content))}) + b"\n"

    def write(self, folder: Path, content: Mapping[str, Any]) -> None:
        """Write the manifest of a directory."""
        packed = self.dump({"kind": self.kind, "format": self.layout, **content})
        write_file(folder / self.name, packed, f"The {self.what}")

    def open(self, directory: str | os.PathLike[str]) -> dict[str, Any]:
        """Read the manifest of a directory, if every byte is unchanged."""
        folder = Path(directory)
        path = folder / self.name
        if not path.is_file():
            why = f"has no {self.name}" if folder.is_dir() else "is not a directory"
            if not folder.exists():
                why = "does not exist"
                for aside in _leftovers(folder, _OLD)[:1]:
                    why += ". A process was killed while replacing it; the earlier version is in "
                    why += f"{str(aside)!r}: rename that directory"
            raise ValueError(f"There is no saved {self.what} in {str(folder)!r}: it {why}.")
        content = path.read_bytes()
        try:
            manifest = json.loads(content)
            is_ours = isinstance(manifest, dict) and manifest.get("kind") == self.kind
            whole = is_ours and self.dump({k: v for k, v in manifest.items() if k != "digest"}) == content
        except (ValueError, RecursionError) as error:
            raise ValueError(f"{str(path)!r} cannot be read: it is not JSON, or it is damaged.") from error
        if not is_ours:
            raise ValueError(f"{str(path)!r} is not the manifest of a {self.what} that FADO saved.")
        if manifest.get("format") != self.layout:
            raise ValueError(
                f"{str(path)!r} is in format {manifest.get('format')!r}, and this release reads "
                f"{self.layout}: a later release may have written it."
            )
        if not whole:
            raise ValueError(f"{str(path)!r} was changed after it was written: its digest does not match.")
        return manifest

    def read_file(self, path: Path, digest: Any) -> bytes:
        """Read a file, if its digest matches the manifest."""
        if not path.is_file():
            raise DamagedError(f"{str(path)!r} is missing: the {self.what} is not whole.")
        content = path.read_bytes()
        if digest_of(content) != digest:
            raise DamagedError(
                f"{str(path)!r} is damaged or of another {self.what}: its digest does not match."
            )
        return content

    def check_directory(self, directory: Path, is_part: Callable[[str], bool]) -> Path:
        """Return the directory to write to; refuse one that contains anything else."""
        final = directory.resolve()
        if not final.parent.is_dir():
            raise FileNotFoundError(f"The directory {str(final.parent)!r} does not exist: create it first.")
        if not final.exists():
            return final
        if not final.is_dir():
            raise NotADirectoryError(f"{str(directory)!r} is a file: name a directory.")
        there = sorted(path.name for path in final.iterdir())
        strange = [name for name in there if name != self.name and not is_part(name)]
        if there and (strange or self.name not in there):
            raise FileExistsError(
                f"{str(directory)!r} holds {(strange or there)[0]!r}, which is not part of a saved "
                f"{self.what}: name another directory."
            )
        if there:
            try:
                self.open(final)
            except ValueError as error:
                raise FileExistsError(f"The directory {str(directory)!r} is not replaced: {error}") from error
        return final


def write_file(path: Path, content: bytes, what: str) -> None:
    """Write a file in a directory with a single writer; `what` is the beginning of an error sentence."""
    with replacing(path, what, tidy=False) as temporary:
        temporary.write_bytes(content)


def digest_of(content: bytes) -> str:
    """Return the digest of a file for a manifest."""
    return hashlib.sha256(content).hexdigest()


def _as_json(content: Any) -> bytes:
    return json.dumps(content, indent=1, allow_nan=False).encode()
