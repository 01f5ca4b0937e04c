"""Prevalence sampling: groups with a low positive rate lose negatives until the rates match."""

from __future__ import annotations

from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from imblearn.base import BaseSampler
from imblearn.utils import check_target_type

from fado._messages import list_names, warn_user
from fado._validation import check_share
from fado.interventions._base import BaseIntervention
from fado.interventions._training_set import TrainingSet
from fado.tabular import Groups, Labels, Problem, take_rows

__all__ = ["PrevalenceSampling", "RandomPrevalenceSampler", "UtilityAwarePrevalenceSampler"]

Bools = npt.NDArray[np.bool_]
FloatArray = npt.NDArray[np.float64]
Rows = npt.NDArray[np.intp]


class PrevalenceSampling:
    """Which negatives go, for one order of the rows after another.

    How many negatives each group loses does not depend on their utilities, unless rows have weights.

    Parameters
    ----------
    positive : ndarray of bool
        The rows of the positive label.
    groups : Groups
        The rows' groups, two or more.
    strength : float
        How far a group's rate moves from its own (0) to the highest (1).
    sample_weight : ndarray, optional
        What each row counts in the rates.
    """

    def __init__(
        self, positive: Bools, groups: Groups, strength: float = 1.0, sample_weight: FloatArray | None = None
    ) -> None:
        self._groups = groups
        self._weights = sample_weight
        self.positives, self.negatives = (
            np.bincount(
                groups.codes[rows],
                None if sample_weight is None else sample_weight[rows],
                minlength=len(groups),
            )
            for rows in (positive, ~positive)
        )
        if sample_weight is None:
            kept = _negatives_to_keep(self.positives.tolist(), self.negatives.tolist(), strength)
            self._kept = np.array(kept, dtype=np.float64)
        else:
            self._kept = _weight_to_keep(self.positives, self.negatives, strength)
        self._negatives = {
            int(group): np.flatnonzero(~positive & (groups.codes == group))
            for group in np.flatnonzero(self.shrinking)
        }

    @property
    def shrinking(self) -> Bools:
        """Mark the groups that lose negatives."""
        return self._kept < self.negatives

    def dropped(self, utilities: FloatArray | None, shuffled: Rows) -> Bools:
        """Mark the rows that go: per group the negatives of least utility.

        Ties fall by the rows' places in `shuffled`; without utilities it alone is the order.
        """
        gone: Bools = np.zeros(len(self._groups.codes), dtype=bool)
        for group, rows in self._negatives.items():
            order = shuffled[rows] if utilities is None else utilities[rows]
            if self._weights is None:
                n_dropped = int(self.negatives[group] - self._kept[group])
                gone[rows[_least(order, n_dropped, shuffled[rows])]] = True
            else:
                ordered = rows[np.lexsort([shuffled[rows], order])]
                left = self.negatives[group] - np.cumsum(self._weights[ordered])  # after each row has gone
                gone[ordered[: _closest(np.r_[self.negatives[group], left], self._kept[group])]] = True
        return gone

    @property
    def droppable(self) -> Bools:
        """Mark the rows of which some go."""
        marked: Bools = np.zeros(len(self._groups.codes), dtype=bool)
        for rows in self._negatives.values():
            marked[rows] = True
        return marked


