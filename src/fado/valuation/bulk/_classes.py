"""What a variable is, found out block by block: its classes, or numbers without end."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from fado.tabular import Column, Variable, column_from, variable_from

__all__ = ["Classes"]

_MOST_NUMBERS = 100  # more different numbers are no classes, whatever the rule is
_MOST_CLASSES = 10_000


class Classes:
    """The different labels of one variable, in the order in which rows show them.

    Parameters
    ----------
    name : str
        The variable's.

    Examples
    --------
    >>> sex = Classes("sex")
    >>> sex.add(column_from("sex", ["m", None, "f"])), sex.add(column_from("sex", ["f", "m"]))
    (array([0, 1, 2]), array([2, 0]))
    >>> sex.variable().classes
    ('f', 'm', '(missing)')
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._places: dict[Any, int] = {}
        self.are_numbers = False

    def add(self, column: Column) -> npt.NDArray[np.int64]:
        """Note the labels of some rows, and give each the number of its first appearance.

        The missing are a class; of numbers that are no classes, all are 0.
        """
        if self.are_numbers:
            return np.zeros(len(column), dtype=np.int64)
        codes, entries = column.encode()
        if column.levels is None and len(entries) > _MOST_NUMBERS:
            self.are_numbers = True
            return np.zeros(len(column), dtype=np.int64)
        found, first = np.unique(codes, return_index=True)
        places = np.zeros(len(entries) + 1, dtype=np.int64)  # the last, which is also -1, is of the missing
        for code in found[np.argsort(first)]:
            label = None if code < 0 else column.label_of(entries[code])
            places[code] = self._places.setdefault(label, len(self._places))
        if column.levels is None:
            self.are_numbers = len(self._places) > _MOST_NUMBERS
        elif len(self._places) > _MOST_CLASSES:
            raise ValueError(
                f"Variable {self._name!r} has more than {_MOST_CLASSES:,} classes: coarsen it, or leave it "
                "out."
            )
        return places[codes]

    @property
    def labels(self) -> tuple[Any, ...]:
        """The labels in the order of their numbers, None for the missing."""
        return tuple(self._places)

    def variable(self) -> Variable:
        """Say what the variable is, by the rule that holds for a table in memory; it has no rows."""
        if self.are_numbers:
            return Variable(self._name, "continuous", np.zeros(0))
        seen = variable_from(column_from(self._name, list(self._places)))
        return Variable(self._name, seen.kind, seen.labels[:0], seen.classes, has_missing=seen.has_missing)
