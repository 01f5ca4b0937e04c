import numpy as np
import pytest

from fado.aim._weights import cell_weights

POSITIVE = np.array([False, False, False, True, True, True])
SURE = np.array([[1, 0], [1, 0], [0, 1], [1, 0], [0, 1], [0, 1]], dtype=float)


def test_by_hand():
    """Negatives of the second group get sqrt(4) = 2, positives 1/2; then each label has a mean of 1."""
    weights = cell_weights(np.array([0.0, np.log(4)]), SURE, POSITIVE)
    assert weights == pytest.approx([3 / 4, 3 / 4, 3 / 2, 3 / 2, 3 / 4, 3 / 4])
    shifted = cell_weights(np.array([-5.0, np.log(4) - 5]), SURE, POSITIVE)  # only differences count
    assert shifted == pytest.approx(weights)
    assert cell_weights(np.zeros(2), SURE, POSITIVE) == pytest.approx(np.ones(6))
    assert np.isfinite(cell_weights(np.array([-300.0, 300.0]), SURE, POSITIVE)).all()


def test_a_row_of_unknown_group_gets_the_mean_of_the_factors_not_of_their_logarithms():
    half = np.vstack([np.eye(2), np.full((4, 2), 0.5)])
    weights = cell_weights(np.array([0.0, np.log(16)]), half, POSITIVE)
    assert weights[2] == pytest.approx((weights[0] + weights[1]) / 2)


def test_each_label_keeps_its_weighted_mean_and_untouched_rows_weigh_one():
    rng = np.random.default_rng(0)
    memberships = rng.dirichlet([1, 1, 1], size=200)
    positive, counts = rng.random(200) < 0.3, rng.random(200)
    settings = {"sample_weight": counts, "untouched": np.arange(200) < 20}
    weights = cell_weights(np.array([-1.0, 0.2, 2.0]), memberships, positive, **settings)
    assert (weights[:20] == 1).all()
    for label in (True, False):
        moved = (positive == label) & (np.arange(200) >= 20)
        assert np.average(weights[moved], weights=counts[moved]) == pytest.approx(1)
