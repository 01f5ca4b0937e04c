"""The methods of benchmarks/aim.py: each takes a draw, and hands over a model with its own threshold."""

from __future__ import annotations

import json
import subprocess
import tempfile
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
from fairlearn.postprocessing import ThresholdOptimizer
from fairlearn.reductions import ErrorRate, ExponentiatedGradient, FalsePositiveRateParity, GridSearch
from lightgbm import LGBMClassifier
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.model_selection import StratifiedKFold, cross_val_predict

from _aim_tables import measure
from fado import AimedEstimator, LinearUtility, OutOfBagEntropy, UtilityAwareReweigher, find_frontier
from fado.metrics import threshold_at_fpr

BUDGET = 0.05
SETTINGS = {"n_estimators": 60, "num_leaves": 15, "random_state": 0}
N_FOLDS = 5
POWERS = np.linspace(0, 3, 13)[1:]
UTILITIES = [(alpha, power) for alpha in (0.5, 0.7, 0.9) for power in (1.0, 1.5, 2.0)]
N_BAGS = 10
GRID_SIZE = 30
FRONTIER_FITS = 20
BOUNDS = (0.8, 0.9, 1.0)
EPS, MAX_ITER = 0.002, 30
TOLERANCES = (None, 0.01)
NEGATIVE_COPIES, MOST_POSITIVE_COPIES = 3, 300
ELSEWHERE = Path(__file__).parent / "elsewhere"


@dataclass(frozen=True, eq=False)
class HandedOver:
    """What a method gives: whether it says that the lines are reached, and how to decide."""

    reached: bool
    score: Callable[[pd.DataFrame, np.ndarray], np.ndarray]  # features and groups; most ignore the groups
    threshold: float | None  # None: scores are the chances of a positive decision
    fits: int
    refused: bool = False  # said before the first fit that there are too few rows
    seconds: float | None = None  # None: all of the time until here


def model():
    return LGBMClassifier(**SETTINGS, n_jobs=1, verbosity=-1)


def score_with(fitted, X, _groups=None):
    return fitted.predict_proba(X)[:, 1]


def aimed(draw, lines, by, confidence=None, at_least=None):
    """Give `AimedEstimator` its lines, or another line for a single ratio."""
    lines = lines if at_least is None else dict.fromkeys(lines, at_least)
    estimator = AimedEstimator(
        model(), ratio=lines, max_fpr=BUDGET, confidence=confidence, by=by, random_state=draw.seed, n_jobs=1
    )
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        estimator.fit(draw.X, draw.y, sensitive_features=draw.z)
    refused = any("out of reach" in str(one.message) for one in caught)
    return HandedOver(
        estimator.reached_, partial(score_with, estimator), estimator.threshold_, estimator.n_fits_, refused
    )


def frontier(draw, lines, confidence=None):
    """Let `find_frontier` search for the classifier too; a quarter of the sample validates."""
    (X, y, z), validation = draw.part(0), draw.part(1)
    found = find_frontier(
        X,
        y,
        sensitive_features=z,
        ratio=lines,
        max_fpr=BUDGET,
        max_fits=FRONTIER_FITS,
        validation=validation,
        test=validation,
        n_jobs=1,
        random_state=draw.seed,
    )
    best = found.closest(confidence=confidence)
    return HandedOver(best.reached_, partial(score_with, best), best.threshold_, FRONTIER_FITS)


def untouched(draw, lines):
    """Fit on all rows; the threshold is that of out-of-fold scores."""
    scores = _out_of_fold(draw)
    threshold = threshold_at_fpr(draw.y, scores, BUDGET)
    found = measure(scores >= threshold, draw.y, draw.z)
    reached = all(found[name] >= line for name, line in lines.items())
    return HandedOver(reached, partial(score_with, model().fit(draw.X, draw.y)), threshold, N_FOLDS + 1)


def known_groups(draw, lines):
    """Set a threshold for each group, by out-of-fold scores: what could be had if groups were known."""
    scores = _out_of_fold(draw)
    thresholds = _group_thresholds(scores, draw.y, draw.z, lines["fpr_ratio"])
    fitted = model().fit(draw.X, draw.y)

    def score(X, groups):
        return score_with(fitted, X) - thresholds[groups]

    found = measure(scores >= thresholds[draw.z], draw.y, draw.z)
    return HandedOver(found["fpr_ratio"] >= lines["fpr_ratio"], score, 0.0, N_FOLDS + 1)


