"""Stores that earlier releases wrote open: one folder of `stores` per release, and the frame it holds."""

import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from fado import Valuation
from fado.experiment import Results
from fado.experiment.config import config_from
from fado.experiment.run import read_data
from fado.experiment.run._runner import about_of
from fado.experiment.store import Keys, Store

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


@pytest.mark.parametrize("release", sorted(path.name for path in STORES.iterdir() if path.is_dir()))
def test_it_can_be_resumed_and_its_fits_keep_their_names(release, tmp_path):
    store = tmp_path / "store"
    shutil.copytree(STORES / release, store)
    with Store.reading(store) as opened:
        before, records = opened.about, set(opened.records)
    config = config_from(before["configuration"])
    # the last bits of generated numbers hang on the processor, and with them the fingerprint
    same = {name: before[name] for name in ("versions", "fingerprint")}
    now = about_of(config, read_data(config)) | same
    parameters = {"n_estimators": 5, "random_state": 0}
    assert Keys(now).fit("digest", parameters) == Keys(before).fit("digest", parameters)
    assert Keys(now).values("oob") == Keys(before).values("oob")
    with Store.writing(store, now) as opened:
        assert set(opened.records) == records


def test_the_same_data_keep_their_fingerprint(tmp_path):
    """On numbers that are exact on every machine. With another digest no store of such data would resume."""
    number = np.arange(400)
    frame = pd.DataFrame(
        {
            "half": number / 2,
            "word": np.array(["a", "b", "c"])[number % 3],
            "y": (number % 7 == 0).astype(int),
        }
    )
    frame.to_csv(tmp_path / "data.csv", index=False)
    config = config_from(
        {
            "data": {"path": str(tmp_path / "data.csv"), "target": "y", "protected": "half>=120"},
            "split": {"method": "random", "train": 0.5, "validation": 0.25, "test": 0.25},
            "interventions": {"rw": True},
            "models": {"count": 1, "space": {"n_estimators": 5}},
        }
    )
    expected = "eca0594238ba32fc4f20aaf900c67b537ebd301fd4d86f18a093a4c5735717a3"
    assert read_data(config).fingerprint() == expected


def test_a_store_that_compared_small_groups_says_how_to_go_on(tmp_path):
    store = tmp_path / "store"
    shutil.copytree(STORES / "0.1.0", store)
    with Store.reading(store) as opened:
        before = opened.about
    config = config_from(before["configuration"])
    now = about_of(config, read_data(config)) | {"versions": before["versions"], "fingerprint": "0" * 64}
    message = r"other data .* a release that compared small groups made it: `data.min_group_size = 0`"
    with pytest.raises(ValueError, match=message), Store.writing(store, now):
        pass
