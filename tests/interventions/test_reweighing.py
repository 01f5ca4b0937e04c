from collections import Counter

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lightgbm import LGBMClassifier, LGBMRegressor
from sklearn import clone

from fado import (
    CobbDouglasUtility,
    DifferenceUtility,
    InBagEntropy,
    LinearUtility,
    Reweigher,
    UtilityAwareReweigher,
    Valuation,
)


def valuation(**values):
    values = {name: np.array(value, dtype=float) for name, value in values.items()}
    return Valuation(values, values, values, values)


def weights(reweigher, y, z, v=None):
    X = np.zeros((len(y), 1))
    return reweigher.fit(X, y, sensitive_features=z, valuation=v).sample_weight_


def uar(utilities, y=None, z=None, **settings):
    """Weigh rows by utilities that are given as they are."""
    reweigher = UtilityAwareReweigher(LinearUtility(alpha=1), **settings)
    y = [0, 1] * (len(utilities) // 2) if y is None else y
    return weights(reweigher, y, z, valuation(y=utilities))


# Reweigher

Y = [1, 0, 0, 0, 1, 1, 1, 0]
Z = ["f"] * 4 + ["m"] * 4
RW = [2, 2 / 3, 2 / 3, 2 / 3, 2 / 3, 2 / 3, 2 / 3, 2]  # 4 * 4 / (8 * 1), 4 * 4 / (8 * 3), and so on


@pytest.mark.parametrize(
    ("y", "z"),
    [
        (Y, Z),
        (["yes" if label else "no" for label in Y], Z),
        ([bool(label) for label in Y], np.array(Z)),
        (pd.Series(Y, index=[1] * 8), pd.Series(Z, index=[5, 5, 4, 4, 3, 3, 2, 2])),
        (pl.Series(Y), pl.DataFrame({"sex": Z})),
        (pa.array(Y), pa.table({"sex": Z})),
    ],
    ids=["lists", "strings", "arrays", "pandas", "polars", "pyarrow"],
)
def test_two_groups(y, z):
    np.testing.assert_allclose(weights(Reweigher(), y, z), RW, rtol=1e-15)


def test_three_groups_and_three_labels():
    y = ["p", "q", "r", "p", "q", "r", "p", "p", "q", "r"]
    z = [0, 0, 0, 1, 1, 1, 2, 2, 2, 2]
    # n = 10; groups 3, 3, 4; labels p 4, q 3, r 3
    expected = [1.2, 0.9, 0.9, 1.2, 0.9, 0.9, 0.8, 0.8, 1.2, 1.2]
    np.testing.assert_allclose(weights(Reweigher(), y, z), expected, rtol=1e-15)


def test_attributes_by_name_and_crossed():
    X = pd.DataFrame({"sex": ["f", "f", "m", "m"] * 2, "old": [True, False] * 4, "day": pd.Timestamp.now()})
    y = [1, 1, 1, 1, 0, 0, 0, 1]
    by_name = Reweigher().fit(X, y, sensitive_features="sex").sample_weight_
    np.testing.assert_allclose(by_name, weights(Reweigher(), y, X["sex"]))
    with pytest.warns(UserWarning, match="No rows with label 0 in group sex='m', old=False"):
        crossed = Reweigher().fit(X, y, sensitive_features=["sex", "old"]).sample_weight_
    np.testing.assert_allclose(crossed, [1.25, 1.25, 1.25, 0.625, 0.75, 0.75, 0.75, 0.625])


def aif360(y, z):
    """Weigh as AIF360's Reweighing does: per group and label, expected over observed number of rows."""
    n = len(y)
    n_group, n_label, n_cell = Counter(z), Counter(y), Counter(zip(z, y, strict=True))
    weight = {cell: n_label[cell[1]] * n_group[cell[0]] / (n * n_cell[cell]) for cell in n_cell}
    return [weight[cell] for cell in zip(z, y, strict=True)]


@pytest.mark.filterwarnings("ignore:No rows with label:UserWarning")
@pytest.mark.parametrize("n_groups", range(2, 7))
def test_weights_equal_aif360s(n_groups):
    for seed in range(20):
        rng = np.random.default_rng(seed)
        z, y = rng.integers(0, n_groups, 50).tolist(), rng.integers(0, 2 + seed % 3, 50).tolist()
        np.testing.assert_allclose(weights(Reweigher(), y, z), aif360(y, z), rtol=1e-12)


def test_a_group_with_one_label_is_named_and_finite():
    with pytest.warns(UserWarning, match="No rows with label 1 in group 'x': no weights can equalise"):
        w = weights(Reweigher(), [1, 0, 0, 0], ["a", "a", "x", "x"])
    np.testing.assert_allclose(w, [0.5, 1.5, 0.75, 0.75])


def test_rows_of_no_known_group_weigh_one():
    with pytest.warns(UserWarning, match="'z' is unknown in 4 of 12 rows"):
        w = weights(Reweigher(), [*Y, 1, 1, 1, 1], [*Z, None, None, None, None])
    np.testing.assert_allclose(w, [*RW, 1, 1, 1, 1])


@pytest.mark.parametrize("z", [None, ["f"] * 8])
def test_one_group_has_the_factor_1(z):
    with pytest.warns(UserWarning, match="only one group .* the factor 1"):
        assert weights(Reweigher(), Y, z).tolist() == [1.0] * 8


def test_a_valuation_is_taken_and_ignored():
    np.testing.assert_allclose(weights(Reweigher(), Y, Z, valuation(y=[0] * 3)), RW)


# The paper's UAR


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, [0, 4 / 7, 16 / 7, 8 / 7]),  # min-max 0, 1/4, 1, 1/2, of mean 7/16
        ({"normalize": False}, [0, 0.25, 1, 0.5]),
        ({"scaling": "none"}, [4 / 11, 8 / 11, 20 / 11, 12 / 11]),
        ({"scaling": "none", "normalize": False}, [0.2, 0.4, 1.0, 0.6]),
        ({"floor": 0.5, "normalize": False}, [0.5, 0.625, 1.0, 0.75]),
        ({"floor": 1.0}, [1.0, 1.0, 1.0, 1.0]),
    ],
    ids=str,
)
def test_weights_are_utilities(settings, expected):
    np.testing.assert_allclose(uar([0.2, 0.4, 1.0, 0.6], **settings), expected, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize(
    ("utility", "scaling", "expected"),
    [
        (LinearUtility(alpha=0.5), "minmax", [0.0, 0.5, 1.0]),  # utilities 0.25, 0.5, 0.75
        (LinearUtility(alpha=0.5), "none", [0.25, 0.5, 0.75]),
        (DifferenceUtility(alpha=0.5), "minmax", [1.0, 0.0, 1.0]),  # 0.25, 0, 0.25
        (DifferenceUtility(alpha=0.5), "none", [0.25, 0.0, 0.25]),
        (CobbDouglasUtility(alpha=0.5), "none", [0.0, 0.5, np.sqrt(0.5)]),
    ],
    ids=str,
)
def test_every_utility(utility, scaling, expected):
    v = valuation(y=[0.5, 0.5, 1.0], z=[0.0, 0.5, 0.5])
    reweigher = UtilityAwareReweigher(utility, scaling=scaling, normalize=False)
    np.testing.assert_allclose(weights(reweigher, [0, 1, 1], ["a", "b", "b"], v), expected)


@pytest.mark.parametrize("scaling", ["minmax", "none"])
@pytest.mark.parametrize("value", [0.0, 0.3, 1e-320, 1e308])
def test_equal_utilities_give_equal_weights(scaling, value):
    assert uar([value] * 4, scaling=scaling).tolist() == [1.0] * 4


def test_negative_utilities():
    utilities = [-0.5, 0.0, 0.5, -0.25]
    np.testing.assert_allclose(uar(utilities, normalize=False), [0.0, 0.5, 1.0, 0.25])
    with pytest.raises(ValueError, match=r'2 of 4 .* negative .*-0.5.*`scaling="minmax"`.*`negative="clip"`'):
        uar(utilities, scaling="none")
    clipped = uar(utilities, scaling="none", negative="clip", normalize=False)
    assert clipped.tolist() == [0.0, 0.0, 0.5, 0.0]
    with pytest.raises(ValueError, match=r'No utility is above 0.*use `scaling="minmax"`'):
        uar([-0.5, -0.25, 0.0, 0.0], scaling="none", negative="clip")


@pytest.mark.parametrize("correction", [0.0, 0.5, 1.0, 3.0])
@pytest.mark.parametrize(
    "utilities",
    [
        [1e308, 1e308, 1e308, 1.0],
        [1e-320, 2e-320, 1e-320, 3e-320],
        [1.0, 1e-320, 1.0, 0.5],
        [1e308, 1e-320, 1e308, 1e308],
        [5e-324, 1.7e308, 1.0, 1e-300],
    ],
    ids=str,
)
@pytest.mark.filterwarnings("ignore:All rows with label:UserWarning")
def test_extreme_utilities_give_finite_weights(utilities, correction):
    z = ["a", "a", "b", "b"]
    for chosen in ({"scaling": "none"}, {"scaling": "minmax"}, {"floor": 0.5}):
        w = uar(utilities, z=z, prevalence_correction=correction, **chosen)
        assert np.isfinite(w).all()
        assert (w >= 0).all()
        np.testing.assert_allclose(w.mean(), 1.0)


def test_extreme_utilities_of_both_signs():
    np.testing.assert_allclose(uar([-1.7e308, 1.7e308, 0.0, 0.0], normalize=False), [0.0, 1.0, 0.5, 0.5])


# The wider family

FAMILY = {"y": [1, 0, 1, 0], "z": ["f", "f", "m", "m"], "floor": 0.5}
BASE = np.array([0.5, 0.625, 1.0, 0.75])  # of the utilities 0.2, 0.4, 1.0, 0.6
# Under these weights: all 2.875; f 1.125, m 1.75; label 1 1.5, label 0 1.375. Every cell is one row.
FACTOR = np.array([1.125 * 1.5, 1.125 * 1.375, 1.75 * 1.5, 1.75 * 1.375]) / (2.875 * BASE)


@pytest.mark.parametrize("correction", [0.0, 0.5, 1.0, 2.0])
def test_the_correction_is_a_power_of_the_factor_under_the_weights(correction):
    w = uar([0.2, 0.4, 1.0, 0.6], **FAMILY, prevalence_correction=correction, normalize=False)
    np.testing.assert_allclose(w, BASE * FACTOR**correction, rtol=1e-12)
    normalised = uar([0.2, 0.4, 1.0, 0.6], **FAMILY, prevalence_correction=correction)
    np.testing.assert_allclose(normalised, w / w.mean(), rtol=1e-12)


def test_cells_without_weight_are_named_and_stay_without():
    with pytest.warns(UserWarning, match="All rows with label 1 in group 'f' have the weight 0.*`floor`"):
        w = uar([0.0, 0.5, 1.0, 0.5], **(FAMILY | {"floor": 0.0}), prevalence_correction=1, normalize=False)
    # weights 0, .5, 1, .5: all 2; f .5, m 1.5; label 1 1, label 0 1
    np.testing.assert_allclose(w, [0.0, 0.25, 0.75, 0.75])


def test_a_correction_without_groups_is_none():
    with pytest.warns(UserWarning, match="only one group"):
        w = uar([0.2, 0.4, 1.0, 0.6], prevalence_correction=1, normalize=False)
    np.testing.assert_allclose(w, [0, 0.25, 1, 0.5], atol=1e-12)


def test_weights_that_overflow_are_refused():
    chosen = {"scaling": "none", "prevalence_correction": 5.0, "z": ["a", "a", "b", "b"]}
    utilities = [1e-100, 1.0, 1.0, 1.0]
    with pytest.raises(ValueError, match="too large or too small for a float: set `normalize=True`"):
        uar(utilities, normalize=False, **chosen)
    assert np.isfinite(uar(utilities, **chosen)).all()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"scaling": "max"}, "`scaling` must be 'minmax' or 'none', got 'max'"),
        ({"negative": "drop"}, "`negative` must be 'raise' or 'clip', got 'drop'"),
        ({"floor": -0.1}, r"`floor` must be in \[0, 1\], got -0.1"),
        ({"floor": 0.5, "scaling": "none"}, '`floor=0.5` needs `scaling="minmax"`'),
        ({"prevalence_correction": -1}, "`prevalence_correction` must be a number of at least 0, got -1"),
        (
            {"prevalence_correction": np.inf},
            "`prevalence_correction` must be a number of at least 0, got inf",
        ),
        ({"prevalence_correction": 1, "y": [0.1, 0.2, 0.3, 0.4]}, "Unknown label type: continuous"),
        ({"y": [0, 1, 0]}, "`y` has 3 entries and X has 4 rows"),
        ({"z": [0, 1, 0]}, "'z' has 3 entries and X has 4 rows"),
        ({"z": np.arange(4) / 7, "prevalence_correction": 1, "y": [0, 1, 0]}, "3 entries and X has 4 rows"),
    ],
)
def test_bad_settings(settings, message):
    y = settings.pop("y", [0, 1, 0, 1])
    reweigher = UtilityAwareReweigher(**{k: v for k, v in settings.items() if k != "z"})
    v = valuation(y=[0, 0, 0, 0], z=[0, 0, 0, 0])
    with pytest.raises(ValueError, match=message):
        reweigher.fit(np.zeros((4, 1)), y, sensitive_features=settings.get("z", [0, 1, 0, 1]), valuation=v)


