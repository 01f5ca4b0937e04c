import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from fado.tabular import Table, check_learnable, column_from, variable_from
from fado.tabular._problem import _blocks_of, protected_columns, target_column, weights_of
from fado.tabular._variables import check_kinds

TABLE = Table.from_input(pd.DataFrame({"sex": ["f", "m", "f"], "age": [20, 50, 70]}))


def names(found):
    return [column.name for column, _ in found]


def variable(values, kind=None, name="y"):
    return variable_from(column_from(name, values), kind=kind)


def learnable(values, kind=None, name="y"):
    found = variable(values, kind, name)
    check_learnable(found)
    return found


@pytest.mark.parametrize(
    ("values", "classes", "codes"),
    [
        (["b", "a", "b", "a"], ("a", "b"), [1, 0, 1, 0]),
        ([True, False, True, False], (False, True), [1, 0, 1, 0]),
        ([2, 1, 2, 1], (1, 2), [1, 0, 1, 0]),
        ([0.5, -1.0, 0.5, -1.0], (-1, 0.5), [1, 0, 1, 0]),
        (pd.Series(["b", "a", "b", "a"], dtype="category"), ("a", "b"), [1, 0, 1, 0]),
    ],
)
def test_labels_of_any_type_are_classes(values, classes, codes):
    found = variable(values)
    assert found.kind == "classes"
    assert found.classes == classes
    np.testing.assert_array_equal(found.labels, codes)


@pytest.mark.parametrize(("distinct", "kind"), [(20, "classes"), (21, "continuous")])
def test_numbers_are_classes_up_to_twenty_values(distinct, kind):
    assert variable(list(range(distinct)) * 3).kind == kind


def test_kinds_override_the_rule():
    assert variable([1, 2, 3, 1, 2, 3], kind="continuous").kind == "continuous"
    assert variable(list(range(30)) * 3, kind="classes").kind == "classes"
    with pytest.raises(ValueError, match="'y' holds text: it cannot be valued as continuous"):
        variable(["a", "b"], kind="continuous")


def test_kinds_are_checked():
    assert check_kinds({"y": "continuous", "z": "categorical"}, ["y", "z"]) == {
        "y": "continuous",
        "z": "classes",
    }
    with pytest.raises(ValueError, match=r"`kinds` names 'w', which is none of the variables \['y'\]"):
        check_kinds({"w": "continuous"}, ["y"])
    with pytest.raises(ValueError, match=r"`kinds\['y'\]` must be 'classes' or 'continuous', got 'number'"):
        check_kinds({"y": "number"}, ["y"])


@pytest.mark.parametrize("missing", [None, np.nan])
def test_missing_groups_are_a_group_of_their_own(missing):
    with pytest.warns(UserWarning, match=r"'z' is missing in 2 of 6 rows: they are a group .* '\(missing\)'"):
        found = learnable(["a", "b", missing, "a", missing, "b"], name="z")
    assert found.classes == ("a", "b", "(missing)")
    np.testing.assert_array_equal(found.labels, [0, 1, 2, 0, 2, 1])


def test_missing_numbers_are_kept_missing():
    values = [float(value) for value in range(30)]
    with pytest.warns(UserWarning, match="'z' is missing in 1 of 31 rows: its models learn from the others"):
        found = learnable([*values, None], name="z")
    assert found.kind == "continuous"
    assert found.known.sum() == 30


@pytest.mark.parametrize("kind", [None, "continuous"])
def test_one_class_is_refused(kind):
    with pytest.raises(ValueError, match=r"`y` has only one class \(1"):
        learnable([1, 1, 1], kind=kind)
    with pytest.raises(ValueError, match="'z' has only one class"):
        learnable([1, 1, 1], kind=kind, name="z")


def test_all_missing_is_refused():
    with pytest.raises(ValueError, match="'z' is missing in every row"):
        learnable([None, None], name="z")


def test_identifiers_are_refused():
    with pytest.raises(ValueError, match="'z' has 9 classes in 9 rows, like an identifier"):
        learnable([f"id{j}" for j in range(9)], name="z")


def test_a_class_with_one_member_is_named():
    with pytest.warns(UserWarning, match=r"'y' has a class with one member \('b'\)"):
        learnable(["a", "b", "a", "a", "c", "c"])


@pytest.mark.parametrize("bad", [np.nan, None])
def test_missing_targets_are_refused(bad):
    with pytest.raises(ValueError, match=r"`y` has 1 missing or NaN value\(s\)"):
        target_column([1.0, bad, 0.0], 3)
    with pytest.raises(ValueError, match="`y` has 1 missing"):
        target_column(pd.Series(["a", None, "b"]), 3)


def test_infinite_targets_are_refused():
    with pytest.raises(ValueError, match="`y` contains infinity"):
        target_column(np.array([1.0, np.inf]), 2)


