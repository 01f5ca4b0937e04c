"""The methods of benchmarks/aim.py: each gives candidates, scored on validation and test rows."""

from __future__ import annotations

import json
import subprocess
import tempfile
import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from fairlearn.postprocessing import ThresholdOptimizer
from fairlearn.reductions import DemographicParity, FalsePositiveRateParity, GridSearch
from lightgbm import LGBMClassifier
from sklearn.base import BaseEstimator, ClassifierMixin

from fado import AimedEstimator, LinearUtility, OutOfBagEntropy, UtilityAwareReweigher
from fado.engine import LightGBMEngine, Task
from fado.experiment.config import Parameter, draw_models
from fado.metrics import evaluate
from fado.tabular import Table, Variable

LINE, MAX_FPR = 0.8, 0.05
RATIOS = ("fpr_ratio", "selection_rate_ratio")
POWERS = np.linspace(0, 2, 9)[1:]
UTILITIES = [(alpha, power) for alpha in (0.5, 0.7, 0.9) for power in (1.0, 1.5, 2.0)]
OFFSETS = np.linspace(-4, 4, 161)
GRID_SIZE = 30
FAIRGBM = Path(__file__).parent / "elsewhere" / "fairgbm_scores.py"
# That of the experiment's quick preset, but for steps that are never as long as 0.5.
SPACE = {
    "n_estimators": Parameter(low=20, high=100),
    "num_leaves": Parameter(low=10, high=100),
    "min_child_samples": Parameter(low=5, high=300),
    "max_depth": Parameter(low=2, high=20),
    "learning_rate": Parameter(low=0.02, high=0.3),
}


@dataclass(frozen=True, eq=False)
class Candidate:
    """The scores of one model, or of one setting of what is done to its scores."""

    validation: np.ndarray
    test: np.ndarray


class Bench:
    """Trains models on the training rows of a split, which are binned once."""

    def __init__(self, split, n_models):
        table = Table.from_input(split.X)
        self.split = split
        self.models = draw_models(SPACE, n_models, split.seed)
        self.labels = split.y[split.parts[0]]
        self._training = table.take(split.parts[0])
        self._held_out = table.take(np.concatenate(split.parts[1:]))
        self._engine = LightGBMEngine(self._training, workers=1, prefilter=False)

    def fit(self, parameters, weights=None, labels=None):
        """Train one model on all training rows; its scores are those of validation and test rows."""
        labels = self.labels if labels is None else labels
        rows = np.arange(len(labels), dtype=np.int32)
        target = Variable("y", "classes", labels.astype(np.int32), (0, 1))
        task = Task(LGBMClassifier(**parameters), target, rows, 0, self._held_out, weights)
        self._engine.prepare([task])
        return self._engine.fit(task)

    def candidate(self, scores):
        return Candidate(*np.split(scores, [len(self.split.parts[1])]))

    def judge(self, part, scores):
        """Measure scores of validation (1) or test rows (2) at the false-positive budget."""
        _, y, z = self.split.part(part)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return evaluate(y, scores, sensitive_features=z, max_fpr=MAX_FPR)


def untouched(bench):
    return [bench.candidate(bench.fit(parameters).scores) for parameters in bench.models]


def aimed(bench, ratio, parameters, confidence=None):
    """Give the candidate, whether the line was reached on validation rows, and the number of fits."""
    X, y, z = bench.split.part(0)
    model = AimedEstimator(
        LGBMClassifier(**parameters, n_jobs=1, verbosity=-1),
        ratio=ratio,
        at_least=LINE,
        max_fpr=MAX_FPR,
        confidence=confidence,
        max_fits=12,
        random_state=bench.split.seed,
        n_jobs=1,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, y, sensitive_features=z, judge=bench.split.part(1))
    scores = [model.predict_proba(bench.split.part(part)[0])[:, 1] for part in (1, 2)]
    return Candidate(*scores), model.reached_, len(model.path_)


def _weighted(bench, reweighers, **fit):
    X, y, z = bench.split.part(0)
    for reweigher in reweighers:
        weights = reweigher.fit(X, y, sensitive_features=z, **fit).sample_weight_
        for parameters in bench.models:
            yield bench.candidate(bench.fit(parameters, weights).scores)


def values(bench):
    X, y, z = bench.split.part(0)
    valuator = OutOfBagEntropy(random_state=bench.split.seed, n_jobs=1)
    return valuator.fit(X, y, sensitive_features=z).valuation_


def reweighing(bench, valuation):
    settings = [UtilityAwareReweigher(floor=1.0, prevalence_correction=power) for power in POWERS]
    return list(_weighted(bench, settings, valuation=valuation))


