"""Which groups are compared, and rows that were set apart: validation and test data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from fado._messages import list_names, warn_user
from fado._typing import Bools, Floats
from fado.tabular import (
    Groups,
    Problem,
    Variable,
    group_rows,
    match_attributes,
    read_problem,
)


@dataclass(frozen=True, eq=False)
class Attribute:
    """An attribute, or several crossed: the training rows' groups, and which of them are compared."""

    name: str
    groups: Groups
    compared: Bools

    @cached_property
    def classes(self) -> npt.NDArray[np.intp]:
        """The number of each group for models: compared groups have one each, all others share one."""
        return np.where(self.compared, np.cumsum(self.compared) - 1, int(self.compared.sum()))

    @property
    def training_classes(self) -> npt.NDArray[np.intp]:
        """Each training row's class."""
        return self.classes[self.groups.codes]

    @property
    def n_classes(self) -> int:
        """How many classes occur among the training rows."""
        return int(self.training_classes.max()) + 1

    @property
    def titles(self) -> tuple[str, ...]:
        """The titles of the compared groups."""
        return tuple(np.array(self.groups.titles, dtype=object)[self.compared])


def find_attributes(
    problem: Problem, validation: Problem | None, how: str, min_group_size: int
) -> tuple[tuple[Attribute, ...], tuple[Groups, ...]]:
    """Find the groups that are compared, of all attributes crossed or of each, and the validation rows'."""
    training = others = groups_of(problem.protected, how, problem.n_rows)
    if validation is not None:
        places = match_attributes(problem, validation)
        others = groups_of([validation.protected[place] for place in places], how, validation.n_rows)
    attributes, validated = [], []
    for number, (name, groups) in enumerate(training.items()):
        every = numbered_as(groups, others.get(name, list(others.values())[number]))
        groups = replace(every, codes=groups.codes)
        attributes.append(Attribute(name, groups, _compare(groups, every, min_group_size)))
        validated.append(every)
    return tuple(attributes), tuple(validated)


def groups_of(variables: Sequence[Variable], how: str, n_rows: int) -> dict[str, Groups]:
    """Give the groups of all attributes crossed, or of each, by name."""
    if not variables:
        return {"": Groups(np.zeros(n_rows, dtype=np.int64), ("all rows",), ("all rows",))}
    if how == "crossed" or len(variables) < 2:
        return {" and ".join(variable.name for variable in variables): group_rows(variables)}
    return {variable.name: group_rows([variable]) for variable in variables}


def numbered_as(known: Groups, others: Groups) -> Groups:
    """Give other rows' groups the numbers of the known ones; new groups come after them."""
    names = list(others.names)
    if others.unknown is not None and known.unknown is not None:  # whatever it is called
        names[others.unknown] = known.names[known.unknown]
    new = [place for place, name in enumerate(names) if name not in known.names]
    every = (*known.names, *(names[place] for place in new))
    place = np.array([every.index(name) for name in names], dtype=np.int64)
    unknown = known.unknown if others.unknown is None else int(place[others.unknown])
    titles = (*known.titles, *(others.titles[place] for place in new))
    return Groups(place[others.codes], every, titles, unknown)


def _compare(training: Groups, validation: Groups, min_group_size: int) -> Bools:
    """Mark the groups that are large enough in both training and validation data."""
    compared = training.compared(min_group_size) & validation.compared(min_group_size)
    sizes, validated = training.sizes, validation.sizes
    new = (sizes == 0) & (validated > 0) & (np.arange(len(training)) != training.unknown)
    lacking, unknown_names = (
        list_names([training.names[group] for group in np.flatnonzero(mark)])
        for mark in (compared & (validated == 0), new)
    )
    if lacking:
        raise ValueError(
            f"The validation rows have no row of group {lacking}: give rows of every group, or remove that "
            "group from the training rows."
        )
    if unknown_names:
        warn_user(
            f"Group {unknown_names} of the validation rows is not among the training rows, and not compared."
        )
    small = [
        groups.tell_small("not compared and not moved", min_group_size) for groups in (training, validation)
    ]
    for sentence in filter(None, dict.fromkeys(small)):
        warn_user(f"{sentence}.")
    return compared & ~new


def read_rows_apart(entries: Any, name: str, unknown: Any = None) -> Problem:
    """Read rows that were set apart: (X, y, sensitive_features) and, if there are any, their weights."""
    if not isinstance(entries, tuple | list) or len(entries) not in (3, 4):
        raise ValueError(
            f"`{name}` must be a tuple of (X, y, sensitive_features), with sample_weight as a fourth entry "
            "if rows have weights."
        )
    X, y, sensitive_features, *weights = entries
    weight = weights[0] if weights else None
    return read_problem(X, y, sensitive_features, unknown=unknown, sample_weight=weight)


def weights_of(problem: Problem) -> Floats:
    """Give how much each row counts."""
    return np.ones(problem.n_rows) if problem.sample_weight is None else problem.sample_weight


def check_both_labels(positive: Bools, what: str) -> None:
    """Refuse rows of one label only."""
    if positive.all() or not positive.any():
        raise ValueError(
            f"Too few rows: the {len(positive)} {what} have one class only. Give more rows of each label, or "
            "`validation` rows."
        )
