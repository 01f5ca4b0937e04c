"""An estimator's parameters as a booster takes them, for a fit in one thread."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["BINNING", "draws_columns", "honours", "parameters_of"]

# What decides the bins; estimators that agree on these share one binned table.
BINNING = ("subsample_for_bin", "max_bin", "min_data_in_bin", "random_state")
# What draws columns at random: a column that is only masked out would still be drawn.
_COLUMN_DRAWS = ("colsample_bytree", "colsample_bynode", "feature_fraction", "feature_fraction_bynode")
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
    "boost_from_average",
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


def honours(estimator: Any) -> bool:
    """Tell whether a fit on shared bins honours every parameter of an estimator.

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


def parameters_of(estimator: Any, *, many_usual: bool = False) -> dict[str, Any]:
    """Give an estimator's parameters as the booster takes them, for a fit in one thread.

    Parameters
    ----------
    estimator : LGBMClassifier or LGBMRegressor
        Only its parameters are read.
    many_usual : bool
        Whether the table has `many_usual_values`. It decides how models that draw columns count, not what
        they learn.
    """
    given = estimator.get_params()
    parameters = {name: value for name, value in given.items() if name in _HONOURED and value is not None}
    if not {"force_col_wise", "force_row_wise"} & set(parameters):
        # Left to itself, LightGBM times both and takes either. By rows, it counts columns not drawn as well.
        by_column = many_usual and draws_columns(parameters)
        parameters["force_col_wise" if by_column else "force_row_wise"] = True
    return parameters | {"num_threads": 1, "deterministic": True, "metric": "None", "verbosity": -1}


def draws_columns(parameters: dict[str, Any]) -> bool:
    """Tell whether models of these parameters draw columns at random."""
    return any(parameters.get(name, 1.0) not in (None, 1.0) for name in _COLUMN_DRAWS)
