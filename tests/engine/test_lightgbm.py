"""The LightGBM engine gives what the estimators themselves would give, fit by fit."""

import numpy as np
import pandas as pd
import pytest
from lightgbm import LGBMClassifier, LGBMRegressor
from scipy.stats import spearmanr

from fado import InBagEntropy, OutOfBagEntropy
from fado.engine._lightgbm import supports
from fado.valuation._entropy import normalised_entropy

N = 3000
RNG = np.random.default_rng(0)
COARSE = RNG.integers(0, 40, size=(N, 6)).astype(float)  # few distinct values: every bag has the same bins
FINE = RNG.normal(size=(N, 6))
COARSE[RNG.random(COARSE.shape) < 0.1] = np.nan


def labels_of(X, n_classes=2):
    signal = np.nansum(X[:, :3], axis=1) + 0.1 * np.nan_to_num(X[:, 3] * X[:, 4])
    signal = signal + RNG.normal(scale=signal.std(), size=N)
    return np.digitize(signal, np.quantile(signal, np.arange(1, n_classes) / n_classes))


def by_hand(estimator, X, y, bags, n_classes):
    """The mean entropy through the estimator's own fit and predict_proba on the same bags."""
    total, count = np.zeros(len(y)), np.zeros(len(y))
    for out in bags:
        inside = np.setdiff1d(np.arange(len(y)), out)
        model = LGBMClassifier(**{**estimator.get_params(), "verbosity": -1, "n_jobs": 1})
        model.fit(X[inside], y[inside])
        p = np.zeros((len(out), n_classes))
        p[:, model.classes_] = model.predict_proba(X[out])
        total[out] += normalised_entropy(p)
        count[out] += 1
    return total / count


SETTINGS = [
    {},
    {"num_leaves": 7, "learning_rate": 0.3, "min_child_samples": 5},
    {"subsample": 0.7, "subsample_freq": 1, "random_state": 4},
    {"colsample_bytree": 0.5, "random_state": 4},
    {"reg_alpha": 1.0, "reg_lambda": 2.0, "max_depth": 3, "min_split_gain": 0.1},
    {"boosting_type": "goss", "random_state": 1},
    {"scale_pos_weight": 5.0},
]


@pytest.mark.parametrize("parameters", SETTINGS)
def test_equals_the_estimators_own_fit_where_bins_coincide(parameters):
    y = labels_of(COARSE)
    estimator = LGBMClassifier(n_estimators=20, **parameters)
    valuator = OutOfBagEntropy(estimator, n_bags=5, random_state=0).fit(COARSE, y)
    expected = by_hand(estimator, COARSE, y, valuator.bags_, 2)
    np.testing.assert_allclose(valuator.valuation_["y"], expected, rtol=0, atol=1e-9)


@pytest.mark.parametrize("least_rows", [1, 20, 60])
def test_columns_that_cannot_be_split_are_not_drawn(least_rows):
    rare = (np.arange(N) % 60 == 0).astype(float)  # 50 rows, some 40 in a bag
    X = np.column_stack([COARSE, np.ones(N), np.full(N, np.nan), rare])
    y = labels_of(COARSE)
    estimator = LGBMClassifier(
        n_estimators=20, colsample_bytree=0.5, min_child_samples=least_rows, random_state=4
    )
    valuator = OutOfBagEntropy(estimator, n_bags=5, random_state=0).fit(X, y)
    expected = by_hand(estimator, X, y, valuator.bags_, 2)
    np.testing.assert_allclose(valuator.valuation_["y"], expected, rtol=0, atol=1e-9)


def test_equals_the_estimators_own_fit_for_many_classes():
    y = labels_of(COARSE, n_classes=4)
    estimator = LGBMClassifier(n_estimators=20)
    valuator = OutOfBagEntropy(estimator, n_bags=5, random_state=0).fit(COARSE, y)
    expected = by_hand(estimator, COARSE, y, valuator.bags_, 4)
    np.testing.assert_allclose(valuator.valuation_["y"], expected, rtol=0, atol=1e-9)


def test_differs_by_binning_alone_on_fine_numbers():
    y = labels_of(FINE)
    estimator = LGBMClassifier(n_estimators=30)
    valuator = OutOfBagEntropy(estimator, n_bags=10, random_state=0).fit(FINE, y)
    expected = by_hand(estimator, FINE, y, valuator.bags_, 2)
    assert np.abs(valuator.valuation_["y"] - expected).mean() < 0.05
    assert spearmanr(valuator.valuation_["y"], expected)[0] > 0.95


def test_protected_models_see_the_target_and_not_themselves():
    """The masked columns of the shared bins are as good as absent."""
    y = labels_of(COARSE)
    z = (np.nan_to_num(COARSE[:, 5]) + 10 * y + RNG.normal(scale=9, size=N) > 20).astype(int)
    frame = pd.DataFrame(COARSE, columns=list("abcdef")).assign(z=z)
    estimator = LGBMClassifier(n_estimators=20)
    valuator = OutOfBagEntropy(estimator, n_bags=5, random_state=0, z_exclude=["b"])
    valuator.fit(frame, y, sensitive_features="z")
    assert valuator.excluded_columns_ == {"z": ["b", "z"]}
    seen = np.column_stack([np.delete(COARSE, 1, axis=1), y])
    expected = by_hand(estimator, seen, z, valuator.bags_, 2)
    np.testing.assert_allclose(valuator.valuation_["z"], expected, rtol=0, atol=1e-9)
    blind = OutOfBagEntropy(estimator, n_bags=5, random_state=0, z_exclude=["b"], z_sees_target=False)
    blind.fit(frame, y, sensitive_features="z")
    expected = by_hand(estimator, np.delete(COARSE, 1, axis=1), z, valuator.bags_, 2)
    np.testing.assert_allclose(blind.valuation_["z"], expected, rtol=0, atol=1e-9)


