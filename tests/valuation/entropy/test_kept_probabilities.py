"""Out-of-bag probabilities that a valuation keeps: closed forms, cross-fitting, the models themselves."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from lightgbm import LGBMClassifier
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.dummy import DummyClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.tree import DecisionTreeClassifier

from fado import InBagEntropy, OutOfBagEntropy
from fado.execution import on_cluster
from fado.tabular import Table

N = 600
RNG = np.random.default_rng(0)
FRAME = pd.DataFrame(
    {
        "number": RNG.integers(0, 12, N),
        "gaps": np.where(RNG.random(N) < 0.2, np.nan, RNG.integers(0, 9, N)),
        "text": RNG.choice(["red", "green", "blue"], N),
    }
)
SIGNAL = FRAME["number"] / 6 + (FRAME["text"] == "red") + RNG.normal(size=N)
Y = np.where(SIGNAL > 1.3, "yes", "no")
THREE = np.digitize(SIGNAL, [0.7, 1.8])
SEX = np.where(FRAME["gaps"].fillna(4) + 3 * (Y == "yes") + 3 * RNG.normal(size=N) > 5, "f", "m")
RACE = RNG.choice(["a", "b", "c"], N)


def fit(X, y, z, estimators=None, **settings):
    settings = {"n_bags": 5, "random_state": 0, "n_jobs": 1} | settings
    valuator = OutOfBagEntropy(estimators, keep_probabilities=True, **settings)
    return valuator.fit(X, y, sensitive_features=z)


class Told(ClassifierMixin, BaseEstimator):
    """Knows by heart: of a target, (1 + 2a) / 4; of an attribute at label k, row k of a table."""

    GROUPS = np.array([[0.5, 0.25, 0.25], [0.0, 0.125, 0.875], [0.25, 0.75, 0.0]])

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def predict_proba(self, X):
        X = np.asarray(X)
        if X.shape[1] > 1:  # the labels follow as columns: itself, or one indicator per class of three
            codes = X[:, 1].astype(int) if X.shape[1] == 2 else X[:, 1:].argmax(axis=1)
            return self.GROUPS[codes]
        positive = (1 + 2 * X[:, 0]) / 4
        rest = len(self.classes_) - 1
        return np.column_stack([np.repeat((1 - positive)[:, None] / rest, rest, axis=1), positive])


@pytest.mark.parametrize("n_labels", [2, 3])
def test_probabilities_that_are_known_functions_of_feature_and_label(n_labels):
    X = np.arange(24)[:, None] % 8 / 8
    y = np.arange(24) % n_labels
    z = pd.Series(["f", "m", None] * 8)
    with pytest.warns(UserWarning, match="a separate class"):
        valuation = fit(X, y, {"sex": z}, Told(), n_jobs=1).valuation_
    assert valuation.classes == {"y": tuple(range(n_labels)), "sex": ("f", "m", "unknown")}
    positive = (1 + 2 * X[:, 0]) / 4
    others = [(1 - positive) / (n_labels - 1)] * (n_labels - 1)
    np.testing.assert_array_equal(valuation.probabilities["y"], np.column_stack([*others, positive]))
    expected = np.broadcast_to(Told.GROUPS[:n_labels], (24, n_labels, 3))
    np.testing.assert_array_equal(valuation.probabilities["sex"], expected)


def test_models_that_do_not_see_the_target_say_the_same_at_every_label():
    valuation = fit(FRAME, THREE, {"sex": SEX}, z_sees_target=False).valuation_
    found = valuation.probabilities["sex"]
    assert found.shape == (N, 3, 2)
    np.testing.assert_array_equal(found, found[:, :1].repeat(3, axis=1))
    own = found[np.arange(N), 0, (SEX == "m").astype(int)]
    np.testing.assert_allclose(own, valuation.label_probability["sex"], rtol=0, atol=1e-12)


def test_the_mean_is_over_the_fits_that_left_the_row_out():
    """Models that know only the shares among the rows they saw, and one that is always sure of class 1."""
    y, z = np.array([0, 0, 0, 1, 1] * 8), np.array([0, 1, 1, 1] * 10)
    models = [DummyClassifier(strategy="prior"), DummyClassifier(strategy="constant", constant=1)]
    valuator = fit(np.zeros((40, 1)), y, {"z": z}, models, n_bags=7, unseen_fraction=0.3)
    found, left_out = valuator.valuation_.probabilities, [np.isin(range(40), bag) for bag in valuator.bags_]
    for p, labels in ((found["y"], y), (found["z"][:, 0], z)):
        of_bags = [(labels[~out].mean() + 1) / 2 for out in left_out]
        expected = np.average(np.transpose([of_bags] * 40), axis=0, weights=np.array(left_out))
        np.testing.assert_allclose(p, np.column_stack([1 - expected, expected]), rtol=0, atol=1e-12)
    np.testing.assert_array_equal(found["z"][:, 0], found["z"][:, 1])


@pytest.mark.parametrize("weighted", [False, True])
def test_lightgbm_equals_direct_cross_fitting_on_the_same_bags(weighted):
    """Columns of few values, so that the bins of a bag are those of the table."""
    X = FRAME[["number", "gaps"]].to_numpy()
    y, z = (Y == "yes").astype(int), (SEX == "m").astype(int)
    weight = RNG.integers(1, 4, N) / 2.0 if weighted else None
    groups = np.arange(N) // 3 if weighted else None
    estimator = LGBMClassifier(n_estimators=12, min_child_samples=5, random_state=3, n_jobs=1, verbosity=-1)
    valuator = OutOfBagEntropy(estimator, n_bags=5, random_state=0, keep_probabilities=True)
    valuator.fit(X, y, sensitive_features={"sex": z}, sample_weight=weight, groups=groups)
    expected = {"y": np.zeros((N, 2)), "sex": np.zeros((N, 2, 2))}
    scale = 1.0 if weight is None else weight / weight.mean()
    for bag in valuator.bags_:  # five bags of a fifth: every row is left out once
        seen = np.setdiff1d(np.arange(N), bag)
        given = {"sample_weight": (scale * np.ones(N))[seen]}
        expected["y"][bag] = estimator.fit(X[seen], y[seen], **given).predict_proba(X[bag])
        model = estimator.fit(np.column_stack([X, y])[seen], z[seen], **given)
        for label in (0, 1):
            at_label = np.column_stack([X[bag], np.full(len(bag), label)])
            expected["sex"][bag, label] = model.predict_proba(at_label)
    for name, own in expected.items():
        np.testing.assert_allclose(valuator.valuation_.probabilities[name], own, rtol=0, atol=1e-9)
    assert np.abs(expected["sex"][:, 0] - expected["sex"][:, 1]).mean() > 0.1  # the label tells


NUMBERS = FRAME[["number", "gaps"]].fillna(0).to_numpy(dtype=float)
CASES = {
    "default models": (FRAME, None),
    "sparse": (scipy.sparse.csr_matrix(NUMBERS), None),
    "LightGBM's own fit": (FRAME, LGBMClassifier(n_estimators=5, class_weight="balanced")),
    "sparse, LightGBM's own fit": (
        scipy.sparse.csr_matrix(NUMBERS),
        LGBMClassifier(n_estimators=5, class_weight="balanced"),
    ),
    "numbers": (NUMBERS, LogisticRegression()),
    "pipeline": (
        FRAME[["number", "gaps"]],
        make_pipeline(SimpleImputer(), DecisionTreeClassifier(max_depth=3)),
    ),
    "several": (NUMBERS, [LogisticRegression(), LGBMClassifier(n_estimators=5), DecisionTreeClassifier()]),
}


@pytest.mark.parametrize("y", [Y, THREE], ids=["two labels", "three labels"])
@pytest.mark.parametrize(("X", "estimators"), CASES.values(), ids=CASES)
def test_probabilities_are_those_of_the_models_that_were_kept(X, estimators, y):
    valuator = fit(X, y, {"sex": SEX, "race": RACE}, estimators, keep_models=True)
    table, n_labels = Table.from_input(X), len(np.unique(y))
    for own in valuator.models_.kept:
        n_groups = len(own.variable.classes)
        total, count = np.zeros((N, n_labels, n_groups)), np.zeros(N)
        for model in own.models:
            rows = valuator.bags_[model.bag]
            count[rows] += 1
            for label in range(n_labels):
                total[rows, label] += model.scorer.score(table.take(rows), np.full(len(rows), label))
        expected = total / count[:, None, None]
        name = own.variable.name
        found = valuator.valuation_.probabilities[name]
        assert found.shape == ((N, n_groups) if name == "y" else (N, n_labels, n_groups))
        np.testing.assert_allclose(found, expected[:, 0] if name == "y" else expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("estimators", [None, [DecisionTreeClassifier(), LGBMClassifier(n_estimators=5)]])
def test_values_are_the_same_bits_with_and_without_for_any_number_of_workers(estimators):
    X, z = FRAME[["number"]], {"sex": SEX, "race": RACE}
    plain = OutOfBagEntropy(estimators, n_bags=5, random_state=0).fit(X, Y, sensitive_features=z).valuation_
    kept = [fit(X, Y, z, estimators, n_jobs=n_jobs).valuation_ for n_jobs in (1, 2)]
    assert plain.probabilities is None
    assert list(kept[0].probabilities) == ["y", "sex", "race"]
    for own in kept:
        assert own.metadata == plain.metadata
        for field in plain.fields:
            assert getattr(own, field).equals(getattr(plain, field))
        for name, found in own.probabilities.items():
            np.testing.assert_array_equal(found, kept[0].probabilities[name])


@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_cluster_gives_the_same_bits():
    distributed = pytest.importorskip("distributed")
    z = {"sex": SEX}
    estimators = [LGBMClassifier(n_estimators=5), LogisticRegression()]
    with (
        distributed.LocalCluster(
            n_workers=1, threads_per_worker=1, processes=False, dashboard_address=":0", memory_limit=None
        ) as cluster,
        on_cluster(cluster),
    ):
        there = fit(NUMBERS, THREE, z, estimators).valuation_.probabilities
    for name, here in fit(NUMBERS, THREE, z, estimators).valuation_.probabilities.items():
        np.testing.assert_array_equal(there[name], here)


def test_a_continuous_attribute_has_no_entry():
    valuation = fit(FRAME, Y, {"income": RNG.normal(size=N), "sex": SEX}).valuation_
    assert list(valuation.probabilities) == list(valuation.classes) == ["y", "sex"]
    assert valuation.variables == ["y", "income", "sex"]


@pytest.mark.parametrize(
    ("y", "z", "message"),
    [
        (SIGNAL, SEX, r"`keep_probabilities=True` needs a target of classes, and 'y' is con"),
        (
            np.arange(N) % 10,
            (np.arange(N) % 11).astype(str),
            r"at most 100 numbers of a row and variable, got 10 classes of 'y' times 11 groups of 'z': merge",
        ),
        ((np.arange(N) % 101).astype(str), None, r"got 101 classes of 'y': merge some, or leave it out"),
    ],
    ids=["continuous", "product", "classes"],
)
def test_targets_without_probabilities_and_too_many_classes_are_refused(y, z, message):
    with pytest.raises(ValueError, match=message):
        fit(FRAME, y, z)


def test_more_than_memory_holds_is_refused(monkeypatch):
    """600 rows of 2 + 2 x 2 numbers of 8 bytes are 28,800 bytes."""
    z = {"sex": SEX}
    monkeypatch.setattr("fado._memory.free_memory", lambda: 28_799)
    with pytest.raises(
        ValueError, match=r"for 600 rows would take at least 29 KB of memory, and 29 KB are free"
    ):
        fit(FRAME, Y, z, DummyClassifier())
    monkeypatch.setattr("fado._memory.free_memory", lambda: 28_800)
    assert fit(FRAME, Y, z, DummyClassifier()).valuation_.probabilities["sex"].shape == (N, 2, 2)


class Lost(Told):
    """Does not know labels that rows do not have: the feature is the row's own label."""

    def predict_proba(self, X):
        X = np.asarray(X)
        found = np.full((len(X), 2), 0.5)
        if X.shape[1] > 1:
            found[X[:, 0] != X[:, 1]] = np.nan
        return found


class Failing(Lost):
    def predict_proba(self, X):
        if np.isnan(super().predict_proba(X)).any():
            raise ArithmeticError("out of range")
        return super().predict_proba(X)


@pytest.mark.parametrize(
    ("estimator", "message"),
    [(Lost(), "on variable 'z' in bag 0 gave NaN or infinite"), (Failing(), "in bag 0 failed: out of range")],
)
def test_what_a_model_cannot_say_at_another_label_is_told(estimator, message):
    y = np.array([0.0, 1.0] * 10)
    z = np.array([0, 0, 1, 1] * 5)
    valuator = OutOfBagEntropy(estimator, n_bags=5, random_state=0, n_jobs=1)
    assert (valuator.fit(y[:, None], y, sensitive_features=z).valuation_["z"] == 1).all()
    with pytest.raises(RuntimeError, match=message):
        fit(y[:, None], y, z, estimator, n_jobs=1)


def test_in_bag_probabilities_are_not_kept():
    assert "keep_probabilities" not in InBagEntropy().get_params()
    assert InBagEntropy(random_state=0).fit(FRAME, Y).valuation_.probabilities is None
