"""Which bags leave out which row."""

import numpy as np
import pytest

from fado.tabular import fold_of, row_hash
from fado.valuation.bulk._folds import Folds, count_folds
from fado.valuation.bulk._training import bags_of, sample_size


def test_every_row_is_left_out_once_per_tile():
    folds, rows = Folds(7, tiles=3, n_folds=4), np.arange(5000)
    bags = bags_of(folds, rows, row_hash(7, rows), 10**6)
    left_out = np.concatenate([bag.out_of_bag for bag in bags])
    assert [bag.number for bag in bags] == list(range(12))
    assert (np.bincount(left_out, minlength=5000) == 3).all()
    for bag in bags:
        assert not np.intersect1d(bag.in_bag, bag.out_of_bag).size
        assert len(bag.in_bag) + len(bag.out_of_bag) == 5000


def test_a_bag_learns_from_the_smallest_hashes_that_it_does_not_leave_out():
    folds, rows = Folds(0, tiles=1, n_folds=2), np.array([5, 9, 40, 41, 77, 80])
    hashes = np.array([60, 10, 50, 20, 40, 30], dtype=np.uint64)
    first = bags_of(folds, rows, hashes, 2)[0]
    others = np.flatnonzero(fold_of(0, 0, rows, 2) != 0)
    assert first.in_bag.tolist() == sorted(others[np.argsort(hashes[others])][:2].tolist())


def test_rows_of_small_strata_are_dealt_exactly_and_all_others_by_their_hash():
    rows = np.array([900, 3, 17, 250, 30, 31, 32])
    strata = np.array([0, 0, 0, 0, 0, 1, 1])
    plain = Folds(0, tiles=2, n_folds=5)
    folds = plain.with_small_strata(rows, strata)
    for tile in range(2):
        assert sorted(folds.of(tile, rows[:5]).tolist()) == [0, 1, 2, 3, 4]
        others = np.setdiff1d(np.arange(1000), rows)
        assert (folds.of(tile, others) == plain.of(tile, others)).all()
        together, alone = folds.of(tile, np.arange(1000)), folds.of(tile, np.array([250]))
        assert together[250] == alone[0]


def test_count_folds():
    assert count_folds(10, 0.2) == (2, 5)
    assert count_folds(3, 1 / 3) == (1, 3)
    assert sample_size(1001, 5) == 1252  # 1001 / 0.8 = 1251.25


@pytest.mark.parametrize(
    ("n_bags", "fraction", "sentence"),
    [
        (10, 0.3, "`unseen_fraction` must be 1 over a whole number"),
        (12, 0.2, "`n_bags` must be a multiple of 5"),
        (10, 0.9, r"`unseen_fraction` must be in \(0, 0.5\]"),
        (0, 0.2, "`n_bags` must be at least 1"),
    ],
)
def test_bags_that_do_not_tile_the_rows_are_refused(n_bags, fraction, sentence):
    with pytest.raises(ValueError, match=sentence):
        count_folds(n_bags, fraction)
