"""The contract of interventions: their base class, the training set that they return, and no intervention."""

from __future__ import annotations

import hashlib
import inspect
from abc import ABCMeta, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, clone
from sklearn.utils import check_random_state

from fado._checks import check_instance, check_share, sklearn_seed
from fado._messages import insert_parameters, warn_user
from fado._typing import Floats, Integers
from fado.tabular import (
    Groups,
    Labels,
    Problem,
    deal_rows,
    note_features,
    read_problem,
    warn_of_unknown,
    weights_of,
)
from fado.utility import LinearUtility
from fado.valuation import BaseValuator, OutOfBagEntropy, check_alignment

_ROWS_AT_A_TIME = 1 << 16
REQUESTS = {"sensitive_features": True, "unknown": True, "valuation": True}  # by metadata routing


@dataclass(frozen=True)
class TrainingSet:
    """The result of an intervention: which rows are kept, their weights, and rows to add.

    Parameters
    ----------
    rows : ndarray of int
        The positions of the rows that are kept, ascending.
    weights : ndarray of float, optional
        The weights of these rows; None means equal weights.
    parents : ndarray of int, optional
        One entry per row to add: the position of the row that it is made from. None adds no rows.
    labels : ndarray of bool, optional
        Which of the kept rows are positive for training, if an intervention changes labels.

    See Also
    --------
    fado.interventions.BaseIntervention : Returns a training set.
    """

    rows: npt.NDArray[np.integer]
    weights: npt.NDArray[np.floating] | None = None
    parents: npt.NDArray[np.integer] | None = None
    labels: npt.NDArray[np.bool_] | None = None

    def digest(self) -> str:
        """Return a digest of 32 letters and digits; only equal training sets have the same."""
        digest = hashlib.sha256(np.ascontiguousarray(self.rows, dtype=np.int32).data)
        if self.weights is not None:
            digest.update(np.ascontiguousarray(self.weights, dtype=np.float32).data)
        if self.parents is not None:
            digest.update(b"parents")
            digest.update(np.ascontiguousarray(self.parents, dtype=np.int32).data)
        if self.labels is not None:
            digest.update(b"labels")
            digest.update(np.packbits(self.labels).data)
        return digest.hexdigest()[:32]


