"""Protected attributes written as expressions: a column's name, or columns compared with values."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from fado._messages import closest_names, list_names, warn_user
from fado.tabular._expressions import Comparison, Value, parse
from fado.tabular._open import open_table

__all__ = ["check_compared", "protected_from", "short_name", "source_column", "source_columns"]

Bools = npt.NDArray[np.bool_]

_ORDERS: dict[str, Callable[[Any, Any], Any]] = {
    ">=": operator.ge,
    "<=": operator.le,
    ">": operator.gt,
    "<": operator.lt,
}
_TRUTH = {"true": True, "1": True, "false": False, "0": False}


def protected_from(frame: Any, expression: str) -> pd.Series:
    """Read a protected attribute from a table.

    Parameters
    ----------
    frame : pandas or polars DataFrame, or pyarrow Table
        The table that holds the source columns.
    expression : str
        A column's name, or a comparison such as ``"customer_age>=50"`` with one of ``>=``, ``>``, ``<=``,
        ``<``, ``==``, ``!=`` and ``in``, which takes a list: ``"race in [White, Asian]"``. ``&`` joins
        comparisons that all must hold: ``"sex == Male & age >= 50"``.

        If a column is named exactly like the whole expression, that column is taken. Otherwise the longest
        column name that the expression starts with is compared. Put double or single quotes or backticks
        around a column's name that could be misread, and around values that hold a comma, a bracket or an
        ``&``; around other text they are optional. Numbers are compared as numbers; text, categories and
        booleans only with ``==``, ``!=`` and ``in``.

    Returns
    -------
    pandas.Series
        The column itself, or, for comparisons, a series of pandas' nullable ``boolean`` type named
        like the expression. An entry is missing where a source column is missing, unless another
        comparison of the same row is false. A pandas table's index is kept.

    Raises
    ------
    ValueError
        If no such column exists, or the comparison makes no sense for the column.
    TypeError
        If ``frame`` is not a table, or ``expression`` is not a string.

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
    """
    table = open_table(frame)
    comparisons = parse(table.columns, expression)
    if not comparisons[0].symbol:
        return _to_pandas(table, comparisons[0].column)
    text = expression.strip()
    outcomes = [_outcome(table, comparison, text) for comparison in comparisons]
    together = outcomes[0].array
    for outcome in outcomes[1:]:
        together = together & outcome.array  # false if one is false, whatever is missing
    return pd.Series(together, index=outcomes[0].index, name=text)


def source_columns(frame: Any, expression: str) -> tuple[str, ...]:
    """Name the columns that an expression reads, each once.

    Parameters
    ----------
    frame : pandas or polars DataFrame, or pyarrow Table
        The table that holds the columns.
    expression : str
        As for `protected_from`.

    Returns
    -------
    tuple of str
        The compared columns, or the plain column itself.

    Examples
    --------
    >>> import pandas as pd
    >>> from fado.tabular import source_columns
    >>> source_columns(pd.DataFrame({"sex": ["f", "m"], "age": [30, 50]}), "sex == f & age >= 50")
    ('sex', 'age')
    """
    return tuple(dict.fromkeys(own.column for own in parse(open_table(frame).columns, expression)))


def source_column(frame: Any, expression: str) -> str:
    """Name the one column that an expression reads.

    Parameters
    ----------
    frame : pandas or polars DataFrame, or pyarrow Table
        The table that holds the column.
    expression : str
        As for `protected_from`.

    Returns
    -------
    str
        The compared column, or the plain column itself.

    Raises
    ------
    ValueError
        If there are several: `source_columns` gives them all.

    Examples
    --------
    >>> import pandas as pd
    >>> from fado.tabular import source_column
    >>> source_column(pd.DataFrame({"customer_age": [30, 50]}), "customer_age>=50")
    'customer_age'
    """
    columns = source_columns(frame, expression)
    if len(columns) > 1:
        names = ", ".join(map(repr, columns))
        raise ValueError(f"`expression` must read one column here, got {expression!r}, which reads {names}.")
    return columns[0]


def short_name(frame: Any, expression: str) -> str:
    """Name an attribute by its expression, without needless spaces.

    Examples
    --------
    >>> import pandas as pd
    >>> from fado.tabular import short_name
    >>> frame = pd.DataFrame({"customer_age": [30, 50], "source": ["WEB", "APP"]})
    >>> short_name(frame, "customer_age >= 50")
    'customer_age>=50'
    >>> short_name(frame, "source  in [ WEB,APP ]  &  customer_age = 50")
    'source in [WEB, APP] & customer_age==50'
    """
    return " & ".join(own.name for own in parse(open_table(frame).columns, expression))


def check_compared(frame: Any, expression: str) -> None:
    """Refuse an expression whose comparisons do not tell the rows apart.

    Values of a list that no row has are named in a warning.

    Parameters
    ----------
    frame : pandas or polars DataFrame, or pyarrow Table
        All rows that there are; a part of them may well have one group.
    expression : str
        As for `protected_from`.

    Raises
    ------
    ValueError
        If a comparison, or all of them together, are true in every row or in none.

    Examples
    --------
    >>> import pandas as pd
    >>> from fado.tabular import check_compared
    >>> check_compared(pd.DataFrame({"age": [30, 40]}), "age>=50")
    Traceback (most recent call last):
        ...
    ValueError: `expression` 'age>=50' is true in no row: 'age' goes from 30 to 40.
    """
    table, text = open_table(frame), expression.strip()
    comparisons = parse(table.columns, expression)
    if not comparisons[0].symbol:
        return
    for comparison in comparisons:
        outcome = _outcome(table, comparison, text)
        found = _plain(_compared(table, comparison.column)).dropna()
        where = _one_sided(outcome)
        if where:
            raise ValueError(f"`expression` {comparison.name!r} {where}: {_told(found, comparison)}")
        _warn_of_unseen(found, comparison)
    where = _one_sided(protected_from(frame, expression))
    if where:
        raise ValueError(f"`expression` {text!r} {where}: loosen a comparison, or leave one out.")


def _one_sided(outcome: pd.Series) -> str:
    """Say where a comparison is true if that is everywhere or nowhere."""
    known = outcome.dropna().to_numpy(dtype=bool)
    if not len(known):
        return "is missing in every row"
    if known.all():
        return "is true in every row"
    return "" if known.any() else "is true in no row"


def _told(found: pd.Series, comparison: Comparison) -> str:
    """Say what a column holds, and what comes close to what was asked for."""
    column = repr(comparison.column)
    if found.empty:
        return f"{column} holds nothing."
    if pd.api.types.is_numeric_dtype(found) and not pd.api.types.is_bool_dtype(found):
        low, high = (
            value.item() if hasattr(value, "item") else value for value in (found.min(), found.max())
        )
        return f"{column} goes from {low} to {high}."
    levels = [str(level) for level in sorted(found.unique())]
    close = closest_names(comparison.values[0].text, levels)
    return f"{column} holds {list_names([repr(level) for level in levels])}{close}"


def _warn_of_unseen(found: pd.Series, comparison: Comparison) -> None:
    if comparison.symbol != "in" or not pd.api.types.is_string_dtype(found):
        return
    levels = [str(level) for level in found.unique()]
    for value in comparison.values:
        if value.text not in levels:
            close = closest_names(value.text, levels)
            warn_user(f"No row has {value.text!r} in {comparison.column!r}, which is in a list{close}")


def _to_pandas(table: Any, column: str) -> pd.Series:
    # By way of a table: a lone Arrow dictionary column with nulls comes out of narwhals with wrong values.
    return table.select(column).to_pandas()[column]


def _compared(table: Any, column: str) -> pd.Series:
    """Give a column of a type that pandas compares: no Python objects, no whole numbers as floats."""
    import narwhals.stable.v2 as nw

    own = table[column]
    if own.dtype == nw.Decimal:
        return _to_pandas(table.with_columns(own.cast(nw.Float64)), column)
    if (
        own.dtype.is_integer()
        and own.null_count()
        and not nw.dependencies.is_pandas_dataframe(table.to_native())
    ):
        whole = _to_pandas(table.with_columns(own.fill_null(0)), column).convert_dtypes()
        return whole.mask(own.is_null().to_numpy())
    return _to_pandas(table, column)


def _outcome(table: Any, comparison: Comparison, text: str) -> pd.Series:
    """Tell row by row whether a comparison holds; missing where its column is."""
    column = comparison.column
    source = _compared(table, column)
    plain = _plain(source)
    missing = plain.isna().to_numpy(dtype=bool)
    if missing.all():
        result: Any = missing
    elif pd.api.types.is_bool_dtype(plain):
        result = _compare_truth(plain, comparison, text)
    elif pd.api.types.is_numeric_dtype(plain):
        result, missing = _compare_numbers(plain, comparison, text)
    elif pd.api.types.is_string_dtype(plain):
        result = _compare_text(plain, comparison, text)
    else:
        raise ValueError(
            f"`expression` must compare a column of numbers, text or booleans; "
            f"{column!r} is of type {source.dtype}, got {text!r}."
        )
    values = pd.arrays.BooleanArray(np.asarray(result, dtype=bool), missing)
    return pd.Series(values, index=source.index)


def _plain(source: pd.Series) -> pd.Series:
    """Take categories and objects back to the type of what they hold."""
    if isinstance(source.dtype, pd.CategoricalDtype):
        source = pd.Series(np.asarray(source), index=source.index)
    return source.convert_dtypes() if source.dtype == object else source


def _is_one_of(values: Any, wanted: list[Any], symbol: str) -> Bools:
    """Tell which values equal one of those wanted, or with ``!=`` none."""
    equal = np.zeros(len(values), dtype=bool)
    for value in wanted:
        equal |= np.asarray(values == value, dtype=bool)
    return ~equal if symbol == "!=" else equal


def _compare_numbers(source: pd.Series, comparison: Comparison, text: str) -> tuple[Any, Any]:
    wanted: list[Any] = [_number(value, comparison.column, text) for value in comparison.values]
    if pd.api.types.is_integer_dtype(source) and all(isinstance(value, int) for value in wanted):
        # whole numbers beyond 2**53 would merge as floats
        whole = np.uint64 if pd.api.types.is_unsigned_integer_dtype(source) else np.int64
        values: Any = source.to_numpy(dtype=whole, na_value=0)
        missing = source.isna().to_numpy(dtype=bool)
    else:
        # In the column's own precision: 0.3 as float32 is not 0.3, and must still count as equal to it.
        single = str(source.dtype).lower().startswith(("float32", "float[")) or source.dtype == np.float16
        values = source.to_numpy(dtype=np.float32 if single else np.float64, na_value=np.nan)
        missing = np.isnan(values)
        wanted = [float(value) for value in wanted]
    if comparison.symbol in _ORDERS:
        return _ORDERS[comparison.symbol](values, wanted[0]), missing
    return _is_one_of(values, wanted, comparison.symbol), missing


def _number(value: Value, column: str, text: str) -> int | float:
    try:
        number = float(value.written)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise ValueError(
            f"`expression` must compare {column!r}, a column of numbers, with a number, got {text!r}."
        )
    try:
        return int(value.written)
    except ValueError:
        return number


def _compare_text(source: pd.Series, comparison: Comparison, text: str) -> Bools:
    if comparison.symbol in _ORDERS:
        raise ValueError(
            f"`expression` must compare {comparison.column!r}, a column of text, with '==', '!=' or 'in' "
            f"only, got {text!r}."
        )
    entries = source.fillna("").to_numpy(dtype=object)
    return _is_one_of(entries, [value.text for value in comparison.values], comparison.symbol)


def _compare_truth(source: pd.Series, comparison: Comparison, text: str) -> Bools:
    wanted = [_TRUTH.get(value.written.lower()) for value in comparison.values]
    if comparison.symbol in _ORDERS or None in wanted:
        raise ValueError(
            f"`expression` must compare {comparison.column!r}, a column of booleans, "
            f"as '==true' or '==false', got {text!r}."
        )
    return _is_one_of(source.to_numpy(dtype=bool, na_value=False), wanted, comparison.symbol)
