"""Made rows: entries that occur, in company that they keep."""

import numpy as np
import pandas as pd
import pytest

from fado.generation._making import draw_donors, row_keys
from fado.tabular import read_problem

N = 4_000


def table(seed=0, n=N):
    """Make columns that hang together, some after and some before what they follow from."""
    rng = np.random.default_rng(seed)
    b = rng.normal(size=n)
    a = b + 0.3 * rng.normal(size=n)  # before its cause
    level = pd.Categorical(np.where(rng.random(n) < 0.9, np.where(a > 0, "high", "low"), "odd"))
    X = pd.DataFrame({"a": a, "b": b, "level": level, "count": rng.poisson(np.exp(b / 2))})
    X["gap"] = np.where(b > 1, np.nan, b)
    z = rng.choice(["f", "m"], n)
    y = (b + (z == "m") + rng.normal(size=n) > 1).astype(int)
    return X, y, z


def made_rows(X, y, z, parents=None, **settings):
    problem = read_problem(X, y, z)
    parents = np.arange(len(X)) if parents is None else parents
    donors = draw_donors(problem, parents, **{"seed": 0, "n_jobs": 1} | settings)
    return donors, pd.DataFrame({name: X[name].to_numpy()[donors[:, j]] for j, name in enumerate(X)})


@pytest.fixture(scope="module")
def made():
    X, y, z = table()
    return X, y, z, *made_rows(X, y, z)


def test_what_hangs_together_still_does(made):
    X, _, _, _, again = made
    for first, second in (("a", "b"), ("b", "count")):
        real, own = X[first].corr(X[second]), again[first].corr(again[second])
        assert abs(real - own) < 0.05
    known = again["gap"].notna()
    assert again.loc[known, "b"].corr(again.loc[known, "gap"]) > 0.97
    assert (again["b"][~known] > 0.8).mean() > 0.97
    sure = again[again["level"] != "odd"]
    assert ((sure["a"] > 0) == (sure["level"] == "high")).mean() > 0.97


def test_margins_are_kept(made):
    X, _, _, _, again = made
    places = [0.1, 0.5, 0.9]
    for name in ("a", "b", "count"):
        np.testing.assert_allclose(again[name].quantile(places), X[name].quantile(places), atol=0.12)
    shares = again["level"].value_counts(normalize=True) - X["level"].value_counts(normalize=True)
    assert shares.abs().max() < 0.03
    assert abs(again["gap"].isna().mean() - X["gap"].isna().mean()) < 0.03


def test_rows_are_neither_copies_nor_strangers_of_their_parents(made):
    X, y, _, donors, again = made
    assert (y[donors] == y[:, None]).all()
    assert not pd.concat([X, again.drop_duplicates()]).fillna(-9).duplicated().any()
    assert 0.1 < (donors == np.arange(len(X))[:, None]).mean() < 0.6
    assert again["b"].corr(X["b"]) > 0.3


def test_any_number_of_workers_makes_the_same_rows(made):
    X, y, z, donors, _ = made
    np.testing.assert_array_equal(made_rows(X, y, z, n_jobs=3)[0], donors)
    assert (made_rows(X, y, z, seed=1)[0] != donors).any()


def test_columns_that_tell_the_group_are_of_the_group():
    X, y, _ = table(1)
    age = np.random.default_rng(1).integers(18, 90, N)
    X = X.assign(age=age, again=np.where(age >= 50, "old", "young"))
    _, again = made_rows(X, y, age >= 50)
    assert ((again["age"] >= 50).to_numpy() == (age >= 50)).all()
    assert ((again["again"] == "old").to_numpy() == (age >= 50)).all()
    assert (again["age"].to_numpy() != age).mean() > 0.3


def test_constant_empty_and_huge_columns_are_columns_like_others():
    X, y, z = table(2, 300)
    huge = np.where(np.arange(300) % 3 == 0, np.inf, 1e300)
    X = X.assign(one=1, none=np.nan, huge=huge, id=2**60 + np.arange(300))
    donors, again = made_rows(X, y, z)
    assert (again["one"] == 1).all()
    assert again["none"].isna().all()
    assert set(again["huge"]) == {np.inf, 1e300}
    assert again["id"].tolist() == (2**60 + donors[:, X.columns.get_loc("id")]).tolist()


def test_rows_that_many_share_may_be_made_again():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.integers(0, 2, (400, 3)), columns=list("abc"))
    y, z = rng.integers(0, 2, 400), rng.integers(0, 2, 400)
    _, again = made_rows(X, y, z)
    assert set(map(tuple, again.to_numpy())) <= set(map(tuple, X.to_numpy()))


@pytest.mark.parametrize("n_positives", [1, 2, 3, 15])
def test_a_few_rows_are_enough(n_positives):
    X, _, z = table(3, 60)
    y = (np.arange(60) < n_positives).astype(int)
    donors, _ = made_rows(X, y, z, np.zeros(20, dtype=int))
    assert donors.max() < n_positives


def test_rows_without_weight_give_nothing():
    X, y, z = table(4, 400)
    weights = np.arange(400) % 2
    donors = draw_donors(read_problem(X, y, z, sample_weight=weights), np.arange(1, 400, 2), seed=0)
    assert (donors % 2 == 1).all()


def test_equal_rows_have_equal_keys():
    codes = np.random.default_rng(0).integers(-1, 3, (2_000, 5))
    keys = row_keys(codes)
    assert len(np.unique(keys)) == len(np.unique(codes, axis=0))
    assert (row_keys(codes[::-1]) == keys[::-1]).all()
