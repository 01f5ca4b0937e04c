import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from fado.datasets import temporal_split

DATA = {"month": [7, 0, 5, 6, None, 3], "row": [0, 1, 2, 3, 4, 5]}


def test_the_default_is_the_suites_split():
    train, test = temporal_split(pd.DataFrame(DATA))
    assert train["row"].tolist() == [1, 2, 5]
    assert test["row"].tolist() == [0, 3]
    assert train.index.tolist() == [1, 2, 5]


@pytest.mark.parametrize("table", [pl.DataFrame(DATA), pa.table(DATA)], ids=["polars", "pyarrow"])
def test_the_parts_are_tables_of_the_same_library(table):
    train, test = temporal_split(table)
    assert type(train) is type(test) is type(table)
    assert pa.table(train)["row"].to_pylist() == [1, 2, 5]
    assert pa.table(test)["row"].to_pylist() == [0, 3]


def test_any_column_and_single_values():
    frame = pd.DataFrame({"region": ["north", "south", "east", "north"], "row": range(4)})
    train, test = temporal_split(frame, column="region", train="north", test=["south", "west"])
    assert train["row"].tolist() == [0, 3]
    assert test["row"].tolist() == [1]


def test_values_may_come_from_a_generator():
    train, test = temporal_split(pd.DataFrame(DATA), train=(m for m in range(6)), test=iter([6]))
    assert train["row"].tolist() == [1, 2, 5]
    assert test["row"].tolist() == [3]


def test_the_input_is_left_alone():
    frame = pd.DataFrame(DATA)
    train, _ = temporal_split(frame)
    train["row"] = -1
    assert frame["row"].tolist() == DATA["row"]


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table], ids=["pandas", "polars", "pyarrow"])
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            {"column": "months"},
            r"`column` must name a column of the table, got 'months'; did you mean 'month'\?",
        ),
        ({"train": (0, 1, 2), "test": (2, 1)}, r"`train` and `test` must not overlap, got \[1, 2\] in both"),
        ({"train": (8, 9)}, r"`train` must hold values of column 'month', got \[8, 9\], which no row has"),
        ({"test": ()}, r"`test` must hold values of column 'month', got \[\], which no row has"),
    ],
)
def test_wrong_arguments_are_refused(make, arguments, message):
    with pytest.raises(ValueError, match=message):
        temporal_split(make(DATA), **arguments)


def test_what_is_no_table_is_refused():
    with pytest.raises(TypeError, match="`frame` must be a pandas, polars or pyarrow table, got dict"):
        temporal_split(DATA)
