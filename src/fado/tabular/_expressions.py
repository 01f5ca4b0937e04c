"""Targets and protected attributes from expressions: a column's name, or columns compared with values."""

from __future__ import annotations

import math
import operator
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa

from fado._messages import closest_names, list_names, warn_user
from fado._typing import Integers
from fado.tabular._column import Column, column_from, is_label, unknown_values
from fado.tabular._conditions import Condition, parse
from fado.tabular._table import open_table
from fado.tabular._variables import (
    UNKNOWN,
    Variable,
    check_attribute_names,
    variable_from,
)

GroupNames = Mapping[str, Mapping[Any, str] | Sequence[str]]

_ORDERS = {">=": operator.ge, "<=": operator.le, ">": operator.gt, "<": operator.lt}
_TRUTH = {"true": True, "1": True, "false": False, "0": False}
_CONTENT_UNKNOWN = {"null", "Null", "object"}  # types of columns whose content is unknown without rows


def protected_from(frame: Any, expression: str, *, named: bool = False, unknown: Any = None) -> pd.Series:
    """Read a protected attribute from a table.

    Parameters
    ----------
    frame : pandas or polars DataFrame, or pyarrow Table
        The table that holds the source columns.
    expression : str
        A column's name, or a comparison such as ``"customer_age>=50"`` with one of ``>=``, ``>``, ``<=``,
        ``<``, ``==``, ``!=`` and ``in``, which takes a list: ``"race in [White, Asian]"``. ``&`` joins
        comparisons that all must hold, ``|`` those of which one must: ``"age_65==1 | age_75==1"``. ``&``
        binds tighter than ``|``; parentheses change that.

        If a column is named exactly like the whole expression, that column is taken. Put double or single
        quotes or backticks around names and values that hold one of ``& | ( ) [ ] < > =``, and around values
        of a list that hold a comma; around other text they are optional. Numbers are compared as numbers;
        text, categories and booleans only with ``==``, ``!=`` and ``in``.
    named : bool, default=False
        Whether groups of comparisons get names, ``"age >= 50"`` and ``"age < 50"``, as on the command line,
        instead of True and False.
    unknown : value or list of values, optional
        Entries of the source columns that mean the same as a missing one, such as ``-1`` or ``"?"``.

    Returns
    -------
    pandas.Series
        The column itself, or, for comparisons, a series of pandas' nullable ``boolean`` type, or of text,
        named like the expression. A comparison is unknown where its column is missing. For several, the entry
        is missing only where the known ones do not decide: ``true | unknown`` is true, ``false & unknown`` is
        false. A pandas table's index is kept.

    Raises
    ------
    ValueError
        If no such column exists, or the column cannot be compared like this.
    TypeError
        If ``frame`` is not a table, or ``expression`` is not a string.

    See Also
    --------
    fado.datasets.make_account_fraud : Data with a column ``customer_age``.
    fado.datasets.temporal_split : Split a table by a column.

    Examples
    --------
    >>> import pandas as pd
    >>> from fado.datasets import protected_from
    >>> frame = pd.DataFrame({"customer_age": [30.0, 50.0, None], "source": ["WEB", "APP", "WEB"]})
    >>> protected_from(frame, "customer_age>=50")
    0    False
    1     True
    2     <NA>
    Name: customer_age>=50, dtype: boolean
    >>> protected_from(frame, "source in [WEB, TELEAPP]").tolist()
    [True, False, True]
    >>> protected_from(frame, "source == APP & customer_age >= 50").tolist()
    [False, True, False]
    >>> protected_from(frame, "source == WEB | customer_age >= 50").tolist()
    [True, True, True]
    >>> protected_from(frame, "customer_age>=50", named=True).tolist()
    ['customer_age < 50', 'customer_age >= 50', None]
    """
    read = replace(Expression.of(open_table(frame).columns, expression), unknown=unknown)
    entries = read.groups(frame) if named else read.entries(frame)
    return entries if read.is_column else entries.rename(expression.strip())


