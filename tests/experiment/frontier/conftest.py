"""A small search that the tests of the frontier share."""

import pytest
from tests.aim.conftest import draw_applicants

from fado import find_frontier
from fado.experiment._store import Store
from fado.experiment.frontier import Choice, train_choice

SPACE = {"n_estimators": {"log_uniform": [8, 24]}, "num_leaves": {"log_uniform": [4, 10]}}
N = 1600
APPLICANTS = draw_applicants(N, seed=0)


def search(data=APPLICANTS, **asked):
    settings = {"max_fits": 6, "space": SPACE, "max_fpr": 0.1, "n_jobs": 1} | asked
    X, y, sex = (settings.pop(name, own) for name, own in zip(("X", "y", "sex"), data, strict=True))
    return find_frontier(X, y, sensitive_features=sex, **settings)


def model_of(frontier, row, line=0.8):
    """The model of any row, as `best` hands one over."""
    choice = Choice(row, {frontier.ratio: line}, None, True, 1, 1)
    with Store.reading(frontier.results.store) as store:
        return train_choice(frontier.results, choice, frontier._data, store, given=frontier._given, fits=1)


@pytest.fixture(scope="session")
def frontier():
    """An undisturbed search of twelve fits."""
    return search(max_fits=12)
