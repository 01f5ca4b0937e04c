"""The data of an experiment: read, split, encoded, and fingerprinted."""

from __future__ import annotations

import difflib
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa

from fado._frames import Column, column_from
from fado._reading import read_table
from fado.datasets import make_account_fraud, protected_from
from fado.datasets._protected import source_column
from fado.experiment._settings import Config, DataConfig, SplitConfig
from fado.metrics._groups import encode_groups

__all__ = ["PARTS", "Data", "read_data"]

PARTS = ("train", "validation", "test")
MOST_GROUPS = 50

Rows = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Data:
    """The rows of all parts; `parts` says which rows are in which.

    Parameters
    ----------
    features : pyarrow.Table
        What models see.
    columns : tuple of Column
        The same, as engines take it.
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
    """

    features: pa.Table
    columns: tuple[Column, ...]
    positive: npt.NDArray[np.bool_]
    positive_label: str
    protected: dict[str, pd.Series]
    sources: dict[str, str]
    groups: Rows
    group_names: list[str]
    parts: dict[str, Rows]

    def fingerprint(self) -> str:
        """Give a digest of everything that a result depends on."""
        digest = hashlib.sha256()
        for column in self.columns:
            digest.update(repr((column.name, column.levels)).encode())
            digest.update(np.ascontiguousarray(column.numbers()).data)
        digest.update(repr((self.group_names, sorted(self.sources.items()))).encode())
        for array in (self.positive, self.groups, *(self.parts[part] for part in PARTS)):
            digest.update(repr((array.dtype.str, array.shape)).encode())  # or a row could change its part
            digest.update(np.ascontiguousarray(array).data)
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
    table = _table(config)
    about = config.data
    dropped = {about.target, *about.drop}
    for name in (about.target, *about.drop, *about.exclude):
        _check_column(table, name)
    if config.split.column is not None:
        _check_column(table, config.split.column)
        dropped.add(config.split.column)  # its values tell the parts apart, and so mean nothing to a model
    others = table.drop_columns([about.target])
    protected = {expression.strip(): protected_from(others, expression) for expression in about.protected}
    groups, names = encode_groups(protected, table.num_rows)
    if len(names) > MOST_GROUPS:
        raise ValueError(
            f"`data.protected` makes {len(names)} groups, too many to compare: cut numbers into a few, for "
            'example by "age>=50".'
        )
    if len(protected) == 1:
        names = [f"{attribute}={name}" for attribute in protected for name in names]
    target = table.column(about.target).to_pandas()
    label = _positive_label(target, about)
    positive = (target == label).to_numpy(dtype=bool)
    features = table.drop_columns(sorted(dropped))
    if features.num_columns == 0:
        raise ValueError("No column is left for the models to see: drop fewer.")
    data = Data(
        features=features,
        columns=tuple(column_from(name, features.column(name)) for name in features.column_names),
        positive=positive,
        positive_label=f"{about.target} = {label}",
        protected=protected,
        sources={expression.strip(): source_column(others, expression) for expression in about.protected},
        groups=groups,
        group_names=names,
        parts=_parts(table, config.split, positive, groups, config.seed),
    )
    for part, rows in data.parts.items():
        if len(rows) and len(np.unique(positive[rows])) < 2:
            raise ValueError(
                f"The {part} part ({len(rows):,} rows) holds only one label of {about.target!r}: change the "
                "`split`."
            )
    return data


def _table(config: Config) -> pa.Table:
    if config.data.path is not None:
        return read_table(Path(config.data.path))
    frame = make_account_fraud(config.data.rows, config.data.variant, random_state=config.seed)
    return pa.Table.from_pandas(frame, preserve_index=False)


def _check_column(table: pa.Table, name: str) -> None:
    if name not in table.column_names:
        close = difflib.get_close_matches(name, table.column_names, n=3)
        hint = f"; did you mean {', '.join(map(repr, close))}?" if close else "."
        raise ValueError(f"The data have no column {name!r}{hint}")


def _positive_label(target: pd.Series, about: DataConfig) -> Any:
    """Give the label that the configuration names, else the larger of the two."""
    missing = int(target.isna().sum())
    if missing:
        raise ValueError(f"The target {about.target!r} is missing in {missing:,} rows: drop or label them.")
    labels = sorted(target.unique().tolist(), key=lambda label: (str(type(label)), label))
    if len(labels) != 2:
        shown = ", ".join(map(repr, labels[:5])) + (", ..." if len(labels) > 5 else "")
        raise ValueError(
            f"The target {about.target!r} must hold two labels, got {len(labels)} ({shown}): models are "
            "judged by true and false positives."
        )
    if about.positive is None:
        return labels[1]
    if about.positive not in labels:
        raise ValueError(
            f"`data.positive` must be one of the labels {labels[0]!r} and {labels[1]!r}, got "
            f"{about.positive!r}."
        )
    return about.positive


def _parts(
    table: pa.Table, split: SplitConfig, positive: npt.NDArray[np.bool_], groups: Rows, seed: int
) -> dict[str, Rows]:
    if split.column is None:
        shares = [getattr(split, part)[0] for part in PARTS]
        return _random_parts(positive, groups, shares, np.random.default_rng([seed, 2]))
    values = table.column(split.column).to_pandas()
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


def _random_parts(
    positive: npt.NDArray[np.bool_], groups: Rows, shares: Sequence[float], generator: np.random.Generator
) -> dict[str, Rows]:
    """Give every part its share of every label and group, to one row."""
    drawn = np.empty(len(positive), dtype=np.int64)
    cells = groups * 2 + positive
    edges = np.cumsum(shares)[:-1]
    for cell in np.unique(cells):
        rows = generator.permutation(np.flatnonzero(cells == cell))
        place = (np.arange(len(rows)) + generator.random()) / len(rows)
        drawn[rows] = np.searchsorted(edges, place, side="right")
    return {part: np.flatnonzero(drawn == number) for number, part in enumerate(PARTS)}
