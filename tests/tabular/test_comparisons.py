import re
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fado.tabular import check_compared, protected_from, short_name, source_column, source_columns

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
        ("customer_age != 50", [True, False, None, True]),
        ("customer_age = 50", [False, True, None, False]),
        ("customer_age in [30, 7e1]", [True, False, None, True]),
        ("source!=WEB", [False, True, None, False]),
        ("source in [WEB]", [True, False, None, True]),
        ("source IN ['APP', TELEAPP,\"WEB\"]", [True, True, None, True]),
        ("flag!=true", [False, None, True, False]),
        ("flag in [true, false]", [True, None, True, True]),
        # false & missing is false, true & missing is missing
        ("customer_age>=50 & source==WEB", [False, False, None, True]),
        ("source == WEB & flag == true & customer_age < 70", [True, False, False, False]),
        ("source == 'WEB' and `customer_age` < 70", [True, False, None, False]),
        ('"customer_age" > 30 & customer_age <= 60', [False, True, None, False]),
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
    for expression in ("age>=50", "age>=50 & age<70"):
        result = protected_from(frame, expression)
        assert result.index.tolist() == ["b", "b"]
        assert result.tolist() == [True, False]


ODD = pd.DataFrame(
    {
        "a>=b": [1, 3],
        "a & b": ["x", "y, z"],
        "[c]": ["]", "'"],
        "d in [1]": [1, 2],
        'say "hi"': ["O'Brien", "p & q >= 3"],
        "in": [1, 2],
        "and": ["this and that", "q"],
    }
)


@pytest.mark.parametrize(
    ("expression", "expected", "sources"),
    [
        ('"a>=b" >= 3', [False, True], ("a>=b",)),
        ("'a>=b'!=3", [True, False], ("a>=b",)),
        ("`a>=b`in[3, 4]", [False, True], ("a>=b",)),
        ("a>=b>=3", [False, True], ("a>=b",)),
        ("`a & b` == x", [True, False], ("a & b",)),
        ("a & b == x", [True, False], ("a & b",)),
        ('"a & b" in ["y, z", w]', [False, True], ("a & b",)),
        ("\"[c]\" in [']', ')']", [True, False], ("[c]",)),
        ("[c] == ]", [True, False], ("[c]",)),
        ('[c] == "\'"', [False, True], ("[c]",)),
        ("`d in [1]` in [1]", [True, False], ("d in [1]",)),
        ("d in [1] > 1", [False, True], ("d in [1]",)),
        ("`say \"hi\"` == 'O'Brien'", [True, False], ('say "hi"',)),
        ("say \"hi\" == 'p & q >= 3'", [False, True], ('say "hi"',)),
        ("in in [1]", [True, False], ("in",)),
        ("and == this and that", [True, False], ("and",)),
        ("and == this and that and in >= 1", [True, False], ("and", "in")),
        ("in >= 1 & 'a>=b' < 3 & in < 3", [True, False], ("in", "a>=b")),
    ],
)
def test_names_and_values_that_hold_operators(expression, expected, sources):
    assert protected_from(ODD, expression).tolist() == expected
    assert source_columns(ODD, expression) == sources


def test_an_ampersand_that_no_comparison_follows_is_part_of_the_value():
    frame = pd.DataFrame({"owner": ["Smith & Sons", "Smith", "A & B & C"], "age": [1, 2, 3]})
    assert protected_from(frame, "owner == Smith & Sons").tolist() == [True, False, False]
    assert protected_from(frame, "owner == A & B & C & age >= 3").tolist() == [False, False, True]
    assert source_columns(frame, "owner == A & B & C & age >= 3") == ("owner", "age")


def test_a_quoted_column_alone_is_the_column():
    assert protected_from(ODD, "'a>=b'").tolist() == [1, 3]
    assert source_columns(ODD, "`a>=b`") == ("a>=b",)
    assert short_name(ODD, '"a>=b"') == "a>=b"


