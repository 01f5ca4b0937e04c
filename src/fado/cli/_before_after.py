"""What an intervention did: rows, positive rates and effective sample sizes, before and after."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from fado.cli._summary import groups_of, print_table

__all__ = ["print_before_after"]

Mask = npt.NDArray[np.bool_]


def print_before_after(protected: Mapping[str, pd.Series], positives: Mask | None, weights: Any) -> None:
    """Print a line per group and one for all rows; a row that was dropped has the weight 0."""
    weights = np.asarray(weights, dtype=np.float64)
    before = np.ones(len(weights))
    header = ["group", "rows", "rows after"]
    if positives is not None:
        header += ["positive", "positive after"]
    header += ["effective size", "effective size after"]
    lines = []
    for name, members in (*_crossed(protected), ("all rows", np.ones(len(weights), dtype=bool))):
        line: list[Any] = [name, int(members.sum()), int((weights[members] > 0).sum())]
        if positives is not None:
            line += [_rate(positives[members], before[members]), _rate(positives[members], weights[members])]
        line += [_effective_size(before[members]), _effective_size(weights[members])]
        lines.append(line)
    print_table(f"Before and after, by {', '.join(protected)}", header, lines)


def _crossed(protected: Mapping[str, pd.Series]) -> Iterator[tuple[str, Mask]]:
    """Give the combinations of the attributes' groups that have rows."""
    attributes = [
        [(f"{name}={group}" if len(protected) > 1 else group, members) for group, members in groups.items()]
        for name, groups in ((name, groups_of(attribute)) for name, attribute in protected.items())
    ]
    for combination in itertools.product(*attributes):
        members = np.logical_and.reduce([mask for _, mask in combination])
        if members.any():
            yield ", ".join(name for name, _ in combination), members


def _rate(positives: Mask, weights: npt.NDArray[np.float64]) -> float:
    total = weights.sum()
    return float(weights[positives].sum() / total) if total > 0 else float("nan")


def _effective_size(weights: npt.NDArray[np.float64]) -> int:
    """Give Kish's effective sample size: as many equal weights would tell as much."""
    squares = (weights**2).sum()
    return round(weights.sum() ** 2 / squares) if squares > 0 else 0
