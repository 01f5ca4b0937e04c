"""The files that a table lies in: one, several, those of a directory, or those that fit a pattern."""

from __future__ import annotations

import os
from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from fado._messages import list_names, warn_user
from fado.tabular._files import ENDINGS, ending_of
from fado.tabular._patterns import is_pattern

__all__ = ["Paths", "data_files", "reader_of"]

Paths = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]


def data_files(paths: Paths) -> list[Path]:
    """List the files of a table, sorted by path, or say why there are none.

    Parameters
    ----------
    paths : path-like or sequence of path-like
        Files, directories, patterns as a shell has them. Names that begin with ``_`` or ``.`` are not data
        where they are not given themselves; nor are files of other endings, of which a warning tells.
    """
    given = [paths] if isinstance(paths, str | os.PathLike) else _checked(paths)
    try:
        found = [path for each in given for path in _meant_by(os.fspath(each))]
    except OSError as error:
        raise ValueError(f"{error.filename!r} cannot be read: {error.strerror}.") from error
    twice = (
        sorted({str(path) for path in found if found.count(path) > 1}) if len(set(found)) < len(found) else []
    )
    if twice:
        raise ValueError(f"{list_names([repr(name) for name in twice])} would be read twice: name it once.")
    kinds = {ending: [path for path in found if ending_of(path) == ending] for ending in ENDINGS}
    if all(kinds.values()):
        named = " and ".join(repr(str(files[0])) for files in kinds.values())
        raise ValueError(
            f"A table is in CSV or in Parquet files, not in both: {named}; name those of one kind, for "
            "example with the pattern '*.parquet'."
        )
    return sorted(found, key=lambda path: path.parts)


def reader_of(paths: Paths, out: Path) -> str | None:
    """Give the directory or pattern that would also stand for what is written to a place, once it is there.

    Parameters
    ----------
    paths : path-like or sequence of path-like
        As `data_files` takes them.
    out : pathlib.Path
        A file, or a directory of files.

    Examples
    --------
    >>> reader_of(["in/a.csv", "data/*"], Path("data/values")), reader_of("data/*", Path("data/_values"))
    ('data/*', None)
    """
    given = [paths] if isinstance(paths, str | os.PathLike) else paths
    return next((os.fspath(name) for name in given if _would_read(Path(name), out.resolve())), None)


def _would_read(given: Path, out: Path) -> bool:
    """Tell whether a directory or pattern would stand for a place, for its directory, or for files in it."""
    fixed = len(given.parts)
    if not given.exists():
        fixed = next((place for place, part in enumerate(given.parts) if is_pattern(part)), fixed)
    base, patterns = Path(*given.parts[:fixed]).resolve(), given.parts[fixed:]
    if not out.is_relative_to(base) or any(map(_is_hidden, out.relative_to(base).parts)):
        return False
    inside = out.relative_to(base).parts
    return any(_fits(names, patterns) for names in (inside[:-1], inside, (*inside, "part-00000.parquet")))


def _fits(names: Sequence[str], patterns: Sequence[str]) -> bool:
    if not patterns:
        return not names
    if patterns[0] == "**":
        return any(_fits(names[skipped:], patterns[1:]) for skipped in range(len(names) + 1))
    return bool(names) and fnmatchcase(names[0], patterns[0]) and _fits(names[1:], patterns[1:])


def _checked(paths: Sequence[str | os.PathLike[str]]) -> list[str | os.PathLike[str]]:
    listed = list(paths)
    wrong = [path for path in listed if not isinstance(path, str | os.PathLike)]
    if wrong:
        raise TypeError(f"`paths` must hold paths, got {wrong[0]!r}.")
    if not listed:
        raise ValueError("`paths` must name at least one file, directory or pattern.")
    return listed


def _meant_by(name: str) -> list[Path]:
    """List the files that one path or pattern stands for."""
    path = Path(name)
    if path.is_dir():
        return _of_directory(path)
    if path.exists():
        return [path]
    if not is_pattern(name):
        raise ValueError(f"There is no file or directory {name!r}.")
    fixed = next(place for place, part in enumerate(path.parts) if is_pattern(part))
    matches = Path(*path.parts[:fixed]).glob(str(Path(*path.parts[fixed:])))
    shown = [match for match in matches if not any(map(_is_hidden, match.parts[fixed:]))]
    folders = [match for match in shown if match.is_dir()]
    files = _of_known_endings(name, [match for match in shown if match.is_file()])
    files += [file for folder in folders for file in _of_directory(folder)]
    if not files:
        raise ValueError(f"{name!r} fits no file that ends in .csv or .parquet.")
    return files


def _of_directory(folder: Path) -> list[Path]:
    inside = [path for path in folder.iterdir() if not _is_hidden(path.name)]
    folders = sorted(path.name for path in inside if path.is_dir())
    if folders:
        raise ValueError(
            f"{str(folder)!r} has directories inside it ({list_names([repr(name) for name in folders])}): "
            f"name the files that are meant with a pattern, for example {str(folder / '*' / '*.parquet')!r}."
        )
    files = _of_known_endings(str(folder), [path for path in inside if path.is_file()])
    if not files:
        raise ValueError(f"The directory {str(folder)!r} has no file that ends in .csv or .parquet.")
    return files


def _of_known_endings(name: str, files: list[Path]) -> list[Path]:
    """Leave out the files that hold no table, and tell of them."""
    known = [path for path in files if path.suffix.lower() in ENDINGS]
    others = sorted(path.name for path in files if path.suffix.lower() not in ENDINGS)
    if known and others:
        warn_user(
            f"{list_names([repr(other) for other in others])} of {name!r} are left out: only files that end "
            "in .csv or .parquet are read."
        )
    return known


def _is_hidden(name: str) -> bool:
    return name.startswith(("_", "."))
