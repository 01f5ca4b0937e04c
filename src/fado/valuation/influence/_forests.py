"""One LightGBM model per fold of the rows: the effects of its rows, and of new ones.

A row's effect is linear in its label. So if the label of a new row is not known, the expected effect is the
mean of the effects at the two labels, weighted by the models' own probabilities.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from sklearn.base import clone
from sklearn.utils.class_weight import compute_sample_weight

from fado._checks import check_instance
from fado._typing import Floats, Integers
from fado.engine import Forest, LeafReader, LightGBMEngine, LightGBMModel, Task
from fado.execution import ThreadExecutor
from fado.tabular import Problem, Table
from fado.valuation._bags import check_bags, out_of_bag_sets, strata_of, units_of
from fado.valuation._base import target_pattern
from fado.valuation._new_rows import read_labels, table_of
from fado.valuation._provenance import of_new_rows
from fado.valuation._result import Valuation
from fado.valuation._validation_rows import effect_valuation
from fado.valuation.influence._effects import (
    GrownTree,
    LeafResponse,
    TrainingRows,
    backward_effects,
    direct_effects,
    initial_score,
)

FORMS = {"direct": direct_effects, "backward": backward_effects}
_CHUNK = 2**15  # new rows whose effects by model and label are held at a time
_ALIASES = {
    "boosting_type": ("boosting_type", "boosting", "boost"),
    "subsample": ("bagging_fraction", "subsample"),
    "subsample_freq": ("bagging_freq", "subsample_freq"),
}


def readable_estimator(estimator: Any, table: Table) -> Any:
    """Return the estimator whose leaves are read, without class weights; refuse one that hides its rows.

    Parameters
    ----------
    estimator : LGBMClassifier or None
        None is one with LightGBM's own settings.
    table : Table
        The features.
    """
    from lightgbm import LGBMClassifier

    if estimator is None:
        return LGBMClassifier()
    check_instance("estimator", estimator)
    if type(estimator) is not LGBMClassifier:
        raise TypeError(
            f"`estimator` must be an LGBMClassifier, whose leaves are read, got {estimator!r}: for other "
            "models use DataShapley or KNNShapley."
        )
    setting = estimator.get_params()
    for name, aliases in _ALIASES.items():
        setting[name] = next((setting[alias] for alias in aliases if setting.get(alias) is not None), None)
    kind, strategy = setting["boosting_type"], setting.get("data_sample_strategy")
    bagging = (setting["subsample_freq"] or 0) > 0 and (setting["subsample"] or 1.0) < 1.0
    hidden = "the rows of each tree are not known afterwards"
    unseen = {name: setting.get(name) for name in ("is_unbalance", "path_smooth", "max_delta_step")}
    faults = {
        f"`boosting_type={kind!r}`: {hidden}; use 'gbdt'": kind not in (None, "gbdt"),
        f"`data_sample_strategy={strategy!r}`: {hidden}; leave it out": strategy not in (None, "bagging"),
        f"bagging (`subsample={setting['subsample']}`): {hidden}; use `subsample=1.0`": bagging,
        **{
            f"`{name}={value}`, which leaves do not show: leave it out": value
            for name, value in unseen.items()
        },
        "`scale_pos_weight`, which leaves do not show: use `class_weight` or `sample_weight`": (
            setting.get("scale_pos_weight") not in (None, 1, 1.0)
        ),
    }
    for fault, present in faults.items():
        if present:
            raise ValueError(f"`estimator` has {fault}.")
    readable = clone(estimator).set_params(class_weight=None)
    if not LightGBMEngine.supports(readable, table):
        raise ValueError(
            f"`estimator` has settings whose effect on the leaves is not known: {estimator!r}; leave them "
            "out."
        )
    return readable


class KeptForest(NamedTuple):
    """One model without the rows that it learnt from, and how metrics respond to a row in each leaf."""

    forest: Forest
    initial: float
    responses: tuple[LeafResponse | None, ...]
    of_initial: Floats


class Forests:
    """The models of all folds.

    Parameters
    ----------
    problem : Problem
        The rows to value, with a target of two classes.
    estimator : LGBMClassifier or None
        As the user gave it.
    validation : Problem or None
        With it, one model learns from all rows and is measured on these; without it, every model is measured
        on the rows of one fold and learns from the others.
    n_folds, seed : int
        Of the folds and the models.
    workers : int
        How many models are grown or read side by side.

    Attributes
    ----------
    folds : list of (ndarray, ndarray)
        Per model, the positions of the rows that it learns from, and of those that it is measured on.
    factors : ndarray or None
        By how much the estimator's class weights raise each row's weight.
    forests : list of Forest
        The models, once they are grown.
    """

    def __init__(
        self,
        problem: Problem,
        estimator: Any,
        validation: Problem | None,
        n_folds: int,
        seed: int,
        workers: int,
    ) -> None:
        self.estimator = readable_estimator(estimator, problem.table)
        self.factors: Floats | None = None
        self._weights = problem.sample_weight
        if estimator is not None and estimator.class_weight is not None:
            labels = np.array(problem.labels.classes)[problem.labels.codes]
            self.factors = np.asarray(compute_sample_weight(estimator.class_weight, labels), dtype=np.float64)
            self._weights = self.factors if self._weights is None else self._weights * self.factors
        self._table = None if validation is None else validation.table
        every = np.arange(problem.n_rows, dtype=np.int32)
        if validation is not None:
            self.folds = [(every, np.arange(validation.n_rows, dtype=np.int32))]
        else:
            unseen, generator = 1.0 / n_folds, np.random.default_rng([seed, 0])
            n_units, units = units_of(problem)
            check_bags(n_units, n_folds, unseen, units)
            strata = strata_of(problem.variables, unseen)
            if problem.sample_weight is not None:  # every fold gets rows that count
                strata = 2 * strata + (problem.sample_weight > 0)
            bags = out_of_bag_sets(problem.n_rows, n_folds, unseen, strata, generator, problem.blocks)
            self.folds = [(np.delete(every, left_out), left_out) for left_out in bags]
        self._problem, self._seed = problem, seed
        self._engine = LightGBMEngine(problem.table, None, workers)
        self._executor = ThreadExecutor(workers)
        self.forests: list[Forest] = []

    def grow(self) -> Iterable[Floats]:
        """Grow the models; yield the validation rows' probabilities, one fold after the other."""
        seeds = np.random.SeedSequence([self._seed, 1]).generate_state(len(self.folds))
        tasks = [
            Task(
                self.estimator,
                self._problem.target,
                rows,
                int(seed) % 2**31,
                validated if self._table is None else self._table,
                None if self._weights is None else self._weights[rows],
            )
            for (rows, validated), seed in zip(self.folds, seeds, strict=True)
        ]
        self._engine.prepare(tasks)
        for forest, scores in self._executor.run(_grow_forest, tasks, self._engine):
            self.forests.append(forest)
            yield scores

    def read_effects(self, slopes: Floats, form: str) -> Iterable[tuple[Floats, KeptForest]]:
        """Yield the effects of each fold's rows on metrics with these slopes, and the model without rows."""

        def read(number: int, shared: Any, stop: Any) -> tuple[Floats, KeptForest]:
            (rows, validated), forest = self.folds[number], self.forests[number]
            positive, parameters = self._problem.labels.is_positive[rows], forest.parameters
            weights = None  # in LightGBM's own precision
            if self._weights is not None:
                weights = self._weights[rows].astype(np.float32).astype(np.float64)
            from_average = bool(parameters.get("boost_from_average", True))
            training = TrainingRows(
                positive,
                weights,
                initial_score(positive, weights) if from_average else 0.0,
                from_average,
                rate=float(parameters["learning_rate"]),
                l1=float(parameters.get("lambda_l1", parameters.get("reg_alpha", 0.0))),
            )
            leaves = self._engine.read_leaves(forest).read(rows)
            validated_leaves = self._engine.read_leaves(forest, self._table).read(validated)
            values = [tree.values for tree in forest.trees]
            values[0] = values[0] - training.initial
            penalties = map(forest.leaf_penalties, forest.trees)
            trees = zip(values, penalties, leaves, validated_leaves, strict=True)
            effects = FORMS[form]([GrownTree(*tree) for tree in trees], training, slopes[validated])
            nobody = replace(forest, variable=forest.variable.take(np.zeros(0, dtype=np.intp)))
            kept = KeptForest(nobody, training.initial, effects.responses, effects.of_initial)
            per_unit = 1.0 if self.factors is None else self.factors[rows, np.newaxis]
            return effects.of_rows * per_unit, kept

        yield from self._executor.run(read, range(len(self.folds)))