class _PrevalenceSampler(BaseIntervention, BaseSampler):
    """Base of the samplers: subclasses give every row a utility, and the least useful negatives go first."""

    _sampling_type = "clean-sampling"
    __metadata_request__fit_resample: ClassVar = {"sensitive_features": True, "valuation": True}

    def fit_resample(
        self,
        X: Any,
        y: Any,
        *,
        sensitive_features: Any = None,
        valuation: Any = None,
        sample_weight: Any = None,
        groups: Any = None,
    ) -> Any:
        """Drop negatives of the groups with a lower positive rate than the highest.

        Parameters
        ----------
        X : array, sparse matrix, pandas, polars or pyarrow table of shape (n_rows, n_columns)
            The features, of any kind.
        y : array-like of shape (n_rows,)
            The target, of two labels.
        sensitive_features : Series, array, DataFrame, dict, or name(s) of columns of X
            The protected attributes; several are crossed. Missing values are a group of their own. Without
            any (which scikit-learn's conventions demand to be possible) all rows are one group and are kept,
            whatever their labels, with a warning.
        valuation : Valuation, optional
            The values of these rows. `UtilityAwarePrevalenceSampler` makes it on the way if it is needed;
            `RandomPrevalenceSampler` takes and ignores it, so that one can stand for the other.
        sample_weight : array-like of shape (n_rows,), optional
            What each row counts in the positive rates, such as survey weights.
        groups : array-like of shape (n_rows,), optional
            Which rows belong together: if rows are valued on the way, in or out of a bag together.

        Returns
        -------
        X_resampled, y_resampled
            The rows kept, in their order, each as what it was passed as.
        """
        return self._fit_resample(
            X,
            y,
            sensitive_features=sensitive_features,
            valuation=valuation,
            sample_weight=sample_weight,
            groups=groups,
        )

    def _keep(self, chosen: TrainingSet) -> None:
        super()._keep(chosen)
        self.sample_indices_ = chosen.rows

    def _fit_resample(self, X: Any, y: Any, **params: Any) -> Any:
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
        shuffled = generator.permutation(n_rows)
        sampling = self._sampling(labels, groups, sample_weight)
        kept = np.arange(n_rows)
        if sampling is None:
            warn_user(
                f"There is only one group ({groups.names[0]}) and so no other rate to match: every row is "
                "kept. Pass protected attributes as `sensitive_features`."
            )
        else:
            if self.strength > 0:
                _warn_of_extremes(groups.names, sampling)
            kept = np.flatnonzero(~sampling.dropped(utilities, shuffled))
        counts = np.bincount(labels.codes[kept], minlength=len(labels.classes))
        self.sampling_strategy_ = dict(zip(labels.classes, counts.tolist(), strict=True))
        return TrainingSet(kept)

    def _sampling(
        self, labels: Labels, groups: Groups, sample_weight: FloatArray | None
    ) -> PrevalenceSampling | None:
        """Say how many negatives go; None if there is only one group."""
        if len(labels.classes) < 2:
            raise ValueError(
                f"`y` has only one class ({labels.classes[0]!r}): there are no positive rates to match."
            )
        if len(groups) == 1:
            return None
        if len(labels.classes) != 2:
            shown = ", ".join(map(repr, labels.classes[:5])) + (", ..." if len(labels.classes) > 5 else "")
            raise ValueError(
                f"`y` must hold two labels for a positive rate, got {len(labels.classes)} ({shown}): pass "
                "one class against the others, for example `y == label`."
            )
        return PrevalenceSampling(labels.is_positive, groups, self.strength, sample_weight)

    def _check_settings(self) -> None:
        check_share("strength", self.strength)

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
    match to one row. Positives are never dropped, and rows keep their order.

    Parameters
    ----------
    utility : LinearUtility, DifferenceUtility, CobbDouglasUtility or function of a valuation, optional
        What a row is worth. None is ``LinearUtility(alpha=0.5)``.
    valuator : valuator, optional
        Values the rows if no valuation is passed and rows are to be dropped. None is ``OutOfBagEntropy()``.
        Without a seed of its own it uses `random_state`.
    strength : float, default=1.0
        How far a group's rate moves from its own (0) to the highest (1).
    pos_label : label, optional
        The positive label. None is the larger of the two.
    random_state : int, RandomState or None, default=None
        Seed of the shuffle by which ties in utility fall.

    Attributes
    ----------
    sample_indices_ : ndarray of shape (n_kept,)
        The positions of the rows kept, ascending.
    sampling_strategy_ : dict
        How many rows of each label are kept.
    valuation_ : Valuation or None
        The values used; None if no row was to be dropped and none were passed.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray
        Names of the features, if all are text.

    Warns
    -----
    UserWarning
        If a group has no positives, as it is left untouched; if a group has no negatives, as the others then
        give up theirs; if there is only one group.

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
    ) -> None:
        self.utility = utility
        self.valuator = valuator
        self.strength = strength
        self.pos_label = pos_label
        self.random_state = random_state

    def _utilities(self, problem: Problem, valuation: Any, given: dict[str, Any]) -> FloatArray | None:
        self.valuation_ = valuation
        if valuation is None:
            sampling = self._sampling(problem.labels, problem.groups, problem.sample_weight)
            if sampling is None or not sampling.shrinking.any():
                return None  # no row is to go, so that none needs a value
        return super()._utilities(problem, valuation, given)


