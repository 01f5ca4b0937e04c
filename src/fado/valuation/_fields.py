"""What the fields of a valuation are, and what they may hold."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from fado._records import shorten
from fado.tabular import Column, attribute_columns, one_column, read_rows
from fado.valuation._scale import EFFECT, Scale

__all__ = ["FIELDS", "check_fields", "check_probabilities", "places_of", "read_values"]

FIELDS = ("values", "standard_error", "counts", "agreement", "epistemic")

Numbers = npt.NDArray[Any]

_SLACK = 1e-9  # means of numbers in [0, 1] may be off by a rounding error
_OFF = 1e-6  # by which the sum of probabilities of another's model may be off
_MOST_FITS = 2**31 - 1
_ENDS = {"standard_error": (0.0, None), "agreement": (0.0, 1.0), "epistemic": (0.0, 1.0)}
_CALLED = {
    "standard_error": "standard errors",
    "agreement": "agreements",
    "epistemic": "epistemic parts of entropies",
}


def read_values(
    values: Any, scales: Mapping[str, Scale]
) -> tuple[dict[str, npt.NDArray[np.float64]], dict[str, Scale], Any]:
    """Read values that were made elsewhere: the arrays by variable, their scales, and the rows' labels."""
    index = getattr(values, "index", None) if hasattr(values, "iloc") else None
    if not isinstance(values, Mapping):
        values = {column.name: column for column in attribute_columns(values)}
    if "y" not in values:
        raise ValueError(f"`values` must hold the values for 'y', the target, got {list(values)}.")
    if index is None and hasattr(values["y"], "iloc"):
        index = values["y"].index
    arrays = {str(name): _as_values(str(name), values[name]) for name in values}
    told = {str(name): scale for name, scale in scales.items()}
    unknown = [name for name in told if name not in arrays]
    if unknown:
        raise ValueError(f"`scales` names {unknown[0]!r}, which `values` does not hold.")
    ordered = {"y": arrays.pop("y"), **arrays}
    for name, array in ordered.items():
        if len(array) != len(ordered["y"]):
            raise ValueError(
                f"`values` of 'y' have {len(ordered['y'])} rows and those of {name!r} have {len(array)}."
            )
    return ordered, {name: told.get(name, EFFECT) for name in ordered}, index


def _as_values(name: str, given: Any) -> npt.NDArray[np.float64]:
    column = given if isinstance(given, Column) else one_column(given, f"values[{name!r}]")
    if column.levels is not None:
        raise TypeError(
            f"`values` of {name!r} must be numbers, got text or categories: convert them, for example with "
            "`astype(float)`."
        )
    array = column.numbers()
    if np.isinf(array).any():
        raise ValueError(f"`values` of {name!r} must be finite, or NaN where a row has none.")
    return array


def places_of(rows: Any, n_rows: int) -> npt.NDArray[np.int64]:
    """Give rows by their positions, negative ones counted from the end as Python does."""
    if isinstance(rows, slice):
        return np.arange(n_rows)[rows]
    given = np.atleast_1d(np.asarray(rows))
    if given.dtype.kind == "i":
        given = np.where(given < 0, given + n_rows, given)
    try:
        return read_rows(given, n_rows, "`rows`")
    except (TypeError, ValueError) as error:
        raise IndexError(str(error)) from None  # as Python's own sequences do


def check_fields(
    fields: Mapping[str, Mapping[str, Numbers]],
    scales: Mapping[str, Scale],
    name_of: Callable[[str, str], str],
    first: int = 0,
) -> None:
    """Refuse numbers that no valuator can have given, naming column, row and number.

    Parameters
    ----------
    fields : mapping
        Per field and variable, one number per row.
    scales : mapping of str to Scale
        Between which ends each variable's values lie.
    name_of : callable
        Gives what the column of a field and a variable is called.
    first : int
        Place of the first row, for messages.

    Examples
    --------
    >>> unit = Scale("how unsure", 0.0, 1.0, None)
    >>> check_fields({"values": {"y": np.array([0.5, 5.0])}}, {"y": unit}, lambda field, variable: variable)
    Traceback (most recent call last):
        ...
    ValueError: column 'y' holds 5.0 in row 1 (the first is 0), but these values lie in [0, 1].
    """
    for field, arrays in fields.items():
        for variable, numbers in arrays.items():
            wrong, rule = _validation(field, numbers, scales[variable])
            if field == "values" and "counts" in fields and not wrong.any():
                wrong = np.isnan(numbers) & (fields["counts"][variable] > 0)
                rule = "a row that fits have scored has a value"
            if wrong.any():
                row = int(np.argmax(wrong))
                name = shorten(name_of(field, variable))
                raise ValueError(
                    f"column {name} holds {numbers[row]} in row {first + row} (the first is 0), but {rule}."
                )


def check_probabilities(name: str, probabilities: Numbers) -> None:
    """Refuse numbers that are no probabilities, naming column, row and number.

    Parameters
    ----------
    name : str
        What the column is called.
    probabilities : ndarray of shape (n, K) or (n, K, G)
        They sum to 1 over the last axis; all of a row may be NaN.

    Examples
    --------
    >>> check_probabilities("p", np.array([[0.5, 0.5], [0.5, 0.75]]))
    Traceback (most recent call last):
        ...
    ValueError: column 'p' holds [0.5, 0.75] in row 1 (the first is 0), but probabilities sum to 1.
    """
    by_row = probabilities.reshape(len(probabilities), -1)
    unknown = np.isnan(by_row)
    sums = probabilities.sum(axis=-1).reshape(len(probabilities), -1)
    rules = {
        "probabilities lie in [0, 1]": ((by_row < -_SLACK) | (by_row > 1 + _SLACK)).any(axis=1),
        "all or none of a row's probabilities are NaN": unknown.any(axis=1) & ~unknown.all(axis=1),
        "probabilities sum to 1": (np.abs(sums - 1) > _OFF).any(axis=1),
    }
    for rule, wrong in rules.items():
        if wrong.any():
            row = int(np.argmax(wrong))
            held = shorten(probabilities[row].tolist())
            raise ValueError(
                f"column {shorten(name)} holds {held} in row {row} (the first is 0), but {rule}."
            )


def _validation(field: str, numbers: Numbers, scale: Scale) -> tuple[npt.NDArray[np.bool_], str]:
    """Tell which numbers break the rule of their field, and the rule."""
    if field == "counts":
        whole = (numbers >= 0) & (numbers <= _MOST_FITS) & (numbers == np.floor(numbers))
        return ~whole, "counts are whole numbers from 0 on"
    low, high = _ENDS.get(field, (scale.low, scale.high))
    what = _CALLED.get(field, "these values")
    wrong = np.isinf(numbers)
    if low is not None:
        wrong |= numbers < low - _SLACK
    if high is not None:
        wrong |= numbers > high + _SLACK
    left = "(-inf" if low is None else f"[{low:g}"
    right = "inf)" if high is None else f"{high:g}]"
    return wrong, f"{what} lie in {left}, {right}"
