"""The models that rows are checked with: small, the same for all that is compared."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from fado.engine import LightGBMEngine, Task
from fado.tabular import Table, Variable

__all__ = ["checking_estimator", "train_and_score"]

Bools = npt.NDArray[np.bool_]
FloatArray = npt.NDArray[np.float64]
Rows = npt.NDArray[np.int32]


def checking_estimator() -> Any:
    """Give the unfitted LightGBM classifier that `generation_report` and `train_and_score` use."""
    from lightgbm import LGBMClassifier

    return LGBMClassifier(
        n_estimators=100, num_leaves=15, learning_rate=0.1, min_child_samples=20, verbose=-1
    )


def train_and_score(
    table: Table,
    positive: Bools,
    validated: Table,
    *,
    weights: FloatArray | None = None,
    seed: int = 0,
) -> FloatArray:
    """Train the checking estimator on some rows, and score other rows.

    Parameters
    ----------
    table : Table
        The rows to learn from, as ``fado.tabular.Table``.
    positive : ndarray of bool
        Which of them are positive.
    validated : Table
        The rows to score; columns are found by name.
    weights : ndarray, optional
        How much each row to learn from counts.
    seed : int, default=0
        Seed of the model.

    Returns
    -------
    ndarray of shape (n_validated,)
        The probability of each validation row of being positive.
    """
    variable = Variable("y", "classes", positive.astype(np.int32), (False, True))
    rows = np.arange(table.n_rows, dtype=np.int32)
    task = Task(checking_estimator(), variable, rows, seed, validated, weights)
    return LightGBMEngine(table).fit(task).scores
