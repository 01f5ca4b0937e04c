"""The scale and the provenance of values, and the numbers that each field may hold."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from fado._records import encode, shorten

NEW_ROWS = ", new rows"  # ends the algorithm of values whose models have not learnt from the rows
FIELDS = ("values", "standard_error", "counts", "label_probability", "epistemic")

_SLACK = 1e-9  # means of numbers in [0, 1] may be off by a rounding error
_OFF = 1e-6  # by which the sum of probabilities of another's model may be off
_MOST_FITS = 2**31 - 1
_RULES = {
    "standard_error": ("standard errors", 0.0, None),
    "label_probability": ("label probabilities", 0.0, 1.0),
    "epistemic": ("epistemic parts of entropies", 0.0, 1.0),
}


@dataclass(frozen=True)
class Scale:
    """The scale of a column of values; a higher value always means that the row is worth more.

    Parameters
    ----------
    meaning : str
        What a value means, in a few words.
    low, high : float or None
        The lowest and the highest possible value; None, the default, if there is no bound.
    neutral : float or None
        The value of a row that neither helps nor harms, by default 0; None if there is no such value.

    See Also
    --------
    fado.Valuation : Has a scale for each of its variables.
    """

    meaning: str
    low: float | None = None
    high: float | None = None
    neutral: float | None = 0.0

    @property
    def is_unit(self) -> bool:
        """Whether the bounds are 0 and 1, so that values can be combined without rescaling."""
        return (self.low, self.high) == (0.0, 1.0)

    @property
    def is_signed(self) -> bool:
        """Whether values may be negative."""
        return self.low is None or self.low < 0


ENTROPY = Scale("entropy of the predicted classes: how uncertain models are", 0.0, 1.0, None)
CLOSENESS = Scale("closeness of the prediction to the mean: how little models know", 0.0, 1.0, None)
EFFECT = Scale("effect of the row's weight on a metric, in the metric's own unit")


@dataclass(frozen=True)
class VariableNote:
    """The kind and the classes of a variable.

    Parameters
    ----------
    kind : str
        ``"classes"`` or ``"continuous"``.
    classes : tuple, optional
        Its classes, if they are known.

    See Also
    --------
    fado.valuation.Provenance : Holds one note per variable.
    """

    kind: str
    classes: tuple[str | bool | int | float, ...] | None = None


@dataclass(frozen=True)
class SplitGains:
    """What the models gained by splitting on each column, per variable.

    Parameters
    ----------
    columns : tuple of str
        The names of the features.
    shares : mapping of str to tuple of float
        Per variable, the share of each feature in the gain of all splits and, last, the share of the target.

    See Also
    --------
    fado.valuation.Provenance : Holds the gains.
    """

    columns: tuple[str, ...]
    shares: Mapping[str, tuple[float, ...]]


@dataclass(frozen=True)
class TargetNote:
    """The target of the values in a file.

    Parameters
    ----------
    target : str
        The name of its column.
    digest : str
        A digest of its labels.

    See Also
    --------
    fado.valuation.Provenance : Holds the note.
    """

    target: str
    digest: str


@dataclass(frozen=True)
class Provenance:
    """How values were computed.

    Parameters
    ----------
    algorithm : str
        Such as "out-of-bag", "in-bag", "influence", "probabilities" or "given". If the models did not learn
        from these rows, ", new rows" follows.
    settings : mapping
        The settings of the valuator that affect values, such as ``n_bags``: plain data by name.
    seed : int, optional
        The seed. Passed as `random_state`, it gives the same values again.
    estimators : tuple of str, optional
        The `repr` of each model.
    variables : mapping of str to VariableNote
        The kind and the classes of each variable.
    excluded_columns : mapping of str to tuple of str, optional
        Per protected attribute, the features that were hidden from its models.
    versions : mapping of str to str
        The versions of the libraries that affect values.
    largest_error : mapping of str to float, optional
        For each continuous variable, the largest mean error of a row, in the variable's own unit. A row's
        mean error is ``(1 - label_probability) * largest_error``.
    split_gains : SplitGains, optional
        What the models gained by splitting on each column.
    trees, learning_rates : mapping, optional
        Per variable, how many trees the default models had, and their learning rate.
    target_pattern : str, optional
        A digest of which rows share a label of the target, which detects a mismatch of rows.
    made_for : TargetNote, optional
        The target of the values in a file.
    names_given : bool, default=True
        Whether protected attributes have names, by which they are compared with those of other rows. If not,
        they are called "z", or "z0", "z1", ....
    unknown : tuple of str, optional
        The values of protected attributes that were read as missing.

    See Also
    --------
    fado.Valuation : Has the provenance of its values.
    """

    algorithm: str = "given"
    settings: Mapping[str, Any] = field(default_factory=dict)
    seed: int | None = None
    estimators: tuple[str, ...] | None = None
    variables: Mapping[str, VariableNote] = field(default_factory=dict)
    excluded_columns: Mapping[str, tuple[str, ...]] | None = None
    versions: Mapping[str, str] = field(default_factory=dict)
    largest_error: Mapping[str, float] | None = None
    split_gains: SplitGains | None = None
    trees: Mapping[str, int] | None = None
    learning_rates: Mapping[str, float] | None = None
    target_pattern: str | None = None
    made_for: TargetNote | None = None
    names_given: bool = True
    unknown: tuple[str, ...] | None = None

    def kind_of(self, variable: str) -> str:
        """Return the kind of a variable, "classes" or "continuous"; empty if it is not known."""
        note = self.variables.get(variable)
        return "" if note is None else note.kind

    def to_dict(self) -> dict[str, Any]:
        """Return plain data that JSON can hold; unknown entries are left out."""
        return {"algorithm": self.algorithm, **self.settings, **encode(replace(self, settings={}))}


def of_new_rows(provenance: Provenance, *, y_given: bool) -> Provenance:
    """Return the provenance of values of rows that the models have not learnt from."""
    settings = {**provenance.settings, "y_given": y_given}
    return replace(provenance, algorithm=provenance.algorithm + NEW_ROWS, settings=settings)


def check_field(
    field: str, numbers: npt.NDArray[Any], scale: Scale, name: str, first: int = 0, counts: Any = None
) -> None:
    """Raise an error for numbers that no valuator can have returned, naming column, row and number.

    Examples
    --------
    >>> check_field("values", np.array([0.5, 5.0]), ENTROPY, "y")
    Traceback (most recent call last):
        ...
    ValueError: column 'y' holds 5.0 in row 1 (the first is 0), but these values lie in [0, 1].
    """
    if field == "counts":
        wrong = ~((numbers >= 0) & (numbers <= _MOST_FITS) & (numbers == np.floor(numbers)))
        rule = "counts are whole numbers from 0 on"
    else:
        what, low, high = _RULES.get(field, ("these values", scale.low, scale.high))
        wrong = np.isinf(numbers)
        if low is not None:
            wrong |= numbers < low - _SLACK
        if high is not None:
            wrong |= numbers > high + _SLACK
        left = "(-inf" if low is None else f"[{low:g}"
        right = "inf)" if high is None else f"{high:g}]"
        rule = f"{what} lie in {left}, {right}"
    if counts is not None and not wrong.any():
        wrong, rule = np.isnan(numbers) & (counts > 0), "a row that fits have scored has a value"
    _refuse(wrong, name, numbers, rule, first)


def check_probabilities(name: str, probabilities: npt.NDArray[Any]) -> None:
    """Raise an error for numbers that do not sum to 1 over the last axis; all of a row may be NaN.

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
        _refuse(wrong, name, probabilities, rule)


def _refuse(
    wrong: npt.NDArray[np.bool_], name: str, numbers: npt.NDArray[Any], rule: str, first: int = 0
) -> None:
    if wrong.any():
        row = int(np.argmax(wrong))
        held = numbers[row] if numbers.ndim == 1 else shorten(numbers[row].tolist())
        raise ValueError(
            f"column {shorten(name)} holds {held} in row {first + row} (the first is 0), but {rule}."
        )
