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
VALUES = (
    InBagEntropy(LGBMClassifier(n_estimators=3, verbose=-1), n_jobs=1, random_state=0)
    .fit(X, Y, sensitive_features=SEX)
    .valuation_
)


def test_the_estimator_is_trained_on_the_weights():
    model = ReweighedEstimator(LogisticRegression(), Reweigher()).fit(X, Y, sensitive_features=SEX)
    w = Reweigher().fit(X, Y, sensitive_features=SEX).sample_weight_
    expected = LogisticRegression().fit(X, Y, sample_weight=w)
    np.testing.assert_array_equal(model.predict_proba(X), expected.predict_proba(X))
    np.testing.assert_array_equal(model.predict_log_proba(X), expected.predict_log_proba(X))
    np.testing.assert_array_equal(model.predict(X), expected.predict(X))
    np.testing.assert_array_equal(model.decision_function(X), expected.decision_function(X))
    np.testing.assert_array_equal(model.reweigher_.sample_weight_, w)
    assert model.classes_.tolist() == ["no", "yes"]
    assert model.n_features_in_ == 2
    assert model.feature_names_in_.tolist() == ["a", "b"]
    assert model.score(X, Y) == accuracy_score(Y, expected.predict(X))
    assert model.score(X, Y, sample_weight=w) == expected.score(X, Y, sample_weight=w)


def test_a_valuation_reaches_the_reweigher():
    reweigher = UtilityAwareReweigher(CobbDouglasUtility(alpha=0.3), floor=0.1, prevalence_correction=1)
    model = ReweighedEstimator(LogisticRegression(), reweigher)
    model.fit(X, Y, sensitive_features=SEX, valuation=VALUES)
    w = clone(reweigher).fit(X, Y, sensitive_features=SEX, valuation=VALUES).sample_weight_
    np.testing.assert_array_equal(model.reweigher_.sample_weight_, w)
    np.testing.assert_array_equal(
        model.estimator_.coef_, LogisticRegression().fit(X, Y, sample_weight=w).coef_
    )


def test_an_incoming_weight_multiplies():
    incoming = np.arange(N) % 3
    model = ReweighedEstimator(LogisticRegression(), Reweigher())
    model.fit(X, Y, sensitive_features=SEX, sample_weight=incoming)
    w = Reweigher().fit(X, Y, sensitive_features=SEX).sample_weight_ * incoming
    np.testing.assert_array_equal(
        model.estimator_.coef_, LogisticRegression().fit(X, Y, sample_weight=w).coef_
    )


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
    model = ReweighedEstimator(LogisticRegression(), Reweigher())
    with pytest.raises(ValueError, match=message):
        model.fit(X, Y, sensitive_features=SEX, sample_weight=sample_weight)


@pytest.mark.parametrize("estimator", [KNeighborsClassifier(), make_pipeline(LogisticRegression())])
def test_estimators_that_take_no_weights_are_refused(estimator):
    model = ReweighedEstimator(estimator, Reweigher())
    with pytest.raises(
        ValueError, match=r"\.fit takes no `sample_weight`.*of a pipeline, wrap the last step"
    ):
        model.fit(X, Y, sensitive_features=SEX)


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        (
            (LogisticRegression, Reweigher()),
            "^`estimator` must be an object, got the class LogisticRegression",
        ),
        ((LogisticRegression(), Reweigher), r"^`reweigher` must be an object, got .* write `Reweigher\(\)`"),
    ],
)
def test_classes_are_no_parts(parts, message):
    with pytest.raises(TypeError, match=message):
        ReweighedEstimator(*parts).fit(X, Y, sensitive_features=SEX)


def test_missing_values_that_the_estimator_does_not_take_are_told_with_their_column():
    gap = X.assign(b=X["b"].where(X["b"] < 1))
    with pytest.raises(
        ValueError, match=r"^LogisticRegression takes no missing values .* column 'b' has some"
    ):
        ReweighedEstimator(LogisticRegression(), Reweigher()).fit(gap, Y, sensitive_features=SEX)


def test_both_parts_are_cloned():
    estimator, reweigher = LogisticRegression(), Reweigher()
    ReweighedEstimator(estimator, reweigher).fit(X, Y, sensitive_features=SEX)
    assert not hasattr(estimator, "coef_")
    assert not hasattr(reweigher, "sample_weight_")


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
    model = ReweighedEstimator(LogisticRegression(), Reweigher())
    model.fit(table, Y.to_list(), sensitive_features=pl.Series(SEX.to_list()))
    expected = clone(model).fit(X, Y, sensitive_features=SEX)
    np.testing.assert_array_equal(model.predict_proba(table), expected.predict_proba(X))


