import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from sklearn.compose import make_column_transformer
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from fado import InBagEntropy, OutOfBagEntropy
from fado.valuation._entropy import normalised_entropy

N = 200
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 3))
Y = (X[:, 0] + RNG.normal(size=N) > 0).astype(int)
COLOUR = RNG.choice(["red", "green", "blue"], N)


def test_equals_the_estimators_own_fit_on_the_same_bags():
    valuator = OutOfBagEntropy(LogisticRegression(), n_bags=5, random_state=0, n_jobs=1).fit(X, Y)
    expected = np.zeros(N)
    for out in valuator.bags_:
        inside = np.setdiff1d(np.arange(N), out)
        expected[out] = normalised_entropy(
            LogisticRegression().fit(X[inside], Y[inside]).predict_proba(X[out])
        )
    np.testing.assert_allclose(valuator.valuation_["y"], expected, rtol=0, atol=1e-12)


def test_several_estimators_are_averaged():
    both = InBagEntropy([LogisticRegression(), GaussianNB()]).fit(X, Y).valuation_
    one = InBagEntropy(LogisticRegression()).fit(X, Y).valuation_["y"]
    other = InBagEntropy(GaussianNB()).fit(X, Y).valuation_["y"]
    np.testing.assert_allclose(both["y"], (one + other) / 2, atol=1e-12)
    np.testing.assert_allclose(both.standard_error["y"], np.abs(one - other) / 2, atol=1e-12)
    assert (both.counts["y"] == 2).all()


def test_classifiers_serve_classes_and_regressors_numbers():
    estimators = [LogisticRegression(), LinearRegression()]
    number = X[:, 1] * 2 + RNG.normal(size=N)
    valuation = InBagEntropy(estimators).fit(X, Y, sensitive_features={"n": number}).valuation_
    assert (valuation.counts.to_numpy() == 1).all()
    seen = np.column_stack([X, Y])
    distance = np.abs(LinearRegression().fit(seen, number).predict(seen) - number.mean())
    np.testing.assert_allclose(valuation["n"], 1 - distance / distance.max(), atol=1e-12)


def test_pipelines_see_the_users_own_columns_and_the_target():
    frame = pd.DataFrame({"colour": COLOUR, "x": X[:, 0]}, index=RNG.permutation(N))
    pipeline = make_pipeline(
        make_column_transformer(
            (OneHotEncoder(), ["colour"]), (StandardScaler(), ["x"]), remainder="passthrough"
        ),
        LogisticRegression(),
    )
    z = np.where(RNG.random(N) < 0.5, Y, 1 - Y)
    values = InBagEntropy(pipeline).fit(frame, Y, sensitive_features=z).valuation_["z"]
    seen = frame.assign(y=Y)
    np.testing.assert_allclose(
        values, normalised_entropy(pipeline.fit(seen, z).predict_proba(seen)), atol=1e-12
    )


def test_strings_need_no_encoding_by_the_user():
    frame = pd.DataFrame({"colour": COLOUR, "x": X[:, 0]})
    values = InBagEntropy(LogisticRegression()).fit(frame, Y).valuation_["y"]
    dummies = np.column_stack([pd.get_dummies(COLOUR).to_numpy(dtype=float), X[:, 0]])
    expected = normalised_entropy(LogisticRegression().fit(dummies, Y).predict_proba(dummies))
    np.testing.assert_allclose(values, expected, atol=1e-12)


def test_a_target_of_three_classes_is_seen_as_indicators():
    y = RNG.integers(0, 3, N)
    z = (y == 1).astype(int)
    z = np.where(RNG.random(N) < 0.3, 1 - z, z)
    values = InBagEntropy(LogisticRegression()).fit(X, y, sensitive_features=z).valuation_["z"]
    seen = np.column_stack([X, *(y == code for code in range(3))])
    expected = normalised_entropy(LogisticRegression().fit(seen, z).predict_proba(seen))
    np.testing.assert_allclose(values, expected, atol=1e-12)


def test_sparse_matrices_equal_dense_ones():
    z = RNG.integers(0, 2, N)
    dense = OutOfBagEntropy(LogisticRegression(), n_bags=5, random_state=0).fit(X, Y, sensitive_features=z)
    for form in (scipy.sparse.csr_matrix, scipy.sparse.csc_array, scipy.sparse.coo_matrix):
        sparse = OutOfBagEntropy(LogisticRegression(), n_bags=5, random_state=0)
        sparse.fit(form(X), Y, sensitive_features=z)
        np.testing.assert_allclose(sparse.valuation_.values, dense.valuation_.values, atol=1e-6)


def test_sparse_matrices_work_with_the_default_models():
    valuation = OutOfBagEntropy(n_bags=5, random_state=0).fit(scipy.sparse.csr_matrix(X), Y).valuation_
    assert valuation.agreement["y"].mean() > 0.6


def test_unseeded_estimators_are_seeded_and_seeded_ones_kept():
    forest = RandomForestClassifier(5)
    first = OutOfBagEntropy(forest, n_bags=5, random_state=0).fit(X, Y).valuation_["y"]
    again = OutOfBagEntropy(forest, n_bags=5, random_state=0).fit(X, Y).valuation_["y"]
    np.testing.assert_array_equal(first, again)
    assert forest.random_state is None
    seeded = RandomForestClassifier(5, random_state=7)
    values = InBagEntropy(seeded, random_state=0).fit(X, Y).valuation_["y"]
    np.testing.assert_array_equal(values, InBagEntropy(seeded, random_state=1).fit(X, Y).valuation_["y"])


class FailsOnSomeRows(DummyClassifier):
    """Predicts NaN for rows whose first feature is large."""

    def predict_proba(self, X):
        p = super().predict_proba(X)
        p[np.asarray(X)[:, 0] > 2] = np.nan
        return p


def test_a_row_that_no_model_could_score_has_no_value():
    valuation = OutOfBagEntropy(FailsOnSomeRows(), n_bags=5, random_state=0, n_jobs=1).fit(X, Y).valuation_
    lost = X[:, 0] > 2
    assert lost.any()
    assert np.isnan(valuation["y"][lost]).all()
    assert (valuation.counts["y"][lost] == 0).all()
    assert np.isfinite(valuation["y"][~lost]).all()


class Fails(LogisticRegression):
    """Cannot learn from a bag without row 0."""

    def fit(self, X, y):
        if X[:, 0].min() > -99:
            raise FloatingPointError("it diverged")
        return super().fit(X, y)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_failing_fit_is_named(n_jobs):
    first = X.copy()
    first[0, 0] = -100
    valuator = OutOfBagEntropy(Fails(), n_bags=5, random_state=0, n_jobs=n_jobs)
    with pytest.raises(RuntimeError, match=r"Fails on variable 'y' in bag \d failed: it diverged"):
        valuator.fit(first, Y)
