"""Tables of every library, and rows by position, mask or fold."""

import datetime

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse
from sklearn.model_selection import (
    GroupKFold,
    KFold,
    RepeatedKFold,
    StratifiedGroupKFold,
    StratifiedKFold,
    TimeSeriesSplit,
)

from fado.tabular import Table, column_from, one_hot, read_folds, read_rows

FRAME = {
    "number": [1.5, None, 3.0],
    "whole": [1, 2, 3],
    "flag": [True, False, None],
    "text": ["b", None, "a"],
}


def tables():
    table = pa.table(FRAME)
    return {
        "pandas": pd.DataFrame(FRAME),
        "arrow-backed pandas": table.to_pandas(types_mapper=pd.ArrowDtype),
        "polars": pl.DataFrame(FRAME),
        "pyarrow": table,
    }


@pytest.mark.parametrize("library", list(tables()))
def test_every_library_gives_the_same_columns_when_they_are_needed_and_once(library, monkeypatch):
    read = []

    def reader(name, values):
        read.append(name)
        return column_from(name, values)

    monkeypatch.setattr("fado.tabular._table.column_from", reader)
    table = Table.from_input(tables()[library])
    assert (table.names, table.n_rows, table.n_columns, read) == (list(FRAME), 3, 4, [])
    assert table.column(3).levels == ("a", "b")
    assert read == ["text"]
    number, whole, flag, text = table.columns
    assert sorted(read) == sorted(FRAME)
    np.testing.assert_array_equal(number.numbers(), [1.5, np.nan, 3.0])
    np.testing.assert_array_equal(whole.numbers(), [1, 2, 3])
    np.testing.assert_array_equal(flag.numbers(), [1, 0, np.nan])
    np.testing.assert_array_equal(text.codes(), [1, -1, 0])
    frame = table.to_pandas()
    assert list(frame.columns) == list(FRAME)
    assert (frame["text"].tolist()[0], frame["whole"].tolist()) == ("b", [1, 2, 3])


@pytest.mark.parametrize(
    "matrix",
    [
        np.array([[1, 2], [3, 4]], dtype=np.float32),
        np.array([["b", 2], ["a", 4]], dtype=object),
        np.array([[1, 2], [3, 4]]).view(np.matrix),
        np.ma.masked_array([[1, 2], [3, 4]], mask=[[1, 0], [0, 0]]),
    ],
    ids=["float32", "objects", "matrix", "masked"],
)
def test_numpy_matrices_have_numbered_columns(matrix):
    table = Table.from_input(matrix)
    assert table.names == ["x0", "x1"]
    np.testing.assert_array_equal(table.columns[1].numbers(), [2, 4])
    first = table.columns[0]
    assert first.levels == (("a", "b") if matrix.dtype == object else None)
    assert (first.numbers()[0] != first.numbers()[0]) == np.ma.isMaskedArray(matrix)


def encoded_parts(*parts):
    return pa.chunked_array([pa.array(part).dictionary_encode() for part in parts])


CATEGORIES = [
    (encoded_parts(["x", "y"], ["z", None, "x"]), [0, 1, 2, None, 0], ("x", "y", "z")),
    (pa.chunked_array([], pa.dictionary(pa.int8(), pa.string())), [], ()),
    (
        pa.DictionaryArray.from_arrays([2, 1, 0, None], pa.array(["b", None, "a"])),
        [0, None, 1, None],
        ("a", "b"),
    ),
    (pa.DictionaryArray.from_arrays([0, 1, 2], pa.array(["a", "a", "b"])), [0, 0, 1], ("a", "b")),
    (pd.Series(pd.Categorical([3, 1, None, 2], categories=[5, 3, 2, 1])), [2, 0, None, 1], ("1", "2", "3")),
    (pd.Series(pd.Categorical([None, None], categories=["a"])), [None, None], ()),
    (pl.Series(["b", "a", None], dtype=pl.Categorical), [1, 0, None], ("a", "b")),
    (["NA", None, "x"], [0, None, 1], ("NA", "x")),
]


@pytest.mark.parametrize(("values", "codes", "levels"), CATEGORIES, ids=range(len(CATEGORIES)))
def test_categories_in_parts_missing_repeated_or_unused(values, codes, levels):
    column = column_from("c", values)
    assert column.data.to_pylist() == codes
    assert column.levels == levels


def test_a_digest_is_of_the_contents_alone():
    stored = [
        column_from("a", [1, 0, None]),
        column_from("b", np.array([1.0, -0.0, np.nan])),
        column_from("c", pd.Series([1, 0, None], dtype="Int8")),
        column_from("d", pl.Series([1.0, 0.0, None])),
    ]
    assert len({column.digest() for column in stored}) == 1
    assert column_from("a", [1, 0, 0]).digest() != stored[0].digest()


