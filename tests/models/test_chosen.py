"""A chosen model predicts as scikit-learn's classifiers do, and tells whether its line is held."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone, is_classifier
from sklearn.calibration import CalibratedClassifierCV, CalibrationDisplay
from sklearn.frozen import FrozenEstimator
from sklearn.inspection import PartialDependenceDisplay, partial_dependence, permutation_importance
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import get_scorer, log_loss, roc_auc_score
from sklearn.model_selection import cross_val_predict
from sklearn.utils.validation import check_is_fitted
from tests.models.made import LATE, SEX, N, X, chosen, fitted, stub

MODEL = chosen()
LABELS = np.where(LATE, "yes", "no")


def test_scores_probabilities_and_decisions_agree():
    model, table = fitted()
    scores = MODEL.score_rows(X)
    np.testing.assert_array_equal(scores, model.score(table)[:, 1])
    np.testing.assert_array_equal(MODEL.predict_proba(X), np.column_stack([1 - scores, scores]))
    expected = np.where(scores >= MODEL.threshold_, "yes", "no")
    np.testing.assert_array_equal(MODEL.predict(X), expected)
    assert 0 < (expected == "yes").sum() < N
    assert MODEL.classes_.tolist() == ["no", "yes"]
    assert MODEL.n_features_in_ == 4
    assert MODEL.feature_names_in_.tolist() == ["debts", "town", "home", "flag"]
    assert MODEL.reached_ is True
    assert repr(MODEL).startswith("ChosenModel(LGBMClassifier, threshold=0.")


def test_a_score_at_the_threshold_is_decided_positive():
    model = stub(threshold=0.3)
    assert model.predict([[0.3], [np.nextafter(0.3, 0)], [0.9]]).tolist() == [1, 0, 1]


@pytest.mark.parametrize("classes", [("good", "bad"), (1, 0), (True, False), (0.5, 1.5), (-1, 1), ("no", 1)])
def test_labels_come_back_as_they_are_and_the_positive_one_is_last(classes):
    model = stub(classes=classes)
    assert model.predict([[0.9], [0.1]]).tolist() == [classes[1], classes[0]]
    assert list(map(type, model.predict([[0.9]]).tolist())) == [type(classes[1])]


def test_scikit_learns_metrics_take_it_for_a_classifier():
    assert is_classifier(MODEL)
    expected = roc_auc_score(LATE, MODEL.score_rows(X))
    assert get_scorer("roc_auc")(MODEL, X, LABELS) == pytest.approx(expected)
    assert get_scorer("accuracy")(MODEL, X, LABELS) == np.mean(MODEL.predict(X) == LABELS)
    assert get_scorer("neg_log_loss")(MODEL, X, LABELS) == -log_loss(LATE, MODEL.score_rows(X))
    assert MODEL.score(X, LABELS) == np.mean(MODEL.predict(X) == LABELS)
    assert MODEL._estimator_type == "classifier"
    check_is_fitted(MODEL)


@pytest.mark.parametrize(("positive", "other"), [(0, 1), (1, 0), ("bad", "good"), (False, True)])
def test_metrics_of_scikit_learn_are_right_whichever_label_is_positive(positive, other):
    model = chosen(classes=(other, positive))
    y = np.where(LATE, positive, other)
    assert model.classes_.tolist() == sorted([positive, other])
    place = model.classes_.tolist().index(positive)
    np.testing.assert_array_equal(model.predict_proba(X)[:, place], model.score_rows(X))
    assert get_scorer("roc_auc")(model, X, y) == pytest.approx(roc_auc_score(LATE, model.score_rows(X)))
    assert get_scorer("neg_log_loss")(model, X, y) == pytest.approx(-log_loss(LATE, model.score_rows(X)))
    decided = model.classes_[(model.decision_function(X) > 0).astype(int)]
    near = model.decision_function(X) == 0  # a score at the threshold is decided positive
    np.testing.assert_array_equal(np.where(near, positive, decided), model.predict(X))


def test_tools_of_inspection_and_displays_take_it():
    found = permutation_importance(MODEL, X, LABELS, n_repeats=2, random_state=0)
    shuffled = X.assign(debts=X["debts"].sample(frac=1, random_state=1).to_numpy())
    assert found.importances_mean.argmax() == 0  # debts and flag tell most
    assert MODEL.score(shuffled, LABELS) < MODEL.score(X, LABELS)
    whole = X.fillna({"debts": 0.0})
    found = partial_dependence(MODEL, whole, ["debts"], grid_resolution=3)
    expected = [MODEL.score_rows(whole.assign(debts=one)).mean() for one in found["grid_values"][0]]
    np.testing.assert_allclose(found["average"][0], expected)

    pytest.importorskip("matplotlib").use("Agg")
    plotted = CalibrationDisplay.from_estimator(MODEL, X, LABELS, pos_label="yes", n_bins=2)
    high = MODEL.score_rows(X) > 0.5
    np.testing.assert_allclose(plotted.prob_true, [LATE[~high].mean(), LATE[high].mean()])
    shown = PartialDependenceDisplay.from_estimator(MODEL, whole, ["debts"], grid_resolution=3)
    assert len(shown.pd_results[0]["average"][0]) == 3


def test_it_is_not_fitted_again_and_can_be_frozen():
    message = r"^A ChosenModel is fitted .* `sklearn\.frozen\.FrozenEstimator\(model\)`"
    with pytest.raises(TypeError, match=message):
        cross_val_predict(MODEL, X, LABELS)
    assert clone(MODEL) is MODEL
    frozen = FrozenEstimator(MODEL)
    np.testing.assert_array_equal(cross_val_predict(frozen, X, LABELS, cv=2), MODEL.predict(X))
    calibrated = CalibratedClassifierCV(frozen).fit(X, LABELS).predict_proba(X)
    assert roc_auc_score(LATE, calibrated[:, 1]) == pytest.approx(roc_auc_score(LATE, MODEL.score_rows(X)))


def test_an_array_that_lost_the_names_of_its_columns_is_read_in_order_with_a_warning():
    numbers = X[["debts", "flag"]].fillna(0).astype(float)
    model = chosen(fitted(numbers, LogisticRegression())[0])
    message = "^X has no column names, .* matched in this order, 'debts', 'flag'. Pass"
    with pytest.warns(UserWarning, match=message):
        found = model.predict_proba(numbers.to_numpy())
    np.testing.assert_array_equal(found, model.predict_proba(numbers))
    with pytest.raises(ValueError, match="The table has 1 columns, and the model learnt from 2"):
        model.predict(numbers.to_numpy()[:, :1])


def test_a_model_of_an_array_has_no_names():
    model, _ = fitted(X[["debts"]].fillna(0).to_numpy(), LogisticRegression())
    with_array = chosen(model)
    assert with_array.n_features_in_ == 1
    assert not hasattr(with_array, "feature_names_in_")
    assert with_array.predict_proba([[0.0]]).shape == (1, 2)


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda: MODEL.predict(X[:0]), "`X` has no rows"),
        (lambda: MODEL.predict(X.drop(columns="town")), "no column 'town'"),
        (lambda: stub().predict([[0.5], [np.nan]]), "gives row 1 the score nan"),
        (lambda: stub(classes=("a", "a")), "must be two different labels, got 'a' twice"),
        (lambda: stub(classes=("a", None)), "A label must be text, a number or a boolean"),
        (lambda: stub(threshold=np.nan), "`threshold` must be a number"),
    ],
)
def test_what_cannot_be_decided_is_refused_in_a_sentence(call, match):
    with pytest.raises((ValueError, TypeError), match=match):
        call()


def test_decisions_go_to_other_libraries_with_labels_and_groups():
    model = stub(threshold=0.5, classes=("good", "bad"))
    table = pd.DataFrame({"score": [0.2, 0.5, 0.9], "sex": ["f", "m", "f"]})
    frame = model.predictions_frame(table, ["bad", "good", "bad"], "sex")
    expected = {"score": [0, 1, 1], "label_value": [1, 0, 1], "sex": ["f", "m", "f"]}
    pd.testing.assert_frame_equal(frame, pd.DataFrame(expected))
    check = MODEL.check(X, LABELS, {"sex": SEX})
    told = MODEL.predictions_frame(X, LABELS, {"sex": SEX})
    positive = told["label_value"] == 1
    assert told["score"][positive].mean() == pytest.approx(check.metrics["tpr"])
