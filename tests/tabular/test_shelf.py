"""Tables that are sent to other processes as the path of a file."""

import pickle

import numpy as np
import pyarrow as pa
import pytest

from fado.tabular import Table, on_shelf

TABLE = Table.from_input(
    pa.table(
        {
            "job": ["nurse", None, "clerk", "nurse"],
            "income": [1.5, None, float("nan"), -0.0],
            "old": [True, False, None, True],
            "id": [2**60, 1, 2, 3],
        }
    )
)


def contents(table):
    return [(own.name, own.levels, own.data.to_pylist()) for own in table.columns]


def test_what_is_sent_is_small_and_arrives_whole(tmp_path):
    with on_shelf(TABLE, tmp_path / "shelf") as shelved:
        sent = pickle.dumps(shelved)
        there = pickle.loads(sent)
        assert len(sent) < 500
        assert str(contents(there)) == str(contents(TABLE))  # NaN is not equal to itself
        assert there.is_named
    assert not (tmp_path / "shelf").exists()


def test_some_rows_of_some_rows(tmp_path):
    with on_shelf(TABLE, tmp_path / "shelf") as shelved:
        some = shelved.take(np.array([3, 0, 2])).take(np.array([2, 1]))
        there = pickle.loads(pickle.dumps(some))
        again = pickle.loads(pickle.dumps(there))
    assert again.n_rows == 2
    assert str(contents(again)) == str(contents(TABLE.take(np.array([2, 0]))))


def test_a_worker_that_does_not_see_the_file_says_so(tmp_path):
    with on_shelf(TABLE, tmp_path / "shelf") as shelved:
        sent = pickle.dumps(shelved)
    with pytest.raises(ValueError, match="cannot be read by this worker: the cluster's workers must see the"):
        pickle.loads(sent)


def test_the_file_goes_when_the_work_fails(tmp_path):
    with pytest.raises(KeyError), on_shelf(TABLE, tmp_path / "shelf"):
        raise KeyError
    assert not list(tmp_path.iterdir())