def by_hand(reweigher, folds, **metadata):
    """Give the folds' scores of a search, computed without one."""
    scores = []
    for train, test in folds.split(X, Y):
        cut = {name: values.iloc[train] for name, values in metadata.items() if name != "valuation"}
        if "valuation" in metadata:
            cut["valuation"] = metadata["valuation"][train]
        model = ReweighedEstimator(LogisticRegression(), reweigher)
        model.fit(X.iloc[train], Y.iloc[train], **cut)
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
        search = GridSearchCV(
            ReweighedEstimator(LogisticRegression(), Reweigher()), {"reweigher": reweighers}, cv=folds
        )
        search.fit(X, Y, sensitive_features=SEX, valuation=VALUES)
    for reweigher, score in zip(reweighers, search.cv_results_["mean_test_score"], strict=True):
        assert score == by_hand(reweigher, folds, sensitive_features=SEX, valuation=VALUES)


def test_in_a_search_over_nested_settings_with_values_made_on_the_way():
    reweigher = UtilityAwareReweigher(
        valuator=InBagEntropy(LGBMClassifier(n_estimators=3, verbose=-1), n_jobs=1, random_state=0)
    )
    utilities = [LinearUtility(alpha=0.0), LinearUtility(alpha=1.0)]
    folds = StratifiedKFold(2)
    search = GridSearchCV(
        ReweighedEstimator(LogisticRegression(), reweigher), {"reweigher__utility": utilities}, cv=folds
    )
    search.fit(X, Y, sensitive_features=SEX)
    for utility, score in zip(utilities, search.cv_results_["mean_test_score"], strict=True):
        chosen = clone(reweigher).set_params(utility=utility)
        assert score == by_hand(chosen, folds, sensitive_features=SEX)
    assert search.best_estimator_.reweigher.utility in utilities


def test_in_a_search_names_of_columns_need_no_cutting():
    frame = X.assign(sex=SEX.to_numpy() == "m")
    model = ReweighedEstimator(LogisticRegression(), Reweigher())
    with config_context(enable_metadata_routing=True):
        search = GridSearchCV(model, {"estimator__C": [0.1, 1.0]}, cv=2, error_score="raise")
        search.fit(frame, Y, sensitive_features="sex")
    assert search.best_estimator_.reweigher_.sample_weight_.shape == (N,)


def test_sample_weight_is_routed_on_request():
    incoming = pd.Series(np.arange(N) % 2 + 1.0)
    model = ReweighedEstimator(LogisticRegression(), Reweigher())
    with config_context(enable_metadata_routing=True):
        asked = clone(model).set_fit_request(sample_weight=True).set_score_request(sample_weight=False)
        search = GridSearchCV(asked, {"estimator__C": [1.0]}, cv=StratifiedKFold(2))
        search.fit(X, Y, sensitive_features=SEX, sample_weight=incoming)
    expected = clone(model).fit(X, Y, sensitive_features=SEX, sample_weight=incoming)
    np.testing.assert_array_equal(search.best_estimator_.estimator_.coef_, expected.estimator_.coef_)


def test_in_a_pipeline():
    steps = [("scale", StandardScaler()), ("model", ReweighedEstimator(LogisticRegression(), Reweigher()))]
    with config_context(enable_metadata_routing=True):
        pipeline = Pipeline(steps).fit(X, Y, sensitive_features=SEX)
        predicted = cross_val_predict(Pipeline(steps), X, Y, cv=2, params={"sensitive_features": SEX})
    scaled = StandardScaler().fit_transform(X)
    expected = ReweighedEstimator(LogisticRegression(), Reweigher()).fit(scaled, Y, sensitive_features=SEX)
    np.testing.assert_array_equal(pipeline.predict_proba(X), expected.predict_proba(scaled))
    assert set(predicted) == {"no", "yes"}


def test_tags_say_that_one_label_per_row_is_needed():
    tags = ReweighedEstimator(DummyClassifier(), Reweigher()).__sklearn_tags__()
    assert not tags.target_tags.multi_output
    assert not tags.classifier_tags.multi_label
