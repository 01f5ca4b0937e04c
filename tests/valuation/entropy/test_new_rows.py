"""Rows that were not there: values worked by hand, and models asked one by one as an oracle."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse
from lightgbm import LGBMClassifier, LGBMRegressor
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from tests.valuation.same import assert_same

from fado import InBagEntropy, OutOfBagEntropy
from fado.tabular import Table
from fado.valuation import Valuation
from fado.valuation._probabilities import normalised_entropy
from fado.valuation.entropy import _models

N = 600
RNG = np.random.default_rng(0)
X = pd.DataFrame({"a": RNG.normal(size=N), "b": RNG.normal(size=N)})
X["town"] = RNG.choice(["Ulm", "Bonn", "Köln"], N)
X["age"] = RNG.integers(18, 80, N)
Y = np.where(X["a"] + RNG.normal(size=N) > 0, "yes", "no")
SEX = np.where(X["b"] + (Y == "yes") + RNG.normal(size=N) > 0.5, "f", "m")
RACE = RNG.choice(["p", "q", "r"], N)
Z = {"sex": SEX, "race": RACE}
X_NEW = X.iloc[::7].reset_index(drop=True).assign(a=lambda frame: frame["a"] + 0.1)


@pytest.fixture(scope="module")
def valuator():
    return OutOfBagEntropy(n_bags=5, random_state=0, keep_models=True).fit(X, Y, sensitive_features=Z)


class Certain(ClassifierMixin, BaseEstimator):
    """Gives class 1 a probability that is written in a column, whatever it learns."""

    def __init__(self, column=0, low=0.0, high=1.0):
        self.column, self.low, self.high = column, low, high

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def predict_proba(self, X):
        p = self.low + (self.high - self.low) * np.asarray(X)[:, self.column]
        return np.column_stack([1 - p, p])


class Read(RegressorMixin, BaseEstimator):
    """Predicts what is written in a column."""

    def __init__(self, column=0):
        self.column = column

    def fit(self, X, y):
        return self

    def predict(self, X):
        return np.asarray(X, dtype=float)[:, self.column]


COINS = np.tile([0.0, 1.0], 20)[:, None]
HALVES = np.repeat([0.0, 1.0], 20)


def in_bag(estimators, X, y, z=None, **settings):
    return InBagEntropy(estimators, keep_models=True, n_jobs=1, **settings).fit(X, y, sensitive_features=z)


def test_two_models_that_contradict_each_other_know_nothing_together():
    valuator = in_bag([Certain(), Certain(low=1.0, high=0.0)], COINS, HALVES)
    valuation = valuator.value(np.array([[1.0], [0.5]]))
    assert valuation["y"].tolist() == [0.0, 1.0]  # each is sure of the first row, neither of the second
    assert valuation.epistemic["y"].tolist() == [1.0, 0.0]
    assert valuation.counts["y"].tolist() == [2, 2]
    assert valuation.field("standard_error", "y").tolist() == [0.0, 0.0]
    alone = in_bag(Certain(), COINS, HALVES)
    valuation = alone.value(np.array([[0.5]]))
    assert valuation["y"].tolist() == [1.0]
    assert np.isnan([*valuation.epistemic["y"], *valuation.standard_error["y"]]).all()
    with pytest.raises(ValueError, match=r"of 'y' gave probabilities outside \[0, 1\] for 1 of 2 rows"):
        alone.value(np.array([[1.0], [2.0]]))


def test_models_that_saw_the_target_are_averaged_over_what_is_predicted():
    # p(y = 1) is the first column; given y, p(z = 1) is .1 + .8 y: the target follows the features.
    models = [Certain(column=0)]
    valuator = in_bag(models, COINS, HALVES, {"z": np.roll(HALVES, 5)}, z_exclude=["x0"])
    z_model = valuator.models_.kept[1].models[0].scorer
    z_model.estimator.low, z_model.estimator.high = 0.1, 0.9  # its only column is the target
    new = np.array([[0.25]])
    p = 0.75 * 0.1 + 0.25 * 0.9
    valuation = valuator.value(new)
    np.testing.assert_allclose(valuation["z"], normalised_entropy([[1 - p, p]]), rtol=1e-15)
    np.testing.assert_allclose(valuator.models_.probabilities(new, "z"), [[1 - p, p]], rtol=1e-15)
    given = valuator.value(new, y=[1.0])
    np.testing.assert_allclose(given["z"], normalised_entropy([[0.1, 0.9]]), rtol=1e-15)
    np.testing.assert_allclose(valuator.models_.probabilities(new, "z", y=[0.0]), [[0.9, 0.1]])
    assert given.label_probability["y"].tolist() == [0.25]


def test_a_continuous_target_is_taken_where_it_is_predicted():
    x = np.arange(40.0)[:, None] / 40
    models = [Read(), Certain(low=0.2, high=0.3)]
    valuator = in_bag(models, x, np.roll(x[:, 0], 20), {"z": COINS[:, 0]}, z_exclude=["x0"])
    valuation = valuator.value(np.array([[0.5]]))  # where y is said to be .5, so that z is said to be .25
    np.testing.assert_allclose(valuation["z"], normalised_entropy([[0.75, 0.25]]), rtol=1e-14)
    np.testing.assert_allclose(valuator.models_.probabilities([[0.5]], "z", y=[1.0]), [[0.7, 0.3]])


def test_numbers_are_measured_as_when_the_models_were_fitted_and_clipped():
    x = np.arange(41.0)[:, None]
    valuator = in_bag(Read(), x, np.roll(x[:, 0], 20))  # the mean is 20; predictions are 20 from it at most
    valuation = valuator.value(np.array([[20.0], [25.0], [-20.0]]), y=[20.0, 25.0, np.float64(-19)])
    assert valuation["y"].tolist() == [1.0, 0.75, 0.0]
    assert np.isnan(valuation.epistemic["y"]).all()
    assert valuation.label_probability["y"].tolist() == [1.0, 1.0, 1 - 1 / 21]  # none was off by more than 21
    assert valuation.scales["y"].meaning.startswith("closeness")


def by_hand(valuator, X, y_codes=None):
    """The probabilities of every model of every variable, one model after the other."""
    table = Table.from_input(X)
    kept = {own.variable.name: own for own in valuator.models_.kept}
    found = {}
    for name, own in kept.items():
        found[name] = []
        for model in own.models:
            if not model.scorer.sees_target:
                p = model.scorer.score(table)
            elif y_codes is not None:
                p = model.scorer.score(table, y_codes)
            else:
                said = [each.scorer.score(table) for each in kept["y"].models if each.bag == model.bag]
                likely = np.mean(said, axis=0)
                at = [model.scorer.score(table, np.full(len(X), code)) for code in range(likely.shape[1])]
                p = np.einsum("nc,cn...->n...", likely, at)
            found[name].append(p)
    return found


@pytest.mark.parametrize("known", [False, True])
def test_values_are_those_of_a_loop_over_the_models(valuator, known):
    y = Y[::7] if known else None
    valuation = valuator.value(X_NEW, y)
    for name, all_p in by_hand(valuator, X_NEW, (y == "yes") * 1 if known else None).items():
        mean = np.mean([normalised_entropy(p) for p in all_p], axis=0)
        np.testing.assert_allclose(valuation[name], mean, rtol=1e-12, atol=1e-15)
        epistemic = normalised_entropy(np.mean(all_p, axis=0)) - mean
        np.testing.assert_allclose(valuation.field("epistemic", name), epistemic, atol=1e-12)
    assert (valuation.epistemic >= 0).all(axis=None)
    assert valuation.values.std().min() > 0.001


def test_the_values_of_the_table_itself_are_the_same_bits(valuator):
    plain = OutOfBagEntropy(n_bags=5, random_state=0).fit(X, Y, sensitive_features=Z)
    assert_same(plain.valuation_, valuator.valuation_)
    assert plain.valuation_.metadata == valuator.valuation_.metadata


@pytest.mark.parametrize(
    "labels", [{}, {"y": Y[::7], "sensitive_features": {"sex": SEX[::7]}}], ids=["", "given"]
)
def test_neither_workers_nor_parts_nor_orders_change_a_bit(valuator, labels, monkeypatch):
    expected = valuator.models_.value(X_NEW, **labels, n_jobs=1)
    monkeypatch.setattr(_models, "ROWS_AT_A_TIME", 10)
    assert_same(valuator.models_.value(X_NEW, **labels, n_jobs=1), expected)
    assert_same(valuator.models_.value(X_NEW, **labels, n_jobs=3), expected)
    further = X_NEW[X_NEW.columns[::-1]].assign(when=pd.Timestamp("2020-01-01"))
    assert_same(valuator.models_.value(further, **labels, n_jobs=2), expected)
    order = RNG.permutation(len(X_NEW))
    turned = {"y": Y[::7][order], "sensitive_features": {"sex": SEX[::7][order]}} if labels else {}
    assert_same(valuator.value(X_NEW.iloc[order], **turned), expected[order])
    np.testing.assert_array_equal(valuator.value(X_NEW.iloc[order]).values.index, order)


def test_tables_of_any_kind_get_the_same_values(valuator):
    expected, arrow = valuator.value(X_NEW), pa.Table.from_pandas(X_NEW)
    for table in (arrow, pl.from_arrow(arrow), pl.from_arrow(arrow).lazy(), Table.from_input(X_NEW)):
        assert_same(valuator.value(table), expected)
    read = Table.of_columns(Table.from_input(X_NEW).columns)
    np.testing.assert_array_equal(
        valuator.models_.probabilities(read, "race"), valuator.models_.probabilities(X_NEW, "race")
    )
    # categories that were not there are missing entries
    assert_same(valuator.value(X_NEW.assign(town="Rome")), valuator.value(X_NEW.assign(town=None)))


def test_sparse_matrices_and_plain_arrays_are_taken_by_position():
    sparse = scipy.sparse.csr_matrix(np.where(RNG.random((300, 6)) < 0.6, 0.0, RNG.normal(size=(300, 6))))
    y = np.asarray(sparse[:, 0].todense())[:, 0] + RNG.normal(size=300) > 0.3
    z = {"z": RNG.integers(0, 2, 300)}
    valuator = OutOfBagEntropy(n_bags=5, random_state=0, keep_models=True)
    valuator.fit(sparse, y, sensitive_features=z)
    assert_same(valuator.value(sparse[:20]), valuator.value(sparse[:20].toarray()))
    with pytest.raises(
        ValueError, match="The table has 4 columns, and the model learnt from 6: give both the same"
    ):
        valuator.value(sparse[:, :4])


def test_agreement_is_that_of_the_labels_that_are_given(valuator):
    sex, y = SEX[::7].astype(object), Y[::7]
    valuation = valuator.value(X_NEW, y, {"sex": sex})
    p = valuator.models_.probabilities(X_NEW, "sex", y)
    assert valuator.models_.classes("sex") == ("f", "m")
    np.testing.assert_allclose(
        valuation.label_probability["sex"], p[np.arange(len(sex)), (sex == "m") * 1], rtol=1e-12
    )
    assert np.isnan(valuation.label_probability["race"]).all()
    sex[0], sex[1] = "x", None
    strange = valuator.value(X_NEW, sensitive_features={"sex": sex}).label_probability["sex"]
    assert strange[0] == 0.0  # a group that no model has learnt
    assert np.isnan(strange[1])
    assert strange[2] > 0.0
    assert np.isnan(valuator.value(X_NEW).label_probability).all(axis=None)


def test_missing_entries_are_a_group_where_the_models_learnt_one():
    sex = np.where(np.arange(N) % 3 == 0, None, SEX)
    with pytest.warns(UserWarning, match="is unknown in 200 of 600 rows"):
        valuator = InBagEntropy(keep_models=True, random_state=0).fit(X, Y, sensitive_features={"sex": sex})
    found = valuator.value(X_NEW, sensitive_features={"sex": [None] * len(X_NEW)}).label_probability["sex"]
    np.testing.assert_allclose(found, valuator.models_.probabilities(X_NEW, "sex")[:, 2], rtol=1e-12)


def test_attributes_without_names_go_by_place_and_labels_of_another_type_are_the_same():
    valuator = InBagEntropy(keep_models=True, random_state=0).fit(X, Y == "yes", sensitive_features=SEX)
    named = valuator.value(X_NEW, Y[::7] == "yes", sensitive_features={"sex": SEX[::7]})
    assert_same(named, valuator.value(X_NEW, (Y[::7] == "yes") * 1, sensitive_features=SEX[::7]))
    assert named.label_probability.notna().all(axis=None)


def test_text_for_an_attribute_of_numbers_is_no_new_group():
    flag = np.where(np.arange(len(X)) % 5 == 0, None, SEX == "m")
    with pytest.warns(UserWarning, match="is unknown in 120 of 600 rows"):
        valuator = InBagEntropy(keep_models=True, random_state=0).fit(X, Y, sensitive_features={"male": flag})
    given = np.where(np.arange(len(X_NEW)) % 2 == 0, None, "True")
    with pytest.raises(ValueError, match="label 'True' of 'male', whose labels are False, True"):
        valuator.value(X_NEW, sensitive_features={"male": given})
    new_group = valuator.value(X_NEW, sensitive_features={"male": np.full(len(X_NEW), 2)})
    assert (new_group.label_probability["male"] == 0).all()


def test_many_classes_and_classes_that_a_bag_lacks():
    y = np.array(["a", "b", "c"])[np.digitize(X["a"], [-0.5, 0.5])]
    y[0] = "rare"
    valuator = OutOfBagEntropy(n_bags=5, random_state=0, keep_models=True)
    with pytest.warns(UserWarning, match="a class with one member"):
        models = valuator.fit(X, y, sensitive_features={"sex": SEX}).models_
    p = models.probabilities(X_NEW, "y")
    assert p.shape == (len(X_NEW), 4)
    np.testing.assert_allclose(p.sum(axis=1), 1.0, rtol=1e-12)
    lacking = [own for own in models.kept[0].models if own.scorer.present == (0, 1, 2)]
    assert len(lacking) == 1  # the bag that left the only such row out
    expected = np.mean(by_hand(valuator, X_NEW)["sex"], axis=0)
    np.testing.assert_allclose(models.probabilities(X_NEW, "sex")[:, 1], expected[:, 1], rtol=1e-12)


def test_several_estimators_of_both_engines_are_all_asked():
    estimators = [LGBMClassifier(n_estimators=5), LogisticRegression(), LGBMRegressor(n_estimators=5)]
    valuator = OutOfBagEntropy(
        estimators, n_bags=5, random_state=0, keep_models=True, n_jobs=1, z_exclude={"age": ["age"]}
    )
    valuator.fit(X[["a", "b", "age"]], Y, sensitive_features={"sex": SEX, "age": X["age"]})
    new, models = X_NEW[["a", "b", "age"]], valuator.models_
    valuation = valuator.value(new)
    assert models.n_models == {"y": 10, "sex": 10, "age": 5}
    assert valuation.counts.iloc[0].tolist() == [10, 10, 5]
    assert [own.bag for own in models.kept[0].models] == [0, 0, 1, 1, 2, 2, 3, 3, 4, 4]
    models_of_sex = by_hand(valuator, new)["sex"]
    expected = np.mean([normalised_entropy(p) for p in models_of_sex], axis=0)
    np.testing.assert_allclose(valuation["sex"], expected, rtol=1e-12)
    assert valuation["age"].min() >= 0.0
    np.testing.assert_array_equal(models.value(new, n_jobs=2)["sex"], valuation["sex"])


def test_the_result_says_what_it_is(valuator, tmp_path):
    valuation = valuator.value(X_NEW.set_axis(range(5, 5 + len(X_NEW))), Y[::7])
    assert valuation.provenance.algorithm == "out-of-bag, new rows"
    assert valuation.metadata["y_given"] is True
    assert valuation.values.index[0] == 5
    assert all(scale.is_unit for scale in valuation.scales.values())
    assert "epistemic" in valuation.summary().columns
    assert "epistemic" not in valuator.valuation_.summary().columns
    for name in ("new.parquet", "new.csv"):
        valuation.save(tmp_path / name)
        assert_same(Valuation.load(tmp_path / name), valuation)


def test_models_hold_no_rows_and_may_be_pickled(valuator):
    content = pickle.dumps(valuator.models_)
    assert_same(pickle.loads(content).value(X_NEW), valuator.value(X_NEW))
    assert all(len(own.variable.labels) == 0 for own in valuator.models_.kept)
    assert (
        repr(valuator.models_) == "ValuationModels(y: 5 models, sex: 5 models, race: 5 models, of 600 rows)"
    )


def test_models_go_when_they_are_no_longer_wanted(valuator):
    own = clone(valuator).fit(X, Y)
    assert own.models_.variables == ["y"]
    own.set_params(keep_models=False).fit(X, Y)
    assert not hasattr(own, "models_")
    with pytest.raises(ValueError, match="has kept no models for new rows: set `keep_models=True`"):
        own.value(X_NEW)
    with pytest.raises(NotFittedError):
        OutOfBagEntropy(keep_models=True).value(X_NEW)


@pytest.mark.parametrize(
    ("given", "match"),
    [
        ({"X": X_NEW.drop(columns="town")}, "no column 'town', which the model learnt from"),
        ({"X": X_NEW.rename(columns={"age": "aage"})}, "no column 'age'.*did you mean 'aage'"),
        ({"X": X_NEW.assign(age="old")}, "'age' holds text, but the model learnt from numbers"),
        ({"X": X_NEW.iloc[:0]}, "has 0 row"),
        (
            {"X": X_NEW[["a", "b", "age"]].to_numpy()},
            "The table has 3 columns, and the model learnt from 4",
        ),
        ({"y": ["perhaps"] * len(X_NEW)}, "label 'perhaps', which the models have not learnt.*'no', 'yes'"),
        ({"y": [1] * len(X_NEW)}, "label 1, which the models have not learnt"),
        ({"y": Y[:3]}, "`y` has 3 entries and X has"),
        ({"y": [None] * len(X_NEW)}, "missing or NaN"),
        ({"sensitive_features": {"sexe": SEX[::7]}}, "no protected attribute 'sexe', .*did you mean 'sex'"),
        ({"sensitive_features": {"sex": SEX[:3]}}, "has 3 entries"),
        (
            {"sensitive_features": {"sex": np.arange(len(X_NEW)) % 2}},
            "label 0 of 'sex', whose labels are 'f', 'm': give it the same type",
        ),
        ({"sensitive_features": "colour"}, "'colour', which is not a column of X"),
    ],
    ids=str,
)
def test_bad_input_ends_in_a_sentence(valuator, given, match):
    with pytest.raises(ValueError, match=match):
        valuator.value(**{"X": X_NEW, **given})


def test_text_for_numbers_is_refused():
    valuator = in_bag(Read(), np.arange(41.0)[:, None], np.roll(np.arange(41.0), 20))
    with pytest.raises(ValueError, match="labels of 'y' hold text, and its models learnt numbers"):
        valuator.value([[1.0]], y=["much"])
    with pytest.raises(ValueError, match="'y' is a number, which has no probabilities"):
        valuator.models_.probabilities([[1.0]], "y")
    with pytest.raises(ValueError, match="learnt no variable 'z'"):
        valuator.models_.classes("z")
