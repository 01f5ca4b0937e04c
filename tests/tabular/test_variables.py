"""Variables and the groups that they make."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from fado.tabular import (
    Groups,
    attribute_columns,
    check_known,
    check_learnable,
    check_min_group_size,
    column_from,
    group_rows,
    read_problem,
    variable_from,
    warn_of_unknown,
)


def variable(values, kind=None, name="y"):
    return variable_from(column_from(name, values), kind=kind)


def learnable(values, kind=None, name="y"):
    read = variable(values, kind, name)
    check_learnable(read)
    return read


@pytest.mark.parametrize(
    ("values", "classes", "codes"),
    [
        (["b", "a", "b", "a"], ("a", "b"), [1, 0, 1, 0]),
        ([True, False, True, False], (False, True), [1, 0, 1, 0]),
        ([2, 1, 2, 1], (1, 2), [1, 0, 1, 0]),
        ([0.5, -1.0, 0.5, -1.0], (-1, 0.5), [1, 0, 1, 0]),
        (pd.Series(["b", "a", "b", "a"], dtype="category"), ("a", "b"), [1, 0, 1, 0]),
    ],
)
def test_labels_of_any_type_are_classes(values, classes, codes):
    read = variable(values)
    assert (read.kind, read.classes, read.labels.tolist()) == ("classes", classes, codes)


@pytest.mark.parametrize(
    ("values", "chosen", "kind"),
    [
        (list(range(20)) * 3, None, "classes"),
        (list(range(21)) * 3, None, "continuous"),
        ([1, 2, 3, 1, 2, 3], "continuous", "continuous"),
        (list(range(30)) * 3, "classes", "classes"),
    ],
)
def test_numbers_are_classes_up_to_twenty_values_or_as_chosen(values, chosen, kind):
    assert variable(values, kind=chosen).kind == kind


@pytest.mark.parametrize("missing", [None, np.nan])
def test_missing_entries_are_another_class_or_stay_missing(missing):
    said = "'z' is unknown in 2 of 6 rows: they are a separate class, 'unknown'"
    with pytest.warns(UserWarning, match=said):
        read = learnable(["a", "b", missing, "a", missing, "b"], name="z")
    assert read.classes == ("a", "b", "unknown")
    assert read.labels.tolist() == [0, 1, 2, 0, 2, 1]
    with pytest.warns(UserWarning, match="'z' is unknown in 1 of 31 rows: its models learn from the others"):
        read = learnable([*map(float, range(30)), missing], name="z")
    assert (read.kind, read.known.sum()) == ("continuous", 30)


@pytest.mark.parametrize(
    ("values", "kind", "name", "message"),
    [
        ([1, 1, 1], None, "y", r"`y` has only one class \(1"),
        ([1, 1, 1], "continuous", "y", r"`y` has only one class \(1"),
        ([1, 1, 1], None, "z", "'z' has only one class"),
        ([1, 1, 1], "continuous", "z", "'z' has only one class"),
        ([None, None], None, "z", "'z' is unknown in every row"),
        ([f"id{j}" for j in range(9)], None, "z", "'z' has 9 classes in 9 rows, like an identifier"),
        (["a", "b"], "continuous", "y", "'y' holds text: it cannot be valued as continuous"),
    ],
)
def test_what_no_model_can_learn_is_refused(values, kind, name, message):
    with pytest.raises(ValueError, match=message):
        learnable(values, kind, name)


def test_a_class_with_one_member_is_named_and_encoding_alone_neither_refuses_nor_warns():
    with pytest.warns(UserWarning, match=r"'y' has a class with one member \('b'\)"):
        learnable(["a", "b", "a", "a", "c", "c"])
    assert variable([1, 1, 1]).classes == (1,)
    assert variable([None, None]).classes == ("unknown",)
    assert variable([f"id{j}" for j in range(9)]).kind == "classes"


SEX = ["m", "f", "f", "m"]
OLD = [True, True, False, True]
X = np.zeros((4, 1))


def groups_of(sensitive_features, features=X):
    """Give the groups as those read them who warn of missing entries."""
    problem = read_problem(features, np.arange(len(features)) % 2, sensitive_features)
    warn_of_unknown(problem.protected)
    return problem.groups


def encoded(**attributes):
    return [variable_from(column_from(name, values)) for name, values in attributes.items()]


def test_several_attributes_are_crossed_into_the_combinations_that_occur():
    groups = groups_of({"sex": SEX, "old": OLD})
    assert groups.codes.tolist() == [2, 1, 0, 2]
    assert groups.names == ("sex='f', old=False", "sex='f', old=True", "sex='m', old=True")
    three = groups_of({"sex": SEX, "old": OLD, "n": [1, 1, 1, 2]})
    assert three.codes.tolist() == [2, 1, 0, 3]
    assert three.names[3] == "sex='m', old=True, n=2"


@pytest.mark.parametrize(
    ("values", "said", "codes", "names"),
    [
        *(
            (
                pd.Series(["NA", missing, "NA", "a"], dtype=object),
                "1 of 4 rows: they are counted as group 'unknown', and",
                [0, 2, 0, 1],
                ("'NA'", "'a'", "unknown"),
            )
            for missing in (None, np.nan, pd.NA)
        ),
        ([1.0, np.nan, 0.5, np.nan], "2 of 4", [1, 2, 0, 2], ("0.5", "1", "unknown")),
        (pd.array([True, None, False, True]), "1 of 4", [1, 2, 0, 1], ("False", "True", "unknown")),
    ],
)
def test_missing_values_are_another_group(values, said, codes, names):
    with pytest.warns(UserWarning, match=f"'z' is unknown in {said}"):
        groups = groups_of(values)
    assert (groups.codes.tolist(), groups.names) == (codes, names)


@pytest.mark.filterwarnings("ignore:Protected attribute 'age>=50' is unknown")
def test_groups_that_say_what_is_compared_need_no_attribute_before_them():
    age = ["age < 50", "age >= 50", None, "age < 50"]
    groups = groups_of({"sex": ["f", "m", "f", "f"], "age>=50": age})
    assert groups.titles == ("sex = f, age < 50", "sex = m, age >= 50", "unknown")
    assert groups.names == ("sex='f', 'age < 50'", "sex='m', 'age >= 50'", "unknown")
    assert groups_of({"age>=50": age}).titles == ("age < 50", "age >= 50", "unknown")
    smokers = groups_of({"smoker": ["smoker", "no", "no", "no"], "sex": ["f", "f", "f", "f"]})
    assert smokers.titles == ("smoker = no, sex = f", "smoker = smoker, sex = f")


def test_numbers_are_groups_if_there_are_few_or_they_are_cut_into_quarters():
    table = np.zeros((30, 1))
    assert len(groups_of(np.arange(30) % 20, table)) == 20
    with pytest.raises(ValueError, match="'age' has 21 different numbers, too many for groups: cut it"):
        groups_of({"age": np.arange(30) % 21}, table)
    (age,) = encoded(age=[*map(float, range(40)), None])
    groups = group_rows([age], quarters=True)
    assert groups.names == ("up to 9", "9 to 19", "19 to 29", "over 29", "unknown")
    assert groups.sizes.tolist() == [10, 10, 10, 10, 1]
    with pytest.raises(ValueError, match="no protected attribute to form groups"):
        group_rows([])


def test_groups_in_the_order_in_which_rows_show_them():
    sex, old = encoded(sex=["m", None, "f", "m"], old=[True, True, False, False])
    groups = group_rows([sex], appearance=True)
    assert groups.codes.tolist() == [0, 2, 1, 0]
    assert groups.names == ("'m'", "'f'", "unknown")  # the unknown last
    assert groups.titles == ("m", "f", "unknown")
    assert groups.sizes.tolist() == [2, 1, 1]
    assert group_rows([sex.take(np.array([2, 0, 0]))], appearance=True).names == ("'f'", "'m'")
    # Levels are numbered by appearance, combinations by their levels.
    crossed = group_rows([sex, old], appearance=True)
    assert crossed.names == (
        "sex='m', old=True",
        "sex='m', old=False",
        "sex='f', old=False",
        "unknown",
    )
    assert crossed.titles[0] == "sex = m, old = True"
    assert crossed.codes.tolist() == [0, 3, 2, 1]


def test_a_level_called_unknown_beside_unknown_rows():
    with pytest.warns(UserWarning, match=r"'z' is unknown in 1 of 4 rows: .* '\(unknown\)'"):
        groups = groups_of(["unknown", None, "a", "a"])
    assert groups.names == ("'a'", "'unknown'", "(unknown)")
    assert groups.titles == ("a", "unknown", "(unknown)")
    assert groups.codes.tolist() == [1, 2, 0, 0]
    assert groups.compared(0).tolist() == [True, True, False]
    (both,) = encoded(z=["unknown", "(unknown)", None])
    assert group_rows([both]).titles == ("(unknown)", "unknown", "((unknown))")
    (level,) = encoded(z=["unknown", "a"])
    assert group_rows([level]).compared(0).all()


def test_a_combination_is_unknown_if_any_of_its_attributes_is():
    sex, old = encoded(sex=["f", None, "m", None, "f"], old=[True, True, None, None, False])
    groups = group_rows([sex, old])
    assert groups.titles == ("sex = f, old = False", "sex = f, old = True", "unknown")
    assert groups.codes.tolist() == [1, 2, 2, 2, 0]
    assert groups.reasons(0) == ("", "", "unknown")
    assert groups.take(np.array([1, 0])).compared(0).tolist() == [True, False]


@pytest.mark.parametrize(
    ("values", "unknown"),
    [
        (["f", "?", "m", "Unknown"], ["?", "Unknown"]),
        (pd.Categorical(["f", "?", "m", "Unknown"]), ("?", "Unknown", "never there")),
        ([1, -1, 2, -1], -1),
        ([1.0, -1.0, 2.0, -1.0], "-1"),
        (["1", "-1", "2", "-1"], -1),
        (pd.Categorical([1, -9, 2, -1]), {-1, -9}),
        (pl.Series([1, None, 2, -1]), [-1]),
    ],
)
def test_declared_values_are_read_as_missing(values, unknown):
    (column,) = attribute_columns({"z": values}, unknown)
    variable = variable_from(column)
    assert variable.given.tolist() == [True, False, True, False]
    assert variable.classes == (*variable_from(column.take(np.array([0, 2]))).classes, "unknown")


def test_a_number_is_no_truth_and_a_mapping_no_value():
    (column,) = attribute_columns({"z": [True, False]}, [1, 0])
    assert variable_from(column).given.all()
    with pytest.raises(TypeError, match=r"`unknown` must be a value or a list of values, got \{'z': 1\}"):
        attribute_columns({"z": [1, 2]}, {"z": 1})
    with pytest.raises(ValueError, match="'z' is unknown in every row: leave it out, or correct `unknown`"):
        check_known([variable_from(attribute_columns({"z": [1, 1]}, 1)[0])])


@pytest.mark.parametrize(
    "column",
    [
        pd.Series(["f", "m", "m", "f"], dtype=pd.CategoricalDtype(["f", "x", "m"])),
        pl.Series(["f", "m", "m", "f"], dtype=pl.Enum(["f", "x", "m"])),
        pa.DictionaryArray.from_arrays([0, 2, 2, 0], ["f", "x", "m"]),
    ],
    ids=["pandas", "polars", "arrow"],
)
def test_levels_that_no_row_holds_are_no_groups(column):
    groups = groups_of(column)
    assert groups.names == ("'f'", "'m'")
    assert groups.codes.tolist() == [0, 1, 1, 0]
    (lost,) = encoded(sex=["f", "m", "x", "m"])
    groups = group_rows([lost.take(np.array([1, 2, 1]))])
    assert (groups.names, groups.codes.tolist()) == (("'m'", "'x'"), [0, 1, 0])


@pytest.mark.parametrize(
    ("sizes", "min_group_size", "small"),
    [
        ([9970, 30], 30, [False, False]),  # enough rows
        ([9971, 29], 30, [False, True]),
        ([71, 29], 30, [False, False]),  # few rows, but a good part of the table
        ([990, 10], 30, [False, False]),  # exactly 1 %
        ([991, 9], 30, [False, True]),
        ([991, 0, 9], 30, [False, False, True]),  # a group without rows is none
        ([99999, 1], 0, [False, False]),
        ([9900, 99, 1], 100, [False, True, True]),
        ([], 30, []),
    ],
)
def test_small_is_few_rows_and_little_of_the_table(sizes, min_group_size, small):
    names = tuple(map(str, sizes))
    groups = Groups(np.repeat(np.arange(len(sizes)), sizes), names, names)
    assert groups.compared(min_group_size).tolist() == [not is_small for is_small in small]


def test_the_sentence_names_small_groups_with_their_rows():
    groups = Groups(np.repeat([0, 1, 2, 3], [9000, 1, 12, 5]), ("'a'", "'b'", "'c'", "unknown"), ("",) * 4, 3)
    assert groups.tell_small("not compared", 30) == (
        "Groups 'b' (1 row), 'c' (12 rows), with fewer than 30 rows and less than 1 % of the table, are not "
        "compared"
    )
    assert groups.tell_small("not compared", 0) == ""


@pytest.mark.parametrize("wrong", [-1, 2.5, True, "30", None])
def test_what_is_no_number_of_rows_is_refused(wrong):
    with pytest.raises((TypeError, ValueError), match="`min_group_size` must be"):
        check_min_group_size(wrong)
