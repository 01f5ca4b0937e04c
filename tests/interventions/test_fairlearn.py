"""fairlearn's grid search against fairlearn itself."""

import numpy as np
import pytest
from fairlearn.reductions import DemographicParity, FalsePositiveRateParity, GridSearch
from lightgbm import LGBMClassifier
from sklearn.linear_model import LogisticRegression

from fado import ReweighedEstimator
from fado.interventions import FairlearnGrid

RNG = np.random.default_rng(0)
N = 1500
SEX = RNG.integers(0, 2, N)
X = np.column_stack([RNG.normal(size=N) + SEX, RNG.normal(size=N)])
Y = (X[:, 0] + X[:, 1] + RNG.normal(size=N) > 1).astype(int)


pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of pandas, about fairlearn


def model():
    return LGBMClassifier(n_estimators=5, num_leaves=4, verbose=-1, n_jobs=1)


@pytest.mark.parametrize("moment", [FalsePositiveRateParity, DemographicParity])
@pytest.mark.parametrize("point", [0.0, 0.4, 0.5, 0.9])
def test_a_model_of_these_rows_is_fairlearns_own(moment, point):
    theirs = GridSearch(model(), moment(), grid_size=31)
    theirs.fit(X, Y, sensitive_features=SEX)
    chosen = FairlearnGrid(moment.__name__, point).fit(X, Y, sensitive_features=SEX).training_set_
    ours = model().fit(X, chosen.labels.astype(int), sample_weight=chosen.weights)
    expected = theirs.predictors_[round(30 * point)].predict_proba(X)
    assert (ours.predict_proba(X) == expected).all()


@pytest.mark.parametrize("names", [(0, 1), ("no", "yes"), (False, True)], ids=str)
def test_an_estimator_learns_the_labels_that_are_changed(names):
    y = np.array(names)[Y]
    grid = FairlearnGrid("DemographicParity", 0.2)
    chosen = grid.fit(X, y, sensitive_features=SEX).training_set_
    assert 0 < (chosen.labels != Y).sum() < N
    expected = LogisticRegression().fit(X, chosen.labels, sample_weight=chosen.weights)
    fitted = ReweighedEstimator(LogisticRegression(), grid).fit(X, y, sensitive_features=SEX)
    np.testing.assert_allclose(fitted.predict_proba(X), expected.predict_proba(X))
    assert fitted.classes_.tolist() == list(names)


def test_the_middle_of_the_grid_leaves_labels_as_they_are():
    chosen = FairlearnGrid(point=0.5).fit(X, Y, sensitive_features=SEX).training_set_
    assert (chosen.labels == Y).all()


def test_weights_of_rows_are_refused():
    with pytest.raises(ValueError, match="does not support `sample_weight`"):
        FairlearnGrid().fit(X, Y, sensitive_features=SEX, sample_weight=np.ones(N))


@pytest.mark.parametrize("settings", [{"constraint": "Parity"}, {"point": 2.0}])
def test_settings_that_make_no_sense(settings):
    with pytest.raises(ValueError, match="must be"):
        FairlearnGrid(**settings).fit(X, Y, sensitive_features=SEX)
