"""New rows: a copy of a training row has that row's value; without a label, the mean over both."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from lightgbm import LGBMClassifier
from sklearn.exceptions import NotFittedError

from fado import TreeInfluence
from fado.metrics import evaluate
from fado.tabular import Table

SMALL = {"n_estimators": 15, "num_leaves": 8}


def made(n_rows, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n_rows, 3))
    group = np.where(x[:, 2] + 0.5 * rng.normal(size=n_rows) > 0, "b", "a")
    y = x[:, 0] + x[:, 2] + rng.normal(size=n_rows) > 1
    X = pd.DataFrame(x, columns=list("uvw"), index=rng.permutation(n_rows) + 7)
    X.loc[rng.random(n_rows) < 0.1, "v"] = np.nan
    X["kind"] = pd.Categorical(rng.choice(list("pqr"), n_rows))
    return X, np.where(y, "yes", "no"), pd.Series(group, name="group", index=X.index)


X, Y, Z = made(1500)
VALIDATION = made(1500, seed=1)


def fitted(estimator=None, fit=None, **settings):
    estimator = LGBMClassifier(**SMALL) if estimator is None else estimator
    valuator = TreeInfluence(estimator, random_state=0, keep_models=True, **settings)
    return valuator.fit(X, Y, sensitive_features=Z, **(fit or {}))


@pytest.fixture(scope="module")
def validated():
    return fitted(fit={"validation": VALIDATION})


@pytest.fixture(scope="module")
def folded():
    return fitted()


@pytest.mark.parametrize("form", ["direct", "backward"])
@pytest.mark.parametrize(
    "settings",
    [{}, {"reg_alpha": 1.5, "reg_lambda": 2.0}, {"class_weight": {"no": 1.0, "yes": 3.0}}],
    ids=["plain", "penalties", "class weights"],
)
def test_a_copy_of_a_training_row_has_its_value(form, settings):
    weights = np.random.default_rng(0).uniform(0.5, 2.0, len(X))
    valuator = fitted(
        LGBMClassifier(**SMALL, **settings), {"validation": VALIDATION, "sample_weight": weights}, form=form
    )
    again = valuator.value(X, Y)
    for name in ("y", "group"):
        np.testing.assert_allclose(again[name], valuator.valuation_[name], rtol=1e-9, atol=1e-12)


def test_of_folds_the_mean_of_what_each_would_give(folded):
    """Sum what all models but one tell: of a row's own fold, it is the value of the training row."""
    valuation = folded.value(X, Y)
    models = folded.models_._models
    share = (Y == "yes").astype(float)
    sums = []
    for left_out in range(len(models)):
        folded.models_._models = (*models[:left_out], *models[left_out + 1 :])
        effects = folded.models_.by_label(Table.from_input(X), share)
        sums.append(4 / 3 * np.where(share, effects.positive[:, 1], effects.negative[:, 1]))
    folded.models_._models = models
    assert (np.isclose(sums, folded.valuation_["group"], rtol=1e-9, atol=1e-12).any(axis=0)).all()
    np.testing.assert_allclose(np.mean(sums, axis=0), valuation["group"], rtol=1e-9, atol=1e-12)


def test_without_labels_the_effect_is_the_mean_over_both(validated):
    rows, _, _ = made(300, seed=2)
    both = [validated.value(rows, np.full(len(rows), label)) for label in ("no", "yes")]
    p = both[1].label_probability["y"].to_numpy()
    np.testing.assert_allclose(p, 1 - both[0].label_probability["y"], rtol=1e-12)
    expected = validated.value(rows)
    for name in ("y", "group"):
        np.testing.assert_allclose(expected[name], (1 - p) * both[0][name] + p * both[1][name], atol=1e-12)
    assert expected.label_probability.isna().all().all()


def test_probabilities_are_those_of_the_model(validated):
    model = LGBMClassifier(**SMALL, random_state=0, verbosity=-1).fit(X, Y)
    rows, labels, _ = made(300, seed=2)
    p = model.predict_proba(rows)[:, 1]
    told = validated.value(rows, labels).label_probability["y"]
    np.testing.assert_allclose(told, np.where(labels == "yes", p, 1 - p), atol=1e-6)


