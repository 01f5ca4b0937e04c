"""What every intervention reads first: the shape of the features, and the labels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from sklearn.utils.multiclass import check_classification_targets

from fado._frames import Column, Table, is_frame
from fado._variables import encoded, plain_label, target_column

__all__ = ["Labels", "labels_of", "read_features"]


@dataclass(frozen=True)
class Labels:
    """The target: per row the position of its label in `classes`."""

    codes: npt.NDArray[np.int32]
    classes: tuple[Any, ...]


def read_features(estimator: Any, X: Any, sensitive_features: Any) -> Table:
    """Read the shape of the features, and of their columns only protected attributes given by name.

    What the other columns hold does not matter to an intervention: dates, lists, anything.
    """
    table = Table.from_input(X, only=_names(sensitive_features))
    if table.n_rows == 0:
        raise ValueError("`X` has 0 row(s) (n_samples = 0); at least 1 is needed.")
    if table.n_columns == 0:
        raise ValueError(
            f"`X` has 0 feature(s) (shape=({table.n_rows}, 0)) while a minimum of 1 is required."
        )
    _note_features(estimator, X, table)
    return table


def _note_features(estimator: Any, X: Any, table: Table) -> None:
    """Note number and names as scikit-learn does, which itself refuses two columns of one name."""
    estimator.n_features_in_ = table.n_columns
    names = table.names if isinstance(X, pa.Table) else list(X.columns) if is_frame(X) else []
    if names and all(isinstance(name, str) for name in names):
        estimator.feature_names_in_ = np.array(names, dtype=object)
    elif hasattr(estimator, "feature_names_in_"):
        del estimator.feature_names_in_


def _names(sensitive_features: Any) -> set[str]:
    if isinstance(sensitive_features, str):
        return {sensitive_features}
    if isinstance(sensitive_features, list | tuple):
        return {name for name in sensitive_features if isinstance(name, str)}
    return set()


def _check_whole(column: Column) -> None:
    try:
        check_classification_targets(column.numbers())
    except ValueError as error:
        raise ValueError(
            f"`y` is continuous, and this needs classes: compare it, for example `y > threshold`. ({error})"
        ) from error


def labels_of(y: Any, n_rows: int) -> Labels:
    """Read a target of classes."""
    column = target_column(y, n_rows)
    codes, distinct = encoded(column)
    if column.levels is None and len(distinct) > 2:
        _check_whole(column)  # two labels may be any numbers, more must be whole
    return Labels(codes, tuple(plain_label(value, column) for value in distinct))
