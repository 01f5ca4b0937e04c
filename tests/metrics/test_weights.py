import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.metrics import roc_curve

from fado.metrics import (
    RATIO_NAMES,
    evaluate,
    fnr_ratio,
    fpr_ratio,
    measure,
    selection_rate_ratio,
    threshold_at_fpr,
    tpr_at_fpr,
    tpr_ratio,
)

FUNCTIONS = [fpr_ratio, fnr_ratio, tpr_ratio, selection_rate_ratio]

# Negatives of a weigh 1, 3 and of b 2, 2; positives of a 1, 1 and of b 4, 1.
Y_TRUE = [0, 0, 1, 1, 0, 0, 1, 1]
SCORES = [0.1, 0.7, 0.6, 0.9, 0.7, 0.3, 0.8, 0.2]
GROUPS = list("aaaabbbb")
WEIGHTS = [1, 3, 1, 1, 2, 2, 4, 1]


def random_rows(seed, size, n_groups):
    """Draw labels of both kinds, tied scores and groups."""
    rng = np.random.default_rng(seed)
    y_true = np.append(rng.random(size) < 0.4, [False, True])
    scores = np.round(rng.normal(size=size + 2) + y_true, 1) + 0.0  # no zero with a sign
    return y_true, scores, rng.integers(0, n_groups, size + 2), rng


def silently(function, *arguments, **settings):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UndefinedMetricWarning)
        return function(*arguments, **settings)


def test_threshold_by_hand():
    # Of 8 the negatives at 0.7 weigh 5, with the one at 0.3 they weigh 7.
    assert threshold_at_fpr(Y_TRUE, SCORES, 0.6, sample_weight=WEIGHTS) == 0.8
    assert threshold_at_fpr(Y_TRUE, SCORES, 0.625, sample_weight=WEIGHTS) == 0.6
    assert threshold_at_fpr(Y_TRUE, SCORES, 0.875, sample_weight=WEIGHTS) == 0.2
    assert tpr_at_fpr(Y_TRUE, SCORES, 0.6, sample_weight=WEIGHTS) == 5 / 7
    assert tpr_at_fpr(Y_TRUE, SCORES, 0.625, sample_weight=WEIGHTS) == 6 / 7


def test_all_metrics_by_hand():
    result = evaluate(Y_TRUE, SCORES, sensitive_features=GROUPS, max_fpr=0.625, sample_weight=WEIGHTS)
    assert result == {
        "threshold": 0.6,
        "fpr": 5 / 8,
        "tpr": 6 / 7,
        "fpr_ratio": (2 / 4) / (3 / 4),
        "fnr_ratio": 0.0,
        "tpr_ratio": (4 / 5) / (2 / 2),
        "selection_rate_ratio": (6 / 9) / (5 / 6),
    }
    predicted = np.array(SCORES) >= 0.6
    for ratio in FUNCTIONS:
        assert result[ratio.__name__] == ratio(
            Y_TRUE, predicted, sensitive_features=GROUPS, sample_weight=WEIGHTS
        )


@settings(deadline=None, max_examples=60)
@given(
    seed=st.integers(0, 2**32),
    weight=st.one_of(st.floats(1e-6, 1e6), st.sampled_from([1, 0.1, 1 / 3])),
    n_boot=st.sampled_from([0, 20]),
    budget=st.sampled_from([("fpr", 0.3), ("selection_rate", 0.2), ("top_k", 15)]),
)
def test_equal_weights_are_no_weights_to_the_last_bit(seed, weight, n_boot, budget):
    y_true, scores, groups, _ = random_rows(seed, 40, 3)
    options = {"sensitive_features": groups, "budget": budget, "n_boot": n_boot, "random_state": 0}
    plain = silently(evaluate, y_true, scores, **options)
    for weights in (np.full(42, weight), weight):
        weighted = silently(evaluate, y_true, scores, **options, sample_weight=weights)
        np.testing.assert_equal(weighted, plain)


