"""The interface of the engines: a task in, a model out.

An engine is made for one table. `prepare` does once what many fits share; then `fit` may be called by many
threads at a time or, if `in_threads` is False, in many processes. A fit depends on its task only: no
other task, no order and no number of workers changes a score.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fado._messages import list_names, warn_user
from fado._records import encode, record_from
from fado._typing import Floats, Integers
from fado.tabular import Column, Table, Variable, match_names

LabelArray = npt.NDArray[Any]


@dataclass(frozen=True)
class Schema:
    """The names of a table's columns, and their levels.

    Parameters
    ----------
    names : tuple of str
        One per column.
    levels : tuple
        One per column: its levels, or None for numbers. Models learn entries of all other levels as missing.
    named : bool
        Whether the user gave the names: the columns of an array have none.

    Examples
    --------
    >>> import pandas as pd
    >>> from fado.tabular import Table
    >>> frame = pd.DataFrame({"colour": ["red", "blue"] * 5, "size": [1, 2] * 5})
    >>> schema = Schema.of(Table.from_input(frame))
    >>> other = Table.from_input(pd.DataFrame({"size": [3], "colour": ["green"]}))
    >>> schema.find(other, [0, 1])
    [1, 0]
    >>> schema.column(other, 0, 1).codes()  # a new level is missing
    array([-1], dtype=int32)
    """

    names: tuple[str, ...]
    levels: tuple[tuple[str, ...] | None, ...]
    named: bool

    @classmethod
    def of(cls, table: Table, read: Collection[int] | None = None) -> Schema:
        """Read a table's columns, and the levels of those to read: by default all.

        Levels of fewer than five rows are left out, so that no model learns them: in a saved model they would
        reveal persons, and one that forgot them only when it is saved would score other rows than before.
        """
        every = range(table.n_columns)
        read = set() if table.is_sparse else every if read is None else set(read)
        columns = (table.column(j) if j in read else None for j in every)
        levels = (
            None if column is None or column.levels is None else column.frequent_levels()
            for column in columns
        )
        return cls(tuple(table.names), tuple(levels), table.is_named)

    def find(self, table: Table, needed: Collection[int]) -> list[int | None]:
        """Find every column's position in another table; None for one that is not there.

        Parameters
        ----------
        table : Table
            The other table.
        needed : collection of int
            Positions of the columns that must be there.
        """
        places = match_names(
            self.names,
            table.names,
            by_name=self.named and table.is_named,
            first="the model learnt from",
            second="The table has",
            needed=needed,
        )
        return [None if place < 0 else place for place in places]

    def warn_of_lost_names(self, table: Table) -> None:
        """Warn that columns are matched by position if a table has lost the names that models learnt."""
        if self.named and not table.is_named:
            order = list_names([repr(name) for name in self.names])
            warn_user(
                "X has no column names, and the model learnt from named columns: they are matched in this "
                f"order, {order}. Pass a table with these names to be sure."
            )

    def column(self, table: Table, j: int, place: int | None) -> Column:
        """Return column `j` from its place in another table, with this schema's levels.

        Parameters
        ----------
        table : Table
            The other table.
        j : int
            The column's position in this table.
        place : int or None
            Its position in the other, from `find`; None returns a column of missing entries.
        """
        levels, name = self.levels[j], self.names[j]
        if place is None:
            return _empty(name, levels, table.n_rows)
        column = table.column(place)
        if levels is None and column.levels is None:
            return column
        if levels is not None and column.levels is not None:
            return column if column.levels == levels else column.with_levels(levels)
        if np.isnan(column.numbers()).all():
            return _empty(name, levels, table.n_rows)
        learnt, given = ("numbers", "text") if levels is None else ("text", "numbers")
        raise ValueError(f"Column {name!r} holds {given}, but the model learnt from {learnt}: convert it.")


def _empty(name: str, levels: tuple[str, ...] | None, n_rows: int) -> Column:
    kind = pa.float64() if levels is None else pa.int32()
    return Column(name, pa.chunked_array([pa.nulls(n_rows, kind)]), levels)


@dataclass(frozen=True, eq=False)
class Task:
    """One estimator learns one variable from some rows.

    Parameters
    ----------
    estimator : estimator
        Unfitted; it stays so.
    variable : Variable
        What to learn.
    rows : ndarray of int32
        Sorted positions in the engine's table of the rows to learn from, all with known labels. A position
        may occur more than once.
    seed : int
        Of this fit only; it replaces a `random_state` that is None.
    scored : ndarray, Table or None
        The rows to score as well: positions in the engine's table, or another table with the same
        columns; None scores the rows learnt from.
    weights : ndarray, optional
        One per entry of `rows`: finite, not negative, not all zero.
    scored_target : ndarray, optional
        The target's labels of the rows of another table, for variables whose models see the target.
    """

    estimator: Any
    variable: Variable
    rows: Integers
    seed: int
    scored: Integers | Table | None = None
    weights: npt.NDArray[np.floating[Any]] | None = None
    scored_target: LabelArray | None = None


class Watch(Protocol):
    """Observes the growing trees.

    Parameters
    ----------
    every : int
        After how many trees it is called.
    """

    every: int

    def __call__(self, scores: Floats) -> bool:
        """Read the scores so far of the rows that the task scores; True stops growing."""


class Model(Protocol):
    """The result of a task. It may be pickled, and used for scores by many threads at a time.

    Scores are the probabilities of all classes, of shape (n, K), or predicted numbers, of shape (n,). Classes
    without training rows have probability 0.
    """

    @property
    def scores(self) -> Floats:
        """The scores of the rows that the task names."""

    @property
    def gains(self) -> Floats | None:
        """The total gain of the splits on each feature column and, last, on the target; None if unknown."""

    @property
    def n_trees(self) -> int | None:
        """How many rounds of trees were grown; None for a model that is not made of them."""

    def score(self, rows: Integers | Table, target: LabelArray | None = None) -> Floats:
        """Score rows, also new ones.

        Parameters
        ----------
        rows : ndarray or Table
            Positions in the engine's table, or another table. Its columns are matched by name, in any order;
            if either table has no names, by position. New levels are missing.
        target : ndarray, optional
            The target's labels of the rows, for models that see the target. Rows of another table need them;
            for those of the engine's table they replace its labels.

        Raises
        ------
        ValueError
            If a column that the model sees is missing or of another kind, or the target is needed.
        """

    def detach(self) -> Scorer:
        """Return the model without the rows that it learnt from."""


class Scorer(Protocol):
    """A model without the rows that it learnt from: small, and it may be pickled.

    `Model.detach` makes it, and `fado.engine.scorer_from` makes it from its parts.
    """

    @property
    def kind(self) -> str:
        """Which form the parts have: "lightgbm", "sklearn" or "constant"."""

    @property
    def schema(self) -> Schema | None:
        """The columns of the table that the model learnt from; None if it looks at none."""

    @property
    def n_classes(self) -> int:
        """Of how many classes it gives probabilities; 0 for a model of numbers."""

    @property
    def sees_target(self) -> bool:
        """Whether it sees the target as well as the features."""

    def score(self, table: Table, target: LabelArray | None = None) -> Floats:
        """Score rows, bit for bit as the model does.

        Parameters
        ----------
        table : Table
            Its columns are matched by name, in any order; if either table has no names, by position.
            New levels are missing.
        target : ndarray, optional
            The target's labels of the rows, with the same codes, for models that see the target.

        Returns
        -------
        ndarray of shape (n,) or (n, K)
            Numbers, or the probabilities of all classes.

        Raises
        ------
        ValueError
            If a column that the model sees is missing or of another kind, or the target is needed.
        """

    def parts(self) -> tuple[dict[str, Any], bytes]:
        """Return all that `scorer_from` needs: plain data that JSON can hold, and the content of a file."""


class Engine(Protocol):
    """Fits models to rows of one table.

    Engines may be pickled: binned tables are binned again, other forms are pickled too.
    """

    in_threads: ClassVar[bool]
    """Whether fits run side by side in threads; else, in processes."""

    @staticmethod
    def supports(estimator: Any, table: Table) -> bool:
        """Return whether the engine does everything as the estimator's own `fit` would."""

    def prepare(self, tasks: Iterable[Task]) -> None:
        """Bin or lay out what the tasks need, before they run in parallel."""

    def fit(self, task: Task, stop: threading.Event | None = None, watch: Watch | None = None) -> Model:
        """Learn, and score the rows that the task asks for. Errors of the estimator are raised unchanged.

        If the training rows have only one class, the model is certain of it, and nothing is fitted.

        Parameters
        ----------
        task : Task
            What to learn, from which rows.
        stop : threading.Event, optional
            When set, the fit may end early, and the model is useless.
        watch : Watch, optional
            Called after every few trees; engines that cannot do this ignore it.
        """


