"""Fits: the pace of the default models, and what is told of them."""

import numpy as np
import pandas as pd
import pytest
from lightgbm import LGBMClassifier
from sklearn.base import clone
from sklearn.linear_model import LinearRegression, LogisticRegression

from fado import InBagEntropy, OutOfBagEntropy
from fado.engine import default_estimators
from fado.engine._bins import DenseColumns
from fado.tabular import Table, Variable
from fado.valuation.entropy import _fits, _out_of_bag
from fado.valuation.entropy._fits import (
    LossCurve,
    choose_pace,
    n_pacing_bags,
    sum_losses,
)

RNG = np.random.default_rng(0)
X = pd.DataFrame(RNG.normal(size=(3000, 6)), columns=list("abcdef"))
CLEAR = (X["a"] + X["b"] * X["c"] + X["d"] > 0).to_numpy()
WAVES = (np.sin(4 * X).sum(axis=1) > 0).to_numpy()  # many splits before they are told well
COIN = RNG.integers(0, 2, size=len(X))
FAST = default_estimators(6)[0]
FORTY = LGBMClassifier(n_estimators=40, learning_rate=0.3, colsample_bytree=0.8)


def classes(labels, n_classes=2):
    return Variable("y", "classes", np.asarray(labels), tuple(range(n_classes)))


def test_noise_is_learnt_slowly_and_a_clear_rule_fast():
    valuation = OutOfBagEntropy(random_state=0).fit(X, CLEAR, sensitive_features={"coin": COIN}).valuation_
    trees, rates = valuation.metadata["trees"], valuation.metadata["learning_rates"]
    assert (trees["y"], rates["y"]) == (FAST.n_estimators, FAST.learning_rate)
    assert rates["coin"] < FAST.learning_rate / 2
    assert trees["coin"] * rates["coin"] == pytest.approx(10 * FAST.learning_rate, rel=1e-2)
    assert np.median(valuation["y"]) < 0.3 < 0.9 < np.median(valuation["coin"])
    assert (valuation.counts == 2).all(axis=None)  # as often as bags left a row out


@pytest.mark.parametrize(
    ("labels", "pace"),
    [(CLEAR, (45, 0.28)), (COIN, (26, 0.1077)), (WAVES, (90, 0.28))],
    ids=["fast", "slowed", "grown on"],
)
def test_every_bag_is_valued_by_the_paced_model(labels, pace, monkeypatch):
    wanted = OutOfBagEntropy(random_state=0).fit(X, labels).valuation_
    trees, rate = wanted.metadata["trees"]["y"], wanted.metadata["learning_rates"]["y"]
    assert (trees, rate) == pace
    named = clone(FAST).set_params(n_estimators=trees, learning_rate=rate)
    monkeypatch.setattr(_out_of_bag, "default_estimators", lambda n_columns: [named])
    monkeypatch.setattr(_fits, "n_pacing_bags", lambda variable, bags: 0)
    again = OutOfBagEntropy(random_state=0).fit(X, labels).valuation_
    np.testing.assert_allclose(wanted["y"], again["y"], rtol=0, atol=1e-15)  # added in another order


@pytest.mark.parametrize(
    "valuator",
    [OutOfBagEntropy(LGBMClassifier(n_estimators=12), random_state=0), InBagEntropy(random_state=0)],
)
def test_estimators_of_the_user_and_in_bag_models_keep_their_pace(valuator, monkeypatch):
    monkeypatch.setattr(_fits, "LossCurve", None)
    assert "trees" not in valuator.fit(X, CLEAR).valuation_.metadata


def test_a_tree_sees_all_of_few_columns_and_a_share_of_many():
    shares = [default_estimators(n)[0].colsample_bytree for n in (1, 3, 6, 20, 1000)]
    assert shares[:2] == [1.0, 1.0]
    assert shares[2:] == sorted(shares[2:], reverse=True)
    assert 0.55 < shares[-1] < 0.56


