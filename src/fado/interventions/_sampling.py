"""Prevalence sampling: groups with a low positive rate lose negatives until the rates match."""

from __future__ import annotations

from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from imblearn.base import BaseSampler
from imblearn.utils import check_target_type

from fado._checks import check_share
from fado._messages import insert_parameters, list_names, warn_user
from fado._typing import Bools, Floats, Integers
from fado.interventions._base import (
    REQUESTS,
    BaseIntervention,
    TrainingSet,
    add_up,
    occurring,
    slices,
    warn_of_small,
)
from fado.tabular import MIN_GROUP_SIZE, Groups, Labels, Problem, check_min_group_size, take_rows
from fado.utility import LinearUtility

_THICK = 20  # a group with less than 1 / _THICK of the compared rows is thin
_HALVINGS = 40  # of the interval of rates: finer than one row in 10^12
_FEW = 1 << 20  # rows whose keys are copied as they are
_SAMPLED, _MARGIN = 1 << 16, 1 << 11  # of more rows, and the places around the one that is searched


class PrevalenceSampling:
    """Which negatives prevalence sampling drops, for any utilities of the rows.

    The number of negatives that each group loses is computed once. Without weights it does not depend on
    utilities.

    Parameters
    ----------
    positive : ndarray of bool
        Which rows have the positive label.
    groups : Groups
        The rows' groups.
    strength : float, default=1.0
        How far a group's rate moves from its own (0) to the target rate (1).
    sample_weight : ndarray, optional
        How much each row counts in the rates; None counts all rows equally.
    min_group_size : int, default=30
        Groups with fewer rows than this that are also less than 1 % of the table lose no rows, and their rate
        is not matched. If the highest rate is that of a group with less than 5 % of the compared rows, at
        most half of the table is dropped to match it. 0 compares all groups and always matches the highest
        rate.

    Examples
    --------
    >>> import numpy as np
    >>> from fado.tabular import Groups
    >>> positive = np.array([1, 0, 1, 0, 0, 0, 0], dtype=bool)
    >>> groups = Groups(np.array([0, 0, 1, 1, 1, 1, 1]), ("'f'", "'m'"), ("f", "m"))
    >>> sampling = PrevalenceSampling(positive, groups)
    >>> sampling.target_rate
    0.5
    >>> sampling.dropped(np.array([0, 0, 0, 0.3, 0.9, 0.1, 0.2]), np.arange(7))
    array([False, False, False,  True, False,  True,  True])
    """

    def __init__(
        self,
        positive: Bools,
        groups: Groups,
        strength: float = 1.0,
        sample_weight: Floats | None = None,
        min_group_size: int = MIN_GROUP_SIZE,
    ) -> None:
        self._groups, self._positive, self._weights = groups, positive, sample_weight
        self._exact_strength = Fraction(strength) if sample_weight is None else strength
        self._min_group_size = min_group_size
        self.positives, self.negatives = (
            add_up(groups.codes[rows], len(groups), None if sample_weight is None else sample_weight[rows])
            for rows in (positive, ~positive)
        )
        self.compared = groups.compared(min_group_size)
        sizes = self.positives + self.negatives
        self._total = float(self.positives.sum() + self.negatives.sum())  # number of rows, or their weight
        self._rates = {  # of the compared groups with any weight; as fractions if rows are counted
            group: self._number(self.positives[group]) / self._number(sizes[group])
            for group in np.flatnonzero(self.compared & (sizes > 0)).tolist()
        }
        thick = sizes * _THICK >= np.where(self.compared, sizes, 0).sum()
        self._highest: Any = max(self._rates.values(), default=None)
        self._thick_rate = max((rate for group, rate in self._rates.items() if thick[group]), default=None)
        self._target = self._target_rate()
        self.kept = self._kept_at(self._target)  # negatives of each group that stay, or what they may weigh

    @property
    def target_rate(self) -> float:
        """The rate that groups are to match; NaN if fewer than two groups have one."""
        return float("nan") if self._target is None else float(self._target)

    @property
    def shrinking(self) -> Bools:
        """Mark the groups that lose negatives."""
        return self.kept < self.negatives

    def dropped(self, utilities: Floats | None, shuffled: Integers) -> Bools:
        """Mark the rows that are dropped: in each group the negatives of least utility.

        Parameters
        ----------
        utilities : ndarray of shape (n_rows,) or None
            The rows' utilities. None drops rows in the order of `shuffled`.
        shuffled : ndarray of int of shape (n_rows,)
            A permutation. Of rows of equal utility, the one with the lower number is dropped first.

        Returns
        -------
        ndarray of bool of shape (n_rows,)
        """
        gone: Bools = np.zeros(len(self._groups.codes), dtype=bool)
        keys = shuffled if utilities is None else utilities
        for group, rows in self._negatives.items():
            negatives, kept = self.negatives[group], self.kept[group]
            if self._weights is None:
                _mark_least(gone, rows, keys, int(negatives - kept), shuffled)
            else:
                ordered = rows[np.lexsort([shuffled[rows], keys[rows]])]
                away = np.cumsum(self._weights[ordered])  # in place, as there may be many rows
                np.subtract(negatives, away, out=away)  # what is left after each row has gone
                away -= kept
                nearest = int(np.argmin(np.abs(away, out=away)))
                if away[nearest] < abs(negatives - kept):
                    gone[ordered[: nearest + 1]] = True
        return gone

    def warn(self) -> None:
        """Warn of groups that are not changed or lack a label, and of thin groups with the highest rate."""
        names = self._groups.names
        warn_of_small(
            self._groups,
            self._min_group_size,
            outcome="all their rows are kept, and they count in no rate",
            alone="every row is kept",
        )
        if self.compared.sum() < 2:
            return
        if not self.shrinking.any() and (self.positives[self.compared] > 0).all():
            warn_user(
                "The groups' positive rates are equal, or too close for `strength` to change one by a whole "
                "row: every row is kept."
            )
        of_weight = "" if self._weights is None else " of any weight"
        none, only = (
            [names[group] for group in np.flatnonzero(self.compared & (counts == 0)).tolist()]
            for counts in (self.positives, self.negatives)
        )
        if none:
            warn_user(
                f"No positives{of_weight} in group {list_names(none)}: no rate can be matched there, and all "
                "its rows are kept."
            )
        if only and self.target_rate == 1:
            warn_user(
                f"No negatives{of_weight} in group {list_names(only)}: the other groups lose theirs to match "
                "a rate of 1. Merge it with another group, or lower `strength`."
            )
        if self._min_group_size > 0 and self._target is not None and self._highest != self._thick_rate:
            self._warn_of_thin_lead()

    def _warn_of_thin_lead(self) -> None:
        """Warn that thin groups have the highest rate, if matching it drops many rows."""
        total, thick = self._total, self._thick_rate

        def rows(amount: float) -> str:
            if self._weights is not None:
                return f"{100 * amount / total:.0f} % of the weight"
            return f"{amount:,.0f} of {total:,.0f} rows"

        going, wanted = self._going_at(self._target), self._going_at(self._highest)
        leading = [group for group, rate in self._rates.items() if rate == self._highest]
        sized = [(self._groups.names[group], int(self._groups.sizes[group])) for group in leading]
        who = list_names([f"{name} ({size} row{'' if size == 1 else 's'})" for name, size in sized])
        share = f"less than 5 % of the {'rows' if self._weights is None else 'weight'}"
        subject = f"Group {who}, with {share}, has the highest positive rate, {float(self._highest):.3g}"
        if going < wanted:
            warn_user(
                f"{subject}: to match it, {rows(wanted)} would be dropped, more than half. The target rate "
                f"is {self.target_rate:.3g} instead, and {rows(going)} are dropped. Merge the group with "
                "another; `min_group_size=0` matches its rate in any case."
            )
        elif thick is not None and 10 * (going - self._going_at(thick)) > total:
            warn_user(
                f"{subject}: to match it, {rows(going)} are dropped; {rows(self._going_at(thick))} would be "
                f"dropped to match {float(thick):.3g}, the highest rate of the larger groups. Merge the "
                "group with another, or lower `strength`."
            )

    @cached_property
    def _negatives(self) -> dict[int, Integers]:
        """The negatives of the groups that lose some, in the smallest type that fits."""
        codes, positive = self._groups.codes, self._positive
        type_, parts = _type_of_rows(len(codes)), list(slices(len(codes)))
        return {
            group: np.concatenate(
                [
                    np.flatnonzero(~positive[part] & (codes[part] == group)).astype(type_) + part.start
                    for part in parts
                ],
                dtype=type_,
            )
            for group in np.flatnonzero(self.shrinking).tolist()
        }

    def _number(self, amount: Any) -> Any:
        """Return a count as an exact fraction, or a weight as it is."""
        return Fraction(int(amount)) if self._weights is None else amount

    def _target_rate(self) -> Any:
        """Choose the rate to match; None if fewer than two groups are compared.

        It is the highest rate, or, if a thin group has it, the highest that drops at most half of the rows,
        and at least that of the groups that are not thin.
        """
        if len(self._rates) < 2:
            return None
        high, half = self._highest, self._total / 2
        if self._min_group_size == 0 or high == self._thick_rate or self._going_at(high) <= half:
            return high
        low = min(self._rates.values()) if self._thick_rate is None else self._thick_rate
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            low, high = (middle, high) if self._going_at(middle) <= half else (low, middle)
        return low

    def _going_at(self, rate: Any) -> float:
        """Return how many negatives are dropped for a rate, or their weight; it rises with the rate."""
        return float((self.negatives - self._kept_at(rate)).sum())

    def _kept_at(self, rate: Any) -> Floats:
        """Return per group how many negatives are kept for a rate, or their weight."""
        kept = self.negatives.astype(np.float64)
        for group, present in self._rates.items() if rate is not None else ():
            positives = self._number(self.positives[group])
            if positives:  # without positives no rate is matched, and all stay
                target = present + self._exact_strength * (rate - present)
                left = positives * (1 - target) / target
                kept[group] = min(round(left) if self._weights is None else left, kept[group])
        return kept


