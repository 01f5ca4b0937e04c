"""What a user hands over, read and put together."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy.sparse import csr_matrix

from fado.tabular import (
    Table,
    join_problems,
    labels_of,
    note_features,
    protected_columns,
    read_problem,
    target_column,
    weights_of,
)

X = np.zeros((4, 2))
Y = ["no", "yes", "no", "yes"]


def test_the_pieces_of_a_problem():
    problem = read_problem(
        pd.DataFrame({"sex": list("fmmf"), "age": [20, 30, 40, 50]}),
        Y,
        ["sex"],
        sample_weight=[1, 2, 0, 1],
        groups=["b", "a", "b", "a"],
    )
    assert problem.n_rows == 4
    target = problem.target
    assert (target.name, target.kind, target.classes) == ("y", "classes", ("no", "yes"))
    assert problem.positive == 1
    assert [variable.name for variable in problem.variables] == ["y", "sex"]
    assert problem.positions == (0,)
    assert problem.names_given
    assert problem.groups.names == ("'f'", "'m'")
    assert problem.groups.codes.tolist() == [0, 1, 1, 0]
    assert problem.sample_weight.tolist() == [1, 2, 0, 1]
    assert problem.blocks.tolist() == [1, 0, 1, 0]
    assert problem.labels.is_positive.tolist() == [False, True, False, True]
    bare = read_problem(X, Y)
    assert (bare.protected, bare.positions, bare.sample_weight, bare.blocks) == ((), (), None, None)
    assert (bare.groups.names, bare.groups.codes.tolist()) == (("all rows",), [0, 0, 0, 0])


@pytest.mark.parametrize(
    ("y", "pos_label", "positive"),
    [
        (Y, None, 1),
        (Y, "no", 0),
        ([0, 1, 1, 0], 0, 0),
        ([True, False, True, True], True, 1),
        ([2**53, 2**53 + 1, 2**53, 2**53], 2**53, 0),
        (pd.Series([10, 2, 10, 2], dtype="category"), None, 1),
        (pd.Series([10, 2, 10, 2], dtype="category"), 2, 0),
        (pd.cut([5, 15, 5, 15], [0, 10, 20]), "(0, 10]", 0),
        ([1, 2, 3, 3], 2, 1),
        ([1, 2, 3, 3], None, None),
    ],
)
def test_the_positive_label(y, pos_label, positive):
    problem = read_problem(X, y, pos_label=pos_label)
    assert problem.positive == positive
    assert problem.labels.positive == positive


def test_labels_beyond_two_are_whole_and_kinds_are_chosen():
    assert labels_of(target_column([3, 1, 2], 3)).classes == (1, 2, 3)
    assert labels_of(target_column([0.5, 1.5, 0.5], 3)).classes == (0.5, 1.5)
    with pytest.raises(ValueError, match="`y` is continuous, and this needs classes"):
        labels_of(target_column([0.5, 1.5, 2.5], 3))
    ages = np.arange(40) % 25
    problem = read_problem(np.zeros((40, 1)), ages, {"age": ages})
    assert [variable.kind for variable in problem.variables] == ["continuous", "continuous"]
    chosen = problem.with_kinds({"y": "classes", "age": "classes"})
    assert [variable.kind for variable in chosen.variables] == ["classes", "classes"]
    assert len(chosen.groups) == 25
    assert problem.with_kinds(None) is problem


def test_some_rows_keep_the_kinds_of_all():
    ages = np.arange(30.0)
    problem = read_problem(np.zeros((30, 1)), ages, {"age": ages, "few": ages % 7, "text": list("ab") * 15})
    chosen = problem.with_kinds({"few": "continuous"}).with_kinds({"age": "classes"})
    kinds = ["continuous", "classes", "continuous", "classes"]
    for part in (chosen, chosen.take(np.arange(5)), chosen.take(np.arange(28)).take(np.arange(3))):
        assert [variable.kind for variable in part.variables] == kinds
    assert chosen.take(np.arange(25)).protected[0].classes == tuple(range(25))
    joined = join_problems(chosen.take(np.arange(5)), problem)
    assert [variable.kind for variable in joined.variables] == [*["continuous"] * 3, "classes"]
    alone = chosen.take(np.arange(5), alone=True)
    assert {variable.kind for variable in alone.variables} == {"classes"}
    assert alone.table.source is None


@pytest.mark.parametrize("argument", ["y", "sensitive_features", "sample_weight", "groups"])
def test_rows_with_the_same_labels_in_another_order_are_named(argument):
    frame = pd.DataFrame({"a": [1.0, 2.0, 3.0]}, index=["p", "q", "r"])
    given = {
        "y": pd.Series([0, 1, 1], frame.index),
        "sensitive_features": pd.DataFrame({"sex": list("fmm")}, frame.index),
        "sample_weight": pd.Series([1.0, 2.0, 3.0], frame.index),
        "groups": pd.Series([1, 2, 2], frame.index),
    }
    read_problem(frame, **given)
    moved = given[argument].loc[["p", "r", "q"]]
    message = f"`{argument}` has the row labels of X in another order: row 1 is 'q' in X and 'r' there"
    with pytest.warns(UserWarning, match=message):
        assert read_problem(frame, **given | {argument: moved}).n_rows == 3  # positions stay the rule
    others = moved.set_axis(["p", "s", "q"], axis=0)
    read_problem(frame, **given | {argument: others})
    several = {"age": [1, 2, 3], "sex": pd.Series(list("fmm"), list("prq"))}
    with pytest.warns(UserWarning, match=r"`sensitive_features\['sex'\]` has .*row 1 is 'q' in X"):
        read_problem(frame, **given | {"sensitive_features": several})


def test_features_are_noted_as_scikit_learn_does():
    class Estimator:
        pass

    estimator = Estimator()
    note_features(estimator, read_problem(pd.DataFrame({"a": [1, 2, 3, 4]}), Y).table)
    assert estimator.n_features_in_ == 1
    assert estimator.feature_names_in_.tolist() == ["a"]
    note_features(estimator, read_problem(X, Y).table)
    assert estimator.n_features_in_ == 2
    assert not hasattr(estimator, "feature_names_in_")


def problem(X, y=(0, 1), z=("f", "m"), **more):
    return read_problem(X, list(y), {"z": list(z)}, **more)


def frame(**columns):
    return pd.DataFrame(columns)


def column(first, second):
    """Join two columns of two rows each, and return the result."""
    joined = join_problems(problem(frame(u=first)), problem(frame(u=second)))
    return joined.table.columns[0]


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ([1, 2], [3, 4], [1, 2, 3, 4]),
        ([1, 2], [0.5, np.nan], [1, 2, 0.5, np.nan]),
        ([True, False], [True, True], [1, 0, 1, 1]),
        ([True, False], [3, 4], [1, 0, 3, 4]),
        (np.array([1, 2], dtype=np.int8), np.array([300, 4]), [1, 2, 300, 4]),
        ([None, None], [1, 2], [np.nan, np.nan, 1, 2]),
    ],
)
def test_numbers_of_any_kind_stay_numbers(first, second, expected):
    joined = column(first, second)
    assert joined.levels is None
    np.testing.assert_array_equal(joined.numbers(), expected)
    assert joined.is_boolean is (np.asarray([*first, *second]).dtype == bool)


@pytest.mark.parametrize(
    ("first", "second", "levels", "codes"),
    [
        (pd.Series(["b", "d"]), pd.Series(["a", None]), ("a", "b", "d"), [1, 2, 0, -1]),
        (pd.Categorical(["b", "d"]), pd.Categorical(["a", None]), ("a", "b", "d"), [1, 2, 0, -1]),
        (["b", "d"], pd.Categorical(["a", "d"]), ("a", "b", "d"), [1, 2, 0, 2]),
        (["a", "b"], [None, None], ("a", "b"), [0, 1, -1, -1]),
        ([None, None], ["a", "b"], ("a", "b"), [-1, -1, 0, 1]),
    ],
)
def test_levels_are_those_of_both(first, second, levels, codes):
    joined = column(first, second)
    assert joined.levels == levels
    np.testing.assert_array_equal(joined.codes(), codes)


def test_categories_of_numbers_stay_what_they_were():
    joined = column(pd.Categorical([10, 2]), pd.Categorical([9, 2]))
    assert joined.levels == ("10", "2", "9")
    assert joined.labels == (10, 2, 9)
    codes, entries = joined.encode()
    assert [entries[code] for code in codes] == [10, 2, 9, 2]


WORDS, BANDS = frame(u=["a", "b"]), frame(u=pd.Categorical([1, 2]))


@pytest.mark.parametrize(
    ("first", "second", "message"),
    [
        (frame(u=[1, 2]), WORDS, "'u' holds numbers, and that of `validation` text: convert it"),
        (WORDS, frame(u=[1, 2]), "'u' holds text, and that of `validation` numbers: convert it"),
        (BANDS, frame(u=["1", "b"]), "holds categories of numbers, and that of `validation` text"),
        (BANDS, frame(u=[1, 2]), "holds categories of numbers, and that of `validation` numbers"),
        (
            frame(age=[1, 2]),
            frame(agee=[1, 2]),
            "`validation` has no column 'age', which the training rows have; did you mean 'agee'",
        ),
        (np.ones((2, 2)), np.ones((2, 3)), "`validation` has 3 columns, and the training rows have 2"),
        (frame(u=[1, 2]), np.ones((2, 2)), "`validation` has 2 columns, and the training rows have 1"),
        (pd.DataFrame([[1, 2]] * 2, columns=["u", "u"]), frame(u=[1, 2]), "'u' appears more than once"),
        (csr_matrix(np.eye(2)), np.eye(2), "sparse matrices cannot be joined"),
    ],
)
def test_tables_that_do_not_fit_are_refused(first, second, message):
    with pytest.raises(ValueError, match=message):
        join_problems(problem(first), problem(second))


ARRAYS = np.array([[1, 3], [2, 4]]), np.array([[5, 7], [6, 8]])
NUMBERED, TWICE = (pd.DataFrame([[1, 2], [3, 4]], columns=names) for names in ([0, 1], ["u", "u"]))


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        (
            frame(u=[1, 2], v=[3, 4]),
            frame(w=[0, 0], v=[7, 8], u=[5, 6]),  # by name, in any order
            [("u", [1, 2, 5, 6]), ("v", [3, 4, 7, 8])],
        ),
        (NUMBERED, NUMBERED[[1, 0]], [("0", [1, 3, 1, 3]), ("1", [2, 4, 2, 4])]),
        (*ARRAYS, [("x0", [1, 2, 5, 6]), ("x1", [3, 4, 7, 8])]),  # by position
        (frame(v=[1, 2], u=[3, 4]), ARRAYS[1], [("v", [1, 2, 5, 6]), ("u", [3, 4, 7, 8])]),
        (TWICE, TWICE + 4, [("u", [1, 3, 5, 7]), ("u", [2, 4, 6, 8])]),
    ],
)
def test_columns_are_matched_by_name_or_else_by_position(first, second, expected):
    joined = join_problems(problem(first), problem(second)).table
    assert [(column.name, column.numbers().tolist()) for column in joined.columns] == expected
    assert joined.names == [name for name, _ in expected]
    assert joined.is_named is (first is not ARRAYS[0])


def test_labels_and_groups_are_those_of_both():
    first = problem(frame(u=[1, 2]), y=["no", "yes"], z=["m", "f"])
    second = problem(frame(u=[1, 2]), y=["yes", "yes"], z=["x", "f"])
    joined = join_problems(first, second)
    assert joined.labels.classes == ("no", "yes")
    assert joined.labels.is_positive.tolist() == [False, True, True, True]
    assert joined.groups.names == ("'f'", "'m'", "'x'")
    assert joined.groups.codes.tolist() == [1, 0, 2, 0]
    chosen = problem(frame(u=[1, 2]), y=["no", "yes"], z=["m", "f"], pos_label="no")
    assert join_problems(chosen, second).labels.is_positive.tolist() == [True, False, False, False]


def test_attributes_are_matched_by_name_or_by_position():
    X, y = frame(u=[1, 2]), [0, 1]
    first = read_problem(X, y, {"sex": ["f", "m"], "age": ["old", "young"]})
    second = read_problem(X, y, {"age": ["young", "young"], "sex": ["m", "m"]})
    joined = join_problems(first, second)
    assert [variable.name for variable in joined.protected] == ["sex", "age"]
    assert joined.protected[0].labels.tolist() == [0, 1, 1, 1]
    unnamed = join_problems(read_problem(X, y, {"sex": ["f", "m"]}), read_problem(X, y, ["m", "f"]))
    assert unnamed.protected[0].labels.tolist() == [0, 1, 1, 0]
    with pytest.raises(ValueError, match="no protected attribute 'sex'"):
        join_problems(read_problem(X, y, {"sex": ["f", "m"]}), read_problem(X, y, {"gender": ["f", "m"]}))
    with pytest.raises(ValueError, match=r"`validation` has 1 protected attributes, .* have 2"):
        join_problems(first, read_problem(X, y, {"sex": ["f", "m"]}))


def test_weights_and_blocks_of_one_side():
    plain, weighted = problem(frame(u=[1, 2])), problem(frame(u=[1, 2]), sample_weight=[2.0, 3.0])
    assert join_problems(plain, plain).sample_weight is None
    assert join_problems(plain, plain).blocks is None
    assert join_problems(plain, weighted).sample_weight.tolist() == [1, 1, 2, 3]
    assert join_problems(weighted, plain).sample_weight.tolist() == [2, 3, 1, 1]
    blocked = problem(frame(u=[1, 2]), groups=["a", "a"])
    assert join_problems(blocked, plain).blocks.tolist() == [0, 0, 1, 2]
    assert join_problems(plain, blocked).blocks.tolist() == [0, 1, 2, 2]
    assert join_problems(blocked, blocked).blocks.tolist() == [0, 0, 1, 1]


TABLE = Table.from_input(pd.DataFrame({"sex": ["f", "m", "f"], "age": [20, 50, 70]}))


@pytest.mark.parametrize(
    ("given", "names", "are_given"),
    [
        ("sex", ["sex"], True),
        (["sex", "age"], ["sex", "age"], True),
        (pd.Series([0, 1, 0], name="group"), ["group"], True),
        (pd.Series([0, 1, 0], name="z"), ["z"], True),
        (pd.Series([0, 1, 0]), ["z"], False),
        (pl.Series("group", [0, 1, 0]), ["group"], True),
        (pl.Series("z", [0, 1, 0]), ["z"], True),
        (pl.Series([0, 1, 0]), ["z"], False),
        (pa.array([0, 1, 0]), ["z"], False),
        ([0, 1, 0], ["z"], False),
        (["u", "v", "u"], ["z"], False),
        (np.array([0, 1, 0]), ["z"], False),
        (np.array([[0], [1], [0]]), ["z"], False),
        (np.array([[0, 1], [1, 1], [0, 0]]), ["z0", "z1"], False),
        (pd.DataFrame({"p": [0, 1, 0], "q": [1, 1, 0]}), ["p", "q"], True),
        (pd.DataFrame({"z0": [0, 1, 0], "z1": 0}), ["z0", "z1"], True),
        (pl.DataFrame({"p": [0, 1, 0]}), ["p"], True),
        (pa.table({"p": [0, 1, 0]}), ["p"], True),
        ({"p": [0, 1, 0], "z": np.array([1, 1, 0])}, ["p", "z"], True),
        (None, [], True),
    ],
    ids=str,
)
def test_protected_attributes_come_in_many_forms_with_names_or_without(given, names, are_given):
    columns = [column for column, _ in protected_columns(given, TABLE)]
    assert [column.name for column in columns] == names
    assert all(column.named for column in columns) is are_given


@pytest.mark.parametrize("kind", [int, np.int64, str])
def test_names_and_whole_numbers_name_columns(kind):
    table = Table.from_input(pd.DataFrame({0: [1, 2, 3], 1: ["a", "b", "a"]}))
    assert [position for _, position in protected_columns(kind(1), table)] == [1]
    assert [position for _, position in protected_columns([kind(1), kind(0)], table)] == [1, 0]
    assert [position for _, position in protected_columns([1, 0, 1], table)] == [None]  # an entry per row
    words = Table.from_input(pd.DataFrame({"a": [1, 2], "b": [3, 4]}))  # as many names as rows
    assert [position for _, position in protected_columns(["a", "b"], words)] == [0, 1]
    assert [position for _, position in protected_columns(["u", "v"], words)] == [None]
    for library in (pd.DataFrame, pl.DataFrame, pl.LazyFrame, pa.table):
        people = library({"age": [1, 2, 3, 4], "sex": list("fmmf")})
        problem = read_problem(people, Y, "sex")
        assert (problem.positions, problem.groups.codes.tolist()) == ((1,), [0, 1, 1, 0])
    for matrix in (table, Table.from_input(X)):
        with pytest.raises(ValueError, match=r"names '?7'?, which is not a column of X"):
            protected_columns(kind(7), matrix)
    twice = Table.from_input(pd.DataFrame([[1, 2]] * 3, columns=[3, "3"]))
    with pytest.raises(ValueError, match=r"names '?3'?, which 2 columns of X are called"):
        protected_columns(kind(3), twice)


def test_weights():
    assert weights_of(None, 3) is None
    assert weights_of(2, 3).tolist() == [2, 2, 2]
    for weights in (
        [1, 0, 3],
        pd.Series([1, 0, 3], index=[5, 5, 5]),
        pl.Series([1, 0, 3]),
        np.array([1, 0, 3], dtype=">f4"),
    ):
        assert weights_of(weights, 3).tolist() == [1, 0, 3]


MONTHS = pd.to_datetime(["2024-02-01", "2024-01-01", "2024-02-01", "2024-01-01"]).to_series()


@pytest.mark.parametrize(
    "groups",
    [
        ["b", "a", "b", "a"],
        [2**53 + 1, 2**53, 2**53 + 1, 2**53],
        MONTHS,
        MONTHS.dt.date,
        MONTHS.to_numpy().astype("datetime64[D]"),
        pa.array([2, 1, 2, 1], pa.date32()),
    ],
    ids=["text", "large numbers", "timestamps", "dates", "numpy", "arrow"],
)
def test_blocks_are_equal_entries(groups):
    assert read_problem(X, Y, groups=groups).blocks.tolist() == [1, 0, 1, 0]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"least_rows": 5}, r"`X` has 4 row\(s\) .* at least 5 are needed"),
        ({"X": np.zeros((4, 0))}, r"`X` has 0 feature\(s\)"),
        ({"y": None}, "requires y to be passed"),
        ({"y": [1.0, np.nan, 0.0, 1.0]}, r"`y` has 1 missing or NaN value\(s\)"),
        ({"y": [1.0, None, 0.0, 1.0]}, r"`y` has 1 missing or NaN value\(s\)"),
        ({"y": pd.Series(["a", None, "b", "b"])}, "`y` has 1 missing"),
        ({"y": np.array([1.0, np.inf, 0.0, 1.0])}, "`y` contains infinity"),
        ({"y": [0, 1]}, "`y` has 2 entries and X has 4 rows"),
        ({"pos_label": "maybe"}, "`pos_label` must be one of the labels 'no' and 'yes', got 'maybe'"),
        (
            {"X": np.zeros((30, 1)), "y": np.arange(30.0), "pos_label": 1},
            "`pos_label` is for a target of cla",
        ),
        ({"kinds": {"sex": "classes"}}, r"`kinds` names 'sex', which is not one of the variables \['y'\]"),
        ({"kinds": {"y": "number"}}, r"`kinds\['y'\]` must be 'classes' or 'continuous', got 'number'"),
        ({"sensitive_features": np.array([0, 1])}, "attribute 'z' has 2 entries and X has 4 rows"),
        (
            {"X": pd.DataFrame({"sex": [1, 2, 3, 4]}), "sensitive_features": "sexx"},
            "names 'sexx', which is not a column of X; did you mean 'sex'",
        ),
        ({"sensitive_features": {"y": [0, 1, 0, 1]}}, "cannot be called 'y'"),
        ({"X": frame(sex=Y), "sensitive_features": ["sex", "sex"]}, "'sex' more than once"),
        (
            {"X": pd.concat([TWICE, TWICE]), "sensitive_features": "u"},
            "names 'u', which 2 columns of X are called",
        ),
        ({"sample_weight": [1, 2]}, r"must have one weight per row, shape \(4,\), got \(2,\)"),
        ({"sample_weight": [1, -1, 1, 1]}, "must be finite and not negative in every row"),
        ({"sample_weight": [1, None, 1, 1]}, "must be finite and not negative in every row"),
        (
            {"sample_weight": np.ma.masked_array([1, 2, 3, 4], mask=[0, 1, 0, 0])},
            "must be finite and not negative in every row",
        ),
        ({"sample_weight": [0, 0, 0, 0]}, "`sample_weight` is zero in every row: give some row a weight"),
        ({"sample_weight": list("abcd")}, "`sample_weight` must hold numbers, got text"),
        ({"sample_weight": np.ones((4, 2))}, r"`sample_weight` must be one-dimensional, got shape \(4, 2\)"),
        ({"groups": [1, 2]}, "`groups` must have one entry per row, 4, got 2"),
        ({"groups": [1, None, 2, 2]}, "`groups` is missing in 1 rows"),
    ],
)
def test_what_is_refused(given, message):
    given = {"X": X, "y": Y} | given
    kinds = given.pop("kinds", None)
    with pytest.raises(ValueError, match=message):
        read_problem(**given).with_kinds(kinds).positive  # noqa: B018
