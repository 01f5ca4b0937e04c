"""The utility of every row, from a valuation that is passed in or made on the way."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import clone

from fado._checks import check_instance
from fado.tabular import Problem
from fado.utility import LinearUtility
from fado.valuation import BaseValuator, OutOfBagEntropy, check_alignment

__all__ = ["checked_utility", "no_utilities", "row_utilities", "utilities_of", "value_rows"]

FloatArray = npt.NDArray[np.float64]


def value_rows(valuator: Any, problem: Problem, given: dict[str, Any], random_state: Any) -> Any:
    """Value the rows of a problem with a clone of a valuator.

    Parameters
    ----------
    valuator : valuator or None
        Any object with `fit` and `valuation_`. None is ``OutOfBagEntropy()``.
    problem : Problem
        The rows; valuators of this package take them from here.
    given : dict
        What the user passed, ``X``, ``y`` and the keywords of `fit`; other valuators are fitted with these.
    random_state : int, RandomState or None
        The seed for a valuator that has none.

    Returns
    -------
    Valuation

    Raises
    ------
    ValueError
        If `given` has a `sample_weight` or `groups` that the valuator's `fit` does not take.
    """
    check_instance("valuator", valuator)
    if valuator is not None and not hasattr(valuator, "fit"):
        raise TypeError(f"`valuator` must be a valuator like OutOfBagEntropy(), got {valuator!r}.")
    valuator = OutOfBagEntropy() if valuator is None else clone(valuator, safe=False)
    parameters = valuator.get_params(deep=False) if hasattr(valuator, "get_params") else {}
    if random_state is not None and parameters.get("random_state", 0) is None:
        valuator.set_params(random_state=random_state)
    if isinstance(valuator, BaseValuator) and type(valuator).fit is BaseValuator.fit:
        return valuator.fit_problem(problem).valuation_
    told = {name: value for name, value in given.items() if value is not None}
    for name in ("sample_weight", "groups"):
        if name in told and not _takes(valuator, name):
            raise ValueError(
                f"{type(valuator).__name__}.fit takes no `{name}`: value the rows before, and pass the "
                "`valuation`, or use a valuator that takes it."
            )
    return valuator.fit(told.pop("X"), told.pop("y"), **told).valuation_


def _takes(valuator: Any, name: str) -> bool:
    """Tell whether a valuator's `fit` takes an argument."""
    taken = inspect.signature(valuator.fit).parameters
    return name in taken or any(own.kind is own.VAR_KEYWORD for own in taken.values())


def row_utilities(utility: Any, valuation: Any, problem: Problem) -> FloatArray:
    """Give the utility of every row.

    Parameters
    ----------
    utility : utility, function of a valuation, or None
        None is ``LinearUtility()``.
    valuation : Valuation
        The values of the problem's rows.
    problem : Problem
        The rows.

    Returns
    -------
    ndarray of shape (n_rows,)

    Raises
    ------
    TypeError
        If `utility` is no function, or `valuation` no valuation.
    ValueError
        If the valuation is of other rows, or a row has no utility.
    """
    utility = checked_utility(utility)
    if not hasattr(valuation, "protected"):
        raise TypeError(
            f"`valuation` must be a Valuation, got {type(valuation).__name__}: pass a valuator's "
            "`valuation_`, or make one with `Valuation.from_probabilities`."
        )
    check_alignment(valuation, problem)
    utilities = utilities_of(utility, valuation, problem.n_rows)
    unknown = np.flatnonzero(~np.isfinite(utilities))
    if len(unknown):
        raise no_utilities(len(unknown), problem.n_rows, int(unknown[0]))
    return utilities


def checked_utility(utility: Any) -> Any:
    """Give the utility, `LinearUtility` if none is chosen; refuse what is none."""
    utility = LinearUtility() if utility is None else utility
    check_instance("utility", utility)
    if not callable(utility):
        raise TypeError(
            f"`utility` must be a utility like LinearUtility(alpha=0.5), or another function of a valuation, "
            f"got {utility!r}."
        )
    return utility


def utilities_of(utility: Any, valuation: Any, n_rows: int) -> FloatArray:
    """Give the utilities of some rows, NaN where a value lacks; there must be one per row."""
    utilities = np.asarray(utility(valuation), dtype=np.float64)
    if utilities.shape != (n_rows,):
        raise ValueError(
            f"`utility` gave numbers of shape {utilities.shape} for {n_rows} rows: it must give one per row."
        )
    return utilities


def no_utilities(n_unknown: int, n_rows: int, first: int) -> ValueError:
    """Make the error of rows that have no utility."""
    return ValueError(
        f"{n_unknown} of {n_rows} rows have no utility, as the valuation holds no value for them (the first "
        f"is row {first}, counted from 0): value these rows or drop them."
    )
