"""From protected attributes to one group per row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fado._frames import Column, Table
from fado._variables import MISSING, MOST_NUMERIC_CLASSES, encoded, plain_label, protected_columns
from fado.metrics._inputs import warn_user

__all__ = ["Groups", "groups_of"]

Codes = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Groups:
    """The groups: per row the position of its group's name. Every group has rows."""

    codes: Codes
    names: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.names)


def groups_of(sensitive_features: Any, table: Table) -> Groups:
    """Give every row its group: the combination of its protected attributes.

    Missing values are a group of their own, with a warning. Without attributes all rows are one group.
    """
    columns = [column for column, _ in protected_columns(sensitive_features, table)]
    codes = np.zeros(table.n_rows, dtype=np.int64)
    names = ["all rows"]
    for number, column in enumerate(columns):
        here, levels = _levels(column)
        if len(columns) > 1:
            levels = [f"{column.name}={level}" for level in levels]
        combined, codes = np.unique(codes * len(levels) + here, return_inverse=True)
        names = [
            f"{names[code // len(levels)]}, {levels[code % len(levels)]}" if number else levels[code]
            for code in combined
        ]
    return Groups(codes, tuple(names))


def _levels(column: Column) -> tuple[Codes, list[str]]:
    """Encode one attribute, missing values as the last level."""
    codes, distinct = encoded(column)
    if column.levels is None and len(distinct) > MOST_NUMERIC_CLASSES:
        raise ValueError(
            f"Protected attribute {column.name!r} has {len(distinct)} different numbers, too many for "
            "groups: cut it into a few, for example by `age >= 50`."
        )
    levels = [repr(plain_label(value, column)) for value in distinct]
    missing = codes < 0
    if missing.any():
        warn_user(
            f"Protected attribute {column.name!r} is missing in {missing.sum()} of {len(codes)} rows: they "
            f"are a group of their own, {MISSING!r}.",
            UserWarning,
        )
        levels.append(MISSING)
    return np.where(missing, len(levels) - 1, codes).astype(np.int64), levels
