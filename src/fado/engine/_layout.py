"""What a scikit-learn estimator sees: the table in the form that it takes; errors about missing values."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from fado._compat import is_regressor
from fado._messages import list_names
from fado.engine._base import Schema
from fado.tabular import Column, Table, Variable, one_hot

Form = Literal["sparse", "frame", "columns", "categories", "numbers"]

_MOST_INDICATORS = 32  # per column
_OF_MISSING = re.compile(r"\bnans?\b|missing|\bnull\b", re.IGNORECASE)  # in the messages of libraries


def form_for(estimator: Any, *, sparse: bool) -> Form:
    """Select what an estimator sees.

    A pipeline gets the user's own columns, since it may select them by name. A LightGBM estimator gets
    categorical columns. Any other estimator gets numbers, with one indicator per level of a string or
    categorical column. A sparse matrix stays one.
    """
    if sparse:
        return "sparse"
    if _picks_columns(estimator):
        return "frame"
    return "categories" if is_lightgbm(estimator) else "numbers"


def is_lightgbm(estimator: Any) -> bool:
    """Return whether an estimator is one of LightGBM's own."""
    return type(estimator).__module__.startswith("lightgbm.")


def _picks_columns(estimator: Any) -> bool:
    """Return whether an estimator is, or wraps, a pipeline, which may select its columns by name."""
    from sklearn.pipeline import Pipeline

    return isinstance(estimator, Pipeline) or any(
        isinstance(value, Pipeline) for value in estimator.get_params(deep=True).values()
    )


@dataclass(frozen=True, eq=False)
class Layout:
    """How to lay out a table for an estimator that learnt from another."""

    form: Form  # "columns" is a frame of what was read from a table, other than the table itself
    kept: tuple[int, ...]  # positions of the columns that the estimator sees
    schema: Schema
    names: Any = None  # what a frame's columns are called

    def lay_out(self, table: Table) -> Any:
        """Lay out a table with the same columns."""
        import pandas as pd

        places = self.schema.find(table, self.kept)
        if table.is_sparse is not (self.form == "sparse"):
            raise ValueError(
                "Models of a sparse matrix score sparse matrices only, and others none: convert."
            )
        if self.form == "sparse":
            return _as_csr(table.source[:, list(self.kept)])
        if self.form == "frame":
            frame: Any = table.to_pandas()
            chosen = frame.iloc[:, [places[j] for j in self.kept]]
            return chosen.set_axis(self.names, axis=1).reset_index(drop=True)
        if self.form == "columns":
            read = {j: self._as_learnt(table, j, places[j]).to_pandas() for j in self.kept}
            return pd.DataFrame(read).set_axis(self.names, axis=1)
        columns = [self.schema.column(table, j, places[j]) for j in self.kept]
        if self.form == "categories":
            return pd.DataFrame({f"f{j}": _categorical(column) for j, column in enumerate(columns)})
        return one_hot(columns) if columns else np.empty((table.n_rows, 0))

    def with_target(self, features: Any, target: Variable) -> Any:
        """Add the target of rows that were laid out: itself, or an indicator for each of many classes."""
        import pandas as pd

        labels = target.labels.astype(np.float64)
        columns = {target.name: labels}
        if len(target.classes) > 2:
            columns = {
                f"{target.name}={name}": (labels == code).astype(float)
                for code, name in enumerate(target.classes)
            }
        values = np.column_stack(list(columns.values()))
        if self.form == "sparse":
            import scipy.sparse

            return _as_csr(scipy.sparse.hstack([features, values]))
        if self.form == "numbers":
            return np.column_stack([features, values])
        if self.form == "categories":
            names = [f"target{j}" for j in range(len(columns))]
        else:
            taken = set(map(str, features.columns))
            names = [f"{name} (target)" if name in taken else name for name in columns]
        return pd.concat([features, pd.DataFrame(values, features.index, names)], axis=1)

    def _as_learnt(self, table: Table, j: int, place: int | None) -> Column:
        """Return a column of the kind that the estimator learnt from, with any levels."""
        own = None if place is None else table.column(place)
        if own is not None and (own.levels is None) is (self.schema.levels[j] is None):
            return own
        return self.schema.column(table, j, place)


