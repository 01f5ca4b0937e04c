"""The valuator: what each training row does to a model's performance and fairness."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils import ClassifierTags

from fado._messages import warn_user
from fado._progress import tracked
from fado._validation import check_choice, check_count
from fado._versions import library_versions
from fado.engine import Forest, LeafReader, LightGBMEngine, LightGBMModel, Task
from fado.execution import ThreadExecutor, n_workers
from fado.tabular import Problem, Table
from fado.valuation._bags import check_bags, out_of_bag_sets, strata_of
from fado.valuation._base import BaseValuator
from fado.valuation._judged import (
    JudgedRows,
    binary_labels,
    check_metrics,
    decide,
    performance_coefficients,
    ratio_coefficients,
    read_judged,
)
from fado.valuation._provenance import Provenance, VariableNote
from fado.valuation._registry import register_valuator
from fado.valuation._result import Valuation
from fado.valuation._scale import effect_on
from fado.valuation.influence._effects import (
    GrownTree,
    TrainingRows,
    backward_effects,
    direct_effects,
    initial_score,
)
from fado.valuation.influence._estimator import class_factors, readable_estimator
from fado.valuation.influence._slopes import (
    kernel_at,
    log_odds,
    slopes_at_budget,
    slopes_at_threshold,
    slopes_of_log_loss,
)

__all__ = ["TreeInfluence"]

FloatArray = npt.NDArray[np.float64]
Rows = npt.NDArray[np.int32]

_FORMS = {"direct": direct_effects, "backward": backward_effects}
_BANDWIDTH = 0.1  # of the standard deviation of the judged scores; chosen by benchmarks/faithfulness.py


@dataclass(frozen=True, eq=False)
class _Fold:
    """The rows that one model learns from, and the judged rows that tell its effects."""

    rows: Rows
    judged: Rows  # positions among the judged rows
    scored: Rows | Table  # the same, as the engine takes them


@register_valuator("influence")
class TreeInfluence(BaseValuator):
    """Value every row by what it does to a LightGBM model: to its performance, and to its fairness.

    A row's value is how much a metric on judged rows would change per unit of the row's weight, to first
    order, through the leaves of the trees that it helped to shape. Removing rows changes the metric by about
    minus the sum of their values. So rows with a negative value for an attribute are those that make the
    model unfair.

    Without `judge`, the rows are dealt into `n_bags` folds. Each fold is judged by a model that learnt from
    the others, and a value is the effect on the metric of all rows so predicted. With `judge`, one model
    learns from all rows, and those judge it.

    Parameters
    ----------
    estimator : LGBMClassifier, optional
        The model; None is one with LightGBM's own settings. Class weights and sample weights count; what
        hides the rows behind a tree, such as bagging and GOSS, is refused.
    performance : {"tpr_at_fpr", "log_loss", "accuracy"}, default="tpr_at_fpr"
        What the values of ``"y"`` are effects on: the true-positive rate at the budget, minus the mean
        log-loss, or the accuracy of probabilities of a half and more.
    fairness : {"fpr_ratio", "fnr_ratio", "tpr_ratio", "selection_rate_ratio"}, default="fpr_ratio"
        What the values of each protected attribute are effects on: the ratio between its groups at the
        budget's threshold. The groups with the lowest and the highest rate decide it.
    max_fpr : float, default=0.05
        The budget: the share of negatives that may be predicted positive. The threshold follows the judged
        negatives, so that it is kept.
    n_bags : int, default=5
        How many folds, without `judge`.
    form : {"direct", "backward"}, default="direct"
        Whether effects hold the scores before each tree fixed, or only the trees' structure. Both rank rows
        alike; the direct ones are closer in size to what retraining does.
    random_state : int, RandomState or None, default=None
        Seed of the folds, and of an estimator that has none of its own.
    n_jobs : int, optional
        How many models are grown and read side by side; None uses every core. It never changes a value.
    progress : bool, default=False
        Whether to show a progress bar.

    Attributes
    ----------
    valuation_ : Valuation
        The values: effects, signed, 0 is neutral. `standard_error` and `counts` are over the models that a
        row was part of. `agreement` is the probability that the model which had not seen the row gave to its
        label.
    seed_ : int
        The seed; as `random_state` it gives the same values again.

    Examples
    --------
    Group "b" is more often positive. Its positives raise its rate of false positives, which is the higher one,
    so they lower the ratio; its negatives and the positives of "a" raise it.

    >>> import numpy as np
    >>> from fado import TreeInfluence
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(4000, 3))
    >>> group = np.where(X[:, 2] > 0, "b", "a")
    >>> y = X[:, 0] + X[:, 2] + rng.normal(size=4000) > 1
    >>> valuation = TreeInfluence(random_state=0).fit(X, y, sensitive_features={"group": group}).valuation_
    >>> v_z = valuation["group"]
    >>> [float(np.sign(v_z[(group == g) & (y == label)].sum())) for g in "ab" for label in (False, True)]
    [-1.0, 1.0, 1.0, -1.0]
    """

    def __init__(
        self,
        estimator: Any = None,
        *,
        performance: str = "tpr_at_fpr",
        fairness: str = "fpr_ratio",
        max_fpr: float = 0.05,
        n_bags: int = 5,
        form: str = "direct",
        random_state: Any = None,
        n_jobs: int | None = None,
        progress: bool = False,
    ) -> None:
        self.estimator = estimator
        self.performance = performance
        self.fairness = fairness
        self.max_fpr = max_fpr
        self.n_bags = n_bags
        self.form = form
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.progress = progress

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags = ClassifierTags(multi_class=False)
        return tags

    def _value(self, problem: Problem, judge: Problem | None, seed: int) -> Valuation:
        check_metrics(self.performance, self.fairness, self.max_fpr)
        check_choice("form", self.form, tuple(_FORMS))
        estimator = readable_estimator(self.estimator, problem.table)
        judged = read_judged(problem, judge, type(self).__name__)
        labels = binary_labels(problem, type(self).__name__)
        folds = [_with_judge(problem, judge)] if judge is not None else self._folds(problem, seed)
        factors = class_factors(self.estimator, labels)
        weights = _product(problem.sample_weight, factors)
        forests, scores = self._grow(problem, estimator, weights, folds, judged.n_rows, seed)
        slopes = self._slopes(judged, folds, scores)
        engine, grown = forests
        reader = engine.read_leaves(grown)
        other = None if judge is None else engine.read_leaves(grown, judge.table)
        place = _Place(
            labels.is_positive, weights, reader, reader if other is None else other, slopes, self.form
        )
        names = ["y", *(own.name for own in judged.attributes)]
        sums, squares = (np.zeros((problem.n_rows, len(names))) for _ in range(2))
        counts = np.zeros(problem.n_rows, dtype=np.int32)
        results = ThreadExecutor(n_workers(self.n_jobs)).run(
            _read_effects, list(zip(folds, grown, strict=True)), place
        )
        for fold, effects in zip(
            folds, tracked(results, len(folds), what="models read", show=self.progress), strict=True
        ):
            sums[fold.rows] += effects
            squares[fold.rows] += effects**2
            counts[fold.rows] += 1
        if factors is not None:
            sums *= factors[:, np.newaxis]
            squares *= factors[:, np.newaxis] ** 2
        return self._valuation(problem, judged, names, sums, squares, counts, scores, seed)

    def _folds(self, problem: Problem, seed: int) -> list[_Fold]:
        """Deal the rows into folds, each judged by a model that learns from the others."""
        check_count("n_bags", self.n_bags, 2, 1_000)
        n_rows, blocks = problem.n_rows, problem.blocks
        n_units = n_rows if blocks is None else int(blocks.max()) + 1
        unseen = 1.0 / self.n_bags
        check_bags(n_units, self.n_bags, unseen, "rows" if blocks is None else "groups of rows")
        strata = strata_of(problem.variables, unseen)
        bags = out_of_bag_sets(n_rows, self.n_bags, unseen, strata, np.random.default_rng([seed, 0]), blocks)
        folds = []
        for left_out in bags:
            inside = np.ones(n_rows, dtype=np.bool_)
            inside[left_out] = False
            folds.append(_Fold(np.flatnonzero(inside).astype(np.int32), left_out, left_out))
        return folds

    def _grow(
        self,
        problem: Problem,
        estimator: Any,
        weights: FloatArray | None,
        folds: list[_Fold],
        n_judged: int,
        seed: int,
    ) -> tuple[tuple[LightGBMEngine, list[Forest]], FloatArray]:
        """Grow a model for every fold; give their trees, and the probabilities of all judged rows."""
        workers = n_workers(self.n_jobs)
        engine = LightGBMEngine(problem.table, None, workers)
        seeds = np.random.SeedSequence([seed, 1]).generate_state(len(folds))
        tasks = [
            Task(
                estimator,
                problem.target,
                fold.rows,
                int(own) % 2**31,
                fold.scored,
                None if weights is None else weights[fold.rows],
            )
            for fold, own in zip(folds, seeds, strict=True)
        ]
        engine.prepare(tasks)
        scores = np.zeros(n_judged)
        forests = []
        results = ThreadExecutor(workers).run(_grow_forest, tasks, engine)
        for fold, (forest, own) in zip(
            folds, tracked(results, len(tasks), what="models", show=self.progress), strict=True
        ):
            scores[fold.judged] = own
            forests.append(forest)
        if all(tree.n_leaves == 1 for forest in forests for tree in forest.trees):
            warn_user(
                "The models found nothing to split on, so no row has an effect and every value is 0: use "
                "more rows or a smaller `min_child_samples`."
            )
        return (engine, forests), scores

    def _slopes(self, judged: JudgedRows, folds: list[_Fold], probabilities: FloatArray) -> FloatArray:
        """Give how performance and each attribute's ratio change with the judged rows' scores."""
        parts = [_part_of(judged, fold.judged) for fold in folds]
        predicted = np.zeros(judged.n_rows, dtype=np.bool_)
        for fold, part in zip(folds, parts, strict=True):
            if not (part.weights[~part.positive] > 0).any():
                raise ValueError(
                    "A fold of judged rows has no negatives to keep a budget by: use fewer bags or more rows."
                )
            predicted[fold.judged] = decide(part, probabilities[fold.judged], self.max_fpr)
        coefficients = np.column_stack(
            [
                performance_coefficients(judged, self.performance)
                if self.performance != "log_loss"
                else np.zeros(judged.n_rows),
                *(ratio_coefficients(judged, own, self.fairness, predicted) for own in judged.attributes),
            ]
        )
        scores = log_odds(probabilities)
        slopes = np.zeros_like(coefficients)
        for fold, part in zip(folds, parts, strict=True):
            own = scores[fold.judged]
            bandwidth = _BANDWIDTH * float(np.std(own)) or 1.0
            chosen = own[predicted[fold.judged]]
            threshold = float(chosen.min()) if len(chosen) else float(own.max())
            kernel = kernel_at(own, threshold, bandwidth)
            slopes[fold.judged] = slopes_at_budget(
                coefficients[fold.judged], kernel, np.where(part.positive, 0.0, part.weights)
            )
            if self.performance == "accuracy":
                slopes[fold.judged, 0] = slopes_at_threshold(
                    coefficients[fold.judged, 0], kernel_at(own, 0.0, bandwidth)
                )
        if self.performance == "log_loss":
            slopes[:, 0] = slopes_of_log_loss(
                probabilities, judged.positive, judged.weights / judged.weights.sum()
            )
        return slopes

    def _valuation(
        self,
        problem: Problem,
        judged: JudgedRows,
        names: list[str],
        sums: FloatArray,
        squares: FloatArray,
        counts: npt.NDArray[np.int32],
        scores: FloatArray,
        seed: int,
    ) -> Valuation:
        n = counts[:, np.newaxis].astype(np.float64)
        with np.errstate(invalid="ignore", divide="ignore"):
            spread = np.maximum(squares - sums**2 / n, 0.0) / (n - 1.0)
            errors = np.where(n > 1, np.sqrt(n * spread), np.nan)
        agreement = {name: np.full(problem.n_rows, np.nan) for name in names}
        if judged.table is problem.table:
            agreement["y"] = np.where(judged.positive, scores, 1.0 - scores)
        metrics = {name: self.performance if name == "y" else self.fairness for name in names}
        bags = {"n_bags": int(self.n_bags)} if judged.table is problem.table else {"judged": judged.n_rows}
        return Valuation(
            {name: sums[:, k].copy() for k, name in enumerate(names)},
            {name: errors[:, k].copy() for k, name in enumerate(names)},
            dict.fromkeys(names, counts),
            agreement,
            scales={name: effect_on(metric) for name, metric in metrics.items()},
            provenance=Provenance(
                algorithm="influence",
                settings={
                    "performance": self.performance,
                    "fairness": self.fairness,
                    "max_fpr": float(self.max_fpr),
                    "form": self.form,
                    **bags,
                },
                seed=seed,
                estimators=(" ".join(repr(readable_estimator(self.estimator, problem.table)).split()),),
                variables={own.name: VariableNote(own.kind, own.classes) for own in problem.variables},
                versions=library_versions(),
            ),
        )


@dataclass(frozen=True, eq=False)
class _Place:
    """What reading every model needs."""

    positive: npt.NDArray[np.bool_]
    weights: FloatArray | None
    training: LeafReader
    judged: LeafReader
    slopes: FloatArray
    form: str


def _with_judge(problem: Problem, judge: Problem) -> _Fold:
    return _Fold(
        np.arange(problem.n_rows, dtype=np.int32), np.arange(judge.n_rows, dtype=np.int32), judge.table
    )


def _product(weights: FloatArray | None, factors: FloatArray | None) -> FloatArray | None:
    return weights if factors is None else factors if weights is None else weights * factors


def _part_of(judged: JudgedRows, rows: Rows) -> JudgedRows:
    return JudgedRows(judged.table, judged.positive[rows], judged.weights[rows], ())


def _grow_forest(task: Task, engine: LightGBMEngine, stop: threading.Event) -> tuple[Forest, FloatArray]:
    model = engine.fit(task, stop)
    if not isinstance(model, LightGBMModel):
        raise ValueError(
            "The rows that a model learns from hold one label only: give more rows of each label, or set "
            "rows apart with `judge`."
        )
    return model.forest, model.scores


def _read_effects(task: tuple[_Fold, Forest], place: _Place, stop: threading.Event) -> FloatArray:
    """Give the effects of the rows that one model learnt from."""
    fold, forest = task
    positive = place.positive[fold.rows]
    weights = None
    if place.weights is not None:  # in LightGBM's own precision
        weights = place.weights[fold.rows].astype(np.float32).astype(np.float64)
    from_average = bool(forest.parameters.get("boost_from_average", True))
    rows = TrainingRows(
        positive,
        weights,
        initial_score(positive, weights) if from_average else 0.0,
        from_average,
        rate=float(forest.parameters["learning_rate"]),
        l1=float(forest.parameters.get("lambda_l1", forest.parameters.get("reg_alpha", 0.0))),
    )
    judged = None if isinstance(fold.scored, Table) else fold.judged
    trees = [
        GrownTree(
            tree.values - (rows.initial if number == 0 else 0.0),
            forest.leaf_penalties(tree),
            lambda tree=tree: place.training.read(tree, fold.rows),  # type: ignore[misc]
            lambda tree=tree: place.judged.read(tree, judged),  # type: ignore[misc]
        )
        for number, tree in enumerate(forest.trees)
    ]
    return _FORMS[place.form](trees, rows, place.slopes[fold.judged])
