"""Groups too small to have rates of their own: one rule for samplers, reweighers, metrics and pages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from fado._checks import check_count
from fado._messages import list_names

__all__ = ["MIN_GROUP_SIZE", "SMALL_SHARE", "check_min_group_size", "small_groups", "tell_small"]

MIN_GROUP_SIZE = 30  # rows
SMALL_SHARE = 0.01  # of the table


def small_groups(sizes: npt.ArrayLike, min_group_size: int = MIN_GROUP_SIZE) -> npt.NDArray[np.bool_]:
    """Mark the groups that have too few rows to be compared: few by number, and few of the table.

    Parameters
    ----------
    sizes : array-like of int
        How many rows each group has. A group without rows is none, and not marked.
    min_group_size : int, default=30
        From how many rows on a group is compared in any case. A group of fewer is small if it also has less
        than 1 % of the rows; 0 marks none.

    Examples
    --------
    >>> small_groups([5000, 4980, 20])
    array([False, False,  True])
    >>> small_groups([50, 30, 20])
    array([False, False, False])
    >>> small_groups([5000, 4980, 20], min_group_size=0)
    array([False, False, False])
    """
    counts = np.asarray(sizes)
    return (counts > 0) & (counts < min_group_size) & (counts < SMALL_SHARE * counts.sum())


def tell_small(
    names: Sequence[str], sizes: npt.ArrayLike, small: npt.NDArray[np.bool_], min_group_size: int
) -> str:
    """Say which groups are small, and why: the subject of a sentence that says what becomes of them.

    Examples
    --------
    >>> sizes = [5000, 4980, 20]
    >>> tell_small(["'a'", "'b'", "'c'"], sizes, small_groups(sizes), 30)
    "Group 'c' (20 rows), with fewer than 30 rows and less than 1 % of the table,"
    """
    counts = np.asarray(sizes)
    told = [
        f"{names[group]} ({counts[group]} {'row' if counts[group] == 1 else 'rows'})"
        for group in np.flatnonzero(small).tolist()
    ]
    return (
        f"Group{'s' if len(told) > 1 else ''} {list_names(told)}, with fewer than {min_group_size} rows and "
        f"less than {100 * SMALL_SHARE:g} % of the table,"
    )


def check_min_group_size(min_group_size: Any, name: str = "min_group_size") -> None:
    """Refuse what is no number of rows; 0 compares all groups."""
    check_count(name, min_group_size, 0, 10**12)
