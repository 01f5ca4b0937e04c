"""The generic engine: any scikit-learn estimator, through its own `fit` and `predict_proba` or `predict`."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, get_args

import numpy as np

from fado._checks import sklearn_seed
from fado._records import encode, record_from
from fado._typing import Floats, Integers
from fado.engine._base import (
    LabelArray,
    Model,
    Schema,
    Task,
    Watch,
    check_labels,
    check_target,
    count_rows,
    fit_constant,
)
from fado.engine._layout import (
    Form,
    Layout,
    MissingValuesError,
    explaining_missing,
    form_for,
    is_lightgbm,
    layout_for,
)
from fado.engine._lightgbm import LightGBMEngine
from fado.engine._skops import read_estimator, write_estimator
from fado.tabular import Kind, Table, Variable

_QUIET = {"n_jobs": 1, "verbosity": -1}  # LightGBM, unless the user has set them
_ROUNDING = 1e-4  # of probabilities in single precision, and to spare


def engine_class(estimator: Any, table: Table) -> type[LightGBMEngine] | type[SklearnEngine]:
    """Return the fastest engine that does everything as the estimator's own `fit` would.

    Examples
    --------
    >>> from lightgbm import LGBMClassifier
    >>> from sklearn.linear_model import LogisticRegression
    >>> from fado.tabular import Table
    >>> table = Table.from_input([[0.0, 1.0]])
    >>> engine_class(LGBMClassifier(), table).__name__
    'LightGBMEngine'
    >>> engine_class(LogisticRegression(), table).__name__
    'SklearnEngine'
    """
    return LightGBMEngine if LightGBMEngine.supports(estimator, table) else SklearnEngine


class SklearnEngine:
    """The table in the forms that estimators take, and the fits on them; see `fado.engine.Engine`.

    Fits run side by side in processes. Pickled, the engine carries the forms that were prepared; the table
    itself only if there are none.

    Parameters
    ----------
    table : Table
        The features.
    target : Variable, optional
        The target, if models of protected attributes are to see it.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LinearRegression
    >>> from fado.engine import Task
    >>> from fado.tabular import Table, Variable
    >>> engine = SklearnEngine(Table.from_input(np.array([[0.0], [1.0], [2.0]])))
    >>> doubled = Variable("doubled", "continuous", np.array([0.0, 2.0, np.nan]))
    >>> model = engine.fit(Task(LinearRegression(), doubled, np.array([0, 1], dtype=np.int32), seed=0))
    >>> model.score(np.array([2])).round(6)
    array([4.])
    """

    in_threads: ClassVar[bool] = False

    def __init__(self, table: Table, target: Variable | None = None) -> None:
        self._table: Table | None = table
        self._target = target
        self._layouts: dict[tuple[Form, frozenset[int]], tuple[Layout, Any]] = {}
        self._sparse = table.is_sparse

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_table": None if self._layouts else self._table}

    @staticmethod
    def supports(estimator: Any, table: Table) -> bool:
        """Take any estimator and any table."""
        return True

    def prepare(self, tasks: Iterable[Task]) -> None:
        """Lay the table out in every form that the tasks need."""
        for task in tasks:
            self._layout(task)

    def fit(self, task: Task, stop: threading.Event | None = None, watch: Watch | None = None) -> Model:
        """Learn with the estimator's own `fit`, which can be neither stopped nor watched."""
        from sklearn import config_context
        from sklearn.base import clone
        from threadpoolctl import threadpool_limits

        constant = fit_constant(task)
        if constant is not None:
            return constant
        layout, features = self._layout(task)
        learnt = clone(task.estimator)
        given = _weights_given(learnt, task.weights)
        parameters = learnt.get_params(deep=True)
        chosen: dict[str, Any] = {
            name: sklearn_seed(task.seed)
            for name, value in parameters.items()
            if (name == "random_state" or name.endswith("__random_state")) and value is None
        }
        if is_lightgbm(learnt):
            chosen |= {name: value for name, value in _QUIET.items() if parameters.get(name) is None}
        learnt.set_params(**chosen)
        # One thread per fit: fits run side by side, and the number of threads may change the last digits.
        shown = _take(features, task.rows)
        target = self._target if task.variable.sees_target else None
        if target is not None:
            shown = layout.with_target(shown, target.take(task.rows))
        routed = config_context(enable_metadata_routing=False)  # weights go to the step that takes them
        with explaining_missing(task.estimator, shown, layout), threadpool_limits(1), routed:
            learnt.fit(shown, task.variable.labels[task.rows], **given)
        return SklearnModel(learnt, layout, features, target, task)

    def _layout(self, task: Task) -> tuple[Layout, Any]:
        """Return the form that a task's estimator takes, laid out once for all that share it."""
        variable = task.variable
        check_target(variable, self._target)
        form = form_for(task.estimator, sparse=self._sparse)
        key = form, variable.excluded
        if key not in self._layouts:
            if self._table is None:
                raise ValueError(
                    f"The engine came from another process without what {type(task.estimator).__name__} "
                    "takes: call `prepare` with all tasks before."
                )
            layout = layout_for(form, self._table, variable.excluded)
            self._layouts[key] = layout, layout.lay_out(self._table)
        return self._layouts[key]


