"""The contract of valuators, the one list of them, and whether values belong to the rows at hand."""

from __future__ import annotations

import copy
import inspect
from abc import ABCMeta, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from typing import Any, ClassVar, Self, TypeVar

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator
from sklearn.utils import ClassifierTags

from fado._checks import ClassRegistry, seed_from
from fado._messages import list_names, warn_user
from fado._version import library_versions
from fado.tabular import LabelPattern, Problem, note_features, read_problem
from fado.valuation._provenance import Provenance, VariableNote
from fado.valuation._result import Valuation

Class = TypeVar("Class", bound=type)

_CLASSES = ClassRegistry("valuator")


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
    _two_classes: ClassVar[bool] = False  # whether the target must have two

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
        if self._two_classes:
            tags.classifier_tags = ClassifierTags(multi_class=False)
        return tags


def texts_of(estimators: Iterable[Any]) -> tuple[str, ...]:
    """Give estimators as they print, each in one line."""
    return tuple(" ".join(repr(estimator).split()) for estimator in estimators)


def provenance_of(
    algorithm: str, problem: Problem, seed: int, settings: Mapping[str, Any], estimator: Any = None
) -> Provenance:
    """Say how the values of a problem came about."""
    return Provenance(
        algorithm,
        settings=settings,
        seed=seed,
        estimators=None if estimator is None else texts_of([estimator]),
        variables={own.name: VariableNote(own.kind, own.classes) for own in problem.variables},
        versions=library_versions(),
        names_given=problem.names_given,
    )


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


def register_valuator(name: str) -> Callable[[Class], Class]:
    """Register a valuator class, as a decorator, under the name that configurations and commands use.

    Parameters
    ----------
    name : str
        A name that no other valuator has; otherwise the decorator raises a ValueError.
    """
    return _CLASSES.register(name)


def valuator_names() -> tuple[str, ...]:
    """List the names of the valuators, in the order in which they were registered."""
    return _CLASSES.names()


def valuator_class(name: str) -> Any:
    """Give the class of a valuator by its name; a ValueError lists the names if there is none."""
    return _CLASSES.find(name, "The algorithm")


def make_valuator(name: str, **settings: Any) -> Any:
    """Make a valuator by its name, with those of the settings that it takes; others are ignored.

    Parameters
    ----------
    name : str
        One of `valuator_names`; anything else raises a ValueError.
    **settings
        Parameters of the valuator.

    Examples
    --------
    >>> from fado.valuation import make_valuator
    >>> make_valuator("oob", n_bags=5, random_state=0)
    OutOfBagEntropy(n_bags=5, random_state=0)
    >>> make_valuator("inbag", n_bags=5, random_state=0)
    InBagEntropy(random_state=0)
    """
    kind = valuator_class(name)
    taken = inspect.signature(kind).parameters
    return kind(**{own: value for own, value in settings.items() if own in taken})


def target_pattern(codes: npt.NDArray[np.int32]) -> str:
    """Digest which rows share a label, in the rows' order; what the labels are called does not matter.

    Examples
    --------
    >>> import numpy as np
    >>> target_pattern(np.array([0, 0, 1])) == target_pattern(np.array([1, 1, 0]))
    True
    >>> target_pattern(np.array([0, 0, 1])) == target_pattern(np.array([0, 1, 0]))
    False
    """
    first = np.full(int(codes.max()) + 1, len(codes))
    first[codes[::-1]] = np.arange(len(codes))[::-1]
    by_appearance = np.argsort(np.argsort(first, kind="stable"), kind="stable").astype(np.int32)
    pattern = LabelPattern()
    pattern.add(by_appearance[codes])
    return pattern.hexdigest()


def is_same_pattern(provenance: Any, pattern: str | None, n_labels: int) -> bool:
    """Tell whether values were made with these labels in this order, as far as they tell."""
    if provenance is None or provenance.target_pattern is None or pattern is None:
        return True
    note = provenance.variables.get("y")
    if note is None or note.classes is None or n_labels != len(note.classes):
        return True  # labels of another number are another target, which tells nothing about the rows
    return bool(pattern == provenance.target_pattern)


def check_alignment(valuation: Any, problem: Problem) -> None:
    """Refuse a valuation that does not fit a problem; warn if it was made with other labels.

    Parameters
    ----------
    valuation : Valuation
        The values, or any other object with the property `protected`.
    problem : Problem
        The rows that the values are used for, as `fado.tabular.read_problem` gives them.

    Raises
    ------
    ValueError
        If the valuation has another number of rows, or no values for a protected attribute of the problem.
        Attributes are compared by name, and only if both sides were given names: an array without names has
        none, though its attribute is called "z". If either side has no attributes, nothing is compared.

    Warns
    -----
    UserWarning
        If the labels of the target, or the order of the rows, were others.
    """
    told = getattr(valuation, "provenance", None)
    valued = list(valuation.protected)
    if valued and problem.names_given and (told is None or told.names_given):
        for variable in problem.protected:
            if variable.name not in valued:
                raise ValueError(
                    f"`valuation` has values of {list_names(list(map(repr, valued)))}, and none of the "
                    f"protected attribute {variable.name!r} that `sensitive_features` asks for: pass the "
                    "valuation of that attribute."
                )
    n_rows = len(valuation) if hasattr(valuation, "__len__") else problem.n_rows
    if n_rows != problem.n_rows:
        raise ValueError(
            f"`valuation` has {n_rows} rows and X has {problem.n_rows}: pass the valuation of the same rows."
        )
    if told is not None and told.target_pattern is not None:
        codes, labels = problem.sources[0].encode()
        if not is_same_pattern(told, target_pattern(codes), len(labels)):
            warn_user(
                "`valuation` was made with other labels `y`, or with the rows in another order: pass the "
                "valuation of these very rows."
            )
