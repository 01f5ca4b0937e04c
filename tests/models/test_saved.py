"""Saved models come back whole or are refused: every file is vouched for, and none is a pickle."""

import hashlib
import json
import os
import pickle
import re
import signal
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import skops.io
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler
from tests.models.made import LATE, N, X, chosen, fitted

import fado
from fado.models import Facts, load_model
from fado.models._saved import SAVED

NUMBERS = X[["debts", "flag"]].fillna(0.0).astype(float)
PIPELINE = make_pipeline(
    make_column_transformer((OneHotEncoder(), ["town", "home"]), (StandardScaler(), ["flag"])),
    LogisticRegression(),
)
MADE = {
    "lightgbm": (None, X),
    "array": (None, NUMBERS.to_numpy()),
    "sparse": (None, scipy.sparse.csr_matrix(NUMBERS.to_numpy())),
    "logistic": (LogisticRegression(), NUMBERS),
    "pipeline": (PIPELINE, X.fillna({"town": "none"})),
}
BOOSTER = {"card.html", "card.md", "model.json", "model.txt", "weights.parquet"}


@pytest.fixture(scope="module")
def model():
    return chosen()


@pytest.fixture
def saved(model, tmp_path):
    model.save(tmp_path / "model")
    return tmp_path / "model"


@pytest.fixture
def estimator(tmp_path):
    chosen(fitted(NUMBERS, LogisticRegression())[0]).save(tmp_path / "estimator")
    return tmp_path / "estimator"


def vouch_for(folder, *path, to):
    """Write the manifest of what is there now with one entry changed, as one could who knows how."""
    manifest = json.loads((folder / "model.json").read_bytes())
    del manifest["digest"]
    entry = manifest
    for key in path[:-1]:
        entry = entry[key]
    entry[path[-1]] = to
    (folder / "model.json").write_bytes(SAVED.dump(manifest))


@pytest.mark.parametrize(("estimator", "features"), MADE.values(), ids=MADE)
def test_what_is_loaded_scores_bit_for_bit_as_what_was_saved(estimator, features, tmp_path):
    engine_model, table = fitted(features, estimator)
    first = chosen(engine_model)
    first.save(tmp_path / "model")
    read = fado.load_model(tmp_path / "model")
    np.testing.assert_array_equal(read.score_rows(features), engine_model.score(table)[:, 1])
    np.testing.assert_array_equal(read.predict_proba(features), first.predict_proba(features))
    np.testing.assert_array_equal(read.predict(features), first.predict(features))
    assert read.threshold_ == first.threshold_
    assert read.metrics_ == first.metrics_
    np.testing.assert_array_equal(read.sample_weight_, np.linspace(0.5, 1.5, N))
    assert read.facts_.to_plain() == first.facts_.to_plain()
    assert read.card() == first.card() == (tmp_path / "model" / "card.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "classes", [("no", "yes"), (0, 1), (False, True), (0.1, 0.7), ("ä\n", 'q"\\'), (1, 2.5)]
)
def test_labels_come_back_as_what_they_were(classes, tmp_path):
    chosen(classes=classes).save(tmp_path / "model")
    labels = load_model(tmp_path / "model").labels
    assert labels == classes
    assert list(map(type, labels)) == list(map(type, classes))


def test_a_model_that_says_the_same_of_every_row_is_saved_without_content(tmp_path):
    engine_model, _ = fitted(late=np.zeros(N, dtype=bool))
    first = chosen(engine_model, weights=False)
    first.save(tmp_path / "model")
    assert {path.name for path in (tmp_path / "model").iterdir()} == {"card.html", "card.md", "model.json"}
    read = load_model(tmp_path / "model")
    np.testing.assert_array_equal(read.score_rows(X), np.zeros(N))
    assert read.sample_weight_ is None


def test_files_are_readable_and_the_same_each_time(model, saved, tmp_path):
    umask = os.umask(0)
    os.umask(umask)
    assert {path.name for path in saved.iterdir()} == BOOSTER
    model.save(tmp_path / "again")
    load_model(saved).save(tmp_path / "copied")
    for name in BOOSTER:
        assert (saved / name).read_bytes() == (tmp_path / "again" / name).read_bytes()
        assert (saved / name).read_bytes() == (tmp_path / "copied" / name).read_bytes()
        assert (saved / name).stat().st_mode & 0o777 == 0o666 & ~umask
    assert pd.read_parquet(saved / "weights.parquet").columns.tolist() == ["weight"]
    assert sorted(tmp_path.iterdir()) == [tmp_path / "again", tmp_path / "copied", saved]


