"""The checks that scikit-learn and imbalanced-learn have for estimators and samplers of others."""

from importlib.metadata import version

import pytest
from imblearn.utils.estimator_checks import estimator_checks_generator
from lightgbm import LGBMClassifier
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.utils.estimator_checks import parametrize_with_checks

from fado import (
    InBagEntropy,
    RandomPrevalenceSampler,
    ReweighedEstimator,
    Reweigher,
    UtilityAwarePrevalenceSampler,
    UtilityAwareReweigher,
)

# The checks know no protected attributes: all rows are one group, which is warned of.
pytestmark = [
    pytest.mark.filterwarnings("ignore:There is only one group:UserWarning"),
    pytest.mark.filterwarnings("ignore:There are no protected attributes:UserWarning"),
    pytest.mark.filterwarnings("ignore:.*a class with one member:UserWarning"),
    pytest.mark.filterwarnings("ignore:.*repeat the target:UserWarning"),
    pytest.mark.filterwarnings("ignore:Converting data to scipy sparse matrix:UserWarning"),  # LightGBM's
]

IN_BAG = InBagEntropy(n_jobs=1, random_state=0)
NUMBERS = InBagEntropy(n_jobs=1, random_state=0, kinds={"y": "continuous"})
SAMPLERS = [RandomPrevalenceSampler(), UtilityAwarePrevalenceSampler()]


def fails(estimator):
    """What LightGBM before 4.6 does not pass, and nothing around it can."""
    own = isinstance(getattr(estimator, "estimator", None), LGBMClassifier)
    told = {"check_n_features_in_after_fitting": "LightGBM 4.5 has other words for it"}
    return told if own and version("lightgbm").startswith("4.5.") else {}


@parametrize_with_checks(
    [
        *SAMPLERS,
        Reweigher(),
        UtilityAwareReweigher(valuator=IN_BAG),
        UtilityAwareReweigher(valuator=IN_BAG, prevalence_correction=1.0, floor=0.1),
        ReweighedEstimator(LogisticRegression(), Reweigher()),
        ReweighedEstimator(LGBMClassifier(n_estimators=5, n_jobs=1, verbose=-1), Reweigher()),
        ReweighedEstimator(Ridge(), UtilityAwareReweigher(valuator=NUMBERS)),
    ],
    expected_failed_checks=fails,
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


# imbalanced-learn's `parametrize_with_checks` hands pytest a generator, which pytest warns of.
@pytest.mark.parametrize(
    ("estimator", "check"), [case for sampler in SAMPLERS for case in estimator_checks_generator(sampler)]
)
def test_imbalanced_learn_checks(estimator, check):
    check(estimator)
