"""The problem: everything that a user passes to `fit`, read once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set, Sized
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, get_args

import numpy as np

from fado._messages import COMPARE_TARGET, closest_names, warn_user
from fado._typing import Floats, Integers
from fado.tabular._column import Column, column_from, is_frame, unknown_values
from fado.tabular._suspects import warn_of_doubtful_columns
from fado.tabular._table import Table
from fado.tabular._variables import (
    MOST_NUMERIC_CLASSES,
    TARGET,
    Groups,
    Kind,
    Labels,
    Variable,
    check_attribute_names,
    group_rows,
    labels_of,
    positive_code,
    variable_from,
)

_LEAST_WEIGHT, _MOST_WEIGHT = 1e-100, 1e100  # so that sums of weights, and products of two, are numbers


@dataclass(frozen=True)
class Problem:
    """What models learn, and from which rows.

    Parameters
    ----------
    table : Table
        The features; columns are read when they are first needed.
    target : Variable
        What the model of interest predicts.
    protected : tuple of Variable
        The protected attributes.
    positions : tuple of int or None
        The position of each protected attribute among the features, if it was given by a column's name.
    names_given : bool
        Whether the user named the attributes; otherwise they are called "z", or "z0", "z1", ...
    sources : tuple of Column
        The target, then the protected attributes, as they were read.
    pos_label : label or None
        The positive label that the user chose.
    sample_weight : ndarray or None
        The weight of each row; None means equal weights.
    blocks : ndarray or None
        Which rows belong together and must not be split between bags.
    unknown : tuple
        The values of protected attributes that were read as missing.
    """

    table: Table
    target: Variable
    protected: tuple[Variable, ...]
    positions: tuple[int | None, ...]
    names_given: bool
    sources: tuple[Column, ...]
    pos_label: Any = None
    sample_weight: Floats | None = None
    blocks: Integers | None = None
    unknown: tuple[Any, ...] = ()

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
        """The code of the target's positive label; None if there is none."""
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

    def binary_labels(self, who: str) -> Labels:
        """Return the labels of a target of two classes, or refuse another; `who` needs it."""
        if self.target.kind == "continuous":
            what = "`y` is continuous (Unknown label type)"
        elif len(classes := self.labels.classes) == 2:
            return self.labels
        elif len(classes) == 1:
            raise ValueError(f"{who} needs a target of two classes: `y` has only one class ({classes[0]!r}).")
        else:
            what = f"`y` has {len(classes)} classes (Only binary classification is supported.)"
        raise ValueError(f"{who} needs a target of two classes, and {what}: {COMPARE_TARGET}.")

    @cached_property
    def groups(self) -> Groups:
        """Each row's group, the combination of its protected attributes; all rows are one without any."""
        if self.protected:
            return group_rows(self.protected)
        return Groups(np.zeros(self.n_rows, dtype=np.int64), ("all rows",), ("all rows",))

    def take(self, rows: Integers, *, alone: bool = False) -> Problem:
        """Return the problem of some rows; levels of other rows are dropped.

        Rows that stand `alone` do not keep the user's table, the kinds of variables that all rows have, nor
        the order in which categories were declared.
        """
        table = Table.of_columns(self.table.columns, named=self.table.is_named) if alone else self.table
        table = table.take(rows)
        columns = [column.without_unused_levels() for column in table.columns]
        sources = [column.take(rows).without_unused_levels() for column in self.sources]
        if alone:
            columns, sources = (
                [replace(column, declared=None) for column in part] for part in (columns, sources)
            )
        return self.with_sources(
            sources,
            {} if alone else self.kinds,
            table=Table(table.source, table.names, table.n_rows, columns, named=table.is_named),
            sample_weight=None if self.sample_weight is None else self.sample_weight[rows],
            blocks=None if self.blocks is None else np.unique(self.blocks[rows], return_inverse=True)[1],
        )

    def with_attribute_named(self, name: str) -> Problem:
        """Return the problem with its one protected attribute renamed."""
        (attribute,), (target, source) = self.protected, self.sources
        return replace(
            self, protected=(replace(attribute, name=name),), sources=(target, replace(source, name=name))
        )

    def with_mean_weight_one(self) -> Problem:
        """Return the problem with weights of mean 1: penalties of models do not scale with weights."""
        if self.sample_weight is None:
            return self
        return replace(self, sample_weight=mean_one(self.sample_weight))

    def with_kinds(self, kinds: Mapping[str, str] | None) -> Problem:
        """Return the problem with kinds of variables that the user chose."""
        if not kinds:
            return self
        names = [column.name for column in self.sources]
        chosen: dict[str, Any] = {str(name): kind for name, kind in kinds.items()}
        for name, kind in chosen.items():
            if name not in names:
                raise ValueError(f"`kinds` names {name!r}, which is not one of the variables {names}.")
            if kind not in get_args(Kind):
                raise ValueError(f"`kinds[{name!r}]` must be 'classes' or 'continuous', got {kind!r}.")
        return self.with_sources(self.sources, self.kinds | chosen)

    def with_sources(self, sources: Sequence[Column], kinds: Mapping[str, Kind], **changes: Any) -> Problem:
        """Return the problem with its variables read from other columns, of some kinds by name."""
        target, *protected = (variable_from(column, kinds.get(column.name)) for column in sources)
        return replace(self, target=target, protected=tuple(protected), sources=tuple(sources), **changes)

    @property
    def kinds(self) -> dict[str, Kind]:
        """The kinds of variables that other rows, such as fewer, might not show."""
        return {
            variable.name: variable.kind
            for variable in self.variables
            if variable.kind == "continuous" or len(variable.classes) > MOST_NUMERIC_CLASSES
        }


