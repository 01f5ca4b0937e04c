import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from fado import InBagEntropy, OutOfBagEntropy


@pytest.mark.filterwarnings("ignore:.*a class with one member:UserWarning")
@pytest.mark.filterwarnings("ignore:.*repeat the target:UserWarning")
@parametrize_with_checks([OutOfBagEntropy(n_bags=5, n_jobs=1), InBagEntropy(n_jobs=1)])
def test_scikit_learn_checks(estimator, check):
    check(estimator)
