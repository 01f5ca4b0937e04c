"""Slices that stand out, beyond chance."""

import numpy as np
import pandas as pd
import pytest

from fado import Valuation
from fado.exploration._explored import read_explored
from fado.exploration._slices import SliceFinder, permutation_z
from fado.tabular import read_problem


def finder_of(frame, max_rows=10_000):
    n_rows = len(frame)
    half = np.full(n_rows, 0.5)
    valuation = Valuation.from_probabilities(half, {"z": half})
    z = np.arange(n_rows) % 2
    limits = {"max_rows": max_rows, "min_group_size": 30, "seed": 0}
    return SliceFinder(read_explored(read_problem(frame, z == 0, {"z": z}), "y", valuation, **limits))


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(0)
    n_rows = 3000
    return pd.DataFrame(
        {
            "age": rng.integers(18, 80, n_rows),
            "job": rng.choice(["clerk", "nurse", "driver", None], n_rows),
            "town": rng.choice(["x", "y"], n_rows),
            "income": rng.lognormal(size=n_rows),
        }
    )


@pytest.fixture(scope="module")
def finder(frame):
    return finder_of(frame)


def texts(found):
    return [one.texts for one in found]


def test_a_planted_conjunction_comes_first(frame, finder):
    inside = ((frame["job"] == "nurse") & (frame["town"] == "x")).to_numpy()
    target = np.random.default_rng(1).normal(size=3000) + 1.0 * inside
    found = finder.find(target, 5)
    assert texts(found)[0] == ["job = nurse", "town = x"]
    assert (found[0].rows(finder.columns) == inside).all()
    assert found[0].p_value < 1e-6


def test_an_interval_and_missing_entries_can_be_found(frame, finder):
    noise = np.random.default_rng(2).normal(size=3000)
    middle = frame["age"].between(33, 48).to_numpy()
    found = texts(finder.find(noise + 2.0 * middle, 1))[0]
    assert [text.split()[:2] for text in found] == [["age", ">"], ["age", "≤"]]
    missing = frame["job"].isna().to_numpy()
    assert texts(finder.find(noise + missing, 1)) == [["job is missing"]]


def test_chance_alone_is_hardly_ever_found(finder):
    rng = np.random.default_rng(3)
    false_alarms = sum(bool(finder.find(rng.normal(size=3000), 5)) for _ in range(60))
    assert false_alarms <= 8  # 0.05 of 60 is 3, and 8 would be exceeded once in 200 times


def test_slices_have_support_and_do_not_overlap_by_half(frame, finder):
    noise = np.random.default_rng(4).normal(size=3000)
    target = frame["age"].to_numpy() + 10.0 * (frame["town"] == "x") + noise
    found = [one.rows(finder.columns) for one in finder.find(target, 8)]
    assert len(found) > 2
    for i, rows in enumerate(found):
        assert 30 <= rows.sum() <= 1500
        for other in found[:i]:
            assert (rows & other).sum() / (rows | other).sum() <= 0.5


def test_a_constant_target_has_no_slices(finder):
    for target in (np.ones(3000), np.zeros(3000)):
        assert finder.find(target, 5) == []


def test_what_holds_on_a_sample_is_looked_up_in_all_rows(frame):
    finder = finder_of(frame, max_rows=500)
    found = finder.find(1.0 + (finder.columns[2].codes == 0), 5)
    assert found
    for one in found:
        assert len(one.rows(finder.columns)) == 3000


def test_z_is_that_of_drawing_rows_without_replacement():
    target = np.array([3.0, 1.0, 4.0, 1.0, 5.0, 9.0, 2.0, 6.0])
    centred = target - target.mean()
    rng = np.random.default_rng(0)
    sums = [rng.permutation(centred)[:3].sum() for _ in range(20_000)]
    z = permutation_z(np.array([3.0]), np.array([5.0]), 8, float(centred.var()))[0]
    assert z == pytest.approx(5.0 / np.std(sums), rel=0.02)
