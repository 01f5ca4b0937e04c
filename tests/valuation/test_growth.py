"""The default models grow as many trees as help with rows that they have not seen."""

import numpy as np
import pandas as pd
import pytest
from lightgbm import LGBMClassifier

from fado import InBagEntropy, OutOfBagEntropy
from fado._variables import Variable
from fado.engine import _boosting, _lightgbm
from fado.engine._lightgbm import Prediction
from fado.valuation import _fits
from fado.valuation._growth import LossCurve, bags_that_tell, best_number_of_trees

RNG = np.random.default_rng(0)
X = pd.DataFrame(RNG.normal(size=(3000, 6)), columns=list("abcdef"))
CLEAR = (X["a"] + X["b"] * X["c"] + X["d"] > 0).to_numpy()
COIN = RNG.integers(0, 2, size=len(X))
MOST = _lightgbm.default_estimators(6)[0].n_estimators


def classes(labels, n_classes=2):
    return Variable("y", "classes", np.asarray(labels), tuple(range(n_classes)))


def said(predicted):
    return Prediction(np.array(predicted), gains=np.zeros(1))


class ForgetfulCurve(LossCurve):
    def __call__(self, so_far):
        enough = super().__call__(so_far)
        self.kept = {}
        return enough


def test_noise_gets_few_trees_and_a_clear_rule_many():
    valuation = OutOfBagEntropy(random_state=0).fit(X, CLEAR, sensitive_features={"coin": COIN}).valuation_
    assert valuation.metadata["trees"] == {"y": MOST, "coin": 10}
    assert np.median(valuation["y"]) < 0.3 < 0.9 < np.median(valuation["coin"])


def test_each_row_is_valued_as_often_as_bags_left_it_out():
    valuation = OutOfBagEntropy(random_state=0).fit(X, CLEAR, sensitive_features={"coin": COIN}).valuation_
    assert set(valuation.counts["y"]) == set(valuation.counts["coin"]) == {2}


def test_a_first_fit_says_what_a_fit_of_the_chosen_size_would_say(monkeypatch):
    wanted = OutOfBagEntropy(random_state=0).fit(X, CLEAR, sensitive_features={"coin": COIN}).valuation_
    monkeypatch.setattr(_fits, "LossCurve", ForgetfulCurve)
    again = OutOfBagEntropy(random_state=0).fit(X, CLEAR, sensitive_features={"coin": COIN}).valuation_
    np.testing.assert_allclose(wanted["y"], again["y"], rtol=0, atol=1e-15)  # added in another order
    np.testing.assert_array_equal(wanted["coin"], again["coin"])


@pytest.mark.parametrize(
    "valuator",
    [OutOfBagEntropy(LGBMClassifier(n_estimators=12), random_state=0), InBagEntropy(random_state=0)],
)
def test_estimators_of_the_user_and_in_bag_models_keep_their_size(valuator, monkeypatch):
    monkeypatch.setattr(_fits, "LossCurve", None)
    assert "trees" not in valuator.fit(X, CLEAR).valuation_.metadata


def test_a_tree_sees_all_of_few_columns_and_a_share_of_many():
    shares = [_lightgbm.default_estimators(n)[0].colsample_bytree for n in (1, 5, 6, 20, 1000)]
    assert shares[:2] == [1.0, 1.0]
    assert shares[2:] == sorted(shares[2:], reverse=True)
    assert 0.3 < shares[-1] < 0.31


def test_the_fewer_columns_a_tree_sees_the_faster_it_learns():
    rates = [_lightgbm.default_estimators(n)[0].learning_rate for n in (1, 9, 10, 13, 1000)]
    assert rates == sorted(rates)
    assert (rates[0], rates[-1]) == (0.24, 0.29)


def test_numbers_are_judged_by_squared_error_of_known_ones():
    z = Variable("z", "continuous", np.array([1.0, np.nan, 3.0, 9.0]))
    curve = LossCurve(z, np.array([0, 1, 2]))
    assert not curve(said([1.0, 7.0, 2.0]))
    assert curve.losses == [2.0, 1.0]


