"""One LightGBM model per fold of the rows: the effects of its rows, of their removal, and of new ones.

A row's effect is linear in its label. So if the label of a new row is not known, the expected effect is the
mean of the effects at the two labels, weighted by the models' own probabilities.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
from sklearn.base import clone
from sklearn.utils.class_weight import compute_sample_weight

from fado._checks import check_instance, seed_from
from fado._messages import insert_parameters
from fado._typing import Floats, Integers
from fado.engine import Forest, LeafReader, LightGBMEngine, LightGBMModel, Task
from fado.execution import ThreadExecutor, n_workers
from fado.tabular import Problem, Table, read_problem
from fado.valuation._bags import check_bags, out_of_bag_sets, strata_of, units_of
from fado.valuation._base import read_validation, target_pattern
from fado.valuation._new_rows import read_labels, table_of
from fado.valuation._provenance import of_new_rows
from fado.valuation._result import Valuation
from fado.valuation._retraining import read_parts
from fado.valuation._validation_rows import check_metrics, effect_valuation, read_validation_rows
from fado.valuation.influence._effects import (
    GrownTree,
    LeafResponse,
    TrainingRows,
    backward_effects,
    direct_effects,
    initial_score,
    leaf_values,
)

if TYPE_CHECKING:
    import pandas as pd


FORMS = {"direct": direct_effects, "backward": backward_effects}
_BLOCK = 2**15  # new rows whose effects by model and label are held at a time
_ALIASES = {
    "boosting_type": ("boosting_type", "boosting", "boost"),
    "subsample": ("bagging_fraction", "subsample"),
    "subsample_freq": ("bagging_freq", "subsample_freq"),
}


def readable_estimator(given: Any, table: Table) -> Any:
    """Return the estimator whose leaves are read, without class weights; refuse one that hides its rows.

    Parameters
    ----------
    given : LGBMClassifier or None
        None is one with LightGBM's own settings.
    table : Table
        The features.
    """
    from lightgbm import LGBMClassifier

    if given is None:
        return LGBMClassifier()
    check_instance("estimator", given)
    if type(given) is not LGBMClassifier:
        raise TypeError(
            f"`estimator` must be an LGBMClassifier, whose leaves are read, got {given!r}: for other models "
            "use DataShapley or KNNShapley."
        )
    parameters = given.get_params()
    for fault in _faults(parameters):
        raise ValueError(f"`estimator` has {fault}.")
    estimator = clone(given).set_params(class_weight=None)
    if not LightGBMEngine.supports(estimator, table):
        raise ValueError(
            f"`estimator` has settings whose effect on the leaves is not known: {given!r}; leave them out."
        )
    return estimator


def _faults(parameters: dict[str, Any]) -> list[str]:
    """List the settings of a model that make the effects of rows unknown."""

    def setting(name: str) -> Any:
        names = _ALIASES.get(name, (name,))
        return next((parameters[own] for own in names if parameters.get(own) is not None), None)

    found = []
    hidden = "the rows of each tree are not known afterwards"
    kind = setting("boosting_type")
    if kind not in (None, "gbdt"):
        found.append(f"`boosting_type={kind!r}`: {hidden}; use 'gbdt'")
    if setting("data_sample_strategy") not in (None, "bagging"):
        found.append(f"`data_sample_strategy={setting('data_sample_strategy')!r}`: {hidden}; leave it out")
    if (setting("subsample_freq") or 0) > 0 and (setting("subsample") or 1.0) < 1.0:
        found.append(f"bagging (`subsample={setting('subsample')}`): {hidden}; use `subsample=1.0`")
    for name in ("is_unbalance", "path_smooth", "max_delta_step"):
        if setting(name):
            found.append(f"`{name}={setting(name)}`, which leaves do not show: leave it out")
    if setting("scale_pos_weight") not in (None, 1, 1.0):
        found.append("`scale_pos_weight`, which leaves do not show: use `class_weight` or `sample_weight`")
    return found


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
        if estimator is not None and estimator.class_weight is not None:
            labels = np.array(problem.labels.classes)[problem.labels.codes]
            self.factors = np.asarray(compute_sample_weight(estimator.class_weight, labels), dtype=np.float64)
        self._weights = problem.sample_weight
        if self.factors is not None:
            self._weights = self.factors if self._weights is None else self._weights * self.factors
        self._table = None if validation is None else validation.table
        if validation is None:
            self.folds = _deal_folds(problem, n_folds, seed)
        else:
            every, theirs = (np.arange(own.n_rows, dtype=np.int32) for own in (problem, validation))
            self.folds = [(every, theirs)]
        self._problem, self._seed = problem, seed
        self._engine = LightGBMEngine(problem.table, None, workers)
        self._executor = ThreadExecutor(workers)
        self._forests: list[Forest] = []

    def grow(self) -> Iterable[Floats]:
        """Grow the models; yield the validation rows' probabilities, one fold after the other."""
        seeds = np.random.SeedSequence([self._seed, 1]).generate_state(len(self.folds))
        tasks = [
            Task(
                self.estimator,
                self._problem.target,
                rows,
                int(own) % 2**31,
                validated if self._table is None else self._table,
                None if self._weights is None else self._weights[rows],
            )
            for (rows, validated), own in zip(self.folds, seeds, strict=True)
        ]
        self._engine.prepare(tasks)
        for forest, scores in self._executor.run(_grow_forest, tasks, self._engine):
            self._forests.append(forest)
            yield scores

    @property
    def are_bare(self) -> bool:
        """Whether no tree of any model splits anything."""
        return all(tree.n_leaves == 1 for forest in self._forests for tree in forest.trees)

    def read_effects(self, slopes: Floats, form: str) -> Iterable[tuple[Floats, KeptForest]]:
        """Yield the effects of each fold's rows on metrics with these slopes, and the model without rows."""

        def read(number: int, shared: Any, stop: Any) -> tuple[Floats, KeptForest]:
            (own, validated), forest = self.folds[number], self._forests[number]
            trees, rows = self.read_trees(number)
            told = FORMS[form](trees, rows, slopes[validated])
            nobody = replace(forest, variable=forest.variable.take(np.zeros(0, dtype=np.intp)))
            kept = KeptForest(nobody, rows.initial, told.responses, told.of_initial)
            per_unit = 1.0 if self.factors is None else self.factors[own, np.newaxis]
            return told.of_rows * per_unit, kept

        yield from self._executor.run(read, range(len(self.folds)))

    def read_trees(self, number: int) -> tuple[list[GrownTree], TrainingRows]:
        """Return the trees of a fold, with the leaves of rows, and the rows that they learnt from."""
        (rows, validated), forest = self.folds[number], self._forests[number]
        learnt = _training_rows(forest, self._problem.labels.is_positive[rows], self._weights, rows)
        mine = self._engine.read_leaves(forest).read(rows)
        theirs = self._engine.read_leaves(forest, self._table).read(validated)
        values = [tree.values for tree in forest.trees]
        values[0] = values[0] - learnt.initial
        penalties = map(forest.leaf_penalties, forest.trees)
        return [GrownTree(*own) for own in zip(values, penalties, mine, theirs, strict=True)], learnt


