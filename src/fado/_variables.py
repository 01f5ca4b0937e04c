"""The variables that rows are valued for: the target and the protected attributes."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fado._frames import Column, Table, column_from, is_frame, named_columns

__all__ = [
    "MISSING",
    "Kind",
    "Variable",
    "encoded",
    "plain_label",
    "protected_columns",
    "target_column",
    "variable_from",
]

Kind = Literal["classes", "continuous"]

MISSING = "(missing)"
TARGET = "y"
MOST_NUMERIC_CLASSES = 20
_KIND_WORDS: dict[str, Kind] = {
    "class": "classes",
    "classes": "classes",
    "categorical": "classes",
    "continuous": "continuous",
}


@dataclass(frozen=True)
class Variable:
    """One variable in the form that the engines learn from.

    Parameters
    ----------
    name : str
        ``"y"`` for the target, the attribute's name otherwise.
    kind : {"classes", "continuous"}
        How it is predicted and valued.
    labels : ndarray
        int32 codes into `classes`, or float64 numbers with NaN where the entry is missing.
    classes : tuple
        The sorted classes; the group of missing entries, if any, comes last. Empty for numbers.
    excluded : frozenset of int
        Positions of the feature columns that its models must not see.
    sees_target : bool
        Whether its models see the target beside the features.
    """

    name: str
    kind: Kind
    labels: npt.NDArray[Any]
    classes: tuple[Any, ...] = ()
    excluded: frozenset[int] = field(default_factory=frozenset)
    sees_target: bool = False

    @property
    def known(self) -> npt.NDArray[np.bool_]:
        """Rows whose label a model can learn from."""
        if self.kind == "classes":
            return np.ones(len(self.labels), dtype=bool)
        return ~np.isnan(self.labels)


def target_column(y: Any, n_rows: int) -> Column:
    """Read the target, refusing what no model can learn from."""
    if y is None:
        raise ValueError("This estimator requires y to be passed, but the target y is None.")
    if isinstance(y, np.ndarray) and y.ndim == 2 and y.shape[1] == 1:
        warnings.warn(
            _column_vector_warning(
                "A column-vector y was passed when a 1d array was expected; its one column is used."
            ),
            stacklevel=3,
        )
        y = y[:, 0]
    column = _one_column(y, TARGET)
    _check_length(column, n_rows)
    if n_rows and (column.levels is None or column.data.null_count):
        numbers = column.numbers()
        if np.isnan(numbers).any() or column.data.null_count:
            missing = int(np.isnan(numbers).sum())
            raise ValueError(
                f"`y` has {missing} missing or NaN value(s): drop those rows or label them first."
            )
        if np.isinf(numbers).any():
            raise ValueError("`y` contains infinity: drop or mend those rows first.")
    return column


def _column_vector_warning(message: str) -> Warning:
    from sklearn.exceptions import DataConversionWarning

    return DataConversionWarning(message)


def protected_columns(sensitive_features: Any, table: Table) -> list[tuple[Column, int | None]]:
    """Read the protected attributes, each with its position among the features if it was given by name."""
    if sensitive_features is None:
        return []
    if isinstance(sensitive_features, str):
        sensitive_features = [sensitive_features]
    found: list[tuple[Column, int | None]]
    if isinstance(sensitive_features, list | tuple) and _are_names(sensitive_features, table):
        found = [_by_name(name, table) for name in sensitive_features]
    elif isinstance(sensitive_features, Mapping):
        found = [(_one_column(values, str(name)), None) for name, values in sensitive_features.items()]
    elif is_frame(sensitive_features):
        found = [(column, None) for column in named_columns(sensitive_features)]
    else:
        found = [(column, None) for column in _unnamed(sensitive_features)]
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


def _are_names(values: list[Any] | tuple[Any, ...], table: Table) -> bool:
    """Tell names of columns from a plain list of labels."""
    if not values or not all(isinstance(value, str) for value in values):
        return False
    return len(values) != table.n_rows or set(values) <= set(table.names)


def _by_name(name: str, table: Table) -> tuple[Column, int]:
    positions = table.positions(name)
    if len(positions) == 1:
        return table.columns[positions[0]], positions[0]
    if positions:
        raise ValueError(
            f"`sensitive_features` names {name!r}, which {len(positions)} columns of X are called."
        )
    import difflib

    close = difflib.get_close_matches(name, table.names, n=3)
    hint = f"; did you mean {', '.join(map(repr, close))}?" if close else ": pass its values instead."
    raise ValueError(f"`sensitive_features` names {name!r}, which is not a column of X{hint}")


def _unnamed(values: Any) -> list[Column]:
    """Read protected attributes from an array or a Series."""
    array = np.asarray(values, dtype=object) if isinstance(values, list | tuple) else values
    if getattr(array, "ndim", 1) == 2:
        if array.shape[1] == 1:
            return [column_from("z", array[:, 0])]
        return [column_from(f"z{j}", array[:, j]) for j in range(array.shape[1])]
    return [_one_column(values, "z", use_name=True)]


def _one_column(values: Any, default: str, *, use_name: bool = False) -> Column:
    name = getattr(values, "name", None) if use_name else None
    name = default if name is None else str(name)
    if not hasattr(values, "__len__") and hasattr(values, "__array__"):
        values = np.asarray(values)
    if not hasattr(values, "__len__"):
        raise TypeError(f"`{default}` must be a list, array or Series, got {type(values).__name__}.")
    ndim = getattr(values, "ndim", None)
    if ndim is None and isinstance(values, list | tuple):
        ndim = 2 if len(values) and isinstance(values[0], list | tuple | np.ndarray) else 1
    if ndim is not None and ndim != 1:
        raise ValueError(f"`{default}` must be one-dimensional, got {ndim} dimensions.")
    return column_from(name, values)


def _check_length(column: Column, n_rows: int) -> None:
    if len(column) != n_rows:
        what = "`y`" if column.name == TARGET else f"Protected attribute {column.name!r}"
        cut = " To be cut with X, by cross-validation for instance, it must be a Series or a DataFrame."
        hint = "" if column.name == TARGET else cut
        raise ValueError(
            f"{what} has {len(column)} entries and X has {n_rows} rows (inconsistent numbers of samples): "
            f"pass one entry per row.{hint}"
        )


def check_kinds(kinds: Mapping[str, str] | None, names: list[str]) -> dict[str, Kind]:
    """Check the user's choices of kinds against the variables there are."""
    chosen: dict[str, Kind] = {}
    for name, word in (kinds or {}).items():
        if name not in names:
            raise ValueError(f"`kinds` names {name!r}, which is none of the variables {names}.")
        if word not in _KIND_WORDS:
            raise ValueError(f"`kinds[{name!r}]` must be 'classes' or 'continuous', got {word!r}.")
        chosen[name] = _KIND_WORDS[word]
    return chosen


