import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from fado.metrics._groups import encode_groups

SEX = ["f", "m", "f", "m"]
OLD = [True, True, False, True]


@pytest.mark.parametrize(
    "column",
    [
        SEX,
        np.array(SEX),
        np.array(SEX, dtype=object),
        np.array(SEX)[:, np.newaxis],
        pd.Series(SEX, index=[7, 7, 0, 1]),
        pd.Series(SEX, dtype="category"),
        pd.DataFrame({"sex": SEX}),
        pl.Series(SEX),
        pl.Series(SEX, dtype=pl.Categorical),
        pl.DataFrame({"sex": SEX}),
        pa.array(SEX),
        pa.chunked_array([SEX[:1], SEX[1:]]),
        pa.array(SEX).dictionary_encode(),
        pa.table({"sex": SEX}),
        {"sex": SEX},
    ],
    ids=lambda column: f"{type(column).__module__}.{type(column).__name__}",
)
def test_one_attribute_of_any_library(column):
    codes, names = encode_groups(column, 4)
    assert codes.tolist() == [0, 1, 0, 1]
    assert names == ("'f'", "'m'")


def test_levels_are_numbered_as_rows_show_them_or_as_categories_are_declared():
    codes, names = encode_groups(["m", "f", "m"], 3)
    assert codes.tolist() == [0, 1, 0]
    assert names == ("'m'", "'f'")
    declared = pd.Series(["m", "f", None, "m"], dtype=pd.CategoricalDtype(["x", "f", "m"]))
    with pytest.warns(UserWarning, match="missing in 1 of 4 rows"):
        codes, names = encode_groups(declared, 4)
    assert codes.tolist() == [1, 0, 2, 1]
    assert names == ("'f'", "'m'", "(missing)")


@pytest.mark.parametrize(
    ("column", "names"),
    [
        ([1, 0], ("1", "0")),
        ([0.5, 2.0], ("0.5", "2")),
        (np.array([True, False]), ("True", "False")),
        (pd.Series([10, 9], dtype="category"), ("9", "10")),
        ([2**53, 2**53 + 1], ("9007199254740992", "9007199254740993")),
        (pd.cut([5, 15], [0, 10, 20]), ("'(0, 10]'", "'(10, 20]'")),
    ],
)
def test_names_are_what_python_writes(column, names):
    assert encode_groups(column, 2)[1] == names


@pytest.mark.parametrize(
    "table",
    [
        {"sex": SEX, "old": OLD},
        {"sex": pd.Series(SEX, index=[3, 2, 1, 0]), "old": np.array(OLD)},  # by position, not by index
        pd.DataFrame({"sex": SEX, "old": OLD}, index=[5, 5, 5, 5]),
        pl.DataFrame({"sex": SEX, "old": OLD}),
        pa.table({"sex": SEX, "old": OLD}),
    ],
    ids=["dict", "dict of columns", "pandas", "polars", "arrow"],
)
def test_several_attributes_are_crossed(table):
    codes, names = encode_groups(table, 4)
    assert codes.tolist() == [0, 2, 1, 2]
    assert names == ("sex='f', old=True", "sex='f', old=False", "sex='m', old=True")


@pytest.mark.parametrize("as_rows", [list, lambda rows: np.array(rows, dtype=object)], ids=["list", "array"])
def test_unnamed_columns_are_numbered(as_rows):
    codes, names = encode_groups(as_rows([["f", 1], ["m", 1], ["f", 1]]), 3)
    assert codes.tolist() == [0, 1, 0]
    assert names == ("z0='f', z1=1", "z0='m', z1=1")


def test_duplicate_column_names_are_two_attributes():
    table = pd.DataFrame([["f", "x"], ["f", "y"]], columns=["a", "a"])
    assert encode_groups(table, 2)[0].tolist() == [0, 1]