def _deal_folds(problem: Problem, n_folds: int, seed: int) -> list[tuple[Integers, Integers]]:
    """Deal the rows into folds, each validated by a model that learns from the others."""
    n_rows, blocks, unseen = problem.n_rows, problem.blocks, 1.0 / n_folds
    n_units, units = units_of(problem)
    check_bags(n_units, n_folds, unseen, units)
    strata = strata_of(problem.variables, unseen)
    if problem.sample_weight is not None:  # every fold gets rows that count
        strata = 2 * strata + (problem.sample_weight > 0)
    bags = out_of_bag_sets(n_rows, n_folds, unseen, strata, np.random.default_rng([seed, 0]), blocks)
    every = np.arange(n_rows, dtype=np.int32)
    return [(np.delete(every, left_out), left_out) for left_out in bags]


def _grow_forest(task: Task, engine: LightGBMEngine, stop: threading.Event) -> tuple[Forest, Floats]:
    model = engine.fit(task, stop)
    if not isinstance(model, LightGBMModel):
        raise ValueError(
            "The rows that a model learns from hold one label only: give more rows of each label, or set "
            "rows apart with `validation`."
        )
    return model.forest, model.scores[:, 1]


def _training_rows(
    forest: Forest, positive: npt.NDArray[np.bool_], weights: Floats | None, rows: Integers
) -> TrainingRows:
    """Return what a model learnt from, and how, in LightGBM's own precision."""
    own = None if weights is None else weights[rows].astype(np.float32).astype(np.float64)
    parameters = forest.parameters
    from_average = bool(parameters.get("boost_from_average", True))
    return TrainingRows(
        positive,
        own,
        initial_score(positive, own) if from_average else 0.0,
        from_average,
        rate=float(parameters["learning_rate"]),
        l1=float(parameters.get("lambda_l1", parameters.get("reg_alpha", 0.0))),
    )


