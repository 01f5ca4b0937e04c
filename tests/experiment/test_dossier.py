"""The dossier of alternatives: the model in use beside what a search found."""

import json
import warnings

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from fado import find_frontier
from fado.datasets import make_account_fraud
from fado.experiment._dossier import expected_gain
from fado.metrics import evaluate

FRAME = make_account_fraud(4000, "II", random_state=3)
FRAUD = FRAME.pop("fraud_bool")
AGE = (FRAME.pop("customer_age") >= 50).map({True: "<b>50 or older", False: "under 50"}).rename("age")
X = FRAME.select_dtypes("number").drop(columns="month")


def search(X=X, **settings):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return find_frontier(X, FRAUD, sensitive_features=AGE, n_jobs=1, **settings)


@pytest.fixture(scope="module")
def frontier():
    return search(max_fits=8, max_fpr=0.2)


@pytest.fixture(scope="module")
def content(frontier):
    return frontier.dossier()


def test_the_best_untouched_model_is_in_use_and_alternatives_raise_the_ratio(frontier, content):
    frame = frontier.frame
    whole = frame[(frame["intervention"] == "none") & (frame["cost"] == 1)]
    used, *others = (model["parts"]["validation"] for model in content["models"])
    best = whole.loc[whole["validation_tpr"].idxmax()]
    base, ratio = used["tpr"], used["ratios"]["fpr_ratio"][0]
    assert (base, used["tpr_change"]) == (pytest.approx(best["validation_tpr"]), 0)
    assert ratio == pytest.approx(best["validation_fpr_ratio"])
    assert content["models"][0]["about"]["n_estimators"] == best["n_estimators"]
    assert others
    highest = frame.loc[frame["validation_tpr"] >= base - 0.02, "validation_fpr_ratio"].max()
    for model in others:
        assert model["tpr"] >= base - 0.02 - 1e-9
        assert model["tpr_change"] == pytest.approx(model["tpr"] - base)
        assert ratio <= model["ratios"]["fpr_ratio"][0] <= highest + 1e-12
    # the model in use is no alternative to itself
    titles = {(model["threshold"], str(model["about"])) for model in content["models"]}
    assert len(titles) == len(content["models"])


def test_test_rows_are_decided_at_the_threshold_of_validation_rows(frontier, content):
    model = content["models"][1]
    row = frontier.frame.index[np.isclose(frontier.frame["validation_threshold"], model["threshold"])][0]
    scores, part = frontier.results.scores(row, "test"), frontier._data.part("test")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        groups = part.groups.by_row
        found = evaluate(part.positive, scores, sensitive_features=groups, threshold=model["threshold"])
    told = model["parts"]["test"]
    assert (told["tpr"], told["fpr"]) == pytest.approx((found["tpr"], found["fpr"]))
    assert told["ratios"]["fpr_ratio"][0] == pytest.approx(found["fpr_ratio"])
    assert [line["rows"] for line in told["groups"]] == part.groups.sizes.tolist()


def numbers_model(frontier):
    """A model of numbers, handed over to a search of numbers."""
    X_used = X.fillna(0)[["income", "credit_risk_score"]]
    return frontier, LogisticRegression(max_iter=50).fit(X_used, FRAUD), X_used


def words_model(_):
    """A model of words, which it reads as they were written."""
    X_used = FRAME[["income", "payment_type"]]
    model = make_pipeline(OneHotEncoder(handle_unknown="ignore"), LogisticRegression()).fit(X_used, FRAUD)
    return search(X_used, max_fits=2), model, X_used


@pytest.mark.parametrize("made", [numbers_model, words_model])
def test_a_model_in_use_may_be_handed_over(frontier, made):
    frontier, model, X_used = made(frontier)
    used = frontier.dossier(in_use=model)["models"][0]
    part, rows = frontier._data.part("validation"), frontier._data.parts["validation"]
    selected = model.predict_proba(X_used.iloc[rows])[:, 1] >= used["threshold"]
    assert used["parts"]["validation"]["tpr"] == pytest.approx(selected[part.positive].mean())
    assert used["parts"]["validation"]["fpr"] <= 0.2


