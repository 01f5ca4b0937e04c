"""Parse expressions such as ``"sex == f & (age>=50 | race in [White, Asian])"`` to columns and values."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, NoReturn

from fado._messages import closest_names

SYMBOLS = (">=", "<=", "==", "!=", ">", "<", "in")
_OPPOSITES = {">=": "<", "<": ">=", ">": "<=", "<=": ">", "==": "!=", "!=": "==", "in": "not in"}
# Tried in this order, each after the longest column name: "a>=1" compares "a", though there be an "a>".
_AFTER_A_COLUMN = [
    re.compile(pattern, re.I) for pattern in (r"\s*(>=|<=|==|>|<)", r"\s*(!=)|\s+(in)\b", r"\s*(=)")
]
_AFTER_QUOTES = re.compile(r"\s*(>=|<=|==|!=|>|<|=|in\b)", re.I)
_SYMBOL = re.compile(r">=|<=|==|!=|=|>|<|(?<=\s)in\s*\[", re.I)
_QUOTES = "\"'`"
_QUOTED_COLUMN = re.compile(r"""(["'`])(.+?)\1(?=\s*(?:[<>=]|!=|in\b|$))""", re.I)
_PLAIN = re.compile(r"[\w .-]+")
_SIGN = re.compile(r"\s*(?:&&?|(\|\|?))\s*")  # with a group if it is an "or"
_WORD = re.compile(r"\s+(?:and|(or))(?:\s+|(?=\())", re.I)
_BAND = re.compile(r"[\[(][^\[\]()&|]*[\])]")
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
    >>> parse(["sex", "age"], "sex = Male & (age >= 50 or age < 18)").name
    'sex==Male & (age>=50 | age<18)'
    >>> parse(["a>b"], "'a>b' in [1, 2]").values
    ('1', '2')
    """
    if not isinstance(expression, str):
        raise TypeError(f"`{argument}` must be a string, got {type(expression).__name__}.")
    names = [column for column in columns if isinstance(column, str)]
    text = expression.strip()
    quoted = _QUOTED_COLUMN.fullmatch(text)
    for whole in (expression, text, quoted[2] if quoted else text):
        if whole in names:
            return Comparison(whole)
    return _Reader(names, text, argument).read()


class _Reader:
    """Reads an expression without outer spaces from left to right."""

    def __init__(self, names: Sequence[str], text: str, argument: str) -> None:
        self._names = sorted((name for name in names if name), key=len, reverse=True)
        self._given = names
        self._text = text
        self._argument = argument
        self._at = 0
        self._open = 0  # parentheses
        self._before = ""  # what a comparison must follow

    def read(self) -> Comparison | Junction:
        found = self._joined_by("|")
        self._at = self._after_spaces(self._at)
        if self._at < len(self._text):
            self._refuse_leftover()
        return found

    def _joined_by(self, symbol: str) -> Comparison | Junction:
        """Read parts joined by one sign; parts of "|" may contain "&"."""
        parts: list[Comparison | Junction] = []
        while True:
            part = self._joined_by("&") if symbol == "|" else self._part()
            parts += part.parts if isinstance(part, Junction) and part.symbol == symbol else [part]
            join = self._join(self._at)
            if join is None or join[0] != symbol:
                return parts[0] if len(parts) == 1 else Junction(symbol, tuple(parts))
            self._before, self._at = join

    def _part(self) -> Comparison | Junction:
        """Read a comparison or parentheses; a column may begin with one."""
        if not self._text.startswith("(", self._at) or self._head(self._at):
            return self._comparison()
        opened = self._at
        self._open += 1
        if self._open > _MOST_OPEN:
            self._refuse(f"has more than {_MOST_OPEN} parentheses within each other, got {self._text!r}")
        self._before, self._at = "(", self._after_spaces(opened + 1)
        found = self._joined_by("|")
        self._at = self._after_spaces(self._at)
        if self._at == len(self._text):
            self._refuse_parenthesis(opened)
        if self._text[self._at] != ")":
            self._refuse_leftover()
        self._open -= 1
        self._at += 1
        return found

    def _comparison(self) -> Comparison:
        head = self._head(self._at)
        if head is None:
            self._refuse_comparison()
        column, written, symbol, end = head
        self._at = self._after_spaces(end)
        if symbol == "in":
            return Comparison(column, symbol, self._list(column), written)
        if self._is_over(self._at):
            self._refuse(f"must give a value after {symbol!r}, got {self._text!r}")
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
        written = quoted[2] if _PLAIN.fullmatch(quoted[2]) else quoted[0]
        match = _AFTER_QUOTES.match(self._text, quoted.end())
        return (quoted[2], written, _canonical(match), match.end()) if match else None

    def _value(self) -> str:
        start = self._at
        if self._text[start] not in _QUOTES:
            return self._up_to(self._end_of_bare(start))
        ends = self._quotes_after(start)
        end = next((i for i in ends if self._is_over(i + 1)), None)
        if end is None:
            after = self._after_spaces(ends[0] + 1) if ends else len(self._text)
            if self._text.startswith(")", after):
                self._refuse_parenthesis(after)
            self._refuse_quote(start, "'&', '|' or the end" if ends else None)
        return self._up_to(end + 1)

    def _end_of_bare(self, start: int) -> int:
        """Return where a value without quotes ends; it may contain pairs of parentheses, or [70-80)."""
        opened: list[int] = []
        i = start
        while i < len(self._text):
            sign = self._text[i]
            if not opened and self._join(i):
                return i
            if band := _BAND.match(self._text, i):
                i = band.end() - 1
            elif sign == "(":
                opened.append(i)
            elif sign == ")" and opened:
                opened.pop()
            elif sign == ")" and self._open:
                return i
            elif sign == ")":
                self._refuse_parenthesis(i)
            i += 1
        if opened:
            self._refuse_parenthesis(opened[0])
        return len(self._text)

    def _list(self, column: str) -> tuple[str, ...]:
        if not self._text.startswith("[", self._at):
            self._refuse(
                f"must give a list in brackets after 'in', as in '{column} in [a, b]', got {self._text!r}"
            )
        opened = self._at
        values: list[str] = []
        while not values or self._text[self._at] == ",":
            self._at = self._after_spaces(self._at + 1)
            values.append(self._item(opened))
        self._at += 1
        if not self._is_over(self._at):
            self._at = self._after_spaces(self._at)
            self._refuse_leftover()
        return tuple(values)

    def _item(self, opened: int) -> str:
        """Read one value of a list, up to the comma or the bracket behind it."""
        start, text = self._at, self._text
        if text[start : start + 1] and text[start] in _QUOTES:
            ends = self._quotes_after(start)
            end = next((i for i in ends if text[self._after_spaces(i + 1) :][:1] in (",", "]", "")), None)
            if end is None:
                self._refuse_quote(start, "',' or ']'" if ends else None)
            value = self._up_to(end + 1)
            self._at = self._after_spaces(self._at)
        else:
            value = self._up_to(next((i for i in range(start, len(text)) if text[i] in ",]"), len(text)))
        if self._at == len(text):
            self._refuse(f"has a bracket that is never closed, at {text[opened:]!r}: add the ']'")
        if not value:
            self._refuse(
                f"must give a value before each ',' and ']' of a list, got {text[opened:]!r}; "
                "an empty text is written ''"
            )
        return value

    def _up_to(self, end: int) -> str:
        written = self._text[self._at : end].strip()
        self._at = end
        return written

    def _join(self, start: int) -> tuple[str, int] | None:
        """Return the joining sign at `start` and where it ends; None if it is part of a value."""
        match = _SIGN.match(self._text, start) or _WORD.match(self._text, start)
        if match is None:
            return None
        after = self._text[match.end() :]
        inner = after.lstrip("( ")
        if match[0].strip()[0] in "&|":
            first = re.split(r"[&|]", after, maxsplit=1)[0]
            joins = inner[:1] in ("", ")") or bool(_QUOTED_COLUMN.match(inner) or _SYMBOL.search(first))
        else:
            joins = bool(self._head(match.end()) or self._head(len(self._text) - len(inner)))
        return ("|" if match[1] else "&", match.end()) if joins else None

    def _quotes_after(self, start: int) -> list[int]:
        return [i for i in range(start + 1, len(self._text)) if self._text[i] == self._text[start]]

    def _after_spaces(self, start: int) -> int:
        return start + len(self._text[start:]) - len(self._text[start:].lstrip())

    def _is_over(self, start: int) -> bool:
        """Return whether a comparison may end here: at the end, a joining sign, or a closing parenthesis."""
        closed = self._open and self._text.startswith(")", self._after_spaces(start))
        return bool(closed) or start == len(self._text) or self._join(start) is not None

    def _refuse(self, what: str) -> NoReturn:
        raise ValueError(f"`{self._argument}` {what}.")

    def _refuse_parenthesis(self, at: int) -> NoReturn:
        closes = self._text[at] == ")"
        trouble = "that closes none" if closes else "that is never closed"
        remedy = "leave it out" if closes else "add the ')'"
        self._refuse(
            f"has a parenthesis {trouble}, at {self._text[at:]!r}: {remedy}, or put quotes around a value "
            "that contains one"
        )

    def _refuse_quote(self, start: int, needed: str | None) -> NoReturn:
        remedy = "close it, or put other quotes around a value that begins with one"
        if needed:
            remedy = f"only {needed} may follow the closing one"
        self._refuse(f"has a quote that is never closed, at {self._text[start:]!r}: {remedy}")

    def _refuse_leftover(self) -> NoReturn:
        if self._text[self._at] == ")":
            self._refuse_parenthesis(self._at)
        self._refuse(
            "must have '&' or '|' and another comparison, or nothing, instead of "
            f"{self._text[self._at :]!r}, got {self._text!r}"
        )

    def _refuse_comparison(self) -> NoReturn:
        """Raise the error for what should be a comparison."""
        rest = self._text[self._at :]
        if self._before and (not rest or rest[0] in "&|)"):
            self._refuse(f"must have a comparison after {self._before!r}, got {self._text!r}")
        if rest[:1] and rest[0] in _QUOTES and rest[0] not in rest[1:]:
            self._refuse_quote(self._at, None)
        quoted = _QUOTED_COLUMN.match(rest)
        first = re.split(r"[&|]", rest, maxsplit=1)[0]
        wanted = quoted[2] if quoted else _SYMBOL.split(first, maxsplit=1)[0].strip()
        if self._open and wanted not in self._given:
            wanted = wanted.rstrip(") ")
        symbols = ", ".join(SYMBOLS)
        if wanted in self._given:
            self._refuse(
                f"must compare {wanted!r} by one of {symbols}, as in '{wanted}>=50', got {self._text!r}"
            )
        others = f"; the table has {list(self._given[:10])}{' and more' if len(self._given) > 10 else ''}."
        raise ValueError(
            f"`{self._argument}` must name a column of the table, alone or compared by one of {symbols}, got "
            f"{wanted!r}{closest_names(wanted, self._given, others)}"
        )


def _canonical(match: re.Match[str]) -> str:
    symbol = next(group for group in match.groups() if group).lower()
    return "==" if symbol == "=" else symbol
