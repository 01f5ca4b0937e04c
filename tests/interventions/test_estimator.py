import numpy as np
import pandas as pd
import polars as pl
import pytest
from lightgbm import LGBMClassifier
from sklearn import clone, config_context
from sklearn.base import is_classifier, is_regressor
from sklearn.dummy import DummyClassifier
from sklearn.exceptions import NotFittedError, UnsetMetadataPassedError
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import accuracy_score
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_predict
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from fado import (
    CobbDouglasUtility,
    InBagEntropy,
    LinearUtility,
    ReweighedEstimator,
    Reweigher,
    UtilityAwareReweigher,
)

RNG = np.random.default_rng(0)
N = 200
X = pd.DataFrame({"a": RNG.normal(size=N), "b": RNG.normal(size=N)}, index=RNG.integers(0, 9, N))
SEX = pd.Series(RNG.choice(["f", "m"], size=N), name="sex")
Y = pd.Series((X["a"].to_numpy() + (SEX == "m") + RNG.normal(size=N) > 1).map({True: "yes", False: "no"}))
IN_BAG = InBagEntropy(LGBMClassifier(n_estimators=3, verbose=-1), n_jobs=1, random_state=0)
VALUES = clone(IN_BAG).fit(X, Y, sensitive_features=SEX).valuation_


def wrapped(reweigher=None, estimator=None):
    return ReweighedEstimator(estimator or LogisticRegression(), reweigher or Reweigher())


def test_the_estimator_is_trained_on_the_weights():
    estimator, reweigher = LogisticRegression(), Reweigher()
    model = ReweighedEstimator(estimator, reweigher).fit(X, Y, sensitive_features=SEX)
    assert not hasattr(estimator, "coef_")
    assert not hasattr(reweigher, "sample_weight_")
    w = reweigher.fit(X, Y, sensitive_features=SEX).sample_weight_
    expected = estimator.fit(X, Y, sample_weight=w)
    for method in ("predict_proba", "predict_log_proba", "predict", "decision_function"):
        np.testing.assert_array_equal(getattr(model, method)(X), getattr(expected, method)(X))
    np.testing.assert_array_equal(model.reweigher_.sample_weight_, w)
    assert model.classes_.tolist() == ["no", "yes"]
    assert model.n_features_in_ == 2
    assert model.feature_names_in_.tolist() == ["a", "b"]
    assert model.score(X, Y) == accuracy_score(Y, expected.predict(X))
    assert model.score(X, Y, sample_weight=w) == expected.score(X, Y, sample_weight=w)


@pytest.mark.parametrize("incoming", [None, np.arange(N) % 3], ids=["plain", "weighted"])
def test_a_valuation_reaches_the_reweigher_and_an_incoming_weight_multiplies(incoming):
    reweigher = UtilityAwareReweigher(CobbDouglasUtility(alpha=0.3), floor=0.1, prevalence_correction=1)
    given = {"sensitive_features": SEX, "valuation": VALUES}
    model = wrapped(reweigher).fit(X, Y, **given, sample_weight=incoming)
    w = reweigher.fit(X, Y, **given).sample_weight_
    np.testing.assert_array_equal(model.reweigher_.sample_weight_, w)
    expected = LogisticRegression().fit(X, Y, sample_weight=w if incoming is None else w * incoming)
    np.testing.assert_array_equal(model.estimator_.coef_, expected.coef_)


@pytest.mark.parametrize(
    ("sample_weight", "message"),
    [
        (np.ones(3), r"`sample_weight` must have one weight per row, shape \(200,\), got \(3,\)"),
        (np.full(N, -1.0), "`sample_weight` must be finite and not negative"),
        (np.full(N, np.nan), "`sample_weight` must be finite and not negative"),
        (np.zeros(N), "is zero in every row"),
        (np.full(N, 1.7e308), r"must be 0 or between 1e-100 and 1e\+100 in every row, got 1.7e\+308"),
    ],
)
def test_bad_incoming_weights(sample_weight, message):
    with pytest.raises(ValueError, match=message):
        wrapped().fit(X, Y, sensitive_features=SEX, sample_weight=sample_weight)


NO_WEIGHTS = r"\.fit takes no `sample_weight`.*of a pipeline, wrap the last step"


@pytest.mark.parametrize(
    ("estimator", "reweigher", "error", "message"),
    [
        (KNeighborsClassifier(), Reweigher(), ValueError, NO_WEIGHTS),
        (make_pipeline(LogisticRegression()), Reweigher(), ValueError, NO_WEIGHTS),
        (
            LogisticRegression,
            Reweigher(),
            TypeError,
            "^`estimator` must be an object, got the class Log",
        ),
        (LogisticRegression(), Reweigher, TypeError, r"^`reweigher` must be .* write `Reweigher\(\)`"),
        (
            LogisticRegression(),
            Reweigher(),
            ValueError,
            r"^LogisticRegression takes no missing values .* column 'b' has some",
        ),
    ],
)
def test_parts_that_do_not_fit_are_refused(estimator, reweigher, error, message):
    gap = X.assign(b=X["b"].where(X["b"] < 1)) if "missing" in message else X
    with pytest.raises(error, match=message):
        ReweighedEstimator(estimator, reweigher).fit(gap, Y, sensitive_features=SEX)


