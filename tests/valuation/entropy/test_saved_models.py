"""Kept models come back bit for bit or are refused: every file is vouched for, and none is a pickle."""

import json
import os
import signal
import subprocess
import sys

import lightgbm
import numpy as np
import pandas as pd
import pytest
from lightgbm import LGBMClassifier, LGBMRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.preprocessing import FunctionTransformer
from tests.valuation.same import assert_same

from fado import InBagEntropy, OutOfBagEntropy
from fado._storage import digest_of
from fado.valuation import load_models
from fado.valuation.entropy._models import SAVED

N = 400
RNG = np.random.default_rng(0)
X = pd.DataFrame({"a": RNG.normal(size=N), "b": RNG.normal(size=N), "town": RNG.choice(["Ulm", "Köln"], N)})
Y = X["a"] + RNG.normal(size=N) > 0
Z = pd.DataFrame({"sex": RNG.choice(["f", "m", "d"], N), "age": RNG.normal(50, 10, N)})
NEW = X.iloc[:50].assign(a=0.5 * X["a"])


def fit(valuator, X=X, y=Y, z=Z):
    return valuator.set_params(keep_models=True, random_state=0).fit(X, y, sensitive_features=z)


@pytest.fixture(scope="module")
def models():
    return fit(OutOfBagEntropy(n_bags=5)).models_


@pytest.fixture
def saved(models, tmp_path):
    models.save(tmp_path / "models")
    return tmp_path / "models"


def numbers_only(valuator, **given):
    return fit(valuator, X[["a", "b"]], **given)


