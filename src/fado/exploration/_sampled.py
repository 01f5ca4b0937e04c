"""A sample of a larger table: which rows it holds, how far it may be off, and what all rows come to."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fado.tabular import Variable

__all__ = ["Sampled", "WholeGroups", "share_error"]

Codes = npt.NDArray[np.int64]

_HALF_WIDTH = 1.96 * 0.5  # of a 95 % interval: nothing on [0, 1] has a larger standard deviation than 0.5


@dataclass(frozen=True)
class WholeGroups:
    """The groups of an attribute over all rows of the table.

    Parameters
    ----------
    rows : ndarray of int
        How many rows each group has.
    positive : ndarray of int or None
        How many of them have the positive label; None where there is none.
    """

    rows: Codes
    positive: Codes | None

    def together(self, groups: Iterable[int]) -> tuple[int, float | None]:
        """Give the rows of some groups taken together, and their share of positive labels."""
        members = list(groups)
        rows = int(self.rows[members].sum())
        return rows, None if self.positive is None else int(self.positive[members].sum()) / rows


@dataclass(frozen=True)
class Sampled:
    """Which rows of a larger table are explored, and what was counted over all of them.

    Parameters
    ----------
    places : ndarray of int
        The sampled rows' places in the whole table.
    n_rows : int
        How many rows that has.
    seed : int
        Of the draw.
    has_positive : bool
        Whether the whole table's target has a positive label.
    counts : mapping of str to mapping of label to tuple of int
        Per attribute and label, None for a missing one: the rows, and those of the positive label. Numbers
        that are no classes are not among them.
    """

    places: Codes
    n_rows: int
    seed: int
    has_positive: bool
    counts: Mapping[str, Mapping[Any, tuple[int, int]]]

    @property
    def times(self) -> float:
        """How many rows of the table each sampled row stands for."""
        return self.n_rows / len(self.places)

    def groups_of(self, variable: Variable) -> WholeGroups | None:
        """Give the sizes of the groups that a variable's rows are of; None for a number."""
        if variable.kind == "continuous" or variable.name not in self.counts:
            return None
        labels: list[Any] = list(variable.classes)
        if variable.has_missing:
            labels[-1] = None
        counts = self.counts[variable.name]
        found = np.array([counts[labels[code]] for code in np.unique(variable.labels)], dtype=np.int64)
        return WholeGroups(found[:, 0], found[:, 1] if self.has_positive else None)


def share_error(rows: int, of: int) -> float:
    """Give the half-width of a 95 % interval of a share, or of a mean on [0, 1], at its worst.

    Parameters
    ----------
    rows : int
        How many were drawn, none twice.
    of : int
        From how many.

    Examples
    --------
    >>> round(share_error(2_500, 10**9), 4), share_error(100, 100)
    (0.0196, 0.0)
    """
    return _HALF_WIDTH / math.sqrt(rows) * math.sqrt(1.0 - rows / of)