@insert_parameters()
def forecast_removals(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    sensitive_features: Any = None,
    unknown: Any = None,
    validation: Any,
    parts: Any,
    performance: str = "tpr_at_fpr",
    fairness: str = "fpr_ratio",
    max_fpr: float = 0.05,
    sample_weight: Any = None,
    random_state: Any = None,
    n_jobs: int | None = None,
) -> pd.DataFrame:
    """Predict what removing parts of the rows would do to a LightGBM model, without training again.

    One model is trained on all rows. For each part, the values of all leaves are computed again without its
    rows, tree by tree, while the splits stay fixed. For a ratio, sums of `TreeInfluence` values predict as
    well as this does. The performance does not change in proportion to what is removed; this predicts it
    better.

    Parameters
    ----------
    estimator : LGBMClassifier or None
        The model, as `TreeInfluence` takes it.
    X, y, sensitive_features
        The rows that the model learns from.
    {unknown}
    validation : tuple of (X, y, sensitive_features)
        Validation data, on which the model is measured.
    parts : list of masks or of arrays of positions
        The rows to remove, one part at a time.
    performance, fairness, max_fpr
        The metrics, as in `TreeInfluence`.
    sample_weight : array-like of shape (n_rows,), optional
        How much each row counts in the fit, scaled to a mean of 1.
    {random_state, n_jobs}

    Returns
    -------
    DataFrame
        One row per part and column: ``part``, ``rows`` (how many are removed), ``column`` ("y", or the
        attribute), ``metric`` (its predicted value without them) and ``predicted`` (its predicted change).

    See Also
    --------
    fado.valuation.removal_effects : Trains again, for any classifier.

    Examples
    --------
    Half of the positives of "b" are removed. That raises the ratio.

    >>> import numpy as np
    >>> from fado.valuation import forecast_removals
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(2000, 2))
    >>> z = np.where(X[:, 1] > 0, "b", "a")
    >>> y = X[:, 0] + X[:, 1] + rng.normal(size=2000) > 1
    >>> half = (z[:1000] == "b") & y[:1000] & (np.arange(1000) % 2 == 0)
    >>> rows = {"sensitive_features": z[:1000]}
    >>> rows["validation"] = X[1000:], y[1000:], z[1000:]
    >>> predicted = forecast_removals(None, X[:1000], y[:1000], **rows, parts=[half])
    >>> float(np.sign(predicted.set_index("column").loc["z", "predicted"]))
    1.0
    """
    check_metrics(performance, fairness, max_fpr)
    problem = read_problem(
        X, y, sensitive_features, unknown=unknown, sample_weight=sample_weight, least_rows=2
    )
    if validation is None:
        raise ValueError(
            "`validation` is needed: data (X, y, sensitive_features) on which the model is measured."
        )
    return forecast_problem(
        estimator,
        problem.with_mean_weight_one(),
        read_validation(validation, unknown),
        [rows for _, rows in read_parts(parts, problem.n_rows)],
        performance=performance,
        fairness=fairness,
        max_fpr=float(max_fpr),
        seed=seed_from(random_state),
        workers=n_workers(n_jobs),
    )


def forecast_problem(
    estimator: Any,
    problem: Problem,
    validation: Problem,
    parts: Sequence[Integers],
    *,
    performance: str,
    fairness: str,
    max_fpr: float,
    seed: int,
    workers: int,
) -> pd.DataFrame:
    """Predict what removing parts would do, like `forecast_removals`, for tables that have been read."""
    import pandas as pd

    validated = read_validation_rows(problem, validation, "forecast_removals")
    forests = Forests(problem, estimator, validation, 1, seed, workers)
    _ = list(forests.grow())
    trees, rows = forests.read_trees(0)
    nothing = np.zeros(0, dtype=np.int32)
    probabilities = _computed_anew(trees, rows, [nothing, *parts], validated.n_rows, workers)
    measured = [validated.measure(own, performance, fairness, max_fpr) for own in probabilities]
    table = [
        {
            "part": number,
            "rows": len(parts[number]),
            "column": column,
            "metric": own[column],
            "predicted": own[column] - measured[0][column],
        }
        for column in measured[0]
        for number, own in enumerate(measured[1:])
    ]
    return pd.DataFrame(table, columns=["part", "rows", "column", "metric", "predicted"])