def _grow_forest(task: Task, engine: LightGBMEngine, stop: threading.Event) -> tuple[Forest, Floats]:
    model = engine.fit(task, stop)
    if not isinstance(model, LightGBMModel):
        raise ValueError(
            "The rows that a model learns from hold one label only: give more rows of each label, or set "
            "rows apart with `validation`."
        )
    return model.forest, model.scores[:, 1]


class LabelEffects(NamedTuple):
    """The effects of rows on metrics at either label: arrays of shape (n_rows, n_metrics).

    `probability`, of shape (n_rows,), is that of the positive label, the mean of the models. `standard_error`
    is that of the effects at the label, or of the expected ones, from the spread between models; NaN for one.
    """

    negative: Floats
    positive: Floats
    probability: Floats
    standard_error: Floats


class EffectModels:
    """The effects of new rows; made by ``TreeInfluence(keep_models=True)``.

    It holds trees and sums over their leaves, and none of the rows that they were made of.

    Parameters
    ----------
    problem : Problem
        What the models learnt from; its columns' names and levels are kept.
    models : sequence of KeptForest
        One per fold, or one.
    factors : ndarray or None
        The factor of the class weights for each row's weight.
    valuation : Valuation
        Of the rows that the models learnt from.
    workers : int
        How many chunks of rows are read in parallel.
    """

    def __init__(
        self,
        problem: Problem,
        models: Sequence[KeptForest],
        factors: Floats | None,
        valuation: Valuation,
        workers: int,
    ) -> None:
        nobody, table = np.zeros(0, dtype=np.intp), problem.table
        if not table.is_sparse:  # the levels that models learnt, without the rare ones
            columns = (
                column if column.levels is None else column.with_levels(column.frequent_levels())
                for column in table.columns
            )
            table = Table.of_columns([column.take(nobody) for column in columns], named=table.is_named)
        else:
            table = table.take(nobody)
        self._engine = LightGBMEngine(table, prefilter=False)
        self._models = tuple(models)
        self._factors = 1.0, 1.0
        if factors is not None:
            positive = problem.labels.is_positive
            self._factors = float(factors[~positive][0]), float(factors[positive][0])
        self._variables = [variable.take(nobody) for variable in problem.variables]
        self._positive = problem.labels.positive
        self._scales, self._provenance = valuation.scales, valuation.provenance
        self._workers = workers

    def value(
        self, X: Any, y: Any = None, sensitive_features: Any = None, *, unknown: Any = None
    ) -> Valuation:
        """Value new rows; see `TreeInfluence.value`."""
        table, provenance = table_of(X), self._provenance
        labels = read_labels(y, sensitive_features, table, self._variables, provenance, unknown)
        codes = labels.get(self._variables[0].name)
        share = None if codes is None else (codes == self._positive).astype(np.float64)
        effects = self.by_label(table, share)
        label_probability = np.full(table.n_rows, np.nan)
        if share is not None:
            label_probability = np.where(share == 1.0, effects.probability, 1.0 - effects.probability)
        at = (effects.probability if share is None else share)[:, np.newaxis]
        valuation = effect_valuation(
            effects.negative + at * (effects.positive - effects.negative),
            effects.standard_error,
            np.full(table.n_rows, len(self._models), dtype=np.int32),
            self._scales,
            of_new_rows(provenance, y_given=codes is not None),
            label_probability,
        )
        pattern = None if codes is None else target_pattern(codes)
        return valuation.with_rows(table.index, target_pattern=pattern)

    def by_label(self, table: Table, share: Floats | None = None) -> LabelEffects:
        """Return the effects of rows at either label.

        Parameters
        ----------
        table : Table
            The rows; columns are matched by name.
        share : ndarray, optional
            Per row, the share of the positive label for the standard errors; None means the models'
            probability.
        """
        readers = [self._engine.read_leaves(model.forest, table) for model in self._models]
        starts = range(0, table.n_rows, _CHUNK)
        chunks = [np.arange(first, min(first + _CHUNK, table.n_rows), dtype=np.int32) for first in starts]

        def read(rows: Integers, shared: Any, stop: threading.Event) -> LabelEffects:
            return self._read_chunk(readers, rows, None if share is None else share[rows])

        parts = ThreadExecutor(self._workers).run(read, chunks)
        return LabelEffects(*map(np.concatenate, zip(*parts, strict=True)))

    def _read_chunk(
        self, readers: Sequence[LeafReader], rows: Integers, share: Floats | None
    ) -> LabelEffects:
        by_model, scores = zip(
            *(
                _label_effects(model, reader.read(rows))
                for model, reader in zip(self._models, readers, strict=True)
            ),
            strict=True,
        )
        effects = np.stack(by_model) * np.array(self._factors)[:, np.newaxis, np.newaxis]
        probability = np.mean(scores, axis=0)
        if self._factors[0] != self._factors[1]:  # class weights make them those of weighted rows
            raised = probability * self._factors[0]
            probability = raised / (raised + (1.0 - probability) * self._factors[1])
        n_models = len(by_model)
        share_of_models = 1.0 if n_models == 1 else 1.0 - 1.0 / n_models  # a fold's rows are not its model's
        negative, positive = share_of_models * effects.sum(axis=0)
        error = np.full(negative.shape, np.nan)
        if n_models > 1:
            at = (probability if share is None else share)[:, np.newaxis]
            at_label = effects[:, 0] + at * (effects[:, 1] - effects[:, 0])
            error = share_of_models * np.sqrt(n_models) * at_label.std(axis=0, ddof=1)
        return LabelEffects(negative, positive, probability, error)


def _label_effects(model: KeptForest, by_tree: npt.NDArray[Any]) -> tuple[Floats, Floats]:
    """Return the effects of rows at each label, (2, n_rows, n_metrics), and their probabilities."""
    effects = np.repeat(model.of_initial[:, np.newaxis], by_tree.shape[1], axis=1)
    scores, before = np.full(by_tree.shape[1], model.initial), model.initial
    for tree, response, leaves in zip(model.forest.trees, model.responses, by_tree, strict=True):
        values, before = tree.values - before, 0.0
        if response is None:
            scores += values[0]
            continue
        p = 1.0 / (1.0 + np.exp(-scores))
        for label in (0, 1):
            response.add(effects[label], response.moves(p - label, p * (1.0 - p), leaves), leaves)
        scores += values[leaves]
    return effects, 1.0 / (1.0 + np.exp(-scores))
