"""The LightGBM engine: bin the table once, fit many models on subsets of the bins.

Every fit runs in one thread, so that many run in parallel and the number of workers does not change a result.
Scores of the rows left out are read from the booster's own validation scores.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar
from weakref import WeakKeyDictionary

import numpy as np

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
    fit_constant,
    of_both_classes,
)
from fado.engine._bins import BINNING, Columns, bin_columns, columns_of, fitting, subset
from fado.engine._trees import Forest, LeafReader
from fado.tabular import ShelvedTable, Table, Variable

if TYPE_CHECKING:
    import lightgbm

# What a fit on shared bins honours as the estimator's own `fit` would.
_HONOURED = """
boosting_type num_leaves max_depth learning_rate n_estimators subsample_for_bin objective min_split_gain
min_child_weight min_child_samples subsample subsample_freq colsample_bytree reg_alpha reg_lambda random_state
boost_from_average max_bin min_data_in_bin colsample_bynode feature_fraction feature_fraction_bynode
bagging_fraction bagging_freq bagging_seed feature_fraction_seed min_data_in_leaf min_sum_hessian_in_leaf
min_gain_to_split lambda_l1 lambda_l2 max_delta_step path_smooth scale_pos_weight is_unbalance cat_l2
cat_smooth min_data_per_group max_cat_threshold max_cat_to_onehot data_sample_strategy top_rate other_rate
force_col_wise force_row_wise
"""
_WITHOUT_EFFECT = "class_weight importance_type n_jobs num_threads nthread verbose verbosity silent"
_CLASS_OBJECTIVES = {None, "binary", "multiclass", "softmax"}
_NUMBER_OBJECTIVES = {None, "regression_l2", "l2", "mean_squared_error", "mse"}
_SAVED_NUMBER_OBJECTIVES = {"regression", "huber", "fair", "poisson"}  # as LightGBM's text calls them
# What draws columns at random: a column that is only masked out would still be drawn.
_COLUMN_DRAWS = ("colsample_bytree", "colsample_bynode", "feature_fraction", "feature_fraction_bynode")

# Chosen by benchmarks/default_models.py: the most faithful ranking of rows per second.
_DEFAULTS: dict[str, Any] = {
    "n_estimators": 45,
    "learning_rate": 0.28,  # fast; `fado.valuation` slows models down that need it
    "num_leaves": 24,
    "max_depth": 8,  # a deeper chain of splits costs as much time as a full tree and predicts less
    "reg_lambda": 2.0,  # without it, a class of a few rows upsets the others
    "max_bin": 511,  # a bin for each of some hundred codes; costs next to nothing
}
# A tree sees a few columns, for effects of several together, and a share of the table's.
_COLUMNS_SEEN, _AND_SHARE = 1.5, 0.55


def default_estimators(n_columns: int) -> list[Any]:
    """Make the default models that value the rows of a table with this number of columns.

    Examples
    --------
    >>> classifier, regressor = default_estimators(10)
    >>> classifier.colsample_bytree
    0.7
    """
    from lightgbm import LGBMClassifier, LGBMRegressor

    share = min(_COLUMNS_SEEN / max(n_columns, 1) + _AND_SHARE, 1.0)
    parameters = _DEFAULTS | {"colsample_bytree": round(share, 3)}
    return [LGBMClassifier(**parameters), LGBMRegressor(**parameters)]


class LightGBMEngine:
    """Binned tables and the fits on them; see `fado.engine.Engine`.

    Pickled, the engine carries the columns; it bins them again when it is unpickled, in one thread.

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
        self.schema = Schema.of(table)
        self.n_columns = table.n_columns
        self.is_sparse = table.is_sparse
        self._target = target
        self._shelved = table if isinstance(table, ShelvedTable) else None
        self._by_content = by_content
        self._prefilter = prefilter
        self._start(table, workers)
        digests = self.columns.digests() if by_content else range(self.columns.n_columns)
        self._order = tuple(sorted(range(self.columns.n_columns), key=digests.__getitem__))
        self._many_usual = prefilter and self.columns.has_many_usual()

    def _start(self, table: Table | None, workers: int) -> None:
        if table is not None:
            columns = columns_of(table, self.schema, range(self.n_columns), sparse=self.is_sparse)
            self.columns = columns if self._target is None else columns.with_target(self._target)
        self._workers = workers
        self._lock = threading.Lock()
        self._binned: dict[Any, lightgbm.Dataset] = {}
        # Those of other tables go with their table; a target is held so that no other gets its identity.
        self._others: WeakKeyDictionary[Table, dict[Any, Any]] = WeakKeyDictionary()

    def __getstate__(self) -> dict[str, Any]:
        made_anew = {"_workers", "_lock", "_binned", "_others"}
        if self._shelved is not None:  # its columns are in a file
            made_anew.add("columns")
        return {name: value for name, value in self.__dict__.items() if name not in made_anew}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._start(self._shelved, workers=1)  # this process may be one of many on its machine

    @staticmethod
    def supports(estimator: Any, table: Table) -> bool:
        """Return whether every parameter of the estimator is honoured.

        Custom objectives, class weights, early stopping and whatever else is not on the list of honoured
        parameters go through the estimator's own `fit` instead.
        """
        from lightgbm import LGBMClassifier, LGBMRegressor

        if type(estimator) not in (LGBMClassifier, LGBMRegressor):
            return False
        parameters = estimator.get_params()
        objective, seed = parameters["objective"], parameters["random_state"]
        numbers = _NUMBER_OBJECTIVES | _SAVED_NUMBER_OBJECTIVES
        return (
            not callable(objective)
            and objective in (_CLASS_OBJECTIVES if isinstance(estimator, LGBMClassifier) else numbers)
            and parameters.get("class_weight") is None
            and parameters["boosting_type"] in ("gbdt", "goss")
            and (seed is None or isinstance(seed, int | np.integer))
            and set(parameters) <= {*_HONOURED.split(), *_WITHOUT_EFFECT.split()}
        )

    def prepare(self, tasks: Iterable[Task]) -> None:
        """Bin what the tasks need, with several threads, which is not possible while fits run."""
        needs: dict[Any, Task] = {}  # by all that decides which bins a task needs
        for task in tasks:
            given = id(task.estimator), id(task.scored), id(task.scored_target)
            needs[*given, task.variable.excluded, task.variable.sees_target] = task
        for task in needs.values():
            self._bins(task)

    def fit(self, task: Task, stop: threading.Event | None = None, watch: Watch | None = None) -> Model:
        """Learn from a subset of the bins and score another, or another table in the same bins."""
        import lightgbm

        constant = fit_constant(task)
        if constant is not None:
            return constant
        variable = task.variable
        parameters, layout, binned, evaluation = self._bins(task)
        parameters.setdefault("random_state", task.seed)  # once the bins are chosen, which all fits share
        labels, present = variable.labels[task.rows], tuple[int, ...]()
        if variable.kind == "classes":  # codes into the classes that occur
            occurs = np.bincount(labels, minlength=len(variable.classes)) > 0
            labels, present = (np.cumsum(occurs) - 1)[labels], tuple(np.flatnonzero(occurs).tolist())
            several = {"objective": "multiclass", "num_class": len(present)}
            parameters |= {"objective": "binary"} if len(present) == 2 else several
        seen = self.seen(variable)
        if not seen.issuperset(layout):
            parameters["feature_contri"] = [float(j in seen) for j in layout]

        def scores() -> Floats:
            """Read the booster's own predictions for the rows it was trained or measured on."""
            read: list[Floats] = []

            def keep(predicted: Floats, _: Any) -> tuple[str, float, bool]:
                read.append(predicted.copy())
                return "kept", 0.0, True

            (booster.eval_train if task.scored is None else booster.eval_valid)(keep)
            return _spread(read[0], present, len(variable.classes))

        with fitting():
            if task.scored is not None and not isinstance(task.scored, Table):
                evaluation = subset(binned, task.scored)
            training = subset(binned, task.rows, labels, task.weights)
            given = {name: value for name, value in parameters.items() if name != "n_estimators"}
            booster = lightgbm.Booster(given, training)
            if evaluation is not None:
                booster.add_valid(evaluation, "evaluation")
            for _ in range(parameters["n_estimators"]):
                if stop is not None and stop.is_set():
                    break
                booster.update()
                if watch is None or booster.current_iteration() % watch.every:
                    continue
                if watch(scores()):
                    break
            return LightGBMModel(scores(), booster, variable, present, self, layout, parameters)

    def read_leaves(self, forest: Forest, table: Table | None = None) -> LeafReader:
        """Prepare to read the leaves of all rows, or of those of another table.

        Parameters
        ----------
        forest : Forest
            Of a model that this engine fitted.
        table : Table, optional
            The other table; its columns are matched by name.
        """
        columns = self.columns if table is None else self.columns_for(table, None, forest.variable)
        return LeafReader(forest, columns)

    def seen(self, variable: Variable) -> set[int]:
        """Return which columns a variable's models may split on; after the table's last comes the target."""
        check_target(variable, self._target)
        columns = set(range(self.n_columns)) - variable.excluded
        return columns | {self.n_columns} if variable.sees_target else columns

    def columns_for(self, rows: Integers | Table, labels: LabelArray | None, variable: Variable) -> Columns:
        """Return the columns of some rows, or of another table, for a variable's models.

        Parameters
        ----------
        rows : ndarray or Table
            Positions, or another table: columns that the models do not see may be missing.
        labels : ndarray or None
            The target's labels of the rows, for models that see it; None for those of this table.
        variable : Variable
            What the models learnt.
        """
        if isinstance(rows, Table):
            places = self.schema.find(rows, self.seen(variable))
            columns = columns_of(rows, self.schema, places, sparse=self.is_sparse)
            if self._target is None:
                return columns
        else:
            columns = self.columns.take(rows)
            if self._target is None or labels is None or not variable.sees_target:
                return columns
            columns = columns.in_order(range(self.n_columns))
        if variable.sees_target:
            labels = check_labels(labels, columns.n_rows, f"The models of {variable.name!r} see")
        else:  # they look at none
            labels = self._target.labels[np.zeros(columns.n_rows, dtype=np.intp)]
        return columns.with_target(replace(self._target, labels=labels))

    def _bins(
        self, task: Task
    ) -> tuple[dict[str, Any], tuple[int, ...], lightgbm.Dataset, lightgbm.Dataset | None]:
        """Return a fit's parameters, its columns in order, and the bins of this table and of the other."""
        variable, given, honoured = task.variable, task.estimator.get_params(), set(_HONOURED.split())
        parameters = {name: value for name, value in given.items() if name in honoured and value is not None}
        draws = any(parameters.get(name, 1.0) != 1.0 for name in _COLUMN_DRAWS)
        if not {"force_col_wise", "force_row_wise"} & set(parameters):
            # Left to itself, LightGBM times both and takes either. By rows, it counts columns not drawn too.
            parameters["force_col_wise" if self._many_usual and draws else "force_row_wise"] = True
        parameters |= {"num_threads": 1, "deterministic": True, "metric": "None", "verbosity": -1}
        seen, layout = self.seen(variable), self._order
        if draws and not self._by_content:  # else a mask on the columns is enough
            layout = tuple(j for j in layout if j in seen)
        least_rows = 1
        if self._prefilter and draws:  # LightGBM draws none that it cannot split
            least_rows = parameters.get("min_data_in_leaf", parameters["min_child_samples"])
        key = (layout, least_rows, *(parameters.get(name) for name in BINNING))
        with self._lock:
            if key not in self._binned:
                columns = self.columns.in_order(layout)
                self._binned[key] = bin_columns(columns, parameters, self._workers, least_rows=least_rows)
            binned = self._binned[key]
            if not isinstance(task.scored, Table):
                return parameters, layout, binned, None
            self.schema.find(task.scored, seen)  # another variable may have seen fewer columns
            kept = self._others.setdefault(task.scored, {})
            target = task.scored_target if variable.sees_target else None
            if (key, id(target)) not in kept:
                theirs = self.columns_for(task.scored, target, variable).in_order(layout)
                other = bin_columns(theirs, parameters, self._workers, binned, least_rows=least_rows)
                kept[key, id(target)] = target, other
            return parameters, layout, binned, kept[key, id(target)][1]


