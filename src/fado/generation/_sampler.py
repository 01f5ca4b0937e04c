"""An imbalanced-learn sampler that makes rows, until groups have the same positive rate."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from imblearn.base import BaseSampler
from imblearn.utils import check_target_type
from sklearn.base import clone
from sklearn.utils import check_random_state

from fado._checks import check_choice, check_share
from fado._memory import check_room_for
from fado._messages import list_names, warn_user
from fado.generation._cells import Cells, Plan, counts_asked_for, fill_labels, fill_positives
from fado.generation._entries import attributes_of, take_more_rows
from fado.generation._making import check_dense, draw_donors
from fado.generation._parents import draw_parents
from fado.interventions import BaseIntervention, TrainingSet
from fado.tabular import (
    MIN_GROUP_SIZE,
    Groups,
    Labels,
    Problem,
    check_min_group_size,
    read_problem,
    small_groups,
    tell_small,
)
from fado.utility import LinearUtility
from fado.valuation import Valuation

__all__ = ["METHODS", "UtilityAwareOverSampler"]

FloatArray = npt.NDArray[np.float64]

METHODS = ("trees", "repeat")
_BYTES_OF_A_ROW, _BYTES_OF_AN_ENTRY = 32, 24  # at least: who its parents are, and what it holds


class UtilityAwareOverSampler(BaseIntervention, BaseSampler):
    """Match the groups' positive rates by making new positives, more of them from rows of high utility.

    Every group whose positive rate is below the highest gets new positives until the rates match to within
    one row. The given rows come first, unchanged. Each made row has a parent: a positive of the same group,
    drawn with a probability in proportion to ``0.3 + 0.7 * minmax(U)``, where ``minmax`` scales the utilities
    ``U`` of these rows to [0, 1]. The entries of a made row come from rows in the same leaves of trees, one
    tree per column; see `fado.generation.draw_donors`. Every entry is one that the column has: whole numbers
    stay whole, ranges are kept, and no category is made up.

    Parameters
    ----------
    utility : LinearUtility, DifferenceUtility, CobbDouglasUtility or function of a valuation, optional
        What a row is worth. None means ``LinearUtility(alpha=0.5)``, or ``alpha=1`` without protected
        attributes.
    valuator : valuator, optional
        Values the rows if no valuation is passed and rows are to be made. None means ``OutOfBagEntropy()``.
        If it has no seed of its own, it uses `random_state`.
    strength : float, default=1.0
        How far a group's rate moves from its own (0) to the highest (1).
    sampling_strategy : dict, optional
        Instead of `strength`: how many rows there shall be in the end, given rows included, of a label or of
        a pair of label and group, as in ``{(1, "f"): 500}``. Groups of several attributes are called
        ``"sex = f, old = True"``. The rows that are made of a label are divided among its groups in
        proportion to its present rows; small groups get none.
    method : {"trees", "repeat"}, default="trees"
        Whether to make new rows, or to repeat the parents as they are.
    pos_label : label, optional
        The positive label; None means the larger of two. With more than two labels and None, no label is
        positive: rows of all labels are made, until every group has the labels in the shares that they have
        in the whole table.
    min_group_size : int, default=30
        Groups with fewer rows that are also less than 1 % of the table get no rows, and their rates do not
        count. 0 compares every group.
    random_state : int, RandomState or None, default=None
        Seed of all that is drawn.
    n_jobs : int, optional
        How many trees grow side by side; None uses every core. It changes no row.
    progress : bool, default=False
        Whether to show a progress bar.

    Attributes
    ----------
    synthetic_ : ndarray of bool, shape (n_rows + n_made,)
        Marks the rows that were made.
    parents_ : ndarray of int, shape (n_made,)
        The position of the parent of each made row.
    sensitive_features_ : as passed to `fit_resample`
        The protected attributes of all rows; if they were passed as names, their columns.
    sample_weight_ : ndarray of float or None
        The weights of all rows, if there are weights: a made row has the mean of its cell.
    sampling_strategy_ : dict
        How many rows of each label there are in the end.
    target_rate_ : float
        The positive rate that groups are moved to, at full `strength`; NaN if there is none.
    valuation_ : Valuation or None
        The values used; None if no row was to be made and none were passed.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray
        Names of the features, if all are text.

    Warns
    -----
    UserWarning
        If groups are small, and so left alone; if there is only one group to compare; if a group has no
        positives to make others from, and is left alone; if a group has no negatives, as no number of rows
        matches its rate of 1; if more rows are made than were given.

    Examples
    --------
    >>> import numpy as np
    >>> from fado import LinearUtility, UtilityAwareOverSampler, Valuation
    >>> X = np.array([[1, 7], [2, 8], [3, 7], [4, 8], [5, 7], [6, 8]])
    >>> y = [1, 0, 1, 0, 0, 0]
    >>> sex = ["f", "f", "m", "m", "m", "m"]
    >>> valuation = Valuation.from_probabilities([0.9, 0.1, 0.8, 0.0, 0.5, 0.4])
    >>> sampler = UtilityAwareOverSampler(LinearUtility(alpha=1.0), method="repeat", random_state=0)
    >>> X2, y2 = sampler.fit_resample(X, y, sensitive_features=sex, valuation=valuation)
    >>> X2[sampler.synthetic_], y2
    (array([[3, 7],
           [3, 7]]), [1, 0, 1, 0, 0, 0, 1, 1])
    >>> sampler.sensitive_features_
    ['f', 'f', 'm', 'm', 'm', 'm', 'm', 'm']
    """

    uses_values = True
    _sampling_type = "over-sampling"
    __metadata_request__fit_resample: ClassVar = {"sensitive_features": True, "valuation": True}
    synthetic_: npt.NDArray[np.bool_]
    parents_: npt.NDArray[np.intp]
    sensitive_features_: Any
    sample_weight_: npt.NDArray[np.float64] | None
    sampling_strategy_: dict[Any, int]
    target_rate_: float
    valuation_: Valuation | None

    def __init__(
        self,
        utility: Any = None,
        valuator: Any = None,
        *,
        strength: float = 1.0,
        sampling_strategy: Mapping[Any, int] | None = None,
        method: str = "trees",
        pos_label: Any = None,
        min_group_size: int = MIN_GROUP_SIZE,
        random_state: Any = None,
        n_jobs: int | None = None,
        progress: bool = False,
    ) -> None:
        self.utility = utility
        self.valuator = valuator
        self.strength = strength
        self.sampling_strategy = sampling_strategy
        self.method = method
        self.pos_label = pos_label
        self.min_group_size = min_group_size
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.progress = progress

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
        """Make positives in the groups with a lower positive rate than the highest.

        Parameters
        ----------
        X : array, pandas, polars or pyarrow table of shape (n_rows, n_columns)
            The features, of any kind; a sparse matrix only if rows are repeated.
        y : array-like of shape (n_rows,)
            The target.
        sensitive_features : Series, array, DataFrame, dict, or name(s) of columns of X
            The protected attributes. The combinations of several are the groups, and missing values are a
            group of their own. Without any, all rows are one group: then only a `sampling_strategy` makes
            rows, and without one a warning is given.
        valuation : Valuation, optional
            The values of these rows. If rows are to be made and there is none, `valuator` computes it.
        sample_weight : array-like of shape (n_rows,), optional
            How much each row counts in the positive rates, such as survey weights.
        groups : array-like of shape (n_rows,), optional
            Which rows belong together, for `valuator`: a bag holds or leaves out all of them together.

        Returns
        -------
        X_resampled, y_resampled
            The given rows in their order, then the made rows, in the types that were passed. A pandas index
            that counts from 0 is continued; otherwise made rows have the row labels of their parents.
        """
        return self._fit_resample(
            X,
            y,
            sensitive_features=sensitive_features,
            valuation=valuation,
            sample_weight=sample_weight,
            groups=groups,
        )

    def _fit_resample(self, X: Any, y: Any, **params: Any) -> tuple[Any, Any]:
        fitted = copy.copy(self)
        fitted.fit(X, y, **params)
        problem = read_problem(
            X,
            self._target(y),
            params["sensitive_features"],
            sample_weight=params["sample_weight"],
            pos_label=self.pos_label,
        )
        parents, donors = fitted.parents_, None
        rows = np.concatenate([np.arange(problem.n_rows), parents])
        if self.method == "trees" and len(parents):
            seed = int(check_random_state(self.random_state).randint(2**31 - 1))
            donors = draw_donors(problem, parents, seed=seed, n_jobs=self.n_jobs, progress=self.progress)
        resampled = take_more_rows(X, rows, donors)
        fitted.sensitive_features_ = attributes_of(
            params["sensitive_features"],
            resampled,
            rows,
            named=any(position is not None for position in problem.positions),
        )
        self.__dict__ = fitted.__dict__
        return resampled, take_more_rows(y, rows)

    def _choose(
        self,
        labels: Labels,
        groups: Groups,
        utilities: FloatArray | None,
        sample_weight: FloatArray | None,
        generator: np.random.RandomState,
    ) -> TrainingSet:
        cells, plan = self._plan(labels, groups, sample_weight)
        self._warn(cells, plan)
        drawn = np.random.default_rng(generator.randint(2**31 - 1))
        parents = draw_parents(plan.made, labels, groups, utilities, sample_weight, drawn)
        return TrainingSet(np.arange(len(labels.codes)), parents=parents)

    def _plan(self, labels: Labels, groups: Groups, sample_weight: FloatArray | None) -> tuple[Cells, Plan]:
        """Count the rows in cells, and say how many are to be made."""
        if len(labels.classes) < 2:
            raise ValueError(
                f"`y` has only one class ({labels.classes[0]!r}): there are no positive rates to match."
            )
        compared = ~small_groups(groups.sizes, self.min_group_size)
        cells = Cells.of(labels, groups, compared, sample_weight)
        if self.sampling_strategy is not None:
            plan = counts_asked_for(cells, self.sampling_strategy)
        elif compared.sum() < 2:
            plan = Plan(np.zeros_like(cells.rows))
        elif labels.positive is None:
            plan = fill_labels(cells, self.strength)
        else:
            plan = fill_positives(cells, labels.positive, self.strength)
        check_room_for(f"To make {plan.made.sum():,} rows", _BYTES_OF_A_ROW * int(plan.made.sum()))
        return cells, plan

    def _warn(self, cells: Cells, plan: Plan) -> None:
        """Say what a user would not expect."""
        names, asked = cells.groups.names, self.sampling_strategy is not None
        if len(names) == 1 and not asked:
            warn_user(
                f"There is only one group ({names[0]}) and so no other rate to match: no row is made. Pass "
                "protected attributes as `sensitive_features`."
            )
        elif not cells.compared.all() and not asked and self.strength > 0:
            subject = tell_small(names, cells.groups.sizes, ~cells.compared, self.min_group_size)
            alone = "" if cells.compared.sum() > 1 else " There are no two others to compare: no row is made."
            warn_user(
                f"{subject} cannot be compared: no rows are made there, and they count in no rate."
                f"{alone} `min_group_size=0` compares them too."
            )
        elif not (asked or plan.made.any() or plan.unmatched or plan.childless) and self.strength > 0:
            warn_user(
                "The groups' positive rates are equal, or too near for `strength` to move one by a whole "
                "row: no row is made."
            )
        if plan.unmatched and self.strength > 0:
            told = list_names([names[group] for group in plan.unmatched])
            warn_user(
                f"No negatives in group {told}: no number of rows matches a rate of 1, and so it sets no "
                "rate. Merge it with another group."
            )
        if plan.childless:
            told = list_names([cells.name(*cell) for cell in plan.childless])
            warn_user(f"There are no rows with {told} to make others from: none are made there.")
        made, there = int(plan.made.sum()), int(cells.rows.sum())
        if made > there and not asked:
            warn_user(
                f"{made:,} rows are made of {there:,}, to match the highest rate. Merge the group that has "
                "it with another if it is thin, or lower `strength`."
            )

    def _learned(
        self, chosen: TrainingSet, labels: Labels, groups: Groups, sample_weight: FloatArray | None
    ) -> dict[str, Any]:
        parents = np.asarray(chosen.parents)
        cells, plan = self._plan(labels, groups, sample_weight)
        counts = np.bincount(np.r_[labels.codes, labels.codes[parents]], minlength=len(labels.classes))
        weights = None
        if sample_weight is not None:
            mean = cells.weight / np.maximum(cells.rows, 1)
            weights = np.r_[sample_weight, mean[labels.codes[parents], groups.codes[parents]]]
        return super()._learned(chosen, labels, groups, sample_weight) | {
            "parents_": parents,
            "synthetic_": np.arange(len(labels.codes) + len(parents)) >= len(labels.codes),
            "sampling_strategy_": dict(zip(labels.classes, counts.tolist(), strict=True)),
            "sample_weight_": weights,
            "target_rate_": plan.target_rate,
        }

    def _utilities(
        self, problem: Problem, valuation: Any, given: dict[str, Any]
    ) -> tuple[Any, FloatArray | None]:
        _, plan = self._plan(problem.labels, problem.groups, problem.sample_weight)
        needed = int(plan.made.sum()) * (_BYTES_OF_A_ROW + _BYTES_OF_AN_ENTRY * problem.table.n_columns)
        check_room_for(f"To make {plan.made.sum():,} rows of {problem.table.n_columns} columns", needed)
        if plan.made.any() and self.method == "trees":
            check_dense(problem.table)  # before rows are valued, which takes time
        elif valuation is None and not plan.made.any():
            return None, None  # no row is to be made, so that none needs a value
        if self.utility is None and not problem.protected:
            alone = clone(self).set_params(utility=LinearUtility(alpha=1.0))  # there is nothing to be fair to
            return alone._utilities(problem, valuation, given)
        return super()._utilities(problem, valuation, given)

    def _check_settings(self) -> None:
        check_share("strength", self.strength)
        check_choice("method", self.method, METHODS)
        check_min_group_size(self.min_group_size)
        if self.sampling_strategy is not None and not isinstance(self.sampling_strategy, Mapping):
            raise TypeError(
                "`sampling_strategy` must be a dict of labels, or of pairs of label and group, to numbers of "
                f"rows, got {self.sampling_strategy!r}."
            )

    def _target(self, y: Any) -> Any:
        # one column, or one indicator column per class
        return check_target_type(y) if getattr(y, "ndim", 1) == 2 else y