def test_methods_and_attributes_are_those_of_the_estimator():
    svm = ReweighedEstimator(LinearSVC(), Reweigher())
    assert hasattr(svm, "decision_function")
    assert not hasattr(svm, "predict_proba")
    assert not hasattr(svm, "classes_")
    assert is_classifier(svm)
    line = ReweighedEstimator(LinearRegression(), UtilityAwareReweigher())
    assert is_regressor(line)
    assert not hasattr(line, "decision_function")
    line.fit(X.to_numpy(), X["a"] + X["b"], valuation=VALUES)
    assert line.score(X.to_numpy(), X["a"] + X["b"]) == 1.0
    assert not hasattr(line, "classes_")
    assert not hasattr(line, "feature_names_in_")
    with pytest.raises(NotFittedError):
        svm.predict(X)


def test_fit_parameters_reach_the_estimator():
    class Picky(LogisticRegression):
        def fit(self, X, y, sample_weight=None, marker=None):
            self.marker_ = marker
            return super().fit(X, y, sample_weight=sample_weight)

    model = ReweighedEstimator(Picky(), Reweigher())
    assert model.fit(X, Y, sensitive_features=SEX, marker=3).estimator_.marker_ == 3
    with config_context(enable_metadata_routing=True):
        with pytest.raises(UnsetMetadataPassedError):
            model.fit(X, Y, sensitive_features=SEX, marker=3)
        model = ReweighedEstimator(Picky().set_fit_request(marker=True), Reweigher())
        assert model.fit(X, Y, sensitive_features=SEX, marker=4).estimator_.marker_ == 4


def test_polars_in_the_features():
    table = pl.DataFrame({"a": X["a"].to_numpy(), "b": X["b"].to_numpy()})
    model = wrapped().fit(table, Y.to_list(), sensitive_features=pl.Series(SEX.to_list()))
    expected = wrapped().fit(X, Y, sensitive_features=SEX)
    np.testing.assert_array_equal(model.predict_proba(table), expected.predict_proba(X))


def by_hand(reweigher, folds, valuation=None):
    """Give the folds' scores of a search, computed without one."""
    scores = []
    for train, test in folds.split(X, Y):
        given = {"sensitive_features": SEX.iloc[train]}
        given |= {} if valuation is None else {"valuation": valuation[train]}
        model = wrapped(reweigher).fit(X.iloc[train], Y.iloc[train], **given)
        scores.append(accuracy_score(Y.iloc[test], model.predict(X.iloc[test])))
    return np.mean(scores)


@pytest.mark.parametrize("routing", [False, True])
def test_in_a_search_values_and_groups_are_cut_to_the_folds(routing):
    reweighers = [
        Reweigher(),
        UtilityAwareReweigher(LinearUtility(alpha=0.2), floor=0.1, prevalence_correction=1),
        UtilityAwareReweigher(CobbDouglasUtility(alpha=0.8)),
    ]
    folds = StratifiedKFold(3)
    with config_context(enable_metadata_routing=routing):
        search = GridSearchCV(wrapped(), {"reweigher": reweighers}, cv=folds)
        search.fit(X, Y, sensitive_features=SEX, valuation=VALUES)
    for reweigher, score in zip(reweighers, search.cv_results_["mean_test_score"], strict=True):
        assert score == by_hand(reweigher, folds, VALUES)


def test_in_a_search_over_nested_settings_with_values_made_on_the_way():
    reweigher, folds = UtilityAwareReweigher(valuator=IN_BAG), StratifiedKFold(2)
    utilities = [LinearUtility(alpha=0.0), LinearUtility(alpha=1.0)]
    search = GridSearchCV(wrapped(reweigher), {"reweigher__utility": utilities}, cv=folds)
    search.fit(X, Y, sensitive_features=SEX)
    for utility, score in zip(utilities, search.cv_results_["mean_test_score"], strict=True):
        assert score == by_hand(clone(reweigher).set_params(utility=utility), folds)
    assert search.best_estimator_.reweigher.utility in utilities


def test_in_a_search_names_of_columns_need_no_cutting():
    frame = X.assign(sex=SEX.to_numpy() == "m")
    with config_context(enable_metadata_routing=True):
        search = GridSearchCV(wrapped(), {"estimator__C": [0.1, 1.0]}, cv=2, error_score="raise")
        search.fit(frame, Y, sensitive_features="sex")
    assert search.best_estimator_.reweigher_.sample_weight_.shape == (N,)


def test_sample_weight_is_routed_on_request():
    incoming = pd.Series(np.arange(N) % 2 + 1.0)
    with config_context(enable_metadata_routing=True):
        asked = wrapped().set_fit_request(sample_weight=True).set_score_request(sample_weight=False)
        search = GridSearchCV(asked, {"estimator__C": [1.0]}, cv=StratifiedKFold(2))
        search.fit(X, Y, sensitive_features=SEX, sample_weight=incoming)
    expected = wrapped().fit(X, Y, sensitive_features=SEX, sample_weight=incoming)
    np.testing.assert_array_equal(search.best_estimator_.estimator_.coef_, expected.estimator_.coef_)


def test_in_a_pipeline():
    pipeline = Pipeline([("scale", StandardScaler()), ("model", wrapped())])
    with config_context(enable_metadata_routing=True):
        predicted = cross_val_predict(pipeline, X, Y, cv=2, params={"sensitive_features": SEX})
        pipeline.fit(X, Y, sensitive_features=SEX)
    scaled = StandardScaler().fit_transform(X)
    expected = wrapped().fit(scaled, Y, sensitive_features=SEX)
    np.testing.assert_array_equal(pipeline.predict_proba(X), expected.predict_proba(scaled))
    assert set(predicted) == {"no", "yes"}


def test_tags_say_that_one_label_per_row_is_needed():
    tags = ReweighedEstimator(DummyClassifier(), Reweigher()).__sklearn_tags__()
    assert not tags.target_tags.multi_output
    assert not tags.classifier_tags.multi_label
