"""Which rows a user asks for: positions, masks, folds."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.model_selection import (
    GroupKFold,
    KFold,
    RepeatedKFold,
    StratifiedGroupKFold,
    StratifiedKFold,
    TimeSeriesSplit,
)

from fado.tabular import read_folds, read_rows

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
    [KFold(3), KFold(3, shuffle=True, random_state=0), StratifiedKFold(2), TimeSeriesSplit(3)],
    ids=repr,
)
def test_a_splitter_gives_its_own_folds(cv):
    expected = list(cv.split(np.zeros((N, 1)), LABELS))
    found = read_folds(cv, N, LABELS)
    assert len(found) == len(expected)
    for own, theirs in zip(found, expected, strict=True):
        for one, other in zip(own, theirs, strict=True):
            np.testing.assert_array_equal(one, np.sort(other))


@pytest.mark.parametrize("cv", [GroupKFold(2), StratifiedGroupKFold(2)], ids=repr)
def test_a_splitter_by_groups_keeps_them_together(cv):
    for train, validation in read_folds(cv, N, LABELS, BLOCKS):
        assert not set(BLOCKS[train]) & set(BLOCKS[validation])
        assert len(train) + len(validation) == N


def test_pairs_are_positions_or_masks():
    halves = [(np.flatnonzero(EVEN)[::-1], ~EVEN), ((~EVEN).tolist(), [0, 2, 4, 6, 8, 10])]
    for (train, validation), first in zip(read_folds(iter(halves), N), (0, 1), strict=True):
        np.testing.assert_array_equal(train, np.arange(first, N, 2))
        np.testing.assert_array_equal(validation, np.arange(1 - first, N, 2))


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
        ([([0], [])], ValueError, "Fold 0 of `cv`, validation rows: there are none"),
        ([([0, 5, 0], [1])], ValueError, "Fold 0 of `cv`, training rows: row 0 is there twice"),
        ([([0, 1, 2], [2, 3])], ValueError, "Fold 0 of `cv` trains on row 2 and validates it"),
        ([([0], [3]), ([1], [3])], ValueError, "Fold 1 of `cv` validates row 3, which fold 0 has validated"),
        (RepeatedKFold(n_splits=2), ValueError, "Fold 2 of `cv` validates row ., which fold . has validated"),
    ],
    ids=repr,
)
def test_what_gives_no_folds(cv, error, sentence):
    with pytest.raises(error, match=f"^{sentence}"):
        read_folds(cv, N, LABELS)


def test_a_fold_that_tears_a_group_apart_is_refused():
    with pytest.raises(
        ValueError, match=r"^Fold 0 of `cv` trains on a row of the same entry of `groups` as row 2"
    ):
        read_folds([([0, 1], [2, 3])], N, LABELS, BLOCKS)
