import numpy as np
import pytest

from fado.aim import cell_weights

POSITIVE = np.array([False, False, False, True, True, True])
SURE = np.array([[1, 0], [1, 0], [0, 1], [1, 0], [0, 1], [0, 1]], dtype=float)


def test_by_hand():
    """Negatives of the second group get sqrt(4) = 2, positives 1/2; then each label has a mean of 1."""
    weights = cell_weights(np.array([0.0, np.log(4)]), SURE, POSITIVE)
    assert weights == pytest.approx([3 / 4, 3 / 4, 3 / 2, 3 / 2, 3 / 4, 3 / 4])


def test_a_row_of_unknown_group_gets_the_mean_of_the_factors_not_of_their_logarithms():
    half = np.full((6, 2), 0.5)
    half[0] = [1, 0]
    half[1] = [0, 1]
    weights = cell_weights(np.array([0.0, np.log(16)]), half, POSITIVE)
    assert weights[2] == pytest.approx((weights[0] + weights[1]) / 2)


def test_only_differences_of_log_factors_count():
    some = cell_weights(np.array([0.3, 1.7]), SURE, POSITIVE)
    assert cell_weights(np.array([-5.3, -3.9]), SURE, POSITIVE) == pytest.approx(some)


def test_each_label_keeps_its_weighted_mean():
    rng = np.random.default_rng(0)
    memberships = rng.dirichlet([1, 1, 1], size=200)
    positive, own = rng.random(200) < 0.3, rng.random(200)
    weights = cell_weights(np.array([-1.0, 0.2, 2.0]), memberships, positive, sample_weight=own)
    for label in (True, False):
        assert np.average(weights[positive == label], weights=own[positive == label]) == pytest.approx(1)


def test_equal_factors_change_nothing():
    assert cell_weights(np.zeros(2), SURE, POSITIVE) == pytest.approx(np.ones(6))


def test_untouched_rows_weigh_one_and_the_others_keep_their_mean():
    untouched = np.array([True, False, False, False, False, False])
    weights = cell_weights(np.array([0.0, np.log(4)]), SURE, POSITIVE, untouched=untouched)
    assert weights[0] == 1
    assert weights[1:3].mean() == pytest.approx(1)


def test_extreme_factors_stay_finite():
    assert np.isfinite(cell_weights(np.array([-300.0, 300.0]), SURE, POSITIVE)).all()
