import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from fado.datasets import temporal_split

DATA = {"month": [7, 0, 5, 6, None, 3], "row": [0, 1, 2, 3, 4, 5]}


@pytest.mark.parametrize("table", [pd.DataFrame(DATA), pl.DataFrame(DATA), pa.table(DATA)], ids=type)
def test_the_default_is_the_suites_split_by_tables_of_the_same_library(table):
    train, test = temporal_split(table)
    assert type(train) is type(test) is type(table)
    assert pa.table(train)["row"].to_pylist() == [1, 2, 5]
    assert pa.table(test)["row"].to_pylist() == [0, 3]


def test_the_input_is_left_alone_rows_keep_their_labels_and_values_may_come_from_a_generator():
    frame = pd.DataFrame(DATA)
    train, test = temporal_split(frame, train=(m for m in range(6)), test=iter([6]))
    assert train.index.tolist() == train["row"].tolist() == [1, 2, 5]
    assert test["row"].tolist() == [3]
    train["row"] = -1
    assert frame["row"].tolist() == DATA["row"]


def test_any_column_and_single_values():
    frame = pd.DataFrame({"region": ["north", "south", "east", "north"], "row": range(4)})
    train, test = temporal_split(frame, column="region", train="north", test=["south", "west"])
    assert train["row"].tolist() == [0, 3]
    assert test["row"].tolist() == [1]


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
    with pytest.raises(TypeError, match="`frame` must be a pandas, polars or pyarrow table, got dict"):
        temporal_split(DATA)
