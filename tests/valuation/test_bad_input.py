"""Bad input ends in a sentence that says what is wrong, with what, and what to do."""

import datetime

import numpy as np
import pandas as pd
import pytest
from lightgbm import LGBMClassifier, LGBMRegressor
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.svm import LinearSVC

from fado import InBagEntropy, OutOfBagEntropy

RNG = np.random.default_rng(0)
X = pd.DataFrame({"a": RNG.normal(size=40), "b": RNG.normal(size=40)})
Y = np.array([0, 1] * 20)
Z = np.array([0, 0, 1, 1] * 10)


def fit(X=X, y=Y, z=Z, **parameters):
    return OutOfBagEntropy(**({"random_state": 0} | parameters)).fit(X, y, sensitive_features=z)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"y": Y[:-1]}, "`y` has 39 entries and X has 40 rows"),
        ({"z": Z[:-1]}, "'z' has 39 entries and X has 40 rows"),
        ({"X": X[:0], "y": [], "z": None}, r"`X` has 0 row\(s\)"),
        ({"X": X[:1], "y": [1], "z": None}, r"`X` has 1 row\(s\)"),
        ({"X": X[:2], "y": [0, 1], "z": None}, "leaves an out-of-bag set empty"),
        ({"X": X[[]]}, r"`X` has 0 feature\(s\)"),
        ({"y": np.where(Y == 1, np.nan, 0.0)}, r"`y` has 20 missing or NaN value\(s\)"),
        ({"y": np.where(Y == 1, np.inf, 0.0)}, "`y` contains infinity"),
        ({"y": np.ones(40)}, r"`y` has only one class \(1\)"),
        ({"z": np.ones(40)}, r"'z' has only one class \(1\)"),
        ({"z": [None] * 40}, "'z' is unknown in every row"),
        ({"z": "c"}, "names 'c', which is not a column of X"),
        ({"z": [f"id{j}" for j in range(40)]}, "'z' has 40 classes in 40 rows, like an identifier"),
        ({"z": {"y": Z}}, "cannot be called 'y'"),
        ({"n_bags": 3}, "`n_bags \\* unseen_fraction` must be at least 1"),
        ({"unseen_fraction": 0.01, "n_bags": 100}, "leaves an out-of-bag set empty"),
        ({"unseen_fraction": 0.99}, "leaves an in-bag set empty"),
        ({"kinds": {"w": "continuous"}}, "`kinds` names 'w'"),
        ({"z_exclude": ["c"]}, r"`z_exclude` names 'c', which is not a column of X\.$"),
        ({"z_exclude": ["B"]}, "`z_exclude` names 'B', which is not a column of X; did you mean 'b'"),
        ({"z_exclude": {"z": ["c*"]}}, r"the pattern 'c\*', which matches no column of X\.$"),
        ({"z_exclude": {"w": ["a"]}}, "`z_exclude` names 'w', which is not one of the attributes"),
        ({"estimators": []}, "`estimators` is empty"),
        ({"estimators": LinearRegression()}, "holds no classifier for the class variable 'y': add one"),
        (
            {"estimators": LogisticRegression(), "z": RNG.normal(size=40)},
            "holds no regressor for the continuous variable 'z': add one",
        ),
        ({"estimators": LinearSVC()}, "LinearSVC has no `predict_proba`.*CalibratedClassifierCV"),
        ({"n_jobs": 0}, "`n_jobs` must not be 0"),
        ({"X": X.assign(when=datetime.datetime(2020, 1, 1))}, "Column 'when' holds dates or times"),
        (
            {"X": X.assign(mix=pd.Series([1, "a"] * 20, dtype=object))},
            r"Column 'mix' mixes types \(int, str\)",
        ),
        ({"y": Y.reshape(20, 2)}, "`y` must be one-dimensional"),
        ({"n_bags": 10**10}, "`n_bags` must be at most 100,000, got 10000000000"),
        ({"n_jobs": 10**10}, "`n_jobs` must be at most 1,000, got 10000000000"),
        ({"random_state": 1.5}, "`random_state` must be a whole number, a numpy generator or"),
        ({"random_state": -1}, "`random_state` must not be negative, got -1"),
        ({"z_exclude": ["a", "b"], "z_sees_target": False}, "No column of X is left for the models of 'z'"),
        (
            {"X": X.assign(gap=[np.nan] + [0.0] * 39), "estimators": LogisticRegression()},
            r"^LogisticRegression takes no missing .* column 'gap' has some",
        ),
    ],
)
def test_value_errors(arguments, message):
    with pytest.raises(ValueError, match=message):
        fit(**arguments)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            {"estimators": [LGBMClassifier(), LogisticRegression]},
            r"^`estimators` must be an object, got the class LogisticRegression: write `LogisticReg",
        ),
        ({"estimators": "forest"}, "must be unfitted scikit-learn estimators"),
        ({"estimators": [LGBMClassifier(), 3]}, "must be unfitted scikit-learn estimators"),
        ({"n_bags": "10"}, "`n_bags` must be a whole number, got '10'"),
        ({"n_jobs": 1.5}, "`n_jobs` must be a whole number, got 1.5"),
        ({"z_exclude": 5}, "`z_exclude` must be a list of column names, got 5"),
        ({"z_exclude": {"z": 5}}, "`z_exclude` must be a list of column names, got 5"),
    ],
)
def test_type_errors(arguments, message):
    with pytest.raises(TypeError, match=message):
        fit(**arguments)


