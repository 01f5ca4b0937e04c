import re
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fado.tabular import Expression, protected_from, read_attributes

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


def written(frame, expression):
    return Expression.of(
        frame.column_names if isinstance(frame, pa.Table) else list(frame.columns), expression
    )


def as_list(series):
    return [None if pd.isna(value) else value for value in series]


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES.keys())
@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("customer_age>=50", [False, True, None, True]),
        ("customer_age>50", [False, False, None, True]),
        ("customer_age<50", [True, False, None, False]),
        ("customer_age==50", [False, True, None, False]),
        ("customer_age >= 49.5", [False, True, None, True]),
        ("income>=3e-1", [False, True, True, None]),
        ("source==WEB", [True, False, None, True]),
        ('source=="APP"', [False, True, None, False]),
        ("source==web", [False, False, None, False]),
        ("flag==true", [True, None, False, True]),
        ("flag==0", [False, None, True, False]),
        ("customer_age != 50", [True, False, None, True]),
        ("customer_age in [30, 7e1]", [True, False, None, True]),
        ("source!=WEB", [False, True, None, False]),
        ("source IN ['APP', TELEAPP,\"WEB\"]", [True, True, None, True]),
        ("flag!=true", [False, None, True, False]),
        ("flag in [true, false]", [True, None, True, True]),
        # false & missing is false, true & missing is missing
        ("customer_age>=50 & source==WEB", [False, False, None, True]),
        ("source == WEB & flag == true & customer_age < 70", [True, False, False, False]),
        ("source == 'WEB' & `customer_age` < 70", [True, False, None, False]),
        ('"customer_age" > 30 & customer_age <= 60', [False, True, None, False]),
        # true | missing is true, false | missing is missing
        ("customer_age>=60 | income<0.2", [True, False, None, True]),
        ("source==APP | flag==true", [True, True, None, True]),
        # "&" binds tighter: APP or (WEB and under 50); parentheses: (APP or WEB) and under 50
        ("source==APP | source==WEB & customer_age<50", [True, True, None, False]),
        ("(source==APP | source==WEB) & customer_age<50", [True, False, None, False]),
        ("customer_age<50&(source == APP|source == WEB)", [True, False, None, False]),
        ("((customer_age in [30, 70]) | (flag==0))", [True, None, True, True]),
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
    assert protected_from(table, " source ").name == written(table, " source ").name == "source"
    assert written(table, "source").sources == ("source",)


def test_a_pandas_index_is_kept_and_a_column_named_like_the_expression_wins():
    frame = pd.DataFrame({"age": [60, 20], "bmi>0": ["yes", "no"], "bmi": [0, 0]}, index=["b", "b"])
    for expression, expected in (
        ("age>=50", [True, False]),
        ("age>=50 & age<70", [True, False]),
        ("bmi>0", ["yes", "no"]),
    ):
        result = protected_from(frame, expression)
        assert (result.index.tolist(), result.tolist()) == (["b", "b"], expected)
    assert written(frame, "bmi>0").sources == ("bmi>0",)


def test_several_comparisons_follow_three_valued_logic():
    known = [True, False, None]
    pairs = [(one, other) for one in known for other in known]
    frame = pd.DataFrame(pairs, columns=["p", "q"], dtype="boolean")
    either = [True, True, True, True, False, None, True, None, None]
    both = [True, False, None, False, False, False, None, False, None]
    assert as_list(protected_from(frame, "p==true | q==true")) == either
    assert as_list(protected_from(frame, "p==true & q==true")) == both
    names = {True: "p == true | q == true", False: "not (p == true | q == true)", None: None}
    named = protected_from(frame, "p==true | q==true", named=True)
    assert as_list(named) == [names[entry] for entry in either]
    assert named.name == "p==true | q==true"


