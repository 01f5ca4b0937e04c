"""The LightGBM engine: bin the table once, fit many models on subsets of the bins.

Every fit runs in one thread, so many run side by side and the number of workers cannot change a result.
Predictions for the rows left out are read from the booster's own validation scores.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fado._frames import Column, Table
from fado._variables import Variable
from fado.engine._boosting import (
    BINNING,
    HONOURED,
    bin_columns,
    draws_columns,
    grown,
    many_usual_values,
    own_scores,
    parameters_of,
    subset,
)
from fado.engine._threads import fitting

if TYPE_CHECKING:
    import lightgbm

__all__ = ["WATCHED_EVERY", "LightGBMEngine", "Prediction", "default_estimators", "supports"]

FloatArray = npt.NDArray[np.float64]
Rows = npt.NDArray[np.int32]

# Chosen by benchmarks/default_models.py: the most faithful ranking of rows per second.
_DEFAULT_PARAMETERS: dict[str, Any] = {
    "n_estimators": 45,
    "learning_rate": 0.28,  # fast; fado.valuation._pace slows models down that need it
    "num_leaves": 24,
    "max_depth": 8,  # a deeper chain of splits costs as much time as a full tree and tells less
    "reg_lambda": 2.0,  # without it, a class of a few rows upsets the others
    "max_bin": 511,  # a bin for each of some hundred codes; costs next to nothing
}
# A tree sees a few columns, for what only some together tell, and a share of the table's.
_COLUMNS_SEEN, _AND_SHARE = 1.5, 0.55
WATCHED_EVERY = 5  # trees; reading predictions costs an eighth of growing one

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


def default_estimators(n_columns: int) -> list[Any]:
    """Make the models that value the rows of a table with so many columns when the user names none.

    Examples
    --------
    >>> classifier, regressor = default_estimators(10)
    >>> classifier.colsample_bytree
    0.7
    """
    from lightgbm import LGBMClassifier, LGBMRegressor

    share = min(_COLUMNS_SEEN / max(n_columns, 1) + _AND_SHARE, 1.0)
    parameters = _DEFAULT_PARAMETERS | {"colsample_bytree": round(share, 3)}
    return [LGBMClassifier(**parameters), LGBMRegressor(**parameters)]


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
    return set(parameters) <= HONOURED | _WITHOUT_EFFECT | {"class_weight"}


class Prediction(NamedTuple):
    """What one fit predicts, and what it split on.

    Parameters
    ----------
    predicted : ndarray of shape (n,) or (n, K)
        Probabilities of class 1 or of all classes, or predicted numbers.
    gains : ndarray of shape (n_columns + 1,), or None
        The total gain of the splits on each feature column and, last, on the target; None if unknown.
    """

    predicted: FloatArray
    gains: FloatArray | None


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
    by_content : bool
        Lay the columns out by what they hold, so that their places and names change nothing: models that
        draw columns draw them by place, and the first of two equal splits wins. A column that a variable's
        models must not see may then be drawn in vain, so one binned table serves all variables. False does
        all as the estimators' own `fit` would.
    """

    def __init__(self, table: Table, target: Variable | None, workers: int, *, by_content: bool) -> None:
        self._columns = list(table.columns) + ([_as_feature(target)] if target is not None else [])
        self._n_features = len(table.columns)
        self._order = list(range(len(self._columns)))
        self._by_content = by_content
        if by_content:
            digests = [column.digest() for column in self._columns]
            self._order.sort(key=lambda j: digests[j])
        self._many_usual = many_usual_values(self._columns)
        self._workers = workers
        self._binned: dict[Any, lightgbm.Dataset] = {}
        self._parameters: dict[Any, dict[str, Any]] = {}

    def prepare(self, estimator: Any, variable: Variable) -> None:
        """Bin what the fits of an estimator to a variable will need, before they run side by side."""
        parameters = self._parameters_of(estimator)
        self._dataset(parameters, self._view(parameters, variable))

    def predict(
        self,
        estimator: Any,
        variable: Variable,
        in_bag: Rows,
        out_of_bag: Rows | None,
        seed: int,
        stop: threading.Event | None = None,
        watch: Callable[[Prediction], bool] | None = None,
    ) -> Prediction:
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
        seed : int
            Of this fit alone; it takes the place of a `random_state` that is None.
        stop : threading.Event, optional
            When set, growing ends early and the result is worthless.
        watch : callable, optional
            Called after every `WATCHED_EVERY` trees with the result so far; growing ends when it says True.

        Returns
        -------
        Prediction
        """
        parameters = self._parameters_of(estimator)
        view = self._view(parameters, variable)
        binned = self._dataset(parameters, view)
        parameters.setdefault("random_state", seed)  # once the bins are chosen, which all fits share
        labels, classes = variable.labels[in_bag], None
        if variable.kind == "classes":
            occurs = np.bincount(labels, minlength=len(variable.classes)) > 0
            classes, labels = np.flatnonzero(occurs), (np.cumsum(occurs) - 1)[labels]
            _set_classes(parameters, len(classes))
        if view is None:
            parameters["feature_contri"] = self._mask(variable)
        with fitting():
            evaluation = None
            if out_of_bag is not None:
                evaluation = subset(binned, out_of_bag)

            def so_far(booster: lightgbm.Booster) -> Prediction:
                predicted = own_scores(booster, training=out_of_bag is None)
                if classes is not None:
                    predicted = _spread(predicted, classes, len(variable.classes))
                gains = np.zeros(self._n_features + 1)
                gains[list(self._order if view is None else view)] = booster.feature_importance("gain")
                return Prediction(predicted, gains)

            def enough(booster: lightgbm.Booster) -> bool:
                if watch is None or booster.current_iteration() % WATCHED_EVERY:
                    return False
                return watch(so_far(booster))

            return so_far(grown(parameters, subset(binned, in_bag, labels), evaluation, stop, enough))

    def _parameters_of(self, estimator: Any) -> dict[str, Any]:
        """Read an estimator's parameters once for all its fits; the caller may change what it is given."""
        if estimator not in self._parameters:
            self._parameters[estimator] = parameters_of(estimator, many_usual=self._many_usual)
        return dict(self._parameters[estimator])

    def _view(self, parameters: dict[str, Any], variable: Variable) -> tuple[int, ...] | None:
        """Give the columns that a variable's models need to themselves; None if a mask on all will do."""
        if self._by_content or not draws_columns(parameters):
            return None
        return tuple(j for j, shown in zip(self._order, self._mask(variable), strict=True) if shown)

    def _mask(self, variable: Variable) -> list[float]:
        """Say for every column, as laid out, whether a variable's models may split on it: 1 or 0."""
        return [
            float(j not in variable.excluded if j < self._n_features else variable.sees_target)
            for j in self._order
        ]

    def _dataset(self, parameters: dict[str, Any], view: tuple[int, ...] | None) -> lightgbm.Dataset:
        least_rows = 1
        if draws_columns(parameters):  # LightGBM draws none that it cannot split
            least_rows = parameters.get("min_data_in_leaf", parameters["min_child_samples"])
        key = (view, least_rows, *(parameters.get(name) for name in BINNING))
        if key not in self._binned:
            columns = [self._columns[j] for j in (self._order if view is None else view)]
            self._binned[key] = bin_columns(columns, parameters, self._workers, least_rows=least_rows)
        return self._binned[key]


def _as_feature(target: Variable) -> Column:
    """Turn the target into a feature column for the models of protected attributes."""
    levels = tuple(map(str, target.classes)) if len(target.classes) > 2 else None
    return Column(target.name, pa.chunked_array([pa.array(target.labels)]), levels)


def _set_classes(parameters: dict[str, Any], n_classes: int) -> None:
    """Choose the objective for as many classes as the bag holds."""
    parameters["objective"] = "binary" if n_classes == 2 else "multiclass"
    if n_classes > 2:
        parameters["num_class"] = n_classes


def _spread(predicted: FloatArray, present: npt.NDArray[np.integer], n_classes: int) -> FloatArray:
    """Place the probabilities of the classes that a bag held among those of all classes."""
    if predicted.ndim == 1 and n_classes == 2:
        return predicted
    if predicted.ndim == 1:
        predicted = np.column_stack([1.0 - predicted, predicted])
    spread = np.zeros((len(predicted), n_classes))
    spread[:, present] = predicted
    return spread
