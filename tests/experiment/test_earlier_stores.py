"""Stores that earlier releases wrote open: one folder of `stores` per release, and the frame it holds."""

import shutil
from pathlib import Path

import pandas as pd
import pytest

from fado import Valuation
from fado.experiment import Results

STORES = Path(__file__).parent / "stores"


@pytest.mark.parametrize("release", sorted(path.name for path in STORES.iterdir() if path.is_dir()))
def test_it_opens(release, tmp_path):
    store = tmp_path / "store"
    shutil.copytree(STORES / release, store)
    frame = Results.load(store).frame
    expected = pd.read_csv(STORES / f"{release}.csv", keep_default_na=False, na_values=[""])
    told = frame[expected.columns].dropna(axis=1, how="all")
    pd.testing.assert_frame_equal(told, expected.dropna(axis=1, how="all"), check_dtype=False)
    assert (frame["status"] == "done").all()
    (values,) = (store / "values").iterdir()
    assert len(Valuation.load(values)) == frame["training_rows"].max()
