import pickle
import warnings
from importlib.metadata import version

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from lightgbm import LGBMClassifier
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import get_scorer, roc_auc_score
from sklearn.model_selection import GridSearchCV, KFold, StratifiedGroupKFold
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.utils.estimator_checks import parametrize_with_checks
from tests.aim.conftest import draw_applicants

from fado import AimedEstimator, LinearUtility, load_model
from fado.metrics import evaluate
from fado.valuation import Valuation

TREES = LGBMClassifier(n_estimators=20, num_leaves=8)


def aimed(data, estimator=TREES, fit=None, **settings):
    model = AimedEstimator(estimator, **{"random_state": 0} | settings)
    return model.fit(data.X, data.y, sensitive_features=data.sex, **fit or {})


def judge_on(model, data, ratio="fpr_ratio", **settings):
    return evaluate(data.y, model.predict_proba(data.X)[:, 1], sensitive_features=data.sex, **settings)[ratio]


def plain_ratio(data, others):
    """The ratio of an estimator that nobody aimed."""
    encoded = [rows.X.assign(hobby=rows.X["hobby"] == "chess") for rows in (data, others)]
    scores = clone(TREES).fit(encoded[0], data.y).predict_proba(encoded[1])[:, 1]
    return evaluate(others.y, scores, sensitive_features=others.sex)


@pytest.mark.parametrize("ratio", ["fpr_ratio", "tpr_ratio", "selection_rate_ratio"])
def test_unseen_rows_come_near_the_line(applicants, others, ratio):
    model = aimed(applicants, ratio=ratio)
    before = plain_ratio(applicants, others)
    assert model.reached_
    assert model.why_ == ""
    assert before[ratio] < 0.65
    assert judge_on(model, others, ratio) > 0.68
    lost = before["tpr"] - judge_on(model, others, "tpr")
    assert lost < (0.25 if ratio == "selection_rate_ratio" else 0.06)  # the groups' own rates differ


def test_the_false_negative_rate_moves_the_other_way():
    train, other = draw_applicants(6000, 2, gap=2.0), draw_applicants(6000, 3, gap=2.0)
    model = aimed(train, ratio="fnr_ratio", at_least=0.95)
    assert plain_ratio(train, other)["fnr_ratio"] < 0.85
    assert judge_on(model, other, "fnr_ratio") > 0.88


def test_the_path_begins_with_the_untouched_model_and_ends_above_the_line(applicants):
    path = aimed(applicants).path_
    assert list(path.columns[:5]) == ["strength", "tpr", "ratio", "low", "high"]
    assert path["strength"][0] == 0
    assert not path["reached"][0]
    assert path["reached"].any()
    assert len(path) <= 12
    assert (path["low"] <= path["ratio"]).all()
    assert (path["ratio"] <= path["high"]).all()


def test_metrics_and_threshold_are_those_of_the_kept_step(applicants):
    model = aimed(applicants)
    kept = model.path_[model.path_["threshold"] == model.threshold_].iloc[0]
    assert model.metrics_["tpr"] == kept["tpr"]
    assert model.metrics_["fpr_ratio"] == kept["ratio"] >= 0.8
    best = model.path_[model.path_["reached"]]["tpr"].max()
    assert kept["tpr"] == best


def test_without_judge_all_rows_are_weighed_and_learnt_from(applicants):
    model = aimed(applicants)
    assert model.sample_weight_.shape == (len(applicants.y),)
    for label in (0, 1):
        assert model.sample_weight_[applicants.y == label].mean() == pytest.approx(1)
    high = applicants.sex == "m"
    assert model.sample_weight_[high & (applicants.y == 0)].mean() > 1
    assert model.sample_weight_[high & (applicants.y == 1)].mean() < 1


def test_with_judge_the_model_of_the_path_is_the_final_one(applicants, others):
    model = aimed(applicants, fit={"judge": others})
    found = evaluate(others.y, model.predict_proba(others.X)[:, 1], sensitive_features=others.sex)
    for name in ("threshold", "tpr", "fpr_ratio"):
        assert found[name] == model.metrics_[name]