@pytest.mark.parametrize(
    ("expression", "holds", "does_not"),
    [
        ("customer_age>=50", "customer_age >= 50", "customer_age < 50"),
        ("customer_age >50", "customer_age > 50", "customer_age <= 50"),
        ("customer_age<50", "customer_age < 50", "customer_age >= 50"),
        ("customer_age<=50", "customer_age <= 50", "customer_age > 50"),
        ("flag=1", "flag == 1", "flag != 1"),
        ("source!=WEB", "source != WEB", "source == WEB"),
        ("source in [WEB,APP]", "source in [WEB, APP]", "source not in [WEB, APP]"),
        ("flag==1&income>0", "flag == 1 & income > 0", "not (flag == 1 & income > 0)"),
        (
            "(flag==1|income>0)&source==WEB",
            "(flag == 1 | income > 0) & source == WEB",
            "not ((flag == 1 | income > 0) & source == WEB)",
        ),
    ],
)
@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES.keys())
def test_groups_are_called_by_what_is_compared(table, expression, holds, does_not):
    assert written(table, expression).group_titles == (holds, does_not)
    truth = as_list(protected_from(table, expression))
    named = protected_from(table, expression, named=True)
    assert as_list(named) == [{True: holds, False: does_not, None: None}[entry] for entry in truth]
    assert as_list(protected_from(table, "source", named=True)) == DATA["source"]


ODD = pd.DataFrame(
    {
        "(f)": [1, 2],
        "age (years)": [30, 60],
        "a>=b": [1, 3],
        "a & b": ["x", "y, z"],
        "[c]": ["]", "'"],
        "d in [1]": [1, 2],
        'say "hi"': ["O'Brien", "p & q >= 3"],
        "in": [1, 2],
        "and": ["this and that", "q"],
        ">=": [1, 3],
        "born in": [1, 2],
    }
)


@pytest.mark.parametrize(
    ("expression", "expected", "sources"),
    [
        ('"a>=b" >= 3', [False, True], ("a>=b",)),
        ("'>=' > 2", [False, True], (">=",)),
        ("born in>1", [False, True], ("born in",)),
        ("'born in' in [1]", [True, False], ("born in",)),
        ("'a>=b'!=3", [True, False], ("a>=b",)),
        ("`a>=b`in[3, 4]", [False, True], ("a>=b",)),
        ("`a & b` == x", [True, False], ("a & b",)),
        ('"a & b" in ["y, z", w]', [False, True], ("a & b",)),
        ("\"[c]\" in [']', ')']", [True, False], ("[c]",)),
        ('`[c]` == "\'"', [False, True], ("[c]",)),
        ("`d in [1]` in [1]", [True, False], ("d in [1]",)),
        ('`say "hi"` == O\'Brien', [True, False], ('say "hi"',)),
        ("say \"hi\" == 'p & q >= 3'", [False, True], ('say "hi"',)),
        ("in in [1]", [True, False], ("in",)),
        ("and == this and that", [True, False], ("and",)),
        ("in >= 1 & 'a>=b' < 3 & in < 3", [True, False], ("in", "a>=b")),
        ("('(f)' == 1 | `age (years)` >= 60)", [True, True], ("(f)", "age (years)")),
        ("(and == q | in == 1) & 'age (years)'<60", [True, False], ("and", "in", "age (years)")),
        ("(`a & b` in ['y, z', (] | in > 5)", [False, True], ("a & b", "in")),
        ('(and == "q")', [False, True], ("and",)),
    ],
)
def test_names_and_values_that_hold_operators(expression, expected, sources):
    assert protected_from(ODD, expression).tolist() == expected
    assert written(ODD, expression).sources == sources


def test_values_that_hold_signs_stand_in_quotes():
    frame = pd.DataFrame({"owner": ["Smith & Sons", "[70-80)", "a (b)"], "age": [1, 2, 3]})
    for value, row in (("'Smith & Sons'", 0), ('"[70-80)"', 1), ("`a (b)`", 2)):
        expected = (frame.index == row).tolist()
        assert protected_from(frame, f"owner == {value}").tolist() == expected
        assert protected_from(frame, f"(owner=={value} | age > 5) & age < 5").tolist() == expected
        assert written(frame, f"owner = {value} & age >= 3").name == f"owner=={value} & age>=3"
    assert protected_from(frame, "owner in [[70-80), a (b)]").tolist() == [False, True, True]
    for bare in ("owner == [70-80)", "owner == a (b)", "owner == (b)"):
        with pytest.raises(ValueError, match="; put quotes around a name or a value that contains a sig"):
            protected_from(frame, bare)


