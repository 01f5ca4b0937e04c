"""The problem: all that a user hands over, read once by one reader."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from fado.tabular._columns import Column
from fado.tabular._given import blocks_of, mean_one, protected_columns, target_column, weights_of
from fado.tabular._groups import Groups, group_rows
from fado.tabular._labels import Labels, labels_of, positive_code
from fado.tabular._rows import take_rows
from fado.tabular._table import Table
from fado.tabular._variables import Variable, check_kinds, variable_from

__all__ = ["Problem", "note_features", "read_problem"]


@dataclass(frozen=True)
class Problem:
    """What there is to learn, and from which rows.

    Parameters
    ----------
    table : Table
        The features; columns are read when they are first needed.
    target : Variable
        What the model of interest predicts.
    protected : tuple of Variable
        The protected attributes.
    positions : tuple of int or None
        Where each protected attribute stands among the features, if it was given by a column's name.
    names_given : bool
        Whether the user named the attributes, or they are called "z", or "z0", "z1", ..., for want of a name.
    sources : tuple of Column
        The target, then the protected attributes, as they were read.
    pos_label : label or None
        The positive label that the user asked for.
    sample_weight : ndarray or None
        What each row weighs; None stands for equal weights.
    blocks : ndarray or None
        Which rows belong together and must not be split between bags.
    """

    table: Table
    target: Variable
    protected: tuple[Variable, ...]
    positions: tuple[int | None, ...]
    names_given: bool
    sources: tuple[Column, ...]
    pos_label: Any = None
    sample_weight: npt.NDArray[np.float64] | None = None
    blocks: npt.NDArray[np.int64] | None = None

    @property
    def n_rows(self) -> int:
        """How many rows there are."""
        return self.table.n_rows

    @property
    def variables(self) -> tuple[Variable, ...]:
        """The target, then the protected attributes."""
        return (self.target, *self.protected)

    @property
    def positive(self) -> int | None:
        """The code of the target's positive label; None where there is none."""
        if self.target.kind == "continuous":
            if self.pos_label is None:
                return None
            raise ValueError(
                "`pos_label` is for a target of classes, and this one is continuous: leave it out."
            )
        return positive_code(self.target.classes, self.pos_label)

    @cached_property
    def labels(self) -> Labels:
        """The target as classes; a target of other numbers is refused."""
        return labels_of(self.sources[0], self.pos_label)

    @cached_property
    def groups(self) -> Groups:
        """Each row's group, the combination of its protected attributes; all rows are one without any."""
        if self.protected:
            return group_rows(self.protected)
        return Groups(np.zeros(self.n_rows, dtype=np.int64), ("all rows",), ("all rows",))

    def take(self, rows: npt.NDArray[np.integer[Any]]) -> Problem:
        """Give the problem of some rows, as if the others had never been there."""
        table = self.table
        columns = [] if table.is_sparse else [column.take(rows) for column in table.columns]
        sources = tuple(column.take(rows).without_unused_levels() for column in self.sources)
        variables = tuple(map(variable_from, sources))
        return replace(
            self,
            table=Table(
                None if table.source is None else take_rows(table.source, rows),
                table.names,
                len(rows),
                [column.without_unused_levels() for column in columns],
                named=table.is_named,
            ),
            target=variables[0],
            protected=variables[1:],
            sources=sources,
            sample_weight=None if self.sample_weight is None else self.sample_weight[rows],
            blocks=None if self.blocks is None else np.unique(self.blocks[rows], return_inverse=True)[1],
        )

    def with_attribute_named(self, name: str) -> Problem:
        """Give the problem with its one protected attribute called so."""
        (attribute,), (target, source) = self.protected, self.sources
        return replace(
            self,
            protected=(replace(attribute, name=name),),
            sources=(target, replace(source, name=name)),
        )

    def with_mean_weight_one(self) -> Problem:
        """Give the problem with weights of mean 1: models have penalties that do not scale with weights."""
        return (
            self if self.sample_weight is None else replace(self, sample_weight=mean_one(self.sample_weight))
        )

    def with_kinds(self, kinds: Mapping[str, str] | None) -> Problem:
        """Give the problem with its variables as what the user says they are."""
        chosen = check_kinds(kinds, [column.name for column in self.sources])
        if not chosen:
            return self
        variables = [variable_from(column, chosen.get(column.name)) for column in self.sources]
        return replace(self, target=variables[0], protected=tuple(variables[1:]))


def read_problem(
    X: Any,
    y: Any,
    sensitive_features: Any = None,
    *,
    sample_weight: Any = None,
    groups: Any = None,
    pos_label: Any = None,
    least_rows: int = 1,
) -> Problem:
    """Read what a user hands over.

    Parameters
    ----------
    X : array, sparse matrix, pandas, polars or pyarrow table of shape (n_rows, n_columns)
        The features.
    y : array-like of shape (n_rows,)
        The target.
    sensitive_features : Series, array, DataFrame, dict, or name(s) of columns of X, optional
        The protected attributes.
    sample_weight : array-like of shape (n_rows,), optional
        What each row weighs.
    groups : array-like of shape (n_rows,), optional
        Which rows belong together: scikit-learn's word for it.
    pos_label : label, optional
        The positive label; None is the larger of two.
    least_rows : int
        How many rows there must be.

    Examples
    --------
    >>> problem = read_problem([[1.0], [2.0], [3.0]], ["no", "yes", "no"], {"sex": ["f", "m", "m"]})
    >>> problem.target.classes, problem.positive, problem.groups.names
    (('no', 'yes'), 1, ("'f'", "'m'"))
    """
    table = _checked_table(X, least_rows)
    target = target_column(y, table.n_rows)
    protected = protected_columns(sensitive_features, table)
    columns = [column for column, _ in protected]
    return Problem(
        table=table,
        target=variable_from(target),
        protected=tuple(map(variable_from, columns)),
        positions=tuple(position for _, position in protected),
        names_given=all(column.named for column in columns),
        sources=(target, *columns),
        pos_label=pos_label,
        sample_weight=weights_of(sample_weight, table.n_rows),
        blocks=blocks_of(groups, table.n_rows),
    )


def note_features(estimator: Any, table: Table) -> None:
    """Note on an estimator how many features it was given, and their names, as scikit-learn does."""
    estimator.n_features_in_ = table.n_columns
    if table.given_names is not None:
        estimator.feature_names_in_ = np.asarray(table.given_names, dtype=object)
    elif hasattr(estimator, "feature_names_in_"):
        del estimator.feature_names_in_


def _checked_table(X: Any, least_rows: int) -> Table:
    table = Table.from_input(X)
    if table.n_rows < least_rows:
        are = "is" if least_rows == 1 else "are"
        raise ValueError(
            f"`X` has {table.n_rows} row(s) (n_samples = {table.n_rows}); at least {least_rows} {are} needed."
        )
    if table.n_columns == 0:
        raise ValueError(
            f"`X` has 0 feature(s) (shape=({table.n_rows}, 0)) while a minimum of 1 is required: keep some "
            "columns."
        )
    return table
