"""The contract of the engines: a task in, a model out.

An engine is made for one table. `prepare` does once what many fits share; then `fit` may be called by many
threads at a time, or, where `in_threads` is False, in many processes. A fit depends on its task alone: no
other task, no order and no number of workers changes a score.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np
import numpy.typing as npt

from fado.engine._schema import Schema
from fado.tabular import Table, Variable

__all__ = [
    "Engine",
    "FloatArray",
    "LabelArray",
    "Model",
    "Rows",
    "Scorer",
    "Task",
    "Watch",
    "count_rows",
]

FloatArray = npt.NDArray[np.float64]
Rows = npt.NDArray[np.int32]
LabelArray = npt.NDArray[Any]


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
        may stand there more than once.
    seed : int
        Of this fit alone; it takes the place of a `random_state` that is None.
    scored : ndarray, Table or None
        The rows to score while at it: positions in the engine's table, or another table with the same
        columns; None scores the rows learnt from.
    weights : ndarray, optional
        One per entry of `rows`: finite, not negative, not all zero.
    scored_target : ndarray, optional
        The target's labels of the rows of another table, for variables whose models see the target.
    """

    estimator: Any
    variable: Variable
    rows: Rows
    seed: int
    scored: Rows | Table | None = None
    weights: npt.NDArray[np.floating[Any]] | None = None
    scored_target: LabelArray | None = None

    def __post_init__(self) -> None:
        if self.weights is not None and len(self.weights) != len(self.rows):
            raise ValueError(
                f"`weights` must have one entry per entry of `rows`, got {len(self.weights)} for "
                f"{len(self.rows)} rows."
            )


class Watch(Protocol):
    """Looks on while trees grow.

    Parameters
    ----------
    every : int
        After how many trees it is asked.
    """

    every: int

    def __call__(self, scores: FloatArray) -> bool:
        """Look at the scores so far of the rows that the task scores; True ends growing."""
        ...


class Model(Protocol):
    """What came of a task. It may be pickled, and asked for scores by many threads at a time.

    Scores are probabilities of classes or predicted numbers. Of two classes, LightGBM gives the probability
    of class 1, as an array of shape (n,); scikit-learn estimators give that of both, as for any other number
    of classes: (n, K). Classes that the rows learnt from lacked have probability 0.
    """

    @property
    def scores(self) -> FloatArray:
        """The scores of the rows that the task asked for."""
        ...

    @property
    def gains(self) -> FloatArray | None:
        """The total gain of the splits on each feature column and, last, on the target; None if unknown."""
        ...

    @property
    def n_trees(self) -> int | None:
        """How many rounds of trees were grown; None for a model that is not made of them."""
        ...

    def score(self, rows: Rows | Table, target: LabelArray | None = None) -> FloatArray:
        """Score rows, also such as were not there.

        Parameters
        ----------
        rows : ndarray or Table
            Positions in the engine's table, or another table. Its columns are found by name, in any order;
            where either table has no names, by position. Entries of levels that were not there are missing.
        target : ndarray, optional
            The target's labels of the rows, for models that see the target. Rows of another table need them;
            for those of the engine's own they take the place of their labels.

        Raises
        ------
        ValueError
            If a column that the model sees is not there or holds something else, or the target is needed.
        """
        ...

    def detach(self) -> Scorer:
        """Give what is left of a model without the rows that it learnt from."""
        ...


class Scorer(Protocol):
    """A model without the rows that it learnt from: small, and it may be pickled.

    `fado.engine.detach` makes it of a model, `fado.engine.scorer_from` of its parts.
    """

    @property
    def kind(self) -> str:
        """Which form the parts have: "lightgbm", "sklearn" or "constant"."""
        ...

    @property
    def schema(self) -> Schema | None:
        """The columns of the table that the model learnt from; None if it looks at none."""
        ...

    @property
    def n_classes(self) -> int:
        """Of how many classes it gives probabilities; 0 for a model of numbers."""
        ...

    @property
    def sees_target(self) -> bool:
        """Whether it looks at the target beside the features."""
        ...

    def score(self, table: Table, target: LabelArray | None = None) -> FloatArray:
        """Score rows, bit for bit as the model does.

        Parameters
        ----------
        table : Table
            Its columns are found by name, in any order; where either table has no names, by position.
            Entries of levels that were not there are missing.
        target : ndarray, optional
            The target's labels of the rows, coded as they were, for models that see the target.

        Returns
        -------
        ndarray of shape (n,) or (n, K)
            The probability of class 1 of two; the probabilities of three or more classes; or numbers.

        Raises
        ------
        ValueError
            If a column that the model sees is not there or holds something else, or the target is needed.
        """
        ...

    def parts(self) -> tuple[dict[str, Any], bytes]:
        """Give all that `scorer_from` needs: plain data that JSON can hold, and the content of a file."""
        ...


class Engine(Protocol):
    """Fits models to rows of one table.

    Engines may be pickled: what was binned is made anew where they arrive, what was laid out goes with them.
    """

    in_threads: ClassVar[bool]
    """Whether fits run side by side in threads; else, in processes."""

    @staticmethod
    def supports(estimator: Any, table: Table) -> bool:
        """Tell whether the engine does all as the estimator's own `fit` would."""
        ...

    def prepare(self, tasks: Iterable[Task]) -> None:
        """Bin or lay out what the tasks need, before they run side by side."""
        ...

    def with_rows(self, table: Table) -> Engine:
        """Give an engine of the same rows and, after them, those of another table.

        What the rows of this engine are laid out by stays as it is: its columns, bins and levels. So a fit
        on some rows is the same, whatever others were added. Call `prepare` before; no target is seen.

        Parameters
        ----------
        table : Table
            The rows to add. Columns are found by name; where either table has no names, by position. Entries
            of levels that were not there are missing.

        Raises
        ------
        ValueError
            If a column is not there or holds something else.
        """
        ...

    def fit(self, task: Task, stop: threading.Event | None = None, watch: Watch | None = None) -> Model:
        """Learn, and score the rows that the task asks for. Errors of the estimator are raised as they are.

        Where the rows learnt from hold only one class, the model is certain of it, and nothing is fitted.

        Parameters
        ----------
        task : Task
            What to learn, from which rows.
        stop : threading.Event, optional
            When set, the fit may end early, and the model is worthless.
        watch : Watch, optional
            Asked every so many trees whether to grow on; engines that cannot, ignore it.
        """
        ...


def count_rows(rows: Rows | Table) -> int:
    """Count the rows that positions or a table stand for."""
    return rows.n_rows if isinstance(rows, Table) else len(rows)