def read_attributes(
    columns: Sequence[str],
    protected: Sequence[str],
    target: Expression,
    group_names: GroupNames | None = None,
    unknown: Any = None,
) -> tuple[Expression, ...]:
    """Read protected attributes over the columns of a table; they must differ from each other and the target.

    `group_names` has names of groups: per attribute names by label; for comparisons also two names, first for
    the rows where they hold. `unknown` has entries of their columns that mean the same as a missing one.

    Examples
    --------
    >>> target = Expression.of(["age", "sex", "paid"], "paid", "target")
    >>> names = {"age >= 50": ["older", "younger"], "sex": {1: "men", 2: "women"}}
    >>> old, sex = read_attributes(["age", "sex", "paid"], ["age>=50", "sex"], target, names)
    >>> old.group_titles, sex.called(2)
    (('older', 'younger'), 'women')
    """
    attributes = [replace(Expression.of(columns, text, "protected"), unknown=unknown) for text in protected]
    for attribute in attributes:
        target.check_apart("protected", attribute.sources)
    check_attribute_names([attribute.name for attribute in attributes])
    by_name = {attribute.name: attribute for attribute in attributes}
    for text, names in (group_names or {}).items():
        try:
            name = parse(columns, text).name
        except ValueError:
            name = text
        if name not in by_name:
            shown = list_names([repr(known) for known in by_name])
            raise ValueError(
                f"`group_names` names {text!r}, which is not one of the protected attributes {shown}."
            )
        by_name[name] = by_name[name].with_names(names)
    return tuple(by_name.values())


