"""Training and test parts by the values of a column, such as the month."""

from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd

from fado._messages import closest_names, list_names

__all__ = ["temporal_split"]


def temporal_split(
    frame: Any, column: str = "month", train: Any = range(6), test: Any = (6, 7)
) -> tuple[Any, Any]:
    """Split a table by the values of one column.

    Parameters
    ----------
    frame : pandas or polars DataFrame, or pyarrow Table
        The table to split.
    column : str, default="month"
        The column whose values decide.
    train, test : value or iterable of values, default=range(6), (6, 7)
        The values whose rows go to the training part and to the test part. They must not overlap.
        Rows with any other value, or none, are in neither part.

    Returns
    -------
    train, test : tables of the same type as ``frame``
        The two parts, rows in their original order; a pandas table keeps its index.

    Raises
    ------
    ValueError
        If there is no such column, a value is in both parts, or a part has no rows.

    Examples
    --------
    >>> from fado.datasets import make_account_fraud, temporal_split
    >>> frame = make_account_fraud(1_000, random_state=0)
    >>> train, test = temporal_split(frame)
    >>> print(train["month"].max(), test["month"].min())
    5 6
    >>> len(train) + len(test)
    1000
    """
    train_values, test_values = _values(train), _values(test)
    both = [value for value in train_values if value in test_values]
    if both:
        raise ValueError(f"`train` and `test` must not overlap, got {both} in both.")
    return (_part(frame, column, train_values, "train"), _part(frame, column, test_values, "test"))


def _values(chosen: Any) -> list[Any]:
    return list(chosen) if isinstance(chosen, Iterable) and not isinstance(chosen, str) else [chosen]


def _part(frame: Any, column: str, values: list[Any], name: str) -> Any:
    table, is_pandas = frame, isinstance(frame, pd.DataFrame)
    if not is_pandas:  # pandas alone must do for pandas tables; the others go through narwhals
        from fado.tabular import open_table

        table = open_table(frame)
    if column not in table.columns:
        names = [str(each) for each in table.columns]
        nearest = closest_names(str(column), names, f"; the table has {list_names(names, 10)}.")
        raise ValueError(f"`column` must name a column of the table, got {column!r}{nearest}")
    rows = table[column].isin(values) if is_pandas else table[column].is_in(values)
    if not rows.any():
        raise ValueError(f"`{name}` must hold values of column {column!r}, got {values}, which no row has.")
    return frame.take(np.flatnonzero(rows)) if is_pandas else table.filter(rows).to_native()