@pytest.mark.parametrize("name", sorted(BOOSTER))
@pytest.mark.parametrize("where", [0.0, 0.3, 0.999])
def test_a_flipped_bit_is_noticed_in_every_file(saved, name, where):
    content = bytearray((saved / name).read_bytes())
    content[int(where * len(content))] ^= 1
    (saved / name).write_bytes(content)
    with pytest.raises(ValueError, match=name):
        load_model(saved)


def test_no_byte_of_a_manifest_may_change(saved):
    content = (saved / "model.json").read_bytes()
    for place in range(0, len(content), 41):
        (saved / "model.json").write_bytes(content[:place] + b" " + content[place + 1 :])
        if content[place : place + 1] != b" ":
            with pytest.raises(ValueError, match=r"model\.json"):
                load_model(saved)
    (saved / "model.json").write_bytes(content)
    load_model(saved)


@pytest.mark.parametrize("name", sorted(BOOSTER))
def test_a_missing_file_is_named(saved, name):
    (saved / name).unlink()
    with pytest.raises(ValueError, match=rf"{name}"):
        load_model(saved)
    (saved / name).mkdir()
    with pytest.raises(ValueError, match=rf"{name}"):
        load_model(saved)


@pytest.mark.parametrize("name", sorted(BOOSTER))
def test_files_of_another_model_are_noticed(saved, tmp_path, name):
    other = chosen(fitted(late=~LATE)[0], target="early")
    other.sample_weight_ = np.ones(N)
    other.save(tmp_path / "other")
    (saved / name).write_bytes((tmp_path / "other" / name).read_bytes())
    named = "" if name == "model.json" else name  # which vouches for the others
    with pytest.raises(ValueError, match=f"{named}' is damaged or of another model"):
        load_model(saved)


@pytest.mark.parametrize(
    ("path", "value", "match"),
    [
        (["format"], 2, "is in format 2, and this release reads 1"),
        (["kind"], "model", "is not the manifest of a model that FADO saved"),
        (["classes"], ["a"], "must have two labels"),
        (["classes", 0], None, "labels are damaged"),
        (["classes", 0], [], "labels are damaged"),
        (["threshold"], "high", "does not describe a model"),
        (["threshold"], None, "does not describe a model"),
        (["metrics"], None, "does not describe a model"),
        (["metrics", "tpr"], "much", "does not describe a model"),
        (["facts"], [], "does not describe a model"),
        (["facts", "budget"], {"kind": "fpr", "limit": 7}, "how it was made is broken"),
        (["facts", "ratio"], "ratio", "how it was made is broken"),
        (["facts", "target"], 3, "how it was made is broken"),
        (["facts", "groups"], [{}], "how it was made is broken"),
        (["facts", "measured"], {"test": {"tpr": "x"}}, "how it was made is broken"),
        (["scorer"], {}, "does not describe a model"),
        (["scorer", "kind"], "pickle", "its list of files is not that of a model"),
        (["scorer", "layout"], [0], "model.txt' cannot be read: The booster does not take"),
        (["files"], {}, "its list of files is not that of a model"),
        (["files", "../model.txt"], "0", "its list of files is not that of a model"),
        (["files", "model.txt"], 0, "model.txt' is damaged"),
    ],
    ids=str,
)
def test_manifests_that_say_other_things_are_refused(saved, path, value, match):
    vouch_for(saved, *path, to=value)
    with pytest.raises(ValueError, match=match):
        load_model(saved)


@pytest.mark.parametrize("content", [b"", b"[]", b"{}", b"\xff", b"[" * 100_000, b'{"kind": NaN}', b"null"])
def test_manifests_that_are_none_are_refused(saved, content):
    (saved / "model.json").write_bytes(content)
    with pytest.raises(ValueError, match=r"model\.json"):
        load_model(saved)


class Trap:
    def __reduce__(self):
        return os._exit, (3,)


@pytest.mark.parametrize(
    ("kind", "name", "content", "match"),
    [
        ("estimator", "model.skops", lambda: pickle.dumps(Trap()), "cannot be read: .* of no estimator"),
        (
            "estimator",
            "model.skops",
            lambda: skops.io.dumps(FunctionTransformer(os.system)),
            "cannot be read: .*system, which is not to be trusted",
        ),
        ("saved", "weights.parquet", pd.DataFrame({"other": [1.0]}).to_parquet, "holds no weights"),
    ],
    ids=["pickle", "function", "weights"],
)
def test_vouched_files_of_other_things_are_refused_and_not_run(request, kind, name, content, match):
    folder = request.getfixturevalue(kind)
    (folder / name).write_bytes(content())
    vouch_for(folder, "files", name, to=hashlib.sha256((folder / name).read_bytes()).hexdigest())
    with pytest.raises(ValueError, match=f"{re.escape(name)}' {match}"):
        load_model(folder)