MADE = {
    "default models": lambda: fit(OutOfBagEntropy(n_bags=5)),
    "in bag, numbers as target": lambda: fit(InBagEntropy(), y=X["b"] + RNG.normal(size=N)),
    "several classes": lambda: fit(InBagEntropy(), y=Z["sex"], z={"y2": Y}),
    "estimators": lambda: numbers_only(InBagEntropy([LogisticRegression(), LinearRegression()], n_jobs=1)),
    "both engines": lambda: numbers_only(
        InBagEntropy(
            [LGBMClassifier(n_estimators=3), LogisticRegression(), LGBMRegressor(n_estimators=3)], n_jobs=1
        )
    ),
    "an array": lambda: fit(InBagEntropy(), X[["a", "b"]].to_numpy(), z={"z": np.tile([1, 2.5], N // 2)}),
}


@pytest.mark.parametrize("make", MADE.values(), ids=MADE)
def test_models_come_back_bit_for_bit(make, tmp_path):
    valuator = make()
    new = NEW[["a", "b"]] if valuator.n_features_in_ == 2 else NEW
    new = new if hasattr(valuator, "feature_names_in_") else new.to_numpy()
    valuator.models_.save(tmp_path / "models")
    read = load_models(tmp_path / "models")
    assert_same(read.value(new), valuator.value(new))
    assert read.provenance == valuator.models_.provenance
    assert (read.n_rows, read.target_digest) == (N, valuator.models_.target_digest)
    for name in read.variables:
        assert read.classes(name) == valuator.models_.classes(name)
        assert list(map(type, read.classes(name))) == list(map(type, valuator.models_.classes(name)))
    read.save(tmp_path / "copied")
    for path in (tmp_path / "models").iterdir():
        assert path.read_bytes() == (tmp_path / "copied" / path.name).read_bytes()


def test_classes_that_rows_lacked_and_models_that_are_certain_come_back(tmp_path):
    y = np.array(["a", "b", "c"])[np.digitize(X["a"], [-0.5, 0.5])].astype(object)
    y[0] = "rare"
    with pytest.warns(UserWarning, match="a class with one member"):
        valuator = fit(OutOfBagEntropy(n_bags=5), y=y, z=None)
    valuator.models_.save(tmp_path / "models")
    assert_same(load_models(tmp_path / "models").value(NEW), valuator.value(NEW))


def test_files_are_lightgbms_own(saved, models):
    names = sorted(path.name for path in saved.iterdir())
    assert names == sorted([f"{v}-{m}.txt" for v in range(3) for m in range(5)] + ["models.json"])
    booster = lightgbm.Booster(model_file=saved / "0-0.txt")
    assert booster.num_trees() > 0
    told = json.loads((saved / "models.json").read_bytes())
    assert len(told["schemas"]) == 1  # the columns stand there once
    assert all(len(digest) == 64 for digest in told["files"].values())


def test_other_models_take_the_place_of_saved_ones(saved):
    fit(OutOfBagEntropy(n_bags=6), z=None).models_.save(saved)
    assert load_models(saved).n_models == {"y": 6}
    assert [path.name for path in saved.parent.iterdir()] == ["models"]


def test_strange_directories_stay_as_they_are(models, saved, tmp_path):
    (saved / "notes.txt").write_text("mine")
    with pytest.raises(
        FileExistsError, match=r"holds 'notes\.txt', which is not part of a saved set of models"
    ):
        models.save(saved)
    (tmp_path / "file").write_text("mine")
    with pytest.raises(NotADirectoryError, match="is a file"):
        models.save(tmp_path / "file")
    with pytest.raises(FileNotFoundError, match="does not exist: create it first"):
        models.save(tmp_path / "none" / "models")


def vouch_for(folder, change):
    """Write the manifest anew, as one could who knows how."""
    told = json.loads((folder / "models.json").read_bytes())
    del told["digest"]
    change(told)
    (folder / "models.json").write_bytes(SAVED.dump(told))


def setter(*path, value):
    def change(told):
        for key in path[:-1]:
            told = told[key]
        told[path[-1]] = value

    return change


@pytest.mark.parametrize(
    ("change", "match"),
    [
        (setter("format", value=2), "is in format 2, and this release reads 1"),
        (setter("kind", value="fado model"), "is not the manifest of a set of models"),
        (setter("variables", 0, "models", 0, "scorer", "kind", value="pickle"), "no model of kind 'pickle'"),
        (setter("files", value={}), r"0-0\.txt' is damaged or of another set of models"),
        (setter("provenance", value=[]), "must be a mapping"),
        (lambda told: told.pop("variables"), "cannot be read as models"),
    ],
)
def test_manifests_that_say_other_things_are_refused(saved, change, match):
    vouch_for(saved, change)
    with pytest.raises(ValueError, match=match):
        load_models(saved)


@pytest.mark.parametrize(
    ("name", "change", "match"),
    [
        ("1-2.txt", lambda b: b.replace(b"tree", b"bush", 1), "is damaged or of another set of models"),
        ("1-2.txt", None, "is missing: the set of models is not whole"),
        (
            "models.json",
            lambda b: b.replace(b'"n_rows": 400', b'"n_rows": 401'),
            "was changed after it was written",
        ),
        ("models.json", lambda b: b[:-20], "is not JSON, or it is damaged"),
    ],
    ids=["changed", "missing", "manifest", "cut"],
)
def test_damage_is_noticed(saved, name, change, match):
    content = (saved / name).read_bytes()
    (saved / name).unlink()
    if change is not None:
        (saved / name).write_bytes(change(content))
    with pytest.raises(ValueError, match=rf"{name}.*{match}"):
        load_models(saved)
    with pytest.raises(ValueError, match=r"no saved set of models in .*: it does not exist"):
        load_models(saved / "none")


def test_a_booster_of_another_kind_is_not_read(saved):
    for file, other in (("0-0.txt", "1-0.txt"), ("1-0.txt", "2-0.txt")):
        content = (saved / other).read_bytes()
        (saved / file).write_bytes(content)

        def change(told, file=file, other=other):
            told["files"][file] = told["files"][other]

        vouch_for(saved, change)
    with pytest.raises(ValueError, match=r"0-0\.txt' cannot be read: .* not a LightGBM model of two classes"):
        load_models(saved)


def test_a_file_that_names_code_is_refused(tmp_path):
    skops = pytest.importorskip("skops.io")
    folder = tmp_path / "models"
    numbers_only(InBagEntropy(LogisticRegression(), n_jobs=1), z={"sex": Z["sex"]}).models_.save(folder)
    path = next(iter(sorted(folder.glob("*.skops"))))
    path.write_bytes(skops.dumps(FunctionTransformer(os.system)))
    vouch_for(folder, setter("files", path.name, value=digest_of(path.read_bytes())))
    with pytest.raises(
        ValueError, match=rf"{path.name}' cannot be read: .*system, which is not to be trusted"
    ):
        load_models(folder)


KILLED = """
import os, signal, sys
from fado.valuation import load_models
from fado.valuation.entropy import _models

models, written = load_models(sys.argv[1]), []

plain = _models.write_file

def write(path, *more):
    written.append(path)
    if len(written) == 4:
        os.kill(os.getpid(), signal.SIGKILL)
    plain(path, *more)

_models.write_file = write
models.save(sys.argv[1])
"""


@pytest.mark.skipif(os.name == "nt", reason="there is no SIGKILL")
def test_who_is_killed_while_saving_leaves_the_old_models_whole(saved, models):
    killed = subprocess.run([sys.executable, "-c", KILLED, str(saved)], check=False)
    assert killed.returncode == -signal.SIGKILL
    assert_same(load_models(saved).value(NEW), models.value(NEW))
    assert len(list(saved.parent.iterdir())) == 2  # and what was not finished
    models.save(saved)
    assert [path.name for path in saved.parent.iterdir()] == ["models"]