def variable_from(
    column: Column,
    *,
    kind: Kind | None,
    excluded: frozenset[int] = frozenset(),
    sees_target: bool = False,
) -> Variable:
    """Decide what a variable is and encode it.

    Strings, booleans and categories are classes; numbers are classes up to 20 distinct values.
    """
    codes, distinct = encoded(column)
    if column.levels is not None:
        if kind == "continuous":
            raise ValueError(f"Variable {column.name!r} holds text: it cannot be valued as continuous.")
    else:
        if kind is None:
            few = column.is_boolean or len(distinct) <= MOST_NUMERIC_CLASSES
            kind = "classes" if few else "continuous"
        if kind == "continuous":
            return _continuous(column, column.numbers(), np.asarray(distinct), excluded, sees_target)
    classes = tuple(plain_label(value, column) for value in distinct)
    return _classes(column.name, codes, classes, excluded, sees_target)


def encoded(column: Column) -> tuple[npt.NDArray[np.int32], Sequence[Any] | npt.NDArray[np.float64]]:
    """Encode a column as codes into its sorted distinct entries, -1 where the entry is missing."""
    if column.levels is not None:
        return column.codes(), column.levels
    hashed = pa.array(column.numbers() + 0.0).dictionary_encode()  # + 0.0: one zero, not two
    entries = hashed.dictionary.to_numpy()
    order = np.argsort(entries)  # NaN, the missing entry, comes last
    codes = np.empty(len(order), dtype=np.int32)
    codes[order] = np.where(np.isnan(entries[order]), -1, np.arange(len(order)))
    return codes[hashed.indices.to_numpy()], entries[order][~np.isnan(entries[order])]


