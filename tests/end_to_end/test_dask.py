"""An experiment or a search on a Dask cluster: the same frame, even if a worker dies."""

import copy
import os
import signal
import threading
import time

import lightgbm
import pandas as pd
import pytest
from benchmarks.faults import n_done
from tests.experiment.conftest import search

from fado.experiment import Experiment

distributed = pytest.importorskip("distributed")
# distributed's own clean-up leaves sockets to the collector now and then
pytestmark = pytest.mark.filterwarnings(
    "ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"
)

TABLE = {
    "data": {
        "generator": "account_fraud", "rows": 3000, "target": "fraud_bool", "protected": "customer_age>=50",
    },
    "split": {"method": "random", "train": 0.5, "validation": 0.25, "test": 0.25},
    "valuation": {"bags": 5, "models": [{"n_estimators": 5}]},
    "interventions": {"uaps": {"alphas": [0.5]}, "uar": {"alphas": [0.0, 1.0]}},
    "models": {"count": 3, "space": {"n_estimators": {"log_uniform": [3, 20]}}},
    "evaluation": {"bootstrap": 20},
}  # fmt: skip


@pytest.fixture
def client():
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=":0", memory_limit=None
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


@pytest.mark.filterwarnings("ignore:.*too close to say:UserWarning")
@pytest.mark.parametrize("algorithm", ["oob", "influence"])
def test_values_are_made_there_too(client, tmp_path, monkeypatch, algorithm):
    table = copy.deepcopy(TABLE)
    table["valuation"]["algorithms"] = [algorithm]
    expected = Experiment(copy.deepcopy(table)).run(tmp_path / "here", n_jobs=1)

    def refuse(*_, **__):
        raise AssertionError("a model was fitted in this process")

    monkeypatch.setattr(lightgbm.Booster, "update", refuse)
    results = Experiment(table).run(tmp_path / "there", n_jobs=1, client=client)
    assert (results.frame["status"] == "done").all()
    pd.testing.assert_frame_equal(results.frame, expected.frame, check_exact=True)


def test_a_killed_worker_costs_its_fits_in_flight_only(client, tmp_path):
    table = copy.deepcopy(TABLE)
    table["models"]["space"]["n_estimators"] = {"log_uniform": [100, 400]}
    expected = Experiment(copy.deepcopy(table)).run(tmp_path / "here", n_jobs=2)
    store = tmp_path / "there"
    victim = next(iter(client.run(os.getpid).values()))
    killed = []

    def kill():
        while n_done(store) < 3:
            time.sleep(0.005)
        os.kill(victim, signal.SIGKILL)
        killed.append(n_done(store))

    killer = threading.Thread(target=kill, daemon=True)
    killer.start()
    results = Experiment(table).run(store, n_jobs=1, client=client)
    killer.join(10)
    assert killed
    assert killed[0] < n_done(store)
    pd.testing.assert_frame_equal(results.frame, expected.frame, check_exact=True)


def test_a_cluster_finds_the_same_frontier(client):
    frame = search(max_fits=3, client=client).frame
    assert (frame["status"] == "done").all()
    assert "aimed" in set(frame["intervention"])
    pd.testing.assert_frame_equal(frame, search(max_fits=3).frame, check_exact=True)