@pytest.mark.parametrize(
    ("expression", "name"),
    [
        ("  customer_age  =  50 ", "customer_age==50"),
        ("'customer_age' >= 50", "customer_age>=50"),
        ("source == 'WEB'", "source=='WEB'"),
        ("source  in  [ WEB,'A, B' ]", "source in [WEB, 'A, B']"),
        ("source != WEB  &  customer_age >= 50", "source!=WEB & customer_age>=50"),
        ("((source == WEB) | (customer_age >= 50 & flag=1))", "source==WEB | customer_age>=50 & flag==1"),
        ("flag=1 & ((source==WEB|income>0)&income<1)", "flag==1 & (source==WEB | income>0) & income<1"),
        (" 'a>=b'  >= 3", "'a>=b'>=3"),  # quoted where it must be
        ('"a>=b"', "a>=b"),
        ("`a & b` in [x]", "`a & b` in [x]"),
    ],
)
def test_short_names_spell_an_expression_in_one_way(expression, name):
    frame = TABLES["pandas"].assign(**ODD.loc[[0, 1, 0, 1], ["a>=b", "a & b"]].reset_index(drop=True))
    assert written(frame, expression).name == name
    assert written(frame, name).name == name
    assert protected_from(frame, name).tolist() == protected_from(frame, expression).tolist()


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
        written(table, expression).check(table)


CHOICES = pd.DataFrame({"a": [1, 0, 0], "b": [0, 1, 0], "none": [0, 0, 0], "all": [1, 1, 1]})


@pytest.mark.parametrize(
    ("frame", "expression", "message"),
    [
        (
            TABLES["pandas"],
            "source in [APP, Wep]",
            r"^No row has 'Wep' in 'source', .*; did you mean 'WEB'\?",
        ),
        (CHOICES, "a==1 | none==1", r"^'none==1' is true in no row: 'none' goes from 0 to 0\.$"),
        (CHOICES, "a==1 | b==1 & all==1", r"^'all==1' is true in every row: 'all' goes from 1 to 1\.$"),
    ],
)
def test_what_tells_rows_apart_passes_and_what_is_idle_in_it_is_named(frame, expression, message):
    for passes in ("source", "customer_age>=50", "source != WEB & income > 0.2"):
        written(TABLES["pandas"], passes).check(TABLES["pandas"])
    written(CHOICES, "a==1 | b==1").check(CHOICES)
    with pytest.warns(UserWarning, match=message):
        written(frame, expression).check(frame)


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("a==1 | all==1", r"'all==1' is true in every row: 'all' goes from 1 to 1\.$"),
        ("none==1 | none==2", r"'none==1' is true in no row"),
        ("a==1 | a==0", r"'a==1 \| a==0' is true in every row: loosen a comparison, or leave"),
        ("a==1 & b==1", r"'a==1 & b==1' is true in no row"),
        ("a==1 & all==1", r"'all==1' is true in every row"),
    ],
)
def test_an_expression_with_a_choice_must_tell_rows_apart_as_a_whole(expression, message):
    with pytest.raises(ValueError, match=f"^`expression` {message}"):
        written(CHOICES, expression).check(CHOICES)
    with pytest.raises(ValueError, match=r"'a==1' is missing in every row: 'a' holds nothing\."):
        written(CHOICES, "a==1").check(pd.DataFrame({"a": [None, None]}))


TARGET = Expression.of(["age", "sex", "amount"], "amount >= 1000", "target")
PEOPLE = pd.DataFrame({"age": [30, 60, None], "sex": [1, 2, 1], "amount": [500.0, 2000.0, None]})


def named(protected, names):
    (attribute,) = read_attributes(list(PEOPLE), [protected], TARGET, {protected: names})
    return attribute


def test_groups_have_the_names_that_are_given():
    assert TARGET.read(pa.Table.from_pandas(PEOPLE), named=False).to_pylist() == [False, True, None]
    old = named("age >= 50", ["50, and over", "under 50"])
    assert as_list(old.groups(PEOPLE)) == ["under 50", "50, and over", None]
    assert as_list(old.groups(pa.Table.from_pandas(PEOPLE))) == ["under 50", "50, and over", None]
    assert named("age>=50", {"false": "young"}).group_titles == ("age >= 50", "young")
    assert named("age>=50", {True: "old", False: "young"}).group_titles == ("old", "young")
    for label in (1, "1", 1.0):
        assert named("sex", {label: "men"}).groups(PEOPLE).tolist() == ["men", "2", "men"]
    flags = pd.DataFrame({"f": [True, False], "amount": [1, 2]})
    (flag,) = read_attributes(list(flags), ["f"], TARGET, {"f": {True: "yes", "False": "no"}})
    assert flag.groups(flags).tolist() == ["yes", "no"]
    assert (flag.called(True), flag.called(False)) == ("yes", "no")
    assert [old.called(label) for label in (False, "age >= 50", "unknown")] == [
        "under 50",
        "50, and over",
        "unknown",
    ]
    assert Expression.of(["age"], "age>=50").called(False) == "age < 50"


