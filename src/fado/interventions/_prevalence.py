"""Prevalence sampling: groups with a low positive rate lose negatives until the rates match."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from imblearn.base import BaseSampler
from imblearn.utils import check_target_type

from fado._checks import check_share
from fado.interventions._base import BaseIntervention
from fado.interventions._rate_checks import has_rates, warn_of_one_group, warn_of_rates
from fado.interventions._sampling import PrevalenceSampling
from fado.interventions._training_set import TrainingSet
from fado.tabular import MIN_GROUP_SIZE, Groups, Labels, Problem, check_min_group_size, take_rows

__all__ = ["RandomPrevalenceSampler", "UtilityAwarePrevalenceSampler"]

FloatArray = npt.NDArray[np.float64]


class _PrevalenceSampler(BaseIntervention, BaseSampler):
    """Base of the samplers: subclasses give every row a utility, and the least useful negatives go first."""

    _sampling_type = "clean-sampling"
    __metadata_request__fit_resample: ClassVar = {"sensitive_features": True, "valuation": True}
    sample_indices_: npt.NDArray[np.integer[Any]]
    sampling_strategy_: dict[Any, int]
    target_rate_: float

    def fit_resample(
        self,
        X: Any,
        y: Any,
        *,
        sensitive_features: Any = None,
        valuation: Any = None,
        sample_weight: Any = None,
        groups: Any = None,
    ) -> tuple[Any, Any]:
        """Drop negatives of the groups whose positive rate is below the highest.

        Parameters
        ----------
        X : array, sparse matrix, pandas, polars or pyarrow table of shape (n_rows, n_columns)
            The features.
        y : array-like of shape (n_rows,)
            The target, of two labels.
        sensitive_features : Series, array, DataFrame, dict, or name(s) of columns of X
            The protected attributes; the groups are the combinations of several. Missing values are a group
            of their own. Without any attribute all rows are kept, with a warning.
        valuation : Valuation, optional
            The values of these rows. If None, `UtilityAwarePrevalenceSampler` values the rows if some are to
            be dropped. `RandomPrevalenceSampler` ignores it.
        sample_weight : array-like of shape (n_rows,), optional
            How much each row counts in the positive rates, such as survey weights.
        groups : array-like of shape (n_rows,), optional
            Rows of the same entry, such as those of one person, are in or out of a bag together if a
            valuator values the rows. These are not the groups of the protected attributes.

        Returns
        -------
        X_resampled, y_resampled
            The rows that are kept, in their order, of the same types as `X` and `y`.
        """
        return self._fit_resample(
            X,
            y,
            sensitive_features=sensitive_features,
            valuation=valuation,
            sample_weight=sample_weight,
            groups=groups,
        )

    def _learned(
        self, chosen: TrainingSet, labels: Labels, groups: Groups, sample_weight: FloatArray | None
    ) -> dict[str, Any]:
        counts = np.bincount(labels.codes[chosen.rows], minlength=len(labels.classes))
        sampling = self._sampling(labels, groups, sample_weight)
        return super()._learned(chosen, labels, groups, sample_weight) | {
            "sample_indices_": chosen.rows,
            "sampling_strategy_": dict(zip(labels.classes, counts.tolist(), strict=True)),
            "target_rate_": float("nan") if sampling is None else sampling.target_rate,
        }

    def _fit_resample(self, X: Any, y: Any, **params: Any) -> tuple[Any, Any]:
        rows = self.fit(X, y, **params).sample_indices_
        return take_rows(X, rows), take_rows(y, rows)

    def _choose(
        self,
        labels: Labels,
        groups: Groups,
        utilities: FloatArray | None,
        sample_weight: FloatArray | None,
        generator: np.random.RandomState,
    ) -> TrainingSet:
        n_rows = len(labels.codes)
        groups = groups.take(np.arange(n_rows))  # one without rows is none
        shuffled = generator.permutation(n_rows)
        sampling = self._sampling(labels, groups, sample_weight)
        kept = np.arange(n_rows)
        if sampling is None:
            warn_of_one_group(groups.names[0])
        else:
            if self.strength > 0:
                warn_of_rates(
                    groups.names,
                    groups.sizes,
                    sampling,
                    self.min_group_size,
                    weighted=sample_weight is not None,
                )
            kept = np.flatnonzero(~sampling.dropped(utilities, shuffled))
        return TrainingSet(kept)

    def _sampling(
        self, labels: Labels, groups: Groups, sample_weight: FloatArray | None
    ) -> PrevalenceSampling | None:
        """Say how many negatives go; None if there is only one group."""
        if not has_rates(labels.classes, len(groups)):
            return None
        return PrevalenceSampling(
            labels.is_positive, groups, self.strength, sample_weight, self.min_group_size
        )

    def _check_settings(self) -> None:
        check_share("strength", self.strength)
        check_min_group_size(self.min_group_size)

    def _target(self, y: Any) -> Any:
        # one column, or one indicator column per class
        return check_target_type(y) if getattr(y, "ndim", 1) == 2 else y

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.sampler_tags.sample_indices = True
        return tags


class UtilityAwarePrevalenceSampler(_PrevalenceSampler):
    """Match the groups' positive rates by dropping the negatives of least utility (UAPS).

    Every group whose positive rate is below the highest loses negatives, least utility first, until the rates
    match, as closely as whole rows allow. Positives are never dropped, and rows keep their order.

    Two rules keep a few rows from deciding over all others. Small groups are left out (`min_group_size`). And
    if the highest rate is that of a thin group, with less than 5 % of the compared rows, at most half of the
    table is dropped for it. If that is not enough to match its rate, groups move to a lower rate instead;
    `target_rate_` tells which.

    Parameters
    ----------
    utility : LinearUtility, DifferenceUtility, CobbDouglasUtility or function of a valuation, optional
        What a row is worth. None is ``LinearUtility(alpha=0.5)``.
    valuator : valuator, optional
        Values the rows if no valuation is passed and rows are to be dropped. None is ``OutOfBagEntropy()``.
        A valuator without a seed uses `random_state`.
    strength : float, default=1.0
        How far a group's rate moves: 0 leaves it as it is, 1 moves it to `target_rate_`.
    pos_label : label, optional
        The positive label. None is the larger of the two.
    random_state : int, RandomState or None, default=None
        Seed of the random order in which rows of equal utility go.
    min_group_size : int, default=30
        Groups with fewer rows that are also less than 1 % of the table keep all rows, and their rate is not
        matched. 0 compares every group and always matches the highest rate, however many rows are dropped:
        the paper's rule.

    Attributes
    ----------
    sample_indices_ : ndarray of shape (n_kept,)
        The positions of the rows that are kept, ascending.
    sampling_strategy_ : dict
        How many rows of each label are kept.
    target_rate_ : float
        The positive rate that a `strength` of 1 moves groups to: the highest rate of a group, or less for a
        thin group. NaN if fewer than two groups are compared.
    valuation_ : Valuation or None
        The values that were used; None if no row was to be dropped and no valuation was passed.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray
        Names of the features, if all are text.

    Warns
    -----
    UserWarning
        If groups are small and so keep all rows; if there is only one group to compare; if a group has no
        positives, as it then keeps all rows; if a group has no negatives, as the others then lose all of
        theirs; if a thin group has the highest rate, and matching it would take more than half of the rows,
        or takes a tenth of them.

    Examples
    --------
    >>> from fado import LinearUtility, UtilityAwarePrevalenceSampler, Valuation
    >>> X = [[1], [2], [3], [4], [5], [6], [7]]
    >>> y = [1, 0, 1, 0, 0, 0, 0]
    >>> sex = ["f", "f", "m", "m", "m", "m", "m"]
    >>> p_y = [0.9, 0.1, 0.8, 0.0, 0.5, 0.4, 0.1]
    >>> valuation = Valuation.from_probabilities(p_y)
    >>> sampler = UtilityAwarePrevalenceSampler(LinearUtility(alpha=1.0), random_state=0)
    >>> sampler.fit_resample(X, y, sensitive_features=sex, valuation=valuation)
    ([[1], [2], [3], [5]], [1, 0, 1, 0])
    >>> sampler.sample_indices_
    array([0, 1, 2, 4])
    """

    uses_values = True

    def __init__(
        self,
        utility: Any = None,
        *,
        valuator: Any = None,
        strength: float = 1.0,
        pos_label: Any = None,
        random_state: Any = None,
        min_group_size: int = MIN_GROUP_SIZE,
    ) -> None:
        self.utility = utility
        self.valuator = valuator
        self.strength = strength
        self.pos_label = pos_label
        self.random_state = random_state
        self.min_group_size = min_group_size

    def _utilities(
        self, problem: Problem, valuation: Any, given: dict[str, Any]
    ) -> tuple[Any, FloatArray | None]:
        if valuation is None:
            sampling = self._sampling(problem.labels, problem.groups, problem.sample_weight)
            if sampling is None or not sampling.shrinking.any():
                return None, None  # no row is to go, so that none needs a value
        return super()._utilities(problem, valuation, given)


class RandomPrevalenceSampler(_PrevalenceSampler):
    """Match the groups' positive rates by dropping negatives at random (RPS).

    The baseline for `UtilityAwarePrevalenceSampler`: it drops as many rows of each group, at random.

    Parameters
    ----------
    strength : float, default=1.0
        How far a group's rate moves: 0 leaves it as it is, 1 moves it to `target_rate_`.
    pos_label : label, optional
        The positive label. None is the larger of the two.
    random_state : int, RandomState or None, default=None
        Seed of the random order in which rows go.
    min_group_size : int, default=30
        Groups with fewer rows that are also less than 1 % of the table keep all rows, and their rate is not
        matched. 0 compares every group and always matches the highest rate, however many rows are dropped:
        the paper's rule.

    Attributes
    ----------
    sample_indices_ : ndarray of shape (n_kept,)
        The positions of the rows that are kept, ascending.
    sampling_strategy_ : dict
        How many rows of each label are kept.
    target_rate_ : float
        The positive rate that a `strength` of 1 moves groups to: the highest rate of a group, or less for a
        thin group. NaN if fewer than two groups are compared.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray
        Names of the features, if all are text.

    Warns
    -----
    UserWarning
        In the same cases as `UtilityAwarePrevalenceSampler`.

    Examples
    --------
    >>> from fado import RandomPrevalenceSampler
    >>> X = [[1], [2], [3], [4], [5], [6], [7]]
    >>> y = [1, 0, 1, 0, 0, 0, 0]
    >>> sex = ["f", "f", "m", "m", "m", "m", "m"]
    >>> X2, y2 = RandomPrevalenceSampler(random_state=0).fit_resample(X, y, sensitive_features=sex)
    >>> y2
    [1, 0, 1, 0]
    """

    def __init__(
        self,
        *,
        strength: float = 1.0,
        pos_label: Any = None,
        random_state: Any = None,
        min_group_size: int = MIN_GROUP_SIZE,
    ) -> None:
        self.strength = strength
        self.pos_label = pos_label
        self.random_state = random_state
        self.min_group_size = min_group_size