@dataclass(eq=False)
class LightGBMModel:
    """A grown booster, and the rows of its engine; see `fado.engine.Model`. Made within `fitting`."""

    scores: Floats
    _booster: lightgbm.Booster
    _variable: Variable
    _present: tuple[int, ...]
    _engine: LightGBMEngine
    _layout: tuple[int, ...]
    _parameters: Mapping[str, Any]

    def __post_init__(self) -> None:
        self.gains = np.zeros(self._engine.n_columns + 1)
        self.gains[list(self._layout)] = self._booster.feature_importance("gain")
        self.n_trees = self._booster.current_iteration()
        most = self._parameters.get("max_cat_to_onehot", 4)
        levelled, bins = set(self._engine.columns.levelled), self._booster.train_set.feature_num_bin
        places = enumerate(self._layout)
        self._many_sided = frozenset(place for place, j in places if j in levelled and bins(place) > most)

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_booster": self._text()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        import lightgbm

        with fitting():
            self.__dict__.update(state | {"_booster": lightgbm.Booster(model_str=state["_booster"])})

    @property
    def forest(self) -> Forest:
        """The trees as arrays, without the booster, which holds the rows that it learnt from."""
        return Forest(self._text(), self._variable, self._layout, self._parameters, self._many_sided)

    def _text(self) -> str:
        with fitting():
            return self._booster.model_to_string(num_iteration=-1)

    def score(self, rows: Integers | Table, target: LabelArray | None = None) -> Floats:
        """Score rows by their content, not by their bins."""
        columns = self._engine.columns_for(rows, target, self._variable)
        return _predict(self._booster, columns, self._layout, self._present, len(self._variable.classes))

    def detach(self) -> LightGBMScorer:
        """Return the booster only, as text, and the columns that it takes."""
        engine = self._engine
        return LightGBMScorer(
            engine.schema,
            self._layout,
            tuple(sorted(engine.seen(self._variable) - {engine.n_columns})),
            engine.is_sparse,
            len(self._variable.classes),
            self._present,
            self._variable.sees_target,
            self._text(),
        )