@pytest.mark.parametrize(
    "column",
    [
        ["NA", None, "missing", None],
        ["NA", float("nan"), "missing", None],
        np.array(["NA", None, "missing", np.nan], dtype=object),
        pd.Series(["NA", None, "missing", pd.NA]),
        pd.Series(["NA", None, "missing", None], dtype=pd.CategoricalDtype(["NA", "missing"])),
        pl.Series(["NA", None, "missing", None]),
        pl.Series(["NA", None, "missing", None], dtype=pl.Categorical),
        pa.array(["NA", None, "missing", None]),
        pa.array(["NA", None, "missing", None]).dictionary_encode(),
    ],
    ids=lambda column: f"{type(column).__module__}.{type(column).__name__}",
)
def test_missing_values_are_one_group_apart_from_their_namesakes(column):
    with pytest.warns(
        UserWarning,
        match=r"'z' is missing in 2 of 4 rows: they are a group of their own, '\(missing\)'\.",
    ):
        codes, names = encode_groups(column, 4)
    assert [names[code] for code in codes] == ["'NA'", "(missing)", "'missing'", "(missing)"]


def test_a_level_called_missing_is_not_the_missing_one():
    with pytest.warns(UserWarning, match=r"they are a group of their own, '\(no value\)'"):
        codes, names = encode_groups(["(missing)", None], 2)
    assert [names[code] for code in codes] == ["'(missing)'", "(no value)"]


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame, pa.table], ids=["pandas", "polars", "arrow"])
def test_missing_numbers_are_a_group_and_the_warning_names_the_attribute(frame):
    with pytest.warns(UserWarning, match="Protected attribute 'age' is missing in 1 of 3 rows"):
        codes, names = encode_groups(frame({"age": [30, None, 50], "sex": ["f", "f", "m"]}), 3)
    assert len(set(codes.tolist())) == 3
    assert names[codes[1]] == "age=(missing), sex='f'"


@pytest.mark.parametrize(
    "column",
    [
        pd.Series(["f", "m"], dtype=pd.CategoricalDtype(["f", "x", "m"])),
        pl.Series(["f", "m"], dtype=pl.Enum(["f", "x", "m"])),
        pa.DictionaryArray.from_arrays([0, 2], ["f", "x", "m"]),
    ],
    ids=["pandas", "polars", "arrow"],
)
def test_a_declared_level_that_no_row_holds_is_no_group(column):
    codes, names = encode_groups(column, 2)
    assert codes.tolist() == [0, 1]
    assert names == ("'f'", "'m'")
    assert encode_groups({"sex": column, "old": [1, 1]}, 2)[1] == ("sex='f', old=1", "sex='m', old=1")


def test_a_value_that_a_polars_categorical_saw_elsewhere_is_no_group():
    column = pl.Series(["f", "m", "x"], dtype=pl.Categorical)
    assert encode_groups(column[:2], 2)[1] == ("'f'", "'m'")


def test_as_many_groups_as_rows():
    texts = [f"{number:04}" for number in range(3000)]
    codes, names = encode_groups({"a": texts, "b": texts}, 3000)
    assert codes.tolist() == list(range(3000))
    assert names[-1] == "a='2999', b='2999'"


def test_numbers_are_groups_up_to_twenty():
    assert len(encode_groups(np.arange(40) % 20, 40)[1]) == 20
    with pytest.raises(
        ValueError, match="attribute 'age' has 21 different numbers, too many for groups: cut it into a few"
    ):
        encode_groups({"age": np.arange(42) % 21}, 42)


@pytest.mark.parametrize(
    ("groups", "error", "message"),
    [
        (["f"], ValueError, r"`sensitive_features` must have as many rows as `y_true` \(2\), got 1"),
        ({"a": ["f", "m"], "b": ["x"]}, ValueError, r"as many rows as `y_true` \(2\), got 1"),
        ({}, ValueError, "`sensitive_features` must have at least one column, got none"),
        (None, TypeError, "`sensitive_features` must hold one value per row, got None"),
        ("sex", TypeError, "`sensitive_features` must hold one value per row, got 'sex'"),
        ({"sex": "f"}, TypeError, r"`sensitive_features\['sex'\]` must hold one value per row, got 'f'"),
    ],
)
def test_bad_groups(groups, error, message):
    with pytest.raises(error, match=message):
        encode_groups(groups, 2)
