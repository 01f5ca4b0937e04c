import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone

from fado.aim import (
    AimedWeights,
    GroupThresholds,
    InferredThresholds,
    cell_weights,
    dial_settings,
    log_factors_of,
    move_scores,
)
from fado.interventions import intervention_named

numbers = st.floats(-3, 3, allow_nan=False).map(lambda value: round(value, 6))


@given(st.lists(numbers, min_size=2, max_size=6).filter(lambda own: max(own) - min(own) > 1e-3))
def test_settings_give_the_log_factors_back(log_factors):
    settings = dial_settings(np.array(log_factors))
    assert settings["strength"] == max(log_factors) - min(log_factors)
    np.testing.assert_allclose(log_factors_of(**settings), log_factors, rtol=1e-12, atol=1e-15)


def test_one_threshold_of_moved_scores_is_one_per_group_of_the_scores():
    rng = np.random.default_rng(0)
    scores, groups = rng.random(2000), rng.integers(0, 3, 2000)
    log_factors = np.array([-0.7, 0.2, 1.1])
    moved = move_scores(scores, np.eye(3)[groups], log_factors)
    for threshold in (0.1, 0.35, 0.8):
        odds = np.log(threshold / (1 - threshold)) + log_factors  # of a score that just reaches it
        of_group = 1 / (1 + np.exp(-odds))
        np.testing.assert_array_equal(moved >= threshold, scores >= of_group[groups])


def test_nothing_moved_is_the_same_and_order_within_a_group_stays():
    scores = np.array([0.0, 1e-9, 0.2, 0.5, 0.9, 1.0])
    np.testing.assert_allclose(move_scores(scores, np.ones((6, 1)), np.zeros(1)), scores, atol=1e-15)
    moved = move_scores(scores, np.ones((6, 1)), np.array([2.0]))
    assert np.isfinite(moved).all()
    assert (np.diff(moved) > 0).all()
    assert ((moved >= 0) & (moved <= 1)).all()


def test_a_guess_moves_by_its_mean_and_others_stay():
    guess = np.array([[1.0, 0.0, 0.0], [0.5, 0.5, 0.0], [0.0, 0.0, 1.0]])
    moved = move_scores(np.full(3, 0.5), guess, np.log([3.0, 1.0]))
    np.testing.assert_allclose(moved, [0.25, 1 / (1 + np.sqrt(3)), 0.5])


def test_aimed_weights_are_those_of_cells():
    y = np.tile([0, 1], 6)
    z = np.repeat(["a", "b", "c"], 4)
    made = AimedWeights(strength=2.0, direction="-0.5 0.0 0.5").fit(
        np.zeros((12, 1)), y, sensitive_features=z
    )
    expected = cell_weights(np.array([-1.0, 0.0, 1.0]), np.eye(3)[np.repeat([0, 1, 2], 4)], y == 1)
    np.testing.assert_allclose(made.sample_weight_, expected)
    assert made.sample_weight_[y == 1].mean() == pytest.approx(1)
    untouched = clone(made).set_params(compared=np.array([True, False, True]), direction="-0.5 0.5")
    weights = untouched.fit(np.zeros((12, 1)), y, sensitive_features=z).sample_weight_
    assert (weights[4:8] == 1).all()
    assert (weights[:4] != 1).all()


def test_a_direction_of_other_groups_is_refused():
    with pytest.raises(ValueError, match="`direction` must have a number for each of the 2 groups, got 3"):
        AimedWeights(strength=1.0, direction="0 0 0").fit(
            [[0.0]] * 4, [0, 1, 0, 1], sensitive_features=list("ffmm")
        )


@pytest.mark.parametrize(
    ("key", "kind", "needs_group"),
    [
        ("aimed", AimedWeights, False),
        ("group_thresholds", GroupThresholds, True),
        ("inferred_thresholds", InferredThresholds, False),
    ],
)
def test_they_are_registered_as_dials(key, kind, needs_group):
    entry = intervention_named(key)
    assert entry.kind is kind
    assert entry.dial
    assert not entry.by_default
    assert entry.needs_group is needs_group


def test_thresholds_leave_rows_alone():
    made = GroupThresholds(strength=2.0, direction="-0.5 0.5")
    made.fit([[0.0]] * 4, [0, 1, 0, 1], sensitive_features=list("ffmm"))
    assert made.training_set_.rows.tolist() == [0, 1, 2, 3]
    assert made.training_set_.weights is None
    np.testing.assert_array_equal(made.log_factors, [-1, 1])
