"""The data of an experiment: read, split, encoded, and fingerprinted."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa

from fado._messages import closest_names, list_names, warn_user
from fado.datasets import make_account_fraud
from fado.experiment.config import Config, DataConfig
from fado.experiment.run._judging import Comparison, Judging, few_rows
from fado.experiment.run._split import PARTS, check_parts, split_rows
from fado.tabular import (
    Groups,
    Problem,
    Table,
    Variable,
    check_compared,
    column_from,
    group_rows,
    is_pattern,
    names_like,
    positive_code,
    protected_from,
    read_problem,
    read_table,
    small_groups,
    source_columns,
    warn_of_missing,
)

__all__ = ["Data", "Part", "read_data"]

MOST_GROUPS = 50

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


@dataclass(frozen=True)
class Data:
    """The rows of all parts; `parts` says which rows are in which.

    Parameters
    ----------
    problem : Problem
        What models see, which rows are positive, the protected attributes, weights and blocks.
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

    def part(self, *names: str) -> Part:
        """Give the rows of some parts, one part after the other."""
        rows = np.concatenate([self.parts[name] for name in names])
        weights = self.problem.sample_weight
        return Part(
            Table.of_columns([column.take(rows) for column in self.problem.table.columns]),
            self.positive[rows],
            replace(self.groups, codes=self.groups.codes[rows]),
            None if weights is None else weights[rows],
        )

    def judging(self, config: Config) -> Judging:
        """Give the rows that models are judged on, and how."""
        judges = self.part("validation", "test")
        rows = np.concatenate([self.parts[name] for name in ("validation", "test")])
        return Judging(
            judges.positive,
            judges.weights,
            tuple(comparison.take(rows) for comparison in self.comparisons),
            len(self.parts["validation"]),
            config.evaluation,
            config.seed,
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
        training = small_groups(_sizes(self.groups, self.parts["train"]), self.min_group_size)
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
            for counts in [_sizes(comparison.groups, rows)]
            for positives in [_sizes(comparison.groups, rows[self.positive[rows]])]
            for group, name in enumerate(comparison.groups.names)
        ]


def read_data(config: Config) -> Data:
    """Read or generate the table and take from it what the configuration names."""
    table = _source(config)
    about = config.data
    unseen = [name for name in (about.target, about.weight, about.groups) if name is not None]
    for name in unseen:
        _check_column(table.column_names, name)
    unseen += _matching(table.column_names, about.drop)
    if config.split.column is not None:
        _check_column(table.column_names, config.split.column)
        unseen.append(config.split.column)  # its values tell the parts apart, and so mean nothing to a model
    others = table.drop_columns([about.target])
    protected = _protected(others, about.protected)
    positive, label = _positive(table, about)
    features = table.drop_columns(sorted(set(unseen)))
    if features.num_columns == 0:
        raise ValueError("No column is left for the models to see: drop fewer.")
    excluded = _matching(table.column_names, about.exclude, features.column_names)
    problem = _problem(features, positive, protected, table, about)
    warn_of_missing(problem.protected)
    groups = _groups(problem.protected)
    cells = groups.codes * 2 + positive
    parts = split_rows(table, config.split, cells, np.random.default_rng([config.seed, 2]), problem.blocks)
    check_parts(parts, positive, config)
    return Data(
        problem=problem,
        positive_label=f"{about.target} = {label}",
        sources={expression.strip(): source_columns(others, expression) for expression in about.protected},
        excluded=tuple(excluded),
        groups=groups,
        comparisons=_comparisons(problem.protected, groups, parts, config),
        parts=parts,
        min_group_size=about.min_group_size,
    )


def _protected(table: pa.Table, expressions: Sequence[str]) -> dict[str, pd.Series]:
    """Read the protected attributes; one that does not tell rows apart is refused."""
    found = {}
    for number, expression in enumerate(expressions):
        try:
            found[expression.strip()] = protected_from(table, expression)
            check_compared(table, expression)
        except ValueError as error:
            place = f"`data.protected[{number}]`" if len(expressions) > 1 else "`data.protected`"
            raise ValueError(str(error).replace("`expression`", place)) from error
    return found


def _problem(
    features: pa.Table, positive: Bools, protected: dict[str, pd.Series], table: pa.Table, about: DataConfig
) -> Problem:
    """Read what the configuration names; a sentence about it calls columns as the configuration does."""
    beside = {"sample_weight": ("data.weight", about.weight), "groups": ("data.groups", about.groups)}
    given = {argument: table.column(name) for argument, (_, name) in beside.items() if name is not None}
    try:
        return read_problem(features, positive, protected, **given)
    except ValueError as error:
        message = str(error)
        for argument, (place, name) in beside.items():
            message = message.replace(f"`{argument}`", f"`{place}`, {name!r},")
        raise ValueError(message) from error


