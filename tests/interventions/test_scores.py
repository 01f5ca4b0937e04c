"""What an intervention on scores sees, and what is refused of it."""

import numpy as np
import pytest

from fado.interventions import BaseScoreIntervention, EvaluatedRows
from fado.metrics import Budget


def rows_of(**more):
    return EvaluatedRows(
        np.array([0.2, 0.6, 0.4]), np.array([False, True]), np.array([0, 1]),
        n_compared=2, budget=Budget("fpr", 0.1), **more,
    )  # fmt: skip


class Given(BaseScoreIntervention):
    def __init__(self, scores=None):
        self.scores = scores

    def _rescore(self, rows):
        return self.scores


def test_scores_are_one_finite_number_for_each_row():
    np.testing.assert_array_equal(Given([1, 2, 3]).rescore(rows_of()), [1.0, 2.0, 3.0])
    with pytest.raises(
        ValueError, match="Given must return one score for each of 3 rows, got an array of shape"
    ):
        Given([1, 2]).rescore(rows_of())
    with pytest.raises(ValueError, match="Given gives some rows scores that are not finite"):
        Given([1, 2, np.nan]).rescore(rows_of())


def test_what_takes_fits_is_done_once_and_when_asked_for():
    asked = []
    probabilities = (np.eye(3)[:, :2], np.eye(3)[:, 1:])

    def groups():
        asked.append("groups")
        return probabilities

    rows = rows_of(group_probabilities=groups)
    assert asked == []
    assert rows.group_probabilities is rows.group_probabilities
    assert asked == ["groups"]
    validation = rows.validation
    assert validation.scores.tolist() == [0.2, 0.6]
    np.testing.assert_array_equal(validation.group_probabilities[1], probabilities[1][:2])
    assert validation.weights.tolist() == [1, 1]


@pytest.mark.parametrize("what", ["group_probabilities", "training", "known_groups"])
def test_what_is_not_there_is_refused_in_words(what):
    with pytest.raises(ValueError, match=r"These rows have no|only for interventions that"):
        getattr(rows_of(), what)
    with pytest.raises(ValueError, match="These rows have no training rows"):
        rows_of().teach(np.zeros(4))


def test_labels_of_test_rows_are_nowhere():
    rows = rows_of()
    lengths = {name: len(own) for name, own in vars(rows).items() if isinstance(own, np.ndarray)}
    assert lengths == {"scores": 3, "positive": 2, "groups": 2, "weights": 2}


def test_a_model_is_handed_over_only_where_a_class_says_how():
    assert not Given.hands_over()
    assert Given([1, 2, 3]).scorer(rows_of()) is None
    assert Given.changes == "scores"
    assert not Given.uses_values
