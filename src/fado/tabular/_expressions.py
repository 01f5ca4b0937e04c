"""What an expression such as ``"race in [White, Asian] & age>=50"`` says: columns, comparisons and values."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple, NoReturn

from fado._messages import closest_names

__all__ = ["Comparison", "Value", "parse"]

SYMBOLS = (">=", "<=", "==", "!=", ">", "<", "in")
# Tried in this order, each after the longest column name: "a>=1" compares "a", though there be an "a>".
_AFTER_A_COLUMN = [
    re.compile(pattern, re.I) for pattern in (r"\s*(>=|<=|==|>|<)", r"\s*(!=)|\s+(in)\b", r"\s*(=)")
]
_AFTER_QUOTES = re.compile(r"\s*(>=|<=|==|!=|>|<|=|in\b)", re.I)
_SYMBOL = re.compile(r">=|<=|==|!=|=|>|<|(?<=\s)in\s*\[", re.I)
_QUOTES = "\"'`"
_QUOTED_COLUMN = re.compile(r"""(["'`])(.+?)\1(?=\s*(?:[<>=]|!=|in\b|$))""", re.I)
_PLAIN = re.compile(r"[\w .-]+")
_AMPERSAND = re.compile(r"\s*&&?\s*")
_AND = re.compile(r"\s+and\s+", re.I)


class Value(NamedTuple):
    """What a column is compared with: without quotes, and as it was written."""

    text: str
    written: str


class Comparison(NamedTuple):
    """One column compared with values; a column alone has neither symbol nor values."""

    column: str
    symbol: str = ""
    values: tuple[Value, ...] = ()
    written: str = ""  # the column, quoted where it was and must be

    @property
    def name(self) -> str:
        """The comparison without needless spaces."""
        values = ", ".join(value.written for value in self.values)
        if self.symbol == "in":
            return f"{self.written} in [{values}]"
        return f"{self.written or self.column}{self.symbol}{values}"


def parse(columns: Sequence[object], expression: str) -> tuple[Comparison, ...]:
    """Read an expression: a column alone, or comparisons that all must hold.

    Parameters
    ----------
    columns : sequence
        The names of the table's columns.
    expression : str
        As for `protected_from`.

    Examples
    --------
    >>> [own.name for own in parse(["sex", "age"], "sex = Male & age >= 50")]
    ['sex==Male', 'age>=50']
    >>> parse(["a>b"], "'a>b' in [1, 2]")[0].values
    (Value(text='1', written='1'), Value(text='2', written='2'))
    """
    if not isinstance(expression, str):
        raise TypeError(f"`expression` must be a string, got {type(expression).__name__}.")
    names = [column for column in columns if isinstance(column, str)]
    text = expression.strip()
    quoted = _QUOTED_COLUMN.fullmatch(text)
    for whole in (expression, text, quoted[2] if quoted else text):
        if whole in names:
            return (Comparison(whole),)
    return _Reader(names, text).read()


class _Reader:
    """Walks along an expression, from left to right."""

    def __init__(self, names: Sequence[str], text: str) -> None:
        self._names = sorted((name for name in names if name), key=len, reverse=True)
        self._given = names
        self._text = text
        self._at = 0

    def read(self) -> tuple[Comparison, ...]:
        found = [self._comparison()]
        while self._at < len(self._text):
            self._at = self._end_of_join(self._at) or self._refuse_leftover()
            found.append(self._comparison())
        return tuple(found)

    def _comparison(self) -> Comparison:
        head = self._head(self._at)
        if head is None:
            raise ValueError(self._no_comparison())
        column, written, symbol, self._at = head
        self._skip_spaces()
        if symbol == "in":
            return Comparison(column, symbol, self._list(column), written)
        if self._at == len(self._text) or self._end_of_join(self._at):
            raise ValueError(f"`expression` must give a value after {symbol!r}, got {self._text!r}.")
        return Comparison(column, symbol, (self._value(),), written)

    def _head(self, start: int) -> tuple[str, str, str, int] | None:
        """Find the column that is compared from `start` on, the symbol, and where the symbol ends."""
        for symbols in _AFTER_A_COLUMN:
            for column in self._names:
                if self._text.startswith(column, start):
                    match = symbols.match(self._text, start + len(column))
                    if match:
                        return column, column, _canonical(match), match.end()
        quoted = _QUOTED_COLUMN.match(self._text, start)
        if quoted is None or quoted[2] not in self._names:
            return None
        column = quoted[2]
        written = column if _PLAIN.fullmatch(column) else quoted[0]
        match = _AFTER_QUOTES.match(self._text, quoted.end())
        return (column, written, _canonical(match), match.end()) if match else None

    def _value(self) -> Value:
        start = self._at
        quote = self._text[start]
        if quote not in _QUOTES:
            self._at = next(
                (i for i in range(start, len(self._text)) if self._end_of_join(i)), len(self._text)
            )
            bare = self._text[start : self._at].strip()
            return Value(bare, bare)
        ends = self._quotes_after(start)
        end = next((i for i in ends if self._is_end(i + 1) or self._end_of_join(i + 1)), None)
        if end is None:
            self._refuse_quote(start, "'&' or the end" if ends else None)
        self._at = self._after_spaces(end + 1) if self._is_end(end + 1) else end + 1
        return Value(self._text[start + 1 : end], self._text[start : end + 1])

    def _list(self, column: str) -> tuple[Value, ...]:
        if not self._text.startswith("[", self._at):
            raise ValueError(
                f"`expression` must give a list in brackets after 'in', as in '{column} in [a, b]', "
                f"got {self._text!r}."
            )
        opened = self._at
        values: list[Value] = []
        while not values or self._text[self._at] == ",":
            self._at += 1
            self._skip_spaces()
            values.append(self._item(opened))
        self._at = self._after_spaces(self._at + 1)
        if not self._is_end(self._at) and self._end_of_join(self._at) is None:
            self._refuse_leftover()
        return tuple(values)

    def _item(self, opened: int) -> Value:
        """Read one value of a list, up to the comma or the bracket behind it."""
        start, text = self._at, self._text
        if text[start : start + 1] and text[start] in _QUOTES:
            ends = self._quotes_after(start)
            end = next((i for i in ends if text[self._after_spaces(i + 1) :][:1] in (",", "]", "")), None)
            if end is None:
                self._refuse_quote(start, "',' or ']'" if ends else None)
            self._at = self._after_spaces(end + 1)
            value = Value(text[start + 1 : end], text[start : end + 1])
        else:
            self._at = next((i for i in range(start, len(text)) if text[i] in ",]"), len(text))
            bare = text[start : self._at].strip()
            value = Value(bare, bare)
        if self._at == len(text):
            raise ValueError(
                f"`expression` has a bracket that is never closed, at {text[opened:]!r}: add the ']'."
            )
        if not value.written:
            raise ValueError(
                f"`expression` must give a value before each ',' and ']' of a list, got {text[opened:]!r}; "
                "an empty text is written ''."
            )
        return value

    def _end_of_join(self, start: int) -> int | None:
        """Give where '&' or 'and' from `start` on ends, if it joins: elsewhere it is part of a value."""
        match = _AMPERSAND.match(self._text, start)
        if match:
            after = self._text[match.end() :]
            joins = not after or _QUOTED_COLUMN.match(after) or _SYMBOL.search(after.partition("&")[0])
            return match.end() if joins else None
        match = _AND.match(self._text, start)
        return match.end() if match and self._head(match.end()) else None

    def _quotes_after(self, start: int) -> list[int]:
        return [i for i in range(start + 1, len(self._text)) if self._text[i] == self._text[start]]

    def _after_spaces(self, start: int) -> int:
        return start + len(self._text[start:]) - len(self._text[start:].lstrip())

    def _skip_spaces(self) -> None:
        self._at = self._after_spaces(self._at)

    def _is_end(self, start: int) -> bool:
        return self._after_spaces(start) == len(self._text)

    def _refuse_quote(self, start: int, needed: str | None) -> NoReturn:
        remedy = (
            f"only {needed} may follow the closing one"
            if needed
            else "close it, or put other quotes around a value that begins with one"
        )
        raise ValueError(
            f"`expression` has a quote that is never closed, at {self._text[start:]!r}: {remedy}."
        )

    def _refuse_leftover(self) -> NoReturn:
        raise ValueError(
            f"`expression` must have '&' and another comparison, or nothing, where "
            f"{self._text[self._at :]!r} stands, got {self._text!r}."
        )

    def _no_comparison(self) -> str:
        """Say what is wrong with what should be a comparison."""
        rest = self._text[self._at :]
        if self._at and not rest:
            return f"`expression` must have a comparison after '&', got {self._text!r}."
        if rest[:1] and rest[0] in _QUOTES and rest[0] not in rest[1:]:
            self._refuse_quote(self._at, None)
        quoted = _QUOTED_COLUMN.match(rest)
        wanted = quoted[2] if quoted else _SYMBOL.split(rest.partition("&")[0], maxsplit=1)[0].strip()
        if wanted in self._given:
            return (
                f"`expression` must compare {wanted!r} by one of {', '.join(SYMBOLS)}, as in '{wanted}>=50', "
                f"got {self._text!r}."
            )
        return (
            f"`expression` must name a column of the table, alone or compared by one of "
            f"{', '.join(SYMBOLS)}, got {wanted!r}{closest_names(wanted, self._given, _all_of(self._given))}"
        )


def _canonical(match: re.Match[str]) -> str:
    symbol = next(group for group in match.groups() if group).lower()
    return "==" if symbol == "=" else symbol


def _all_of(names: Sequence[str]) -> str:
    return f"; the table has {list(names[:10])}{' and more' if len(names) > 10 else ''}."