class SklearnModel:
    """A fitted estimator, and the rows laid out for it; see `fado.engine.Model`."""

    gains = None
    n_trees = None

    def __init__(
        self, estimator: Any, layout: Layout, features: Any, target: Variable | None, task: Task
    ) -> None:
        self._name = task.variable.name
        self._features = features
        self._target = target
        rowless = None if target is None else replace(target, labels=target.labels[:0])
        self._scorer = SklearnScorer(estimator, layout, len(task.variable.classes), rowless)
        self.scores = self.score(task.rows if task.scored is None else task.scored, task.scored_target)

    def score(self, rows: Integers | Table, target: LabelArray | None = None) -> Floats:
        """Score rows through the estimator's `predict_proba` or `predict`."""
        layout = self._scorer.layout
        features = layout.lay_out(rows) if isinstance(rows, Table) else _take(self._features, rows)
        if self._target is not None:
            labels = target
            if labels is None and not isinstance(rows, Table):
                labels = self._target.labels[rows]
            labels = check_labels(labels, count_rows(rows), f"The models of {self._name!r} see")
            features = layout.with_target(features, replace(self._target, labels=labels))
        return self._scorer.predict(features)

    def detach(self) -> SklearnScorer:
        """Return the estimator, and how to lay out rows for it."""
        return self._scorer


