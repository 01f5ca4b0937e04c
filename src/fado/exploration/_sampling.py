"""One pass over a table in files: a random sample of its rows, and counts of all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fado.exploration._sampled import Sampled
from fado.tabular import Problem, SmallestRows, Source, Variable, positive_code, read_problem, row_hash
from fado.valuation.large import BLOCK_ROWS, Roles, TablePass

__all__ = ["SampleRead", "read_sample"]

Codes = npt.NDArray[np.int64]
Labels = tuple[Any, ...]


@dataclass(frozen=True)
class SampleRead:
    """What the pass over all rows tells.

    Parameters
    ----------
    sampled : Sampled
        Which rows were drawn, and what was counted over all.
    table : pyarrow.Table
        The drawn rows.
    positive : label or None
        The target's positive label.
    target_pattern : str or None
        A digest of which of all rows share a label of the target; None for numbers.
    """

    sampled: Sampled
    table: pa.Table
    positive: Any
    target_pattern: str | None

    @property
    def is_whole(self) -> bool:
        """Whether all rows were drawn."""
        return len(self.sampled.places) == self.sampled.n_rows

    def problem(self, roles: Roles) -> Problem:
        """Read the drawn rows as `explore` reads a table; one of them must have the positive label."""
        target = roles.target.read(self.table, named=False)
        if self.positive is not None and self.positive not in target.unique().to_pylist():
            raise ValueError(
                f"None of the {self.table.num_rows:,} sampled rows has the positive label {self.positive!r}: "
                "explore more with `sample_rows`."
            )
        return read_problem(
            self.table.select(list(roles.features)),
            target,
            {own.name: own.read(self.table) for own in roles.attributes},
            sample_weight=roles.weights(self.table),
            pos_label=self.positive,
        ).with_mean_weight_one()


def read_sample(
    source: Source, roles: Roles, n_rows: int, seed: int, pos_label: Any, *, progress: bool
) -> SampleRead:
    """Read all rows once, block by block: keep those of the smallest hashes, count all.

    Parameters
    ----------
    source : Source
        The table.
    roles : Roles
        What its columns are for.
    n_rows : int
        How many rows to keep; all, if there are no more.
    seed : int
        Of the hashes.
    pos_label : label or None
        The positive label; None is the larger of two.
    progress : bool
        Whether to show a progress bar.
    """
    reading = TablePass(source, roles)
    smallest = SmallestRows(n_rows, reading.schema)
    pairs: list[Counter[tuple[int, int]]] = [Counter() for _ in roles.attributes]
    for block in reading.blocks(BLOCK_ROWS, progress=progress):
        smallest.add(row_hash(seed, block.rows), block.rows, block.table)
        for counter, codes in zip(pairs, block.codes[1:], strict=True):
            counter.update(dict(_count_pairs(codes, block.codes[0])))
    places, table = smallest.finish()
    pa.default_memory_pool().release_unused()
    (target, *attributes), (targets, *labels) = reading.variables(), reading.labels()
    positive = _positive_label(target, pos_label)
    code = None if positive is None or targets is None else targets.index(positive)
    counts = {
        own.name: _label_counts(counter, its_labels, code)
        for own, its_labels, counter in zip(attributes, labels, pairs, strict=True)
        if its_labels is not None
    }
    sampled = Sampled(places, reading.n_rows, seed, positive is not None, counts)
    return SampleRead(sampled, table, positive, reading.target_pattern())


def _count_pairs(groups: Codes, labels: Codes) -> Iterator[tuple[tuple[int, int], int]]:
    """Count how often each group and each label of the target meet."""
    n_labels = int(labels.max()) + 1
    found, counts = np.unique(groups * n_labels + labels, return_counts=True)
    for pair, count in zip(found.tolist(), counts.tolist(), strict=True):
        yield divmod(pair, n_labels), count


def _label_counts(
    pairs: Counter[tuple[int, int]], labels: Labels, positive: int | None
) -> dict[Any, tuple[int, int]]:
    """Add up the rows, and those of the positive label, of every label of an attribute."""
    counts = dict.fromkeys(labels, (0, 0))
    for (group, target), count in pairs.items():
        rows, positives = counts[labels[group]]
        counts[labels[group]] = rows + count, positives + (count if target == positive else 0)
    return counts


def _positive_label(target: Variable, pos_label: Any) -> Any:
    if target.kind == "continuous":
        if pos_label is None:
            return None
        raise ValueError("`pos_label` is for a target of classes, and this one is continuous: leave it out.")
    code = positive_code(target.classes, pos_label)
    return None if code is None else target.classes[code]
