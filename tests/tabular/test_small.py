"""Which groups are too small to be compared."""

import numpy as np
import pytest

from fado.tabular import check_min_group_size, small_groups, tell_small


@pytest.mark.parametrize(
    ("sizes", "min_group_size", "small"),
    [
        ([9970, 30], 30, [False, False]),  # enough rows
        ([9971, 29], 30, [False, True]),
        ([71, 29], 30, [False, False]),  # few rows, but a good part of the table
        ([990, 10], 30, [False, False]),  # exactly 1 %
        ([991, 9], 30, [False, True]),
        ([991, 0, 9], 30, [False, False, True]),  # a group without rows is none
        ([99999, 1], 0, [False, False]),
        ([9900, 99, 1], 100, [False, True, True]),
        ([], 30, []),
    ],
)
def test_small_is_few_rows_and_little_of_the_table(sizes, min_group_size, small):
    assert small_groups(sizes, min_group_size).tolist() == small


def test_the_sentence_names_groups_with_their_rows():
    sizes = np.array([9000, 1, 12])
    told = tell_small(["'a'", "'b'", "'c'"], sizes, small_groups(sizes), 30)
    assert (
        told == "Groups 'b' (1 row), 'c' (12 rows), with fewer than 30 rows and less than 1 % of the table,"
    )


def test_the_sentence_leaves_names_as_they_are():
    sizes = np.array([9000, 12])
    told = tell_small(["'a'", "'top 5%'"], sizes, small_groups(sizes), 30)
    assert told.startswith("Group 'top 5%' (12 rows), with fewer than 30 rows and less than 1 % of the")


@pytest.mark.parametrize("wrong", [-1, 2.5, True, "30", None])
def test_what_is_no_number_of_rows_is_refused(wrong):
    with pytest.raises((TypeError, ValueError), match="`min_group_size` must be"):
        check_min_group_size(wrong)