@pytest.mark.parametrize("broken", [LogisticRegression(C=-1.0), LGBMClassifier(num_leaves=1)])
def test_a_failing_estimator_is_named_with_variable_and_bag(broken):
    with pytest.raises(RuntimeError, match=rf"{type(broken).__name__} on variable 'y' in bag 0 failed: .+"):
        fit(estimators=broken, n_jobs=1)


class Odd(DummyClassifier):
    """Gives odd probabilities for the first three rows that it is asked for."""

    def __init__(self, rows=((0.5, 0.5),)):
        super().__init__()
        self.rows = rows

    def predict_proba(self, X):
        p = super().predict_proba(X)
        p[:3] = self.rows
        return p


class OddNumbers(DummyRegressor):
    """Predicts something odd for the first two rows that it is asked for."""

    def __init__(self, odd=0.0):
        super().__init__()
        self.odd = odd

    def predict(self, X):
        predicted = super().predict(X)
        predicted[:2] = self.odd
        return predicted


class Columns(DummyRegressor):
    def predict(self, X):
        return super().predict(X)[:, None]


@pytest.mark.parametrize(
    ("estimator", "message"),
    [
        (Odd([np.nan, 0.5]), "NaN or infinite probabilities for 3 of 8 rows"),
        (Odd([np.inf, 0.5]), "NaN or infinite probabilities for 3 of 8 rows"),
        (Odd([0.0, 0.0]), "probabilities that do not sum to 1 for 3 of 8 rows"),
        (Odd([0.6, 0.8]), "probabilities that do not sum to 1 for 3 of 8 rows"),
        (Odd([-0.5, 1.5]), r"probabilities outside \[0, 1\] for 3 of 8 rows"),
    ],
)
def test_probabilities_that_are_none_are_refused(estimator, message):
    with pytest.raises(RuntimeError, match=f"^Odd on variable 'y' in bag 0 gave {message}, .* correct the"):
        fit(estimators=estimator, n_jobs=1)
    with pytest.raises(RuntimeError, match=r"^Odd on variable 'y' in bag 0 gave .* for 3 of 40 rows"):
        InBagEntropy(estimator, n_jobs=1).fit(X, Y)


@pytest.mark.parametrize(
    ("estimator", "message"),
    [
        (
            OddNumbers(np.nan),
            "OddNumbers on variable 'z' in bag 0 gave NaN or infinite predictions for 2 of 8",
        ),
        (
            OddNumbers(-np.inf),
            "OddNumbers on variable 'z' in bag 0 gave NaN or infinite predictions for 2 of",
        ),
        (Columns(), r"Columns on variable 'z' in bag 0 gave predictions of shape \(8, 1\) for 8 rows"),
    ],
)
def test_predictions_that_are_no_numbers_are_refused(estimator, message):
    with pytest.raises(RuntimeError, match=message):
        fit(estimators=[LogisticRegression(), estimator], z=RNG.normal(size=40), n_jobs=1)


@pytest.mark.filterwarnings("ignore:.*a class with one member:UserWarning")
@pytest.mark.filterwarnings("ignore:.*repeat the target:UserWarning")
@pytest.mark.parametrize("rows", [2, 3, 5, 7])
def test_tiny_tables_work_where_bags_allow(rows):
    y = np.arange(rows) % 2
    z = np.arange(rows) // 2 % 2 if rows > 2 else None
    valuator = OutOfBagEntropy([LGBMClassifier(), LGBMRegressor()], unseen_fraction=0.5, random_state=0)
    valuation = valuator.fit(np.arange(rows * 2.0).reshape(rows, 2), y, sensitive_features=z).valuation_
    assert np.isfinite(valuation.values.to_numpy()).all()
    assert (valuation.counts.to_numpy() == 5).all()