class RandomPrevalenceSampler(_PrevalenceSampler):
    """Match the groups' positive rates by dropping negatives at random (RPS).

    The baseline of `UtilityAwarePrevalenceSampler`: the same numbers of rows go, in a random order.

    Parameters
    ----------
    strength : float, default=1.0
        How far a group's rate moves from its own (0) to the highest (1).
    pos_label : label, optional
        The positive label. None is the larger of the two.
    random_state : int, RandomState or None, default=None
        Seed of the order.

    Attributes
    ----------
    sample_indices_ : ndarray of shape (n_kept,)
        The positions of the rows kept, ascending.
    sampling_strategy_ : dict
        How many rows of each label are kept.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray
        Names of the features, if all are text.

    Warns
    -----
    UserWarning
        As `UtilityAwarePrevalenceSampler` does.

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

    def __init__(self, *, strength: float = 1.0, pos_label: Any = None, random_state: Any = None) -> None:
        self.strength = strength
        self.pos_label = pos_label
        self.random_state = random_state


def _negatives_to_keep(positives: list[int], negatives: list[int], strength: float) -> list[int]:
    """Give per group how many negatives stay; in fractions, so that halves are halves."""
    rates = [Fraction(p, p + n) for p, n in zip(positives, negatives, strict=True)]
    kept = []
    for p, n, own in zip(positives, negatives, rates, strict=True):
        target = own + Fraction(strength) * (max(rates) - own)
        kept.append(min(n, round(p * (1 - target) / target)) if p else n)
    return kept


def _weight_to_keep(positives: npt.NDArray[Any], negatives: npt.NDArray[Any], strength: float) -> FloatArray:
    """Give per group what its negatives may weigh; a group that weighs nothing stays as it is."""
    with np.errstate(invalid="ignore", divide="ignore"):
        own = positives / (positives + negatives)
        target = own + strength * (np.nanmax(own) - own)
        kept = positives * (1 - target) / target
    return np.where(positives > 0, np.minimum(kept, negatives), negatives)


def _least(keys: npt.NDArray[Any], count: int, shuffled: Rows) -> Rows:
    """Find so many entries with the least keys; ties fall by `shuffled`."""
    limit = np.partition(keys, count - 1)[count - 1]
    below, tied = np.flatnonzero(keys < limit), np.flatnonzero(keys == limit)
    return np.r_[below, tied[np.argsort(shuffled[tied], kind="stable")[: count - len(below)]]]


def _closest(left: FloatArray, wanted: float) -> int:
    """Find after how many rows that which is left comes closest to what is wanted."""
    return int(np.argmin(np.abs(left - wanted)))


def _warn_of_extremes(names: tuple[str, ...], sampling: PrevalenceSampling) -> None:
    none = [name for name, count in zip(names, sampling.positives, strict=True) if not count]
    only = [name for name, count in zip(names, sampling.negatives, strict=True) if not count]
    if none:
        warn_user(
            f"No positives in group {list_names(none)}: no rate can be matched there, its rows are all kept."
        )
    if only:
        warn_user(
            f"No negatives in group {list_names(only)}: the other groups lose theirs to match a rate of 1. "
            "Merge it with another group, or lower `strength`."
        )
