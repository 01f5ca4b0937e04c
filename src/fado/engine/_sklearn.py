"""The generic engine: any scikit-learn estimator, through its own `fit` and `predict_proba` or `predict`."""

from __future__ import annotations

import copy
import threading
from collections.abc import Iterable
from dataclasses import replace
from typing import Any, ClassVar

from fado.engine._base import FloatArray, LabelArray, Model, Rows, Task, Watch, count_rows
from fado.engine._constant import fit_constant
from fado.engine._layout import Form, Layout, form_for, is_lightgbm, with_labels
from fado.engine._missing import explaining_missing
from fado.engine._sklearn_scorer import SklearnScorer, predict_rows
from fado.engine._target import check_target, replace_target
from fado.tabular import Table, Variable

__all__ = ["SklearnEngine", "SklearnModel"]

_QUIET = {"n_jobs": 1, "verbosity": -1}  # LightGBM, unless the user has set them


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
        self._layouts: dict[tuple[Form, frozenset[int], bool], Layout] = {}
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

    def with_rows(self, table: Table) -> SklearnEngine:
        """Add rows to every form that the table was laid out in."""
        joined = copy.copy(self)
        joined._table = None
        joined._layouts = {key: layout.with_rows(table) for key, layout in self._layouts.items()}
        return joined

    def fit(self, task: Task, stop: threading.Event | None = None, watch: Watch | None = None) -> Model:
        """Learn through the estimator's own `fit`, which can be neither stopped nor watched."""
        from sklearn import config_context
        from sklearn.base import clone
        from threadpoolctl import threadpool_limits

        constant = fit_constant(task, first_class_left_out=False)
        if constant is not None:
            return constant
        layout = self._layout(task)
        learnt = clone(task.estimator)
        given = _weights_given(learnt, task.weights)
        _set_seed(learnt, task.seed)
        # One thread per fit: fits run side by side, and the number of threads may change the last digits.
        features = _take(layout.features, task.rows)
        routed = config_context(enable_metadata_routing=False)  # weights go to the step that takes them
        with explaining_missing(task.estimator, layout.plan, features), threadpool_limits(1), routed:
            learnt.fit(features, task.variable.labels[task.rows], **given)
        return SklearnModel(learnt, task, layout, self._target)

    def _layout(self, task: Task) -> Layout:
        """Give the form that a task's estimator takes, laid out once for all that share it."""
        variable = task.variable
        check_target(variable, self._target)
        form = form_for(task.estimator, sparse=self._sparse)
        key = form, variable.excluded, variable.sees_target
        if key not in self._layouts:
            if self._table is None:
                raise ValueError(
                    f"The engine came from another process without what {type(task.estimator).__name__} "
                    "takes: call `prepare` with all tasks before."
                )
            target = self._target if variable.sees_target else None
            self._layouts[key] = Layout(form, self._table, variable.excluded, target)
        return self._layouts[key]


class SklearnModel:
    """A fitted estimator, and how to lay out rows for it; see `fado.engine.Model`.

    Parameters
    ----------
    estimator : estimator
        Fitted.
    task : Task
        What was learnt, and the rows to score at once.
    layout : Layout
        What the estimator sees.
    target : Variable or None
        The target of the engine's table.
    """

    gains = None
    n_trees = None

    def __init__(self, estimator: Any, task: Task, layout: Layout, target: Variable | None) -> None:
        self.estimator = estimator
        self._variable = task.variable
        self._layout = layout
        self._target = target
        self.scores = self.score(task.rows if task.scored is None else task.scored, task.scored_target)

    def score(self, rows: Rows | Table, target: LabelArray | None = None) -> FloatArray:
        """Score rows through the estimator's `predict_proba` or `predict`."""
        from threadpoolctl import threadpool_limits

        theirs = None
        if target is not None or isinstance(rows, Table):
            theirs = replace_target(self._target, target, count_rows(rows), self._variable)
        if isinstance(rows, Table):
            features = self._layout.plan.lay_out(rows, theirs)
        else:
            features = _take(self._layout.features, rows)
            features = features if theirs is None else with_labels(features, theirs)
        with explaining_missing(self.estimator, self._layout.plan, features), threadpool_limits(1):
            return predict_rows(self.estimator, features, len(self._variable.classes))

    def detach(self) -> SklearnScorer:
        """Give the estimator, and how to lay out rows for it."""
        seen = self._target if self._variable.sees_target else None
        target = None if seen is None else replace(seen, labels=seen.labels[:0])
        return SklearnScorer(self.estimator, self._layout.plan, len(self._variable.classes), target)


def _weights_given(estimator: Any, weights: Any) -> dict[str, Any]:
    """Give the arguments by which `fit` takes weights; a pipeline passes them to its last step."""
    from sklearn.pipeline import Pipeline
    from sklearn.utils.validation import has_fit_parameter

    if weights is None:
        return {}
    prefix, last = "", estimator
    while isinstance(last, Pipeline):
        name, last = last.steps[-1]
        prefix += f"{name}__"
    if not has_fit_parameter(last, "sample_weight"):
        raise ValueError(
            f"`{type(last).__name__}` takes no `sample_weight`: use an estimator that does, or draw rows "
            "instead of weighing them."
        )
    return {f"{prefix}sample_weight": weights}


def _set_seed(model: Any, seed: int) -> None:
    """Seed whatever draws at random and was left unseeded; keep LightGBM quiet and to one thread."""
    parameters = model.get_params(deep=True)
    chosen: dict[str, Any] = {
        name: seed
        for name, value in parameters.items()
        if (name == "random_state" or name.endswith("__random_state")) and value is None
    }
    if is_lightgbm(model):
        chosen |= {name: value for name, value in _QUIET.items() if parameters.get(name) is None}
    model.set_params(**chosen)


def _take(features: Any, rows: Rows) -> Any:
    return features.iloc[rows] if hasattr(features, "iloc") else features[rows]
