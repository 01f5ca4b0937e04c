"""A small search that the tests of the frontier share."""

import pytest
from tests.aim.conftest import draw_applicants

from fado import find_frontier

SPACE = {"n_estimators": {"log_uniform": [8, 24]}, "num_leaves": {"log_uniform": [4, 10]}}
N = 1600
APPLICANTS = draw_applicants(N, seed=0)


def search(data=APPLICANTS, **asked):
    settings = {"budget": 6, "space": SPACE, "max_fpr": 0.1, "n_jobs": 1} | asked
    X, y, sex = (settings.pop(name, own) for name, own in zip(("X", "y", "sex"), data, strict=True))
    return find_frontier(X, y, sensitive_features=sex, **settings)


@pytest.fixture(scope="session")
def frontier():
    """An undisturbed search of twelve fits."""
    return search(budget=12)
