import warnings
from functools import cache
from importlib.metadata import version
from math import log

import numpy as np
import pandas as pd
import pytest
from lightgbm import LGBMClassifier
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression, RidgeClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks
from tests.valuation.same import assert_same
from tests.valuation.shapley.oracles import counted_out, distributional_weight
from tests.valuation.shapley.test_semivalues import estimate

from fado import DataShapley
from fado.tabular import read_problem
from fado.valuation.shapley._semivalues import Walks
from fado.valuation.shapley._training_game import Goals, training_games

pytestmark = pytest.mark.filterwarnings("ignore:After .* fits the values are precise to")
QUICK = LGBMClassifier(
    n_estimators=5, num_leaves=4, min_child_samples=2, learning_rate=0.5, reg_lambda=1.0, max_bin=15
)


def table(n_rows, seed=0, flipped=0.0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, 2))
    y = (X[:, 0] + 0.3 * rng.normal(size=n_rows) > 0).astype(int)
    sex = np.where(rng.random(n_rows) < 0.5, "f", "m")
    wrong = rng.random(n_rows) < flipped
    return X, np.where(wrong, 1 - y, y), sex, wrong


def validation_of(n_rows=300, seed=1):
    return table(n_rows, seed)[:3]


LABELLED = (*validation_of()[:2], None)
X20, Y20, SEX20, _ = table(20)
X12, Y12, *_ = table(12)


def games_for(X, y, sex=None, validation=None, estimator=QUICK, goals=None, **given):
    goals = Goals("accuracy", "fpr_ratio", 0.2) if goals is None else goals
    problem = read_problem(X, y, sex, **given)
    validated = None if validation is None else read_problem(*validation)
    return training_games(problem, validated, estimator, goals, 0, 1, by_content=False)


def valuation_of(X, y, sex=None, validation=None, **settings):
    settings = {"estimator": QUICK, "max_fpr": 0.2, "random_state": 0, "n_jobs": 1} | settings
    return DataShapley(**settings).fit(X, y, sensitive_features=sex, validation=validation).valuation_


def test_wrong_labels_are_worth_less():
    X, y, _, wrong = table(60, flipped=0.15)
    valuation = valuation_of(X, y, validation=LABELLED, max_fits=1500)
    assert valuation["y"][wrong].mean() < 0 < valuation["y"][~wrong].mean()
    assert valuation["y"][wrong].mean() < np.quantile(valuation["y"][~wrong], 0.2)


@pytest.mark.parametrize(
    ("semivalue", "m"), [("shapley", 6), (("distributional", 6), 6), (("distributional", 4), 4)]
)
def test_values_of_six_rows_are_those_over_all_sets(semivalue, m):
    X = np.array([[-2.0, 1], [-1, -1], [-0.2, 0], [0.3, 1], [1, 0], [2, -1]])
    y, sex = np.array([0, 0, 1, 0, 1, 1]), np.array(list("fmfmfm"))
    (game,) = games_for(X, y, sex, validation_of(100), LogisticRegression())
    known = cache(lambda members: game(np.array(sorted(members), dtype=int)))

    def remembered(members):
        return known(frozenset(members.tolist()))

    exact = counted_out(remembered, range(6), distributional_weight(6, m))
    moments = estimate(remembered, Walks(6, length=m), 6, 2000, seed=0)
    assert (np.abs(moments.mean - exact) <= 4 * moments.standard_error).all()
    assert moments.standard_error.max() < 0.05
    settings = {"estimator": LogisticRegression(), "semivalue": semivalue, "max_fits": 90}
    valuation = valuation_of(X, y, sex, validation_of(100), **settings)
    expected = estimate(remembered, Walks(6, length=m), 6, 10, seed=0).mean
    np.testing.assert_allclose(valuation.values, expected, atol=1e-12)


def test_one_row_alone_adds_nothing():
    X, y, sex, _ = table(20)
    valuation = valuation_of(X, y, sex, validation_of(100), semivalue=("distributional", 1), max_fits=201)
    np.testing.assert_array_equal(valuation.values, 0)  # no model learns from one label


def test_walks_of_all_rows_give_shapley_values_to_the_bit():
    X, y, sex, _ = table(110)  # more than are walked one by one
    semivalues = "shapley", ("distributional", 110)
    assert_same(
        *(valuation_of(X, y, sex, validation_of(), semivalue=own, max_fits=1000) for own in semivalues)
    )


