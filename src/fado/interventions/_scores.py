"""The contract of interventions on scores: predictions for rows in, new scores of these rows out."""

from __future__ import annotations

import threading
from abc import ABCMeta, abstractmethod
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from sklearn.base import BaseEstimator

from fado._typing import Bools, Floats, Integers
from fado.engine import Scorer
from fado.metrics import Budget


@dataclass(frozen=True, eq=False)
class KnownRows:
    """Rows with known labels and groups, and predictions of models that were not trained on them.

    Parameters
    ----------
    scores : ndarray of shape (n_rows,)
        The probability of the positive label, by the model.
    group_probabilities : pair of ndarray of shape (n_rows, n_groups)
        The probabilities of groups if a row's label is negative, and if it is positive.
    positive : ndarray of bool
        Which rows have the positive label.
    groups : ndarray of int
        Each row's group. The compared groups come first; all others have the number after theirs.
    weights : ndarray
        How much each row counts.

    See Also
    --------
    fado.interventions.EvaluatedRows : Returns such rows.
    """

    scores: Floats
    group_probabilities: tuple[Floats, Floats]
    positive: Bools
    groups: Integers
    weights: Floats


class EvaluatedRows:
    """The rows that a model is evaluated on, validation rows first, then test rows, and predictions for them.

    Labels and groups of test rows are not included. Models are fitted when they are first needed.

    Parameters
    ----------
    scores : ndarray of shape (n_rows,)
        The probability of the positive label, by the model.
    positive : ndarray of bool
        Which validation rows have the positive label. The first rows are the validation rows.
    groups : ndarray of int
        The validation rows' groups. The compared groups come first; all others have the number after theirs.
    n_compared : int
        How many groups are compared.
    budget : Budget
        What sets the threshold.
    weights : ndarray, optional
        How much each validation row counts; None counts all equally.
    seed : int, default=0
        For random numbers.
    group_probabilities : callable, optional
        Returns the value of the property of the same name.
    known_groups : ndarray of int, optional
        The groups of all rows, for interventions that need them.
    training : callable, optional
        Returns the value of the property of the same name.
    teach : callable, optional
        Trains a regressor on numbers and weights of the training rows, and returns it with its predictions
        for all rows here.
    scorers : callable, optional
        Returns the model of the label and the model of the groups.

    See Also
    --------
    fado.interventions.BaseScoreIntervention : Gets these rows.

    Examples
    --------
    >>> scores, positive = np.array([0.2, 0.7, 0.4]), np.array([False, True])
    >>> settings = {"n_compared": 2, "budget": Budget("fpr", 0.05)}
    >>> rows = EvaluatedRows(scores, positive, np.array([0, 1]), **settings)
    >>> rows.n_validation, rows.weights
    (2, array([1., 1.]))
    """

    def __init__(
        self,
        scores: Floats,
        positive: Bools,
        groups: Integers,
        *,
        n_compared: int,
        budget: Budget,
        weights: Floats | None = None,
        seed: int = 0,
        group_probabilities: Callable[[], tuple[Floats, Floats]] | None = None,
        known_groups: Integers | None = None,
        training: Callable[[], KnownRows] | None = None,
        teach: Callable[[Floats, Floats | None], tuple[Scorer, Floats]] | None = None,
        scorers: Callable[[], tuple[Scorer, Scorer]] | None = None,
    ) -> None:
        self.scores, self.positive, self.groups = scores, positive, groups
        self.n_compared, self.budget, self.seed = n_compared, budget, seed
        self.weights = np.ones(len(positive)) if weights is None else weights
        self._group_probabilities, self._known_groups = group_probabilities, known_groups
        self._training, self._teach, self._scorers = training, teach, scorers
        self._lock, self._made = threading.RLock(), dict[Hashable, Any]()

    @property
    def n_validation(self) -> int:
        """The number of validation rows, which come first."""
        return len(self.positive)

    @property
    def group_probabilities(self) -> tuple[Floats, Floats]:
        """Each row's group probabilities, if its label is negative and if it is positive; needs a fit."""
        return self.once("groups", _present(self._group_probabilities, "models of the groups"))

    @property
    def known_groups(self) -> Integers:
        """Each row's group, also of test rows; only for interventions with ``needs_group=True``."""
        if self._known_groups is None:
            raise ValueError(
                "The groups of all rows are only for interventions that are registered with "
                "`needs_group=True`."
            )
        return self._known_groups

    @property
    def validation(self) -> KnownRows:
        """The validation rows, and predictions for them."""
        cut, (negative, positive) = self.n_validation, self.group_probabilities
        groups = (negative[:cut], positive[:cut])
        return KnownRows(self.scores[:cut], groups, self.positive, self.groups, self.weights)

    @property
    def training(self) -> KnownRows:
        """The training rows, scored by models of folds that they are not in; takes a fit for each fold."""
        return self.once("training", _present(self._training, "training rows"))

    def teach(self, numbers: Floats, weights: Floats | None = None) -> Floats:
        """Train a student, a regressor of the features, on numbers, and predict all rows.

        Parameters
        ----------
        numbers : ndarray of shape (n_training_rows,)
            What to learn of each training row, such as the log odds of new scores.
        weights : ndarray of shape (n_training_rows,), optional
            How much each counts, beside the weight that it has.

        Returns
        -------
        ndarray of shape (n_rows,)
        """
        return self.student(numbers, weights)[1]

    def student(self, numbers: Floats, weights: Floats | None = None) -> tuple[Scorer, Floats]:
        """Do the same as `teach`, and return the student too."""
        student: tuple[Scorer, Floats] = _present(self._teach, "training rows")(numbers, weights)
        return student

    def scorers(self) -> tuple[Scorer, Scorer]:
        """Return the model of the label and the model of the groups; needs their fits."""
        return _present(self._scorers, "models")()

    def once(self, name: Hashable, make: Callable[[], Any]) -> Any:
        """Return the object that was made under a name, or make it."""
        with self._lock:
            if name not in self._made:
                self._made[name] = make()
            return self._made[name]


