import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_matrix

from fado.tabular import join_problems, read_problem

NAMES = ["u", "v"]


def problem(X, y=None, z=None, **more):
    n = len(X)
    y = np.arange(n) % 2 if y is None else y
    return read_problem(X, y, {"z": ["f", "m"] * (n // 2) if z is None else z}, **more)


def frame(**columns):
    return pd.DataFrame(columns)


def column(first, second):
    """Join two columns of two rows each, and give what came of it."""
    joined = join_problems(problem(frame(u=first)), problem(frame(u=second)))
    return joined.table.columns[0]


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ([1, 2], [3, 4], [1, 2, 3, 4]),
        ([1, 2], [0.5, np.nan], [1, 2, 0.5, np.nan]),
        ([True, False], [True, True], [1, 0, 1, 1]),
        ([True, False], [3, 4], [1, 0, 3, 4]),
        (np.array([1, 2], dtype=np.int8), np.array([300, 4]), [1, 2, 300, 4]),
    ],
)
def test_numbers_of_any_kind_stay_numbers(first, second, expected):
    joined = column(first, second)
    assert joined.levels is None
    np.testing.assert_array_equal(joined.numbers(), expected)


def test_numbers_of_one_kind_keep_it():
    assert column([1, 2], [3, 4]).label_of(3) == 3
    assert column([True, False], [True, True]).is_boolean


@pytest.mark.parametrize("kind", [object, "category"])
def test_levels_are_those_of_both(kind):
    joined = column(pd.Series(["b", "d"], dtype=kind), pd.Series(["a", None], dtype=kind))
    assert joined.levels == ("a", "b", "d")
    np.testing.assert_array_equal(joined.codes(), [1, 2, 0, -1])
    mixed = column(["b", "d"], pd.Categorical(["a", "d"]))
    assert mixed.levels == ("a", "b", "d")
    np.testing.assert_array_equal(mixed.codes(), [1, 2, 0, 2])


def test_categories_of_numbers_stay_what_they_were():
    joined = column(pd.Categorical([10, 2]), pd.Categorical([9, 2]))
    assert joined.levels == ("10", "2", "9")
    assert joined.labels == (10, 2, 9)
    codes, entries = joined.encode()
    assert [entries[code] for code in codes] == [10, 2, 9, 2]


def test_a_column_without_entries_is_of_whatever_kind_the_other_is():
    joined = column(["a", "b"], [None, None])
    assert joined.levels == ("a", "b")
    np.testing.assert_array_equal(joined.codes(), [0, 1, -1, -1])
    np.testing.assert_array_equal(column([None, None], ["a", "b"]).codes(), [-1, -1, 0, 1])
    np.testing.assert_array_equal(column([None, None], [1, 2]).numbers(), [np.nan, np.nan, 1, 2])


@pytest.mark.parametrize(
    ("first", "second", "told"),
    [
        ([1, 2], ["a", "b"], "'u' holds numbers, and that of `validation` text: convert it"),
        (["a", "b"], [1, 2], "'u' holds text, and that of `validation` numbers: convert it"),
        (pd.Categorical([1, 2]), ["1", "b"], "holds categories of numbers, and that of `validation` text"),
        (pd.Categorical([1, 2]), [1, 2], "holds categories of numbers, and that of `validation` numbers"),
    ],
)
def test_columns_of_different_kinds_are_refused(first, second, told):
    with pytest.raises(ValueError, match=told):
        column(first, second)


def test_columns_are_found_by_name_in_any_order():
    first = problem(frame(u=[1, 2], v=[3, 4]))
    joined = join_problems(first, problem(frame(w=[0, 0], v=[7, 8], u=[5, 6])))
    assert joined.table.names == NAMES
    np.testing.assert_array_equal(joined.table.columns[0].numbers(), [1, 2, 5, 6])
    np.testing.assert_array_equal(joined.table.columns[1].numbers(), [3, 4, 7, 8])
    assert joined.table.is_named
    numbered = pd.DataFrame({0: [1, 2], 1: [3, 4]})
    joined = join_problems(problem(numbered), problem(numbered[[1, 0]]))
    np.testing.assert_array_equal(joined.table.columns[0].numbers(), [1, 2, 1, 2])


def test_columns_without_names_are_found_by_position():
    arrays = np.array([[1, 3], [2, 4]]), np.array([[5, 7], [6, 8]])
    joined = join_problems(*map(problem, arrays))
    np.testing.assert_array_equal(joined.table.columns[1].numbers(), [3, 4, 7, 8])
    assert not joined.table.is_named
    half = join_problems(problem(frame(v=[1, 2], u=[3, 4])), problem(arrays[1]))
    assert half.table.names == ["v", "u"]
    np.testing.assert_array_equal(half.table.columns[0].numbers(), [1, 2, 5, 6])


@pytest.mark.parametrize(
    ("first", "second", "told"),
    [
        (frame(age=[1, 2]), frame(agee=[1, 2]), "`validation` has no column 'age'; did you mean 'agee'"),
        (np.ones((2, 2)), np.ones((2, 3)), "`validation` has 3 columns, and the rows to learn from have 2"),
        (frame(u=[1, 2]), np.ones((2, 2)), "`validation` has 2 columns, and the rows to learn from have 1"),
        (
            pd.DataFrame([[1, 2]] * 2, columns=["u", "u"]),
            frame(u=[1, 2]),
            "Column 'u' is there more than once",
        ),
        (csr_matrix(np.eye(2)), np.eye(2), "sparse matrices cannot be put together"),
    ],
)
def test_tables_that_do_not_fit_are_refused(first, second, told):
    y, z = [0, 1], {"z": ["f", "m"]}
    with pytest.raises(ValueError, match=told):
        join_problems(read_problem(first, y, z), read_problem(second, y, z))


def test_repeated_names_are_told_apart_by_position_where_both_have_them():
    twice = pd.DataFrame([[1, 2], [3, 4]], columns=["u", "u"])
    joined = join_problems(problem(twice), problem(twice + 4))
    np.testing.assert_array_equal(joined.table.columns[1].numbers(), [2, 4, 6, 8])


def test_labels_and_groups_are_those_of_both():
    first = problem(frame(u=[1, 2]), y=["no", "yes"], z=["m", "f"])
    second = problem(frame(u=[1, 2]), y=["yes", "yes"], z=["x", "f"])
    joined = join_problems(first, second)
    assert joined.labels.classes == ("no", "yes")
    assert joined.labels.is_positive.tolist() == [False, True, True, True]
    assert joined.groups.names == ("'f'", "'m'", "'x'")
    assert joined.groups.codes.tolist() == [1, 0, 2, 0]
    chosen = problem(frame(u=[1, 2]), y=["no", "yes"], z=["m", "f"], pos_label="no")
    assert join_problems(chosen, second).labels.is_positive.tolist() == [True, False, False, False]


def test_attributes_are_found_by_name_or_by_position():
    X, y = frame(u=[1, 2]), [0, 1]
    first = read_problem(X, y, {"sex": ["f", "m"], "age": ["old", "young"]})
    second = read_problem(X, y, {"age": ["young", "young"], "sex": ["m", "m"]})
    joined = join_problems(first, second)
    assert [own.name for own in joined.protected] == ["sex", "age"]
    assert joined.protected[0].labels.tolist() == [0, 1, 1, 1]
    unnamed = join_problems(read_problem(X, y, {"sex": ["f", "m"]}), read_problem(X, y, ["m", "f"]))
    assert unnamed.protected[0].labels.tolist() == [0, 1, 1, 0]
    with pytest.raises(ValueError, match="no protected attribute 'sex'"):
        join_problems(read_problem(X, y, {"sex": ["f", "m"]}), read_problem(X, y, {"gender": ["f", "m"]}))
    with pytest.raises(ValueError, match=r"`validation` has 1 protected attributes, .* have 2"):
        join_problems(first, read_problem(X, y, {"sex": ["f", "m"]}))


def test_weights_and_blocks_of_one_side():
    plain, weighted = problem(frame(u=[1, 2])), problem(frame(u=[1, 2]), sample_weight=[2.0, 3.0])
    assert join_problems(plain, plain).sample_weight is None
    assert join_problems(plain, plain).blocks is None
    assert join_problems(plain, weighted).sample_weight.tolist() == [1, 1, 2, 3]
    assert join_problems(weighted, plain).sample_weight.tolist() == [2, 3, 1, 1]
    blocked = problem(frame(u=[1, 2]), groups=["a", "a"])
    assert join_problems(blocked, plain).blocks.tolist() == [0, 0, 1, 2]
    assert join_problems(plain, blocked).blocks.tolist() == [0, 1, 2, 2]
    assert join_problems(blocked, blocked).blocks.tolist() == [0, 0, 1, 1]
