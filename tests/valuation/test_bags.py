import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fado import KNNShapley, OutOfBagEntropy
from fado.tabular import Variable
from fado.valuation._bags import check_bags, out_of_bag_sets, strata_of


def draw(n_rows, n_bags, fraction, strata=None, seed=0):
    strata = np.zeros(n_rows, dtype=np.int64) if strata is None else strata
    return out_of_bag_sets(n_rows, n_bags, fraction, strata, np.random.default_rng(seed))


def classes(*labels, name="y"):
    return Variable(name, "classes", np.array(labels, dtype=np.int32), tuple(range(max(labels) + 1)))


@given(
    n_rows=st.integers(5, 200),
    n_bags=st.integers(1, 30),
    fraction=st.floats(0.05, 0.9),
    seed=st.integers(0, 5),
)
@settings(max_examples=200, deadline=None)
def test_coverage_is_full_and_equal_to_one(n_rows, n_bags, fraction, seed):
    try:
        check_bags(n_rows, n_bags, fraction)
    except ValueError:
        return
    strata = np.random.default_rng(seed).integers(0, 4, n_rows)
    bags = draw(n_rows, n_bags, fraction, strata, seed)
    counts = np.bincount(np.concatenate(bags), minlength=n_rows)
    assert len(bags) == n_bags
    assert counts.min() >= 1
    assert counts.max() - counts.min() <= 1
    for bag in bags:
        assert len(np.unique(bag)) == len(bag)
        assert (np.diff(bag) > 0).all()
        assert abs(len(bag) - n_rows * fraction) <= 1


def test_consecutive_bags_tile_permutations_each_a_fresh_one():
    bags = draw(100, 10, 0.2)
    for start in (0, 5):
        assert sorted(np.concatenate(bags[start : start + 5])) == list(range(100))
    assert not np.array_equal(bags[0], bags[5])
    assert (np.bincount(np.concatenate(draw(1003, 10, 0.2))) == 2).all()


def test_every_bag_holds_its_share_of_every_stratum():
    strata = np.repeat([0, 1, 2], [880, 100, 20])
    for bag in draw(1000, 10, 0.2, strata):
        sizes = np.bincount(strata[bag], minlength=3)
        np.testing.assert_array_less(np.abs(sizes - [176, 20, 4]), 2)


def test_the_seed_decides():
    same, other = draw(50, 5, 0.2, seed=1), draw(50, 5, 0.2, seed=2)
    assert all(np.array_equal(a, b) for a, b in zip(draw(50, 5, 0.2, seed=1), same, strict=True))
    assert not all(np.array_equal(a, b) for a, b in zip(same, other, strict=True))


def test_small_joint_classes_are_pooled_by_target():
    y = classes(*[0] * 30, *[1] * 20)
    z = classes(*[0] * 29, 1, *[0] * 19, 1, name="z")
    strata = strata_of([y, z], 0.2)
    # the two lonely (y, z) pairs cannot reach five bags each: they stand apart, by target
    assert len(np.unique(strata)) == 4
    assert strata[29] != strata[49]
    assert len(np.unique(strata[:29])) == 1


@pytest.mark.parametrize(("n_bags", "fraction"), [(3, 1 / 3), (10, 0.1), (7, 1 / 7), (5, 0.2)])
def test_exactly_one_is_enough_despite_rounding(n_bags, fraction):
    check_bags(1000, n_bags, fraction)
    assert sorted(np.concatenate(draw(1000, n_bags, fraction))) == list(range(1000))


@pytest.mark.parametrize(
    ("n_rows", "n_bags", "fraction", "error", "message"),
    [
        (100, 0, 0.5, ValueError, "`n_bags` must be at least 1, got 0"),
        (100, -1, 0.5, ValueError, "`n_bags` must be at least 1, got -1"),
        (100, 2.5, 0.5, TypeError, "`n_bags` must be a whole number, got 2.5"),
        (100, float("nan"), 0.5, TypeError, "`n_bags` must be a whole number, got nan"),
        (100, 10**10, 0.5, ValueError, "`n_bags` must be at most 100,000, got 10000000000"),
        (100, 4, 0.2, ValueError, r"at least 1 .* got 4 \* 0.2 = 0.8; use `n_bags=5` or more"),
        (4, 10, 0.2, ValueError, "leaves an out-of-bag set empty"),
        (4, 10, 0.9, ValueError, "leaves an in-bag set empty"),
        *(
            (100, 10, fraction, ValueError, r"`unseen_fraction` must be in \(0, 1\)")
            for fraction in (0.0, 1.0, -0.1, 1.5, float("nan"))
        ),
        *(
            (100, 10, fraction, TypeError, r"`unseen_fraction` must be a number in \(0, 1\)")
            for fraction in ("0.2", None, True)
        ),
    ],
)
def test_bags_that_cannot_be_drawn_are_refused(n_rows, n_bags, fraction, error, message):
    with pytest.raises(error, match=message):
        check_bags(n_rows, n_bags, fraction)


def test_more_bags_than_memory_holds_are_refused(monkeypatch):
    """Memory is what is free to the control group, and not what the machine has."""
    monkeypatch.setattr("fado._memory.free_memory", lambda: 7_999)
    X, y = np.zeros((200, 1)), np.arange(200) % 2
    for valuator in (OutOfBagEntropy(n_bags=10), KNNShapley(n_bags=10)):
        with pytest.raises(ValueError, match=r"`n_bags=10` of 200 rows would take at least 8\.0 KB"):
            valuator.fit(X, y)