class BaseIntervention(BaseEstimator, metaclass=ABCMeta):
    """Base class of interventions, which change a training set or its weights.

    A subclass defines ``_choose(labels, groups, utilities, sample_weight, generator)``, which returns a
    `TrainingSet`. It does not see the table. `fit` reads the input, values the rows if needed, and calls
    `_choose`; an experiment calls `training_set` with rows that it has read. All random numbers must come
    from `generator`.

    Attributes
    ----------
    uses_values : bool, default=False
        Whether the intervention needs utilities. If so, the class must have the parameters `utility` and
        `valuator`.
    changes : {"rows", "weights"}, default="rows"
        Whether the intervention chooses which rows are kept, or their weights.

    See Also
    --------
    fado.interventions.register_intervention : Offers an intervention in experiments and commands.
    fado.interventions.BaseScoreIntervention : Base class of interventions that change scores.

    Examples
    --------
    >>> import numpy as np
    >>> from fado.interventions import BaseIntervention, TrainingSet
    >>> class FirstRows(BaseIntervention):
    ...     def __init__(self, share=0.5):
    ...         self.share = share
    ...     def _choose(self, labels, groups, utilities, sample_weight, generator):
    ...         return TrainingSet(np.arange(int(self.share * len(labels.codes))))
    >>> X, y = np.zeros((6, 1)), [0, 1, 0, 1, 0, 1]
    >>> fitted = FirstRows().fit(X, y, sensitive_features=list("ababab"))
    >>> fitted.training_set_.rows
    array([0, 1, 2])
    """

    uses_values: ClassVar[bool] = False
    changes: ClassVar[Literal["rows", "weights"]] = "rows"

    _counts_cells: bool = True  # if not, labels and groups are not used, and may be numeric
    _row_bytes: ClassVar[tuple[int, int]] = (
        80,
        80,
    )  # of memory, of many rows in files: without and with weights
    __metadata_request__fit: ClassVar = REQUESTS
    training_set_: TrainingSet

    @insert_parameters()
    def fit(
        self,
        X: Any,
        y: Any,
        *,
        sensitive_features: Any = None,
        unknown: Any = None,
        valuation: Any = None,
        sample_weight: Any = None,
        groups: Any = None,
    ) -> Self:
        """Choose rows and weights.

        Parameters
        ----------
        {X, y}
        sensitive_features : Series, array, DataFrame, dict, or name(s) of columns of X
            The protected attributes. The groups are the combinations of several attributes. Rows with a
            missing value stay as they are and count in no rate. Without any attribute all rows are one group,
            with a warning.
        {unknown, valuation}
        sample_weight : array-like of shape (n_rows,), optional
            How much each row counts in the groups' rates, such as survey weights.
        {groups}

        Returns
        -------
        self
            With the attribute `training_set_`. Samplers also give its rows as `sample_indices_`, reweighers
            its weights as `sample_weight_`. If you passed `sample_weight`, train your model with the product
            of both weights.
        """
        self._check_settings()
        arguments = {
            "X": X,
            "y": self._target(y),
            "sensitive_features": sensitive_features,
            "unknown": unknown,
            "sample_weight": sample_weight,
            "groups": groups,
        }
        problem = read_problem(**arguments, pos_label=getattr(self, "pos_label", None))
        labels, members = no_cells(problem.n_rows)
        if self._counts_cells:
            labels, members = problem.labels, problem.groups
            warn_of_unknown(problem.protected)
        utilities, fitted = None, {}
        if self.uses_values:
            fitted["valuation_"], utilities = self._utilities(problem, valuation, arguments)
        generator = check_random_state(sklearn_seed(getattr(self, "random_state", None)))
        chosen = self._choose(labels, members, utilities, problem.sample_weight, generator)
        fitted |= self._fitted(chosen, labels, members, problem.sample_weight)
        # Nothing is noted before all is known: a fit that fails leaves what an earlier one has learnt.
        note_features(self, problem.table)
        self.__dict__.update(fitted)
        return self

    def _fitted(
        self, chosen: TrainingSet, labels: Labels, groups: Groups, sample_weight: Floats | None
    ) -> dict[str, Any]:
        """Return what was chosen as fitted attributes."""
        weights = {"sample_weight_": chosen.weights} if self.changes == "weights" else {}
        return {"training_set_": chosen, **weights}

    def training_set(
        self,
        labels: Labels,
        groups: Groups,
        utilities: Floats | None = None,
        sample_weight: Floats | None = None,
    ) -> TrainingSet:
        """Choose rows and weights from labels and groups that have been read.

        Parameters
        ----------
        labels : Labels
            The rows' labels.
        groups : Groups
            The rows' groups.
        utilities : ndarray of shape (n_rows,), optional
            The rows' utilities; needed if `uses_values`.
        sample_weight : ndarray of shape (n_rows,), optional
            How much each row counts.

        Returns
        -------
        TrainingSet
        """
        self._check_settings()
        generator = check_random_state(sklearn_seed(getattr(self, "random_state", None)))
        weights = weights_of(sample_weight, len(labels.codes))
        return self._choose(labels, groups, utilities, weights, generator)

    @abstractmethod
    def _choose(
        self,
        labels: Labels,
        groups: Groups,
        utilities: Floats | None,
        sample_weight: Floats | None,
        generator: np.random.RandomState,
    ) -> TrainingSet:
        """Choose rows and weights: arrays in, arrays out."""

    def _check_settings(self) -> None:
        """Refuse invalid settings before anything is computed."""

    def _target(self, y: Any) -> Any:
        """Return the target as one column."""
        return y

    def _utilities(
        self, problem: Problem, valuation: Any, arguments: dict[str, Any], utility: Any = None
    ) -> tuple[Any, Floats | None]:
        """Return the values, passed in or computed, and every row's utility; None if no row needs one.

        `arguments` are those of `fit`; a `utility` is used instead of the intervention's own.
        """
        utility = checked_utility(self.utility if utility is None else utility)
        if valuation is None:  # last, as it takes time
            settings = {name: getattr(self, name) for name in ("n_jobs", "progress") if hasattr(self, name)}
            seed = getattr(self, "random_state", None)
            valuation = value_rows(self.valuator, problem, arguments, seed, **settings)
        if not hasattr(valuation, "protected"):
            raise TypeError(
                f"`valuation` must be a Valuation, got {type(valuation).__name__}: pass a valuator's "
                "`valuation_`, or make one with `Valuation.from_probabilities`."
            )
        check_alignment(valuation, problem)
        utilities = utilities_of(utility, valuation, problem.n_rows)
        unknown = np.flatnonzero(~np.isfinite(utilities))
        if len(unknown):
            raise no_utilities(len(unknown), problem.n_rows, int(unknown[0]))
        return valuation, utilities

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        return tags


@insert_parameters()
class NoIntervention(BaseIntervention):
    """Keep every row as it is.

    Parameters
    ----------
    share : float, default=1.0
        The share of rows that is kept, in (0, 1], drawn at random with the same share of every label and
        group. Below 1 it is a quick first look at many models.
    {random_state}

    See Also
    --------
    fado.RandomPrevalenceSampler : Drops rows at random until rates match.
    """

    share: float = 1.0

    def __init__(self, share: float = 1.0, random_state: Any = None) -> None:
        self.share = share
        self.random_state = random_state

    def _check_settings(self) -> None:
        if check_share("share", self.share) == 0:
            raise ValueError("`share` must be above 0: no row would be kept.")

    def _choose(
        self, labels: Any, groups: Any, utilities: Any, sample_weight: Any, generator: Any
    ) -> TrainingSet:
        rows = np.arange(len(labels.codes))
        if self.share == 1:
            return TrainingSet(rows)
        cells = groups.codes * len(labels.classes) + labels.codes
        drawn = np.random.default_rng(generator.randint(2**31 - 1))
        return TrainingSet(rows[deal_rows(cells, [self.share, 1 - self.share], drawn) == 0])


