"""What a scikit-learn estimator sees: the table in the form that it takes; errors about missing values."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Literal

import numpy as np

from fado._compat import is_regressor
from fado._messages import list_names
from fado.engine._base import Schema
from fado.tabular import Column, Table, Variable, one_hot

Form = Literal["sparse", "frame", "columns", "categories", "numbers"]

_MOST_INDICATORS = 32  # per column
_OF_MISSING = re.compile(r"\bnans?\b|missing|\bnull\b", re.IGNORECASE)  # in the messages of libraries


def form_for(estimator: Any, *, sparse: bool) -> Form:
    """Select what an estimator sees.

    A pipeline gets the user's columns, since it may select them by name. A LightGBM estimator gets
    categorical columns. Any other estimator gets numbers, with one indicator per level of a string or
    categorical column. A sparse matrix stays one.
    """
    if sparse:
        return "sparse"
    from sklearn.pipeline import Pipeline

    if any(isinstance(part, Pipeline) for part in (estimator, *estimator.get_params(deep=True).values())):
        return "frame"
    return "categories" if is_lightgbm(estimator) else "numbers"


def is_lightgbm(estimator: Any) -> bool:
    """Return whether an estimator is one of LightGBM's."""
    return type(estimator).__module__.startswith("lightgbm.")


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
        import scipy.sparse

        places = self.schema.find(table, self.kept)
        if table.is_sparse is not (self.form == "sparse"):
            raise ValueError(
                "Models of a sparse matrix score sparse matrices only, and others none: convert."
            )
        if self.form == "sparse":
            return scipy.sparse.csr_matrix(table.source[:, list(self.kept)])  # LightGBM warns of other forms
        if self.form == "frame":
            frame: Any = table.to_pandas()
            chosen = frame.iloc[:, [places[j] for j in self.kept]]
            return chosen.set_axis(self.names, axis=1).reset_index(drop=True)
        if self.form == "columns":
            read = {}
            for j in self.kept:  # of the kind that the estimator learnt from, with any levels
                place = places[j]
                column = None if place is None else table.column(place)
                if column is None or (column.levels is None) is not (self.schema.levels[j] is None):
                    column = self.schema.column(table, j, place)
                read[j] = column.to_pandas()
            return pd.DataFrame(read).set_axis(self.names, axis=1)
        columns = [self.schema.column(table, j, places[j]) for j in self.kept]
        if self.form == "categories":
            return pd.DataFrame(
                {
                    f"f{j}": column.numbers()
                    if column.levels is None
                    else pd.Categorical.from_codes(column.codes(), pd.RangeIndex(len(column.levels)))
                    for j, column in enumerate(columns)
                }
            )
        return one_hot(columns) if columns else np.empty((table.n_rows, 0))

    def with_target(self, features: Any, target: Variable) -> Any:
        """Add the target of rows that were laid out: itself, or an indicator for each of many classes."""
        import pandas as pd
        import scipy.sparse

        labels = target.labels.astype(np.float64)
        columns = {target.name: labels}
        if len(target.classes) > 2:
            columns = {
                f"{target.name}={name}": (labels == code).astype(float)
                for code, name in enumerate(target.classes)
            }
        values = np.column_stack(list(columns.values()))
        if self.form == "sparse":
            return scipy.sparse.csr_matrix(scipy.sparse.hstack([features, values]))
        if self.form == "numbers":
            return np.column_stack([features, values])
        if self.form == "categories":
            names = [f"target{j}" for j in range(len(columns))]
        else:
            taken = set(map(str, features.columns))
            names = [f"{name} (target)" if name in taken else name for name in columns]
        return pd.concat([features, pd.DataFrame(values, features.index, names)], axis=1)


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


class MissingValuesError(ValueError):
    """An estimator was given missing values, which it does not take."""


@contextmanager
def explaining_missing(estimator: Any, features: Any, layout: Layout | None = None) -> Iterator[None]:
    """Name the columns with missing values if an estimator fails because of them.

    Parameters
    ----------
    estimator : estimator
        What is fitted or used within the block.
    features : object
        What it gets: rows that were laid out, or a user's table as it is.
    layout : Layout, optional
        How the rows were laid out.
    """
    from sklearn.pipeline import Pipeline

    try:
        yield
    except Exception as error:
        columns = _columns_with_missing(features, layout) if _OF_MISSING.search(str(error)) else []
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


def _columns_with_missing(features: Any, layout: Layout | None) -> list[str]:
    """Name the columns with missing values that the estimator saw."""
    names: Sequence[str]
    places: Sequence[int]
    if layout is None:
        table = Table.from_input(features)
        names, places = table.names, range(table.n_columns)
        features = table.source if table.is_sparse else np.column_stack([c.numbers() for c in table.columns])
    else:
        names, places = layout.schema.names, layout.kept
    if hasattr(features, "tocoo"):
        matrix = features.tocoo()
        missing = np.bincount(matrix.col[np.isnan(matrix.data)], minlength=features.shape[1]) > 0
    else:
        gaps = features.isna().to_numpy() if hasattr(features, "isna") else np.isnan(features)
        missing = gaps.any(axis=0)
    if layout is not None and layout.form == "numbers":  # one for each level of a column of text
        widths = [len(levels) if (levels := layout.schema.levels[j]) is not None else 1 for j in places]
        missing = np.array([missing[start:end].any() for start, end in pairwise(np.cumsum([0, *widths]))])
    return [names[j] for j, has_some in zip(places, missing, strict=False) if has_some]
