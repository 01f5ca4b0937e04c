"""Candidates for a removal: slices whose rows add up to a gain, and the most harmful rows."""

from types import SimpleNamespace

import numpy as np
import pytest

from fado import Valuation
from fado.exploration._explored import read_explored
from fado.exploration._removals import RemovalSearch, keeps_cells, label_cells, most_harmful
from fado.exploration._slices import BinnedColumn, Condition
from fado.tabular import read_problem


def test_no_removal_empties_a_group_that_is_not_compared_or_of_another_attribute():
    n_rows = 4000
    rows = np.arange(n_rows)
    z = {"z": np.where(rows < 25, "few", np.where(rows % 2, "a", "b")), "side": np.where(rows < 60, "l", "r")}
    problem = read_problem(np.zeros((n_rows, 1)), rows % 4 > 1, z)
    values = Valuation.from_values({name: np.zeros(n_rows) for name in ("y", *z)})
    explored = read_explored(problem, "y", values, max_rows=n_rows, min_group_size=30, seed=0)
    assert explored.attributes[0].groups.n_compared == 2  # 25 rows are too few
    cells = label_cells(explored)
    assert not keeps_cells(rows < 25, cells)
    assert not keeps_cells((rows >= 25) & (rows < 60), cells)  # more than half of "l"
    assert keeps_cells((rows >= 25) & (rows < 50) & (rows % 2 > 0), cells)
    marked = most_harmful(np.where(rows < 60, -1.0, 1.0), 0.1, cells)
    assert marked[:25].sum() <= 12
    assert marked[:60].sum() <= 30


def test_cells_keep_half_of_their_rows():
    cells = np.array([[0, 0, 0, 0, 1, 1, -1]])
    assert keeps_cells(np.array([1, 1, 0, 0, 1, 0, 1], dtype=bool), cells)
    assert not keeps_cells(np.array([1, 1, 1, 0, 0, 0, 0], dtype=bool), cells)
    effects = np.array([-5.0, -4.0, -3.0, -2.0, -1.0, 1.0, 2.0, 3.0])
    marked = most_harmful(effects, 0.5, np.array([[0, 0, 0, 0, 1, 1, 1, 1]]))
    assert np.flatnonzero(marked).tolist() == [0, 1, 4]  # two of cell 0, and no row that helps


N = 4000


def column(number, name, codes):
    levels = range(int(codes.max()) + 1)
    conditions = tuple(Condition(number, level, level, f"{name} = {level}") for level in levels)
    return BinnedColumn(number, name, codes.astype(np.uint8), conditions)


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    codes = {"a": rng.integers(0, 8, N), "b": rng.integers(0, 2, N), "c": rng.integers(0, 2, N)}
    columns = [column(number, name, own) for number, (name, own) in enumerate(codes.items())]
    return SimpleNamespace(columns=columns, noise=rng.normal(size=N), **codes)


def slices_of(table, gains, most=5, always=()):
    slices = RemovalSearch(table.columns, np.arange(N), gains).find(most, always)
    return [" and ".join(condition.text for condition in one.conditions) for one in slices]


def test_one_condition_is_found_where_one_says_all_and_two_where_it_takes_both(table):
    assert slices_of(table, table.noise + 1.0 * (table.a == 3) - 0.125)[0] == "a = 3"
    gains = 0.5 * table.noise + 3.0 * ((table.a == 3) & (table.b == 1)) - 1.0 * (table.a == 3)
    assert slices_of(table, gains)[0] == "a = 3 and b = 1"


def test_a_condition_that_adds_nothing_is_not_joined_to_one_of_too_many_rows(table):
    gains = table.noise + 1.0 * (table.b == 1)  # half of the rows: too many to be removed
    gains -= gains.mean()
    assert not any("c =" in one for one in slices_of(table, gains))


def test_conditions_that_cancel_out_alone_are_joined_if_they_are_always_tried(table):
    rng = np.random.default_rng(1)
    many = [column(number, f"n{number}", rng.integers(0, 2, N)) for number in range(30)]
    small = (rng.random(N) < 0.15).astype(int)
    gains = 0.3 * rng.normal(size=N) + np.where(table.b == 1, 1.0, -1.0) * small
    # each noise column pushed ahead, so that neither b nor s is among the best alone
    gains += sum(0.02 * (one.codes == 1) for one in many) - 0.3
    columns = [*many, column(30, "b", table.b), column(31, "s", small)]
    assert slices_of(SimpleNamespace(columns=columns), gains, always=[30])[0] == "b = 1 and s = 1"


def test_slices_hold_at_most_a_fifth_of_the_rows_and_do_not_overlap_by_half(table):
    gains = table.noise * 0.1 + (table.a >= 4) - 0.5
    search = RemovalSearch(table.columns, np.arange(N), gains)
    rows = [one.rows(table.columns) for one in search.find(8)]
    assert len(rows) >= 4
    for number, one in enumerate(rows):
        assert 40 <= one.sum() <= N // 5
        assert all((one & other).sum() <= 0.5 * (one | other).sum() for other in rows[:number])
    sums = [gains[one].sum() for one in rows]
    assert sums == sorted(sums, reverse=True)


def test_chance_alone_is_hardly_ever_found(table):
    rng = np.random.default_rng(2)
    alarms = sum(bool(slices_of(table, rng.normal(size=N), always=[1])) for _ in range(60))
    assert alarms <= 8  # 0.05 of 60 is 3, and 8 would be exceeded once in 200 times


def test_equal_gains_and_harm_alone_have_no_slices(table):
    for gains in (np.zeros(N), np.full(N, 2.0), -1.0 + 0.01 * table.noise + 0.5 * (table.a == 3)):
        assert slices_of(table, gains) == []