def layout_for(form: Form, table: Table, excluded: frozenset[int]) -> Layout:
    """Return how to lay out a table, and others like it, without the columns that models must not see."""
    kept = tuple(j for j in range(table.n_columns) if j not in excluded)
    if form == "frame" and table.source is None:
        form = "columns"
    names = table.to_pandas().columns[list(kept)] if form in ("frame", "columns") else None
    schema = Schema.of(table, read=() if form in ("frame", "sparse") else kept)
    if form == "numbers":
        shown = [
            levels and _most_frequent(table.column(j).with_levels(levels))
            for j, levels in enumerate(schema.levels)
        ]
        schema = replace(schema, levels=tuple(shown))
    return Layout(form, kept, schema, names)


def _most_frequent(column: Column) -> tuple[str, ...]:
    """Return the levels of a column, the most frequent if there are many: the others have no indicator."""
    levels = column.levels or ()
    if len(levels) <= _MOST_INDICATORS:
        return levels
    codes = column.codes()
    frequency = np.bincount(codes[codes >= 0], minlength=len(levels))
    kept = np.sort(np.argsort(-frequency, kind="stable")[:_MOST_INDICATORS])
    return tuple(levels[code] for code in kept)


def _as_csr(matrix: Any) -> Any:
    """Return a sparse matrix in the one form that LightGBM does not warn about."""
    import scipy.sparse

    return scipy.sparse.csr_matrix(matrix)


def _categorical(column: Column) -> Any:
    import pandas as pd

    if column.levels is None:
        return column.numbers()
    return pd.Categorical.from_codes(column.codes(), categories=pd.RangeIndex(len(column.levels)))


class MissingValuesError(ValueError):
    """An estimator was given missing values, which it does not take."""


def explaining_missing(estimator: Any, layout: Layout, features: Any) -> AbstractContextManager[None]:
    """Name the columns with missing values if an estimator fails because of them."""
    return _explaining(estimator, lambda: _columns_with_missing(layout, features))


def explaining_missing_in_table(estimator: Any, X: Any) -> AbstractContextManager[None]:
    """Do the same for an estimator that gets a user's own table."""
    return _explaining(estimator, lambda: _names_with_missing(Table.from_input(X)))


@contextmanager
def _explaining(estimator: Any, find_columns: Callable[[], list[str]]) -> Iterator[None]:
    from sklearn.pipeline import Pipeline

    try:
        yield
    except Exception as error:
        columns = find_columns() if _OF_MISSING.search(str(error)) else []
        if not columns:
            raise
        last = estimator
        while isinstance(last, Pipeline):
            last = last.steps[-1][1]
        name, kind = type(last).__name__, "Regressor" if is_regressor(estimator) else "Classifier"
        listed = list_names([repr(name) for name in columns])
        which = f"column {listed} has" if len(columns) == 1 else f"columns {listed} have"
        fix = f"put an imputer before it, as in `make_pipeline(SimpleImputer(), {name}())`"
        if last is not estimator:
            fix = "add a SimpleImputer to the pipeline"
        raise MissingValuesError(
            f"{name} takes no missing values (NaN), and {which} some: use HistGradientBoosting{kind} or "
            f"LGBM{kind}, which take them, or {fix}."
        ) from error


def _names_with_missing(table: Table) -> list[str]:
    """Name the columns of a user's table that have missing values."""
    if table.is_sparse:
        found = np.flatnonzero(_with_missing(table.source)).tolist()
    else:
        found = [j for j in range(table.n_columns) if np.isnan(table.column(j).numbers()).any()]
    return [table.names[j] for j in found]


def _columns_with_missing(layout: Layout, features: Any) -> list[str]:
    """Find the columns of the table with missing values that the estimator saw."""
    missing = _with_missing(features)
    if layout.form == "numbers":  # one for a column of numbers, one for each level of another
        widths = [len(levels) if (levels := layout.schema.levels[j]) is not None else 1 for j in layout.kept]
        found = [missing[start:stop].any() for start, stop in pairwise(np.cumsum([0, *widths]))]
    else:
        found = missing[: len(layout.kept)].tolist()
    return [layout.schema.names[j] for j, has_some in zip(layout.kept, found, strict=True) if has_some]


def _with_missing(features: Any) -> npt.NDArray[np.bool_]:
    """Return which columns of a matrix or frame have missing values."""
    if hasattr(features, "tocoo"):
        matrix = features.tocoo()
        return np.bincount(matrix.col[np.isnan(matrix.data)], minlength=features.shape[1]) > 0
    found = features.isna().to_numpy() if hasattr(features, "isna") else np.isnan(features)
    return np.asarray(found.any(axis=0))