def test_rows_are_taken_by_position_columns_may_share_a_name_and_categories_keep_their_codes():
    frame = pd.DataFrame([["x", 1], ["y", 2], ["x", 3]], columns=["a", "a"], index=[9, 9, 9])
    table = Table.from_input(frame)
    assert table.positions("a") == [0, 1]
    taken = table.take(np.array([1, 1]))
    assert (taken.n_rows, taken.column(0).levels) == (2, ("x", "y"))
    assert taken.column(0).codes().tolist() == [1, 1]
    assert taken.column(1).numbers().tolist() == [2, 2]
    assert taken.to_pandas().to_numpy().tolist() == [["y", 2]] * 2


DATES, NESTED = "'c' holds dates or times .*turn it into numbers", "Column 'c' holds"


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([datetime.date(2020, 1, 1)], DATES),
        ([datetime.datetime(2020, 1, 1)], DATES),
        (np.array(["2020-01-01"], dtype="datetime64[D]"), DATES),
        (pd.Series(pd.to_datetime(["2020-01-01"])), DATES),
        ([datetime.timedelta(1)], DATES),
        (
            pd.Series([1, "a"], dtype=object),
            r"Column 'c' mixes types \(int, str\): make it all numbers or all strings",
        ),
        ([2**70, 1], "Column 'c' holds whole numbers of more than 64 bits"),
        ([2**53 + 1, 0.5], "Column 'c' mixes types"),
        ([[1, 2]], NESTED),
        ([{"a": 1}], NESTED),
        ([b"x"], NESTED),
    ],
)
def test_what_models_cannot_use_is_refused_by_name(values, message):
    with pytest.raises((ValueError, TypeError), match=message):
        column_from("c", values)


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (np.arange(3), "`X` must be a table with rows and columns"),
        (np.array([[1j]]), "Complex data not supported"),
        (scipy.sparse.csr_matrix(np.array([[1j]])), "Complex data not supported"),
    ],
    ids=["one dimension", "complex", "sparse complex"],
)
def test_what_is_no_table_is_refused(X, message):
    with pytest.raises(ValueError, match=message):
        Table.from_input(X)


def test_one_hot_keeps_the_most_frequent_levels():
    columns = [column_from("n", [1.0, 2.0, 3.0]), column_from("c", ["b", None, "a"])]
    np.testing.assert_array_equal(one_hot(columns), [[1, 0, 1], [2, 0, 0], [3, 1, 0]])
    column = column_from("c", ["a", "b", "b", "c", "c", "c"])
    np.testing.assert_array_equal(one_hot([column], most=2), [[0, 0], [1, 0], [1, 0], [0, 1], [0, 1], [0, 1]])


@pytest.mark.parametrize("form", [scipy.sparse.csr_matrix, scipy.sparse.csc_array, scipy.sparse.coo_array])
@pytest.mark.parametrize("dtype", [np.int64, np.int8, bool, np.float64])
def test_sparse_matrices_of_any_numbers_are_sparse_floats(form, dtype):
    table = Table.from_input(form(np.array([[0, 1], [1, 0]], dtype=dtype)))
    assert table.is_sparse
    assert (table.n_rows, table.n_columns, table.names) == (2, 2, ["x0", "x1"])
    assert table.columns == ()
    assert table.column(1).numbers().tolist() == [1.0, 0.0]
    assert table.source.dtype == np.float64
    assert table.take(np.array([1])).source.toarray().tolist() == [[1.0, 0.0]]


def test_a_slice_is_read_when_it_is_needed():
    for library in tables().values():
        whole = Table.from_input(library)
        for table in (whole, Table.of_columns(whole.columns)):
            part = table.slice(1, 3)
            assert (part.n_rows, part.names, part.is_named) == (2, whole.names, True)
            np.testing.assert_array_equal(part.column(0).numbers(), [np.nan, 3.0])
            assert list(part.column(3).to_pandas())[1] == "a"
    numbers = np.arange(12.0).reshape(4, 3)
    for X in (numbers, scipy.sparse.csr_matrix(numbers)):
        part = Table.from_input(X).slice(1, 3)
        assert (part.is_named, part.is_sparse) == (False, scipy.sparse.issparse(X))
        np.testing.assert_array_equal(part.column(2).numbers(), [5.0, 8.0])


N = 12
LABELS = np.arange(N) % 2
BLOCKS = np.arange(N) // 3
EVEN = np.arange(N) % 2 == 0


@pytest.mark.parametrize(
    ("given", "rows"),
    [
        ([4, 0, 4], [4, 0, 4]),
        ((), []),
        (range(2), [0, 1]),
        (np.array([3], dtype=np.uint64), [3]),
        (pd.Series([7, 1], index=[90, 91]), [7, 1]),
        (EVEN, [0, 2, 4, 6, 8, 10]),
        (EVEN.tolist(), [0, 2, 4, 6, 8, 10]),
        (pd.Series(EVEN, index=np.arange(N)[::-1]), [0, 2, 4, 6, 8, 10]),
        (pd.Series(EVEN, dtype="boolean"), [0, 2, 4, 6, 8, 10]),
        (pl.Series(EVEN), [0, 2, 4, 6, 8, 10]),
        (np.zeros(N, dtype=bool), []),
    ],
)
def test_positions_and_masks(given, rows):
    np.testing.assert_array_equal(read_rows(given, N, "`rows`"), rows)