@pytest.mark.parametrize(
    ("expression", "name"),
    [
        ("customer_age  =  50", "customer_age==50"),
        ("'customer_age' >= 50", "customer_age>=50"),
        ("source == 'WEB'", "source=='WEB'"),
        ("source  in  [ WEB,'A, B' ]", "source in [WEB, 'A, B']"),
        ("source != WEB  &  customer_age >= 50", "source!=WEB & customer_age>=50"),
        ("source == WEB and customer_age >= 50", "source==WEB & customer_age>=50"),
    ],
)
def test_short_names_spell_an_expression_in_one_way(expression, name):
    frame = TABLES["pandas"]
    assert short_name(frame, expression) == name
    assert short_name(frame, name) == name
    assert protected_from(frame, name).tolist() == protected_from(frame, expression).tolist()


def test_a_short_name_quotes_a_column_that_needs_it():
    assert short_name(ODD, " 'a>=b'  >= 3") == "'a>=b'>=3"
    assert short_name(ODD, "`a & b` in [x]") == "`a & b` in [x]"


def test_one_source_is_asked_of_an_expression_that_has_two():
    assert source_column(TABLES["pandas"], "customer_age>=50 & customer_age<70") == "customer_age"
    with pytest.raises(
        ValueError, match=r"must read one column here, got .*, which reads 'flag', 'income'\."
    ):
        source_column(TABLES["pandas"], "flag==true & income>0")


def test_whole_numbers_beyond_floats_do_not_merge():
    numbers = [2**53, 2**53 + 1, None]
    tables = (
        pd.DataFrame({"id": pd.Series(numbers, dtype="Int64")}),
        pl.DataFrame({"id": numbers}),
        pd.DataFrame({"id": pd.Series([2**63, 2**63 + 1, None], dtype="UInt64")}),
    )
    for table, first in zip(tables, (2**53, 2**53, 2**63), strict=True):
        whole = table.drop_nulls() if isinstance(table, pl.DataFrame) else table.dropna()
        for frame in (table, whole):
            assert as_list(protected_from(frame, f"id=={first + 1}"))[:2] == [False, True]
            assert as_list(protected_from(frame, f"id>{first}"))[:2] == [False, True]
            assert as_list(protected_from(frame, f"id in [-1, {first}]"))[:2] == [True, False]


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        (
            "source==web",
            r"'source==web' is true in no row: 'source' holds 'APP', 'WEB'; did you mean 'WEB'\?",
        ),
        ("source != TV", r"'source!=TV' is true in every row: 'source' holds 'APP', 'WEB'\."),
        ("source in [TV, VHS]", r"'source in \[TV, VHS\]' is true in no row: 'source' holds 'APP', 'WEB'\."),
        (
            "customer_age>=80",
            r"'customer_age>=80' is true in no row: 'customer_age' goes from 30(\.0)? to 70",
        ),
        ("income>=0 & source==WEB", r"'income>=0' is true in every row: 'income' goes from 0\.1 to 0\.5\."),
        ("source==APP & customer_age>60", r"'source==APP & customer_age>60' is true in no row: loosen"),
        (
            "flag in [true, false]",
            r"'flag in \[true, false\]' is true in every row: 'flag' holds 'False', 'True'",
        ),
    ],
)
@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES.keys())
def test_comparisons_that_tell_no_rows_apart_are_refused(table, expression, message):
    with pytest.raises(ValueError, match=message):
        check_compared(table, expression)


def test_a_compared_column_without_any_value_is_refused():
    with pytest.raises(ValueError, match=r"'x==1' is missing in every row: 'x' holds nothing\."):
        check_compared(pd.DataFrame({"x": [None, None]}), "x==1")


