"""Runs that were ended go on; runs that ask for something else, or cannot write, end in a sentence."""

import errno
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import textwrap

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

import fado
from fado import Valuation
from fado.valuation import plan_files, summarise_files
from fado.valuation._saved import DONE, footer_digest
from fado.valuation.large import StoredValues, _plan, _scoring, _value_files
from fado.valuation.large._run import Run

N = 2400
SETTINGS = {"target": "y", "protected": ["z"], "train_rows": 600, "n_bags": 5, "memory": "500MB", "n_jobs": 1}


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, 3))
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    frame["z"] = rng.choice(["f", "m"], N)
    frame["y"] = (X[:, 0] + rng.normal(size=N) > 0).astype(int)
    for part in range(4):
        frame.iloc[part * 600 : (part + 1) * 600].to_parquet(folder / f"{part}.parquet", index=False)
    return folder


@pytest.fixture(scope="module")
def whole(data, tmp_path_factory):
    out = tmp_path_factory.mktemp("whole") / "v"
    fado.value_files(data, out=out, **SETTINGS)
    return out


def contents(folder):
    """The bytes of the values, and of what vouches for them."""
    return {path.name: path.read_bytes() for path in sorted(folder.glob("*.parquet"))} | {
        "done": (folder / "_done.json").read_bytes()
    }


def fail_after(monkeypatch, n_parts, error):
    written = []

    def write(work, part, scored):
        if len(written) == n_parts:
            raise error
        written.append(part)
        return plain(work, part, scored)

    plain = _scoring.Scoring.write
    monkeypatch.setattr(_scoring.Scoring, "write", write)
    return written


@pytest.mark.parametrize("n_parts", [0, 1, 3])
def test_a_run_that_failed_goes_on_where_it_was(data, whole, tmp_path, monkeypatch, n_parts):
    out = tmp_path / "v"
    with monkeypatch.context() as patched:
        fail_after(patched, n_parts, KeyboardInterrupt())
        with pytest.raises(KeyboardInterrupt):
            fado.value_files(data, out=out, **SETTINGS)
    assert len(list(out.glob("part-*"))) == n_parts
    with pytest.raises(ValueError, match="are not finished: run the same command again to finish them"):
        Valuation.load(out)
    with monkeypatch.context() as patched:
        written = fail_after(patched, 4, AssertionError())
        patched.setattr(_value_files, "learn", None)  # neither read nor trained again
        fado.value_files(data, out=out, **{**SETTINGS, "memory": "900MB", "n_jobs": 2})
    assert len(written) == 4 - n_parts
    assert contents(out) == contents(whole)


def test_a_run_that_learnt_from_all_rows_goes_on_where_it_was(data, tmp_path, monkeypatch):
    asked = {**SETTINGS, "train_rows": N}
    expected = fado.value_files(data, out=tmp_path / "expected", **asked)
    with monkeypatch.context() as patched:
        fail_after(patched, 2, KeyboardInterrupt())
        with pytest.raises(KeyboardInterrupt):
            fado.value_files(data, out=tmp_path / "v", **asked)
    damaged = tmp_path / "damaged"
    shutil.copytree(tmp_path / "v", damaged)
    (damaged / "_values.arrow").write_bytes((damaged / "_values.arrow").read_bytes()[:-1])
    with pytest.raises(ValueError, match=r"_values\.arrow' is damaged or of another set of notes"):
        fado.value_files(data, out=damaged, **asked)
    with monkeypatch.context() as patched:
        patched.setattr(_value_files, "learn", None)  # neither read nor trained again
        patched.setattr(_scoring, "score_rows", None)  # and no row is scored again
        found = fado.value_files(data, out=tmp_path / "v", **asked)
    pd.testing.assert_frame_equal(found.values, expected.values, check_exact=True)
    assert contents(tmp_path / "v") == contents(tmp_path / "expected")


def test_a_killed_run_goes_on_where_it_was(data, whole, tmp_path):
    out = tmp_path / "v"
    program = textwrap.dedent(
        """
        import os, signal, sys
        import fado
        from fado.valuation.large._scoring import Scoring
        write = Scoring.write
        def write_and_die(work, part, scored):
            if part.number == 2:
                def dying(scored=scored):
                    next(scored)
                    yield os.kill(os.getpid(), signal.SIGKILL)
                scored = dying()
            write(work, part, scored)
        Scoring.write = write_and_die
        fado.value_files(sys.argv[1], out=sys.argv[2], target="y", protected=["z"], train_rows=600, n_bags=5,
                         memory="500MB", n_jobs=1)
        """
    )
    source = os.fspath(fado.__path__[0] + "/..")
    killed = subprocess.run(
        [sys.executable, "-c", program, data, out], env={**os.environ, "PYTHONPATH": source}, check=False
    )
    assert killed.returncode == -signal.SIGKILL
    assert sorted(path.name for path in out.glob("part-*")) == ["part-00000.parquet", "part-00001.parquet"]
    before = (out / "part-00001.parquet").stat().st_mtime_ns
    fado.value_files(data, out=out, **SETTINGS)
    assert (out / "part-00001.parquet").stat().st_mtime_ns == before
    assert contents(out) == contents(whole)
    assert not list(out.glob(".*.part"))


