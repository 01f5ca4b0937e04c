"""What one column may come as; `test_table.py` has the tables."""

from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from fado.tabular import attribute_columns, column_from, group_rows, one_column, variable_from

BIG = [2**53, 2**53 + 1, 2**53]
AS_BIG = {
    "list": BIG,
    "numpy": np.array(BIG),
    "numpy objects": np.array(BIG, dtype=object),
    "unsigned": np.array(BIG, dtype=np.uint64),
    "big-endian": np.array(BIG, dtype=">i8"),
    "pandas": pd.Series(BIG),
    "pandas nullable": pd.Series(BIG, dtype="Int64"),
    "pandas arrow": pd.Series(BIG, dtype="int64[pyarrow]"),
    "pandas categorical": pd.Series(BIG, dtype="category"),
    "pandas sparse": pd.Series(BIG, dtype="Sparse[int64]"),
    "polars": pl.Series(BIG),
    "arrow": pa.array(BIG),
    "arrow in parts": pa.chunked_array([BIG[:1], BIG[1:]]),
    "arrow dictionary": pa.array(BIG).dictionary_encode(),
}


@pytest.mark.parametrize("values", AS_BIG.values(), ids=AS_BIG)
def test_whole_numbers_stay_exact(values):
    variable = variable_from(column_from("id", values))
    assert variable.classes == (2**53, 2**53 + 1)
    assert variable.labels.tolist() == [0, 1, 0]
    assert group_rows([variable]).names == ("9007199254740992", "9007199254740993")


@pytest.mark.parametrize(
    "values",
    [
        [2**53, 2**53 + 1, None],
        np.array([2**53, 2**53 + 1, None], dtype=object),
        pd.Series([2**53, 2**53 + 1, None], dtype="Int64"),
        pd.Series([2**53, 2**53 + 1, None], dtype=object),
        pl.Series([2**53, 2**53 + 1, None]),
        np.ma.masked_array([2**53, 2**53 + 1, 0], mask=[0, 0, 1]),
    ],
    ids=["list", "objects", "nullable", "pandas objects", "polars", "masked"],
)
def test_whole_numbers_stay_exact_beside_missing_ones(values):
    codes, entries = column_from("id", values).encode()
    assert codes.tolist() == [0, 1, -1]
    assert list(entries) == [2**53, 2**53 + 1]


AS_BANDS = {
    "pandas categorical": pd.cut(pd.Series([5, 25, 15, None]), [0, 10, 20, 30, 40]),
    "categorical alone": pd.cut([5, 25, 15, np.nan], [0, 10, 20, 30, 40]),
    "intervals": pd.Series(pd.cut([5, 25, 15, np.nan], [0, 10, 20, 30, 40])).astype("interval"),
}


@pytest.mark.parametrize("bands", AS_BANDS.values(), ids=AS_BANDS)
def test_bands_of_numbers_are_classes(bands):
    variable = variable_from(column_from("age", bands))
    assert [text.removesuffix("]").replace(".0", "") for text in variable.classes] == [
        "(0, 10",
        "(10, 20",
        "(20, 30",
        "unknown",
    ]
    assert variable.labels.tolist() == [0, 2, 1, 3]


def test_sparse_pandas_columns():
    assert column_from("c", pd.Series([0, 1, 0], dtype="Sparse[int]")).numbers().tolist() == [0, 1, 0]
    floats = column_from("c", pd.Series([0.0, np.nan, 1.0], dtype="Sparse[float]"))
    np.testing.assert_array_equal(floats.numbers(), [0, np.nan, 1])
    flags = variable_from(column_from("c", pd.arrays.SparseArray([True, False, True])))
    assert flags.classes == (False, True)
    texts = column_from("c", pd.Series(["a", "b", "a"], dtype=pd.SparseDtype(object, "a")))
    assert texts.levels == ("a", "b")


@pytest.mark.parametrize("dtype", [">i2", ">i8", ">u4", ">f4", ">f8", np.longdouble, "<i8", np.float16])
@pytest.mark.parametrize(
    "form",
    [
        lambda array: column_from("c", array),
        lambda array: column_from("c", pd.Series(array)),
        lambda array: attribute_columns(pd.DataFrame({"c": array}))[0],
        lambda array: attribute_columns(array[:, np.newaxis])[0],
        lambda array: one_column(np.repeat(array, 2)[::2], "c"),  # not contiguous
    ],
    ids=["numpy", "Series", "DataFrame", "matrix", "strided"],
)
def test_numbers_of_any_width_and_byte_order(dtype, form):
    column = form(np.array([3, 1, 3], dtype=dtype))
    assert column.numbers().tolist() == [3, 1, 3]
    assert variable_from(column).classes == (1, 3)


def test_text_of_any_byte_order_memory_maps_and_large_numbers(tmp_path):
    assert column_from("c", np.array(["b", "a"], dtype=">U1")).levels == ("a", "b")
    np.save(tmp_path / "y.npy", np.array([3, 1, 3]))
    mapped = np.load(tmp_path / "y.npy", mmap_mode="r")
    assert variable_from(one_column(mapped, "y")).labels.tolist() == [1, 0, 1]
    assert column_from("c", pl.Series([1, 2**100], dtype=pl.Int128)).numbers().tolist() == [1, 2.0**100]
    assert not variable_from(column_from("c", np.ma.masked_array([1, 2, 3]))).has_missing


