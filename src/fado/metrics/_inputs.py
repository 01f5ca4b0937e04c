"""Labels, predictions and scores of any table library as checked NumPy arrays."""

import inspect
import warnings
from collections.abc import Sized
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import pandas as pd

Bools = NDArray[np.bool_]
Floats = NDArray[np.floating[Any]]
Integers = NDArray[np.int64]

_PACKAGE = str(Path(__file__).parent.parent)


class Target(NamedTuple):
    """The true labels of a binary problem."""

    positive: Bools  # which rows hold the positive label
    pos_label: Any
    neg_label: Any


def as_series(values: Any, name: str) -> "pd.Series[Any]":
    """Return one column of any table library, array or list as a pandas Series.

    The detour through ``to_pandas`` is for missing values: ``numpy.asarray`` of a dictionary-encoded
    Arrow column puts a category in their place, and of ``["a", float("nan")]`` the text ``"nan"``.
    """
    import pandas as pd

    if values is None or isinstance(values, str) or not isinstance(values, Sized):
        raise TypeError(
            f"`{name}` must hold one value per row, got {values!r}; pass an array, list or Series."
        )
    if hasattr(values, "to_pandas"):
        values = values.to_pandas()
    shape = np.shape(values) if hasattr(values, "shape") else (len(values),)
    if len(shape) != 1:
        raise ValueError(f"`{name}` must be one-dimensional, got shape {shape}; pass one column of it.")
    return pd.Series(values)


def check_length(values: Sized, n_rows: int, name: str) -> None:
    """Refuse a column that does not have a value for each row of ``y_true``."""
    if len(values) != n_rows:
        raise ValueError(
            f"`{name}` must have as many rows as `y_true` ({n_rows}), got {len(values)}; pass the same rows."
        )


def encode_target(y_true: Any, pos_label: Any = None) -> Target:
    """Return the rows of ``y_true`` that are positive, and its two labels.

    Without ``pos_label`` the larger of the two labels is the positive one.
    """
    codes, labels = _distinct(y_true, "y_true")
    if len(labels) == 0:
        raise ValueError("`y_true` must have at least one row, got none; pass the labels to judge against.")
    if len(labels) != 2:
        found = ", ".join(map(repr, labels[:5])) + (", ..." if len(labels) > 5 else "")
        raise ValueError(
            f"`y_true` must hold exactly two labels, got {len(labels)} ({found}); "
            "pass rows of both classes of a binary target."
        )
    if pos_label is None:
        try:
            pos_label = max(labels)
        except TypeError:
            raise TypeError(
                f"`y_true` must hold labels that can be sorted, got {labels[0]!r} and {labels[1]!r}; "
                "set `pos_label`."
            ) from None
    if pos_label not in labels:
        raise ValueError(
            f"`pos_label` must be one of the labels {labels[0]!r} and {labels[1]!r}, got {pos_label!r}."
        )
    at = labels.index(pos_label)
    return Target(codes == at, labels[at], labels[1 - at])


def encode_predictions(y_pred: Any, target: Target) -> Bools:
    """Return which rows of ``y_pred`` are predicted positive.

    Predictions are labels of ``y_true`` or say "is positive" by booleans or 0 and 1. Zeros and ones that
    contradict the labels (0 and 1 for labels 1 and 2) are refused: read as labels they would mean the
    opposite.
    """
    codes, values = _distinct(y_pred, "y_pred")
    check_length(codes, len(target.positive), "y_pred")
    labels = [target.neg_label, target.pos_label]
    zero_one = all(value in (0, 1) for value in values)
    booleans = all(isinstance(value, bool) for value in values)
    contradiction = target.neg_label == 1 or target.pos_label == 0
    if all(value in labels for value in values) and (
        not booleans or all(label in (0, 1) for label in labels)
    ):
        positive = [value == target.pos_label for value in values]
    elif booleans or (zero_one and not contradiction):
        positive = [value == 1 for value in values]
    else:
        stranger = next(value for value in values if value not in labels)
        raise ValueError(
            f"`y_pred` must hold the labels of `y_true` ({labels[0]!r}, {labels[1]!r}) or booleans, "
            f"got {stranger!r}; for scores use `fado.metrics.evaluate`."
        )
    return np.array(positive, dtype=np.bool_)[codes]


def as_scores(scores: Any, n_rows: int) -> Floats:
    """Return scores as finite floats, in their own precision so that ties stay ties."""
    if not (isinstance(scores, np.ndarray) and scores.ndim == 1):
        scores = as_series(scores, "scores").to_numpy()
    check_length(scores, n_rows, "scores")
    if scores.dtype not in (np.float16, np.float32, np.float64):
        try:
            scores = scores.astype(np.float64)
        except (TypeError, ValueError):
            raise TypeError(
                f"`scores` must be numbers, got dtype {scores.dtype}; pass probabilities or decision values."
            ) from None
    finite = np.isfinite(scores)
    if not finite.all():
        row = int(np.argmin(finite))
        raise ValueError(f"`scores` must be finite, got {scores[row]} in row {row}; drop or fill such rows.")
    return scores


def check_max_fpr(max_fpr: Any) -> None:
    """Refuse a false-positive budget that is no share strictly between 0 and 1."""
    if not isinstance(max_fpr, int | float | np.floating):
        raise TypeError(f"`max_fpr` must be a number in (0, 1), got {max_fpr!r}.")
    if not 0 < max_fpr < 1:
        raise ValueError(f"`max_fpr` must be in (0, 1), got {max_fpr}.")


def warn_user(message: str, category: type[Warning]) -> None:
    """Warn with the line outside this package that led here."""
    level, frame = 1, inspect.currentframe()
    while frame is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)


def warn_undefined(message: str) -> None:
    """Warn that a metric has no value."""
    from sklearn.exceptions import UndefinedMetricWarning

    warn_user(message, UndefinedMetricWarning)


def _distinct(values: Any, name: str) -> tuple[Integers, list[Any]]:
    """Return per row the position of its value in the list of distinct values."""
    import pandas as pd

    series = as_series(values, name)
    missing = series.isna().to_numpy()
    if missing.any():
        raise ValueError(
            f"`{name}` must hold a label in every row, got a missing value in row {int(np.argmax(missing))}; "
            "drop such rows."
        )
    try:
        codes, distinct = pd.factorize(series)
    except TypeError:
        raise TypeError(f"`{name}` must hold one plain label per row, got {series.iloc[0]!r}.") from None
    labels = distinct.tolist()
    for label in labels:
        if isinstance(label, float) and not np.isfinite(label):
            raise ValueError(f"`{name}` must hold finite labels, got {label}; drop such rows.")
    return codes.astype(np.int64, copy=False), labels
