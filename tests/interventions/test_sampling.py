import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st
from imblearn.pipeline import Pipeline
from lightgbm import LGBMClassifier
from sklearn import clone, config_context
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.preprocessing import StandardScaler
from sklearn.utils import check_random_state

from fado import (
    CobbDouglasUtility,
    DifferenceUtility,
    InBagEntropy,
    LinearUtility,
    RandomPrevalenceSampler,
    UtilityAwarePrevalenceSampler,
    Valuation,
)


def valuation(**values):
    values = {name: np.array(value, dtype=float) for name, value in values.items()}
    return Valuation(values, values, values, values)


def kept(y, z, v_y, **settings):
    settings = {"utility": LinearUtility(alpha=1), "random_state": 0} | settings
    sampler = UtilityAwarePrevalenceSampler(**settings)
    X = np.arange(len(y)).reshape(-1, 1)
    values = valuation(y=v_y, **dict.fromkeys(z if isinstance(z, dict) else ["z"], v_y))
    X2, y2 = sampler.fit_resample(X, y, sensitive_features=z, valuation=values)
    assert X2[:, 0].tolist() == sampler.sample_indices_.tolist()
    assert list(y2) == [y[row] for row in sampler.sample_indices_]
    return sampler.sample_indices_.tolist()


# Group f has a rate of 1/2, group m of 1/5: m keeps 1 * (1/2) / (1/2) = 1 negative.
Y = [1, 0, 1, 0, 0, 0, 0]
Z = ["f", "f", "m", "m", "m", "m", "m"]
V = [0.0, 0.0, 0.0, 0.3, 0.9, 0.1, 0.2]


@pytest.mark.parametrize(
    ("strength", "expected"),
    [
        (1.0, [0, 1, 2, 4]),
        (0.5, [0, 1, 2, 3, 4]),  # to a rate of 0.35: 1 * 0.65 / 0.35 = 1.86, 2 negatives
        (0.25, [0, 1, 2, 3, 4, 6]),  # to 0.275: 2.64, 3 negatives
        (0.0, [0, 1, 2, 3, 4, 5, 6]),
    ],
)
def test_two_groups(strength, expected):
    assert kept(Y, Z, V, strength=strength) == expected


def random(strength=1.0, seed=0):
    """Sample three groups at random."""
    sampler = RandomPrevalenceSampler(strength=strength, random_state=seed)
    sampler.fit_resample(np.zeros((18, 1)), Y3, sensitive_features=Z3)
    return sampler


@pytest.mark.parametrize(
    ("strength", "expected"),
    [
        (1.0, [0, 1, 2, 3, 4, 6, 8, 9, 10, 11]),
        # b to 0.375: 1 * 0.625 / 0.375 = 1.67, 2 negatives; c to 0.35: 2 * 0.65 / 0.35 = 3.71, 4 negatives
        (0.5, [0, 1, 2, 3, 4, 6, 7, 8, 9, 10, 11, 12, 13]),
        (0.0, list(range(18))),
    ],
)
def test_three_groups(strength, expected):
    assert kept(Y3, Z3, V3, strength=strength) == expected
    assert random(strength).sampling_strategy_ == {0: len(expected) - 5, 1: 5}


# Rates: a 2/4, b 1/4, c 2/10. To match 1/2: b keeps 1 negative, c keeps 2.
Y3 = [1, 1, 0, 0, 1, 0, 0, 0, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0]
Z3 = ["a"] * 4 + ["b"] * 4 + ["c"] * 10
V3 = [0, 0, 0, 0, 0, 0.1, 0.3, 0.2, 0, 0, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1]


def test_halves_are_halves_and_go_to_the_even_number():
    # Rates 2/5 and 1/5: to match 2/5 the second keeps 1 * 0.6 / 0.4 = 1.5 negatives, so 2.
    assert kept([1, 1, 0, 0, 0, 1, 0, 0, 0, 0], ["a"] * 5 + ["b"] * 5, range(10)) == [0, 1, 2, 3, 4, 5, 8, 9]


