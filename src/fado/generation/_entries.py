"""Rows that are put together from the entries of others, as what the table was passed as."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fado.tabular import Table, take_rows

__all__ = ["attributes_of", "take_entries", "take_more_rows"]

Positions = npt.NDArray[np.integer[Any]]


def take_entries(X: Any, donors: Positions) -> Any:
    """Make rows whose entry of column j is taken from row ``donors[:, j]`` of `X`.

    The result is of the type of `X`, and every column keeps its own type. The row labels of a pandas table
    are those of the first column's donors.

    Parameters
    ----------
    X : array, list, pandas, polars or pyarrow table
        The rows to take entries from.
    donors : ndarray of int, shape (n_made, n_columns)
        Positions of rows of `X`, as `draw_donors` gives them.

    Examples
    --------
    >>> import numpy as np
    >>> take_entries(np.array([[1, 10], [2, 20], [3, 30]]), np.array([[0, 0], [2, 1]]))
    array([[ 1, 10],
           [ 3, 20]])
    """
    if hasattr(X, "iloc"):
        import pandas as pd

        columns = {j: X.iloc[:, j].array.take(own) for j, own in enumerate(donors.T)}
        return pd.DataFrame(columns, index=X.index.take(donors[:, 0])).set_axis(X.columns, axis=1)
    if isinstance(X, pa.Table):
        place = {name: j for j, name in enumerate(Table.from_input(X).names)}  # without an unnamed index
        taken = [
            column.take(pa.array(donors[:, place.get(name, 0)]))
            for name, column in zip(X.column_names, X.columns, strict=True)
        ]
        return pa.Table.from_arrays(taken, schema=X.schema)
    if isinstance(X, np.ndarray):
        return np.asanyarray(X)[donors, np.arange(donors.shape[1])]
    if isinstance(X, list | tuple):
        as_row = type(X[0]) if isinstance(X[0], list | tuple) else np.array
        return type(X)(as_row([X[row][j] for j, row in enumerate(own)]) for own in donors.tolist())
    import narwhals as nw

    frame = nw.from_native(X.collect() if hasattr(X, "collect") else X, pass_through=False)
    series = [frame[:, j][own] for j, own in enumerate(donors.T)]
    made = nw.concat([column.to_frame() for column in series], how="horizontal")
    return made if isinstance(X, nw.DataFrame) else made.to_native()


def take_more_rows(values: Any, rows: Positions, donors: Positions | None = None) -> Any:
    """Give all rows, and then some again, or such as are made of `donors`; as what was passed.

    Parameters
    ----------
    values : table, array, Series or list
        The rows that there are.
    rows : ndarray of int
        All rows, then the parents.
    donors : ndarray of int, shape (n_made, n_columns), optional
        Of a table, where the entries of made rows come from.

    Notes
    -----
    The row labels of pandas go on counting where they count from 0; others are those of the parents.
    """
    if donors is None:
        taken = take_rows(values, rows)
    else:
        given = np.repeat(rows[: len(rows) - len(donors), None], donors.shape[1], axis=1)
        taken = take_entries(values, np.concatenate([given, donors]))
    if not hasattr(values, "iloc"):
        return taken
    import pandas as pd

    index = values.index
    counted = isinstance(index, pd.RangeIndex) and (index.start, index.step) == (0, 1)
    return taken.set_axis(pd.RangeIndex(len(rows), name=index.name) if counted else index.take(rows), axis=0)


def attributes_of(sensitive_features: Any, X: Any, rows: Positions, *, named: bool) -> Any:
    """Give the protected attributes of all rows and of those made, as what they were passed as.

    Parameters
    ----------
    sensitive_features : object
        As the user passed it.
    X : table
        All rows, with those made.
    rows : ndarray of int
        All rows, then the parents.
    named : bool
        Whether they are names of columns of X, and so are taken from there.
    """
    if named and isinstance(sensitive_features, list | tuple):
        names = list(sensitive_features)
        return X.select(names) if isinstance(X, pa.Table) else X[names]
    if named:
        return X[sensitive_features]
    if isinstance(sensitive_features, Mapping):
        return {name: take_more_rows(own, rows) for name, own in sensitive_features.items()}
    return None if sensitive_features is None else take_more_rows(sensitive_features, rows)