@pytest.mark.parametrize(
    ("protected", "names", "message"),
    [
        (
            "sex",
            {3: "x"},
            r"^`group_names` of 'sex' names '3', which no row has; its groups are '1', '2'\.$",
        ),
        ("sex", {1: "2"}, "^`group_names` of 'sex' gives two groups the name '2': give each another name"),
        ("sex", {1: "a", 2: "a"}, "gives two groups the name 'a'"),
        ("sex", ["men", "women"], "must say which group each name is for, as in '1=men, 2=women'"),
        (
            "age",
            {30: "x"},
            "^`group_names` of 'age' are for groups, and it has more than 20 different numbers",
        ),
        ("age>=50", ["old"], "must be two names, first for the rows where it holds, .* got 1; put quotes"),
        ("age>=50", ["old", " old "], "gives two groups the name 'old'"),
        ("age>=50", {True: "age < 50"}, "gives two groups the name 'age < 50'"),
        ("age>=50", {"yes": "old"}, "names 'yes', and its groups are 'true' and 'false'"),
        ("sex", "old", "^`group_names` of 'sex' must be a mapping or a sequence, got 'old'"),
        ("sex", 5, "^`group_names` of 'sex' must be a mapping or a sequence, got 5"),
        ("age>=50", ["", "young"], "must be names that distinguish groups, got ''"),
        ("age>=50", ["old", "unknown"], r"must be names that distinguish groups, got 'unknown'"),
    ],
)
def test_names_that_do_not_fit_the_groups_are_refused(protected, names, message):
    frame = pd.DataFrame({"age": range(30, 60), "sex": [1, 2] * 15, "amount": range(30)})
    with pytest.raises((ValueError, TypeError), match=message):
        named(protected, names).check(frame)


@pytest.mark.parametrize(
    ("protected", "target", "names", "message"),
    [
        (
            ["sex"],
            "amount >= 1000",
            {"age": {1: "x"}},
            "^`group_names` names 'age', which is not one .*'sex'",
        ),
        (
            ["sex==1 | amount>=500"],
            "amount >= 1000",
            None,
            "^`protected` names 'amount', of which the target is made, so that no",
        ),
        (["amount"], "amount", None, "^`protected` names 'amount', the target: name another column"),
        (["sex==1", "sex = 1"], "amount", None, "different names, got 'sex==1' more than once"),
    ],
)
def test_attributes_that_cannot_be_meant_are_refused(protected, target, names, message):
    with pytest.raises(ValueError, match=message):
        read_attributes(list(PEOPLE), protected, Expression.of(list(PEOPLE), target, "target"), names)


SINGLE = np.array([0.3, 0.4], dtype=np.float32)
DECIMALS = [Decimal("1.50"), None, Decimal("2.00")]


