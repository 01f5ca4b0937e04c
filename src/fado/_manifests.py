"""Saved directories: a manifest that vouches for every other file, and no pickle among them.

A directory may come from anybody: nothing in it is read before its digest is what the manifest says, no name
from the manifest is ever opened, and what is wrong is said in a sentence that names the file. Digests show
damage and mixed-up files; they do not show who wrote a directory.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fado._files import moved_aside, replacing

__all__ = ["DamagedError", "Manifest", "digest_of", "write_file"]


class DamagedError(ValueError):
    """Something is wrong with a file other than the manifest."""


@dataclass(frozen=True)
class Manifest:
    """One kind of saved directory.

    Parameters
    ----------
    name : str
        What the manifest's file is called.
    kind : str
        What it says it is.
    layout : int
        The number of its format.
    what : str
        What messages call the thing that is saved.
    """

    name: str
    kind: str
    layout: int
    what: str

    def dump(self, told: Mapping[str, Any]) -> bytes:
        """Give the manifest's only form, its own digest last."""
        return _as_json({**told, "digest": digest_of(_as_json(told))}) + b"\n"

    def write(self, folder: Path, told: Mapping[str, Any]) -> None:
        """Write the manifest of what stands in a directory."""
        content = self.dump({"kind": self.kind, "format": self.layout, **told})
        write_file(folder / self.name, content, f"The {self.what}")

    def open(self, directory: str | os.PathLike[str]) -> dict[str, Any]:
        """Read the manifest of a directory, if it is in every byte what was written."""
        folder = Path(directory)
        if not folder.is_dir():
            why = "is no directory" if folder.exists() else "does not exist"
            aside = moved_aside(folder)
            if aside is not None:
                why += (
                    f". What stood there when a process was killed while replacing it is in {str(aside)!r}: "
                    "rename that directory"
                )
            raise ValueError(f"There is no saved {self.what} in {str(folder)!r}: it {why}.")
        path = folder / self.name
        if not path.is_file():
            raise ValueError(f"There is no saved {self.what} in {str(folder)!r}: it has no {self.name}.")
        content = path.read_bytes()
        try:
            told = json.loads(content)
        except (ValueError, RecursionError) as error:
            raise ValueError(f"{str(path)!r} cannot be read: it is no JSON, or it is damaged.") from error
        if not isinstance(told, dict) or told.get("kind") != self.kind:
            raise ValueError(f"{str(path)!r} is not of a {self.what} that FADO saved.")
        if told.get("format") != self.layout:
            raise ValueError(
                f"{str(path)!r} is in format {told.get('format')!r}, and this release reads {self.layout}: "
                "it may be of a later one."
            )
        own = {name: value for name, value in told.items() if name != "digest"}
        try:
            whole = self.dump(own) == content
        except ValueError:  # numbers that are none
            whole = False
        if not whole:
            raise ValueError(f"{str(path)!r} was changed after it was written: its digest does not fit.")
        return told

    def read_file(self, path: Path, digest: Any) -> bytes:
        """Read a file, if it is the one that the manifest vouches for."""
        if not path.is_file():
            raise DamagedError(f"{str(path)!r} is missing: the {self.what} is not whole.")
        content = path.read_bytes()
        if digest_of(content) != digest:
            raise DamagedError(
                f"{str(path)!r} is damaged or of another {self.what}: its digest does not fit."
            )
        return content

    def check_directory(self, directory: Path, is_part: Callable[[str], bool]) -> Path:
        """Give the directory to write to, refusing one that holds anything but what this manifest is for.

        Parameters
        ----------
        directory : Path
            It need not exist, but its parent must.
        is_part : callable
            Tells whether a file of this name may stand there, beside the manifest.
        """
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
            found = repr((strange or there)[0])
            raise FileExistsError(
                f"{str(directory)!r} holds {found}, which is no part of a saved {self.what}: name another "
                "directory."
            )
        if there:
            try:
                self.open(final)
            except ValueError as error:
                raise FileExistsError(f"The directory {str(directory)!r} is not replaced: {error}") from error
        return final


def write_file(path: Path, content: bytes, what: str) -> None:
    """Write a file of a directory that nobody else writes to; `what` it is begins a sentence, if it fails."""
    with replacing(path, what, tidy=False) as temporary:
        temporary.write_bytes(content)


def digest_of(content: bytes) -> str:
    """Give the digest by which a manifest knows a file."""
    return hashlib.sha256(content).hexdigest()


def _as_json(told: Any) -> bytes:
    return json.dumps(told, indent=1, allow_nan=False).encode()