def test_less_memory_than_when_a_run_began_is_refused_only_if_it_is_named(data, tmp_path, monkeypatch):
    """How many rows models learn from was settled by what was there when the run began."""
    asked = {**SETTINGS, "train_rows": None, "memory": None}
    expected = fado.value_files(data, out=tmp_path / "expected", **asked).values
    with monkeypatch.context() as patched:
        patched.setattr(_value_files, "learn", None)
        with pytest.raises(TypeError):
            fado.value_files(data, out=tmp_path / "v", **asked)
    with pytest.raises(ValueError, match="started with memory for 2,400 training rows, and"):
        fado.value_files(data, out=tmp_path / "v", **{**asked, "memory": "1MB", "n_jobs": 2})
    monkeypatch.setattr(_plan, "free_memory", lambda: 900_000)
    values = fado.value_files(data, out=tmp_path / "v", **asked).values
    pd.testing.assert_frame_equal(values, expected, check_exact=True)


def test_a_finished_run_is_not_repeated_but_a_deleted_part_is_made_again(data, whole, tmp_path, monkeypatch):
    out = tmp_path / "v"
    shutil.copytree(whole, out)
    monkeypatch.setattr(_value_files, "learn", None)  # neither read nor trained again
    with monkeypatch.context() as patched:
        patched.setattr(_value_files, "load_models", None)
        assert len(fado.value_files(data, out=whole, **SETTINGS)) == N
    (out / "part-00002.parquet").unlink()
    (out / "._done.json.0123abcd.part").write_bytes(b"left by a process that was killed")
    fado.value_files(data, out=out, **SETTINGS)
    assert contents(out) == contents(whole)
    assert sorted(path.name for path in out.iterdir()) == sorted(path.name for path in whole.iterdir())


def swap(out, one, other):
    """Swap two files."""
    (out / one).rename(out / "_aside")
    (out / other).rename(out / one)
    (out / "_aside").rename(out / other)


def test_a_part_stands_in_its_own_place_only(data, whole, tmp_path):
    """All parts have 600 rows: nothing but what they say of themselves tells them apart."""
    out, other = tmp_path / "v", tmp_path / "other"
    shutil.copytree(whole, out)
    opened = Valuation.load(out)
    swap(out, "part-00001.parquet", "part-00002.parquet")
    for load in (Valuation.load, StoredValues, summarise_files):
        with pytest.raises(
            ValueError, match=r"part-00001\.parquet' is another part, of another valuation, or"
        ):
            load(out)
    with pytest.raises(
        ValueError, match=r"part-00001\.parquet' cannot be read: it is damaged, or of another"
    ):
        _ = opened["y"]  # which is read only now
    fado.value_files(data, out=out, **SETTINGS)  # writes both anew
    assert contents(out) == contents(whole)
    fado.value_files(data, out=other, **{**SETTINGS, "random_state": 1})
    shutil.copy(other / "part-00003.parquet", out)
    with pytest.raises(ValueError, match=r"part-00003\.parquet' is another part, of another valuation"):
        Valuation.load(out)


def test_parts_that_were_swapped_or_damaged_before_a_run_goes_on_are_made_again(
    data, whole, tmp_path, monkeypatch
):
    out = tmp_path / "v"
    with monkeypatch.context() as patched:
        fail_after(patched, 3, KeyboardInterrupt())
        with pytest.raises(KeyboardInterrupt):
            fado.value_files(data, out=out, **SETTINGS)
    swap(out, "part-00000.parquet", "part-00001.parquet")
    (out / "part-00002.parquet").write_bytes(b"PAR1")
    fado.value_files(data, out=out, **SETTINGS)
    assert contents(out) == contents(whole)


