"""Prevalence sampling: groups with a low positive rate lose negatives until the rates match."""

from __future__ import annotations

from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from imblearn.base import BaseSampler
from imblearn.utils import check_target_type
from sklearn.utils import check_random_state

from fado._validation import check_share
from fado.interventions._groups import Groups, groups_of
from fado.interventions._inputs import Labels, labels_of, read_features
from fado.interventions._rows import take_rows
from fado.interventions._values import row_utilities, valued
from fado.metrics._groups import list_names
from fado.metrics._inputs import warn_user

__all__ = ["RandomPrevalenceSampler", "UtilityAwarePrevalenceSampler"]

FloatArray = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Rows = npt.NDArray[np.intp]


class _PrevalenceSampler(BaseSampler):
    """Base of the samplers: subclasses give every row a utility, and the least useful negatives go first."""

    _sampling_type = "clean-sampling"
    __metadata_request__fit: ClassVar = {"sensitive_features": True, "valuation": True}
    __metadata_request__fit_resample: ClassVar = {"sensitive_features": True, "valuation": True}

    def fit(self, X: Any, y: Any, *, sensitive_features: Any = None, valuation: Any = None) -> Any:
        """Choose the rows to keep, without taking them: the same as `fit_resample` otherwise.

        Parameters
        ----------
        X, y, sensitive_features, valuation
            As for `fit_resample`.

        Returns
        -------
        self
            With `sample_indices_`.
        """
        strength = check_share("strength", self.strength)
        table = read_features(self, X, sensitive_features)
        if getattr(y, "ndim", 1) == 2:  # one column, or one indicator column per class
            y = check_target_type(y)
        labels = labels_of(y, table.n_rows)
        if len(labels.classes) < 2:
            raise ValueError(
                f"`y` has only one class ({labels.classes[0]!r}): there are no positive rates to match."
            )
        groups = groups_of(sensitive_features, table)
        if len(groups) == 1:
            warn_user(
                f"There is only one group ({groups.names[0]}) and so no other rate to match: every row is "
                "kept. Pass protected attributes as `sensitive_features`.",
                UserWarning,
            )
            n_dropped, positive = np.zeros(1, dtype=np.int64), np.ones(table.n_rows, dtype=bool)
        else:
            positive = _positive(labels, self.pos_label)
            n_dropped = _negatives_to_drop(positive, groups, strength)
        utilities = self._utilities(X, y, sensitive_features, valuation, bool(n_dropped.any()))
        shuffled = check_random_state(self.random_state).permutation(table.n_rows)
        self.sample_indices_ = _kept_rows(positive, groups, n_dropped, utilities, shuffled)
        counts = np.bincount(labels.codes[self.sample_indices_], minlength=len(labels.classes))
        self.sampling_strategy_ = dict(zip(labels.classes, counts.tolist(), strict=True))
        return self

    def fit_resample(self, X: Any, y: Any, *, sensitive_features: Any = None, valuation: Any = None) -> Any:
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

        Returns
        -------
        X_resampled, y_resampled
            The rows kept, in their order, each as what it was passed as.
        """
        return self._fit_resample(X, y, sensitive_features=sensitive_features, valuation=valuation)

    def _fit_resample(self, X: Any, y: Any, **params: Any) -> Any:
        rows = self.fit(X, y, **params).sample_indices_
        return take_rows(X, rows), take_rows(y, rows)

    def _utilities(
        self, X: Any, y: Any, sensitive_features: Any, valuation: Any, needed: bool
    ) -> FloatArray | None:
        """Give every row's utility; None drops negatives at random."""
        return None

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.sampler_tags.sample_indices = True
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        return tags


