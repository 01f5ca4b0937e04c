"""An imbalanced-learn sampler that makes rows until groups have the same positive rate."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from imblearn.base import BaseSampler
from imblearn.utils import check_target_type
from sklearn.base import clone
from sklearn.utils import check_random_state

from fado._checks import MOST_ROWS, check_choice, check_count, check_share, sklearn_seed
from fado._memory import check_room_for
from fado._messages import insert_parameters, list_names, warn_user
from fado._typing import Bools, Floats, Integers
from fado.generation._making import attributes_of, check_dense, draw_donors, draw_parents, take_more_rows
from fado.interventions import REQUESTS, BaseIntervention, TrainingSet, warn_of_small
from fado.tabular import MIN_GROUP_SIZE, Groups, Labels, Problem, check_min_group_size, read_problem
from fado.utility import LinearUtility
from fado.valuation import Valuation

METHODS = ("trees", "repeat")
_BYTES_OF_A_ROW, _BYTES_OF_AN_ENTRY = 32, 24  # at least: for its parents, and for each entry


@insert_parameters()
class UtilityAwareOverSampler(BaseIntervention, BaseSampler):
    """Match the groups' positive rates by making new positives, more of them from rows of high utility.

    Every group whose positive rate is below the highest gets new positives until the rates match to within
    one row. The given rows come first, unchanged. Each made row has a parent: a positive of the same group,
    drawn with a probability in proportion to ``0.3 + 0.7 * minmax(U)``, where ``minmax`` scales the utilities
    ``U`` of these rows to [0, 1]. The entries of a made row come from rows in the same leaves of trees, one
    tree per column. Every entry occurs in its column: integers stay
    integers, ranges are kept, and there are no new categories.

    Parameters
    ----------
    utility : LinearUtility, DifferenceUtility, CobbDouglasUtility or function of a valuation, optional
        How a row's values combine into one number. None means ``LinearUtility(alpha=0.5)``, or ``alpha=1``
        without protected attributes.
    {valuator}
    strength : float, default=1.0
        How far a group's rate moves from its own (0) to the highest (1).
    sampling_strategy : dict, optional
        Instead of `strength`: the final number of rows, given rows included, of a label or of a pair of
        label and group, as in ``{(1, "f"): 500}``. Groups of several attributes are named
        ``"sex = f, old = True"``. The new rows of a label are divided among its groups in proportion to its
        present rows; small groups get none.
    method : {"trees", "repeat"}, default="trees"
        Whether to make new rows, or to repeat the parents unchanged.
    pos_label : label, optional
        The positive label; None means the larger of two. With more than two labels and None, no label is
        positive: rows of all labels are made until every group has the labels in the shares of the whole
        table.
    min_group_size : int, default=30
        Groups with fewer rows that are also less than 1 % of the table get no rows, and their rates do not
        count. 0 compares every group.
    {random_state, n_jobs, progress}

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
        The final number of rows of each label.
    target_rate_ : float
        The positive rate that all groups get at full `strength`; NaN if there is none.
    valuation_ : Valuation or None
        The values used; None if no row was to be made and none were passed.
    {n_features_in_, feature_names_in_}

    Warns
    -----
    UserWarning
        If groups are too small to be compared; if there is only one group; if a group has no positives to
        make others from; if a group has no negatives, because no number of rows matches its rate of 1; if
        more rows are made than were given.

    See Also
    --------
    fado.UtilityAwarePrevalenceSampler : Match rates by dropping rows.
    fado.UtilityAwareReweigher : Match rates by weights.

    References
    ----------
    J. P. Reiter, "Using CART to generate partially synthetic public use microdata", Journal of Official
    Statistics 21 (2005).

    N. V. Chawla, K. W. Bowyer, L. O. Hall and W. P. Kegelmeyer, "SMOTE: Synthetic Minority Over-sampling
    Technique", Journal of Artificial Intelligence Research 16 (2002), arXiv:1106.1813.

    Examples
    --------
    >>> import numpy as np
    >>> from fado import LinearUtility, UtilityAwareOverSampler, Valuation
    >>> X = np.array([[1, 7], [2, 8], [3, 7], [4, 8], [5, 7], [6, 8]])
    >>> y = [1, 0, 1, 0, 0, 0]
    >>> sex = ["f", "f", "m", "m", "m", "m"]
    >>> valuation = Valuation.from_probabilities([0.9, 0.1, 0.8, 0.0, 0.5, 0.4])
    >>> sampler = UtilityAwareOverSampler(
    ...     LinearUtility(alpha=1.0), method="repeat", random_state=0
    ... )
    >>> X2, y2 = sampler.fit_resample(
    ...     X, y, sensitive_features=sex, valuation=valuation
    ... )
    >>> X2[sampler.synthetic_], y2
    (array([[3, 7],
           [3, 7]]), [1, 0, 1, 0, 0, 0, 1, 1])
    >>> sampler.sensitive_features_
    ['f', 'f', 'm', 'm', 'm', 'm', 'm', 'm']
    """

    uses_values = True
    _sampling_type = "over-sampling"
    __metadata_request__fit_resample: ClassVar = REQUESTS
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
        """Make positives in the groups with a lower positive rate than the highest.

        Parameters
        ----------
        X : array, pandas, polars or pyarrow table of shape (n_rows, n_columns)
            The features, of any kind; a sparse matrix only if rows are repeated.
        {y}
        sensitive_features : Series, array, DataFrame, dict, or name(s) of columns of X
            The protected attributes. The groups are the combinations of several attributes. No rows are made
            of those with a missing value, and they count in no rate. Without any, all rows are one group:
            then only a `sampling_strategy` makes rows, and without one a warning is given.
        {unknown, valuation, sample_weight, groups}

        Returns
        -------
        X_resampled, y_resampled
            The given rows in their order, then the made rows, in the types that were passed. A pandas index
            that counts from 0 is continued; otherwise made rows have the index labels of their parents.
        """
        fitted = copy.copy(self).fit(
            X,
            y,
            sensitive_features=sensitive_features,
            unknown=unknown,
            valuation=valuation,
            sample_weight=sample_weight,
            groups=groups,
        )
        problem = read_problem(
            X,
            self._target(y),
            sensitive_features,
            unknown=unknown,
            sample_weight=sample_weight,
            pos_label=self.pos_label,
        )
        parents, donors = fitted.parents_, None
        rows = np.concatenate([np.arange(problem.n_rows), parents])
        if self.method == "trees" and len(parents):
            seed = int(check_random_state(sklearn_seed(self.random_state)).randint(2**31 - 1))
            donors = draw_donors(problem, parents, seed=seed, n_jobs=self.n_jobs, progress=self.progress)
        resampled = take_more_rows(X, rows, donors)
        named = any(position is not None for position in problem.positions)
        fitted.sensitive_features_ = attributes_of(sensitive_features, resampled, rows, named=named)
        self.__dict__.update(vars(fitted))
        return resampled, take_more_rows(y, rows)

    _fit_resample = fit_resample  # required by imbalanced-learn

    def _choose(
        self, labels: Labels, groups: Groups, utilities: Any, sample_weight: Any, generator: Any
    ) -> TrainingSet:
        cells, plan = self._plan(labels, groups, sample_weight)
        self._warn(cells, plan)
        drawn = np.random.default_rng(generator.randint(2**31 - 1))
        parents = draw_parents(plan.made, labels, groups, utilities, sample_weight, drawn)
        return TrainingSet(np.arange(len(labels.codes)), parents=parents)

    def _plan(self, labels: Labels, groups: Groups, sample_weight: Floats | None) -> tuple[Cells, Plan]:
        """Count the rows in cells, and plan how many to make."""
        if len(labels.classes) < 2:
            raise ValueError(
                f"`y` has only one class ({labels.classes[0]!r}): there are no positive rates to match."
            )
        compared = groups.compared(self.min_group_size)
        cells = Cells.of(labels, groups, compared, sample_weight)
        if self.sampling_strategy is not None:
            plan = read_counts(cells, self.sampling_strategy)
        elif compared.sum() < 2:
            plan = Plan(np.zeros_like(cells.rows))
        elif labels.positive is None:
            plan = fill_labels(cells, self.strength)
        else:
            plan = fill_positives(cells, labels.positive, self.strength)
        check_room_for(f"To make {plan.made.sum():,} rows", _BYTES_OF_A_ROW * int(plan.made.sum()))
        return cells, plan

    def _warn(self, cells: Cells, plan: Plan) -> None:
        """Warn about what a user would not expect."""
        names, by_counts = cells.groups.names, self.sampling_strategy is not None
        if len(names) == 1 and not by_counts:
            warn_user(
                f"There is only one group ({names[0]}), so there is no other rate to match: no row is made. "
                "Pass protected attributes as `sensitive_features`."
            )
        elif not cells.compared.all() and not by_counts and self.strength > 0:
            warn_of_small(
                cells.groups,
                self.min_group_size,
                outcome="no rows are made there, and their rates are not used",
                alone="no row is made",
            )
        elif not (by_counts or plan.made.any() or plan.unmatched or plan.childless) and self.strength > 0:
            warn_user(
                "The groups' positive rates are equal, or too close for `strength` to change one by a whole "
                "row: no row is made."
            )
        if plan.unmatched and self.strength > 0:
            warn_user(
                f"No negatives in group {list_names([names[group] for group in plan.unmatched])}: no number "
                "of rows matches a rate of 1, so its rate is not used. Merge it with another group."
            )
        if plan.childless:
            without = list_names([cells.name(*cell) for cell in plan.childless])
            warn_user(f"There are no rows with {without} to make others from: none are made there.")
        made, there = int(plan.made.sum()), int(cells.rows.sum())
        if made > there and not by_counts:
            warn_user(
                f"{made:,} rows are made from {there:,} to match the highest rate. Merge the group that has "
                "it with another if it is small, or lower `strength`."
            )

    def _fitted(
        self, chosen: TrainingSet, labels: Labels, groups: Groups, sample_weight: Floats | None
    ) -> dict[str, Any]:
        parents = np.asarray(chosen.parents)
        cells, plan = self._plan(labels, groups, sample_weight)
        counts = np.bincount(np.r_[labels.codes, labels.codes[parents]], minlength=len(labels.classes))
        weights = None
        if sample_weight is not None:
            weights = np.r_[sample_weight, cells.mean_weight[labels.codes[parents], groups.codes[parents]]]
        return super()._fitted(chosen, labels, groups, sample_weight) | {
            "parents_": parents,
            "synthetic_": np.arange(len(labels.codes) + len(parents)) >= len(labels.codes),
            "sampling_strategy_": dict(zip(labels.classes, counts.tolist(), strict=True)),
            "sample_weight_": weights,
            "target_rate_": plan.target_rate,
        }

    def _utilities(
        self, problem: Problem, valuation: Any, arguments: dict[str, Any], utility: Any = None
    ) -> tuple[Any, Floats | None]:
        _, plan = self._plan(problem.labels, problem.groups, problem.sample_weight)
        needed = int(plan.made.sum()) * (_BYTES_OF_A_ROW + _BYTES_OF_AN_ENTRY * problem.table.n_columns)
        check_room_for(f"To make {plan.made.sum():,} rows of {problem.table.n_columns} columns", needed)
        if plan.made.any() and self.method == "trees":
            check_dense(problem.table)  # before valuing rows, which takes time
        elif valuation is None and not plan.made.any():
            return None, None  # no rows will be made, so no values are needed
        if self.utility is None and not problem.protected:
            alone = clone(self).set_params(utility=LinearUtility(alpha=1.0))  # there are no groups
            return alone._utilities(problem, valuation, arguments)
        return super()._utilities(problem, valuation, arguments, utility)

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


@dataclass(frozen=True, eq=False)
class Cells:
    """The numbers of rows of every label in every group."""

    rows: Integers
    weight: Floats
    labels: tuple[Any, ...]
    groups: Groups
    compared: Bools
    weighted: bool

    @classmethod
    def of(cls, labels: Labels, groups: Groups, compared: Bools, sample_weight: Floats | None) -> Cells:
        """Count the rows."""
        shape = len(labels.classes), len(groups)
        cell = labels.codes.astype(np.int64) * shape[1] + groups.codes
        rows, weight = (
            np.bincount(cell, weights, minlength=shape[0] * shape[1]).reshape(shape)
            for weights in (None, sample_weight)
        )
        weighted = sample_weight is not None
        return cls(rows, weight.astype(np.float64), labels.classes, groups, compared, weighted)

    @property
    def mean_weight(self) -> Floats:
        """The weight of a made row in each cell."""
        return self.weight / np.maximum(self.rows, 1)

    def name(self, label: int, group: int) -> str:
        """Name a cell in a message."""
        return f"label {self.labels[label]!r} in group {self.groups.names[group]}"


@dataclass(frozen=True, eq=False)
class Plan:
    """How many rows to make."""

    made: Integers
    target_rate: float = float("nan")
    childless: tuple[tuple[int, int], ...] = ()
    unmatched: tuple[int, ...] = ()


def fill_positives(cells: Cells, positive: int, strength: float) -> Plan:
    """Add positives to every group whose positive rate is below the highest.

    Examples
    --------
    >>> import numpy as np
    >>> from fado.tabular import Groups, Labels
    >>> labels = Labels(np.array([1, 0, 1, 0, 0, 0]), (0, 1), 1)
    >>> groups = Groups(np.array([0, 0, 1, 1, 1, 1]), ("'f'", "'m'"), ("f", "m"))
    >>> cells = Cells.of(labels, groups, np.array([True, True]), None)
    >>> fill_positives(cells, 1, 1.0).made  # 'm' has a rate of 1/4 and needs 3 positives for 1/2
    array([[0, 0],
           [0, 2]])
    """
    positives = cells.weight[positive]
    negatives = cells.weight.sum(axis=0) - positives
    number = float if cells.weighted else Fraction  # fractions are exact
    rates: dict[int, Any] = {}
    for group in np.flatnonzero(cells.compared & (positives + negatives > 0)).tolist():
        present = number(positives[group])
        rates[group] = present / (present + number(negatives[group]))
    unmatched = tuple(group for group, rate in rates.items() if negatives[group] <= 0)
    matched = {group: rate for group, rate in rates.items() if group not in unmatched}
    made = np.zeros_like(cells.rows)
    if len(matched) < 2:
        return Plan(made, unmatched=unmatched if len(rates) > 1 else ())
    highest = max(matched.values())
    childless = []
    for group, rate in matched.items():
        wanted = rate + number(strength) * (highest - rate)
        short = number(negatives[group]) * wanted / (1 - wanted) - number(positives[group])
        if not positives[group] and wanted > 0:
            childless.append((positive, group))
        elif short > 0:
            made[positive, group] = round(short / number(cells.mean_weight[positive, group]))
    return Plan(made, float(highest), tuple(childless), unmatched)


def fill_labels(cells: Cells, strength: float) -> Plan:
    """Add rows until every group has the labels in the shares of all compared rows.

    Examples
    --------
    >>> import numpy as np
    >>> from fado.tabular import Groups, Labels
    >>> labels = Labels(np.repeat([0, 1, 2, 0, 1, 2], [10, 10, 10, 10, 20, 30]), ("a", "b", "c"))
    >>> groups = Groups(np.repeat([0, 1], [30, 60]), ("'f'", "'m'"), ("f", "m"))
    >>> cells = Cells.of(labels, groups, np.array([True, True]), None)
    >>> fill_labels(cells, 1.0).made  # of all rows, labels have shares of 2/9, 3/9 and 4/9
    array([[ 0,  5],
           [ 5,  2],
           [10,  0]])
    """
    shares = cells.weight[:, cells.compared].sum(axis=1)
    shares = shares / shares.sum()
    made = np.zeros_like(cells.rows)
    childless = []
    for group in np.flatnonzero(cells.compared & (cells.weight.sum(axis=0) > 0)).tolist():
        weight = cells.weight[:, group]
        wanted = weight / weight.sum() + strength * (shares - weight / weight.sum())
        there = weight > 0
        short = np.max(weight[there] / wanted[there]) * wanted - weight
        for label in np.flatnonzero(short > 0).tolist():
            if there[label]:
                made[label, group] = round(short[label] / cells.mean_weight[label, group])
            elif short[label] >= 0.5:
                childless.append((label, group))
    return Plan(made, childless=tuple(childless))


def read_counts(cells: Cells, strategy: Mapping[Any, Any]) -> Plan:
    """Read the final numbers of rows of labels, or of labels in groups."""
    made, named = np.zeros_like(cells.rows), np.zeros(cells.rows.shape, dtype=bool)
    titles = cells.groups.titles
    for key, count in strategy.items():
        in_group = isinstance(key, tuple)
        name, setting = key[0] if in_group else key, f"sampling_strategy[{key!r}]"
        if name not in cells.labels:
            has = list_names(list(map(repr, cells.labels)))
            raise ValueError(f"`sampling_strategy` names {name!r}, which is not one of the labels {has}.")
        if in_group and (len(key) != 2 or str(key[1]) not in titles):
            has = list_names([repr(title) for title in titles])
            raise ValueError(
                f"`sampling_strategy` has the key {key!r}: it must be a label, or a pair of a label and one "
                f"of the groups {has}."
            )
        label = cells.labels.index(name)
        counted = np.array([titles.index(str(key[1]))]) if in_group else np.arange(len(cells.groups))
        here = counted if in_group else np.flatnonzero(cells.compared & (cells.weight[label] > 0))
        if named[label, counted].any():
            raise ValueError(f"`sampling_strategy` asks twice for label {cells.labels[label]!r}: ask once.")
        named[label, counted] = True
        present = int(cells.rows[label, counted].sum())
        short = check_count(setting, count, 0, MOST_ROWS) - present
        if short < 0:
            raise ValueError(
                f"`{setting}` is {count}, and there are {present} such rows already: rows are never dropped. "
                "Ask for as many or more."
            )
        weight = cells.weight[label, here]
        if short and not weight.sum() > 0:
            where = cells.name(label, here[0]) if in_group else f"label {key!r}"
            raise ValueError(f"There are no rows with {where} to make others from: leave `{setting}` out.")
        if short:  # in proportion to weights; the rest goes to the largest remainders
            exact = short * weight / weight.sum()
            shares: Integers = np.floor(exact).astype(np.int64)
            shares[np.argsort(shares - exact, kind="stable")[: short - int(shares.sum())]] += 1
            made[label, here] = shares
    return Plan(made)
