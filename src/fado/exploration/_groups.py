"""The groups that a page shows: which are compared, which are shown as one, and which are only listed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from fado._messages import list_names
from fado._typing import Bools, Floats, Integers
from fado.tabular import MIN_GROUP_SIZE, SMALL_SHARE, Groups

if TYPE_CHECKING:
    from fado.exploration._files import Sampled

FEWEST_MEMBERS = 10  # groups of fewer rows are never named
MOST_GROUPS = 12

# why a listed group is not compared
POOLED, SMALL, UNNAMED = "shown with others", "too small to compare", "too small to compare or to name"
OF_UNKNOWN = "the group is unknown"


class ListedGroup(NamedTuple):
    """A group with its rows, why it is not compared (None if it is), and the groups that it contains."""

    name: str
    rows: int
    note: str | None
    members: tuple[int, ...]


@dataclass(frozen=True)
class ShownGroups:
    """The groups that are shown: per row the position of its group's name, -1 for a row of none of them.

    Parameters
    ----------
    codes : ndarray of int
        Each row's shown group.
    names : tuple of str
        The shown groups: those that are compared, the unknown one, and those beyond the largest as one.
    n_compared : int
        How many of them, the first, are compared with each other.
    listed : tuple of ListedGroup
        All groups, the compared ones first; those of fewer than ten rows as one, without their names.
    place : ndarray of int
        For each group, the shown one that it is part of; -1 for small groups.
    """

    codes: Integers
    names: tuple[str, ...]
    n_compared: int
    listed: tuple[ListedGroup, ...] = ()
    place: Integers = field(default_factory=lambda: np.empty(0, dtype=np.int64), repr=False)

    def __len__(self) -> int:
        return len(self.names)

    @property
    def compared(self) -> range:
        """The groups that are compared with each other."""
        return range(self.n_compared)

    @property
    def sizes(self) -> Integers:
        """How many rows each group has."""
        return self.count(np.ones(len(self.codes), dtype=bool))

    def count(self, rows: Bools) -> Integers:
        """Count the marked rows of each group."""
        return np.bincount(self.codes[rows & (self.codes >= 0)], minlength=len(self))

    def total(self, amounts: npt.NDArray[Any]) -> Floats:
        """Add up amounts, group by group."""
        there = self.codes >= 0
        sums = np.bincount(self.codes[there], amounts[there], minlength=len(self))
        return np.asarray(sums, dtype=np.float64)

    def members(self, group: int) -> Bools:
        """Mark the rows of one group."""
        return self.codes == group


def divided(sums: npt.NDArray[Any], counts: npt.NDArray[Any]) -> list[float | None]:
    """Divide sums by counts; None where the count is 0."""
    return [float(total / count) if count > 0 else None for total, count in zip(sums, counts, strict=True)]


def show_groups(groups: Groups, min_group_size: int = MIN_GROUP_SIZE, *, noun: str = "groups") -> ShownGroups:
    """Choose which groups are compared.

    Groups that are small by `Groups.compared`, and groups of fewer than ten rows, are listed and not shown;
    of more than a dozen others the smallest are shown as one. The unknown group is shown, and not compared.

    Examples
    --------
    >>> import numpy as np
    >>> groups = Groups(np.repeat([0, 1, 2, 3], [30, 20, 7, 4]), tuple("abcd"), tuple("abcd"))
    >>> shown = show_groups(groups)
    >>> shown.names, shown.sizes, shown.listed[-1].name
    (('a', 'b'), array([30, 20]), '(2 groups of fewer than 10 rows)')
    """
    sizes, names = groups.sizes, groups.titles
    too_few = (sizes > 0) & (sizes < FEWEST_MEMBERS)
    small = ~groups.compared(min_group_size) | too_few
    by_size = np.argsort(-sizes, kind="stable").tolist()
    large = [group for group in by_size if sizes[group] and not small[group]]
    n_kept = len(large) if len(large) <= MOST_GROUPS else MOST_GROUPS - 1
    kept, rest = sorted(large[:n_kept]), large[n_kept:]
    unknown = [] if groups.unknown is None or too_few[groups.unknown] else [groups.unknown]
    left = [group for group in by_size if small[group] and not too_few[group] and group not in unknown]
    shown: list[str] = []
    place = np.full(len(names), -1, dtype=np.int64)
    for members in (*([group] for group in kept), unknown, rest):
        if members:
            place[members] = len(shown)
            shown.append(names[members[0]] if len(members) == 1 else f"({len(members)} other {noun})")
    listed = [
        ListedGroup(names[group], int(sizes[group]), note, (group,))
        for members, note in ((kept, None), (unknown, OF_UNKNOWN), (rest, POOLED), (left, SMALL))
        for group in members
    ]
    if too_few.any():
        hidden = tuple(np.flatnonzero(too_few).tolist())
        word = noun if len(hidden) > 1 else noun.removesuffix("s")
        name = f"({len(hidden)} {word} of fewer than {FEWEST_MEMBERS} rows)"
        listed.append(ListedGroup(name, int(sizes[too_few].sum()), UNNAMED, hidden))
    return ShownGroups(place[groups.codes], tuple(shown), len(kept), tuple(listed), place)


def listed_groups(
    groups: ShownGroups, sampled: Sampled | None = None, whole: Integers | None = None
) -> list[dict[str, Any]]:
    """List all groups with their rows; for a sample, also their rows and rates in the whole table."""
    entries = []
    for one in groups.listed:
        entry = {"name": one.name, "rows": one.rows, "compared": one.note is None, "note": one.note}
        if sampled is not None and whole is not None:
            entry["in_all"], entry["rate_in_all"] = sampled.together(whole, one.members)
        entries.append(entry)
    return entries


def tell_left_out(groups: ShownGroups, speak: Callable[[str], str], min_group_size: int) -> str | None:
    """Say which groups are not compared, and why; None if all are.

    Examples
    --------
    >>> import numpy as np
    >>> groups = Groups(np.repeat([0, 1, 2], [3000, 2993, 7]), tuple("abc"), tuple("abc"))
    >>> tell_left_out(show_groups(groups), repr, 30)
    '1 group of fewer than 10 rows (7 rows) is not compared and not named.'
    """
    sentences = []
    small, unnamed, pooled, unknown = (
        [one for one in groups.listed if one.note == note] for note in (SMALL, UNNAMED, POOLED, OF_UNKNOWN)
    )
    for one in unknown:
        sentences.append(f"The group of {one.rows:,} rows is unknown: they are compared with no other.")
    if small:
        names = list_names([f"{speak(one.name)} ({one.rows} rows)" for one in small])
        sentences.append(
            f"Group{'s' if len(small) > 1 else ''} {names}, with fewer than {min_group_size} rows and less "
            f"than {100 * SMALL_SHARE:g} % of the table, {'is' if len(small) == 1 else 'are'} not compared."
        )
    for one in unnamed:
        in_all, verb = ("", "is") if len(one.members) == 1 else (" in all", "are")
        sentences.append(f"{one.name[1:-1]} ({one.rows} rows{in_all}) {verb} not compared and not named.")
    if pooled:
        rows = sum(one.rows for one in pooled)
        sentences.append(
            f"Only the {len(groups.compared)} largest groups are shown one by one and compared; the "
            f"{len(pooled)} others with enough rows ({rows:,} rows in all) are shown together as one."
        )
    return " ".join(sentences) or None


def cells_of(groups: ShownGroups, labels: ShownGroups) -> Iterator[tuple[str, str, npt.NDArray[np.intp]]]:
    """Go through the rows of every rated group and label that have at least ten."""
    for group, group_name in enumerate(groups.names):
        for label, label_name in enumerate(labels.names):
            rows = np.flatnonzero(groups.members(group) & labels.members(label))
            if len(rows) >= FEWEST_MEMBERS:
                yield group_name, label_name, rows
