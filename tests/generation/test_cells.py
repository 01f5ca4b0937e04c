"""How many rows are made in each cell, and of which parents; worked out by hand."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fado.generation._making import draw_parents
from fado.generation._sampler import Cells, fill_labels, fill_positives, read_counts
from fado.tabular import Groups, Labels


def cells_of(counts, compared=None, weights=None, labels=None):
    """Make cells of a table of counts, a line per label and a column per group."""
    counts = np.array(counts)
    codes, groups = (np.repeat(own.ravel(), counts.ravel()) for own in np.indices(counts.shape))
    names = [f"g{j}" for j in range(counts.shape[1])]
    titled = Groups(groups, tuple(map(repr, names)), tuple(names))
    classes = tuple(range(len(counts))) if labels is None else labels
    compared = np.ones(counts.shape[1], bool) if compared is None else np.array(compared)
    return Cells.of(Labels(codes.astype(np.int32), classes), titled, compared, weights)


@pytest.mark.parametrize(
    ("negatives", "positives", "strength", "made"),
    [
        ([10, 40], [10, 10], 1.0, [0, 30]),  # 1/2 and 1/5: 40 positives beside 40 negatives
        ([10, 40], [10, 10], 0.5, [0, 12]),  # to 0.35: 40 * 0.35 / 0.65 = 21.5, a half more than 21.5 - 10
        ([10, 40], [10, 10], 0.0, [0, 0]),
        ([10, 30, 80], [10, 10, 20], 1.0, [0, 20, 60]),
        ([8, 8], [2, 2], 1.0, [0, 0]),
        ([3, 5], [2, 2], 1.0, [0, 1]),  # 5 * (2/5) / (3/5) = 3 1/3
        ([2, 3], [1, 1], 1.0, [0, 0]),  # 1.5 - 1 is a half, which goes to the even number
    ],
)
def test_positives_are_filled_up(negatives, positives, strength, made):
    plan = fill_positives(cells_of([negatives, positives]), 1, strength)
    assert plan.made.tolist() == [[0] * len(made), made]
    assert plan.childless == plan.unmatched == ()


@given(st.lists(st.tuples(st.integers(1, 400), st.integers(1, 400)), min_size=2, max_size=5), st.floats(0, 1))
@settings(max_examples=60, deadline=None)
def test_rates_come_as_near_as_whole_rows_allow(groups, strength):
    negatives, positives = map(np.array, zip(*groups, strict=True))
    plan = fill_positives(cells_of([negatives, positives]), 1, strength)
    rates = positives / (positives + negatives)
    wanted = rates + strength * (rates.max() - rates)
    after = positives + plan.made[1]
    assert plan.target_rate == rates.max()
    assert (np.abs(negatives * wanted / (1 - wanted) - after) <= 0.5 + 1e-6).all()
    assert not plan.made[0].any()


def test_groups_that_lack_a_label():
    plan = fill_positives(cells_of([[10, 40, 0, 7], [10, 10, 5, 0]]), 1, 1.0)
    assert plan.made[1].tolist() == [0, 30, 0, 0]
    assert plan.unmatched == (2,)
    assert plan.childless == ((1, 3),)
    assert plan.target_rate == 0.5


@pytest.mark.parametrize(
    ("cells", "made"),
    [
        # small groups get nothing and set no rate
        (cells_of([[10, 40, 1], [10, 10, 9]], [True, True, False]), [[0, 0, 0], [0, 30, 0]]),
        # other labels than the positive are negatives
        (cells_of([[5, 20], [10, 10], [5, 20]]), [[0, 0], [0, 30], [0, 0]]),
        # negatives weigh 20 and 40, positives 20 and 5 * 4: rates 1/2 and 1/3; 20 more in rows of 4
        (
            cells_of([[10, 40], [10, 5]], weights=np.repeat([2.0, 1.0, 2.0, 4.0], [10, 40, 10, 5])),
            [[0, 0], [0, 5]],
        ),
    ],
)
def test_positives_of_other_tables_are_filled_up(cells, made):
    assert fill_positives(cells, 1, 1.0).made.tolist() == made


@given(
    st.lists(st.tuples(*[st.integers(1, 200)] * 3), min_size=2, max_size=4),
    st.floats(0.01, 1),
)
@settings(max_examples=60, deadline=None)
def test_all_labels_come_to_the_shares_of_the_table(groups, strength):
    counts = np.array(groups).T
    plan = fill_labels(cells_of(counts), strength)
    shares = counts.sum(axis=1) / counts.sum()
    own = counts / counts.sum(axis=0)
    wanted = own + strength * (shares[:, None] - own)
    after = counts + plan.made
    scale = (counts / wanted).max(axis=0)
    assert (np.abs(after - scale * wanted) <= 0.5 + 1e-6).all()
    assert ((plan.made == 0).sum(axis=0) >= 1).all()


def test_labels_that_a_group_lacks_are_told():
    plan = fill_labels(cells_of([[10, 10], [10, 10], [10, 0]]), 1.0)
    assert plan.childless == ((2, 1),)
    assert plan.made[2].tolist() == [0, 0]


@pytest.mark.parametrize(
    ("strategy", "made"),
    [
        ({"yes": 45}, [[0, 0], [20, 10]]),
        ({"yes": 47}, [[0, 0], [21, 11]]),
        ({("yes", "g1"): 9, "no": 50}, [[0, 0], [0, 4]]),
    ],
)
def test_counts_may_be_asked_for(strategy, made):
    assert read_counts(cells_of([[10, 40], [10, 5]], labels=("no", "yes")), strategy).made.tolist() == made


@pytest.mark.parametrize(
    ("strategy", "message"),
    [
        ({"maybe": 9}, "names 'maybe', which is not one of the labels 'no', 'yes'"),
        ({("yes", "g7"): 9}, r"has the key \('yes', 'g7'\).* one of the groups 'g0', 'g1'"),
        ({("yes",): 9}, "must be a label, or a pair"),
        ({"yes": 9}, "is 9, and there are 10 such rows already"),
        ({"yes": 9.5}, "must be a whole number, got 9.5"),
        ({("yes", "g1"): 5}, r"no rows with label 'yes' in group 'g1' to make others from"),
        ({("yes", "g0"): 12, "yes": 14}, "asks twice for label 'yes'"),
        ({"yes": 10, ("yes", "g0"): 12}, "asks twice for label 'yes'"),
        ({"yes": 20, ("yes", "g1"): 9}, "asks twice for label 'yes'"),  # of a small group
    ],
    ids=str,
)
def test_counts_that_cannot_be(strategy, message):
    cells = cells_of([[10, 40], [10, 0]], [True, False], labels=("no", "yes"))
    with pytest.raises((ValueError, TypeError), match=message):
        read_counts(cells, strategy)


def test_parents_are_drawn_by_utility_within_their_cell():
    labels = Labels(np.array([1, 1, 1, 0, 1], np.int32), (0, 1), 1)
    groups = Groups(np.array([0, 0, 0, 0, 1]), ("'a'", "'b'"), ("a", "b"))
    made = np.array([[0, 0], [68_000, 3]])
    utilities = np.array([-1.0, 0.0, 1.0, 9.0, 5.0])
    parents = draw_parents(made, labels, groups, utilities, None, np.random.default_rng(0))
    assert parents[-3:].tolist() == [4, 4, 4]
    # chances of 0.3, 0.3 + 0.7 / 2 and 1, over 1.95
    drawn = np.bincount(parents[:-3], minlength=4) / 68_000
    np.testing.assert_allclose(drawn, [0.3 / 1.95, 0.65 / 1.95, 1 / 1.95, 0], atol=0.01)
    weights = np.array([1.0, 0, 3, 1, 1])
    parents = draw_parents(made, labels, groups, None, weights, np.random.default_rng(0))
    drawn = np.bincount(parents[:-3], minlength=4) / 68_000
    np.testing.assert_allclose(drawn, [0.25, 0, 0.75, 0], atol=0.01)