def _present(part: Callable[..., Any] | None, what: str) -> Callable[..., Any]:
    if part is None:
        raise ValueError(f"These rows have no {what}.")
    return part


class BaseScoreIntervention(BaseEstimator, metaclass=ABCMeta):
    """Base class of interventions on scores: models are trained as usual, and their scores are changed.

    A subclass defines ``_rescore(rows)``, which gets `EvaluatedRows` and returns a score for each of them.
    It must not change its input, and all random numbers must come from ``rows.seed``. An experiment then sets
    the threshold and measures these scores as those of any model.

    See Also
    --------
    fado.interventions.BaseIntervention : Base class of interventions that change rows or weights.
    fado.interventions.register_intervention : Offers an intervention in experiments and commands.

    Examples
    --------
    >>> import numpy as np
    >>> from fado.interventions import BaseScoreIntervention, EvaluatedRows
    >>> from fado.metrics import Budget
    >>> class Rounded(BaseScoreIntervention):
    ...     def __init__(self, digits=1):
    ...         self.digits = digits
    ...     def _rescore(self, rows):
    ...         return rows.scores.round(self.digits)
    >>> scores, positive = np.array([0.23, 0.68]), np.array([False, True])
    >>> settings = {"n_compared": 2, "budget": Budget("fpr", 0.05)}
    >>> rows = EvaluatedRows(scores, positive, np.array([0, 1]), **settings)
    >>> Rounded().rescore(rows)
    array([0.2, 0.7])
    """

    uses_values: ClassVar[bool] = False
    changes: ClassVar[Literal["scores"]] = "scores"

    def rescore(self, rows: EvaluatedRows) -> Floats:
        """Return the new scores of rows, after checks.

        Parameters
        ----------
        rows : EvaluatedRows
            The rows, and predictions for them.

        Returns
        -------
        ndarray of shape (n_rows,)
        """
        self._check_settings()
        scores = np.asarray(self._rescore(rows), dtype=np.float64)
        if scores.shape != rows.scores.shape:
            raise ValueError(
                f"{type(self).__name__} must return one score for each of {len(rows.scores):,} rows, got an "
                f"array of shape {scores.shape}."
            )
        if not np.isfinite(scores).all():
            raise ValueError(f"{type(self).__name__} gives some rows scores that are not finite.")
        return np.ascontiguousarray(scores)

    def scorer(self, rows: EvaluatedRows) -> Scorer | None:
        """Return a model that scores any rows as `rescore` does these; None if there is no such model.

        Parameters
        ----------
        rows : EvaluatedRows
            As for `rescore`.
        """
        return None

    @classmethod
    def hands_over(cls) -> bool:
        """Return whether `scorer` returns a model."""
        return cls.scorer is not BaseScoreIntervention.scorer

    @abstractmethod
    def _rescore(self, rows: EvaluatedRows) -> Floats:
        """Compute new scores: arrays in, arrays out."""

    def _check_settings(self) -> None:
        """Refuse invalid settings before anything is computed."""
