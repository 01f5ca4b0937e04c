from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fado.tabular import protected_from, short_name, source_column

DATA = {
    "customer_age": [30, 50, None, 70],
    "income": [0.1, 0.3, 0.5, None],
    "source": ["WEB", "APP", None, "WEB"],
    "flag": [True, None, False, True],
}
TABLES = {
    "pandas": pd.DataFrame(DATA),
    "pandas nullable": pd.DataFrame(DATA).convert_dtypes(),
    "pandas arrow": pd.DataFrame(DATA).convert_dtypes(dtype_backend="pyarrow"),
    "pandas categories": pd.DataFrame(DATA).astype({"customer_age": "category", "source": "category"}),
    "polars": pl.DataFrame(DATA),
    "polars categories": pl.DataFrame(DATA, schema_overrides={"source": pl.Categorical}),
    "pyarrow": pa.table(DATA),
    "pyarrow dictionary": pa.table(DATA).set_column(
        2, "source", pa.array(DATA["source"]).dictionary_encode()
    ),
}


def as_list(series):
    return [None if pd.isna(value) else value for value in series]


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES.keys())
@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("customer_age>=50", [False, True, None, True]),
        ("customer_age>50", [False, False, None, True]),
        ("customer_age<=50", [True, True, None, False]),
        ("customer_age<50", [True, False, None, False]),
        ("customer_age==50", [False, True, None, False]),
        ("customer_age >= 49.5", [False, True, None, True]),
        ("income>=3e-1", [False, True, True, None]),
        ("source==WEB", [True, False, None, True]),
        ("source == 'WEB'", [True, False, None, True]),
        ('source=="APP"', [False, True, None, False]),
        ("source==web", [False, False, None, False]),
        ("flag==true", [True, None, False, True]),
        ("flag==0", [False, None, True, False]),
    ],
)
def test_a_comparison_gives_the_same_groups_from_every_library(table, expression, expected):
    result = protected_from(table, expression)
    assert as_list(result) == expected
    assert result.dtype == "boolean"
    assert result.name == expression


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES.keys())
def test_a_plain_name_gives_the_column(table):
    result = protected_from(table, "source")
    assert isinstance(result, pd.Series)
    assert result.name == "source"
    assert as_list(result) == DATA["source"]
    assert source_column(table, "source") == "source"


def test_whitespace_around_an_expression_is_ignored():
    frame = TABLES["pandas"]
    assert protected_from(frame, "  customer_age >= 50 ").name == "customer_age >= 50"
    assert protected_from(frame, " source ").name == "source"
    assert short_name(frame, "  customer_age >= 50 ") == "customer_age>=50"
    assert short_name(frame, " source ") == "source"


def test_a_column_named_like_the_expression_wins():
    frame = pd.DataFrame({"Charlson>0": ["yes", "no"], "Charlson": [0, 0]})
    assert protected_from(frame, "Charlson>0").tolist() == ["yes", "no"]
    assert source_column(frame, "Charlson>0") == "Charlson>0"


@pytest.mark.parametrize(
    ("expression", "column"),
    [
        ("a>1", "a"),
        ("a>b>1", "a>b"),
        ("a>=1", "a"),
        ("a b<2", "a b"),
        ("a==b==1", "a==b"),
        (">=>2", ">="),
    ],
)
def test_the_longest_column_that_fits_is_the_source(expression, column):
    frame = pd.DataFrame({name: [1, 2] for name in ("a", "a>b", "a>", "a b", "a==b", "b", ">=")})
    assert source_column(frame, expression) == column


def test_a_pandas_index_is_kept():
    frame = pd.DataFrame({"age": [60, 20]}, index=["b", "b"])
    result = protected_from(frame, "age>=50")
    assert result.index.tolist() == ["b", "b"]
    assert result.tolist() == [True, False]


def test_float32_is_compared_in_its_own_precision():
    numbers = np.array([0.3, 0.4], dtype=np.float32)
    for frame in (pd.DataFrame({"x": numbers}), pl.DataFrame({"x": numbers}), pa.table({"x": numbers})):
        assert protected_from(frame, "x==0.3").tolist() == [True, False]
        assert protected_from(frame, "x>0.3").tolist() == [False, True]