def test_a_class_that_the_bag_lacks_does_not_decide():
    curve = LossCurve(classes([0, 1, 2], 3), np.arange(3))
    curve(said([[0.5, 0.5, 0.0]] * 3))
    assert np.isfinite(curve.losses).all()


def test_what_a_fit_said_is_kept_from_shortly_before_its_lowest_loss_on():
    curve = LossCurve(classes([0, 1]), np.array([0, 1]))
    for sure in (0.5, 0.6, 0.7, 0.8, 0.9, 0.8):
        curve(said([1 - sure, sure]))
    assert list(curve.kept) == [10, 15, 20, 25, 30]
    assert curve.kept[30].predicted.tolist() == [1 - 0.8, 0.8]


def test_growing_ends_when_the_loss_has_long_not_fallen():
    curve = LossCurve(classes([0, 1]), np.array([0, 1]))
    assert not curve(said([0.1, 0.9]))
    assert [curve(said([0.2, 0.8])) for _ in range(3)] == [False, False, True]
    assert curve.n_trees == 20


def test_trees_are_grown_until_a_hundredth_of_the_fall_is_lost_again():
    assert best_number_of_trees([[10.0, 9.0, 5.0, 1.0, 1.05, 1.2]], most=40) == 20
    assert best_number_of_trees([[10.0, 9.0, 5.0, 1.0, 1.2, 1.05]], most=40) == 15


def test_what_never_helps_gets_the_fewest_trees():
    assert best_number_of_trees([[1.0, 1.1, 1.2, 1.3]], most=40) == 10
    assert best_number_of_trees([[1.0, 1.1]], most=6) == 6


def test_a_curve_that_ends_early_is_taken_to_rise_on():
    early = [10.0, 5.0, 5.0, 4.0, 4.5, 5.0]
    assert best_number_of_trees([early, [10.0, 5.0, 5.0, 5.0, 4.0, 3.0, 2.0]], most=40) == 30
    assert best_number_of_trees([early, [10.0, 5.0, 5.0, 5.0, 4.8, 4.6, 4.4]], most=40) == 15


def test_what_only_two_columns_together_tell_is_waited_for():
    together = (X["a"] > 0) ^ (X["b"] > 0)
    valuation = OutOfBagEntropy(random_state=0).fit(X.iloc[:1000], together.iloc[:1000]).valuation_
    assert valuation["y"].mean() < 0.6
    assert np.mean(valuation.agreement["y"] > 0.5) > 0.85


def test_without_any_tree_the_models_keep_their_size():
    assert best_number_of_trees([[1.0]], most=40) == 40


def test_rare_classes_need_more_bags():
    bags = [np.arange(6000)] * 10
    rows = np.arange(30_000)
    assert bags_that_tell(classes(rows % 2), bags) == 1
    assert bags_that_tell(classes(rows < 3000), bags) == 3
    assert bags_that_tell(classes(rows < 300), bags) == 10
    assert bags_that_tell(Variable("z", "continuous", rows.astype(float)), bags) == 1


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
        monkeypatch.setattr(_lightgbm, "many_usual_values", lambda columns, many=many: many)
        values.append(OutOfBagEntropy(estimator, n_bags=5, random_state=0).fit(table, CLEAR).valuation_["y"])
    np.testing.assert_array_equal(*values)


def test_zeros_and_a_level_in_most_rows_are_usual():
    from fado._frames import Table

    zeros = Table.from_input(np.where(RNG.random((500, 4)) < 0.3, 0.0, RNG.normal(size=(500, 4))))
    one_level = Table.from_input(pd.DataFrame({"a": ["u"] * 80 + ["v"] * 20, "b": RNG.normal(size=100)}))
    assert _boosting.many_usual_values(zeros.columns)
    assert _boosting.many_usual_values(one_level.columns)
    assert not _boosting.many_usual_values(Table.from_input(X).columns)
