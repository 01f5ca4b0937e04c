"""Memory: how much is free, and sizes as readable text."""

from __future__ import annotations

import re
from numbers import Integral
from pathlib import Path

_LARGEST_SHOWN = 10**18  # bytes
_LEAST = 10**6  # fewer bytes are a mistake: the unit was forgotten
_UNITS = {"B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
_UNITS |= {"KIB": 2**10, "MIB": 2**20, "GIB": 2**30, "TIB": 2**40}
_SIZE = re.compile(r"\s*(\d+(?:\.\d*)?|\.\d+)\s*([a-z]+)\s*", re.IGNORECASE)


def parse_memory(size: str | int, name: str = "memory") -> int:
    """Return a size in bytes, or refuse it; GB is 10^9 bytes, GiB 2^30.

    Parameters
    ----------
    size : str or int
        A number and a unit, or bytes.
    name : str
        The name of the setting.

    Examples
    --------
    >>> parse_memory("4GB"), parse_memory("500 MB"), parse_memory("2GiB")
    (4000000000, 500000000, 2147483648)
    >>> parse_memory("4")
    Traceback (most recent call last):
        ...
    ValueError: `memory` must be a size with its unit, such as '4GB' or '500MB', got '4'.
    """
    if isinstance(size, bool) or not isinstance(size, str | Integral):
        raise TypeError(f"`{name}` must be a size such as '4GB', or a whole number of bytes, got {size!r}.")
    if isinstance(size, str):
        read = _SIZE.fullmatch(size)
        if read is None or read[2].upper() not in _UNITS:
            raise ValueError(
                f"`{name}` must be a size with its unit, such as '4GB' or '500MB', got {size!r}."
            )
        n_bytes = round(float(read[1]) * _UNITS[read[2].upper()])
    else:
        n_bytes = int(size)
    if n_bytes < _LEAST:
        raise ValueError(f"`{name}` must be at least 1MB, got {size!r}.")
    return n_bytes


def format_memory(n_bytes: float) -> str:
    """Return a number of bytes as readable text.

    Examples
    --------
    >>> format_memory(3_450_000_000), format_memory(12_000_000), format_memory(800)
    ('3.5 GB', '12 MB', '800 B')
    """
    unit = next((unit for unit in ("TB", "GB", "MB", "KB") if n_bytes >= _UNITS[unit]), "B")
    number = n_bytes / _UNITS[unit]
    return f"{number:.1f} {unit}" if number < 10 and unit != "B" else f"{number:.0f} {unit}"


def check_room_for(what: str, n_bytes: int) -> None:
    """Refuse a task that needs more than the free memory, before it starts.

    Parameters
    ----------
    what : str
        The task, as the beginning of a sentence.
    n_bytes : int
        The least memory that it needs.
    """
    free = free_memory()
    if free is not None and n_bytes > free:
        needed = format_memory(min(n_bytes, _LARGEST_SHOWN))
        raise ValueError(
            f"{what} would take at least {needed} of memory, and {format_memory(free)} are free: ask for "
            "fewer."
        )


def free_memory(root: Path = Path("/")) -> int | None:
    """Return the bytes that this process may still use; None if the system does not report it.

    The least of the machine's free memory and of what the process's control groups leave; unused pages of
    files count as free.

    Parameters
    ----------
    root : pathlib.Path
        The directory of ``proc`` and ``sys``.
    """
    available = _number(root / "proc/meminfo", "MemAvailable:")
    if available is None:
        return None
    free = [available * 1024]
    memberships = root / "proc/self/cgroup"
    for line in memberships.read_text(errors="replace").splitlines() if memberships.exists() else ():
        version, controllers, path = line.split(":", 2)
        if version == "0":
            top, limit, usage, unused = "", "max", "current", "inactive_file "
        elif "memory" in controllers.split(","):
            top, limit, usage, unused = "memory", "limit_in_bytes", "usage_in_bytes", "total_inactive_file "
        else:
            continue
        top_group = root / "sys/fs/cgroup" / top
        group = top_group / path.lstrip("/")
        for folder in (group, *group.parents):
            if folder == top_group.parent:
                break
            most, used = (_number(folder / f"memory.{name}") for name in (limit, usage))
            if most is not None and used is not None:
                used -= _number(folder / "memory.stat", unused) or 0
                free.append(max(0, most - max(0, used)))
    return min(free)


def _number(path: Path, name: str = "") -> int | None:
    """Read the number that follows a name, or that begins a file; None if there is none."""
    try:
        number = re.search(rf"^{name}\s*(\d+)", path.read_text(errors="replace"), re.MULTILINE)
    except OSError:
        return None
    return int(number[1]) if number else None
