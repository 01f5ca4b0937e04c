"""What an intervention did: rows, positive rates and effective sample sizes, before and after."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from fado.cli._inputs import Inputs
from fado.cli._summary import in_shown_order, print_table
from fado.interventions import GroupChange
from fado.tabular import SMALL_SHARE, group_rows, small_groups

__all__ = ["print_before_after", "print_changes"]

FloatArray = npt.NDArray[np.float64]

MOST_SMALL = 5  # small groups that have a line each; crossed attributes make hundreds


def print_before_after(inputs: Inputs, factors: FloatArray, min_group_size: int = 0) -> None:
    """Print a line per group and one for all rows.

    Parameters
    ----------
    inputs : Inputs
        The rows.
    factors : ndarray
        What each row's weight is multiplied by; a row that was dropped has 0.
    min_group_size : int
        Groups that are small by it are marked, and beyond a few of them told in one line.
    """
    groups = group_rows(inputs.attributes, quarters=True)
    small = small_groups(groups.sizes, min_group_size)
    changes = [
        _change(groups.titles[group], inputs, factors, groups.codes == group, is_small=bool(small[group]))
        for group in in_shown_order(groups, inputs.attributes)
    ]
    print_changes(list(inputs.protected), changes, min_group_size)


def print_changes(attributes: Sequence[str], changes: Sequence[GroupChange], min_group_size: int) -> None:
    """Print what became of groups, and of all rows.

    Parameters
    ----------
    attributes : sequence of str
        The protected attributes.
    changes : sequence of GroupChange
        The groups, in the order in which they are shown.
    min_group_size : int
        By which groups are small.
    """
    pooled = [own for own in changes if own.is_small][MOST_SMALL:]
    shown = [own for own in changes if own not in pooled]
    if pooled:
        shown.append(GroupChange.joined(f"{len(pooled)} more small groups", pooled, is_small=True))
    has_rates = all(own.positives is not None for own in changes)
    header = ["group", "rows", "rows\nafter"]
    if has_rates:
        header += ["positive", "positive\nafter"]
    header += ["effective\nsize", "effective\nsize after"]
    lines = []
    for own in (*shown, GroupChange.joined("all rows", changes)):
        line: list[Any] = [own.title + (" *" if own.is_small else ""), own.rows, own.rows_after]
        if has_rates:
            line += [own.positive_rate, own.positive_rate_after]
        lines.append([*line, own.effective_size, own.effective_size_after])
    print_table(f"Before and after, by {', '.join(attributes)}", header, lines)
    if any(own.is_small for own in changes):
        print(
            f"* too small to be compared: fewer than {min_group_size} rows, less than "
            f"{100 * SMALL_SHARE:g} % of the table"
        )


def _change(
    title: str, inputs: Inputs, factors: FloatArray, members: npt.NDArray[np.bool_], *, is_small: bool
) -> GroupChange:
    own, before = factors[members], inputs.weights[members]
    positives = None if inputs.positives is None else inputs.positives[members]
    after = before * own
    return GroupChange(
        title,
        is_small,
        len(own),
        int((own > 0).sum()),
        float(before.sum()),
        float(after.sum()),
        float((before**2).sum()),
        float((after**2).sum()),
        None if positives is None else float(before[positives].sum()),
        None if positives is None else float(after[positives].sum()),
    )
