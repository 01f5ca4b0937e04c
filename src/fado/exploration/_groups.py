"""The groups that a page shows: which are compared, which are pooled, and what is said of those left out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from fado.exploration._sampled import WholeGroups
from fado.tabular import MIN_GROUP_SIZE, small_groups, tell_small

__all__ = ["FEWEST_MEMBERS", "ListedGroup", "ShownGroups", "listed_groups", "show_groups", "tell_left_out"]

Codes = npt.NDArray[np.int64]

FEWEST_MEMBERS = 10  # groups of fewer rows are never named
MOST_GROUPS = 12
MOST_LISTED = 60
HIDDEN = -1

COMPARED, POOLED, SMALL, UNNAMED, SEVERAL = "compared", "pooled", "small", "unnamed", "several"
NOTES = {
    COMPARED: None,
    POOLED: "shown with others",
    SMALL: "too small to compare",
    UNNAMED: "too small to compare or to name",
    SEVERAL: "shown with others, or too small to compare",
}


@dataclass(frozen=True)
class ListedGroup:
    """A group with its rows, and whether it is compared, pooled, small, or too small to be named.

    `members` are the groups that it stands for, as rows were numbered at first.
    """

    name: str
    rows: int
    standing: str
    members: tuple[int, ...] = field(default=(), repr=False, compare=False)


@dataclass(frozen=True)
class ShownGroups:
    """The groups that are shown: per row the position of its group's name, -1 for a row of none of them.

    Parameters
    ----------
    codes : ndarray of int
        Each row's shown group.
    names : tuple of str
        The shown groups: those that are compared, and then pools of others.
    others : int or None
        The position of the pool of groups beyond the largest, which are too many to be shown.
    small : int or None
        The position of what is too small to be compared: counted, and left out of every rate.
    listed : tuple of ListedGroup
        All groups, the compared ones first; those of fewer than ten rows as one, without their names.
    place : ndarray of int
        Of each group, as rows were numbered at first, the shown one that it is part of.
    """

    codes: Codes
    names: tuple[str, ...]
    others: int | None = None
    small: int | None = None
    listed: tuple[ListedGroup, ...] = ()
    place: Codes = field(default_factory=lambda: np.empty(0, dtype=np.int64), repr=False)

    def __len__(self) -> int:
        return len(self.names)

    @property
    def compared(self) -> list[int]:
        """The groups that are set against each other."""
        return [group for group in range(len(self)) if group not in (self.others, self.small)]

    @property
    def rated(self) -> list[int]:
        """The groups that have rates and means of their own: those compared, and the pool of others."""
        return [group for group in range(len(self)) if group != self.small]

    @property
    def rated_rows(self) -> npt.NDArray[np.bool_]:
        """Mark the rows of groups that have rates of their own."""
        there = self.codes >= 0
        return there if self.small is None else there & (self.codes != self.small)

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

    def pooled(self, group: int) -> list[int]:
        """List the groups that a shown one is made of, as rows were numbered at first."""
        return [int(one) for one in np.flatnonzero(self.place == group)]


def show_groups(
    codes: Codes, names: Sequence[str], min_group_size: int = MIN_GROUP_SIZE, *, noun: str = "groups"
) -> ShownGroups:
    """Choose which groups are compared, and pool the others.

    Groups that are small by `fado.tabular.small_groups`, and groups of fewer than ten rows, make one pool; of
    more than a dozen others the smallest make a second. A pool of one group has that group's name; a pool of
    fewer than ten rows is hidden.

    Examples
    --------
    >>> import numpy as np
    >>> groups = show_groups(np.repeat([0, 1, 2, 3], [30, 20, 7, 4]), ("a", "b", "c", "d"))
    >>> groups.names, groups.sizes, groups.compared
    (('a', 'b', '(2 small groups)'), array([30, 20, 11]), [0, 1])
    >>> show_groups(np.repeat([0, 1], [30, 4]), ("a", "b")).names
    ('a',)
    >>> groups = show_groups(np.repeat([0, 1, 2], [3000, 2980, 20]), ("a", "b", "c"))
    >>> groups.names, groups.compared, groups.listed[-1]
    (('a', 'b', 'c'), [0, 1], ListedGroup(name='c', rows=20, standing='small'))
    """
    sizes = np.bincount(codes, minlength=len(names))
    too_few = (sizes > 0) & (sizes < FEWEST_MEMBERS)
    small = small_groups(sizes, min_group_size) | too_few
    by_size = np.argsort(-sizes, kind="stable")
    large = [int(group) for group in by_size if sizes[group] and not small[group]]
    n_kept = len(large) if len(large) <= MOST_GROUPS else MOST_GROUPS - 1
    kept, rest = sorted(large[:n_kept]), large[n_kept:]
    left = [int(group) for group in by_size if small[group]]

    place = np.full(len(names), HIDDEN, dtype=np.int64)
    place[kept] = np.arange(len(kept))
    shown = [names[group] for group in kept]
    pools: list[int | None] = []
    for pool, word in ((rest, "other"), (left, "small")):
        hidden = not pool or sizes[pool].sum() < FEWEST_MEMBERS
        pools.append(None if hidden else len(shown))
        if not hidden:
            place[pool] = len(shown)
            shown.append(names[pool[0]] if len(pool) == 1 else f"({len(pool)} {word} {noun})")
    listed = [
        ListedGroup(names[group], int(sizes[group]), standing, (group,))
        for groups, standing in ((kept, COMPARED), (rest, POOLED), (left, SMALL))
        for group in groups
        if not too_few[group]
    ]
    if too_few.any():
        listed.append(_unnamed(sizes, too_few, noun))
    return ShownGroups(place[codes], tuple(shown), pools[0], pools[1], tuple(listed), place)


def listed_groups(groups: ShownGroups, whole: WholeGroups | None = None) -> list[dict[str, Any]]:
    """List all groups with their rows as plain data, each with a note if it is not compared.

    Of a sample whose groups were counted over the whole table, also what they come to there.
    """
    listed, more = list(groups.listed[:MOST_LISTED]), groups.listed[MOST_LISTED:]
    if more:
        standings = {one.standing for one in more}
        standing = standings.pop() if len(standings) == 1 else SEVERAL
        members = tuple(member for one in more for member in one.members)
        listed.append(ListedGroup(f"({len(more)} more)", sum(one.rows for one in more), standing, members))
    return [
        {
            "name": one.name,
            "rows": one.rows,
            "compared": one.standing == COMPARED,
            "note": NOTES[one.standing],
        }
        | (
            {}
            if whole is None
            else dict(zip(("in_all", "rate_in_all"), whole.together(one.members), strict=True))
        )
        for one in listed
    ]


def tell_left_out(groups: ShownGroups, speak: Callable[[str], str], min_group_size: int) -> str | None:
    """Say which groups are not compared, and why; None if all are.

    Parameters
    ----------
    groups : ShownGroups
        The groups.
    speak : callable
        Gives a group's name as a sentence has it.
    min_group_size : int
        From how many rows on groups are compared in any case.

    Examples
    --------
    >>> import numpy as np
    >>> groups = show_groups(np.repeat([0, 1, 2], [3000, 2993, 7]), ("a", "b", "c"))
    >>> tell_left_out(groups, repr, 30)
    '1 group of fewer than 10 rows (7 rows) is left out of what compares groups, and not named.'
    """
    sentences = []
    small = [one for one in groups.listed if one.standing == SMALL]
    if small:
        names, sizes = [speak(one.name) for one in small], [one.rows for one in small]
        told = tell_small(names, sizes, np.ones(len(small), dtype=bool), min_group_size)
        verb = "is" if len(small) == 1 else "are"
        sentences.append(f"{told} {verb} left out of what compares groups.")
    for one in groups.listed:
        if one.standing == UNNAMED:
            verb, rows = ("is", "rows") if one.name.startswith("(1 ") else ("are", "rows in all")
            sentences.append(
                f"{one.name[1:-1]} ({one.rows} {rows}) {verb} left out of what compares groups, "
                "and not named."
            )
    pooled = [one.rows for one in groups.listed if one.standing == POOLED]
    if pooled:
        sentences.append(
            f"Only the {len(groups.compared)} largest groups are shown on their own and compared; the "
            f"{len(pooled)} others of enough rows ({sum(pooled):,} rows in all) are shown as one."
        )
    return " ".join(sentences) or None


def _unnamed(sizes: Codes, too_few: npt.NDArray[np.bool_], noun: str) -> ListedGroup:
    members = tuple(int(group) for group in np.flatnonzero(too_few))
    word = noun if len(members) > 1 else noun.removesuffix("s")
    name = f"({len(members)} {word} of fewer than {FEWEST_MEMBERS} rows)"
    return ListedGroup(name, int(sizes[too_few].sum()), UNNAMED, members)
