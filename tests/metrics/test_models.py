import pickle
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn import clone, config_context
from sklearn.exceptions import UnsetMetadataPassedError
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_score, cross_validate

from fado.metrics import aim_scorer, evaluate


class Oracle:
    """A fitted classifier whose scores are a column of X."""

    def __init__(self, classes=(0, 1), method="predict_proba"):
        self.classes_ = np.array(classes)
        setattr(self, method, getattr(self, f"_{method}"))

    def _predict_proba(self, X):
        scores = X["score"].to_numpy()
        return np.column_stack([1 - scores, scores])

    def _predict(self, X):
        return X["score"].to_numpy() > 0.5

    def _decision_function(self, X):
        return X["score"].to_numpy()


# Of four negatives each, group a has one above 0.5 and b two; both find one of two positives.
Y_TRUE = [0, 0, 0, 0, 1, 1] * 2
X = pd.DataFrame(
    {
        "score": [0.1, 0.2, 0.3, 0.6, 0.25, 0.9, 0.1, 0.2, 0.6, 0.7, 0.28, 0.8],
        "sex": list("aaaaaabbbbbb"),
        "age": ["old", "young"] * 6,
    },
    index=[f"row {i}" for i in range(12)],
)


def score(model=None, table=X, labels=Y_TRUE, at_least=0.5, attributes="sex", call=None, **settings):
    scorer = aim_scorer(at_least=at_least, max_fpr=0.4, sensitive_features=attributes, **settings)
    return scorer(model or Oracle(), table, labels, **(call or {}))


def test_a_ratio_on_the_line_scores_the_true_positive_rate_and_below_it_the_way_to_go():
    assert score() == 0.5
    assert score(at_least=0.8) == pytest.approx(0.5 - 0.8 - 1)
    assert score(at_least=1) == -1.5
    assert score(ratio="tpr_ratio", at_least=1) == 0.5
    assert score(budget=("threshold", 0.65), at_least=0.1) == -1.1  # none in group a, one in b
    assert score(budget=("top_k", 2), ratio="tpr_ratio", at_least=0.8) == 0.5


def test_an_undefined_ratio_scores_least():
    assert score(budget=("threshold", 0.85)) == -2.0  # no false positives at all
    assert score(table=X.assign(score=0.5)) == -2.0
    assert score(attributes="score", table=X.assign(score=0.5), at_least=1) == -2.0


def test_every_miss_is_below_every_model_that_keeps_the_line():
    rng = np.random.default_rng(0)
    kept, missed = [], []
    for _ in range(100):
        table = pd.concat([X] * 5).assign(score=rng.random(60))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = evaluate(Y_TRUE * 5, table["score"], sensitive_features=table["sex"], max_fpr=0.4)
        value = score(table=table, labels=Y_TRUE * 5, at_least=0.8)
        if found["fpr_ratio"] >= 0.8:
            assert value == found["tpr"]
            kept.append(value)
        elif not np.isnan(found["fpr_ratio"]):
            missed.append((found["fpr_ratio"], value))
    assert min(kept) >= 0
    assert max(value for _, value in missed) < -1
    assert len(missed) > 10
    assert [value for _, value in sorted(missed)] == sorted(value for _, value in missed)


def test_either_label_can_be_positive_by_probability_and_by_decision():
    flipped = [1 - label for label in Y_TRUE]
    assert score(Oracle(method="decision_function")) == 0.5
    turned = X.assign(score=1 - X["score"])
    for method in ("predict_proba", "decision_function"):
        assert score(Oracle(method=method), turned, flipped, pos_label=0) == 0.5
    words = np.where(np.array(Y_TRUE) == 1, "yes", "no")
    assert score(Oracle(("no", "yes")), labels=words) == 0.5


def test_attributes_come_by_name_by_index_and_from_the_call():
    assert score(attributes=["sex"]) == score(attributes=X["sex"].sample(frac=1, random_state=0)) == 0.5
    crossed = score(attributes=["sex", "age"], min_group_size=0)
    assert score(attributes=X[["sex", "age"]].iloc[::-1], min_group_size=0) == crossed == -1.5
    assert score(attributes=None, call={"sensitive_features": X["sex"].tolist()}) == 0.5
    assert (
        score(attributes="age", call={"sensitive_features": X["sex"].to_numpy()}) == 0.5
    )  # the call's count
    assert score(table=pl.from_pandas(X)) == 0.5


