"""Labels, predictions and scores as checked NumPy arrays.

What a user hands over is read by `fado.tabular`; here it is held to what the metrics need. That package is
imported by the functions that need it: the rest, such as a Pareto frontier, does without Arrow and pandas.
"""

from __future__ import annotations

from collections.abc import Sequence, Sized
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fado._messages import warn_user

Bools = NDArray[np.bool_]
Floats = NDArray[np.floating[Any]]
Integers = NDArray[np.int64]


class Target(NamedTuple):
    """The true labels of a binary problem."""

    positive: Bools  # which rows hold the positive label
    pos_label: Any
    neg_label: Any


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
    from fado.tabular import positive_code

    codes, labels = _encode_labels(y_true, "y_true")
    if len(labels) == 0:
        raise ValueError("`y_true` must have at least one row, got none; pass the labels to measure against.")
    if len(labels) != 2:
        found = ", ".join(map(repr, labels[:5])) + (", ..." if len(labels) > 5 else "")
        raise ValueError(
            f"`y_true` must hold exactly two labels, got {len(labels)} ({found}); "
            "pass rows of both classes of a binary target."
        )
    at = positive_code(labels, pos_label) or 0  # two labels always have a positive one
    return Target(codes == at, labels[at], labels[1 - at])


def encode_predictions(y_pred: Any, target: Target) -> Bools:
    """Return which rows of ``y_pred`` are predicted positive.

    Predictions are labels of ``y_true`` or say "is positive" by booleans or 0 and 1. Zeros and ones that
    contradict the labels (0 and 1 for labels 1 and 2) are refused: read as labels they would mean the
    opposite.
    """
    codes, values = _encode_labels(y_pred, "y_pred")
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
    from fado.tabular import one_column

    column = one_column(scores, "scores")
    check_length(column, n_rows, "scores")
    if column.levels is not None and column.labels is None:
        raise TypeError("`scores` must be numbers, got text; pass probabilities or decision values.")
    numbers = column.numbers()
    if column.labels is not None:  # a categorical of numbers
        numbers = np.append(np.array(column.labels, dtype=np.float64), np.nan)[column.codes()]
    finite = np.isfinite(numbers)
    if not finite.all():
        row = int(np.argmin(finite))
        raise ValueError(f"`scores` must be finite, got {numbers[row]} in row {row}; drop or fill such rows.")
    half = getattr(scores, "dtype", None) == np.float16  # Arrow computes with no numbers so short
    return numbers.astype(np.float16 if half else _precision(str(column.data.type)), copy=False)


def check_max_fpr(max_fpr: Any) -> None:
    """Refuse a false-positive budget that is no share strictly between 0 and 1."""
    if not isinstance(max_fpr, int | float | np.floating):
        raise TypeError(f"`max_fpr` must be a number in (0, 1), got {max_fpr!r}.")
    if not 0 < max_fpr < 1:
        raise ValueError(f"`max_fpr` must be in (0, 1), got {max_fpr}.")


def check_threshold(threshold: Any) -> None:
    """Refuse a threshold that no score can be compared with; None is to be set by the budget."""
    if threshold is None:
        return
    if not isinstance(threshold, int | float | np.number):
        raise TypeError(f"`threshold` must be a number, got {threshold!r}.")
    if np.isnan(threshold):
        raise ValueError("`threshold` must be a number, got nan; pass None to set it by `max_fpr`.")


def check_confidence(confidence: Any) -> None:
    """Refuse a level of confidence that is no share strictly between 0 and 1."""
    if not isinstance(confidence, int | float | np.floating):
        raise TypeError(f"`confidence` must be a number in (0, 1), got {confidence!r}.")
    if not 0 < confidence < 1:
        raise ValueError(f"`confidence` must be in (0, 1), got {confidence}.")


def warn_undefined(message: str) -> None:
    """Warn that a metric has no value."""
    from sklearn.exceptions import UndefinedMetricWarning

    warn_user(message, UndefinedMetricWarning)


def _precision(kind: str) -> type[np.floating[Any]]:
    return np.float32 if kind == "float" else np.float64


def _encode_labels(values: Any, name: str) -> tuple[NDArray[np.int32], Sequence[Any]]:
    """Return per row the position of its label among the sorted labels."""
    from fado.tabular import one_column

    column = one_column(values, name)
    codes, entries = column.encode()
    if (codes < 0).any():
        row = int(np.argmax(codes < 0))
        raise ValueError(
            f"`{name}` must hold a label in every row, got a missing value in row {row}; drop such rows."
        )
    labels = [column.label_of(entry) for entry in entries]
    for label in labels:
        if isinstance(label, float) and not np.isfinite(label):
            raise ValueError(f"`{name}` must hold finite labels, got {label}; drop such rows.")
    return codes, labels
