"""What a user hands over beside the features: target, protected attributes, weights, blocks of rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set, Sized
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from fado._messages import closest_names, warn_user
from fado.tabular._columns import Column, column_from
from fado.tabular._table import Table, is_frame, named_columns
from fado.tabular._variables import TARGET

__all__ = [
    "attribute_columns",
    "blocks_of",
    "check_weights",
    "mean_one",
    "one_column",
    "protected_columns",
    "target_column",
    "weights_of",
]

_LEAST_WEIGHT, _MOST_WEIGHT = 1e-100, 1e100  # so that sums of weights, and products of two, are numbers


def target_column(y: Any, n_rows: int) -> Column:
    """Read the target, refusing what no model can learn from."""
    if y is None:
        raise ValueError("This estimator requires y to be passed, but the target y is None.")
    if isinstance(y, np.ndarray) and y.ndim == 2 and y.shape[1] == 1:
        from sklearn.exceptions import DataConversionWarning

        warn_user(
            "A column-vector y was passed when a 1d array was expected; its one column is used.",
            DataConversionWarning,
        )
        y = np.asarray(y)[:, 0]
    column = one_column(y, TARGET)
    _check_length(column, n_rows)
    if n_rows and (column.levels is None or column.data.null_count):
        numbers = column.numbers()
        missing = int(np.isnan(numbers).sum())
        if missing:
            raise ValueError(
                f"`y` has {missing} missing or NaN value(s): drop those rows or label them first."
            )
        if np.isinf(numbers).any():
            raise ValueError("`y` contains infinity: drop or mend those rows first.")
    return column


def protected_columns(sensitive_features: Any, table: Table) -> list[tuple[Column, int | None]]:
    """Read the protected attributes, each with its position among the features if it was given by name."""
    if sensitive_features is None:
        return []
    found: list[tuple[Column, int | None]]
    if _is_name(sensitive_features):
        found = [_by_name(sensitive_features, table)]
    elif isinstance(sensitive_features, list | tuple) and _are_names(sensitive_features, table):
        found = [_by_name(name, table) for name in sensitive_features]
    else:
        found = [(column, None) for column in attribute_columns(sensitive_features)]
    if not found:
        raise ValueError("`sensitive_features` names no protected attribute: pass at least one, or None.")
    names = [column.name for column, _ in found]
    if TARGET in names:
        raise ValueError("A protected attribute cannot be called 'y', the target's name: rename it.")
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise ValueError(
            f"Protected attributes must have different names, got {repeated[0]!r} more than once."
        )
    for column, _ in found:
        _check_length(column, table.n_rows)
    return found


def attribute_columns(values: Any) -> list[Column]:
    """Read protected attributes from whatever holds their entries: mapping, table, array, Series or list.

    Those without a name are called "z", or "z0", "z1", ... if there are several.
    """
    if isinstance(values, Mapping):
        return [one_column(own, f"sensitive_features[{name!r}]", str(name)) for name, own in values.items()]
    if is_frame(values):
        return named_columns(values)
    array = np.asarray(values, dtype=object) if isinstance(values, list | tuple) else values
    if isinstance(array, np.matrix):
        array = np.asarray(array)
    if getattr(array, "ndim", 1) == 2:
        names = ["z"] if array.shape[1] == 1 else [f"z{j}" for j in range(array.shape[1])]
        return [replace(column_from(name, array[:, j]), named=False) for j, name in enumerate(names)]
    name = getattr(values, "name", None)
    if name in (None, ""):
        return [replace(one_column(values, "sensitive_features", "z"), named=False)]
    return [one_column(values, "sensitive_features", str(name))]


def one_column(values: Any, argument: str, name: str | None = None, *, times: bool = False) -> Column:
    """Read one column; messages call it by its argument."""
    if not isinstance(values, Sized) and hasattr(values, "__array__"):
        values = np.asarray(values)
    if values is None or isinstance(values, str | bytes | Mapping | Set) or not isinstance(values, Sized):
        raise TypeError(
            f"`{argument}` must hold one value per row, got {values!r}; pass an array, list or Series."
        )
    shape: Sequence[int] = values.shape if hasattr(values, "shape") else (len(values),)
    if isinstance(values, list | tuple) and len(values) and isinstance(values[0], list | tuple | np.ndarray):
        shape = (len(values), len(values[0]))
    if len(shape) != 1:
        raise ValueError(f"`{argument}` must be one-dimensional, got shape {tuple(shape)}; pass one column.")
    return column_from(argument if name is None else name, values, times=times)


def weights_of(sample_weight: Any, n_rows: int) -> npt.NDArray[np.float64] | None:
    """Read the rows' weights, refusing what no model should be trained with."""
    if sample_weight is None:
        return None
    if np.isscalar(sample_weight):
        sample_weight = np.full(n_rows, sample_weight)
    column = one_column(sample_weight, "sample_weight")
    if column.levels is not None:
        raise ValueError("`sample_weight` must hold numbers, got text.")
    weights = column.numbers()
    if weights.shape != (n_rows,):
        raise ValueError(
            f"`sample_weight` must have one weight per row, shape {(n_rows,)}, got {weights.shape}."
        )
    check_weights(weights, "sample_weight")
    if n_rows and not weights.any():
        raise ValueError("`sample_weight` is zero in every row: give some row a weight.")
    return weights


