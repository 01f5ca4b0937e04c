"""The LightGBM engine: bin the table once, fit many models on subsets of the bins.

Every fit runs in one thread, so many run side by side and the number of workers cannot change a result.
Predictions for the rows left out are read from the booster's own validation scores.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fado._frames import Column, Table
from fado._variables import Variable

if TYPE_CHECKING:
    import lightgbm

__all__ = ["LightGBMEngine", "default_estimators", "supports"]

FloatArray = npt.NDArray[np.float64]
Rows = npt.NDArray[np.int32]

# Chosen by benchmarks/default_models.py: the most faithful ranking of rows per second.
DEFAULT_PARAMETERS: dict[str, Any] = {
    "n_estimators": 50,
    "learning_rate": 0.2,
    "num_leaves": 20,
    "reg_lambda": 1.0,
    "min_child_weight": 1.0,
}

# What decides the bins; estimators that agree on these share one binned table.
_BINNING = ("subsample_for_bin", "max_bin", "min_data_in_bin", "random_state")
# What draws columns at random: a column that is only masked out would still be drawn.
_DRAWS_COLUMNS = ("colsample_bytree", "colsample_bynode", "feature_fraction", "feature_fraction_bynode")
_HONOURED = {
    "boosting_type",
    "num_leaves",
    "max_depth",
    "learning_rate",
    "n_estimators",
    "subsample_for_bin",
    "objective",
    "min_split_gain",
    "min_child_weight",
    "min_child_samples",
    "subsample",
    "subsample_freq",
    "colsample_bytree",
    "reg_alpha",
    "reg_lambda",
    "random_state",
    "max_bin",
    "min_data_in_bin",
    "colsample_bynode",
    "feature_fraction",
    "feature_fraction_bynode",
    "bagging_fraction",
    "bagging_freq",
    "bagging_seed",
    "feature_fraction_seed",
    "min_data_in_leaf",
    "min_sum_hessian_in_leaf",
    "min_gain_to_split",
    "lambda_l1",
    "lambda_l2",
    "max_delta_step",
    "path_smooth",
    "scale_pos_weight",
    "is_unbalance",
    "cat_l2",
    "cat_smooth",
    "min_data_per_group",
    "max_cat_threshold",
    "max_cat_to_onehot",
    "data_sample_strategy",
    "top_rate",
    "other_rate",
    "force_col_wise",
    "force_row_wise",
}
_WITHOUT_EFFECT = {"importance_type", "n_jobs", "num_threads", "nthread", "verbose", "verbosity", "silent"}
_CLASS_OBJECTIVES = {None, "binary", "multiclass", "softmax"}
_NUMBER_OBJECTIVES = {
    None,
    "regression",
    "regression_l2",
    "l2",
    "mean_squared_error",
    "mse",
    "huber",
    "fair",
    "poisson",
}


def default_estimators() -> list[Any]:
    """Make the models that value rows when the user names none."""
    from lightgbm import LGBMClassifier, LGBMRegressor

    return [LGBMClassifier(**DEFAULT_PARAMETERS), LGBMRegressor(**DEFAULT_PARAMETERS)]


def supports(estimator: Any) -> bool:
    """Tell whether this engine honours every parameter of an estimator.

    Custom objectives, class weights, early stopping and whatever else is not on the list of honoured
    parameters go through the estimator's own `fit` instead.
    """
    from lightgbm import LGBMClassifier, LGBMRegressor

    if type(estimator) not in (LGBMClassifier, LGBMRegressor):
        return False
    parameters = estimator.get_params()
    objectives = _CLASS_OBJECTIVES if isinstance(estimator, LGBMClassifier) else _NUMBER_OBJECTIVES
    objective = parameters["objective"]
    if callable(objective) or objective not in objectives or parameters.get("class_weight") is not None:
        return False
    if parameters["boosting_type"] not in ("gbdt", "goss"):
        return False
    seed = parameters["random_state"]
    if seed is not None and not isinstance(seed, int | np.integer):
        return False
    return set(parameters) <= _HONOURED | _WITHOUT_EFFECT | {"class_weight"}


class LightGBMEngine:
    """Binned tables and the fits on them.

    Parameters
    ----------
    table : Table
        The features.
    target : Variable or None
        The target, if models of protected attributes are to see it.
    workers : int
        Threads for the binning; the bins do not depend on it.
    """

    def __init__(self, table: Table, target: Variable | None, workers: int) -> None:
        self._columns = list(table.columns) + ([_as_feature(target)] if target is not None else [])
        self._n_features = len(table.columns)
        self._workers = workers
        self._binned: dict[Any, lightgbm.Dataset] = {}

    def prepare(self, estimator: Any, variables: Sequence[Variable]) -> None:
        """Bin what the fits of an estimator will need, before they run side by side."""
        parameters = _parameters(estimator)
        for variable in variables:
            self._dataset(parameters, self._view(parameters, variable))

    def predict(
        self,
        estimator: Any,
        variable: Variable,
        in_bag: Rows,
        out_of_bag: Rows | None,
        stop: threading.Event | None = None,
    ) -> FloatArray:
        """Learn a variable from some rows and predict it for others.

        Parameters
        ----------
        estimator : LGBMClassifier or LGBMRegressor
            Unfitted; only its parameters are read.
        variable : Variable
            What to learn.
        in_bag : ndarray
            Sorted positions of the rows to learn from, all with known labels of at least two classes.
        out_of_bag : ndarray or None
            Sorted positions of the rows to predict; None predicts the rows learnt from.
        stop : threading.Event, optional
            When set, growing ends early and the result is worthless.

        Returns
        -------
        ndarray of shape (n,) or (n, K)
            Probabilities of class 1 or of all classes, or predicted numbers.
        """
        import lightgbm

        parameters = _parameters(estimator)
        view = self._view(parameters, variable)
        binned = self._dataset(parameters, view)
        labels, classes = variable.labels[in_bag], None
        if variable.kind == "classes":
            classes, labels = np.unique(labels, return_inverse=True)
            _set_classes(parameters, len(classes))
        if view is None:
            parameters["feature_contri"] = self._mask(variable)
        n_trees = parameters.pop("n_estimators")
        training = _subset(binned, in_bag, labels)
        booster = lightgbm.Booster(parameters, training)
        if out_of_bag is not None:
            booster.add_valid(_subset(binned, out_of_bag, np.zeros(len(out_of_bag))), "out_of_bag")
        for _ in range(n_trees):
            if stop is not None and stop.is_set():
                break
            booster.update()
        predicted = _scores(booster, training=out_of_bag is None)
        return predicted if classes is None else _spread(predicted, classes, len(variable.classes))

    def _view(self, parameters: dict[str, Any], variable: Variable) -> tuple[int, ...] | None:
        """Give the columns that a variable's models need to themselves; None if a mask on all will do."""
        if all(parameters.get(name, 1.0) in (None, 1.0) for name in _DRAWS_COLUMNS):
            return None
        return tuple(np.flatnonzero(self._mask(variable)))

    def _mask(self, variable: Variable) -> list[float]:
        """Say for every column whether a variable's models may split on it: 1 or 0."""
        return [
            float(j not in variable.excluded if j < self._n_features else variable.sees_target)
            for j in range(len(self._columns))
        ]

    def _dataset(self, parameters: dict[str, Any], view: tuple[int, ...] | None) -> lightgbm.Dataset:
        key = (view, *(parameters.get(name) for name in _BINNING))
        if key not in self._binned:
            columns = self._columns if view is None else [self._columns[j] for j in view]
            self._binned[key] = _bin(columns, parameters, self._workers)
        return self._binned[key]


