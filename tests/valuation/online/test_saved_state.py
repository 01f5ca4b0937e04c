"""A stream that was put away goes on as if it had never been; what is damaged is told."""

import json

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from tests.valuation.online.test_online import learn, make_online, make_rows, part, same

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


def drifted(rows):
    with pytest.warns(UserWarning, match="Drift in batch 3"):
        return learn(
            learn(learn(make_online(window=300), part(rows, 0, 150)), part(rows, 150, 250)), turned(rows)
        )


def turned(rows):
    X, _, z = part(rows, 250, 400)
    return X, np.where(X["a"] > 0, "no", "yes"), z


def test_it_goes_on_bit_for_bit(rows, tmp_path):
    online = drifted(rows)
    X, y, z = part(rows, 400, 500)
    online.save(tmp_path / "state")
    again = OnlineEntropy.load(tmp_path / "state", n_jobs=1)
    assert again.get_params() == online.get_params() | {"n_jobs": 1}
    pd.testing.assert_frame_equal(again.drift_, online.drift_)
    assert again.value(X).metadata == online.value(X).metadata
    assert same(again.value(X, y, {"age": z}), online.value(X, y, {"age": z}))
    for both in (online, again):
        for start in (400, 430, 460):
            learn(both, part(rows, start, start + 30))
    assert same(again.value(X, y, {"age": z}), online.value(X, y, {"age": z}))
    assert again.value(X).metadata == online.value(X).metadata
    pd.testing.assert_frame_equal(again.drift_, online.drift_)


def test_models_that_lag_behind_the_rows_are_saved_as_they_are(rows, tmp_path):
    online = learn(learn(make_online(refresh=1.0), part(rows, 0, 200)), part(rows, 200, 260))
    online.save(tmp_path / "state")
    again = OnlineEntropy.load(tmp_path / "state")
    assert (again.models_.n_rows, again.n_rows_) == (200, 260)
    assert same(again.value(rows[0]), online.value(rows[0]))
    more = part(rows, 260, 420)
    assert same(learn(again, more).value(rows[0]), learn(online, more).value(rows[0]))
    assert again.models_.n_rows == 420


@pytest.mark.parametrize("n_rows", [0, 3])
def test_a_stream_without_models_is_saved_too(rows, tmp_path, n_rows):
    online = make_online(kinds={"age": "classes"}, z_exclude={"age": ["c"]}, random_state=None)
    if n_rows:
        learn(online, part(rows, 0, n_rows))
    online.save(tmp_path / "state")
    again = OnlineEntropy.load(tmp_path / "state")
    assert again.n_rows_ == n_rows
    assert (again.kinds, again.z_exclude) == ({"age": "classes"}, {"age": ["c"]})
    if not n_rows:
        assert again.random_state is None
        return
    rest = part(rows, n_rows, 200)
    assert same(learn(again, rest).value(rows[0]), learn(online, rest).value(rows[0]))


def test_weights_and_columns_without_names(tmp_path):
    rng = np.random.default_rng(0)
    X, weights = rng.normal(size=(200, 2)), rng.uniform(1, 2, 200)
    online = make_online().learn(X[:100], X[:100, 0] > 0, sample_weight=weights[:100])
    online.save(tmp_path / "state")
    again = OnlineEntropy.load(tmp_path / "state")
    for both in (online, again):
        both.learn(X[100:], X[100:, 0] > 0, sample_weight=weights[100:])
    assert same(again.value(X), online.value(X))


@pytest.mark.parametrize(
    "z_exclude",
    [{"c"}, pd.Index(["c"]), ("c",), np.array(["c"]), {"age": {"c"}}, "c"],
    ids=["set", "index", "tuple", "array", "set of one attribute", "text"],
)
def test_columns_that_are_kept_from_attributes_come_back(rows, tmp_path, z_exclude):
    online = learn(make_online(z_exclude=z_exclude), part(rows, 0, 100))
    online.save(tmp_path / "state")
    again = OnlineEntropy.load(tmp_path / "state")
    more = part(rows, 100, 200)
    assert same(learn(again, more).value(rows[0]), learn(online, more).value(rows[0]))


def test_estimators_of_another_process_print_other_addresses(rows, tmp_path):
    pytest.importorskip("skops")
    rows = rows[0][["a", "c"]], *rows[1:]
    one, other = (LogisticRegression(random_state=np.random.RandomState(0)) for _ in range(2))
    assert repr(one) != repr(other)
    learn(make_online(estimators=one, n_jobs=1), part(rows, 0, 100)).save(tmp_path / "state")
    assert OnlineEntropy.load(tmp_path / "state", estimators=other).n_rows_ == 100


def test_estimators_are_asked_for_again(rows, tmp_path):
    pytest.importorskip("skops")
    X, y, z = rows
    rows = X[["a", "c"]], y, z
    model = LogisticRegression(C=0.5)
    online = learn(make_online(estimators=model, n_jobs=1), part(rows, 0, 200))
    online.save(tmp_path / "state")
    for wrong in (None, LogisticRegression(), [model, model]):
        with pytest.raises(ValueError, match=r"saved with the estimators LogisticRegression\(C=0.5\)"):
            OnlineEntropy.load(tmp_path / "state", estimators=wrong)
    again = OnlineEntropy.load(tmp_path / "state", estimators=LogisticRegression(C=0.5), n_jobs=1)
    more = part(rows, 200, 400)
    assert same(learn(again, more).value(rows[0]), learn(online, more).value(rows[0]))
    make_online().save(tmp_path / "plain")
    with pytest.raises(ValueError, match="saved with the default models: leave `estimators` out"):
        OnlineEntropy.load(tmp_path / "plain", estimators=model)


@pytest.fixture(scope="module")
def online(rows):
    return learn(make_online(), part(rows, 0, 100))


@pytest.fixture
def saved(online, tmp_path):
    online.save(tmp_path / "state")
    return tmp_path / "state"


def test_it_replaces_its_own_kind_alone(rows, saved, tmp_path):
    learn(make_online(), part(rows, 0, 150)).save(saved)
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
    if how == "gone":
        path.unlink()
    else:
        middle = len(content) // 2
        path.write_bytes(
            content[:middle]
            if how == "cut"
            else content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :]
        )
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