class UtilityAwarePrevalenceSampler(_PrevalenceSampler):
    """Match the groups' positive rates by dropping the negatives of least utility (UAPS).

    Every group whose positive rate is below the highest loses negatives, least utility first, until the rates
    match to one row. Positives are never dropped, and rows keep their order.

    Parameters
    ----------
    utility : LinearUtility, DifferenceUtility, CobbDouglasUtility or function of a valuation, optional
        What a row is worth. None is ``LinearUtility(alpha=0.5)``.
    valuator : OutOfBagEntropy or InBagEntropy, optional
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

    def _utilities(
        self, X: Any, y: Any, sensitive_features: Any, valuation: Any, needed: bool
    ) -> FloatArray | None:
        if valuation is None and needed:
            valuation = valued(self.valuator, X, y, sensitive_features, self.random_state)
        self.valuation_ = valuation
        return None if valuation is None else row_utilities(self.utility, valuation, y, len(y))


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


def _positive(labels: Labels, pos_label: Any) -> npt.NDArray[np.bool_]:
    """Mark the rows of the positive label."""
    classes = labels.classes
    if len(classes) != 2:
        shown = ", ".join(map(repr, classes[:5])) + (", ..." if len(classes) > 5 else "")
        raise ValueError(
            f"`y` must hold two labels for a positive rate, got {len(classes)} ({shown}): pass one class "
            "against the others, for example `y == label`."
        )
    if pos_label is None:
        return labels.codes == 1
    if pos_label not in classes:
        raise ValueError(
            f"`pos_label` must be one of the labels {classes[0]!r} and {classes[1]!r}, got {pos_label!r}."
        )
    return labels.codes == classes.index(pos_label)


def _negatives_to_drop(positive: npt.NDArray[np.bool_], groups: Groups, strength: float) -> Integers:
    """Give per group how many negatives go."""
    positives = np.bincount(groups.codes[positive], minlength=len(groups)).tolist()
    negatives = np.bincount(groups.codes[~positive], minlength=len(groups)).tolist()
    highest = max(Fraction(p, p + n) for p, n in zip(positives, negatives, strict=True))
    if strength > 0:
        _warn_of_extremes(groups.names, positives, negatives)
    dropped = [
        n - _negatives_to_keep(p, n, highest, strength) if p else 0
        for p, n in zip(positives, negatives, strict=True)
    ]
    return np.array(dropped, dtype=np.int64)


def _negatives_to_keep(positives: int, negatives: int, highest: Fraction, strength: float) -> int:
    """Give how many negatives bring a group to its target rate; in fractions, so that halves are halves."""
    own = Fraction(positives, positives + negatives)
    target = own + Fraction(strength) * (highest - own)
    return min(negatives, round(positives * (1 - target) / target))


def _warn_of_extremes(names: tuple[str, ...], positives: list[int], negatives: list[int]) -> None:
    none = [name for name, count in zip(names, positives, strict=True) if not count]
    only = [name for name, count in zip(names, negatives, strict=True) if not count]
    if none:
        warn_user(
            f"No positives in group {list_names(none)}: no rate can be matched there, its rows are all kept.",
            UserWarning,
        )
    if only:
        warn_user(
            f"No negatives in group {list_names(only)}: the other groups lose theirs to match a rate of 1. "
            "Merge it with another group, or lower `strength`.",
            UserWarning,
        )


def _kept_rows(
    positive: npt.NDArray[np.bool_],
    groups: Groups,
    n_dropped: Integers,
    utilities: FloatArray | None,
    shuffled: Rows,
) -> Rows:
    """Give the rows that stay when each group drops so many negatives, least utility first.

    Ties in utility fall by the rows' places in `shuffled`.
    """
    negatives = np.flatnonzero(~positive)
    keys: list[npt.NDArray[Any]] = [shuffled[negatives], groups.codes[negatives]]
    if utilities is not None:
        keys.insert(1, utilities[negatives])
    ordered = negatives[np.lexsort(keys)]  # by group, then utility, then the shuffle
    group = groups.codes[ordered]
    sizes = np.bincount(group, minlength=len(groups))
    place = np.arange(len(ordered)) - (np.cumsum(sizes) - sizes)[group]
    kept = np.ones(len(positive), dtype=bool)
    kept[ordered[place < n_dropped[group]]] = False
    return np.flatnonzero(kept)
