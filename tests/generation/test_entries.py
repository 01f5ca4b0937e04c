"""Rows put together from the entries of others, as what the table was."""

import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from fado.generation._making import attributes_of, take_entries, take_more_rows

DONORS = np.array([[0, 1, 2], [3, 3, 0]])
COLUMNS = {"n": [1, 2, 3, 4], "t": ["a", "b", None, "d"], "x": [0.5, None, 2.5, 3.5]}
FRAME = pd.DataFrame(COLUMNS, index=["r", "s", "t", "u"])
KINDS = {
    "pandas": FRAME,
    "nullable": FRAME.astype({"n": "Int8", "t": "category", "x": "Float32"}),
    "more categories": FRAME.assign(t=pd.Categorical(FRAME["t"], categories=["d", "z", "b", "a"])),
    "arrow-backed": FRAME.convert_dtypes(dtype_backend="pyarrow"),
    "dates": FRAME.assign(x=pd.date_range("2020-01-01", periods=4, tz="UTC")),
    "booleans": FRAME.assign(n=[True, False, True, True]),
    "one name twice": FRAME.set_axis(["n", "t", "n"], axis=1),
    "polars": pl.DataFrame(COLUMNS, schema_overrides={"n": pl.Int8, "t": pl.Categorical}),
    "pyarrow": pa.table({**COLUMNS, "t": pa.array(COLUMNS["t"]).dictionary_encode()}),
    "pyarrow of pandas": pa.Table.from_pandas(FRAME),
}


def rows_of(frame):
    if isinstance(frame, pa.Table):
        frame = frame.to_pandas()
    frame = frame.to_pandas() if isinstance(frame, pl.DataFrame) else frame
    return frame.astype(object).where(frame.notna(), None).to_numpy().tolist()


def kind_of(frame):
    if isinstance(frame, pd.DataFrame):
        return list(frame.dtypes), list(frame.columns)
    return frame.schema


@pytest.mark.parametrize("name", KINDS)
def test_tables_stay_what_they_are(name):
    X = KINDS[name]
    made = take_entries(X, DONORS)
    assert type(made) is type(X)
    assert kind_of(made) == kind_of(X)
    entries = rows_of(X)
    assert rows_of(made) == [[entries[row][j] for j, row in enumerate(own)] for own in DONORS]
    whole = take_more_rows(X, np.array([0, 1, 2, 3, 2, 1]), DONORS)
    assert kind_of(whole) == kind_of(X)
    assert rows_of(whole) == entries + rows_of(made)


@pytest.mark.parametrize(
    "X",
    [
        np.arange(12, dtype=np.int8).reshape(4, 3),
        np.array([[1, "a", None]] * 4, dtype=object),
        np.ma.masked_equal(np.arange(12).reshape(4, 3), 5),
        [[1, "a", 0.5], [2, "b", None], [3, "c", 2.5], [4, "d", 3.5]],
    ],
    ids=["int8", "objects", "masked", "lists"],
)
def test_arrays_and_lists_stay_what_they_are(X):
    made = take_entries(X, DONORS)
    assert type(made) is type(X)
    assert getattr(made, "dtype", None) == getattr(X, "dtype", None)
    expected = [[X[row][j] for j, row in enumerate(own)] for own in DONORS]
    assert [list(row) for row in made] == expected
    if np.ma.isMaskedArray(X):
        assert made.mask.tolist() == [[False] * 3, [False] * 3]
        assert take_entries(X, np.array([[1, 1, 1]])).mask.tolist() == [[False, False, True]]


def test_a_list_of_arrays_gets_arrays():
    made = take_entries(list(np.arange(12).reshape(4, 3)), DONORS)
    assert [type(row) for row in made] == [np.ndarray] * len(DONORS)
    assert [row.tolist() for row in made] == take_entries(np.arange(12).reshape(4, 3), DONORS).tolist()


def test_other_libraries_tables():
    lazy = KINDS["polars"].lazy()
    assert take_entries(lazy, DONORS).equals(take_entries(KINDS["polars"], DONORS))
    made = take_entries(nw.from_native(KINDS["polars"]), DONORS)
    assert made.to_native().equals(take_entries(KINDS["polars"], DONORS))


def test_row_labels_go_on_counting_or_are_the_parents():
    rows = np.array([0, 1, 2, 3, 2, 1])
    assert take_more_rows(FRAME, rows, DONORS).index.tolist() == ["r", "s", "t", "u", "t", "s"]
    counted = FRAME.reset_index(drop=True)
    assert take_more_rows(counted, rows, DONORS).index.equals(pd.RangeIndex(6))
    assert take_more_rows(counted["n"], rows).index.equals(pd.RangeIndex(6))
    assert take_more_rows(counted["n"].iloc[1:], np.array([0, 1, 2, 0])).index.tolist() == [1, 2, 3, 1]


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame, pa.table])
def test_attributes_that_are_columns_are_taken_from_there(kind):
    X = kind({"sex": ["f", "m", "f"], "old": [True, False, True], "n": [1, 2, 3]})
    rows = np.array([0, 1, 0])
    one = attributes_of("sex", X, rows, named=True)
    assert list(one.to_pylist() if isinstance(X, pa.Table) else one) == ["f", "m", "f"]
    several = attributes_of(["sex", "old"], X, rows, named=True)
    assert type(several) is type(X)
    names = several.column_names if isinstance(X, pa.Table) else several.columns
    assert list(names) == ["sex", "old"]


def test_attributes_that_are_values_keep_their_kind():
    rows = np.array([0, 1, 0])
    given = attributes_of({"sex": ["f", "m"], "old": np.array([1, 0])}, None, rows, named=False)
    assert given["sex"] == ["f", "m", "f"]
    assert given["old"].tolist() == [1, 0, 1]
    frame = attributes_of(pd.DataFrame({"sex": ["f", "m"]}), None, rows, named=False)
    assert frame.equals(pd.DataFrame({"sex": ["f", "m", "f"]}))
    assert attributes_of(None, None, rows, named=False) is None