def test_decimals_and_objects_are_numbers():
    decimals = [Decimal("1.50"), None, Decimal("2.00")]
    for frame in (pl.DataFrame({"x": decimals}), pa.table({"x": decimals})):
        assert as_list(protected_from(frame, "x==1.5")) == [True, None, False]
    objects = pd.DataFrame({"x": pd.Series([1, None, 2], dtype=object)})
    assert as_list(protected_from(objects, "x>1")) == [False, None, True]


def test_nan_is_missing_in_polars_too():
    # polars itself takes NaN for the largest number.
    assert as_list(protected_from(pl.DataFrame({"x": [1.0, float("nan")]}), "x>=0")) == [True, None]


def test_a_column_without_any_value_is_missing_throughout():
    for frame in (pd.DataFrame({"x": [None, None]}), pl.DataFrame({"x": [None, None]})):
        assert as_list(protected_from(frame, "x==1")) == [None, None]


def test_digits_in_a_text_column_are_text():
    frame = pd.DataFrame({"zip": ["0123", "123"]})
    assert protected_from(frame, "zip==0123").tolist() == [True, False]


@given(
    st.lists(st.integers(-5, 5), min_size=1),
    st.sampled_from([">=", ">", "<=", "<", "=="]),
    st.integers(-6, 6),
)
def test_a_comparison_is_what_python_says(numbers, symbol, value):
    frame = pd.DataFrame({"x": numbers})
    expected = [eval(f"{number} {symbol} {value}") for number in numbers]
    assert protected_from(frame, f"x{symbol}{value}").tolist() == expected


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("custmer_age>=50", r"got 'custmer_age'; the closest are \['customer_age'\]\."),
        ("Source", r"got 'Source'; the closest are \['source'\]\."),
        ("xyz", r"got 'xyz'; the table has \['customer_age', 'income', 'source', 'flag'\]\."),
        ("income!=1", r"must name a column of the table, alone or compared by one of >=, <=, ==, >, <"),
        ("", "must name a column"),
        ("customer_age>=", "must give a value after '>=', got 'customer_age>='"),
        ("customer_age>=old", "'customer_age', a column of numbers, with a number, got 'customer_age>=old'"),
        ("customer_age>nan", "a column of numbers, with a number, got 'customer_age>nan'"),
        ("source>=WEB", "'source', a column of text, with '==' only, got 'source>=WEB'"),
        ("flag==maybe", "'flag', a column of booleans, as '==true' or '==false', got 'flag==maybe'"),
        ("flag>0", "a column of booleans, as '==true' or '==false', got 'flag>0'"),
    ],
)
def test_a_wrong_expression_is_refused_with_the_reason(expression, message):
    with pytest.raises(ValueError, match=message):
        protected_from(TABLES["pandas"], expression)


def test_a_long_table_is_not_listed_in_full():
    frame = pd.DataFrame({f"column{i}": [0] for i in range(12)})
    with pytest.raises(ValueError, match=r"'column9'\] and more\."):
        protected_from(frame, "zzz")


def test_a_comparison_of_dates_is_refused():
    frame = pd.DataFrame({"opened": pd.to_datetime(["2024-01-01"])})
    with pytest.raises(ValueError, match="'opened' is of type datetime64"):
        protected_from(frame, "opened>=2024")


def test_repeated_column_names_are_refused():
    frame = pd.DataFrame([[1, 2]], columns=["age", "age"])
    with pytest.raises(ValueError, match="`frame` must have distinct column names, got 'age' more than once"):
        protected_from(frame, "age>1")


@pytest.mark.parametrize(
    "frame", [[1, 2], np.zeros((2, 2)), pl.LazyFrame(DATA)], ids=["list", "array", "lazy"]
)
def test_what_is_no_table_is_refused(frame):
    with pytest.raises(TypeError, match="`frame` must be a pandas, polars or pyarrow table, got"):
        protected_from(frame, "a")


def test_an_expression_that_is_no_string_is_refused():
    with pytest.raises(TypeError, match="`expression` must be a string, got int"):
        protected_from(TABLES["pandas"], 5)
