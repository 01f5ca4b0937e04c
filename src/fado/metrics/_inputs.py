"""Labels, predictions, scores, weights and groups as checked NumPy arrays.

`fado.tabular` reads what the user passes; this module checks what the metrics need. That package is imported
inside functions: the rest, such as a Pareto frontier, needs neither Arrow nor pandas.
"""

from __future__ import annotations

from collections.abc import Sequence, Sized
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fado._messages import COMPARE_TARGET, warn_user
from fado._typing import Bools, Floats

if TYPE_CHECKING:
    from fado.tabular import Groups, Labels, Variable


MIN_GROUP_SIZE = 30  # as `fado.tabular` has it


def encode_target(y_true: Any, pos_label: Any = None) -> Labels:
    """Read ``y_true``, which has two labels; the larger is positive by default."""
    from fado.tabular import Labels, positive_code

    codes, labels = _encode_labels(y_true, "y_true")
    if len(labels) == 0:
        raise ValueError("`y_true` must have at least one row, got none; pass the labels to measure against.")
    if len(labels) != 2:
        shown = ", ".join(map(repr, labels[:5])) + (", ..." if len(labels) > 5 else "")
        fix = COMPARE_TARGET if len(labels) > 2 else "pass rows of both classes of a binary target"
        raise ValueError(f"`y_true` must hold exactly two labels, got {len(labels)} ({shown}); {fix}.")
    return Labels(codes, tuple(labels), positive_code(labels, pos_label))


def encode_predictions(y_pred: Any, target: Labels) -> Bools:
    """Return which rows of ``y_pred`` are predicted positive.

    Predictions are labels of ``y_true`` or say "is positive" by booleans or 0 and 1. Zeros and ones that
    contradict the labels (0 and 1 for labels 1 and 2) are refused: read as labels they would mean the
    opposite.
    """
    codes, values = _encode_labels(y_pred, "y_pred")
    _check_length(codes, len(target.codes), "y_pred")
    labels = negative, positive = target.pair
    zero_one = all(value in (0, 1) for value in values)
    booleans = all(isinstance(value, bool) for value in values)
    contradiction = negative == 1 or positive == 0
    if all(value in labels for value in values) and (
        not booleans or all(label in (0, 1) for label in labels)
    ):
        are_positive = [value == positive for value in values]
    elif booleans or (zero_one and not contradiction):
        are_positive = [value == 1 for value in values]
    else:
        stranger = next(value for value in values if value not in labels)
        raise ValueError(
            f"`y_pred` must hold the labels of `y_true` ({negative!r}, {positive!r}) or booleans, "
            f"got {stranger!r}; for scores use `fado.metrics.evaluate`."
        )
    return np.array(are_positive, dtype=np.bool_)[codes]


def as_scores(scores: Any, n_rows: int) -> Floats:
    """Return scores as finite floats, in their own precision so that ties stay ties."""
    from fado.tabular import one_column

    column = one_column(scores, "scores")
    _check_length(column, n_rows, "scores")
    if column.levels is not None and column.labels is None:
        raise TypeError("`scores` must be numbers, got text; pass probabilities or decision values.")
    numbers = column.numbers()
    if column.labels is not None:  # a categorical of numbers
        numbers = np.append(np.array(column.labels, dtype=np.float64), np.nan)[column.codes()]
    finite = np.isfinite(numbers)
    if not finite.all():
        first = numbers[np.argmin(finite)]
        raise ValueError(
            f"`scores` must be finite, got {first} in {_first_of(~finite)}; drop or fill such rows."
        )
    precision = str(getattr(scores, "dtype", getattr(scores, "type", ""))).lower()
    if precision.startswith(("float16", "halffloat", ">f2")):  # Arrow computes with no numbers so short
        return numbers.astype(np.float16, copy=False)
    return numbers.astype(np.float32 if str(column.data.type) == "float" else np.float64, copy=False)


def read_scored(
    y_true: Any,
    scores: Any,
    pos_label: Any,
    sample_weight: Any,
    threshold: float | None = None,
    budget: Any = None,
) -> tuple[Bools, Floats, Floats | None, float | None]:
    """Return labels, scores and weights of the same rows, and the threshold if there is one.

    That of decisions of 0 and 1, which are used as they are, is 1.
    """
    from fado.tabular import weights_of

    positive = encode_target(y_true, pos_label).is_positive
    scores = as_scores(scores, len(positive))
    if threshold is None and budget is None and ((scores == 0) | (scores == 1)).all():
        threshold = 1.0 if scores.min() < scores.max() else None
    return positive, scores, weights_of(sample_weight, len(positive)), threshold


