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


@pytest.fixture(scope="module")
def frontier():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return find_frontier(X, FRAUD, sensitive_features=AGE, max_fits=8, max_fpr=0.2, n_jobs=1)


@pytest.fixture(scope="module")
def content(frontier):
    return frontier.dossier()


def test_the_best_untouched_model_is_the_one_in_use(frontier, content):
    frame = frontier.frame
    whole = frame[(frame["intervention"] == "none") & (frame["cost"] == 1)]
    used = content["models"][0]
    assert used["parts"]["validation"]["tpr"] == pytest.approx(whole["validation_tpr"].max())
    assert used["parts"]["validation"]["tpr_change"] == 0
    best = whole.loc[whole["validation_tpr"].idxmax()]
    found = used["parts"]["validation"]["ratios"]["fpr_ratio"][0]
    assert found == pytest.approx(best["validation_fpr_ratio"])
    assert used["about"]["n_estimators"] == best["n_estimators"]


def test_alternatives_keep_to_the_loss_that_is_allowed_and_raise_the_ratio(frontier, content):
    used, *others = content["models"]
    base = used["parts"]["validation"]["tpr"]
    assert others
    for model in others:
        own = model["parts"]["validation"]
        assert own["tpr"] >= base - 0.02 - 1e-9
        assert own["tpr_change"] == pytest.approx(own["tpr"] - base)
        assert own["ratios"]["fpr_ratio"][0] >= used["parts"]["validation"]["ratios"]["fpr_ratio"][0]
        near = frontier.frame[frontier.frame["validation_tpr"] >= base - 0.02]
        assert own["ratios"]["fpr_ratio"][0] <= near["validation_fpr_ratio"].max() + 1e-12


def test_test_rows_are_decided_at_the_threshold_of_validation_rows(frontier, content):
    model = content["models"][1]
    row = frontier.frame.index[np.isclose(frontier.frame["validation_threshold"], model["threshold"])][0]
    scores, part = frontier.results.scores(row, "test"), frontier._data.part("test")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = evaluate(
            part.positive, scores, sensitive_features=part.groups.by_row, threshold=model["threshold"]
        )
    told = model["parts"]["test"]
    assert (told["tpr"], told["fpr"]) == pytest.approx((found["tpr"], found["fpr"]))
    assert told["ratios"]["fpr_ratio"][0] == pytest.approx(found["fpr_ratio"])
    assert [line["rows"] for line in told["groups"]] == part.groups.sizes.tolist()


def test_a_model_in_use_may_be_handed_over(frontier):
    model = LogisticRegression(max_iter=50).fit(X.fillna(0)[["income", "credit_risk_score"]], FRAUD)
    used = frontier.dossier(in_use=model)["models"][0]
    part = frontier._data.part("validation")
    rows = frontier._data.parts["validation"]
    scores = model.predict_proba(X.fillna(0)[["income", "credit_risk_score"]].iloc[rows])[:, 1]
    selected = scores >= used["threshold"]
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


def test_a_model_in_use_reads_text_as_it_was_written():
    columns = ["income", "payment_type"]
    model = make_pipeline(OneHotEncoder(handle_unknown="ignore"), LogisticRegression()).fit(
        FRAME[columns], FRAUD
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        search = find_frontier(FRAME[columns], FRAUD, sensitive_features=AGE, max_fits=2, n_jobs=1)
    used = search.dossier(in_use=model)["models"][0]
    part, rows = search._data.part("validation"), search._data.parts["validation"]
    selected = model.predict_proba(FRAME[columns].iloc[rows])[:, 1] >= used["threshold"]
    assert used["parts"]["validation"]["tpr"] == pytest.approx(selected[part.positive].mean())


class Unsure(LogisticRegression):
    def predict_proba(self, X):
        return np.full((len(X), 2), np.nan)


def test_a_model_in_use_that_cannot_be_compared(frontier):
    other = LogisticRegression().fit(X.fillna(0)[["income"]].rename(columns={"income": "salary"}), FRAUD)
    with pytest.raises(ValueError, match="needs the column 'salary', which the search does not have"):
        frontier.dossier(in_use=other)
    other = LogisticRegression().fit(X.fillna(0)[["income"]], FRAUD.map({0: "no", 1: "yes"}))
    with pytest.raises(ValueError, match="not the positive label 1"):
        frontier.dossier(in_use=other)
    other = Unsure().fit(X.fillna(0)[["income"]], FRAUD)
    with pytest.raises(ValueError, match="`in_use` must score every row, got nan in row 0 of the validation"):
        frontier.dossier(in_use=other)


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
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        frontier = find_frontier(
            X.fillna(0), FRAUD, sensitive_features=AGE, estimator=forest, space=space, max_fits=8, n_jobs=1
        )
    searched = frontier.dossier()["searched"]
    assert set(searched["choices"]["max_features"]) == {"sqrt", 0.9}
    assert set(searched["choices"]["criterion"]) == {"gini", "entropy"}
    assert searched["ranges"]["max_depth"] == [3, 5]


@pytest.mark.parametrize("less", [(), (-0.1,), (0.01, "much"), (2,), 0.01])
def test_losses_that_cannot_be_are_refused(frontier, less):
    with pytest.raises(ValueError, match="`less` must hold one or more numbers from 0 to 1, got"):
        frontier.dossier(less=less)


def test_the_model_in_use_is_no_alternative_to_itself(frontier):
    titles = [(model["threshold"], str(model["about"])) for model in frontier.dossier()["models"]]
    assert len(set(titles)) == len(titles)