@pytest.mark.parametrize("removed", ["nothing", "half", "all"])
def test_a_run_that_is_ended_while_it_removes_its_parts_can_be_repeated(data, tmp_path, monkeypatch, removed):
    out, plain = tmp_path / "v.parquet", shutil.rmtree

    def remove(path, **options):
        if path.name.endswith(".part") and (path / "_done.json").exists():
            if removed == "half":
                (path / "_done.json").unlink()
                plain(path / "_models")
            elif removed == "all":
                plain(path)
            raise KeyboardInterrupt
        plain(path, **options)

    with monkeypatch.context() as patched:
        patched.setattr(shutil, "rmtree", remove)
        with pytest.raises(KeyboardInterrupt):
            fado.value_files(data, out=out, **SETTINGS)
    before = out.read_bytes()
    fado.value_files(data, out=out, **SETTINGS)
    assert out.read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["v.parquet"]


@pytest.mark.parametrize(
    ("other", "sentence"),
    [
        ({"random_state": 1}, "`random_state` 0, and now it is 1: name another `out` to start again"),
        ({"train_rows": 700}, "`train_rows` 600, and now it is 700"),
        ({"n_bags": 10}, "`n_bags` 5, and now it is 10"),
        ({"drop": ["a"]}, r"`features` \['a', 'b', 'c', 'z'\], and now it is \['b', 'c', 'z'\]"),
        ({"protected": ["z == f"]}, "`protected`"),
    ],
)
def test_a_run_that_asked_for_something_else_is_left_alone(data, whole, other, sentence):
    before = contents(whole)
    with pytest.raises(ValueError, match=sentence):
        fado.value_files(data, out=whole, **{**SETTINGS, **other})
    assert contents(whole) == before


def test_files_that_changed_are_refused(data, tmp_path):
    folder, out = tmp_path / "d", tmp_path / "v"
    folder.mkdir()
    for path in data.iterdir():
        (folder / path.name).write_bytes(path.read_bytes())
    fado.value_files(folder, out=out, **SETTINGS)
    (folder / "4.parquet").write_bytes((data / "3.parquet").read_bytes())
    with pytest.raises(ValueError, match=r"from other files: '.*4\.parquet' is new; name another `out`"):
        fado.value_files(folder, out=out, **SETTINGS)
    (folder / "4.parquet").unlink()
    os.utime(folder / "3.parquet", ns=(1, 1))
    with pytest.raises(ValueError, match=r"from other files: '.*3\.parquet' is changed"):
        fado.value_files(folder, out=out, **SETTINGS)


def test_two_runs_do_not_write_into_one_directory(data, tmp_path):
    out = tmp_path / "v"
    out.mkdir()
    sentence = rf"^The directory '{out}' is in use by process {os.getpid()} on host"
    with Run(out).held(), pytest.raises(RuntimeError, match=sentence):
        fado.value_files(data, out=out, **SETTINGS)


def test_what_stands_there_already_is_left_alone(data, tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(ValueError, match=r"holds 'notes\.txt', which is not part of values in parts"):
        fado.value_files(data, out=tmp_path, **SETTINGS)


def test_no_space_is_a_sentence_and_what_is_done_stays(data, whole, tmp_path, monkeypatch):
    out = tmp_path / "v"
    plain = pq.ParquetWriter.write_table
    with monkeypatch.context() as patched:
        calls = []

        def write_table(self, *arguments, **options):
            calls.append(1)
            if len(calls) > 2:
                raise OSError(errno.ENOSPC, "No space left on device")
            return plain(self, *arguments, **options)

        patched.setattr(pq.ParquetWriter, "write_table", write_table)
        sentence = (
            r"^Values cannot be written to '.*v/part-00002\.parquet' \(No space left on device, .* are "
            r"free\): make room and run again; what is done stays\.$"
        )
        with pytest.raises(OSError, match=sentence):
            fado.value_files(data, out=out, **SETTINGS)
    assert len(list(out.glob("part-*"))) == 2
    fado.value_files(data, out=out, **SETTINGS)
    assert contents(out) == contents(whole)


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"target": "yy"}, "`target` must name a column of the table, .* got 'yy'; did you mean 'y'?"),
        ({"protected": "zz"}, "zz"),
        ({"protected": "y"}, "`protected` names 'y', the target"),
        ({"protected": "a >= 100"}, "`protected` 'a>=100' is true in no row: look at a"),
        ({"drop": ["q*"]}, r"`drop` names 'q\*': no column fits this pattern"),
        ({"exclude": "q"}, "`exclude` names 'q': there is no column 'q'"),
        (
            {"weight": "a"},
            "`weight` must be finite and not negative in every row of",
        ),
        ({"weight": "z"}, "`weight` names 'z', which holds text"),
        ({"memory": "lots"}, "`memory` must be a size with its unit"),
        ({"unseen_fraction": 1.3}, r"`unseen_fraction` must be in \(0, 1\), got 1.3"),
        ({"n_bags": 2}, "`n_bags \\* unseen_fraction` must be at least 1"),
        ({"groups": "person"}, "`groups` names 'person', which is not a column of the table"),
        ({"train_rows": 0}, "`train_rows` must be at least 1"),
        ({"random_state": -1}, "`random_state` must be at least 0"),
    ],
)
def test_bad_settings_end_in_a_sentence(data, tmp_path, settings, sentence):
    with pytest.raises(ValueError, match=sentence):
        fado.value_files(data, out=tmp_path / "v", **{**SETTINGS, **settings})