def test_folds_judge_every_row(applicants):
    model = aimed(applicants, cv=3)
    assert model.reached_
    half = AimedEstimator(TREES, random_state=0, validation_fraction=1 / 3)
    half.fit(applicants.X, applicants.y, sensitive_features=applicants.sex)
    widths = [(one.path_["high"] - one.path_["low"])[0] for one in (model, half)]
    assert widths[0] < widths[1]  # three times the rows


def test_above_the_line_the_model_is_left_alone():
    data = draw_applicants(3000, 4, gap=0.0)
    model = aimed(data, at_least=0.5)
    encoded = data.X.assign(hobby=data.X["hobby"].astype("category"))
    plain = LGBMClassifier(n_estimators=20, num_leaves=8, random_state=0, n_jobs=1).fit(encoded, data.y)
    assert len(model.path_) == 1
    assert (model.sample_weight_ == 1).all()
    assert model.told_ is None
    assert (model.predict_proba(data.X)[:, 1] == plain.predict_proba(encoded)[:, 1]).mean() > 0.99


def test_a_group_that_nothing_tells_is_out_of_reach_and_it_says_so():
    """The label of one group is noise: its positives score lower, but no feature tells who is in it."""
    rng = np.random.default_rng(0)
    group, X = rng.integers(0, 2, 4000), rng.normal(size=(4000, 3))
    y = np.where(group == 1, X[:, 0] + 0.5 * rng.normal(size=4000) > 1, rng.random(4000) < 0.5).astype(int)
    model = AimedEstimator(TREES, ratio="tpr_ratio", at_least=0.95, random_state=0, max_fits=5)
    with pytest.warns(UserWarning, match="the features tell next to nothing of the groups"):
        model.fit(X, y, sensitive_features=group)
    assert not model.reached_
    assert "closest" in model.why_
    assert model.told_ < 0.02
    closest = model.path_["ratio"].max()
    assert model.metrics_["tpr_ratio"] == closest


def test_confidence_asks_more_of_the_ratio(applicants):
    sure, plain = aimed(applicants, at_least=0.5, confidence=0.9), aimed(applicants, at_least=0.5)
    assert sure.reached_
    assert sure.metrics_["fpr_ratio_low"] >= 0.5
    assert sure.metrics_["fpr_ratio"] > plain.metrics_["fpr_ratio"]
    assert plain.metrics_["fpr_ratio_low"] < 0.5


def test_a_bound_that_rows_are_too_few_for(applicants):
    with pytest.warns(UserWarning, match="1,499 judged rows are too few to tell"):
        model = aimed(applicants, at_least=0.7, confidence=0.99)
    assert not model.reached_


def test_budgets(applicants, others):
    for budget, name in ((("selection_rate", 0.1), "selection_rate"), (("top_k", 150), "selection_rate")):
        model = aimed(applicants, budget=budget)
        assert model.metrics_[name] <= 0.1
        assert model.reached_
    fixed = aimed(applicants, budget=("threshold", 0.4))
    assert fixed.threshold_ == 0.4
    assert fixed.reached_


def test_several_groups():
    rng = np.random.default_rng(0)
    n_rows = 9000
    group, skill = rng.integers(0, 4, n_rows), rng.normal(size=n_rows)
    X = np.column_stack([skill + 0.5 * rng.normal(size=n_rows), group + 0.3 * rng.normal(size=n_rows)])
    y = (skill + 0.4 * group + rng.normal(size=n_rows) > 2).astype(int)
    model = AimedEstimator(TREES, ratio="selection_rate_ratio", at_least=0.7, random_state=0)
    model.fit(X, y, sensitive_features=group)
    assert model.path_["ratio"][0] < 0.35
    assert model.reached_
    moved = model.path_.iloc[-1].filter(like="strength[")
    assert list(moved) == sorted(moved)  # the higher a group's rate, the more it is lowered


def test_several_attributes_are_crossed(applicants):
    z = pd.DataFrame({"sex": applicants.sex, "hobby": applicants.X["hobby"]})
    model = AimedEstimator(TREES, at_least=0.6, random_state=0).fit(
        applicants.X, applicants.y, sensitive_features=z
    )
    assert "strength[sex='f', hobby='chess']" in model.path_.columns


