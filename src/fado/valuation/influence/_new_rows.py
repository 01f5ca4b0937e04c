"""What rows that were not there would do to a model if they were added, through the leaves that they reach.

A row's effect is linear in its label. So where the label is not known, the effect at either label, weighed by
the models' own probabilities, is what can be expected.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from fado.engine import Forest, LeafReader, LightGBMEngine
from fado.execution import ThreadExecutor
from fado.tabular import Problem, Table
from fado.valuation._alignment import target_pattern
from fado.valuation._provenance import Provenance
from fado.valuation._result import Valuation
from fado.valuation._scale import Scale
from fado.valuation.entropy import NEW_ROWS, read_labels, table_of
from fado.valuation.influence._effects import LeafResponse, RowEffects

__all__ = ["EffectModels", "KeptModel", "LabelEffects"]

FloatArray = npt.NDArray[np.float64]
Rows = npt.NDArray[np.int32]

_BLOCK = 2**15  # rows whose effects by model and label are held at a time


@dataclass(frozen=True, eq=False)
class KeptModel:
    """One model without the rows that it learnt from.

    Parameters
    ----------
    forest : Forest
        Its trees.
    initial : float
        The score before the first tree.
    responses : tuple of LeafResponse or None
        How metrics respond to a row in each leaf, tree by tree.
    of_initial : ndarray of shape (2, n_metrics)
        What one more row of each label does through the initial score.
    """

    forest: Forest
    initial: float
    responses: tuple[LeafResponse | None, ...]
    of_initial: FloatArray

    @classmethod
    def of(cls, forest: Forest, initial: float, told: RowEffects) -> KeptModel:
        """Keep what a model told of its rows, without them."""
        nobody = forest.variable.take(np.zeros(0, dtype=np.intp))
        return cls(replace(forest, variable=nobody), initial, told.responses, told.of_initial)

    def label_effects(self, reader: LeafReader, rows: Rows) -> tuple[FloatArray, FloatArray]:
        """Give the effects of rows at each label, (2, n_rows, n_metrics), and their probabilities."""
        effects = np.repeat(self.of_initial[:, np.newaxis], len(rows), axis=1)
        scores = np.full(len(rows), self.initial)
        for number, (tree, response) in enumerate(zip(self.forest.trees, self.responses, strict=True)):
            values = tree.values - (self.initial if number == 0 else 0.0)
            if response is None:
                scores += values[0]
                continue
            leaves = reader.read(tree, rows)
            p = 1.0 / (1.0 + np.exp(-scores))
            for label in (0, 1):
                response.add(effects[label], response.moves(p - label, p * (1.0 - p), leaves), leaves)
            scores += values[leaves]
        return effects, 1.0 / (1.0 + np.exp(-scores))


@dataclass(frozen=True, eq=False)
class LabelEffects:
    """What rows would do to metrics at either label.

    Parameters
    ----------
    negative, positive : ndarray of shape (n_rows, n_metrics)
        The effects of one more such row, with that label.
    probability : ndarray of shape (n_rows,)
        That of the positive label, by the mean of the models.
    standard_error : ndarray of shape (n_rows, n_metrics)
        That of the effects at the label, or of the expected ones, by the spread between models; NaN of one.
    """

    negative: FloatArray
    positive: FloatArray
    probability: FloatArray
    standard_error: FloatArray

    def at(self, share: FloatArray) -> FloatArray:
        """Give the effects at shares of the positive label: 0 or 1 where it is known."""
        return self.negative + share[:, np.newaxis] * (self.positive - self.negative)


class EffectModels:
    """What tells the effects of rows that were not there; made by ``TreeInfluence(keep_models=True)``.

    It holds trees and sums over their leaves, and none of the rows that they were made of.

    Parameters
    ----------
    problem : Problem
        What the models learnt from; its columns' names and levels are kept.
    models : sequence of KeptModel
        One per fold, or one.
    factors : tuple of two floats
        What class weights make of a row of each label, the negative first.
    scales, provenance
        Of the valuation of the training rows.
    workers : int
        How many blocks of rows are read side by side.
    """

    def __init__(
        self,
        problem: Problem,
        models: Sequence[KeptModel],
        factors: tuple[float, float],
        scales: Mapping[str, Scale],
        provenance: Provenance,
        workers: int,
    ) -> None:
        nobody = problem.table.take(np.zeros(0, dtype=np.intp))
        self._engine = LightGBMEngine(nobody, prefilter=False)
        self._models = tuple(models)
        self._factors = factors
        self._variables = [variable.take(np.zeros(0, dtype=np.intp)) for variable in problem.variables]
        self._positive = problem.labels.positive
        self._scales = dict(scales)
        self._provenance = provenance
        self._workers = workers

    def value(self, X: Any, y: Any = None, sensitive_features: Any = None) -> Valuation:
        """Value new rows; see `TreeInfluence.value`."""
        table = table_of(X)
        named = self._provenance.names_given
        labels = read_labels(y, sensitive_features, table, self._variables, named=named)
        codes = labels.get(self._variables[0].name)
        share = None if codes is None else (codes == self._positive).astype(np.float64)
        told = self.by_label(table, share)
        values = told.at(told.probability if share is None else share)
        agreement = nothing = np.full(table.n_rows, np.nan)
        if share is not None:
            agreement = np.where(share == 1.0, told.probability, 1.0 - told.probability)
        names = [variable.name for variable in self._variables]
        valuation = Valuation(
            {name: values[:, k].copy() for k, name in enumerate(names)},
            {name: told.standard_error[:, k].copy() for k, name in enumerate(names)},
            dict.fromkeys(names, np.full(table.n_rows, len(self._models), dtype=np.int32)),
            {name: agreement if name == "y" else nothing for name in names},
            scales=self._scales,
            provenance=replace(
                self._provenance,
                algorithm=self._provenance.algorithm + NEW_ROWS,
                settings={**self._provenance.settings, "y_given": codes is not None},
            ),
        )
        return valuation.with_rows(table.index, None if codes is None else target_pattern(codes))

    def by_label(self, table: Table, share: FloatArray | None = None) -> LabelEffects:
        """Give the effects of rows at either label.

        Parameters
        ----------
        table : Table
            The rows; columns are found by name.
        share : ndarray, optional
            Per row, the share of the positive label that standard errors are told at; None takes the models'
            probability.
        """
        reader = self._engine.read_leaves([model.forest for model in self._models], table)
        starts = range(0, table.n_rows, _BLOCK)
        blocks = [np.arange(first, min(first + _BLOCK, table.n_rows), dtype=np.int32) for first in starts]

        def read(rows: Rows, shared: Any, stop: threading.Event) -> LabelEffects:
            return self._read_block(reader, rows, None if share is None else share[rows])

        parts = list(ThreadExecutor(self._workers).run(read, blocks))
        joined = (
            np.concatenate([getattr(part, name) for part in parts])
            for name in ("negative", "positive", "probability", "standard_error")
        )
        return LabelEffects(*joined)

    def _read_block(self, reader: LeafReader, rows: Rows, share: FloatArray | None) -> LabelEffects:
        told = [model.label_effects(reader, rows) for model in self._models]
        effects = np.stack([own for own, _ in told]) * np.array(self._factors)[:, np.newaxis, np.newaxis]
        probability = self._unweighted(np.mean([own for _, own in told], axis=0))
        n_models = len(told)
        share_of_models = 1.0 if n_models == 1 else 1.0 - 1.0 / n_models  # a fold's rows are not its model's
        negative, positive = share_of_models * effects.sum(axis=0)
        error = np.full(negative.shape, np.nan)
        if n_models > 1:
            at = (probability if share is None else share)[:, np.newaxis]
            own = effects[:, 0] + at * (effects[:, 1] - effects[:, 0])
            error = share_of_models * np.sqrt(n_models) * own.std(axis=0, ddof=1)
        return LabelEffects(negative, positive, probability, error)

    def _unweighted(self, probability: FloatArray) -> FloatArray:
        """Take class weights out of probabilities, which would else be those of weighted rows."""
        negative, positive = self._factors
        if negative == positive:
            return probability
        raised = probability * negative
        return raised / (raised + (1.0 - probability) * positive)
