"""Batches without near-copies: distances, the trade, and how it scales."""

import tracemalloc

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from tests.active.test_query import Told

from fado.active import UtilityQuery
from fado.active._query import Coordinates
from fado.tabular import Table


def least_distance(X, rows):
    points = Coordinates(Table.from_input(X)).of(np.asarray(rows))
    return min(np.delete(points.distances_from(j), j).min() for j in range(len(rows)))


def test_distances_by_hand():
    frame = pd.DataFrame(
        {
            "size": [0.0, 5.0, 10.0, np.nan, np.nan],
            "colour": ["red", "red", "blue", None, None],
            "flag": [True, False, True, True, True],
            "same": [3, 3, 3, 3, 3],
        }
    )
    coordinates = Coordinates(Table.from_input(frame))
    # sizes in parts of what lies between the 1 % and 99 % quantiles, 0.1 to 9.9, or on these
    near = (5.0 - 0.1) / 9.8
    expected = [0.0, (near + 1) / 4, 2 / 4, 2 / 4, 2 / 4]
    assert coordinates.of(np.arange(5)).distances_from(0) == pytest.approx(expected, abs=1e-6)
    assert coordinates.of(np.arange(5)).distances_from(3)[4] == 0  # missing is as missing


def test_an_outlier_or_infinity_does_not_shrink_the_others():
    numbers = np.append(np.linspace(0, 1, 998), [1e9, np.inf])[:, None]
    distances = Coordinates(Table.from_input(numbers)).of(np.arange(1000)).distances_from(0)
    assert distances[499] == pytest.approx(0.5, abs=0.02)
    assert distances[999] == 1


def test_copies_are_left_out_however_many_there_are():
    rng = np.random.default_rng(0)
    originals = rng.normal(size=(40, 3))
    X = np.repeat(originals, 50, axis=0)
    utilities = np.repeat(np.linspace(1, 0.1, 40), 50)
    plain = UtilityQuery(Told(utilities)).query(X, n=20)
    assert len(np.unique(X[plain], axis=0)) == 1
    diverse = UtilityQuery(Told(utilities), diversity=0.01).query(X, n=20)
    assert len(np.unique(X[diverse], axis=0)) == 20
    assert diverse[0] == 0
    everything = UtilityQuery(Told(utilities), diversity=0.5).query(X, n=60)
    assert len(np.unique(X[everything[:40]], axis=0)) == 40  # copies only when nothing else is left
    assert len(set(everything.tolist())) == 60


@pytest.mark.parametrize("diversity", [0.001, 0.1, 1.0])
def test_no_two_rows_are_closer_than_a_hundredth_while_there_are_others(diversity):
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(3000, 2))
    utilities = 1 - np.hypot(X[:, 0] - 0.5, X[:, 1] - 0.5)  # the best rows are one crowd
    assert least_distance(X, UtilityQuery(Told(utilities)).query(X, n=50)) < 0.01
    rows = UtilityQuery(Told(utilities), diversity=diversity).query(X, n=50)
    assert least_distance(X, rows) >= 0.01


def test_more_diversity_is_less_utility_and_more_distance():
    rng = np.random.default_rng(1)
    X = rng.uniform(size=(2000, 2))
    utilities = 1 - np.abs(X[:, 0] - 0.5)
    means, distances = [], []
    for diversity in (0.0, 0.3, 1.0):
        rows = UtilityQuery(Told(utilities), diversity=diversity).query(X, n=30)
        means.append(utilities[rows].mean())
        distances.append(least_distance(X, rows))
    assert means[0] > means[1] > means[2]
    assert distances[0] < distances[1] < distances[2]


@pytest.mark.parametrize(
    ("diversity", "rows"),
    [(0.5, [0, 2]), (0.1, [0, 1]), (1.0, [0, 2, 3])],  # 0.283 < 0.447; 0.65 > 0.235
)
def test_the_first_rows_by_hand(diversity, rows):
    X = np.array([[0.0], [0.1], [1.0], [0.5]])
    # utilities on [0, 1]: 1, 0.8, 0.2, 0; distances from row 0: 0.1, 1, 0.5
    query = UtilityQuery(Told([1.0, 0.9, 0.6, 0.5]), diversity=diversity)
    assert query.query(X, n=len(rows)).tolist() == rows


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6), st.floats(0.01, 1.0), st.integers(1, 40))
def test_quotas_are_kept_exactly(seed, diversity, n):
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.normal(size=200), rng.integers(0, 3, 200)])
    sex = np.where(rng.random(200) < 0.5, "f", "m")
    query = UtilityQuery(Told(rng.random(200)), group_shares={"f": 0.25}, diversity=diversity)
    rows = query.query(X, n, sensitive_features={"sex": sex})
    assert len(set(rows.tolist())) == n
    assert (sex[rows] == "f").sum() == round(n / 4 - 1e-9)


def test_quotas_go_before_near_copies():
    X = np.concatenate([np.zeros((10, 1)), np.arange(1, 31)[:, None]])  # ten women, all alike
    query = UtilityQuery(Told(np.linspace(1, 0, 40)), group_shares={"f": 5}, diversity=0.5)
    rows = query.query(X, 8, sensitive_features={"sex": np.repeat(["f", "m"], [10, 30])})
    assert query.group_counts_ == {"f": 5, "m": 3}
    assert len(set(rows.tolist())) == 8


def test_a_sparse_pool_is_refused():
    X = sparse.csr_matrix(np.eye(4))
    assert UtilityQuery(Told([0.1, 0.2, 0.3, 0.4])).query(X, n=1).tolist() == [3]
    with pytest.raises(ValueError, match="`diversity` compares rows column by column"):
        UtilityQuery(Told([0.1, 0.2, 0.3, 0.4]), diversity=0.5).query(X, n=1)


def test_no_matrix_of_batch_and_pool_is_made():
    rng = np.random.default_rng(0)
    n_rows, n = 200_000, 1_000  # a matrix of both would take 1.6 GB
    X, utilities = rng.normal(size=(n_rows, 2)), rng.random(n_rows)
    tracemalloc.start()
    UtilityQuery(Told(utilities), diversity=0.2).query(X, n=n)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1e8
