import itertools

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fado.metrics import hypervolume, pareto_frontier

NAN, INF = float("nan"), float("inf")


def brute_force_frontier(points):
    def dominates(a, b):
        return all(x >= y for x, y in zip(a, b, strict=True)) and any(
            x > y for x, y in zip(a, b, strict=True)
        )

    known = [point for point in points if not np.isnan(point).any()]
    return [
        not np.isnan(point).any() and not any(dominates(other, point) for other in known) for point in points
    ]


def clouds(n_objectives):
    coordinate = st.one_of(st.integers(-3, 3).map(float), st.sampled_from([-0.0, NAN, INF, -INF]))
    return st.lists(st.tuples(*[coordinate] * n_objectives), min_size=1, max_size=30)


@pytest.mark.parametrize(
    ("points", "expected"),
    [
        ([[1, 3], [2, 2], [3, 1], [1, 1]], [True, True, True, False]),
        (
            [[1, 2], [1, 2], [0, 2], [1, 1]],
            [True, True, False, False],
        ),  # copies stay, weakly dominated ones go
        ([[NAN, 9], [1, 1], [9, NAN]], [False, True, False]),
        ([[NAN, NAN]], [False]),
        ([[-INF, -INF]], [True]),
        ([[0.0, 1], [-0.0, 1]], [True, True]),
        ([[1, 1, 3], [1, 2, 2], [1, 1, 2], [1, 2, 2]], [True, True, False, True]),
    ],
)
def test_frontier_by_hand(points, expected):
    mask = pareto_frontier(points)
    assert mask.dtype == bool
    assert mask.tolist() == expected


@pytest.mark.parametrize("n_objectives", [2, 3, 4])
def test_no_points_have_no_frontier(n_objectives):
    assert pareto_frontier(np.empty((0, n_objectives))).shape == (0,)


@settings(deadline=None, max_examples=300)
@given(points=st.one_of(clouds(2), clouds(3), clouds(4)))
def test_frontier_equals_brute_force(points):
    assert pareto_frontier(points).tolist() == brute_force_frontier(points)


def test_a_large_frontier_of_two_objectives():
    # All 200,000 points are on the frontier: a method that compares pairs would not end.
    angle = np.random.default_rng(0).permutation(np.linspace(0.1, 1.4, 200_000))
    circle = np.column_stack([np.cos(angle), np.sin(angle)])
    assert pareto_frontier(circle).all()
    assert pareto_frontier(np.vstack([circle, circle / 2])).sum() == 200_000


def test_frontier_of_a_data_frame():
    frame = pd.DataFrame({"tpr": [0.5, 0.6, None], "fpr_ratio": [0.9, 0.8, 1.0]})
    assert pareto_frontier(frame).tolist() == [True, True, False]


@pytest.mark.parametrize("points", [[], [1.0, 2.0], [[1.0], [2.0]], np.zeros((2, 2, 2))])
def test_frontier_refuses_other_shapes(points):
    with pytest.raises(
        ValueError, match=r"`points` must have shape \(n_points, 2 or more objectives\), got \("
    ):
        pareto_frontier(points)


@pytest.mark.parametrize(
    ("points", "reference", "area"),
    [
        ([[2, 3]], (0, 0), 6),
        ([[2, 3]], (1, 1), 2),
        ([[1, 3], [2, 2], [3, 1]], (0, 0), 6),
        ([[1, 3], [2, 2], [3, 1], [1, 1], [2, 2], [3, NAN]], (0, 0), 6),
        ([[2, 1], [2, 3]], (0, 0), 6),  # equal in one objective
        ([[2, 0], [0, 2], [-1, 5], [5, -1]], (0, 0), 0),
        ([[-1, -1]], (-2, -3), 2),
        (np.empty((0, 2)), (0, 0), 0),
    ],
)
def test_hypervolume_by_hand(points, reference, area):
    assert hypervolume(points, reference) == area


def test_hypervolume_starts_from_the_origin():
    assert hypervolume([[0.5, 0.5]]) == 0.25


@settings(deadline=None, max_examples=200)
@given(
    points=st.lists(st.tuples(st.integers(-2, 6), st.integers(-2, 6)), min_size=1, max_size=12),
    reference=st.tuples(st.integers(-2, 3), st.integers(-2, 3)),
)
def test_hypervolume_equals_a_count_of_unit_squares(points, reference):
    squares = itertools.product(range(reference[0], 6), range(reference[1], 6))
    covered = sum(any(x >= left + 1 and y >= low + 1 for x, y in points) for left, low in squares)
    assert hypervolume(points, reference) == covered


@settings(deadline=None, max_examples=100)
@given(points=st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=1, max_size=7))
def test_hypervolume_equals_inclusion_and_exclusion(points):
    area = 0.0
    for size in range(1, len(points) + 1):
        for chosen in itertools.combinations(points, size):
            area -= (-1) ** size * min(x for x, _ in chosen) * min(y for _, y in chosen)
    assert hypervolume(points) == pytest.approx(area, abs=1e-9)


def test_hypervolume_depends_on_the_frontier_only():
    points = np.random.default_rng(0).random((200, 2))
    assert hypervolume(points) == pytest.approx(hypervolume(points[pareto_frontier(points)]), rel=1e-12)


@pytest.mark.parametrize(
    ("points", "reference", "message"),
    [
        ([[1, 2, 3]], (0, 0), "must have two objectives, got 3 and"),
        ([[1, 2]], (0, 0, 0), r"must have two objectives, got 2 and a reference of shape \(3,\)"),
        ([[1, INF]], (0, 0), "must be finite, got an infinite or missing coordinate"),
        ([[1, 2]], (0, NAN), "must be finite, got an infinite or missing coordinate"),
    ],
)
def test_hypervolume_refuses(points, reference, message):
    with pytest.raises(ValueError, match=message):
        hypervolume(points, reference)
