import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import entropy

from fado.valuation._probabilities import normalised_entropy, own_label_probability


def test_binary_values_by_hand():
    # -(1/4 log2 1/4 + 3/4 log2 3/4) = 1/2 + 3/4 (2 - log2 3)
    quarter = 0.5 + 0.75 * (2 - math.log2(3))
    expected = [0.0, quarter, 1.0, quarter, 0.0]
    np.testing.assert_allclose(normalised_entropy([0.0, 0.25, 0.5, 0.75, 1.0]), expected, rtol=0, atol=1e-15)


def test_multi_class_values_by_hand():
    p = [[1, 0, 0, 0], [0.5, 0.5, 0, 0], [0.25, 0.25, 0.25, 0.25], [0.5, 0.25, 0.125, 0.125]]
    # over 4 classes the largest entropy is 2 bits; the last row has 1.75
    np.testing.assert_allclose(normalised_entropy(p), [0.0, 0.5, 1.0, 0.875], rtol=0, atol=1e-15)


def test_certain_predictions_are_exactly_zero_and_never_nan():
    values = normalised_entropy([0.0, 1.0, 5e-324, 1.0 - 2**-53])
    assert values[0] == values[1] == 0.0
    assert np.isfinite(values).all()


def test_nan_stays_nan():
    assert np.isnan(normalised_entropy([np.nan])).all()
    assert np.isnan(normalised_entropy([[np.nan, 0.5, 0.5]])).all()


@given(st.lists(st.floats(0, 1), min_size=1, max_size=20))
def test_binary_values_lie_in_the_unit_interval_and_are_symmetric(p):
    values = normalised_entropy(p)
    assert ((values >= 0) & (values <= 1)).all()
    np.testing.assert_allclose(values, normalised_entropy(1 - np.array(p)), atol=1e-12)


@pytest.mark.parametrize("n_classes", [2, 3, 7])
def test_equals_scipy(n_classes):
    p = np.random.default_rng(n_classes).dirichlet(np.ones(n_classes), size=50)
    expected = entropy(p, base=2, axis=1) / np.log2(n_classes)
    np.testing.assert_allclose(normalised_entropy(p), expected, rtol=0, atol=1e-12)


def test_own_label_probability():
    codes = np.array([0, 1])
    np.testing.assert_allclose(own_label_probability(np.array([0.2, 0.7]), codes), [0.8, 0.7])
    np.testing.assert_allclose(own_label_probability(np.array([[0.2, 0.8], [0.7, 0.3]]), codes), [0.2, 0.3])
