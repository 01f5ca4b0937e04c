"""Rows of the smallest hashes, and small strata, over blocks of any size and order."""

from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fado.tabular import SmallestRows, StrataCounter, row_hash

N = 500
TABLE = pa.table(
    {
        "x": np.arange(N) / 7,
        "text": pa.array([None if i % 11 == 0 else f"t{i % 13}" for i in range(N)], pa.large_string()),
        "flag": [i % 3 == 0 for i in range(N)],
    }
)


def fed(n_rows, blocks, seed=0):
    sample = SmallestRows(n_rows, TABLE.schema)
    for rows in blocks:
        sample.add(row_hash(seed, rows), rows, TABLE.take(pa.array(rows)))
    return sample


def cut(sizes):
    edges = np.minimum(np.cumsum([0, *sizes, N]), N)
    return [np.arange(start, stop) for start, stop in pairwise(edges)]


@settings(deadline=None)
@given(
    n_rows=st.integers(0, 600),
    sizes=st.lists(st.integers(0, 200), max_size=12),
    order=st.randoms(use_true_random=False),
)
def test_the_same_rows_for_blocks_of_any_size_in_any_order(n_rows, sizes, order):
    blocks = cut(sizes)
    order.shuffle(blocks)
    rows, kept = fed(n_rows, blocks).finish()
    expected = np.sort(np.argsort(row_hash(0, np.arange(N)))[:n_rows])
    np.testing.assert_array_equal(rows, expected)
    assert kept.equals(TABLE.take(pa.array(expected)))


def test_samples_are_nested():
    blocks = cut([100, 100, 100, 100])
    small, large = (set(fed(n, blocks).finish()[0].tolist()) for n in (50, 120))
    assert small < large


def test_finishing_is_no_end():
    sample = fed(40, cut([100, 100])[:2])
    early = sample.finish()[0]
    assert (early < 200).all()
    np.testing.assert_array_equal(early, sample.finish()[0])
    for rows in cut([100, 100])[2:]:
        sample.add(row_hash(0, rows), rows, TABLE.take(pa.array(rows)))
    np.testing.assert_array_equal(sample.finish()[0], fed(40, [np.arange(N)]).finish()[0])


def test_little_more_than_the_sample_is_held():
    sample = SmallestRows(1000, pa.schema({"row": pa.int64()}))
    most = 0
    for start in range(0, 100_000, 700):
        rows = np.arange(start, start + 700)
        sample.add(row_hash(0, rows), rows, pa.table({"row": rows}))
        most = max(most, sum(len(array) for array in sample._columns[0]))
    assert most <= 1250
    rows, kept = sample.finish()
    assert kept["row"].to_pylist() == rows.tolist()


def test_kept_rows_hold_no_block_alive():
    block = pa.table({"row": np.arange(100_000)})
    before = pa.total_allocated_bytes()
    sample = SmallestRows(10, block.schema)
    sample.add(row_hash(0, np.arange(100_000)), np.arange(100_000), block)
    assert pa.total_allocated_bytes() - before < 10_000


@settings(deadline=None)
@given(
    sizes=st.lists(st.integers(1, 30), min_size=1, max_size=6),
    small=st.integers(1, 25),
    n_blocks=st.integers(1, 9),
    seed=st.integers(0, 1000),
)
def test_counts_and_rows_of_small_strata(sizes, small, n_blocks, seed):
    rng = np.random.default_rng(seed)
    strata = rng.permutation(np.repeat(np.arange(len(sizes)), sizes))
    counter = StrataCounter(small)
    for rows in np.array_split(rng.permutation(len(strata)), n_blocks):
        counter.add(strata[rows], rows)
    assert counter.counts.tolist() == sizes
    rows, found = counter.small_rows()
    expected = np.flatnonzero(np.array(sizes)[strata] < small)
    np.testing.assert_array_equal(rows, expected)
    np.testing.assert_array_equal(found, strata[expected])


def test_rows_of_strata_that_grow_are_let_go(monkeypatch):
    monkeypatch.setattr("fado.tabular._streams._PENDING", 500)
    counter = StrataCounter(small=100)
    rng = np.random.default_rng(0)
    strata = rng.integers(0, 50, 20_000)
    strata[[5, 19_000]] = 50
    for rows in np.array_split(np.arange(20_000), 400):
        counter.add(strata[rows], rows)
        assert sum(len(rows) for rows, _ in counter._held) <= 50 * 100 + 500 + 50
    assert [each.tolist() for each in counter.small_rows()] == [[5, 19_000], [50, 50]]


@pytest.mark.parametrize("given", [[], [[]]])
def test_no_rows_have_no_strata(given):
    counter = StrataCounter()
    for rows in given:
        counter.add(np.array(rows, dtype=int), np.array(rows, dtype=int))
    assert counter.counts.tolist() == []
    assert [each.tolist() for each in counter.small_rows()] == [[], []]