def _out_of_fold(draw):
    folds = StratifiedKFold(N_FOLDS, shuffle=True, random_state=draw.seed).split(draw.X, 10 * draw.y + draw.z)
    return cross_val_predict(model(), draw.X, draw.y, cv=list(folds), method="predict_proba")[:, 1]


def _group_thresholds(scores, y, z, line):
    """Find the most true positives: one threshold, but where a group's rate would leave [line * R, R].

    With the highest rate R given, that is the best there is; R is searched on a grid.
    """
    negatives = [np.sort(scores[(y == 0) & (z == group)])[::-1] for group in range(z.max() + 1)]
    sizes = np.array([len(own) for own in negatives])
    pooled = np.sort(np.concatenate(negatives))[::-1]
    best = -1.0, None
    for highest in np.linspace(BUDGET, BUDGET / line, 41):
        least, most = np.ceil(line * highest * sizes).astype(int), np.floor(highest * sizes).astype(int)

        def counts(at, least=least, most=most):
            above = [np.searchsorted(-own, -pooled[at], side="right") for own in negatives]
            return np.clip(above, least, most)

        low, high = 0, len(pooled) - 1
        while low < high:
            middle = (low + high + 1) // 2
            within = counts(middle).sum() <= BUDGET * len(pooled)
            low, high = (middle, high) if within else (low, middle - 1)
        thresholds = np.array(
            [(own[k - 1] + own[k]) / 2 for own, k in zip(negatives, counts(low), strict=True)]
        )
        tpr = (scores >= thresholds[z])[y == 1].mean()
        best = max(best, (tpr, thresholds), key=lambda one: one[0])
    return best[1]


def reweighing(draw, lines):
    """Weigh cells of group and label by powers of the factor of Kamiran and Calders."""
    X, y, z = draw.part(0)
    cells, n_labels = 2 * z + y, np.bincount(y)
    factors = np.bincount(z)[z] * n_labels[y] / (len(y) * np.bincount(cells)[cells])
    models = [model().fit(X, y, sample_weight=factors**power) for power in POWERS]
    return _by_validation(draw, lines, models, len(models))


def corrected_uar(draw, lines):
    """Reweigh by the utility of rows, and correct the prevalence of groups."""
    X, y, z = draw.part(0)
    valuator = OutOfBagEntropy(n_bags=N_BAGS, random_state=draw.seed, n_jobs=1)
    valuation = valuator.fit(X, y, sensitive_features=z).valuation_
    models = []
    for alpha, power in UTILITIES:
        reweigher = UtilityAwareReweigher(LinearUtility(alpha), floor=0.1, prevalence_correction=power)
        weights = reweigher.fit(X, y, sensitive_features=z, valuation=valuation).sample_weight_
        models.append(model().fit(X, y, sample_weight=weights))
    return _by_validation(draw, lines, models, len(models) + 2 * N_BAGS)


def _by_validation(draw, lines, models, fits):
    """Choose among fitted models, each at the threshold of the validation part."""
    X, y, z = draw.part(1)
    scores = [score_with(one, X) for one in models]
    thresholds = [threshold_at_fpr(y, own, BUDGET) for own in scores]
    decided = [own >= threshold for own, threshold in zip(scores, thresholds, strict=True)]
    chosen, reached = _choose(decided, y, z, lines)
    return HandedOver(reached, partial(score_with, models[chosen]), thresholds[chosen], fits)


def _choose(decided, y, z, lines):
    """Choose the highest TPR above the line, or what comes closest to it."""
    figures = [measure(own, y, z) for own in decided]
    above = [j for j, own in enumerate(figures) if own["fpr_ratio"] >= lines["fpr_ratio"]]
    if above:
        return max(above, key=lambda j: figures[j]["tpr"]), True
    return max(range(len(figures)), key=lambda j: figures[j]["fpr_ratio"]), False