def value_rows(
    valuator: Any, problem: Problem, arguments: dict[str, Any], random_state: Any, **settings: Any
) -> Any:
    """Return the values of the rows of a problem by a clone of a valuator, any object with `fit`.

    None is an `OutOfBagEntropy` of the `settings`; `random_state` is for a valuator without one. Those of
    other packages get the `arguments` of the intervention's `fit`, and are refused if they take no weights or
    groups that were passed.
    """
    check_instance("valuator", valuator)
    if valuator is not None and not hasattr(valuator, "fit"):
        raise TypeError(f"`valuator` must be a valuator like OutOfBagEntropy(), got {valuator!r}.")
    valuator = OutOfBagEntropy(**settings) if valuator is None else clone(valuator, safe=False)
    parameters = valuator.get_params(deep=False) if hasattr(valuator, "get_params") else {}
    if random_state is not None and parameters.get("random_state", 0) is None:
        valuator.set_params(random_state=random_state)
    if isinstance(valuator, BaseValuator) and type(valuator).fit is BaseValuator.fit:
        return valuator.fit_problem(problem).valuation_
    passed = {name: value for name, value in arguments.items() if value is not None}
    accepted = inspect.signature(valuator.fit).parameters
    takes_all = any(parameter.kind is parameter.VAR_KEYWORD for parameter in accepted.values())
    for name in ("sample_weight", "groups"):
        if name in passed and name not in accepted and not takes_all:
            raise ValueError(
                f"{type(valuator).__name__}.fit takes no `{name}`: value the rows first and pass the "
                "`valuation`, or use a valuator that accepts it."
            )
    return valuator.fit(passed.pop("X"), passed.pop("y"), **passed).valuation_


def checked_utility(utility: Any) -> Any:
    """Return the utility, `LinearUtility` for None, or refuse what is not a utility."""
    utility = LinearUtility() if utility is None else utility
    check_instance("utility", utility)
    if not callable(utility):
        raise TypeError(
            f"`utility` must be a utility like LinearUtility(alpha=0.5), or another function of a valuation, "
            f"got {utility!r}."
        )
    return utility


def utilities_of(utility: Any, valuation: Any, n_rows: int) -> Floats:
    """Return the utilities of some rows, NaN where a value is missing; there must be one per row."""
    utilities = np.asarray(utility(valuation), dtype=np.float64)
    if utilities.shape != (n_rows,):
        raise ValueError(
            f"`utility` returned shape {utilities.shape} for {n_rows} rows: it must return one number per "
            "row."
        )
    return utilities


def no_utilities(n_unknown: int, n_rows: int, first: int) -> ValueError:
    """Return the error for rows without a utility."""
    return ValueError(
        f"{n_unknown} of {n_rows} rows have no utility, because the valuation has no value for them (the "
        f"first is row {first}, counted from 0): value these rows or drop them."
    )


def warn_of_small(groups: Groups, min_group_size: int, *, outcome: str, alone: str) -> None:
    """Warn of groups that are too small to be compared, and if fewer than two are compared.

    `outcome` is what happens to small groups' rows, `alone` to all rows if fewer than two groups are left.
    """
    compared = groups.compared(min_group_size)
    if compared.all():
        return
    if sentence := groups.tell_small("not compared", min_group_size):
        warn_user(f"{sentence}: {outcome}. `min_group_size=0` compares them too.")
    if compared.sum() < 2:
        left = [groups.names[group] for group in np.flatnonzero(compared).tolist()]
        only = f"Only group {left[0]} is" if left else "No group is"
        warn_user(f"{only} left to compare, so there is no other rate to match: {alone}.")


def slices(n_rows: int) -> Iterator[slice]:
    """Cut rows into parts, so that what is computed for one part takes no memory."""
    return (slice(first, first + _ROWS_AT_A_TIME) for first in range(0, n_rows, _ROWS_AT_A_TIME))


def add_up(codes: Integers, n_codes: int, amounts: Floats | None = None) -> npt.NDArray[Any]:
    """Return what `numpy.bincount` returns, to the last bit, without a wider copy of the codes.

    Examples
    --------
    >>> add_up(np.array([0, 1, 1], dtype=np.int8), 2, np.array([0.5, 1.0, 2.0]))
    array([0.5, 3. ])
    """
    total = np.bincount(codes[:0], None if amounts is None else amounts[:0], n_codes)
    for part in slices(len(codes)):
        if amounts is None:
            total += np.bincount(codes[part], minlength=n_codes)
        else:  # each sum goes on from where it was
            some = np.concatenate([np.arange(n_codes), codes[part]])
            total = np.bincount(some, np.concatenate([total, amounts[part]]))
    return total


def occurring(groups: Groups) -> Groups:
    """Return the groups that have rows."""
    return groups if groups.sizes.all() else groups.take(np.arange(len(groups.codes)))


def no_cells(n_rows: int) -> tuple[Labels, Groups]:
    """Return one label and one group for all rows, for an intervention that uses neither."""
    same = np.broadcast_to(np.int32(0), n_rows)
    return Labels(same, ("all rows",)), Groups(same, ("all rows",), ("all rows",))
