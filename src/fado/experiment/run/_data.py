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
    Table,
    Variable,
    column_from,
    group_rows,
    positive_code,
    protected_from,
    read_table,
    source_column,
    variable_from,
    warn_of_missing,
    weights_of,
)

__all__ = ["Data", "Part", "read_data"]

MOST_GROUPS = 50

Bools = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]
Rows = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Part:
    """Some rows of the data, without what only a valuator looks at."""

    table: Table
    positive: Bools
    groups: Rows
    weights: Floats | None


@dataclass(frozen=True)
class Data:
    """The rows of all parts; `parts` says which rows are in which.

    Parameters
    ----------
    table : Table
        What models see.
    positive : ndarray of bool
        The rows of the positive label.
    positive_label : str
        The target and its positive label, for people.
    protected : dict of str to pandas.Series
        The protected attributes.
    sources : dict of str to str
        The column that each attribute was made from.
    groups : ndarray of int
        Each row's group, the combination of its protected attributes.
    group_names : list of str
        What the groups are called.
    parts : dict of str to ndarray
        The positions of the rows of each part, ascending; an empty part has none.
    weights : ndarray or None
        What each row counts; None stands for equal weights.
    blocks : ndarray or None
        Which rows belong together.
    """

    table: Table
    positive: Bools
    positive_label: str
    protected: dict[str, pd.Series]
    sources: dict[str, str]
    groups: Rows
    group_names: list[str]
    parts: dict[str, Rows]
    weights: Floats | None = None
    blocks: Rows | None = None

    def part(self, *names: str) -> Part:
        """Give the rows of some parts, one part after the other."""
        rows = np.concatenate([self.parts[name] for name in names])
        return Part(
            Table.of_columns([column.take(rows) for column in self.table.columns]),
            self.positive[rows],
            self.groups[rows],
            None if self.weights is None else self.weights[rows],
        )

    def fingerprint(self) -> str:
        """Give a digest of everything that a result depends on."""
        digest = hashlib.sha256()
        for column in self.table.columns:
            digest.update(repr((column.name, column.levels)).encode())
            digest.update(np.ascontiguousarray(column.numbers()).data)
        digest.update(repr((self.group_names, sorted(self.sources.items()))).encode())
        arrays = {"": self.positive, "groups": self.groups} | {part: self.parts[part] for part in PARTS}
        for array in arrays.values():
            digest.update(repr((array.dtype.str, array.shape)).encode())  # or a row could change its part
            digest.update(np.ascontiguousarray(array).data)
        for name, optional in (("weights", self.weights), ("blocks", self.blocks)):
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
                "rows": int((self.groups[rows] == group).sum()),
                "positives": int(self.positive[rows][self.groups[rows] == group].sum()),
            }
            for part, rows in self.parts.items()
            if len(rows)
            for group, name in enumerate(self.group_names)
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
    groups, names = _groups(protected)
    positive, label = _positive(table, about)
    features = table.drop_columns(sorted(set(unseen)))
    if features.num_columns == 0:
        raise ValueError("No column is left for the models to see: drop fewer.")
    blocks = _blocks(table, about.groups)
    if config.split.column is not None:
        parts = split_by_column(table, config.split)
    else:
        shares = [getattr(config.split, part)[0] for part in PARTS]
        generator = np.random.default_rng([config.seed, 2])
        parts = split_at_random(groups * 2 + positive, shares, generator, blocks)
    check_parts(parts, positive, config.split, about.target)
    return Data(
        table=Table.from_input(features),
        positive=positive,
        positive_label=f"{about.target} = {label}",
        protected=protected,
        sources={expression.strip(): source_column(others, expression) for expression in about.protected},
        groups=groups,
        group_names=names,
        parts=parts,
        weights=_weights(table, about.weight),
        blocks=blocks,
    )


def _source(config: Config) -> pa.Table:
    if config.data.path is not None:
        return read_table(Path(config.data.path))
    frame = make_account_fraud(config.data.rows, config.data.variant, random_state=config.seed)
    return pa.Table.from_pandas(frame, preserve_index=False)


def _check_column(table: pa.Table, name: str) -> None:
    if name not in table.column_names:
        raise ValueError(f"The data have no column {name!r}{closest_names(name, table.column_names)}")


def _groups(protected: dict[str, pd.Series]) -> tuple[Rows, list[str]]:
    """Give every row its group, and the groups' names."""
    variables = [_attribute(name, values) for name, values in protected.items()]
    warn_of_missing(variables)
    groups = group_rows(variables)
    if len(groups) > MOST_GROUPS:
        raise ValueError(
            f"`data.protected` makes {len(groups)} groups, too many to compare: cut numbers into a few, for "
            'example by "age>=50".'
        )
    if len(protected) > 1:
        return groups.codes, list(groups.names)
    return groups.codes, [f"{attribute}={name}" for attribute in protected for name in groups.names]


def _attribute(name: str, values: pd.Series) -> Variable:
    """Read an attribute with its classes in the order that they declare, or in which rows show them.

    Group after group, in this order, a random split draws its rows.
    """
    variable = variable_from(column_from(name, values), "classes")
    present, rows = np.unique(variable.labels, return_index=True)
    shown = values.cat.codes.to_numpy()[rows] if isinstance(values.dtype, pd.CategoricalDtype) else rows
    order = present[np.argsort(shown)]
    if variable.has_missing:  # the last of the classes, whatever rows show first
        order = np.append(order[order < len(variable.classes) - 1], len(variable.classes) - 1)
    place = np.zeros(len(variable.classes), dtype=np.int32)
    place[order] = np.arange(len(order))
    classes = tuple(variable.classes[code] for code in order)
    return replace(variable, labels=place[variable.labels], classes=classes)


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


def _weights(table: pa.Table, name: str | None) -> Floats | None:
    if name is None:
        return None
    try:
        return weights_of(table.column(name), table.num_rows)
    except ValueError as error:
        raise ValueError(str(error).replace("`sample_weight`", f"`data.weight`, {name!r},")) from error


def _blocks(table: pa.Table, name: str | None) -> Rows | None:
    if name is None:
        return None
    codes, _ = column_from(name, table.column(name)).encode()
    missing = int((codes < 0).sum())
    if missing:
        raise ValueError(
            f"`data.groups`, {name!r}, is missing in {missing:,} rows: say of every row what it belongs to."
        )
    return codes.astype(np.int64)
