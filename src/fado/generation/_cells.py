"""How many rows each cell of label and group is short of: arrays in, counts out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from fado._checks import MOST_ROWS, check_count
from fado._messages import list_names
from fado.tabular import Groups, Labels

__all__ = ["Cells", "Plan", "counts_asked_for", "fill_labels", "fill_positives"]

Bools = npt.NDArray[np.bool_]
Counts = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Cells:
    """The rows of every label in every group.

    Parameters
    ----------
    rows : ndarray of int, shape (n_labels, n_groups)
        How many there are.
    weight : ndarray of float, same shape
        What they weigh together; without weights the same numbers.
    labels : tuple
        The labels.
    groups : Groups
        The groups.
    compared : ndarray of bool
        The groups that are not small.
    weighted : bool
        Whether rows have weights.
    """

    rows: Counts
    weight: FloatArray
    labels: tuple[Any, ...]
    groups: Groups
    compared: Bools
    weighted: bool

    @classmethod
    def of(cls, labels: Labels, groups: Groups, compared: Bools, sample_weight: FloatArray | None) -> Cells:
        """Count the rows."""
        shape = len(labels.classes), len(groups)
        cell = labels.codes.astype(np.int64) * shape[1] + groups.codes
        rows = np.bincount(cell, minlength=shape[0] * shape[1]).reshape(shape)
        weight: FloatArray = rows.astype(np.float64)
        if sample_weight is not None:
            summed = np.bincount(cell, sample_weight, minlength=shape[0] * shape[1])
            weight = summed.astype(np.float64).reshape(shape)
        return cls(rows, weight, labels.classes, groups, compared, sample_weight is not None)

    def name(self, label: int, group: int) -> str:
        """Name a cell in a message."""
        return f"label {self.labels[label]!r} in group {self.groups.names[group]}"


@dataclass(frozen=True, eq=False)
class Plan:
    """How many rows to make.

    Parameters
    ----------
    made : ndarray of int, shape (n_labels, n_groups)
        Per cell.
    target_rate : float
        The positive rate to match; NaN if there is none.
    childless : tuple of (label, group)
        Cells that are short of rows and have none to make others from.
    unmatched : tuple of int
        Groups of positives alone, whose rate of 1 no number of rows can match.
    """

    made: Counts
    target_rate: float = float("nan")
    childless: tuple[tuple[int, int], ...] = ()
    unmatched: tuple[int, ...] = ()


def fill_positives(cells: Cells, positive: int, strength: float) -> Plan:
    """Fill up the positives of every group whose positive rate is below the highest.

    A group's rate moves from its own by `strength` of its distance to the highest, to one row. All other
    labels count as negatives.

    Examples
    --------
    >>> import numpy as np
    >>> from fado.tabular import Groups, Labels
    >>> labels = Labels(np.array([1, 0, 1, 0, 0, 0]), (0, 1), 1)
    >>> groups = Groups(np.array([0, 0, 1, 1, 1, 1]), ("'f'", "'m'"), ("f", "m"))
    >>> cells = Cells.of(labels, groups, np.array([True, True]), None)
    >>> fill_positives(cells, 1, 1.0).made  # 'm' has a rate of 1/4 and needs 3 positives for 1/2
    array([[0, 0],
           [0, 2]])
    """
    positives = cells.weight[positive]
    negatives = cells.weight.sum(axis=0) - positives
    if not cells.weighted:
        negatives = (cells.rows.sum(axis=0) - cells.rows[positive]).astype(np.float64)
    number = float if cells.weighted else Fraction  # in fractions, halves are halves
    rates: dict[int, Any] = {}
    for group in np.flatnonzero(cells.compared & (positives + negatives > 0)).tolist():
        own = number(positives[group])
        rates[group] = own / (own + number(negatives[group]))
    unmatched = tuple(group for group, rate in rates.items() if negatives[group] <= 0)
    matched = {group: rate for group, rate in rates.items() if group not in unmatched}
    made = np.zeros_like(cells.rows)
    if len(matched) < 2:
        return Plan(made, unmatched=unmatched if len(rates) > 1 else ())
    highest = max(matched.values())
    childless = []
    for group, rate in matched.items():
        wanted = rate + number(strength) * (highest - rate)
        short = number(negatives[group]) * wanted / (1 - wanted) - number(positives[group])
        if not positives[group] and wanted > 0:
            childless.append((positive, group))
        elif short > 0:
            made[positive, group] = round(short / number(_mean_weight(cells, positive, group)))
    return Plan(made, float(highest), tuple(childless), unmatched)


def fill_labels(cells: Cells, strength: float) -> Plan:
    """Fill up cells until every group has the labels of all compared rows, in the same shares.

    For more than two labels, of which none is the positive one. A group's shares move from their own by
    `strength` of the way; the label that a group has most of, for its share, gets no rows.

    Examples
    --------
    >>> import numpy as np
    >>> from fado.tabular import Groups, Labels
    >>> labels = Labels(np.repeat([0, 1, 2, 0, 1, 2], [10, 10, 10, 10, 20, 30]), ("a", "b", "c"))
    >>> groups = Groups(np.repeat([0, 1], [30, 60]), ("'f'", "'m'"), ("f", "m"))
    >>> cells = Cells.of(labels, groups, np.array([True, True]), None)
    >>> fill_labels(cells, 1.0).made  # of all rows, labels have shares of 2/9, 3/9 and 4/9
    array([[ 0,  5],
           [ 5,  2],
           [10,  0]])
    """
    shares = cells.weight[:, cells.compared].sum(axis=1)
    shares = shares / shares.sum()
    made = np.zeros_like(cells.rows)
    childless = []
    for group in np.flatnonzero(cells.compared & (cells.weight.sum(axis=0) > 0)).tolist():
        own = cells.weight[:, group]
        wanted = own / own.sum() + strength * (shares - own / own.sum())
        there = own > 0
        short = np.max(own[there] / wanted[there]) * wanted - own
        for label in np.flatnonzero(short > 0).tolist():
            if there[label]:
                made[label, group] = round(short[label] / _mean_weight(cells, label, group))
            elif short[label] >= 0.5:
                childless.append((label, group))
    return Plan(made, childless=tuple(childless))


def counts_asked_for(cells: Cells, strategy: Mapping[Any, Any]) -> Plan:
    """Read how many rows there are to be of a label, or of a label in a group, in the end.

    The rows to be made of a label are shared out to its groups, but for small ones, as its rows are now.
    """
    made, asked = np.zeros_like(cells.rows), np.zeros(cells.rows.shape, dtype=bool)
    for key, count in strategy.items():
        label = _label_of(cells, key[0] if isinstance(key, tuple) else key)
        told = f"sampling_strategy[{key!r}]"
        if isinstance(key, tuple):
            here = np.array([_group_of(cells, key)])
        else:
            here = np.flatnonzero(cells.compared & (cells.weight[label] > 0))
        present = int(cells.rows[label, here].sum() if isinstance(key, tuple) else cells.rows[label].sum())
        told_of = here if isinstance(key, tuple) else np.arange(len(cells.groups))
        if asked[label, told_of].any():
            raise ValueError(f"`sampling_strategy` asks twice for label {cells.labels[label]!r}: ask once.")
        asked[label, told_of] = True
        short = check_count(told, count, 0, MOST_ROWS) - present
        if short < 0:
            raise ValueError(
                f"`{told}` is {count}, and there are {present} such rows already: rows are made, none is "
                "dropped. Ask for as many or more."
            )
        weight = cells.weight[label, here]
        if short and not weight.sum() > 0:
            where = cells.name(label, here[0]) if isinstance(key, tuple) else f"label {key!r}"
            raise ValueError(f"There are no rows with {where} to make others from: leave `{told}` out.")
        if short:
            made[label, here] = _shared_out(short, weight)
    return Plan(made)


def _mean_weight(cells: Cells, label: int, group: int) -> float:
    """Give what a row that is made in a cell weighs."""
    return float(cells.weight[label, group] / cells.rows[label, group])


def _shared_out(count: int, weight: FloatArray) -> Counts:
    """Share rows out in proportion to weights; what is left goes to the largest remainders."""
    exact = count * weight / weight.sum()
    shares: Counts = np.floor(exact).astype(np.int64)
    last = np.argsort(shares - exact, kind="stable")[: count - int(shares.sum())]
    shares[last] += 1
    return shares


def _label_of(cells: Cells, label: Any) -> int:
    if label not in cells.labels:
        has = list_names([repr(own) for own in cells.labels])
        raise ValueError(f"`sampling_strategy` names {label!r}, which is none of the labels {has}.")
    return cells.labels.index(label)


def _group_of(cells: Cells, key: tuple[Any, ...]) -> int:
    titles = cells.groups.titles
    if len(key) != 2 or str(key[1]) not in titles:
        has = list_names([repr(title) for title in titles])
        raise ValueError(
            f"`sampling_strategy` has the key {key!r}: it must be a label, or a pair of a label and one of "
            f"the groups {has}."
        )
    return titles.index(str(key[1]))
