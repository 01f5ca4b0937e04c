"""The contract of interventions: a pure core, and what reads the input around it."""

from __future__ import annotations

from abc import ABCMeta, abstractmethod
from typing import Any, ClassVar, Literal, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state

from fado.interventions._training_set import TrainingSet
from fado.interventions._utilities import checked_utility, row_utilities, value_rows
from fado.tabular import Groups, Labels, Problem, note_features, read_problem, warn_of_missing, weights_of

__all__ = ["BaseIntervention"]

FloatArray = npt.NDArray[np.float64]


class BaseIntervention(BaseEstimator, metaclass=ABCMeta):
    """Base class of interventions, which change a training set or its weights.

    A subclass defines ``_choose(labels, groups, utilities, sample_weight, generator)``, which returns a
    `TrainingSet`. It does not see the table. `fit` reads the input, values the rows if that is needed, and
    calls `_choose`; an experiment calls `training_set` with rows that it has read. All random numbers must
    come from `generator`.

    Attributes
    ----------
    uses_values : bool, default=False
        Whether the intervention needs utilities. If so, the class must have the parameters `utility` and
        `valuator`.
    changes : {"rows", "weights"}, default="rows"
        Whether the intervention chooses which rows are kept, or how much they weigh.

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
            The features. Only a valuator uses them.
        y : array-like of shape (n_rows,)
            The target.
        sensitive_features : Series, array, DataFrame, dict, or name(s) of columns of X
            The protected attributes; the groups are the combinations of several. Missing values are a group
            of their own. Without any attribute all rows are one group, with a warning.
        valuation : Valuation, optional
            The values of these rows. If None and values are needed, the valuator values the rows. An
            intervention that needs no values ignores it.
        sample_weight : array-like of shape (n_rows,), optional
            How much each row counts in the groups' rates, such as survey weights.
        groups : array-like of shape (n_rows,), optional
            Rows of the same entry, such as those of one person, are in or out of a bag together if a
            valuator values the rows. These are not the groups of the protected attributes.

        Returns
        -------
        self
            With the attribute `training_set_`. Samplers also give its rows as `sample_indices_`, reweighers
            its weights as `sample_weight_`. If you passed `sample_weight`, train your model with the product
            of both weights.
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
        """Choose rows and weights, given labels and groups that have been read.

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
        generator = check_random_state(getattr(self, "random_state", None))
        weights = weights_of(sample_weight, len(labels.codes))
        return self._choose(labels, groups, utilities, weights, generator)

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
        checked_utility(self.utility)  # before rows are valued, which takes time
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
