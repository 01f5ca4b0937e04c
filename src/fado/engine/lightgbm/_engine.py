"""The LightGBM engine: bin the table once, fit many models on subsets of the bins.

Every fit runs in one thread, so many run side by side and the number of workers cannot change a result.
Scores of the rows left out are read from the booster's own validation scores.
"""

from __future__ import annotations

import copy
import threading
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar
from weakref import WeakKeyDictionary

from fado.engine._base import LabelArray, Model, Task, Watch
from fado.engine._constant import fit_constant
from fado.engine.lightgbm._bins import bin_columns, many_usual_values, subset
from fado.engine.lightgbm._boosting import Classes, grow_trees, read_scores
from fado.engine.lightgbm._features import Features
from fado.engine.lightgbm._leaves import LeafReader, codes_for
from fado.engine.lightgbm._matrix import entries_of, in_order
from fado.engine.lightgbm._model import LightGBMModel
from fado.engine.lightgbm._parameters import BINNING, draws_columns, honours, parameters_of
from fado.engine.lightgbm._threads import fitting
from fado.engine.lightgbm._trees import Forest
from fado.tabular import Table, Variable

if TYPE_CHECKING:
    import lightgbm

__all__ = ["LightGBMEngine"]


class LightGBMEngine:
    """Binned tables and the fits on them; see `fado.engine.Engine`.

    Pickled, the engine carries the columns; where it arrives, it bins them anew, in one thread.

    Parameters
    ----------
    table : Table
        The features.
    target : Variable, optional
        The target, if models of protected attributes are to see it.
    workers : int
        Threads for the binning; the bins do not depend on it.
    by_content : bool
        Lay the columns out by what they hold, so that their places and names change nothing: models that
        draw columns draw them by place, and the first of two equal splits wins. A column that a variable's
        models must not see may then be drawn in vain, so one binned table serves all variables. False does
        all as the estimators' own `fit` would.
    prefilter : bool
        Keep from models that draw columns those that they cannot split, as the estimators' own `fit` would.
        False bins the table once for all models that agree on the bins, however few rows they split off.

    Examples
    --------
    >>> import numpy as np
    >>> from lightgbm import LGBMRegressor
    >>> from fado.engine import Task
    >>> from fado.tabular import Table, Variable
    >>> engine = LightGBMEngine(Table.from_input(np.arange(100.0)[:, None]))
    >>> large = Variable("large", "continuous", np.repeat([0.0, 1.0], 50))
    >>> task = Task(LGBMRegressor(n_estimators=1, learning_rate=1.0), large, np.arange(100), seed=0)
    >>> engine.fit(task).score(np.array([0, 99])).round(6)
    array([0., 1.])
    """

    in_threads: ClassVar[bool] = True

    def __init__(
        self,
        table: Table,
        target: Variable | None = None,
        workers: int = 1,
        *,
        by_content: bool = False,
        prefilter: bool = True,
    ) -> None:
        self._n_rows = table.n_rows
        self._features = Features(table, target, by_content=by_content)
        self._by_content = by_content
        self._prefilter = prefilter
        self._binned_by: LightGBMEngine | None = None  # whose bins this one takes
        self._many_usual = prefilter and many_usual_values(self._features.columns)
        self._start(workers)

    def _start(self, workers: int) -> None:
        self._workers = workers
        self._lock = threading.Lock()
        self._binned: dict[Any, lightgbm.Dataset] = {}
        # Those of other tables go with their table; a target is held so that no other gets its identity.
        self._others: WeakKeyDictionary[Table, dict[Any, tuple[LabelArray | None, lightgbm.Dataset]]]
        self._others = WeakKeyDictionary()

    def __getstate__(self) -> dict[str, Any]:
        made_anew = ("_workers", "_lock", "_binned", "_others")
        return {name: value for name, value in self.__dict__.items() if name not in made_anew}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._start(workers=1)  # this process may be one of many on its machine

    @staticmethod
    def supports(estimator: Any, table: Table) -> bool:
        """Tell whether every parameter of the estimator is honoured."""
        return honours(estimator)

    def prepare(self, tasks: Iterable[Task]) -> None:
        """Bin what the tasks need, by several threads, which none may do while fits run."""
        for task in {_needs(task): task for task in tasks}.values():
            parameters = self._parameters(task)
            self._bins(task, parameters, self._layout(task, parameters))

    def with_rows(self, table: Table) -> LightGBMEngine:
        """Add rows in the bins that the table has."""
        joined = copy.copy(self)
        joined._n_rows += table.n_rows
        joined._features = self._features.with_rows(table)
        joined._binned_by = self
        joined._start(self._workers)
        return joined

    def fit(self, task: Task, stop: threading.Event | None = None, watch: Watch | None = None) -> Model:
        """Learn from a subset of the bins and score another, or another table in the same bins."""
        constant = fit_constant(task, first_class_left_out=True)
        if constant is not None:
            return constant
        parameters = self._parameters(task)
        layout = self._layout(task, parameters)
        binned, evaluation = self._bins(task, parameters, layout)
        parameters.setdefault("random_state", task.seed)  # once the bins are chosen, which all fits share
        classes = Classes(task.variable, task.variable.labels[task.rows])
        parameters |= classes.objective()
        seen = [float(self._features.sees(task.variable, j)) for j in layout]
        if not all(seen):
            parameters["feature_contri"] = seen
        in_bag = task.scored is None

        def enough(booster: lightgbm.Booster) -> bool:
            if watch is None or booster.current_iteration() % watch.every:
                return False
            return watch(classes.spread(read_scores(booster, training=in_bag)))

        with fitting():
            if task.scored is not None and not isinstance(task.scored, Table):
                evaluation = subset(binned, task.scored)
            training = subset(binned, task.rows, classes.labels, task.weights)
            booster = grow_trees(parameters, training, evaluation, stop, enough)
            scores = classes.spread(read_scores(booster, training=in_bag))
            return LightGBMModel(booster, scores, task.variable, classes, self._features, layout, parameters)

    def read_leaves(self, forests: Sequence[Forest], table: Table | None = None) -> LeafReader:
        """Make ready to read the leaves of all rows, or of those of another table.

        Parameters
        ----------
        forests : sequence of Forest
            Of models that this engine fitted, all to see the same columns.
        table : Table, optional
            The other table; its columns are found by name.
        """
        first = forests[0]
        if table is None:
            columns, n_rows = self._features.columns, self._n_rows
        else:
            columns, n_rows = self._features.of_table(table, None, first.variable), table.n_rows
        found = codes_for(tree for forest in forests for tree in forest.trees)
        codes = {
            place: code.encode(entries_of(columns, first.layout[place]), nan_is_zero=nan_is_zero)
            for place, (code, nan_is_zero) in found.items()
        }
        return LeafReader(codes, {place: code for place, (code, _) in found.items()}, n_rows)

    def _parameters(self, task: Task) -> dict[str, Any]:
        return parameters_of(task.estimator, many_usual=self._many_usual)

    def _layout(self, task: Task, parameters: dict[str, Any]) -> tuple[int, ...]:
        """Give the columns of a model in order: those it sees, or all where a mask on them will do."""
        if self._by_content or not draws_columns(parameters):
            return self._features.order
        return tuple(j for j in self._features.order if self._features.sees(task.variable, j))

    def _bins(
        self, task: Task, parameters: dict[str, Any], layout: tuple[int, ...]
    ) -> tuple[lightgbm.Dataset, lightgbm.Dataset | None]:
        """Give the binned table and, if the task scores another, that one in the same bins."""
        least_rows = 1
        if self._prefilter and draws_columns(parameters):  # LightGBM draws none that it cannot split
            least_rows = parameters.get("min_data_in_leaf", parameters["min_child_samples"])
        key = (layout, least_rows, *(parameters.get(name) for name in BINNING))
        with self._lock:
            if key not in self._binned:
                columns, bins = in_order(self._features.columns, layout), None
                if self._binned_by is not None:
                    bins, _ = self._binned_by._bins(replace(task, scored=None), parameters, layout)
                self._binned[key] = bin_columns(
                    columns, parameters, self._workers, bins, least_rows=least_rows
                )
            binned = self._binned[key]
            if not isinstance(task.scored, Table):
                return binned, None
            self._features.find(task.scored, task.variable)  # another variable may have seen fewer columns
            kept = self._others.setdefault(task.scored, {})
            target = task.scored_target if task.variable.sees_target else None
            if (key, id(target)) not in kept:
                theirs = self._features.of_table(task.scored, target, task.variable)
                other = bin_columns(
                    in_order(theirs, layout), parameters, self._workers, binned, least_rows=least_rows
                )
                kept[key, id(target)] = target, other
            return binned, kept[key, id(target)][1]


def _needs(task: Task) -> tuple[Any, ...]:
    """Give a key of all that decides which bins a task needs."""
    variable = task.variable
    identities = id(task.estimator), id(task.scored), id(task.scored_target)
    return (*identities, variable.excluded, variable.sees_target)
