import numpy as np
import pytest

from fado.exploration._groups import MOST_GROUPS, ShownGroups, show_groups
from fado.tabular import Variable, column_from, group_rows, variable_from


def test_groups_under_ten_are_pooled():
    groups = show_groups(np.repeat([0, 1, 2, 3], [20, 9, 15, 8]), ("a", "b", "c", "d"))
    assert groups.names == ("a", "c", "(2 small groups)")
    assert groups.sizes.tolist() == [20, 15, 17]
    assert groups.has_pool


def test_a_pool_under_ten_is_hidden():
    groups = show_groups(np.repeat([0, 1, 2], [20, 10, 9]), ("a", "b", "c"))
    assert groups.names == ("a", "b")
    assert (groups.codes == -1).sum() == 9
    assert not groups.has_pool


def test_many_groups_are_pooled_smallest_first():
    sizes = np.arange(20, 40)
    groups = show_groups(np.repeat(np.arange(20), sizes), tuple(map(str, range(20))))
    assert len(groups) == MOST_GROUPS
    assert groups.names[-1] == "(9 small groups)"
    assert groups.sizes[-1] == sizes[:9].sum()
    assert groups.sizes.sum() == sizes.sum()


@pytest.mark.parametrize("n_groups", [MOST_GROUPS, MOST_GROUPS - 1])
def test_a_dozen_groups_are_all_shown(n_groups):
    groups = show_groups(np.repeat(np.arange(n_groups), 10), tuple(map(str, range(n_groups))))
    assert groups.names == tuple(map(str, range(n_groups)))


def test_a_continuous_attribute_is_cut_into_quarters_and_missing_rows():
    numbers = np.r_[np.arange(1.0, 101.0), [np.nan] * 12]
    groups = group_rows([Variable("age", "continuous", numbers)], quarters=True)
    assert groups.names == ("up to 25", "25 to 50", "50 to 75", "over 75", "(missing)")
    assert groups.sizes.tolist() == [25, 25, 25, 25, 12]


def test_quarters_of_few_numbers_have_different_ends():
    numbers = np.r_[np.zeros(80), np.arange(1.0, 21.0)]
    groups = group_rows([Variable("age", "continuous", numbers)], quarters=True)
    assert groups.names == ("up to 0", "over 0")
    assert groups.sizes.tolist() == [80, 20]


def test_crossed_groups_are_those_that_occur():
    sex = variable_from(column_from("sex", ["f", "m", "m", "f"]))
    old = variable_from(column_from("old", ["yes", "yes", "no", "yes"]))
    groups = group_rows([sex, old], quarters=True)
    assert groups.titles == ("sex = f, old = yes", "sex = m, old = no", "sex = m, old = yes")
    assert groups.codes.tolist() == [0, 2, 1, 0]


def test_counts_and_totals_leave_hidden_rows_out():
    groups = ShownGroups(np.array([0, 1, -1, 1]), ("a", "b"))
    assert groups.count(np.array([True, True, True, False])).tolist() == [1, 1]
    assert groups.total(np.array([1.0, 2.0, 4.0, 8.0])).tolist() == [1, 10]
