"""Reweighing: weights from utilities, from the cells of group and label, or from both."""

from __future__ import annotations

import math
from collections.abc import Iterator
from numbers import Real
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator

from fado._validation import check_choice, check_share
from fado._variables import protected_columns, target_column
from fado.interventions._groups import Groups, groups_of
from fado.interventions._inputs import Labels, labels_of, read_features
from fado.interventions._values import row_utilities, valued
from fado.interventions._weights import corrected_logs, kamiran_calders, mean_one, minmax
from fado.metrics._groups import list_names
from fado.metrics._inputs import warn_user
from fado.utility import LinearUtility

__all__ = ["Reweigher", "UtilityAwareReweigher"]

FloatArray = npt.NDArray[np.float64]


class _Reweigher(BaseEstimator):
    """What the reweighers share: how scikit-learn sees them."""

    __metadata_request__fit: ClassVar = {"sensitive_features": True, "valuation": True}

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        return tags


class Reweigher(_Reweigher):
    """Weigh rows so that label and group are independent (RW, Kamiran and Calders).

    A row of group z and label y weighs ``P(z) P(y) / P(z, y)``: in the weighted rows every group has the same
    rate of every label.

    Attributes
    ----------
    sample_weight_ : ndarray of shape (n_rows,)
        The weights.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray
        Names of the features, if all are text.

    Warns
    -----
    UserWarning
        If a group has no rows of some label, as no weight can equalise its rate; if there is only one group.

    References
    ----------
    F. Kamiran and T. Calders, "Data preprocessing techniques for classification without discrimination",
    Knowledge and Information Systems 33 (2012).

    Examples
    --------
    >>> from fado import Reweigher
    >>> X = [[0], [1], [2], [3], [4], [5], [6], [7]]
    >>> y = [1, 0, 0, 0, 1, 1, 1, 0]
    >>> sex = ["f", "f", "f", "f", "m", "m", "m", "m"]
    >>> Reweigher().fit(X, y, sensitive_features=sex).sample_weight_.round(3)
    array([2.   , 0.667, 0.667, 0.667, 0.667, 0.667, 0.667, 2.   ])
    """

    def fit(self, X: Any, y: Any, *, sensitive_features: Any = None, valuation: Any = None) -> Reweigher:
        """Weigh the rows.

        Parameters
        ----------
        X : array, sparse matrix, pandas, polars or pyarrow table of shape (n_rows, n_columns)
            The features, of any kind.
        y : array-like of shape (n_rows,)
            The target, of two or more labels.
        sensitive_features : Series, array, DataFrame, dict, or name(s) of columns of X
            The protected attributes; several are crossed. Missing values are a group of their own. Without
            any (which scikit-learn's conventions demand to be possible) every weight is 1, with a warning.
        valuation : Valuation, optional
            Not used; taken so that this can stand where `UtilityAwareReweigher` does.

        Returns
        -------
        self
            With `sample_weight_`.
        """
        table = read_features(self, X, sensitive_features)
        labels = labels_of(y, table.n_rows)
        groups = groups_of(sensitive_features, table)
        _warn_of_what_no_weight_can_mend(groups, labels)
        self.sample_weight_ = kamiran_calders(groups.codes, labels.codes)
        return self


