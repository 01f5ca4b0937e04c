"""Estimators that take no missing values: what to say of that, and what to do."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

import numpy as np

from fado._compat import is_regressor
from fado._messages import list_names
from fado.engine._layout import Plan
from fado.tabular import Table

__all__ = ["MissingValuesError", "explaining_missing", "explaining_missing_in_table"]

_OF_MISSING = re.compile(r"\bnans?\b|missing|\bnull\b", re.IGNORECASE)  # in the messages of libraries


class MissingValuesError(ValueError):
    """An estimator was given missing values, which it does not take."""


@contextmanager
def explaining_missing(estimator: Any, plan: Plan, features: Any) -> Iterator[None]:
    """Say which columns an estimator fails for because of missing values; other errors stay as they are.

    Parameters
    ----------
    estimator : estimator
        The one whose `fit` or `predict_proba` is called in the block.
    plan : Plan
        How the features were laid out.
    features : array, sparse matrix or DataFrame
        What it is given.
    """
    with _explaining(
        estimator, lambda: [plan.schema.names[j] for j in _columns_with_missing(plan, features)]
    ):
        yield


@contextmanager
def explaining_missing_in_table(estimator: Any, X: Any) -> Iterator[None]:
    """Say the same of an estimator that is given a user's own table."""
    with _explaining(estimator, lambda: _names_with_missing(Table.from_input(X))):
        yield


@contextmanager
def _explaining(estimator: Any, columns: Callable[[], list[str]]) -> Iterator[None]:
    try:
        yield
    except Exception as error:
        found = columns() if _OF_MISSING.search(str(error)) else []
        if not found:
            raise
        raise _explained(estimator, found) from error


def _names_with_missing(table: Table) -> list[str]:
    if table.is_sparse:
        matrix = table.source.tocoo()
        found = np.unique(matrix.col[np.isnan(matrix.data)]).tolist()
    else:
        found = [j for j in range(table.n_columns) if _has_missing(table, j)]
    return [table.names[j] for j in found]


def _explained(estimator: Any, columns: Sequence[str]) -> MissingValuesError:
    from sklearn.pipeline import Pipeline

    last, regresses = estimator, is_regressor(estimator)
    while isinstance(last, Pipeline):
        last = last.steps[-1][1]
    name, kind = type(last).__name__, "Regressor" if regresses else "Classifier"
    which = f"column {columns[0]!r} has" if len(columns) == 1 else f"columns {_listed(columns)} have"
    fix = (
        "add a SimpleImputer to the pipeline"
        if last is not estimator
        else f"put an imputer before it, as in `make_pipeline(SimpleImputer(), {name}())`"
    )
    return MissingValuesError(
        f"{name} takes no missing values (NaN), and {which} some: use HistGradientBoosting{kind} or "
        f"LGBM{kind}, which take them, or {fix}."
    )


def _listed(columns: Sequence[str]) -> str:
    return list_names([repr(name) for name in columns])


def _columns_with_missing(plan: Plan, features: Any) -> list[int]:
    """Find the columns of the table that hold missing values where the estimator saw them."""
    if plan.form == "sparse":
        matrix = features.tocoo()
        missing = np.bincount(matrix.col[np.isnan(matrix.data)], minlength=features.shape[1]) > 0
    elif hasattr(features, "isna"):
        missing = features.isna().to_numpy().any(axis=0)
    else:
        missing = np.isnan(features).any(axis=0)
    if plan.form == "numbers":  # one for a column of numbers, one for each level of another
        widths = [len(levels) if (levels := plan.schema.levels[j]) is not None else 1 for j in plan.kept]
        starts = np.cumsum([0, *widths])
        found = [missing[start:stop].any() for start, stop in pairwise(starts)]
    else:
        found = missing[: len(plan.kept)].tolist()
    return [j for j, has_some in zip(plan.kept, found, strict=True) if has_some]


def _has_missing(table: Table, j: int) -> bool:
    column = table.column(j)
    return bool(np.isnan(column.numbers()).any() if column.levels is None else (column.codes() < 0).any())
