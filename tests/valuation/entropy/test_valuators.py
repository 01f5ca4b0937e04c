"""Closed forms, reproducibility and the same answer from every library."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse
from lightgbm import LGBMClassifier, LGBMRegressor
from sklearn import config_context
from sklearn.base import clone
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from tests.valuation.same import assert_same

import fado
from fado import InBagEntropy, OutOfBagEntropy
from fado.execution import ThreadExecutor

N = 1000
RNG = np.random.default_rng(0)


@pytest.fixture(scope="module")
def table():
    frame = pd.DataFrame(
        {
            "income": RNG.lognormal(size=N),
            "age": RNG.integers(18, 90, N),
            "job": RNG.choice(["a", "b", "c", None], N),
            "member": RNG.random(N) < 0.5,
        }
    )
    frame.loc[::7, "income"] = np.nan
    y = np.where(frame["age"] + RNG.normal(scale=20, size=N) > 50, "yes", "no")
    z = RNG.choice(["x", "y"], N)
    return frame, y, z


def test_out_of_bag_values_by_hand():
    """A model that only knows the share of positives among the rows it saw."""
    y = np.array([0, 0, 0, 1, 1] * 4)
    valuator = OutOfBagEntropy(DummyClassifier(strategy="prior"), n_bags=5, random_state=0, n_jobs=1)
    valuation = valuator.fit(np.zeros((20, 1)), y).valuation_
    for bag in valuator.bags_:
        seen = np.delete(y, bag)
        p = seen.mean()
        expected = -(p * np.log2(p) + (1 - p) * np.log2(1 - p))
        np.testing.assert_allclose(valuation["y"][bag], expected, rtol=0, atol=1e-12)
        np.testing.assert_allclose(
            valuation.label_probability["y"][bag], np.where(y[bag] == 1, p, 1 - p), atol=1e-12
        )


def test_the_value_is_the_mean_of_entropies_not_the_entropy_of_the_mean():
    sure = [DummyClassifier(strategy="constant", constant=label) for label in (0, 1)]
    valuator = OutOfBagEntropy(sure, n_bags=5, random_state=0, n_jobs=1)
    valuation = valuator.fit(np.zeros((20, 1)), [0, 1] * 10).valuation_
    assert (valuation["y"] == 0).all()
    np.testing.assert_allclose(valuation.label_probability["y"], 0.5)


def test_multi_class_in_bag_values_by_hand():
    y = np.array(["a"] * 8 + ["b"] * 4 + ["c"] * 2 + ["d"] * 2)
    valuation = InBagEntropy(DummyClassifier(strategy="prior")).fit(np.zeros((16, 1)), y).valuation_
    np.testing.assert_allclose(valuation["y"], 1.75 / 2, rtol=0, atol=1e-12)


@pytest.mark.filterwarnings("ignore:.*repeat the target:UserWarning")
def test_continuous_in_bag_values_by_hand():
    x = np.arange(41.0)
    valuation = InBagEntropy(LinearRegression()).fit(x[:, None], 3 * x + 1).valuation_
    np.testing.assert_allclose(valuation["y"], 1 - np.abs(x - 20) / 20, rtol=0, atol=1e-12)
    np.testing.assert_array_less(0.999, valuation.label_probability["y"].max())


@pytest.mark.filterwarnings("ignore:.*repeat the target:UserWarning")
def test_continuous_out_of_bag_values_use_the_mean_of_the_rows_seen():
    x = np.arange(50.0)
    valuator = OutOfBagEntropy(LinearRegression(), n_bags=5, random_state=0, n_jobs=1).fit(x[:, None], x)
    distance = np.empty(50)
    for bag in valuator.bags_:
        distance[bag] = np.abs(x[bag] - np.delete(x, bag).mean())
    np.testing.assert_allclose(valuator.valuation_["y"], 1 - distance / distance.max(), rtol=0, atol=1e-12)


def test_continuous_agreement_by_hand():
    y = np.arange(30.0)
    model = DummyRegressor(strategy="constant", constant=0.0)
    valuation = InBagEntropy(model).fit(np.zeros((30, 1)), y).valuation_
    np.testing.assert_allclose(valuation.label_probability["y"], 1 - y / 29, atol=1e-12)
    np.testing.assert_allclose(valuation["y"], 0.0, atol=1e-12)
    # a model that learns nothing of a number values every row highest
    valuation = InBagEntropy(DummyRegressor()).fit(np.zeros((50, 1)), RNG.normal(size=50)).valuation_
    np.testing.assert_array_equal(valuation["y"], 1.0)


def test_a_coin_toss_is_worth_much():
    X = RNG.normal(size=(4000, 4))
    coin = RNG.integers(0, 2, 4000)
    estimator = LGBMClassifier(n_estimators=20, num_leaves=4, learning_rate=0.05)
    valuation = (
        OutOfBagEntropy(estimator, random_state=0).fit(X, X[:, 0] > 0, sensitive_features=coin).valuation_
    )
    assert valuation["z"].min() > 0.95
    assert valuation["z"].mean() > 0.99


def test_a_rule_is_worth_nothing_in_bag():
    X = RNG.normal(size=(N, 3))
    valuation = InBagEntropy(random_state=0).fit(X, (X[:, 0] > 0) & (X[:, 1] > 0)).valuation_
    assert valuation["y"].max() < 0.1


def test_a_hidden_copy_of_z_is_found_left_out_and_named():
    X = pd.DataFrame(RNG.normal(size=(N, 3)), columns=["a", "b", "c"])
    z = RNG.integers(0, 2, N)
    X["copy"] = np.where(z == 1, 3.5, -2.0)
    valuator = OutOfBagEntropy(random_state=0)
    with pytest.warns(UserWarning, match="'copy' of X alone determine the protected attribute 'z'"):
        valuator.fit(X, X["a"] > 0, sensitive_features=z)
    assert valuator.excluded_columns_ == {"z": ["copy"]}
    assert valuator.valuation_["z"].mean() > 0.7


@pytest.mark.parametrize(
    ("z_exclude", "of_coin"),
    [(["age"], ["age"]), ({"old": ["age"]}, []), ({"old": "age", "coin": None}, [])],
)
def test_columns_named_by_hand_are_left_out_without_a_warning(z_exclude, of_coin):
    X = pd.DataFrame({"age": RNG.integers(18, 90, N), "x": RNG.normal(size=N)})
    z = {"old": X["age"] >= 50, "coin": RNG.integers(0, 2, N)}
    valuator = OutOfBagEntropy(random_state=0, z_exclude=z_exclude).fit(X, X["x"] > 0, sensitive_features=z)
    assert valuator.excluded_columns_ == {"old": ["age"], "coin": of_coin}


def test_the_target_among_the_features_is_named():
    X = pd.DataFrame({"x": RNG.normal(size=N)})
    y = RNG.integers(0, 2, N)
    with pytest.warns(UserWarning, match="'outcome' of X repeat the target"):
        OutOfBagEntropy(random_state=0).fit(X.assign(outcome=y), y)


def test_all_kinds_side_by_side(table):
    frame, _, _ = table
    z = {"binary": RNG.integers(0, 2, N), "three": RNG.choice(list("abc"), N), "number": RNG.normal(size=N)}
    y = frame["age"] + RNG.normal(size=N)
    valuation = (
        OutOfBagEntropy(random_state=0).fit(frame.drop(columns="age"), y, sensitive_features=z).valuation_
    )
    kinds = {name: about["kind"] for name, about in valuation.metadata["variables"].items()}
    assert kinds == {"y": "continuous", "binary": "classes", "three": "classes", "number": "continuous"}
    values = valuation.values.to_numpy()
    assert ((values >= 0) & (values <= 1)).all()
    assert (valuation.counts.to_numpy() == 2).all()
    assert (valuation.standard_error.to_numpy() >= 0).all()
    agreement = valuation.label_probability.to_numpy()
    assert ((agreement >= 0) & (agreement <= 1)).all()


def test_missing_numbers_of_z_are_valued_by_prediction():
    X = RNG.normal(size=(N, 2))
    z = X[:, 0] + RNG.normal(scale=0.1, size=N)
    z[::5] = np.nan
    with pytest.warns(UserWarning, match="is unknown in 200 of 1000 rows"):
        valuation = OutOfBagEntropy(random_state=0).fit(X, X[:, 1] > 0, sensitive_features=z).valuation_
    assert np.isfinite(valuation["z"]).all()
    assert valuation.label_probability["z"].isna().sum() == 200


@pytest.mark.parametrize("estimators", [None, LogisticRegression()], ids=["lightgbm", "generic"])
def test_any_number_of_workers_gives_identical_values(estimators):
    X, z = RNG.normal(size=(300, 4)), RNG.integers(0, 3, 300)
    y = X[:, 0] + RNG.normal(size=300) > 0
    one, *others = (
        OutOfBagEntropy(estimators, random_state=1, n_jobs=n_jobs).fit(X, y, sensitive_features=z).valuation_
        for n_jobs in (1, 2, 4)
    )
    for other in others:
        assert_same(one, other)


def test_the_order_in_which_fits_finish_changes_nothing(monkeypatch, table):
    frame, y, z = table
    expected = OutOfBagEntropy(random_state=0, n_jobs=1).fit(frame, y, sensitive_features=z).valuation_.values

    class Backwards(ThreadExecutor):
        def run(self, function, tasks, shared=None):
            tasks = list(tasks)
            run_one = super().run
            done = {id(task): next(run_one(function, [task], shared)) for task in reversed(tasks)}
            return (done[id(task)] for task in tasks)

    monkeypatch.setattr("fado.valuation.entropy._fits.ThreadExecutor", Backwards)
    shuffled = OutOfBagEntropy(random_state=0, n_jobs=2).fit(frame, y, sensitive_features=z).valuation_.values
    pd.testing.assert_frame_equal(shuffled, expected, check_exact=True)


def test_the_seed_is_reported_and_gives_the_values_again(table):
    frame, y, z = table
    before = frame.copy()
    first = OutOfBagEntropy(n_bags=5).fit(frame, y, sensitive_features=z)
    again, other = (
        OutOfBagEntropy(n_bags=5, random_state=seed).fit(frame, y, sensitive_features=z).valuation_
        for seed in (first.seed_, first.seed_ + 1)
    )
    assert_same(first.valuation_, again)
    assert not first.valuation_.values.equals(other.values)
    pd.testing.assert_frame_equal(frame, before)  # the input is left as it was


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("library", ["polars", "pyarrow", "arrow-backed pandas", "shuffled index"])
@pytest.mark.parametrize("estimator", [None, LogisticRegression()], ids=["lightgbm", "generic"])
def test_every_library_gives_identical_values(table, library, estimator):
    frame, y, z = table
    frame = frame.fillna({"income": 1.0})
    arrow = pa.Table.from_pandas(frame)
    other, other_y, other_z = {
        "polars": (pl.from_arrow(arrow), pl.Series(y), pl.Series("z", z)),
        "pyarrow": (arrow, pa.array(y), pa.array(z)),
        "arrow-backed pandas": (arrow.to_pandas(types_mapper=pd.ArrowDtype), pd.Series(y), pd.Series(z)),
        "shuffled index": (frame.set_index(RNG.integers(0, 5, N)), y, z),
    }[library]
    valuator = OutOfBagEntropy(estimator, n_bags=5, random_state=0, n_jobs=1)
    expected = clone(valuator).fit(frame, y, sensitive_features=z).valuation_.values
    got = clone(valuator).fit(other, other_y, sensitive_features=other_z).valuation_.values
    assert list(got.index) == list(other.index if hasattr(other, "iloc") else range(N))
    pd.testing.assert_frame_equal(got.reset_index(drop=True), expected, check_exact=True)


def test_numpy_gives_the_values_of_pandas():
    X = RNG.normal(size=(N, 3))
    forms = X, np.asfortranarray(X), pd.DataFrame(X, columns=["p", "q", "r"])
    expected, *others = (
        OutOfBagEntropy(n_bags=5, random_state=0).fit(own, X[:, 0] > 0).valuation_ for own in forms
    )
    for other in others:
        assert_same(other, expected)


@pytest.mark.parametrize("kind", [OutOfBagEntropy, InBagEntropy])
def test_sparse_rows_have_the_values_of_the_same_rows_dense(kind):
    rng = np.random.default_rng(0)
    X = rng.poisson(0.3, size=(2 * N, 12)).astype(float)
    X[:, 10:] = rng.normal(size=(2 * N, 2))
    y = X[:, 0] - X[:, 1] + X[:, 10] + rng.normal(size=2 * N) > 0
    z = X[:, 2] + X[:, 11] + rng.normal(size=2 * N) > 0
    X[:, 5] = z * 3.0  # tells it alone
    with pytest.warns(UserWarning, match="'x5' of X alone determine"):
        expected = kind(random_state=0).fit(X, y, sensitive_features={"z": z}).valuation_
    sparse = scipy.sparse.csr_matrix(X)
    for form in (sparse, scipy.sparse.csc_array(X), pd.DataFrame.sparse.from_spmatrix(sparse)):
        with pytest.warns(UserWarning, match="'(x5|5)' of X alone determine"):
            got = kind(random_state=0).fit(form, y, sensitive_features={"z": z}).valuation_
        pd.testing.assert_frame_equal(got.values, expected.values, check_exact=True)
        assert got.metadata.get("trees") == expected.metadata.get("trees")
        assert got.metadata["split_gains"]["shares"] == expected.metadata["split_gains"]["shares"]


def test_neither_places_nor_names_of_columns_change_a_bit():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(N, 6)).round(1), columns=list("pqrstu"))  # rounded: splits tie
    frame["kind"] = rng.choice(["red", "green", "blue"], size=N)
    y, z = frame["p"] + rng.normal(size=N) > 0, frame["q"] * frame["r"] + rng.normal(size=N)
    expected = OutOfBagEntropy(n_bags=5, random_state=0).fit(frame, y, sensitive_features=z).valuation_
    turned = frame[frame.columns[::-1]].rename(columns={"p": "zz", "u": "a"})
    got = OutOfBagEntropy(n_bags=5, random_state=0).fit(turned, y, sensitive_features=z).valuation_
    pd.testing.assert_frame_equal(got.values, expected.values, check_exact=True)
    gains, turned_gains = (valuation.metadata["split_gains"]["shares"]["y"] for valuation in (expected, got))
    np.testing.assert_allclose(turned_gains[:-1], gains[-2::-1])  # the last is the target's


def test_constant_missing_and_duplicated_columns_are_harmless():
    X = pd.DataFrame({"a": RNG.normal(size=N)})
    more = X.assign(constant=1.0, missing=np.nan, text="same", again=X["a"])
    y = X["a"] + RNG.normal(size=N) > 0
    plain, valuation = (OutOfBagEntropy(n_bags=5, random_state=0).fit(own, y).valuation_ for own in (X, more))
    np.testing.assert_allclose(valuation["y"], plain["y"], atol=1e-9)


def test_infinite_features_are_allowed():
    X = RNG.normal(size=(N, 2))
    X[::9, 0] = np.inf
    X[::11, 0] = -np.inf
    valuation = OutOfBagEntropy(n_bags=5, random_state=0).fit(X, X[:, 1] > 0).valuation_
    assert np.isfinite(valuation["y"]).all()


def test_flipped_labels_show_in_the_agreement_not_in_the_value():
    X = RNG.normal(size=(4000, 4))
    y = (X[:, 0] + X[:, 1] > 0).astype(int)
    flipped = RNG.random(4000) < 0.1
    valuation = OutOfBagEntropy(random_state=0).fit(X, np.where(flipped, 1 - y, y)).valuation_
    assert valuation.label_probability["y"][flipped].mean() < 0.3
    assert valuation.label_probability["y"][~flipped].mean() > 0.8


def test_metadata_routing_carries_sensitive_features(table):
    frame, y, z = table
    with config_context(enable_metadata_routing=True):
        valuator = OutOfBagEntropy(random_state=0, n_bags=5).set_fit_request(sensitive_features=True)
        pipeline = make_pipeline(StandardScaler(), valuator)
        pipeline.fit(frame[["income", "age"]], y, sensitive_features=z)
    assert pipeline[-1].valuation_.variables == ["y", "z"]


def test_public_names_are_listed_and_unknown_ones_refused():
    assert set(fado.__all__) <= set(dir(fado))
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        _ = fado.Nothing


@pytest.mark.parametrize("regressor", [LGBMRegressor(n_estimators=5, verbosity=-1), LinearRegression()])
def test_in_bag_rows_of_unknown_number_are_valued_by_their_predictions(regressor):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    age = np.where(np.arange(200) % 7 == 0, np.nan, 40 + 10 * X[:, 0])
    valuator = InBagEntropy([LogisticRegression(), regressor], random_state=0, n_jobs=1)
    with pytest.warns(UserWarning, match="age"):
        valuation = valuator.fit(X, X[:, 1] > 0, sensitive_features={"age": age}).valuation_
    assert ((valuation["age"] >= 0) & (valuation["age"] <= 1)).all()


def test_an_attribute_of_the_only_column_is_learnt_from_the_target_alone():
    rng = np.random.default_rng(0)
    age = rng.integers(20, 80, 300)
    y = rng.random(300) < 1 / (1 + np.exp((age - 50) / 5))
    valuator = OutOfBagEntropy(LogisticRegression(), z_exclude=["age"], n_bags=5, random_state=0, n_jobs=1)
    frame = pd.DataFrame({"age": age})
    valuation = valuator.fit(frame, y, sensitive_features={"old": age >= 50}).valuation_
    assert valuation["old"].max() < 0.95


def test_estimators_left_unseeded_draw_by_the_valuators_seed():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 5))
    y = X[:, 0] + rng.normal(size=400) > 0
    drawing = LGBMClassifier(n_estimators=10, subsample=0.5, subsample_freq=1, verbosity=-1)

    def values(*estimators, seed):
        return InBagEntropy(list(estimators), random_state=seed, n_jobs=1).fit(X, y).valuation_

    assert not np.array_equal(values(drawing, seed=0)["y"], values(drawing, seed=1)["y"])
    assert values(drawing, clone(drawing), seed=0).standard_error["y"].max() > 0
    seeded = clone(drawing).set_params(random_state=3)
    np.testing.assert_array_equal(values(seeded, seed=0)["y"], values(seeded, seed=1)["y"])
