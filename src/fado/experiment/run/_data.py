"""The data of an experiment: read, split, encoded, and fingerprinted."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa

from fado._messages import closest_names
from fado.datasets import make_account_fraud
from fado.experiment.config import Config, DataConfig
from fado.experiment.run._split import PARTS, check_parts, split_at_random, split_by_column
from fado.tabular import (
    Groups,
    Problem,
    Table,
    column_from,
    group_rows,
    positive_code,
    protected_from,
    read_problem,
    read_table,
    source_column,
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
    sources : dict of str to str
        The column that each attribute was made from.
    groups : Groups
        Each row's group, the combination of its protected attributes.
    parts : dict of str to ndarray
        The positions of the rows of each part, ascending; an empty part has none.
    """

    problem: Problem
    positive_label: str
    sources: dict[str, str]
    groups: Groups
    parts: dict[str, Rows]

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

    def fingerprint(self) -> str:
        """Give a digest of everything that a result depends on."""
        digest = hashlib.sha256()
        for column in self.problem.table.columns:
            digest.update(repr((column.name, column.levels)).encode())
            digest.update(np.ascontiguousarray(column.numbers()).data)
        digest.update(repr((list(self.groups.names), sorted(self.sources.items()))).encode())
        for array in (self.positive, self.groups.codes, *(self.parts[part] for part in PARTS)):
            digest.update(repr((array.dtype.str, array.shape)).encode())  # or a row could change its part
            digest.update(np.ascontiguousarray(array).data)
        for name, optional in (("weights", self.problem.sample_weight), ("blocks", self.problem.blocks)):
            if optional is not None:
                digest.update(name.encode())
                digest.update(np.ascontiguousarray(optional).data)
        return digest.hexdigest()

    def summary(self) -> list[dict[str, Any]]:
        """Count rows and positives of every part and group."""
        return [
            {
                "part": part,
                "group": name,
                "rows": int((self.groups.codes[rows] == group).sum()),
                "positives": int(self.positive[rows][self.groups.codes[rows] == group].sum()),
            }
            for part, rows in self.parts.items()
            if len(rows)
            for group, name in enumerate(self.groups.names)
        ]


def read_data(config: Config) -> Data:
    """Read or generate the table and take from it what the configuration names."""
    table = _source(config)
    about = config.data
    unseen = [name for name in (about.target, *about.drop, about.weight, about.groups) if name is not None]
    for name in (*unseen, *about.exclude):
        _check_column(table, name)
    if config.split.column is not None:
        _check_column(table, config.split.column)
        unseen.append(config.split.column)  # its values tell the parts apart, and so mean nothing to a model
    others = table.drop_columns([about.target])
    protected = {expression.strip(): protected_from(others, expression) for expression in about.protected}
    positive, label = _positive(table, about)
    features = table.drop_columns(sorted(set(unseen)))
    if features.num_columns == 0:
        raise ValueError("No column is left for the models to see: drop fewer.")
    problem = _problem(features, positive, protected, table, about)
    warn_of_missing(problem.protected)
    groups = _groups(problem)
    if config.split.column is not None:
        parts = split_by_column(table, config.split)
    else:
        shares = [getattr(config.split, part)[0] for part in PARTS]
        generator = np.random.default_rng([config.seed, 2])
        parts = split_at_random(groups.codes * 2 + positive, shares, generator, problem.blocks)
    check_parts(parts, positive, config.split, about.target)
    return Data(
        problem=problem,
        positive_label=f"{about.target} = {label}",
        sources={expression.strip(): source_column(others, expression) for expression in about.protected},
        groups=groups,
        parts=parts,
    )


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


def _groups(problem: Problem) -> Groups:
    """Give every row its group, by a name that tells the attribute."""
    groups = group_rows(problem.protected, appearance=True)
    if len(groups) > MOST_GROUPS:
        raise ValueError(
            f"`data.protected` makes {len(groups)} groups, too many to compare: cut numbers into a few, for "
            'example by "age>=50".'
        )
    if len(problem.protected) > 1:
        return groups
    return replace(groups, names=tuple(f"{problem.protected[0].name}={name}" for name in groups.names))


def _source(config: Config) -> pa.Table:
    if config.data.path is not None:
        return read_table(Path(config.data.path))
    frame = make_account_fraud(config.data.rows, config.data.variant, random_state=config.seed)
    return pa.Table.from_pandas(frame, preserve_index=False)


def _check_column(table: pa.Table, name: str) -> None:
    if name not in table.column_names:
        raise ValueError(f"The data have no column {name!r}{closest_names(name, table.column_names)}")


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