def plain_label(value: Any, column: Column) -> Any:
    """Give a class's label as the user wrote it: True rather than 1.0, 3 rather than 3.0."""
    if column.levels is not None:
        return value
    if column.is_boolean:
        return bool(value)
    return int(value) if float(value).is_integer() else float(value)


def _continuous(
    column: Column,
    numbers: npt.NDArray[np.float64],
    distinct: npt.NDArray[np.float64],
    excluded: frozenset[int],
    sees_target: bool,
) -> Variable:
    if np.isinf(distinct).any():
        raise ValueError(f"Variable {column.name!r} contains infinity: mend or drop those rows first.")
    if len(distinct) < 2:
        raise ValueError(_one_class(column.name, distinct.tolist()))
    missing = int(np.isnan(numbers).sum())
    if missing:
        warnings.warn(
            f"Protected attribute {column.name!r} is missing in {missing} of {len(numbers)} rows: its models "
            "learn from the others, and those rows are valued by their predictions.",
            UserWarning,
            stacklevel=5,
        )
    return Variable(column.name, "continuous", numbers, (), excluded, sees_target)


def _classes(
    name: str,
    codes: npt.NDArray[np.int32],
    classes: tuple[Any, ...],
    excluded: frozenset[int],
    sees_target: bool,
) -> Variable:
    n_rows, missing = len(codes), int((codes < 0).sum())
    if missing == n_rows:
        raise ValueError(f"Protected attribute {name!r} is missing in every row: leave it out.")
    if missing:
        warnings.warn(
            f"Protected attribute {name!r} is missing in {missing} of {n_rows} rows: they are a group of "
            f"their own, {MISSING!r}, and every row is valued over {len(classes) + 1} classes, not "
            f"{len(classes)}.",
            UserWarning,
            stacklevel=5,
        )
        codes = np.where(codes < 0, np.int32(len(classes)), codes)
        classes = (*classes, MISSING)
    if len(classes) < 2:
        raise ValueError(_one_class(name, list(classes)))
    if _is_identifier(len(classes), n_rows):
        raise ValueError(
            f"Variable {name!r} has {len(classes)} classes in {n_rows} rows, like an identifier: coarsen it, "
            f'leave it out, or, if it is a number, set `kinds={{{name!r}: "continuous"}}`.'
        )
    sizes = np.bincount(codes, minlength=len(classes))
    lonely = [classes[code] for code in np.flatnonzero(sizes == 1)]
    if lonely:
        shown = ", ".join(map(repr, lonely[:5])) + (", ..." if len(lonely) > 5 else "")
        warnings.warn(
            f"Variable {name!r} has a class with one member ({shown}): no model that values that row has "
            "seen the class; merge it with another to value it better.",
            UserWarning,
            stacklevel=5,
        )
    return Variable(name, "classes", codes, classes, excluded, sees_target)


def _is_identifier(n_classes: int, n_rows: int) -> bool:
    """Tell a class per row, or nearly so, from classes that rows share."""
    return n_classes > 2 and (n_classes == n_rows or n_classes > max(10, n_rows // 2))


def _one_class(name: str, values: list[Any]) -> str:
    shown = f" ({values[0]!r})" if values else ""
    what = "`y`" if name == TARGET else f"Protected attribute {name!r}"
    return (
        f"{what} has only one class{shown}: there is nothing to tell apart; leave it out or check the data."
    )
