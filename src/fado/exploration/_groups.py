"""The groups that a page shows: never fewer than ten members, never more than a dozen."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from fado._variables import MISSING, Variable

__all__ = ["FEWEST_MEMBERS", "Groups", "crossed", "fine_groups", "shown"]

Codes = npt.NDArray[np.int64]

FEWEST_MEMBERS = 10
MOST_GROUPS = 12
HIDDEN = -1


@dataclass(frozen=True)
class Groups:
    """Groups of rows: per row the position of its group's name, -1 for a row of no group that is shown."""

    codes: Codes
    names: tuple[str, ...]
    has_pool: bool = False  # whether the last one pools several that are too small to be shown

    def __len__(self) -> int:
        return len(self.names)

    @property
    def sizes(self) -> Codes:
        """How many rows each group has."""
        return self.count(np.ones(len(self.codes), dtype=bool))

    def count(self, rows: npt.NDArray[np.bool_]) -> Codes:
        """Count the marked rows of each group."""
        return np.bincount(self.codes[rows & (self.codes >= 0)], minlength=len(self))

    def total(self, amounts: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
        """Add up what rows hold, group by group."""
        there = self.codes >= 0
        sums: npt.NDArray[np.float64] = np.bincount(
            self.codes[there], amounts[there], minlength=len(self)
        ).astype(np.float64, copy=False)
        return sums

    def members(self, group: int) -> npt.NDArray[np.bool_]:
        """Mark the rows of one group."""
        return self.codes == group


def fine_groups(variable: Variable) -> Groups:
    """Split rows by a variable's classes; by its quarters if it is continuous."""
    if variable.kind == "classes":
        return Groups(variable.labels.astype(np.int64), tuple(map(str, variable.classes)))
    numbers, known = variable.labels, variable.known
    edges = np.unique(np.quantile(numbers[known], [0.25, 0.5, 0.75], method="inverted_cdf"))
    edges = edges[edges < numbers[known].max()]
    codes = np.searchsorted(edges, numbers).astype(np.int64)
    bounds = [f"{edge:.4g}" for edge in edges]
    names = [f"up to {bounds[0]}"] if len(bounds) else ["all"]
    names += [f"{low} to {high}" for low, high in pairwise(bounds)]
    names += [f"over {bounds[-1]}"] if len(bounds) else []
    if not known.all():
        codes[~known] = len(names)
        names.append(MISSING)
    return Groups(codes, tuple(names))


def crossed(parts: list[tuple[str, Groups]]) -> Groups:
    """Cross the groups of several attributes; only combinations that occur are groups."""
    codes = np.zeros(len(parts[0][1].codes), dtype=np.int64)
    names = [""]
    for attribute, groups in parts:
        combined, codes = np.unique(codes * len(groups) + groups.codes, return_inverse=True)
        levels = [f"{attribute} = {level}" for level in groups.names]
        names = [
            ", ".join(filter(None, [names[code // len(levels)], levels[code % len(levels)]]))
            for code in combined
        ]
    return Groups(codes, tuple(names))


def shown(fine: Groups) -> Groups:
    """Pool groups that are too small, or too many, into one; hide that one if it is too small itself.

    Examples
    --------
    >>> import numpy as np
    >>> groups = shown(Groups(np.repeat([0, 1, 2, 3], [30, 20, 7, 4]), ("a", "b", "c", "d")))
    >>> groups.names, groups.sizes
    (('a', 'b', '(2 small groups)'), array([30, 20, 11]))
    >>> shown(Groups(np.repeat([0, 1], [30, 4]), ("a", "b"))).names
    ('a',)
    """
    sizes = fine.sizes
    by_size = np.argsort(-sizes, kind="stable")
    kept = [int(group) for group in by_size if sizes[group] >= FEWEST_MEMBERS]
    if len(kept) > MOST_GROUPS or (len(kept) == MOST_GROUPS and len(fine) > MOST_GROUPS):
        kept = kept[: MOST_GROUPS - 1]
    kept.sort()
    pooled = [group for group in range(len(fine)) if group not in kept and sizes[group]]
    place = np.full(len(fine), HIDDEN, dtype=np.int64)
    place[kept] = np.arange(len(kept))
    names = [fine.names[group] for group in kept]
    if sizes[pooled].sum() >= FEWEST_MEMBERS:
        place[pooled] = len(kept)
        names.append(f"({len(pooled)} small groups)")
    return Groups(place[fine.codes], tuple(names), has_pool=len(names) > len(kept))
