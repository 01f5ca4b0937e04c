"""Distances between the columns of labelled rows and of a pool, by hand and against scipy."""

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import ks_2samp

from fado.exploration._pool import shift_of, shifts_part
from fado.tabular import column_from


def shift(labelled, pool, n_columns=1):
    return shift_of(column_from("x", pd.Series(labelled)), column_from("x", pd.Series(pool)), n_columns)


def test_numbers_are_compared_by_the_widest_gap_of_shares():
    found = shift([1, 1, 2, 3], [2, 3, 3, 5, 5])  # up to 1: 2/4 against 0; up to 2: 3/4 against 1/5
    assert found.distance == pytest.approx(0.55)
    assert (found.where, found.labelled_share, found.pool_share) == ("x ≤ 2", 0.75, pytest.approx(0.2))


def test_levels_are_compared_by_the_rows_that_would_have_to_change():
    found = shift(["a"] * 12 + ["b"] * 4 + ["c"] * 4, ["a"] * 10 + ["b"] * 6 + ["d"] * 4)
    assert found.distance == pytest.approx((0.1 + 0.1 + 0.2 + 0.2) / 2)
    assert found.where == ""  # c, of four rows, is not named
    found = shift(["a"] * 15 + ["b"] * 5, ["a"] * 5 + ["b"] * 15)
    assert (found.distance, found.where, found.labelled_share, found.pool_share) == (0.5, "x = a", 0.75, 0.25)


def test_a_missing_entry_is_a_level():
    for entries, missing in (([1.0, 2.0, 3.0], np.nan), (["a", "b", "c"], None)):
        found = shift(entries * 10, [missing] * 5 + entries * 5)
        assert found.distance == pytest.approx(0.25)
        assert (found.labelled_share, found.pool_share) == (0.0, pytest.approx(0.25))
        assert found.where == "x is missing"


def test_booleans_are_levels():
    found = shift([True] * 30 + [False] * 10, [True] * 10 + [False] * 30)
    assert (found.distance, found.where, found.labelled_share) == (0.5, "x = False", 0.25)
    missing = shift([True] * 20, pd.array([True] * 10 + [None] * 10, dtype="boolean"))
    assert (missing.distance, missing.where) == (0.5, "x = True")


def test_what_chance_alone_gives_by_hand():
    numbers = shift(np.arange(50), np.arange(50), n_columns=5)
    assert numbers.chance == pytest.approx(math.sqrt(0.04 * math.log(2 / 0.01) / 2))
    levels = shift(["a", "b"] * 25, ["a", "b"] * 25, n_columns=5)
    expected = 2 * math.sqrt(0.25 * 0.04) / 2
    assert levels.chance == pytest.approx(expected + math.sqrt(0.04 * math.log(1 / 0.01) / 2))


@pytest.mark.parametrize("entries", [[np.nan], [None], [3.0]])
def test_a_column_of_one_entry_does_not_differ(entries):
    found = shift(entries * 20, entries * 7)
    assert (found.distance, found.where, found.is_clear) == (0.0, "", False)


def test_a_column_whose_every_entry_is_another_is_not_told_from_chance():
    ids = [f"id {row}" for row in range(400)]
    found = shift(ids[:300], ids[300:])
    assert found.distance == pytest.approx(1.0)
    assert not found.is_clear


numbers = st.lists(
    st.one_of(st.integers(-3, 3).map(float), st.floats(-1e6, 1e6), st.just(np.nan)), min_size=1, max_size=40
)


@settings(deadline=None, max_examples=100)
@given(numbers, numbers)
@pytest.mark.filterwarnings("ignore::RuntimeWarning:scipy")  # of the p-value for very few rows
def test_scipy_gives_the_same_distance(labelled, pool):
    found = shift(np.array(labelled), np.array(pool))
    above = [np.where(np.isnan(own), 1e9, own) for own in (labelled, pool)]  # missing: above all numbers
    assert found.distance == pytest.approx(ks_2samp(*above, method="asymp").statistic, abs=1e-12)
    assert shift(np.array(pool), np.array(labelled)).distance == pytest.approx(found.distance, abs=1e-12)
    if found.where:
        assert abs(found.labelled_share - found.pool_share) == pytest.approx(found.distance, abs=1e-12)


@settings(deadline=None, max_examples=100)
@given(
    st.lists(st.sampled_from(["a", "b", "c", None]), max_size=40).map(lambda own: [*own, "b"]),
    st.lists(st.sampled_from(["b", "c", "d", None]), max_size=40).map(lambda own: [*own, "b"]),
)
def test_the_total_variation_is_half_the_sum_of_gaps(labelled, pool):
    gaps = [labelled.count(one) / len(labelled) - pool.count(one) / len(pool) for one in [*"abcd", None]]
    found = shift(np.array(labelled, dtype=object), np.array(pool, dtype=object))
    assert found.distance == pytest.approx(sum(map(abs, gaps)) / 2)


def test_rows_dealt_at_random_seldom_differ():
    rng = np.random.default_rng(0)
    n_trials, alarms = 200, 0
    for _ in range(n_trials):
        n_rows, n_pool = rng.integers(30, 300, 2)
        columns = [
            [column_from("x", rng.normal(size=n)) for n in (n_rows, n_pool)],
            [column_from("x", rng.poisson(1, n)) for n in (n_rows, n_pool)],
            [column_from("x", rng.choice(list("abcdef"), n)) for n in (n_rows, n_pool)],
            [column_from("x", rng.integers(0, 100, n).astype(str)) for n in (n_rows, n_pool)],
        ]
        alarms += shifts_part(*zip(*columns, strict=True))["clear"] > 0
    assert alarms <= 0.05 * n_trials + 3 * math.sqrt(0.05 * 0.95 * n_trials)


def test_columns_stand_in_the_order_of_what_chance_leaves_unexplained():
    rng = np.random.default_rng(0)
    labelled = {"near": rng.normal(size=2000), "ids": np.arange(2000).astype(str), "far": np.zeros(2000)}
    pool = {"near": 0.3 + rng.normal(size=500), "ids": np.arange(500).astype(str), "far": np.ones(500)}
    own, other = ([column_from(name, given[name]) for name in given] for given in (labelled, pool))
    part = shifts_part(own, other)
    assert [column["column"] for column in part["columns"]] == ["far", "near", "ids"]
    assert [column["is_clear"] for column in part["columns"]] == [True, True, False]
    assert (part["compared"], part["clear"]) == (3, 2)
    assert part["sentence"] == (
        "2 of 3 columns are distributed otherwise than among the labelled rows, beyond chance; most of all "
        "“far”: “far ≤ 0” holds for 0 % of the pool and 100 % of the labelled rows."
    )


def test_sentences_for_nothing_to_tell():
    same = [column_from("x", [1.0, 2.0])]
    assert shifts_part(same, same)["sentence"].startswith("No column is distributed otherwise")
    assert shifts_part([], [])["sentence"] == "The features came as a matrix without columns to name."
