import numpy as np
import pandas as pd
import pytest
from lightgbm import LGBMClassifier
from sklearn.ensemble import RandomForestClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks
from tests.valuation.same import assert_same

from fado import LinearUtility, TreeInfluence, UtilityAwarePrevalenceSampler, Valuation
from fado.tabular import read_problem
from fado.valuation import make_valuator, retraining_check
from fado.valuation.influence._forests import Forests

SMALL = {"n_estimators": 15, "num_leaves": 8}


def made(n_rows, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n_rows, 3))
    group = np.where(x[:, 2] + 0.5 * rng.normal(size=n_rows) > 0, "b", "a")
    y = x[:, 0] + x[:, 2] + rng.normal(size=n_rows) > 1
    X = pd.DataFrame(x, columns=list("uvw"), index=rng.permutation(n_rows) + 7)
    X["kind"] = pd.Categorical(rng.choice(list("pqr"), n_rows))
    return X, y.astype(int), pd.Series(group, name="group", index=X.index)


X, Y, Z = made(3000)
VALIDATION = made(2500, seed=1)


def values(estimator=None, X=X, y=Y, z=Z, validation=None, sample_weight=None, **settings):
    estimator = LGBMClassifier(**SMALL) if estimator is None else estimator
    valuator = TreeInfluence(estimator, random_state=0, **settings)
    given = {"sensitive_features": z, "sample_weight": sample_weight, "validation": validation}
    return valuator.fit(X, y, **given).valuation_


@pytest.mark.filterwarnings("ignore:The models found nothing to split on:UserWarning")
@parametrize_with_checks([TreeInfluence(n_bags=2, n_jobs=1)])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def test_it_says_what_its_values_are():
    valuation = values(fairness="tpr_ratio", performance="log_loss")
    assert valuation.variables == ["y", "group"]
    assert valuation.values.index.equals(X.index)
    assert valuation.scales["group"].meaning == "effect of the row's weight on tpr_ratio"
    assert valuation.scales["y"].meaning == "effect of the row's weight on log_loss"
    assert valuation.scales["y"].is_signed
    assert set(valuation.counts["y"]) == {4}
    assert valuation.metadata["n_bags"] == 5
    assert valuation.label_probability["y"].between(0, 1).all()
    assert valuation.label_probability["group"].isna().all()
    assert valuation.standard_error.gt(0).all().all()


def test_any_number_of_workers_gives_the_same_bits():
    for form in ("direct", "backward"):
        one, two = (values(form=form, n_jobs=n) for n in (1, 2))
        pd.testing.assert_frame_equal(one.values, two.values, check_exact=True)


def test_a_row_twice_has_the_effect_of_a_row_that_weighs_two():
    coarse = X.round({"u": 0, "v": 0, "w": 0})  # so that the bins do not hang on the rows
    doubled = np.r_[np.arange(len(X)), np.arange(500)]
    weights = np.where(np.arange(len(X)) < 500, 2.0, 1.0)
    model = LGBMClassifier(**SMALL, min_child_samples=1)
    twice = values(model, coarse.iloc[doubled], Y[doubled], Z.iloc[doubled], VALIDATION)
    heavy = values(model, coarse, validation=VALIDATION, sample_weight=weights)
    expected = heavy["group"] / weights.mean()  # its unit is the mean weight
    np.testing.assert_allclose(twice["group"][: len(X)], expected, rtol=1e-4, atol=1e-8)


def test_class_weights_count_as_sample_weights():
    factors = np.where(Y == 1, 3.0, 1.0)
    by_class = values(LGBMClassifier(**SMALL, class_weight={0: 1.0, 1: 3.0}), validation=VALIDATION)
    by_row = values(sample_weight=factors, validation=VALIDATION)
    np.testing.assert_allclose(by_class["group"], by_row["group"] * factors / factors.mean(), rtol=1e-5)


@pytest.mark.parametrize("fairness", ["fpr_ratio", "fnr_ratio", "tpr_ratio", "selection_rate_ratio"])
def test_values_foretell_what_retraining_does(fairness):
    model = LGBMClassifier(n_estimators=30, num_leaves=8)
    rng = np.random.default_rng(3)
    cells = [
        (label == Y) & (group == Z) & (rng.random(len(X)) < share)
        for label in (0, 1)
        for group in "ab"
        for share in (0.2, 0.3, 0.4, 0.5)
    ]
    given = {"validation": VALIDATION, "fairness": fairness}
    valuation = values(model, **given)
    check = retraining_check(
        valuation, model, X, Y, sensitive_features=Z, parts=cells, random_state=0, **given
    ).loc["group"]
    assert check["correlation"] > 0.8
    assert 0.3 < check["slope"] < 2
    assert check["low"] < check["correlation"] < check["high"]


def test_out_of_bag_and_validated_values_agree():
    both = pd.DataFrame({"bags": values()["group"], "validated": values(validation=VALIDATION)["group"]})
    sums = both.groupby([Y, Z.to_numpy()]).sum()
    assert (np.sign(sums["bags"]) == np.sign(sums["validated"])).all()
    assert np.corrcoef(sums["bags"], sums["validated"])[0, 1] > 0.9


def test_several_attributes_of_several_groups():
    rng = np.random.default_rng(5)
    both = pd.DataFrame({"group": Z, "three": rng.choice(list("xyz"), len(X))})
    theirs = {"three": rng.choice(list("xyz"), len(VALIDATION[1])), "group": VALIDATION[2].to_numpy()}
    with pytest.warns(UserWarning, match="'three' is .* too close to say which is lower"):
        valuation = values(z=both, validation=(*VALIDATION[:2], pd.DataFrame(theirs)))
    assert valuation.protected == ["group", "three"]
    assert np.ptp(valuation["three"]) > 0
    np.testing.assert_array_equal(valuation["group"], values(validation=VALIDATION)["group"])


