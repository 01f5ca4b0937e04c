"""Models fitted and parts scored by the workers of a Dask cluster."""

import os
import signal
import threading
import time

import lightgbm
import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

import fado
from fado import InBagEntropy, OutOfBagEntropy
from fado.execution import on_cluster

distributed = pytest.importorskip("distributed")

# distributed's own clean-up leaves sockets to the collector now and then
pytestmark = pytest.mark.filterwarnings(
    "ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"
)

ASKED = {"target": "y", "protected": "z", "train_rows": 600, "n_bags": 5, "memory": "500MB"}


def frame_of(n_rows):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(n_rows, 3)), columns=["a", "b", "c"])
    frame["job"] = rng.choice(["clerk", "nurse", None], n_rows)
    frame["z"] = rng.choice(["f", "m"], n_rows)
    frame["y"] = frame["a"] + rng.normal(size=n_rows) > 0
    return frame


def write(frame, folder, n_parts=4):
    folder.mkdir()
    for part, rows in enumerate(np.array_split(np.arange(len(frame)), n_parts)):
        frame.iloc[rows].to_parquet(folder / f"{part:02d}.parquet", index=False)
    return folder


def parts_of(folder):
    return {path.name: path.read_bytes() for path in sorted(folder.glob("part-*"))}


@pytest.fixture
def no_fits_here(monkeypatch):
    def refuse(*_, **__):
        raise AssertionError("a model was fitted in this process")

    monkeypatch.setattr(lightgbm.Booster, "update", refuse)
    monkeypatch.setattr(LogisticRegression, "fit", refuse)


@pytest.fixture(scope="module")
def client():
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=":0", memory_limit=None
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


def test_workers_fit_the_very_models_and_write_the_very_parts_that_threads_do(
    client, tmp_path, monkeypatch, request
):
    monkeypatch.chdir(tmp_path)
    write(frame_of(2000), tmp_path / "data")
    fado.value_files("data", out="here", **ASKED)
    request.getfixturevalue("no_fits_here")
    fado.value_files("data", out="there", client=client, **ASKED)
    assert parts_of(tmp_path / "here") == parts_of(tmp_path / "there")
    assert len(parts_of(tmp_path / "here")) == 4


@pytest.mark.parametrize("kind", [OutOfBagEntropy, InBagEntropy])
@pytest.mark.parametrize("estimators", [None, lightgbm.LGBMClassifier(n_estimators=5), LogisticRegression()])
def test_any_entropy_valuator_sends_its_fits(client, kind, estimators, request):
    frame = frame_of(500).drop(columns="job")
    X, y, z = frame[["a", "b", "c"]], frame["y"], frame["z"]
    expected = kind(estimators, random_state=0, n_jobs=1).fit(X, y, sensitive_features=z).valuation_
    request.getfixturevalue("no_fits_here")
    with on_cluster(client):
        found = kind(estimators, random_state=0).fit(X, y, sensitive_features=z).valuation_
    pd.testing.assert_frame_equal(found.values, expected.values, check_exact=True)
    pd.testing.assert_frame_equal(found.label_probability, expected.label_probability, check_exact=True)
    assert found.metadata == expected.metadata


def test_a_fit_that_fails_there_says_which(client):
    frame = frame_of(200)
    with (
        on_cluster(client),
        pytest.raises(RuntimeError, match=r"LogisticRegression on variable 'y' in bag 0 failed: .*'nope'"),
    ):
        OutOfBagEntropy(LogisticRegression(solver="nope"), n_bags=5).fit(frame[["a"]], frame["y"])


@pytest.fixture
def own_cluster():
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=":0", memory_limit=None
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield cluster, client


def kill_when(client, is_time):
    """Kill a worker's process as soon as something is the case; give what tells when."""
    victim = next(iter(client.run(os.getpid).values()))
    killed = []

    def kill():
        while not is_time():
            time.sleep(0.002)
        os.kill(victim, signal.SIGKILL)
        killed.append(True)

    threading.Thread(target=kill, daemon=True).start()
    return killed


def test_a_killed_worker_costs_what_it_was_at(own_cluster, tmp_path):
    _, client = own_cluster
    data = write(frame_of(6000), tmp_path / "data", n_parts=24)
    asked = ASKED | {"train_rows": 4000}
    fado.value_files(data, out=tmp_path / "here", **asked)
    out = tmp_path / "while-fitting"
    killed = kill_when(client, lambda: any(client.processing().values()))
    fado.value_files(data, out=out, client=client, **asked)
    assert killed
    assert parts_of(tmp_path / "here") == parts_of(out)
    client.wait_for_workers(2)
    out = tmp_path / "while-scoring"
    killed = kill_when(client, lambda: len(list(out.glob("part-*"))) > 3)
    fado.value_files(data, out=out, client=client, **asked)
    assert killed
    assert parts_of(tmp_path / "here") == parts_of(out)


def test_a_dask_frame_gets_a_sentence(tmp_path):
    frame = pytest.importorskip("dask.dataframe").from_pandas(frame_of(30), npartitions=2)
    with pytest.raises(TypeError, match="`paths` must name files or directories, got DataFrame: write a tab"):
        fado.value_files(frame, out=tmp_path / "v", **ASKED)