class UtilityAwareReweigher(_Reweigher):
    """Weigh rows by their utility (UAR), and as far as is wanted for equal positive rates.

    The weight of a row is ``w = floor + (1 - floor) * minmax(U)``, times its cell's Kamiran-Calders factor
    ``P(z) P(y) / P(z, y)``, computed under ``w``, to the power of `prevalence_correction`. The defaults are
    the paper's UAR; ``floor=1, prevalence_correction=1`` is `Reweigher`, up to the mean weight;
    ``prevalence_correction=1`` makes the weighted positive rates of all groups equal whatever the utilities.

    Parameters
    ----------
    utility : LinearUtility, DifferenceUtility, CobbDouglasUtility or function of a valuation, optional
        What a row is worth. None is ``LinearUtility(alpha=0.5)``.
    valuator : OutOfBagEntropy or InBagEntropy, optional
        Values the rows if no valuation is passed. None is ``OutOfBagEntropy()``.
    scaling : {"minmax", "none"}, default="minmax"
        Whether utilities are scaled to [0, 1], or are weights as they are. All-equal utilities give equal
        weights.
    normalize : bool, default=True
        Whether to scale the weights to a mean of 1.
    negative : {"raise", "clip"}, default="raise"
        What becomes of negative utilities without scaling: an error, or a weight of 0.
    prevalence_correction : float, default=0.0
        Power of the Kamiran-Calders factor, 0 or more.
    floor : float, default=0.0
        Weight of the row of least utility, in [0, 1]; that of most utility weighs 1. Other than 0 it needs
        ``scaling="minmax"``.

    Attributes
    ----------
    sample_weight_ : ndarray of shape (n_rows,)
        The weights: finite, not negative, not all 0.
    valuation_ : Valuation
        The values used.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray
        Names of the features, if all are text.

    Warns
    -----
    UserWarning
        With a correction: if a group has no rows of some label, or none that weigh anything, as no factor can
        equalise its rate; if there is only one group.

    Examples
    --------
    >>> from fado import LinearUtility, UtilityAwareReweigher, Valuation
    >>> X = [[0], [1], [2], [3]]
    >>> y = [1, 0, 1, 0]
    >>> sex = ["f", "f", "m", "m"]
    >>> valuation = Valuation.from_probabilities([0.5, 1.0, 0.5, 0.5], {"sex": [0.5, 1.0, 1.0, 0.5]})
    >>> reweigher = UtilityAwareReweigher(LinearUtility(alpha=0.5), normalize=False)
    >>> reweigher.fit(X, y, sensitive_features=sex, valuation=valuation).sample_weight_
    array([1. , 0. , 0.5, 1. ])
    """

    def __init__(
        self,
        utility: Any = None,
        *,
        valuator: Any = None,
        scaling: str = "minmax",
        normalize: bool = True,
        negative: str = "raise",
        prevalence_correction: float = 0.0,
        floor: float = 0.0,
    ) -> None:
        self.utility = utility
        self.valuator = valuator
        self.scaling = scaling
        self.normalize = normalize
        self.negative = negative
        self.prevalence_correction = prevalence_correction
        self.floor = floor

    def fit(
        self, X: Any, y: Any, *, sensitive_features: Any = None, valuation: Any = None
    ) -> UtilityAwareReweigher:
        """Weigh the rows.

        Parameters
        ----------
        X : array, sparse matrix, pandas, polars or pyarrow table of shape (n_rows, n_columns)
            The features. Only a valuator looks at what they hold.
        y : array-like of shape (n_rows,)
            The target; of classes, if there is a correction.
        sensitive_features : Series, array, DataFrame, dict, or name(s) of columns of X
            The protected attributes; for a correction several are crossed, and missing values are a group of
            their own. Not needed with a valuation and without a correction. Without attributes and valuation
            (which scikit-learn's conventions demand to be possible) rows are weighed by their value for
            performance alone, with a warning.
        valuation : Valuation, optional
            The values of these rows; made on the way if there is none.

        Returns
        -------
        self
            With `sample_weight_`.
        """
        power = self._checked_correction()
        table = read_features(self, X, sensitive_features)
        if power > 0:
            labels, groups = labels_of(y, table.n_rows), groups_of(sensitive_features, table)
            _warn_of_what_no_weight_can_mend(groups, labels)
        else:
            target_column(y, table.n_rows)
            protected_columns(sensitive_features, table)
        utility = self.utility
        if valuation is None:
            if sensitive_features is None:
                warn_user(
                    "There are no protected attributes to value: rows are weighed by their value for "
                    "performance alone. Pass them as `sensitive_features`.",
                    UserWarning,
                )
                utility = LinearUtility(alpha=1.0)
            valuation = valued(self.valuator, X, y, sensitive_features)
        self.valuation_ = valuation
        weights = self._base_weights(row_utilities(utility, valuation, y, table.n_rows))
        if power > 0:
            _warn_of_weightless_cells(weights / weights.max(), groups, labels)
            logs = corrected_logs(weights, groups.codes, labels.codes, power)
            weights = np.exp(logs - logs.max()) if self.normalize else _exp(logs)
        self.sample_weight_ = mean_one(weights) if self.normalize else weights
        return self

    def _checked_correction(self) -> float:
        """Check the settings, before anything is computed."""
        check_choice("scaling", self.scaling, ("minmax", "none"))
        check_choice("negative", self.negative, ("raise", "clip"))
        if check_share("floor", self.floor) > 0 and self.scaling == "none":
            raise ValueError(
                f'`floor={self.floor}` needs `scaling="minmax"`: utilities as they are have no scale.'
            )
        power = self.prevalence_correction
        if not isinstance(power, Real) or not math.isfinite(power) or power < 0:
            raise ValueError(f"`prevalence_correction` must be a number of at least 0, got {power!r}.")
        return float(power)

    def _base_weights(self, utilities: FloatArray) -> FloatArray:
        """Turn utilities into weights, before the correction."""
        if self.scaling == "minmax":
            return self.floor + (1 - self.floor) * minmax(utilities)
        n_negative = int((utilities < 0).sum())
        if n_negative and self.negative == "raise":
            raise ValueError(
                f"{n_negative} of {len(utilities)} utilities are negative (the least is "
                f'{utilities.min():.3g}) and cannot be weights: use `scaling="minmax"`, or '
                '`negative="clip"` for a weight of 0.'
            )
        weights = np.maximum(utilities, 0.0)
        if weights.any():
            return weights
        if n_negative:
            raise ValueError('No utility is above 0, so that no row would weigh: use `scaling="minmax"`.')
        return np.ones(len(weights))