def test_numbers_are_validated_by_squared_error_of_known_ones():
    z = Variable("z", "continuous", np.array([1.0, np.nan, 3.0, 9.0]))
    curve = LossCurve(z, np.array([0, 1, 2]))
    assert not curve(np.array([1.0, 7.0, 2.0]))
    assert curve.losses == [2.0, 1.0]


def test_a_class_that_the_bag_lacks_does_not_decide():
    curve = LossCurve(classes([0, 1, 2], 3), np.arange(3))
    curve(np.array([[0.5, 0.5, 0.0]] * 3))
    assert np.isfinite(curve.losses).all()


def test_growing_ends_when_the_loss_has_long_not_fallen():
    curve = LossCurve(classes([0, 1]), np.array([0, 1]))
    assert not curve(np.array([[0.9, 0.1], [0.1, 0.9]]))
    assert [curve(np.array([[0.8, 0.2], [0.2, 0.8]])) for _ in range(3)] == [False, False, True]
    assert len(curve.losses) == 5  # before any tree, and after 5, 10, 15 and 20


def losses_with_the_lowest_after(n_trees, most=40):
    """Fall less and less, then rise."""
    steps = np.arange(0, most + 1, 5)
    return np.abs(1 - steps / n_trees) ** 2 + 1


@pytest.mark.parametrize("best", [10, 15, 20, 25, 30])
def test_a_slowed_model_learns_as_much_with_more_trees(best):
    slowed = choose_pace(FORTY, losses_with_the_lowest_after(best))
    assert best < slowed.n_estimators <= FORTY.n_estimators
    learnt = slowed.n_estimators * slowed.learning_rate
    assert learnt == pytest.approx(best * FORTY.learning_rate, rel=1e-2)
    assert slowed.colsample_bytree == FORTY.colsample_bytree


@pytest.mark.parametrize(
    ("estimator", "losses"),
    [
        (FORTY, losses_with_the_lowest_after(40)),
        (FORTY, losses_with_the_lowest_after(35)),
        (FORTY, np.array([1.0])),  # no tree was grown
        (FORTY, np.zeros(0)),
        (clone(FORTY).set_params(n_estimators=6), np.array([1.0, 1.1])),
    ],
)
def test_a_model_that_learns_nearly_to_its_last_tree_keeps_its_pace(estimator, losses):
    assert choose_pace(estimator, losses) is estimator


def test_a_model_that_has_far_too_few_trees_gets_twice_as_many():
    assert choose_pace(FORTY, np.linspace(2, 1, 9)).n_estimators == 2 * FORTY.n_estimators
    assert choose_pace(FORTY, np.linspace(2, 1, 8)).n_estimators <= FORTY.n_estimators  # it was stopped


def test_what_never_helps_is_learnt_most_slowly():
    slowest = choose_pace(FORTY, np.array([1.0, 1.1, 1.2, 1.3]))
    assert slowest.n_estimators * slowest.learning_rate == pytest.approx(10 * FORTY.learning_rate, rel=1e-2)


def test_a_curve_that_ends_early_is_taken_to_rise_on():
    early = [10.0, 5.0, 5.0, 4.0, 4.5, 5.0]
    assert sum_losses([early, [1.0] * 7, [1.0]]).tolist() == [11.0, 6.0, 6.0, 5.0, 5.5, 6.0, 6.5]
    assert sum_losses([[1.0]]).size == 0


def test_what_only_two_columns_together_tell_is_waited_for():
    together = (X["a"] > 0) ^ (X["b"] > 0)
    valuation = OutOfBagEntropy(random_state=0).fit(X.iloc[:1000], together.iloc[:1000]).valuation_
    assert valuation["y"].mean() < 0.6
    assert np.mean(valuation.label_probability["y"] > 0.5) > 0.85


ROWS = np.arange(30_000)


