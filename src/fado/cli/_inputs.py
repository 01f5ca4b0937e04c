"""From a table and the names on a command line to features, target and protected attributes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa

from fado._messages import closest_names
from fado.cli._errors import ADD_COLUMN
from fado.tabular import (
    Labels,
    Variable,
    check_compared,
    column_from,
    columns_named,
    label_named,
    positive_code,
    protected_from,
    read_table,
    short_name,
    source_columns,
    variable_from,
    weights_of,
)

__all__ = ["Inputs", "read_inputs"]


@dataclass(frozen=True)
class Inputs:
    """What a command works on.

    Parameters
    ----------
    table : pyarrow.Table
        All that the file holds.
    features : pyarrow.Table
        What models may see.
    name : str
        The target's.
    target : pyarrow.ChunkedArray
        The target.
    labels : Labels
        The same as classes; it has a positive one if there are two, or one was named.
    protected : dict of str to Series
        The protected attributes by their names.
    sources : dict of str to tuple of str
        The columns behind every protected attribute.
    weight : ndarray or None
        What each row counts.
    groups : pyarrow.ChunkedArray or None
        Which rows stay together.
    """

    table: pa.Table
    features: pa.Table
    name: str
    target: pa.ChunkedArray
    labels: Labels
    protected: dict[str, pd.Series]
    sources: dict[str, tuple[str, ...]]
    weight: npt.NDArray[np.float64] | None = None
    groups: pa.ChunkedArray | None = None

    @property
    def n_rows(self) -> int:
        """How many rows there are."""
        return self.table.num_rows

    @property
    def unseen(self) -> list[str]:
        """The columns, other than the target, that no model may see."""
        seen = {self.name, *self.features.column_names}
        return [name for name in self.table.column_names if name not in seen]

    @property
    def positive(self) -> Any:
        """The positive label; None where there is none."""
        return None if self.labels.positive is None else self.labels.classes[self.labels.positive]

    @property
    def positives(self) -> npt.NDArray[np.bool_] | None:
        """The rows of the positive label; None where there is none."""
        return None if self.labels.positive is None else self.labels.is_positive

    @property
    def weights(self) -> npt.NDArray[np.float64]:
        """What each row counts; 1 if nobody says."""
        return np.ones(self.n_rows) if self.weight is None else self.weight

    def hidden_columns(
        self, exclude: Sequence[str], seen: Sequence[str] | None = None
    ) -> dict[str, list[str]]:
        """Give the columns that each attribute's models must not see: those it was made from, and `exclude`.

        Parameters
        ----------
        exclude : sequence of str
            Columns, or patterns of columns, that the user names by `--exclude`.
        seen : sequence of str, optional
            The features that models see at all; None is all of them.
        """
        there = self.features.column_names
        _check_not_target("--exclude", exclude, self.name)
        by_hand = columns_named(there, exclude, "--exclude")
        known = set(there if seen is None else seen)
        return {
            name: [column for column in dict.fromkeys([*by_hand, *sources]) if column in known]
            for name, sources in self.sources.items()
        }

    @cached_property
    def attributes(self) -> tuple[Variable, ...]:
        """The protected attributes, encoded."""
        return tuple(variable_from(column_from(name, own)) for name, own in self.protected.items())


def read_inputs(
    data: Path,
    target: str,
    protected: Sequence[str],
    *,
    positive: str | None = None,
    drop: Sequence[str] | None = None,
    weight: str | None = None,
    groups: str | None = None,
    split: str | None = None,
) -> Inputs:
    """Read a table and pick from it what the command line names."""
    table = read_table(data)
    beside = {"--weight": weight, "--groups": groups, "--split": split}
    _check_no_comparison(table, target)
    for name in (target, *beside.values()):
        if name is not None and name not in table.column_names:
            raise ValueError(f"The table has no column {name!r}{closest_names(name, table.column_names)}")
    for option, name in beside.items():
        _check_not_target(option, [name], target)
    others = table.drop_columns([target])
    _check_not_target("--drop", drop or (), target)
    unseen = {*columns_named(others.column_names, drop, "--drop"), *beside.values()}
    attributes, sources = {}, {}
    for expression in protected:
        _check_not_target("--protected", source_columns(table, expression), target)
        name = short_name(others, expression)
        check_compared(others, expression)
        attributes[name] = protected_from(others, expression).rename(name)
        sources[name] = source_columns(others, expression)
    return Inputs(
        table=table,
        features=others.select([name for name in others.column_names if name not in unseen]),
        name=target,
        target=table.column(target),
        labels=_read_labels(table.column(target), positive),
        protected=attributes,
        sources=sources,
        weight=None if weight is None else weights_of(table.column(weight), table.num_rows),
        groups=None if groups is None else table.column(groups),
    )


def _check_no_comparison(table: pa.Table, target: str) -> None:
    """Refuse a target that is written as a protected attribute may be."""
    if target in table.column_names:
        return
    try:
        source_columns(table, target)
    except (KeyError, ValueError):  # nor is it a comparison
        return
    raise ValueError(f"`--target` must be a column, and {target!r} is a comparison: {ADD_COLUMN}.")


def _check_not_target(option: str, names: Sequence[str | None], target: str) -> None:
    if target in names:
        raise ValueError(f"`{option}` names {target!r}, the target: name another column.")


def _read_labels(target: pa.ChunkedArray, positive: str | None) -> Labels:
    """Read the target as classes, even one that is a number in every row: one of them may be positive."""
    column = column_from("y", target)
    codes, entries = column.encode()
    classes = tuple(map(column.label_of, entries))
    label = None if positive is None else label_named(classes, positive, "--positive")
    return Labels(codes, classes, positive_code(classes, label))
