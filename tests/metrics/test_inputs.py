"""Labels, predictions, scores and groups of any library, as arrays."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from fado.metrics._inputs import (
    as_scores,
    check_between,
    encode_predictions,
    encode_target,
    read_groups,
    warn_undefined,
)

AS_COLUMN = {
    "list": list,
    "numpy": np.array,
    "pandas": pd.Series,
    "pandas categorical": lambda values: pd.Series(values, dtype="category"),
    "pandas arrow": lambda values: pd.Series(values, dtype=pd.ArrowDtype(pa.array(values).type)),
    "polars": pl.Series,
    "arrow": pa.array,
    "arrow chunked": lambda values: pa.chunked_array([values[:2], values[2:]]),
    "arrow dictionary": lambda values: pa.array(values).dictionary_encode(),
}


@pytest.mark.parametrize("column", AS_COLUMN.values(), ids=AS_COLUMN)
@pytest.mark.parametrize(
    "labels", [(0, 1), (1, 2), (-1, 1), (False, True), ("no", "yes"), (0.0, 1.0)], ids=lambda pair: str(pair)
)
def test_target_takes_any_two_labels_from_any_library(column, labels):
    low, high = labels
    values = column([low, high, high, low])
    assert encode_target(values).is_positive.tolist() == [False, True, True, False]
    assert encode_target(values, pos_label=low).is_positive.tolist() == [True, False, False, True]


@pytest.mark.parametrize(
    ("y_true", "message"),
    [
        ([], "`y_true` must have at least one row, got none"),
        ([1, 1], r"`y_true` must hold exactly two labels, got 1 \(1\)"),
        ([0, 1, 2], r"exactly two labels, got 3 \(0, 1, 2\)"),
        (list("abcdefg"), r"got 7 \('a', 'b', 'c', 'd', 'e', ...\)"),
        ([0, 1, None], "`y_true` must hold a label in every row, got a missing value in row 2"),
        ([0.0, float("nan")], "missing value in row 1"),
        (["a", float("nan"), "b"], "missing value in row 1"),
        (pa.array(["a", None, "b"]).dictionary_encode(), "missing value in row 1"),
        ([0.0, float("inf")], "`y_true` must hold finite labels, got inf"),
        ([0, "yes"], r"Column 'y_true' mixes types \(int, str\): make it all numbers or"),
        ([[0], [1]], r"`y_true` must be one-dimensional, got shape \(2, 1\)"),
        (np.ma.masked_array([0, 1, 1], mask=[0, 0, 1]), "missing value in row 2"),
        (np.zeros((2, 2)), r"`y_true` must be one-dimensional, got shape \(2, 2\)"),
        ({"y": [0, 1]}, "`y_true` must hold one value per row, got {'y'"),
        (None, "`y_true` must hold one value per row, got None"),
        ("target", "`y_true` must hold one value per row, got 'target'"),
    ],
)
def test_target_refuses(y_true, message):
    with pytest.raises(TypeError if "one value per row" in message else ValueError, match=message):
        encode_target(y_true)


@pytest.mark.parametrize(
    ("y_true", "pos_label", "message"),
    [
        ([0, "yes"], "yes", r"Column 'y_true' mixes types \(int, str\)"),
        ([0, 1], 2, "`pos_label` must be one of the labels 0 and 1, got 2"),
    ],
)
def test_a_positive_label_that_is_none_is_refused(y_true, pos_label, message):
    with pytest.raises(ValueError, match=message):
        encode_target(y_true, pos_label)


@pytest.mark.parametrize("column", AS_COLUMN.values(), ids=AS_COLUMN)
@pytest.mark.parametrize("labels", [(2, 10), (2**53, 2**53 + 1), (-1, 0.5)], ids=lambda pair: str(pair))
def test_numbers_are_compared_as_numbers_and_in_full(column, labels):
    low, high = labels
    target = encode_target(column([high, low, low, high]))
    assert target.is_positive.tolist() == [True, False, False, True]
    assert target.pair == (low, high)


@pytest.mark.parametrize(
    ("labels", "pos_label", "y_pred", "predicted"),
    [
        (["no", "yes"], None, ["yes", "no"], [True, False]),
        (["no", "yes"], None, [1, 0], [True, False]),
        (["no", "yes"], None, [True, False], [True, False]),
        (["no", "yes"], None, ["no", "no"], [False, False]),
        ([0, 1], None, [1.0, 0.0], [True, False]),
        ([0, 1], None, [True, False], [True, False]),
        ([0, 1], 0, [1, 0], [False, True]),
        ([False, True], None, [1, 0], [True, False]),
        ([-1, 1], None, [1, 0], [True, False]),
        ([1, 2], None, [2, 1], [True, False]),
        ([1, 2], None, [1, 1], [False, False]),  # labels, not "is positive"
        ([1, 2], None, [True, True], [True, True]),
    ],
)
def test_predictions_are_labels_or_say_which_rows_are_positive(labels, pos_label, y_pred, predicted):
    assert encode_predictions(y_pred, encode_target(labels, pos_label)).tolist() == predicted


@pytest.mark.parametrize(
    ("labels", "y_pred", "message"),
    [
        ([0, 1], [0, 2], r"must hold the labels of `y_true` \(0, 1\) or booleans, got 2"),
        ([0, 1], [0.2, 0.9], "got 0.2; for scores use `fado.metrics.evaluate`"),
        (
            [1, 2],
            [0, 1],
            r"labels of `y_true` \(1, 2\) or booleans, got 0",
        ),  # read as labels, 1 would be negative
        (["no", "yes"], ["no", "maybe"], "got 'maybe'"),
        ([0, 1], [0, None], "`y_pred` must hold a label in every row"),
        ([0, 1], [0], r"`y_pred` must have as many rows as `y_true` \(2\), got 1"),
    ],
)
def test_predictions_refuse(labels, y_pred, message):
    with pytest.raises(ValueError, match=message):
        encode_predictions(y_pred, encode_target(labels))


HALF = np.array([0.1, 0.7], dtype=np.float16)


@pytest.mark.parametrize(
    ("column", "dtype"),
    [
        (np.array([0.1, 0.7]), np.float64),
        (np.array([0.1, 0.7], dtype=">f4"), np.float32),
        (pd.Series([0.1, 0.7], dtype="float32"), np.float32),
        (pd.Series([0.1, 0.7], dtype="Float32"), np.float32),
        (pl.Series([0.1, 0.7], dtype=pl.Float32), np.float32),
        (pa.array([0.1, 0.7], pa.float32()), np.float32),
        *((half, np.float16) for half in (HALF, HALF.astype(">f2"), pd.Series(HALF), pa.array(HALF))),
    ],
    ids=type,
)
def test_scores_keep_their_precision(column, dtype):
    scores = as_scores(column, 2)
    assert scores.dtype == dtype
    assert scores.tolist() == np.array([0.1, 0.7], dtype=dtype).tolist()


@pytest.mark.parametrize("column", AS_COLUMN.values(), ids=AS_COLUMN)
def test_scores_come_from_any_library(column):
    assert as_scores(column([0.25, 0.5, 3.0]), 3).tolist() == [0.25, 0.5, 3.0]
    assert as_scores(column([2, 1, 3]), 3).tolist() == [2.0, 1.0, 3.0]


@pytest.mark.parametrize(
    ("scores", "error", "message"),
    [
        ([0.5, float("nan")], ValueError, "`scores` must be finite, got nan in row 1"),
        (np.array([np.inf, 0.5]), ValueError, "`scores` must be finite, got inf in row 0"),
        ([0.5, None], ValueError, "`scores` must be finite, got nan in row 1"),
        ([0.5], ValueError, r"`scores` must have as many rows as `y_true` \(2\), got 1"),
        (
            np.zeros((2, 2)),
            ValueError,
            r"`scores` must be one-dimensional, got shape \(2, 2\); pass one column",
        ),
        (["high", "low"], TypeError, "`scores` must be numbers, got text; pass probabilities"),
        (np.ma.masked_array([0.5, 0.1], mask=[0, 1]), ValueError, "got nan in row 1"),
        (0.5, TypeError, "`scores` must hold one value per row, got 0.5"),
    ],
)
def test_scores_refuse(scores, error, message):
    with pytest.raises(error, match=message):
        as_scores(scores, 2)


@pytest.mark.parametrize("max_fpr", [0, 1, -0.1, 1.5, float("nan"), "5%"])
def test_a_budget_that_is_no_share(max_fpr):
    message = rf"`max_fpr` must be (a number )?in \(0, 1\), got {max_fpr!r}"
    with pytest.raises(TypeError if max_fpr == "5%" else ValueError, match=message):
        check_between("max_fpr", max_fpr)


def test_warnings_point_at_the_line_outside_the_package():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warn_undefined("no value")
    assert [warning.filename for warning in caught] == [__file__]


def encode_groups(features, n_rows):
    groups = read_groups(features, n_rows)
    return groups.codes, groups.names


def test_levels_are_numbered_as_rows_show_them_or_as_categories_are_declared():
    codes, names = encode_groups(["m", "f", "m"], 3)
    assert codes.tolist() == [0, 1, 0]
    assert names == ("'m'", "'f'")
    declared = pd.Series(["m", "f", None, "m"], dtype=pd.CategoricalDtype(["x", "f", "m"]))
    with pytest.warns(UserWarning, match="unknown in 1 of 4 rows"):
        codes, names = encode_groups(declared, 4)
    assert codes.tolist() == [1, 0, 2, 1]
    assert names == ("'f'", "'m'", "unknown")


def test_as_many_groups_as_rows():
    texts = [f"{number:04}" for number in range(3000)]
    codes, names = encode_groups({"a": texts, "b": texts}, 3000)
    assert codes.tolist() == list(range(3000))
    assert names[-1] == "a='2999', b='2999'"


@pytest.mark.parametrize(
    ("groups", "error", "message"),
    [
        (["f"], ValueError, r"`sensitive_features` must have as many rows as `y_true` \(2\), got 1"),
        ({"a": ["f", "m"], "b": ["x"]}, ValueError, r"as many rows as `y_true` \(2\), got 1"),
        ({}, ValueError, "`sensitive_features` must have at least one column, got none"),
        (None, TypeError, "`sensitive_features` must hold one value per row, got None"),
        ("sex", TypeError, "`sensitive_features` must hold one value per row, got 'sex'"),
        ({"sex": "f"}, TypeError, r"`sensitive_features\['sex'\]` must hold one value per row, got 'f'"),
    ],
)
def test_bad_groups(groups, error, message):
    with pytest.raises(error, match=message):
        encode_groups(groups, 2)
