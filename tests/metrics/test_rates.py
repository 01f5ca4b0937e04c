import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import UndefinedMetricWarning

from fado.metrics import (
    RATIO_NAMES,
    equalized_odds_ratio,
    fnr_ratio,
    fpr_ratio,
    selection_rate_ratio,
    tpr_ratio,
)

FUNCTIONS = [fpr_ratio, fnr_ratio, tpr_ratio, selection_rate_ratio]

# Three groups of 4 negatives and 4 positives: false positives 1, 2, 4; true positives 4, 3, 2.
Y_TRUE = [0, 0, 0, 0, 1, 1, 1, 1] * 3
Y_PRED = [int(digit) for digit in "100011111100111011111100"]
GROUPS = list("aaaaaaaabbbbbbbbcccccccc")
EXPECTED = {fpr_ratio: 0.25, fnr_ratio: 0.0, tpr_ratio: 0.5, selection_rate_ratio: 5 / 6}


@pytest.mark.parametrize(("ratio", "expected"), EXPECTED.items())
def test_three_groups_by_hand_whatever_the_labels_and_the_index(ratio, expected):
    assert ratio(Y_TRUE, Y_PRED, sensitive_features=GROUPS) == expected
    y_true, y_pred = (
        pd.Series(np.where(np.array(own) == 1, "yes", "no"), index=index)
        for own, index in ((Y_TRUE, np.arange(24)[::-1]), (Y_PRED, [0] * 24))
    )
    assert ratio(y_true, y_pred, sensitive_features=pd.Series(GROUPS)) == expected


def test_the_positive_label_turns_the_rates_around():
    # With 0 as the positive class a false positive is a positive that was missed.
    assert fpr_ratio(Y_TRUE, Y_PRED, sensitive_features=GROUPS, pos_label=0) == 0.0
    assert fnr_ratio(Y_TRUE, Y_PRED, sensitive_features=GROUPS, pos_label=0) == 0.25


@pytest.mark.parametrize(
    ("ratio", "y_true", "y_pred", "reason"),
    [
        (fpr_ratio, "1101", "1011", "no negatives in group 'a'"),
        (fnr_ratio, "0100", "1011", "no positives in group 'b'"),
        (tpr_ratio, "0100", "1111", "no positives in group 'b'"),
        (fpr_ratio, "0101", "0101", r"no false positives in any group \('a', 'b'\)"),
        (fnr_ratio, "0101", "0101", r"no false negatives in any group \('a', 'b'\)"),
        (tpr_ratio, "0101", "1000", r"no true positives in any group \('a', 'b'\)"),
        (selection_rate_ratio, "0101", "0000", r"no predicted positives in any group \('a', 'b'\)"),
    ],
)
def test_undefined_ratios_name_the_group_and_what_it_lacks(ratio, y_true, y_pred, reason):
    told = f"`{ratio.__name__}` is undefined and set to NaN: {reason}"
    with pytest.warns(UndefinedMetricWarning, match=told):
        assert np.isnan(ratio([*map(int, y_true)], [*map(int, y_pred)], sensitive_features=list("aabb")))
    with pytest.warns(UndefinedMetricWarning, match="'a' is the only group, and a ratio compares two"):
        assert np.isnan(ratio([0, 1, 0, 1], [0, 1, 1, 0], sensitive_features=["a"] * 4))


def with_a_tiny_group(n_tiny=5):
    """Three thousand rows of which a few, all negatives predicted positive, are a group apart."""
    rng = np.random.default_rng(0)
    groups = rng.choice(["a", "b"], size=3000).astype(object)
    y_true, y_pred = rng.random(3000) < 0.3, rng.random(3000) < 0.4
    groups[:n_tiny], y_true[:n_tiny], y_pred[:n_tiny] = "tiny", False, True
    return y_true, y_pred, groups


SMALL = (
    r"Group 'tiny' \(5 rows\), with fewer than 30 rows and less than 1 % of the table, is left out of ratios"
)


