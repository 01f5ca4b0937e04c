import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression

from fado import InBagEntropy, OutOfBagEntropy

RNG = np.random.default_rng(0)
N = 1500
X = pd.DataFrame({"a b": RNG.normal(size=N), "a_b": RNG.normal(size=N), "c": RNG.normal(size=N)})
Y = X["a b"] > 0
Z = np.where(X["c"] + 0.5 * RNG.normal(size=N) > 0, "p", "q")


def test_the_columns_that_models_split_on_are_told():
    valuation = OutOfBagEntropy(n_bags=5, random_state=0).fit(X, Y, sensitive_features={"z": Z}).valuation_
    told = valuation.metadata["split_gains"]
    assert told["columns"] == ["a b", "a_b", "c"]
    assert sum(told["shares"]["y"]) == pytest.approx(1)
    assert told["shares"]["y"][0] > 0.99
    assert len(told["shares"]["z"]) == 4  # the target is the last
    assert np.argmax(told["shares"]["z"]) == 2


def test_a_column_kept_from_models_has_no_gain():
    shares = [
        OutOfBagEntropy(estimators=estimators, n_bags=5, random_state=0, z_exclude=["c"])
        .fit(X, Y, sensitive_features={"z": Z})
        .valuation_.metadata["split_gains"]["shares"]["z"]
        for estimators in (None, drawing_columns())
    ]
    for share in shares:
        assert share[2] == 0
        assert sum(share) == pytest.approx(1)


def drawing_columns():
    from lightgbm import LGBMClassifier

    return LGBMClassifier(n_estimators=10, colsample_bytree=0.7)


def test_any_number_of_workers_tells_the_same():
    one, two = (
        OutOfBagEntropy(n_bags=5, random_state=0, n_jobs=jobs)
        .fit(X, Y, sensitive_features={"z": Z})
        .valuation_.metadata
        for jobs in (1, 2)
    )
    assert one == two


def test_other_estimators_tell_no_gains():
    valuation = InBagEntropy(LogisticRegression()).fit(X, Y, sensitive_features={"z": Z}).valuation_
    assert "split_gains" not in valuation.metadata


def test_the_largest_error_is_in_the_variable_s_own_units():
    target = 100.0 * X["c"] + RNG.normal(size=N)
    valuation = InBagEntropy(LinearRegression()).fit(X, target).valuation_
    errors = np.abs(LinearRegression().fit(X, target).predict(X) - target)
    assert valuation.metadata["largest_error"]["y"] == pytest.approx(errors.max())
    largest = valuation.metadata["largest_error"]["y"]
    assert (1 - valuation.agreement["y"].to_numpy()) * largest == pytest.approx(errors.to_numpy())
