import numpy as np
import pytest
from lightgbm import LGBMClassifier
from tests.valuation.influence.test_effects import Recomputed

from fado import Valuation
from fado.valuation import forecast_removals, removal_effects


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


def forecast(**settings):
    given = {"sensitive_features": Z, "validation": VALIDATION, "parts": CELLS} | settings
    return forecast_removals(given.pop("estimator", MODEL), X, Y, **given)


@pytest.mark.parametrize("performance", ["log_loss", "tpr_at_fpr"])
def test_it_foretells_performance_and_ratio(performance):
    nothing = Valuation.from_values({"y": np.zeros(3000), "z": np.zeros(3000)})
    truth = removal_effects(
        nothing,
        MODEL,
        X,
        Y,
        sensitive_features=Z,
        validation=VALIDATION,
        parts=CELLS,
        performance=performance,
        random_state=0,
    )
    told = forecast(performance=performance)
    both = told.merge(truth[["part", "column", "actual"]], on=["part", "column"])
    for column, least in (("z", 0.9), ("y", 0.8 if performance == "log_loss" else 0.3)):
        own = both[both["column"] == column]
        assert own["predicted"].corr(own["actual"], method="spearman") > least


def test_without_rows_leaves_are_computed_anew():
    """A part of one row equals the removal of its weight, by the test's own recomputation of all leaves."""
    model = Recomputed(False)
    weights = np.ones(len(model.y))
    weights[[3, 7, 99]] = 0.0
    values, _ = model.grow(weights)
    from fado.valuation.influence._forests import _computed_anew

    (mine,) = _computed_anew(model.trees, model.rows, [np.array([3, 7, 99], dtype=np.int32)], 200, 1)
    expected = 1 / (1 + np.exp(-model.validated_scores(values, model.start)))
    np.testing.assert_allclose(mine, expected, rtol=1e-12)


def test_any_number_of_workers():
    assert forecast(n_jobs=1).equals(forecast(n_jobs=2))


def test_a_validation_is_needed():
    with pytest.raises(ValueError, match="`validation` is needed"):
        forecast(validation=None)


def test_no_parts_make_an_empty_frame_with_its_columns():
    assert list(forecast(parts=[]).columns) == list(forecast(parts=CELLS[:1]).columns)
    assert len(forecast(parts=[])) == 0