def test_small_groups_keep_their_weight(applicants):
    sex = applicants.sex.copy()
    sex[:10] = "x"
    model = AimedEstimator(TREES, random_state=0)
    with pytest.warns(UserWarning, match="'x' .* is not compared"):
        model.fit(applicants.X, applicants.y, sensitive_features=sex)
    assert (model.sample_weight_[:10] == 1).all()
    assert model.reached_


def test_rows_count_what_they_weigh(applicants):
    """Their scale changes nothing, neither the path nor the models of groups, if the estimator lets it."""
    numbers = applicants._replace(X=applicants.X.drop(columns="hobby"))
    weights = np.random.default_rng(0).uniform(0.5, 2.0, 6000)
    one, tiny = (
        aimed(numbers, GaussianNB(), fit={"sample_weight": weights * own}) for own in (1.0, 2.0**-10)
    )
    assert len(one.path_) > 1
    pd.testing.assert_frame_equal(one.path_, tiny.path_)
    np.testing.assert_allclose(one.sample_weight_, tiny.sample_weight_, rtol=1e-12)


def test_a_utility_is_a_mild_factor(applicants):
    valuation = Valuation.from_values(
        {"y": np.linspace(0, 1, 6000), "z": np.linspace(1, 0, 6000)},
    )
    model = AimedEstimator(TREES, utility=LinearUtility(0.9), floor=0.5, random_state=0)
    model.fit(applicants.X, applicants.y, sensitive_features=applicants.sex, valuation=valuation)
    plain = aimed(applicants)
    assert model.reached_
    assert (model.sample_weight_ != plain.sample_weight_).any()


def test_same_seed_same_model_whatever_the_workers(applicants, others):
    one, two = (aimed(applicants, cv=3, n_jobs=own) for own in (1, 2))
    assert (one.predict_proba(others.X) == two.predict_proba(others.X)).all()
    pd.testing.assert_frame_equal(one.path_, two.path_)


def test_folds_may_come_from_a_splitter_or_be_positions_or_masks():
    few = draw_applicants(1500, seed=4)
    persons = np.arange(1500) // 3
    expected = list(KFold(3).split(few.X))
    as_masks = [(np.isin(np.arange(1500), train), np.isin(np.arange(1500), own)) for train, own in expected]
    by_splitter, *same = (
        aimed(few, cv=cv, max_fits=2, at_least=0.3) for cv in (KFold(3), expected, as_masks, iter(expected))
    )
    for other in same:
        pd.testing.assert_frame_equal(other.path_, by_splitter.path_)
    grouped = aimed(few, cv=StratifiedGroupKFold(3), max_fits=2, at_least=0.3, fit={"groups": persons})
    assert grouped.path_["tpr"][0] != by_splitter.path_["tpr"][0]


@pytest.mark.parametrize(
    ("settings", "fit", "message"),
    [
        ({"cv": 3}, {"judge": True}, "^`cv` has no effect with `judge`, whose rows decide alone"),
        ({}, {"valuation": True}, "^`valuation` has no effect without a `utility`"),
    ],
)
def test_what_has_no_effect_is_told(settings, fit, message):
    few = draw_applicants(600, seed=5)
    values = Valuation.from_values({"y": np.linspace(0, 1, 600), "z": np.linspace(1, 0, 600)})
    known = {"judge": (few.X, few.y, few.sex), "valuation": values}
    with pytest.warns(UserWarning, match=message):
        aimed(few, at_least=0.01, max_fits=1, fit={name: known[name] for name in fit}, **settings)


@pytest.mark.parametrize("pos_label", [0, 1])
def test_scorers_are_right_whichever_label_is_positive(pos_label):
    few = draw_applicants(1500, seed=4)
    model = aimed(few, LogisticRegression(), fit=None, pos_label=pos_label, at_least=0.01, max_fits=1)
    assert model.classes_.tolist() == [0, 1]
    probability = model.predict_proba(few.X)
    expected = roc_auc_score(few.y, probability[:, 1])
    assert expected > 0.7
    for own in (model, model.to_model()):
        assert get_scorer("roc_auc")(own, few.X, few.y) == pytest.approx(expected)
        np.testing.assert_array_equal(own.predict_proba(few.X), probability)
        positive = own.predict(few.X) == pos_label
        np.testing.assert_array_equal(positive, probability[:, pos_label] >= model.threshold_)