@dataclass(frozen=True)
class LightGBMScorer:
    """LightGBM's own text of a booster, and the columns that it takes; see `fado.engine.Scorer`."""

    schema: Schema  # of the table that it learnt from
    layout: tuple[int, ...]  # the columns that it takes, in order; the one after the last is the target
    seen: tuple[int, ...]  # those that it may look at
    sparse: bool  # whether it learnt from a sparse matrix
    n_classes: int
    present: tuple[int, ...]  # the classes that the rows learnt from held
    sees_target: bool  # if not, zeros replace the target
    text: str = ""

    kind: ClassVar[str] = "lightgbm"

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_booster"}

    @cached_property
    def _booster(self) -> lightgbm.Booster:
        import lightgbm

        with fitting():
            return lightgbm.Booster(model_str=self.text)

    def score(self, table: Table, target: LabelArray | None = None) -> Floats:
        """Score rows by the columns that the booster takes."""
        labels = check_labels(target, table.n_rows) if self.sees_target else np.zeros(table.n_rows)
        seen = set(self.seen)
        places = [place if j in seen else None for j, place in enumerate(self.schema.find(table, self.seen))]
        columns = columns_of(table, self.schema, places, sparse=self.sparse)
        if len(self.schema.names) in self.layout:
            columns = columns.with_target(Variable("", "continuous", labels))
        return _predict(self._booster, columns, self.layout, self.present, self.n_classes)

    def parts(self) -> tuple[dict[str, Any], bytes]:
        """Return the columns, and the booster's text."""
        return {"kind": self.kind, **encode(replace(self, text=""))}, self.text.encode()

    @classmethod
    def from_parts(cls, plain: Mapping[str, Any], content: bytes) -> LightGBMScorer:
        """Read what `parts` returned; the kind of model is checked before LightGBM reads it."""
        scorer = record_from(cls, {**plain, "text": content.decode()}, "a booster")
        n_columns, present = len(scorer.schema.names), scorer.present
        if not (
            len(scorer.schema.levels) == n_columns
            and set(scorer.layout) <= set(range(n_columns + 1))
            and set(scorer.seen) <= set(range(n_columns))
            and set(present) <= set(range(scorer.n_classes))
            and len(set(present)) == len(present) != 1
            and (len(present) == 0) is (scorer.n_classes == 0)
            and (not scorer.sees_target or n_columns in scorer.layout)
        ):
            raise ValueError(
                "The booster's description is broken: its columns or classes do not fit together."
            )
        first, *lines = scorer.text.partition("\n\n")[0].splitlines() or [""]
        head = dict(line.partition("=")[::2] for line in lines)
        objectives = (
            {"binary" if len(present) == 2 else "multiclass"} if present else _SAVED_NUMBER_OBJECTIVES
        )
        per_round = str(len(present) if len(present) > 2 else 1)
        if (
            first != "tree"
            or "\nend of trees\n" not in scorer.text
            or head.get("objective", "").split(" ")[0] not in objectives
            or {head.get("num_class"), head.get("num_tree_per_iteration")} != {per_round}
        ):
            what = {0: "numbers", 2: "two classes"}.get(len(present), f"{len(present)} classes")
            raise ValueError(f"The content is not a LightGBM model of {what}.")
        if head.get("max_feature_idx") != str(len(scorer.layout) - 1):
            raise ValueError(
                f"The booster does not take the {len(scorer.layout)} columns of its description."
            )
        try:
            scorer._booster  # noqa: B018 - LightGBM reads it
        except Exception as error:
            raise ValueError(f"LightGBM cannot read the content: {str(error).splitlines()[0]}") from error
        return scorer


def _predict(
    booster: lightgbm.Booster,
    columns: Columns,
    layout: tuple[int, ...],
    present: tuple[int, ...],
    n_classes: int,
) -> Floats:
    """Score rows by their content, not by their bins."""
    numbers = columns.in_order(layout).for_scores()
    with fitting():
        predicted = np.asarray(booster.predict(numbers, num_threads=1), dtype=np.float64)
    return _spread(predicted, present, n_classes)


def _spread(predicted: Floats, present: tuple[int, ...], n_classes: int) -> Floats:
    """Place the probabilities of some classes among those of all; numbers stay unchanged."""
    if n_classes == 0:
        return predicted
    if predicted.ndim == 1:
        predicted = of_both_classes(predicted)
    if n_classes == 2:
        return predicted
    placed = np.zeros((len(predicted), n_classes))
    placed[:, list(present)] = predicted
    return placed
