"""What an intervention changed in a table in files: rows, rates and effective sizes, before and after."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from fado._typing import Floats
from fado.tabular import Groups, Labels

_ROWS_AT_A_TIME = 1 << 16


@dataclass(frozen=True)
class GroupChange:
    """Size and positive rate of a group, before and after an intervention.

    Parameters
    ----------
    title : str
        The group's name.
    reason : str
        Why the group was not compared: ``"small"`` or ``"unknown"``; empty if it was.
    rows, rows_after : int
        The number of rows; after, of those that are kept with a weight above 0.
    weight, weight_after : float
        The sum of their weights.
    squares, squares_after : float
        The sum of the squares of their weights.
    positives, positives_after : float or None
        The sum of the positives' weights; None if the target has no positive label.

    See Also
    --------
    fado.interventions.FilesChange : The changes of all groups.

    Examples
    --------
    >>> women = GroupChange("f", "", 4, 2, 4.0, 2.0, 4.0, 2.0, 1.0, 1.0)
    >>> women.positive_rate, women.positive_rate_after, women.effective_size_after
    (0.25, 0.5, 2)
    """

    title: str
    reason: str
    rows: int
    rows_after: int
    weight: float
    weight_after: float
    squares: float
    squares_after: float
    positives: float | None = None
    positives_after: float | None = None

    @property
    def positive_rate(self) -> float | None:
        """The share of positives before; None if no label is positive, NaN if all weights are 0."""
        return _rate(self.positives, self.weight)

    @property
    def positive_rate_after(self) -> float | None:
        """The share of positives after."""
        return _rate(self.positives_after, self.weight_after)

    @property
    def effective_size(self) -> int:
        """Kish's effective sample size before: the number of equally weighted rows of the same variance."""
        return _effective_size(self.weight, self.squares)

    @property
    def effective_size_after(self) -> int:
        """Kish's effective sample size after."""
        return _effective_size(self.weight_after, self.squares_after)

    @classmethod
    def joined(cls, title: str, changes: Sequence[GroupChange], *, reason: str = "") -> GroupChange:
        """Add up several groups under one title."""
        sums: dict[str, Any] = {}
        for name in [field.name for field in fields(cls)][2:]:
            parts = [getattr(change, name) for change in changes]
            sums[name] = None if None in parts else sum(parts)
        return cls(title, reason, **sums)


@dataclass(frozen=True)
class FilesChange:
    """What an intervention changed in the groups of a table in files.

    `sample_files` and `reweigh_files` return it.

    Parameters
    ----------
    attributes : tuple of str
        The names of the protected attributes.
    positive : label or None
        The positive label; None if no label is positive.
    groups : tuple of GroupChange
        The change of each group, the largest first.

    See Also
    --------
    fado.sample_files : Drops rows of a table in files.
    fado.reweigh_files : Writes weights of a table in files.
    """

    attributes: tuple[str, ...]
    positive: Any
    groups: tuple[GroupChange, ...]

    @property
    def all_rows(self) -> GroupChange:
        """The change of all rows together."""
        return GroupChange.joined("all rows", self.groups)

    @property
    def n_rows(self) -> int:
        """How many rows there were before."""
        return self.all_rows.rows

    @property
    def n_rows_after(self) -> int:
        """How many rows are kept with a weight above 0."""
        return self.all_rows.rows_after


def change_of(
    attributes: Sequence[str],
    labels: Labels,
    groups: Groups,
    weights: Floats | None,
    factors: Floats,
    min_group_size: int,
) -> FilesChange:
    """Add up the changes of the groups, given the factors of the rows' weights."""
    sizes = groups.sizes
    kept = np.zeros(len(groups), dtype=np.int64)
    sums = np.zeros((2, 3, len(groups)))  # before and after: of weights, of squares, of positives' weights
    for first in range(0, len(factors), _ROWS_AT_A_TIME):  # few at a time, which takes no memory
        rows = slice(first, first + _ROWS_AT_A_TIME)
        codes, positive = groups.codes[rows], labels.codes[rows] == labels.positive
        kept += np.bincount(codes[factors[rows] > 0], minlength=len(groups))
        before = np.ones(len(codes)) if weights is None else weights[rows]
        for total, weight in zip(sums, (before, before * factors[rows]), strict=True):
            for each, amounts in zip(total, (weight, weight**2, weight * positive), strict=True):
                each += np.bincount(codes, amounts, len(groups))
    columns = [sizes, kept, *sums.transpose(1, 0, 2).reshape(6, -1)]  # as `GroupChange` has them
    if labels.positive is None:
        columns = columns[:-2]
    reasons = groups.reasons(min_group_size)
    changes = [
        GroupChange(groups.titles[group], reasons[group], *(column[group].item() for column in columns))
        for group in np.argsort(-sizes, kind="stable").tolist()
    ]
    label = None if labels.positive is None else labels.classes[labels.positive]
    return FilesChange(tuple(attributes), label, tuple(changes))


def _rate(positives: float | None, weight: float) -> float | None:
    if positives is None:
        return None
    return positives / weight if weight > 0 else float("nan")


def _effective_size(weight: float, squares: float) -> int:
    return round(weight**2 / squares) if squares > 0 else 0
