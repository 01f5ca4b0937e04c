"""Aimed scores as interventions: what they do to scores, and what they leave alone."""

import numpy as np
import pytest
from scipy.special import expit, logit
from sklearn.base import clone

from fado.aim import AimedScores, AimedStudent, GroupThresholds, count_events, demands_of, read_lines
from fado.interventions import EvaluatedRows, KnownRows, intervention_named
from fado.metrics import Budget, evaluate

N = 6000


def draw(seed=0, budget=("fpr", 0.1), **more):
    """Rows of two groups that a model knows well, and whose odds differ: the second half are test rows."""
    rng = np.random.default_rng(seed)
    groups = rng.integers(0, 2, N)
    p = expit(rng.normal(size=N) + 0.8 * groups - 1.5)
    y = rng.random(N) < p
    chance = np.where(groups == 1, 0.9, 0.1)
    sure = np.column_stack([1 - chance, chance])
    rows = EvaluatedRows(
        p,
        y[: N // 2],
        groups[: N // 2],
        n_compared=2,
        budget=Budget(*budget),
        group_probabilities=lambda: (sure, sure),
        known_groups=groups,
        training=lambda: KnownRows(p, (sure, sure), y, groups, np.ones(N)),
        teach=lambda numbers, weights: (None, numbers),
        **more,
    )
    return rows, y, groups


def measured(rows, scores):
    decided = scores[: rows.n_validation]
    return evaluate(rows.positive, decided, sensitive_features=rows.groups, budget=rows.budget)


@pytest.mark.parametrize("kind", [AimedScores, GroupThresholds])
@pytest.mark.parametrize("ratio", ["fpr_ratio", "tpr_ratio", "fnr_ratio", "selection_rate_ratio"])
@pytest.mark.parametrize("budget", [("fpr", 0.1), ("selection_rate", 0.2), ("top_k", 500)], ids=str)
def test_the_line_is_reached_on_validation_rows(kind, ratio, budget):
    rows, _, _ = draw(budget=budget)
    assert measured(rows, rows.scores)[ratio] < 0.8
    assert measured(rows, kind(ratio, 0.8).rescore(rows))[ratio] >= 0.8


def test_scores_that_reach_the_line_stay_as_they_are_to_the_bit():
    rows, _, _ = draw()
    line = measured(rows, rows.scores)["fpr_ratio"] - 1e-9
    for made in (AimedScores(at_least=line), AimedStudent(at_least=line / 2), GroupThresholds(at_least=line)):
        np.testing.assert_array_equal(made.rescore(rows), rows.scores)


def test_known_groups_are_shifted_as_a_whole():
    rows, _, groups = draw()
    shifts = logit(GroupThresholds().rescore(rows)) - logit(rows.scores)
    for group in (0, 1):
        np.testing.assert_allclose(shifts[groups == group], shifts[groups == group][0], atol=1e-9)
    assert shifts[groups == 1][0] < shifts[groups == 0][0]


def test_what_a_rescoring_needs_is_asked_for():
    rows, _, _ = draw()
    rows._known_groups = None
    AimedScores().rescore(rows)
    with pytest.raises(ValueError, match="registered with `needs_group=True`"):
        GroupThresholds().rescore(rows)
    rows.n_compared = 1
    with pytest.raises(ValueError, match="no two groups that are large enough"):
        AimedScores().rescore(rows)


def test_two_lines_hold_at_once():
    rows, _, _ = draw()
    found = measured(rows, AimedScores("fpr_ratio=0.8, tpr_ratio=0.85").rescore(rows))
    assert found["fpr_ratio"] >= 0.8
    assert found["tpr_ratio"] >= 0.85


def test_a_student_learns_moved_log_odds_of_training_rows():
    rows, y, groups = draw()
    scores = AimedStudent().rescore(rows)  # this student says what it was told
    found = evaluate(y, scores, sensitive_features=groups, budget=rows.budget)
    assert found["fpr_ratio"] >= 0.8
    seen = []
    rows._teach = lambda numbers, weights: (None, seen.append((numbers, weights)) or numbers)
    AimedStudent().rescore(rows)
    numbers, weights = seen[0]
    np.testing.assert_allclose(expit(numbers), scores)
    edge = numbers[np.argmax(weights)]
    assert expit(edge) == pytest.approx(found["threshold"], abs=0.01)  # rows near the threshold count most
    assert weights.max() <= 1.05
    assert weights.min() >= 0.05


def test_a_number_of_rows_is_a_share_for_students():
    rows, _, _ = draw(budget=("top_k", 600))
    assert AimedStudent()._budget(rows) == Budget("selection_rate", 0.2)
    assert AimedScores()._budget(rows) == Budget("top_k", 600)


def test_a_demand_is_a_point_of_the_curve():
    rows, _, _ = draw()
    points = AimedScores().points(rows)
    demands = demands_of([points[0].counts[0].ratio], [0.8])
    np.testing.assert_allclose([point.demand for point in points[1:]], demands, atol=1e-6)
    for point, demand in zip(points[1:], demands, strict=True):
        found = measured(rows, AimedScores(demand=demand).rescore(rows))
        assert found["fpr_ratio"] == pytest.approx(point.counts[0].ratio)
        assert found["tpr"] == pytest.approx(point.tpr)
    assert AimedScores().points(rows) is points  # found once


@pytest.mark.parametrize(
    ("ratio", "match"),
    [("fpr", "`ratio` must be"), ("fpr_ratio=0", "must be in"), ("fpr_ratio=x", "must be a number")],
)
def test_bad_lines_are_refused_before_anything_is_done(ratio, match):
    with pytest.raises((ValueError, TypeError), match=match):
        AimedScores(ratio).rescore(None)


def test_lines_are_read_from_every_form():
    assert read_lines("equalized_odds_ratio", 0.7) == {"fpr_ratio": 0.7, "tpr_ratio": 0.7}
    assert read_lines({"tpr_ratio": 0.9}) == {"tpr_ratio": 0.9}
    assert read_lines("tpr_ratio=0.9,fnr_ratio", 0.5) == {"tpr_ratio": 0.9, "fnr_ratio": 0.5}


def test_events_are_counted_by_hand():
    positive = np.array([0, 0, 0, 0, 1, 1], dtype=bool)
    groups = np.array([0, 0, 1, 1, 0, 1])
    selected = np.array([1, 0, 1, 1, 1, 0], dtype=bool)
    weights = np.array([1.0, 3, 1, 1, 1, 1])
    fpr, tpr = count_events(positive, groups, [0, 1], selected, ["fpr_ratio", "tpr_ratio"], weights)
    assert fpr.events.tolist() == [1, 2]
    assert fpr.members.tolist() == [4, 2]
    assert fpr.squared_members.tolist() == [10, 2]
    assert fpr.ratio == 0.25
    assert tpr.rates.tolist() == [1, 0]


@pytest.mark.parametrize(
    ("key", "kind", "needs_group"),
    [
        ("aimed", AimedScores, False),
        ("student", AimedStudent, False),
        ("group_thresholds", GroupThresholds, True),
    ],
)
def test_they_are_registered(key, kind, needs_group):
    entry = intervention_named(key)
    assert entry.kind is kind
    assert entry.changes_scores
    assert not entry.by_default
    assert entry.needs_group is needs_group
    assert kind.hands_over() is not needs_group
    assert [(own.name, own.plural) for own in entry.settings] == [("ratio", "ratios"), ("at_least", "lines")]
    assert clone(entry.make(at_least=0.9)).at_least == 0.9
