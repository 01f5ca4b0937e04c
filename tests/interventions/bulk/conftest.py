"""A table of 900 rows with its values, and ways to cut it into files."""

from itertools import pairwise

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest

from fado import Valuation
from fado.interventions.bulk import _blocks, _selection

N = 900


@pytest.fixture(scope="session")
def frame():
    rng = np.random.default_rng(0)
    sex = rng.choice(["f", "m"], N)
    frame = pd.DataFrame(
        {
            "id": np.arange(N),
            "age": rng.integers(18, 90, N),
            "sex": sex,
            "region": rng.choice(["n", "s", None], N, p=[0.5, 0.4, 0.1]),
            "when": pd.Timestamp("2020-01-01"),
            "survey": rng.choice([0.0, 0.3, 1.0, 2.5], N),
        }
    )
    frame["hired"] = (rng.random(N) < np.where(sex == "f", 0.2, 0.5)).astype(int)
    return frame


@pytest.fixture(scope="session")
def valuation():
    rng = np.random.default_rng(1)
    return Valuation.from_values(
        {name: rng.random(N) for name in ("y", "sex", "region", "age>=50")},
        scales=dict.fromkeys(
            ("y", "sex", "region", "age>=50"), Valuation.from_probabilities([0.5]).scales["y"]
        ),
    )


@pytest.fixture(scope="session")
def folder(frame, tmp_path_factory):
    return in_files(frame, tmp_path_factory.mktemp("table"), [0, 100, 101, 640, N], row_group_size=70)


@pytest.fixture(scope="session")
def values(valuation, tmp_path_factory):
    path = tmp_path_factory.mktemp("values") / "values.parquet"
    valuation.save(path)
    return path


def in_files(frame, folder, ends, row_group_size=1000, ending="parquet"):
    for number, (first, end) in enumerate(pairwise(ends)):
        rows = frame.iloc[first:end]
        if ending == "csv":
            rows.to_csv(folder / f"{number}.csv", index=False)
        else:
            table = pa.Table.from_pandas(rows, preserve_index=False)
            pa.parquet.write_table(table, folder / f"{number}.parquet", row_group_size=row_group_size)
    return folder


@pytest.fixture
def small_blocks(monkeypatch):
    """Cut into many blocks what would be one, and narrow intervals where rows could be sorted."""
    monkeypatch.setattr(_blocks.Lockstep.blocks, "__defaults__", (64,))
    monkeypatch.setitem(_selection.select_least.__kwdefaults__, "most_held", 20)
    monkeypatch.setitem(_selection.select_least.__kwdefaults__, "most_bins", 64)
