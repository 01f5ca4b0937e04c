"""The directory of a run: its plan, what models learnt, the parts of values, the mark that all is done."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from fado._messages import list_names
from fado._records import shorten
from fado._storage import Lock, Manifest, lock_files, remove_unfinished, writing
from fado.tabular import Source
from fado.valuation._saved import DONE, PLAN, footer_digest

LEARNT = Manifest(name="_learnt.json", kind="fado notes of values", layout=1, what="set of notes")
_LOCK = "_lock"


def part_name(number: int) -> str:
    """Name the file of a part.

    Examples
    --------
    >>> part_name(7)
    'part-00007.parquet'
    """
    return f"part-{number:05d}.parquet"


def request_of(source: Source, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the request that values depend on: the settings, and which files."""
    schema = hashlib.sha256(source.schema.remove_metadata().to_string().encode()).hexdigest()
    files = [
        {"path": str(file.path.resolve()), "size": file.size, "modified": file.modified}
        for file in source.files
    ]
    return {**settings, "schema": schema, "files": files}


class Run:
    """The directory of a run; all of it but the parts begins with ``_``."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.models = directory / "_models"
        self.values = directory / "_values.arrow"  # of the rows that models learnt from
        self.sample = directory / "_sample"  # those rows, while workers of a cluster need them
        self._locks = lock_files(directory / _LOCK)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Create the directory if there is none, keep a second run out of it, and tidy it up.

        What cannot be written is reported in a sentence. A directory that is empty in the end is removed.
        """
        lock = self._locks[0]
        with writing(self.directory, "Values", "; what is done stays"):
            self.directory.mkdir(exist_ok=True)
            try:
                with Lock(lock, f"The directory {str(self.directory)!r}"):
                    try:
                        remove_unfinished(self.directory)
                        yield
                    finally:
                        if set(self.directory.iterdir()) <= set(self._locks):
                            with suppress(PermissionError):  # Windows removes it when it is given back
                                lock.unlink(missing_ok=True)
            finally:
                with suppress(OSError):
                    self.directory.rmdir()

    def begin(self, request: Mapping[str, Any], train_rows: int) -> dict[str, Any]:
        """Store what is requested and the training rows that fit, or return the plan of the same request."""
        begun = (self.directory / PLAN.name).is_file()
        bookkeeping = {
            PLAN.name,
            LEARNT.name,
            DONE.name,
            self.models.name,
            self.values.name,
            self.sample.name,
        }
        for name in sorted(path.name for path in self.directory.iterdir()):
            written_by_us = begun and (name in bookkeeping or name.startswith("part-"))
            if not (written_by_us or name.startswith((".", _LOCK))):
                raise ValueError(
                    f"{str(self.directory)!r} holds {name!r}, which is not part of values in parts: name "
                    "another directory with `out`."
                )
        if begun:
            plan = PLAN.open(self.directory)
            self._compare(plan["request"], request)
            return plan
        PLAN.write(self.directory, {"request": request, "train_rows": train_rows})
        return PLAN.open(self.directory)

    def _compare(self, before: Mapping[str, Any], now: Mapping[str, Any]) -> None:
        """Refuse to continue a run that had another request."""
        begun = f"The values in {str(self.directory)!r} were started"
        otherwise = "name another `out` to start again"
        for name in now:
            if name == "files" or before.get(name) == now[name]:
                continue
            if name == "schema":
                raise ValueError(f"{begun} with other columns: {otherwise}.")
            was, is_now = shorten(before.get(name)), shorten(now[name])
            raise ValueError(
                f"{begun} with `{name}` {was}, and now it is {is_now}: {otherwise}, or ask as before."
            )
        old, new = ({file["path"]: file for file in request["files"]} for request in (before, now))
        for what, paths in {
            "new": [path for path in new if path not in old],
            "gone": [path for path in old if path not in new],
            "changed": [path for path in new if path in old and old[path] != new[path]],
        }.items():
            if paths:
                raise ValueError(
                    f"{begun} from other files: {list_names([repr(path) for path in paths])} "
                    f"{'is' if len(paths) == 1 else 'are'} {what}; {otherwise}."
                )

    def has_learnt(self) -> bool:
        """Whether models have learnt."""
        return (self.directory / LEARNT.name).is_file()

    def finish(self, paths: Sequence[Path], sizes: Sequence[int], description: bytes) -> None:
        """Record that all parts are written."""
        parts = [
            {"file": path.name, "rows": n_rows, "digest": footer_digest(path)}
            for path, n_rows in zip(paths, sizes, strict=True)
        ]
        DONE.write(self.directory, {"parts": parts, "description": description.decode()})

    def is_done(self) -> bool:
        """Return whether all parts are written; a part of another run is removed."""
        if not (self.directory / DONE.name).is_file():
            return False
        digests = {
            self.directory / part["file"]: part["digest"] for part in DONE.open(self.directory)["parts"]
        }
        for path, digest in digests.items():
            if path.is_file() and footer_digest(path) != digest:
                path.unlink()
        return all(path.is_file() for path in digests)

    def remove(self) -> None:
        """Remove all that the run has kept; if this is interrupted, the rest can be continued."""
        done, learnt, plan = (self.directory / manifest.name for manifest in (DONE, LEARNT, PLAN))
        last = [done, learnt, self.models, self.values, plan]
        first = [path for path in self.directory.iterdir() if path not in (*last, *self._locks)]
        for path in [*sorted(first), *last]:
            _remove(path)


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
