"""The guide's example of a cluster, run on a small one: no doctest can, as its address is made up."""

import re
from pathlib import Path

import numpy as np
import pytest

distributed = pytest.importorskip("distributed")

PAGE = Path(__file__).parents[2] / "docs" / "guide" / "cluster.md"


# distributed's own clean-up leaves sockets to the collector now and then
@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
def test_values_are_made_on_the_cluster_that_is_named():
    example = re.search(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)[1]
    assert example.count("tcp://scheduler:8786") == 1
    rng = np.random.default_rng(0)
    names = {"X": rng.normal(size=(300, 3)), "y": rng.random(300) < 0.5, "z": rng.choice(["f", "m"], 300)}
    with distributed.LocalCluster(
        n_workers=1, threads_per_worker=1, processes=False, dashboard_address=":0", memory_limit=None
    ) as cluster:
        exec(example.replace("tcp://scheduler:8786", cluster.scheduler_address), names)
        names["client"].close()
    assert names["valuation"].values.shape == (300, 2)
