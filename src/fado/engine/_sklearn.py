"""The generic engine: any scikit-learn estimator, through its own `fit` and `predict_proba` or `predict`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from fado._frames import Column, Table, one_hot
from fado._variables import Variable

__all__ = ["features_for", "fit_and_predict"]

FloatArray = npt.NDArray[np.float64]
Rows = npt.NDArray[np.int32]

_LIGHTGBM = {"n_jobs": 1, "verbosity": -1}  # unless the user has set them


def features_for(estimator: Any, table: Table, variable: Variable, target: Variable) -> Any:
    """Lay out what an estimator sees when it learns a variable.

    A pipeline gets the user's own columns, since it may pick them by name. A LightGBM estimator gets
    categorical columns. Any other estimator gets numbers, with one indicator per level of a string or
    categorical column. The target follows as further columns where the variable's models see it.
    """
    kept = [j for j in range(table.n_columns) if j not in variable.excluded]
    extra = _target_columns(target) if variable.sees_target else {}
    if table.is_sparse:
        return _sparse(table.source[:, kept], extra)
    if _picks_columns(estimator):
        return _with_target(table.to_pandas().iloc[:, kept], extra)
    columns = [table.columns[j] for j in kept]
    if _is_lightgbm(estimator):
        return _categorical(columns, extra)
    return _numbers(columns, extra)


def fit_and_predict(
    estimator: Any,
    features: Any,
    variable: Variable,
    in_bag: Rows,
    out_of_bag: Rows | None,
    seed: int,
) -> FloatArray:
    """Clone an estimator, learn a variable from some rows, predict it for others.

    Parameters
    ----------
    estimator : estimator
        Unfitted. Where its `random_state` is None, `seed` takes its place.
    features : array, sparse matrix or DataFrame
        From `features_for`.
    variable : Variable
        What to learn.
    in_bag : ndarray
        Positions of the rows to learn from.
    out_of_bag : ndarray or None
        Positions of the rows to predict; None predicts the rows learnt from.
    seed : int
        Of this fit alone.

    Returns
    -------
    ndarray of shape (n, K) or (n,)
        Probabilities of all classes, or predicted numbers.
    """
    from sklearn.base import clone
    from threadpoolctl import threadpool_limits

    model = _seeded(clone(estimator), seed)
    seen = in_bag if out_of_bag is None else out_of_bag
    # One thread per fit: fits run side by side, and the number of threads may change the last digits.
    with threadpool_limits(1):
        model.fit(_rows(features, in_bag), variable.labels[in_bag])
        if variable.kind == "continuous":
            return np.asarray(model.predict(_rows(features, seen)), dtype=np.float64)
        predicted = np.asarray(model.predict_proba(_rows(features, seen)), dtype=np.float64)
    spread = np.zeros((len(predicted), len(variable.classes)))
    spread[:, np.asarray(model.classes_, dtype=np.intp)] = predicted
    with np.errstate(invalid="ignore", divide="ignore"):
        return spread / spread.sum(axis=1, keepdims=True)


def _seeded(model: Any, seed: int) -> Any:
    """Seed whatever draws at random and was left unseeded; keep LightGBM quiet and to one thread."""
    parameters = model.get_params(deep=True)
    chosen: dict[str, Any] = {
        name: seed
        for name, value in parameters.items()
        if (name == "random_state" or name.endswith("__random_state")) and value is None
    }
    if _is_lightgbm(model):
        chosen |= {name: value for name, value in _LIGHTGBM.items() if parameters.get(name) is None}
    return model.set_params(**chosen)


def _is_lightgbm(estimator: Any) -> bool:
    return type(estimator).__module__.startswith("lightgbm.")


def _picks_columns(estimator: Any) -> bool:
    """Tell whether an estimator is, or wraps, a pipeline, which may pick its columns by name."""
    from sklearn.pipeline import Pipeline

    return isinstance(estimator, Pipeline) or any(
        isinstance(value, Pipeline) for value in estimator.get_params(deep=True).values()
    )


def _rows(features: Any, rows: Rows) -> Any:
    return features.iloc[rows] if hasattr(features, "iloc") else features[rows]


def _target_columns(target: Variable) -> dict[str, FloatArray]:
    """Turn the target into numeric columns: itself, or one indicator per class of three or more."""
    labels = target.labels.astype(np.float64)
    if len(target.classes) <= 2:
        return {target.name: labels}
    return {
        f"{target.name}={name}": (labels == code).astype(float) for code, name in enumerate(target.classes)
    }


def _sparse(matrix: Any, extra: dict[str, FloatArray]) -> Any:
    import scipy.sparse

    joined = scipy.sparse.hstack([matrix, *(values[:, None] for values in extra.values())])
    return scipy.sparse.csr_matrix(joined)  # LightGBM warns about every other form


def _with_target(frame: Any, extra: dict[str, FloatArray]) -> Any:
    import pandas as pd

    taken = set(map(str, frame.columns))
    free = {name if name not in taken else f"{name} (target)": values for name, values in extra.items()}
    frame = frame.reset_index(drop=True)
    return pd.concat([frame, pd.DataFrame(free)], axis=1) if free else frame


def _categorical(columns: Sequence[Column], extra: dict[str, FloatArray]) -> Any:
    import pandas as pd

    made: dict[str, Any] = {}
    for j, column in enumerate(columns):
        if column.levels is None:
            made[f"f{j}"] = column.numbers()
        else:
            made[f"f{j}"] = pd.Categorical.from_codes(
                column.codes(), categories=pd.RangeIndex(len(column.levels))
            )
    for j, values in enumerate(extra.values()):
        made[f"target{j}"] = values
    return pd.DataFrame(made)


def _numbers(columns: Sequence[Column], extra: dict[str, FloatArray]) -> FloatArray:
    blocks = [one_hot(columns)] if columns else []
    return np.column_stack([*blocks, *extra.values()])