class _ByPosition(ClassifierMixin, BaseEstimator):
    """The model as fairlearn wants it; it takes rows' positions in a frame that fairlearn does not see."""

    def __init__(self, frame):
        self.frame = frame

    def __sklearn_clone__(self):
        return _ByPosition(self.frame)

    def __deepcopy__(self, memo):
        return _ByPosition(self.frame)

    def fit(self, X, y, sample_weight):
        self.model_ = model().fit(self.frame, np.asarray(y), sample_weight=np.asarray(sample_weight))
        self.predicted_ = (score_with(self.model_, self.frame) >= 0.5).astype(int)
        return self

    def predict(self, X):
        """Predict the training rows, of which alone fairlearn asks."""
        return self.predicted_


def grid_search(draw, lines):
    """Fit fairlearn's grid of multipliers; all its models are candidates."""
    X, y, z = draw.part(0)
    search = GridSearch(_ByPosition(X), FalsePositiveRateParity(), grid_size=GRID_SIZE)
    search.fit(np.arange(len(y))[:, None], y, sensitive_features=z)
    models = [one.model_ for one in search.predictors_ if isinstance(one, _ByPosition)]
    return _by_validation(draw, lines, models, len(models))


def exponentiated_gradient(draw, lines):
    """Mix models as fairlearn does; costs put one model's best threshold at the budget.

    A mixture decides by chance, by one of its models. All of them have one threshold, that which keeps the
    budget on the validation part.
    """
    (X, y, z), (X_validation, y_validation, z_validation) = draw.part(0), draw.part(1)
    plain = score_with(model().fit(X, y), X_validation)
    cost = threshold_at_fpr(y_validation, plain, BUDGET)
    mixtures, fits = [], 1
    for bound in BOUNDS:
        search = ExponentiatedGradient(
            _ByPosition(X),
            FalsePositiveRateParity(ratio_bound=bound),
            objective=ErrorRate(costs={"fp": cost, "fn": 1 - cost}),
            eps=EPS,
            max_iter=MAX_ITER,
        )
        search.fit(np.arange(len(y))[:, None], y, sensitive_features=z)
        fits += search.n_oracle_calls_
        parts = [
            (one, weight)
            for one, weight in zip(search.predictors_, search.weights_.sort_index(), strict=True)
            if weight > 1e-6
        ]
        scores = np.concatenate([_score_part(one, X_validation) for one, _ in parts])
        weights = np.repeat([weight for _, weight in parts], len(y_validation))
        labels = np.tile(y_validation, len(parts))
        mixtures.append((parts, threshold_at_fpr(labels, scores, BUDGET, sample_weight=weights)))
    decided = [_chances(parts, threshold, X_validation) for parts, threshold in mixtures]
    chosen, reached = _choose(decided, y_validation, z_validation, lines)
    return HandedOver(reached, partial(_chances, *mixtures[chosen]), None, fits)


def _score_part(part, X):
    """Score by a model of a mixture, or by the constant that fairlearn takes where there is one label."""
    if isinstance(part, _ByPosition):
        return score_with(part.model_, X)
    return np.full(len(X), float(part.predict([[0]])[0]))


def _chances(parts, threshold, X, _groups=None):
    total = sum(weight for _, weight in parts)
    return sum(weight * (_score_part(one, X) >= threshold) for one, weight in parts) / total


class _Given(ClassifierMixin, BaseEstimator):
    """Takes scores in place of features, and gives them back."""

    fitted_ = True

    def fit(self, X, y):
        return self

    def predict_proba(self, X):
        scores = np.asarray(X)[:, 0]
        return np.column_stack([1 - scores, scores])


def threshold_optimizer(draw, lines):
    """Set fairlearn's thresholds by group. It knows no budget: copies of rows steer it there."""
    X, y, z = draw.part(1)
    fitted = model().fit(*draw.part(0)[:2])
    scores = score_with(fitted, X)
    found = [_steered(scores, y, z, tolerance) for tolerance in TOLERANCES]
    chosen, reached = _choose([_chances_by_group(one, scores, z) for one in found], y, z, lines)

    def score(X, groups):
        return _chances_by_group(found[chosen], score_with(fitted, X), groups)

    return HandedOver(reached, score, None, 1)