def read_problem(
    X: Any,
    y: Any,
    sensitive_features: Any = None,
    *,
    unknown: Any = None,
    sample_weight: Any = None,
    groups: Any = None,
    pos_label: Any = None,
    least_rows: int = 1,
    warn_of_columns: bool = False,
) -> Problem:
    """Read what a user passes.

    Parameters
    ----------
    X : array, sparse matrix, pandas, polars or pyarrow table of shape (n_rows, n_columns)
        The features.
    y : array-like of shape (n_rows,)
        The target.
    sensitive_features : Series, array, DataFrame, dict, or name(s) of columns of X, optional
        The protected attributes.
    unknown : value or list of values, optional
        Values of protected attributes that mean the same as a missing one.
    sample_weight : array-like of shape (n_rows,), optional
        The weight of each row.
    groups : array-like of shape (n_rows,), optional
        Which rows belong together: scikit-learn's word for it.
    pos_label : label, optional
        The positive label; None is the larger of two.
    least_rows : int
        How many rows there must be.
    warn_of_columns : bool
        Whether to warn of columns that no model should learn as they are.

    Examples
    --------
    >>> problem = read_problem([[1.0], [2.0], [3.0]], ["no", "yes", "no"], {"sex": ["f", "m", "m"]})
    >>> problem.target.classes, problem.positive, problem.groups.names
    (('no', 'yes'), 1, ("'f'", "'m'"))
    """
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
    target = target_column(y, table.n_rows)
    protected = protected_columns(sensitive_features, table, unknown)
    columns = [column for column, _ in protected]
    _warn_of_other_order(table.index, "y", y)
    _warn_of_other_order(table.index, "sensitive_features", sensitive_features)
    _warn_of_other_order(table.index, "sample_weight", sample_weight)
    _warn_of_other_order(table.index, "groups", groups)
    if warn_of_columns:
        warn_of_doubtful_columns(table)
    return Problem(
        table=table,
        target=variable_from(target),
        protected=tuple(map(variable_from, columns)),
        positions=tuple(position for _, position in protected),
        names_given=all(column.named for column in columns),
        sources=(target, *columns),
        pos_label=pos_label,
        sample_weight=weights_of(sample_weight, table.n_rows),
        blocks=None if groups is None else blocks_of(groups, table.n_rows),
        unknown=unknown_values(unknown),
    )


def _warn_of_other_order(index: Any, argument: str, values: Any) -> None:
    """Warn if the rows of an argument have the labels of X's in another order."""
    if isinstance(values, Mapping):
        for name, entries in values.items():
            _warn_of_other_order(index, f"{argument}[{name!r}]", entries)
        return
    other = getattr(values, "index", None) if hasattr(values, "iloc") else None
    if index is None or other is None or len(index) != len(other) or index.equals(other):
        return
    if index.is_unique and other.is_unique and bool(index.isin(other).all()):
        pairs = enumerate(zip(index, other, strict=True))
        row, (label, other_label) = next(pair for pair in pairs if pair[1][0] != pair[1][1])
        warn_user(
            f"`{argument}` has the row labels of X in another order: row {row} is {label!r} in X and "
            f"{other_label!r} there. Rows are matched by position: pass `{argument}.loc[X.index]` if labels "
            "should match, or reset both indexes."
        )