def _as_feature(target: Variable) -> Column:
    """Turn the target into a feature column for the models of protected attributes."""
    levels = tuple(map(str, target.classes)) if len(target.classes) > 2 else None
    return Column(target.name, pa.chunked_array([pa.array(target.labels)]), levels)


def _parameters(estimator: Any) -> dict[str, Any]:
    """Give an estimator's parameters as the booster takes them, for a fit in one thread."""
    given = estimator.get_params()
    parameters = {name: value for name, value in given.items() if name in _HONOURED and value is not None}
    if not {"force_col_wise", "force_row_wise"} & set(parameters):
        parameters["force_row_wise"] = True  # left to itself, LightGBM times both and takes either
    return parameters | {"num_threads": 1, "deterministic": True, "metric": "None", "verbosity": -1}


def _set_classes(parameters: dict[str, Any], n_classes: int) -> None:
    """Choose the objective for as many classes as the bag holds."""
    parameters["objective"] = "binary" if n_classes == 2 else "multiclass"
    if n_classes > 2:
        parameters["num_class"] = n_classes


def _bin(columns: Sequence[Column], parameters: dict[str, Any], workers: int) -> lightgbm.Dataset:
    import lightgbm

    # Column names never reach LightGBM: it refuses some characters and confuses "a b" with "a_b".
    data = pa.table({f"f{j}": column.data for j, column in enumerate(columns)})
    binning = {name: parameters[name] for name in _BINNING if name in parameters}
    dataset = lightgbm.Dataset(
        data,
        label=np.zeros(data.num_rows, dtype=np.float32),
        categorical_feature=[j for j, column in enumerate(columns) if column.levels is not None],
        params=binning | {"num_threads": workers, "verbosity": -1, "feature_pre_filter": False},
    )
    return dataset.construct()


def _subset(binned: lightgbm.Dataset, rows: Rows, labels: npt.NDArray[Any]) -> lightgbm.Dataset:
    subset = binned.subset([])
    subset.used_indices = rows  # type: ignore[assignment]  # `subset` would sort them as a Python list
    return subset.construct().set_label(labels.astype(np.float32))


def _scores(booster: lightgbm.Booster, *, training: bool) -> FloatArray:
    """Read the booster's own predictions for the rows it was trained or validated on."""
    seen: list[FloatArray] = []

    def keep(predicted: FloatArray, _: Any) -> tuple[str, float, bool]:
        seen.append(predicted.copy())
        return "kept", 0.0, True

    (booster.eval_train if training else booster.eval_valid)(keep)
    return seen[0]


def _spread(predicted: FloatArray, present: npt.NDArray[np.integer], n_classes: int) -> FloatArray:
    """Place the probabilities of the classes that a bag held among those of all classes."""
    if predicted.ndim == 1 and n_classes == 2:
        return predicted
    if predicted.ndim == 1:
        predicted = np.column_stack([1.0 - predicted, predicted])
    spread = np.zeros((len(predicted), n_classes))
    spread[:, present] = predicted
    return spread
