import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import UndefinedMetricWarning

from fado.metrics import threshold_at_fpr, tpr_at_fpr
from fado.metrics._threshold import allowed_false_positives

Y_TRUE = [0, 0, 0, 0, 1, 1, 1]
SCORES = [0.1, 0.4, 0.4, 0.7, 0.2, 0.6, 0.9]


@pytest.mark.parametrize(
    ("max_fpr", "threshold", "tpr"),
    [
        (0.2, 0.9, 1 / 3),  # no false positive
        (0.25, 0.6, 2 / 3),  # one: the negative at 0.7
        (0.5, 0.6, 2 / 3),  # two would need three, as those at 0.4 are tied
        (0.75, 0.2, 1.0),
        (0.99, 0.2, 1.0),
    ],
)
def test_lowest_threshold_within_the_budget(max_fpr, threshold, tpr):
    assert threshold_at_fpr(Y_TRUE, SCORES, max_fpr) == threshold
    assert tpr_at_fpr(Y_TRUE, SCORES, max_fpr) == tpr


def test_default_budget_is_five_percent():
    y_true = [0] * 40 + [1] * 2
    scores = [*range(40), 37.5, 36.5]
    assert threshold_at_fpr(y_true, scores) == 37.5  # two of 40 are above
    assert tpr_at_fpr(y_true, scores) == 0.5


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_a_threshold_above_all_scores_holds_in_their_precision(dtype):
    scores = np.array([0.1, 0.7, 0.7, 0.7], dtype=dtype)
    threshold = threshold_at_fpr([0, 0, 1, 0], scores, 0.5)
    assert threshold == float(np.nextafter(dtype(0.7), dtype(1)))
    assert not (scores >= threshold).any()
    assert tpr_at_fpr([0, 0, 1, 0], scores, 0.5) == 0.0


@pytest.mark.parametrize(("y_true", "pos_label"), [(list("nnnnyyy"), None), ([1, 1, 1, 1, 0, 0, 0], 0)])
def test_other_labels(y_true, pos_label):
    assert threshold_at_fpr(y_true, SCORES, 0.25, pos_label=pos_label) == 0.6
    assert tpr_at_fpr(y_true, SCORES, 0.25, pos_label=pos_label) == 2 / 3


def test_equal_scores_put_the_threshold_above_them_and_leave_the_rate_undefined():
    assert threshold_at_fpr([0, 1, 0], [0.5, 0.5, 0.5]) == np.nextafter(0.5, 1)
    with pytest.warns(
        UndefinedMetricWarning, match="`tpr_at_fpr` is undefined and set to NaN: all scores are 0.5"
    ):
        assert np.isnan(tpr_at_fpr([0, 1, 0], [0.5, 0.5, 0.5]))


@pytest.mark.parametrize("metric", [threshold_at_fpr, tpr_at_fpr])
def test_bad_input(metric):
    with pytest.raises(ValueError, match=r"`max_fpr` must be in \(0, 1\), got 1"):
        metric(Y_TRUE, SCORES, 1)
    with pytest.raises(ValueError, match=r"`scores` must have as many rows as `y_true` \(7\), got 6"):
        metric(Y_TRUE, SCORES[1:])
    with pytest.raises(ValueError, match="`y_true` must hold exactly two labels, got 1"):
        metric([1, 1], [0.1, 0.2])
    with pytest.raises(ValueError, match="`scores` must be finite, got nan in row 0"):
        metric(Y_TRUE, [np.nan, *SCORES[1:]])


@settings(deadline=None, max_examples=200)
@given(
    rows=st.lists(st.tuples(st.booleans(), st.integers(0, 5)), max_size=40),
    max_fpr=st.one_of(st.floats(0.001, 0.999), st.sampled_from([0.05, 0.1, 0.2, 1 / 3, 0.5])),
    dtype=st.sampled_from([np.int64, np.float32, np.float64]),
)
def test_budget_holds_under_ties_and_no_lower_score_would_hold_it(rows, max_fpr, dtype):
    rows = [(False, 1), (True, 2), *rows]
    y_true = np.array([label for label, _ in rows])
    scores = np.array([score for _, score in rows]).astype(dtype) / dtype(10)

    def fpr(threshold):
        return np.mean(scores[~y_true] >= threshold)

    threshold = threshold_at_fpr(y_true, scores, max_fpr)
    assert fpr(threshold) <= max_fpr
    assert threshold in scores or threshold > scores.max()
    assert all(fpr(float(score)) > max_fpr for score in scores if score < threshold)
    if threshold > scores.max():
        assert fpr(float(np.nextafter(scores.dtype.type(threshold), scores.dtype.type(-1)))) > max_fpr


@given(st.integers(1, 10_000), st.integers(1, 999))
def test_allowed_count_is_the_largest_within_the_budget_as_floats_compare(n_negatives, thousandths):
    max_fpr = thousandths / 1000
    allowed = allowed_false_positives(n_negatives, max_fpr)
    assert allowed / n_negatives <= max_fpr < (allowed + 1) / n_negatives


def test_allowed_count_where_the_product_rounds_down():
    assert int(0.29 * 100) == 28
    assert allowed_false_positives(100, 0.29) == 29
