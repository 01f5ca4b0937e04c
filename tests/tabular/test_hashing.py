"""Draws that follow from seed, tile and row."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chi2

from fado.tabular import deal_small_strata, fold_of, row_hash

MASK = 2**64 - 1
ROWS = np.arange(200_000)


def mixed(number):
    """One step of splitmix64, in whole numbers."""
    number = (number + 0x9E3779B97F4A7C15) & MASK
    number = ((number ^ (number >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    number = ((number ^ (number >> 27)) * 0x94D049BB133111EB) & MASK
    return number ^ (number >> 31)


def test_the_step_is_that_of_splitmix64():
    """The first numbers of the published generator from seed 0."""
    assert mixed(0) == 0xE220A8397B1DCDAF
    assert mixed(0x9E3779B97F4A7C15) == 0x6E789E6AA1B965F4


@pytest.mark.parametrize("seed", [0, 7, 2**64 - 1])
def test_hashes_and_folds_by_hand(seed):
    rows = np.array([0, 1, 12_345, 99_999_999, 2**40])
    sample, folds = mixed(mixed(seed) ^ 0), mixed(mixed(mixed(seed) ^ 1) ^ 3)
    assert row_hash(seed, rows).tolist() == [mixed(sample ^ int(row)) for row in rows]
    expected = [(mixed(folds ^ int(row)) >> 32) * 5 >> 32 for row in rows]
    assert fold_of(seed, 3, rows, 5).tolist() == expected


def test_any_type_of_row_number_will_do():
    rows = np.array([3, 1, 4])
    for kind in (np.int32, np.uint64, np.uint8):
        np.testing.assert_array_equal(row_hash(1, rows), row_hash(1, rows.astype(kind)))
    assert rows.tolist() == [3, 1, 4]


def evenly(counts):
    """Whether counts pass for equal ones; a fair draw fails once in a million."""
    expected = counts.sum() / counts.size
    return ((counts - expected) ** 2 / expected).sum() < chi2.isf(1e-6, counts.size - 1)


@pytest.mark.parametrize("n_folds", [2, 3, 5, 7])
@pytest.mark.parametrize("seed", [0, 1, 2**63])
def test_folds_have_equal_shares(seed, n_folds):
    assert evenly(np.bincount(fold_of(seed, 0, ROWS, n_folds), minlength=n_folds))


def table_of(first, second, n=5):
    return np.bincount(first * n + second, minlength=n * n)


@pytest.mark.parametrize("other", [1, 2, 19])
def test_tiles_tell_nothing_of_each_other(other):
    assert evenly(table_of(fold_of(0, 0, ROWS, 5), fold_of(0, other, ROWS, 5)))


@pytest.mark.parametrize("other", [1, 2, 2**32])
def test_seeds_tell_nothing_of_each_other(other):
    assert evenly(table_of(fold_of(0, 0, ROWS, 5), fold_of(other, 0, ROWS, 5)))


@pytest.mark.parametrize("step", [1, 2, 64, 1000])
def test_neighbours_tell_nothing_of_each_other(step):
    folds = fold_of(0, 0, ROWS, 5)
    assert evenly(table_of(folds[:-step], folds[step:]))


def test_the_sample_tells_nothing_of_the_folds():
    sample = np.argsort(row_hash(0, ROWS))[:50_000]
    assert evenly(np.bincount(fold_of(0, 0, sample, 5)))
    assert evenly(np.bincount(sample // 20_000))


def test_no_two_rows_share_a_hash():
    assert len(np.unique(row_hash(3, ROWS))) == len(ROWS)


@given(
    sizes=st.lists(st.integers(1, 40), min_size=1, max_size=6),
    n_folds=st.integers(1, 7),
    seed=st.integers(0, 2**64 - 1),
)
def test_small_strata_are_dealt_exactly_in_any_order(sizes, n_folds, seed):
    strata = np.repeat(np.arange(len(sizes)), sizes)
    rows = np.random.default_rng(0).permutation(5 * len(strata))[: len(strata)]
    folds = deal_small_strata(seed, 0, rows, strata, n_folds)
    for stratum in range(len(sizes)):
        counts = np.bincount(folds[strata == stratum], minlength=n_folds)
        assert counts.max() - counts.min() <= 1
    order = np.random.default_rng(1).permutation(len(rows))
    renamed = np.array([17, 3, 99, 4, 1000, 0])[strata]
    np.testing.assert_array_equal(
        deal_small_strata(seed, 0, rows[order], renamed[order], n_folds), folds[order]
    )


def test_the_fold_that_gets_one_more_is_drawn():
    """Of strata of one row each, every fold gets its share, in every tile another."""
    strata = np.arange(20_000)
    first, second = (deal_small_strata(0, tile, strata, strata, 5) for tile in (0, 1))
    assert evenly(np.bincount(first))
    assert evenly(table_of(first, second))


def test_two_strata_by_hand():
    rows, strata = np.array([10, 11, 12, 13]), np.array([0, 1, 0, 0])
    key, offset = mixed(mixed(mixed(5) ^ 1) ^ 2), mixed(mixed(mixed(5) ^ 2) ^ 2)
    turn = {row: place for place, row in enumerate(sorted([10, 12, 13], key=lambda row: mixed(key ^ row)))}
    begin = {row: (mixed(offset ^ row) >> 32) * 3 >> 32 for row in (10, 11)}
    expected = [(begin[10] + turn[10]) % 3, begin[11], (begin[10] + turn[12]) % 3, (begin[10] + turn[13]) % 3]
    assert deal_small_strata(5, 2, rows, strata, 3).tolist() == expected


def test_no_small_strata():
    nothing = np.empty(0, dtype=np.int64)
    assert deal_small_strata(0, 0, nothing, nothing, 5).tolist() == []