def test_class_weights_are_taken_out_of_probabilities():
    weighted = LGBMClassifier(**SMALL, class_weight={"no": 1.0, "yes": 5.0}, random_state=0, verbosity=-1)
    rows, _, _ = made(300, seed=3)
    raised = weighted.fit(X, Y).predict_proba(rows)[:, 1]
    odds = raised / (1 - raised) / 5
    valuation = fitted(weighted, {"validation": VALIDATION}).value(rows, ["yes"] * len(rows))
    np.testing.assert_allclose(valuation.label_probability["y"], odds / (1 + odds), atol=1e-6)


def test_effects_foretell_what_adding_rows_does(validated):
    """Rows that raise the ratio most, added with their labels, raise it; those that lower it, lower it."""
    rows, labels, _ = made(3000, seed=4)
    order = np.argsort(validated.value(rows, labels)["group"])
    ratios = []
    for added in (order[-300:], order[:300]):
        model = LGBMClassifier(**SMALL, random_state=0, verbosity=-1)
        model.fit(pd.concat([X, rows.iloc[added]]), np.r_[Y, labels[added]])
        scores = model.predict_proba(VALIDATION[0])[:, 1]
        ratios.append(evaluate(VALIDATION[1], scores, sensitive_features=VALIDATION[2])["fpr_ratio"])
    assert ratios[0] > ratios[1] + 0.1


def test_the_table_says_what_it_is(folded, validated):
    rows, labels, _ = made(50, seed=2)
    valuation = folded.value(rows, labels)
    assert valuation.values.index.equals(rows.index)
    assert valuation.scales == folded.valuation_.scales
    assert (valuation.counts["group"] == 5).all()
    assert valuation.standard_error.gt(0).all().all()
    assert valuation.metadata["seed"] == 0
    assert validated.value(rows).standard_error.isna().all().all()
    assert (validated.value(rows).counts["y"] == 1).all()


def test_columns_in_any_order_and_strange_levels(validated):
    rows, labels, groups = made(200, seed=2)
    plain = validated.value(rows, labels)
    turned = rows[["kind", "w", "v", "u"]].assign(other=1.0)
    pd.testing.assert_frame_equal(validated.value(turned, labels, groups).values, plain.values)
    strange, missing = rows.astype({"kind": object}), rows.astype({"kind": object})
    strange["kind"], missing["kind"] = "never seen", None
    pd.testing.assert_frame_equal(validated.value(strange).values, validated.value(missing).values)


def test_workers_and_blocks_change_nothing(monkeypatch):
    from fado.valuation.influence import _forests

    rows, _, _ = made(500, seed=2)
    one = fitted(n_jobs=1).value(rows)
    monkeypatch.setattr(_forests, "_CHUNK", 64)
    pd.testing.assert_frame_equal(fitted(n_jobs=2).value(rows).values, one.values, check_exact=True)


def test_sparse_and_plain_arrays():
    numbers, values = np.nan_to_num(X[["u", "v", "w"]].to_numpy()), []
    for form in (np.asarray, scipy.sparse.csr_matrix):
        valuator = TreeInfluence(LGBMClassifier(**SMALL), random_state=0, keep_models=True)
        valuator.fit(form(numbers), Y, sensitive_features=Z)
        values.append(valuator.value(form(numbers[:100]))["group"])
    np.testing.assert_allclose(*values, rtol=1e-9, atol=1e-12)


def test_no_row_is_kept(folded):
    for model in folded.models_._models:
        thetas = [own.thetas for own in model.responses if own is not None]
        assert max(map(len, [model.forest.variable.labels, *thetas])) <= SMALL["num_leaves"]


def test_what_cannot_be_valued_gets_a_sentence(validated):
    rows, labels, _ = made(20, seed=2)
    with pytest.raises(ValueError, match="no column 'u'"):
        validated.value(rows.drop(columns="u"))
    with pytest.raises(ValueError, match="label 'maybe', which the models have not learnt"):
        validated.value(rows, np.where(labels == "no", "no", "maybe"))
    with pytest.raises(ValueError, match="0 row"):
        validated.value(rows.iloc[:0])
    with pytest.raises(ValueError, match="`keep_models=True`"):
        TreeInfluence(LGBMClassifier(**SMALL)).fit(X, Y, sensitive_features=Z).value(rows)
    with pytest.raises(NotFittedError):
        TreeInfluence().value(rows)