def test_rows_that_belong_together_are_validated_by_others():
    row_groups = np.arange(len(X)) // 10
    problem = read_problem(X, Y, {"group": Z}, groups=row_groups)
    for rows, validated in Forests(problem, None, None, 5, 0, 1).folds:
        assert not set(row_groups[rows]) & set(row_groups[validated])


def test_effects_serve_a_sampler():
    valuation = values()
    sampler = UtilityAwarePrevalenceSampler(LinearUtility(alpha=0.0), random_state=0)
    kept = sampler.fit(X, Y, sensitive_features=Z, valuation=valuation).sample_indices_
    gone = np.setdiff1d(np.arange(len(X)), kept)
    (group,) = set(Z.iloc[gone])
    stayed = np.intersect1d(kept, np.flatnonzero((group == Z).to_numpy() & (Y == 0)))
    assert valuation["group"][gone].max() <= valuation["group"][stayed].min()


def test_values_survive_a_file(tmp_path):
    valuation = values()
    valuation.save(tmp_path / "v.parquet")
    again = Valuation.load(tmp_path / "v.parquet")
    assert_same(again, valuation)
    assert (again.scales, again.metadata) == (valuation.scales, valuation.metadata)


def test_it_has_a_name_for_commands():
    valuator = make_valuator("influence", n_bags=3, fairness="fnr_ratio", z_exclude=None)
    assert repr(valuator) == "TreeInfluence(fairness='fnr_ratio', n_bags=3)"


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"boosting_type": "goss"}, "`boosting_type='goss'`: the rows of each tree are not known"),
        ({"boosting_type": "dart"}, "`boosting_type='dart'`"),
        ({"data_sample_strategy": "goss"}, "`data_sample_strategy='goss'`"),
        ({"subsample": 0.5, "subsample_freq": 1}, r"bagging \(`subsample=0.5`\)"),
        ({"bagging_fraction": 0.5, "bagging_freq": 1}, r"bagging \(`subsample=0.5`\)"),
        ({"is_unbalance": True}, "`is_unbalance=True`"),
        ({"scale_pos_weight": 3.0}, "`scale_pos_weight`"),
        ({"path_smooth": 1.0}, "`path_smooth=1.0`"),
        ({"linear_tree": True}, "settings whose effect on the leaves is not known"),
    ],
)
def test_models_that_hide_their_rows_are_refused(settings, sentence):
    with pytest.raises(ValueError, match=sentence):
        values(LGBMClassifier(**settings))


def validated_with(**changes):
    given = dict(zip("Xyz", VALIDATION, strict=True)) | changes
    return given["X"], given["y"], given["z"]


@pytest.mark.parametrize(
    ("validation", "sentence"),
    [
        (validated_with(X=VALIDATION[0].drop(columns="u")), "has no column 'u'"),
        (validated_with(X=VALIDATION[0].assign(u="text")), "Column 'u' holds text"),
        (validated_with(y=np.zeros(2500, int)), "have only one label"),
        (validated_with(y=np.where(VALIDATION[1] == 1, 2, 0)), "have the label 2"),
        (validated_with(z=pd.Series(["a"] * 2500, name="group")), "has only one group among the validation"),
        (validated_with(z=VALIDATION[2].rename("other")), "no protected attribute 'group', .* among 'other'"),
        (validated_with(z=None), "have 0 protected attributes, and the valued rows have 1"),
        ((X, Y), "must be a tuple of three"),
    ],
)
def test_rows_that_cannot_validation(validation, sentence):
    with pytest.raises(ValueError, match=sentence):
        values(validation=validation)


def test_categories_that_were_not_there_validation_as_missing():
    strange = VALIDATION[0].assign(kind="new")
    assert np.isfinite(values(validation=validated_with(X=strange))["group"]).all()


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"estimator": RandomForestClassifier()}, "must be an LGBMClassifier, whose leaves are read"),
        ({"fairness": "parity"}, "`fairness` must be 'fpr_ratio'"),
        ({"performance": "auc"}, "`performance` must be"),
        ({"max_fpr": 1.5}, r"`max_fpr` must be in \(0, 1\), got 1.5"),
        ({"n_bags": 1}, "`n_bags` must be at least 2"),
        ({"form": "forward"}, "`form` must be"),
        ({"z": {"u": X["u"]}}, "too many for groups"),
        ({"y": np.arange(len(X)) % 3}, "two classes, and `y` has 3"),
        ({"y": X["u"]}, "two classes, and `y` is continuous"),
        ({"y": np.ones(len(X), int)}, "`y` has only one class"),
        (
            {"z": Z.where(~((Z == "a") & (Y == 0)), "b")},
            "group 'a' has no negatives of any weight among the validation rows",
        ),
        (
            {
                "X": pd.DataFrame({"u": Y * 10.0 + np.random.default_rng(0).normal(size=len(Y))}),
                "fairness": "fnr_ratio",
            },
            "no group has false negatives",
        ),
    ],
    ids=lambda case: "" if isinstance(case, dict) else case,
)
def test_other_bad_input(given, sentence):
    with pytest.raises(TypeError if "estimator" in given else ValueError, match=sentence):
        values(**given)


def test_small_groups_are_left_out():
    z = Z.copy()
    z.iloc[:5] = "tiny"
    with pytest.warns(UserWarning, match=r"'tiny' \(5 rows\).* is not compared"):
        values(z=z)
