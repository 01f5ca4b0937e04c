"""The cells of group and label of a table in files, counted in a first pass."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from fado._messages import COMPARE_TARGET
from fado.interventions._span import Span
from fado.interventions._utilities import no_utilities
from fado.interventions.bulk._blocks import Block
from fado.tabular import (
    TARGET,
    Column,
    Groups,
    Labels,
    Variable,
    column_from,
    group_rows,
    labels_of,
    warn_of_missing_rows,
)
from fado.valuation.bulk import Classes, Combinations, Roles, check_comparisons, check_rows

__all__ = ["Cells", "Counter", "Passes", "Rows"]

FloatArray = npt.NDArray[np.float64]
Codes = npt.NDArray[np.int64]

_ALL = "all rows"


@dataclass(frozen=True)
class Rows:
    """What an intervention sees of some rows that follow one another.

    Parameters
    ----------
    first : int
        Place of the first in the whole table.
    groups, labels : ndarray of int
        The group and the label of each.
    utilities, weights : ndarray or None
        Theirs, if there are any.
    """

    first: int
    groups: Codes
    labels: Codes
    utilities: FloatArray | None
    weights: FloatArray | None

    def __len__(self) -> int:
        return len(self.groups)

    @property
    def places(self) -> Codes:
        """Their places in the whole table."""
        return np.arange(self.first, self.first + len(self), dtype=np.int64)


Passes = Callable[[str], Iterator[Rows]]  # each call, which names the pass, reads all rows again


@dataclass(frozen=True)
class Cells:
    """What a pass over all rows tells.

    Parameters
    ----------
    classes : tuple
        The labels, sorted.
    positive : int or None
        The place of the positive one; None where there is none.
    names, titles : tuple of str
        The groups as messages and as tables call them.
    rows : ndarray of shape (n_groups, n_labels)
        How many rows each cell has.
    weights : ndarray of shape (n_groups, n_labels), or None
        What they weigh, if rows have weights.
    span : Span or None
        Between which ends utilities lie, if rows have any.
    """

    classes: tuple[Any, ...]
    positive: int | None
    names: tuple[str, ...]
    titles: tuple[str, ...]
    rows: Codes
    weights: FloatArray | None
    span: Span | None

    @property
    def sizes(self) -> Codes:
        """How many rows each group has."""
        return self.rows.sum(axis=1)

    @property
    def n_rows(self) -> int:
        """How many rows there are."""
        return int(self.rows.sum())


class Counter:
    """Counts the rows of cells in a first pass, and codes rows in all that follow.

    Parameters
    ----------
    roles : Roles
        What the columns are for.
    utilities : callable or None
        Gives the utilities of a block's rows, for an intervention that asks.
    counts_cells : bool
        Whether groups and labels matter; if not, target and attributes may be numbers.
    where : str
        What messages call the table.
    """

    def __init__(
        self,
        roles: Roles,
        utilities: Callable[[Block], FloatArray] | None,
        *,
        counts_cells: bool,
        where: str,
    ) -> None:
        self._roles = roles
        self._utilities = utilities
        self._counts_cells = counts_cells
        self._where = where
        self._seen = [Classes(name) for name in roles.names]
        self._joint = Combinations()
        self._rows: FloatArray = np.zeros(0)
        self._weights: FloatArray = np.zeros(0)
        self._span: Span | None = None
        self._unknown: list[tuple[int, int]] = []

    @property
    def n_labels(self) -> int:
        """How many different labels the target has shown."""
        return len(self._numbered[0].classes)

    def count(self, block: Block) -> Codes:
        """Count some rows; give their labels, numbered in the order in which rows show them."""
        columns, weights = self._roles.variables(block.table), self._roles.weights(block.table)
        check_rows(columns[0], weights, self._where)
        codes = self._codes(columns)
        if self._counts_cells:
            for own, name in zip(self._seen, self._roles.names, strict=True):
                if own.are_numbers:
                    raise _too_many_numbers(name)
        places = self._joint.add(codes)
        self._rows = _added(self._rows, np.bincount(places, minlength=len(self._joint)))
        if weights is not None:
            self._weights = _added(self._weights, np.bincount(places, weights, len(self._joint)))
        if self._utilities is not None:
            self._look_at(self._utilities(block), block.first)
        return codes[0]

    def cells(self, pos_label: Any) -> Cells:
        """Give the cells once all rows are counted."""
        n_rows = int(self._rows.sum())
        if self._unknown:
            raise no_utilities(sum(n for n, _ in self._unknown), n_rows, self._unknown[0][1])
        if self._roles.weight is not None and not self._weights.any():
            raise ValueError("`weight` is zero in every row: give some row a weight.")
        target, *attributes = self._numbered
        check_comparisons(self._numbered, self._roles)
        if self._counts_cells:
            for variable in (target, *attributes):
                if variable.kind == "continuous":
                    raise _too_many_numbers(variable.name)
        self._unite_numbers()
        if self._counts_cells:
            self._warn_of_missing(attributes, n_rows)
        labels, groups = self._labels(pos_label), self._groups
        shape = len(groups), len(labels.classes)
        cell_of = groups.codes * shape[1] + self._label_codes

        def by_cell(amounts: FloatArray) -> FloatArray:
            return np.bincount(cell_of, amounts, shape[0] * shape[1]).astype(np.float64).reshape(shape)

        return Cells(
            labels.classes,
            labels.positive,
            groups.names,
            groups.titles,
            by_cell(self._rows).astype(np.int64),
            None if self._roles.weight is None else by_cell(self._weights),
            self._span,
        )

    def rows(self, block: Block) -> Rows:
        """Code some rows, once all are counted."""
        places = self._joint.add(self._without_numbers(self._codes(self._roles.variables(block.table))))
        return Rows(
            block.first,
            self._groups.codes[places],
            self._label_codes[places],
            None if self._utilities is None else self._utilities(block),
            self._roles.weights(block.table),
        )

    def _codes(self, columns: list[Column]) -> list[Codes]:
        return [own.add(column) for own, column in zip(self._seen, columns, strict=True)]

    def _look_at(self, utilities: FloatArray, first: int) -> None:
        unknown = np.flatnonzero(~np.isfinite(utilities))
        if len(unknown):
            self._unknown.append((len(unknown), first + int(unknown[0])))
        else:
            span = Span.of(utilities)
            self._span = span if self._span is None else self._span.joined(span)

    @cached_property
    def _numbered(self) -> list[Variable]:
        """The variables, whose rows are their different labels in the order of their numbers."""
        return [own.numbered() for own in self._seen]

    def _unite_numbers(self) -> None:
        """Make one of the combinations that differ in nothing but numbers."""
        joint = Combinations()
        places = joint.add(self._without_numbers(list(np.array(self._joint.seen, dtype=np.int64).T)))
        self._rows = np.bincount(places, self._rows).astype(np.float64)
        if self._roles.weight is not None:
            self._weights = np.bincount(places, self._weights).astype(np.float64)
        self._joint = joint

    def _without_numbers(self, codes: list[Codes]) -> list[Codes]:
        return [
            own if variable.kind == "classes" else np.zeros_like(own)
            for own, variable in zip(codes, self._numbered, strict=True)
        ]

    @cached_property
    def _of_combinations(self) -> list[Codes]:
        """Per variable, its class in every combination; 0 of numbers."""
        seen = np.array(self._joint.seen, dtype=np.int64).T
        return [
            variable.labels.astype(np.int64)[codes] if variable.kind == "classes" else codes
            for variable, codes in zip(self._numbered, seen, strict=True)
        ]

    @property
    def _label_codes(self) -> Codes:
        return self._of_combinations[0]

    @cached_property
    def _groups(self) -> Groups:
        """The group of every combination."""
        attributes = zip(self._numbered[1:], self._of_combinations[1:], strict=True)
        crossed = [replace(own, labels=codes) for own, codes in attributes if own.kind == "classes"]
        if crossed:
            return group_rows(crossed)
        return Groups(np.zeros(len(self._joint), dtype=np.int64), (_ALL,), (_ALL,))

    def _labels(self, pos_label: Any) -> Labels:
        target = self._numbered[0]
        if target.kind == "continuous":
            return Labels(np.zeros(0, dtype=np.int32), (_ALL,))
        if not self._counts_cells and len(target.classes) > 2 and pos_label is None:
            return Labels(np.zeros(0, dtype=np.int32), target.classes)
        return labels_of(column_from(TARGET, list(target.classes)), pos_label)

    def _warn_of_missing(self, attributes: list[Variable], n_rows: int) -> None:
        for variable, codes in zip(attributes, self._of_combinations[1:], strict=True):
            if variable.has_missing:
                missing = self._rows[codes == len(variable.classes) - 1].sum()
                warn_of_missing_rows(variable, int(missing), n_rows)


def _added(total: FloatArray, more: npt.NDArray[Any]) -> FloatArray:
    """Add what is as long or longer."""
    grown = more.astype(np.float64)
    grown[: len(total)] += total
    return grown


def _too_many_numbers(name: str) -> ValueError:
    if name == TARGET:
        return ValueError(
            f"`y` has more than 20 different numbers, and this needs classes: {COMPARE_TARGET}."
        )
    return ValueError(
        f"Protected attribute {name!r} has more than 20 different numbers, too many for groups: cut it into "
        "a few, for example by `age >= 50`."
    )
