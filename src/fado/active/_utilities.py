"""What the rows of a pool are worth to a model that has not seen their labels."""

from __future__ import annotations

from collections.abc import Sized
from typing import Any

import numpy as np
import numpy.typing as npt

from fado._checks import check_instance
from fado.tabular import Table
from fado.utility import LinearUtility
from fado.valuation import Valuation

__all__ = ["DEFAULT_ALPHA", "is_table_like", "pool_utilities", "read_pool", "value_pool"]

FloatArray = npt.NDArray[np.float64]

DEFAULT_ALPHA = 0.75  # of the utility where none is chosen and there are protected attributes


def read_pool(X: Any, argument: str) -> Table:
    """Read the shape of a pool, which must have rows."""
    table = Table.from_input(X)
    if not table.n_rows:
        raise ValueError(f"`{argument}` has no rows: there is nothing to choose from.")
    return table


def is_table_like(value: Any) -> bool:
    """Tell whether this may hold rows: it has a length or a shape, or is a lazy table."""
    has_rows = isinstance(value, Sized) or hasattr(value, "shape") or hasattr(value, "collect")
    return has_rows and not isinstance(value, type | str)


def value_pool(valuator: Any, X: Any) -> Any:
    """Have a valuator value rows that it was not fitted on; their own groups change no value."""
    if isinstance(valuator, type) or not callable(getattr(valuator, "value", None)):
        raise TypeError(
            "`valuator` must have a method `value` for rows that it has not seen, like "
            f"OutOfBagEntropy(keep_models=True).fit(X, y), got {valuator!r}."
        )
    return valuator.value(X)


def pool_utilities(valuation: Any, utility: Any, *, epistemic: bool = False) -> FloatArray:
    """Give the utility of every row, NaN where it has none.

    Parameters
    ----------
    valuation : Valuation
        The rows' values.
    utility : utility or None
        None is ``LinearUtility(0.75)``; where there is no protected attribute, the value for the target.
    epistemic : bool
        Whether to take the part of the values that more labels would take away.

    Examples
    --------
    >>> valuation = Valuation.from_probabilities([0.5, 1.0], {"sex": [0.5, 0.5]})
    >>> pool_utilities(valuation, None)
    array([1.  , 0.25])
    """
    check_instance("utility", utility)
    if utility is not None and not callable(utility):
        raise TypeError(
            "`utility` must be a utility like LinearUtility(alpha=0.75), or another function of a valuation, "
            f"got {utility!r}."
        )
    if np.isnan(valuation["y"]).all():  # nothing has been learnt yet
        return np.full(len(valuation), np.nan)
    if utility is None:
        utility = LinearUtility(DEFAULT_ALPHA if valuation.protected else 1.0)
    utilities = np.asarray(utility(_epistemic(valuation) if epistemic else valuation), dtype=np.float64)
    if utilities.shape != (len(valuation),):
        raise ValueError(
            f"`utility` gave numbers of shape {utilities.shape} for {len(valuation)} rows: it must give one "
            "per row."
        )
    return np.where(np.isfinite(utilities), utilities, np.nan)


def _epistemic(valuation: Any) -> Valuation:
    """Give the epistemic parts as values."""
    parts = {name: valuation.field("epistemic", name) for name in valuation.variables}
    if not np.nan_to_num(parts["y"]).any():
        raise ValueError(
            "`epistemic=True` needs what several models say of a row, and the valuator keeps one of each "
            "variable: use OutOfBagEntropy, or `epistemic=False`."
        )
    return Valuation(parts, scales=valuation.scales)