# Values made on the way

VALUATOR = InBagEntropy(
    [LGBMClassifier(n_estimators=3, verbose=-1), LGBMRegressor(n_estimators=3, verbose=-1)],
    n_jobs=1,
    random_state=0,
)


def make(n=200):
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.normal(size=n), "kind": pd.Categorical(rng.choice(["p", "q"], size=n))})
    sex = pd.Series(rng.choice(["f", "m"], size=n), name="sex")
    return X, (X["a"] + rng.normal(size=n) > 1).astype(int), sex


def test_values_are_made_on_the_way():
    X, y, sex = make()
    reweigher = UtilityAwareReweigher(valuator=VALUATOR).fit(X, y, sensitive_features=sex)
    values = clone(VALUATOR).fit(X, y, sensitive_features=sex).valuation_
    given = UtilityAwareReweigher(LinearUtility(alpha=0.5)).fit(X, y, valuation=values)
    np.testing.assert_array_equal(reweigher.sample_weight_, given.sample_weight_)
    assert given.valuation_ is values
    assert not hasattr(VALUATOR, "valuation_")


def test_without_attributes_performance_alone_counts():
    X, y, _ = make()
    with pytest.warns(UserWarning, match="no protected attributes to value: weights depend on the value"):
        w = UtilityAwareReweigher(valuator=VALUATOR).fit(X, y).sample_weight_
    v_y = clone(VALUATOR).fit(X, y).valuation_["y"]
    scaled = (v_y - v_y.min()) / (v_y.max() - v_y.min())
    np.testing.assert_allclose(w, scaled / scaled.mean())