@pytest.mark.parametrize(
    ("given", "error", "sentence"),
    [
        ([0, -1], ValueError, "there is no row -1; rows are 0 to 11"),
        ([3, 12], ValueError, "there is no row 12; rows are 0 to 11"),
        (np.array([2**63], dtype=np.uint64), ValueError, "there is no row 9223372036854775808"),
        ([True, False], ValueError, "a mask must have one entry for each of the 12 rows, got 2"),
        ([0.0, 1.0], TypeError, r"must be positions of rows, or a mask over all of them, got \[0.0, 1.0\]"),
        ([[0, 1]], TypeError, r"must be positions of rows, .* got \[\[0, 1\]\]"),
        (3, TypeError, "must be positions of rows, .* got 3"),
        ("all", TypeError, "must be positions of rows, .* got 'all'"),
        (pd.array([True, None], dtype="boolean"), TypeError, "must be positions of rows"),
    ],
)
def test_what_names_no_rows(given, error, sentence):
    with pytest.raises(error, match=f"^`parts\\[2\\]`: {sentence}"):
        read_rows(given, N, "`parts[2]`")


@pytest.mark.parametrize(
    "cv",
    [
        *(KFold(3), KFold(3, shuffle=True, random_state=0), StratifiedKFold(2), TimeSeriesSplit(3)),
        *(GroupKFold(2), StratifiedGroupKFold(2)),
    ],
    ids=repr,
)
def test_a_splitter_gives_its_folds(cv):
    groups = BLOCKS if "Group" in repr(cv) else None
    expected = list(cv.split(np.zeros((N, 1)), LABELS, groups))
    for fold, parts in zip(read_folds(cv, N, LABELS, groups), expected, strict=True):
        for rows, part in zip(fold, parts, strict=True):
            np.testing.assert_array_equal(rows, np.sort(part))


def test_pairs_are_positions_or_masks_and_keep_groups_together():
    halves = [(np.flatnonzero(EVEN)[::-1], ~EVEN), ((~EVEN).tolist(), [0, 2, 4, 6, 8, 10])]
    for (train, validation), first in zip(read_folds(iter(halves), N), (0, 1), strict=True):
        np.testing.assert_array_equal(train, np.arange(first, N, 2))
        np.testing.assert_array_equal(validation, np.arange(1 - first, N, 2))
    with pytest.raises(ValueError, match=r"^Fold 0 of `cv` trains on a row of the same entry of `groups` as"):
        read_folds([([0, 1], [2, 3])], N, LABELS, BLOCKS)


@pytest.mark.parametrize(
    ("cv", "error", "sentence"),
    [
        (KFold, TypeError, r"`cv` must be a splitter, got the class KFold: write `KFold\(\)`"),
        (KFold(13), ValueError, r"`cv` \(KFold\(.*\)\) cannot split these rows: .*n_splits=13 greater than"),
        (GroupKFold(2), ValueError, r"`cv` \(GroupKFold\(.*\)\) cannot split these rows: .*groups"),
        ("3", TypeError, "`cv` must be a number of folds, a splitter of scikit-learn, or pairs .* got '3'"),
        (object, TypeError, "`cv` must be a splitter, got the class object"),
        ([], ValueError, "`cv` has no folds"),
        ([([0],)], ValueError, r"Fold 0 of `cv` must be a pair of the rows to train on .*, got \(\[0\],\)"),
        ([3], ValueError, "Fold 0 of `cv` must be a pair of the rows to train on and to validate, got 3"),
        ([([0], [1]), ([0], [-1])], ValueError, "Fold 1 of `cv`, validation rows: there is no row -1"),
        ([([0, 12], [1])], ValueError, "Fold 0 of `cv`, training rows: there is no row 12; rows are 0 to 11"),
        (
            [(EVEN[:5], ~EVEN)],
            ValueError,
            "Fold 0 of `cv`, training rows: a mask must have one .* 12 rows, got 5",
        ),
        ([([0], [])], ValueError, "Fold 0 of `cv`, validation rows: a fold needs at least one row"),
        ([([0, 5, 0], [1])], ValueError, "Fold 0 of `cv`, training rows: row 0 appears twice"),
        ([([0, 1, 2], [2, 3])], ValueError, "Fold 0 of `cv` trains on row 2 and validates it"),
        ([([0], [3]), ([1], [3])], ValueError, "Fold 1 of `cv` validates row 3, which fold 0 also validates"),
        (RepeatedKFold(n_splits=2), ValueError, "Fold 2 of `cv` validates row .*fold . also validates"),
    ],
    ids=repr,
)
def test_what_gives_no_folds(cv, error, sentence):
    with pytest.raises(error, match=f"^{sentence}"):
        read_folds(cv, N, LABELS)