@pytest.mark.parametrize(
    ("out", "sentence"),
    [
        ("v.csv", "`out` must be a directory, or end in .parquet"),
        ("nowhere/v", "nowhere' does not exist: create it first"),
        ("file", "file' is a file: name a directory"),
        ("folder.parquet", r"folder\.parquet' is a directory: name a file"),
    ],
)
def test_outputs_that_cannot_be_are_refused(data, tmp_path, out, sentence):
    (tmp_path / "file").write_text("")
    (tmp_path / "folder.parquet").mkdir()
    with pytest.raises(ValueError, match=sentence):
        fado.value_files(data, out=tmp_path / out, **SETTINGS)


def test_an_input_is_not_replaced(data, tmp_path):
    sentence = "which is read as well: name another"
    with pytest.raises(ValueError, match=sentence):
        fado.value_files(data / "0.parquet", out=data / "0.parquet", **SETTINGS)
    with pytest.raises(ValueError, match=sentence):
        fado.value_files(data / "0.parquet", out=data, **SETTINGS)
    with pytest.raises(
        ValueError, match=rf"values', which '{data}' would read the next time: name a place els"
    ):
        fado.value_files(str(data), out=data / "values", **SETTINGS)
    theirs = tmp_path / "part-00000.parquet"  # as others name their parts
    theirs.write_bytes((data / "0.parquet").read_bytes())
    with pytest.raises(ValueError, match=r"holds 'part-00000\.parquet', which is not part of values"):
        fado.value_files(data, out=tmp_path, **SETTINGS)
    assert theirs.read_bytes() == (data / "0.parquet").read_bytes()


def test_a_bound_that_is_too_small_says_the_least_that_works(tmp_path):
    frame = pd.DataFrame({"a": np.arange(1e6), "z": ["f", "m"] * 500_000, "y": [0, 1, 1, 0] * 250_000})
    frame.to_parquet(tmp_path / "one.parquet", row_group_size=1_000_000)
    settings = {"target": "y", "protected": "z", "n_jobs": 1}
    with pytest.raises(
        ValueError, match=r"is too small: the 1,000,000 rows that '.*one\.parquet' gives"
    ) as said:
        plan_files(tmp_path, memory="5MB", **settings)
    least = re.search(r"the least that works is (\d+) MB", str(said.value))[1]
    assert plan_files(tmp_path, memory=f"{least}MB", **settings).train_rows >= 1000
    with pytest.raises(ValueError, match="is too small for `train_rows=500,000`"):
        plan_files(tmp_path, memory=f"{least}MB", train_rows=500_000, **settings)


def test_a_directory_that_was_tampered_with_is_refused(data, whole, tmp_path):
    out = tmp_path / "v"
    shutil.copytree(whole, out)
    table = pq.read_table(out / "part-00001.parquet")
    pq.write_table(table.slice(0, 100), out / "part-00001.parquet")
    with pytest.raises(ValueError, match=r"part-00001\.parquet' is another part"):
        Valuation.load(out)
    wrong = table.set_column(0, "y", [np.full(600, 7.0)])
    pq.write_table(wrong, out / "part-00001.parquet")
    with pytest.raises(
        ValueError, match=r"part-00001\.parquet' is another part, of another valuation, or damag"
    ):
        Valuation.load(out)
    told = json.loads((out / "_done.json").read_text())
    told["parts"][1]["digest"] = footer_digest(out / "part-00001.parquet")  # somebody made all of it fit
    DONE.write(out, {name: told[name] for name in ("parts", "description")})
    with pytest.raises(ValueError, match=r"column 'y' holds 7\.0 in row 0"):
        _ = Valuation.load(out)["y"]
    (out / "part-00001.parquet").unlink()
    with pytest.raises(ValueError, match="is missing: the valuation is not complete"):
        Valuation.load(out)
    told = json.loads((out / "_done.json").read_text())
    (out / "_done.json").write_text(json.dumps(told | {"parts": []}))
    with pytest.raises(ValueError, match="was changed after it was written"):
        Valuation.load(out)