def test_tables_of_all_kinds(applicants, others):
    pandas = aimed(applicants)
    polars = AimedEstimator(TREES, random_state=0).fit(
        pl.from_pandas(applicants.X),
        pl.Series(applicants.y),
        sensitive_features=pl.Series("z", applicants.sex),
    )
    reordered = pl.from_pandas(others.X).select("height", "hobby", "skill")
    assert (pandas.predict_proba(others.X) == polars.predict_proba(reordered)).all()


def test_a_pipeline_and_a_linear_model(applicants, others):
    columns = make_column_transformer((OneHotEncoder(), ["hobby"]), remainder="passthrough")
    for estimator in (make_pipeline(columns, LogisticRegression()), LogisticRegression()):
        model = aimed(applicants, estimator)
        assert model.reached_
        assert judge_on(model, others) > 0.65


def test_labels_come_back_as_they_were(applicants):
    words = np.where(applicants.y == 1, "yes", "no")
    model = AimedEstimator(TREES, random_state=0).fit(applicants.X, words, sensitive_features=applicants.sex)
    assert model.classes_.tolist() == ["no", "yes"]
    predicted = model.predict(applicants.X)
    assert set(predicted) == {"no", "yes"}
    scores = model.predict_proba(applicants.X)[:, 1]
    assert ((predicted == "yes") == (scores >= model.threshold_)).all()


def test_pickled_and_cloned(applicants, others):
    model = aimed(applicants)
    again = pickle.loads(pickle.dumps(model))
    assert (again.predict_proba(others.X) == model.predict_proba(others.X)).all()
    assert clone(model).get_params()["at_least"] == 0.8


def test_a_model_comes_out_with_its_card(applicants, others, tmp_path):
    model = aimed(applicants)
    kept = model.to_model()
    assert (kept.predict_proba(others.X) == model.predict_proba(others.X)).all()
    assert kept.reached_
    assert f"{len(model.path_)} fits" in kept.card()
    kept.save(tmp_path / "model")
    again = load_model(tmp_path / "model")
    assert (again.predict(others.X) == model.predict(others.X)).all()
    assert (again.sample_weight_ == model.sample_weight_).all()


def test_a_failed_fit_leaves_what_was_learnt(applicants):
    model = aimed(applicants)
    before = model.threshold_
    with pytest.raises(ValueError, match="two classes"):
        model.fit(applicants.X, np.arange(6000) % 3, sensitive_features=applicants.sex)
    assert model.threshold_ == before
    assert model.reached_


def test_in_a_search_with_metadata_routing(applicants):
    with sklearn.config_context(enable_metadata_routing=True), warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        search = GridSearchCV(
            AimedEstimator(TREES, random_state=0, max_fits=3), {"estimator__num_leaves": [4, 8]}, cv=2
        )
        search.fit(applicants.X, applicants.y, sensitive_features=applicants.sex)
    assert search.best_estimator_.path_["strength"].max() > 0


BAD = [
    ({"at_least": 1.2}, "`at_least` must be in .0, 1., as a ratio is, got 1.2"),
    ({"at_least": 0}, "`at_least` must be in"),
    ({"at_least": "0.8"}, "`at_least` must be a number"),
    ({"ratio": "accuracy"}, "`ratio` must be 'fpr_ratio' or"),
    ({"max_fpr": 1.5}, "max_fpr"),
    ({"confidence": 0.3}, "`confidence` must be in .0.5, 1."),
    ({"max_fits": 0}, "`max_fits` must be at least 1"),
    ({"validation_fraction": 1.0}, "`validation_fraction` must be in"),
    ({"cv": 1}, "`cv` must be at least 2"),
    ({"cv": "3"}, "`cv` must be a number of folds, a splitter of scikit-learn, or pairs"),
    ({"cv": KFold}, r"`cv` must be a splitter, got the class KFold: write `KFold\(\)`"),
    ({"cv": [([0, 1], [-1])]}, "Fold 0 of `cv`, validation rows: there is no row -1"),
    ({"cv": [([0, 1], [7000])]}, "Fold 0 of `cv`, validation rows: there is no row 7000"),
    ({"cv": [([True], [False])]}, "Fold 0 of `cv`, training rows: a mask must have one entry for each of"),
    ({"floor": 2.0, "utility": LinearUtility(0.9)}, "`floor` must be in"),
    ({"floor": -1}, "`floor` must be in"),
    ({"budget": ("top_k", 0)}, "top_k"),
]


