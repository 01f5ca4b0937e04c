"""The base class of valuators, their registry, and the check that values belong to given rows."""

from __future__ import annotations

import copy
import hashlib
import inspect
from abc import ABCMeta, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar, Self, TypeVar

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator
from sklearn.utils import ClassifierTags

from fado._checks import ClassRegistry, seed_from
from fado._messages import insert_parameters, list_names, warn_user
from fado._version import library_versions
from fado.tabular import Problem, note_features, read_problem
from fado.valuation._provenance import Provenance, VariableNote
from fado.valuation._result import Valuation

Class = TypeVar("Class", bound=type)

_CLASSES = ClassRegistry("valuator")


def valuator_parameters() -> None:
    """Describe what several valuators have; `insert_parameters` takes it from here.

    Parameters
    ----------
    sensitive_features : Series, array, DataFrame, dict, or name(s) of columns of X, optional
        The protected attributes. Without any, only the target is valued.
    sample_weight : array-like of shape (n_rows,), optional
        How much each row counts in the fits, such as survey weights. The weights are scaled to a mean of 1,
        so that values do not depend on their scale.
    validation : tuple of (X, y, sensitive_features), optional
        Validation data, on which effects are measured. Valuators that measure no effects, such as the
        entropies, ignore it.
    estimators : estimator or list of estimators, optional
        Unfitted scikit-learn estimators: classifiers for variables of classes, regressors for continuous
        ones. None means small LightGBM models, whose number of trees and learning rate are selected on rows
        that they have not seen.
    n_bags : int, default=10
        How many bags.
    unseen_fraction : float, default=0.2
        The share of the rows that each bag leaves out. ``n_bags * unseen_fraction`` must be at least 1.
    z_sees_target : bool, default=True
        Whether the models of protected attributes see the target as a feature.
    z_exclude : list of column names, or mapping of attribute to such a list, optional
        Features to hide from the models of all protected attributes (a list) or of single ones (a mapping).
        ``"age_*"`` means all columns whose names begin with ``age_``. A feature that alone determines an
        attribute is always hidden from its models, with a warning. Features that determine it only together
        are not hidden, but a warning names them.
    kinds : mapping of variable to {"classes", "continuous"}, optional
        Overrides the rule for the kind of a variable: text, booleans, categories and numbers with at most 20
        distinct values are classes, other numbers are continuous. The target is called ``"y"``.
    performance : {"tpr_at_fpr", "log_loss", "accuracy"}
        The metric that the values of ``"y"`` are effects on: the true-positive rate at the budget, the
        negative mean log-loss, or the accuracy at a probability threshold of 0.5.
    fairness : {"fpr_ratio", "fnr_ratio", "tpr_ratio", "selection_rate_ratio"}, default="fpr_ratio"
        The ratio that the values of each protected attribute are effects on, at the budget's threshold. The
        groups with the lowest and the highest rate determine it.
    max_fpr : float, default=0.05
        The budget, in (0, 1): the share of negatives that may be predicted positive.
    keep_models : bool, default=False
        Whether to keep the trained models, without the training rows. `value` needs them for new rows.
    X_new : array, sparse matrix, pandas, polars or pyarrow table of shape (n_rows, n_columns)
        The features of the new rows. Columns are matched by name, in any order, or by position if a table has
        no names. Columns that no model has seen are ignored. New categories count as missing.

    Attributes
    ----------
    valuation_ : Valuation
        The values.
    bags_ : list of ndarray
        The positions of the rows that each bag left out.
    excluded_columns_ : dict
        Per protected attribute, the features that were hidden from its models.
    seed_ : int
        The seed. Passed as `random_state`, it gives the same values again.
    models_ : ValuationModels
        The models; only with ``keep_models=True``.
    """


