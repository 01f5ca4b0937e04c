"""Parse expressions such as ``"sex == f & (age>=50 | race in [White, Asian])"`` to columns and values."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, NoReturn

from fado._messages import closest_names

SYMBOLS = (">=", "<=", "==", "!=", ">", "<", "in")
_OPPOSITES = {">=": "<", "<": ">=", ">": "<=", "<=": ">", "==": "!=", "!=": "==", "in": "not in"}
_SYMBOL = re.compile(r"\s*(>=|<=|==|!=|>|<|=|in\b)", re.I)
_QUOTES = "\"'`"
_QUOTED = re.compile(r"""(["'`])(.*?)\1""")
_VALUE = re.compile(r"(?:[^&|()\[\]<>=!]|!(?!=))+")
_NAME = re.compile(rf"""(?!["'`]){_VALUE.pattern}?(?=\s*(?:[&|()\[\]<>=]|!=|$)|\s+in\b(?!\s*[<>=!]))""", re.I)
_ITEM = re.compile(r"[^,\]]+")  # of a list
_PLAIN = re.compile(r"[\w .-]+")
_MOST_OPEN = 50  # parentheses within each other


class Comparison(NamedTuple):
    """One column compared with values; a column alone has neither symbol nor values."""

    column: str
    symbol: str = ""
    values: tuple[str, ...] = ()  # in quotes where they were
    written: str = ""  # the column, quoted where it was and must be

    @property
    def name(self) -> str:
        """The comparison without needless spaces."""
        return self._with(self.symbol if self.symbol != "in" else " in ")

    @property
    def titles(self) -> tuple[str, str]:
        """Names of the rows where it holds, and of the others."""
        return self._with(f" {self.symbol} "), self._with(f" {_OPPOSITES[self.symbol]} ")

    @property
    def texts(self) -> list[str]:
        """The values without quotes."""
        return [value[1:-1] if value.startswith(tuple(_QUOTES)) else value for value in self.values]

    @property
    def comparisons(self) -> tuple[Comparison, ...]:
        """The comparison itself, alone."""
        return (self,)

    def _with(self, symbol: str) -> str:
        values = ", ".join(self.values)
        return f"{self.written or self.column}{symbol}{f'[{values}]' if self.symbol == 'in' else values}"


@dataclass(frozen=True)
class Junction:
    """Parts that all must hold, joined by "&", or of which one must, joined by "|"."""

    symbol: str
    parts: tuple[Comparison | Junction, ...]

    @property
    def name(self) -> str:
        """The parts without needless spaces and parentheses."""
        return self._joined([part.name for part in self.parts])

    @property
    def titles(self) -> tuple[str, str]:
        """Names of the rows where this holds, and of the others."""
        holds = self._joined([part.titles[0] for part in self.parts])
        return holds, f"not ({holds})"

    @property
    def comparisons(self) -> tuple[Comparison, ...]:
        """All comparisons, from left to right."""
        return tuple(own for part in self.parts for own in part.comparisons)

    def _joined(self, texts: Sequence[str]) -> str:
        is_choice = [isinstance(part, Junction) and part.symbol == "|" for part in self.parts]
        inner = [f"({text})" if choice else text for text, choice in zip(texts, is_choice, strict=True)]
        return f" {self.symbol} ".join(inner)


def parse(columns: Sequence[object], expression: str, argument: str = "expression") -> Comparison | Junction:
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
    quoted = _QUOTED.fullmatch(text)
    for whole in (expression, text, quoted[2] if quoted else text):
        if whole in names:
            return Comparison(whole)
    return _Reader(names, text, argument).read()


class _Reader:
    """Reads an expression without outer spaces from left to right."""

    def __init__(self, names: Sequence[str], text: str, argument: str) -> None:
        self._names, self._text, self._argument = names, text, argument
        self._at = 0
        self._open = 0  # parentheses

    def read(self) -> Comparison | Junction:
        parsed = self._joined_by("|")
        if self._next():
            self._refuse("'&', '|' or the end")
        return parsed

    def _joined_by(self, symbol: str) -> Comparison | Junction:
        """Read parts joined by one sign; parts of "|" may contain "&"."""
        parts: list[Comparison | Junction] = []
        while True:
            part = self._joined_by("&") if symbol == "|" else self._part()
            parts += part.parts if isinstance(part, Junction) and part.symbol == symbol else [part]
            if self._next() != symbol:
                return parts[0] if len(parts) == 1 else Junction(symbol, tuple(parts))
            self._at += 1

    def _part(self) -> Comparison | Junction:
        """Read a comparison or parentheses."""
        if self._next() != "(":
            return self._comparison()
        self._open += 1
        if self._open > _MOST_OPEN:
            self._refuse(f"at most {_MOST_OPEN} parentheses within each other")
        self._at += 1
        inner = self._joined_by("|")
        if self._next() != ")":
            self._refuse("'&', '|' or ')'")
        self._at += 1
        self._open -= 1
        return inner

    def _comparison(self) -> Comparison:
        name = self._quoted() or self._match(_NAME)
        if not name:
            self._refuse("a column")
        column = name[1:-1] if name[0] in _QUOTES else name
        match = _SYMBOL.match(self._text, self._at)
        symbols = ", ".join(SYMBOLS)
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
        symbol = "==" if match[1] == "=" else match[1].lower()
        values = self._list() if symbol == "in" else (self._value(_VALUE),)
        return Comparison(column, symbol, values, column if _PLAIN.fullmatch(column) else name)

    def _list(self) -> tuple[str, ...]:
        if self._next() != "[":
            self._refuse("a list such as [a, b]")
        values: list[str] = []
        while not values or self._next() == ",":
            self._at += 1
            values.append(self._value(_ITEM))
        if self._next() != "]":
            self._refuse("',' or ']'")
        self._at += 1
        return tuple(values)

    def _value(self, pattern: re.Pattern[str]) -> str:
        return self._quoted() or self._match(pattern) or self._refuse("a value (an empty text is written '')")

    def _quoted(self) -> str:
        """Read what stands in quotes, with them; nothing if there are none."""
        return (
            "" if self._next() not in (*_QUOTES,) else self._match(_QUOTED) or self._refuse("closed quotes")
        )

    def _match(self, pattern: re.Pattern[str]) -> str:
        self._next()
        match = pattern.match(self._text, self._at)
        if match is None:
            return ""
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