def _computed_anew(
    trees: Sequence[GrownTree], rows: TrainingRows, parts: Sequence[Integers], n_validated: int, workers: int
) -> list[Floats]:
    """Return the validation rows' probabilities without each part."""
    n_rows, models = len(rows.positive), []
    for removed in parts:
        weights = np.ones(n_rows) if rows.weights is None else rows.weights.copy()
        weights[removed] = 0.0
        initial = initial_score(rows.positive, weights) if rows.from_average else rows.initial
        models.append((weights, np.full(n_rows, initial), np.full(n_validated, initial)))

    def add(model: tuple[Floats, ...], tree: GrownTree, stop: threading.Event) -> None:
        """Compute the values of a tree's leaves, and move all scores by them."""
        weights, scores, validated_scores = model
        values = leaf_values(rows, weights, scores, tree.training, tree.penalties)
        scores += values[tree.training]
        validated_scores += values[tree.validation]

    for tree in trees:
        if len(tree.values) > 1:
            _ = list(ThreadExecutor(workers).run(add, models, tree))
    return [1.0 / (1.0 + np.exp(-scores)) for *_, scores in models]


class LabelEffects(NamedTuple):
    """The effects of rows on metrics at either label: arrays of shape (n_rows, n_metrics).

    `probability`, of shape (n_rows,), is that of the positive label, the mean of the models. `standard_error`
    is that of the effects at the label, or of the expected ones, from the spread between models; NaN for one.
    """

    negative: Floats
    positive: Floats
    probability: Floats
    standard_error: Floats

    def at(self, share: Floats) -> Floats:
        """Return the effects at shares of the positive label: 0 or 1 if it is known."""
        return self.negative + share[:, np.newaxis] * (self.positive - self.negative)


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
        How many blocks of rows are read in parallel.
    """

    def __init__(
        self,
        problem: Problem,
        models: Sequence[KeptForest],
        factors: Floats | None,
        valuation: Valuation,
        workers: int,
    ) -> None:
        nobody = np.zeros(0, dtype=np.intp)
        self._engine = LightGBMEngine(_without_rows(problem.table), prefilter=False)
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
        told = self.by_label(table, share)
        label_probability = np.full(table.n_rows, np.nan)
        if share is not None:
            label_probability = np.where(share == 1.0, told.probability, 1.0 - told.probability)
        valuation = effect_valuation(
            told.at(told.probability if share is None else share),
            told.standard_error,
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
        starts = range(0, table.n_rows, _BLOCK)
        blocks = [np.arange(first, min(first + _BLOCK, table.n_rows), dtype=np.int32) for first in starts]

        def read(rows: Integers, shared: Any, stop: threading.Event) -> LabelEffects:
            return self._read_block(readers, rows, None if share is None else share[rows])

        parts = ThreadExecutor(self._workers).run(read, blocks)
        return LabelEffects(*map(np.concatenate, zip(*parts, strict=True)))

    def _read_block(
        self, readers: Sequence[LeafReader], rows: Integers, share: Floats | None
    ) -> LabelEffects:
        leaves = [reader.read(rows) for reader in readers]
        told = [_label_effects(model, own) for model, own in zip(self._models, leaves, strict=True)]
        effects = np.stack([own for own, _ in told]) * np.array(self._factors)[:, np.newaxis, np.newaxis]
        probability = np.mean([own for _, own in told], axis=0)
        if self._factors[0] != self._factors[1]:  # class weights make them those of weighted rows
            raised = probability * self._factors[0]
            probability = raised / (raised + (1.0 - probability) * self._factors[1])
        n_models = len(told)
        share_of_models = 1.0 if n_models == 1 else 1.0 - 1.0 / n_models  # a fold's rows are not its model's
        negative, positive = share_of_models * effects.sum(axis=0)
        error = np.full(negative.shape, np.nan)
        if n_models > 1:
            at = (probability if share is None else share)[:, np.newaxis]
            own = effects[:, 0] + at * (effects[:, 1] - effects[:, 0])
            error = share_of_models * np.sqrt(n_models) * own.std(axis=0, ddof=1)
        return LabelEffects(negative, positive, probability, error)


def _without_rows(table: Table) -> Table:
    """Return the columns of a table with the levels that models learnt, and no rows."""
    nobody = np.zeros(0, dtype=np.intp)
    if table.is_sparse:
        return table.take(nobody)
    columns = (own if own.levels is None else own.with_levels(own.frequent_levels()) for own in table.columns)
    return Table.of_columns([own.take(nobody) for own in columns], named=table.is_named)


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
