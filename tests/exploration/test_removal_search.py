"""Slices to remove: the largest sums of gains, of few enough rows, beyond chance."""

from types import SimpleNamespace

import numpy as np
import pytest

from fado.exploration._rows import RemovalSearch
from fado.exploration._slices import BinnedColumn, Condition

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


def found(table, gains, most=5, always=()):
    slices = RemovalSearch(table.columns, np.arange(N), gains).find(most, always)
    return [" and ".join(condition.text for condition in one.conditions) for one in slices]


def test_one_condition_is_found_where_one_says_all(table):
    assert found(table, table.noise + 1.0 * (table.a == 3) - 0.125)[0] == "a = 3"


def test_two_conditions_are_found_where_it_takes_both(table):
    gains = 0.5 * table.noise + 3.0 * ((table.a == 3) & (table.b == 1)) - 1.0 * (table.a == 3)
    assert found(table, gains)[0] == "a = 3 and b = 1"


def test_a_condition_that_adds_nothing_is_not_joined_to_one_of_too_many_rows(table):
    gains = table.noise + 1.0 * (table.b == 1)  # half of the rows: too many to be removed
    gains -= gains.mean()
    assert not any("c =" in one for one in found(table, gains))


def test_conditions_that_cancel_out_alone_are_joined_if_they_are_always_tried(table):
    rng = np.random.default_rng(1)
    many = [column(number, f"n{number}", rng.integers(0, 2, N)) for number in range(30)]
    by_b = [BinnedColumn(30, "b", table.columns[1].codes, tuple(
        Condition(30, level, level, f"b = {level}") for level in (0, 1)))]  # fmt: skip
    small = (rng.random(N) < 0.15).astype(int)
    by_s = [column(31, "s", small)]
    gains = 0.3 * rng.normal(size=N) + np.where(table.b == 1, 1.0, -1.0) * small
    # each noise column pushed ahead, so that neither b nor s is among the best alone
    gains += sum(0.02 * (one.codes == 1) for one in many) - 0.3
    search = RemovalSearch([*many, *by_b, *by_s], np.arange(N), gains)
    slices = [" and ".join(c.text for c in one.conditions) for one in search.find(5, [30])]
    assert slices[0] == "b = 1 and s = 1"


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
    alarms = sum(bool(found(table, rng.normal(size=N), always=[1])) for _ in range(60))
    assert alarms <= 8  # 0.05 of 60 is 3, and 8 would be exceeded once in 200 times


@pytest.mark.parametrize("gains", [np.zeros(N), np.full(N, 2.0)])
def test_equal_gains_have_no_slices(table, gains):
    assert found(table, gains) == []


def test_harm_alone_has_no_slices(table):
    assert found(table, -1.0 + 0.01 * table.noise + 0.5 * (table.a == 3)) == []
