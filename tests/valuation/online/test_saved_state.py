"""A stream that was put away goes on as if it had never been; what is damaged is told."""

import json
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from pandas.testing import assert_frame_equal
from sklearn.linear_model import LogisticRegression
from tests.valuation.online.stream import learn_on, make_online, make_rows, numbers_of, part, stream
from tests.valuation.same import assert_same

from fado import OnlineEntropy
from fado.valuation.online._state import SAVED


@pytest.fixture(scope="module")
def rows():
    X, y, z = make_rows(500)
    X.loc[::7, "b"] = np.nan
    X["whole"] = (np.arange(500) // 3 % 50).astype(np.int16)
    X["flag"] = X["a"] > 0.5
    X["band"] = pd.Categorical(np.arange(500) % 3, categories=[2, 0, 1])
    return X, y, z


def saved_and_loaded(online, folder, **settings):
    online.save(folder / "state")
    return OnlineEntropy.load(folder / "state", **settings)


def assert_go_on_alike(online, again, rows, *ends):
    """Both give the same values, and go on doing so while they learn."""
    X, y, z, *_ = part(rows, ends[-2], ends[-1])
    for start, stop in pairwise((ends[0], *ends)):
        for both in (online, again):
            learn_on(both, rows, start, stop)
        assert_same(again.value(X, y, {"age": z}), online.value(X, y, {"age": z}))
        assert again.value(X).metadata == online.value(X).metadata
        assert_frame_equal(again.drift_, online.drift_)


def test_it_goes_on_bit_for_bit(rows, tmp_path):
    X, y, z = rows
    y = np.where(np.arange(500) < 250, y, np.where(X["a"] > 0, "no", "yes"))
    with pytest.warns(UserWarning, match="Drift in batch 3"):
        online = stream((X, y, z), 150, 250, 400, window=300)
    again = saved_and_loaded(online, tmp_path, n_jobs=1)
    assert again.get_params() == online.get_params() | {"n_jobs": 1}
    assert_go_on_alike(online, again, rows, 400, 430, 460, 490)


def test_models_that_lag_behind_the_rows_are_saved_as_they_are(rows, tmp_path):
    online = stream(rows, 200, 260, refresh=1.0)
    again = saved_and_loaded(online, tmp_path)
    assert (again.models_.n_rows, again.n_rows_) == (200, 260)
    assert_go_on_alike(online, again, rows, 260, 420)
    assert again.models_.n_rows == 420


def test_a_stream_without_models_is_saved_too(rows, tmp_path):
    online = make_online(kinds={"age": "classes"}, z_exclude={"age": ["c"]}, random_state=None)
    again = saved_and_loaded(online, tmp_path)
    assert (again.n_rows_, again.random_state) == (0, None)
    again = saved_and_loaded(learn_on(online, rows, 0, 3), tmp_path)
    assert again.n_rows_ == 3
    assert (again.kinds, again.z_exclude) == ({"age": "classes"}, {"age": ["c"]})
    assert_go_on_alike(online, again, rows, 3, 200)


def test_weights_and_columns_without_names(rows, tmp_path):
    weighted = *numbers_of(rows), np.random.default_rng(0).uniform(1, 2, 500)
    online = stream(weighted, 100)
    assert_go_on_alike(online, saved_and_loaded(online, tmp_path), weighted, 100, 200)


@pytest.mark.parametrize(
    "z_exclude",
    [{"c"}, pd.Index(["c"]), ("c",), np.array(["c"]), {"age": {"c"}}, "c"],
    ids=["set", "index", "tuple", "array", "set of one attribute", "text"],
)
def test_columns_that_are_kept_from_attributes_come_back(rows, tmp_path, z_exclude):
    online = stream(rows, 100, z_exclude=z_exclude)
    assert_go_on_alike(online, saved_and_loaded(online, tmp_path), rows, 100, 200)


def test_estimators_are_asked_for_again(rows, tmp_path):
    pytest.importorskip("skops")
    rows, model = numbers_of(rows, "a", "c"), LogisticRegression(C=0.5)
    online = stream(rows, 200, estimators=model, n_jobs=1)
    again = saved_and_loaded(online, tmp_path, estimators=LogisticRegression(C=0.5), n_jobs=1)
    assert_go_on_alike(online, again, rows, 200, 400)
    for wrong in (None, LogisticRegression(), [model, model]):
        with pytest.raises(ValueError, match=r"saved with the estimators LogisticRegression\(C=0.5\)"):
            OnlineEntropy.load(tmp_path / "state", estimators=wrong)
    # those of another process print other addresses
    one, other = (LogisticRegression(random_state=np.random.RandomState(0)) for _ in range(2))
    assert repr(one) != repr(other)
    online = stream(rows, 100, estimators=one, n_jobs=1)
    assert saved_and_loaded(online, tmp_path, estimators=other).n_rows_ == 100
    with pytest.raises(ValueError, match="saved with the default models: leave `estimators` out"):
        saved_and_loaded(make_online(), tmp_path, estimators=model)


@pytest.fixture(scope="module")
def online(rows):
    return stream(rows, 100)


@pytest.fixture
def saved(online, tmp_path):
    online.save(tmp_path / "state")
    return tmp_path / "state"


def test_it_replaces_its_own_kind_alone(rows, saved, tmp_path):
    stream(rows, 150).save(saved)
    assert OnlineEntropy.load(saved).n_rows_ == 150
    assert sorted(path.name for path in tmp_path.iterdir()) == ["state"]
    (saved / "letter.txt").write_text("mine")
    with pytest.raises(FileExistsError, match=r"letter.txt"):
        make_online().save(saved)
    assert (saved / "letter.txt").read_text() == "mine"
    with pytest.raises(FileNotFoundError, match="does not exist"):
        make_online().save(tmp_path / "no" / "where")


def test_no_state_to_load(tmp_path):
    with pytest.raises(ValueError, match="There is no saved online valuator"):
        OnlineEntropy.load(tmp_path / "state")
    with pytest.raises(ValueError, match=r"it has no online.json"):
        OnlineEntropy.load(tmp_path)


def test_a_state_that_was_being_replaced_is_found_again(saved):
    aside = saved.parent / ".state.0123abcd.old"
    saved.rename(aside)
    with pytest.raises(ValueError, match=r"it does not exist. A process was killed .*\.state\.0123abcd\.old"):
        OnlineEntropy.load(saved)
    aside.rename(saved)
    assert OnlineEntropy.load(saved).n_rows_ == 100


@pytest.mark.parametrize("name", ["rows.parquet", "models/models.json", "models/0-0.txt", "online.json"])
@pytest.mark.parametrize("how", ["changed", "cut", "gone"])
def test_damage_is_reported_with_the_file(saved, name, how):
    path = saved / name
    content = path.read_bytes()
    middle = len(content) // 2
    path.unlink()
    if how != "gone":
        rest = bytes([content[middle] ^ 1]) + content[middle + 1 :] if how == "changed" else b""
        path.write_bytes(content[:middle] + rest)
    with pytest.raises(ValueError, match=path.name.replace(".", r"\.")):
        OnlineEntropy.load(saved)


@pytest.mark.parametrize(
    "change",
    [
        lambda manifest: manifest.pop("state"),
        lambda manifest: manifest["state"]["references"]["y"].update(more=1),
        lambda manifest: manifest["state"].update(checks=[{"batch": 1}]),
        lambda manifest: manifest["window"]["features"][3].pop("levels"),
        lambda manifest: manifest["files"].pop("rows.parquet"),
    ],
)
def test_a_manifest_of_other_form_is_refused(saved, change):
    manifest = json.loads((saved / "online.json").read_bytes())
    del manifest["digest"]
    change(manifest)
    (saved / "online.json").write_bytes(SAVED.dump(manifest))
    with pytest.raises(ValueError, match=r"online\.json"):
        OnlineEntropy.load(saved)
