"""The ledger of a run: a plan that is frozen when it begins, what was learnt, and which parts are done."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np

from fado._messages import list_names
from fado._records import shorten
from fado._storage import Lock, Manifest, claims_of, remove_unfinished, writing
from fado.tabular import Source
from fado.valuation._saved import DONE, PLAN, footer_digest
from fado.valuation.bulk._folds import Folds
from fado.valuation.bulk._frames import TABLES

__all__ = [
    "LEARNT",
    "MODELS",
    "SAMPLE",
    "compare",
    "folds_from",
    "folds_to_plain",
    "held",
    "is_done",
    "remove_run",
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
    if name.startswith((".", TABLES, _LOCK)):
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
def held(directory: Path) -> Iterator[None]:
    """Make a run's directory if there is none, keep a second run out of it, and tidy it up.

    What cannot be written is told in a sentence. A directory with nothing in it in the end is removed.
    """
    lock = directory / _LOCK
    with writing(directory, "Values", "; what is done stays"):
        directory.mkdir(exist_ok=True)
        try:
            with Lock(lock, f"The directory {str(directory)!r}"):
                try:
                    remove_unfinished(directory)
                    yield
                finally:
                    if set(directory.iterdir()) <= {lock, *claims_of(lock)}:
                        with suppress(PermissionError):  # Windows removes it when it is given back
                            lock.unlink(missing_ok=True)
        finally:
            with suppress(OSError):
                directory.rmdir()


def is_done(directory: Path) -> bool:
    """Tell whether a run has ended and all its parts stand there; a part that is another's is removed."""
    if not (directory / DONE.name).is_file():
        return False
    entries = DONE.open(directory)["parts"]
    paths = [directory / entry["file"] for entry in entries]
    for path, entry in zip(paths, entries, strict=True):
        if path.is_file() and footer_digest(path) != entry["digest"]:
            path.unlink()
    return all(path.is_file() for path in paths)


def remove_run(directory: Path) -> None:
    """Remove all that a run has kept; whenever this is ended, what is left can be gone on with."""
    last = [DONE.name, LEARNT.name, MODELS, PLAN.name]
    locks = [directory / _LOCK, *claims_of(directory / _LOCK)]
    first = [path for path in directory.iterdir() if path.name not in last and path not in locks]
    for path in [*sorted(first), *(directory / name for name in last)]:
        _remove(path)


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


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