@pytest.mark.parametrize("parameters", [{}, {"max_bin": 7}, {"subsample_for_bin": 100, "random_state": 3}])
def test_in_bag_values_equal_the_estimators_own(parameters):
    """In bag, both bin the same rows: even coarse bins coincide."""
    y = labels_of(FINE, n_classes=3)
    estimator = LGBMClassifier(n_estimators=20, verbosity=-1, **parameters)
    values = InBagEntropy(estimator).fit(FINE, y).valuation_["y"]
    expected = normalised_entropy(estimator.fit(FINE, y).predict_proba(FINE))
    np.testing.assert_allclose(values, expected, rtol=0, atol=1e-9)


@pytest.mark.parametrize("objective", [None, "huber", "poisson"])
def test_regression_equals_the_estimators_own(objective):
    target = np.nansum(COARSE[:, :3], axis=1) + RNG.random(N)
    estimator = LGBMRegressor(n_estimators=20, verbosity=-1, objective=objective)
    values = InBagEntropy(estimator).fit(COARSE, target).valuation_["y"]
    distance = np.abs(estimator.fit(COARSE, target).predict(COARSE) - target.mean())
    np.testing.assert_allclose(values, 1 - distance / distance.max(), rtol=0, atol=1e-6)


def test_categories_are_used_as_lightgbm_uses_them():
    colour = RNG.choice(["red", "green", "blue", "grey"], N)
    frame = pd.DataFrame({"colour": colour, "x": COARSE[:, 0]})
    y = ((colour == "green") | (colour == "grey")).astype(int)
    y = np.where(RNG.random(N) < 0.2, 1 - y, y)
    estimator = LGBMClassifier(n_estimators=20, verbosity=-1)
    values = InBagEntropy(estimator).fit(frame, y).valuation_["y"]
    own = estimator.fit(frame.astype({"colour": "category"}), y)
    expected = normalised_entropy(own.predict_proba(frame.astype({"colour": "category"})))
    np.testing.assert_allclose(values, expected, rtol=0, atol=1e-9)


@pytest.mark.parametrize(
    "parameters",
    [
        {"class_weight": "balanced"},
        {"objective": lambda y, p: (p - y, np.ones_like(p))},
        {"early_stopping_round": 3},
        {"boosting_type": "dart"},
        {"boosting_type": "rf"},
        {"monotone_constraints": [1, 0, 0]},
        {"random_state": np.random.RandomState(0)},
        {"objective": "multiclassova"},
        {"extra_trees": True},
        {"linear_tree": True},
    ],
)
def test_what_the_engine_cannot_honour_takes_the_generic_path(parameters):
    assert not supports(LGBMClassifier(**parameters))


def test_what_the_engine_honours():
    assert supports(LGBMClassifier(n_estimators=5, reg_alpha=1.0, max_bin=63, n_jobs=4, verbosity=-1))
    assert supports(LGBMRegressor(objective="huber"))
    assert not supports(LGBMRegressor(objective="quantile"))

    class Own(LGBMClassifier):
        pass

    assert not supports(Own())


def test_class_weights_are_honoured_through_the_generic_path():
    y = (labels_of(COARSE, n_classes=10) == 0).astype(int)
    estimator = LGBMClassifier(n_estimators=10, class_weight="balanced")
    valuator = OutOfBagEntropy(estimator, n_bags=5, random_state=0).fit(COARSE, y)
    expected = by_hand(estimator, COARSE, y, valuator.bags_, 2)
    np.testing.assert_allclose(valuator.valuation_["y"], expected, rtol=0, atol=1e-9)


@pytest.mark.parametrize("constant", [0, 1])
def test_a_bag_of_one_class_is_certain_of_it(constant):
    """LightGBM's own wrapper turns the probabilities of an all-ones bag round."""
    y = np.full(20, constant)
    y[0] = 1 - constant
    X = RNG.normal(size=(20, 2))
    with pytest.warns(UserWarning, match="a class with one member"):
        valuator = OutOfBagEntropy(LGBMClassifier(), n_bags=5, random_state=0).fit(X, y)
    alone = next(bag for bag in valuator.bags_ if 0 in bag)
    others = [row for row in alone if row != 0]
    assert (valuator.valuation_["y"][alone] == 0).all()
    agreement = valuator.valuation_.agreement["y"]
    assert (agreement[others] == 1).all()
    assert agreement[0] == 0


def test_a_class_that_a_bag_lacks_has_probability_zero():
    y = np.array([0, 1] * 30 + [2])
    X = RNG.integers(0, 5, size=(61, 2)).astype(float)
    with pytest.warns(UserWarning, match=r"one member \(2\)"):
        valuation = (
            OutOfBagEntropy(LGBMClassifier(n_estimators=5), n_bags=5, random_state=0).fit(X, y).valuation_
        )
    assert valuation.agreement["y"][60] == 0
    assert valuation["y"].max() <= 1 / np.log2(3) + 0.2


def test_column_names_never_reach_lightgbm():
    names = ["a b", "a_b", '{"x":[1]}', "a,b", "", "é\n"]
    y = labels_of(COARSE)
    estimator = LGBMClassifier(n_estimators=5)
    plain = OutOfBagEntropy(estimator, n_bags=5, random_state=0).fit(COARSE, y).valuation_["y"]
    named = OutOfBagEntropy(estimator, n_bags=5, random_state=0).fit(pd.DataFrame(COARSE, columns=names), y)
    np.testing.assert_array_equal(named.valuation_["y"], plain)