@settings(deadline=None, max_examples=100)
@given(seed=st.integers(0, 2**32), max_fpr=st.floats(0.01, 0.99), whole=st.booleans())
def test_thresholds_are_those_of_the_weighted_roc_curve(seed, max_fpr, whole):
    y_true, scores, _, rng = random_rows(seed, 50, 2)
    weights = rng.integers(1, 6, 52) if whole else rng.gamma(1.0, size=52)
    fpr, tpr, thresholds = roc_curve(y_true, scores, sample_weight=weights, drop_intermediate=False)
    assume((np.abs(fpr - max_fpr) > 1e-9).all())  # or sums in another order could round to the other side
    at = np.flatnonzero(fpr <= max_fpr)[-1]
    threshold = threshold_at_fpr(y_true, scores, max_fpr, sample_weight=weights)
    assert threshold == thresholds[at] or (at == 0 and threshold > scores.max())
    assert tpr_at_fpr(y_true, scores, max_fpr, sample_weight=weights) == pytest.approx(tpr[at])


@pytest.mark.parametrize(
    "column",
    [list, np.array, pd.Series, pl.Series, pa.array, lambda values: pd.Series(values, index=range(8)[::-1])],
    ids=["list", "numpy", "pandas", "polars", "arrow", "pandas with an index"],
)
def test_weights_come_from_any_library(column):
    assert tpr_at_fpr(Y_TRUE, SCORES, 0.625, sample_weight=column(WEIGHTS)) == 6 / 7


def test_rows_that_weigh_nothing_do_not_count():
    # Without its first row group a has one negative, which scores above the threshold.
    weights = [0, *WEIGHTS[1:]]
    assert (
        fpr_ratio(Y_TRUE, [0, 1, 1, 1, 1, 0, 1, 0], sensitive_features=GROUPS, sample_weight=weights) == 0.5
    )
    # Nor are their scores thresholds: 0.1 is the lowest of all, 0.2 the lowest that weighs something.
    options = {"sensitive_features": GROUPS, "max_fpr": 0.9}
    dropped = evaluate(Y_TRUE[1:], SCORES[1:], sensitive_features=GROUPS[1:], max_fpr=0.9)
    assert evaluate(Y_TRUE, SCORES, **options, sample_weight=[0] + [1] * 7) == dropped
    assert threshold_at_fpr([0, 1, 0], [0.5, 0.6, 0.55], 0.5, sample_weight=[1, 1, 0]) == 0.6
    with pytest.warns(UndefinedMetricWarning, match="all scores are 0.5"):
        assert np.isnan(tpr_at_fpr([0, 1, 1], [0.5, 0.5, 0.9], sample_weight=[1, 1, 0]))


@pytest.mark.parametrize("weight", [1, 2.5])
def test_a_group_that_weighs_nothing_leaves_the_rates_and_no_ratios(weight):
    weights = [1, weight, 1, 1, 0, 0, 0, 0]
    lacking = ["negatives", "positives", "positives", "rows"]
    for ratio, what in zip(FUNCTIONS, lacking, strict=True):
        with pytest.warns(UndefinedMetricWarning, match=f"no {what} of any weight in group 'b'"):
            assert np.isnan(ratio(Y_TRUE, [0, 1] * 4, sensitive_features=GROUPS, sample_weight=weights))
    options = {"sensitive_features": GROUPS, "threshold": 0.65, "n_boot": 10, "random_state": 0}
    with pytest.warns(UndefinedMetricWarning) as caught:
        result = evaluate(Y_TRUE, SCORES, **options, sample_weight=weights)
    messages = [str(warning.message) for warning in caught]
    assert "`fpr_ratio` is undefined and set to NaN: no negatives of any weight in group 'b'." in messages
    assert len(messages) == 4
    assert (result["fpr"], result["tpr"]) == (weight / (1 + weight), 0.5)
    assert all(np.isnan(result[name]) for name in RATIO_NAMES)


