"""The checks that scikit-learn and imbalanced-learn have for samplers of others."""

import pytest
from imblearn.utils.estimator_checks import estimator_checks_generator
from sklearn.utils.estimator_checks import parametrize_with_checks

from fado import UtilityAwareOverSampler

# The checks know no protected attributes: all rows are one group, which is warned of.
pytestmark = [pytest.mark.filterwarnings("ignore:There is only one group:UserWarning")]

SAMPLERS = [UtilityAwareOverSampler(), UtilityAwareOverSampler(method="repeat")]


@parametrize_with_checks(SAMPLERS)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


# imbalanced-learn's `parametrize_with_checks` hands pytest a generator, which pytest warns of.
@pytest.mark.parametrize(
    ("estimator", "check"), [case for sampler in SAMPLERS for case in estimator_checks_generator(sampler)]
)
def test_imbalanced_learn_checks(estimator, check):
    check(estimator)
