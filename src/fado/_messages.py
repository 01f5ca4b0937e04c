"""Texts for users: warnings that name the user's line, short lists of names, shared docstrings."""

from __future__ import annotations

import difflib
import inspect
import re
import textwrap
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

Documented = TypeVar("Documented")

# what to do about a target that is not of two classes; the command line has other words
COMPARE_TARGET = "compare it first, for example `y == label` or `y > threshold`"

_PACKAGE = str(Path(__file__).parent)
_NAMED_AT_MOST = 5  # in a message


def plain_number(number: float, digits: int = 3) -> str:
    """Write a number with some significant digits, large ones in full; "unknown" if it is NaN.

    Examples
    --------
    >>> plain_number(2.0), plain_number(9388.4), plain_number(0.05019), plain_number(123456.7, 4)
    ('2', '9,388', '0.0502', '123,457')
    """
    if number != number:
        return "unknown"
    text = f"{number:.{digits}g}"
    return f"{number:,.0f}" if "e+" in text else text


def warn_user(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the line outside this package that led here."""
    level, frame = 1, inspect.currentframe()
    while frame is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)


@contextmanager
def warning_once(said: set[str]) -> Iterator[None]:
    """Pass on a block's warnings at its end, except those that differ from earlier ones only in numbers."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    for warning in caught:
        text = re.sub(r"\d[\d.,]*", "0", str(warning.message))
        if text not in said:
            said.add(text)
            warnings.warn_explicit(warning.message, warning.category, warning.filename, warning.lineno)


def list_names(names: Sequence[Any], most: int = _NAMED_AT_MOST) -> str:
    """Return names for a message, the first few if there are many.

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
    """Return the end of a sentence with names close to a wrong one, in any case.

    Examples
    --------
    >>> "There is no column 'Agee'" + closest_names("Agee", ["age", "sex"])
    "There is no column 'Agee'; did you mean 'age'?"
    """
    by_lower = {known.lower(): known for known in reversed(names)}
    close = [by_lower[match] for match in difflib.get_close_matches(name.lower(), by_lower, n=3)]
    return f"; did you mean {', '.join(map(repr, close))}?" if close else otherwise


def shared_parameters() -> None:
    """Describe what many classes and functions have; `insert_parameters` takes it from here.

    Parameters
    ----------
    X : array, sparse matrix, pandas, polars or pyarrow table of shape (n_rows, n_columns)
        The features. Text, categories and missing values are allowed.
    y : array-like of shape (n_rows,)
        The target.
    sensitive_features : Series, array, DataFrame, dict, or name(s) of columns of X
        The protected attributes. The groups are the combinations of several attributes. Rows with a missing
        value are counted as unknown, and compared with no other.
    unknown : value or list of values, optional
        Values of the protected attributes that mean the same as a missing one, such as ``"?"`` or ``-1``.
    valuation : Valuation, optional
        The values of these rows. If None, and values are needed, `valuator` computes them.
    sample_weight : array-like of shape (n_rows,), optional
        How much each row counts, such as survey weights.
    groups : array-like of shape (n_rows,), optional
        Which rows belong together, such as those of one person or one month. Each bag contains all of them
        or none. These are not the groups of the protected attributes.
    utility : LinearUtility, DifferenceUtility, CobbDouglasUtility or function of a valuation, optional
        How a row's values combine into one number. None means ``LinearUtility(alpha=0.5)``.
    valuator : valuator, optional
        Values the rows if no valuation is passed and values are needed. None means ``OutOfBagEntropy()``. A
        valuator without a seed uses `random_state`.
    pos_label : label, optional
        The positive label. None means the larger of the two.
    random_state : int, RandomState or None, default=None
        The seed. The same seed gives the same result.
    n_jobs : int, optional
        How many fits run in parallel; None uses every core. The result does not depend on it.
    progress : bool, default=False
        Whether to show a progress bar.

    Attributes
    ----------
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray
        Names of the features, if all of them are text.

    References
    ----------
    J. Pombal, P. Saleiro, M. A. T. Figueiredo and P. Bizarro, "Fairness-Aware Data Valuation for Supervised
    Learning", 2023, arXiv:2303.16963.
    """


def insert_parameters(*sources: Any) -> Callable[[Documented], Documented]:
    """Fill the lines of a docstring that only name parameters or sections: ``{random_state, n_jobs}``.

    A parameter is replaced by its entry, and a section such as ``{Parameters, Returns}`` by all its lines,
    from the docstring of the first source that has it; the last source is `shared_parameters`. Use it on
    classes, functions and methods. A name that no source has raises a KeyError at import.

    Parameters
    ----------
    *sources : class or function
        Whose docstrings describe the parameters.

    Examples
    --------
    >>> @insert_parameters()
    ... def draw(random_state=None):
    ...     '''Draw rows.
    ...
    ...     {random_state}
    ...     '''
    >>> inspect.getdoc(draw).splitlines()[-1]
    '    The seed. The same seed gives the same result.'
    """

    def decorate(documented: Documented) -> Documented:
        if documented.__doc__ is not None:  # python -OO leaves no docstrings
            texts: dict[str, str] = {}
            for source in (shared_parameters, *reversed(sources)):
                texts |= _texts_of(source)

            def fill(line: re.Match[str]) -> str:
                filled = "\n".join(texts[name] for name in line[2].split(", "))
                return textwrap.indent(filled.rstrip(), line[1])

            placeholder = re.compile(r"^( *)\{(\w[\w ]*(?:, \w[\w ]*)*)\}$", re.MULTILINE)
            documented.__doc__ = placeholder.sub(fill, documented.__doc__)
        return documented

    return decorate


def _texts_of(source: Any) -> dict[str, str]:
    """Read the sections of a docstring, each with a blank line behind it, and the entries in them."""
    text = inspect.cleandoc(source.__doc__ or "") + "\n"
    section = re.compile(r"^([A-Z][\w ]*)\n-+\n(?:.*\n)+?(?=\n?[A-Z][\w ]*\n-+\n|\Z)", re.MULTILINE)
    entry = re.compile(r"^(\w+) : .+\n(?: {4}.+\n|\n(?= {4}))+", re.MULTILINE)
    sections = {match[1]: match[0].rstrip() + "\n" for match in section.finditer(text)}
    return sections | {match[1]: match[0].rstrip() for match in entry.finditer(text)}