@pytest.mark.parametrize(
    ("utility", "expected"),
    [
        (LinearUtility(alpha=0.5), 4),  # utilities 0.3, 0.6, 0.55, 0.5 of the four negatives
        (DifferenceUtility(alpha=0.5), 3),  # 0.3, -0.3, -0.05, -0.5
        (CobbDouglasUtility(alpha=0.5), 5),  # 0, sqrt(0.27), sqrt(0.3), 0
    ],
    ids=str,
)
def test_every_utility_decides_its_own_way(utility, expected):
    v = valuation(y=[0, 0, 0, 0.6, 0.3, 0.5, 0.0], sex=[0, 0, 0, 0.0, 0.9, 0.6, 1.0])
    sampler = UtilityAwarePrevalenceSampler(utility, random_state=0)
    sampler.fit_resample(np.zeros((7, 1)), Y, sensitive_features=Z, valuation=v)
    assert sampler.sample_indices_.tolist() == [0, 1, 2, expected]


@pytest.mark.parametrize(
    ("y", "pos_label", "expected"),
    [
        (["no", "yes"], None, [0, 1, 2, 4]),
        (["yes", "no"], "no", [0, 1, 2, 4]),
        ([False, True], None, [0, 1, 2, 4]),
        ([1, 2], None, [0, 1, 2, 4]),
        ([2, 1], 1, [0, 1, 2, 4]),
        ([-1.0, 0.5], None, [0, 1, 2, 4]),
        # The positive label the other way round: f keeps its rate of 1/2, m's 4/5 is the highest, and f
        # keeps round(1 * (1/5) / (4/5)) = 0 of its 1 negative.
        (["b", "a"], None, [1, 2, 3, 4, 5, 6]),
    ],
    ids=str,
)
def test_labels_of_any_kind(y, pos_label, expected):
    assert kept([y[label] for label in Y], Z, V, pos_label=pos_label) == expected


def test_ties_fall_by_the_seeded_shuffle():
    flat = [0.5] * 7
    for seed in range(5):
        place = check_random_state(seed).permutation(7)
        last = max([3, 4, 5, 6], key=lambda row: place[row])
        assert kept(Y, Z, flat, random_state=seed) == [0, 1, 2, last]
    assert {tuple(kept(Y, Z, flat, random_state=seed)) for seed in range(20)} == {
        (0, 1, 2, row) for row in (3, 4, 5, 6)
    }


def test_only_ties_are_shuffled():
    assert {tuple(kept(Y, Z, [0, 0, 0, 0.5, 0.9, 0.5, 0.5], random_state=seed)) for seed in range(20)} == {
        (0, 1, 2, 4)
    }


def test_random_sampling_is_sampling_with_equal_utilities():
    for seed in range(5):
        assert random(seed=seed).sample_indices_.tolist() == kept(Y3, Z3, [0.5] * 18, random_state=seed)


def test_a_group_without_positives_is_left_alone():
    with pytest.warns(UserWarning, match="No positives in group 'x': no rate can be matched there"):
        assert kept([*Y, 0, 0], [*Z, "x", "x"], [*V, 0.0, 0.0]) == [0, 1, 2, 4, 7, 8]


def test_a_group_without_negatives_costs_the_others_theirs():
    with pytest.warns(UserWarning, match="No negatives in group 'x': the other groups lose theirs"):
        assert kept([*Y, 1], [*Z, "x"], [*V, 0.0]) == [0, 2, 7]
    with pytest.warns(UserWarning, match="or lower `strength`"):
        # f to a rate of 3/4: 1/3 of a negative; m to 3/5: 2/3 of one
        assert kept([*Y, 1], [*Z, "x"], [*V, 0.0], strength=0.5) == [0, 2, 4, 7]
    assert kept([*Y, 1], [*Z, "x"], [*V, 0.0], strength=0) == list(range(8))


