"""Every form of a `random_state` serves everything that takes one."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from fado import AimedEstimator, OutOfBagEntropy, RandomPrevalenceSampler, explore
from fado._checks import sklearn_seed
from fado.active import UtilitySampling
from fado.valuation import removal_effects

RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, 2))
Z = np.where(X[:, 1] + RNG.normal(size=300) > 0, "b", "a")
Y = (X.sum(axis=1) + RNG.normal(size=300) > 1).astype(int)
VALUATION = OutOfBagEntropy(n_bags=5, random_state=0).fit(X, Y, sensitive_features=Z).valuation_
LINEAR, SEX, ROWS = LogisticRegression(), {"sensitive_features": Z}, {"validation": (X, Y, Z), "n_fits": 5}
USES = {
    "check": lambda seed: removal_effects(VALUATION, LINEAR, X, Y, **SEX, **ROWS, random_state=seed).metric,
    "aim": lambda seed: AimedEstimator(LINEAR, at_least=0.1, random_state=seed).fit(X, Y, **SEX).threshold_,
    "sampler": lambda seed: RandomPrevalenceSampler(random_state=seed).fit_resample(X, Y, **SEX)[0],
    "query": lambda seed: UtilitySampling(random_state=seed).query(X, np.where(X[:, 0] > 0, Y, np.nan)),
    "explore": lambda seed: str(explore(X, Y, **SEX, retrain=0, random_state=seed).to_dict()["attributes"]),
}


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize(
    "seed", [2**33 + 1, np.uint64(2**40), np.random.default_rng], ids=["33 bits", "64 bits", "generator"]
)
def test_large_seeds_and_generators_serve_everywhere(use, seed):
    first, second = (USES[use](seed(7) if callable(seed) else seed) for _ in range(2))
    np.testing.assert_array_equal(first, second)
    given = (None, np.random.RandomState(0), 0, 2**32 - 1, np.int64(7))  # as scikit-learn takes them
    assert [sklearn_seed(one) for one in given] == list(given)
    assert sklearn_seed(2**32 + 5) == 5
