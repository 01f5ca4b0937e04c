import copy
import pickle

import numpy as np
import pytest
from sklearn.base import clone

from fado import CobbDouglasUtility, DifferenceUtility, LinearUtility, Valuation
from fado.utility import register_utility, utility_class, utility_names
from fado.valuation import Scale

UTILITIES = [LinearUtility, DifferenceUtility, CobbDouglasUtility]
UNIT = Scale("how unsure", 0.0, 1.0, None)
NO = (float("nan"), float("inf"))


def valuation(**values):
    values = {name: np.array(value, dtype=float) for name, value in values.items()}
    return Valuation(values, values, values, values)


ONE = valuation(y=[0.0, 1.0, 0.25, 0.5], age=[1.0, 0.0, 1.0, 0.5])
TWO = valuation(y=[1.0, 0.25, 0.0], age=[0.5, 1.0, 0.0], sex=[0.0, 0.0625, 1.0])


@pytest.mark.parametrize(
    ("rows", "utility", "expected"),
    [
        (ONE, LinearUtility(alpha=0.5), [0.5, 0.5, 0.625, 0.5]),
        (ONE, LinearUtility(alpha=0.75), [0.25, 0.75, 0.4375, 0.5]),
        (ONE, LinearUtility(alpha=0), [1.0, 0.0, 1.0, 0.5]),
        (ONE, LinearUtility(alpha=1), [0.0, 1.0, 0.25, 0.5]),
        (ONE, LinearUtility(alpha=0.5, betas={"age": 2}), [2.0, 0.5, 2.125, 1.25]),
        (ONE, DifferenceUtility(alpha=0.5), [-0.5, 0.5, -0.375, 0.0]),
        (ONE, DifferenceUtility(alpha=0.75), [-0.25, 0.75, -0.0625, 0.25]),
        (ONE, DifferenceUtility(alpha=0), [-1.0, 0.0, -1.0, -0.5]),
        (ONE, DifferenceUtility(alpha=1), [0.0, 1.0, 0.25, 0.5]),
        (ONE, CobbDouglasUtility(alpha=0.5), [0.0, 0.0, 0.5, 0.5]),
        (ONE, CobbDouglasUtility(alpha=0), [1.0, 0.0, 1.0, 0.5]),  # 0 ** 0 is 1
        (ONE, CobbDouglasUtility(alpha=1), [0.0, 1.0, 0.25, 0.5]),
        (ONE, CobbDouglasUtility(alpha=0.5, betas={"age": 1}), [0.0, 0.0, 0.5, 0.5**1.5]),
        (TWO, LinearUtility(alpha=0.5), [0.625, 0.390625, 0.25]),
        (TWO, LinearUtility(alpha=0.5, betas={"age": 0.3, "sex": 0.2}), [0.65, 0.4375, 0.2]),
        (TWO, LinearUtility(alpha=0.5, betas={"sex": 0.5}), [0.5, 0.15625, 0.5]),
        (TWO, LinearUtility(alpha=0.5, betas={}), [0.5, 0.125, 0.0]),
        (TWO, DifferenceUtility(alpha=0.5), [0.375, -0.140625, -0.25]),
        (TWO, DifferenceUtility(alpha=0.5, betas={"sex": 0.5}), [0.5, 0.09375, -0.5]),
        (TWO, CobbDouglasUtility(alpha=0.5), [0.0, 0.25, 0.0]),  # 0.25 ** 0.5 * 1 * 0.0625 ** 0.25
        (TWO, CobbDouglasUtility(alpha=0.5, betas={"age": 0.5}), [np.sqrt(0.5), 0.5, 0.0]),
    ],
)
def test_utilities_by_hand(rows, utility, expected):
    result = utility(rows)
    assert result.dtype == np.float64
    np.testing.assert_allclose(result, expected, rtol=0, atol=1e-15)


def test_a_weight_of_zero_leaves_missing_values_out():
    rows = valuation(y=[0.5, np.nan], age=[np.nan, 0.25])
    for kind in UTILITIES:
        np.testing.assert_array_equal(kind(alpha=1)(rows), [0.5, np.nan])
    np.testing.assert_array_equal(LinearUtility(alpha=0)(rows), [np.nan, 0.25])
    np.testing.assert_array_equal(CobbDouglasUtility(alpha=0)(rows), [np.nan, 0.25])
    np.testing.assert_array_equal(LinearUtility(alpha=0.5)(rows), [np.nan, np.nan])


@pytest.mark.parametrize("kind", UTILITIES)
def test_without_protected_attributes(kind):
    rows = valuation(y=[0.5, 1.0])
    np.testing.assert_array_equal(kind(alpha=1.0)(rows), [0.5, 1.0])
    with pytest.raises(ValueError, match=r"no protected attribute, and alpha=0.5 .* or set `alpha=1`"):
        kind(alpha=0.5)(rows)


