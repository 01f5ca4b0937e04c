import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from scipy import sparse

from fado.tabular import Table
from fado.valuation.shapley._distances import read_points, squared_distances


def distances(valued, validated=None):
    tables = Table.from_input(valued), None if validated is None else Table.from_input(validated)
    points, others = read_points(*tables)
    return squared_distances(others, points)


@pytest.mark.parametrize(
    ("valued", "validated", "expected"),
    [
        ([[0.0, 1.0], [4.0, 2.0]], [[2.0, 1.0]], [[1.0, 1.0 + 4.0]]),  # variances 4 and 0.25
        ([[0.0, 0.1], [2.0, 0.1], [4.0, 0.1]], [[0.0, 9.0]], [[0.0, 1.5, 6.0]]),  # the second does not vary
        # a column that is constant but for missing entries tells who is missing
        ([[7.0], [np.nan], [7.0]], [[np.nan], [3.0]], [[1, 0, 1], [0, 1, 0]]),
        # entries missing among validation rows alone
        ([[0.0, 5.0], [2.0, 9.0]], [[np.nan, 5.0], [0.0, 9.0]], [[1.0, 5.0], [4.0, 4.0]]),
    ],
    ids=["deviations", "constant", "missing", "missing in validation"],
)
def test_numbers_differ_in_standard_deviations(valued, validated, expected):
    np.testing.assert_allclose(distances(np.array(valued), validated), expected, rtol=1e-15)


def test_mixed_columns_with_missing_entries():
    # the known sizes 1, 3, 5, 3 vary by 2; two of them are 4 apart at most
    valued = pd.DataFrame(
        {
            "size": [1.0, 3.0, 5.0, 3.0, None],
            "colour": ["red", "blue", None, "red", None],
            "fresh": [True, False, True, None, True],
        }
    )
    by_hand = [
        [0, 2 + 1 + 1, 8 + 1, 2 + 0 + 1, 1 + 1],
        [4, 0, 2 + 1 + 1, 0 + 1 + 1, 1 + 1 + 1],
        [9, 4, 0, 2 + 1 + 1, 1],
        [3, 2, 4, 0, 1 + 1 + 1],
        [2, 3, 1, 3, 0],
    ]
    np.testing.assert_array_equal(distances(valued), by_hand)


@pytest.mark.parametrize(
    ("valued", "validated", "expected"),
    [
        (
            {"fresh": [True, False, False, False]},
            pd.DataFrame({"fresh": [1, 0]}),
            [[0, 1, 1, 1], [1, 0, 0, 0]],
        ),
        (
            {"a": [0.0, 2.0], "b": ["x", "y"]},
            pa.table({"b": ["y", "z", None], "more": [1, 2, 3], "a": [0.0, 0.0, 2.0]}),
            [[1, 4], [1, 5], [5, 1]],
        ),
        (
            {"c": pd.Categorical([3, 1, 2])},
            pd.DataFrame({"c": pd.Categorical([2, 9], categories=[9, 2])}),
            [[1, 1, 0], [1, 1, 1]],
        ),
        ({f"c{j}": ["a", "b"] for j in range(300)}, None, [[0, 300], [300, 0]]),
    ],
    ids=["booleans", "by name and text", "not by code", "many"],
)
def test_categories_are_alike_or_one_apart(valued, validated, expected):
    np.testing.assert_array_equal(distances(pd.DataFrame(valued), validated), expected)


def test_equally_far_whole_numbers_are_so_to_the_last_bit():
    generator = np.random.default_rng(0)
    valued = np.repeat(generator.integers(0, 1000, size=(1, 30)), 7, axis=0)
    step = generator.integers(1, 50, size=30)
    valued[1] += step
    valued[4] -= step
    found = distances(valued, valued[:1])[0]
    assert found[1] == found[4] > 0
    assert (found[[0, 2, 3, 5, 6]] == 0).all()


@pytest.mark.parametrize("size", [1e-300, 1e-12, 1.0, 1e15, 1e300])
def test_the_unit_of_a_column_changes_nothing(size):
    valued, validated = np.random.default_rng(0).normal(size=(2, 20, 3))
    np.testing.assert_allclose(
        distances(valued * size, validated * size), distances(valued, validated), rtol=1e-10
    )


def test_numbers_far_beyond_the_valued_ones_stay_comparable():
    found = distances(np.array([[1e-300], [2e-300]]), np.array([[1e300], [-1e300]]))
    assert np.isfinite(found).all()


def test_a_sparse_table_is_as_far_as_a_dense_one():
    generator = np.random.default_rng(0)
    dense = generator.normal(size=(30, 8)) * (generator.random((30, 8)) < 0.3)
    dense[:, 3] = 0.0
    dense[5] = dense[0]
    found = distances(sparse.csr_array(dense), sparse.coo_matrix(dense[:4]))
    np.testing.assert_allclose(found, distances(dense, dense[:4]), atol=1e-12)
    assert found[0, 0] == found[0, 5] == 0


@pytest.mark.parametrize(
    ("valued", "validated", "message"),
    [
        ([[1.0], [np.inf]], None, r"Column 'x0' contains infinity.* correct or drop"),
        ([[1.0], [2.0]], [[-np.inf]], r"Column 'x0' contains infinity.* correct or drop"),
        (sparse.csr_array([[1.0], [np.nan]]), None, r"sparse table .* pass a dense table"),
        (sparse.csr_array([[1.0], [2.0]]), np.ones((1, 1)), r"sparse and the other is not: give both alike"),
        ([[1.0], [2.0]], [[1.0, 2.0]], r"2 columns, and the valued rows have 1: give both the same"),
        (
            pd.DataFrame({"age": [1, 2]}),
            pd.DataFrame({"Age": [1]}),
            r"no column 'age', .*did you mean 'Age'\?",
        ),
        (
            pd.DataFrame({"a": [1, 2]}),
            pd.DataFrame([[1, 2]], columns=["a", "a"]),
            r"'a' appears more than once",
        ),
        (
            pd.DataFrame({"a": [1, 2]}),
            pd.DataFrame({"a": ["x"]}),
            r"holds text among validation rows .* convert it",
        ),
        (
            pd.DataFrame({"a": ["x", "y"]}),
            pd.DataFrame({"a": [1]}),
            r"text among the valued .* numbers .* convert",
        ),
    ],
)
def test_tables_that_cannot_be_compared(valued, validated, message):
    with pytest.raises(ValueError, match=message):
        distances(valued, validated)
