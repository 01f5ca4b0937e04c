"""Tables that are seen block by block: draws, samples, strata, levels, shelves."""

import pickle
from contextlib import suppress
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chi2

from fado.tabular import (
    LevelsCollector,
    SmallestRows,
    Table,
    column_from,
    deal_rows,
    on_shelf,
    open_source,
    row_hash,
)

MASK = 2**64 - 1
ROWS = np.arange(200_000)


def mixed(number):
    """One step of splitmix64, in whole numbers."""
    number = (number + 0x9E3779B97F4A7C15) & MASK
    number = ((number ^ (number >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    number = ((number ^ (number >> 27)) * 0x94D049BB133111EB) & MASK
    return number ^ (number >> 31)


def evenly(counts):
    """Whether counts pass for equal ones; a fair draw fails once in a million."""
    expected = counts.sum() / counts.size
    return ((counts - expected) ** 2 / expected).sum() < chi2.isf(1e-6, counts.size - 1)


def shares_of(rows, n_shares=5, seed=0):
    """Deal rows by what their hashes leave over, as those outside a sample are dealt to bags."""
    return (row_hash(seed, rows) % np.uint64(n_shares)).astype(np.int64)


@pytest.mark.parametrize("seed", [0, 7, 2**64 - 1])
def test_hashes_by_hand_and_of_any_type_of_row_number(seed):
    assert mixed(0) == 0xE220A8397B1DCDAF  # the first numbers of the published generator from seed 0
    assert mixed(0x9E3779B97F4A7C15) == 0x6E789E6AA1B965F4
    rows = np.array([0, 1, 12_345, 99_999_999, 2**40])
    sample = mixed(mixed(seed) ^ 0)
    assert row_hash(seed, rows).tolist() == [mixed(sample ^ int(row)) for row in rows]
    for kind in (np.int32, np.uint64, np.uint8):
        np.testing.assert_array_equal(row_hash(1, rows[:2]), row_hash(1, rows[:2].astype(kind)))


@pytest.mark.parametrize("n_shares", [2, 3, 5, 7])
@pytest.mark.parametrize("seed", [0, 1, 2**63])
def test_hashes_deal_equal_shares(seed, n_shares):
    assert evenly(np.bincount(shares_of(ROWS, n_shares, seed), minlength=n_shares))
    sample = np.argsort(row_hash(seed, ROWS))[:50_000]  # which tells nothing of the shares
    assert evenly(np.bincount(shares_of(sample, n_shares, seed)))


@pytest.mark.parametrize("other", [{"seed": 1}, {"seed": 2**32}, {"step": 1}, {"step": 64}, {"step": 1000}])
def test_neither_other_seeds_nor_neighbours_tell_anything(other):
    shares, step = shares_of(ROWS), other.get("step", 0)
    pairs = shares[: len(shares) - step] * 5 + shares_of(ROWS, seed=other.get("seed", 0))[step:]
    assert evenly(np.bincount(pairs, minlength=25))
    assert len(np.unique(row_hash(3, ROWS))) == len(ROWS)


def deal(cells, shares, seed=0, blocks=None):
    return deal_rows(np.asarray(cells), shares, np.random.default_rng(seed), blocks)


@given(
    sizes=st.lists(st.integers(1, 60), min_size=1, max_size=5),
    shares=st.lists(st.integers(1, 9), min_size=2, max_size=4),
    seed=st.integers(0, 2**32 - 1),
)
def test_every_part_gets_its_share_of_every_cell(sizes, shares, seed):
    cells = np.repeat(np.arange(len(sizes)), sizes)
    shares = np.array(shares) / sum(shares)
    dealt = deal(cells, shares, seed)
    for cell, size in enumerate(sizes):
        counts = np.bincount(dealt[cells == cell], minlength=len(shares))
        assert counts.sum() == size
        assert (np.abs(counts - shares * size) < 1).all()


def test_a_seed_deals_alike_and_another_otherwise():
    cells = np.arange(200) % 3
    first = deal(cells, [0.5, 0.5])
    np.testing.assert_array_equal(first, deal(cells, [0.5, 0.5]))
    assert (first != deal(cells, [0.5, 0.5], seed=1)).any()


def test_a_share_of_nothing_gets_nothing():
    dealt = deal(np.repeat([0, 1], 50), [0.8, 0.0, 0.2])
    assert np.bincount(dealt).tolist() == [80, 0, 20]
    assert np.bincount(deal(np.zeros(7, dtype=int), [0.5, 0.5, 0.0]), minlength=3)[2] == 0


@given(blocks=st.lists(st.integers(0, 30), min_size=2, max_size=120), seed=st.integers(0, 1000))
def test_blocks_stay_together(blocks, seed):
    numbers = np.unique(blocks, return_inverse=True)[1]
    dealt = deal(np.arange(len(blocks)) % 4, [0.6, 0.2, 0.2], seed, numbers)
    assert len(set(zip(blocks, dealt.tolist(), strict=True))) == len(set(blocks))
    # By hand: the rare row's block is dealt apart from the other, whole, wherever it falls.
    blocks, cells = np.array([0, 0, 0, 1, 1, 1]), np.array([0, 0, 1, 0, 0, 0])
    parts = {tuple(deal(cells, [0.5, 0.5], seed, blocks)) for seed in range(40)}
    assert parts == {(a, a, a, b, b, b) for a in (0, 1) for b in (0, 1)}
    # ten blocks of two rows, one row of each in a rare cell: halves hold five of them each
    cells, blocks = np.array([0] * 30 + [0, 1] * 10), np.r_[0:30, np.repeat(np.arange(30, 40), 2)]
    assert np.bincount(deal(cells, [0.5, 0.5], 0, blocks)[cells == 1]).tolist() == [5, 5]
    # and blocks of one row are as good as none
    np.testing.assert_array_equal(deal(cells, [0.5, 0.5]), deal(cells, [0.5, 0.5], 0, np.arange(50)))


N = 500
TABLE = pa.table(
    {
        "x": np.arange(N) / 7,
        "text": pa.array([None if i % 11 == 0 else f"t{i % 13}" for i in range(N)], pa.large_string()),
        "flag": [i % 3 == 0 for i in range(N)],
    }
)


def fed(n_rows, blocks, seed=0):
    sample = SmallestRows(n_rows, seed, TABLE.schema)
    for rows in blocks:
        sample.add(rows, TABLE.take(pa.array(rows)))
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


def test_little_more_than_the_sample_is_held_and_no_block():
    sample = SmallestRows(1000, 0, pa.schema({"row": pa.int64()}))
    before, most = pa.total_allocated_bytes(), 0
    for start in range(0, 100_000, 700):
        rows = np.arange(start, start + 700)
        sample.add(rows, pa.table({"row": rows}))
        most = max(most, sum(len(array) for array in sample._columns[0]))
    assert most <= 1250
    assert pa.total_allocated_bytes() - before < 30_000
    rows, kept = sample.finish()
    assert kept["row"].to_pylist() == rows.tolist()


TEXTS = ["b", "ä", "a", "", None, "B", "z" * 40, "10", "2"]
TEXT = pa.large_string()


def scan_levels(source, most_rows):
    collector = LevelsCollector(source.schema)
    for part in source.parts(most_rows):
        for block in source.blocks(part, None, most_rows):
            collector.add(block)
    return collector.levels()


def test_levels_are_those_of_the_whole_column(tmp_path):
    whole = pa.table({"t": TEXTS * 3, "c": pa.array(TEXTS * 3).dictionary_encode(), "x": range(27)})
    for place in range(3):
        pq.write_table(whole.slice(9 * place, 9), tmp_path / f"{place}.parquet", row_group_size=4)
    expected = {name: column_from(name, whole[name]).levels for name in ("t", "c")}
    for most_rows in (1, 5, 100):
        assert scan_levels(open_source(tmp_path), most_rows) == expected


@pytest.mark.parametrize("pending", [0, 50, 1 << 16])
def test_too_many_levels_are_refused_and_no_fewer_and_texts_that_repeat_are_not_held(pending, monkeypatch):
    monkeypatch.setattr("fado.tabular._streams._PENDING", pending)

    def collected(n):
        collector = LevelsCollector(pa.schema({"id": TEXT}), most=100)
        for start in range(0, n, 7):
            texts = [f"k{i}" for i in range(start, min(start + 7, n))]
            collector.add(pa.table({"id": pa.array(texts * 2, TEXT)}))
            assert sum(map(len, collector._seen["id"])) <= pending + n
        return collector.levels()

    assert len(collected(100)["id"]) == 100
    said = r"Column 'id' has more than 100 different texts, like .*: leave it out with `drop=\['id'\]`"
    with pytest.raises(ValueError, match=said):
        collected(101)


SHELVED = Table.from_input(
    pa.table(
        {
            "job": ["nurse", None, "clerk", "nurse"],
            "income": [1.5, None, float("nan"), -0.0],
            "old": [True, False, None, True],
            "id": [2**60, 1, 2, 3],
        }
    )
)


def contents(table):
    return [(own.name, own.levels, own.data.to_pylist()) for own in table.columns]


def test_what_is_sent_is_small_and_arrives_whole(tmp_path):
    with suppress(KeyError), on_shelf(SHELVED, tmp_path / "shelf") as shelved:
        sent = pickle.dumps(shelved)
        assert len(sent) < 500
        assert str(contents(pickle.loads(sent))) == str(contents(SHELVED))  # NaN is not equal to itself
        some = shelved.take(np.array([3, 0, 2])).take(np.array([2, 1]))
        again = pickle.loads(pickle.dumps(pickle.loads(pickle.dumps(some))))
        assert str(contents(again)) == str(contents(SHELVED.take(np.array([2, 0]))))
        raise KeyError  # the file goes when the work fails
    assert not list(tmp_path.iterdir())
    with pytest.raises(ValueError, match="cannot be read by this worker: the cluster's workers must see the"):
        pickle.loads(sent)