def _groups(protected: Sequence[Variable]) -> Groups:
    """Give every row its group, by a name that tells the attribute."""
    groups = group_rows(protected, appearance=True)
    if len(protected) > 1:
        return groups
    return replace(groups, names=tuple(f"{protected[0].name}={name}" for name in groups.names))


def _comparisons(
    protected: Sequence[Variable], groups: Groups, parts: dict[str, Rows], config: Config
) -> tuple[Comparison, ...]:
    """Give the groups that ratios compare, and say which are left out."""
    least = config.data.min_group_size
    judges = {part: parts[part] for part in ("validation", "test") if len(parts[part])}
    divisions: dict[str | None, Groups] = {None: groups}
    if config.attributes:
        divisions = {variable.name: _groups([variable]) for variable in protected}
    found = []
    for attribute, own in divisions.items():
        left_out = few_rows([_sizes(own, rows) for rows in judges.values()], least)
        found.append(Comparison(attribute, own, left_out))
        compared = len(own) - int(left_out.sum())
        if compared > MOST_GROUPS:
            raise ValueError(
                f"`data.protected` makes {compared} groups, too many to compare: cut numbers into a few, for "
                'example by "age>=50".'
            )
        if left_out.any() and compared < 2:
            raise ValueError(
                f"{_told(own, left_out, judges, least)}, and fewer than two groups are left to compare: "
                "merge groups, or lower `data.min_group_size`."
            )
    for comparison in found:
        if comparison.left_out.any():
            warn_user(
                f"{_told(comparison.groups, comparison.left_out, judges, least)}: ratios leave them out. "
                "`data.min_group_size` sets the size."
            )
    return tuple(found)


def _told(groups: Groups, left_out: Bools, judges: dict[str, Rows], least: int) -> str:
    """Say which groups are small: the beginning of a sentence."""
    sizes = {part: _sizes(groups, rows) for part, rows in judges.items()}
    small = np.flatnonzero(left_out)
    names = [
        f"{groups.names[group]} ({', '.join(f'{part} {counts[group]}' for part, counts in sizes.items())})"
        for group in small
    ]
    subject = "1 group has" if len(small) == 1 else f"{len(small)} groups have"
    where = " or the ".join(judges)
    return f"{subject} fewer than {least} rows and less than 1 % of the {where} part: {list_names(names)}"


def _sizes(groups: Groups, rows: Rows) -> Rows:
    """Count the rows of every group among some."""
    return np.bincount(groups.codes[rows], minlength=len(groups))


def _source(config: Config) -> pa.Table:
    if config.data.path is not None:
        return read_table(Path(config.data.path))
    frame = make_account_fraud(config.data.rows, config.data.variant, random_state=config.seed)
    return pa.Table.from_pandas(frame, preserve_index=False)


def _check_column(there: Sequence[str], name: str) -> None:
    if name not in there:
        raise ValueError(f"The data have no column {name!r}{closest_names(name, there)}")


def _matching(there: Sequence[str], wanted: Sequence[str], among: Sequence[str] | None = None) -> list[str]:
    """Give the columns that are named, or that match a shell pattern such as ``age_*``.

    Parameters
    ----------
    there : sequence of str
        The columns of the table: a name must be one of them, whatever it looks like as a pattern.
    wanted : sequence of str
        Names and patterns.
    among : sequence of str, optional
        The columns that a pattern may match; all of them if there are none.
    """
    found: list[str] = []
    for name in wanted:
        if name in there or not is_pattern(name):
            _check_column(there, name)
            found.append(name)
            continue
        matches = names_like(name, there if among is None else among)
        if not matches:
            raise ValueError(f"No column matches {name!r}{closest_names(name, there)}")
        found += matches
    return list(dict.fromkeys(found))


def _positive(table: pa.Table, about: DataConfig) -> tuple[Bools, Any]:
    """Mark the rows of the positive label, and give it: the one that is named, else the larger of the two."""
    column = column_from(about.target, table.column(about.target))
    codes, entries = column.encode()
    missing = int((codes < 0).sum())
    if missing:
        raise ValueError(f"The target {about.target!r} is missing in {missing:,} rows: drop or label them.")
    if len(entries) != 2:
        shown = ", ".join(repr(column.label_of(entry)) for entry in entries[:5])
        raise ValueError(
            f"The target {about.target!r} must hold two labels, got {len(entries)} "
            f"({shown}{', ...' if len(entries) > 5 else ''}): models are judged by true and false positives."
        )
    labels = [column.label_of(entry) for entry in entries]
    code = positive_code(labels, about.positive, "data.positive")
    return codes == code, labels[1 if code is None else code]
