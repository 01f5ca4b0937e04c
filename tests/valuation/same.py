"""What tests of several valuators share."""

import warnings

import numpy as np


def assert_same(one, other):
    """Two valuations hold the same bits."""
    assert (one.fields, one.variables) == (other.fields, other.variables)
    for field in one.fields:
        for name in one.variables:
            np.testing.assert_array_equal(one.field(field, name), other.field(field, name), strict=True)


def messages_of(function, *arguments, **settings):
    """What a call warns of."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        function(*arguments, **settings)
    return [str(warning.message) for warning in caught]