@pytest.mark.parametrize(
    ("frame", "expression", "expected"),
    [
        *(
            (library({"x": SINGLE}), expression, expected)  # in single precision
            for library in (pd.DataFrame, pl.DataFrame, pa.table)
            for expression, expected in (("x==0.3", [True, False]), ("x>0.3", [False, True]))
        ),
        (pl.DataFrame({"x": DECIMALS}), "x==1.5", [True, None, False]),
        (pa.table({"x": DECIMALS}), "x==1.5", [True, None, False]),
        (pd.DataFrame({"x": pd.Series([1, None, 2], dtype=object)}), "x>1", [False, None, True]),
        # polars takes NaN for the largest number
        (pl.DataFrame({"x": [1.0, float("nan")]}), "x>=0", [True, None]),
        (pd.DataFrame({"x": [None, None]}), "x==1", [None, None]),
        (pl.DataFrame({"x": [None, None]}), "x==1", [None, None]),
        (pd.DataFrame({"x": ["0123", "123"]}), "x==0123", [True, False]),
    ],
)
def test_entries_are_compared_as_what_they_are(frame, expression, expected):
    assert as_list(protected_from(frame, expression)) == expected


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
        ("", "must have a column at the end, got ''"),
        ("customer_age>=old", "'customer_age', a column of numbers, with a number, got 'customer_age>=old'"),
        ("customer_age>nan", "a column of numbers, with a number, got 'customer_age>nan'"),
        ("source>=WEB", "'source', a column of text, with '==', '!=' or 'in' only, got 'source>=WEB'"),
        ("flag==maybe", "'flag', a column of booleans, as '==true' or '==false', got 'flag==maybe'"),
        ("flag>0", "a column of booleans, as '==true' or '==false', got 'flag>0'"),
        ("customer_age >= '50'", "a column of numbers, with a number"),
        ("source in WEB", r"must have a list such as \[a, b\] at position 11, before 'WEB'"),
        ("flag==", r"must have a value \(an empty text is written ''\) at the end, got 'flag=="),
        ("source in []", r"must have a value .* at position 12, before '\]'"),
        ("source in [WEB, APP", r"must have ',' or '\]' at the end, got 'source in \[WEB, APP'"),
        ("source in ['WEB, APP]", r"must have closed quotes at position 12, before \"'WEB, APP\]\""),
        ("source == 'WEB' APP", r"must have '&', '\|' or the end at position 17, before 'APP'"),
        ("'source == WEB", "must have closed quotes at position 1,"),
        ("flag==1 &", "must have a column at the end, got 'flag==1 &'"),
        ("flag==1 && income>0", "must have a column at position 10, before '& income>0'"),
        ("flag & income>0", "must compare 'flag' by one of .*, as in 'flag>=50', got 'flag & income>0'"),
        ("source==WEB and flag==1", r"must have '&', '\|' or the end at position 21, before '==1'"),
        ("(flag==1 | income>0", r"must have '&', '\|' or '\)' at the end"),
        ("flag==1) | income>0", r"must have '&', '\|' or the end at position 8, before '\) \| income>0'"),
        ("source==(WEB | income>0", r"must have a value .* at position 9, before '\(WEB \| income>0'"),
        ("()", r"must have a column at position 2, before '\)'"),
        ("(flag==1) income>0", r"must have '&', '\|' or the end at position 11, before 'income>0'"),
    ],
)
def test_a_wrong_expression_is_refused_with_the_reason(expression, message):
    with pytest.raises(ValueError, match=message):
        protected_from(TABLES["pandas"], expression)


PIECES = [
    *("age", "sex", "a>=b", "'a>=b'", ">=", "<", "==", "!=", "=", " in ", "[", "]", ",", " & ", " and "),
    *("'", '"', "`", "M", "50", " ", "(", ")", " | ", "|", " or "),
]


@given(st.lists(st.sampled_from(PIECES), max_size=12).map("".join))
def test_whatever_is_written_is_read_or_refused_in_a_sentence(expression):
    frame = pd.DataFrame({"age": [30, 60], "sex": ["M", "F"], "a>=b": [1, 2]})
    try:
        result = protected_from(frame, expression)
    except ValueError as error:
        sentence = str(error)
    else:
        name = written(frame, expression).name
        sentence = "" if protected_from(frame, name).tolist() == result.tolist() else f"{name} differs"
    assert re.match(
        r"$|`expression` must (have|name|compare) ",
        sentence,
    )


EMPTY = pa.schema([("age", pa.int64()), ("word", pa.string()), ("flag", pa.bool_())]).empty_table()


@pytest.mark.parametrize(
    ("frame", "expression", "error", "message"),
    [
        *(
            (EMPTY, expression, ValueError, "must compare")  # before there are rows
            for expression in ("age>=old", "word>=3", "flag==2")
        ),
        (pd.DataFrame({f"column{i}": [0] for i in range(12)}), "zzz", ValueError, r"'column9'\] and more\."),
        (
            pd.DataFrame({"opened": pd.to_datetime(["2024-01-01"])}),
            "opened>=2024",
            ValueError,
            "'opened' is of type datetime64",
        ),
        (
            pd.DataFrame([[1, 2]], columns=["age", "age"]),
            "age>1",
            ValueError,
            "`frame` must have distinct column names, got 'age' more than once",
        ),
        *(
            (frame, "a", TypeError, "`frame` must be a pandas, polars or pyarrow table, got")
            for frame in ([1, 2], np.zeros((2, 2)), pl.LazyFrame(DATA))
        ),
        (TABLES["pandas"], 5, TypeError, "`expression` must be a string, got int"),
    ],
    ids=["numbers", "text", "flags", "many columns", "dates", "repeated", "list", "array", "lazy", "no text"],
)
def test_what_cannot_be_compared_is_refused(frame, expression, error, message):
    with pytest.raises(error, match=message):
        protected_from(frame, expression)