@dataclass(frozen=True, eq=False)
class SklearnScorer:
    """A fitted estimator, and how to lay out rows for it; see `fado.engine.Scorer`."""

    estimator: Any
    layout: Layout
    n_classes: int = 2
    target: Variable | None = None  # without its rows, if the estimator sees it

    kind: ClassVar[str] = "sklearn"

    @property
    def sees_target(self) -> bool:
        """Whether the estimator sees the target."""
        return self.target is not None

    @property
    def schema(self) -> Schema:
        """The columns of the table that the estimator learnt from."""
        return self.layout.schema

    def score(self, table: Table, target: LabelArray | None = None) -> Floats:
        """Score rows; an error of the estimator is one of the rows."""
        features = self.layout.lay_out(table)
        if self.target is not None:
            theirs = replace(self.target, labels=check_labels(target, table.n_rows))
            features = self.layout.with_target(features, theirs)
        try:
            return self.predict(features)
        except MissingValuesError:
            raise
        except Exception as error:
            reason = (str(error) or type(error).__name__).splitlines()[0]
            raise ValueError(f"{type(self.estimator).__name__} cannot score these rows: {reason}") from error

    def predict(self, features: Any) -> Floats:
        """Return the probabilities of all classes, or numbers, for rows that were laid out."""
        from threadpoolctl import threadpool_limits

        estimator, predict = self.estimator, "predict_proba" if self.n_classes else "predict"
        with explaining_missing(estimator, features, self.layout), threadpool_limits(1):
            predicted = np.asarray(getattr(estimator, predict)(features), dtype=np.float64)
        if self.n_classes == 0:
            return predicted
        classes = np.asarray(estimator.classes_, dtype=np.intp)
        if predicted.shape != (len(predicted), len(classes)):
            raise ValueError(
                f"`{type(estimator).__name__}` gave probabilities of shape {predicted.shape} for "
                f"{len(classes)} classes: `predict_proba` must give one column per class."
            )
        spread = np.zeros((len(predicted), self.n_classes))
        spread[:, classes] = predicted  # also of those that the estimator never saw
        sums = spread.sum(axis=1, keepdims=True)
        with np.errstate(invalid="ignore", divide="ignore"):
            # Rounding is put right; what is no distribution stays as it is, for those who read it to refuse.
            return np.where(np.abs(sums - 1.0) <= _ROUNDING, spread / sums, spread)

    def parts(self) -> tuple[dict[str, Any], bytes]:
        """Return how to lay out rows, and the estimator as skops writes it."""
        names = None if self.layout.names is None else tuple(self.layout.names.tolist())
        if not all(type(name) in (str, int) for name in names or ()):
            raise ValueError(
                f"{type(self.estimator).__name__} cannot be saved: it learnt from columns whose names are "
                "neither text nor whole numbers; rename them and train it again."
            )
        content, estimator = write_estimator(self.estimator)
        target = None
        if self.target is not None:
            target = _Target(self.target.name, tuple(map(str, self.target.classes)))
        form, kept, schema = self.layout.form, self.layout.kept, self.schema
        parts = _Parts(form, kept, schema, estimator, self.n_classes, names, target)
        return {"kind": self.kind, **encode(parts)}, content

    @classmethod
    def from_parts(cls, plain: Mapping[str, Any], content: bytes) -> SklearnScorer:
        """Read what `parts` returned."""
        import pandas as pd

        parts = record_from(_Parts, plain, "an estimator")
        form: Any = parts.form
        n_names = None if parts.names is None else len(parts.names)
        if not (
            form in get_args(Form)
            and len(parts.schema.levels) == len(parts.schema.names)
            and set(parts.kept) <= set(range(len(parts.schema.names)))
            and n_names == (len(parts.kept) if form in ("frame", "columns") else None)
            and parts.n_classes >= 0
        ):
            raise ValueError("The description of the estimator is broken: its columns do not fit together.")
        names = None if parts.names is None else pd.Index(parts.names)
        target = None
        if parts.target is not None:
            kind: Kind = "classes" if parts.target.classes else "continuous"
            target = Variable(parts.target.name, kind, np.zeros(0), parts.target.classes)
        estimator = read_estimator(content, parts.estimator)
        name, n_classes = type(estimator).__name__, parts.n_classes
        if n_classes == 0 and not callable(getattr(type(estimator), "predict", None)):
            raise ValueError(f"The content is of {name}, which cannot predict.")
        if n_classes:
            classes = np.asarray(getattr(estimator, "classes_", None))
            fits = hasattr(estimator, "predict_proba") and classes.ndim == 1 and classes.dtype.kind in "iu"
            if not fits or len(set(classes)) != len(classes) or not set(classes) <= set(range(n_classes)):
                raise ValueError(
                    f"The content is of {name}, which gives no probabilities for {n_classes} classes."
                )
        return cls(estimator, Layout(form, parts.kept, parts.schema, names), n_classes, target)


@dataclass(frozen=True)
class _Target:
    """The target that an estimator sees."""

    name: str
    classes: tuple[str, ...]


@dataclass(frozen=True)
class _Parts:
    """What is saved of a scorer, except its estimator."""

    form: str
    kept: tuple[int, ...]
    schema: Schema
    estimator: str
    n_classes: int
    names: tuple[str | int, ...] | None = None
    target: _Target | None = None


def weights_refused(estimator: Any) -> str | None:
    """Return why an estimator's `fit` takes no weights; None if it, or a pipeline's last step, takes them."""
    from sklearn.pipeline import Pipeline
    from sklearn.utils.validation import has_fit_parameter

    last = estimator
    while isinstance(last, Pipeline):
        for _, step in last.steps:
            if hasattr(step, "fit_resample"):
                name = type(step).__name__
                return f"A pipeline with `{name}`, which changes the rows, takes no `sample_weight`"
        last = last.steps[-1][1]
    taken = has_fit_parameter(last, "sample_weight")
    return None if taken else f"`{type(last).__name__}` takes no `sample_weight`"


def _weights_given(estimator: Any, weights: Any) -> dict[str, Any]:
    """Return the arguments by which `fit` takes weights; a pipeline passes them to its last step."""
    from sklearn.pipeline import Pipeline

    if weights is None:
        return {}
    refused = weights_refused(estimator)
    if refused is not None:
        raise ValueError(f"{refused}: use an estimator that does, or sample rows instead of weighting them.")
    prefix, last = "", estimator
    while isinstance(last, Pipeline):
        name, last = last.steps[-1]
        prefix += f"{name}__"
    return {f"{prefix}sample_weight": weights}


def _take(features: Any, rows: Integers) -> Any:
    return features.iloc[rows] if hasattr(features, "iloc") else features[rows]
