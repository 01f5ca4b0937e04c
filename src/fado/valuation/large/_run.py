"""The directory of a run: its plan, what models learnt, the parts of values, the mark that all is done."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from fado._messages import list_names
from fado._records import shorten
from fado._storage import Lock, Manifest, remove_unfinished, writing
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


class Run:
    """The directory of a run; all of it but the parts begins with ``_``."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.models = directory / "_models"
        self.values = directory / "_values.arrow"  # of the rows that models learnt from

    @contextmanager
    def held(self) -> Iterator[None]:
        """Create the directory if there is none, keep a second run out of it, and tidy it up.

        What cannot be written is reported in a sentence.
        """
        with writing(self.directory, "Values", "; what is done stays"):
            self.directory.mkdir(exist_ok=True)
            with Lock(self.directory / _LOCK, f"The directory {str(self.directory)!r}"):
                remove_unfinished(self.directory)
                yield

    def begin(self, request: Mapping[str, Any], train_rows: int) -> dict[str, Any]:
        """Store what is requested and the training rows that fit, or return the plan of the same request."""
        if not (self.directory / PLAN.name).is_file():
            for name in sorted(path.name for path in self.directory.iterdir()):
                if not name.startswith((".", _LOCK)):
                    raise ValueError(
                        f"{str(self.directory)!r} holds {name!r}, which is not part of values in parts: name "
                        "another directory with `out`."
                    )
            PLAN.write(self.directory, {"request": request, "train_rows": train_rows})
        plan = PLAN.open(self.directory)
        before, begun = plan["request"], f"The values in {str(self.directory)!r} were started"
        otherwise = "name another `out` to start again"
        for name in request:
            if name == "files" or before.get(name) == request[name]:
                continue
            if name == "schema":
                raise ValueError(f"{begun} with other columns: {otherwise}.")
            was, is_now = shorten(before.get(name)), shorten(request[name])
            raise ValueError(
                f"{begun} with `{name}` {was}, and now it is {is_now}: {otherwise}, or ask as before."
            )
        old, new = ({file["path"]: file for file in each["files"]} for each in (before, request))
        for what, paths in {
            "new": new.keys() - old.keys(),
            "gone": old.keys() - new.keys(),
            "changed": {path for path in new if path in old and old[path] != new[path]},
        }.items():
            if paths:
                raise ValueError(
                    f"{begun} from other files: {list_names(sorted(map(repr, paths)))} "
                    f"{'is' if len(paths) == 1 else 'are'} {what}; {otherwise}."
                )
        return plan

    def finish(self, written: Sequence[tuple[Path, int]], description: bytes) -> None:
        """Record that all parts are written, given their paths and numbers of rows."""
        parts = [
            {"file": path.name, "rows": n_rows, "digest": footer_digest(path)} for path, n_rows in written
        ]
        DONE.write(self.directory, {"parts": parts, "description": description.decode()})

    def is_done(self) -> bool:
        """Return whether all parts are written; a part of another run is removed."""
        if not (self.directory / DONE.name).is_file():
            return False
        parts = DONE.open(self.directory)["parts"]
        digests = {self.directory / part["file"]: part["digest"] for part in parts}
        for path, digest in digests.items():
            if path.is_file() and footer_digest(path) != digest:
                path.unlink()
        return all(path.is_file() for path in digests)
