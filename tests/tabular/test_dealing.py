import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fado.tabular import deal_rows


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


def test_a_share_of_nothing_gets_nothing():
    dealt = deal(np.repeat([0, 1], 50), [0.8, 0.0, 0.2])
    assert np.bincount(dealt).tolist() == [80, 0, 20]
    assert np.bincount(deal(np.zeros(7, dtype=int), [0.5, 0.5, 0.0]), minlength=3)[2] == 0


def test_a_seed_deals_as_it_did_and_another_otherwise():
    cells = np.arange(200) % 3
    np.testing.assert_array_equal(deal(cells, [0.5, 0.5]), deal(cells, [0.5, 0.5]))
    assert (deal(cells, [0.5, 0.5]) != deal(cells, [0.5, 0.5], seed=1)).any()


@given(
    blocks=st.lists(st.integers(0, 30), min_size=2, max_size=120),
    seed=st.integers(0, 1000),
)
def test_blocks_stay_together(blocks, seed):
    blocks = np.unique(blocks, return_inverse=True)[1]
    cells = np.arange(len(blocks)) % 4
    dealt = deal(cells, [0.6, 0.2, 0.2], seed, blocks)
    assert len({(block, part) for block, part in zip(blocks.tolist(), dealt.tolist(), strict=True)}) == len(
        set(blocks.tolist())
    )


def test_shares_of_blocks_are_kept_about():
    rng = np.random.default_rng(0)
    blocks = np.unique(rng.integers(0, 400, 4000), return_inverse=True)[1]
    cells = (rng.random(4000) < 0.02).astype(int)
    dealt = deal(cells, [0.6, 0.2, 0.2], blocks=blocks)
    np.testing.assert_allclose(np.bincount(dealt) / 4000, [0.6, 0.2, 0.2], atol=0.02)
    rare = np.bincount(dealt[cells == 1]) / cells.sum()  # a block counts for the rarest of its cells
    np.testing.assert_allclose(rare, [0.6, 0.2, 0.2], atol=0.1)


def test_two_blocks_by_hand():
    """The rare row's block is dealt apart from the others: whole, wherever it falls."""
    blocks, cells = np.array([0, 0, 0, 1, 1, 1]), np.array([0, 0, 1, 0, 0, 0])
    parts = {tuple(deal(cells, [0.5, 0.5], seed, blocks)) for seed in range(40)}
    assert parts == {(a, a, a, b, b, b) for a in (0, 1) for b in (0, 1)}


@pytest.mark.parametrize("n", [1, 2])
def test_one_row_falls_into_some_part(n):
    assert set(deal(np.zeros(n, dtype=int), [0.5, 0.5]).tolist()) <= {0, 1}