def _type_of_rows(n_rows: int) -> Any:
    """Return the type of the positions of so many rows, half as large where that is enough."""
    return np.int32 if n_rows < 1 << 31 else np.int64


def _mark_least(marks: Bools, rows: Integers, keys: npt.NDArray[Any], n_marked: int, ties: Integers) -> None:
    """Mark some of the rows, those with the least keys; of equal keys, those with the least `ties`."""
    limit, n_below, n_equal = _limit(rows, keys, n_marked)
    equal = []
    for part in slices(len(rows)):
        some, compared = rows[part], keys[rows[part]]
        marks[some[compared < limit]] = True
        equal.append(some[compared == limit])
    tied = np.concatenate(equal)
    if n_below + n_equal > n_marked:  # ties are distinct
        limit, _, _ = _limit(tied, ties, n_marked - n_below)
        tied = tied[ties[tied] <= limit]
    marks[tied] = True


def _limit(rows: Integers, keys: npt.NDArray[Any], count: int) -> tuple[Any, int, int]:
    """Find the `count`-th least of the keys of some rows, how many are less, and how many are equal.

    Of many rows a sample brackets it, so that few keys are copied.
    """
    low, high = -np.inf, np.inf
    if len(rows) > _FEW:
        sample = np.sort(keys[rows[:: len(rows) // _SAMPLED]])
        place = count * len(sample) // len(rows)
        low, high = sample[max(place - _MARGIN, 0)], sample[min(place + _MARGIN, len(sample) - 1)]
    n_below, inside = 0, []
    for part in slices(len(rows)):
        some = keys[rows[part]]
        n_below += int((some < low).sum())
        inside.append(some[(some >= low) & (some <= high)])
    among = np.concatenate(inside)
    if not n_below < count <= n_below + len(among):  # the sample was a strange one
        among, n_below = keys[rows], 0
    among.partition(count - n_below - 1)
    limit = among[count - n_below - 1]
    return limit, n_below + int((among < limit).sum()), int((among == limit).sum())


class _PrevalenceSampler(BaseIntervention, BaseSampler):
    """Base class of the samplers: the negatives of least utility are dropped first."""

    _sampling_type = "clean-sampling"
    _row_bytes = 20, 40
    __metadata_request__fit_resample: ClassVar = REQUESTS
    sample_indices_: npt.NDArray[np.integer[Any]]
    sampling_strategy_: dict[Any, int]
    target_rate_: float

    @insert_parameters(BaseIntervention.fit)
    def fit_resample(
        self,
        X: Any,
        y: Any,
        *,
        sensitive_features: Any = None,
        unknown: Any = None,
        valuation: Any = None,
        sample_weight: Any = None,
        groups: Any = None,
    ) -> tuple[Any, Any]:
        """Drop negatives of the groups whose positive rate is below the highest.

        {Parameters}

        Returns
        -------
        X_resampled, y_resampled
            The rows that are kept, in their order, of the same types as `X` and `y`.
        """
        self.fit(
            X,
            y,
            sensitive_features=sensitive_features,
            unknown=unknown,
            valuation=valuation,
            sample_weight=sample_weight,
            groups=groups,
        )
        return take_rows(X, self.sample_indices_), take_rows(y, self.sample_indices_)

    _fit_resample = fit_resample  # required by imbalanced-learn

    def _fitted(
        self, chosen: TrainingSet, labels: Labels, groups: Groups, sample_weight: Floats | None
    ) -> dict[str, Any]:
        counts = np.bincount(labels.codes[chosen.rows], minlength=len(labels.classes))
        sampling = self._sampling(labels, groups, sample_weight)
        return super()._fitted(chosen, labels, groups, sample_weight) | {
            "sample_indices_": chosen.rows,
            "sampling_strategy_": dict(zip(labels.classes, counts.tolist(), strict=True)),
            "target_rate_": float("nan") if sampling is None else sampling.target_rate,
        }

    def _choose(
        self, labels: Labels, groups: Groups, utilities: Any, sample_weight: Any, generator: Any
    ) -> TrainingSet:
        n_rows = len(labels.codes)
        groups = occurring(groups)
        shuffled = np.arange(n_rows, dtype=_type_of_rows(n_rows))
        generator.shuffle(shuffled)
        sampling = self._sampling(labels, groups, sample_weight)
        if sampling is None:
            warn_user(
                f"There is only one group ({groups.names[0]}), so there is no other rate to match: every row "
                "is kept. Pass protected attributes as `sensitive_features`."
            )
            return TrainingSet(np.arange(n_rows))
        if self.strength > 0:
            sampling.warn()
        gone = sampling.dropped(utilities, shuffled)
        del utilities, shuffled, sampling  # there may be many rows
        return TrainingSet(np.flatnonzero(~gone))

    def _sampling(
        self, labels: Labels, groups: Groups, sample_weight: Floats | None
    ) -> PrevalenceSampling | None:
        """Return which negatives are dropped; None if there is only one group."""
        classes = labels.classes
        if len(classes) < 2:
            raise ValueError(
                f"`y` has only one class ({classes[0]!r}): there are no positive rates to match."
            )
        if len(groups) == 1:
            return None
        if len(classes) != 2:
            shown = ", ".join(map(repr, classes[:5])) + (", ..." if len(classes) > 5 else "")
            raise ValueError(
                f"`y` must hold two labels for a positive rate, got {len(classes)} ({shown}): pass one class "
                "against the others, for example `y == label`."
            )
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


@insert_parameters(LinearUtility)
class UtilityAwarePrevalenceSampler(_PrevalenceSampler):
    """Match the groups' positive rates by dropping the negatives of least utility (UAPS).

    Every group whose positive rate is below the highest loses negatives, least utility first, until the rates
    match, as closely as whole rows allow. Positives are never dropped, and rows keep their order.

    Two rules limit the effect of a few rows. Small groups are left out (`min_group_size`). And if the highest
    rate is that of a thin group, with less than 5 % of the compared rows, at most half of the table is
    dropped for it. If that is not enough to match its rate, groups move to a lower rate instead,
    `target_rate_`.

    Parameters
    ----------
    {utility, valuator}
    strength : float, default=1.0
        How far a group's rate moves: 0 leaves it as it is, 1 moves it to `target_rate_`.
    {pos_label, random_state}
    min_group_size : int, default=30
        Groups with fewer rows than this that are also less than 1 % of the table keep all rows, and their
        rate is not matched. 0 compares every group and always matches the highest rate, however many rows are
        dropped, as in the paper.

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
    {n_features_in_, feature_names_in_}

    Warns
    -----
    UserWarning
        If groups are small and so keep all rows; if there is only one group to compare; if a group has no
        positives and so keeps all rows; if a group has no negatives, because the others then lose all of
        theirs; if a thin group has the highest rate, and matching it would drop more than half of the rows,
        or drops a tenth of them.

    See Also
    --------
    fado.RandomPrevalenceSampler : Drops the same number of rows at random.
    fado.UtilityAwareOverSampler : Makes positives instead.
    fado.UtilityAwareReweigher : Changes weights instead.

    {References}

    Examples
    --------
    >>> from fado import LinearUtility, UtilityAwarePrevalenceSampler, Valuation
    >>> X = [[1], [2], [3], [4], [5], [6], [7]]
    >>> y = [1, 0, 1, 0, 0, 0, 0]
    >>> sex = ["f", "f", "m", "m", "m", "m", "m"]
    >>> p_y = [0.9, 0.1, 0.8, 0.0, 0.5, 0.4, 0.1]
    >>> valuation = Valuation.from_probabilities(p_y)
    >>> utility = LinearUtility(alpha=1.0)
    >>> sampler = UtilityAwarePrevalenceSampler(utility, random_state=0)
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
        self, problem: Problem, valuation: Any, arguments: dict[str, Any], utility: Any = None
    ) -> tuple[Any, Floats | None]:
        if valuation is None:
            sampling = self._sampling(problem.labels, problem.groups, problem.sample_weight)
            if sampling is None or not sampling.shrinking.any():
                return None, None  # no row is dropped, so none needs a value
        return super()._utilities(problem, valuation, arguments, utility)


@insert_parameters(UtilityAwarePrevalenceSampler)
class RandomPrevalenceSampler(_PrevalenceSampler):
    """Match the groups' positive rates by dropping negatives at random (RPS).

    This is the baseline for `UtilityAwarePrevalenceSampler`: it drops the same number of rows of each group,
    at random.

    Parameters
    ----------
    {strength, pos_label, random_state, min_group_size}

    Attributes
    ----------
    {sample_indices_, sampling_strategy_, target_rate_, n_features_in_, feature_names_in_}

    Warns
    -----
    UserWarning
        In the same cases as `UtilityAwarePrevalenceSampler`.

    See Also
    --------
    fado.UtilityAwarePrevalenceSampler : Drops the rows of least utility.

    {References}

    Examples
    --------
    >>> from fado import RandomPrevalenceSampler
    >>> X = [[1], [2], [3], [4], [5], [6], [7]]
    >>> y = [1, 0, 1, 0, 0, 0, 0]
    >>> sex = ["f", "f", "m", "m", "m", "m", "m"]
    >>> sampler = RandomPrevalenceSampler(random_state=0)
    >>> X2, y2 = sampler.fit_resample(X, y, sensitive_features=sex)
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