def test_rows_of_no_known_group_are_kept():
    with (
        pytest.warns(UserWarning, match="unknown in 5 of 7 rows"),
        pytest.warns(UserWarning, match="Only group 'f' is left to compare, .*: every row is kept"),
    ):
        assert kept(Y, ["f", "f", None, None, None, None, None], V) == list(range(7))


@pytest.mark.parametrize("z", [None, ["f"] * 7], ids=["none", "constant"])
@pytest.mark.parametrize("sampler", [RandomPrevalenceSampler(), UtilityAwarePrevalenceSampler()])
def test_one_group_keeps_every_row(z, sampler):
    sampler = clone(sampler)
    with pytest.warns(UserWarning, match="only one group .* every row is kept"):
        sampler.fit_resample(np.zeros((7, 1)), Y, sensitive_features=z)
    assert sampler.sample_indices_.tolist() == list(range(7))


INDEX = pd.Index(["r", "r", "s", "s", "s", "r", "t"])
FRAME = pd.DataFrame(
    {"n": np.arange(7), "t": list("abcdefg"), "when": pd.Timestamp("2020-01-01")}, index=INDEX
)
CONTAINERS = {
    "float32": np.arange(14, dtype=np.float32).reshape(7, 2),
    "strings": np.array(list("abcdefg")).reshape(7, 1),
    "objects": np.array([[1, "a", None]] * 7, dtype=object),
    "pandas": FRAME,
    "pandas with categories": FRAME.astype({"t": "category", "n": "Int64"}),
    "pandas with two columns of one name": FRAME.set_axis(["n", "t", "n"], axis=1),
    "arrow-backed pandas": FRAME.convert_dtypes(dtype_backend="pyarrow"),
    "polars": pl.DataFrame({"n": np.arange(7), "t": list("abcdefg")}),
    "pyarrow": pa.table({"n": np.arange(7), "t": pa.array(list("abcdefg")).dictionary_encode()}),
    "csr": scipy.sparse.csr_matrix(np.eye(7)),
    "csc array": scipy.sparse.csc_array(np.eye(7, dtype=np.float32)),
    "coo": scipy.sparse.coo_array(np.eye(7)),
    "list": [[1.0, "a"]] * 7,
}
TARGETS = {
    "list": Y,
    "int8": np.array(Y, dtype=np.int8),
    "pandas": pd.Series(Y, index=INDEX, name="fraud", dtype="Int8"),
    "categories": pd.Series(Y, index=INDEX).map({0: "no", 1: "yes"}).astype("category"),
    "polars": pl.Series("fraud", Y, dtype=pl.Int8),
    "pyarrow": pa.array(Y),
    "chunks": pa.chunked_array([Y[:3], Y[3:]]),
    "column": np.array(Y).reshape(-1, 1),
    "frame": pd.DataFrame({"fraud": Y}, index=INDEX),
}


def rows_of(values):
    if scipy.sparse.issparse(values):
        return values.toarray().tolist()
    if isinstance(values, pl.DataFrame):
        return values.rows()
    if isinstance(values, pa.Table | pa.Array | pa.ChunkedArray):
        return values.to_pylist()
    if isinstance(values, pl.Series):
        return values.to_list()
    return values if isinstance(values, list) else values.tolist()


def check_kept(values, kept, rows):
    """Compare what was kept of a table or column with these of its rows, in type and in content."""
    assert type(kept) is type(values)
    if isinstance(values, pd.DataFrame | pd.Series):
        check = pd.testing.assert_frame_equal if values.ndim == 2 else pd.testing.assert_series_equal
        check(kept, values.iloc[rows])
        return
    for about in ("schema", "dtype", "name"):
        assert getattr(kept, about, None) == getattr(values, about, None)
    assert rows_of(kept) == [rows_of(values)[row] for row in rows]


