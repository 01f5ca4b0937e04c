import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import entropy

from fado.tabular import Variable
from fado.valuation._probabilities import Moments, normalised_entropy, what_is_wrong

TWO = Variable("z", "classes", np.array([0, 1, 1]), ("a", "b"))
THREE = Variable("z", "classes", np.array([0, 1, 2]), ("a", "b", "c"))
NUMBER = Variable("z", "continuous", np.array([0.0, 1.0, 2.5]))


def both(p):
    return np.column_stack([1 - np.array(p), p])


# -(1/4 log2 1/4 + 3/4 log2 3/4) = 1/2 + 3/4 (2 - log2 3)
QUARTER = 0.5 + 0.75 * (2 - math.log2(3))


@pytest.mark.parametrize(
    ("p", "expected"),
    [
        (both([0.0, 0.25, 0.5, 0.75, 1.0]), [0.0, QUARTER, 1.0, QUARTER, 0.0]),
        # over 4 classes the largest entropy is 2 bits; the last row has 1.75
        ([[1, 0, 0, 0], [0.5, 0.5, 0, 0], [0.25] * 4, [0.5, 0.25, 0.125, 0.125]], [0.0, 0.5, 1.0, 0.875]),
        ([[np.nan, 0.5, 0.5]], [np.nan]),
    ],
)
def test_values_by_hand(p, expected):
    np.testing.assert_allclose(normalised_entropy(p), expected, rtol=0, atol=1e-15)


def test_certain_predictions_are_exactly_zero_and_never_nan():
    values = normalised_entropy(both([0.0, 1.0, 5e-324, 1.0 - 2**-53]))
    assert values[0] == values[1] == 0.0
    assert np.isfinite(values).all()


@given(st.lists(st.floats(0, 1), min_size=1, max_size=20))
def test_binary_values_lie_in_the_unit_interval_and_are_symmetric(p):
    values = normalised_entropy(both(p))
    assert ((values >= 0) & (values <= 1)).all()
    np.testing.assert_allclose(values, normalised_entropy(both(1 - np.array(p))), atol=1e-12)


@pytest.mark.parametrize("n_classes", [2, 3, 7])
def test_equals_scipy(n_classes):
    p = np.random.default_rng(n_classes).dirichlet(np.ones(n_classes), size=50)
    expected = entropy(p, base=2, axis=1) / np.log2(n_classes)
    np.testing.assert_allclose(normalised_entropy(p), expected, rtol=0, atol=1e-12)


# --- averages over models


@given(st.lists(st.floats(0, 1), min_size=2, max_size=12))
def test_equals_numpy(values):
    moments = Moments(1)
    for value in values:
        moments.add(np.array([0]), np.array([value]), np.array([1 - value]))
    finished = moments.finish(TWO)
    np.testing.assert_allclose(finished["values"], np.mean(values), atol=1e-12)
    error = np.std(values, ddof=1) / np.sqrt(len(values))
    np.testing.assert_allclose(finished["standard_error"], error, atol=1e-9)
    np.testing.assert_allclose(finished["label_probability"], 1 - np.mean(values), atol=1e-12)


def test_rows_scored_once_or_never_have_no_standard_error_and_failed_predictions_no_value():
    moments = Moments(3)
    moments.add(np.array([1, 2]), np.array([0.25, np.nan]), np.array([0.5, np.nan]))
    finished = moments.finish(TWO)
    np.testing.assert_array_equal(finished["counts"], [0, 1, 0])
    np.testing.assert_array_equal(finished["values"], [np.nan, 0.25, np.nan])
    assert np.isnan(finished["standard_error"]).all()


def test_equal_values_have_no_error():
    moments = Moments(1)
    for _ in range(5):
        moments.add(np.array([0]), np.array([0.1]), np.array([0.1]))
    assert moments.finish(TWO)["standard_error"][0] < 1e-16


# --- predictions that are none


@pytest.mark.parametrize(
    ("variable", "predicted"),
    [
        (TWO, np.array([[0.0, 1.0], [0.5, 0.5], [0.25, 0.75]])),
        (THREE, np.array([[0.2, 0.3, 0.5]] * 3, dtype=np.float32)),
        (NUMBER, np.array([-1e300, 0.0, 7.0])),
    ],
)
def test_nothing_is_wrong_with_predictions(variable, predicted):
    assert what_is_wrong(variable, 3, predicted) == ""


@pytest.mark.parametrize(
    ("variable", "predicted", "wrong"),
    [
        (TWO, [[0.5, 0.5], [0.5, np.nan], [np.inf, 0.0]], "NaN or infinite probabilities for 2 of 3 rows"),
        (TWO, both([0.5, -1e-9, 0.5]), "probabilities outside [0, 1] for 1 of 3 rows"),
        (TWO, both([1.5, 0.5, 0.5]), "probabilities outside [0, 1] for 1 of 3 rows"),
        (TWO, [[0.5, 0.4], [0.5, 0.5], [0.9, 0.9]], "probabilities that do not sum to 1 for 2 of 3 rows"),
        (TWO, [0.5, 0.5, 0.5], "predictions of shape (3,) for 3 rows and 2 classes"),
        (THREE, [[0.5, 0.5]] * 3, "predictions of shape (3, 2) for 3 rows and 3 classes"),
        (THREE, [0.5, 0.5, 0.5], "predictions of shape (3,) for 3 rows and 3 classes"),
        (NUMBER, [0.5, np.nan, 1.0], "NaN or infinite predictions for 1 of 3 rows"),
        (NUMBER, [[0.5], [0.5], [0.5]], "predictions of shape (3, 1) for 3 rows"),
    ],
)
def test_what_is_wrong_is_said(variable, predicted, wrong):
    assert what_is_wrong(variable, 3, np.array(predicted)) == wrong
