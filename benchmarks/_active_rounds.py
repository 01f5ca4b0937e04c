"""The rows of benchmarks/active.py: a split of a table, and what is known at one number of labels."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import pandas as pd
from lightgbm import LGBMClassifier

from _data import real_table
from fado import AimedEstimator, OutOfBagEntropy, TreeInfluence
from fado.datasets import make_account_fraud
from fado.engine import LightGBMEngine, Task
from fado.metrics import evaluate, threshold_at_fpr
from fado.tabular import Table, Variable, deal_rows, one_hot

MAX_FPR = 0.05
MOST_ROWS = 100_000
N_POOL, N_VALIDATION, N_TEST = 20_000, 8_000, 20_000
RATIOS = ("fpr_ratio", "selection_rate_ratio", "tpr_ratio")
N_BAGS = 5


def model() -> LGBMClassifier:
    """Give the model that labels are bought for."""
    return LGBMClassifier(n_estimators=100, learning_rate=0.05, random_state=0, n_jobs=1, verbosity=-1)


@dataclass(frozen=True, eq=False)
class Split:
    """One table, dealt with one seed."""

    X: pd.DataFrame
    y: np.ndarray
    z: np.ndarray
    pool: np.ndarray
    validation: np.ndarray
    test: np.ndarray
    seed: int

    def rows(self, positions: np.ndarray):
        """Give features, labels and groups of some rows."""
        return self.X.iloc[positions], self.y[positions], self.z[positions]

    @cached_property
    def _engine(self) -> LightGBMEngine:
        return LightGBMEngine(Table.from_input(self.X), prefilter=False)

    def train(self, positions: np.ndarray) -> list[np.ndarray]:
        """Train the model on some rows; give the scores of validation and test rows."""
        target = Variable("y", "classes", self.y.astype(np.int32), (0, 1))
        scored = np.sort(np.concatenate([self.validation, self.test])).astype(np.int32)
        task = Task(model(), target, np.sort(positions).astype(np.int32), 0, scored)
        scores = self._engine.fit(task).scores[:, 1]
        return [scores[np.searchsorted(scored, part)] for part in (self.validation, self.test)]

    @cached_property
    def numbers(self) -> np.ndarray:
        """The pool's features as a linear model takes them: one-hot, centred, of deviation 1."""
        matrix = one_hot(Table.from_input(self.X.iloc[self.pool]).columns)
        spread = np.nanstd(matrix, axis=0)
        centred = (matrix - np.nanmean(matrix, axis=0)) / np.where(spread > 0, spread, 1.0)
        return np.nan_to_num(np.clip(centred, -10, 10))


def deal(directory: Path, name: str, seed: int) -> Split:
    """Deal a table into pool, validation and test rows; every part has its share of labels and groups."""
    X, y, z = _fraud() if name == "account_fraud" else real_table(directory, name, MOST_ROWS)
    sizes = np.array([N_POOL, N_VALIDATION, N_TEST]) / len(y)
    dealt = deal_rows(2 * z + y, [*sizes, 1 - sizes.sum()], np.random.default_rng([seed, 18]))
    pool, validation, test = (np.flatnonzero(dealt == part) for part in range(3))
    return Split(X, y, z, pool, validation, test, seed)


def _fraud():
    X = make_account_fraud(MOST_ROWS, random_state=0).drop(columns="month")
    return X, X.pop("fraud_bool").to_numpy(int), (X.pop("customer_age") >= 50).to_numpy(int)


class Round:
    """What is known once some rows of the pool have labels; all is worked out when a strategy asks for it.

    Parameters
    ----------
    split : Split
        The table.
    labelled : ndarray of int
        Positions in the pool of the rows that have labels.
    """

    def __init__(self, split: Split, labelled: np.ndarray) -> None:
        self.split = split
        self.labelled = labelled
        self.rest = np.setdiff1d(np.arange(len(split.pool)), labelled)
        self.X, self.y, self.z = split.rows(split.pool[labelled])
        self.X_rest = split.X.iloc[split.pool[self.rest]]
        self.z_rest = split.z[split.pool[self.rest]]

    @property
    def generator(self) -> np.random.Generator:
        """Draws that depend on the seed and the number of labels alone."""
        return np.random.default_rng([self.split.seed, len(self.labelled)])

    def _entropies(self, **fit):
        valuator = OutOfBagEntropy(n_bags=N_BAGS, random_state=self.split.seed, n_jobs=1, keep_models=True)
        return quietly(valuator.fit, self.X, self.y, **fit)

    @cached_property
    def of_target(self):
        """Models of the target alone."""
        return self._entropies()

    @cached_property
    def of_both(self):
        """Models of the target and of the group."""
        return self._entropies(sensitive_features={"group": self.z})

    @cached_property
    def target_values(self):
        return quietly(self.of_target.value, self.X_rest)

    @cached_property
    def values(self):
        return quietly(self.of_both.value, self.X_rest)

    @cached_property
    def aimed_values(self):
        """Values by models of the target that are trained with aimed weights."""
        weights = self._aim().sample_weight_
        return quietly(self._entropies(sample_weight=weights).value, self.X_rest)

    def probability(self, variable: str) -> np.ndarray:
        """Give every open row's probability of a positive label, or of group 1."""
        models = (self.of_target if variable == "y" else self.of_both).models_
        return quietly(models.probabilities, self.X_rest, variable)[:, 1]

    @cached_property
    def _influence(self):
        """What rows do to the model, measured by the validation rows."""
        valuator = TreeInfluence(model(), max_fpr=MAX_FPR, random_state=0, n_jobs=1, keep_models=True)
        X, y, z = self.split.rows(self.split.validation)
        validation = X, y, {"group": z}
        return quietly(
            valuator.fit, self.X, self.y, sensitive_features={"group": self.z}, validation=validation
        )

    @cached_property
    def effects(self):
        """The effects of the open rows at either label, on the TPR and on the ratio."""
        return quietly(self._influence.models_.by_label, Table.from_input(self.X_rest))

    def measure(self) -> dict[str, float]:
        """Train the model and tell its figures on test rows."""
        return self._told(*self.split.train(self.split.pool[self.labelled]))

    def _aim(self) -> AimedEstimator:
        aimed = AimedEstimator(
            model(), at_least=0.8, max_fpr=MAX_FPR, by="weights", random_state=self.split.seed, n_jobs=1
        )
        validation = self.split.rows(self.split.validation)
        return quietly(aimed.fit, self.X, self.y, sensitive_features=self.z, validation=validation)

    def measure_aimed(self) -> dict[str, float]:
        """Train the model with aimed weights, measured on the validation rows, and tell its figures."""
        aimed = self._aim()
        scores = [
            aimed.predict_proba(self.split.X.iloc[rows])[:, 1]
            for rows in (self.split.validation, self.split.test)
        ]
        return self._told(*scores) | {"reached": bool(aimed.reached_)}

    def _told(self, validation: np.ndarray, test: np.ndarray) -> dict[str, float]:
        _, y, _ = self.split.rows(self.split.validation)
        threshold = threshold_at_fpr(y, validation, max_fpr=MAX_FPR)
        _, y, z = self.split.rows(self.split.test)
        found = quietly(evaluate, y, test, sensitive_features=z, threshold=threshold)
        return {name: round(float(found[name]), 5) for name in ("tpr", "fpr", *RATIOS)}


def quietly(function, *given, **named):
    """Call without warnings: tables of a few hundred rows, with a handful of positives, give many."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return function(*given, **named)
