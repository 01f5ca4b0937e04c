"""Which rows train, validate and test."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fado._messages import list_names
from fado.experiment.config import GIVEN, Config, SplitConfig
from fado.tabular import deal_rows

__all__ = ["PARTS", "check_parts", "split_at_random", "split_by_column", "split_rows"]

PARTS = ("train", "validation", "test")

Rows = npt.NDArray[np.int64]


def split_rows(
    table: pa.Table,
    split: SplitConfig,
    cells: Rows,
    generator: np.random.Generator,
    blocks: Rows | None = None,
) -> dict[str, Rows]:
    """Give every part its rows, ascending.

    Parameters
    ----------
    table : pyarrow.Table
        Has the column that decides, if one does.
    split : SplitConfig
        What decides.
    cells, generator, blocks
        As for `split_at_random`; not used if values of a column decide alone.
    """
    if split.column is None:
        shares = [getattr(split, part)[0] for part in PARTS]
        return split_at_random(cells, shares, generator, blocks)
    parts = split_by_column(table, split)
    if isinstance(split.validation, float) and split.validation > 0:
        rows = parts["train"]
        own = None if blocks is None else np.unique(blocks[rows], return_inverse=True)[1]
        drawn = split_at_random(cells[rows], [1 - split.validation, split.validation], generator, own)
        parts |= {part: rows[drawn[part]] for part in ("train", "validation")}
    return parts


def split_by_column(table: pa.Table, split: SplitConfig) -> dict[str, Rows]:
    """Give every part the rows whose entry of a column it names."""
    values = table.column(str(split.column)).to_pandas()
    parts = {}
    for part in PARTS:
        given = getattr(split, part)
        wanted: Sequence[Any] = given if isinstance(given, tuple) else ()
        for position, value in enumerate(wanted):
            if not (values == value).any():
                there = list_names(sorted(map(repr, values.unique().tolist())), most=10)
                raise ValueError(
                    f"`split.{part}[{position}]` is {value!r}, which no row of {split.column!r} has; it has "
                    f"{there}."
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
        Of the rows, for each of `PARTS`, or for the first of them.
    generator : numpy.random.Generator
        Of the draws.
    blocks : ndarray of int, optional
        Which rows belong together, 0, 1, 2, ...: whole blocks go to a part. A block counts for the rarest of
        its rows' cells.
    """
    dealt = deal_rows(cells, shares, generator, blocks)
    return {part: np.flatnonzero(dealt == number) for number, part in enumerate(PARTS)}


def check_parts(parts: dict[str, Rows], positive: npt.NDArray[np.bool_], config: Config) -> None:
    """Refuse parts that no model can be trained or measured on."""
    for part, rows in parts.items():
        if not len(rows) and (part != "validation" or config.split.has_validation):
            raise ValueError(f"The {part} part has no rows: {_remedy(part, config)}.")
        if len(rows) and len(np.unique(positive[rows])) < 2:
            label = "positives" if positive[rows].all() else "negatives"
            raise ValueError(
                f"The {part} part ({len(rows):,} rows) holds only {label} of {config.data.target!r}: "
                f"{_remedy(part, config)}."
            )


def _remedy(part: str, config: Config) -> str:
    """Say where a part's rows come from, and what gives it others."""
    split, given = config.split, getattr(config.split, part)
    if split.method == GIVEN:
        return "hand over other rows for it"
    together = ""
    if config.data.groups is not None and (split.column is None or isinstance(given, float)):
        together = f" (rows of equal {config.data.groups!r}, `data.groups`, stay together)"
    if split.column is None:
        return f"`split.{part}` is {given[0]:g} of the rows{together}; give it a larger share"
    if isinstance(given, float):
        return (
            f"`split.validation` is {given:g} of the rows of `split.train`{together}; give it a larger share"
        )
    values = list_names([repr(value) for value in given])
    return f"`split.{part}` names the rows whose {split.column!r} is {values}; name other values"