def test_lengths_that_differ_are_refused():
    with pytest.raises(ValueError, match="`y` has 2 entries and X has 3 rows"):
        target_column([0, 1], 3)
    with pytest.raises(ValueError, match="attribute 'z' has 2 entries and X has 3 rows"):
        protected_columns(np.array([0, 1]), TABLE)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("sex", ["sex"]),
        (["sex", "age"], ["sex", "age"]),
        (pd.Series([0, 1, 0], name="group"), ["group"]),
        (pd.Series([0, 1, 0]), ["z"]),
        (pl.Series("group", [0, 1, 0]), ["group"]),
        (pl.Series([0, 1, 0]).alias("g"), ["g"]),
        (pa.array([0, 1, 0]), ["z"]),
        ([0, 1, 0], ["z"]),
        (["u", "v", "u"], ["z"]),
        (np.array([0, 1, 0]), ["z"]),
        (np.array([[0], [1], [0]]), ["z"]),
        (np.array([[0, 1], [1, 1], [0, 0]]), ["z0", "z1"]),
        (pd.DataFrame({"p": [0, 1, 0], "q": [1, 1, 0]}), ["p", "q"]),
        (pl.DataFrame({"p": [0, 1, 0]}), ["p"]),
        (pa.table({"p": [0, 1, 0]}), ["p"]),
        ({"p": [0, 1, 0], "q": np.array([1, 1, 0])}, ["p", "q"]),
        (None, []),
    ],
)
def test_protected_attributes_come_in_many_forms(given, expected):
    assert names(protected_columns(given, TABLE)) == expected


def test_names_of_columns_are_told_from_labels():
    found = protected_columns(["sex", "age"], TABLE)
    assert [position for _, position in found] == [0, 1]
    table = Table.from_input(pd.DataFrame({"a": [1, 2], "b": [3, 4]}))
    assert [position for _, position in protected_columns(["a", "b"], table)] == [0, 1]
    assert [position for _, position in protected_columns(["u", "v"], table)] == [None]


def test_unknown_columns_name_the_closest():
    with pytest.raises(ValueError, match="names 'sexx', which is not a column of X; did you mean 'sex'"):
        protected_columns("sexx", TABLE)


def test_an_attribute_called_y_is_refused():
    with pytest.raises(ValueError, match="cannot be called 'y'"):
        protected_columns({"y": [0, 1, 0]}, TABLE)


def test_repeated_attributes_are_refused():
    with pytest.raises(ValueError, match="'sex' more than once"):
        protected_columns(["sex", "sex"], TABLE)


def test_repeated_column_names_are_ambiguous():
    table = Table.from_input(pd.DataFrame([[1, 2], [3, 4]], columns=["a", "a"]))
    with pytest.raises(ValueError, match="names 'a', which 2 columns of X are called"):
        protected_columns("a", table)


def test_encoding_alone_neither_refuses_nor_warns():
    assert variable([1, 1, 1]).classes == (1,)
    assert variable([None, None]).classes == ("(missing)",)
    assert variable([f"id{j}" for j in range(9)]).kind == "classes"


@pytest.mark.parametrize("kind", [int, np.int64])
def test_whole_numbers_name_columns_of_a_pandas_table(kind):
    table = Table.from_input(pd.DataFrame({0: [1, 2, 3], 1: ["a", "b", "a"]}))
    assert [position for _, position in protected_columns(kind(1), table)] == [1]
    assert [position for _, position in protected_columns([kind(1), kind(0)], table)] == [1, 0]
    assert [position for _, position in protected_columns([1, 0, 1], table)] == [None]  # an entry per row
    with pytest.raises(ValueError, match="names 7, which is not a column of X"):
        protected_columns(kind(7), table)


@pytest.mark.parametrize(
    ("weights", "expected"),
    [
        (None, None),
        ([1, 0, 2], [1, 0, 2]),
        (2, [2, 2, 2]),
        (pd.Series([1, 2, 3], index=[5, 5, 5]), [1, 2, 3]),
        (pl.Series([1, 2, 3]), [1, 2, 3]),
        (np.array([1, 2, 3], dtype=">f4"), [1, 2, 3]),
    ],
)
def test_weights(weights, expected):
    found = weights_of(weights, 3)
    assert found is expected if expected is None else found.tolist() == expected


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([1, 2], r"must have one weight per row, shape \(3,\), got \(2,\)"),
        ([1, -1, 1], "must be finite and not negative in every row"),
        ([1, None, 1], "must be finite and not negative in every row"),
        (np.ma.masked_array([1, 2, 3], mask=[0, 1, 0]), "must be finite and not negative in every row"),
        ([0, 0, 0], "`sample_weight` is zero in every row: give some row a weight"),
        (["a", "b", "c"], "`sample_weight` must hold numbers, got text"),
        (np.ones((3, 2)), r"`sample_weight` must be one-dimensional, got shape \(3, 2\)"),
    ],
)
def test_bad_weights(weights, message):
    with pytest.raises(ValueError, match=message):
        weights_of(weights, 3)


def test_blocks_are_equal_entries():
    assert _blocks_of(["b", "a", "b"], 3).tolist() == [1, 0, 1]
    assert _blocks_of([2**53 + 1, 2**53, 2**53], 3).tolist() == [1, 0, 0]
    assert _blocks_of(None, 3) is None
    with pytest.raises(ValueError, match="`groups` must have one entry per row, 3, got 2"):
        _blocks_of([1, 2], 3)
    with pytest.raises(ValueError, match="`groups` is missing in 1 rows"):
        _blocks_of([1, None, 2], 3)