def check_weights(weights: npt.NDArray[np.float64], name: str, where: str = "") -> None:
    """Refuse weights that are not finite, negative, or too large or too small to be multiplied.

    Parameters
    ----------
    weights : ndarray
        Of some rows.
    name : str
        The argument that they were passed as.
    where : str
        Where they were read, for messages, such as " of 'rows.csv'".
    """
    if not np.isfinite(weights).all() or (weights < 0).any():
        raise ValueError(f"`{name}` must be finite and not negative in every row{where}.")
    beyond = (weights > 0) & ((weights < _LEAST_WEIGHT) | (weights > _MOST_WEIGHT))
    if beyond.any():
        raise ValueError(
            f"`{name}` must be 0 or between {_LEAST_WEIGHT:g} and {_MOST_WEIGHT:g} in every row{where}, got "
            f"{weights[beyond][0]:g}: divide all weights by their mean, and set what is then too small to 0."
        )


def mean_one(weights: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Scale weights to a mean of 1, equal ones to the last bit; some rows may all weigh 0, and stay so."""
    if not weights.any():
        return weights
    weights = weights / weights.max()  # so that the sum cannot overflow
    return weights / weights.mean()


def blocks_of(groups: Any, n_rows: int) -> npt.NDArray[np.int64] | None:
    """Read which rows belong together: equal entries, 0, 1, 2, ... by their order."""
    if groups is None:
        return None
    column = one_column(groups, "groups", times=True)
    if len(column) != n_rows:
        raise ValueError(f"`groups` must have one entry per row, {n_rows}, got {len(column)}.")
    codes, _ = column.encode()
    if (codes < 0).any():
        raise ValueError(
            f"`groups` is missing in {int((codes < 0).sum())} rows: give every row the block it belongs to."
        )
    return codes.astype(np.int64)


def _is_name(value: Any) -> bool:
    """Tell what may be a column's name: text, or a whole number as pandas allows it."""
    return isinstance(value, str | int | np.integer) and not isinstance(value, bool)


def _are_names(values: list[Any] | tuple[Any, ...], table: Table) -> bool:
    """Tell names of columns from a plain list of labels."""
    if not values:
        return False
    if all(isinstance(value, str) for value in values):
        return len(values) != table.n_rows or set(values) <= set(table.names)
    names = set(table.source.columns) if hasattr(table.source, "iloc") else set()
    return all(map(_is_name, values)) and len(values) != table.n_rows and names.issuperset(values)


def _by_name(name: Any, table: Table) -> tuple[Column, int]:
    name = name.item() if isinstance(name, np.integer) else name
    positions = table.positions(name)
    if len(positions) == 1:
        return table.column(positions[0]), positions[0]
    if positions:
        raise ValueError(
            f"`sensitive_features` names {name!r}, which {len(positions)} columns of X are called."
        )
    hint = closest_names(str(name), table.names, ": pass its values instead.")
    raise ValueError(f"`sensitive_features` names {name!r}, which is not a column of X{hint}")


def _check_length(column: Column, n_rows: int) -> None:
    if len(column) != n_rows:
        what = "`y`" if column.name == TARGET else f"Protected attribute {column.name!r}"
        cut = " To be cut with X, by cross-validation for instance, it must be a Series or a DataFrame."
        hint = "" if column.name == TARGET else cut
        raise ValueError(
            f"{what} has {len(column)} entries and X has {n_rows} rows (inconsistent numbers of samples): "
            f"pass one entry per row.{hint}"
        )