@pytest.mark.parametrize(
    ("performance", "expected"),
    [("accuracy", 0.75), ("tpr_at_fpr", 0.0), ("log_loss", 0.25 * log(0.25) + 0.75 * log(0.75))],
)
def test_sets_without_two_labels_are_worth_a_constant_prediction(performance, expected):
    X, y, sex, _ = table(30)
    Xv, _, _ = validation_of(40)
    yv, sexv = np.repeat([0, 0, 0, 1], 10), np.tile(["f", "m"], 20)
    (game,) = games_for(X, y, sex, (Xv, yv, sexv), goals=Goals(performance, "fpr_ratio", 0.3))
    np.testing.assert_allclose(game(np.arange(0)), [expected, 0.0])
    np.testing.assert_allclose(game(np.flatnonzero(y == 1)), [expected, 0.0])


def test_the_worth_of_all_rows_is_that_of_the_estimators_own_fit():
    X, y, sex, _ = table(80)
    Xv, yv, sexv = validation_of()
    (game,) = games_for(X, y, sex, (Xv, yv, sexv), LogisticRegression())
    accuracy = LogisticRegression().fit(X, y).score(Xv, yv)
    assert game.full[0] == pytest.approx(accuracy)
    some = np.array([50, 3, 17, 22, 9, 71, 0])
    predicted = LogisticRegression().fit(X[np.sort(some)], y[np.sort(some)]).predict_proba(Xv)[:, 1]
    cut = np.sort(predicted[yv == 0])[::-1][int(0.2 * (yv == 0).sum())]
    assert game(some)[0] == pytest.approx(((predicted >= 0.5) == yv).mean())
    assert game(some)[1] == pytest.approx(game.coefficients[predicted > cut].sum())


@pytest.mark.parametrize("semivalue", ["shapley", ("distributional", 8)])
def test_equal_rows_have_equal_values(semivalue):
    X, y, _, _ = table(20)
    X[7], y[7] = X[3], y[3]
    settings = {"semivalue": semivalue, "performance": "log_loss", "max_fits": 1500}
    valuation = valuation_of(X, y, validation=LABELLED, **settings)
    values, errors = valuation["y"], valuation.field("standard_error", "y")
    assert abs(values[3] - values[7]) < 4 * np.hypot(errors[3], errors[7])


def test_leave_one_out_values_are_exact():
    X, y, _, _ = table(8)
    Xv, yv, _ = validation_of(100)
    valuation = valuation_of(X, y, None, (Xv, yv, None), estimator=LogisticRegression(), semivalue="loo")
    whole = LogisticRegression().fit(X, y).score(Xv, yv)
    rows = np.arange(8)
    expected = [
        whole - LogisticRegression().fit(X[rows != row], y[rows != row]).score(Xv, yv) for row in rows
    ]
    np.testing.assert_allclose(valuation["y"], expected, atol=1e-12)
    assert (valuation.field("counts", "y") == 1).all()


@pytest.mark.parametrize(
    ("estimator", "semivalue", "max_fits"),
    [(QUICK, "shapley", 200), (LogisticRegression(), "loo", 21), (QUICK, ("distributional", 8), 500)],
)
def test_no_number_of_workers_changes_a_bit(estimator, semivalue, max_fits):
    settings = {"estimator": estimator, "semivalue": semivalue, "max_fits": max_fits}
    assert_same(*(valuation_of(X20, Y20, None, LABELLED, n_jobs=n_jobs, **settings) for n_jobs in (1, 2)))


def test_without_a_validation_every_row_is_valued_in_four_folds_of_five():
    X, y, sex, _ = table(60)
    valuation = valuation_of(X, y, {"sex": sex}, max_fits=500, fairness="selection_rate_ratio")
    assert (valuation.field("counts", "y") == 8).all()
    assert valuation.scales["y"].meaning.endswith("accuracy")
    assert valuation.scales["sex"].meaning.endswith("selection_rate_ratio")
    games = games_for(X, y, sex, goals=Goals("accuracy", "selection_rate_ratio", 0.2))
    held_out = np.sort(np.concatenate([game.scored for game in games]))
    np.testing.assert_array_equal(held_out, np.arange(60))
    for game in games:
        np.testing.assert_array_equal(np.sort(np.concatenate([game.rows, game.scored])), np.arange(60))


def test_folds_keep_blocks_together():
    X, y, _, _ = table(60)
    blocks = np.arange(60) // 4
    for game in games_for(X, y, groups=blocks):
        assert not set(blocks[game.rows]) & set(blocks[game.scored])


def test_fewer_folds_where_a_label_is_rare():
    X, _, _, _ = table(30)
    y = (np.arange(30) % 10 == 0).astype(int)
    games = games_for(X, y)
    assert 2 <= len(games) <= 3
    assert all(y[game.scored].any() and y[game.rows].any() for game in games)


