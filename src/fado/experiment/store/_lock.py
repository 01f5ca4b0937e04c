"""One runner per store: a lock that the system frees when its holder dies, and that names its holder."""

from __future__ import annotations

import json
import os
import socket
import warnings
from pathlib import Path
from types import TracebackType
from typing import Any

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

__all__ = ["RunLock", "StoreInUseError", "holder_of", "on_network"]

_NETWORK = {"nfs", "nfs4", "cifs", "smb3", "smbfs", "afs", "lustre", "glusterfs", "ceph", "9p", "fuse.sshfs"}

_LONGEST = 10_000  # characters of a lock file


class StoreInUseError(RuntimeError):
    """Another runner works on the store."""


class RunLock:
    """A lock file that is held while a runner works.

    The system holds the lock for the open file, so that it ends with the process, however that ends; a stale
    file, or a process that was given a dead holder's number, means nothing. What the file says is for people,
    and for file systems that have no locks: there the holder's process number, the time that process started,
    and its host decide.

    Parameters
    ----------
    path : pathlib.Path
        The lock file.
    supervisor : int, optional
        The process that supervises this one: the lock is held in its name, and what one of its processes
        held before is this one's.
    """

    def __init__(self, path: Path, supervisor: int | None = None) -> None:
        self._path = path
        self._supervisor = supervisor
        self._handle: int | None = None

    def __enter__(self) -> RunLock:
        handle = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            # Without locks of the system, or where another host's may not show, the file's word counts.
            trusted = _locked(handle, self._path) and not (
                on_network(self._path) and holder_of(self._path).get("host") != socket.gethostname()
            )
            holder = holder_of(self._path)
            own = _identity(os.getpid() if self._supervisor is None else self._supervisor)
            inherited = self._supervisor is not None and holder == own
            if not trusted and holder and not inherited and _may_live(holder):
                raise _in_use(self._path, holder)
            os.ftruncate(handle, 0)
            os.write(handle, json.dumps(own).encode())
        except BaseException:
            os.close(handle)
            raise
        self._handle = handle
        if on_network(self._path):
            warnings.warn(
                f"The store {str(self._path.parent)!r} is on a network file system, where locks and durable "
                "writes are not to be relied on: a local disk is safer.",
                UserWarning,
                stacklevel=3,
            )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._handle is not None  # noqa: S101 - entered before
        os.ftruncate(self._handle, 0)
        os.close(self._handle)


def holder_of(path: Path) -> dict[str, Any]:
    """Read who holds, or last held, a lock; nothing if nobody or if the file makes no sense."""
    try:
        with path.open(encoding="utf-8") as file:
            found = json.loads(file.read(_LONGEST))
        return found if isinstance(found, dict) and isinstance(found["pid"], int) else {}
    except (OSError, ValueError, KeyError, RecursionError):
        return {}


def on_network(path: Path) -> bool:
    """Tell whether a path is on a network file system, as far as the system says."""
    try:
        mounts = Path("/proc/self/mounts").read_text(encoding="utf-8").splitlines()
    except OSError:
        return False
    kind, longest, resolved = "", -1, path.parent.resolve()
    for line in mounts:
        _, point, found, *_ = line.split(" ")
        point = point.replace("\\040", " ")
        if len(point) > longest and resolved.is_relative_to(point):
            kind, longest = found, len(point)
    return kind in _NETWORK


def _locked(handle: int, path: Path) -> bool:
    """Take the system's lock; False if the file system has none."""
    if fcntl is None:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise _in_use(path, holder_of(path)) from None
    except OSError:
        return False
    return True


def _in_use(path: Path, holder: dict[str, Any]) -> StoreInUseError:
    who = f"process {holder['pid']} on host {holder.get('host')}" if holder else "another process"
    hint = "wait for it, or stop it first"
    if holder.get("host") != socket.gethostname():
        hint += f"; if it is gone, delete {str(path)!r}"
    return StoreInUseError(f"The store {str(path.parent)!r} is in use by {who}: {hint}.")


def _identity(pid: int) -> dict[str, Any]:
    return {"pid": pid, "host": socket.gethostname(), "boot": _boot(), "started": _started(pid)}


def _may_live(holder: dict[str, Any]) -> bool:
    """Tell whether a holder may be alive; of another host nothing can be known."""
    if holder.get("host") != socket.gethostname():
        return True
    now = _identity(holder["pid"])
    return now["started"] is not None and now == {name: holder.get(name) for name in now}


def _started(pid: int) -> int | None:
    """Give the time at which a process started, in the system's ticks; None if there is none."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    return int(stat.rpartition(")")[2].split()[19])


def _boot() -> str | None:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="utf-8").strip()
    except OSError:
        return None
