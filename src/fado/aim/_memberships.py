"""How likely each row belongs to each group, told by models that did not see it."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fado.engine import LightGBMEngine, Task, default_estimators
from fado.execution import ThreadExecutor
from fado.tabular import Table, Variable, deal_rows, mean_one

__all__ = ["Memberships", "find_memberships"]

FloatArray = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
Codes = npt.NDArray[np.int64]

FOLDS = 5


@dataclass(frozen=True)
class Memberships:
    """How likely each row belongs to each group, by models that have not seen the row.

    Parameters
    ----------
    probabilities : ndarray of shape (n_rows, n_groups)
        Each row's probability of belonging to each group, given its features and, if models saw it, its
        label.
    told : float
        How well the features tell a row's group: 0 if no better than the groups' shares (among rows of the
        same label, if models saw the label), 1 if for sure, below 0 if worse than the shares.
    """

    probabilities: FloatArray
    told: float


def find_memberships(
    table: Table,
    positive: Bools,
    codes: Codes,
    n_groups: int,
    *,
    seed: int,
    workers: int,
    sample_weight: FloatArray | None = None,
    blocks: Codes | None = None,
    given_label: bool = True,
) -> Memberships:
    """Find how likely each row belongs to each group, by LightGBM models over five folds.

    Each row is predicted by a model that has not seen it.

    Parameters
    ----------
    table : Table
        The features: all that the estimator sees.
    positive : ndarray of bool
        Which rows have the positive label.
    codes : ndarray of int
        Each row's group, from 0 to ``n_groups - 1``; every group has rows.
    n_groups : int
        How many groups there are.
    seed : int
        The seed of the folds and the models.
    workers : int
        How many fits run side by side. It changes no result.
    sample_weight : ndarray, optional
        How much each row counts; None counts all rows alike.
    blocks : ndarray of int, optional
        Rows of the same number are in the same fold.
    given_label : bool, default=True
        Whether models see the label beside the features.
    """
    sample_weight = None if sample_weight is None else mean_one(sample_weight)
    target = Variable("y", "classes", positive.astype(np.int32), (False, True))
    group = Variable(
        "group", "classes", codes.astype(np.int32), tuple(range(n_groups)), sees_target=given_label
    )
    folds = deal_rows(2 * codes + positive, [1 / FOLDS] * FOLDS, np.random.default_rng([seed, 2]), blocks)
    engine = LightGBMEngine(table, target, workers)
    estimator = default_estimators(table.n_columns + 1)[0]
    tasks = [_task(estimator, group, folds, fold, seed, sample_weight) for fold in np.unique(folds).tolist()]
    engine.prepare(tasks)
    probabilities = np.empty((len(codes), n_groups))
    held_out = [np.flatnonzero(folds == fold) for fold in np.unique(folds)]
    for rows, scores in zip(held_out, ThreadExecutor(workers).run(_scores, tasks, engine), strict=True):
        probabilities[rows] = np.column_stack([1 - scores, scores]) if scores.ndim == 1 else scores
    known = positive if given_label else np.zeros(len(codes), dtype=np.bool_)
    return Memberships(probabilities, _share_told(probabilities, known, codes, n_groups, sample_weight))


def _task(
    estimator: Any, group: Variable, folds: Codes, fold: int, seed: int, sample_weight: FloatArray | None
) -> Task:
    rows = np.flatnonzero(folds != fold).astype(np.int32)
    if len(rows) == 0:  # all rows belong together
        rows = np.arange(len(folds), dtype=np.int32)
    scored = np.flatnonzero(folds == fold).astype(np.int32)
    weights = None if sample_weight is None else sample_weight[rows]
    return Task(estimator, group, rows, seed, scored, weights)


def _scores(task: Task, engine: LightGBMEngine, stop: threading.Event) -> FloatArray:
    return engine.fit(task, stop).scores


def _share_told(
    probabilities: FloatArray,
    positive: Bools,
    codes: Codes,
    n_groups: int,
    sample_weight: FloatArray | None,
) -> float:
    """Compare the models' loss with that of the groups' shares among the rows of a label."""
    weights = np.ones(len(codes)) if sample_weight is None else sample_weight
    of_group = np.maximum(probabilities[np.arange(len(codes)), codes], np.finfo(np.float64).eps)
    loss = -np.average(np.log(of_group), weights=weights)
    cells = np.bincount(2 * codes + positive, weights, minlength=2 * n_groups).reshape(n_groups, 2)
    shares = cells / np.maximum(cells.sum(axis=0), 1e-300)
    doubt = -float((cells * np.log(np.maximum(shares, 1e-300))).sum() / cells.sum())
    return 1 - float(loss) / doubt if doubt > 0 else 1.0
