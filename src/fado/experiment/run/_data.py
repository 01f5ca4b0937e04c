"""The data of an experiment: rows, parts, groups, and the fingerprint of them all."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from fado.experiment.config import Config, metric_functions
from fado.experiment.run._measuring import Comparison, Measuring
from fado.experiment.run._split import PARTS
from fado.tabular import Groups, Problem, Table, small_groups

__all__ = ["Data", "Part", "count_rows"]

Bools = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]
Rows = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Part:
    """Some rows of the data, without what only a valuator looks at; a group may have no rows here."""

    table: Table
    positive: Bools
    groups: Groups
    weights: Floats | None
    blocks: Rows | None = None


@dataclass(frozen=True)
class Data:
    """The rows of all parts; `parts` says which rows are in which.

    Parameters
    ----------
    problem : Problem
        What models see, which rows are positive, the protected attributes, weights and blocks.
    labels : tuple
        The negative and the positive label of the target.
    positive_label : str
        The target and its positive label, for people.
    sources : dict of str to tuple of str
        The columns that each attribute was made from.
    excluded : tuple of str
        The columns that models of protected attributes must not see.
    groups : Groups
        Each row's group, the combination of its protected attributes: that which interventions see.
    comparisons : tuple of Comparison
        The groups that ratios compare: these, or those of each attribute.
    parts : dict of str to ndarray
        The positions of the rows of each part, ascending; an empty part has none.
    min_group_size : int
        From how many rows on a group is compared in any case.
    """

    problem: Problem
    labels: tuple[Any, Any]
    positive_label: str
    sources: dict[str, tuple[str, ...]]
    excluded: tuple[str, ...]
    groups: Groups
    comparisons: tuple[Comparison, ...]
    parts: dict[str, Rows]
    min_group_size: int

    @property
    def positive(self) -> Bools:
        """The rows of the positive label."""
        return self.problem.labels.is_positive

    @property
    def compared(self) -> Bools:
        """The groups, of all attributes crossed, that are large enough in every part."""
        sizes = count_rows(self.groups, self.parts["train"])
        small = small_groups(sizes, self.min_group_size) | (sizes == 0)
        if self.comparisons[0].attribute is None:
            small |= self.comparisons[0].left_out
        return ~small

    def part(self, *names: str) -> Part:
        """Give the rows of some parts, one part after the other."""
        rows = np.concatenate([self.parts[name] for name in names])
        weights, blocks = self.problem.sample_weight, self.problem.blocks
        return Part(
            Table.of_columns(
                [column.take(rows) for column in self.problem.table.columns],
                named=self.problem.table.is_named,
            ),
            self.positive[rows],
            replace(self.groups, codes=self.groups.codes[rows]),
            None if weights is None else weights[rows],
            None if blocks is None else np.unique(blocks[rows], return_inverse=True)[1],
        )

    def measuring(self, config: Config, metrics: Mapping[str, Callable[..., Any]] | None = None) -> Measuring:
        """Give the rows that models are measured on, and how.

        Parameters
        ----------
        config : Config
            Says how.
        metrics : mapping of str to callable, optional
            Metrics that it names and that are not registered.
        """
        evaluated = self.part("validation", "test")
        rows = np.concatenate([self.parts[name] for name in ("validation", "test")])
        return Measuring(
            evaluated.positive,
            evaluated.weights,
            tuple(comparison.take(rows) for comparison in self.comparisons),
            len(self.parts["validation"]),
            config.evaluation,
            config.seed,
            evaluated.groups,
            metric_functions(config.evaluation.metrics, metrics),
        )

    def fingerprint(self) -> str:
        """Give a digest of everything that a result depends on."""
        digest = hashlib.sha256()
        for column in self.problem.table.columns:
            digest.update(repr((column.name, column.levels)).encode())
            digest.update(np.ascontiguousarray(column.numbers()).data)
        sources = {name: own[0] if len(own) == 1 else own for name, own in sorted(self.sources.items())}
        digest.update(repr((list(self.groups.names), list(sources.items()))).encode())
        for array in (self.positive, self.groups.codes, *(self.parts[part] for part in PARTS)):
            digest.update(repr((array.dtype.str, array.shape)).encode())  # or a row could change its part
            digest.update(np.ascontiguousarray(array).data)
        for name, optional in (("weights", self.problem.sample_weight), ("blocks", self.problem.blocks)):
            if optional is not None:
                digest.update(name.encode())
                digest.update(np.ascontiguousarray(optional).data)
        if any(small := self._small()):  # results differ from those of releases that knew no small groups
            digest.update(repr(small).encode())
        return digest.hexdigest()

    def _small(self) -> list[list[str]]:
        """Name the groups that interventions leave alone, and those that are left out of ratios."""
        training = small_groups(count_rows(self.groups, self.parts["train"]), self.min_group_size)
        marked = [(self.groups, training), *((own.groups, own.left_out) for own in self.comparisons)]
        return [[groups.names[group] for group in np.flatnonzero(small)] for groups, small in marked]

    def summary(self) -> list[dict[str, Any]]:
        """Count rows and positives of every part and group, and say which groups are left out of ratios."""
        return [
            {
                "part": part,
                "group": name,
                "rows": int(counts[group]),
                "positives": int(positives[group]),
                "attribute": comparison.attribute,
                "left_out": bool(comparison.left_out[group]),
            }
            for part, rows in self.parts.items()
            if len(rows)
            for comparison in self.comparisons
            for counts in [count_rows(comparison.groups, rows)]
            for positives in [count_rows(comparison.groups, rows[self.positive[rows]])]
            for group, name in enumerate(comparison.groups.names)
        ]


def count_rows(groups: Groups, rows: Rows) -> Rows:
    """Count the rows of every group among some."""
    return np.bincount(groups.codes[rows], minlength=len(groups))