@pytest.mark.parametrize(("settings", "message"), BAD)
def test_settings_that_make_no_sense(applicants, settings, message):
    with pytest.raises((ValueError, TypeError), match=message):
        aimed(applicants, **settings)


def test_estimators_that_cannot_be_aimed(applicants):
    from sklearn.linear_model import LinearRegression
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.svm import LinearSVC

    for estimator, message in (
        (KNeighborsClassifier(), "KNeighborsClassifier.fit takes no `sample_weight`"),
        (make_pipeline(OneHotEncoder(), KNeighborsClassifier()), "KNeighborsClassifier.fit takes no"),
        (LinearSVC(), "LinearSVC has no `predict_proba`"),
        (LinearRegression(), "must be a classifier"),
        (LinearRegression, r"got the class LinearRegression: write `LinearRegression\(\)`"),
        ("trees", "must be a scikit-learn classifier, got 'trees'"),
    ):
        with pytest.raises((ValueError, TypeError), match=message):
            aimed(applicants, estimator)


class Undecided(LogisticRegression):
    def predict_proba(self, X):
        return np.full((len(X), 2), np.nan)


def test_probabilities_that_are_no_numbers(applicants):
    with pytest.raises(ValueError, match=r"gave nan as the probability of 1,[0-9]{3} of"):
        aimed(applicants, Undecided())


def test_judged_rows_that_do_not_fit(applicants, others):
    for judge, message in (
        ((others.X, others.y), "tuple of three"),
        ((others.X, np.ones(6000, dtype=int), others.sex), "one label only"),
        ((others.X, np.where(others.y, "yes", "no"), others.sex), "has the label 'no'"),
        ((others.X, others.y, np.full(6000, "m")), "hold no row of group 'f'"),
        ((others.X.drop(columns="skill"), others.y, others.sex), "no column 'skill'"),
        ((others.X, others.y, {"sex": others.sex, "age": others.sex}), "has 2 protected attributes"),
    ):
        with pytest.raises(ValueError, match=message):
            aimed(applicants, fit={"judge": judge})


def test_a_group_that_nobody_learns_from_is_not_compared(applicants, others):
    sex = others.sex.copy()
    sex[:500] = "x"
    with pytest.warns(UserWarning, match="'x' of the judged rows is not among those to learn from"):
        model = aimed(applicants, fit={"judge": (others.X, others.y, sex)})
    assert model.reached_


def test_without_groups_the_estimator_is_trained_as_it_is(applicants):
    model = AimedEstimator(TREES, random_state=0)
    with pytest.warns(UserWarning, match="no two groups to compare"):
        model.fit(applicants.X, applicants.y)
    assert not model.reached_
    assert (model.sample_weight_ == 1).all()


FAIL = {"check_classifiers_train": "a row is decided by the threshold of the budget, not by a half"}
if version("scikit-learn").startswith("1.6."):  # faults of its checks, mended since
    FAIL |= {
        "check_positive_only_tag_during_fit": "it takes a fraction from whole numbers, in place",
        "check_sample_weight_equivalence_on_dense_data": "the rows that it repeats have other labels",
        "check_sample_weight_equivalence_on_sparse_data": "the rows that it repeats have other labels",
        "check_methods_sample_order_invariance": "it has too few rows of a label to judge by",
    }


@pytest.mark.filterwarnings("ignore:There are no two groups:UserWarning")
@pytest.mark.filterwarnings("ignore:Converting data to scipy sparse matrix:UserWarning")
@parametrize_with_checks(
    [AimedEstimator(LogisticRegression(), n_jobs=1, random_state=0)],
    expected_failed_checks=lambda _: FAIL,
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)