@pytest.mark.parametrize("ratio", FUNCTIONS)
def test_a_tiny_group_is_left_out_with_one_warning_whatever_it_weighs(ratio):
    y_true, y_pred, groups = with_a_tiny_group()
    rest = groups != "tiny"
    expected = ratio(y_true[rest], y_pred[rest], sensitive_features=groups[rest])
    for weights in (None, np.where(rest, 1.0, 1000.0)):
        with pytest.warns(UserWarning, match=f"{SMALL}; `min_group_size=0` compares all groups") as caught:
            assert ratio(y_true, y_pred, sensitive_features=groups, sample_weight=weights) == expected
        assert [type(warning.message) for warning in caught] == [UserWarning]
    groups[groups == "b"] = "a"
    with (
        pytest.warns(UserWarning, match=SMALL),
        pytest.warns(UndefinedMetricWarning, match="'a' is the only group that is not left out, and a ratio"),
    ):
        assert np.isnan(ratio(y_true, y_pred, sensitive_features=groups))


def test_a_tiny_group_counts_if_asked_to():
    y_true, y_pred, groups = with_a_tiny_group()
    rates = [np.mean(y_pred[~y_true & (groups == group)]) for group in "ab"]
    ratio = fpr_ratio(y_true, y_pred, sensitive_features=groups, min_group_size=0)
    assert ratio == pytest.approx(min(rates))  # of the rate of 1 in the tiny group
    assert ratio == fpr_ratio(y_true, y_pred, sensitive_features=groups, min_group_size=5)
    with pytest.warns(UserWarning, match="with fewer than 6 rows"):
        assert fpr_ratio(y_true, y_pred, sensitive_features=groups, min_group_size=6) > ratio


def test_a_small_group_is_compared_if_it_has_rows_enough_or_is_a_hundredth():
    for n_rows, size in ((3000, 30), (100, 50)):  # of a hundred, 30 are a third
        y_true, y_pred, groups = (column[:n_rows] for column in with_a_tiny_group(30))
        every = fpr_ratio(y_true, y_pred, sensitive_features=groups, min_group_size=0)
        assert fpr_ratio(y_true, y_pred, sensitive_features=groups, min_group_size=size) == every


def test_no_group_that_is_left_has_no_ratio():
    y_true, y_pred, _ = with_a_tiny_group()
    groups = [f"{row % 200}" for row in range(3000)]
    undefined = "`tpr_ratio` is undefined and set to NaN: every group is left"
    with (
        pytest.warns(UserWarning, match=r"Groups '0' \(15 rows\), .* and 195 more, with fewer than 30 rows"),
        pytest.warns(UndefinedMetricWarning, match=undefined),
    ):
        assert np.isnan(tpr_ratio(y_true, y_pred, sensitive_features=groups))


def test_a_rate_of_zero_in_one_group_is_defined():
    assert fpr_ratio([0, 1, 0, 1], [1, 1, 0, 1], sensitive_features=["a", "a", "b", "b"]) == 0.0


def test_equalised_odds_by_hand():
    # False-positive rates of 1/4, 2/4 and 1, true-positive rates of 1, 3/4 and 2/4.
    assert equalized_odds_ratio(Y_TRUE, Y_PRED, sensitive_features=GROUPS) == 0.25
    # The other way round the rates are those of missed positives and of negatives that are found.
    turned = equalized_odds_ratio(Y_TRUE, Y_PRED, sensitive_features=GROUPS, pos_label=0)
    assert turned == 0.0
    assert "equalized_odds_ratio" not in RATIO_NAMES


def test_equalised_odds_need_both_rates_and_warn_once():
    options = {"sensitive_features": list("aaabb")}
    with pytest.warns(UndefinedMetricWarning) as caught:
        assert np.isnan(equalized_odds_ratio([0, 0, 1, 1, 1], [0, 1, 1, 1, 0], **options))
    assert [str(warning.message) for warning in caught] == [
        "`equalized_odds_ratio` is undefined and set to NaN: no negatives in group 'b'."
    ]
    with pytest.warns(UndefinedMetricWarning, match="no true positives in any group"):
        assert np.isnan(equalized_odds_ratio([0, 0, 1, 0, 1], [0, 1, 0, 1, 0], **options))