@dataclass(frozen=True)
class Expression:
    """A target or a protected attribute as an expression: a column, or comparisons of columns.

    Parameters
    ----------
    tree : Condition
        The parsed expression.
    argument : str
        Its name in messages.
    names : mapping of str to str
        The names of some groups, by the text of their labels.
    unknown : value or list of values, optional
        The entries of its columns that mean the same as a missing one.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"sex": ["f", "m"], "age": [30, 50]})
    >>> read = Expression.of(frame.columns, "sex = f  |  (age >= 50)")
    >>> read.name, read.sources, read.group_titles
    ('sex==f | age>=50', ('sex', 'age'), ('sex == f | age >= 50', 'not (sex == f | age >= 50)'))
    """

    tree: Condition
    argument: str = "expression"
    names: Mapping[str, str] = field(default_factory=dict)
    unknown: Any = None

    @classmethod
    def of(cls, columns: Sequence[object], expression: str, argument: str = "expression") -> Expression:
        """Read an expression over the columns of a table; `argument` is its name in messages."""
        return cls(parse(columns, expression, argument), argument)

    @property
    def name(self) -> str:
        """The expression without needless spaces."""
        return self.tree.name

    @property
    def sources(self) -> tuple[str, ...]:
        """The columns that it reads, each once."""
        return tuple(dict.fromkeys(comparison.column for comparison in self.tree.comparisons))

    @property
    def is_column(self) -> bool:
        """Whether it is a column as it is."""
        return not self.tree.symbol

    @property
    def group_titles(self) -> tuple[str, str]:
        """The names of the groups where comparisons hold, and where they do not."""
        return self.called(True), self.called(False)

    def called(self, label: Any) -> Any:
        """Return the name of a group: the given one, that of a comparison's outcome, or the label."""
        if not self.is_column and isinstance(label, bool):
            label = self.tree.titles[not label]
        if not self.names:
            return label
        return next((name for text, name in self.names.items() if is_label(label, text)), str(label))

    def with_names(self, names: Mapping[Any, str] | Sequence[str]) -> Expression:
        """Return a copy with names of groups: by label, or two for a comparison, first where it holds."""
        where = f"`group_names` of {self.name!r}"
        if isinstance(names, str) or not isinstance(names, Mapping | Sequence):
            raise TypeError(f"{where} must be a mapping or a sequence, got {names!r}.")
        if not isinstance(names, Mapping):
            if self.is_column:
                raise ValueError(f"{where} must say which group each name is for, as in '1=men, 2=women'.")
            if len(names) != 2:
                raise ValueError(
                    f"{where} must be two names, first for the rows where it holds, then for the others, got "
                    f"{len(names)}; put quotes around a name that contains a comma."
                )
            names = dict(zip((True, False), names, strict=True))
        given = {str(label): str(name).strip() for label, name in names.items()}
        if not self.is_column:
            titles = dict(zip(("true", "false"), self.tree.titles, strict=True))
            for label in given:
                if label.lower() not in titles:
                    raise ValueError(f"{where} names {label!r}, and its groups are 'true' and 'false'.")
            given = {titles[label.lower()]: name for label, name in given.items()}
        for name in given.values():
            if name in ("", UNKNOWN):
                raise ValueError(f"{where} must be names that distinguish groups, got {name!r}.")
        named = replace(self, names=given)
        if not self.is_column:
            named._check_names(self.tree.titles)
        return named

    def check_apart(self, argument: str, names: Sequence[str | None]) -> None:
        """Refuse columns, named by an argument, that the target is read from."""
        for name in names:
            if name in self.sources:
                made = "of which the target is made, so that no model sees it"
                what = "the target" if self.is_column else made
                raise ValueError(f"`{argument}` names {name!r}, {what}: name another column.")

    def entries(self, frame: Any) -> pd.Series:
        """Read the column, or True and False where comparisons hold and do not."""
        table, source = open_table(frame), self.sources[0]
        # By way of a table: narwhals gives wrong values of a lone Arrow dictionary column with nulls.
        first = table.select(source).to_pandas()[source]
        if not self.is_column:
            return pd.Series(self._holds(table, self.tree), first.index, name=self.name)
        if not (unknown := unknown_values(self.unknown)):
            return first
        return first.mask(column_from(source, table[source].to_native()).marked(unknown))

    def groups(self, frame: Any) -> pd.Series:
        """Read the attribute as the names of its groups."""
        entries = self.entries(frame)
        if self.is_column and not self.names:
            return entries
        column = self._column(frame) if self.is_column else column_from(self.name, entries)
        codes, labels = column.encode()
        titles = [self.called(column.label_of(label)) for label in labels]
        by_row = np.array([*titles, None], dtype=object)[codes]  # the last, which is also -1, is missing
        return pd.Series(by_row, entries.index, dtype=object, name=self.name)

    def read(self, table: pa.Table, *, named: bool = True) -> Any:
        """Return a column of an Arrow table as it is, or the outcome of comparisons, as names or booleans."""
        if self.is_column and not (self.names or self.unknown):
            return table.column(self.sources[0])
        table = table.select(list(self.sources))
        return self.groups(table) if named else pa.chunked_array([pa.array(self.entries(table))])

    def check(self, frame: Any) -> None:
        """Refuse comparisons with the same outcome in every row, and names of groups without rows.

        A warning names values of a list that no row has, and comparisons beside a ``|`` that have the same
        outcome in every row.

        Examples
        --------
        >>> import pandas as pd
        >>> frame = pd.DataFrame({"age": [30, 40]})
        >>> Expression.of(frame.columns, "age>=50").check(frame)
        Traceback (most recent call last):
            ...
        ValueError: `expression` 'age>=50' is true in no row: 'age' goes from 30 to 40.
        """
        if self.is_column:
            if self.names:
                self.check_named(variable_from(self._column(frame)))
            return
        table, tree = open_table(frame), self.tree
        whole = _one_sided(self._holds(table, tree))
        all_must_hold = tree.symbol != "|" and not any(part.parts for part in tree.parts)
        for comparison in tree.comparisons:
            where = _one_sided(self._holds(table, comparison))
            _, entries = self._entries(table, comparison.column)
            if where:
                sentence = f"{comparison.name!r} {where}: {_content(comparison, entries)}"
                if all_must_hold or where == whole:
                    raise ValueError(f"`{self.argument}` {sentence}")
                warn_user(sentence)
            for text in comparison.texts if comparison.symbol == "in" and entries.dtype == object else ():
                if text not in entries:
                    close = closest_names(text, entries.tolist())
                    warn_user(f"No row has {text!r} in {comparison.column!r}, which is in a list{close}")
        if whole:
            raise ValueError(
                f"`{self.argument}` {self.name!r} {whole}: loosen a comparison, or leave one out."
            )

    def check_named(self, variable: Variable) -> None:
        """Refuse names of groups that do not exist, and the same name for two groups."""
        if variable.kind == "continuous":
            raise ValueError(
                f"`group_names` of {self.name!r} are for groups, and it has more than 20 different numbers: "
                f"cut it into a few, as in '{self.name}>=50'."
            )
        self._check_names(variable.classes[:-1] if variable.has_missing else variable.classes)

    def _check_names(self, labels: Sequence[Any]) -> None:
        where = f"`group_names` of {self.name!r}"
        for text in self.names:
            if not any(is_label(label, text) for label in labels):
                texts = [str(label) for label in labels]
                shown = f"; its groups are {list_names([repr(known) for known in texts])}."
                raise ValueError(
                    f"{where} names {text!r}, which no row has{closest_names(text, texts, shown)}"
                )
        titles = [self.called(label) for label in labels]
        for title in titles:
            if titles.count(title) > 1:
                raise ValueError(f"{where} gives two groups the name {title!r}: give each another name.")

    def _column(self, frame: Any) -> Column:
        column = column_from(self.name, open_table(frame)[self.sources[0]].to_native())
        return column.without(self.unknown)

    def _entries(self, table: Any, name: str) -> tuple[Integers, npt.NDArray[Any]]:
        """Return codes into a column's sorted entries, and these: booleans, text as objects, or numbers.

        Numbers have the column's type. Entries are void if the content of the column is unknown.
        """
        native = table[name].to_native()
        kind = native.type if isinstance(native, pa.ChunkedArray) else native.dtype
        try:
            column = column_from(name, native).without(self.unknown)
        except (TypeError, ValueError):
            self._refuse(f"a column of numbers, text or booleans; {name!r} is of type {kind}")
        codes, entries = column.encode()
        dtype: Any = np.float32 if column.data.type == pa.float32() else None
        if not len(entries) and (len(codes) or str(kind) in _CONTENT_UNKNOWN):
            dtype = np.void
        elif column.is_boolean or (column.labels and isinstance(column.labels[0], bool)):
            dtype = bool
        elif column.levels is not None and column.labels is None:
            dtype = object
        return codes, np.asarray(entries, dtype=dtype)

    def _holds(self, table: Any, condition: Condition) -> pd.arrays.BooleanArray:
        """Return row by row whether a condition holds, in three-valued logic; missing where its column is."""
        if condition.parts:
            join = operator.and_ if condition.symbol == "&" else operator.or_
            return reduce(join, (self._holds(table, part) for part in condition.parts))
        column, symbol = condition.column, condition.symbol
        codes, entries = self._entries(table, column)
        wanted: list[Any] = []
        rule, is_number = "", entries.dtype.kind in "iuf"
        if entries.dtype == object:
            wanted, rule = condition.texts, "text, with '==', '!=' or 'in' only"
        elif entries.dtype == bool:
            wanted = [_TRUTH.get(value.lower()) for value in condition.values]
            rule = "booleans, as '==true' or '==false'"
        elif is_number:
            wanted, rule = [_number(value) for value in condition.values], "numbers, with a number"
        if None in wanted or (symbol in _ORDERS and rule and not is_number):
            self._refuse(f"{column!r}, a column of {rule}")
        if is_number and (entries.dtype.kind == "f" or not all(isinstance(value, int) for value in wanted)):
            # Not always, or whole numbers beyond 2**53 would merge. In the column's own precision: 0.3 as
            # float32 is not 0.3, and must still count as equal to it.
            wanted = [float(value) for value in wanted]
            entries = entries if entries.dtype.kind == "f" else entries.astype(np.float64)
        if symbol in _ORDERS and wanted:
            holds = _ORDERS[symbol](entries, wanted[0])
        else:
            holds = np.any([entries == value for value in wanted], axis=0) != (symbol == "!=")
        holds = np.append(np.broadcast_to(holds, entries.shape), False)  # the last, also -1, is missing
        return pd.arrays.BooleanArray(holds[codes], codes < 0)

    def _refuse(self, rule: str) -> NoReturn:
        raise ValueError(f"`{self.argument}` must compare {rule}, got {self.name!r}.") from None


def _one_sided(outcome: pd.arrays.BooleanArray) -> str:
    """Describe the outcome of a comparison that is the same in every row."""
    known = outcome.dropna().to_numpy(dtype=bool)
    if not len(known):
        return "is missing in every row"
    if known.all():
        return "is true in every row"
    return "" if known.any() else "is true in no row"


def _content(comparison: Condition, entries: npt.NDArray[Any]) -> str:
    """Describe what a column holds, and names close to the requested one."""
    column = repr(comparison.column)
    if not len(entries):
        return f"{column} holds nothing."
    if entries.dtype.kind in "iuf":
        return f"{column} goes from {entries[0].item()} to {entries[-1].item()}."
    levels = [str(entry) for entry in entries]
    close = closest_names(comparison.texts[0], levels)
    return f"{column} holds {list_names([repr(level) for level in levels])}{close}"


def _number(text: str) -> int | float | None:
    """Read a finite number, whole ones exactly; None if a text is none."""
    with suppress(ValueError):
        return int(text)
    with suppress(ValueError):
        number = float(text)
        return number if math.isfinite(number) else None
    return None
