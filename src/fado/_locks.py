"""One process at a time: a lock that ends with its holder, and that says who holds it."""

from __future__ import annotations

import errno
import json
import os
import secrets
import socket
import warnings
from pathlib import Path
from types import TracebackType
from typing import Any

from fado._messages import warn_user

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # that there are no locks of the system is provided for below
    from filelock import BaseFileLock, FileLock, SoftFileLock, Timeout

__all__ = ["InUseError", "Lock", "claims_of", "holder_of"]

_NETWORK = {"nfs", "nfs4", "cifs", "smb3", "smbfs", "afs", "lustre", "glusterfs", "ceph", "9p", "fuse.sshfs"}
_NO_LOCKS = {errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOTSUP, errno.ENOLCK, errno.EINVAL}
_LONGEST = 10_000  # characters of a claim


class InUseError(RuntimeError):
    """Another process holds the lock."""


class Lock:
    """A lock that one process holds at a time.

    The system's lock ends with the process that holds it, however that ends. Beside it lies a claim, a small
    file that says who the holder is. Where the system has no locks, or where those of another host may not
    show, claims decide: whoever wants the lock writes a claim of its own, then looks for others, and gives
    way to every one whose process may be alive. Claims have names of their own, so that to remove that of a
    dead process can never remove a living one's. No clock is asked, and a process that was given a dead one's
    number started at another time.

    Parameters
    ----------
    path : pathlib.Path
        The lock file; its directory exists.
    what : str, optional
        What is locked, as the beginning of a sentence. With it, a network file system is warned of.
    supervisor : int, optional
        The process that supervises this one: the lock is held in its name, and what one of its processes
        held before is this one's.
    """

    def __init__(self, path: Path, what: str | None = None, supervisor: int | None = None) -> None:
        self._path = path
        self._what = what
        self._supervisor = supervisor
        self._claim = path.with_name(f"{path.name}.{secrets.token_hex(4)}.holder")
        self._lock: BaseFileLock | None = None

    def __enter__(self) -> Lock:
        if self._path.is_symlink():
            raise ValueError(f"{str(self._path)!r} is a link, which a lock is not: delete it.")
        try:
            self._lock = _system_lock(self._path)
        except Timeout:
            raise self._in_use(holder_of(self._path), is_sure=True) from None
        try:
            self._outclaim(_identity(os.getpid() if self._supervisor is None else self._supervisor))
        except BaseException:
            self._give_back()
            raise
        if self._what is not None and on_network(self._path):
            warn_user(
                f"{self._what} is on a network file system, where locks and durable writes are not to be "
                "relied on: a local disk is safer."
            )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._give_back()

    def _outclaim(self, own: dict[str, Any]) -> None:
        """Claim the lock; refuse if another claim stands, and remove those of the dead."""
        self._claim.write_text(json.dumps(own), encoding="utf-8")
        afar = self._lock is None or on_network(self._path)
        for claim in claims_of(self._path):
            if claim == self._claim:
                continue
            holder = _read(claim)
            hidden = self._lock is None or (afar and holder.get("host") != own["host"])
            inherited = self._supervisor is not None and holder == own
            if hidden and not inherited and _may_live(holder):
                raise self._in_use(holder, is_sure=False)
            claim.unlink(missing_ok=True)

    def _give_back(self) -> None:
        self._claim.unlink(missing_ok=True)
        if self._lock is not None:
            self._lock.release()

    def _in_use(self, holder: dict[str, Any], *, is_sure: bool) -> InUseError:
        who = f"process {holder['pid']} on host {holder.get('host')}" if holder else "another process"
        hint = "wait for it, or stop it first"
        if not is_sure:
            hint += f"; if it is gone, delete {str(self._path.with_name(self._path.name + '.*.holder'))!r}"
        what = self._what or repr(str(self._path))
        return InUseError(f"{what} is in use by {who}: {hint}.")


def claims_of(path: Path) -> list[Path]:
    """List the claims that lie beside a lock."""
    return [
        found
        for found in path.parent.iterdir()
        if found.name.startswith(f"{path.name}.") and found.name.endswith(".holder")
    ]


def holder_of(path: Path) -> dict[str, Any]:
    """Read who holds, or last held, a lock; nothing if nobody did."""
    return next((holder for holder in map(_read, claims_of(path)) if holder), {})


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


def _system_lock(path: Path) -> BaseFileLock | None:
    """Take the system's lock; None if the system or the file system has none."""
    if FileLock is SoftFileLock:  # it would outlive its holder
        return None
    lock = FileLock(path, thread_local=False)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            lock.acquire(blocking=False)
    except Timeout:
        raise
    except NotImplementedError:
        return None
    except OSError as error:
        if error.errno in _NO_LOCKS:
            return None
        raise
    if isinstance(lock, SoftFileLock):  # what newer versions turn to by themselves
        lock.release()
        return None
    return lock


def _read(claim: Path) -> dict[str, Any]:
    """Read a claim; nothing if it makes no sense."""
    try:
        with claim.open(encoding="utf-8") as file:
            found = json.loads(file.read(_LONGEST))
        return found if isinstance(found, dict) and isinstance(found["pid"], int) else {}
    except (OSError, ValueError, KeyError, RecursionError):
        return {}


def _identity(pid: int) -> dict[str, Any]:
    return {"pid": pid, "host": socket.gethostname(), "boot": _boot(), "started": _started(pid)}


def _may_live(holder: dict[str, Any]) -> bool:
    """Tell whether a holder may be alive; of another host, or of half a claim, nothing can be known."""
    if holder.get("host") != socket.gethostname():
        return True
    now = _identity(holder["pid"])
    if now["boot"] is None:  # no Linux
        return _may_run(holder["pid"])
    return now["started"] is not None and now == {name: holder.get(name) for name in now}


def _may_run(pid: int) -> bool:
    """Tell whether there may be a process of this number."""
    if os.name != "posix" or pid <= 0:  # on Windows, to ask would be to end it
        return True
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    return True


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