def test_weights_count():
    # The one false positive of group a weighs as much as the two of b, and b's found positive weighs three.
    weights = [1.0, 1.0, 1.0, 3.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 3.0]
    found = evaluate(Y_TRUE, X["score"], sensitive_features=X["sex"], max_fpr=0.5, sample_weight=weights)
    scorer = aim_scorer(at_least=0.9, max_fpr=0.5, sensitive_features="sex")
    assert scorer(Oracle(), X, Y_TRUE, sample_weight=weights) == found["tpr"] == 4 / 6


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"ratio": "equal"}, ValueError, "`ratio` must be 'fpr_ratio' or .*, got 'equal'"),
        ({"at_least": 80}, ValueError, r"`at_least` must be in \[0, 1\], got 80"),
        ({"budget": ("top_k", 0)}, ValueError, "must be a whole number of at least 1"),
        ({"attributes": np.array(X["sex"])}, TypeError, "got an array, whose rows cannot be found again"),
        ({"attributes": None}, ValueError, "The scorer got no `sensitive_features`: pass them to `fit` with"),
        ({"attributes": "sx"}, ValueError, "names 'sx', and no column of X is called so; did you mean 'sex'"),
        ({"table": X.to_numpy()}, TypeError, "names 'sex', and X has no named columns, got ndarray; pass X"),
        (
            {"table": pd.concat([X, X[["sex"]]], axis=1)},
            ValueError,
            "names 'sex', and more than one column of X is called so",
        ),
        ({"attributes": X["sex"].iloc[2:]}, ValueError, "lacks 2 of its rows, such as 'row 0'"),
        (
            {"attributes": X["sex"].rename(lambda _: "row 0")},
            ValueError,
            "The index of `sensitive_features` must be unique, got 'row 0' more than once",
        ),
        (
            {"attributes": X["sex"], "table": pl.from_pandas(X)},
            TypeError,
            "can only be looked up for a pandas X, got DataFrame",
        ),
        ({"model": Oracle((0, 1, 2))}, ValueError, "classifier of two labels, .* got Oracle of "),
        ({"model": Oracle(("no", "yes"))}, ValueError, "with 1 among them, got Oracle of "),
        ({"model": Oracle(method="predict")}, TypeError, "and Oracle has neither"),
    ],
)
def test_what_does_not_fit_is_refused_with_a_sentence(settings, error, message):
    with pytest.raises(error, match=message):
        score(**settings)


def test_small_groups_are_left_out_with_the_same_words_for_every_fold():
    many = pd.concat([X] * 50, ignore_index=True)
    sizes = []
    for n_tiny in (2, 3):
        many.loc[: n_tiny - 1, "sex"] = "tiny"
        with pytest.warns(UserWarning, match="Group 'tiny', with fewer than 30 rows") as caught:
            sizes.append(score(table=many, labels=Y_TRUE * 50, at_least=0.4))
    assert len(caught) == 1
    assert str(caught[0].message) == (
        "Group 'tiny', with fewer than 30 rows and less than 1 % of a fold, is left out of the ratio; "
        "`min_group_size=0` compares all groups."
    )
    assert sizes == [0.5, 0.5]


# In scikit-learn's searches


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    n = 3000
    group = rng.integers(0, 2, n)
    y = rng.random(n) < 0.1 + 0.3 * group
    merit = rng.normal(size=n) + 1.5 * y
    features = pd.DataFrame({"merit": merit, "group": group + 0.1 * rng.normal(size=n)})
    features.index = rng.permutation(n)
    return features, y, pd.Series(np.where(group == 1, "m", "f"), index=features.index, name="sex")


# The more the model is held back, the less it uses the second feature, which tells the groups apart.
GRID = {"C": [1e-4, 1e-2, 1.0]}
LINE = {"at_least": 0.45, "max_fpr": 0.1}