@pytest.mark.parametrize(
    ("X", "y"),
    [*((X, Y) for X in CONTAINERS.values()), *((np.zeros((7, 1)), y) for y in TARGETS.values())],
    ids=[*CONTAINERS, *TARGETS],
)
def test_features_and_targets_come_back_as_what_they_were(X, y):
    sampler = UtilityAwarePrevalenceSampler(LinearUtility(alpha=1))
    X2, y2 = sampler.fit_resample(X, y, sensitive_features=Z, valuation=valuation(y=V))
    check_kept(X, X2, [0, 1, 2, 4])
    check_kept(y, y2, [0, 1, 2, 4])


def test_rows_are_matched_by_position_whatever_the_index():
    X = pd.DataFrame({"n": range(7)}, index=[3, 3, 3, 0, 0, 6, 5])
    y = pd.Series(Y, index=[6, 5, 4, 3, 2, 1, 0])
    z = pd.Series(Z, index=[0] * 7)
    sampler = UtilityAwarePrevalenceSampler(LinearUtility(alpha=1))
    X2, y2 = sampler.fit_resample(X, y, sensitive_features=z, valuation=valuation(y=V))
    assert X2["n"].tolist() == [0, 1, 2, 4]
    assert X2.index.tolist() == [3, 3, 3, 0]
    assert y2.tolist() == [1, 0, 1, 0]
    assert y2.index.tolist() == [6, 5, 4, 2]


def make(n=300, seed=0):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({"a": rng.normal(size=n), "b": rng.normal(size=n)})
    sex = pd.Series(rng.choice(["f", "m"], size=n), name="sex")
    y = pd.Series((X["a"] + (sex == "m") + rng.normal(size=n) > 1).astype(int))
    return X, y, sex


VALUATOR = InBagEntropy(LGBMClassifier(n_estimators=3, verbose=-1), n_jobs=1)


def test_values_are_made_on_the_way():
    X, y, sex = make()
    sampler = UtilityAwarePrevalenceSampler(valuator=VALUATOR, random_state=3)
    X2, y2 = sampler.fit_resample(X, y, sensitive_features=sex)
    values = clone(VALUATOR).set_params(random_state=3).fit(X, y, sensitive_features=sex).valuation_
    pd.testing.assert_frame_equal(sampler.valuation_.values, values.values, check_exact=True)
    given = UtilityAwarePrevalenceSampler(random_state=3)
    X3, y3 = given.fit_resample(X, y, sensitive_features=sex, valuation=values)
    assert X2.equals(X3)
    assert y2.equals(y3)
    assert given.valuation_ is values
    assert VALUATOR.random_state is None
    assert not hasattr(VALUATOR, "valuation_")


def test_a_valuator_keeps_its_own_seed():
    X, y, sex = make(60)
    seeded = clone(VALUATOR).set_params(random_state=5)
    sampler = UtilityAwarePrevalenceSampler(valuator=seeded, random_state=3)
    sampler.fit_resample(X, y, sensitive_features=sex)
    assert sampler.valuation_.metadata["seed"] == 5


def test_rows_are_not_valued_where_none_is_dropped():
    X, y, sex = make(60)
    sampler = UtilityAwarePrevalenceSampler(strength=0).fit(X, y, sensitive_features=sex)
    assert sampler.valuation_ is None


def test_in_a_pipeline_with_metadata_routing():
    X, y, sex = make()
    values = clone(VALUATOR).fit(X, y, sensitive_features=sex).valuation_
    sampler = UtilityAwarePrevalenceSampler(random_state=0)
    pipeline = Pipeline([("scale", StandardScaler()), ("sample", sampler), ("model", LogisticRegression())])
    with config_context(enable_metadata_routing=True):
        pipeline.fit(X, y, sensitive_features=sex, valuation=values)
    scaled = StandardScaler().fit_transform(X)
    expected = LogisticRegression().fit(
        *clone(sampler).fit_resample(scaled, y, sensitive_features=sex, valuation=values)
    )
    np.testing.assert_array_equal(pipeline["model"].coef_, expected.coef_)
    np.testing.assert_array_equal(pipeline.predict(X), expected.predict(scaled))