def test_what_tells_rows_apart_passes_and_unseen_values_of_a_list_are_named():
    for expression in ("source", "customer_age>=50", "source != WEB & income > 0.2"):
        check_compared(TABLES["pandas"], expression)
    with pytest.warns(UserWarning, match=r"No row has 'Wep' in 'source', .*; did you mean 'WEB'\?"):
        check_compared(TABLES["pandas"], "source in [APP, Wep]")


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
    st.sampled_from([">=", ">", "<=", "<", "==", "!="]),
    st.integers(-6, 6),
)
def test_a_comparison_is_what_python_says(numbers, symbol, value):
    frame = pd.DataFrame({"x": numbers})
    expected = [eval(f"{number} {symbol} {value}") for number in numbers]
    assert protected_from(frame, f"x{symbol}{value}").tolist() == expected


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("custmer_age>=50", r"got 'custmer_age'; did you mean 'customer_age'\?"),
        ("Source", r"got 'Source'; did you mean 'source'\?"),
        ("xyz", r"got 'xyz'; the table has \['customer_age', 'income', 'source', 'flag'\]\."),
        ("xyz~1", r"must name a column of the table, alone or compared by one of >=, <=, ==, !=, >, <, in"),
        ("", "must name a column"),
        ("customer_age>=", "must give a value after '>=', got 'customer_age>='"),
        ("customer_age>=old", "'customer_age', a column of numbers, with a number, got 'customer_age>=old'"),
        ("customer_age>nan", "a column of numbers, with a number, got 'customer_age>nan'"),
        ("source>=WEB", "'source', a column of text, with '==', '!=' or 'in' only, got 'source>=WEB'"),
        ("flag==maybe", "'flag', a column of booleans, as '==true' or '==false', got 'flag==maybe'"),
        ("flag>0", "a column of booleans, as '==true' or '==false', got 'flag>0'"),
        ("customer_age != ", "must give a value after '!=', got 'customer_age !='"),
        ("customer_age>= & flag==1", "must give a value after '>='"),
        ("customer_age in [30, old]", "a column of numbers, with a number"),
        ("customer_age >= '50'", "a column of numbers, with a number"),
        ("source in WEB", r"a list in brackets after 'in', as in 'source in \[a, b\]', got 'source in WEB'"),
        (
            "source in []",
            r"a value before each ',' and '\]' of a list, got '\[\]'; an empty text is written ''",
        ),
        ("source in [WEB,]", r"a value before each ',' and '\]' of a list, got '\[WEB,\]'"),
        ("source in [WEB, APP", r"a bracket that is never closed, at '\[WEB, APP': add the '\]'"),
        ("source in ['WEB'", r"a bracket that is never closed, at \"\['WEB'\""),
        ("source in ['WEB, APP]", r"a quote that is never closed, at \"'WEB, APP\]\""),
        ("source in ['WEB' APP]", r"a quote .*only ',' or '\]' may follow the closing one"),
        ("source in [WEB] APP", r"'&' and another comparison, or nothing, where 'APP' stands"),
        ("source == 'WEB & flag == 1", r"a quote that is never closed, at \"'WEB & flag == 1\""),
        ("source == 'WEB' APP", "only '&' or the end may follow the closing one"),
        ("'source == WEB", r"a quote that is never closed, at \"'source == WEB\""),
        ("'sauce' == WEB", r"got 'sauce'; did you mean 'source'\?"),
        ("flag==1 &", "must have a comparison after '&', got 'flag==1 &'"),
        ("flag==1 & sauce==WEB", r"got 'sauce'; did you mean 'source'\?"),
        ("flag & income>0", "must compare 'flag' by one of .*, as in 'flag>=50', got 'flag & income>0'"),
        ("flag==1 & 'income'", "must compare 'income' by one of"),
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


PIECES = [
    *("age", "sex", "a>=b", "'a>=b'", ">=", "<", "==", "!=", "=", " in ", "[", "]", ",", " & ", " and "),
    *("'", '"', "`", "M", "50", " "),
]


@given(st.lists(st.sampled_from(PIECES), max_size=12).map("".join))
def test_whatever_is_written_is_read_or_refused_in_a_sentence(expression):
    frame = pd.DataFrame({"age": [30, 60], "sex": ["M", "F"], "a>=b": [1, 2]})
    try:
        result = protected_from(frame, expression)
    except ValueError as error:
        sentence = str(error)
    else:
        name = short_name(frame, expression)
        sentence = "" if protected_from(frame, name).tolist() == result.tolist() else f"{name} differs"
    assert re.match(r"$|`expression` (must|has a (quote|bracket) that is never closed)", sentence)


def test_an_expression_that_is_no_string_is_refused():
    with pytest.raises(TypeError, match="`expression` must be a string, got int"):
        protected_from(TABLES["pandas"], 5)
