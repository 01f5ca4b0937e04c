"""Which rows train, choose and judge."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fado.experiment.config import SplitConfig

__all__ = ["PARTS", "check_parts", "split_at_random", "split_by_column"]

PARTS = ("train", "validation", "test")

Rows = npt.NDArray[np.int64]


def split_by_column(table: pa.Table, split: SplitConfig) -> dict[str, Rows]:
    """Give every part the rows whose entry of a column it names."""
    values = table.column(str(split.column)).to_pandas()
    parts = {}
    for part in PARTS:
        wanted: Sequence[Any] = getattr(split, part)
        for position, value in enumerate(wanted):
            if not (values == value).any():
                raise ValueError(
                    f"`split.{part}[{position}]` is {value!r}, which no row of {split.column!r} has."
                )
        parts[part] = np.flatnonzero(values.isin(wanted).to_numpy())
    return parts


def split_at_random(
    cells: Rows, shares: Sequence[float], generator: np.random.Generator, blocks: Rows | None = None
) -> dict[str, Rows]:
    """Give every part its share of every label and group: to one row, or, with blocks, about that.

    Parameters
    ----------
    cells : ndarray of int
        Each row's combination of label and group.
    shares : sequence of float
        Of the rows, for each of `PARTS`.
    generator : numpy.random.Generator
        Of the draws.
    blocks : ndarray of int, optional
        Which rows belong together, 0, 1, 2, ...: whole blocks go to a part. A block counts for the rarest of
        its rows' cells.
    """
    blocks = np.arange(len(cells)) if blocks is None else blocks
    sizes = np.bincount(blocks)
    rarest = np.lexsort((cells, np.bincount(cells)[cells], blocks))[np.cumsum(sizes) - sizes]
    stratum = cells[rarest]
    drawn = np.empty(len(sizes), dtype=np.int64)
    edges = np.cumsum(shares)[:-1]
    for cell in np.unique(stratum):
        members = generator.permutation(np.flatnonzero(stratum == cell))
        before = np.cumsum(sizes[members]) - sizes[members]
        place = (before + generator.random() * sizes[members]) / sizes[members].sum()
        drawn[members] = np.searchsorted(edges, place, side="right")
    return {part: np.flatnonzero(drawn[blocks] == number) for number, part in enumerate(PARTS)}


def check_parts(
    parts: dict[str, Rows], positive: npt.NDArray[np.bool_], split: SplitConfig, target: str
) -> None:
    """Refuse parts that no model can be trained or judged on."""
    for part, rows in parts.items():
        if not len(rows) and (part != "validation" or split.has_validation):
            raise ValueError(f"The {part} part has no rows: change the `split`.")
        if len(rows) and len(np.unique(positive[rows])) < 2:
            raise ValueError(
                f"The {part} part ({len(rows):,} rows) holds only one label of {target!r}: change the "
                "`split`."
            )