@insert_parameters(valuator_parameters)
class BaseValuator(BaseEstimator, metaclass=ABCMeta):
    """Base class of the valuators; a subclass defines the method ``_value``.

    `fit` reads its arguments into a `Problem`, turns the parameter `random_state` into a seed, and calls
    ``_value(problem, validation, seed)``, which returns a `Valuation`. Sample weights in that problem have a
    mean of 1. Any other object with `fit` and `valuation_` can be used as a valuator too.

    Attributes
    ----------
    {valuation_, seed_}
    sends_fits : bool
        Class attribute: whether fits run on the cluster that `fado.execution.on_cluster` sets. False unless a
        subclass says otherwise.

    See Also
    --------
    fado.valuation.register_valuator : Give a valuator a name for configurations and commands.

    Examples
    --------
    >>> import numpy as np
    >>> from fado.valuation import BaseValuator, Valuation
    >>> class RandomValues(BaseValuator):
    ...     def __init__(self, random_state=None):
    ...         self.random_state = random_state
    ...     def _value(self, problem, validation, seed):
    ...         rng = np.random.default_rng(seed)
    ...         names = [variable.name for variable in problem.variables]
    ...         values = {name: rng.normal(size=problem.n_rows) for name in names}
    ...         return Valuation.from_values(values)
    >>> X, y, sex = np.zeros((4, 1)), [0, 1, 0, 1], ["f", "f", "m", "m"]
    >>> valuator = RandomValues(random_state=0).fit(X, y, sensitive_features={"sex": sex})
    >>> valuator.valuation_["sex"].round(2)
    array([-0.54,  0.36,  1.3 ,  0.95])
    """

    sends_fits: ClassVar[bool] = False
    _two_classes: ClassVar[bool] = False  # whether the target must have two

    __metadata_request__fit: ClassVar = {
        "sensitive_features": True,
        "unknown": True,
        "sample_weight": True,
        "groups": True,
        "validation": True,
    }
    valuation_: Valuation
    seed_: int

    @insert_parameters(valuator_parameters)
    def fit(
        self,
        X: Any,
        y: Any,
        *,
        sensitive_features: Any = None,
        unknown: Any = None,
        sample_weight: Any = None,
        groups: Any = None,
        validation: Any = None,
    ) -> Self:
        """Value every row.

        Parameters
        ----------
        {X, y, sensitive_features, unknown, sample_weight, groups, validation}

        Returns
        -------
        self
            With `valuation_` and `seed_`.
        """
        problem = read_problem(
            X,
            y,
            sensitive_features,
            unknown=unknown,
            sample_weight=sample_weight,
            groups=groups,
            least_rows=2,
            warn_of_columns=True,
        )
        return self.fit_problem(problem, None if validation is None else read_validation(validation, unknown))

    def fit_problem(self, problem: Problem, validation: Problem | None = None) -> Self:
        """Value every row of a `Problem`: a table that has been read already.

        A fit that fails or is interrupted leaves this valuator unchanged.

        Parameters
        ----------
        problem : Problem
            The rows to value, as `fado.tabular.read_problem` returns them.
        validation : Problem, optional
            Validation data, on which effects are measured.

        Returns
        -------
        self
            With `valuation_` and `seed_`.
        """
        problem = problem.with_kinds(getattr(self, "kinds", None)).with_mean_weight_one()
        fitted = copy.copy(self)
        for name in [name for name in vars(fitted) if name.endswith("_")]:  # of an earlier fit
            delattr(fitted, name)
        note_features(fitted, problem.table)
        fitted.seed_ = seed_from(getattr(self, "random_state", None))
        valuation = fitted._value(problem, validation, fitted.seed_)
        pattern = target_pattern(problem.target.labels) if problem.target.kind == "classes" else None
        fitted.valuation_ = valuation.with_rows(
            problem.table.index, target_pattern=pattern, names_given=problem.names_given
        )
        self.__dict__.clear()
        self.__dict__.update(vars(fitted))
        return self

    @abstractmethod
    def _value(self, problem: Problem, validation: Problem | None, seed: int) -> Valuation:
        """Value every row."""

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
    """Return the `repr` of estimators, each in one line."""
    return tuple(" ".join(repr(estimator).split()) for estimator in estimators)