def test_where_there_is_no_model_a_sentence_says_so(tmp_path):
    with pytest.raises(ValueError, match=r"no saved model in .*: it does not exist"):
        load_model(tmp_path / "none")
    with pytest.raises(ValueError, match=r"it has no model\.json"):
        load_model(tmp_path)
    (tmp_path / "file").touch()
    with pytest.raises(ValueError, match="it is not a directory"):
        load_model(tmp_path / "file")


def test_a_saved_model_is_replaced_and_nothing_else_is(model, saved, tmp_path):
    other = chosen(fitted(NUMBERS, LogisticRegression())[0], weights=False)
    other.save(saved)
    assert {path.name for path in saved.iterdir()} == {"card.html", "card.md", "model.json", "model.skops"}
    assert sorted(tmp_path.iterdir()) == [saved]
    (tmp_path / "empty").mkdir()
    model.save(tmp_path / "empty")
    load_model(tmp_path / "empty")
    (saved / "notes.txt").write_text("mine")
    with pytest.raises(FileExistsError, match=r"holds 'notes\.txt', which is not part of a saved model"):
        model.save(saved)
    assert (saved / "notes.txt").read_text() == "mine"
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "card.md").write_text("mine")
    with pytest.raises(FileExistsError, match="not part of a saved model"):
        model.save(tmp_path / "full")
    (tmp_path / "full" / "model.json").write_text("{}")
    with pytest.raises(FileExistsError, match=r"is not replaced: .* is not the manifest of a model"):
        model.save(tmp_path / "full")
    with pytest.raises(NotADirectoryError, match="is a file"):
        model.save(tmp_path / "full" / "card.md")
    with pytest.raises(FileNotFoundError, match="does not exist: create it first"):
        model.save(tmp_path / "none" / "model")


def test_a_link_to_a_model_stays_one(model, saved, tmp_path):
    (tmp_path / "link").symlink_to(saved)
    chosen(weights=False).save(tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert load_model(saved).sample_weight_ is None


def test_a_save_that_fails_leaves_what_was_there(model, saved, tmp_path, monkeypatch):
    before = (saved / "model.json").read_bytes()
    monkeypatch.setattr(Facts, "to_plain", lambda self: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        model.save(saved)
    with pytest.raises(ZeroDivisionError):
        model.save(tmp_path / "new")
    assert (saved / "model.json").read_bytes() == before
    assert sorted(tmp_path.iterdir()) == [saved]


STUCK = """
import sys, time
from fado.models import Facts, load_model
model = load_model(sys.argv[1])
Facts.to_plain = lambda self: (print("now", flush=True), time.sleep(600))
model.save(sys.argv[2])
"""


@pytest.mark.parametrize("there", [True, False])
def test_a_killed_save_leaves_nothing_half_and_the_next_one_tidies_up(model, saved, tmp_path, there):
    final = tmp_path / "final"
    if there:
        model.save(final)
    words = [sys.executable, "-c", STUCK, str(saved), str(final)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "now\n"
        left = [path for path in tmp_path.iterdir() if path.name.startswith(".final.")]
        assert len(left) == 1
        model.save(final)  # somebody is at it: theirs stays
        assert left[0].exists()
        if not there:
            for path in final.iterdir():
                path.unlink()
            final.rmdir()
        process.send_signal(signal.SIGKILL)
    if there:
        load_model(final)
    else:
        assert not final.exists()
    assert left[0].exists()
    model.save(final)
    load_model(final)
    assert sorted(tmp_path.iterdir()) == [final, saved]


def test_what_was_moved_aside_goes_as_soon_as_its_place_is_taken(model, saved, tmp_path, monkeypatch):
    aside = tmp_path / ".final.0123abcd.old"
    saved.rename(aside)
    model.save(tmp_path / "other")
    assert aside.exists()
    with monkeypatch.context() as patched:
        patched.setattr(Facts, "to_plain", lambda self: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            model.save(tmp_path / "final")
    assert aside.exists()
    mine = [tmp_path / name for name in (".final.holidays.old", ".final.0123abcd.x.old", ".final.0123abcd")]
    for path in mine:
        path.mkdir()
    model.save(tmp_path / "final")  # directories of others with names like those stay
    assert sorted(tmp_path.iterdir()) == sorted([*mine, tmp_path / "final", tmp_path / "other"])


def test_a_scorer_that_cannot_be_saved_leaves_nothing(tmp_path):
    doubled = make_pipeline(FunctionTransformer(lambda X: 2 * X), LogisticRegression())
    model = chosen(fitted(NUMBERS, doubled)[0])
    assert fitted(NUMBERS, doubled)[0].detach().kind == "sklearn"
    with pytest.raises(ValueError, match="Pipeline cannot be saved"):
        model.save(tmp_path / "model")
    assert not list(tmp_path.iterdir())