def test_anything_with_values_and_attributes_will_do_but_negative_values_have_no_power():
    class Mine(dict):
        protected = ("age",)

    np.testing.assert_array_equal(LinearUtility(alpha=0.5)(Mine(y=[1, 0], age=[0, 0])), [0.5, 0.0])
    with pytest.raises(ValueError, match="needs values of at least 0, got a negative one"):
        CobbDouglasUtility(alpha=0.5)(valuation(y=[-0.5], age=[0.5]))


@pytest.mark.parametrize("kind", UTILITIES)
@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        *(({"alpha": alpha}, ValueError, r"`alpha` must be in \[0, 1\], got") for alpha in (-0.1, 1.1, *NO)),
        ({"alpha": "0.5"}, TypeError, r"`alpha` must be a number in \[0, 1\], got '0.5'"),
        ({"betas": 0.5}, TypeError, "`betas` must map protected attributes to numbers, got 0.5"),
        *(
            ({"betas": {"age": beta}}, ValueError, r"`betas\['age'\]` must be a number of at least 0, got")
            for beta in (-0.1, "1", *NO)
        ),
        (
            {"betas": {"agee": 0.5}},
            ValueError,
            r"`betas` names 'agee', which is not one .* attributes \['age'\]",
        ),
    ],
)
def test_bad_settings_are_refused(kind, settings, error, message):
    with pytest.raises(error, match=message):
        kind(**settings)(ONE)


def test_utilities_compare_by_what_they_are():
    first = LinearUtility(alpha=0.5, betas={"age": 1, "sex": 2})
    second = LinearUtility(alpha=0.5, betas={"sex": 2, "age": 1})
    assert (first, hash(first)) == (second, hash(second))
    half = LinearUtility(alpha=0.5)
    others = {LinearUtility(alpha=0.4), first, DifferenceUtility(alpha=0.5)}
    assert len(others | {half, LinearUtility(alpha=0.5)}) == 4
    assert LinearUtility(alpha=1) == LinearUtility(alpha=1.0)


def test_parameters_are_read_and_set_as_scikit_learn_does():
    utility = LinearUtility(alpha=0.5, betas={"age": 0.5})
    assert utility.get_params() == {"alpha": 0.5, "betas": {"age": 0.5}}
    assert clone(utility) == utility
    assert utility.set_params(alpha=0.25, betas=None) == LinearUtility(alpha=0.25)
    utility.set_params(alpha=1.5)
    with pytest.raises(ValueError, match=r"`alpha` must be in \[0, 1\], got 1.5"):
        utility(Valuation.from_probabilities([0.5], {"age": [0.5]}))


def test_signed_values_are_divided_by_their_spread_or_refused():
    signed = Valuation.from_values({"y": [2.0, -2.0], "age": [0.1, 0.3]})
    np.testing.assert_allclose(LinearUtility(alpha=0.5)(signed), [0.5 + 0.5, -0.5 + 1.5])
    mixed = Valuation.from_values({"y": [0.5, 1.0], "age": [0.1, 0.3]}, scales={"y": UNIT})
    np.testing.assert_allclose(LinearUtility(alpha=1.0)(mixed), [0.5, 1.0])
    for kind in (DifferenceUtility, CobbDouglasUtility):
        with pytest.raises(ValueError, match=r"needs values that are never negative.*'y' are signed"):
            kind(alpha=0.5)(signed)


@pytest.mark.parametrize(("alpha", "n_protected", "same"), [(1.0, 2, True), (0.0, 1, True), (0.0, 2, False)])
def test_utilities_that_are_one_value_are_the_linear_one(alpha, n_protected, same):
    utility = CobbDouglasUtility(alpha=alpha)
    assert utility.simplest(n_protected) == (LinearUtility(alpha=alpha) if same else utility)
    shares = {"age": 0.3, "sex": 0.3}  # for some attributes alone
    assert LinearUtility(alpha=0.4).over(["age", "sex"]) == LinearUtility(0.4, shares)


def test_registered_names():
    assert utility_names()[:3] == ("linear", "difference", "cobb-douglas")
    assert [utility_class(name) for name in utility_names()[:3]] == list(UTILITIES)
    with pytest.raises(ValueError, match=r"`utility` must be 'linear' or .* got 'cubic'"):
        utility_class("cubic")
    with pytest.raises(ValueError, match="There is a utility called 'linear' already, LinearUtility"):
        register_utility("linear")(DifferenceUtility)


@pytest.mark.parametrize("kind", UTILITIES)
@pytest.mark.parametrize("betas", [None, {"age": 0.25}])
def test_utilities_can_be_copied_pickled_and_written_down(kind, betas):
    utility = kind(alpha=0.25, betas=betas)
    assert copy.deepcopy(utility) == utility
    assert pickle.loads(pickle.dumps(utility)) == utility
    assert eval(repr(utility)) == utility
    assert repr(LinearUtility(alpha=0.5)) == "LinearUtility(alpha=0.5)"
    shown = "CobbDouglasUtility(alpha=0.0, betas={'age': 1.0, 'sex': 0.5})"
    assert repr(CobbDouglasUtility(alpha=0, betas={"age": 1, "sex": 0.5})) == shown