def test_a_pipeline_that_passes_no_groups_on_is_warned_of():
    X, y, sex = make(60)
    pipeline = Pipeline([("sample", RandomPrevalenceSampler()), ("model", LogisticRegression())])
    with pytest.warns(UserWarning, match="only one group"):
        pipeline.fit(X, y, sample__sensitive_features=sex)


def test_in_a_search_over_samplers_strengths_and_utilities():
    X, y, sex = make()
    values = clone(VALUATOR).fit(X, y, sensitive_features=sex).valuation_
    pipeline = Pipeline([("sample", RandomPrevalenceSampler()), ("model", LogisticRegression())])
    grid = [
        {"sample": [RandomPrevalenceSampler(random_state=0)], "sample__strength": [0.0, 1.0]},
        {
            "sample": [UtilityAwarePrevalenceSampler(random_state=0)],
            "sample__utility": [LinearUtility(alpha=0.1), CobbDouglasUtility(alpha=0.9)],
        },
    ]
    with config_context(enable_metadata_routing=True):
        search = GridSearchCV(pipeline, grid, cv=2, scoring="roc_auc", error_score="raise")
        search.fit(X, y, sensitive_features=sex, valuation=values)
    assert len(search.cv_results_["params"]) == 4
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()


@pytest.mark.parametrize(
    ("settings", "arguments", "message"),
    [
        ({"strength": 1.5}, {}, r"`strength` must be in \[0, 1\], got 1.5"),
        ({"strength": -0.1}, {}, r"`strength` must be in \[0, 1\], got -0.1"),
        ({"pos_label": 2}, {}, "`pos_label` must be one of the labels 0 and 1, got 2"),
        ({"pos_label": "1"}, {}, "`pos_label` must be one of the labels 0 and 1, got '1'"),
        ({}, {"y": [0, 1, 2, 0, 1, 2, 0]}, r"`y` must hold two labels .* got 3 \(0, 1, 2\): .*`y == label`"),
        ({}, {"y": [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7]}, "Unknown label type: continuous"),
        ({}, {"y": [0] * 7}, r"`y` has only one class \(0\)"),
        ({}, {"y": Y[1:]}, "`y` has 6 entries and X has 7 rows"),
    ],
)
@pytest.mark.parametrize("kind", [RandomPrevalenceSampler, UtilityAwarePrevalenceSampler])
def test_bad_input(kind, settings, arguments, message):
    given = {"X": np.zeros((7, 1)), "y": Y, "sensitive_features": Z} | arguments
    with pytest.raises(ValueError, match=message):
        kind(**settings).fit_resample(**given)


def test_a_utility_may_be_any_function_of_a_valuation():
    assert kept(Y, Z, V, utility=lambda rows: -rows["y"]) == [0, 1, 2, 5]


@st.composite
def tables(draw):
    n_groups = draw(st.integers(2, 4))
    rows = draw(
        st.lists(
            st.tuples(st.integers(0, n_groups - 1), st.booleans(), st.integers(0, 5)), min_size=2, max_size=40
        )
    )
    for group in range(n_groups):  # every group has a positive and a negative
        rows += [(group, True, draw(st.integers(0, 5))), (group, False, draw(st.integers(0, 5)))]
    rows = draw(st.permutations(rows))
    return [np.array(column) for column in zip(*rows, strict=True)]


@pytest.mark.filterwarnings("ignore:The groups. positive rates are equal:UserWarning")
@settings(max_examples=25, deadline=None)
@given(table=tables(), random=st.randoms(use_true_random=False))
def test_permuted_rows_keep_the_same_rows(table, random):
    z, y, _ = table
    utility = np.array(random.sample(range(len(y)), len(y)))  # no ties
    order = np.array(random.sample(range(len(y)), len(y)))
    rows = kept(y.tolist(), z, utility)
    assert sorted(order[kept(y[order].tolist(), z[order], utility[order])]) == rows
