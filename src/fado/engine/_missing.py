"""Estimators that take no missing values: what to say of that, and what to do."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from fado._compat import is_regressor
from fado._messages import list_names
from fado.engine._layout import Plan
from fado.tabular import Table

__all__ = ["MissingValuesError", "explain_missing", "explain_missing_in_table"]

_OF_MISSING = re.compile(r"\bnans?\b|missing|\bnull\b", re.IGNORECASE)  # in the messages of libraries


class MissingValuesError(ValueError):
    """An estimator was given missing values, which it does not take."""


def explain_missing(error: Exception, estimator: Any, plan: Plan, features: Any) -> MissingValuesError | None:
    """Say which columns an estimator failed for because of missing values; None if it failed otherwise.

    Parameters
    ----------
    error : Exception
        What its `fit` or `predict_proba` raised.
    estimator : estimator
        The one that failed.
    plan : Plan
        How the features were laid out.
    features : array, sparse matrix or DataFrame
        What it was given.
    """
    if not _OF_MISSING.search(str(error)):
        return None
    return _explained(estimator, [plan.schema.names[j] for j in _columns_with_missing(plan, features)])


def explain_missing_in_table(error: Exception, estimator: Any, X: Any) -> MissingValuesError | None:
    """Say the same of an estimator that was given a user's own table."""
    if not _OF_MISSING.search(str(error)):
        return None
    table = Table.from_input(X)
    if table.is_sparse:
        matrix = table.source.tocoo()
        found = np.unique(matrix.col[np.isnan(matrix.data)]).tolist()
    else:
        found = [j for j in range(table.n_columns) if _has_missing(table, j)]
    return _explained(estimator, [table.names[j] for j in found])


def _explained(estimator: Any, columns: Sequence[str]) -> MissingValuesError | None:
    from sklearn.pipeline import Pipeline

    if not columns:
        return None
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
