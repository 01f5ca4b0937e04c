"""Parts scored by the workers of a Dask cluster."""

import numpy as np
import pandas as pd
import pytest

import fado

distributed = pytest.importorskip("distributed")

# distributed's own clean-up leaves sockets to the collector now and then
pytestmark = pytest.mark.filterwarnings(
    "ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"
)


@pytest.fixture(scope="module")
def client():
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=":0", memory_limit=None
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


def test_workers_write_the_very_parts_that_threads_write(client, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(2000, 3)), columns=["a", "b", "c"])
    frame["z"] = rng.choice(["f", "m"], 2000)
    frame["y"] = frame["a"] + rng.normal(size=2000) > 0
    (tmp_path / "data").mkdir()
    for part in range(4):
        frame.iloc[part * 500 : (part + 1) * 500].to_parquet(f"data/{part}.parquet", index=False)
    asked = {"target": "y", "protected": "z", "train_rows": 600, "n_bags": 5, "memory": "500MB"}
    fado.value_files("data", out="here", **asked)
    fado.value_files("data", out="there", client=client, **asked)
    for part in sorted((tmp_path / "here").glob("part-*")):
        assert part.read_bytes() == (tmp_path / "there" / part.name).read_bytes()