def test_continuous_targets_and_attributes_need_no_groups():
    X, _, _ = make()
    age = np.random.default_rng(1).uniform(18, 90, size=len(X))
    reweigher = UtilityAwareReweigher(valuator=VALUATOR)
    income = X["a"] ** 2 + age
    w = reweigher.fit(X, income, sensitive_features={"age": age}).sample_weight_
    values = clone(VALUATOR).fit(X, income, sensitive_features={"age": age}).valuation_.values.mean(axis=1)
    scaled = (values - values.min()) / (values.max() - values.min())
    np.testing.assert_allclose(w, scaled / scaled.mean())
    with pytest.raises(ValueError, match="'age' has 200 different numbers, too many for groups"):
        reweigher.set_params(prevalence_correction=1).fit(X, age > 50, sensitive_features={"age": age})


# Properties


SHARES = st.floats(0, 1)


@st.composite
def tables(draw, utilities=SHARES):
    n_groups = draw(st.integers(2, 6))
    cells = [(group, label) for group in range(n_groups) for label in (0, 1)]  # no cell without rows
    cells += draw(st.lists(st.sampled_from(cells), max_size=20))
    cells = draw(st.permutations(cells))
    z, y = (np.array(column) for column in zip(*cells, strict=True))
    values = draw(st.lists(utilities, min_size=len(y), max_size=len(y)))
    return z, y, np.array(values)


