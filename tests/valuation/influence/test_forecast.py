import numpy as np
import pytest
from lightgbm import LGBMClassifier
from scipy.stats import spearmanr
from tests.valuation.influence.test_effects import Recomputed

from fado import Valuation
from fado.tabular import read_problem
from fado.valuation import forecast_changes, removal_effects
from fado.valuation.influence._forests import scores_without


def made(n_rows, seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, 3))
    z = np.where(X[:, 2] + rng.normal(size=n_rows) > 0, "b", "a")
    return X, (X[:, 0] + X[:, 2] + rng.normal(size=n_rows) > 1).astype(int), z


X, Y, Z = made(3000, 0)
VALIDATION = made(3000, 1)
MODEL = LGBMClassifier(n_estimators=30, num_leaves=8)
RNG = np.random.default_rng(2)
CELLS = [
    (label == Y) & (group == Z) & (RNG.random(3000) < share)
    for label in (0, 1)
    for group in "ab"
    for share in (0.2, 0.35, 0.5, 0.7)
]


def forecast(performance="tpr_at_fpr", workers=1):
    rows, validation = (read_problem(X, y, {"z": z}) for X, y, z in ((X, Y, Z), VALIDATION))
    parts = [np.flatnonzero(part).astype(np.int32) for part in CELLS]
    goals = {"performance": performance, "fairness": "fpr_ratio", "max_fpr": 0.05}
    return forecast_changes(MODEL, rows, validation, parts, **goals, seed=0, workers=workers)


@pytest.mark.parametrize("performance", ["log_loss", "tpr_at_fpr"])
def test_it_foretells_performance_and_ratio(performance):
    nothing = Valuation.from_values({"y": np.zeros(3000), "z": np.zeros(3000)})
    rows = {"sensitive_features": Z, "validation": VALIDATION, "parts": CELLS}
    truth = removal_effects(nothing, MODEL, X, Y, **rows, performance=performance, random_state=0)
    predicted = forecast(performance)
    for column, least in (("z", 0.9), ("y", 0.8 if performance == "log_loss" else 0.3)):
        actual = truth.loc[truth["column"] == column, "actual"]
        assert spearmanr(predicted[column], actual).statistic > least


def test_without_rows_leaves_are_computed_again():
    """A part equals the removal of its weight, by the test's own recomputation of all leaves."""
    model = Recomputed(False)
    weights = np.ones(len(model.y))
    weights[[3, 7, 99]] = 0.0
    values, _ = model.grow(weights)
    (scores,) = scores_without(model.trees, model.rows, [np.array([3, 7, 99], dtype=np.int32)], 200, 1)
    expected = 1 / (1 + np.exp(-model.validated_scores(values, model.start)))
    np.testing.assert_allclose(scores, expected, rtol=1e-12)


def test_any_number_of_workers():
    one, two = forecast(workers=1), forecast(workers=2)
    for column in ("y", "z"):
        np.testing.assert_array_equal(one[column], two[column])
