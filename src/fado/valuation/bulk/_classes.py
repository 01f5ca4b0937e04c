"""What a variable is, found out block by block: its classes, or numbers without end."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from fado.tabular import Column, Variable, column_from, variable_from

__all__ = ["Classes", "Combinations"]

_MOST_NUMBERS = 100  # more different numbers are no classes, whatever the rule is
_MOST_CLASSES = 10_000
_MOST_JOINT = 1 << 16  # numbers of combinations that are looked up without a sort


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
        seen = self.numbered()
        return Variable(self._name, seen.kind, seen.labels[:0], seen.classes, has_missing=seen.has_missing)

    def numbered(self) -> Variable:
        """Give the same with the different labels as rows, in the order in which `add` numbers them."""
        if self.are_numbers:
            return Variable(self._name, "continuous", np.zeros(0))
        return variable_from(column_from(self._name, list(self._places)))


class Combinations:
    """The combinations of several variables' classes, in the order in which blocks show them.

    Examples
    --------
    >>> joint = Combinations()
    >>> joint.add([np.array([0, 1, 0]), np.array([0, 0, 0])]), joint.add([np.array([1, 1]), np.array([0, 1])])
    (array([0, 1, 0]), array([1, 2]))
    >>> joint.seen
    [(0, 0), (1, 0), (1, 1)]
    """

    def __init__(self) -> None:
        self._places: dict[tuple[int, ...], int] = {}

    @property
    def seen(self) -> list[tuple[int, ...]]:
        """The classes of every combination, by its number."""
        return list(self._places)

    def __len__(self) -> int:
        return len(self._places)

    def add(self, codes: list[npt.NDArray[np.int64]]) -> npt.NDArray[np.int64]:
        """Note some rows, given the classes of each variable, and give each row its combination."""
        joint, n_joint = np.zeros(len(codes[0]), dtype=np.int64), 1
        for own in codes:
            n_own = int(own.max(initial=0)) + 1
            joint, n_joint = joint * n_own + own, n_joint * n_own
            if n_joint > _MOST_JOINT:
                _, joint = np.unique(joint, return_inverse=True)
                n_joint = int(joint.max(initial=0)) + 1
        first = np.full(n_joint, -1)
        first[joint[::-1]] = np.arange(len(joint))[::-1]
        found = np.flatnonzero(first >= 0)
        seen = np.column_stack([own[first[found]] for own in codes]).tolist()
        places = np.zeros(n_joint, dtype=np.int64)
        places[found] = [self._places.setdefault(tuple(own), len(self._places)) for own in seen]
        return places[joint]
