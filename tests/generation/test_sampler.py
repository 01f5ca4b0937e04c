"""`UtilityAwareOverSampler`: rates, rows, attributes, and what it says."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse
from imblearn.pipeline import make_pipeline
from lightgbm import LGBMClassifier
from sklearn import clone, config_context
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score
from sklearn.preprocessing import StandardScaler

from fado import InBagEntropy, LinearUtility, OutOfBagEntropy, UtilityAwareOverSampler, Valuation
from fado.tabular import read_problem

N = 600


def make(n=N, seed=0):
    rng = np.random.default_rng(seed)
    sex = pd.Series(rng.choice(["f", "m"], n), name="sex")
    X = pd.DataFrame(
        {
            "a": rng.normal(size=n),
            "count": rng.integers(0, 9, n),
            "level": pd.Categorical(rng.choice(["x", "y"], n), categories=["y", "unused", "x"]),
        }
    )
    X["b"] = X["a"] + rng.normal(size=n) / 3
    X.loc[::7, "b"] = np.nan
    y = pd.Series((X["a"] + (sex == "m") + rng.normal(size=n) > 1).astype(int), name="default")
    return X, y, sex


X, Y, SEX = make()
VALUATION = Valuation.from_probabilities(np.random.default_rng(1).random(N), {"sex": np.full(N, 0.3)})


def sampled(X=X, y=Y, z=SEX, valuation=VALUATION, weights=None, **settings):
    sampler = UtilityAwareOverSampler(**{"random_state": 0, "n_jobs": 1} | settings)
    X2, y2 = sampler.fit_resample(X, y, sensitive_features=z, valuation=valuation, sample_weight=weights)
    return sampler, X2, y2


@pytest.mark.parametrize("method", ["trees", "repeat"])
def test_rates_match_and_the_given_rows_come_first(method):
    sampler, X2, y2 = sampled(method=method)
    n_made = int(sampler.synthetic_.sum())
    assert sampler.synthetic_.tolist() == [False] * N + [True] * n_made
    pd.testing.assert_frame_equal(X2[:N], X)
    pd.testing.assert_series_equal(y2[:N], Y)
    pd.testing.assert_series_equal(sampler.sensitive_features_[:N], SEX)
    assert X2.dtypes.equals(X.dtypes)
    assert X2.index.equals(pd.RangeIndex(N + n_made))
    assert (y2[N:] == 1).all()
    assert (sampler.sensitive_features_[N:] == "f").all()
    rates = y2.groupby(sampler.sensitive_features_).mean()
    assert abs(rates["f"] - rates["m"]) < 0.5 / (SEX == "f").sum()
    assert sampler.target_rate_ == Y[SEX == "m"].mean()
    assert sampler.sampling_strategy_ == y2.value_counts().to_dict()
    cell = (Y[sampler.parents_] == 1) & (SEX[sampler.parents_] == "f")
    assert cell.all()


def test_repeated_rows_are_the_parents_and_made_ones_new_and_of_entries_that_occur():
    repeated, X2, _ = sampled(method="repeat")
    pd.testing.assert_frame_equal(
        X2[N:].reset_index(drop=True), X.iloc[repeated.parents_].reset_index(drop=True)
    )
    sampler, X2, _ = sampled()
    np.testing.assert_array_equal(sampler.parents_, repeated.parents_)
    table = X2.astype({"level": str}).fillna(-9.0)
    assert not set(map(tuple, table[N:].to_numpy())) & set(map(tuple, table[:N].to_numpy()))
    for name in X:
        assert set(X2[name][N:].dropna()) <= set(X[name][Y == 1].dropna())
    assert X2["b"][N:].isna().any()


@pytest.mark.parametrize("strength", [0.0, 0.5, 1.0])
def test_strength_closes_a_share_of_the_gap(strength):
    sampler, _, y2 = sampled(strength=strength, method="repeat")
    before, after = Y.groupby(SEX).mean(), y2.groupby(sampler.sensitive_features_).mean()
    closed = (after["f"] - before["f"]) / (before["m"] - before["f"])
    assert abs(closed - strength) < 0.02


def test_useful_rows_have_more_children():
    useful = np.where(np.arange(N) % 2, 0.5, 0.99)  # sure rows have low entropies
    valuation = Valuation.from_probabilities(useful, {"sex": useful})
    sampler, *_ = sampled(valuation=valuation, sampling_strategy={1: 4_000}, method="repeat")
    assert abs((sampler.parents_ % 2).mean() - 1 / 1.3) < 0.06
    even, *_ = sampled(utility=lambda own: np.ones(len(own)), sampling_strategy={1: 4_000}, method="repeat")
    assert abs((even.parents_ % 2).mean() - (np.flatnonzero(Y == 1) % 2).mean()) < 0.05


def test_any_seed_and_number_of_workers():
    first = sampled(random_state=3)[1]
    pd.testing.assert_frame_equal(sampled(random_state=3, n_jobs=3)[1], first)
    pd.testing.assert_frame_equal(sampled(random_state=np.random.RandomState(3))[1][:N], X)
    assert not sampled(random_state=4)[1].equals(first)
    sampler = UtilityAwareOverSampler(random_state=3)
    again = [sampler.fit_resample(X, Y, sensitive_features=SEX, valuation=VALUATION)[0] for _ in range(2)]
    pd.testing.assert_frame_equal(*again)


TABLES = {
    "numpy": X[["a", "count", "b"]].to_numpy(),
    "float32": X[["a", "count"]].to_numpy(np.float32),
    "polars": pl.from_pandas(X.astype({"level": str})),
    "pyarrow": pa.Table.from_pandas(X, preserve_index=False),
    "lists": X[["a", "count"]].to_numpy().tolist(),
    "text": X[["level"]].astype(str).to_numpy(),
}
TARGETS = {
    "list": Y.tolist(),
    "text": Y.map({0: "no", 1: "yes"}),
    "polars": pl.Series("y", Y.tolist(), dtype=pl.Int8),
    "pyarrow": pa.chunked_array([Y.to_numpy()]),
    "booleans": Y.to_numpy() == 1,
}


@pytest.mark.parametrize("name", TABLES)
def test_tables_of_any_kind(name):
    table = TABLES[name]
    sampler, made, y2 = sampled(table, z=SEX.to_numpy())
    assert type(made) is type(table)
    n_rows = made.num_rows if isinstance(made, pa.Table) else len(made)
    assert n_rows == len(y2) == len(sampler.sensitive_features_) == len(sampler.synthetic_) > N
    assert getattr(made, "dtype", None) == getattr(table, "dtype", None)
    assert getattr(made, "schema", None) == getattr(table, "schema", None)


@pytest.mark.parametrize("name", TARGETS)
def test_targets_of_any_kind(name):
    _, _, y2 = sampled(y=TARGETS[name], method="repeat")
    assert type(y2) is type(TARGETS[name])
    assert getattr(y2, "dtype", None) == getattr(TARGETS[name], "dtype", None)


def test_sparse_matrices_are_repeated():
    matrix = scipy.sparse.csr_array(np.nan_to_num(X[["a", "count"]].to_numpy()))
    sampler, made, _ = sampled(matrix, method="repeat")
    assert (made[N:] != matrix[sampler.parents_]).nnz == 0
    fitted = UtilityAwareOverSampler(random_state=0)
    with pytest.raises(ValueError, match='`method="trees"` needs a dense table'):
        fitted.fit_resample(matrix, Y, sensitive_features=SEX, valuation=VALUATION)
    assert not hasattr(fitted, "synthetic_")


@pytest.mark.parametrize("names", ["sex", ["sex"], ["sex", "old"]], ids=str)
def test_attributes_by_name_are_columns_of_made_rows(names):
    old = np.random.default_rng(0).random(N) < 0.4
    table = X.assign(sex=SEX, old=old)
    sampler, made, y2 = sampled(table, z=names, valuation=None, valuator=VALUATOR)
    pd.testing.assert_frame_equal(pd.DataFrame(sampler.sensitive_features_), made[np.atleast_1d(names)])
    assert (made["sex"][N:].to_numpy() == SEX[sampler.parents_]).all()
    rates = y2.groupby([made[name] for name in np.atleast_1d(names)]).mean()
    assert rates.max() - rates.min() < 0.01


def test_a_banded_number_stays_in_its_band():
    age = pd.Series(np.random.default_rng(0).integers(18, 90, N), name="age")
    y = (np.random.default_rng(1).random(N) < np.where(age >= 50, 0.1, 0.4)).astype(int)
    valuation = Valuation.from_probabilities(np.full(N, 0.4), {"old": np.full(N, 0.4)})
    sampler, made, y2 = sampled(X.assign(age=age), y, (age >= 50).rename("old"), valuation)
    assert (made["age"] >= 50).equals(sampler.sensitive_features_.rename("age"))
    rates = pd.Series(y2).groupby(sampler.sensitive_features_).mean()
    assert rates.max() - rates.min() < 0.01


VALUATOR = InBagEntropy(LGBMClassifier(n_estimators=3, verbose=-1), n_jobs=1)


def even(valuation):
    return np.ones(len(valuation))


def test_more_than_two_labels():
    y = pd.Series(np.select([X["a"] > 1, X["a"] > 0], ["high", "middle"], "low"))
    z = SEX.where(y != "high", np.where(np.arange(N) % 5 == 0, "f", "m"))
    sampler, _, y2 = sampled(y=y, z=z, valuation=None, utility=even, valuator=VALUATOR)
    shares = pd.crosstab(sampler.sensitive_features_, y2, normalize="index")
    expected = y.value_counts(normalize=True)[shares.columns]
    np.testing.assert_allclose(shares, np.tile(expected, (2, 1)), atol=0.005)
    assert np.isnan(sampler.target_rate_)
    one, _, y3 = sampled(y=y, z=z, valuation=None, utility=even, valuator=VALUATOR, pos_label="high")
    assert (y3[one.synthetic_] == "high").all()
    rates = (y3 == "high").groupby(one.sensitive_features_).mean()
    assert rates.max() - rates.min() < 0.01


def test_counts_may_be_asked_for():
    sampler, _, y2 = sampled(sampling_strategy={(0, "m"): 500, 1: 300})
    assert sampler.sampling_strategy_ == {0: 500 + int(((Y == 0) & (SEX == "f")).sum()), 1: 300}
    assert y2.value_counts().to_dict() == sampler.sampling_strategy_
    values = Valuation.from_probabilities(np.full(N, 0.4))
    alone, _, y2 = sampled(z=None, sampling_strategy={1: 400}, valuation=values)
    assert (y2 == 1).sum() == 400
    assert alone.sensitive_features_ is None


@pytest.mark.parametrize("method", ["repeat", "trees"])
def test_weights_count_and_their_scale_changes_no_row(method):
    weights = np.random.default_rng(0).integers(1, 5, N)
    sampler, X2, y2 = sampled(weights=weights, method=method)
    z, made = sampler.sensitive_features_, sampler.sample_weight_
    np.testing.assert_array_equal(made[:N], weights)
    rates = [np.average(y2[z == sex], weights=made[z == sex]) for sex in ("f", "m")]
    assert abs(rates[0] - rates[1]) < 0.005
    assert sampled()[0].sample_weight_ is None

    other, X3, y3 = sampled(weights=weights * 2.0**-40, method=method)
    pd.testing.assert_frame_equal(X2, X3)
    np.testing.assert_array_equal(y2, y3)
    np.testing.assert_array_equal(made, other.sample_weight_ * 2.0**40)


def test_values_are_made_on_the_way_if_rows_are():
    sampler, made, _ = sampled(valuation=None, valuator=VALUATOR, random_state=3)
    values = clone(VALUATOR).set_params(random_state=3).fit(X, Y, sensitive_features=SEX).valuation_
    pd.testing.assert_frame_equal(sampler.valuation_.values, values.values)
    pd.testing.assert_frame_equal(sampled(valuation=values, random_state=3)[1], made)
    assert sampled(valuation=None, strength=0.0)[0].valuation_ is None
    assert UtilityAwareOverSampler(None, VALUATOR).valuator is VALUATOR


def test_the_default_valuator_has_the_sampler_s_workers_and_bar(monkeypatch):
    settings = []
    real = OutOfBagEntropy.fit_problem

    def watched(self, problem, validation=None):
        settings.append((self.n_jobs, self.progress))
        return real(self, problem, validation)

    monkeypatch.setattr(OutOfBagEntropy, "fit_problem", watched)
    UtilityAwareOverSampler(random_state=0, n_jobs=1, progress=True).fit(X, Y, sensitive_features=SEX)
    assert settings == [(1, True)]


def test_fitting_chooses_parents_and_makes_no_rows():
    sampler = UtilityAwareOverSampler(random_state=0).fit(X, Y, sensitive_features=SEX, valuation=VALUATION)
    np.testing.assert_array_equal(sampler.parents_, sampled()[0].parents_)
    np.testing.assert_array_equal(sampler.training_set_.parents, sampler.parents_)
    problem = read_problem(X, Y, SEX)
    chosen = sampler.training_set(problem.labels, problem.groups, np.ones(N))
    assert len(chosen.parents) == len(sampler.parents_)


def test_in_a_pipeline_with_metadata_routing():
    table, params = X[["a", "count"]], {"sensitive_features": SEX, "valuation": VALUATION}
    sampler = UtilityAwareOverSampler(random_state=0, n_jobs=1)
    pipeline = make_pipeline(StandardScaler(), sampler, LogisticRegression())
    with config_context(enable_metadata_routing=True):
        pipeline.fit(table, Y, **params)
        scores = cross_val_score(pipeline, table, Y, cv=2, params=params, error_score="raise")
    assert np.isfinite(scores).all()
    expected = LogisticRegression().fit(*sampled(StandardScaler().fit_transform(table))[1:])
    np.testing.assert_array_equal(pipeline[-1].coef_, expected.coef_)


@pytest.mark.parametrize(
    ("y", "z", "message"),
    [
        (Y, None, "only one group .* no row is made"),
        (Y, ["f"] * N, "only one group .* no row is made"),
        (
            np.tile([1, 0, 0, 0], N // 4),
            np.repeat(["f", "m"], N // 2),
            r"^The groups' positive rates are equal, or too close .*: no row is made",
        ),
    ],
)
def test_a_sampler_that_makes_no_row_says_so(y, z, message):
    with pytest.warns(UserWarning, match=message):
        sampler, made, y2 = sampled(y=y, z=z, valuation=None)
    assert not sampler.synthetic_.any()
    pd.testing.assert_frame_equal(made, X)
    assert len(y2) == N


def test_groups_that_lack_a_label():
    z, y = SEX.copy(), Y.copy()
    z[:40], y[:40] = "none", 0
    z[40:80], y[40:80] = "all", 1
    with warnings.catch_warnings(record=True, action="always") as caught:
        sampler, _, y2 = sampled(y=y, z=z)
    said = [str(warning.message) for warning in caught]
    assert said[0].startswith("No negatives in group 'all': no number of rows matches a rate of 1")
    assert said[1].startswith("There are no rows with label 1 in group 'none' to make others from")
    assert set(sampler.sensitive_features_[sampler.synthetic_]) <= {"f", "m"}
    rates = y2.groupby(sampler.sensitive_features_).mean()
    assert abs(rates["f"] - rates["m"]) < 0.01


def test_small_groups_are_left_alone():
    rng = np.random.default_rng(0)
    z = np.repeat(["a", "b", "c"], [2_000, 980, 20])
    y = np.r_[rng.random(2_000) < 0.3, rng.random(980) < 0.5, np.arange(20) < 18].astype(int)
    table = pd.DataFrame({"n": rng.normal(size=3_000)})
    values = Valuation.from_probabilities(rng.random(3_000), {"z": rng.random(3_000)})
    with pytest.warns(UserWarning, match=r"Group 'c' \(20 rows\).* no rows are made there"):
        sampler, *_ = sampled(table, y, z, values)
    assert set(sampler.sensitive_features_[sampler.synthetic_]) == {"a"}
    assert sampler.target_rate_ == y[z == "b"].mean()
    with pytest.warns(UserWarning, match="rows are made from 3,000 to match the highest rate"):
        all_of_them, *_ = sampled(table, y, z, values, min_group_size=0)
    assert all_of_them.target_rate_ == 0.9


def test_rows_of_no_known_group_are_not_made_and_set_no_rate():
    z = SEX.mask(np.arange(N) % 3 == 0)
    with pytest.warns(UserWarning, match="unknown in 200 of 600 rows"):
        sampler, _, y2 = sampled(z=z)
    assert sampler.sensitive_features_[sampler.synthetic_].notna().all()
    rates = y2.groupby(sampler.sensitive_features_).mean()
    assert rates["f"] == pytest.approx(rates["m"], abs=0.01)


@pytest.mark.parametrize(
    ("settings", "arguments", "message"),
    [
        ({"strength": 1.5}, {}, r"`strength` must be in \[0, 1\], got 1.5"),
        ({"method": "smote"}, {}, "`method` must be 'trees' or 'repeat', got 'smote'"),
        ({"sampling_strategy": "auto"}, {}, "`sampling_strategy` must be a dict of labels"),
        ({"sampling_strategy": {1: 10**12}}, {}, r"`sampling_strategy\[1\]` must be at most 1,000,000,000"),
        ({"min_group_size": -1}, {}, "`min_group_size` must be at least 0"),
        ({"pos_label": 7}, {}, "`pos_label` must be one of the labels 0 and 1, got 7"),
        ({"n_jobs": 0}, {}, "`n_jobs` must not be 0"),
        ({}, {"y": [0] * N}, r"`y` has only one class \(0\)"),
        ({}, {"y": np.linspace(0, 1, N)}, "`y` is continuous"),
        ({}, {"X": X[:0], "y": []}, r"`X` has 0 row"),
        ({}, {"z": "sax"}, "names 'sax', which is not a column of X"),
        ({}, {"z": np.linspace(0, 1, N)}, "600 different numbers, too many for groups"),
        ({}, {"valuation": VALUATION[:10]}, "`valuation` has 10 rows and X has 600"),
        (
            {},
            {"X": X.assign(when=pd.Timestamp("2020-01-01"))},
            "Column 'when' holds dates or times .* leave it",
        ),
    ],
    ids=str,
)
def test_bad_input(settings, arguments, message):
    with pytest.raises((ValueError, TypeError), match=message):
        sampled(**{"X": X, "y": Y, "z": SEX, "valuation": VALUATION} | arguments | settings)


@pytest.mark.parametrize("method", ["trees", "repeat"])
def test_more_rows_than_memory_has_room_for_are_refused_before_anything_is_valued(method, monkeypatch):
    monkeypatch.setattr("fado._memory.free_memory", lambda: 10**9)
    asked = {"sampling_strategy": {1: 10**7 + int((Y == 1).sum())}, "valuator": "not asked", "method": method}
    # 32 bytes and 24 for each of four columns
    with pytest.raises(ValueError, match=r"^To make 10,000,000 rows of 4 columns would take .* 1\.3 GB"):
        sampled(valuation=None, **asked)
    asked["sampling_strategy"] = {1: 10**8 + int((Y == 1).sum())}
    with pytest.raises(ValueError, match=r"^To make 100,000,000 rows would take at least 3\.2 GB of memory"):
        sampled(valuation=None, **asked)


def test_utilities_of_any_kind():
    sampler, *_ = sampled(utility=LinearUtility(alpha=1.0))
    other, *_ = sampled(utility=LinearUtility(alpha=0.0))
    assert (sampler.parents_ != other.parents_).any()
