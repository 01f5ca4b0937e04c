"""The least entries of more than memory holds, against sorting them all."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fado.interventions.bulk._selection import Cuts, Entries, ordered_keys, select_least

FINITE = st.floats(allow_nan=False, allow_infinity=False)
FEW = st.sampled_from([0.0, -0.0, 0.25, 0.5, 1.0])
ROW = st.tuples(st.integers(0, 2), st.one_of(FEW, FINITE), st.sampled_from([1.0, 0.5, 2.0]))


def keys_of(numbers):
    return ordered_keys(np.array(numbers, dtype=np.float64))


def in_blocks(groups, keys, ties, weights, n_rows):
    return [
        Entries(groups[i : i + n_rows], keys[i : i + n_rows], ties[i : i + n_rows], weights[i : i + n_rows])
        for i in range(0, len(groups), n_rows)
    ]


@given(st.lists(st.one_of(FEW, FINITE), min_size=1))
def test_keys_are_ordered_as_the_numbers_are(numbers):
    numbers = np.array(numbers)
    keys = ordered_keys(numbers)
    assert ((keys[:, None] < keys) == (numbers[:, None] < numbers)).all()
    assert ((keys[:, None] == keys) == (numbers[:, None] == numbers)).all()


@settings(max_examples=300, deadline=None)
@given(
    st.lists(ROW, min_size=1, max_size=60),
    st.lists(st.floats(0, 1), min_size=3, max_size=3),
    st.integers(0, 40),
    st.sampled_from([3, 8, 1 << 10, 1 << 20]),
    st.integers(1, 60),
    st.booleans(),
)
def test_what_goes_is_what_sorting_finds(rows, shares, most_held, most_bins, n_rows, weighted):
    groups, numbers, weights = (np.array(each) for each in zip(*rows, strict=True))
    keys = ordered_keys(numbers)
    ties = np.random.default_rng(len(rows)).permutation(len(rows)).astype(np.uint64) << np.uint64(50)
    weights = weights if weighted else np.ones(len(rows))
    counts, sums = np.bincount(groups, minlength=3), np.bincount(groups, weights, minlength=3)
    amounts = np.array(shares) * sums if weighted else np.floor(np.array(shares) * counts)
    losing = amounts[groups] > 0

    def entries():
        return in_blocks(groups[losing], keys[losing], ties[losing], weights[losing], n_rows)

    low, high = int(keys.min()), int(keys.max())
    cuts = select_least(entries, amounts, counts, low, high, most_held=most_held, most_bins=most_bins)
    expected = np.zeros(len(rows), dtype=bool)
    for group in np.flatnonzero(amounts > 0):
        mine = np.flatnonzero(groups == group)
        ordered = mine[np.lexsort([ties[mine], numbers[mine]])]
        gone = np.r_[0.0, np.cumsum(weights[ordered])]
        expected[ordered[: np.argmin(np.abs(amounts[group] - gone))]] = True
    assert (cuts.go(groups, keys, ties) == expected).all()


def test_a_spread_of_keys_takes_two_passes_and_ties_a_third():
    rng, n_rows = np.random.default_rng(0), 300_000
    groups = np.zeros(n_rows, dtype=np.int64)
    ties = rng.permutation(n_rows).astype(np.uint64) << np.uint64(45)
    for numbers, n_passes in ((rng.random(n_rows), 2), (np.round(rng.random(n_rows)), 3)):
        keys, reads = ordered_keys(numbers), []

        def entries(keys=keys, reads=reads):
            reads.append(1)
            return in_blocks(groups, keys, ties, np.ones(n_rows), 1 << 16)

        ends = int(keys.min()), int(keys.max())
        cuts = select_least(entries, np.array([100_000.0]), np.array([n_rows]), *ends, most_held=1000)
        assert cuts.go(groups, keys, ties).sum() == 100_000
        assert len(reads) <= n_passes


def test_the_closest_weight_may_be_that_of_no_row_of_the_last_bin():
    groups, weights = np.zeros(3, dtype=np.int64), np.array([1.0, 1.0, 10.0])
    keys, ties = np.array([0, 1, 2], dtype=np.uint64), np.array([0, 1, 2], dtype=np.uint64)
    cuts = select_least(
        lambda: in_blocks(groups, keys, ties, weights, 3), np.array([4.0]), np.array([3]), 0, 2, most_held=1
    )
    assert (cuts.some.tolist(), cuts.keys.tolist()) == ([True], [1])  # 2 is closer to 4 than 12 is


def test_groups_that_lose_nothing_keep_all():
    nothing = select_least(lambda: [], np.zeros(2), np.array([5, 5]), 0, 10)
    assert not nothing.go(np.array([0, 1]), keys_of([0, 0]), keys_of([0, 0])).any()


@pytest.mark.parametrize(("tie", "goes"), [(4, True), (5, True), (6, False)])
def test_ties_decide_where_keys_are_equal(tie, goes):
    cuts = Cuts(np.array([True]), np.array([7], dtype=np.uint64), np.array([5], dtype=np.uint64))
    key, tie = np.array([7], dtype=np.uint64), np.array([tie], dtype=np.uint64)
    assert cuts.go(np.array([0]), key, tie).tolist() == [goes]