def by_hand(table, C, fold, n_folds=3):
    features, y, sex = table
    train, test = list(StratifiedKFold(n_folds).split(features, y))[fold]
    model = LogisticRegression(C=C).fit(features.iloc[train], y[train])
    scores = model.predict_proba(features.iloc[test])[:, 1]
    found = evaluate(y[test], scores, sensitive_features=sex.iloc[test], max_fpr=0.1)
    ratio = found["fpr_ratio"]
    return found["tpr"] if ratio >= 0.45 else ratio - 0.45 - 1


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_search_with_routing_gets_the_attributes_of_each_fold(table, jobs):
    features, y, sex = table
    with config_context(enable_metadata_routing=True):
        search = GridSearchCV(
            LogisticRegression(), GRID, scoring=aim_scorer(**LINE), cv=3, n_jobs=jobs, error_score="raise"
        )
        search = clone(search).fit(features.to_numpy(), y, sensitive_features=sex.to_numpy())
        assert search.score(features.to_numpy(), y, sensitive_features=sex) > 0
    for place, C in enumerate(GRID["C"]):
        for fold in range(3):
            found = search.cv_results_[f"split{fold}_test_score"][place]
            assert found == pytest.approx(by_hand(table, C, fold))
    means = search.cv_results_["mean_test_score"]
    assert search.best_params_ == {"C": 1e-4}
    assert means[0] > 0
    assert means[2] < -1


def test_a_search_without_routing_looks_the_attributes_up(table):
    features, y, sex = table
    scorer = aim_scorer(sensitive_features=sex, **LINE)
    search = GridSearchCV(LogisticRegression(), GRID, scoring=scorer, cv=3, error_score="raise")
    search.fit(features, y)
    assert search.best_params_ == {"C": 1e-4}
    assert search.cv_results_["split1_test_score"][2] == pytest.approx(by_hand(table, 1.0, 1))
    named = features.assign(sex=(sex == "m").astype(int))
    values = cross_val_score(
        RidgeClassifier(), named, y, scoring=aim_scorer(sensitive_features="sex", **LINE), cv=3
    )
    assert (values < -1).all()  # it sees the group, and has only a decision function


def test_beside_other_scorers_and_with_weights(table):
    features, y, sex = table
    weights = np.random.default_rng(0).gamma(3.0, size=len(y))
    both = {"aim": aim_scorer(sensitive_features=sex, **LINE), "auc": "roc_auc"}
    search = GridSearchCV(LogisticRegression(), GRID, scoring=both, refit="aim", cv=3, error_score="raise")
    search.fit(features, y, sample_weight=weights)
    assert search.best_params_ == {"C": 1e-4}
    with config_context(enable_metadata_routing=True):
        model = LogisticRegression().set_fit_request(sample_weight=True)
        scorer = aim_scorer(**LINE)
        params = {"sensitive_features": sex, "sample_weight": weights}
        with pytest.raises(UnsetMetadataPassedError, match="sample_weight"):
            cross_validate(model, features, y, scoring=scorer, params=params, cv=3)
        assert scorer.set_score_request(sample_weight=True) is scorer
        weighed = cross_validate(model, features, y, scoring=scorer, params=params, cv=3)["test_score"]
        scorer.set_score_request(sample_weight=False, sensitive_features="sex")
        plain = cross_validate(
            model, features, y, scoring=scorer, params={"sex": sex, "sample_weight": weights}, cv=3
        )["test_score"]
    assert (weighed != plain).all()


def test_a_scorer_survives_a_pickle_and_tells_what_it_is():
    scorer = aim_scorer("tpr_ratio", 0.9, budget=("top_k", 5), sensitive_features=X["sex"])
    told = "AimScorer(ratio='tpr_ratio', at_least=0.9, budget=Budget(kind='top_k', limit=5), "
    assert repr(scorer) == told + "min_group_size=30, pos_label=None)"
    again = pickle.loads(pickle.dumps(scorer))
    assert again(Oracle(), X, Y_TRUE) == scorer(Oracle(), X, Y_TRUE)
