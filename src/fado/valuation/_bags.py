"""Bags: which rows each leaves out."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from numbers import Real

import numpy as np
import numpy.typing as npt

from fado._checks import check_count
from fado._typing import Integers
from fado.tabular import Problem, Variable

MOST_BAGS = 100_000
BYTES = 4  # of a row's position in a bag


def check_bags(n_rows: int, n_bags: int, unseen_fraction: float, units: str = "rows") -> None:
    """Raise an error for bags that cannot cover every row, that leave a side empty, or that are too many."""
    if isinstance(unseen_fraction, bool) or not isinstance(unseen_fraction, Real):
        raise TypeError(f"`unseen_fraction` must be a number in (0, 1), got {unseen_fraction!r}.")
    if not 0 < unseen_fraction < 1:
        raise ValueError(f"`unseen_fraction` must be in (0, 1), got {unseen_fraction}.")
    check_count("n_bags", n_bags, 1, MOST_BAGS)
    if n_bags * unseen_fraction < 1 - 1e-9:
        enough = math.ceil(1 / unseen_fraction - 1e-9)
        raise ValueError(
            f"`n_bags * unseen_fraction` must be at least 1 for every row to be out of bag once, got "
            f"{n_bags} * {unseen_fraction} = {n_bags * unseen_fraction:g}; use `n_bags={enough}` or more."
        )
    unseen = n_rows * unseen_fraction
    if math.floor(unseen) < 1 or math.ceil(unseen) >= n_rows:
        side = "an out-of-bag set empty" if math.floor(unseen) < 1 else "an in-bag set empty"
        raise ValueError(
            f"`unseen_fraction={unseen_fraction}` of {n_rows} {units} (n_samples = {n_rows}) leaves {side}: "
            f"use more {units} or another fraction."
        )


def units_of(problem: Problem) -> tuple[int, str]:
    """Count what is dealt into bags, and name it: rows, or groups of rows that belong together."""
    if problem.blocks is None:
        return problem.n_rows, "rows"
    return int(problem.blocks.max()) + 1, "groups of rows"


def strata_of(variables: Sequence[Variable], unseen_fraction: float) -> npt.NDArray[np.int64]:
    """Return a number for each joint class of the class variables.

    Joint classes too small to reach every bag are merged into the class of the first variable, the target.
    """
    n_rows = len(variables[0].labels)
    joint = np.zeros(n_rows, dtype=np.int64)
    for variable in variables:
        if variable.kind == "classes":
            joint = _renumbered(joint * len(variable.classes) + variable.labels)
    if variables[0].kind == "classes":
        target = variables[0].labels.astype(np.int64)
    else:
        target = np.zeros(n_rows, dtype=np.int64)
    small = np.bincount(joint)[joint] < math.ceil(1 / unseen_fraction)
    return _renumbered(np.where(small, joint.max() + 1 + target, joint))


def _renumbered(codes: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Renumber the codes that occur as 0, 1, 2, ..., without sorting the rows."""
    occurs = np.bincount(codes) > 0
    return (np.cumsum(occurs) - 1)[codes]


def out_of_bag_sets(
    n_rows: int,
    n_bags: int,
    unseen_fraction: float,
    strata: npt.NDArray[np.int64],
    generator: np.random.Generator,
    row_groups: npt.NDArray[np.int64] | None = None,
) -> list[Integers]:
    """Draw the out-of-bag rows of every bag.

    Consecutive bags tile one permutation of the rows after another, so every row is left out equally often,
    give or take one, and never twice in one bag. Each permutation spreads every stratum evenly, so a bag's
    share of a stratum is the stratum's share to about one row.

    With `row_groups`, rows that belong together are left out together: the same is done with these groups
    instead of rows, each in the stratum of its first row.

    Returns
    -------
    list of ndarray
        Sorted row positions, one array per bag.
    """
    if row_groups is not None:
        _, first = np.unique(row_groups, return_index=True)
        units = out_of_bag_sets(len(first), n_bags, unseen_fraction, _renumbered(strata[first]), generator)
        return [np.flatnonzero(np.isin(row_groups, left_out)).astype(np.int32) for left_out in units]
    edges = np.rint(np.arange(n_bags + 1) * (n_rows * unseen_fraction)).astype(np.int64)
    edges[-1] = max(edges[-1], n_rows)  # n_bags * unseen_fraction may be 1 only up to rounding
    stream = _stream(n_rows, strata, generator)
    rest = next(stream)
    bags = []
    for size in np.diff(edges):
        if size <= len(rest):
            bag, rest = rest[:size], rest[size:]
        else:
            fresh = next(stream)
            used = np.zeros(n_rows, dtype=bool)
            used[rest] = True
            head = fresh[~used[fresh]][: size - len(rest)]
            bag = np.concatenate([rest, head])
            used[:] = False
            used[head] = True
            rest = fresh[~used[fresh]]
        bags.append(np.sort(bag).astype(np.int32))
    return bags


def _stream(
    n_rows: int, strata: npt.NDArray[np.int64], generator: np.random.Generator
) -> Iterator[npt.NDArray[np.int64]]:
    """Yield permutations without end, each with the rows of every stratum evenly spaced."""
    sizes = np.bincount(strata)
    first = np.cumsum(sizes) - sizes
    while True:
        shuffled = generator.permutation(n_rows)
        by_stratum = shuffled[np.argsort(strata[shuffled], kind="stable")]
        stratum = strata[by_stratum]
        rank = np.arange(n_rows) - first[stratum]
        offset = generator.random(len(sizes))
        position = (rank + offset[stratum]) / sizes[stratum]
        yield by_stratum[np.argsort(position, kind="stable")]
