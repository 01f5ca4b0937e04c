"""The utility of every row, from a valuation that is passed in or made on the way."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import clone

from fado.utility import LinearUtility
from fado.valuation import OutOfBagEntropy
from fado.valuation._alignment import warn_of_other_rows

__all__ = ["row_utilities", "valued"]

FloatArray = npt.NDArray[np.float64]


def valued(valuator: Any, X: Any, y: Any, sensitive_features: Any, random_state: Any = None) -> Any:
    """Value the rows with a clone of the valuator, `OutOfBagEntropy` if there is none.

    A valuator without a seed of its own uses `random_state`.
    """
    valuator = OutOfBagEntropy() if valuator is None else clone(valuator)
    if random_state is not None and valuator.get_params(deep=False).get("random_state", 0) is None:
        valuator.set_params(random_state=random_state)
    return valuator.fit(X, y, sensitive_features=sensitive_features).valuation_


def row_utilities(utility: Any, valuation: Any, y: Any, n_rows: int) -> FloatArray:
    """Give the utility of every row, `LinearUtility` if none is chosen; every row must have one."""
    utility = LinearUtility() if utility is None else utility
    if not callable(utility):
        raise TypeError(
            f"`utility` must be a utility like LinearUtility(alpha=0.5), or another function of a valuation, "
            f"got {utility!r}."
        )
    if not hasattr(valuation, "protected"):
        raise TypeError(
            f"`valuation` must be a Valuation, got {type(valuation).__name__}: pass a valuator's "
            "`valuation_`, or make one with `Valuation.from_probabilities`."
        )
    utilities = np.asarray(utility(valuation), dtype=np.float64)
    if utilities.shape != (n_rows,):
        raise ValueError(
            f"`valuation` has {len(utilities)} rows and X has {n_rows}: pass the valuation of the same rows."
        )
    warn_of_other_rows(valuation, y)
    unknown = np.flatnonzero(~np.isfinite(utilities))
    if len(unknown):
        raise ValueError(
            f"{len(unknown)} of {n_rows} rows have no utility, as the valuation holds no value for them (the "
            f"first is row {unknown[0]}, counted from 0): value these rows or drop them."
        )
    return utilities
