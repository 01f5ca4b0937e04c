import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from fado.valuation.entropy._moments import Moments


@given(st.lists(st.floats(0, 1), min_size=2, max_size=12))
def test_equals_numpy(values):
    moments = Moments(1)
    for value in values:
        moments.add(np.array([0]), np.array([value]), np.array([1 - value]))
    np.testing.assert_allclose(moments.mean, np.mean(values), atol=1e-12)
    np.testing.assert_allclose(
        moments.standard_error, np.std(values, ddof=1) / np.sqrt(len(values)), atol=1e-9
    )
    np.testing.assert_allclose(moments.agreement, 1 - np.mean(values), atol=1e-12)


def test_a_row_scored_once_has_no_standard_error():
    moments = Moments(2)
    moments.add(np.array([1]), np.array([0.25]), np.array([0.5]))
    np.testing.assert_array_equal(moments.count, [0, 1])
    np.testing.assert_array_equal(moments.mean, [np.nan, 0.25])
    assert np.isnan(moments.standard_error).all()


def test_a_failed_prediction_is_not_a_value_of_zero():
    moments = Moments(2)
    moments.add(np.array([0, 1]), np.array([np.nan, 0.5]), np.array([np.nan, 0.5]))
    assert np.isnan(moments.mean[0])
    assert moments.count[0] == 0
    assert moments.mean[1] == 0.5


def test_equal_values_have_no_error():
    moments = Moments(1)
    for _ in range(5):
        moments.add(np.array([0]), np.array([0.1]), np.array([0.1]))
    assert moments.standard_error[0] < 1e-16
