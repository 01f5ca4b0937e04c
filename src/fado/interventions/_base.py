"""The contract of interventions: a pure core, and what reads the input around it."""

from __future__ import annotations

from abc import ABCMeta, abstractmethod
from typing import Any, ClassVar, Literal, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state

from fado.interventions._training_set import TrainingSet
from fado.interventions._utilities import row_utilities, value_rows
from fado.tabular import Groups, Labels, Problem, note_features, read_problem, warn_of_missing

__all__ = ["BaseIntervention"]

FloatArray = npt.NDArray[np.float64]


class BaseIntervention(BaseEstimator, metaclass=ABCMeta):
    """Base of what changes a training set or its weights.

    A subclass says in `_choose` what becomes of the rows, given their labels, groups and utilities: it sees
    no table. `fit` reads the input, values the rows if that is needed, and calls it; an experiment calls
    `training_set` with what it has read. Everything that is drawn comes from the generator given.

    Attributes
    ----------
    uses_values : bool
        Whether rows need utilities. Then the class has the parameters `utility` and `valuator`.
    changes : {"rows", "weights"}
        What the intervention is about: which rows there are, or what they weigh.

    Examples
    --------
    >>> import numpy as np
    >>> from fado.interventions import BaseIntervention, TrainingSet
    >>> class FirstRows(BaseIntervention):
    ...     def __init__(self, share=0.5):
    ...         self.share = share
    ...     def _choose(self, labels, groups, utilities, sample_weight, generator):
    ...         return TrainingSet(np.arange(int(self.share * len(labels.codes))))
    >>> fitted = FirstRows().fit(np.zeros((6, 1)), [0, 1, 0, 1, 0, 1], sensitive_features=list("ababab"))
    >>> fitted.training_set_.rows
    array([0, 1, 2])
    """

    uses_values: ClassVar[bool] = False
    changes: ClassVar[Literal["rows", "weights"]] = "rows"

    __metadata_request__fit: ClassVar = {"sensitive_features": True, "valuation": True}
    training_set_: TrainingSet

    def fit(
        self,
        X: Any,
        y: Any,
        *,
        sensitive_features: Any = None,
        valuation: Any = None,
        sample_weight: Any = None,
        groups: Any = None,
    ) -> Self:
        """Choose rows and weights.

        Parameters
        ----------
        X : array, sparse matrix, pandas, polars or pyarrow table of shape (n_rows, n_columns)
            The features. Only a valuator looks at what they hold.
        y : array-like of shape (n_rows,)
            The target.
        sensitive_features : Series, array, DataFrame, dict, or name(s) of columns of X
            The protected attributes; several are crossed, and missing values are a group of their own.
            Without any (which scikit-learn's conventions demand to be possible) all rows are one group, with
            a warning.
        valuation : Valuation, optional
            The values of these rows; made on the way if they are needed and there are none. Interventions
            that need none take and ignore it, so that one can stand for the other.
        sample_weight : array-like of shape (n_rows,), optional
            What each row counts in the groups' rates, such as survey weights.
        groups : array-like of shape (n_rows,), optional
            Which rows belong together: if rows are valued on the way, in or out of a bag together.

        Returns
        -------
        self
            With `training_set_`; samplers have its rows as `sample_indices_`, reweighers its weights as
            `sample_weight_`. With survey weights a model is trained with the product of both.
        """
        self._check_settings()
        problem = read_problem(
            X,
            self._target(y),
            sensitive_features,
            sample_weight=sample_weight,
            groups=groups,
            pos_label=self._pos_label,
        )
        labels, members = _uncounted(problem.n_rows)
        if self._counts_cells:
            labels, members = problem.labels, problem.groups
            warn_of_missing(problem.protected)
        utilities, learned = None, {}
        if self.uses_values:
            given = {
                "X": X,
                "y": self._target(y),
                "sensitive_features": sensitive_features,
                "sample_weight": sample_weight,
                "groups": groups,
            }
            learned["valuation_"], utilities = self._utilities(problem, valuation, given)
        generator = check_random_state(getattr(self, "random_state", None))
        chosen = self._choose(labels, members, utilities, problem.sample_weight, generator)
        learned |= self._learned(chosen, labels, members, problem.sample_weight)
        # Nothing is noted before all is known: a fit that fails leaves what an earlier one has learnt.
        note_features(self, problem.table)
        self.__dict__.update(learned)
        return self

    def _learned(
        self, chosen: TrainingSet, labels: Labels, groups: Groups, sample_weight: FloatArray | None
    ) -> dict[str, Any]:
        """Give what was chosen, by the names that users of this kind of intervention know."""
        return {"training_set_": chosen}

    def training_set(
        self,
        labels: Labels,
        groups: Groups,
        utilities: FloatArray | None = None,
        sample_weight: FloatArray | None = None,
    ) -> TrainingSet:
        """Choose rows and weights of a problem that has been read."""
        self._check_settings()
        generator = check_random_state(getattr(self, "random_state", None))
        return self._choose(labels, groups, utilities, sample_weight, generator)

    @abstractmethod
    def _choose(
        self,
        labels: Labels,
        groups: Groups,
        utilities: FloatArray | None,
        sample_weight: FloatArray | None,
        generator: np.random.RandomState,
    ) -> TrainingSet:
        """Say what becomes of the rows: arrays in, arrays out."""

    def _check_settings(self) -> None:
        """Refuse settings that make no sense, before anything is computed."""

    @property
    def _counts_cells(self) -> bool:
        """Whether labels and groups matter; if not, the target may be a number, and so may attributes."""
        return True

    def _target(self, y: Any) -> Any:
        """Bring the target into one column, where a library has other forms for it."""
        return y

    @property
    def _pos_label(self) -> Any:
        return getattr(self, "pos_label", None)

    def _utilities(
        self, problem: Problem, valuation: Any, given: dict[str, Any]
    ) -> tuple[Any, FloatArray | None]:
        """Give values, passed in or made on the way, and every row's utility; None where no row needs any."""
        if valuation is None:
            valuation = value_rows(self.valuator, problem, given, getattr(self, "random_state", None))
        return valuation, row_utilities(self.utility, valuation, problem)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        return tags


def _uncounted(n_rows: int) -> tuple[Labels, Groups]:
    """Give labels and groups that tell nothing, for an intervention that asks for neither."""
    same = np.zeros(n_rows, dtype=np.int32)
    return Labels(same, ("all rows",)), Groups(same.astype(np.int64), ("all rows",), ("all rows",))