def test_the_model_in_use_is_measured_like_the_alternatives_and_is_none_of_them(frontier):
    """Whatever its own threshold: at another budget its true-positive rate could not be compared."""
    model = frontier.closest(1.0)
    model.threshold_ += 0.1  # it selects fewer in use
    content = frontier.dossier(in_use=model, less=(0.0, 1.0))
    used, *others = content["models"]
    at = [own["parts"]["validation"] for own in content["models"]]
    assert used["about"] == {"threshold_in_use": model.threshold_}
    assert used["threshold"] == pytest.approx(model.threshold_ - 0.1)
    assert at[0]["fpr"] == pytest.approx(0.2, abs=0.01)
    assert all(own["tpr_change"] != 0 for own in at[1:])
    # the most equal model of the search is in use: nothing is more equal at any loss
    assert [own["title"] for own in others] in ([], ["Alternative: at least the same true-positive rate"])


class Unsure(LogisticRegression):
    def predict_proba(self, X):
        return np.full((len(X), 2), np.nan)


INCOME = X.fillna(0)[["income"]]


@pytest.mark.parametrize(
    ("model", "match"),
    [
        (
            LogisticRegression().fit(INCOME.rename(columns={"income": "salary"}), FRAUD),
            "needs the column 'salary', which the search does not have",
        ),
        (LogisticRegression().fit(INCOME, FRAUD.map({0: "no", 1: "yes"})), "not the positive label 1"),
        (Unsure().fit(INCOME, FRAUD), "`in_use` must score every row, got nan in row 0 of the validation"),
    ],
    ids=["column", "label", "scores"],
)
def test_a_model_in_use_that_cannot_be_compared(frontier, model, match):
    with pytest.raises(ValueError, match=match):
        frontier.dossier(in_use=model)


def test_what_is_written(frontier, content, tmp_path):
    frontier.dossier(tmp_path / "d.html")
    frontier.dossier(tmp_path / "d.json")
    page = (tmp_path / "d.html").read_text(encoding="utf-8")
    assert "<b>50" not in page
    assert "<script" not in page
    told = json.loads((tmp_path / "d.json").read_text(encoding="utf-8"))
    assert told["searched"] == json.loads(json.dumps(content["searched"]))
    with pytest.raises(ValueError, match=r"ends in .html or .json, got"):
        frontier.dossier(tmp_path / "d.txt")


def test_as_many_draws_again_gain_no_more_than_the_bound_on_average():
    rng = np.random.default_rng(0)
    for draw in (rng.random, rng.standard_normal, rng.standard_exponential):
        found = draw((4_000, 2, 9))
        bounds = [expected_gain(own)[1] for own in found[:, 0]]
        gains = found.max(axis=(1, 2)) - found[:, 0].max(axis=1)
        assert 0 < gains.mean() <= np.mean(bounds)


def test_a_space_of_mixed_types_is_described():
    forest = RandomForestClassifier(5, max_depth=4, n_jobs=1)
    space = {"max_features": ["sqrt", 0.9], "criterion": ["gini", "entropy"], "max_depth": [3, 5]}
    frontier = search(X.fillna(0), estimator=forest, space=space, max_fits=8)
    searched = frontier.dossier()["searched"]
    assert set(searched["choices"]["max_features"]) == {"sqrt", 0.9}
    assert set(searched["choices"]["criterion"]) == {"gini", "entropy"}
    assert searched["ranges"]["max_depth"] == [3, 5]


@pytest.mark.parametrize("less", [(), (-0.1,), (0.01, "much"), (2,), 0.01])
def test_losses_that_cannot_be_are_refused(frontier, less):
    with pytest.raises(ValueError, match="`less` must hold one or more numbers from 0 to 1, got"):
        frontier.dossier(less=less)