@pytest.mark.parametrize(
    ("variable", "n_bags", "expected"),
    [
        (classes(ROWS % 2), 10, 1),
        (classes(ROWS < 3000), 10, 1),
        (classes(ROWS < 1500), 10, 2),
        (classes(ROWS < 300), 10, 2),
        (classes(ROWS < 300), 1, 1),
        (Variable("z", "continuous", ROWS.astype(float)), 10, 1),
    ],
)
def test_rare_classes_need_more_bags(variable, n_bags, expected):
    assert n_pacing_bags(variable, [np.arange(6000)] * n_bags) == expected


@pytest.mark.parametrize("parameters", [None, {"colsample_bytree": 0.5}])
def test_how_lightgbm_counts_changes_no_bit(parameters, monkeypatch):
    table = X.assign(
        mostly_zero=np.where(RNG.random(len(X)) < 0.9, 0, X["a"]),
        gaps=X["b"].where(X["c"] > 0),
        text=pd.Categorical(RNG.choice(["u", "v", "w"], p=[0.8, 0.1, 0.1], size=len(X))),
    )
    estimator = None if parameters is None else LGBMClassifier(n_estimators=15, **parameters)
    values = []
    for many in (True, False):
        monkeypatch.setattr(DenseColumns, "has_many_usual", lambda columns, many=many: many)
        values.append(OutOfBagEntropy(estimator, n_bags=5, random_state=0).fit(table, CLEAR).valuation_["y"])
    np.testing.assert_array_equal(*values)


def test_zeros_and_a_level_in_most_rows_are_usual():
    zeros = Table.from_input(np.where(RNG.random((500, 4)) < 0.3, 0.0, RNG.normal(size=(500, 4))))
    one_level = Table.from_input(pd.DataFrame({"a": ["u"] * 80 + ["v"] * 20, "b": RNG.normal(size=100)}))
    usual = [DenseColumns(own.columns).has_many_usual() for own in (zeros, one_level, Table.from_input(X))]
    assert usual == [True, True, False]


# --- what is told of what they learnt

N = 1500
TABLE = pd.DataFrame({"a b": RNG.normal(size=N), "a_b": RNG.normal(size=N), "c": RNG.normal(size=N)})
RULE = TABLE["a b"] > 0
GROUP = np.where(TABLE["c"] + 0.5 * RNG.normal(size=N) > 0, "p", "q")


def learnt(valuator, y=RULE):
    return valuator.set_params(random_state=0).fit(TABLE, y, sensitive_features={"z": GROUP}).valuation_


def test_the_columns_that_models_split_on_are_told():
    metadata, again = (learnt(OutOfBagEntropy(n_bags=5, n_jobs=jobs)).metadata for jobs in (1, 2))
    assert metadata == again
    gains = metadata["split_gains"]
    assert gains["columns"] == ["a b", "a_b", "c"]
    assert sum(gains["shares"]["y"]) == pytest.approx(1)
    assert gains["shares"]["y"][0] > 0.99
    assert len(gains["shares"]["z"]) == 4  # the target is the last
    assert np.argmax(gains["shares"]["z"]) == 2
    assert "split_gains" not in learnt(InBagEntropy(LogisticRegression())).metadata


@pytest.mark.parametrize("estimators", [None, LGBMClassifier(n_estimators=10, colsample_bytree=0.7)])
def test_a_column_kept_from_models_has_no_gain(estimators):
    valuation = learnt(OutOfBagEntropy(estimators, n_bags=5, z_exclude=["c"]))
    share = valuation.metadata["split_gains"]["shares"]["z"]
    assert share[2] == 0
    assert sum(share) == pytest.approx(1)


def test_the_largest_error_is_in_the_variable_s_own_units():
    target = 100.0 * TABLE["c"] + RNG.normal(size=N)
    valuation = InBagEntropy(LinearRegression()).fit(TABLE, target).valuation_
    errors = np.abs(LinearRegression().fit(TABLE, target).predict(TABLE) - target)
    assert valuation.metadata["largest_error"]["y"] == pytest.approx(errors.max())
    largest = valuation.metadata["largest_error"]["y"]
    assert (1 - valuation.label_probability["y"].to_numpy()) * largest == pytest.approx(errors.to_numpy())
