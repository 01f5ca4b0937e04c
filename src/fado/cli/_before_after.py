"""What an intervention did: rows, positive rates and effective sample sizes, before and after."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from fado.cli._inputs import Inputs
from fado.cli._summary import in_shown_order, print_table
from fado.tabular import SMALL_SHARE, group_rows, small_groups

__all__ = ["print_before_after"]

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
    before, after = inputs.weights, inputs.weights * factors
    positives = inputs.positives
    header = ["group", "rows", "rows\nafter"]
    if positives is not None:
        header += ["positive", "positive\nafter"]
    header += ["effective\nsize", "effective\nsize after"]
    groups = group_rows(inputs.attributes, quarters=True)
    small = small_groups(groups.sizes, min_group_size)
    shown = in_shown_order(groups, inputs.attributes)
    pooled = [group for group in shown if small[group]][MOST_SMALL:]
    parts = [
        (groups.titles[group] + (" *" if small[group] else ""), groups.codes == group)
        for group in shown
        if group not in pooled
    ]
    if pooled:
        parts.append((f"{len(pooled)} more small groups *", np.isin(groups.codes, pooled)))
    lines = []
    for title, members in (*parts, ("all rows", np.ones(inputs.n_rows, dtype=bool))):
        line: list[Any] = [title, int(members.sum()), int((factors[members] > 0).sum())]
        if positives is not None:
            line += [_rate(positives[members], weights[members]) for weights in (before, after)]
        line += [_effective_size(weights[members]) for weights in (before, after)]
        lines.append(line)
    print_table(f"Before and after, by {', '.join(inputs.protected)}", header, lines)
    if small.any():
        print(
            f"* too small to be compared: fewer than {min_group_size} rows, less than "
            f"{100 * SMALL_SHARE:g} % of the table"
        )


def _rate(positives: npt.NDArray[np.bool_], weights: FloatArray) -> float:
    total = weights.sum()
    return float(weights[positives].sum() / total) if total > 0 else float("nan")


def _effective_size(weights: FloatArray) -> int:
    """Give Kish's effective sample size: as many equal weights would tell as much."""
    squares = (weights**2).sum()
    return round(weights.sum() ** 2 / squares) if squares > 0 else 0