def test_rows_of_no_weight_have_no_value():
    X, y, _, _ = table(20)
    weight = np.where(np.arange(20) < 3, 0.0, 1.0)
    valuator = DataShapley(QUICK, max_fits=200, random_state=0, n_jobs=1)
    values = valuator.fit(X, y, sample_weight=weight, validation=LABELLED).valuation_["y"]
    assert (values[:3] == 0).all()
    assert (values[3:] != 0).any()


def test_values_say_where_they_come_from_and_keep_the_index():
    X, y, sex, _ = table(20)
    frame = pd.DataFrame(X, index=np.arange(100, 120))
    valuator = DataShapley(semivalue=("beta", 4, 1), max_fits=400, max_fpr=0.2, random_state=3, n_jobs=1)
    valuation = valuator.fit(
        frame, y, sensitive_features={"sex": sex}, validation=validation_of(100)
    ).valuation_
    assert valuation.values.index.tolist() == frame.index.tolist()
    assert valuation.provenance.algorithm == "data-shapley"
    assert valuation.provenance.seed == 3
    assert valuation.provenance.settings["semivalue"] == ["beta", 4.0, 1.0]
    assert valuation.provenance.settings["n_draws"] == valuation.field("counts", "y")[0]
    assert valuator.n_fits_ <= 400
    assert valuator.precision_ > 0


def test_an_attributes_values_sum_to_what_all_rows_change():
    X, y, sex, _ = table(30)
    for fairness in ("fpr_ratio", "fnr_ratio"):
        valuation = valuation_of(X, y, sex, validation_of(), fairness=fairness, max_fits=300)
        (game,) = games_for(X, y, sex, validation_of(), goals=Goals("accuracy", fairness, 0.2))
        assert valuation["z"].sum() == pytest.approx(game.full[1], abs=1e-9)
        assert (abs(game.full[1]) < 1e-9) == (fairness == "fpr_ratio")


def test_a_run_ends_when_values_are_precise():
    valuator = DataShapley(QUICK, tolerance=0.5, max_fits=5000, random_state=0, n_jobs=1)
    valuator.fit(X12, Y12, validation=LABELLED)
    assert valuator.precision_ <= 0.5
    assert valuator.n_fits_ < 5000


def test_fits_that_end_before_values_are_precise_are_told():
    valuator = DataShapley(QUICK, max_fits=111, random_state=0, n_jobs=1)
    with pytest.warns(UserWarning, match=r"^After \d+ fits the values are precise to 0\.\d+, not") as said:
        valuator.fit(X12, Y12, validation=LABELLED)
    assert valuator.precision_ > 0.05
    needed = valuator.n_fits_ * (valuator.precision_ / 0.05) ** 2
    assert f"which takes about {float(f'{needed:.2g}'):,.0f} fits: raise `max_fits`" in str(said[0].message)
    never = DummyClassifier(strategy="constant", constant=0)
    with pytest.warns(UserWarning, match=r"are precise to inf, not yet to `tolerance=0.05`: raise"):
        valuator.set_params(estimator=never).fit(X12, Y12, validation=LABELLED)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        valuator.set_params(estimator=QUICK, tolerance=0.9).fit(X12, Y12, validation=LABELLED)
        valuator.set_params(tolerance=0.05, semivalue="loo").fit(X12, Y12, validation=LABELLED)