def note_features(estimator: Any, table: Table) -> None:
    """Set the number of features and their names on an estimator, as scikit-learn does."""
    estimator.n_features_in_ = table.n_columns
    if table.given_names is not None:
        estimator.feature_names_in_ = np.asarray(table.given_names, dtype=object)
    elif hasattr(estimator, "feature_names_in_"):
        del estimator.feature_names_in_


def target_column(y: Any, n_rows: int) -> Column:
    """Read the target, and refuse what no model can learn."""
    if y is None:
        raise ValueError("This estimator requires y to be passed, but the target y is None.")
    if isinstance(y, np.ndarray) and y.ndim == 2 and y.shape[1] == 1:
        from sklearn.exceptions import DataConversionWarning

        warn_user(
            "A column-vector y was passed when a 1d array was expected; its one column is used.",
            DataConversionWarning,
        )
        y = np.asarray(y)[:, 0]
    column = one_column(y, TARGET)
    if len(column) != n_rows:
        raise ValueError(
            f"`y` has {len(column)} entries and X has {n_rows} rows (inconsistent numbers of samples): pass "
            "one entry per row."
        )
    if n_rows and (column.levels is None or column.data.null_count):
        numbers = column.numbers()
        missing = int(np.isnan(numbers).sum())
        if missing:
            raise ValueError(
                f"`y` has {missing} missing or NaN value(s): drop those rows or label them first."
            )
        if np.isinf(numbers).any():
            raise ValueError("`y` contains infinity: drop or correct those rows first.")
    return column


def protected_columns(
    sensitive_features: Any, table: Table, unknown: Any = None
) -> list[tuple[Column, int | None]]:
    """Read the protected attributes, each with its position among the features if it was given by name."""
    if sensitive_features is None:
        return []
    is_list = isinstance(sensitive_features, list | tuple)
    names = list(sensitive_features) if is_list else [sensitive_features]
    names = [name.item() if isinstance(name, np.integer) else name for name in names]
    are_names = all(isinstance(name, str | int) and not isinstance(name, bool) for name in names)
    if are_names and is_list:  # or an entry for every row
        one_per_row = len(names) == table.n_rows
        if all(isinstance(name, str) for name in names):
            are_names = not one_per_row or set(names) <= set(table.names)
        else:
            are_names = (
                not one_per_row and hasattr(table.source, "iloc") and set(names) <= {*table.source.columns}
            )
    columns: list[tuple[Column, int | None]] = []
    if not names or not are_names:
        names, columns = [], [(column, None) for column in attribute_columns(sensitive_features)]
    for name in names:
        positions = table.positions(name)
        if len(positions) != 1:
            close = closest_names(str(name), table.names, ": pass its values instead.")
            what = (
                f"{len(positions)} columns of X are called." if positions else f"is not a column of X{close}"
            )
            raise ValueError(f"`sensitive_features` names {name!r}, which {what}")
        columns.append((table.column(positions[0]), positions[0]))
    if not columns:
        raise ValueError("`sensitive_features` names no protected attribute: pass at least one, or None.")
    check_attribute_names([column.name for column, _ in columns])
    for column, _ in columns:
        if len(column) != table.n_rows:
            raise ValueError(
                f"Protected attribute {column.name!r} has {len(column)} entries and X has {table.n_rows} "
                "rows (inconsistent numbers of samples): pass one entry per row. To be cut with X, by "
                "cross-validation for instance, it must be a Series or a DataFrame."
            )
    if unknown is None:
        return columns
    return [(column.without(unknown), position) for column, position in columns]