def _steered(scores, y, z, tolerance):
    """Find how many copies of positives make it accept the budget's rate of false positives."""
    negatives, positives = np.repeat(np.flatnonzero(y == 0), NEGATIVE_COPIES), np.flatnonzero(y == 1)
    low, high = np.log(0.1), np.log(MOST_POSITIVE_COPIES)
    best = None
    for _ in range(12):
        middle = (low + high) / 2
        rows = np.append(negatives, np.resize(positives, round(np.exp(middle) * len(positives))))
        optimizer = ThresholdOptimizer(
            estimator=_Given(),
            constraints="false_positive_rate_parity",
            objective="accuracy_score",
            prefit=True,
            predict_method="predict_proba",
            tol=tolerance,
        )
        optimizer.fit(scores[rows, None], y[rows], sensitive_features=z[rows])
        if _chances_by_group(optimizer, scores, z)[y == 0].mean() <= BUDGET:
            best, low = optimizer, middle
        else:
            best, high = best or optimizer, middle
    return best


def _chances_by_group(optimizer, scores, groups):
    return np.asarray(optimizer._pmf_predict(scores[:, None], sensitive_features=groups))[:, 1]


def fairgbm(draw, lines, python):
    """Run FairGBM in its own environment, constrained at the threshold of a model without constraints."""
    (X, y, z), (X_validation, y_validation, z_validation) = draw.part(0), draw.part(1)
    plain = score_with(model().fit(X, y), X_validation)
    made = _run(
        python,
        "fairgbm_scores.py",
        X=_as_numbers(X),
        y=y,
        z=z,
        X_scored=np.concatenate([_as_numbers(X_validation), _as_numbers(draw.X_population)]),
        categorical=np.flatnonzero(X.dtypes == "category"),
        models=json.dumps([[SETTINGS, threshold_at_fpr(y_validation, plain, BUDGET)]]),
    )
    on_validation, on_population = np.split(made["scores"], [len(y_validation)], axis=1)
    thresholds = [threshold_at_fpr(y_validation, own, BUDGET) for own in on_validation]
    decided = [own >= threshold for own, threshold in zip(on_validation, thresholds, strict=True)]
    chosen, reached = _choose(decided, y_validation, z_validation, lines)
    fits = len(on_validation) + 1
    return _told_at_once(reached, on_population[chosen], thresholds[chosen], fits, made["seconds"])


def oxonfair(draw, lines, python):
    """Run OxonFair in its own environment: thresholds by groups that a model infers from the features."""
    (X, y, z), (X_validation, y_validation, z_validation) = draw.part(0), draw.part(1)
    start = time.process_time()
    of_label, of_group = model().fit(X, y), model().fit(X, z)
    seconds = time.process_time() - start
    made = _run(
        python,
        "oxonfair_decisions.py",
        y=y_validation,
        z=z_validation,
        line=lines["fpr_ratio"],
        budget=BUDGET,
        **{
            f"{what}_{part}": own.predict_proba(rows)
            for part, rows in (("validation", X_validation), ("population", draw.X_population))
            for what, own in (("labels", of_label), ("groups", of_group))
        },
    )
    chosen, reached = _choose(made["validation"], y_validation, z_validation, lines)
    return _told_at_once(reached, made["population"][chosen], 0.5, 2, seconds + made["seconds"])


def _told_at_once(reached, on_population, threshold, fits, seconds):
    """Hand over scores of the population, which another environment has given already."""
    return HandedOver(reached, lambda X, groups: on_population, threshold, fits, seconds=float(seconds))


def _run(python, script, **arrays):
    """Run a script of benchmarks/elsewhere with arrays in and out."""
    with tempfile.TemporaryDirectory() as folder:
        given, made = Path(folder) / "given.npz", Path(folder) / "made.npz"
        np.savez(given, **arrays)
        command = [python, ELSEWHERE / script, given, made]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"{script} failed: {done.stderr.strip()[-500:]}")
        with np.load(made) as loaded:
            return dict(loaded)


def _as_numbers(frame):
    return np.column_stack([_column_as_numbers(frame[name]) for name in frame])


def _column_as_numbers(column):
    if column.dtype == "category":
        codes = column.cat.codes.to_numpy(float)
        return np.where(codes < 0, np.nan, codes)
    return column.to_numpy(float)
