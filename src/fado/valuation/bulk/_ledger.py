"""The ledger of a run: a plan that is frozen when it begins, what was learnt, and which parts are done."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from fado._manifests import Manifest
from fado._messages import list_names
from fado.tabular import Source
from fado.valuation._plain import shorten
from fado.valuation._stored import DONE, PLAN
from fado.valuation.bulk._folds import Folds
from fado.valuation.bulk._frames import TABLES

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

__all__ = [
    "LEARNT",
    "MODELS",
    "SAMPLE",
    "compare",
    "folds_from",
    "folds_to_plain",
    "locked",
    "request_of",
    "settle",
]

LEARNT = Manifest(name="_learnt.json", kind="fado notes of values", layout=1, what="set of notes")
MODELS = "_models"
SAMPLE = "_sample"
_LOCK = "_lock"
_OWN = {PLAN.name, LEARNT.name, DONE.name, MODELS, SAMPLE, _LOCK}


def request_of(
    source: Source, decisive: Mapping[str, Any], files: Sequence[Mapping[str, Any]] | None = None
) -> dict[str, Any]:
    """Say what is asked for: which files, and all that decides a value.

    Parameters
    ----------
    source : Source
        The table.
    decisive : mapping
        What decides a value, but for the files.
    files : sequence of mapping, optional
        What stands for the files, where the table came as something else.
    """
    schema = hashlib.sha256(source.schema.remove_metadata().to_string().encode()).hexdigest()
    own = [
        {"path": str(file.path.resolve()), "size": file.size, "modified": file.modified}
        for file in source.files
    ]
    return {**decisive, "schema": schema, "files": own if files is None else list(files)}


def settle(directory: Path, request: Mapping[str, Any], frozen: Mapping[str, Any]) -> dict[str, Any]:
    """Freeze what memory has decided, or give what was frozen when the run began.

    Parameters
    ----------
    directory : Path
        Where the run keeps its files; it exists.
    request : mapping
        What is asked for, from `request_of`.
    frozen : mapping
        What memory decides.

    Returns
    -------
    dict
        What holds: `frozen`, or that of the run that is gone on with.

    Raises
    ------
    ValueError
        If the directory holds anything else, or a run of another request.
    """
    begun = (directory / PLAN.name).is_file()
    there = sorted(own.name for own in directory.iterdir())
    strange = [name for name in there if not _is_own(name, begun=begun)]
    if strange:
        raise ValueError(
            f"{str(directory)!r} holds {strange[0]!r}, which is no part of values in parts: name another "
            "directory with `out`."
        )
    if not begun:
        PLAN.write(directory, {"request": request, "frozen": frozen})
        return dict(frozen)
    told = PLAN.open(directory)
    compare(directory, told["request"], request)
    return dict(told["frozen"])


def _is_own(name: str, *, begun: bool) -> bool:
    """Tell what a run may have left; before there is a plan, parts are somebody else's."""
    if name == _LOCK or name.startswith((".", TABLES)):
        return True
    return begun and (name in _OWN or name.startswith("part-"))


def compare(directory: Path, before: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    """Refuse to go on with a run that asked for something else than what is asked for now."""
    begun = f"The values in {str(directory)!r} were begun"
    otherwise = "name another `out` to begin anew"
    for name in now:
        if name == "files" or before.get(name) == now[name]:
            continue
        if name == "schema":
            raise ValueError(f"{begun} with other columns: {otherwise}.")
        was, is_now = shorten(before.get(name)), shorten(now[name])
        raise ValueError(
            f"{begun} with `{name}` {was}, and now it is {is_now}: {otherwise}, or ask as before."
        )
    files = {own["path"]: own for own in before["files"]}
    given = {own["path"]: own for own in now["files"]}
    new = [path for path in given if path not in files]
    gone = [path for path in files if path not in given]
    changed = [path for path in given if path in files and files[path] != given[path]]
    for paths, what in ((new, "new"), (gone, "gone"), (changed, "changed")):
        if paths:
            raise ValueError(
                f"{begun} from other files: {list_names([repr(path) for path in paths])} "
                f"{'is' if len(paths) == 1 else 'are'} {what}; {otherwise}."
            )


@contextmanager
def locked(directory: Path) -> Iterator[None]:
    """Keep a second run out of a directory; the lock ends with the process that holds it."""
    handle = os.open(directory / _LOCK, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        if fcntl is not None:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise RuntimeError(
                    f"Another run writes values into {str(directory)!r}: wait for it, or stop it first."
                ) from None
            except OSError:  # a file system without locks
                pass
        yield
    finally:
        os.close(handle)


def folds_to_plain(folds: Folds) -> dict[str, Any]:
    """Give the folds as JSON can hold them."""
    return {
        "seed": folds.seed,
        "tiles": folds.tiles,
        "n_folds": folds.n_folds,
        "small": folds.small.tolist(),
        "small_folds": folds.small_folds.tolist(),
    }


def folds_from(told: Mapping[str, Any]) -> Folds:
    """Read what `folds_to_plain` gave."""
    return Folds(
        int(told["seed"]),
        int(told["tiles"]),
        int(told["n_folds"]),
        np.array(told["small"], dtype=np.int64),
        np.array(told["small_folds"], dtype=np.int64),
    )
