"""The contract of valuators: read the problem, seed, value, say where the values came from."""

from __future__ import annotations

import copy
from abc import ABCMeta, abstractmethod
from collections.abc import Iterable
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator

from fado.tabular import Problem, note_features, read_problem
from fado.valuation._alignment import target_pattern
from fado.valuation._result import Valuation

__all__ = ["BaseValuator", "read_validation", "seed_from", "texts_of"]


class BaseValuator(BaseEstimator, metaclass=ABCMeta):
    """Base class of the valuators; a subclass defines the method ``_value``.

    `fit` reads its arguments into a `Problem`, turns the parameter `random_state` into a seed, and calls
    ``_value(problem, validation, seed)``, which returns a `Valuation`. Weights in that problem have a mean of
    1. Where a valuator is expected, any other object with `fit` and `valuation_` works as well.

    Attributes
    ----------
    valuation_ : Valuation
        The values.
    seed_ : int
        The seed; as `random_state` it gives the same values again.
    sends_fits : bool
        Class attribute: whether its fits run on the cluster that `fado.execution.on_cluster` sets. False
        unless a subclass says otherwise.

    Examples
    --------
    >>> import numpy as np
    >>> from fado.valuation import BaseValuator, Valuation
    >>> class RandomValues(BaseValuator):
    ...     def __init__(self, random_state=None):
    ...         self.random_state = random_state
    ...     def _value(self, problem, validation, seed):
    ...         generator = np.random.default_rng(seed)
    ...         return Valuation.from_values(
    ...             {variable.name: generator.normal(size=problem.n_rows) for variable in problem.variables}
    ...         )
    >>> X, y, sex = np.zeros((4, 1)), [0, 1, 0, 1], ["f", "f", "m", "m"]
    >>> RandomValues(random_state=0).fit(X, y, sensitive_features={"sex": sex}).valuation_["sex"].round(2)
    array([-0.54,  0.36,  1.3 ,  0.95])
    """

    sends_fits: ClassVar[bool] = False

    __metadata_request__fit: ClassVar = {
        "sensitive_features": True,
        "sample_weight": True,
        "groups": True,
        "validation": True,
    }
    valuation_: Valuation
    seed_: int

    def fit(
        self,
        X: Any,
        y: Any,
        *,
        sensitive_features: Any = None,
        sample_weight: Any = None,
        groups: Any = None,
        validation: Any = None,
    ) -> Self:
        """Value every row.

        Parameters
        ----------
        X : array, sparse matrix, pandas, polars or pyarrow table of shape (n_rows, n_columns)
            The features. Strings, categories and missing values are fine.
        y : array-like of shape (n_rows,)
            The target.
        sensitive_features : Series, array, DataFrame, dict, or name(s) of columns of X, optional
            The protected attributes. Without any, the target alone is valued.
        sample_weight : array-like of shape (n_rows,), optional
            How much each row counts in the models' fits, such as survey weights. They are scaled to a mean
            of 1, so that values do not depend on their scale.
        groups : array-like of shape (n_rows,), optional
            Which rows belong together, such as those of one person or one month. A bag holds or leaves out
            all of them together.
        validation : tuple of (X, y, sensitive_features), optional
            Held-out rows to measure effects on. Valuators that measure no effects, such as the entropies,
            accept and ignore it, so that valuators can be exchanged.

        Returns
        -------
        self
            With `valuation_` and `seed_`.
        """
        problem = read_problem(
            X, y, sensitive_features, sample_weight=sample_weight, groups=groups, least_rows=2
        )
        return self.fit_problem(problem, None if validation is None else read_validation(validation))

    def fit_problem(self, problem: Problem, validation: Problem | None = None) -> Self:
        """Value every row of a `Problem`: a table that has been read already.

        A fit that fails or is interrupted leaves this valuator as it was.

        Parameters
        ----------
        problem : Problem
            The rows to value, as `fado.tabular.read_problem` gives them.
        validation : Problem, optional
            Held-out rows to measure effects on, as `read_validation` gives them.

        Returns
        -------
        self
            With `valuation_` and `seed_`.
        """
        problem = problem.with_kinds(getattr(self, "kinds", None)).with_mean_weight_one()
        fitted = copy.copy(self)
        note_features(fitted, problem.table)
        fitted.seed_ = seed_from(getattr(self, "random_state", None))
        valuation = fitted._value(problem, validation, fitted.seed_)
        pattern = target_pattern(problem.target.labels) if problem.target.kind == "classes" else None
        valuation = valuation.with_provenance(names_given=problem.names_given)
        fitted.valuation_ = valuation.with_rows(problem.table.index, pattern)
        self.__dict__ = fitted.__dict__
        return self

    @abstractmethod
    def _value(self, problem: Problem, validation: Problem | None, seed: int) -> Valuation:
        """Value every row."""

    def _default_models(self, n_columns: int) -> list[Any]:
        """Give the unfitted models of a table with so many columns where the user names none."""
        return []

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        return tags


def texts_of(estimators: Iterable[Any]) -> tuple[str, ...]:
    """Give estimators as they print, each in one line."""
    return tuple(" ".join(repr(estimator).split()) for estimator in estimators)


def seed_from(random_state: Any) -> int:
    """Turn a `random_state` into one whole number that can be stored.

    Parameters
    ----------
    random_state : int, numpy.random.Generator, numpy.random.RandomState or None
        A whole number is given back as it is. From a generator one number is drawn; None draws it from
        numpy's global generator.

    Raises
    ------
    ValueError
        If it is a negative number, or none of these.
    """
    if isinstance(random_state, int | np.integer) and not isinstance(random_state, bool):
        if random_state < 0:
            raise ValueError(f"`random_state` must not be negative, got {random_state}.")
        return int(random_state)
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**31))
    from sklearn.utils import check_random_state

    try:
        generator = check_random_state(random_state)
    except ValueError:
        raise ValueError(
            f"`random_state` must be a whole number, a numpy generator or None, got {random_state!r}."
        ) from None
    return int(generator.randint(2**31 - 1))


def read_validation(validation: Any) -> Problem:
    """Read the held-out rows that effects are measured on.

    Parameters
    ----------
    validation : tuple of (X, y, sensitive_features)
        The rows, as a valuator's `fit` takes them.

    Raises
    ------
    ValueError
        If it is not a tuple of three, or the rows are not valid.
    """
    if not isinstance(validation, tuple | list) or len(validation) != 3:
        raise ValueError("`validation` must be a tuple of three, (X, y, sensitive_features).")
    X, y, sensitive_features = validation
    return read_problem(X, y, sensitive_features)
