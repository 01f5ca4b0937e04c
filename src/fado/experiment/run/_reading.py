"""Read the data of an experiment: from a file, from a generator, or from what is in memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa

from fado._messages import closest_names, list_names, warn_user
from fado.datasets import make_account_fraud
from fado.experiment.config import Config, DataConfig
from fado.experiment.run._data import Data, count_rows
from fado.experiment.run._measuring import Comparison, few_rows
from fado.experiment.run._split import PARTS, check_parts, split_rows
from fado.tabular import (
    Expression,
    Groups,
    Problem,
    Variable,
    column_from,
    group_rows,
    is_pattern,
    names_like,
    positive_code,
    read_problem,
    read_table,
    title_in_full,
    warn_of_missing,
)

__all__ = ["data_from", "read_data"]

MOST_GROUPS = 50

Bools = npt.NDArray[np.bool_]
Rows = npt.NDArray[np.int64]


def read_data(config: Config) -> Data:
    """Read or generate the table and take from it what the configuration names."""
    table = _source(config)
    about = config.data
    target = Expression.of(table.column_names, about.target, "data.target")
    target.check(table)
    unseen = [*target.sources, *_matching(table.column_names, about.drop)]
    # the values of the column of a split tell the parts apart, and so mean nothing to a model
    beside = {"data.weight": about.weight, "data.groups": about.groups, "split.column": config.split.column}
    for place, name in beside.items():
        if name is not None:
            _check_column(table.column_names, name)
            target.check_apart(place, [name])
            unseen.append(name)
    written = _written(table.drop_columns([*target.sources]), about.protected)
    protected = {name: own.entries(table) for name, own in written.items()}
    positive, both = _positive(table, about, target)
    hidden = set(unseen)
    features = table.select([name for name in table.column_names if name not in hidden])
    if features.num_columns == 0:
        raise ValueError("No column is left for the models to see: drop fewer.")
    excluded = _matching(table.column_names, about.exclude, features.column_names)
    problem = _problem(features, positive, protected, table, about)
    warn_of_missing(problem.protected)
    groups = _groups(problem.protected)
    cells = groups.codes * 2 + positive
    parts = split_rows(table, config.split, cells, np.random.default_rng([config.seed, 2]), problem.blocks)
    sources = {name: own.sources for name, own in written.items()}
    return _gathered(problem, both, sources, excluded, groups, parts, config)


def data_from(problem: Problem, parts: Mapping[str, npt.ArrayLike], config: Config) -> Data:
    """Take the data from a problem that is in memory, for an experiment whose data are given.

    Parameters
    ----------
    problem : Problem
        Features, a target of two labels, and protected attributes of the names in ``data.protected``.
    parts : mapping of str to array of int
        The positions of the rows of ``"train"`` and ``"test"``, and of ``"validation"`` if there is one.
    config : Config
        The experiment, with ``data.given`` and the ``split.method`` ``"given"``.

    Examples
    --------
    >>> from fado.experiment.config import config_from
    >>> from fado.tabular import read_problem
    >>> config = config_from({
    ...     "data": {"given": True, "target": "y", "protected": ["sex"]},
    ...     "split": {"method": "given", "validation": False},
    ...     "interventions": {"rw": True},
    ...     "models": {"space": {"n_estimators": 5}},
    ... })
    >>> problem = read_problem([[1.0], [2.0], [3.0], [4.0]], [0, 1, 1, 0], {"sex": ["f", "m", "f", "m"]})
    >>> data_from(problem, {"train": [0, 1], "test": [2, 3]}, config).positive_label
    'y = 1'
    """
    names, asked = [variable.name for variable in problem.protected], config.data.protected
    if names != [name.strip() for name in asked]:
        raise ValueError(f"`data.protected` is {list(asked)}, and the attributes given are {names}.")
    if problem.table.is_sparse:
        raise ValueError("A sparse matrix cannot be split into parts here: convert it to a dense table.")
    labels = problem.labels
    if len(labels.classes) != 2 or labels.positive is None:
        raise ValueError(
            f"The target {config.data.target!r} must hold two labels, got {len(labels.classes)}: models are "
            "measured by true and false positives."
        )
    warn_of_missing(problem.protected)
    return _gathered(
        problem,
        (labels.classes[1 - labels.positive], labels.classes[labels.positive]),
        {
            name: () if position is None else (problem.table.names[position],)
            for name, position in zip(names, problem.positions, strict=True)
        },
        _matching(problem.table.names, config.data.exclude),
        _groups(problem.protected),
        _given_parts(parts, problem.n_rows),
        config,
    )


def _given_parts(given: Mapping[str, npt.ArrayLike], n_rows: int) -> dict[str, Rows]:
    """Give the rows of every part, ascending; a row may be in one."""
    parts = {part: np.sort(np.asarray(given.get(part, []), dtype=np.int64)) for part in PARTS}
    rows, counts = np.unique(np.concatenate(list(parts.values())), return_counts=True)
    if len(rows) and (rows[0] < 0 or rows[-1] >= n_rows):
        wrong = rows[0] if rows[0] < 0 else rows[-1]
        raise ValueError(
            f"`parts` must hold positions of the {n_rows:,} rows, 0 to {n_rows - 1}, got {wrong}."
        )
    if (counts > 1).any():
        raise ValueError(f"`parts` hold row {rows[counts > 1][0]} more than once: a row is in one part.")
    return parts


def _gathered(
    problem: Problem,
    labels: tuple[Any, Any],
    sources: dict[str, tuple[str, ...]],
    excluded: Sequence[str],
    groups: Groups,
    parts: dict[str, Rows],
    config: Config,
) -> Data:
    """Check the parts, and put the data together."""
    check_parts(parts, problem.labels.is_positive, config)
    return Data(
        problem=problem,
        labels=labels,
        positive_label=f"{config.data.target} = {labels[1]}",
        sources=sources,
        excluded=tuple(excluded),
        groups=groups,
        comparisons=_comparisons(problem.protected, groups, parts, config),
        parts=parts,
        min_group_size=config.data.min_group_size,
    )


def _written(table: pa.Table, expressions: Sequence[str]) -> dict[str, Expression]:
    """Read how protected attributes are written; one that does not tell rows apart is refused."""
    found = {}
    for number, expression in enumerate(expressions):
        place = f"data.protected[{number}]" if len(expressions) > 1 else "data.protected"
        own = Expression.of(table.column_names, expression, place)
        own.check(table)
        found[expression.strip()] = own
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
    return replace(groups, names=title_in_full(protected[0].name, groups).names)


def _comparisons(
    protected: Sequence[Variable], groups: Groups, parts: dict[str, Rows], config: Config
) -> tuple[Comparison, ...]:
    """Give the groups that ratios compare, and say which are left out."""
    least = config.data.min_group_size
    evaluated = {part: parts[part] for part in ("validation", "test") if len(parts[part])}
    divisions: dict[str | None, Groups] = {None: groups}
    if config.attributes:
        divisions = {variable.name: _groups([variable]) for variable in protected}
    found = []
    for attribute, own in divisions.items():
        left_out = few_rows([count_rows(own, rows) for rows in evaluated.values()], least)
        found.append(Comparison(attribute, own, left_out))
        compared = len(own) - int(left_out.sum())
        if compared > MOST_GROUPS:
            raise ValueError(
                f"`data.protected` makes {compared} groups, too many to compare: cut numbers into a few, for "
                'example by "age>=50".'
            )
        if left_out.any() and compared < 2:
            raise ValueError(
                f"{_told(own, left_out, evaluated, least)}, and fewer than two groups are left to compare: "
                "merge groups, or lower `data.min_group_size`."
            )
    for comparison in found:
        if comparison.left_out.any():
            warn_user(
                f"{_told(comparison.groups, comparison.left_out, evaluated, least)}: ratios leave them out. "
                "`data.min_group_size` sets the size."
            )
    return tuple(found)


def _told(groups: Groups, left_out: Bools, evaluated: dict[str, Rows], least: int) -> str:
    """Say which groups are small: the beginning of a sentence."""
    sizes = {part: count_rows(groups, rows) for part, rows in evaluated.items()}
    small = np.flatnonzero(left_out)
    names = [
        f"{groups.names[group]} ({', '.join(f'{part} {counts[group]}' for part, counts in sizes.items())})"
        for group in small
    ]
    subject = "1 group has" if len(small) == 1 else f"{len(small)} groups have"
    where = " or the ".join(evaluated)
    return f"{subject} fewer than {least} rows and less than 1 % of the {where} part: {list_names(names)}"


def _source(config: Config) -> pa.Table:
    if config.data.given:
        raise ValueError(
            "`data.given` says that the data are handed over in Python, and there are none: name a `path`."
        )
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


def _positive(table: pa.Table, about: DataConfig, target: Expression) -> tuple[Bools, tuple[Any, Any]]:
    """Mark the rows of the positive label, the one that is named, else the larger; give the other and it."""
    column = column_from(about.target, target.read(table, named=False))
    codes, entries = column.encode()
    missing = int((codes < 0).sum())
    if missing:
        raise ValueError(f"The target {about.target!r} is missing in {missing:,} rows: drop or label them.")
    if len(entries) != 2:
        shown = ", ".join(repr(column.label_of(entry)) for entry in entries[:5])
        raise ValueError(
            f"The target {about.target!r} must hold two labels, got {len(entries)} "
            f"({shown}{', ...' if len(entries) > 5 else ''}): models need true and false positives."
        )
    labels = [column.label_of(entry) for entry in entries]
    code = positive_code(labels, about.positive, "data.positive")
    positive = 1 if code is None else code
    return codes == code, (labels[1 - positive], labels[positive])