def test_a_model_that_decides_nothing_has_no_ratios_whatever_the_weights():
    weights = np.random.default_rng(0).gamma(1.0, size=8)
    with pytest.warns(UndefinedMetricWarning, match="every row of group 'a', 'b' is predicted positive"):
        result = evaluate(Y_TRUE, SCORES, sensitive_features=GROUPS, threshold=0.0, sample_weight=weights)
    assert result["fpr"] == result["tpr"] == 1.0
    assert all(np.isnan(result[name]) for name in RATIO_NAMES)


NONE_OF_A_LABEL = "above zero in some row of each label, got zero in every"


@pytest.mark.parametrize("metric", [threshold_at_fpr, tpr_at_fpr, evaluate, fpr_ratio, fnr_ratio, tpr_ratio])
@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([1] * 7, r"`sample_weight` must have one weight per row, shape \(8,\), got \(7,\)"),
        ([-1] + [1] * 7, "`sample_weight` must be finite and not negative in every row"),
        ([np.nan] + [1] * 7, "`sample_weight` must be finite and not negative in every row"),
        (["a"] * 8, "`sample_weight` must hold numbers, got text"),
        ([0] * 8, "`sample_weight` is zero in every row"),
        ([1e308] + [1] * 7, r"must be 0 or between 1e-100 and 1e\+100 in every row, got"),
        ([1, 1, 0, 0, 1, 1, 0, 0], f"{NONE_OF_A_LABEL} positive row"),
        ([0, 0, 1, 1, 0, 0, 1, 2], f"{NONE_OF_A_LABEL} negative row"),
    ],
)
def test_bad_weights(metric, weights, message):
    given = {} if metric in (threshold_at_fpr, tpr_at_fpr) else {"sensitive_features": GROUPS}
    values = Y_TRUE if metric in FUNCTIONS else SCORES
    with pytest.raises(ValueError, match=message):
        metric(Y_TRUE, values, sample_weight=weights, **given)


@pytest.mark.parametrize("scale", [1e90, 1e-90])
def test_the_scale_of_weights_does_not_matter_however_large(scale):
    rng = np.random.default_rng(0)
    labels, weights = rng.random(2000) < 0.3, rng.random(2000)
    scores, groups = rng.random(2000) + 0.5 * labels, rng.integers(2, size=2000)
    plain, scaled = (
        evaluate(labels, scores, sensitive_features=groups, sample_weight=own, n_boot=50, random_state=0)
        for own in (weights, weights * scale)
    )
    assert scaled == pytest.approx(plain, rel=1e-9)
    assert np.isfinite(list(plain.values())).all()


def test_a_selection_rate_is_that_of_rows_of_any_label():
    # of a 1 of 4 is predicted positive, of b 2 of 4
    weights = [1, 3, 0, 0, 2, 2, 0, 0]
    predicted = [1, 0, 1, 1, 1, 0, 0, 0]
    assert selection_rate_ratio(Y_TRUE, predicted, sensitive_features=GROUPS, sample_weight=weights) == 0.5


def test_measure_is_evaluate_on_encoded_rows():
    options = {"max_fpr": 0.3, "n_boot": 30, "random_state": 1}
    positive, scores, codes, rng = random_rows(0, 900, 3)
    for weights in (None, rng.gamma(1.0, size=902)):
        metrics, reasons = measure(positive, scores, codes, ["0", "1", "2"], **options, sample_weight=weights)
        assert reasons == []
        labels = np.array(["0", "1", "2"])[codes]
        order = np.argsort(labels, kind="stable")  # so that groups appear as they are numbered
        same = None if weights is None else weights[order]
        own = evaluate(
            positive[order], scores[order], sensitive_features=labels[order], **options, sample_weight=same
        )
        assert own == pytest.approx(metrics, rel=1e-12)