def assert_equal_rates(w, y, z):
    rates = [np.average(y[z == group], weights=w[z == group]) for group in set(z)]
    np.testing.assert_allclose(rates, rates[0], rtol=0, atol=1e-9)


@settings(max_examples=50, deadline=None)
@given(tables(), st.floats(0.01, 1), st.booleans())
def test_a_full_correction_makes_weighted_rates_equal(table, floor, normalize):
    z, y, utilities = table
    w = uar(utilities, y, z, floor=floor, prevalence_correction=1, normalize=normalize)
    assert_equal_rates(w, y, z)


@pytest.mark.filterwarnings("ignore:All rows with label:UserWarning")
@settings(max_examples=100, deadline=None)
@given(
    table=tables(st.floats(allow_nan=False, allow_infinity=False)),
    scaling=st.sampled_from(["minmax", "none"]),
    correction=st.sampled_from([0.0, 0.5, 1.0, 2.0]),
)
def test_weights_are_finite_and_not_negative(table, scaling, correction):
    z, y, utilities = table
    if scaling == "none":
        utilities = np.abs(utilities)
    w = uar(utilities, y, z, scaling=scaling, prevalence_correction=correction)
    assert np.isfinite(w).all()
    assert (w >= 0).all()
    np.testing.assert_allclose(w.mean(), 1.0)


@settings(max_examples=25, deadline=None)
@given(tables(), st.randoms(use_true_random=False))
def test_permuted_rows_have_permuted_weights(table, random):
    z, y, utilities = table
    order = np.array(random.sample(range(len(y)), len(y)))
    kwargs = {"floor": 0.1, "prevalence_correction": 0.5}
    w = uar(utilities, y, z, **kwargs)
    np.testing.assert_allclose(uar(utilities[order], y[order], z[order], **kwargs), w[order], rtol=1e-12)
