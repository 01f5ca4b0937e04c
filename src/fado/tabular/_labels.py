"""Labels of classes, and which of them is the positive one: the one rule for all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fado._messages import COMPARE_TARGET
from fado.tabular._columns import Column

__all__ = ["Labels", "is_label", "label_named", "labels_of", "positive_code"]


@dataclass(frozen=True)
class Labels:
    """A target of classes: per row the position of its label in `classes`.

    Parameters
    ----------
    codes : ndarray of int
        The rows' labels, as positions in `classes`.
    classes : tuple
        The labels, sorted.
    positive : int or None
        The position of the positive label; None where there is none.
    """

    codes: npt.NDArray[np.int32]
    classes: tuple[Any, ...]
    positive: int | None = None

    @property
    def is_positive(self) -> npt.NDArray[np.bool_]:
        """Mark the rows of the positive label."""
        return self.codes == self.positive


def labels_of(column: Column, pos_label: Any = None) -> Labels:
    """Read a target of classes; more than two labels must be whole numbers, if they are numbers."""
    codes, entries = column.encode()
    if column.levels is None and len(entries) > 2:
        _check_whole(column)
    classes = tuple(column.label_of(entry) for entry in entries)
    return Labels(codes, classes, positive_code(classes, pos_label))


def positive_code(classes: Sequence[Any], pos_label: Any, argument: str = "pos_label") -> int | None:
    """Find the positive label: the one asked for, or the larger of two; more than two have none.

    Examples
    --------
    >>> positive_code(["no", "yes"], None), positive_code(["no", "yes"], "no"), positive_code([1, 2, 3], None)
    (1, 0, None)
    """
    if pos_label is None:
        return 1 if len(classes) == 2 else None
    if pos_label not in classes:
        shown = " and ".join(map(repr, classes)) if len(classes) <= 2 else ", ".join(map(repr, classes[:8]))
        raise ValueError(f"`{argument}` must be one of the labels {shown}, got {pos_label!r}.")
    return list(classes).index(pos_label)


def label_named(classes: Sequence[Any], text: str, argument: str) -> Any:
    """Find the label that a text, such as one from a command line, stands for: "1" for 1, 1.0 and "1"."""
    for label in classes:
        if is_label(label, text):
            return label
    shown = ", ".join(repr(str(label)) for label in classes[:8]) + (", ..." if len(classes) > 8 else "")
    raise ValueError(f"`{argument} {text}` is not a label of the target; it has {shown}.")


def is_label(label: Any, text: str) -> bool:
    """Tell whether a text stands for a label: "1" for 1, 1.0 and "1"."""
    try:
        return str(label) == text or float(label) == float(text)
    except (TypeError, ValueError):
        return False


def _check_whole(column: Column) -> None:
    from sklearn.utils.multiclass import check_classification_targets

    try:
        check_classification_targets(column.numbers())
    except ValueError as error:
        raise ValueError(f"`y` is continuous, and this needs classes: {COMPARE_TARGET}. ({error})") from error