def attribute_columns(values: Any, unknown: Any = None) -> list[Column]:
    """Read protected attributes from whatever holds their entries: mapping, table, array, Series or list.

    Those without a name are called "z", or "z0", "z1", ... if there are several. Entries that are one of the
    values in `unknown` are read as missing.
    """
    array = np.asarray(values, dtype=object) if isinstance(values, list | tuple) else values
    if isinstance(values, Mapping):
        columns = [
            one_column(entries, f"sensitive_features[{name!r}]", str(name))
            for name, entries in values.items()
        ]
    elif is_frame(values):
        columns = list(Table.from_input(values).columns)
    elif getattr(array, "ndim", 1) == 2:
        array = np.ma.asarray(array) if np.ma.isMaskedArray(array) else np.asarray(array)  # no matrix
        names = ["z"] if array.shape[1] == 1 else [f"z{j}" for j in range(array.shape[1])]
        columns = [replace(column_from(name, array[:, j]), named=False) for j, name in enumerate(names)]
    else:
        name = getattr(values, "name", None)
        is_named = name not in (None, "")
        column = one_column(values, "sensitive_features", str(name) if is_named else "z")
        columns = [replace(column, named=is_named)]
    return columns if unknown is None else [column.without(unknown) for column in columns]


def one_column(values: Any, argument: str, name: str | None = None, *, times: bool = False) -> Column:
    """Read one column; `argument` is its name in messages."""
    if not isinstance(values, Sized) and hasattr(values, "__array__"):
        values = np.asarray(values)
    if values is None or isinstance(values, str | bytes | Mapping | Set) or not isinstance(values, Sized):
        raise TypeError(
            f"`{argument}` must hold one value per row, got {values!r}; pass an array, list or Series."
        )
    shape: Sequence[int] = values.shape if hasattr(values, "shape") else (len(values),)
    if isinstance(values, list | tuple) and len(values) and isinstance(values[0], list | tuple | np.ndarray):
        shape = (len(values), len(values[0]))
    if len(shape) != 1:
        raise ValueError(f"`{argument}` must be one-dimensional, got shape {tuple(shape)}; pass one column.")
    return column_from(argument if name is None else name, values, times=times)


def weights_of(sample_weight: Any, n_rows: int, called: str = "`sample_weight`") -> Floats | None:
    """Read the rows' weights, and refuse invalid ones; `called` is their name in messages."""
    if sample_weight is None:
        return None
    if np.isscalar(sample_weight):
        sample_weight = np.full(n_rows, sample_weight)
    column = one_column(sample_weight, "sample_weight")
    if column.levels is not None:
        raise ValueError(f"{called} must hold numbers, got text.")
    weights = column.numbers()
    if weights.shape != (n_rows,):
        raise ValueError(f"{called} must have one weight per row, shape {(n_rows,)}, got {weights.shape}.")
    check_weights(weights, called)
    if n_rows and not weights.any():
        raise ValueError(f"{called} is zero in every row: give some row a weight.")
    return weights


def check_weights(weights: Floats, called: str, where: str = "") -> None:
    """Refuse weights that are not finite, negative, or too large or too small to be multiplied."""
    if not np.isfinite(weights).all() or (weights < 0).any():
        raise ValueError(f"{called} must be finite and not negative in every row{where}.")
    beyond = (weights > 0) & ((weights < _LEAST_WEIGHT) | (weights > _MOST_WEIGHT))
    if beyond.any():
        raise ValueError(
            f"{called} must be 0 or between {_LEAST_WEIGHT:g} and {_MOST_WEIGHT:g} in every row{where}, got "
            f"{weights[beyond][0]:g}: divide all weights by their mean, and set what is then too small to 0."
        )


def mean_one(weights: Floats) -> Floats:
    """Scale weights to a mean of 1, equal ones exactly; weights that are all 0 stay 0."""
    if not weights.any():
        return weights
    weights = weights / weights.max()  # so that the sum cannot overflow
    weights /= weights.mean()
    return weights


def blocks_of(groups: Any, n_rows: int, called: str = "`groups`") -> Integers:
    """Read which rows belong together, as codes of equal entries; `called` is their name in messages."""
    column = one_column(groups, "groups", times=True)
    if len(column) != n_rows:
        raise ValueError(f"{called} must have one entry per row, {n_rows}, got {len(column)}.")
    codes, _ = column.encode()
    if (codes < 0).any():
        raise ValueError(f"{called} is missing in {int((codes < 0).sum())} rows: give every row an entry.")
    return codes.astype(np.int64)