def test_categories_of_many_numbers_are_classes_still_and_nan_is_none():
    variable = variable_from(column_from("c", pd.Series(np.arange(60) % 30, dtype="category")))
    assert (variable.kind, variable.classes) == ("classes", tuple(range(30)))
    column = column_from("c", pa.array([2.0, float("nan"), None, 1.0]).dictionary_encode())
    codes, entries = column.encode()
    assert (codes.tolist(), list(entries)) == ([1, -1, -1, 0], [1, 2])


@pytest.mark.filterwarnings("ignore:the matrix subclass:PendingDeprecationWarning")
def test_tables_of_any_kind_are_attributes():
    tables = (
        (np.matrix([[1, 2], [3, 4]]), {"z0": [1, 3], "z1": [2, 4]}),
        (np.matrix([[1], [3]]), {"z": [1, 3]}),
        (np.ma.masked_array([[1, 2], [3, 4]], mask=[[0, 1], [0, 0]]), {"z0": [1, 3], "z1": [np.nan, 4]}),
        (pl.LazyFrame({"a": [1, 2], "b": [True, None]}), {"a": [1, 2], "b": [1, np.nan]}),
        (pd.DataFrame({"flag": pd.Series([0, 1, 0], dtype="Sparse[int]")}), {"flag": [0, 1, 0]}),
    )
    for values, expected in tables:
        columns = {column.name: column.numbers() for column in attribute_columns(values)}
        np.testing.assert_equal(columns, expected)


def arrow(kind, values):
    return pd.Series(values, dtype=pd.ArrowDtype(kind))


def masked(values):
    return np.ma.masked_array(values, mask=[0, 1, 0])


@pytest.mark.parametrize(
    ("values", "classes"),
    [
        (arrow(pa.string(), ["b", None, "a"]), ("a", "b")),
        (arrow(pa.large_string(), ["b", None, "a"]), ("a", "b")),
        (arrow(pa.dictionary(pa.int8(), pa.string()), ["b", None, "a"]), ("a", "b")),
        (arrow(pa.bool_(), [True, None, False]), (False, True)),
        (arrow(pa.int8(), [2, None, 1]), (1, 2)),
        (arrow(pa.float32(), [2.0, None, 0.5]), (0.5, 2)),
        (arrow(pa.decimal128(4, 2), [Decimal(2), None, Decimal("0.25")]), (0.25, 2)),
        (pl.Series([2, None, 1], dtype=pl.Int128), (1, 2)),
        (masked([3, 2, 1]), (1, 3)),
        (masked([2.5, 1.5, 0.5]), (0.5, 2.5)),
        (masked([True, True, False]), (False, True)),
        (masked(list("cba")), ("a", "c")),
    ],
)
def test_missing_entries_of_any_library(values, classes):
    variable = variable_from(column_from("c", values))
    assert variable.classes == (*classes, "unknown")
    assert variable.labels.tolist() == [1, 2, 0]


@pytest.mark.parametrize(
    ("values", "classes"),
    [
        (pd.Series([10, 2, 10], dtype="category"), (2, 10)),
        (pd.Series([0.5, -1.0, 0.5], dtype="category"), (-1, 0.5)),
        (pd.Series([True, False, True], dtype="category"), (False, True)),
        (pa.array([10, 2, 10]).dictionary_encode(), (2, 10)),
        (pd.Series([10, 2, 10], dtype=pd.CategoricalDtype([99, 10, 2])), (2, 10)),
        (pd.Series(["10", "2", "10"], dtype="category"), ("10", "2")),
    ],
    ids=["whole", "floats", "booleans", "arrow", "unused", "text"],
)
def test_categories_of_numbers_keep_them_as_labels(values, classes):
    column = column_from("c", values)
    variable = variable_from(column)
    assert variable.classes == classes
    assert variable.labels.tolist() == ([0, 1, 0] if isinstance(classes[0], str) else [1, 0, 1])
    assert variable_from(column.take(np.array([1, 0]))).classes == classes


@pytest.mark.parametrize(
    ("values", "error", "message"),
    [
        (None, TypeError, "`y` must hold one value per row, got None"),
        ("text", TypeError, "`y` must hold one value per row, got 'text'"),
        (3, TypeError, "`y` must hold one value per row, got 3"),
        ({"a": 1}, TypeError, "`y` must hold one value per row, got {'a': 1}"),
        ({1}, TypeError, "`y` must hold one value per row, got {1}"),
        (np.array(3), ValueError, r"`y` must be one-dimensional, got shape \(\)"),
        (np.ones((2, 2)), ValueError, r"`y` must be one-dimensional, got shape \(2, 2\)"),
        ([[1], [2]], ValueError, r"`y` must be one-dimensional, got shape \(2, 1\)"),
    ],
)
def test_what_is_no_column_is_refused(values, error, message):
    with pytest.raises(error, match=message):
        one_column(values, "y")