def test_a_run_goes_on_while_no_row_has_contributed():
    never = DummyClassifier(strategy="constant", constant=0)
    valuator = DataShapley(never, tolerance=0.5, max_fits=250, random_state=0, n_jobs=1)
    valuator.fit(X12, Y12, validation=LABELLED)
    assert (valuator.valuation_["y"] == 0).all()
    assert valuator.precision_ == np.inf
    assert 250 - 10 * 11 < valuator.n_fits_ <= 250  # but for less than a batch, all fits were spent


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"semivalue": "core"}, ValueError, "`semivalue` must be 'shapley', .*, got 'core'"),
        ({"semivalue": ("beta", 0, 1)}, ValueError, r"numbers above 0 .* got \('beta', 0, 1\)"),
        ({"semivalue": ("beta", 1)}, ValueError, "`semivalue` must be"),
        ({"semivalue": "distributional"}, ValueError, r"\('distributional', m\) of a whole number of rows"),
        ({"semivalue": ("distributional",)}, ValueError, r"rows, got \('distributional',\)"),
        ({"semivalue": ("distributional", 2, 3)}, ValueError, r"rows, got \('distributional', 2, 3\)"),
        ({"semivalue": ("distributional", 0)}, ValueError, r"`semivalue\[1\]` must be at least 1, got 0"),
        (
            {"semivalue": ("distributional", 2.5)},
            TypeError,
            r"`semivalue\[1\]` must be a whole number, got 2.5",
        ),
        ({"semivalue": ("distributional", True)}, TypeError, "must be a whole number, got True"),
        ({"semivalue": ("distributional", 21)}, ValueError, "must be at most 20, .* trained on .* got 21"),
        ({"tolerance": 0}, ValueError, "`tolerance` must be above 0, got 0"),
        ({"tolerance": "low"}, TypeError, "`tolerance` must be a number above 0, got 'low'"),
        ({"max_fits": 10}, ValueError, "`max_fits` must be at least 191, .* for 20 rows, got 10"),
        ({"max_fits": 10, "semivalue": "loo"}, ValueError, "at least 21, every row's fits for 20 rows"),
        ({"max_fits": 1.5}, TypeError, "`max_fits` must be a whole number"),
        ({"max_fpr": 2}, ValueError, r"`max_fpr` must be in \(0, 1\), got 2"),
        ({"performance": "auc"}, ValueError, "`performance` must be"),
        ({"fairness": min}, ValueError, "`fairness` must be 'fpr_ratio' or .*, got <built-in function min>"),
        ({"estimator": RidgeClassifier()}, ValueError, "RidgeClassifier has no `predict_proba`"),
        ({"estimator": LinearRegression()}, TypeError, "must be a classifier, got LinearRegression"),
        (
            {"estimator": LogisticRegression},
            TypeError,
            r"got the class LogisticRegression: write `LogisticRegression\(\)`",
        ),
    ],
)
def test_bad_settings_are_refused(settings, error, message):
    with pytest.raises(error, match=message):
        valuation_of(X20, Y20, SEX20, validation_of(100), **settings)


@pytest.mark.parametrize(
    ("X", "y", "sex", "validation", "message"),
    [
        (X20, np.arange(20) % 3, None, None, "DataShapley needs a target of two classes, and `y` has 3"),
        (np.tile(X20, (2, 1)), np.linspace(0, 1, 40), None, None, "`y` is continuous"),
        (X20, np.ones(20), None, None, "only one class"),
        (X20, Y20, {"sex": ["f"] * 20}, None, "'sex' has only one group"),
        (X20, np.arange(20) == 0, None, None, "each must have both labels: pass `validation`"),
        (X20, Y20, None, (X20, np.ones(20), None), "have only one label"),
        (X20, Y20, None, (X20, Y20), "tuple of three"),
    ],
)
def test_bad_rows_are_refused(X, y, sex, validation, message):
    with pytest.raises(ValueError, match=message):
        valuation_of(X, y, sex, validation)


def test_an_estimator_that_cannot_learn_from_few_rows_is_named():
    class Choosy(LogisticRegression):
        def fit(self, X, y, sample_weight=None):
            if len(X) < 10:
                raise ValueError("too few rows.")
            return super().fit(X, y, sample_weight)

    X, y, _, _ = table(20)
    with pytest.raises(RuntimeError, match=r"Choosy failed on a set of \d rows: too few rows. .* few rows"):
        valuation_of(X, y, None, LABELLED, estimator=Choosy())


def test_without_a_validation_sets_have_no_more_rows_than_are_outside_a_fold():
    X, y, _, _ = table(60)
    with pytest.raises(ValueError, match=r"`semivalue\[1\]` must be at most 48, .* outside a fold\), got 50"):
        valuation_of(X, y, semivalue=("distributional", 50))


def test_a_failed_fit_leaves_everything_as_it_was():
    X, y, _, _ = table(20)
    valuator = DataShapley(QUICK, max_fits=1, random_state=0, n_jobs=1)
    with pytest.raises(ValueError, match="max_fits"):
        valuator.fit(X, y)
    assert set(vars(valuator)) == set(valuator.get_params(deep=False))


ONE_ROW_COUNTS = "the rarer label has one row whose weight is not 0, which no fold can hold and learn from"

ONE_ROW_CHECKS = [f"check_sample_weight_equivalence_on_{kind}_data" for kind in ("dense", "sparse")]
if version("scikit-learn").startswith("1.6."):  # its other label is the rarer one
    ONE_ROW_CHECKS = []


@parametrize_with_checks(
    [DataShapley(QUICK, semivalue="banzhaf", max_fits=105, n_jobs=1)],
    expected_failed_checks=lambda estimator: dict.fromkeys(ONE_ROW_CHECKS, ONE_ROW_COUNTS),
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)
