"""The groups that a page shows: never fewer than ten members, never more than a dozen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["FEWEST_MEMBERS", "ShownGroups", "show_groups"]

Codes = npt.NDArray[np.int64]

FEWEST_MEMBERS = 10
MOST_GROUPS = 12
HIDDEN = -1


@dataclass(frozen=True)
class ShownGroups:
    """The groups that are shown: per row the position of its group's name, -1 for a row of none of them."""

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


def show_groups(codes: Codes, names: Sequence[str]) -> ShownGroups:
    """Pool groups that are too small, or too many, into one; hide that one if it is too small itself.

    Examples
    --------
    >>> import numpy as np
    >>> groups = show_groups(np.repeat([0, 1, 2, 3], [30, 20, 7, 4]), ("a", "b", "c", "d"))
    >>> groups.names, groups.sizes
    (('a', 'b', '(2 small groups)'), array([30, 20, 11]))
    >>> show_groups(np.repeat([0, 1], [30, 4]), ("a", "b")).names
    ('a',)
    """
    sizes = np.bincount(codes, minlength=len(names))
    by_size = np.argsort(-sizes, kind="stable")
    kept = [int(group) for group in by_size if sizes[group] >= FEWEST_MEMBERS]
    if len(kept) > MOST_GROUPS or (len(kept) == MOST_GROUPS and len(names) > MOST_GROUPS):
        kept = kept[: MOST_GROUPS - 1]
    kept.sort()
    pooled = [group for group in range(len(names)) if group not in kept and sizes[group]]
    place = np.full(len(names), HIDDEN, dtype=np.int64)
    place[kept] = np.arange(len(kept))
    named = [names[group] for group in kept]
    if sizes[pooled].sum() >= FEWEST_MEMBERS:
        place[pooled] = len(kept)
        named.append(f"({len(pooled)} small groups)")
    return ShownGroups(place[codes], tuple(named), has_pool=len(named) > len(kept))
