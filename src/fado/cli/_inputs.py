"""From a table and the names on a command line to features, target and protected attributes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa

from fado._messages import closest_names
from fado.tabular import (
    Expression,
    Labels,
    Variable,
    column_from,
    columns_named,
    label_named,
    positive_code,
    read_attributes,
    read_table,
    variable_from,
    weights_of,
)

__all__ = ["Inputs", "read_group_names", "read_inputs"]

_QUOTED = r"""(?:"[^"]*"|'[^']*'|`[^`]*`)"""
_NAMED = re.compile(
    rf"""\s*(?:(?P<group>{_QUOTED}|[^,="'`][^,=]*?)\s*=\s*)?(?P<name>{_QUOTED}|[^,]*?)\s*(?:,|$)"""
)


@dataclass(frozen=True)
class Inputs:
    """What a command works on.

    Parameters
    ----------
    table : pyarrow.Table
        All that the file holds.
    features : pyarrow.Table
        What models may see.
    predicted : Expression
        The target as it is written.
    target : pyarrow.ChunkedArray
        The target.
    labels : Labels
        The same as classes; it has a positive one if there are two, or one was named.
    expressions : dict of str to Expression
        The protected attributes as they are written, by their names.
    protected : dict of str to Series
        The same, read: each row's group by what it is called.
    weight : ndarray or None
        What each row counts.
    groups : pyarrow.ChunkedArray or None
        Which rows stay together.
    """

    table: pa.Table
    features: pa.Table
    predicted: Expression
    target: pa.ChunkedArray
    labels: Labels
    expressions: dict[str, Expression]
    protected: dict[str, pd.Series]
    weight: npt.NDArray[np.float64] | None = None
    groups: pa.ChunkedArray | None = None

    @property
    def n_rows(self) -> int:
        """How many rows there are."""
        return self.table.num_rows

    @property
    def name(self) -> str:
        """The target's name."""
        return self.predicted.name

    @property
    def labelled(self) -> dict[str, pd.Series]:
        """The protected attributes without names of `--group-names`: as files of values hold them."""
        return {name: replace(own, names={}).groups(self.table) for name, own in self.expressions.items()}

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
        self.predicted.check_apart("--exclude", exclude)
        by_hand = columns_named(there, exclude, "--exclude")
        known = set(there if seen is None else seen)
        return {
            name: [column for column in dict.fromkeys([*by_hand, *own.sources]) if column in known]
            for name, own in self.expressions.items()
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
    group_names: Sequence[str] | None = None,
) -> Inputs:
    """Read a table and pick from it what the command line names."""
    table = read_table(data)
    there = table.column_names
    predicted = Expression.of(there, target, "target")
    beside = {"--weight": weight, "--groups": groups, "--split": split}
    for option, name in beside.items():
        if name is not None and name not in there:
            raise ValueError(f"The table has no column {name!r}{closest_names(name, there)}")
        predicted.check_apart(option, [name])
    predicted.check_apart("--drop", drop or [])
    others = [name for name in there if name not in predicted.sources]
    unseen = set(columns_named(others, drop, "--drop")).union(name for name in beside.values() if name)
    attributes = read_attributes(there, protected, predicted, read_group_names(group_names, protected))
    for own in (predicted, *attributes):
        own.check(table)
    labels = predicted.read(table, named=False)
    return Inputs(
        table=table,
        features=table.select([name for name in others if name not in unseen]),
        predicted=predicted,
        target=labels,
        labels=_read_labels(labels, positive),
        expressions={own.name: own for own in attributes},
        protected={own.name: own.groups(table) for own in attributes},
        weight=None if weight is None else weights_of(table.column(weight), table.num_rows),
        groups=None if groups is None else table.column(groups),
    )


def read_group_names(texts: Sequence[str] | None, protected: Sequence[str]) -> dict[str, Any]:
    """Read what groups are called: per attribute names by label, or two names of comparisons' groups.

    Examples
    --------
    >>> read_group_names(["age >= 50: 50 and over, under 50"], ["age>=50", "sex"])
    {'age>=50': ['50 and over', 'under 50']}
    >>> read_group_names(["sex: 1 = men, 2 = 'women, girls'"], ["age>=50", "sex"])
    {'sex': {'1': 'men', '2': 'women, girls'}}
    """
    known = {"".join(text.split()): text for text in protected}
    found: dict[str, Any] = {}
    for text in texts or ():
        ends = [match.start() for match in re.finditer(":", text)]
        heads = ["".join(text[:end].split()) for end in ends]
        place = next((i for i, head in enumerate(heads) if head in known), None)
        if place is None:
            raise ValueError(
                f"`--group-names` must begin with an attribute as `--protected` has it and a colon, as in "
                f"'age>=50: 50 and over, under 50' or 'sex: 1=men, 2=women', got {text!r}."
            )
        attribute = known[heads[place]]
        if attribute in found:
            raise ValueError(f"`--group-names` names the groups of {attribute!r} twice: name them once.")
        found[attribute] = _read_names(text[ends[place] + 1 :], text)
    return found


def _read_names(listed: str, text: str) -> dict[str, str] | list[str]:
    """Read names between commas, each with a group and '=' before it, or none."""
    pairs: list[tuple[str | None, str]] = []
    at = 0
    while at < len(listed) or not pairs:
        match = _NAMED.match(listed, at)
        assert match is not None  # noqa: S101 - whatever stands there is a name
        pairs.append((_unquoted(match["group"]), _unquoted(match["name"]) or ""))
        at = match.end()
    groups = [group for group, _ in pairs if group is not None]
    if not groups:
        return [name for _, name in pairs]
    if len(set(groups)) < len(pairs):
        raise ValueError(
            f"`--group-names` must give a group and '=' before every name, each group once, or before none, "
            f"got {text!r}; put quotes around a name that holds a comma or '='."
        )
    return {str(group): name for group, name in pairs}


def _unquoted(text: str | None) -> str | None:
    return text[1:-1] if text and re.fullmatch(_QUOTED, text) else text


def _read_labels(target: pa.ChunkedArray, positive: str | None) -> Labels:
    """Read the target as classes, even one that is a number in every row: one of them may be positive."""
    column = column_from("y", target)
    codes, entries = column.encode()
    classes = tuple(map(column.label_of, entries))
    label = None if positive is None else label_named(classes, positive, "--positive")
    return Labels(codes, classes, positive_code(classes, label))
