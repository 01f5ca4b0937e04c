"""Survey weights count in the fits; rows that belong together are in or out of a bag together."""

import numpy as np
import pytest
from lightgbm import LGBMClassifier
from sklearn.linear_model import LinearRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.tree import DecisionTreeClassifier

from fado import InBagEntropy, OutOfBagEntropy, Valuation

RNG = np.random.default_rng(0)
N = 400
X = RNG.normal(size=(N, 3)).round(1)  # or rows that stand twice would tell who they are
Y = (X[:, 0] + RNG.normal(size=N) > 0).astype(int)
Z = (X[:, 1] + RNG.normal(size=N) > 0).astype(int)
TWICE = np.where(np.arange(N) % 2, 2, 1)


@pytest.mark.parametrize(
    "estimator",
    [DecisionTreeClassifier(max_depth=3, random_state=0), GaussianNB()],
    ids=lambda estimator: type(estimator).__name__,
)
def test_a_weight_of_two_is_a_row_that_stands_twice(estimator):
    rows = np.repeat(np.arange(N), TWICE)
    weighted = InBagEntropy(estimator, random_state=0).fit(X, Y, sensitive_features=Z, sample_weight=TWICE)
    repeated = InBagEntropy(estimator, random_state=0).fit(X[rows], Y[rows], sensitive_features=Z[rows])
    first = np.unique(rows, return_index=True)[1]
    for name in ("y", "z"):
        np.testing.assert_allclose(
            weighted.valuation_[name], repeated.valuation_.take(first)[name], rtol=1e-6, atol=1e-9
        )


def test_lightgbm_is_trained_as_by_its_own_fit():
    model = LGBMClassifier(n_estimators=10, n_jobs=1, verbosity=-1)
    valued = InBagEntropy(model, random_state=0).fit(X, Y, sample_weight=TWICE).valuation_
    p = model.fit(X, Y, sample_weight=TWICE / TWICE.mean()).predict_proba(X)
    np.testing.assert_allclose(valued["y"], Valuation.from_probabilities(p)["y"], atol=1e-12)


def test_weights_move_the_mean_of_a_continuous_variable():
    numbers = X[:, 0] * 10 + RNG.normal(size=N)
    weights = np.where(numbers > 0, 5.0, 1.0)
    valued = InBagEntropy(LinearRegression()).fit(X, numbers, sample_weight=weights).valuation_
    model = LinearRegression().fit(X, numbers, sample_weight=weights)
    distances = np.abs(model.predict(X) - np.average(numbers, weights=weights))
    np.testing.assert_allclose(valued["y"], 1 - distances / distances.max(), atol=1e-12)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"sample_weight": np.ones(3)}, r"`sample_weight` must .* per row, shape \(400,\), got \(3,\)"),
        ({"sample_weight": np.full(N, -1.0)}, "`sample_weight` must be finite and not negative"),
        ({"sample_weight": np.full(N, np.nan)}, "`sample_weight` must be finite and not negative"),
        ({"sample_weight": np.zeros(N)}, "`sample_weight` is zero in every row"),
        ({"groups": np.arange(N) % 3}, r"of 3 groups of rows .* leaves an out-of-bag set empty"),
        ({"groups": [None, *range(1, N)]}, "`groups` is missing in 1 rows"),
        ({"groups": [1, 2]}, "`groups` must have one entry per row, 400, got 2"),
    ],
)
def test_bad_weights_and_groups_are_refused(given, message):
    with pytest.raises(ValueError, match=message):
        OutOfBagEntropy(n_bags=5).fit(X, Y, **given)


def test_an_estimator_that_takes_no_weights_is_refused():
    with pytest.raises(RuntimeError, match=r"KNeighborsClassifier.*`sample_weight`"):
        InBagEntropy(KNeighborsClassifier()).fit(X, Y, sample_weight=TWICE)


def test_rows_that_belong_together_are_left_out_together():
    persons = RNG.integers(0, 60, size=N).astype(str)
    valuator = OutOfBagEntropy(n_bags=10, random_state=0).fit(X, Y, sensitive_features=Z, groups=persons)
    for left_out in valuator.bags_:
        inside = np.setdiff1d(np.arange(N), left_out)
        assert not set(persons[left_out]) & set(persons[inside])
    counts = valuator.valuation_.counts["y"].to_numpy()
    assert counts.min() >= 1
    assert counts.max() - counts.min() <= 1


def test_as_many_groups_as_rows_are_no_groups():
    plain, alone = (
        OutOfBagEntropy(n_bags=5, random_state=0).fit(X, Y, sensitive_features=Z, groups=groups).bags_
        for groups in (None, np.arange(N))
    )
    np.testing.assert_array_equal(plain, alone)
