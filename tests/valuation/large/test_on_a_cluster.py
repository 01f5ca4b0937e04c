"""Models fitted and parts scored by the workers of a Dask cluster; dask DataFrames."""

import os
import signal
import threading
import time
from unittest.mock import Mock

import lightgbm
import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

import fado
from fado import InBagEntropy, OutOfBagEntropy, Valuation
from fado.execution import on_cluster
from fado.valuation import plan_files
from fado.valuation.large import _plan

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
    assert not (tmp_path / "there" / "_sample").exists()


def test_the_learning_curve_is_followed_there_too(client, tmp_path, request, monkeypatch):
    monkeypatch.setattr(_plan, "FIRST_SIZE", 500)
    data = write(frame_of(3_000), tmp_path / "data")
    asked = ASKED | {"train_rows": None}
    here = fado.value_files(data, out=tmp_path / "here", **asked)
    request.getfixturevalue("no_fits_here")
    there = fado.value_files(data, out=tmp_path / "there", client=client, **asked)
    assert here.metadata["learning_curve"] == there.metadata["learning_curve"]
    assert here.metadata["learning_curve"]["compared_with"] is not None
    assert parts_of(tmp_path / "here") == parts_of(tmp_path / "there")


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
    pd.testing.assert_frame_equal(found.agreement, expected.agreement, check_exact=True)
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
    killed = kill_when(client, (out / "_sample").exists)
    fado.value_files(data, out=out, client=client, **asked)
    assert killed
    assert parts_of(tmp_path / "here") == parts_of(out)
    client.wait_for_workers(2)
    out = tmp_path / "while-scoring"
    killed = kill_when(client, lambda: len(list(out.glob("part-*"))) > 3)
    fado.value_files(data, out=out, client=client, **asked)
    assert killed
    assert parts_of(tmp_path / "here") == parts_of(out)


# --- dask DataFrames


@pytest.fixture(scope="module")
def dask_frame():
    return pytest.importorskip("dask.dataframe").from_pandas(frame_of(3000), npartitions=12)


@pytest.mark.parametrize("name", ["values", "values.parquet"])
def test_a_dask_frame_is_valued_like_its_files(client, dask_frame, tmp_path, name):
    write(frame_of(3000), tmp_path / "data", n_parts=3)
    expected = fado.value_files(tmp_path / "data", out=tmp_path / "expected", **ASKED)
    found = fado.value_files(dask_frame, out=tmp_path / name, client=client, **ASKED)
    pd.testing.assert_frame_equal(found.values, expected.values, check_exact=True)
    assert not list(tmp_path.glob("**/_table-*"))
    assert len(list(tmp_path.glob(name))) == 1


def test_a_finished_frame_is_not_computed_again(dask_frame, tmp_path, monkeypatch):
    first = fado.value_files(dask_frame, out=tmp_path / "v", **ASKED)
    monkeypatch.setattr(type(dask_frame), "to_parquet", None)
    again = fado.value_files(dask_frame, out=tmp_path / "v", **ASKED)
    pd.testing.assert_frame_equal(first.values, again.values, check_exact=True)
    with pytest.raises(ValueError, match=r"were started with `random_state` 0, and now it is 1"):
        fado.value_files(dask_frame, out=tmp_path / "v", random_state=1, **ASKED)
    with pytest.raises(ValueError, match=r"were started from other files: 'dask DataFrame \w+' is new"):
        fado.value_files(dask_frame[dask_frame["a"] > 0], out=tmp_path / "v", **ASKED)


def test_a_run_that_was_ended_goes_on_from_the_files_it_wrote(dask_frame, tmp_path, monkeypatch):
    from fado.valuation.large import _value_files

    with monkeypatch.context() as patched:
        patched.setattr(_value_files, "learn", lambda *_, **__: (_ for _ in ()).throw(KeyboardInterrupt()))
        with pytest.raises(KeyboardInterrupt):
            fado.value_files(dask_frame, out=tmp_path / "v", **ASKED)
    assert len(list(tmp_path.glob("v/_table-*/*.parquet"))) == 12
    monkeypatch.setattr(type(dask_frame), "to_parquet", None)
    assert len(fado.value_files(dask_frame, out=tmp_path / "v", **ASKED)) == 3000
    assert Valuation.load(tmp_path / "v").shape == (3000, 2)


@pytest.mark.parametrize("where", ["join_parts", "Run.remove"])
def test_a_frames_run_that_was_ended_while_its_parts_were_joined_goes_on(
    dask_frame, tmp_path, monkeypatch, where
):
    out, expected = tmp_path / "v.parquet", tmp_path / "expected.parquet"
    fado.value_files(dask_frame, out=expected, **ASKED)
    with monkeypatch.context() as patched:
        stopped = Mock(side_effect=KeyboardInterrupt)
        patched.setattr(f"fado.valuation.large._value_files.{where}", stopped)
        with pytest.raises(KeyboardInterrupt):
            fado.value_files(dask_frame, out=out, **ASKED)
    monkeypatch.setattr(type(dask_frame), "to_parquet", None)  # nor is it computed again
    assert len(fado.value_files(dask_frame, out=out, **ASKED)) == 3000
    assert out.read_bytes() == expected.read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["expected.parquet", "v.parquet"]


def test_bad_frames_get_a_sentence(dask_frame, tmp_path):
    with pytest.raises(ValueError, match=r"`target` must name a column of the table, .* got 'no'"):
        fado.value_files(dask_frame, out=tmp_path / "v", **ASKED | {"target": "no"})
    with pytest.raises(ValueError, match="a column called 7, which is not text: rename it"):
        fado.value_files(dask_frame.rename(columns={"a": 7}), out=tmp_path / "v", **ASKED)
    with pytest.raises(ValueError, match="has no plan before it is computed"):
        plan_files(dask_frame, target="y", protected="z")
    assert not (tmp_path / "v").exists()
    mixed = dask_frame.assign(a=dask_frame["a"].astype(object).mask(dask_frame["a"] > 0, "x"))
    with pytest.raises(ValueError, match="The dask DataFrame cannot be written to Parquet files"):
        fado.value_files(mixed, out=tmp_path / "v", **ASKED)
