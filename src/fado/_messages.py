"""Words for people: warnings that point at their own line, lists of names that stay short."""

from __future__ import annotations

import difflib
import inspect
import re
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

__all__ = ["COMPARE_TARGET", "closest_names", "list_names", "warn_user", "warning_once"]

# what to do about a target that is not of two classes; the command line says it in its own way
COMPARE_TARGET = "compare it first, for example `y == label` or `y > threshold`"

_PACKAGE = str(Path(__file__).parent)
_NAMED_AT_MOST = 5  # in a message


def warn_user(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn with the line outside this package that led here."""
    level, frame = 1, inspect.currentframe()
    while frame is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)


@contextmanager
def warning_once(said: set[str]) -> Iterator[None]:
    """Pass on what a block warns of when it is done, without what was said before in other numbers."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    for own in caught:
        text = re.sub(r"\d[\d.,]*", "0", str(own.message))
        if text not in said:
            said.add(text)
            warnings.warn_explicit(own.message, own.category, own.filename, own.lineno)


def list_names(names: Sequence[Any], most: int = _NAMED_AT_MOST) -> str:
    """Give names for a message, the first few if there are many.

    Examples
    --------
    >>> list_names(["'a'", "'b'"])
    "'a', 'b'"
    >>> list_names(list("abcdefg"))
    'a, b, c, d, e and 2 more'
    >>> list_names(["sex='f', age='old'", "sex='m', age='old'"])
    "sex='f', age='old'; sex='m', age='old'"
    """
    shown, more = list(map(str, names[:most])), len(names) - most
    comma = "; " if any(", " in name for name in shown) else ", "
    return comma.join(shown) + (f" and {more} more" if more > 0 else "")


def closest_names(name: str, names: Sequence[str], otherwise: str = ".") -> str:
    """Give the end of a sentence that says which names come close to a wrong one, in whatever case.

    Examples
    --------
    >>> "There is no column 'Agee'" + closest_names("Agee", ["age", "sex"])
    "There is no column 'Agee'; did you mean 'age'?"
    """
    by_lower = {known.lower(): known for known in reversed(names)}
    close = [by_lower[match] for match in difflib.get_close_matches(name.lower(), by_lower, n=3)]
    return f"; did you mean {', '.join(map(repr, close))}?" if close else otherwise
