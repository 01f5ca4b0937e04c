"""Protected attributes written as expressions: a column's name, or a column compared with a value."""

import math
import operator
import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from fado.tabular._open import nearest_names, open_table

__all__ = ["protected_from", "short_name", "source_column"]

# Two-character operators first: ">=" must not be read as ">" followed by "=50".
_OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    ">=": operator.ge,
    "<=": operator.le,
    "==": operator.eq,
    ">": operator.gt,
    "<": operator.lt,
}
_ANY_OPERATOR = re.compile("|".join(_OPERATORS))
_TRUTH = {"true": True, "1": True, "false": False, "0": False}


class _Parsed(NamedTuple):
    """What an expression says; a plain column has neither operator nor value."""

    column: str
    symbol: str = ""
    value: str = ""


def protected_from(frame: Any, expression: str) -> pd.Series:
    """Read a protected attribute from a table.

    Parameters
    ----------
    frame : pandas or polars DataFrame, or pyarrow Table
        The table that holds the source column.
    expression : str
        A column's name, or a comparison such as ``"customer_age>=50"`` with one of ``>=``, ``>``,
        ``<=``, ``<`` and ``==``. A column whose own name is the whole expression wins over the
        comparison; otherwise the longest column name that the expression starts with is compared.
        Numbers are compared as numbers; text and categories only with ``==``. Quotes around a
        text value are optional.

    Returns
    -------
    pandas.Series
        The column itself, or, for a comparison, a series of pandas' nullable ``boolean`` type named
        like the expression. It is missing where the source is missing. A pandas table's index is
        kept.

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
    >>> protected_from(frame, "source == WEB").tolist()
    [True, False, True]
    """
    table = open_table(frame)
    parsed = _parse(table.columns, expression)
    if not parsed.symbol:
        return _to_pandas(table, parsed.column)
    return _compare(
        _to_pandas(_decimals_as_floats(table, parsed.column), parsed.column), parsed, expression.strip()
    )


def source_column(frame: Any, expression: str) -> str:
    """Name the column that an expression reads.

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

    Examples
    --------
    >>> import pandas as pd
    >>> from fado.tabular import source_column
    >>> source_column(pd.DataFrame({"customer_age": [30, 50]}), "customer_age>=50")
    'customer_age'
    """
    return _parse(open_table(frame).columns, expression).column


def short_name(frame: Any, expression: str) -> str:
    """Name an attribute by its expression, without spaces around the operator.

    Examples
    --------
    >>> import pandas as pd
    >>> from fado.tabular import short_name
    >>> short_name(pd.DataFrame({"customer_age": [30, 50]}), "customer_age >= 50")
    'customer_age>=50'
    """
    return "".join(_parse(open_table(frame).columns, expression))


def _to_pandas(table: Any, column: str) -> pd.Series:
    # By way of a table: a lone Arrow dictionary column with nulls comes out of narwhals with wrong values.
    return table.select(column).to_pandas()[column]


def _decimals_as_floats(table: Any, column: str) -> Any:
    import narwhals.stable.v2 as nw

    # Decimals would reach pandas as Python objects.
    if table[column].dtype == nw.Decimal:
        return table.with_columns(table[column].cast(nw.Float64))
    return table


def _parse(columns: Sequence[Any], expression: str) -> _Parsed:
    if not isinstance(expression, str):
        raise TypeError(f"`expression` must be a string, got {type(expression).__name__}.")
    names = [column for column in columns if isinstance(column, str)]
    text = expression.strip()
    for whole in (expression, text):
        if whole in names:
            return _Parsed(whole)
    for column in sorted(names, key=len, reverse=True):
        if column and text.startswith(column):
            rest = text[len(column) :].lstrip()
            symbol = next((symbol for symbol in _OPERATORS if rest.startswith(symbol)), "")
            if symbol:
                return _with_value(_Parsed(column, symbol, rest[len(symbol) :].strip()), text)
    raise ValueError(_unknown_column(names, text))


def _with_value(parsed: _Parsed, text: str) -> _Parsed:
    if not parsed.value:
        raise ValueError(f"`expression` must give a value after {parsed.symbol!r}, got {text!r}.")
    return parsed


def _unknown_column(names: Sequence[str], text: str) -> str:
    wanted = _ANY_OPERATOR.split(text, maxsplit=1)[0].strip()
    return (
        f"`expression` must name a column of the table, alone or compared by one of "
        f"{', '.join(_OPERATORS)}, got {wanted!r}; {nearest_names(names, wanted)}."
    )


def _compare(source: pd.Series, parsed: _Parsed, text: str) -> pd.Series:
    plain = _plain(source)
    missing = plain.isna().to_numpy(dtype=bool)
    if missing.all():
        result: Any = missing
    elif pd.api.types.is_bool_dtype(plain):
        result = plain.to_numpy(dtype=bool, na_value=False) == _truth(parsed, text)
    elif pd.api.types.is_numeric_dtype(plain):
        result, missing = _compare_numbers(plain, parsed, text)
    elif pd.api.types.is_string_dtype(plain):
        result = _compare_text(plain, parsed, text)
    else:
        raise ValueError(
            f"`expression` must compare a column of numbers, text or booleans; "
            f"{parsed.column!r} is of type {source.dtype}, got {text!r}."
        )
    values = pd.arrays.BooleanArray(np.asarray(result, dtype=bool), missing)
    return pd.Series(values, index=source.index, name=text)


def _plain(source: pd.Series) -> pd.Series:
    """Take categories and objects back to the type of what they hold."""
    if isinstance(source.dtype, pd.CategoricalDtype):
        source = pd.Series(np.asarray(source), index=source.index)
    return source.convert_dtypes() if source.dtype == object else source


def _compare_numbers(source: pd.Series, parsed: _Parsed, text: str) -> tuple[Any, Any]:
    try:
        value = float(parsed.value)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise ValueError(
            f"`expression` must compare {parsed.column!r}, a column of numbers, with a number, got {text!r}."
        )
    # In the column's own precision: 0.3 as float32 is not 0.3, and must still count as equal to it.
    single = str(source.dtype).lower().startswith(("float32", "float[")) or source.dtype == np.float16
    values = source.to_numpy(dtype=np.float32 if single else np.float64, na_value=np.nan)
    return _OPERATORS[parsed.symbol](values, value), np.isnan(values)


def _compare_text(source: pd.Series, parsed: _Parsed, text: str) -> Any:
    if parsed.symbol != "==":
        raise ValueError(
            f"`expression` must compare {parsed.column!r}, a column of text, with '==' only, got {text!r}."
        )
    quoted = re.fullmatch(r"(['\"])(.*)\1", parsed.value)
    return source.fillna("").to_numpy(dtype=object) == (quoted[2] if quoted else parsed.value)


def _truth(parsed: _Parsed, text: str) -> bool:
    truth = _TRUTH.get(parsed.value.lower())
    if parsed.symbol != "==" or truth is None:
        raise ValueError(
            f"`expression` must compare {parsed.column!r}, a column of booleans, "
            f"as '==true' or '==false', got {text!r}."
        )
    return truth