def count_rows(rows: Integers | Table) -> int:
    """Count the rows of positions or of a table."""
    return rows.n_rows if isinstance(rows, Table) else len(rows)


def of_both_classes(positive: Floats) -> Floats:
    """Return the probabilities of both of two classes, from those of class 1."""
    return np.array([1.0 - positive, positive]).T


def check_target(variable: Variable, target: Variable | None) -> None:
    """Raise an error for a variable whose models see the target, if there is none."""
    if variable.sees_target and target is None:
        raise ValueError(
            f"The models of {variable.name!r} see the target, but the engine was given none: pass `target`."
        )


def check_labels(labels: LabelArray | None, n_rows: int, who: str = "The model sees") -> LabelArray:
    """Return the target's labels of another table's rows; their number must fit."""
    if labels is None:
        raise ValueError(f"{who} the target: pass its labels for the rows of the table.")
    if len(labels) != n_rows:
        raise ValueError(f"`target` must have one label per row, got {len(labels)} for {n_rows} rows.")
    return labels


@dataclass(frozen=True)
class ConstantScorer:
    """Predicts the same class for every row, with certainty; see `fado.engine.Scorer`."""

    code: int
    n_classes: int

    kind: ClassVar[str] = "constant"
    schema: ClassVar[None] = None
    sees_target: ClassVar[bool] = False

    def score(self, table: Table, target: LabelArray | None = None) -> Floats:
        """Return the same probabilities for every row."""
        return self.repeat(table.n_rows)

    def repeat(self, n_rows: int) -> Floats:
        """Return the same probabilities for this many rows."""
        certain = np.zeros((n_rows, self.n_classes))
        certain[:, self.code] = 1.0
        return certain

    def parts(self) -> tuple[dict[str, Any], bytes]:
        """Return the class; there is nothing else."""
        return {"kind": self.kind, **encode(self)}, b""

    @classmethod
    def from_parts(cls, plain: Mapping[str, Any], content: bytes) -> ConstantScorer:
        """Read what `parts` returned."""
        scorer = record_from(cls, plain, "a constant model")
        if scorer.code not in range(scorer.n_classes):
            raise ValueError("A constant model must predict one of its classes.")
        return scorer


class ConstantModel:
    """The model of rows that have only one class: it is certain, and nothing is fitted.

    Estimators refuse such labels, and LightGBM's own wrapper reverses their probabilities.
    """

    gains = None
    n_trees = None

    def __init__(self, scorer: ConstantScorer, n_scored: int) -> None:
        self._scorer = scorer
        self.scores = scorer.repeat(n_scored)

    def score(self, rows: Integers | Table, target: LabelArray | None = None) -> Floats:
        """Return the same probabilities for every row."""
        return self._scorer.repeat(count_rows(rows))

    def detach(self) -> ConstantScorer:
        """Return the class that it predicts."""
        return self._scorer


def fit_constant(task: Task) -> ConstantModel | None:
    """Make the model of a task whose rows have one class; None if they have more."""
    variable, labels = task.variable, task.variable.labels[task.rows]
    if variable.kind != "classes" or not len(labels) or (labels != labels[0]).any():
        return None
    scorer = ConstantScorer(int(labels[0]), len(variable.classes))
    return ConstantModel(scorer, count_rows(task.rows if task.scored is None else task.scored))