def check_between(name: str, value: Any) -> None:
    """Refuse a setting that is not strictly between 0 and 1."""
    if not isinstance(value, int | float | np.floating):
        raise TypeError(f"`{name}` must be a number in (0, 1), got {value!r}.")
    if not 0 < value < 1:
        raise ValueError(f"`{name}` must be in (0, 1), got {value}.")


def warn_undefined(message: str) -> None:
    """Warn that a metric has no value."""
    from sklearn.exceptions import UndefinedMetricWarning

    warn_user(message, UndefinedMetricWarning)


def rows_of_weight(
    weights: Floats | None, positive: Bools, *columns: NDArray[Any], by_label: bool = True
) -> tuple[Any, ...]:
    """Leave out rows of weight 0, and the weights if all others are equal.

    This changes no share of weight, and equal weights give the same bits as no weights. Rates of one label's
    rows (`by_label`) need rows of each label with a weight above 0.
    """
    if weights is None:
        return None, positive, *columns
    rows = weights > 0
    for label, name in ((positive, "positive"), (~positive, "negative")):
        if by_label and not (rows & label).any():
            raise ValueError(
                f"`sample_weight` must be above zero in some row of each label, got zero in every {name} "
                "row; pass rows of both classes with weights above 0."
            )
    if not rows.all():
        weights, positive, columns = weights[rows], positive[rows], tuple(column[rows] for column in columns)
    if (weights == weights[0]).all():
        return None, positive, *columns
    return weights, positive, *columns


def read_groups(sensitive_features: Any, n_rows: int, unknown: Any = None) -> Groups:
    """Return the group of each row: of several attributes, the combinations that occur.

    Levels are numbered as rows show them, so that a group keeps its place whatever it is called.
    """
    from fado.tabular import group_rows

    return group_rows(read_variables(sensitive_features, n_rows, unknown), appearance=True)


def read_variables(sensitive_features: Any, n_rows: int, unknown: Any = None) -> list[Variable]:
    """Read protected attributes, with a warning where they are unknown."""
    from fado.tabular import attribute_columns, variable_from, warn_of_unknown

    columns = attribute_columns(sensitive_features, unknown)
    if not columns:
        raise ValueError(
            "`sensitive_features` must have at least one column, got none; pass a protected attribute."
        )
    for column in columns:
        _check_length(column, n_rows, "sensitive_features")
    variables = [variable_from(column) for column in columns]
    warn_of_unknown(variables)
    return variables


def compared_groups(groups: Groups, min_group_size: int, *, warn: bool = True) -> Bools:
    """Return which groups ratios compare, with one warning that names small ones."""
    from fado.tabular import check_min_group_size

    check_min_group_size(min_group_size)
    if warn and (sentence := groups.tell_small("left out of ratios", min_group_size)):
        warn_user(f"{sentence}; `min_group_size=0` compares all groups.")
    return groups.compared(min_group_size)


def _encode_labels(values: Any, name: str) -> tuple[NDArray[np.int32], Sequence[Any]]:
    """Return per row the position of its label among the sorted labels."""
    from fado.tabular import one_column

    column = one_column(values, name)
    codes, entries = column.encode()
    refuse_missing(codes, f"`{name}` must hold a label")
    labels = [column.label_of(entry) for entry in entries]
    for label in labels:
        if isinstance(label, float) and not np.isfinite(label):
            raise ValueError(f"`{name}` must hold finite labels, got {label}; drop such rows.")
    return codes, labels


def refuse_missing(codes: NDArray[np.int32], rule: str) -> None:
    """Refuse codes of missing entries, -1, which as positions would mean the last entry."""
    if (codes < 0).any():
        where = _first_of(codes < 0)
        raise ValueError(f"{rule} in every row, got a missing value in {where}; drop such rows.")


def _first_of(rows: Bools) -> str:
    """Name the first of some rows, and their number."""
    count = int(rows.sum())
    return f"row {int(np.argmax(rows))}" + (f", the first of {count:,}" if count > 1 else "")


def _check_length(values: Sized, n_rows: int, name: str) -> None:
    """Refuse a column that does not have a value for each row of ``y_true``."""
    if len(values) != n_rows:
        raise ValueError(
            f"`{name}` must have as many rows as `y_true` ({n_rows}), got {len(values)}; pass the same rows."
        )
