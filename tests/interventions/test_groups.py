import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from fado._frames import Table
from fado.interventions._groups import groups_of

SEX = ["m", "f", "f", "m"]
OLD = [True, True, False, True]
X = Table.from_input(np.zeros((4, 1)))


@pytest.mark.parametrize(
    "column",
    [
        SEX,
        np.array(SEX),
        pd.Series(SEX, index=[7, 7, 0, 1]),
        pd.Series(SEX, dtype="category"),
        pd.DataFrame({"sex": SEX}),
        pl.Series(SEX),
        pl.DataFrame({"sex": SEX}),
        pa.array(SEX),
        pa.table({"sex": SEX}),
        {"sex": SEX},
    ],
    ids=lambda column: f"{type(column).__module__}.{type(column).__name__}",
)
def test_one_attribute_of_any_library(column):
    groups = groups_of(column, X)
    assert groups.codes.tolist() == [1, 0, 0, 1]
    assert groups.names == ("'f'", "'m'")


def test_several_attributes_are_crossed_into_the_combinations_that_occur():
    groups = groups_of({"sex": SEX, "old": OLD}, X)
    assert groups.codes.tolist() == [2, 1, 0, 2]
    assert groups.names == ("sex='f', old=False", "sex='f', old=True", "sex='m', old=True")
    three = groups_of({"sex": SEX, "old": OLD, "n": [1, 1, 1, 2]}, X)
    assert three.codes.tolist() == [2, 1, 0, 3]
    assert three.names[3] == "sex='m', old=True, n=2"


@pytest.mark.parametrize("missing", [None, np.nan, pd.NA])
def test_missing_values_are_a_group_of_their_own(missing):
    with pytest.warns(UserWarning, match=r"'z' is missing in 1 of 4 rows.*'\(missing\)'"):
        groups = groups_of(pd.Series(["NA", missing, "NA", "a"], dtype=object), X)
    assert groups.codes.tolist() == [0, 2, 0, 1]
    assert groups.names == ("'NA'", "'a'", "(missing)")


def test_missing_numbers_and_booleans():
    with pytest.warns(UserWarning, match="missing in 2 of 4"):
        assert groups_of([1.0, np.nan, 0.5, np.nan], X).names == ("0.5", "1", "(missing)")
    with pytest.warns(UserWarning, match="missing in 1 of 4"):
        assert groups_of(pd.array([True, None, False, True]), X).codes.tolist() == [1, 2, 0, 1]


def test_names_of_columns_of_the_features():
    frame = pd.DataFrame({"sex": SEX, "when": pd.Timestamp("2020-01-01"), "old": OLD})
    table = Table.from_input(frame, only={"sex", "old"})
    assert groups_of("sex", table).codes.tolist() == [1, 0, 0, 1]
    assert groups_of(["sex", "old"], table).codes.tolist() == [2, 1, 0, 2]
    with pytest.raises(ValueError, match="names 'olt', which is not a column of X; did you mean 'old'"):
        groups_of("olt", table)


def test_without_attributes_all_rows_are_one_group():
    groups = groups_of(None, X)
    assert groups.codes.tolist() == [0, 0, 0, 0]
    assert groups.names == ("all rows",)
    assert len(groups) == 1


def test_numbers_that_are_no_groups_are_refused():
    table = Table.from_input(np.zeros((30, 1)))
    assert len(groups_of(np.arange(30) % 20, table)) == 20
    with pytest.raises(ValueError, match="'age' has 21 different numbers, too many for groups: cut it"):
        groups_of({"age": np.arange(30) % 21}, table)
