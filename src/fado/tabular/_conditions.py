"""Read expressions such as ``"sex == f & (age>=50 | race in [White, Asian])"`` to conditions on columns."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NoReturn

from fado._messages import closest_names

_OPPOSITES = {">=": "<", "<=": ">", "==": "!=", "!=": "==", ">": "<=", "<": ">=", "in": "not in"}
_SYMBOL = re.compile(r"\s*(>=|<=|==|!=|>|<|=|in\b)", re.I)
_QUOTES = ('"', "'", "`")
_QUOTED = re.compile(r"""(["'`])(.*?)\1""")
_VALUE = re.compile(r"(?:[^&|()\[\]<>=!]|!(?!=))+")
_NAME = re.compile(rf"""(?!["'`]){_VALUE.pattern}?(?=\s*(?:[&|()\[\]<>=]|!=|$)|\s+in\b(?!\s*[<>=!]))""", re.I)
_ITEM = re.compile(r"[^,\]]+")  # of a list
_PLAIN = re.compile(r"[\w .-]+")
_WANTED = "a value (an empty text is written '')"


@dataclass(frozen=True)
class Condition:
    """A column alone, a column compared with values, or conditions that are joined.

    Parameters
    ----------
    name : str
        The condition without needless spaces.
    titles : tuple of str
        Names of the rows where it holds, and of the others.
    symbol : str
        The sign of the comparison, or "&" or "|" between parts; empty for a column alone.
    column : str
        The column; empty for joined conditions.
    values : tuple of str
        What the column is compared with, in quotes where they were.
    parts : tuple of Condition
        The joined conditions.
    """

    name: str
    titles: tuple[str, ...]
    symbol: str = ""
    column: str = ""
    values: tuple[str, ...] = ()
    parts: tuple[Condition, ...] = ()

    @property
    def comparisons(self) -> tuple[Condition, ...]:
        """All comparisons, from left to right."""
        return tuple(comparison for part in self.parts for comparison in part.comparisons) or (self,)

    @property
    def texts(self) -> list[str]:
        """The values without quotes."""
        return list(map(_bare, self.values))


def parse(columns: Sequence[object], expression: str, argument: str = "expression") -> Condition:
    """Read an expression: a column alone, or comparisons joined by "&", which binds tighter, and "|".

    Examples
    --------
    >>> parse(["sex", "age"], "sex = Male & (age >= 50 | age < 18)").name
    'sex==Male & (age>=50 | age<18)'
    >>> parse(["a>b"], "'a>b' in [1, 2]").values
    ('1', '2')
    """
    if not isinstance(expression, str):
        raise TypeError(f"`{argument}` must be a string, got {type(expression).__name__}.")
    names = [column for column in columns if isinstance(column, str)]
    text = expression.strip()
    for whole in (expression, text, _bare(text)):
        if whole in names:
            return Condition(whole, (whole, whole), column=whole)
    return _Reader(names, text, argument).read()


def _bare(word: str) -> str:
    """Return a name or a value without the quotes around it."""
    return word[1:-1] if word.startswith(_QUOTES) else word


class _Reader:
    """Reads an expression without outer spaces from left to right."""

    def __init__(self, names: Sequence[str], text: str, argument: str) -> None:
        self._names, self._text, self._argument = names, text, argument
        self._at = 0

    def read(self, end: str = "") -> Condition:
        """Read conditions up to the end, or to a closing parenthesis."""
        condition = self._joined_by("|", "&")
        if self._next() != end:
            self._refuse(f"'&', '|' or {repr(end) if end else 'the end'}")
        self._at += len(end)
        return condition

    def _joined_by(self, symbol: str, *tighter: str) -> Condition:
        """Read conditions between which a symbol stands, each of those that tighter symbols join."""
        parts: list[Condition] = []
        while not parts or self._next() == symbol:
            self._at += 1 if parts else 0
            if tighter:
                part = self._joined_by(*tighter)
            elif self._next() == "(":
                self._at += 1
                part = self.read(")")
            else:
                part = self._comparison()
            parts += part.parts if part.symbol == symbol else [part]
        if len(parts) == 1:
            return parts[0]
        name, holds = (
            f" {symbol} ".join(f"({text})" if part.symbol == "|" else text for part, text in texts)
            for texts in ([(part, part.name) for part in parts], [(part, part.titles[0]) for part in parts])
        )
        return Condition(name, (holds, f"not ({holds})"), symbol, parts=tuple(parts))

    def _comparison(self) -> Condition:
        name = self._word(_NAME, "a column")
        column = _bare(name)
        match = _SYMBOL.match(self._text, self._at)
        symbols = ", ".join(_OPPOSITES)
        if column not in self._names:
            more = " and more" if len(self._names) > 10 else ""
            others = f"; the table has {list(self._names[:10])}{more}."
            raise ValueError(
                f"`{self._argument}` must name a column of the table, alone or compared by one of {symbols}, "
                f"got {column!r}{closest_names(column, self._names, others)}"
            )
        if match is None:
            raise ValueError(
                f"`{self._argument}` must compare {column!r} by one of {symbols}, as in '{column}>=50', got "
                f"{self._text!r}."
            )
        self._at = match.end()
        name = column if _PLAIN.fullmatch(column) else name
        symbol = {"=": "=="}.get(match[1], match[1].lower())
        if symbol == "in":
            values = self._list()
            titles = tuple(f"{name} {sign} [{', '.join(values)}]" for sign in ("in", "not in"))
            return Condition(titles[0], titles, symbol, column, values)
        value = self._word(_VALUE, _WANTED)
        titles = tuple(f"{name} {sign} {value}" for sign in (symbol, _OPPOSITES[symbol]))
        return Condition(f"{name}{symbol}{value}", titles, symbol, column, (value,))

    def _list(self) -> tuple[str, ...]:
        if self._next() != "[":
            self._refuse("a list such as [a, b]")
        values: list[str] = []
        while not values or self._next() == ",":
            self._at += 1
            values.append(self._word(_ITEM, _WANTED))
        if self._next() != "]":
            self._refuse("',' or ']'")
        self._at += 1
        return tuple(values)

    def _word(self, pattern: re.Pattern[str], wanted: str) -> str:
        """Read what stands in quotes, with them, or else what fits a pattern."""
        if self._next() in _QUOTES:
            pattern, wanted = _QUOTED, "closed quotes"
        match = pattern.match(self._text, self._at)
        if match is None:
            self._refuse(wanted)
        self._at = match.end()
        return match[0].strip()

    def _next(self) -> str:
        """Go on to the next character that is no space, and return it; nothing at the end."""
        rest = self._text[self._at :].lstrip()
        self._at = len(self._text) - len(rest)
        return rest[:1]

    def _refuse(self, wanted: str) -> NoReturn:
        rest = self._text[self._at :]
        where = f"at position {self._at + 1}, before {rest!r}" if rest else "at the end"
        raise ValueError(
            f"`{self._argument}` must have {wanted} {where}, got {self._text!r}; put quotes around a name or "
            "a value that contains a sign."
        )
