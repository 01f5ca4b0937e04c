"""A search for the frontier on a Dask cluster: the same frame."""

import pandas as pd
import pytest
from tests.experiment.conftest import search

distributed = pytest.importorskip("distributed")


# distributed's own clean-up leaves sockets to the collector now and then
@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_cluster_finds_the_same_frontier():
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=":0", memory_limit=None
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        found = search(max_fits=3, client=client)
    assert (found.frame["status"] == "done").all()
    assert "aimed" in set(found.frame["intervention"])
    pd.testing.assert_frame_equal(found.frame, search(max_fits=3).frame, check_exact=True)
