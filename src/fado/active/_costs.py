"""What rows cost, and what a batch may hold."""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np
import numpy.typing as npt

from fado._checks import MOST_ROWS, check_count
from fado._messages import warn_user
from fado.tabular import one_column

__all__ = ["batch_size", "read_costs", "score_rows"]

FloatArray = npt.NDArray[np.float64]


def read_costs(cost: Any, n_rows: int) -> FloatArray | None:
    """Read what the rows cost."""
    if cost is None:
        return None
    column = one_column(cost, "cost")
    if column.levels is not None:
        raise ValueError("`cost` must hold numbers, got text.")
    costs = column.numbers()
    if len(costs) != n_rows:
        raise ValueError(f"`cost` has {len(costs)} entries and the pool has {n_rows} rows: pass one per row.")
    wrong = np.flatnonzero(~(np.isfinite(costs) & (costs > 0)))
    if len(wrong):
        raise ValueError(
            f"`cost` must be a positive number in every row, got {costs[wrong[0]]:g} in row {wrong[0]}, "
            "counted from 0."
        )
    return costs


def batch_size(n: Any, budget: Any, costs: FloatArray | None, n_rows: int) -> float:
    """Give what the batch may hold: a number of rows, or what they cost."""
    if (n is None) == (budget is None):
        raise ValueError("Say how many rows to choose by `n`, or what they may cost by `budget`.")
    if n is not None:
        n = check_count("n", n, 1, MOST_ROWS)
        if n > n_rows:
            warn_user(f"`n={n}` is more than the {n_rows} rows of the pool: all of them are chosen.")
        return float(min(n, n_rows))
    if costs is None:
        raise ValueError("`budget` is for rows that have a `cost`: pass it, or say how many rows by `n`.")
    if isinstance(budget, bool) or not isinstance(budget, Real):
        raise TypeError(f"`budget` must be a number, got {budget!r}.")
    spent = float(budget)
    if not 0 < spent < np.inf:
        raise ValueError(f"`budget` must be positive and finite, got {budget}.")
    if costs.min() > spent:
        raise ValueError(f"`budget={spent:g}` is less than {costs.min():g}, what the cheapest row costs.")
    return spent


def score_rows(utilities: FloatArray, costs: FloatArray | None) -> FloatArray:
    """Give what rows are ordered by: utility, or utility per cost; those without come last."""
    if costs is not None:  # which counts against a row whatever the sign of its utility
        utilities = np.where(utilities > 0, utilities / costs, utilities * costs)
    return np.where(np.isnan(utilities), -np.inf, utilities)
