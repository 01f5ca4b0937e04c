"""What every LightGBM fit is made of: parameters for one thread, bins, subsets of them, growing, scores."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fado._frames import Column
from fado.engine._threads import binning

if TYPE_CHECKING:
    import lightgbm

__all__ = [
    "BINNING",
    "HONOURED",
    "bin_columns",
    "draws_columns",
    "grown",
    "many_usual_values",
    "own_scores",
    "parameters_of",
    "subset",
]

FloatArray = npt.NDArray[np.float64]
Rows = npt.NDArray[np.int32]

# What decides the bins; estimators that agree on these share one binned table.
BINNING = ("subsample_for_bin", "max_bin", "min_data_in_bin", "random_state")
# What draws columns at random: a column that is only masked out would still be drawn.
_COLUMN_DRAWS = ("colsample_bytree", "colsample_bynode", "feature_fraction", "feature_fraction_bynode")
_ROWS_THAT_TELL = 2000
HONOURED = {
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
    parameters = {name: value for name, value in given.items() if name in HONOURED and value is not None}
    if not {"force_col_wise", "force_row_wise"} & set(parameters):
        # Left to itself, LightGBM times both and takes either. By rows, it counts columns not drawn as well.
        by_column = many_usual and draws_columns(parameters)
        parameters["force_col_wise" if by_column else "force_row_wise"] = True
    return parameters | {"num_threads": 1, "deterministic": True, "metric": "None", "verbosity": -1}


def draws_columns(parameters: dict[str, Any]) -> bool:
    """Tell whether models of these parameters draw columns at random."""
    return any(parameters.get(name, 1.0) not in (None, 1.0) for name in _COLUMN_DRAWS)


def many_usual_values(columns: Sequence[Column]) -> bool:
    """Tell whether many of a table's entries are usual: zero, or a value in at least 70 % of the rows.

    LightGBM need not count them. Many are a fifth; a sample of the rows tells.
    """
    rows = np.linspace(0, len(columns[0]) - 1, min(len(columns[0]), _ROWS_THAT_TELL)).astype(np.int64)
    usual = []
    for column in columns:
        sample = column.take(rows).numbers()
        _, counts = np.unique(sample, return_counts=True)
        most = counts.max() / len(rows)
        usual.append(most if most >= 0.7 else np.mean(sample == 0.0) if column.levels is None else 0.0)
    return bool(np.mean(usual) >= 0.2)


def bin_columns(
    columns: Sequence[Column],
    parameters: dict[str, Any],
    workers: int,
    reference: lightgbm.Dataset | None = None,
    *,
    least_rows: int = 1,
) -> lightgbm.Dataset:
    """Bin a table; with a reference, into the bins of that one.

    Parameters
    ----------
    columns : sequence of Column
        The features.
    parameters : dict
        Of a booster; those that decide the bins are read, and must be those of the reference.
    workers : int
        Threads for the binning; the bins do not depend on it.
    reference : lightgbm.Dataset, optional
        A binned table of the same columns.
    least_rows : int
        No model will ever split off fewer rows. A column that cannot be split then, such as a constant one,
        is never drawn by models that draw columns.
    """
    import lightgbm

    # Column names never reach LightGBM: it refuses some characters and confuses "a b" with "a_b".
    data = pa.table({f"f{j}": column.data for j, column in enumerate(columns)})
    decisive = {name: parameters[name] for name in BINNING if name in parameters}
    settings = decisive | {"verbosity": -1, "min_data_in_leaf": least_rows}
    dataset = lightgbm.Dataset(
        data,
        reference=reference,
        label=np.zeros(data.num_rows, dtype=np.float32),
        categorical_feature=[j for j, column in enumerate(columns) if column.levels is not None],
        params=settings,
    )
    with binning(workers) as threads:
        dataset.params = {**settings, "num_threads": threads}
        dataset.construct()
        dataset.params = {**settings, "num_threads": 1}  # its subsets name the number again, while fits run
    return dataset


def subset(
    binned: lightgbm.Dataset,
    rows: Rows,
    labels: npt.NDArray[Any] | None = None,
    weights: npt.NDArray[np.float32] | None = None,
) -> lightgbm.Dataset:
    """Give some rows of a binned table with labels (else those of the table) and, if any, weights.

    LightGBM takes whatever weights it is given, all zero or negative: they must have been checked before.
    Call it, and all that follows with the subset, within `fado.engine._threads.fitting`.
    """
    part = binned.subset([])
    part.used_indices = rows  # type: ignore[assignment]  # `subset` would sort them as a Python list
    part.construct()
    if labels is not None:
        part.set_field("label", labels.astype(np.float32))  # `set_label` looks through every library first
    return part if weights is None else part.set_weight(weights)


def grown(
    parameters: dict[str, Any],
    training: lightgbm.Dataset,
    evaluation: lightgbm.Dataset | None,
    stop: threading.Event | None = None,
    enough: Callable[[lightgbm.Booster], bool] | None = None,
) -> lightgbm.Booster:
    """Grow the trees that `parameters` ask for; fewer if `stop` is set meanwhile or `enough` says so."""
    import lightgbm

    booster = lightgbm.Booster(
        {name: value for name, value in parameters.items() if name != "n_estimators"}, training
    )
    if evaluation is not None:
        booster.add_valid(evaluation, "evaluation")
    for _ in range(parameters["n_estimators"]):
        if stop is not None and stop.is_set():
            break
        booster.update()
        if enough is not None and enough(booster):
            break
    return booster


def own_scores(booster: lightgbm.Booster, *, training: bool) -> FloatArray:
    """Read the booster's own predictions for the rows it was trained or validated on."""
    seen: list[FloatArray] = []

    def keep(predicted: FloatArray, _: Any) -> tuple[str, float, bool]:
        seen.append(predicted.copy())
        return "kept", 0.0, True

    (booster.eval_train if training else booster.eval_valid)(keep)
    return seen[0]