def _warn_of_what_no_weight_can_mend(groups: Groups, labels: Labels) -> None:
    """Say which cells have no rows, or that there is but one group."""
    if len(groups) == 1:
        warn_user(
            f"There is only one group ({groups.names[0]}) and so no other rate to equalise: its rows all get "
            "the factor 1. Pass protected attributes as `sensitive_features`.",
            UserWarning,
        )
    for label, names in _marked(_rows_per_cell(groups, labels) == 0, groups, labels):
        warn_user(
            f"No rows with label {label} in group {names}: no weights can equalise the rate of that label "
            "there.",
            UserWarning,
        )


def _warn_of_weightless_cells(weights: FloatArray, groups: Groups, labels: Labels) -> None:
    rows, heavy = _rows_per_cell(groups, labels), _rows_per_cell(groups, labels, weights > 0)
    for label, names in _marked((rows > 0) & (heavy == 0), groups, labels):
        warn_user(
            f"All rows with label {label} in group {names} have the weight 0, which no correction can raise: "
            "set `floor` above 0 to equalise the rate of that label there.",
            UserWarning,
        )


def _rows_per_cell(groups: Groups, labels: Labels, among: Any = slice(None)) -> npt.NDArray[np.int64]:
    """Count rows by group and label."""
    shape = len(groups), len(labels.classes)
    cells = groups.codes * shape[1] + labels.codes
    return np.bincount(cells[among], minlength=shape[0] * shape[1]).reshape(shape)


def _marked(cells: npt.NDArray[np.bool_], groups: Groups, labels: Labels) -> Iterator[tuple[str, str]]:
    """Name per label the groups whose cell is marked."""
    for label, marked in zip(labels.classes, cells.T, strict=True):
        if marked.any():
            yield repr(label), list_names([groups.names[group] for group in np.flatnonzero(marked)])


def _exp(logs: FloatArray) -> FloatArray:
    with np.errstate(over="ignore"):
        weights = np.exp(logs)
    if not np.isfinite(weights).all() or not weights.any():
        raise ValueError("The weights are beyond what a float can hold: set `normalize=True`.")
    return weights