def provenance_of(
    algorithm: str, problem: Problem, seed: int, settings: Mapping[str, Any], estimators: Sequence[Any] = ()
) -> Provenance:
    """Describe how the values of a problem were computed."""
    return Provenance(
        algorithm,
        settings=settings,
        seed=seed,
        estimators=texts_of(estimators) or None,
        variables={
            variable.name: VariableNote(variable.kind, variable.classes) for variable in problem.variables
        },
        versions=library_versions(),
        names_given=problem.names_given,
        unknown=tuple(map(str, problem.unknown)) or None,
    )


def read_validation(validation: Any, unknown: Any = None) -> Problem:
    """Read validation data.

    Parameters
    ----------
    validation : tuple of (X, y, sensitive_features)
        The rows, as `fit` of a valuator takes them.
    unknown : value or list of values, optional
        Values of the protected attributes that mean the same as a missing one.

    Raises
    ------
    ValueError
        If it is not a tuple of three, or the rows are not valid.
    """
    if not isinstance(validation, tuple | list) or len(validation) != 3:
        raise ValueError("`validation` must be a tuple of three, (X, y, sensitive_features).")
    X, y, sensitive_features = validation
    return read_problem(X, y, sensitive_features, unknown=unknown)


def register_valuator(name: str) -> Callable[[Class], Class]:
    """Register a valuator class, as a decorator, under the name that configurations and commands use.

    Parameters
    ----------
    name : str
        A name that no other valuator has; otherwise the decorator raises a ValueError.

    See Also
    --------
    fado.valuation.BaseValuator : The class to derive from.
    fado.valuation.valuator_names : List what is registered.
    """
    return _CLASSES.register(name)


def valuator_names() -> tuple[str, ...]:
    """List the names of the valuators, in the order in which they were registered."""
    return _CLASSES.names()


def valuator_class(name: str) -> Any:
    """Return the class of a valuator by its name; if there is none, a ValueError lists the names."""
    return _CLASSES.find(name, "The algorithm")


def make_valuator(name: str, **settings: Any) -> Any:
    """Make a valuator by its name. Settings that it does not have are ignored.

    Parameters
    ----------
    name : str
        One of `valuator_names`; anything else raises a ValueError.
    **settings
        Parameters of the valuator.

    See Also
    --------
    fado.valuation.valuator_names : The names that can be made.

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
    return kind(**{setting: value for setting, value in settings.items() if setting in taken})


def target_pattern(codes: npt.NDArray[np.int32]) -> str:
    """Return a digest of which rows share a label, in the order of the rows; names of labels do not matter.

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
    return hashlib.blake2b(by_appearance[codes].data, digest_size=16).hexdigest()


def is_same_pattern(provenance: Any, pattern: str | None, n_labels: int) -> bool:
    """Return whether values were computed with these labels in this order, as far as is known."""
    if provenance is None or provenance.target_pattern is None or pattern is None:
        return True
    note = provenance.variables.get("y")
    if note is None or note.classes is None or n_labels != len(note.classes):
        return True  # labels of another number are another target, which says nothing about the rows
    return bool(pattern == provenance.target_pattern)


def check_alignment(valuation: Any, problem: Problem) -> None:
    """Raise an error if a valuation does not fit a problem; warn if it was computed with other labels.

    Parameters
    ----------
    valuation : Valuation
        The values, or any other object with the property `protected`.
    problem : Problem
        The rows that the values are used for, as `fado.tabular.read_problem` returns them.

    Raises
    ------
    ValueError
        If the valuation has another number of rows, or no values for a protected attribute of the problem.
        Attributes are compared by name, and only if both sides have names: the attribute of an array without
        names is called "z". If either side has no attributes, they are not compared.

    Warns
    -----
    UserWarning
        If the labels of the target, or the order of the rows, were different.
    """
    provenance = getattr(valuation, "provenance", None)
    valued = list(valuation.protected)
    if valued and problem.names_given and (provenance is None or provenance.names_given):
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
    if provenance is not None and provenance.target_pattern is not None:
        codes, labels = problem.sources[0].encode()
        if not is_same_pattern(provenance, target_pattern(codes), len(labels)):
            warn_user(
                "`valuation` was computed with other labels `y`, or with the rows in another order: pass "
                "the valuation of these rows."
            )
