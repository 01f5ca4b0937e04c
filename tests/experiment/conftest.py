"""A tiny experiment that every test of the runner shares, and a small search for those of the frontier."""

import copy
import sys

import pytest
from tests.aim.conftest import draw_applicants

from fado.experiment import Experiment, find_frontier
from fado.experiment._choice import Choice
from fado.experiment._frontier import train_choice
from fado.experiment._runner import run_experiment

TINY = {
    "data": {
        "generator": "account_fraud",
        "rows": 2000,
        "target": "fraud_bool",
        "positive": 1,
        "protected": "customer_age>=50",
    },
    "split": {"method": "random", "train": 0.5, "validation": 0.25, "test": 0.25},
    "valuation": {"bags": 5, "models": [{"n_estimators": 5}]},
    "interventions": {
        "uaps": {"alphas": [0.0, 1.0], "utilities": ["linear", "cobb-douglas"]},
        "uar": {
            "alphas": [0.0, 1.0],
            "utilities": ["linear", "difference"],
            "scalings": ["minmax", "none"],
            "negative": "clip",
        },
    },
    "models": {
        "count": 2,
        "space": {"boosting_type": "goss", "n_estimators": {"log_uniform": [3, 20]}, "num_leaves": 5},
    },
    "evaluation": {"bootstrap": 20},
}


@pytest.fixture(autouse=True)
def _in_this_process(monkeypatch):
    """Runs stay in this process, where a test can reach into them, unless they say `isolated=True`."""
    for function in (Experiment.run, run_experiment):
        monkeypatch.setitem(function.__kwdefaults__, "isolated", False)


@pytest.fixture
def table():
    """The tiny configuration, to be changed at will."""
    return copy.deepcopy(TINY)


@pytest.fixture(scope="session")
def undisturbed(tmp_path_factory):
    """The store, results and report of an undisturbed run."""
    folder = tmp_path_factory.mktemp("undisturbed")
    results = Experiment(copy.deepcopy(TINY)).run(folder / "store", n_jobs=1, isolated=False)
    results.report(folder / "report.html")
    return folder, results


@pytest.fixture
def registries():
    """Registries that forget what a test adds; calling this lets them forget at once."""
    with pytest.MonkeyPatch.context() as patched:
        for module, name in (
            ("fado.interventions._registry", "_ENTRIES"),
            ("fado.utility", "_CLASSES"),
            ("fado.valuation._base", "_CLASSES"),
        ):
            patched.setattr(sys.modules[module], name, copy.copy(getattr(sys.modules[module], name)))
        yield patched.undo


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
    with frontier.results.opened() as store:
        return train_choice(
            frontier.results, choice, frontier._data, store, estimator=frontier._estimator, fits=1
        )


@pytest.fixture(scope="session")
def frontier():
    """An undisturbed search of twelve fits."""
    return search(max_fits=12)
