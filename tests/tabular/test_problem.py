import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from fado.tabular import Problem, note_features, read_problem
from fado.tabular._problem import target_column
from fado.tabular._variables import labels_of

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
    assert isinstance(problem, Problem)
    assert problem.n_rows == 4
    assert (problem.target.name, problem.target.kind, problem.target.classes) == (
        "y",
        "classes",
        ("no", "yes"),
    )
    assert problem.positive == 1
    assert [variable.name for variable in problem.variables] == ["y", "sex"]
    assert problem.positions == (0,)
    assert problem.names_given
    assert problem.groups.names == ("'f'", "'m'")
    assert problem.groups.codes.tolist() == [0, 1, 1, 0]
    assert problem.sample_weight.tolist() == [1, 2, 0, 1]
    assert problem.blocks.tolist() == [1, 0, 1, 0]
    assert problem.labels.is_positive.tolist() == [False, True, False, True]


def test_what_is_not_given():
    problem = read_problem(X, Y)
    assert problem.protected == problem.positions == ()
    assert problem.sample_weight is None
    assert problem.blocks is None
    assert problem.groups.names == ("all rows",)
    assert problem.groups.codes.tolist() == [0, 0, 0, 0]


@pytest.mark.parametrize(
    ("sensitive_features", "given"),
    [
        ([0, 1, 1, 0], False),
        (np.array([[0], [1], [1], [0]]), False),
        (np.zeros((4, 2)), False),
        (pd.Series([0, 1, 1, 0]), False),
        (pl.Series([0, 1, 1, 0]), False),
        ({"sex": [0, 1, 1, 0]}, True),
        ({"z": [0, 1, 1, 0]}, True),
        (pd.Series([0, 1, 1, 0], name="z"), True),
        (pl.Series("z", [0, 1, 1, 0]), True),
        (pd.DataFrame({"z0": [0, 1, 1, 0], "z1": 0}), True),
    ],
    ids=str,
)
def test_an_attribute_that_is_called_z_has_a_name(sensitive_features, given):
    assert read_problem(X, Y, sensitive_features).names_given is given


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


def test_a_positive_label_that_is_none_of_the_labels():
    with pytest.raises(ValueError, match="`pos_label` must be one of the labels 'no' and 'yes', got 'maybe'"):
        read_problem(X, Y, pos_label="maybe").positive  # noqa: B018
    continuous = read_problem(np.zeros((30, 1)), np.arange(30.0), pos_label=1)
    with pytest.raises(ValueError, match="`pos_label` is for a target of classes"):
        continuous.positive  # noqa: B018


def test_labels_beyond_two_are_whole():
    assert labels_of(target_column([3, 1, 2], 3)).classes == (1, 2, 3)
    assert labels_of(target_column([0.5, 1.5, 0.5], 3)).classes == (0.5, 1.5)
    with pytest.raises(ValueError, match="`y` is continuous, and this needs classes"):
        labels_of(target_column([0.5, 1.5, 2.5], 3))


def test_kinds():
    given = np.arange(40) % 25
    problem = read_problem(np.zeros((40, 1)), given, {"age": given})
    assert [variable.kind for variable in problem.variables] == ["continuous", "continuous"]
    chosen = problem.with_kinds({"y": "classes", "age": "categorical"})
    assert [variable.kind for variable in chosen.variables] == ["classes", "classes"]
    assert len(chosen.groups) == 25
    assert problem.with_kinds(None) is problem
    with pytest.raises(
        ValueError, match=r"`kinds` names 'sex', which is none of the variables \['y', 'age'\]"
    ):
        problem.with_kinds({"sex": "classes"})


def test_whole_numbers_beyond_floats_are_two_labels_and_two_groups():
    big = [2**53, 2**53 + 1, 2**53, 2**53]
    problem = read_problem(pd.DataFrame({"id": big}), big, "id")
    assert problem.target.classes == (2**53, 2**53 + 1)
    assert problem.groups.codes.tolist() == [0, 1, 0, 0]


@pytest.mark.parametrize(
    "features",
    [
        pd.DataFrame({"age": [1, 2, 3, 4], "sex": list("fmmf")}),
        pd.DataFrame({"age": [1, 2, 3, 4], "sex": list("fmmf")}).convert_dtypes(dtype_backend="pyarrow"),
        pl.DataFrame({"age": [1, 2, 3, 4], "sex": list("fmmf")}),
        pl.LazyFrame({"age": [1, 2, 3, 4], "sex": list("fmmf")}),
        pa.table({"age": [1, 2, 3, 4], "sex": list("fmmf")}),
    ],
    ids=["pandas", "arrow-backed pandas", "polars", "lazy polars", "arrow"],
)
def test_attributes_by_name_from_every_library(features):
    problem = read_problem(features, Y, "sex")
    assert problem.positions == (1,)
    assert problem.groups.codes.tolist() == [0, 1, 1, 0]


def test_bad_tables():
    with pytest.raises(ValueError, match=r"`X` has 4 row\(s\) .* at least 5 are needed"):
        read_problem(X, Y, least_rows=5)
    with pytest.raises(ValueError, match=r"`X` has 0 feature\(s\)"):
        read_problem(np.zeros((4, 0)), Y)
    with pytest.raises(ValueError, match="requires y to be passed"):
        read_problem(X, None)


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


@pytest.mark.parametrize(
    "months",
    [
        pd.Series(pd.to_datetime(["2024-01-01", "2024-02-01", "2024-01-01"])),
        pd.Series(pd.to_datetime(["2024-01-01", "2024-02-01", "2024-01-01"])).dt.date,
        np.array(["2024-01", "2024-02", "2024-01"], dtype="datetime64[M]").astype("datetime64[D]"),
        pa.array([1, 2, 1], pa.date32()),
    ],
    ids=["timestamps", "dates", "numpy", "arrow"],
)
def test_rows_of_a_day_belong_together(months):
    problem = read_problem([[1.0], [2.0], [3.0]], [0, 1, 0], groups=months)
    assert problem.blocks.tolist() == [0, 1, 0]
