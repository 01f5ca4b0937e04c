"""Columns that no model should learn as they are: ids, and dates and numbers that are text.

These checks look at a column alone and train nothing, so that every fit can afford them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fado._messages import list_names, warn_user
from fado._typing import Floats
from fado.tabular._column import Column
from fado.tabular._table import Table

NEARLY_UNIQUE = 0.9  # of the rows with an entry: a larger share of different ones is an id's
LEAST_ROWS = 30  # below which nothing is called an id
_EVIDENCE, _FEWER = 10.0, 0.1  # repeats that any measurement would have, and the share of them that ids may
_EXACT = 2.0**53  # larger whole numbers do not fit a float
_LEAST_NUMBERS, _LEAST_AMOUNTS = 20, 3  # different ones, so that codes such as "1", "2" stay classes
_MOST_OTHERS = 3  # placeholders such as "?" among them
_CALLED_ID = re.compile(r"(?i:(^|[\W_])id([\W_]|$))|[a-z]I[dD]$")
_MOST_LEVELS = 20_000  # are enough to recognise what all are
_GLANCE = 200

_PLAIN = r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?"
_COMMAS = r"[+-]?\d{1,3}(,\d{3})+(\.\d*)?"
_DECIMAL_COMMA = r"[+-]?(\d+|\d{1,3}([. '\x{2019}]\d{3})+),\d+"
_NUMBERS = "|".join([_PLAIN, _COMMAS, _DECIMAL_COMMA, r"[+-]?\d{1,3}([ '\x{2019}]\d{3})+(\.\d*)?"])
_UNIT = r"([$€£¥%]|eur|usd|gbp)"
_DAY, _MONTH, _YEAR = r"(0?[1-9]|[12]\d|3[01])", r"(0?[1-9]|1[0-2])", r"\d{4}|\d{2}"
_NAME = r"(jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.?"
_DAYS = "|".join(
    [
        *(rf"\d{{4}}{sign}{_MONTH}{sign}{_DAY}" for sign in ("-", "/", r"\.")),
        *(rf"({_DAY}{sign}{_MONTH}|{_MONTH}{sign}{_DAY}){sign}({_YEAR})" for sign in ("-", "/", r"\.")),
        rf"{_DAY}[ -]{_NAME},?[ -]({_YEAR})",
        rf"{_NAME} {_DAY},? ({_YEAR})",
    ]
)
_DATES = rf"({_DAYS})([t ]+\d{{1,2}}:\d{{2}}.*)?"


def doubt_of(column: Column) -> tuple[str, float] | None:
    """Return whether a column is an id, or dates or numbers as text, and a share; None if it is neither.

    The share is that of different entries for an id, else that of different texts that are dates or numbers.
    Text is an id if more than 90 % of its entries differ, in at least 30 rows. Whole numbers are ids if they
    also repeat far less than any measurement with their range would, do not fit a float, or are called id: a
    counter is one, and an income, of which few repeat in a small table, is none. Floats are ids only if they
    are whole numbers some of which are missing.

    Examples
    --------
    >>> from fado.tabular import column_from
    >>> doubt_of(column_from("paid", ["12 %", "5 %", "7 %"]))
    ('number as text', 1.0)
    """
    if column.levels is not None:
        return _doubt_of_text(column)
    first = column.data.slice(0, _GLANCE).drop_null().to_numpy()
    if first.dtype.kind not in "iuf":
        return None
    if first.dtype.kind == "f":
        first = first[np.isfinite(first)]
        if (first % 1 != 0).any():
            return None
    if len(np.unique(first)) < len(first) / 2:
        return None
    data = column.data.drop_null()
    if pa.types.is_floating(data.type):
        data = data.filter(pc.is_finite(data))
        if len(data) == len(column) or not pc.all(pc.equal(data, pc.trunc(data))).as_py():
            return None  # floats are measurements, unless missing entries made them of whole numbers
    n_rows, n_different = len(data), pc.count_distinct(data).as_py()
    if n_rows < LEAST_ROWS or n_different <= NEARLY_UNIQUE * n_rows:
        return None
    ends = pc.min_max(data).as_py()
    low, high = int(ends["min"]), int(ends["max"])
    # Pairs of equal entries are fewest if all numbers of the range are equally likely.
    expected = n_rows * (n_rows - 1) / 2 / (high - low + 1)
    is_id = (
        max(-low, high) > _EXACT
        or (expected >= _EVIDENCE and n_rows - n_different <= _FEWER * expected)
        or _CALLED_ID.search(column.name) is not None
    )
    return ("id", n_different / n_rows) if is_id else None


def warn_of_doubtful_columns(table: Table) -> None:
    """Warn of columns that no model should learn as they are; those of a sparse matrix are not looked at."""
    names: dict[str, list[str]] = {}
    for column in table.columns:
        doubt = doubt_of(column)
        if doubt is not None:
            names.setdefault(doubt[0], []).append(repr(column.name))
    listed = "; ".join(f"{finding}: {list_names(columns)}" for finding, columns in names.items())
    if listed:
        warn_user(
            f"Models will learn little from these columns of X as they are ({listed}): leave ids out, and "
            "turn dates and numbers that are text into numbers. `fado.check_columns` says more."
        )


def _doubt_of_text(column: Column) -> tuple[str, float] | None:
    levels = column.levels or ()
    texts, bare = _lowered(levels[:: -(-len(levels) // _MOST_LEVELS) or 1])
    n_texts = len(texts)
    if column.labels is None and n_texts > 1:
        coded = pc.match_substring_regex(texts, r"\d")
        like = _matches(texts, _DATES)
        if _are_all(like, coded):
            return "date as text", pc.mean(like).as_py()
        like = _matches(bare, _NUMBERS)
        if _are_all(like, coded) and not pc.any(_matches(texts, r"[+-]?0\d+")).as_py():  # 02139 is a code
            n_amounts = pc.sum(pc.and_(like, pc.not_equal(texts, bare))).as_py()
            not_whole = n_texts - pc.sum(_matches(texts, r"[+-]?\d+")).as_py()
            if n_amounts >= _LEAST_AMOUNTS or (n_texts >= _LEAST_NUMBERS and not_whole):
                return "number as text", pc.mean(like).as_py()
    n_rows = len(column) - column.data.null_count
    if n_rows >= LEAST_ROWS and len(levels) > NEARLY_UNIQUE * n_rows:
        n_different = pc.count_distinct(column.data.drop_null()).as_py()  # not all levels may occur
        return ("id", n_different / n_rows) if n_different > NEARLY_UNIQUE * n_rows else None
    return None


def numbers_in(texts: Sequence[str]) -> Floats:
    """Return the numbers that texts are written as, NaN where one is none.

    Examples
    --------
    >>> numbers_in(["16,789.24", "12 %", "$ -3", "1.5e3", "7", "seven"])
    array([ 1.678924e+04,  1.200000e+01, -3.000000e+00,  1.500000e+03,
            7.000000e+00,           nan])
    """
    _, bare = _lowered(texts)
    is_comma = pc.and_not(_matches(bare, _DECIMAL_COMMA), _matches(bare, _COMMAS))
    if pc.any(is_comma).as_py():
        bare = pc.replace_substring(pc.replace_substring_regex(bare, r"[. '\x{2019}]", ""), ",", ".")
    else:
        bare = pc.replace_substring_regex(bare, r"[, '\x{2019}]", "")
    is_number = _matches(bare, _PLAIN)
    return pc.if_else(is_number, bare, None).cast(pa.float64()).to_numpy(zero_copy_only=False)


def _are_all(like: pa.Array, coded: pa.Array) -> bool:
    """Return whether all texts are alike except a few placeholders, which have no digit."""
    others, n_like = pc.invert(like), pc.sum(like).as_py()
    n_others = len(like) - n_like
    is_placeholder = not pc.any(pc.and_(others, coded)).as_py()
    return n_like > 1 and n_others <= min(_MOST_OTHERS, n_like / 3) and is_placeholder


def _lowered(texts: Sequence[str]) -> tuple[pa.Array, pa.Array]:
    """Return texts in lower case and without spaces around them, and these without units."""
    lowered = pc.utf8_lower(pc.utf8_trim_whitespace(pa.array(texts, pa.large_string())))
    return lowered, pc.replace_substring_regex(lowered, rf"^{_UNIT}\s*|\s*{_UNIT}$", "")


def _matches(texts: pa.Array, pattern: str) -> pa.Array:
    return pc.match_substring_regex(texts, f"^({pattern})$")