def corrected_uar(bench, valuation):
    settings = [
        UtilityAwareReweigher(LinearUtility(alpha), floor=0.1, prevalence_correction=power)
        for alpha, power in UTILITIES
    ]
    return list(_weighted(bench, settings, valuation=valuation))


def group_thresholds(bench, pool):
    """Move one group's log odds: the same as a threshold for each group."""
    groups = [bench.split.part(part)[2] for part in (1, 2)]
    for candidate in pool:
        odds = [_log_odds(scores) for scores in (candidate.validation, candidate.test)]
        for offset in OFFSETS:
            yield Candidate(*(own + offset * z for own, z in zip(odds, groups, strict=True)))


def _log_odds(scores):
    within = np.clip(scores, 1e-12, 1 - 1e-12)
    return np.log(within) - np.log1p(-within)


class _OnBins(ClassifierMixin, BaseEstimator):
    """A model of a bench as fairlearn wants it; in place of features it takes the rows' positions."""

    def __init__(self, bench, parameters):
        self.bench = bench
        self.parameters = parameters

    def __deepcopy__(self, memo):
        return _OnBins(self.bench, self.parameters)

    def fit(self, X, y, sample_weight):
        weights = np.asarray(sample_weight, dtype=float)
        self.model_ = self.bench.fit(self.parameters, weights, np.asarray(y))
        rows = np.asarray(X)[:, 0].astype(np.int32)
        self.predicted_ = (self.model_.score(rows) >= 0.5).astype(int)
        return self

    def predict(self, X):
        """Predict the training rows, of which alone fairlearn asks."""
        return self.predicted_


def grid_search(bench, ratio, parameters):
    """Fit fairlearn's grid of multipliers; all its models are candidates."""
    constraint = FalsePositiveRateParity() if ratio == "fpr_ratio" else DemographicParity()
    search = GridSearch(_OnBins(bench, parameters), constraint, grid_size=GRID_SIZE)
    _, y, z = bench.split.part(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        search.fit(np.arange(len(y))[:, None], y, sensitive_features=z)
    models = [one.model_ for one in search.predictors_ if isinstance(one, _OnBins)]
    return [bench.candidate(model.scores) for model in models]


class _Given(ClassifierMixin, BaseEstimator):
    """Takes scores in place of features, and gives them back."""

    fitted_ = True

    def fit(self, X, y):
        return self

    def predict_proba(self, X):
        scores = np.asarray(X)[:, 0]
        return np.column_stack([1 - scores, scores])


def threshold_optimizer(bench, ratio, candidate):
    """Give the rates of fairlearn's drawn decisions on test rows."""
    constraint = "false_positive_rate_parity" if ratio == "fpr_ratio" else "demographic_parity"
    optimizer = ThresholdOptimizer(
        estimator=_Given(),
        constraints=constraint,
        objective="balanced_accuracy_score",
        prefit=True,
        predict_method="predict_proba",
    )
    (_, y, z), (_, y_test, z_test) = bench.split.part(1), bench.split.part(2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        optimizer.fit(candidate.validation[:, None], y, sensitive_features=z)
        decided = optimizer.predict(
            candidate.test[:, None], sensitive_features=z_test, random_state=bench.split.seed
        )
        return evaluate(y_test, np.asarray(decided, dtype=float), sensitive_features=z_test, threshold=0.5)


def fairgbm(bench, python, three, thresholds):
    """Run FairGBM in its own environment, at the thresholds that models without constraints have."""
    split = bench.split
    columns = [_as_numbers(split.X[name]) for name in split.X]
    X = np.column_stack(columns)
    train, held_out = split.parts[0], np.concatenate(split.parts[1:])
    categorical = [j for j, name in enumerate(split.X) if split.X[name].dtype == "category"]
    with tempfile.TemporaryDirectory() as folder:
        given, made = Path(folder) / "given.npz", Path(folder) / "made.npz"
        np.savez(
            given,
            X=X[train],
            y=split.y[train],
            z=split.z[train],
            X_scored=X[held_out],
            categorical=np.array(categorical, dtype=int),
            models=json.dumps(list(zip(three, thresholds, strict=True))),
        )
        done = subprocess.run([python, FAIRGBM, given, made], capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"FairGBM failed: {done.stderr.strip()[-500:]}")
        with np.load(made) as arrays:
            return [bench.candidate(scores) for scores in arrays["scores"]]


def _as_numbers(column):
    if column.dtype == "category":
        codes = column.cat.codes.to_numpy(float)
        return np.where(codes < 0, np.nan, codes)
    return column.to_numpy(float)
